package main

import (
	"math/rand"
	"strings"
	"testing"
)

func TestDecodersReadWhatTheyShould(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, decoder := range decoders {
		for round := 0; round < 20000; round++ {
			digits := make([]byte, 1+random.Intn(maxDigits))
			var want Mask
			for i := range digits {
				value := random.Intn(16)
				digits[i] = "0123456789abcdef"[value]
				place := len(digits) - 1 - i
				want[place/16] |= uint64(value) << (4 * (place % 16))
			}
			var got Mask
			if !decoder.Decode(string(digits), &got) || got != want {
				t.Fatalf("%s: %s gave %x, want %x", decoder.Name, digits, got, want)
			}
		}
	}
}

// Every byte that is no digit, at every place of a text of every length.
func TestDecodersRefuseTheRest(t *testing.T) {
	for _, decoder := range decoders {
		for _, text := range []string{"", strings.Repeat("0", maxDigits+1), "0x1", "+1", "-1", " 1", "1\n", "1_0", "AB", "١", "０"} {
			if decoder.Decode(text, new(Mask)) {
				t.Errorf("%s accepts %q", decoder.Name, text)
			}
		}
		for length := 1; length <= maxDigits; length++ {
			for place := 0; place < length; place++ {
				for c := 0; c < 256; c++ {
					if strings.IndexByte("0123456789abcdef", byte(c)) >= 0 {
						continue
					}
					text := []byte(strings.Repeat("f", length))
					text[place] = byte(c)
					if decoder.Decode(string(text), new(Mask)) {
						t.Fatalf("%s accepts %q", decoder.Name, text)
					}
				}
			}
		}
	}
}
