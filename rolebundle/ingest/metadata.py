"""Metadata: front matter over the folder manifest over the command's flags.

The winner of each key is decided before a document is chunked, and every chunk carries the result.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from pydantic import ValidationError

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.terms import Origin, Sensitivity, TrustTier
from rolebundle.errors import ConfigurationError, DocumentError, RolebundleError
from rolebundle.ingest.readers import reader_names
from rolebundle.text.globs import matches

MANIFEST_NAME = "rolebundle.toml"

METADATA_KEYS = tuple(DeclaredMetadata.model_fields)
_READER_KEYS = ("reader", "separator")
_CHUNKING_KEYS = ("size", "overlap", "maximum")
_CLOSED: Mapping[str, tuple[str, ...]] = {
    "trust_tier": get_args(TrustTier),
    "sensitivity": get_args(Sensitivity),
    "origin": get_args(Origin),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One ``[[rule]]`` of a manifest: what holds for the files that its glob matches."""

    glob: str
    values: Mapping[str, object]
    reader: str = ""
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A folder's ``rolebundle.toml``: glob → defaults. Later rules win, key by key."""

    defaults: Mapping[str, object]
    rules: tuple[Rule, ...] = ()
    ignore: tuple[str, ...] = ()
    ignore_keys: frozenset[str] = frozenset()
    chunking: Mapping[str, int] = field(default_factory=dict)
    """``size``, ``overlap`` and ``maximum``; heeded in the outermost manifest."""


@dataclass(frozen=True, slots=True)
class FileDefaults:
    """What manifest and flags say about one file."""

    values: Mapping[str, object]
    reader: str = ""
    separator: str = ""
    declared: str = field(init=False)
    """Values and separator in a form to compare. Made once, as most files of a folder share it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "declared", repr((self.separator, sorted(self.values.items()))))


EMPTY_MANIFEST = Manifest(defaults={})


def has_manifest(folder: Path) -> bool:
    """Whether the folder has a manifest; one that may not be entered has nothing that is read."""
    return os.path.isfile(folder / MANIFEST_NAME)  # noqa: PTH113 - Path.is_file() may raise


def load_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, or an empty one where there is none.

    Raises:
        ConfigurationError: it cannot be read, or it has an unknown key or a bad value.
    """
    path = folder / MANIFEST_NAME
    if not has_manifest(folder):
        return EMPTY_MANIFEST
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            "bad_manifest", f"{path}: is not readable TOML ({error})", "mend the file and run again"
        ) from error
    allowed = ("defaults", "rule", "ignore", "ignore_keys", "chunking")
    for key in raw:
        if key not in allowed:
            raise _unknown(ConfigurationError, "bad_manifest", str(path), key, allowed)
    rules = raw.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ConfigurationError(
            "bad_manifest", f"{path}: 'rule' must be tables", "write each rule under [[rule]]"
        )
    defaults = raw.get("defaults", {})
    validated(defaults, f"{path} [defaults]", ConfigurationError, "bad_manifest")
    return Manifest(
        defaults=defaults,
        rules=tuple(_rule(rule, f"{path} rule {n}") for n, rule in enumerate(rules, start=1)),
        ignore=_strings(raw, "ignore", path),
        ignore_keys=frozenset(_strings(raw, "ignore_keys", path)),
        chunking=_chunking(raw.get("chunking", {}), path),
    )


def check_reader(name: str, place: str) -> None:
    """Refuse the name of a reader that there is not; an empty one is no name.

    Raises:
        ConfigurationError: there is no reader of that name.
    """
    if name and name not in reader_names():
        raise ConfigurationError(
            "unknown_reader",
            f"{place}: there is no reader {name!r}",
            f"readers: {', '.join(reader_names())}",
        )


def file_defaults(manifest: Manifest, path: str, flags: Mapping[str, object]) -> FileDefaults:
    """What holds for the file at ``path``: flags, over them defaults, over them each rule."""
    values: dict[str, object] = {**flags, **manifest.defaults}
    reader = separator = ""
    for rule in manifest.rules:
        if matches(rule.glob, path):
            values.update(rule.values)
            reader = rule.reader or reader
            separator = rule.separator or separator
    return FileDefaults(values, reader, separator)


def validated(
    values: object, place: str, error_type: type[RolebundleError], code: str
) -> DeclaredMetadata:
    """Declared metadata, checked.

    Raises:
        RolebundleError: of ``error_type``; names the place, the key and the allowed values.
    """
    if not isinstance(values, Mapping):
        raise error_type(
            code, f"{place}: must be a table of keys", "see `rolebundle ingest --help`"
        )
    try:
        return DeclaredMetadata.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            raise _unknown(error_type, code, place, key, METADATA_KEYS) from None
        allowed = _CLOSED.get(key)
        expected = (
            f"one of {', '.join(allowed)}"
            if allowed
            else first["msg"].removeprefix("Value error, ")
        )
        raise error_type(
            code,
            f"{place}: {key} = {_shown(first['input'])} is not allowed; expected {expected}",
            f"correct {key} and run the same command again",
        ) from None


