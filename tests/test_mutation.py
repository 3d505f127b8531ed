"""What mutmut tells, held against the list of equivalent mutants, and that list against the code."""

import ast
from pathlib import Path
from typing import Final

import pytest

from mutation.__main__ import EQUIVALENTS, ROOT
from mutation.survivors import Mutant, compare, parse_diff, parse_equivalents, parse_results
from mutation.undecorated import undecorated

SHOWN: Final = """\
# substrate_compat.plan.x__offer__mutmut_3: survived
--- src/substrate_compat/plan.py
+++ src/substrate_compat/plan.py
@@ -1,4 +1,4 @@
 def _offer(config):
     if config:
-        return - 1
+        return + 1
     return None
"""
PLAN: Final = Mutant("plan", "_offer", "- return - 1\n+ return + 1")
LISTED: Final = """\
[[equivalent]]
module = "plan"
function = "_offer"
reason = "It is the same number."
diffs = [
'''
-    return - 1
+    return + 1
''',
]
"""


@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("substrate_compat.plan.x__offer__mutmut_3", "plan", "_offer"),
        ("substrate_compat.index.xǁWorkerIndexǁput__mutmut_12", "index", "WorkerIndex.put"),
        ("substrate_compat.cpufeatures.xǁFeatureSetǁ__le____mutmut_1", "cpufeatures", "FeatureSet.__le__"),
        ("substrate_compat.wire.runtimes.x__read__mutmut_1", "wire.runtimes", "_read"),
    ],
)
def test_the_name_of_a_mutant(name: str, module: str, function: str) -> None:
    assert Mutant.of(name) == Mutant(module, function, "")


def test_a_diff_is_told_without_its_place() -> None:
    assert Mutant.of("substrate_compat.plan.x__offer__mutmut_3", parse_diff(SHOWN)) == PLAN
    assert str(PLAN) == "plan: _offer\n- return - 1\n+ return + 1"


def test_results() -> None:
    text = "    a.plan.x_f__mutmut_1: killed\n    a.plan.x_f__mutmut_2: no tests\n"
    assert parse_results(text) == {"a.plan.x_f__mutmut_1": "killed", "a.plan.x_f__mutmut_2": "no tests"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "mutmut made no mutant"), ("Traceback\n", "mutmut tells no result: Traceback")],
)
def test_no_results_are_no_success(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_results(text)


def test_what_is_no_diff_or_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match="mutmut shows no difference"):
        parse_diff(SHOWN.partition("@@")[0])
    with pytest.raises(ValueError, match="is no name of a mutant"):
        Mutant.of("substrate_compat.plan._offer")


def test_a_survivor_is_listed_or_not_and_an_entry_stands_for_one() -> None:
    entries = parse_equivalents(LISTED)
    assert entries == ((PLAN, "It is the same number."),)
    assert compare([PLAN], entries).listed == entries
    assert compare([PLAN, PLAN], entries).unlisted == (PLAN,)
    assert compare([], entries).stale == (PLAN,)
    assert compare([], entries).listed == ()


@pytest.mark.parametrize(
    "text", [LISTED.replace("reason", "because"), LISTED.replace('"It is the same number."', '""')]
)
def test_an_entry_without_a_reason_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an entry has diffs, function, module, reason"):
        parse_equivalents(text)


def test_a_decorator_becomes_a_call() -> None:
    source = (
        "class A:\n    @property\n    def one(self):\n        return 1\n\n"
        "    @classmethod\n    def of(cls):\n        return cls()\n"
    )
    assert undecorated(source) == (
        "class A:\n    def one(self):\n        return 1\n    one = property(one)\n\n"
        "    @classmethod\n    def of(cls):\n        return cls()\n"
    )


def lines_of(module: str, function: str) -> set[str]:
    """The lines of all functions of that name in a module, stripped."""
    source = Path(ROOT, "src/substrate_compat", f"{module.replace('.', '/')}.py").read_text("utf-8")
    lines = source.split("\n")
    return {
        line.strip()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == function.rpartition(".")[2]
        for line in lines[node.lineno - 1 : node.end_lineno]
    }


@pytest.mark.parametrize(
    ("mutant", "reason"),
    parse_equivalents(EQUIVALENTS.read_text("utf-8")),
    ids=lambda value: f"{value.module}-{value.function}" if isinstance(value, Mutant) else "",
)
def test_the_list_speaks_of_code_that_stands_there(mutant: Mutant, reason: str) -> None:
    gone = {line.removeprefix("- ") for line in mutant.diff.split("\n") if line.startswith("- ")}
    assert gone <= lines_of(mutant.module, mutant.function)
    assert len(reason) >= 20
