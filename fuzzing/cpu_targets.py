"""Targets of what is read about a CPU: masks, names, listings, dumps, cpuinfo, digests, levels."""

import json
import re
from collections.abc import Iterator
from typing import Final

from fuzzing.target import DATA, Target, accepted, fresh_file, require, text_of
from substrate_compat.cli.inputs import architecture_of, features_of_dump
from substrate_compat.cpufeatures import (
    FeatureSet,
    decode_cpu_features,
    encode_cpu_features,
    parse_architecture,
)
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import (
    Registers,
    common_features,
    features_from_cpuid,
    parse_cpuid_dump,
    query_cpuid_device,
)
from substrate_compat.cpuinfo import CpuInfo, cpu_flags_hash, parse_cpuinfo, read_cpuinfo
from substrate_compat.hosts import equal_hosts
from substrate_compat.identity import GVISOR, GVISOR_CACHE_LINE, MICROVM
from substrate_compat.levels import annotation, beyond_level, choose_levels, common_level, level_name
from substrate_compat.probe import probe
from substrate_compat.runsc import listed_names, parse_cpu_features, unknown_names
from substrate_compat.runtime_hash import asset_digest, image_digest, sandbox_runtime_hash
from substrate_compat.whatif import cost_of_adding, pins
from substrate_compat.wording import describe

__all__ = ["TARGETS"]

AMD64: Final = Architecture.AMD64
_MOST_HOSTS: Final = 10  # among 12 distinct sets and more, the best groups take longer than an input may
_MOST_DOUBLED: Final = 100
_BEGINS: Final = re.compile(r"processor[ \t]*:")


def _mask(data: bytes) -> None:
    text = text_of(data)
    accepted(parse_architecture, text)
    for architecture in Architecture:
        features = accepted(decode_cpu_features, text, architecture)
        if features is None:
            continue
        require(features.hex == (text.lstrip("0") or "0"), "the mask is written as it was read")
        require(FeatureSet.from_names(architecture, features.names) == features, "names make the set again")
        require(all(name in features for name in features), "a set has its names")
        require(len(features) == len(features.names), "each bit has a name")


def _names(data: bytes) -> None:
    names = text_of(data).split(",")
    accepted(architecture_of, names)
    for architecture in Architecture:
        mask = accepted(encode_cpu_features, names, architecture)
        if mask is not None:
            decoded = decode_cpu_features(mask, architecture).names
            require(decoded == tuple(sorted(set(names))), "decode of encode")
            unknown = unknown_names(names, architecture)
            require(unknown == (), "what can be encoded is known")
    FeatureSet(AMD64, 0).__contains__(names[0])


def _unknown(text: str, architecture: Architecture) -> tuple[str, ...]:
    return unknown_names(listed_names(text), architecture)


def _listing(data: bytes) -> None:
    text = text_of(data)
    for architecture in Architecture:
        features = accepted(parse_cpu_features, text, architecture)
        unknown = accepted(_unknown, text, architecture)
        if features is not None:
            require(unknown == (), "what can be read is known")
            require(bool(features), "no listing is an empty set")
            if architecture is AMD64:
                shown = accepted(annotation, features)
                if shown is not None:
                    read = parse_cpu_features(shown, AMD64)
                    require(read <= features, "an annotation shows no more than the level")


def _registers(registers: Registers) -> str:
    return " ".join(
        f"{name}=0x{value:08x}" for name, value in zip(("eax", "ebx", "ecx", "edx"), registers, strict=True)
    )


def _dump(data: bytes) -> None:
    text = text_of(data)
    cpus = accepted(parse_cpuid_dump, text)
    accepted(features_of_dump, text)
    if cpus is None:
        return
    written = "".join(
        "CPU:\n" + "".join(f" 0x{a:08x} 0x{b:02x}: {_registers(each)}\n" for (a, b), each in cpu.items())
        for cpu in cpus
    )
    require(parse_cpuid_dump(written) == cpus, "read of write")
    common = accepted(common_features, cpus)
    if common is not None:
        sets = [features_from_cpuid(cpu) for cpu in cpus]
        require(all(common.features <= each for each in sets), "every CPU has what all have")
        require(not common.features & common.varying, "what varies is not what all have")


def _device(data: bytes) -> None:
    path = fresh_file(data)
    query = accepted(query_cpuid_device, path)
    if query is not None:
        require(accepted(query, 0, 0) is not None, "what answered once answers again")
        accepted(query, 7, 0)


