"""What the formats know: words that a change by chance would take long to find."""

import json
from collections.abc import Iterator
from typing import Final

from substrate_compat.cli import main
from substrate_compat.cpufeatures import known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import PROFILES
from substrate_compat.probe import ATTRIBUTE_KEYS

__all__ = ["DICTIONARY", "WORDS"]

_MEMBERS: Final = (
    "sandboxClass",
    "sandbox_class",
    "name",
    "compatVersion",
    "compat_version",
    "schemaVersion",
    "schema_version",
    "attributes",
    "key",
    "value",
    "worker",
    "defaultRuntime",
    "restorableRuntimes",
    "kind",
    "SandboxConfig",
    "metadata",
    "spec",
    "versions",
    "defaultVersion",
    "state",
    "Enabled",
    "Disabled",
    "pauseImage",
    "assets",
    "url",
    "sha256",
    "gvisor",
    "default",
    "pods",
    "pools",
    "configs",
    "f0",
    "f1",
    "f5",
    "runtime_key",
)
_CPUINFO: Final = (
    "processor",
    "flags",
    "Features",
    "vendor_id",
    "model name",
    "clflush size",
    "CPU implementer",
    "CPU part",
    "CPU variant",
    "CPU revision",
    "unknown",
    "0x00",
    "0xd0c",
)
_OTHERS: Final = (
    "v1",
    "sha256:" + "a" * 64,
    "b" * 64,
    "pause@sha256:" + "c" * 64,
    "registry.example:5000/a/pause:3.10@sha256:" + "d" * 64,
    "CPU 0:",
    "CPU:",
    "   0x00000001 0x00: eax=0x00a00f11 ebx=0x00020800 ecx=0xfffa3203 edx=0x178bfbff",
    "   0x80000000 0x00: eax=0x80000008 ebx=0x00000000 ecx=0x00000000 edx=0x00000000",
    "   0x00000007 0x00: eax=0x00000001 ebx=0xffffffff ecx=0xffffffff edx=0xffffffff",
    "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave",
    "processor:0\nflags:fpu lm\n",
    "\x1b[31m",
    "\u202e",
    "\u0661",
    "\u0130",
    "\U0001f600",
    "\ufeff",
    "\r\n",
    "\x0b",
    "\x85",
    "\u2028",
    "\x00",
    "&a",
    "*a",
    "!!python/name:os.system",
    "<<",
    "- ",
    "2026-01-01",
    "? ",
    "9" * 400,
    "f" * 97,
    "-1",
    "9223372036854775807",
    "a" * 300,
    "",
)
# Halves of surrogate pairs are made of `\ud800` in JSON, and of bytes that are not UTF-8 elsewhere.
_BROKEN: Final = ("\ud800", "\udfff")


def _features() -> Iterator[str]:
    for architecture in Architecture:
        yield architecture.value
        yield from (feature.name for feature in known_features(architecture))
        yield from (feature.constant for feature in known_features(architecture))


def _verbs() -> Iterator[str]:
    for name, verb in main.commands.items():
        yield name
        for parameter in verb.params:
            yield from parameter.opts


WORDS: Final = tuple(
    dict.fromkeys(
        (
            *_OTHERS,
            *_BROKEN,
            *_MEMBERS,
            *_CPUINFO,
            *ATTRIBUTE_KEYS,
            *(profile.sandbox_class for profile in PROFILES),
            *_features(),
            *_verbs(),
        )
    )
)
"""Every word, each once."""


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


DICTIONARY: Final = "".join(
    f'"{_escaped(word)}"\n'
    for word in (*WORDS, *map(json.dumps, (*_MEMBERS, *ATTRIBUTE_KEYS)))
    if word and word not in _BROKEN
)
"""The words as libFuzzer reads them."""
