"""What mutmut tells, and the survivors that are known to be equivalent."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from typing import Final

import attrs

__all__ = [
    "DETECTED",
    "Comparison",
    "Mutant",
    "compare",
    "parse_diff",
    "parse_equivalents",
    "parse_results",
]

DETECTED: Final = frozenset({"killed", "timeout", "segfault"})
"""Of the words by which mutmut tells what became of a mutant those that say: a test saw it."""

_RESULT: Final = re.compile(r"\s*(?P<name>\S+__mutmut_[0-9]+): (?P<status>.+)")
_NAME: Final = re.compile(r"(?P<module>[\w.]+)\.x(?:ǁ(?P<owner>\w+)ǁ|_)(?P<function>\w+)__mutmut_[0-9]+")
_PACKAGE: Final = "substrate_compat."
_FIELDS: Final = {"module", "function", "reason", "diffs"}


@attrs.frozen
class Mutant:
    """A change to the code, told so that it is found again after an edit elsewhere.

    Attributes:
        module: within the package, such as `plan`.
        function: such as `common_level` or `FeatureSet.from_hex`.
        diff: the lines that go (`- `) and those that come (`+ `), without their indentation.
    """

    module: str
    function: str
    diff: str

    @classmethod
    def of(cls, name: str, diff: str = "") -> "Mutant":
        r"""The mutant of mutmut's name for it.

        Raises:
            ValueError: mutmut does not name mutants so.

        >>> Mutant.of("substrate_compat.plan.x__offer__mutmut_3", "- a\n+ b").function
        '_offer'
        >>> Mutant.of("substrate_compat.index.xǁWorkerIndexǁput__mutmut_1", "- a\n+ b").function
        'WorkerIndex.put'
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name} is no name of a mutant")
        owner = "" if match["owner"] is None else f"{match['owner']}."
        return cls(match["module"].removeprefix(_PACKAGE), owner + match["function"], diff)

    def __str__(self) -> str:
        return f"{self.module}: {self.function}\n{self.diff}"


@attrs.frozen
class Comparison:
    """The survivors, held against the list.

    Attributes:
        unlisted: survivors that no entry names: what the tests do not see.
        listed: survivors that an entry names, with the reason why they change nothing.
        stale: entries that name no survivor.
    """

    unlisted: tuple[Mutant, ...]
    listed: tuple[tuple[Mutant, str], ...]
    stale: tuple[Mutant, ...]


def parse_results(text: str) -> dict[str, str]:
    r"""What became of each mutant, by mutmut's name, from `mutmut results --all true`.

    Raises:
        ValueError: mutmut names none, or a line tells something else.

    >>> parse_results("    substrate_compat.plan.x__offer__mutmut_3: no tests\n")
    {'substrate_compat.plan.x__offer__mutmut_3': 'no tests'}
    """
    results = {}
    for line in filter(None, text.split("\n")):
        match = _RESULT.fullmatch(line)
        if match is None:
            raise ValueError(f"mutmut tells no result: {line}")
        results[match["name"]] = match["status"]
    if not results:
        raise ValueError("mutmut made no mutant")
    return results


def parse_diff(text: str) -> str:
    r"""The lines that go and come, from `mutmut show`.

    Raises:
        ValueError: no line goes.

    >>> parse_diff("# name: survived\n--- a\n+++ b\n@@ -1,2 +1,2 @@\n def f():\n-    x = 1\n+    x = 2\n")
    '- x = 1\n+ x = 2'
    """
    _, hunk, lines = text.partition("\n@@")
    changed = [f"{line[0]} {line[1:].strip()}" for line in lines.split("\n") if line[:1] in {"-", "+"}]
    if not (hunk and changed):
        raise ValueError(f"mutmut shows no difference: {text}")
    return "\n".join(changed)


def parse_equivalents(text: str) -> tuple[tuple[Mutant, str], ...]:
    r"""The mutants that change nothing that can be seen, each with the reason.

    Args:
        text: TOML: tables `[[equivalent]]` with `module`, `function`, `reason` and a list of `diffs`.

    Raises:
        ValueError: a table has other fields, or nothing in one.

    >>> parse_equivalents("[[equivalent]]\nmodule='plan'\nfunction='f'\nreason='b'\ndiffs=['- a']")
    ((Mutant(module='plan', function='f', diff='- a'), 'b'),)
    """
    entries = []
    for table in tomllib.loads(text).get("equivalent", []):
        if table.keys() != _FIELDS or not all(table.values()):
            raise ValueError(f"an entry has {', '.join(sorted(_FIELDS))}: {table}")
        for diff in table["diffs"]:
            lines = (f"{line[0]} {line[1:].strip()}" for line in diff.strip().split("\n"))
            entries.append((Mutant(table["module"], table["function"], "\n".join(lines)), table["reason"]))
    return tuple(entries)


def compare(survivors: Iterable[Mutant], equivalents: Iterable[tuple[Mutant, str]]) -> Comparison:
    """Hold the survivors against the list; a diff stands for one survivor.

    >>> one, other = (Mutant("plan", "f", diff) for diff in ("- a", "- b"))
    >>> found = compare([one, one], [(one, "why"), (other, "why")])
    >>> found.unlisted == (one,), found.listed == ((one, "why"),), found.stale == (other,)
    (True, True, True)
    """
    left = Counter(survivors)
    listed, stale = [], []
    for mutant, reason in equivalents:
        if left[mutant] > 0:
            left[mutant] -= 1
            listed.append((mutant, reason))
        else:
            stale.append(mutant)
    return Comparison(tuple(left.elements()), tuple(listed), tuple(stale))
