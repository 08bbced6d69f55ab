"""Overlays: where they lie, how they are read and extended, and which sources their rules match."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG, S_IWOTH
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from rolebundle import system
from rolebundle.contracts.base import Place, did_you_mean, keys_at, mistakes_in
from rolebundle.contracts.documents import REMEMBERED_KIND, DocumentMetadata
from rolebundle.contracts.overlay import (
    ROLE_ID_PATTERN,
    WEIGHT_TOLERANCE,
    WEIGHTS,
    Overlay,
    OverlayFile,
    RetrievalPolicy,
    SourceRule,
)
from rolebundle.errors import OverlayError
from rolebundle.policy.policy_file import MAX_BYTES, Problem, parse, problem_of
from rolebundle.resources import data_folder
from rolebundle.storage.audit import canonical
from rolebundle.storage.digests import content_hash
from rolebundle.storage.documents import DocumentKind
from rolebundle.storage.file import overlays_path
from rolebundle.text.paths import compile_glob
from rolebundle.text.spellings import key_of

OVERLAYS_VARIABLE = "ROLEBUNDLE_OVERLAYS"

_SUFFIX = ".json"
OWN_KEYS = ("$schema", "role_id", "version", "extends", "notes")
"""The keys that a child never inherits."""

_NULL_HINT = (
    "leave the key out; null only removes what the overlay named by `extends` declares under "
    "the same name"
)
_T = TypeVar("_T")


class ResolvedOverlay(NamedTuple):
    """An overlay after inheritance.

    ``digest`` identifies its values. It does not depend on how the files are written. ``ancestors``
    are the files that it extends, nearest first. ``contents`` are those of the file and its
    ancestors. ``values`` are those of the files together, without defaults.
    """

    overlay: Overlay
    digest: str
    path: Path = Path()
    ancestors: tuple[Path, ...] = ()
    contents: tuple[bytes, ...] = ()
    values: Mapping[str, object] = MappingProxyType({})


def overlay_folders(options: Sequence[Path] = (), corpus: Path | None = None) -> tuple[Path, ...]:
    """Return the folders of overlays, in order of precedence.

    They are those in ``options``, or else those in $ROLEBUNDLE_OVERLAYS; then the corpus's own
    folder, ``NAME.overlays`` beside the corpus file, if it exists; and then the folder of overlays
    that comes with rolebundle.

    Raises:
        OverlayError: ``overlay_folder_missing``: one of the folders does not exist.
            ``overlay_folder_foreign``: the corpus's own folder can be changed by another user.
    """
    named, origin = tuple(options), "--overlay-dir"
    if not named:
        entries = os.environ.get(OVERLAYS_VARIABLE, "").split(os.pathsep)
        named, origin = tuple(Path(entry) for entry in entries if entry), OVERLAYS_VARIABLE
    # Path.expanduser raises for a user that does not exist; this leaves the name as it is.
    folders = tuple(Path(os.path.expanduser(folder)) for folder in named)  # noqa: PTH111
    for folder in folders:
        # Without this folder another policy than the intended one might apply.
        if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir may raise
            problem = f"{folder}: there is no such folder of overlays"
            step = f"correct {origin}, or make the folder"
            raise OverlayError("overlay_folder_missing", problem, step)
    own = overlays_path(corpus) if corpus is not None else None
    if own is not None and _is_own_folder(own):
        folders = (*folders, own)
    return (*folders, data_folder("overlays"))


def is_shipped(path: Path) -> bool:
    """Whether a file is an overlay of rolebundle, which is written for any corpus."""
    return path.parent == data_folder("overlays")


def _is_own_folder(folder: Path) -> bool:
    """Return whether a corpus has a folder of overlays.

    Raises:
        OverlayError: ``overlay_folder_foreign``: it belongs to another user, who could then change
            what a role may see.
    """
    try:
        # A link of another user could lead to any folder of this one.
        owners = {folder.lstat().st_uid, (status := folder.stat()).st_uid}
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        # Without permission for the folder that has it, the corpus cannot be opened, either.
        return False
    except OSError as error:
        raise _unreadable(folder, error.strerror or "cannot be read") from error
    if not S_ISDIR(status.st_mode):
        raise _unreadable(folder, "is not a folder")
    foreign = [*filter(system.is_foreign, owners)]
    if foreign or system.is_open_to_others(status, S_IWOTH):
        reason = f"it belongs to uid {min(foreign)}" if foreign else "every user may write to it"
        step = "make it a folder that only you can write to, or remove it"
        raise OverlayError("overlay_folder_foreign", f"{folder}: {reason}", step)
    return True


def load_role(role_id: str, folders: Sequence[Path]) -> ResolvedOverlay:
    """Return the overlay of a role, from the first folder that has its file.

    Raises:
        OverlayError: there is none, or it or one that it extends is malformed.
    """
    return _resolve_role(role_id, _found(role_id, folders), folders, ())


def load_file(path: Path, folders: Sequence[Path]) -> ResolvedOverlay:
    """Return the overlay in a file with any name.

    An overlay that it extends is searched for in the folder of the file, and then in the folders.
    If the folders have this very file under its name, the folder of the file has no precedence.

    Args:
        path: the file.
        folders: the folders of overlays.

    Raises:
        OverlayError: it does not exist, or it or one that it extends is malformed.
    """
    return _or_raise(path, _resolve(path, _parent_folders(path, folders), ()))


def locate(role_id: str, folders: Sequence[Path]) -> Path | None:
    """Return the file of a role in the first folder that has one, or ``None``.

    Raises:
        OverlayError: ``bad_role_id`` before a file of this name is looked for, or a folder cannot
            be read.
    """
    if not re.fullmatch(ROLE_ID_PATTERN, role_id):
        known = sorted({name for folder in folders for name in _role_ids(folder)})
        raise OverlayError(
            "bad_role_id",
            f"{role_id[:80]!r} is not a role id{did_you_mean(role_id.lower(), known)}",
            f"a role id has 1 to 64 of a-z 0-9 . _ - and begins with a letter or a digit; "
            f"roles there: {', '.join(known) or 'none'}",
        )
    for folder in folders:
        path = folder / f"{role_id}{_SUFFIX}"
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            # The next folder is not tried, because it may have another policy.
            raise _unreadable(path, error.strerror or "cannot be read") from error
        return path
    return None


def found_by_name(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether this file is the one that the folders have under its name."""
    if path.suffix != _SUFFIX:
        return False
    first = next((f / path.name for f in folders if os.path.lexists(f / path.name)), None)
    return first is not None and first.absolute() == path.absolute()


