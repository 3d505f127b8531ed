"""The loops of a node and of a worker, as decisions.

A node writes what each of its workers offers; the worker reads it and registers it with a scheduler. I/O,
clock, threads and chance belong to the service. What to do, and when, is decided here, from values alone:
times are seconds on a clock that never goes back, `draw` is a random number from 0 up to but not 1. A state
says when it is `due` to be decided on again; a service waits until then, or until something changes.

A decision goes by what is there, not by the event that told of it. So events may come late, twice or not at
all; and a service that was killed starts again without a state, and has lost only what it was waiting for.
"""

from substrate_compat.registration.backoff import NEVER, Backoff, Report
from substrate_compat.registration.node import (
    Caches,
    NodeRules,
    Pod,
    PodState,
    Remove,
    Source,
    Sync,
)
from substrate_compat.registration.worker import Register, WorkerRules, WorkerState

__all__ = [
    "NEVER",
    "Backoff",
    "Caches",
    "NodeRules",
    "Pod",
    "PodState",
    "Register",
    "Remove",
    "Report",
    "Source",
    "Sync",
    "WorkerRules",
    "WorkerState",
]
