"""What fuzzing begins with and has found, without the fuzzer; and that it leaves no text function out."""

import importlib
import inspect
import os
import pkgutil
import sys
import time
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from types import CodeType, FrameType, FunctionType
from typing import Final

import pytest

import substrate_compat
from fuzzing.mutation import mutated
from fuzzing.target import DATA, FindingError, Target, accepted, require, run, text_of
from fuzzing.targets import TARGETS
from fuzzing.words import DICTIONARY, WORDS
from substrate_compat.errors import CompatError, InputError

TEXT: Final = (str, bytes, object, os.PathLike, Path)
NOT_FUZZED: Final = {
    "runsc.run_cpu_features": "runs a program; `parse_cpu_features` reads what it prints",
}


@pytest.mark.parametrize("target", [pytest.param(target, id=name) for name, target in TARGETS.items()])
def test_no_seed_is_a_finding(target: Target) -> None:
    seeds = target.seeds()
    assert seeds
    for seed in seeds:
        run(target, seed)


def test_every_folder_of_seeds_is_that_of_a_target() -> None:
    assert {path.name for path in (DATA / "fuzz").iterdir()} <= TARGETS.keys()


def takes_text(hint: object) -> bool:
    """Whether a value of the type holds text or bytes, or may be anything."""
    if hint in TEXT or typing.get_origin(hint) in TEXT:
        return True
    return any(takes_text(part) for part in typing.get_args(hint) if not isinstance(part, list))


def functions_of(value: object) -> Iterator[tuple[str, FunctionType]]:
    """A function, or the constructor of a class, unless it only keeps what it is given, and its methods."""
    if inspect.isfunction(value):
        yield "", value
    if not inspect.isclass(value):
        return
    for name in vars(value):
        member = getattr(value, name)
        function = getattr(member, "__func__", member)
        if not inspect.isfunction(function):
            continue
        generated = function.__code__.co_filename.startswith("<attrs")
        public = name == "__contains__" or not name.startswith("_")
        if public or (name == "__init__" and (not generated or hasattr(value, "__attrs_post_init__"))):
            yield f".{name}", function


def text_functions() -> dict[str, set[CodeType]]:
    """Every public function that takes text or bytes, by its name, with the code that it runs."""
    found: dict[str, set[CodeType]] = {}
    for module_info in pkgutil.walk_packages(substrate_compat.__path__, "substrate_compat."):
        if module_info.name.endswith("__main__"):
            continue
        module = importlib.import_module(module_info.name)
        for exported in getattr(module, "__all__", ()):
            for suffix, function in functions_of(getattr(module, exported)):
                inner = inspect.unwrap(function)
                hints = typing.get_type_hints(inner)
                hints.pop("return", None)
                if inner.__module__ == module.__name__ and any(map(takes_text, hints.values())):
                    name = f"{module.__name__.removeprefix('substrate_compat.')}.{exported}{suffix}"
                    found[name] = {function.__code__, inner.__code__}
    return found


def called_by_seeds() -> set[CodeType]:
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    for target in TARGETS.values():
        for seed in target.seeds():
            sys.setprofile(note)
            try:
                target.call(seed)
            finally:
                sys.setprofile(before)
    return called


def test_every_function_that_takes_text_is_called_by_a_target() -> None:
    called = called_by_seeds()
    missed = {name for name, codes in text_functions().items() if not codes & called}
    assert missed == NOT_FUZZED.keys()


def slow(_: bytes) -> None:
    started = time.process_time()
    while time.process_time() < started + 0.3:
        pass


def raising(error: Exception) -> Callable[[bytes], None]:
    def call(_: bytes) -> None:
        accepted(refuse, error)

    return call


def refuse(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        pytest.param(slow, "are allowed", id="time"),
        pytest.param(raising(CompatError("a", "b")), "the root", id="root-of-the-errors"),
        pytest.param(raising(InputError("a", "\x1b")), "the message", id="escape-code"),
        pytest.param(raising(InputError("a", "b" * 2_000)), "the message", id="long-message"),
        pytest.param(lambda _: require(False, "a law"), "a law", id="law"),
    ],
)
def test_what_must_not_be_is_found(call: Callable[[bytes], None], finding: str) -> None:
    with pytest.raises(FindingError, match=finding):
        run(Target("t", call), b"")


def test_another_exception_is_found() -> None:
    with pytest.raises(KeyError):
        run(Target("t", raising(KeyError("a"))), b"")


def test_an_error_of_the_library_is_no_finding() -> None:
    run(Target("t", raising(InputError("a", "b"))), b"")
    assert accepted(text_of, b"a\xff") == "a\udcff"


@cache
def seeds() -> list[bytes]:
    return [seed for target in TARGETS.values() for seed in target.seeds()[:3]]


def test_inputs_are_made_the_same_way_again_and_json_stays_json() -> None:
    whole = b'{"a": [1, "b", {"c": null}]}'
    made = {mutated(whole, Random(number), WORDS) for number in range(200)}
    assert len(made) > 100
    assert made == {mutated(whole, Random(number), WORDS) for number in range(200)}
    assert sum(each.startswith(b'{"a":') for each in made) > 50
    for number, seed in enumerate(seeds()):
        assert isinstance(mutated(seed, Random(number), WORDS), bytes)


def test_the_dictionary_is_one_that_libfuzzer_reads() -> None:
    lines = DICTIONARY.splitlines()
    assert len(lines) > 300
    assert all(line.startswith('"\\x') and line.endswith('"') for line in lines)