def problems_of(path: Path, folders: Sequence[Path]) -> list[Problem]:
    """Return all problems that prevent the overlay in a file from being loaded.

    For the arguments see :func:`load_file`.
    """
    try:
        result = _resolve(path, _parent_folders(path, folders), ())
    except OverlayError as error:
        return [Problem("", error.code, error.message, error.hint)]
    return result if isinstance(result, list) else []


def list_overlays(folders: Sequence[Path]) -> list[OverlayFile]:
    """Return the overlay of each role, sorted by role id. A malformed one has a ``problem``."""
    files = []
    # The first folder that has a role counts.
    found = {name: folder for folder in reversed(folders) for name in _role_ids(folder)}
    for role_id, folder in sorted(found.items()):
        fields = {"role_id": role_id, "label": "", "mission": "", "extends": None, "problem": ""}
        try:
            overlay = load_role(role_id, folders).overlay
            fields |= {name: getattr(overlay, name) for name in ("label", "mission", "extends")}
        except OverlayError as error:
            fields["problem"] = error.message
        files.append(
            OverlayFile.model_validate({**fields, "path": str(folder / f"{role_id}{_SUFFIX}")})
        )
    return files


def digest_of(overlay: Overlay) -> str:
    """Return the digest of an overlay.

    Key order, layout, written defaults and notes do not change it.
    """
    values = overlay.model_dump(exclude={"notes"})
    # Without the keys that the first version of the digest does not know, if they are not used.
    for name in ("preferred_sources", "allowed_sources", "forbidden_sources"):
        for rule in values["source_policy"][name]:
            if rule["path"] is None:
                del rule["path"]
    policy = values["retrieval_policy"]
    for name, default in (("diversity", "soft"), ("evidence", "optional")):
        if policy[name] == default:
            del policy[name]
    policy["prefer_newest"] = True  # A setting that only the first version of the digest knows.
    return content_hash(canonical(values))


def _resolve_role(
    role_id: str, path: Path, folders: Sequence[Path], descendants: tuple[Path, ...]
) -> ResolvedOverlay:
    """Resolve the overlay in the file of a role, and check that it has the role's id."""
    resolution = _or_raise(path, _resolve(path, folders, descendants))
    if resolution.overlay.role_id != role_id:
        raise OverlayError(
            "overlay_name_mismatch",
            f"{path}: role_id: is {resolution.overlay.role_id!r}, and the file is called "
            f"{path.name!r}",
            f"rename the file to {resolution.overlay.role_id}{_SUFFIX}, or set role_id to "
            f"{role_id!r}",
        )
    return resolution


