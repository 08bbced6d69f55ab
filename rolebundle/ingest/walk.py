"""Lists the files below a folder, and reads a file safely.

Symbolic links are never followed. A target inside the folder is read under its own path, and a
target outside is not read.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.contracts.roots import Root
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.ignore import (
    FILE_NAMES,
    HIDDEN_FILE,
    HIDDEN_FOLDER,
    MARKS,
    MINIFIED,
    Rules,
    ignored_by,
    names_in,
    reason_for_content,
    reason_for_name,
    rules_above,
    rules_of,
)
from rolebundle.ingest.manifest_file import EMPTY_MANIFEST, FileDefaults, Manifest, with_manifest
from rolebundle.ingest.manifests import (
    MANIFEST_NAME,
    IgnoredManifest,
    ManifestPolicy,
    check_encoding_of,
    read_manifest,
)
from rolebundle.text.globs import matches, suggest_glob

DEFAULT_SIZE_CAP = 20 * 1024 * 1024

_MAX_DEPTH = 200
_BLOCK_BYTES = 1 << 16
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_NO_KEYS: frozenset[str] = frozenset()
_NO_FLAGS: Mapping[str, FileDefaults] = MappingProxyType({})


class FileEntry(NamedTuple):
    """A file to read, with its defaults from manifests and flags.

    ``location`` is its absolute path, ``path`` is relative to the root. ``size`` is in bytes,
    ``modified_ns`` the time of the last change in nanoseconds.
    """

    location: str
    path: str
    size: int
    modified_ns: int
    defaults: FileDefaults
    ignore_keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, folder or record that was not ingested, with a code and the reason.

    Also a remark on a file that was ingested, with the code ``note``. A message may begin with the
    path.
    """

    path: str
    code: str
    message: str


def skipped_for(path: str, error: DocumentError) -> Skipped:
    """The entry for a file that has an error: what is wrong, then what to do."""
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return Skipped(path, error.code, message)


def walk(
    root: Path,
    start: Path,
    flags: FileDefaults,
    policy: ManifestPolicy | None = None,
    nested_flags: Mapping[str, FileDefaults] = _NO_FLAGS,
    excluded: frozenset[str] = _NO_KEYS,
    *,
    ignore: bool = True,
) -> list[FileEntry | Skipped]:
    """Every file at or below ``start`` in path order, and everything that was skipped.

    Manifests that do not count, and what the others declare in vain, are at the end. So are globs
    that match no file, if the walk sees all files of their manifest.

    Args:
        root: the folder that paths are relative to, with the outermost manifest.
        start: a file or folder at or below ``root``.
        flags: defaults of all files, from the command line.
        policy: which manifests count.
        nested_flags: paths below ``start`` → the defaults that files there have instead of
            ``flags``.
        excluded: paths below ``start`` that are left out, without a remark.
        ignore: whether ignore files, and what is left out by default, count.

    Raises:
        ConfigurationError: a manifest is invalid, or the encoding of names is not UTF-8.
    """
    findings = _Findings(policy or ManifestPolicy())
    folder = _Folder(root, root, "", _own_manifest(root, root, "", findings), findings)
    for part in start.relative_to(root).parts[:-1]:
        folder = folder.child(part)
    if start != root:
        findings.complete.clear()
    # One list for all folders: nested generators would pass each file through every level.
    context = _Walk(nested_flags, excluded, ignore)
    if start.is_dir() and not start.is_symlink():
        if start != root:
            folder = folder.child(start.name)
        rules = rules_above(root, start) if ignore else ()
        _walk_folder(folder, flags, context, rules, is_start=True)
    else:
        entry = _entry_for(folder, start.name, str(start), start.lstat(), flags)
        context.entries.append(entry)
    notes = findings.notes()
    if not excluded:
        notes += findings.unmatched_globs(context.entries)
    return context.entries + notes


def leaves_out(root: Root, path: Path) -> bool:
    """Whether a walk of a root leaves out a file or folder below it."""
    folder = Path(root.location)
    ignore = root.options.ignore
    rules = rules_above(folder, folder) if ignore else ()
    for part in path.relative_to(folder).parts:
        names = names_in(folder)
        if ignore:
            rules = rules_of(str(folder), f"{folder}{os.sep}", names, rules)
        folder /= part
        is_folder = folder.is_dir()
        if _reason(part, str(folder), names, rules, is_folder=is_folder, ignore=ignore):
            return True
        if ignore and is_folder and reason_for_content(str(folder), names_in(folder)):
            return True
    return False


@dataclass(slots=True)
class _Walk:
    """What is the same for all folders of a walk, and what it has found."""

    nested_flags: Mapping[str, FileDefaults]
    excluded: frozenset[str]
    ignore: bool
    entries: list[FileEntry | Skipped] = field(default_factory=list)