def _cpuinfo(data: bytes) -> None:
    text = text_of(data)
    info = accepted(parse_cpuinfo, text)
    for architecture in Architecture:
        expected = accepted(parse_cpuinfo, text, architecture)
        same = info is not None and info.architecture is architecture
        require(expected == (info if same else None), "an expected architecture changes nothing else")
    if info is not None:
        require(not info.flags & info.varying_flags, "what varies is not what all have")
        require(len(cpu_flags_hash(info.flags | info.varying_flags)) == 16, "a hash has 16 digits")
        if _BEGINS.match(text) and info.processors <= _MOST_DOUBLED:
            twice = parse_cpuinfo(f"{text}\n{text}")
            require((twice.flags, twice.model) == (info.flags, info.model), "the same CPUs twice")
        for profile in (GVISOR, GVISOR_CACHE_LINE, MICROVM):
            probed = accepted(probe, profile, info)
            if probed is not None:
                describe(probed)


def _cpuinfo_file(data: bytes) -> None:
    path = fresh_file(data)
    info = accepted(read_cpuinfo, path)
    text = data.decode(errors="backslashreplace")
    require(info == accepted(parse_cpuinfo, text), "a file is read as its text")
    if info is not None:
        _probed(info, text_of(data[-71:]))


def _probed(info: CpuInfo, runtime_hash: str) -> None:
    accepted(probe, MICROVM, info, None, runtime_hash, runtime_hash)


def _digests(data: bytes) -> None:
    *lines, image = text_of(data).split("\n")
    accepted(image_digest, image)
    pairs = [line.partition("=")[::2] for line in lines]
    for name, text in pairs:
        digest = accepted(asset_digest, text, name)
        if digest is not None:
            require(asset_digest(digest) == digest, "a digest is read as itself")
    value = accepted(sandbox_runtime_hash, dict(pairs), image)
    if value is not None:
        backwards = dict(reversed(dict(pairs).items()))
        require(sandbox_runtime_hash(backwards, image) == value, "order does not enter the hash")
        require(asset_digest(value) == value, "the hash is a digest")


def _levels(data: bytes) -> None:
    first, *lines = text_of(data).split("\n")[:_MOST_HOSTS]
    hosts: dict[str, FeatureSet] = {}
    for line in lines:
        name, _, listed = line.partition("=")
        features = accepted(parse_cpu_features, listed, AMD64)
        if features is not None:
            hosts[name] = features
    accepted(equal_hosts, hosts)
    level = accepted(common_level, hosts)
    weights = {name: len(name) for name in hosts} | ({first: 1} if len(first) % 2 else {})
    choice = accepted(choose_levels, hosts, len(first) % 5, weights)
    accepted(cost_of_adding, dict(list(hosts.items())[1:]), dict(list(hosts.items())[:1]))
    if level is not None:
        require(all(level.features <= each for each in hosts.values()), "every host has the level")
        require(len(level_name(level.features)) == 18, "a level has a short name")
        require(set(parse_cpu_features(annotation(level.features), AMD64)) <= set(level.features), "shown")
        beyond_level(first.split(","), level.features)
        describe(level)
        for pin in pins(hosts):
            describe(pin)
    if choice is not None:
        require(
            {name for group in choice.groups for name in group.hosts} == hosts.keys(), "all are covered"
        )
        describe(choice)


def _files(folder: str) -> Iterator[bytes]:
    return (path.read_bytes() for path in sorted((DATA / folder).glob("*.txt")))


def _rows(file: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads((DATA / file).read_text())["hosts"]
    return rows


def _listings() -> Iterator[bytes]:
    return (row["features"].encode() for row in _rows("gvisor_hosts.json")[::9])


def _masks() -> Iterator[bytes]:
    return (parse_cpu_features(each.decode(), AMD64).hex.encode() for each in _listings())


def _fleet() -> Iterator[bytes]:
    """Hosts that a level can stand on."""
    listings = [each for each in _listings() if b"osxsave" in each and b"lm," in each]
    for first in range(0, len(listings), 3):
        hosts = [b"h%d=" % number + each for number, each in enumerate(listings[first : first + 9])]
        yield b"\n".join([b"a,b" * (first % 4), *hosts])


TARGETS: Final = (
    Target("mask", _mask, _masks),
    Target("names", _names, _listings),
    Target("listing", _listing, _listings),
    Target("dump", _dump, lambda: (each for each in _files("cpuid") if b"eax=" in each)),
    Target("device", _device),
    Target("cpuinfo", _cpuinfo, lambda: _files("cpuinfo")),
    Target("cpuinfo_file", _cpuinfo_file, lambda: [*_files("cpuinfo")][::4]),
    Target("digests", _digests),
    Target("levels", _levels, _fleet),
)
