"""Overlay files on disk: where they lie, what they inherit, and which exactly was used.

A file that is not wholly right gives an error and no overlay: policy fails closed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, NoReturn, TypeVar

from rolebundle.contracts.overlay import ROLE_ID_PATTERN, Overlay
from rolebundle.errors import OverlayError
from rolebundle.policy.overlay_json import (
    MAX_BYTES,
    Problem,
    Values,
    merge,
    nearest,
    parse,
    validate,
)
from rolebundle.resources import data_folder

ENVIRONMENT = "ROLEBUNDLE_OVERLAYS"
MAX_PARENTS = 8

_SUFFIX = ".json"
_T = TypeVar("_T")


class ResolvedOverlay(NamedTuple):
    """An overlay with all that it inherits.

    ``digest`` names its meaning: equal for equal policies however their files are written.
    ``ancestors`` are the files that it extends, nearest first.
    """

    overlay: Overlay
    digest: str
    path: Path
    ancestors: tuple[Path, ...] = ()


class OverlayEntry(NamedTuple):
    """One line of the list of overlays. ``problem`` is empty where it would load."""

    role_id: str
    label: str
    mission: str
    path: Path
    extends: str | None
    problem: str = ""


class _Resolution(NamedTuple):
    values: Values
    overlay: Overlay
    ancestors: tuple[Path, ...]


def overlay_folders(options: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Where overlays are looked for: the given folders, else the environment's, then the shipped.

    Raises:
        OverlayError: ``overlay_folder_missing``, where a named folder is not there.
    """
    named, origin = tuple(options), "--overlay-dir"
    if not named:
        entries = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
        named, origin = tuple(Path(entry) for entry in entries if entry), ENVIRONMENT
    # Path.expanduser raises for a user that does not exist; this leaves the name as it is.
    folders = tuple(Path(os.path.expanduser(folder)) for folder in named)  # noqa: PTH111
    for folder in folders:
        # To go on without it would be to govern by another policy than the one asked for.
        if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises where this says no
            raise OverlayError(
                "overlay_folder_missing",
                f"{folder}: there is no such folder of overlays",
                f"correct {origin}, or make the folder",
            )
    return (*folders, data_folder("overlays"))


def load_role(role_id: str, folders: Sequence[Path]) -> ResolvedOverlay:
    """The overlay of a role, from the first folder that has its file.

    Raises:
        OverlayError: there is none, or it or one that it extends is malformed.
    """
    path = locate(role_id, folders)
    if path is None:
        _raise_missing(f"the role {role_id!r} has no overlay", role_id, folders)
    return _finished(_named(role_id, path, folders, ()), path)


def load_file(path: Path, folders: Sequence[Path]) -> ResolvedOverlay:
    """The overlay in a file, whatever the file is called.

    What it extends is looked for beside it, then in the folders. A file that the folders already
    have under its role's name is resolved as ``load_role`` would.

    Raises:
        OverlayError: it is not there, or it or one that it extends is malformed.
    """
    return _finished(_resolve(path, _search(path, folders), ()), path)


def locate(role_id: str, folders: Sequence[Path]) -> Path | None:
    """The file of a role in the first folder that has one, or ``None``.

    Raises:
        OverlayError: ``bad_role_id`` before the disk is touched, or a folder cannot be read.
    """
    if not re.fullmatch(ROLE_ID_PATTERN, role_id):
        raise OverlayError(
            "bad_role_id",
            f"{role_id[:80]!r} is not a role id",
            "a role id has 1 to 64 of a-z 0-9 . _ - and begins with a letter or a digit",
        )
    for folder in folders:
        path = folder / f"{role_id}{_SUFFIX}"
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            # Not the next folder's: that would be another policy than the one meant.
            raise _unreadable(path, error.strerror or "cannot be read") from error
        return path
    return None


def found_by_name(path: Path, folders: Sequence[Path]) -> bool:
    """Whether this very file is what the folders have under its name."""
    if path.suffix != _SUFFIX:
        return False
    first = next((f / path.name for f in folders if os.path.lexists(f / path.name)), None)
    return first is not None and first.absolute() == path.absolute()


def problems_of(path: Path, folders: Sequence[Path]) -> list[Problem]:
    """All that keeps the overlay in a file from loading; empty where it loads."""
    try:
        values = parse(_read(path))
    except OverlayError as error:
        return [_as_problem("", error)]
    if isinstance(values, list):
        return values
    try:
        parent = _parent(values, path, _search(path, folders), ())
    except OverlayError as error:
        return [_as_problem("extends", error)]
    checked = validate(_inherited(values, parent))
    return checked if isinstance(checked, list) else []


def list_overlays(folders: Sequence[Path]) -> list[OverlayEntry]:
    """Every overlay that a role id finds, by role id, malformed ones with their problem."""
    found: dict[str, Path] = {}
    for folder in folders:
        for role_id in _role_ids(folder):
            found.setdefault(role_id, folder / f"{role_id}{_SUFFIX}")
    return [_entry(role_id, path, folders) for role_id, path in sorted(found.items())]


def digest_of(overlay: Overlay) -> str:
    """The digest of what an overlay means: neither key order nor layout nor defaults left out."""
    canonical = json.dumps(overlay.model_dump(), sort_keys=True, separators=(",", ":"))
    return blake2b(canonical.encode(), digest_size=16).hexdigest()


