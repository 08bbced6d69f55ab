"""Finding files below a folder, and reading each one once, safely.

Symbolic links are never followed: what they point to inside the folder is read at its own place,
and what lies outside of it is not read at all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rolebundle.errors import DocumentError
from rolebundle.ingest.metadata import (
    MANIFEST_NAME,
    FileDefaults,
    Manifest,
    file_defaults,
    load_manifest,
    matches,
)

DEFAULT_SIZE_CAP = 20 * 1024 * 1024

_NEVER = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read, with what manifests and flags say about it."""

    location: str
    path: str
    defaults: FileDefaults
    ignore_keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was not taken, with a code and the reason."""

    path: str
    code: str
    message: str


def walk(root: Path, start: Path, flags: FileDefaults) -> Iterator[FoundFile | Skipped]:
    """Every file at or below ``start``, in path order, and everything that was passed over.

    Args:
        root: the folder that paths are relative to; it holds the outermost manifest.
        start: a file or folder at or below ``root``.
        flags: what the command line says about every file.

    Raises:
        ConfigurationError: a manifest on the way is wrong.
    """
    manifests = [(root, load_manifest(root))]
    folder = root
    for part in start.relative_to(root).parts[:-1] if start != root else ():
        folder = folder / part
        manifests.append((folder, load_manifest(folder)))
    if start.is_dir() and not start.is_symlink():
        if start != root:
            manifests.append((start, load_manifest(start)))
        yield from _walk_folder(root, start, manifests, flags)
    else:
        yield _judged(root, start, start.lstat(), manifests, flags)


def _walk_folder(
    root: Path,
    folder: Path,
    manifests: list[tuple[Path, Manifest]],
    flags: FileDefaults,
) -> Iterator[FoundFile | Skipped]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield Skipped(_relative(root, folder), "unreadable_folder", error.strerror or str(error))
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name == MANIFEST_NAME:
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            yield Skipped(_relative(root, path), "unreadable", error.strerror or str(error))
            continue
        if stat.S_ISDIR(status.st_mode):
            if entry.name.startswith(".") or entry.name in _NEVER:
                yield Skipped(_relative(root, path) + "/", "ignored", "hidden or generated folder")
            else:
                inner = [*manifests, (path, load_manifest(path))]
                yield from _walk_folder(root, path, inner, flags)
        else:
            yield _judged(root, path, status, manifests, flags)


def _judged(
    root: Path,
    path: Path,
    status: os.stat_result,
    manifests: list[tuple[Path, Manifest]],
    flags: FileDefaults,
) -> FoundFile | Skipped:
    relative = _relative(root, path)
    if stat.S_ISLNK(status.st_mode):
        return _link(root, path, relative)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(relative, "not_a_file", "not a regular file")
    if path.name.startswith("."):
        return Skipped(relative, "ignored", "hidden file")
    values, reader, separator = flags.values, flags.reader, flags.separator
    ignore_keys: frozenset[str] = frozenset()
    for folder, manifest in manifests:
        inside = _relative(folder, path)
        for glob in manifest.ignore:
            if matches(glob, inside):
                return Skipped(relative, "ignored", f"the manifest ignores {glob}")
        said = file_defaults(manifest, inside, values)
        values, reader, separator = (
            said.values,
            said.reader or reader,
            said.separator or separator,
        )
        ignore_keys |= manifest.ignore_keys
    return FoundFile(str(path), relative, FileDefaults(values, reader, separator), ignore_keys)


def _link(root: Path, path: Path, relative: str) -> Skipped:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return Skipped(relative, "broken_link", "a symbolic link that leads nowhere or in a circle")
    if target.is_relative_to(root.resolve()):
        return Skipped(relative, "link", "a symbolic link; its target is read at its own place")
    return Skipped(relative, "escapes_root", "a symbolic link that leads out of the folder")


def _relative(folder: Path, path: Path) -> str:
    return "." if path == folder else path.relative_to(folder).as_posix()


def read_bytes(location: str, path: str, size_cap: int) -> bytes:
    """The content of a regular file; what is returned is what is hashed.

    Opened without following a link and judged by its descriptor, so that a file which is swapped
    after it was found is still not followed out of the folder.

    Raises:
        DocumentError: ``unreadable``, ``not_a_file`` or ``too_large``.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(location, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise DocumentError("unreadable", f"{path}: {error.strerror}", "check the file") from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DocumentError("not_a_file", f"{path}: not a regular file", "leave it out")
        try:
            # One byte over the cap tells a file that grows while it is read.
            data = stream.read(size_cap + 1) if status.st_size <= size_cap else b""
        except OSError as error:
            raise DocumentError("unreadable", f"{path}: {error.strerror}", "check it") from error
        if status.st_size > size_cap or len(data) > size_cap:
            raise DocumentError(
                "too_large",
                f"{path}: {max(status.st_size, len(data)):,} bytes, over the cap of {size_cap:,}",
                "raise it with --max-size, or leave the file out",
            )
        return data
