"""Identities, configs and what a worker offers, to and from JSON.

Reading is strict: nothing is converted, a key that is not known or stands twice is refused, and the subject
of an error is the path of the fault, such as `$.restorableRuntimes[1].cpu_features`. A converter takes a
millisecond to make and microseconds to use: a caller with many texts makes one with `make_converter` and
passes it to each call.
"""

from substrate_compat.wire.configs import config_from_mapping, loads_config
from substrate_compat.wire.converter import make_converter
from substrate_compat.wire.identities import dumps_identity, loads_identity
from substrate_compat.wire.runtimes import (
    dumps_runtimes,
    dumps_worker,
    loads_runtimes,
    loads_worker,
    read_runtimes,
    write_runtimes,
)

__all__ = [
    "config_from_mapping",
    "dumps_identity",
    "dumps_runtimes",
    "dumps_worker",
    "loads_config",
    "loads_identity",
    "loads_runtimes",
    "loads_worker",
    "make_converter",
    "read_runtimes",
    "write_runtimes",
]