def _finished(resolution: _Resolution, path: Path) -> ResolvedOverlay:
    overlay = resolution.overlay
    return ResolvedOverlay(overlay, digest_of(overlay), path, resolution.ancestors)


def _named(
    role_id: str, path: Path, folders: Sequence[Path], chain: tuple[Path, ...]
) -> _Resolution:
    resolution = _resolve(path, folders, chain)
    if resolution.overlay.role_id != role_id:
        raise OverlayError(
            "overlay_name_mismatch",
            f"{path}: role_id: is {resolution.overlay.role_id!r}, and the file is called "
            f"{path.name!r}",
            f"rename the file to {resolution.overlay.role_id}{_SUFFIX}, or set role_id to "
            f"{role_id!r}",
        )
    return resolution


def _resolve(path: Path, folders: Sequence[Path], chain: tuple[Path, ...]) -> _Resolution:
    """The overlay in a file. ``chain`` holds the files that led here by ``extends``."""
    values = _or_raise(path, parse(_read(path)))
    parent = _parent(values, path, folders, chain)
    inherited = _inherited(values, parent)
    overlay = _or_raise(path, validate(inherited))
    return _Resolution(inherited, overlay, parent[1] if parent else ())


def _parent(
    values: Mapping[str, object], path: Path, folders: Sequence[Path], chain: tuple[Path, ...]
) -> tuple[Values, tuple[Path, ...]] | None:
    """What the values extend, resolved, and its files; ``None`` where they extend nothing."""
    role_id = values.get("extends")
    if not isinstance(role_id, str) or not re.fullmatch(ROLE_ID_PATTERN, role_id):
        return None  # Left out, or not a role id: then validation refuses it with its place.
    parent = locate(role_id, folders)
    if parent is None:
        _raise_missing(f"{path}: extends: the role {role_id!r} has no overlay", role_id, folders)
    chain = (*chain, path)
    if parent in chain:
        names = " → ".join(file.stem for file in (*chain[chain.index(parent) :], parent))
        raise OverlayError(
            "overlay_cycle",
            f"{path}: extends: goes in a circle: {names}",
            "take `extends` out of one of them",
        )
    if len(chain) > MAX_PARENTS:
        names = " → ".join(file.stem for file in (*chain, parent))
        raise OverlayError(
            "overlay_chain_too_long",
            f"{path}: extends: more than {MAX_PARENTS} overlays deep: {names}",
            "let it extend one of the first overlays of the chain",
        )
    resolution = _named(role_id, parent, folders, chain)
    return resolution.values, (parent, *resolution.ancestors)


def _inherited(values: Values, parent: tuple[Values, tuple[Path, ...]] | None) -> Values:
    return values if parent is None else merge(parent[0], values)


def _search(path: Path, folders: Sequence[Path]) -> tuple[Path, ...]:
    """The folders in which a file's parents are looked for."""
    return tuple(folders) if found_by_name(path, folders) else (path.parent, *folders)


def _read(path: Path) -> bytes:
    try:
        # A pipe or a device would keep us waiting.
        if not S_ISREG(path.stat().st_mode):
            raise _unreadable(path, "is not a regular file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise OverlayError(
            "overlay_missing",
            f"{path}: there is no such overlay file",
            "correct the path, or see `rolebundle overlay list`",
        ) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        raise _unreadable(path, "is not the name of a file") from error


def _role_ids(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error.strerror or "cannot be read") from error
    return [
        name.removesuffix(_SUFFIX)
        for name in names
        if name.endswith(_SUFFIX) and not name.startswith(".")
    ]


def _entry(role_id: str, path: Path, folders: Sequence[Path]) -> OverlayEntry:
    try:
        overlay = load_role(role_id, folders).overlay
    except OverlayError as error:
        return OverlayEntry(role_id, "", "", path, None, error.message)
    return OverlayEntry(role_id, overlay.label, overlay.mission, path, overlay.extends)


def _or_raise(path: Path, result: _T | list[Problem]) -> _T:
    if not isinstance(result, list):
        return result
    first = result[0]
    place = f"{first.place}: " if first.place else ""
    more = f" (and {len(result) - 1} more)" if len(result) > 1 else ""
    raise OverlayError(
        "overlay_malformed",
        f"{path}: {place}{first.message}{more}",
        f"{first.hint}; `rolebundle overlay lint` lists all that is wrong",
    )


def _as_problem(place: str, error: OverlayError) -> Problem:
    return Problem(place, error.code, error.message, error.hint)


def _unreadable(path: Path, reason: str) -> OverlayError:
    return OverlayError(
        "overlay_unreadable",
        f"{path}: {reason}",
        "make it a file that you may read, or take it out of the folder",
    )


def _raise_missing(what: str, role_id: str, folders: Sequence[Path]) -> NoReturn:
    known = sorted({name for folder in folders for name in _role_ids(folder)})
    raise OverlayError(
        "overlay_missing",
        f"{what} in {', '.join(map(str, folders)) or 'any folder'}{nearest(role_id, known)}",
        f"roles there: {', '.join(known) or 'none'}; name another folder with --overlay-dir",
    )
