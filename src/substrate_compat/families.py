"""Families: the runtimes that agree in all that a match compares by equality.

What is left to compare within a family is the mask of CPU features. A fleet has few families, about one for
each runtime hash that is in use; where it has many, the one that a snapshot asks for is still looked up.
"""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from substrate_compat.identity import CPU_FEATURES, SandboxRuntime, WorkerRuntimes

__all__ = ["Families", "Family", "Offers", "Shape"]


class Shape(NamedTuple):
    """What decides which reasons can speak against a family, besides the values that differ."""

    sandbox_class: str
    schema_version: str
    keys: frozenset[str]
    readable: bool


class Family:
    """The runtimes that agree in all but their feature mask.

    Attributes:
        shape: its class and schema, its attribute keys, and whether its masks can be read.
        runtime: one of them, as an example.
        users: how many groups offer it, counted once for each mask.
    """

    __slots__ = ("runtime", "shape", "users")

    def __init__(self, shape: Shape, runtime: SandboxRuntime) -> None:
        self.shape = shape
        self.runtime = runtime
        self.users = 0


Offers = tuple[tuple[int, tuple[Family, ...]], ...]
"""What a group offers: each different mask of its runtimes (as what it lacks), with their families."""


class Families:
    """The families of the runtimes in an index."""

    __slots__ = ("_of_shape",)

    def __init__(self) -> None:
        self._of_shape: dict[Shape, dict[str, Family]] = {}

    def __iter__(self) -> Iterator[Family]:
        return chain.from_iterable(families.values() for families in self._of_shape.values())

    def take(self, runtimes: WorkerRuntimes) -> Offers:
        """What a group with these runtimes offers; its families are kept until it releases them."""
        families: dict[int, dict[Family, None]] = {}
        for runtime in runtimes:
            families.setdefault(runtime.compat_version.lacks, {})[self._family(runtime)] = None
        offers = tuple((lacks, tuple(each)) for lacks, each in families.items())
        for _, each in offers:
            for family in each:
                family.users += 1
        return offers

    def release(self, offers: Offers) -> None:
        """Ends a group's use of its families, and forgets those that no other uses."""
        for _, families in offers:
            for family in families:
                family.users -= 1
                if not family.users:
                    self._forget(family)

    def fitting(self, snapshot: SandboxRuntime | None) -> set[Family]:
        """The families that have all that `snapshot` needs by equality; all of them if it is None."""
        if snapshot is None:
            return set(self)
        compat = snapshot.compat_version
        needed = compat.equalities
        keys = {key for key, _ in needed}
        fitting: set[Family] = set()
        for shape, alike in self._of_shape.items():
            if shape[:2] != (snapshot.sandbox_class, compat.schema_version):
                continue
            if shape.keys - {CPU_FEATURES} == keys:
                family = alike.get(snapshot.same)
                fitting.update(() if family is None else (family,))
            elif shape.keys >= keys:
                fitting.update(
                    family
                    for family in alike.values()
                    if family.runtime.compat_version.equalities >= needed
                )
        return fitting

    def _family(self, runtime: SandboxRuntime) -> Family:
        compat = runtime.compat_version
        keys = frozenset(dict(compat.attributes))
        shape = Shape(runtime.sandbox_class, compat.schema_version, keys, compat.features is not None)
        alike = self._of_shape.setdefault(shape, {})
        family = alike.get(runtime.same)
        if family is None:
            # Families of one shape share the object: where all hashes differ there are very many.
            shared = next((other.shape for other in alike.values()), shape)
            family = alike[runtime.same] = Family(shared, runtime)
        return family

    def _forget(self, family: Family) -> None:
        alike = self._of_shape[family.shape]
        del alike[family.runtime.same]
        if not alike:
            del self._of_shape[family.shape]
