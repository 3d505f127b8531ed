"""Families: the runtimes that agree in all that a match compares by equality.

What is left to compare within a family is the mask of CPU features. A fleet has few families, about one for
each runtime hash that is in use; where it has many, the one that a snapshot asks for is still looked up.
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import chain
from typing import NamedTuple, Self

from substrate_compat.identity import SandboxRuntime, WorkerRuntimes

__all__ = ["Families", "Family", "Mask", "Offers", "Shape"]


class Mask(IntEnum):
    """What a runtime has of a feature mask."""

    ABSENT = 0
    UNREADABLE = 1
    READABLE = 2

    @classmethod
    def of(cls, runtime: SandboxRuntime) -> Self:
        """What this runtime has."""
        if runtime.cpu_features is None:
            return cls.ABSENT
        return cls.UNREADABLE if runtime.compat_version.features is None else cls.READABLE


class Shape(NamedTuple):
    """What decides which reasons can speak against a family, besides the values that differ."""

    sandbox_class: str
    schema_version: str
    keys: frozenset[str]
    mask: Mask

    @classmethod
    def of(cls, runtime: SandboxRuntime) -> Self:
        """The shape of this runtime's family."""
        compat = runtime.compat_version
        keys = frozenset(key for key, _ in compat.equalities)
        return cls(runtime.sandbox_class, compat.schema_version, keys, Mask.of(runtime))


class Family:
    """The runtimes that agree in all but their feature mask.

    Attributes:
        shape: its class and schema, its attribute keys, and what its runtimes have of a mask.
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

    __slots__ = ("_of_same", "_of_shape")

    def __init__(self) -> None:
        self._of_same: tuple[dict[str, Family], ...] = tuple({} for _ in Mask)
        self._of_shape: dict[Shape, set[Family]] = {}

    def __iter__(self) -> Iterator[Family]:
        return chain.from_iterable(self._of_shape.values())

    def take(self, runtimes: WorkerRuntimes) -> Offers:
        """What a group with these runtimes offers; its families are kept until it releases them."""
        families: dict[int, dict[Family, None]] = {}
        for runtime in runtimes:
            families.setdefault(runtime.lacks, {})[self._family(runtime)] = None
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
        exact = (families.get(snapshot.same) for families in self._of_same)
        fitting = {family for family in exact if family is not None}
        for shape, families in self._of_shape.items():
            if shape[:2] == (snapshot.sandbox_class, compat.schema_version) and shape.keys > keys:
                fitting.update(
                    family for family in families if family.runtime.compat_version.equalities >= needed
                )
        return fitting

    def _family(self, runtime: SandboxRuntime) -> Family:
        known = self._of_same[Mask.of(runtime)]
        family = known.get(runtime.same)
        if family is None:
            shape = Shape.of(runtime)
            alike = self._of_shape.setdefault(shape, set())
            # Families of one shape share the object: where all hashes differ there are very many.
            shared = next((other.shape for other in alike), shape)
            family = known[runtime.same] = Family(shared, runtime)
            alike.add(family)
        return family

    def _forget(self, family: Family) -> None:
        del self._of_same[family.shape.mask][family.runtime.same]
        alike = self._of_shape[family.shape]
        alike.remove(family)
        if not alike:
            del self._of_shape[family.shape]