@dataclass(slots=True)
class _Findings:
    """What a walk finds out about manifests."""

    policy: ManifestPolicy
    ignored: list[Skipped] = field(default_factory=list)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(path of a manifest, claim) → the number of files for which it is refused."""
    complete: list[_OwnManifest] = field(default_factory=list)
    """The manifests of which the walk sees all files."""
    matched: set[tuple[str, str]] = field(default_factory=set)
    """(path of a manifest, glob) that matches a file."""

    def notes(self) -> list[Skipped]:
        refused = [
            Skipped(path, "claim_refused", f"{path}: refused for {count} files: {claim}")
            for (path, claim), count in self.refused.items()
        ]
        return [*self.ignored, *refused]

    def unmatched_globs(self, entries: Iterable[FileEntry | Skipped]) -> list[Skipped]:
        """A note on each glob without a file, which may be a mistake of the owner."""
        globs = [
            (own, place, glob)
            for own in self.complete
            for place, glob in own.manifest.globs()
            if (own.path, glob) not in self.matched
        ]
        paths = [entry.path for entry in entries] if globs else []
        notes = []
        for own, place, glob in globs:
            prefix = own.path[: own.prefix_length]
            inner = [path[len(prefix) :] for path in paths if path.startswith(prefix)]
            suggestion = suggest_glob(glob, inner)
            if suggestion or place != "ignore":  # What is ignored may well be absent.
                guess = f"; did you mean {suggestion!r}?" if suggestion else ""
                message = f"{own.path}: {place}: {glob!r} matches no file{guess}"
                notes.append(Skipped(own.path, "glob_matches_nothing", message))
        return notes


class _OwnManifest(NamedTuple):
    """A manifest, its path from the root, and the length of the path of its folder."""

    prefix_length: int
    path: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder and the manifests that apply to it, the outermost first.

    ``prefix`` is its path from the root with a slash at its end.
    """

    root: Path
    location: Path
    prefix: str
    manifests: tuple[_OwnManifest, ...]
    findings: _Findings

    def child(self, name: str) -> _Folder:
        location, prefix = self.location / name, f"{self.prefix}{name}/"
        manifests = self.manifests + _own_manifest(self.root, location, prefix, self.findings)
        return _Folder(self.root, location, prefix, manifests, self.findings)


def _own_manifest(
    root: Path, location: Path, prefix: str, findings: _Findings
) -> tuple[_OwnManifest, ...]:
    manifest = read_manifest(location, root, findings.policy)
    path = prefix + MANIFEST_NAME
    if isinstance(manifest, IgnoredManifest):
        message = f"{path}: ignored, because {manifest.reason}"
        findings.ignored.append(Skipped(path, "manifest_ignored", message))
        return ()
    if manifest is EMPTY_MANIFEST:
        return ()
    own = _OwnManifest(len(prefix), path, manifest)
    findings.complete.append(own)
    return (own,)


def _walk_folder(
    folder: _Folder,
    folder_flags: FileDefaults,
    context: _Walk,
    rules: tuple[Rules, ...],
    *,
    is_start: bool = False,
) -> None:
    result, ignore, excluded = context.entries, context.ignore, context.excluded
    prefix, nested_flags = folder.prefix, context.nested_flags
    try:
        with os.scandir(folder.location) as listing:
            entries = sorted(listing, key=attrgetter("name"))
    except OSError as error:
        path = prefix.rstrip("/") or "."
        step = with_detail("check its permissions", error.strerror)
        result.append(
            Skipped(path, "unreadable_folder", f"{path}: the folder cannot be listed; {step}")
        )
        return
    names = [entry.name for entry in entries]
    if ignore and (marks := MARKS.intersection(names)):
        location = str(folder.location)
        if not is_start and (reason := reason_for_content(location, marks)):
            result.append(Skipped(prefix, "ignored", reason))
            return
        rules = rules_of(location, prefix, marks, rules)
    left_out, endings = (FILE_NAMES, MINIFIED) if ignore else (_NO_KEYS, ())
    is_plain = not folder.manifests and not rules
    for entry in entries:
        name = entry.name
        path = prefix + name
        if name == MANIFEST_NAME or (excluded and entry.path in excluded):
            continue
        if not (name.isascii() or _is_valid_text(name)):
            result.append(Skipped(path, "bad_name", "its name is not valid text; rename it"))
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            result.append(skipped_for(path, _unreadable(path, error)))
            continue
        flags = nested_flags.get(entry.path, folder_flags) if nested_flags else folder_flags
        mode = status.st_mode
        is_left_out = name[0] == "." or name in left_out or name.endswith(endings)
        if is_plain and stat.S_ISREG(mode) and not is_left_out:
            # The same as below at half the cost; true of nearly all files of most folders.
            result.append(
                FileEntry(entry.path, path, status.st_size, status.st_mtime_ns, flags, _NO_KEYS)
            )
            continue
        is_folder = stat.S_ISDIR(mode)
        reason = _reason(name, entry.path, names, rules, is_folder=is_folder, ignore=ignore)
        if reason and not stat.S_ISLNK(mode):
            result.append(Skipped(f"{path}/" if is_folder else path, "ignored", reason))
        elif not is_folder:
            result.append(_entry_for(folder, name, entry.path, status, flags))
        elif prefix.count("/") >= _MAX_DEPTH:
            result.append(Skipped(f"{path}/", "too_deep", f"more than {_MAX_DEPTH} folders deep"))
        else:
            _walk_folder(folder.child(name), flags, context, rules)


