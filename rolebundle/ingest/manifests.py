"""Which manifests count: those of the user, and in nested checkouts only approved ones.

A manifest that does not count is not even parsed, so that it can neither grant anything nor stop a
run.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from shlex import quote

from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.manifest_file import EMPTY_MANIFEST, Manifest, parse_manifest

MANIFEST_NAME = "rolebundle.toml"
_MAX_BYTES = 4 * 1024 * 1024
_CHECKOUT_MARKS = (".git", ".hg", ".svn", ".jj", ".bzr", "_darcs", ".fslckout", "CVS")
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_ROOT_USER = 0


@dataclass(frozen=True, slots=True)
class ManifestPolicy:
    """Which manifests count.

    Attributes:
        enabled: whether any manifest counts.
        approved: the location of each manifest that the owner has approved → its content hash.
        excluded: folders in and below which no manifest counts.
    """

    enabled: bool = True
    approved: Mapping[str, str] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()

    def considers(self, folder: Path) -> bool:
        """Whether a manifest in this folder may count."""
        return self.enabled and not (
            self.excluded and self.excluded.intersection(map(str, (folder, *folder.parents)))
        )


@dataclass(frozen=True, slots=True)
class IgnoredManifest:
    """A manifest that does not count. ``reason`` also names the remedy."""

    location: str
    reason: str


def read_manifest(
    folder: Path, root: Path | None, policy: ManifestPolicy
) -> Manifest | IgnoredManifest:
    """The manifest of a folder; ``EMPTY_MANIFEST`` if it has none.

    Args:
        folder: the folder.
        root: the folder that is ingested, to find checkouts below it; ``None`` if ``folder`` is
            above what the user named.
        policy: which manifests count.

    Raises:
        ConfigurationError: it counts, and it cannot be read or is invalid.
    """
    path = folder / MANIFEST_NAME
    status = _status(path) if policy.considers(folder) else None
    if status is None:
        return EMPTY_MANIFEST
    reason = _link_or_owner(status)
    content = b""
    if not reason or str(path) in policy.approved:
        status, content = _read(path)
        # Asked of the open file, because another one may have taken its place.
        reason = _link_or_owner(status) or _why_not_counted(folder, root)
    if not reason:
        return parse_manifest(content, str(path))
    approved, command = (
        policy.approved.get(str(path)),
        f"rolebundle policy trust {quote(str(path))}",
    )
    if approved is None:
        return IgnoredManifest(str(path), f"{reason}; `{command}` approves it")
    if approved != content_hash(content):
        changed = "it has changed since it was approved"
        return IgnoredManifest(str(path), f"{changed}; `{command}` approves it again")
    return parse_manifest(content, str(path))


def root_of(start: Path, policy: ManifestPolicy) -> tuple[Path, list[IgnoredManifest]]:
    """The folder that document ids are relative to: the outermost parent whose manifest counts.

    Without one it is the ingested folder, or the folder of the ingested file.

    Returns:
        The folder, and the manifests above it that do not count.
    """
    folder = start if start.is_dir() and not start.is_symlink() else start.parent
    root = folder
    ignored: list[IgnoredManifest] = []
    for parent in folder.parents:
        manifest = read_manifest(parent, None, policy)
        if isinstance(manifest, IgnoredManifest):
            ignored.append(manifest)
        elif manifest is not EMPTY_MANIFEST:
            # Those between the folder and this one are reported by the walk.
            root, ignored = parent, []
    return root, ignored


def approval_of(path: Path) -> tuple[str, str]:
    """The location and content hash of a manifest that the owner approves as it is now.

    Args:
        path: the manifest or its folder.

    Raises:
        UsageError: there is no manifest, or its path is not valid text.
        ConfigurationError: it is invalid.
    """
    location = location_of(path)
    status = _status(location)
    if status is None or stat.S_ISLNK(status.st_mode):
        raise UsageError(
            "no_manifest", f"{location}: no such file", "name a rolebundle.toml or its folder"
        )
    _, content = _read(location)
    parse_manifest(content, str(location))
    return str(location), content_hash(content)


def location_of(path: Path) -> Path:
    """The absolute path of a manifest, given that or its folder.

    Raises:
        UsageError: the path is not valid text.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link
    check_path(absolute)
    return absolute if absolute.name == MANIFEST_NAME else absolute / MANIFEST_NAME


def check_path(path: Path) -> None:
    """Check that a path can be stored.

    Raises:
        ConfigurationError: see :func:`check_encoding_of`.
        UsageError: it contains bytes that are not valid text.
    """
    check_encoding_of(str(path))
    if any("\ud800" <= character <= "\udfff" for character in str(path)):
        raise UsageError(
            "bad_path_name",
            f"{path}: the path contains bytes that are not valid text",
            "rename the file or folder and run the same command again",
        )


def check_encoding_of(name: str) -> None:
    """Check that this process reads the names of files as they are.

    In a locale with another encoding than UTF-8, other names have other letters here. A document
    would seem to be gone, and another one would seem to be new.

    Raises:
        ConfigurationError: the name is not ASCII, and the encoding of names is not UTF-8.
    """
    encoding = sys.getfilesystemencoding()
    if not name.isascii() and encoding != "utf-8":
        raise ConfigurationError(
            "names_not_utf8",
            f"{name}: the name has other letters than ASCII, and this process reads the names of "
            f"files as {encoding}",
            "set PYTHONUTF8=1, or leave it unset, and run the same command again",
        )


def content_hash(content: bytes) -> str:
    """The hash by which a manifest is approved: SHA-256, hexadecimal."""
    return sha256(content).hexdigest()


def _status(path: Path) -> os.stat_result | None:
    """The status of a manifest; ``None`` if there is none, or its folder may not be entered."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _link_or_owner(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    # The root user may change everything anyway, and owns what a package manager installs.
    is_own = not hasattr(os, "geteuid") or status.st_uid in (os.geteuid(), _ROOT_USER)
    return "" if is_own else f"it belongs to another user (uid {status.st_uid})"


def _why_not_counted(folder: Path, root: Path | None) -> str:
    """Why a manifest in this folder does not count by itself; empty if it does."""
    if root is None:
        owner = _link_or_owner(folder.stat())
        return owner and owner.replace("it belongs", "its folder belongs")
    for parent in (folder, *folder.parents):
        if parent == root:
            break
        if any(os.path.lexists(parent / mark) for mark in _CHECKOUT_MARKS):
            return "it lies in a checkout of its own"
    return ""


def _read(path: Path) -> tuple[os.stat_result, bytes]:
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            status, content = os.fstat(descriptor), file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            "bad_manifest", f"{path}: not readable ({error.strerror})", "check its permissions"
        ) from error
    if len(content) > _MAX_BYTES:
        raise ConfigurationError("bad_manifest", f"{path}: over {_MAX_BYTES} bytes", "shorten it")
    return status, content
