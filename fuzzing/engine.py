"""One target under atheris: `python -m fuzzing.engine TARGET` and what libFuzzer takes, such as folders."""

import hashlib
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import atheris

__all__ = ["main"]

_PREFIX: Final = "-artifact_prefix="
_NATIVE: Final = 0.5
"""How often libFuzzer's own changes are taken: of bytes, and of what comparisons were seen to want."""


def main(arguments: Sequence[str]) -> None:
    """Fuzz a target until libFuzzer ends the process."""
    name, *options = arguments
    # Its messages on each module would be longer than what is of interest.
    logging.disable(logging.INFO)
    with atheris.instrument_imports(include=["substrate_compat"], enable_loader_override=False):
        importlib.import_module("fuzzing.targets")
    # What they import is instrumented by now.
    from fuzzing.mutation import mutated
    from fuzzing.target import run
    from fuzzing.targets import TARGETS
    from fuzzing.words import WORDS

    target = TARGETS[name]

    def change(data: bytes, longest: int, seed: int) -> bytes:
        source = Random(seed)
        if source.random() < _NATIVE:
            changed: bytes = atheris.Mutate(data, longest)
            return changed
        return mutated(data, source, WORDS)[:longest]

    def call(data: bytes) -> None:
        try:
            run(target, data)
        except Exception:
            # libFuzzer does so too, under the same name, but not always in time.
            digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()
            for prefix in prefixes:
                Path(f"{prefix}crash-{digest}").write_bytes(data)
            raise

    prefixes = [each.removeprefix(_PREFIX) for each in options if each.startswith(_PREFIX)]
    atheris.Setup([sys.argv[0], *options], call, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