def _reason(
    name: str,
    location: str,
    siblings: Iterable[str],
    rules: tuple[Rules, ...],
    *,
    is_folder: bool,
    ignore: bool,
) -> str:
    """Why a file or folder is left out; empty if it is not."""
    if name.startswith("."):
        return HIDDEN_FOLDER if is_folder else HIDDEN_FILE
    if not ignore:
        return ""
    reason = reason_for_name(name, siblings, is_folder=is_folder)
    if reason or not rules:
        return reason
    return ignored_by(rules, location + os.sep if is_folder else location)


def _entry_for(
    folder: _Folder, name: str, location: str, status: os.stat_result, flags: FileDefaults
) -> FileEntry | Skipped:
    path = folder.prefix + name
    if stat.S_ISLNK(status.st_mode):
        return _link(folder.root, Path(location), path)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not_a_file", "not a regular file")
    if name.startswith("."):
        return Skipped(path, "ignored", HIDDEN_FILE)
    defaults = flags
    ignore_keys = _NO_KEYS
    for prefix_length, manifest_path, manifest in folder.manifests:
        inner_path = path[prefix_length:]
        for glob in manifest.ignore:
            if matches(glob, inner_path):
                folder.findings.matched.add((manifest_path, glob))
                return Skipped(path, "ignored", f"the manifest ignores {glob}")
        rules = [rule for rule in manifest.rules if matches(rule.glob, inner_path)]
        folder.findings.matched.update((manifest_path, rule.glob) for rule in rules)
        defaults, refused = with_manifest(
            defaults, manifest, rules, manifest_path, is_owner=not prefix_length
        )
        folder.findings.refused.update((manifest_path, claim) for claim in refused)
        ignore_keys |= manifest.ignore_keys
    return FileEntry(location, path, status.st_size, status.st_mtime_ns, defaults, ignore_keys)


def _link(root: Path, path: Path, relative: str) -> Skipped:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return Skipped(relative, "broken_link", "a symbolic link without a target")
    if target.is_relative_to(root.resolve()):
        return Skipped(relative, "link", "a symbolic link; its target is read under its own path")
    return Skipped(relative, "escapes_root", "a symbolic link to a target outside the folder")


def _is_valid_text(name: str) -> bool:
    check_encoding_of(name)
    # Python decodes invalid bytes of file names to unpaired surrogates.
    return not any("\ud800" <= character <= "\udfff" for character in name)


def read_bytes(location: str, path: str, size_cap: int) -> bytes:
    """The content of a regular file.

    The file is opened without following a link and checked by its descriptor. So a file that is
    replaced by a link after it was listed is not read.

    Raises:
        DocumentError: ``unreadable``, ``not_a_file`` or ``too_large``.
    """
    try:
        descriptor = os.open(location, _OPEN_FLAGS)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DocumentError("not_a_file", f"{path}: not a regular file", "leave it out")
        # One byte more than the cap, to detect a file that grows while it is read.
        data = _read(descriptor, status.st_size, size_cap + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)
    if status.st_size > size_cap or len(data) > size_cap:
        raise DocumentError(
            "too_large",
            f"{path}: {max(status.st_size, len(data)):,} bytes, over the cap of {size_cap:,}",
            "raise it with --max-size, or leave the file out",
        )
    return data


def _unreadable(path: str, error: OSError) -> DocumentError:
    step = with_detail("check its permissions and the disk", error.strerror)
    return DocumentError("unreadable", f"{path}: it cannot be opened or read", step)


def _read(descriptor: int, expected: int, max_bytes: int) -> bytes:
    # A buffered stream would allocate ``max_bytes`` for each file.
    if expected >= max_bytes:
        return b""
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:
        return data  # fewer bytes than requested: this is the end of the file
    parts = [data]
    size = len(data)
    while data and size < max_bytes:
        data = os.read(descriptor, min(_BLOCK_BYTES, max_bytes - size))
        parts.append(data)
        size += len(data)
    return b"".join(parts)
