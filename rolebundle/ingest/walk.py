"""Lists the files below a folder, and reads a file safely.

Symbolic links are never followed. A target inside the folder is read under its own path, and a
target outside is not read.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from rolebundle import system
from rolebundle.contracts.ingest import Root, Skipped
from rolebundle.errors import DocumentError, RolebundleError, with_detail
from rolebundle.ingest.manifests import MANIFEST_NAME, FileDefaults, Manifest
from rolebundle.resources import data_file, inverted
from rolebundle.storage.file import BESIDE_A_CORPUS, COMPANIONS, PUBLISHED_MANIFEST
from rolebundle.text.gitignore import GitIgnore
from rolebundle.text.paths import matches, path_within
from rolebundle.text.references import may_be_stored

DEFAULT_SIZE_CAP = 20 * 1024 * 1024

_MAX_DEPTH = 200
_BLOCK_BYTES = 1 << 16


class FileEntry(NamedTuple):
    """A file to read, with its defaults from the manifest and flags.

    ``location`` is its absolute path, ``path`` is relative to the root. ``size`` is in bytes,
    ``modified_ns`` the time of the last change in nanoseconds.
    """

    location: str
    path: str
    size: int
    modified_ns: int
    defaults: FileDefaults


def skipped_for(path: str, error: RolebundleError) -> Skipped:
    """The entry for a file or root that has an error: what is wrong, then what to do."""
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return Skipped(path, error.code, message)


def walk(
    root: Path,
    start: Path,
    flags: FileDefaults,
    manifest: Manifest | str = "",
    nested_flags: Mapping[str, FileDefaults] = MappingProxyType({}),
    excluded: frozenset[str] = frozenset(),
    *,
    ignore: bool = True,
) -> list[FileEntry | Skipped]:
    """Every file at or below ``start`` in path order, and everything that was skipped.

    Manifests that do not count are among it. What the manifest declares in vain is at the end, and
    so are its globs that match no file, if the walk sees all of its files.

    Args:
        root: the folder that paths are relative to.
        start: a file or folder at or below ``root``.
        flags: defaults of all files, from the command line.
        manifest: the manifest that counts, or why that of ``start`` does not.
        nested_flags: paths below ``start`` → the defaults that files there have instead of
            ``flags``.
        excluded: paths below ``start`` that are left out, without a remark.
        ignore: whether ignore files, and what is left out by default, count.
    """
    # One list for all folders: nested generators would pass each file through every level.
    context = _Walk(root, start, manifest, nested_flags, excluded, ignore)
    path = "" if start == root else start.relative_to(root).as_posix()
    if start.is_dir() and not start.is_symlink():
        rules = rules_above(root, start) if ignore else ()
        _walk_folder(context, str(start), path and f"{path}/", flags, rules)
    else:
        entry = _entry_for(context, path or start.name, str(start), start.lstat(), flags)
        context.entries.append(entry)
    return context.entries + context.notes()


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
        if _left_out(str(folder), names, rules, ignore=ignore, is_folder=is_folder):
            return True
        if ignore and is_folder and not _ENVIRONMENT_FILES.isdisjoint(names_in(folder)):
            return True
    return False


@dataclass(slots=True)
class _Walk:
    """What is the same for all folders of a walk, and what it has found."""

    root: Path
    start: Path
    manifest: Manifest | str
    nested_flags: Mapping[str, FileDefaults]
    excluded: frozenset[str]
    ignore: bool
    entries: list[FileEntry | Skipped] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """Claim of the manifest → the number of files for which it is refused."""
    matched: set[str] = field(default_factory=set)
    """The globs of the manifest that match a file."""
    defaults: dict[tuple[int, ...], tuple[FileDefaults, tuple[str, ...]]] = field(
        default_factory=dict
    )
    """Flags and matching rules → what :meth:`Manifest.defaults` says; the same for most files."""

    def unused_manifest(self, folder: str, path: str) -> None:
        """Note a manifest that was found, unless it is the one that counts."""
        manifest = self.manifest
        reason = "only that of an ingested folder counts"
        if isinstance(manifest, str):
            reason = manifest if manifest and folder == str(self.start) else reason
        elif folder == str(manifest.folder):
            return
        message = f"{path}: not used, because {reason}"
        self.entries.append(Skipped(path, "manifest_ignored", message))

    def notes(self) -> list[Skipped]:
        """What the manifest declared in vain, and its globs without a file."""
        if isinstance(self.manifest, str):
            return []
        folder = self.manifest.folder
        # Relative to the root if it lies there.
        name = MANIFEST_NAME if folder == self.root else str(folder / MANIFEST_NAME)
        notes = [
            Skipped(name, "claim_refused", f"{name}: refused for {count} files: {claim}")
            for claim, count in self.refused.items()
        ]
        if self.start != folder or self.excluded:
            return notes
        file = self.manifest.file
        for glob in dict.fromkeys([*file.ignore, *(rule.glob for rule in file.rule)]):
            if glob not in self.matched:
                message = f"{name}: {glob!r} matches no file; for a folder, write FOLDER/**"
                notes.append(Skipped(name, "glob_matches_nothing", message))
        return notes


def _walk_folder(
    context: _Walk, location: str, prefix: str, folder_flags: FileDefaults, rules: tuple[Rules, ...]
) -> None:
    result, ignore = context.entries, context.ignore
    try:
        with os.scandir(location) as listing:
            entries = sorted(listing, key=attrgetter("name"))
    except OSError as error:
        path = prefix.rstrip("/") or "."
        step = with_detail("the folder cannot be listed; check its permissions", error.strerror)
        result.append(Skipped(path, "unreadable_folder", f"{path}: {step}"))
        return
    names = [entry.name for entry in entries]
    if ignore:
        if location != str(context.start) and not _ENVIRONMENT_FILES.isdisjoint(names):
            result.append(Skipped(prefix, "ignored", "virtual environment"))
            return
        if not _IGNORE_FILES.isdisjoint(names):
            rules = rules_of(location, prefix, frozenset(names), rules)
    for entry in entries:
        name = entry.name
        path = prefix + name
        if entry.path in context.excluded:
            continue
        if name == MANIFEST_NAME:
            context.unused_manifest(location, path)
            continue
        status = _status(entry, path)
        if isinstance(status, Skipped):
            result.append(status)
            continue
        flags = context.nested_flags.get(entry.path, folder_flags)
        mode = status.st_mode
        is_folder = stat.S_ISDIR(mode)
        reason = _left_out(entry.path, names, rules, ignore=ignore, is_folder=is_folder)
        if reason and not stat.S_ISLNK(mode):
            result.append(Skipped(f"{path}/" if is_folder else path, "ignored", reason))
        elif not is_folder:
            result.append(_entry_for(context, path, entry.path, status, flags))
        elif prefix.count("/") >= _MAX_DEPTH:
            result.append(Skipped(f"{path}/", "too_deep", f"more than {_MAX_DEPTH} folders deep"))
        else:
            _walk_folder(context, entry.path, f"{path}/", flags, rules)


def _status(entry: os.DirEntry[str], path: str) -> os.stat_result | Skipped:
    if not (entry.name.isascii() or may_be_stored(entry.name)):
        return Skipped(path, "bad_name", "its name is not valid text; rename it")
    try:
        return entry.stat(follow_symlinks=False)
    except OSError as error:
        return skipped_for(path, _unreadable(path, error))


def _left_out(
    path: str, siblings: Collection[str], rules: Sequence[Rules], *, ignore: bool, is_folder: bool
) -> str:
    """Why a file or folder is left out; empty if it is not."""
    name = path.rpartition(os.sep)[2]
    if name.startswith("."):
        return HIDDEN_FOLDER if is_folder else HIDDEN_FILE
    if not is_folder and (reason := of_no_person(name, siblings)):
        return reason
    reason = reason_for_name(name, siblings, is_folder=is_folder) if ignore else ""
    return reason or ignored_by(rules, path + os.sep * is_folder)


def _entry_for(
    context: _Walk, path: str, location: str, status: os.stat_result, flags: FileDefaults
) -> FileEntry | Skipped:
    if stat.S_ISLNK(status.st_mode):
        return _link(context.root, Path(location), path)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not_a_file", "not a regular file")
    if reason := _left_out(location, (), (), ignore=False, is_folder=False):
        return Skipped(path, "ignored", reason)
    manifest = context.manifest
    if isinstance(manifest, Manifest):
        inner_path = path_within(location, str(manifest.folder))
        for glob in manifest.file.ignore:
            if matches(glob, inner_path):
                context.matched.add(glob)
                return Skipped(path, "ignored", f"the manifest ignores {glob}")
        rules = [rule for rule in manifest.file.rule if matches(rule.glob, inner_path)]
        context.matched.update(rule.glob for rule in rules)
        key = (id(flags), *map(id, rules))
        if key not in context.defaults:
            context.defaults[key] = manifest.defaults(flags, rules)
        flags, refused = context.defaults[key]
        context.refused.update(refused)
    return FileEntry(location, path, status.st_size, status.st_mtime_ns, flags)


def _link(root: Path, path: Path, relative: str) -> Skipped:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return Skipped(relative, "broken_link", "a symbolic link without a target")
    if target.is_relative_to(root.resolve()):
        return Skipped(relative, "link", "a symbolic link; its target is read under its own path")
    return Skipped(relative, "escapes_root", "a symbolic link to a target outside the folder")


def read_bytes(location: str, path: str, size_cap: int) -> bytes:
    """The content of a regular file.

    The file is opened without following a link and checked by its descriptor. So a file that is
    replaced by a link after it was listed is not read.

    Raises:
        DocumentError: ``unreadable``, ``not_a_file`` or ``too_large``.
    """
    try:
        with system.open_itself(location) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DocumentError("not_a_file", f"{path}: not a regular file", "leave it out")
            # As large as it was. Of some file systems, files have no size.
            is_large = status.st_size > size_cap
            data = b"" if is_large else file.read(max(status.st_size, _BLOCK_BYTES))
    except OSError as error:
        raise _unreadable(path, error) from error
    size = status.st_size if is_large else len(data)
    if size > size_cap:
        problem = f"{path}: {size:,} bytes, over the cap of {size_cap:,}"
        step = "raise it with --max-size, or leave the file out"
        raise DocumentError("too_large", problem, step)
    return data


def _unreadable(path: str, error: OSError) -> DocumentError:
    step = with_detail("check its permissions and the disk", error.strerror)
    return DocumentError("unreadable", f"{path}: it cannot be opened or read", step)


# -- ignore --
#
# What a walk leaves out: hidden names, what ignore files name, and what tools have generated.
#
# Ignore files are `.gitignore`, `.ignore` and a checkout's `.git/info/exclude`, with git's rules:
# the last pattern that matches counts, files of inner folders count before those of outer ones,
# `.ignore` before `.gitignore`, and a checkout does not take over the `.gitignore` files above it.
# What the user names is never left out itself.


HIDDEN_FILE = "hidden file"
HIDDEN_FOLDER = "hidden folder"
_IGNORE_FILES = frozenset({".git", ".gitignore", ".ignore"})
_ENVIRONMENT_FILES = frozenset({"pyvenv.cfg", "conda-meta"})
"""Files of which a virtual environment has one."""
_LEFT_OUT = data_file(__file__, "left_out.toml")
_FILES = {**inverted(_LEFT_OUT["files"]), PUBLISHED_MANIFEST: "published replica"}
_MINIFIED = tuple(_LEFT_OUT["minified"].split())
_OF_PROGRAMS = re.compile(r"~\$.*|(?:eh)?thumbs\.db|desktop\.ini|icon\r", re.IGNORECASE)
"""Lock files of office programs, and what file managers leave."""
_MAX_BYTES = 1 << 20


Rules = tuple[GitIgnore, str, bool, str]
"""The patterns of one ignore file; its path for reports; whether a checkout below does not take it
over; and its folder."""


def ignored_by(rules: Sequence[Rules], location: str) -> str:
    """Why ignore files leave out a path; empty if they do not.

    Args:
        rules: those of the folders above it, the outermost first.
        location: its absolute path, with a slash at the end if it is a folder.
    """
    for patterns, name, _, folder in reversed(rules):
        decision = patterns.decide(path_within(location, folder))
        if decision is not None:
            is_left_out, pattern = decision
            return f"{name}: {pattern}" if is_left_out else ""
    return ""


def of_no_person(name: str, siblings: Iterable[str]) -> str:
    """Why a file has nothing that a person wrote; empty if it may have."""
    database = next((name.removesuffix(end) for end in COMPANIONS if name.endswith(end)), "")
    if database and database in set(siblings):
        return "part of a database"
    return "file of a program" if _OF_PROGRAMS.fullmatch(name) else ""


def reason_for_name(name: str, siblings: Iterable[str], *, is_folder: bool) -> str:
    """Why a file or folder is left out by its name and those beside it; empty if it is not."""
    if not is_folder:
        return "minified code" if name.endswith(_MINIFIED) else _FILES.get(name, "")
    if name in _LEFT_OUT["generated"]:
        return str(_LEFT_OUT["generated"][name])
    for suffix, reason in BESIDE_A_CORPUS.items():
        if name.endswith(suffix) and name.removesuffix(suffix) in set(siblings):
            return reason
    signs = _LEFT_OUT["build"].get(name, "").split()
    return "build output" if set(signs).intersection(siblings) else ""


def rules_of(
    location: str, path_prefix: str, names: frozenset[str], above: tuple[Rules, ...]
) -> tuple[Rules, ...]:
    """The rules that hold in a folder: those above it, and those of its own ignore files.

    Args:
        location: the folder.
        path_prefix: how its path is shown, with a slash at its end.
        names: the names in it.
        above: the rules of the folder above.
    """
    files: list[str] = [name for name in (".gitignore", ".ignore") if name in names]
    rules = list(above)
    if ".git" in names:
        rules = [rules_above for rules_above in above if not rules_above[2]]
        files.insert(0, ".git/info/exclude")
    for name in files:
        content = _content(Path(location, name)).decode("utf-8-sig", "replace")
        if patterns := GitIgnore(content):
            rules.append((patterns, path_prefix + name, name != ".ignore", location))
    return tuple(rules)


def rules_above(base: Path, start: Path) -> tuple[Rules, ...]:
    """The rules of the folders above the start of a walk.

    They begin at the top of its checkout, or else at the base. If they leave out the start, they do
    not count: the user has named it.

    Args:
        base: the folder that paths are relative to.
        start: the base, or a folder or file below it.
    """
    if (start / ".git").exists():
        return ()
    top = next((folder for folder in start.parents if (folder / ".git").exists()), base)
    rules: tuple[Rules, ...] = ()
    path = [*(folder for folder in reversed(start.parents) if folder.is_relative_to(top)), start]
    for folder, below in pairwise(path):
        rules = rules_of(str(folder), f"{folder}{os.sep}", names_in(folder), rules)
        if ignored_by(rules, f"{below}{os.sep if below.is_dir() else ''}"):
            rules = ()
    return rules


def names_in(folder: Path) -> frozenset[str]:
    """The names in a folder; none if it cannot be read."""
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - the names are enough
    except OSError:
        return frozenset()


def _content(path: Path) -> bytes:
    """The content of a small regular file; empty if it cannot be read, or is a link."""
    try:
        return read_bytes(str(path), str(path), _MAX_BYTES)
    except (DocumentError, ValueError):
        return b""