def _resolve(
    path: Path, folders: Sequence[Path], descendants: tuple[Path, ...]
) -> ResolvedOverlay | list[Problem]:
    """Resolve the overlay in a file. Return all problems if it has any.

    Args:
        path: the file.
        folders: the folders in which its parents are searched for.
        descendants: the files that extend it, the one that was asked for first.

    Raises:
        OverlayError: the file cannot be read, or an overlay that it extends has a problem.
    """
    own = _parse(content := _read(path))
    if isinstance(own, list):
        return own
    parent = _resolve_parent(own, path, folders, (*descendants, path))
    contents = (content, *(parent.contents if parent else ()))
    checked = _check(contents)
    if isinstance(checked, list):
        return checked
    ancestors = (parent.path, *parent.ancestors) if parent else ()
    return checked._replace(path=path, ancestors=ancestors, contents=contents)


# Cached, because each request reads the files again, and they seldom change.
_parse = lru_cache(maxsize=64)(parse)


@lru_cache(maxsize=64)
def _check(contents: tuple[bytes, ...]) -> ResolvedOverlay | list[Problem]:
    """Merge and validate the contents of a file and of those that it extends, nearest first."""
    values: dict[str, object] = {}
    for content in reversed(contents):
        own = _parse(content)
        assert isinstance(own, dict), "its problems were returned before"
        values = share_weights(merge(values, own) if values else own, own)
    overlay = validate(values)
    if isinstance(overlay, list):
        return overlay
    return ResolvedOverlay(overlay, digest_of(overlay), values=values)


def _resolve_parent(
    values: Mapping[str, object], path: Path, folders: Sequence[Path], chain: tuple[Path, ...]
) -> ResolvedOverlay | None:
    """Resolve the parent of the overlay in a file. Return ``None`` if it has none.

    Args:
        values: the values in the file.
        path: the file.
        folders: the folders in which the parent is searched for.
        chain: the descendants of the parent. The last one is the file.
    """
    role_id = values.get("extends")
    if not isinstance(role_id, str) or not re.fullmatch(ROLE_ID_PATTERN, role_id):
        return None  # Missing, or not a role id; validation reports the latter.
    parent = _found(role_id, folders, f"{path}: extends: ")
    if parent in chain:
        names = " → ".join(file.stem for file in (*chain[chain.index(parent) :], parent))
        step = "take `extends` out of one of them"
        raise OverlayError("overlay_cycle", f"{path}: extends: goes in a circle: {names}", step)
    return _resolve_role(role_id, parent, folders, chain)


