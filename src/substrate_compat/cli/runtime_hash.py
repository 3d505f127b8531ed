"""The verb `hash`: which runtime do these binaries make?"""

from typing import Final

import click

from substrate_compat.cli.options import json_option
from substrate_compat.cli.output import say, say_json
from substrate_compat.errors import InputError, quoted
from substrate_compat.runtime_hash import sandbox_runtime_hash

__all__ = ["VERBS"]


@click.command("hash")
@click.option(
    "--asset", "assets", metavar="NAME=DIGEST", multiple=True, help="One of the runtime's binaries."
)
@click.option("--pause-image", metavar="REF", required=True, help="The pause image, pinned by digest.")
@json_option
def _hash(assets: tuple[str, ...], pause_image: str, as_json: bool) -> None:
    """Print the runtime hash of assets, each with its SHA-256, and a pause image."""
    digests: dict[str, str] = {}
    for asset in assets:
        name, equals, digest = asset.partition("=")
        if not equals:
            raise InputError("--asset", f"{quoted(asset)} is not NAME=DIGEST")
        if name in digests:
            raise InputError("--asset", f"{quoted(name)} is given twice")
        digests[name] = digest
    value = sandbox_runtime_hash(digests, pause_image)
    if as_json:
        say_json({"sandbox_runtime_hash": value})
    else:
        say(value)


VERBS: Final = (_hash,)
