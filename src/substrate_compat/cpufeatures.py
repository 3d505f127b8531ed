"""Sets of CPU features as masks of 384 bits, and the hex text that carries a mask.

A set is an integer: bit n is the feature whose row in `cpufeatures_table` has number n. On amd64
the bits are CPUID register bits, 32 to a block; 384 bits are six words of 64, room for blocks 0 to
11. What can be said of two sets (subset, difference, intersection) is one operation of integers.

A bit without a row has no name, so nothing could be said about it: a mask with one is refused.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final, Self

import attrs

from substrate_compat.cpufeatures_table import (
    AMD64_FEATURES,
    ARM64_FEATURES,
    Architecture,
    Feature,
)
from substrate_compat.errors import InputError, quoted

__all__ = [
    "MASK_BITS",
    "FeatureSet",
    "decode_cpu_features",
    "encode_cpu_features",
    "known_features",
    "named_bits",
    "parse_architecture",
]

MASK_BITS: Final = 384
"""How many bits a mask has: 6 words of 64."""

_MASK_DIGITS: Final = MASK_BITS // 4
_HEX_DIGITS: Final = b"0123456789abcdef"
_set: Final = object.__setattr__
_ARCHITECTURES: Final = {architecture.value: architecture for architecture in Architecture}
_AMD64: Final = Architecture.AMD64
_AMD64_BITS: Final = sum(1 << feature.value for feature in AMD64_FEATURES)
_ARM64_BITS: Final = sum(1 << feature.value for feature in ARM64_FEATURES)
_AMD64_BIT_OF: Final = {feature.name: feature.value for feature in AMD64_FEATURES}
_ARM64_BIT_OF: Final = {feature.name: feature.value for feature in ARM64_FEATURES}
_LONGEST_MISSPELLING: Final = 64

_PSABI_LEVELS: Final = {
    "x86-64-v2": "cx16,lahf_lm,pni,popcnt,sse4_1,sse4_2,ssse3",
    "x86-64-v3": "abm,avx,avx2,bmi1,bmi2,f16c,fma,movbe,osxsave",
    "x86-64-v4": "avx512bw,avx512cd,avx512dq,avx512f,avx512vl",
}
"""What each level of the x86-64 psABI adds to the one before, in gVisor's names."""


def known_features(architecture: Architecture) -> tuple[Feature, ...]:
    """The table's rows for `architecture`, by number.

    >>> len(known_features(Architecture.AMD64)), len(known_features(Architecture.ARM64))
    (175, 24)
    """
    return AMD64_FEATURES if architecture is _AMD64 else ARM64_FEATURES


def named_bits(architecture: Architecture) -> int:
    """The mask of every bit that has a row in the table for `architecture`.

    >>> named_bits(Architecture.ARM64) == (1 << 24) - 1
    True
    """
    return _AMD64_BITS if architecture is _AMD64 else _ARM64_BITS


def parse_architecture(text: str) -> Architecture:
    """The architecture of that name.

    Raises:
        InputError: any name but `amd64` and `arm64`.

    >>> parse_architecture("arm64")
    <Architecture.ARM64: 'arm64'>
    """
    architecture = _ARCHITECTURES.get(text)
    if architecture is None:
        raise InputError(
            "architecture", f"{quoted(text)} is not known", "known are " + " and ".join(_ARCHITECTURES)
        )
    return architecture


