"""What a campaign saw, as a value and as JSON: the report is made from it, and tests read it."""

import json
from typing import Final

import attrs
import cattrs

from proof.jobs import ProofError
from substrate_compat.cpufeatures_table import Architecture

__all__ = ["Level", "Machine", "Record", "Restore", "dumps_record", "loads_record"]


@attrs.frozen
class Machine:
    """An emulated machine that ran: what `runsc cpu-features` and `/proc/cpuinfo` printed there."""

    model: str
    features: str
    cpuinfo: str


@attrs.frozen
class Restore:
    """One restore by gVisor.

    Attributes:
        snapshot: The model on which the snapshot was taken.
        worker: The model on which it was restored.
        alive: The counter went on.
        missing: The features for which gVisor refused, sorted.
        error: What runsc said where it failed in another way.
    """

    snapshot: str
    worker: str
    alive: bool
    missing: tuple[str, ...] = ()
    error: str = ""


@attrs.frozen
class Level:
    """The same under gVisor's annotation.

    Attributes:
        fleet: The models whose common level the annotation is.
        annotation: Its value.
        guests: The `flags` of `/proc/cpuinfo` in a sandbox under the annotation, for each model.
        restores: Each snapshot under the annotation, restored on each model.
        refused: What runsc said where no sandbox started under the annotation, for each model.
    """

    fleet: tuple[str, ...]
    annotation: str
    guests: dict[str, str]
    restores: tuple[Restore, ...]
    refused: dict[str, str]


@attrs.frozen
class Record:
    """A campaign.

    Attributes:
        versions: Of runsc, QEMU, and the machines' kernel.
        runsc_digest: SHA-256 of runsc, in hex.
        image_digest: SHA-256 of the one program in the container's root, in hex.
        machine_seconds: How long all machines together ran.
        not_run: The models that did not run to the end, and why.
        restores: Each snapshot on each machine.
        level: The same under the annotation.
        chain: Taken on one machine, restored on a richer one; taken again there, restored on the first.
    """

    architecture: Architecture
    versions: dict[str, str]
    runsc_digest: str
    image_digest: str
    machine_seconds: int
    machines: tuple[Machine, ...]
    not_run: dict[str, str]
    restores: tuple[Restore, ...]
    level: Level
    chain: tuple[Restore, ...]


_CONVERTER: Final = cattrs.Converter(forbid_extra_keys=True, omit_if_default=True)


def dumps_record(record: Record) -> str:
    """The record as JSON, one machine or restore a line."""
    fields = [
        f" {json.dumps(key)}: {_rows(value) if isinstance(value, (list, tuple)) else json.dumps(value)}"
        for key, value in _CONVERTER.unstructure(record).items()
    ]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _rows(values: list[object] | tuple[object, ...]) -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(value)}" for value in values) + "\n ]"


def loads_record(text: str) -> Record:
    """Read what `dumps_record` wrote.

    Raises:
        ProofError: It is something else; all faults are named.
    """
    try:
        return _CONVERTER.structure(json.loads(text), Record)
    except json.JSONDecodeError as error:
        raise ProofError(f"not a record: {error}") from error
    except cattrs.BaseValidationError as error:
        raise ProofError(f"not a record: {'; '.join(cattrs.transform_error(error))}") from error
