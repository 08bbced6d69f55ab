"""Finding files below a folder, and reading each one once, safely.

Symbolic links are never followed: what they point to inside the folder is read at its own place,
and what lies outside of it is not read at all.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from rolebundle.errors import DocumentError
from rolebundle.ingest.metadata import (
    EMPTY_MANIFEST,
    MANIFEST_NAME,
    FileDefaults,
    Manifest,
    file_defaults,
    load_manifest,
)
from rolebundle.text.globs import matches

DEFAULT_SIZE_CAP = 20 * 1024 * 1024

_DEPTH = 200
_BLOCK = 1 << 16
_OPENED = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_NEVER = frozenset({"node_modules", "__pycache__"})
_NO_KEYS: frozenset[str] = frozenset()


class FoundFile(NamedTuple):
    """A file to read, with what manifests and flags say about it."""

    location: str
    path: str
    size: int
    defaults: FileDefaults
    ignore_keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was not taken, with a code and the reason."""

    path: str
    code: str
    message: str


def walk(root: Path, start: Path, flags: FileDefaults) -> list[FoundFile | Skipped]:
    """Every file at or below ``start``, in path order, and everything that was passed over.

    Args:
        root: the folder that paths are relative to; it holds the outermost manifest.
        start: a file or folder at or below ``root``.
        flags: what the command line says about every file.

    Raises:
        ConfigurationError: a manifest on the way is wrong.
    """
    folder = _Folder(root, root, "", _own_manifest(root, ""))
    for part in start.relative_to(root).parts[:-1]:
        folder = folder.child(part)
    if start.is_dir() and not start.is_symlink():
        if start != root:
            folder = folder.child(start.name)
        # One list for all folders: nested generators would pass each file up through every level.
        found: list[FoundFile | Skipped] = []
        _walk_folder(folder, flags, found)
        return found
    return [_judged(folder, start.name, str(start), start.lstat(), flags)]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder on the way, and the manifests that have a say in it.

    ``inside`` is its path from the root, with a slash at its end; with each manifest goes how
    much of such a path lies above it.
    """

    root: Path
    location: Path
    inside: str
    manifests: tuple[tuple[int, Manifest], ...]

    def child(self, name: str) -> _Folder:
        location, inside = self.location / name, f"{self.inside}{name}/"
        manifests = self.manifests + _own_manifest(location, inside)
        return _Folder(self.root, location, inside, manifests)


def _own_manifest(location: Path, inside: str) -> tuple[tuple[int, Manifest], ...]:
    manifest = load_manifest(location)
    return () if manifest is EMPTY_MANIFEST else ((len(inside), manifest),)


def _walk_folder(folder: _Folder, flags: FileDefaults, found: list[FoundFile | Skipped]) -> None:
    try:
        with os.scandir(folder.location) as listing:
            entries = sorted(listing, key=attrgetter("name"))
    except OSError as error:
        path = folder.inside.rstrip("/") or "."
        found.append(Skipped(path, "unreadable_folder", error.strerror or str(error)))
        return
    inside, unruled = folder.inside, not folder.manifests
    for entry in entries:
        name = entry.name
        path = inside + name
        if name == MANIFEST_NAME:
            continue
        if not (name.isascii() or _is_text(name)):
            found.append(Skipped(path, "bad_name", "its name is not valid text"))
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            found.append(Skipped(path, "unreadable", error.strerror or str(error)))
            continue
        mode = status.st_mode
        if unruled and stat.S_ISREG(mode) and name[0] != ".":
            # What `_judged` would say, at half the cost: nearly all files of most folders.
            found.append(FoundFile(entry.path, path, status.st_size, flags, _NO_KEYS))
        elif not stat.S_ISDIR(mode):
            found.append(_judged(folder, name, entry.path, status, flags))
        elif name.startswith(".") or name in _NEVER:
            found.append(Skipped(f"{path}/", "ignored", "hidden or generated folder"))
        elif inside.count("/") >= _DEPTH:
            found.append(Skipped(f"{path}/", "too_deep", f"more than {_DEPTH} folders deep"))
        else:
            _walk_folder(folder.child(name), flags, found)


def _judged(
    folder: _Folder, name: str, location: str, status: os.stat_result, flags: FileDefaults
) -> FoundFile | Skipped:
    path = folder.inside + name
    if stat.S_ISLNK(status.st_mode):
        return _link(folder.root, Path(location), path)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not_a_file", "not a regular file")
    if name.startswith("."):
        return Skipped(path, "ignored", "hidden file")
    defaults = flags
    ignore_keys = _NO_KEYS
    for above, manifest in folder.manifests:
        inside = path[above:]
        for glob in manifest.ignore:
            if matches(glob, inside):
                return Skipped(path, "ignored", f"the manifest ignores {glob}")
        said = file_defaults(manifest, inside, defaults.values)
        defaults = FileDefaults(
            said.values, said.reader or defaults.reader, said.separator or defaults.separator
        )
        ignore_keys |= manifest.ignore_keys
    return FoundFile(location, path, status.st_size, defaults, ignore_keys)


def _link(root: Path, path: Path, relative: str) -> Skipped:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return Skipped(relative, "broken_link", "a symbolic link that leads nowhere or in a circle")
    if target.is_relative_to(root.resolve()):
        return Skipped(relative, "link", "a symbolic link; its target is read at its own place")
    return Skipped(relative, "escapes_root", "a symbolic link that leads out of the folder")


def _is_text(name: str) -> bool:
    # Bytes that are no characters come out of the file system as half surrogates.
    return not any("\ud800" <= character <= "\udfff" for character in name)


def read_bytes(location: str, path: str, size_cap: int) -> bytes:
    """The content of a regular file; what is returned is what is hashed.

    Opened without following a link and judged by its descriptor, so that a file which is swapped
    after it was found is still not followed out of the folder.

    Raises:
        DocumentError: ``unreadable``, ``not_a_file`` or ``too_large``.
    """
    try:
        descriptor = os.open(location, _OPENED)
    except OSError as error:
        raise DocumentError("unreadable", f"{path}: {error.strerror}", "check the file") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DocumentError("not_a_file", f"{path}: not a regular file", "leave it out")
        # One byte over the cap tells a file that grows while it is read.
        data = _read(descriptor, status.st_size, size_cap + 1)
    except OSError as error:
        raise DocumentError("unreadable", f"{path}: {error.strerror}", "check it") from error
    finally:
        os.close(descriptor)
    if status.st_size > size_cap or len(data) > size_cap:
        raise DocumentError(
            "too_large",
            f"{path}: {max(status.st_size, len(data)):,} bytes, over the cap of {size_cap:,}",
            "raise it with --max-size, or leave the file out",
        )
    return data


def _read(descriptor: int, expected: int, most: int) -> bytes:
    # A buffered stream would make room for ``most`` bytes, for each file.
    if expected >= most:
        return b""
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:
        return data  # less than was asked for: that was all
    parts = [data]
    size = len(data)
    while data and size < most:
        data = os.read(descriptor, min(_BLOCK, most - size))
        parts.append(data)
        size += len(data)
    return b"".join(parts)
