"""Every target, by its name."""

from collections.abc import Mapping
from typing import Final

from fuzzing import cli_targets, cpu_targets, fleet_targets, json_targets
from fuzzing.target import Target

__all__ = ["TARGETS"]

TARGETS: Final[Mapping[str, Target]] = {
    target.name: target
    for module in (cpu_targets, json_targets, fleet_targets, cli_targets)
    for target in module.TARGETS
}
