"""What Linux tells of the CPUs in `/proc/cpuinfo`, on amd64 and arm64.

The text is made for people and differs by architecture, so only lines whose whole key is known are read
(Linux: `arch/x86/kernel/cpu/proc.c`, `arch/arm64/kernel/cpuinfo.c`). A list of flags that is absent or
empty is an error and never an empty set, for an empty set would fit everywhere.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import LARGEST_TEXT, InputError, quoted, require_size

__all__ = ["CpuInfo", "cpu_flags_hash", "parse_cpuinfo", "read_cpuinfo"]

_PROCESSOR: Final = "processor"
_FLAGS: Final = {Architecture.AMD64: "flags", Architecture.ARM64: "Features"}
_VENDOR: Final = {Architecture.AMD64: "vendor_id", Architecture.ARM64: "CPU implementer"}
_MODEL: Final = "model name"
_CACHE_LINE: Final = "clflush size"
_PART, _VARIANT, _REVISION = "CPU part", "CPU variant", "CPU revision"
_KEYS: Final = frozenset(
    (*_FLAGS.values(), *_VENDOR.values(), _MODEL, _CACHE_LINE, _PART, _VARIANT, _REVISION)
)
# What a processor of each architecture has at least; without it the list is that of a 32-bit system.
_REQUIRED: Final = {
    Architecture.AMD64: frozenset({"lm"}),
    Architecture.ARM64: frozenset({"fp", "asimd"}),
}
_is_flag: Final = re.compile(r"[0-9A-Za-z_.:+-]{1,64}").fullmatch
_is_cache_line: Final = re.compile(r"[0-9]{1,5}").fullmatch
_is_part: Final = re.compile(r"0x[0-9a-f]{1,4} 0x[0-9a-f]{1,2} [0-9]{1,3}").fullmatch
_LONGEST_LIST: Final = 1 << 16
_MOST_PROCESSORS: Final = 1 << 16
_NO_IMPLEMENTER: Final = "0x00"
_INVENTED_MODEL: Final = "unknown"


@attrs.frozen
class CpuInfo:
    """A host's processors, as Linux tells of them.

    Attributes:
        architecture: the architecture that the text is of.
        flags: what every processor has, in Linux's names.
        varying_flags: what some processors have and others lack.
        vendor: such as `GenuineIntel` or `0x41`; None where Linux does not say.
        model: such as `AMD EPYC 7713 64-Core Processor` or `0xd0c r3p1`; None where Linux does not say.
            Where processors differ in vendor or model: the distinct values, sorted, joined by ` + `.
        cache_line: bytes that CLFLUSH writes back, 0 where CPUID says 0; None where the text does not
            say or the processors differ.
        processors: how many there are.
        looks_like_gvisor: the text was invented by gVisor, inside a sandbox, and is not the host's.
    """

    architecture: Architecture
    flags: frozenset[str]
    varying_flags: frozenset[str]
    vendor: str | None
    model: str | None
    cache_line: int | None
    processors: int
    looks_like_gvisor: bool

    @property
    def features(self) -> FeatureSet | None:
        """On arm64 what runsc would report: gVisor's names are those of the HWCAP bits. None on amd64.

        On amd64 gVisor reads CPUID, of which Linux's flags show only a part.
        """
        if self.architecture is not Architecture.ARM64:
            return None
        known = {feature.name for feature in known_features(self.architecture)}
        return FeatureSet.from_names(self.architecture, self.flags & known)


def parse_cpuinfo(text: str, expect: Architecture | None = None) -> CpuInfo:
    r"""What the text of `/proc/cpuinfo` tells.

    Args:
        text: the whole text; lines end in `\n`, a `\r` before it is dropped.
        expect: the architecture that it must be of, if the caller knows.

    Raises:
        InputError: no processor, one without flags, a 32-bit or unknown architecture or another than
            expected, a line given twice for one processor, a text over 8 MiB, flags of more than 65,536
            characters, or as many processors.

    >>> info = parse_cpuinfo("processor : 0\nflags : fpu lm sse2\nclflush size : 64\n")
    >>> info.architecture, sorted(info.flags), info.cache_line, info.vendor
    (<Architecture.AMD64: 'amd64'>, ['fpu', 'lm', 'sse2'], 64, None)
    """
    require_size("cpuinfo", text)
    processors = _processors(text)
    architecture = _architecture(processors, expect)
    lists = {processor[_FLAGS[architecture]] for processor in processors}
    every, some = _common_flags(lists, architecture)
    models = [_model(processor, architecture) for processor in processors]
    return CpuInfo(
        architecture=architecture,
        flags=every,
        varying_flags=some - every,
        vendor=_joined(_vendor(processor, architecture) for processor in processors),
        model=_joined(models),
        cache_line=_cache_line({processor.get(_CACHE_LINE) for processor in processors}),
        processors=len(processors),
        looks_like_gvisor=architecture is Architecture.AMD64 and _INVENTED_MODEL in models,
    )


def read_cpuinfo(path: str | Path = "/proc/cpuinfo") -> CpuInfo:
    r"""What `path` tells: `parse_cpuinfo` of its text; a byte that is not UTF-8 becomes `\xNN`.

    Raises:
        InputError: the text is not understood, or `path` is none, such as one with a NUL.
        OSError: the file cannot be read.
    """
    try:
        with Path(path).open(encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            text = file.read(LARGEST_TEXT + 1)
    except ValueError:
        raise InputError(str(path), "no system has such a path") from None
    return parse_cpuinfo(text)


def cpu_flags_hash(flags: Iterable[str]) -> str:
    """A key for equal sets of flags: 16 lower-case hex digits.

    It is the 64-bit FNV-1a hash of the sorted distinct flags joined by one space, in UTF-8. Equal hashes
    mean equal flags; nothing else can be told from two of them.

    Source: Fowler, Noll and Vo, FNV-1a, 64 bits.

    >>> cpu_flags_hash([])
    'cbf29ce484222325'
    >>> cpu_flags_hash(["sse2", "fpu", "fpu"]) == cpu_flags_hash(["fpu", "sse2"])
    True
    """
    value = 0xCBF29CE484222325
    for byte in " ".join(sorted(set(flags))).encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def _processors(text: str) -> list[dict[str, str]]:
    """The lines that are read, for each processor."""
    processors: list[dict[str, str]] = []
    for line in io.StringIO(text, newline="\n"):
        if ":" not in line:
            continue
        head, _, value = line.partition(":")
        key = head.rstrip(" \t")
        if key == _PROCESSOR:
            if len(processors) == _MOST_PROCESSORS:
                raise InputError("cpuinfo", f"more than {_MOST_PROCESSORS} processors")
            processors.append({})
        elif key in _KEYS and processors:
            if key in processors[-1]:
                number = len(processors) - 1
                raise InputError("cpuinfo", f"processor block {number} has two lines {key!r}")
            processors[-1][key] = value.strip(" \t\r\n")
    if not processors:
        raise InputError("cpuinfo", "it tells of no processor", "give the whole of /proc/cpuinfo")
    return processors


def _architecture(processors: Sequence[Mapping[str, str]], expect: Architecture | None) -> Architecture:
    found = [
        architecture
        for architecture, key in _FLAGS.items()
        if any(key in processor for processor in processors)
    ]
    if len(found) != 1:
        problem = "lines of two architectures" if found else "no line `flags` (amd64) or `Features` (arm64)"
        raise InputError("cpuinfo", f"it has {problem}", "only amd64 and arm64 are known")
    (architecture,) = found
    if expect is not None and architecture is not expect:
        raise InputError("cpuinfo", f"it is of {architecture}, not of {expect}")
    for number, processor in enumerate(processors):
        if not processor.get(_FLAGS[architecture]):
            raise InputError("cpuinfo", f"processor block {number} lists no {_FLAGS[architecture]}")
    return architecture


def _common_flags(
    lists: Iterable[str], architecture: Architecture
) -> tuple[frozenset[str], frozenset[str]]:
    """The flags that are in each of the lists, of which there is one or more, and those that are in any."""
    sets = (_flags(listed, architecture) for listed in lists)
    every = next(sets)
    some = set(every)
    for flags in sets:
        every &= flags
        some |= flags
    return every, frozenset(some)


def _flags(listed: str, architecture: Architecture) -> frozenset[str]:
    if len(listed) > _LONGEST_LIST:
        problem = f"{_FLAGS[architecture]} of {len(listed)} characters; {_LONGEST_LIST} are the most"
        raise InputError("cpuinfo", problem)
    flags = frozenset(listed.replace("\t", " ").split(" ")) - {""}
    if wrong := [flag for flag in flags if _is_flag(flag) is None]:
        raise InputError("cpuinfo", f"{quoted(min(wrong))} is no flag")
    if missing := sorted(_REQUIRED[architecture] - flags):
        raise InputError(
            "cpuinfo",
            f"the {_FLAGS[architecture]} lack {' and '.join(missing)}: a 32-bit system or personality",
            f"read it as a 64-bit program on an {architecture} host",
        )
    return flags


def _vendor(processor: Mapping[str, str], architecture: Architecture) -> str | None:
    vendor = processor.get(_VENDOR[architecture])
    return None if vendor == _NO_IMPLEMENTER else vendor


def _model(processor: Mapping[str, str], architecture: Architecture) -> str | None:
    if architecture is Architecture.AMD64:
        return processor.get(_MODEL) or None
    part, variant, revision = (processor.get(key, "") for key in (_PART, _VARIANT, _REVISION))
    if not _is_part(f"{part} {variant} {revision}"):
        return None
    return f"{part} r{int(variant, 16)}p{revision}"


def _joined(values: Iterable[str | None]) -> str | None:
    """The distinct values in one text; None if any processor has none, for half a name is no name."""
    distinct = set(values)
    present = sorted(value for value in distinct if value)
    return " + ".join(present) if len(present) == len(distinct) else None


def _cache_line(values: set[str | None]) -> int | None:
    for value in values - {None}:
        if value is not None and not _is_cache_line(value):
            raise InputError("cpuinfo", f"{quoted(value)} is no {_CACHE_LINE}")
    (first, *others) = values
    return None if first is None or others else int(first)
