"""What a fleet's common level would be with other hosts: who pins it, what adding a host costs."""

from collections.abc import Mapping
from functools import reduce
from itertools import accumulate
from operator import and_, or_

import attrs

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.errors import InputError
from substrate_compat.hosts import equal_hosts, named
from substrate_compat.levels import common_level

__all__ = ["Pin", "cost_of_adding", "pins"]


@attrs.frozen
class Pin:
    """What equal hosts hold a fleet's level back by.

    Attributes:
        hosts: the names of hosts with one feature set, sorted.
        gained: what the level would gain without all of them; empty where they are the whole fleet.
    """

    hosts: tuple[str, ...]
    gained: FeatureSet


def pins(hosts: Mapping[str, FeatureSet]) -> tuple[Pin, ...]:
    """For each group of equal hosts, what the common level would gain without it.

    Those that hold it back most come first, then by name. One of several equal hosts never pins a
    level; nor, alone, does a host that lacks only what another one lacks too.

    Raises:
        InputError: as `common_level`.

    >>> from substrate_compat.cpufeatures_table import Architecture
    >>> basis = "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave".split(",")
    >>> sets = {"a": "aes", "b": "aes,avx", "c": "aes,avx,avx2", "d": "avx,avx2"}
    >>> for pin in pins({
    ...     name: FeatureSet.from_names(Architecture.AMD64, [*basis, *more.split(",")])
    ...     for name, more in sets.items()
    ... }):
    ...     print(pin.hosts, pin.gained.names)
    ('a',) ('avx',)
    ('d',) ('aes',)
    ('b',) ()
    ('c',) ()
    """
    groups = equal_hosts(hosts)
    level = common_level(hosts).features
    masks = [features.bits for features in groups]
    some = reduce(or_, masks)
    # What the groups before one share, and those after it; where there are none, what any group has.
    before = accumulate(masks, and_, initial=some)
    after = [*accumulate(reversed(masks), and_, initial=some)][-2::-1]
    found = [
        Pin(names, FeatureSet(level.architecture, above & below & ~level.bits))
        for names, above, below in zip(groups.values(), before, after, strict=False)
    ]
    return tuple(sorted(found, key=lambda pin: (-len(pin.gained), pin.hosts)))


def cost_of_adding(hosts: Mapping[str, FeatureSet], added: Mapping[str, FeatureSet]) -> FeatureSet:
    """What the common level of `hosts` would lose if `added` joined them.

    Raises:
        InputError: as `common_level`, of either; or a name that is in both.

    >>> from substrate_compat.cpufeatures_table import Architecture
    >>> basis = "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave".split(",")
    >>> fleet = {"a": FeatureSet.from_names(Architecture.AMD64, [*basis, "aes", "avx"])}
    >>> older = {"b": FeatureSet.from_names(Architecture.AMD64, [*basis, "aes"])}
    >>> cost_of_adding(fleet, older).names, cost_of_adding(older, fleet).names
    (('avx',), ())
    """
    if twice := hosts.keys() & added.keys():
        raise InputError("level", f"already in the fleet: {named(twice)}", "give each host its own name")
    return common_level(hosts).features - common_level({**hosts, **added}).features