def _parent_folders(path: Path, folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders in which the parents of a file are searched for."""
    return tuple(folders) if found_by_name(path, folders) else (path.parent, *folders)


def _read(path: Path) -> bytes:
    try:
        # Reading a pipe or a device may never end.
        if not S_ISREG(path.stat().st_mode):
            raise _unreadable(path, "is not a regular file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        problem = f"{path}: there is no such overlay file"
        step = "correct the path, or see `rolebundle overlay list`"
        raise OverlayError("overlay_missing", problem, step) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        raise _unreadable(path, "is not the name of a file") from error


def _role_ids(folder: Path) -> list[str]:
    try:
        files = [path for path in folder.iterdir() if path.suffix == _SUFFIX]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error.strerror or "cannot be read") from error
    return [path.stem for path in files if not path.name.startswith(".")]


def _or_raise(path: Path, result: _T | list[Problem]) -> _T:
    if not isinstance(result, list):
        return result
    first = result[0]
    place = f"{first.place}: " if first.place else ""
    more = f" (and {len(result) - 1} more)" if len(result) > 1 else ""
    step = f"{first.hint}; `rolebundle overlay lint` lists all that is wrong"
    raise OverlayError("overlay_malformed", f"{path}: {place}{first.message}{more}", step)


def _unreadable(path: Path, reason: str) -> OverlayError:
    step = "make it a file that you may read, or take it out of the folder"
    return OverlayError("overlay_unreadable", f"{path}: {reason}", step)


def _found(role_id: str, folders: Sequence[Path], place: str = "") -> Path:
    """The file of a role. ``place`` is where it is named, for the error if there is none."""
    path = locate(role_id, folders)
    if path is not None:
        return path
    known = sorted({name for folder in folders for name in _role_ids(folder)})
    raise OverlayError(
        "overlay_missing",
        f"{place}the role {role_id!r} has no overlay in "
        f"{', '.join(map(str, folders)) or 'any folder'}"
        f"{did_you_mean(role_id, known)}",
        f"roles there: {', '.join(known) or 'none'}; name another folder with --overlay-dir",
    )


# -- the values of files ---------------------------------------------------------------------------


def merge(parent: Mapping[str, object], child: Mapping[str, object]) -> dict[str, object]:
    """Merge an overlay into the one that it extends. Both are the values of their files.

    This is JSON Merge Patch (RFC 7396): objects are merged key by key, other values replace, and
    null removes the parent's key. There is one exception: null is kept for a key that is neither in
    the parent nor in the format, so that validation reports the key.
    """
    return _merged({key: value for key, value in parent.items() if key not in OWN_KEYS}, child, ())


def share_weights(values: dict[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Let the weights that a file leaves out share what it leaves of 1.

    If it gives one to three weights, the others keep their proportions, which are those of the
    inherited or default values. Weights that sum to 1 as they are stay as they are, and so do those
    that cannot sum to 1, which the contract reports.

    Args:
        values: the values after inheritance.
        own: the values of the file.
    """
    policy, own_policy = values.get("retrieval_policy"), own.get("retrieval_policy")
    if not isinstance(policy, dict) or not isinstance(own_policy, dict):
        return values
    fields = RetrievalPolicy.model_fields
    weights = {name: policy.get(name, fields[name].default) for name in WEIGHTS}
    if not all(_is_fraction(weight) for weight in weights.values()):
        return values
    missing = [name for name in WEIGHTS if own_policy.get(name) is None]
    base = sum(weights[name] for name in missing)
    remaining = 1 - sum(weights.values()) + base
    is_sum_right = abs(remaining - base) <= WEIGHT_TOLERANCE
    if is_sum_right or len(missing) == len(WEIGHTS) or not base or remaining < -1e-9:
        return values
    # Rounded, so that the values can be read.
    shared = {name: round(max(0.0, remaining) * weights[name] / base, 6) for name in missing}
    return {**values, "retrieval_policy": {**policy, **shared}}


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def validate(values: dict[str, object]) -> Overlay | list[Problem]:
    """Return the overlay, or all violations of the contract."""
    try:
        return Overlay.model_validate(values)
    except ValidationError as error:
        return [
            problem_of(mistake, null_hint=_NULL_HINT) for mistake in mistakes_in(error, Overlay)
        ]


def _merged(
    parent: Mapping[str, object], child: Mapping[str, object], place: Place
) -> dict[str, object]:
    merged = dict(parent)
    for key, value in child.items():
        if isinstance(value, dict):
            below = parent.get(key)
            merged[key] = _merged(below if isinstance(below, dict) else {}, value, (*place, key))
        elif value is not None:
            merged[key] = value
        elif key in parent:
            del merged[key]
        elif key not in keys_at(Overlay, place):
            merged[key] = None
    return merged


RuleSubject = tuple[tuple[str, str, str], tuple[str, ...]]
"""What rules look at in a document: its source id, type and domain; and the path of its file, for a
remembered fact also that of the file of its source."""


def rule_subject(document: DocumentMetadata | DocumentKind, path: str) -> RuleSubject:
    """What rules look at in a document whose file has this path within the ingested folder."""
    # What a role rejects must not come back as a fact. The path of a fact is below its source's.
    paths = (path, path.rpartition("/")[0]) if document.source_kind == REMEMBERED_KIND else (path,)
    return (document.source_id, document.document_type, document.domain), paths


FirstMatch = Callable[[RuleSubject], SourceRule | None]


def first_match(rules: Sequence[SourceRule]) -> FirstMatch:
    """A function that gives the first of the rules that matches a document."""

    # Cached, because many passages have the same document.
    @lru_cache(maxsize=16_384)
    def first(subject: RuleSubject) -> SourceRule | None:
        return next((rule for rule in rules if rule_matches(rule, subject)), None)

    return first


def rule_matches(rule: SourceRule, subject: RuleSubject) -> bool:
    """Whether a rule matches a document."""
    names, paths = subject
    if rule.pattern is None:
        return any(map(_in_any_case(key_of(rule.path or "")).match, map(key_of, paths)))
    return _is_in_a_name(rule.pattern, names)


@lru_cache(maxsize=4096)
def _is_in_a_name(pattern: str, names: tuple[str, ...]) -> bool:
    # Cached, because few kinds of documents have many passages. A plain substring takes linear
    # time, whatever the pattern is.
    key = key_of(pattern)
    return any(key in key_of(name) for name in names)


@lru_cache(maxsize=1024)
def _in_any_case(glob: str) -> re.Pattern[str]:
    return re.compile(compile_glob(glob).pattern, re.DOTALL | re.IGNORECASE)
