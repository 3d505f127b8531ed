package main

import (
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"unsafe"
)

// Mask is a set of CPU features: bit n is bit n%64 of word n/64.
type Mask [6]uint64

const (
	maxDigits   = 96
	wordDigits  = 16
	ones        = 0x0101010101010101
	highNibbles = 0xf0f0f0f0f0f0f0f0
)

func (m *Mask) within(other *Mask) bool {
	missing := m[0]&^other[0] | m[1]&^other[1] | m[2]&^other[2] |
		m[3]&^other[3] | m[4]&^other[4] | m[5]&^other[5]
	return missing == 0
}

// Decoder reads 1 to 96 lower-case hex digits, the most significant first, into
// a mask that is zero. It reports whether the text was that and nothing else.
type Decoder struct {
	Name   string
	Decode func(text string, mask *Mask) bool
}

// decoders are the ways that were tried, slowest first. `decode`, which the match
// calls, is the one that measured fastest. All are portable Go: no assembly and no
// experiment of the tool chain, as a control plane is built.
var decoders = []Decoder{
	{"math/big", decodeBig},
	{"encoding/hex", decodeHex},
	{"strconv.ParseUint", decodeParseUint},
	{"branch per digit", decodeBranches},
	{"table of digits", decodeDigitTable},
	{"8 digits a word (SWAR)", decodeSwar},
	{"table of pairs", decodePairTable},
}

const fastest = "table of pairs"

func decode(text string, mask *Mask) bool { return decodePairTable(text, mask) }

var zeros = strings.Repeat("0", maxDigits)

func lowerHex(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return 0 < len(text) && len(text) <= maxDigits
}

func decodeBig(text string, mask *Mask) bool {
	if !lowerHex(text) {
		return false
	}
	number, ok := new(big.Int).SetString(text, 16)
	if !ok {
		return false
	}
	var buffer [maxDigits / 2]byte
	number.FillBytes(buffer[:])
	for word := range mask {
		mask[word] = binary.BigEndian.Uint64(buffer[len(buffer)-8*(word+1):])
	}
	return true
}

func decodeHex(text string, mask *Mask) bool {
	if !lowerHex(text) {
		return false
	}
	var padded [maxDigits]byte
	fill := maxDigits - len(text)
	copy(padded[:fill], zeros)
	copy(padded[fill:], text)
	var buffer [maxDigits / 2]byte
	if _, err := hex.Decode(buffer[:], padded[:]); err != nil {
		return false
	}
	for word := range mask {
		mask[word] = binary.BigEndian.Uint64(buffer[len(buffer)-8*(word+1):])
	}
	return true
}

func decodeParseUint(text string, mask *Mask) bool {
	if !lowerHex(text) {
		return false
	}
	for word, end := 0, len(text); end > 0; word, end = word+1, end-wordDigits {
		value, err := strconv.ParseUint(text[max(0, end-wordDigits):end], 16, 64)
		if err != nil {
			return false
		}
		mask[word] = value
	}
	return true
}

func decodeBranches(text string, mask *Mask) bool {
	if len(text) == 0 || len(text) > maxDigits {
		return false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return false
		}
		digit := len(text) - 1 - i
		mask[digit/wordDigits] |= uint64(c) << (4 * (digit % wordDigits))
	}
	return true
}

// digitValue is the value of each digit, and 0xff for all other bytes.
var digitValue = func() (table [256]uint8) {
	for c := range table {
		table[c] = 0xff
	}
	for value, c := range []byte("0123456789abcdef") {
		table[c] = uint8(value)
	}
	return table
}()

func decodeDigitTable(text string, mask *Mask) bool {
	if len(text) == 0 || len(text) > maxDigits {
		return false
	}
	bad := uint8(0)
	word := 0
	for len(text) >= wordDigits {
		chunk := text[len(text)-wordDigits:]
		text = text[:len(text)-wordDigits]
		value := uint64(0)
		for i := 0; i < wordDigits; i++ {
			digit := digitValue[chunk[i]]
			bad |= digit
			value = value<<4 | uint64(digit)
		}
		mask[word] = value
		word++
	}
	if len(text) > 0 {
		value := uint64(0)
		for i := 0; i < len(text); i++ {
			digit := digitValue[text[i]]
			bad |= digit
			value = value<<4 | uint64(digit)
		}
		mask[word] = value
	}
	return bad < 16
}

