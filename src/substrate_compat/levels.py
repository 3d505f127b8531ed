"""Levels: what gVisor shows a guest at most, so that every host of a fleet restores every snapshot.

A level is the feature set that all hosts of a fleet share. gVisor can be told to show guests no more
than that, by an annotation of the sandbox; then every host of the fleet can restore every snapshot.
That holds for amd64 only, and only for hosts that a level can stand on: see `common_level`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from operator import attrgetter
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import AMD64_FEATURES, Architecture
from substrate_compat.errors import InputError
from substrate_compat.guest import claimed, guest_flags, levelled, offered
from substrate_compat.hosts import equal_hosts, named, require_basis
from substrate_compat.partition import MOST_EXACT, partition

__all__ = [
    "ANNOTATION",
    "MOST_SETS",
    "Level",
    "LevelChoice",
    "LevelGroup",
    "annotation",
    "beyond_level",
    "choose_levels",
    "claimed",
    "common_level",
    "guest_flags",
    "level_name",
    "levelled",
    "offered",
    "unannounced",
]

ANNOTATION: Final = "dev.gvisor.internal.cpufeatures"
"""The annotation of a sandbox that tells gVisor which features to show, at most."""
MOST_SETS: Final = 512
"""The most distinct feature sets among which levels are chosen: the work grows with the square."""
_UNCONFIRMED: Final = FeatureSet.from_names(
    Architecture.AMD64, [feature.name for feature in AMD64_FEATURES if not feature.confirmed]
)


@attrs.frozen
class Level:
    """What all hosts of a fleet share.

    Attributes:
        features: the level itself.
        dropped: each feature that some host has and the level lacks, with the names of the hosts that
            lack it, sorted.
    """

    features: FeatureSet
    dropped: Mapping[str, tuple[str, ...]] = attrs.field(hash=False)


@attrs.frozen
class LevelGroup:
    """Hosts under one level of several.

    Attributes:
        hosts: their names, sorted.
        level: what they share.
    """

    hosts: tuple[str, ...]
    level: Level


@attrs.frozen
class LevelChoice:
    """Levels that cover a fleet. A loss is a sum over hosts: weight times number of features lost.

    Attributes:
        groups: the hosts under each level, by the first host's name.
        losses: the least loss found with at most 1 level, 2 levels and so on, up to the number of
            distinct feature sets, which loses nothing.
        exact: whether no choice loses less: so it is for up to 12 distinct feature sets.
    """

    groups: tuple[LevelGroup, ...]
    losses: tuple[int, ...]
    exact: bool

    @property
    def loss(self) -> int:
        """What this choice loses."""
        return self.losses[len(self.groups) - 1]

    @property
    def gains(self) -> tuple[int, ...]:
        """What each further level would gain over the one before it."""
        further = self.losses[len(self.groups) - 1 :]
        return tuple(more - less for more, less in pairwise(further))


def common_level(hosts: Mapping[str, FeatureSet]) -> Level:
    """The greatest set that every host of a fleet has.

    Args:
        hosts: the feature set of each host, by name, as its runsc or CPUID reports it.

    Raises:
        InputError: there is no host; a host is of another architecture; a host lacks `osxsave` or
            `xsave`, or what x86-64 itself requires. All such hosts are named.

    >>> basis = "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave".split(",")
    >>> level = common_level({
    ...     "old": FeatureSet.from_names(Architecture.AMD64, [*basis, "aes"]),
    ...     "new": FeatureSet.from_names(Architecture.AMD64, [*basis, "aes", "avx2"]),
    ... })
    >>> "aes" in level.features, level.dropped
    (True, {'avx2': ('old',)})
    """
    groups = equal_hosts(hosts)
    some = every = next(iter(groups))
    for features in groups:
        some |= features
        every &= features
    lacking: dict[str, list[str]] = {feature: [] for feature in some - every}
    for features, names in groups.items():
        for feature in some - features:
            lacking[feature].extend(names)
    return Level(every, {feature: tuple(sorted(names)) for feature, names in lacking.items()})


def annotation(features: FeatureSet) -> str:
    """The value of the annotation `ANNOTATION` that tells gVisor to show no more than `features`.

    Names as runsc knows them, sorted, joined by commas; without the features of `unannounced`.

    Raises:
        InputError: the set is not of amd64, is empty, or lacks `xsave`, `osxsave` or what x86-64
            itself requires.

    >>> basis = "tsc,sse2,sse,osxsave,mmx,lm,fxsr,fpu,cx8,cmov,xsave".split(",")
    >>> annotation(FeatureSet.from_names(Architecture.AMD64, basis))
    'cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave'
    """
    require_basis(features)
    return ",".join((features - unannounced(features)).names)


def unannounced(features: FeatureSet) -> FeatureSet:
    """What `annotation` leaves out of a level: the features that no runsc is known to know.

    A name that runsc does not know stops every sandbox from starting.

    >>> unannounced(FeatureSet.from_names(Architecture.AMD64, ["avx2", "avx_vnni"])).names
    ('avx_vnni',)
    """
    return features & _UNCONFIRMED


def level_name(features: FeatureSet) -> str:
    """The short name of a level, fit for the value of a Kubernetes label.

    It is `level-` and the first 12 hex digits of the SHA-256 of the mask's hex text.

    >>> level_name(FeatureSet.from_names(Architecture.AMD64, ["avx2"]))
    'level-0f50c7d6d658'
    """
    return f"level-{hashlib.sha256(features.hex.encode()).hexdigest()[:12]}"


def beyond_level(flags: Iterable[str], level: FeatureSet) -> tuple[str, ...]:
    """The flags of a guest's `/proc/cpuinfo` that it would not see under `level`, sorted.

    None: the guest runs under the level, as far as gVisor prints its features.

    >>> level = FeatureSet.from_names(Architecture.AMD64, ["fpu", "sse"])
    >>> beyond_level(["sse", "fpu", "avx2", "aes"], level)
    ('aes', 'avx2')
    """
    return tuple(sorted(frozenset(flags) - guest_flags(level)))


def choose_levels(
    hosts: Mapping[str, FeatureSet], k: int, weights: Mapping[str, int] | None = None
) -> LevelChoice:
    """At most `k` levels that cover all hosts and lose least; the fewest among equals.

    Args:
        hosts: the feature set of each host, by name.
        k: at least 1.
        weights: how much a feature is worth on each host, such as the number of machines behind the
            name: 0 or more. None: 1 on each.

    Raises:
        InputError: as `common_level`; a `k` below 1; more than 512 distinct feature sets; a weight that is
            negative, or missing, or of no host.

    >>> basis = "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave".split(",")
    >>> sets = {"a": "aes", "b": "aes,avx", "c": "sha_ni,adx,clwb"}
    >>> choice = choose_levels({
    ...     name: FeatureSet.from_names(Architecture.AMD64, [*basis, *more.split(",")])
    ...     for name, more in sets.items()
    ... }, 2)
    >>> [group.hosts for group in choice.groups], choice.losses
    ([('a', 'b'), ('c',)], (6, 1, 0))
    """
    if k < 1:
        raise InputError("levels", f"{k} levels cover no host", "ask for at least 1")
    groups = equal_hosts(hosts)
    if len(groups) > MOST_SETS:
        raise InputError(
            "levels",
            f"{len(groups)} distinct feature sets; {MOST_SETS} are the most to choose levels for",
            "take the common level, or choose for fewer kinds of host",
        )
    if weights is not None:
        _check_weights(hosts, weights)
    sets = list(groups)
    masks = [features.bits for features in sets]
    totals = [
        len(names) if weights is None else sum(weights[name] for name in names) for names in groups.values()
    ]
    best = partition(masks, totals, k)
    chosen = []
    for positions in best.groups:
        names = sorted(chain.from_iterable(groups[sets[position]] for position in positions))
        chosen.append(LevelGroup(tuple(names), common_level({name: hosts[name] for name in names})))
    return LevelChoice(tuple(sorted(chosen, key=attrgetter("hosts"))), best.losses, len(sets) <= MOST_EXACT)


def _check_weights(hosts: Mapping[str, FeatureSet], weights: Mapping[str, int]) -> None:
    if without := hosts.keys() - weights.keys():
        raise InputError("weights", f"there is none for {named(without)}", "give each host a weight")
    if unknown := weights.keys() - hosts.keys():
        raise InputError("weights", f"no host is called {named(unknown)}", "name hosts of the fleet")
    if negative := {name for name, weight in weights.items() if weight < 0}:
        raise InputError("weights", f"negative for {named(negative)}", "a weight is 0 or more")