def resolve(
    path: str,
    defaults: Mapping[str, object],
    declared: Mapping[str, object],
    found: Mapping[str, object],
    *,
    default_source: str,
    key: str = "",
    declared_at: int = 1,
    ignore_keys: frozenset[str] = frozenset(),
) -> DocumentMetadata:
    """The metadata of one document.

    Args:
        path: the file, relative to the ingested folder.
        defaults: what flags and manifest say about the file, checked already.
        declared: what the document says of itself; wins.
        found: what the format tells undeclared; weakest.
        default_source: source_id where nothing declares one.
        key: the document inside its file, where the file holds many.
        declared_at: the line where the document's own declaration begins.
        ignore_keys: declared keys that the manifest says to leave out.

    Raises:
        DocumentError: an unknown key or a bad value in the document's own declaration.
    """
    own = {name: value for name, value in declared.items() if name not in ignore_keys}
    merged: dict[str, Any] = _usable(found)
    if defaults:
        merged |= DeclaredMetadata.model_validate(defaults).said()
    if own:
        checked = validated(own, f"{path}:{declared_at}", DocumentError, "bad_metadata")
        merged |= checked.said()
    _fold(merged, "tags", "keywords")
    _fold(merged, "retrieval_hints", "authors", "author")
    source_id = merged.pop("source_id", default_source)
    inside = f"{path}#{key}" if key else path
    document_id = merged.pop("document_id", f"{source_id}/{inside}")
    if "title" not in merged:
        merged["title"] = key or PurePosixPath(path).stem.replace("_", " ").replace("-", " ")
    merged.setdefault("uri", inside)
    lists = {name: tuple(value) for name, value in merged.items() if isinstance(value, list)}
    return DocumentMetadata(document_id=document_id, source_id=source_id, **{**merged, **lists})


def _fold(merged: dict[str, Any], key: str, *others: str) -> None:
    """Add to one key's texts those of others that mean the same for the retriever."""
    texts = [text for name in others for text in merged.pop(name, ())]
    if texts:
        merged[key] = list(dict.fromkeys([*merged.get(key, ()), *texts]))


def _usable(found: Mapping[str, object]) -> dict[str, Any]:
    # Nobody declared these, so a bad one is no error: it is as if it were not there.
    try:
        return DeclaredMetadata.model_validate(dict(found)).said()
    except ValidationError as error:
        bad = {problem["loc"][0] for problem in error.errors(include_url=False)}
        return _usable({key: value for key, value in found.items() if key not in bad})


def _rule(raw: Mapping[str, object], place: str) -> Rule:
    glob = raw.get("glob")
    if not isinstance(glob, str) or not glob:
        raise ConfigurationError(
            "bad_manifest", f"{place}: has no glob", 'add a line such as glob = "docs/**"'
        )
    values = {k: v for k, v in raw.items() if k != "glob" and k not in _READER_KEYS}
    validated(values, place, ConfigurationError, "bad_manifest")
    reader, separator = (raw.get(key, "") for key in _READER_KEYS)
    if not isinstance(reader, str) or not isinstance(separator, str):
        raise ConfigurationError(
            "bad_manifest", f"{place}: reader and separator are texts", "put them in quotes"
        )
    check_reader(reader, place)
    return Rule(glob, values, reader, separator)


def _strings(raw: Mapping[str, object], key: str, path: Path) -> tuple[str, ...]:
    values = raw.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ConfigurationError(
            "bad_manifest", f"{path}: {key} must be a list of texts", f'write {key} = ["…"]'
        )
    return tuple(values)


def _chunking(raw: object, path: Path) -> Mapping[str, int]:
    if not isinstance(raw, dict):
        raise ConfigurationError("bad_manifest", f"{path}: chunking must be a table", "see --help")
    for key, value in raw.items():
        if key not in _CHUNKING_KEYS:
            raise _unknown(
                ConfigurationError, "bad_manifest", f"{path} [chunking]", key, _CHUNKING_KEYS
            )
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigurationError(
                "bad_manifest",
                f"{path} [chunking]: {key} = {_shown(value)} must be a whole number",
                "give it in characters",
            )
    return raw


def _unknown(
    error_type: type[RolebundleError], code: str, place: str, key: str, allowed: Sequence[str]
) -> RolebundleError:
    near = get_close_matches(key, allowed, n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    return error_type(
        code,
        f"{place}: unknown key {key!r}{guess}",
        f"allowed keys: {', '.join(allowed)}",
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
