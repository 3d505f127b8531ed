"""What the workers of a pool are to run: a `SandboxConfig` and its versions, as values."""

from typing import Final

import attrs

from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError, quoted
from substrate_compat.identity import PROFILES
from substrate_compat.runtime_hash import sandbox_runtime_hash

__all__ = ["Asset", "SandboxConfig", "SandboxVersion"]

_CLASSES: Final = tuple(profile.sandbox_class for profile in PROFILES)


@attrs.frozen
class Asset:
    """A file that a version needs on one architecture.

    Attributes:
        architecture: where it is needed.
        name: letters, digits, `.`, `_`, `-`; `gvisor` is runsc.
        url: where to fetch it from.
        sha256: 64 lower-case hex digits, with or without `sha256:`.
    """

    architecture: Architecture
    name: str
    url: str
    sha256: str


@attrs.frozen
class SandboxVersion:
    """A set of binaries that sandboxes run on.

    Attributes:
        name: what the config calls it; not empty.
        enabled: whether snapshots may still be restored under it.
        pause_image: the reference of the pause image, pinned by digest.
        assets: its files, for every architecture; a name once for each.

    Raises:
        InputError: an empty name, or an asset listed twice; the subject is the path in the Kubernetes
            object, from the version on.
    """

    name: str
    enabled: bool
    pause_image: str
    assets: tuple[Asset, ...]

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise InputError("$.name", "the name is empty")
        seen: set[tuple[Architecture, str]] = set()
        for asset in self.assets:
            if (asset.architecture, asset.name) in seen:
                raise InputError(f"$.assets.{asset.architecture}", f"{quoted(asset.name)} is listed twice")
            seen.add((asset.architecture, asset.name))

    @property
    def architectures(self) -> tuple[Architecture, ...]:
        """Where it has assets, in the order of `Architecture`."""
        return tuple(each for each in Architecture if self.asset_digests(each))

    def asset_digests(self, architecture: Architecture) -> dict[str, str]:
        """The digest of each asset for `architecture` by its name, as the config writes it."""
        return {asset.name: asset.sha256 for asset in self.assets if asset.architecture is architecture}

    def runtime_hash(self, architecture: Architecture) -> str:
        """The `sandbox_runtime_hash` on `architecture`.

        Raises:
            InputError: a bad name or digest, or a pause image that is not pinned by digest.

        >>> runsc = Asset(Architecture.AMD64, "gvisor", "https://bucket.example/runsc", "a" * 64)
        >>> version = SandboxVersion("v1", True, "pause@sha256:" + "b" * 64, (runsc,))
        >>> version.runtime_hash(Architecture.AMD64)
        'sha256:f767ba6fa7d971b74a5603f8fc191314d63533dfbd8acd4d2984f040c05e6b5a'
        """
        return sandbox_runtime_hash(self.asset_digests(architecture), self.pause_image)


@attrs.frozen
class SandboxConfig:
    """What the workers of a pool are to run.

    Attributes:
        name: the name of the Kubernetes object.
        sandbox_class: `gvisor` or `microvm`.
        default_version: the name of the version for cold starts and new snapshots.
        versions: in the order of preference, names unique.

    Raises:
        InputError: an unknown class, or a name that two versions have; the subject is the path in the
            Kubernetes object.
    """

    name: str
    sandbox_class: str
    default_version: str
    versions: tuple[SandboxVersion, ...]

    def __attrs_post_init__(self) -> None:
        if self.sandbox_class not in _CLASSES:
            problem = f"{quoted(self.sandbox_class)} is not known"
            raise InputError("$.spec.sandboxClass", problem, "known are " + " and ".join(_CLASSES))
        seen: dict[str, int] = {}
        for position, version in enumerate(self.versions):
            if seen.setdefault(version.name, position) != position:
                raise InputError(
                    f"$.spec.versions[{position}].name",
                    f"{quoted(version.name)} is already the name of $.spec.versions[{seen[version.name]}]",
                )
