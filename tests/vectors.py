"""Facts from outside, as typed rows: gVisor's own listings and verdicts, and what real hosts print.

Each file in `data/` says in a note where it comes from.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import Registers

DATA: Final = Path(__file__).parent / "data"
_T = TypeVar("_T")


def amd64(listing: str) -> FeatureSet:
    """The set in a runsc listing; an empty listing is the empty set."""
    return FeatureSet.from_names(Architecture.AMD64, listing.split(",") if listing else ())


def arm64(listing: str) -> FeatureSet:
    """The same for arm64."""
    return FeatureSet.from_names(Architecture.ARM64, listing.split(",") if listing else ())


@attrs.frozen
class FeatureRow:
    """A feature as gVisor's table has it; block, bit and register are amd64's."""

    constant: str
    name: str
    value: int
    in_proc_cpuinfo: bool
    confirmed: bool
    block: int | None = None
    bit: int | None = None
    register: str | None = None


@attrs.frozen
class FeatureTable:
    """gVisor's table: 175 features of amd64 and 24 of arm64."""

    source: Mapping[str, str]
    amd64: tuple[FeatureRow, ...]
    arm64: tuple[FeatureRow, ...]


@attrs.frozen
class Host:
    """A real amd64 machine; `listing` is what `runsc cpu-features` prints there."""

    id: str
    vendor: str
    brand: str
    cache_line: int
    listing: str

    @property
    def features(self) -> FeatureSet:
        return amd64(self.listing)


@attrs.frozen
class GvisorHosts:
    """160 machines; `verdicts[i][j]`: a checkpoint of hosts[i] restored on hosts[j].

    `1` accepted, `0` refused for missing features, `c` refused only for the size of the cache line.
    """

    note: str
    hosts: tuple[Host, ...]
    verdicts: tuple[str, ...]


@attrs.frozen
class DemoHosts:
    """Eight server machines and the listing of what they share."""

    note: str
    level: str
    hosts: tuple[Host, ...]


@attrs.frozen
class Restore:
    """One restore that runsc tried; `missing` are the features that it named when it refused."""

    snapshot: str
    worker: str
    restored: bool
    missing: tuple[str, ...]


@attrs.frozen
class Machine:
    """An emulated amd64 CPU model."""

    model: str
    checkpointed: bool
    listing: str
    clflush_size: int
    vendor: str

    @property
    def features(self) -> FeatureSet:
        return amd64(self.listing)


@attrs.frozen
class Arm64Machine:
    """An emulated arm64 CPU model."""

    model: str
    listing: str
    cpuinfo_features: str
    implementer: str
    part: str

    @property
    def features(self) -> FeatureSet:
        return arm64(self.listing)


@attrs.frozen
class Arm64Restores:
    """7 arm64 models, each checkpoint restored on each."""

    machines: tuple[Arm64Machine, ...]
    restores: tuple[Restore, ...]


@attrs.frozen
class RealRestores:
    """20 amd64 models, each checkpoint restored on each; and the same of arm64."""

    source: Mapping[str, str]
    machines: tuple[Machine, ...]
    restores: tuple[Restore, ...]
    arm64: Arm64Restores


@attrs.frozen
class Capture:
    """`/proc/cpuinfo` of an emulated CPU model, and what `runsc cpu-features` printed beside it."""

    name: str
    architecture: Architecture
    listing: str

    @property
    def text(self) -> str:
        return (DATA / "cpuinfo" / f"{self.name}.txt").read_text()


@attrs.frozen
class _Captures:
    note: str
    captures: tuple[Capture, ...]


@attrs.frozen
class _HostRegisters:
    note: str
    hosts: Mapping[str, Mapping[str, tuple[str, str, str, str]]]


def feature_table() -> FeatureTable:
    return _read("gvisor_features.json", FeatureTable)


def gvisor_hosts() -> GvisorHosts:
    return _read("gvisor_hosts.json", GvisorHosts)


def host_registers() -> Mapping[str, Mapping[tuple[int, int], Registers]]:
    """The CPUID registers of the machines of `gvisor_hosts`, by id, then by leaf and subleaf."""
    return {
        host: {_leaf(leaf): _registers(*texts) for leaf, texts in leaves.items()}
        for host, leaves in _read("gvisor_hosts_registers.json", _HostRegisters).hosts.items()
    }


def later_than_the_listings() -> FeatureSet:
    """What those registers tell and the listings do not: leaf 7.1, which that gVisor did not read."""
    return FeatureSet.from_names(Architecture.AMD64, ["avx512_bf16", "avx_vnni"])


def cpuid_dump(cpus: Sequence[Mapping[tuple[int, int], Registers]]) -> str:
    """The text that `cpuid -r` prints for these CPUs."""
    lines = []
    for number, registers in enumerate(cpus):
        lines.append(f"CPU {number}:\n")
        for (leaf, subleaf), (eax, ebx, ecx, edx) in registers.items():
            lines.append(
                f"   0x{leaf:08x} 0x{subleaf:02x}: "
                f"eax=0x{eax:08x} ebx=0x{ebx:08x} ecx=0x{ecx:08x} edx=0x{edx:08x}\n"
            )
    return "".join(lines)


def demo_hosts() -> DemoHosts:
    return _read("demo_hosts.json", DemoHosts)


def real_restores() -> RealRestores:
    return _read("real_restores.json", RealRestores)


def captures() -> tuple[Capture, ...]:
    """33 captures of amd64 and 7 of arm64."""
    return _read("cpuinfo/captures.json", _Captures).captures


def milan_dump() -> str:
    """What `cpuid -r` prints in a virtual machine on an EPYC Milan."""
    return (DATA / "cpuid" / "epyc-milan-vm.txt").read_text()


def milan_listing() -> str:
    """What `runsc cpu-features` prints there."""
    return (DATA / "cpuid" / "epyc-milan-vm.runsc.txt").read_text()


def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    for kind, key in (
        (Host, "features"),
        (Machine, "features"),
        (Arm64Machine, "features"),
        (Capture, "runsc"),
    ):
        read = make_dict_structure_fn(kind, converter, listing=override(rename=key))
        converter.register_structure_hook(kind, read)

    def restore(row: object, _: type[Restore]) -> Restore:
        return Restore(*converter.structure(row, tuple[str, str, bool, tuple[str, ...]]))

    converter.register_structure_hook(Restore, restore)
    return converter


def _read(name: str, kind: type[_T]) -> _T:
    return _converter().structure(json.loads((DATA / name).read_text()), kind)


def _leaf(text: str) -> tuple[int, int]:
    leaf, _, subleaf = text.partition(".")
    return int(leaf, 16), int(subleaf, 16)


def _registers(eax: str, ebx: str, ecx: str, edx: str) -> Registers:
    return int(eax, 16), int(ebx, 16), int(ecx, 16), int(edx, 16)
