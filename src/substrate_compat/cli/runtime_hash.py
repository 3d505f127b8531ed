"""The verb `hash`: which runtime do these binaries, or the versions of this config, make?"""

from typing import Final

import click

from substrate_compat.cli.configs import read_config
from substrate_compat.cli.options import json_option
from substrate_compat.cli.output import EXIT_NO, EXIT_YES, Json, note, say, say_json
from substrate_compat.errors import InputError, quoted, shortened
from substrate_compat.runtime_hash import sandbox_runtime_hash
from substrate_compat.sandbox_config import SandboxConfig

__all__ = ["VERBS"]


@click.command("hash")
@click.argument("config", metavar="[CONFIG]", required=False)
@click.option(
    "--asset", "assets", metavar="NAME=DIGEST", multiple=True, help="One of the runtime's binaries."
)
@click.option("--pause-image", metavar="REF", help="The pause image, pinned by digest.")
@json_option
def _hash(config: str | None, assets: tuple[str, ...], pause_image: str | None, as_json: bool) -> int:
    """Print the runtime hash of assets, each with its SHA-256, and a pause image.

    With CONFIG, a SandboxConfig as `kubectl get -o yaml` or `-o json` prints it, print that of each version
    on each architecture. Exit status 1 if one has none.
    """
    if config is not None:
        if assets or pause_image is not None:
            raise click.UsageError("give CONFIG, or --asset and --pause-image")
        return _hash_versions(read_config(config), as_json)
    if pause_image is None:
        raise click.UsageError("give --pause-image, or CONFIG")
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
    return EXIT_YES


def _hash_versions(config: SandboxConfig, as_json: bool) -> int:
    hashes: list[Json] = []
    status = EXIT_YES
    for version in config.versions:
        for architecture in version.architectures:
            try:
                value = version.runtime_hash(architecture)
            except InputError as error:
                note(f"{shortened(version.name)} {architecture}: {error}")
                status = EXIT_NO
                continue
            hashes.append(
                {"version": version.name, "architecture": architecture.value, "sandbox_runtime_hash": value}
            )
            if not as_json:
                say(f"{shortened(version.name)} {architecture} {value}")
    if as_json:
        say_json(hashes)
    return status


VERBS: Final = (_hash,)
