"""The options that several verbs share."""

from typing import Final

import click

from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import PROFILES

__all__ = ["architecture_option", "json_option", "sandbox_class_option"]

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

architecture_option: Final = click.option(
    "--arch",
    "architecture",
    type=click.Choice([architecture.value for architecture in Architecture]),
    callback=lambda _context, _option, value: None if value is None else Architecture(value),
    help="The architecture; needed for a bare mask.",
)

sandbox_class_option: Final = click.option(
    "--sandbox-class",
    type=click.Choice([profile.sandbox_class for profile in PROFILES]),
    help="The sandbox class of a sandbox-runtimes.json, which does not name it.",
)
