"""What gVisor shows a guest of its host's CPU, and what its snapshot counts as needing: the XSAVE trap.

On a host without usable XSAVE, gVisor itself does not say the same twice. So there a worker offers less
than it has, and a snapshot claims more than it saw. Everywhere else gVisor shows all that it knows, or,
told by an annotation of the sandbox, no more than a level.
"""

from typing import Final

from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError

__all__ = ["XSAVE_NOTE", "claimed", "guest_flags", "levelled", "offered", "require_amd64"]

XSAVE_NOTE: Final = (
    "this host has no usable XSAVE (no `osxsave`): there runsc reports `xsave` or not from run to run, and "
    "gVisor refuses its own snapshots at random; so the worker does not offer `xsave`, and its snapshots "
    "count as needing it"
)
"""What a person should know about a host without `osxsave`."""


_XSAVE: Final = FeatureSet.from_names(Architecture.AMD64, ["xsave"])


def offered(features: FeatureSet) -> FeatureSet:
    """What a gVisor worker safely offers of the set that runsc reports for it.

    Where `osxsave` is absent, runsc reports `xsave` from run to run or not, and refuses its own
    snapshots at random; so there a worker does not offer `xsave`. Every other set is offered whole.

    >>> host = FeatureSet.from_names(Architecture.AMD64, ["fpu", "xsave"])
    >>> offered(host).names
    ('fpu',)
    """
    return features - _XSAVE if _without_usable_xsave(features) else features


def claimed(features: FeatureSet) -> FeatureSet:
    """What a snapshot safely claims to need, taken where a guest saw `features`.

    The other half of the rule of `offered`: where `osxsave` is absent, runsc may have put `xsave` into
    the snapshot, so it counts as needed.

    >>> host = FeatureSet.from_names(Architecture.AMD64, ["fpu"])
    >>> claimed(host).names
    ('fpu', 'xsave')
    """
    return features | _XSAVE if _without_usable_xsave(features) else features


def levelled(host: FeatureSet, allowed: FeatureSet) -> FeatureSet:
    """What a guest sees on `host` when gVisor is told to show no more than `allowed`.

    That is the intersection, and `xsave` if the host has it, which gVisor turns on again.

    Raises:
        InputError: a set that is not of amd64: gVisor starts no sandbox under the annotation elsewhere.

    >>> host = FeatureSet.from_names(Architecture.AMD64, ["fpu", "xsave", "avx2"])
    >>> levelled(host, FeatureSet.from_names(Architecture.AMD64, ["fpu", "aes"])).names
    ('fpu', 'xsave')
    """
    require_amd64(host)
    require_amd64(allowed)
    return host & (allowed | _XSAVE)


def guest_flags(features: FeatureSet) -> frozenset[str]:
    """The flags that a guest's own `/proc/cpuinfo` has where gVisor shows it `features`.

    >>> guest_flags(FeatureSet.from_names(Architecture.AMD64, ["avx2", "osxsave"]))
    frozenset({'avx2'})
    """
    rows = known_features(features.architecture)
    return frozenset(row.name for row in rows if row.in_proc_cpuinfo and row.name in features)


def require_amd64(features: FeatureSet) -> None:
    """Refuse a set of an architecture on which gVisor starts no sandbox under a level.

    Raises:
        InputError: the set is not of amd64.
    """
    if features.architecture is not Architecture.AMD64:
        raise InputError(
            "level",
            f"gVisor knows no levels on {features.architecture}",
            "pin the fleet to equal hosts instead",
        )


def _without_usable_xsave(features: FeatureSet) -> bool:
    return features.architecture is Architecture.AMD64 and "osxsave" not in features