@attrs.frozen(init=False, order=False)
class FeatureSet:
    """A set of CPU features of one architecture.

    Sets of different architectures are incomparable: `<=` and `<` are False both ways; `&`, `|` and
    `-` raise. Iteration goes by name.

    Attributes:
        architecture: whose features these are.
        bits: the mask, an integer of at most 384 bits, each of which has a row in the table.

    Raises:
        InputError: a bit without a name.
        TypeError: an architecture that is not an `Architecture`, or bits that are no `int`.

    >>> skylake = FeatureSet.from_names(Architecture.AMD64, ["pni", "avx2", "avx512f"])
    >>> haswell = FeatureSet.from_names(Architecture.AMD64, ["pni", "avx2"])
    >>> haswell <= skylake, (skylake - haswell).names, haswell.hex
    (True, ('avx512f',), '200000000000000001')
    """

    architecture: Architecture
    bits: int

    # Written out because decoding a mask is on the scheduler's way: what attrs would generate, with
    # the checks in a method of their own, takes half as long again.
    def __init__(self, architecture: Architecture, bits: int) -> None:
        if type(bits) is not int or type(architecture) is not Architecture:
            raise TypeError("a FeatureSet takes an Architecture and an int")
        known = _AMD64_BITS if architecture is _AMD64 else _ARM64_BITS  # as `named_bits`, without the call
        if bits | known != known:
            raise _unnamed(architecture, bits)
        _set(self, "architecture", architecture)
        _set(self, "bits", bits)

    @classmethod
    def from_names(cls, architecture: Architecture, names: Iterable[str]) -> Self:
        """The set of the given names, in any order; repeats change nothing.

        Raises:
            InputError: a name that is not in the table; the message suggests the nearest.
        """
        bit_of = _AMD64_BIT_OF if architecture is _AMD64 else _ARM64_BIT_OF
        bits = 0
        for name in names:
            value = bit_of.get(name)
            if value is None:
                raise _unknown(architecture, name)
            bits |= 1 << value
        return cls(architecture, bits)

    @classmethod
    def from_hex(cls, architecture: Architecture, text: str) -> Self:
        """The set whose mask is `text`: 1 to 96 lower-case hex digits, the most significant first.

        Leading zeros are accepted and nothing else is: no prefix, sign, blank, `_` or upper case.

        Raises:
            InputError: other text, or a bit without a name in the table.
        """
        # Deleting the digits and looking at what is left takes half the time of a pattern.
        if not 0 < len(text) <= _MASK_DIGITS or text.encode("ascii", "replace").translate(
            None, _HEX_DIGITS
        ):
            raise _not_hex(text)
        return cls(architecture, int(text, 16))

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        rows = known_features(self.architecture)
        return tuple(sorted(row.name for row in rows if self.bits >> row.value & 1))

    @property
    def hex(self) -> str:
        """The mask in lower-case hex without leading zeros; `0` for the empty set."""
        return f"{self.bits:x}"

    def __le__(self, other: "FeatureSet") -> bool:
        return self.architecture is other.architecture and self.bits & other.bits == self.bits

    def __lt__(self, other: "FeatureSet") -> bool:
        return self <= other and self.bits != other.bits

    def __ge__(self, other: "FeatureSet") -> bool:
        return other <= self

    def __gt__(self, other: "FeatureSet") -> bool:
        return other < self

    def __and__(self, other: "FeatureSet") -> "FeatureSet":
        self._require_comparable(other)
        return FeatureSet(self.architecture, self.bits & other.bits)

    def __or__(self, other: "FeatureSet") -> "FeatureSet":
        self._require_comparable(other)
        return FeatureSet(self.architecture, self.bits | other.bits)

    def __sub__(self, other: "FeatureSet") -> "FeatureSet":
        self._require_comparable(other)
        return FeatureSet(self.architecture, self.bits & ~other.bits)

    def __contains__(self, name: str) -> bool:
        bit_of = _AMD64_BIT_OF if self.architecture is _AMD64 else _ARM64_BIT_OF
        value = bit_of.get(name)
        return value is not None and self.bits >> value & 1 == 1

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def _require_comparable(self, other: "FeatureSet") -> None:
        if self.architecture is not other.architecture:
            raise InputError(
                "feature sets",
                f"one is of {self.architecture}, the other of {other.architecture}",
                "only sets of one architecture can be combined",
            )


def encode_cpu_features(names: Iterable[str], architecture: Architecture) -> str:
    """The hex text of the mask of `names`: the value of the attribute `cpu_features`.

    Raises:
        InputError: a name that is not in the table; the message suggests the nearest.

    >>> encode_cpu_features(["pni"], Architecture.AMD64)
    '1'
    """
    return FeatureSet.from_names(architecture, names).hex


def decode_cpu_features(text: str, architecture: Architecture) -> FeatureSet:
    """The set that the hex text of a mask stands for (see `FeatureSet.from_hex`).

    Raises:
        InputError: text that is no mask, or a bit without a name in the table.

    >>> decode_cpu_features("0003", Architecture.AMD64).names
    ('pclmulqdq', 'pni')
    """
    return FeatureSet.from_hex(architecture, text)


def _unnamed(architecture: Architecture, bits: int) -> InputError:
    if bits < 0 or bits.bit_length() > MASK_BITS:
        return InputError("cpu_features", f"not a mask of {MASK_BITS} bits")
    known = named_bits(architecture)
    bit = (bits & ~known).bit_length() - 1
    return InputError(
        "cpu_features",
        f"bit {bit} has no name on {architecture}: this table ends at bit {known.bit_length() - 1}",
        "if a newer node wrote it, upgrade this reader first",
    )


def _not_hex(text: str) -> InputError:
    if not text:
        problem = "the mask is empty"
    elif len(text) > _MASK_DIGITS:
        problem = f"{len(text)} digits are too many: a mask has at most {_MASK_DIGITS}"
    else:
        problem = f"{quoted(text)} is not a mask"
    return InputError(
        "cpu_features",
        problem,
        "a mask is lower-case hex digits without prefix, `0` for the empty set",
    )


def _unknown(architecture: Architecture, name: str) -> InputError:
    problem = f"{quoted(name)} is not a feature name of gVisor on {architecture}"
    if name in _PSABI_LEVELS:
        return InputError("cpu_features", problem, f"name its features: {_PSABI_LEVELS[name]}")
    nearest = _nearest(architecture, name)
    known = "`runsc cpu-features` prints the names"
    return InputError("cpu_features", problem, f"did you mean {nearest!r}?" if nearest else known)


def _nearest(architecture: Architecture, name: str) -> str | None:
    """The feature that was probably meant: by its constant in gVisor, else by spelling."""
    if len(name) > _LONGEST_MISSPELLING:
        return None
    plain = _letters_and_digits(name)
    rows = known_features(architecture)
    for row in rows:
        if plain in (_letters_and_digits(row.constant), _letters_and_digits(row.name)):
            return row.name
    close = difflib.get_close_matches(name.lower(), [row.name for row in rows], n=1)
    return close[0] if close else None


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