// bytesOf views a string's bytes without a copy.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// swarDigits checks and converts eight digits at once, one in each byte of x (the
// first digit in the top byte). `bad` has a high nibble set in some byte if any of
// the eight is no digit: the lowest such byte always shows it, since no byte below
// it carries or borrows.
func swarDigits(x uint64) (value, bad uint64) {
	letter := x >> 6 & ones                // 1 in the bytes 0x40..0x7f
	low := x ^ '0'*ones ^ letter*('0'^'`') // '0'..'9' to 0..9, 'a'..'f' to 1..6
	low -= letter                          // 'a'..'f' to 0..5
	bad = low | (low + 6*ones + 4*letter)  // 10 and up, or 6 and up, overflow a nibble
	value = low + 10*letter
	value = (value | value>>4) & 0x00ff00ff00ff00ff
	value = (value | value>>8) & 0x0000ffff0000ffff
	return (value | value>>16) & 0xffffffff, bad
}

func decodeSwar(text string, mask *Mask) bool {
	if len(text) == 0 || len(text) > maxDigits {
		return false
	}
	digits := bytesOf(text)
	bad := uint64(0)
	word := 0
	for len(digits) >= wordDigits {
		chunk := digits[len(digits)-wordDigits:]
		digits = digits[:len(digits)-wordDigits]
		high, badHigh := swarDigits(binary.BigEndian.Uint64(chunk))
		low, badLow := swarDigits(binary.BigEndian.Uint64(chunk[8:]))
		bad |= badHigh | badLow
		mask[word] = high<<32 | low
		word++
	}
	if len(digits) > 0 {
		var padded [wordDigits]byte
		binary.LittleEndian.PutUint64(padded[:], '0'*ones)
		binary.LittleEndian.PutUint64(padded[8:], '0'*ones)
		copy(padded[wordDigits-len(digits):], digits)
		high, badHigh := swarDigits(binary.BigEndian.Uint64(padded[:]))
		low, badLow := swarDigits(binary.BigEndian.Uint64(padded[8:]))
		bad |= badHigh | badLow
		mask[word] = high<<32 | low
	}
	return bad&highNibbles == 0
}

// pairValue is the value of two digits, by their two bytes as a little-endian
// number; 1<<32 where either is no digit, which no shift below brings under 32.
var pairValue = func() *[1 << 16]uint64 {
	table := new([1 << 16]uint64)
	for pair := range table {
		high, low := digitValue[pair&0xff], digitValue[pair>>8]
		if high > 15 || low > 15 {
			table[pair] = 1 << 32
			continue
		}
		table[pair] = uint64(high)<<4 | uint64(low)
	}
	return table
}()

// eightDigits is the value of the eight, the first in the lowest byte of x.
func eightDigits(table *[1 << 16]uint64, x uint64) uint64 {
	return table[uint16(x)]<<24 | table[uint16(x>>16)]<<16 | table[uint16(x>>32)]<<8 | table[x>>48]
}

func decodePairTable(text string, mask *Mask) bool {
	if len(text) == 0 || len(text) > maxDigits {
		return false
	}
	table := pairValue
	digits := bytesOf(text)
	bad := uint64(0)
	word := 0
	for len(digits) >= wordDigits {
		chunk := digits[len(digits)-wordDigits:]
		digits = digits[:len(digits)-wordDigits]
		high := eightDigits(table, binary.LittleEndian.Uint64(chunk))
		low := eightDigits(table, binary.LittleEndian.Uint64(chunk[8:]))
		bad |= high | low
		mask[word] = high<<32 | low
		word++
	}
	if len(digits) > 0 {
		value := uint64(0)
		if len(digits)%2 == 1 {
			digit := uint64(digitValue[digits[0]])
			bad |= digit << 28 & (0xf << 32)
			value = digit
			digits = digits[1:]
		}
		for ; len(digits) >= 2; digits = digits[2:] {
			pair := table[binary.LittleEndian.Uint16(digits)]
			bad |= pair
			value = value<<8 | pair
		}
		mask[word] = value
	}
	return bad>>32 == 0
}
