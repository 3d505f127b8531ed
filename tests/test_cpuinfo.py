"""`/proc/cpuinfo`: captures, texts made to mislead, and what must not change the answer."""

import platform
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import CpuInfo, cpu_flags_hash, parse_cpuinfo, read_cpuinfo
from substrate_compat.errors import InputError
from vectors import Capture, arm64, captures

AMD64: Final = Architecture.AMD64
ARM64: Final = Architecture.ARM64
CAPTURES: Final = captures()
MIB: Final = 1 << 20

# What gVisor shows a guest on amd64: the host's CPUID, under names that it makes up.
GVISOR: Final = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: unknown\n"
    "stepping\t: unknown\ncpu MHz\t\t: 2200.000\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: 22\n"
    "wp\t\t: yes\nflags\t\t: fpu lm avx2\nbogomips\t: 2200.00\nclflush size\t: 64\ncache_alignment\t: 64\n"
    "address sizes\t: 46 bits physical, 48 bits virtual\npower management:\n\n"
)


def an_amd64(
    flags: str = "fpu lm",
    varying: str = "",
    *,
    vendor: str | None = None,
    model: str | None = None,
    cache_line: int | None = None,
    processors: int = 1,
    looks_like_gvisor: bool = False,
) -> CpuInfo:
    return CpuInfo(
        AMD64,
        frozenset(flags.split()),
        frozenset(varying.split()),
        vendor,
        model,
        cache_line,
        processors,
        looks_like_gvisor,
    )


def an_arm64(
    flags: str = "fp asimd",
    varying: str = "",
    *,
    vendor: str | None = None,
    model: str | None = None,
    processors: int = 1,
) -> CpuInfo:
    return CpuInfo(
        ARM64, frozenset(flags.split()), frozenset(varying.split()), vendor, model, None, processors, False
    )


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
def test_a_capture_is_read(capture: Capture) -> None:
    info = parse_cpuinfo(capture.text, capture.architecture)
    assert info == parse_cpuinfo(capture.text)
    assert info.architecture is capture.architecture
    assert (info.processors, info.varying_flags, info.looks_like_gvisor) == (2, frozenset(), False)
    assert info.model is not None
    if capture.architecture is ARM64:
        assert info.features == arm64(capture.listing)
        assert info.vendor == (None if capture.name == "arm64-max" else "0x41")
    else:
        assert info.features is None
        assert info.vendor in {"AuthenticAMD", "GenuineIntel", "HygonGenuine"}
        assert info.cache_line == 64


def test_there_are_40_captures() -> None:
    assert sorted(capture.architecture.value for capture in CAPTURES) == ["amd64"] * 33 + ["arm64"] * 7


