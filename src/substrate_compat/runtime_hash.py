"""The hash of the binaries that a sandbox runs on: the value of `sandbox_runtime_hash`.

Only content enters it. Version names, URLs, registry, tag and order do not: the same binaries in
another bucket are the same runtime.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from substrate_compat.errors import InputError, quoted, shortened

__all__ = ["asset_digest", "image_digest", "sandbox_runtime_hash"]

_PREFIX: Final = "sha256:"
_LENGTH: Final = 64
_DIGITS: Final = re.compile(rf"[0-9a-f]{{{_LENGTH}}}")
_ASSET_NAME: Final = re.compile(r"[0-9A-Za-z._-]{1,128}")
_REPOSITORY: Final = re.compile(r"[0-9A-Za-z]+(?:[._:/-]+[0-9A-Za-z]+)*")
_LONGEST_REFERENCE: Final = 1024


def sandbox_runtime_hash(asset_digests: Mapping[str, str], pause_image: str) -> str:
    """The hash of a runtime: `sha256:` and 64 lower-case hex digits.

    It is the SHA-256 of UTF-8 lines, sorted by code point, each ended by a newline:
    `asset/NAME=sha256:HEX` for each asset, and `pause_image=sha256:HEX`.

    Args:
        asset_digests: the SHA-256 of each asset by its name (letters, digits, `.`, `_`, `-`), as 64
            lower-case hex digits with or without `sha256:`.
        pause_image: the reference of the pause image, pinned by digest.

    Raises:
        InputError: a name, a digest or a reference that is not of this form.

    >>> pinned = "registry.example/pause:3.10@sha256:" + "b" * 64
    >>> sandbox_runtime_hash({"gvisor": "a" * 64}, pinned)
    'sha256:f767ba6fa7d971b74a5603f8fc191314d63533dfbd8acd4d2984f040c05e6b5a'
    """
    lines = [f"pause_image={image_digest(pause_image)}\n"]
    for name, digest in asset_digests.items():
        if _ASSET_NAME.fullmatch(name) is None:
            raise InputError(
                "asset name",
                f"{quoted(name)} is not a name",
                "a name has 1 to 128 letters, digits, `.`, `_` and `-`",
            )
        lines.append(f"asset/{name}={asset_digest(digest, f'digest of asset {shortened(name, 100)}')}\n")
    return _PREFIX + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def asset_digest(text: str, subject: str = "digest") -> str:
    """The SHA-256 digest `text`, with its `sha256:`, whether or not it was written with it.

    Args:
        text: 64 lower-case hex digits, or `sha256:` and those.
        subject: what an error calls the input.

    Raises:
        InputError: any other text, such as a whole line of `sha256sum`.

    >>> asset_digest("a" * 64) == asset_digest("sha256:" + "a" * 64) == "sha256:" + "a" * 64
    True
    """
    digits = text.removeprefix(_PREFIX)
    if _DIGITS.fullmatch(digits) is None:
        raise InputError(
            subject,
            f"{quoted(text)} is not a SHA-256 digest: {_digest_fault(digits)}",
            "write the 64 lower-case hex digits, with or without `sha256:`",
        )
    return _PREFIX + digits


def image_digest(reference: str) -> str:
    """The digest that an image reference is pinned to: `sha256:` and 64 lower-case hex digits.

    Args:
        reference: `[registry[:port]/]path[:tag]@sha256:HEX`.

    Raises:
        InputError: a reference without a digest, with two, or with one that is not SHA-256.

    >>> image_digest("reg:5000/p/pause:3.10@sha256:" + "c" * 64) == "sha256:" + "c" * 64
    True
    """
    repository, at, digest = reference.partition("@")
    if not at:
        problem = "is not pinned by digest"
    elif "@" in digest:
        problem = "has two `@`"
    elif len(reference) > _LONGEST_REFERENCE:
        problem = f"has {len(reference)} characters; {_LONGEST_REFERENCE} are the most"
    elif _REPOSITORY.fullmatch(repository) is None:
        problem = "names no image before the `@`"
    elif not digest.startswith(_PREFIX):
        problem = "is pinned by something else than `sha256:`"
    elif _DIGITS.fullmatch(digest.removeprefix(_PREFIX)) is None:
        problem = f"has a bad digest: {_digest_fault(digest.removeprefix(_PREFIX))}"
    else:
        return digest
    raise InputError(
        "pause image",
        f"{quoted(reference)} {problem}",
        "pin it as `path[:tag]@sha256:<64 hex digits>`",
    )


def _digest_fault(digits: str) -> str:
    """What is wrong with a digest that is not 64 lower-case hex digits."""
    if _DIGITS.fullmatch(digits.lower()):
        return "upper case"
    if re.fullmatch(r"[0-9a-f]*", digits):
        return f"{len(digits)} digits instead of {_LENGTH}"
    return "something else than 64 lower-case hex digits"