@pytest.mark.parametrize(
    ("text", "info"),
    [
        pytest.param(
            "processor : 0\nflags : fpu lm vmx\nvmx flags : vnmi ept\n",
            an_amd64("fpu lm vmx"),
            id="vmx flags",
        ),
        pytest.param(
            "processor : 0\nvmx flags : ept\nFlags : a\n flags : c\nflags : fpu lm\nfeatures : d\n",
            an_amd64(),
            id="keys are whole and case-sensitive",
        ),
        pytest.param(
            "processor : 0\nFeatures : fp asimd\n\nHardware : BCM2835\nRevision : c03111\nSerial : 1000\n",
            an_arm64(),
            id="trailer",
        ),
        pytest.param(
            "features : esan3 zarch\nflags : x\n\nprocessor : 0\nflags : fpu lm\n", an_amd64(), id="header"
        ),
        pytest.param(
            "processor : 0\nvendor_id :   Shanghai  \nflags : fpu lm\n",
            an_amd64(vendor="Shanghai"),
            id="padded",
        ),
        pytest.param("processor : 0\nvendor_id : \nflags : fpu lm\n", an_amd64(), id="empty vendor"),
        pytest.param("processor : 0\nmodel name :\nflags : fpu lm\n", an_amd64(), id="empty model"),
        pytest.param(
            "processor : 0\nvendor_id : GenuineIotel\nflags : fpu lm\n",
            an_amd64(vendor="GenuineIotel"),
            id="GenuineIotel",
        ),
        pytest.param(
            "processor : 0\nmodel name : A: B @ 2.00GHz\nflags : fpu lm\n",
            an_amd64(model="A: B @ 2.00GHz"),
            id="colon in the model",
        ),
        pytest.param(
            "processor : 0\nmodel name : A\x0bB\x85C\u2028D\nflags : fpu lm\n",
            an_amd64(model="A\x0bB\x85C\u2028D"),
            id="only a newline ends a line",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm avx512f\n\nprocessor : 1\nflags : fpu lm gfni\n",
            an_amd64(varying="avx512f gfni", processors=2),
            id="flags that differ",
        ),
        pytest.param(
            "processor : 0\nvendor_id : B\nmodel name : y\nflags : fpu lm\n\n"
            "processor : 1\nvendor_id : A\nmodel name : x\nflags : fpu lm\n\n"
            "processor : 2\nvendor_id : B\nmodel name : x\nflags : fpu lm\n",
            an_amd64(vendor="A + B", model="x + y", processors=3),
            id="vendors and models that differ",
        ),
        pytest.param(
            "processor : 0\nvendor_id : A\nmodel name : x\nflags : fpu lm\n\n"
            "processor : 1\nflags : fpu lm\n",
            an_amd64(processors=2),
            id="half a vendor is none",
        ),
        pytest.param(
            "processor : 0\nFeatures : fp asimd aes\nCPU implementer : 0x41\nCPU architecture: 8\n"
            "CPU variant : 0x0\nCPU part : 0xd03\nCPU revision : 4\n\n"
            "processor : 1\nFeatures : fp asimd aes\nCPU implementer : 0x41\nCPU architecture: 8\n"
            "CPU variant : 0x1\nCPU part : 0xd09\nCPU revision : 2\n",
            an_arm64("fp asimd aes", vendor="0x41", model="0xd03 r0p4 + 0xd09 r1p2", processors=2),
            id="big.LITTLE",
        ),
        pytest.param(
            "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x00\nCPU part : 0x000\n",
            an_arm64(),
            id="implementer 0x00",
        ),
        pytest.param(
            "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\n"
            "processor : 1\nFeatures : fp asimd\nCPU implementer : 0x00\n",
            an_arm64(processors=2),
            id="implementer 0x00 on one only",
        ),
        pytest.param(
            "processor : 0\nFeatures : fp asimd\nCPU part : 0xd0c\nCPU variant : 0x3\n",
            an_arm64(),
            id="part without a revision",
        ),
        pytest.param("processor : 8\nflags : fpu lm\n", an_amd64(), id="first number 8"),
        pytest.param(
            "processor : 0\nflags : fpu lm\n\nprocessor : 0\nflags : fpu lm\n",
            an_amd64(processors=2),
            id="two numbered 0",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nprocessor : 1\nflags : fpu lm\n",
            an_amd64(processors=2),
            id="no blank lines",
        ),
        pytest.param(
            "processor\t: 0\r\nvendor_id\t: AuthenticAMD\r\nflags\t\t: fpu lm\r\n"
            "clflush size\t: 64\r\n\r\n",
            an_amd64(vendor="AuthenticAMD", cache_line=64),
            id="CRLF",
        ),
        pytest.param("processor:0\nflags:\tlm  fpu\tlm ", an_amd64(), id="no newline at the end"),
        pytest.param(
            "processor : 0\nflags : fpu lm\nclflush size : 0\n", an_amd64(cache_line=0), id="clflush 0"
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nclflush size : 64\n"
            "processor : 1\nflags : fpu lm\nclflush size : 32\n",
            an_amd64(processors=2),
            id="clflush sizes that differ",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nclflush size : 64\nprocessor : 1\nflags : fpu lm\n",
            an_amd64(processors=2),
            id="clflush size of one only",
        ),
        pytest.param(
            GVISOR,
            an_amd64(
                "fpu lm avx2", vendor="GenuineIntel", model="unknown", cache_line=64, looks_like_gvisor=True
            ),
            id="gVisor",
        ),
    ],
)
def test_a_text_has_its_answer(text: str, info: CpuInfo) -> None:
    assert parse_cpuinfo(text) == info


THIRTY_TWO_BIT_ARM: Final = (
    "processor : 0\n"
    "Features : half thumb fastmult vfp edsp neon vfpv3 tls vfpv4 idiva idivt vfpd32 lpae evtstrm "
    "aes pmull sha1 sha2 crc32\nCPU implementer : 0x41\nCPU architecture: 8\n"
)


@pytest.mark.parametrize(
    ("text", "expect", "problem"),
    [
        pytest.param("", None, "it tells of no processor", id="empty"),
        pytest.param("\n\n", None, "it tells of no processor", id="blank lines"),
        pytest.param("processor\nflags : fpu lm\n", None, "it tells of no processor", id="no colon"),
        pytest.param("processor 0: version = FF\n", None, "it tells of no processor", id="s390x"),
        pytest.param(
            "processor : 0\nvendor_id : GenuineIntel\n",
            None,
            "it has no line `flags` (amd64) or `Features` (arm64)",
            id="no flags line",
        ),
        pytest.param(
            "processor : 0\nhart : 1\nisa : rv64imafdc\n",
            None,
            "it has no line `flags` (amd64) or `Features` (arm64)",
            id="riscv64",
        ),
        pytest.param(
            "processor : 0\nflags :\n", None, "processor block 0 lists no flags", id="nothing after"
        ),
        pytest.param(
            "processor : 0\nFeatures\t: \n", None, "processor block 0 lists no Features", id="no Features"
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nprocessor : 1\nvendor_id : A\n",
            None,
            "processor block 1 lists no flags",
            id="flags of one only",
        ),
        pytest.param(
            "processor : 0\nflags : fpu vme de pse tsc msr pae\n",
            None,
            "the flags lack lm: a 32-bit system or personality",
            id="32-bit x86",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nprocessor : 1\nflags : fpu\n",
            None,
            "the flags lack lm: a 32-bit system or personality",
            id="32-bit x86 on one only",
        ),
        pytest.param(
            THIRTY_TWO_BIT_ARM,
            None,
            "the Features lack asimd and fp: a 32-bit system or personality",
            id="32-bit personality",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\n", ARM64, "it is of amd64, not of arm64", id="not arm64"
        ),
        pytest.param(
            "processor : 0\nFeatures : fp asimd\n", AMD64, "it is of arm64, not of amd64", id="not amd64"
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nFeatures : fp asimd\n",
            None,
            "it has lines of two architectures",
            id="both",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\nflags : fpu lm avx2\n",
            None,
            "processor block 0 has two lines 'flags'",
            id="two lines",
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm av\u00e92\n", None, r"'av\xe92' is no flag", id="no ASCII"
        ),
        pytest.param(
            "processor : 0\nflags : fpu lm\\xae\n", None, r"'lm\\xae' is no flag", id="a byte in the flags"
        ),
        pytest.param("processor : 0\nflags : fpu,lm\n", None, "'fpu,lm' is no flag", id="commas"),
        pytest.param(
            "processor : 0\nflags : lm\nclflush size : 64 B\n", None, "'64 B' is no clflush size", id="unit"
        ),
        pytest.param(
            "processor : 0\nflags : lm\nclflush size : -1\n", None, "'-1' is no clflush size", id="sign"
        ),
        pytest.param(
            "processor : 0\nflags : lm\nclflush size :\n", None, "'' is no clflush size", id="no size"
        ),
        pytest.param(
            "processor : 0\nflags : lm\n".ljust(8 * MIB + 1),
            None,
            "8388609 characters; 8 MiB are the most",
            id="8 MiB",
        ),
    ],
)
def test_a_text_that_is_refused(text: str, expect: Architecture | None, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cpuinfo(text, expect)
    assert (caught.value.subject, caught.value.problem) == ("cpuinfo", problem)


def test_a_text_of_8_mib_is_read() -> None:
    assert parse_cpuinfo("processor : 0\nflags : fpu lm\n".ljust(8 * MIB)) == an_amd64()


flag_lists = st.lists(st.sampled_from(["aes", "avx", "avx2", "fma", "sse2", "vaes"]), max_size=4)

OTHER_LINES: Final = {
    AMD64: {
        "vendor_id": st.sampled_from(["AuthenticAMD", "GenuineIntel", ""]),
        "model name": st.sampled_from(["EPYC", "Xeon", "unknown"]),
        "clflush size": st.sampled_from(["0", "64"]),
        "vmx flags": st.just("ept"),
    },
    ARM64: {
        "CPU implementer": st.sampled_from(["0x41", "0x00"]),
        "CPU part": st.sampled_from(["0xd0c", "0xd40"]),
        "CPU variant": st.just("0x1"),
        "CPU revision": st.sampled_from(["0", "2"]),
    },
}

Host = list[dict[str, str]]


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    """The lines of each processor of a host, by key, without the `processor` line."""
    architecture = draw(st.sampled_from(Architecture))
    key, always = ("flags", ["lm"]) if architecture is AMD64 else ("Features", ["fp", "asimd"])
    flags = flag_lists.map(lambda chosen: " ".join(always + chosen))
    lines = st.fixed_dictionaries({key: flags}, optional=OTHER_LINES[architecture])
    return draw(st.lists(lines, min_size=1, max_size=4))


def written(host: Host, end: str = "\n", between: str = "\n", first: int = 0) -> str:
    blocks = [{"processor": str(number), **lines} for number, lines in enumerate(host, first)]
    return between.join(
        "".join(f"{key}\t: {value}{end}" for key, value in block.items()) for block in blocks
    )


@given(hosts(), st.randoms(use_true_random=False), st.integers(0, 300))
def test_order_numbers_and_blank_lines_change_nothing(host: Host, random: Random, first: int) -> None:
    info = parse_cpuinfo(written(host))
    shuffled = [
        dict(random.sample([*lines.items()], len(lines))) for lines in random.sample(host, len(host))
    ]
    assert parse_cpuinfo(written(shuffled, first=first)) == info
    assert parse_cpuinfo(written(host, between="")) == info
    assert parse_cpuinfo(written(host, between="\n \n\n")) == info
    assert parse_cpuinfo(written(host, end="\r\n", between="\r\n")) == info
    assert parse_cpuinfo("\n" + written(host, end="\n\n")) == info


@given(hosts())
def test_flags_are_what_every_processor_has_and_vary_where_they_do_not(host: Host) -> None:
    info = parse_cpuinfo(written(host))
    lists = [{*(lines.get("flags") or lines["Features"]).split()} for lines in host]
    assert info.flags == set.intersection(*lists)
    assert info.flags | info.varying_flags == set.union(*lists)
    assert not info.flags & info.varying_flags
    assert info.processors == len(host)


def test_on_arm64_a_flag_that_gvisor_does_not_name_is_no_feature() -> None:
    info = parse_cpuinfo("processor : 0\nFeatures : fp asimd aes sve2 i8mm bf16\n")
    assert info.features == FeatureSet.from_names(ARM64, ["fp", "asimd", "aes"])


def test_a_file_with_bytes_that_are_not_utf_8_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_bytes(b"processor : 0\nmodel name : Intel\xae Xeon\xae\nflags : fpu lm\n")
    info = parse_cpuinfo("processor : 0\nmodel name : Intel\\xae Xeon\\xae\nflags : fpu lm\n")
    assert read_cpuinfo(path) == read_cpuinfo(str(path)) == info
    assert info.model == r"Intel\xae Xeon\xae"


def test_a_file_with_such_bytes_among_the_flags_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_bytes(b"processor : 0\nflags : fpu lm\xae\n")
    with pytest.raises(InputError, match="is no flag"):
        read_cpuinfo(path)


def test_a_file_that_is_not_there_is_the_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_cpuinfo(tmp_path / "cpuinfo")


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="another architecture")
def test_this_host_is_read() -> None:
    info = read_cpuinfo()
    assert info.architecture is {"x86_64": AMD64, "aarch64": ARM64}[platform.machine()]
    assert info.processors >= 1


# Computed with the published constants of FNV-1a (64 bits) over the bytes of the text.
@pytest.mark.parametrize(
    ("flags", "key"),
    [([], "cbf29ce484222325"), (["a"], "af63dc4c8601ec8c"), (["foobar"], "85944171f73967e8")],
)
def test_the_flags_hash_is_fnv_1a(flags: list[str], key: str) -> None:
    assert cpu_flags_hash(flags) == key


@given(flag_lists, flag_lists)
def test_equal_hashes_mean_equal_flags(one: list[str], other: list[str]) -> None:
    assert (cpu_flags_hash(one) == cpu_flags_hash(other)) == ({*one} == {*other})
    assert cpu_flags_hash(one + one) == cpu_flags_hash(reversed(one))
