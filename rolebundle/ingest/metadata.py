"""Metadata of documents: front matter overrides folder manifests, which override flags.

Each key is resolved before a document is chunked.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.mistakes import mistakes_in
from rolebundle.errors import ConfigurationError, DocumentError, RolebundleError
from rolebundle.ingest.readers import reader_names
from rolebundle.text.globs import matches

MANIFEST_NAME = "rolebundle.toml"

METADATA_KEYS = tuple(DeclaredMetadata.model_fields)
_READER_KEYS = ("reader", "separator")
_CHUNKING_KEYS = ("size", "overlap", "maximum")


@dataclass(frozen=True, slots=True)
class Rule:
    """One ``[[rule]]`` of a manifest: defaults of the files that match its glob."""

    glob: str
    values: Mapping[str, object]
    reader: str = ""
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The ``rolebundle.toml`` of a folder. Later rules override earlier ones, key by key."""

    defaults: Mapping[str, object]
    rules: tuple[Rule, ...] = ()
    ignore: tuple[str, ...] = ()
    ignore_keys: frozenset[str] = frozenset()
    chunking: Mapping[str, int] = field(default_factory=dict)
    """``size``, ``overlap`` and ``maximum``; only used in the outermost manifest."""


@dataclass(frozen=True, slots=True)
class FileDefaults:
    """The defaults of one file, from manifests and flags."""

    values: Mapping[str, object]
    reader: str = ""
    separator: str = ""
    fingerprint: str = field(init=False)
    """Values and separator as one text, to compare them. Most files of a folder share it."""

    def __post_init__(self) -> None:
        fingerprint = repr((self.separator, sorted(self.values.items())))
        object.__setattr__(self, "fingerprint", fingerprint)


EMPTY_MANIFEST = Manifest(defaults={})


def has_manifest(folder: Path) -> bool:
    """Whether the folder has a manifest. False if the folder may not be entered."""
    return os.path.isfile(folder / MANIFEST_NAME)  # noqa: PTH113 - Path.is_file() may raise


def load_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, or ``EMPTY_MANIFEST`` if it has none.

    Raises:
        ConfigurationError: it cannot be read or contains an unknown key or an invalid value.
    """
    path = folder / MANIFEST_NAME
    if not has_manifest(folder):
        return EMPTY_MANIFEST
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            "bad_manifest",
            f"{path}: not readable as TOML ({error})",
            "correct the file and run again",
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
    """Check the name of a reader; an empty name is allowed.

    Raises:
        ConfigurationError: no reader has that name.
    """
    if name and name not in reader_names():
        raise ConfigurationError(
            "unknown_reader",
            f"{place}: no reader is called {name!r}",
            f"readers: {', '.join(reader_names())}",
        )


def file_defaults(manifest: Manifest, path: str, flags: Mapping[str, object]) -> FileDefaults:
    """The defaults of the file at ``path``: rules override defaults, which override flags."""
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
    """Validate declared metadata.

    Raises:
        RolebundleError: of type ``error_type``, with the place, the key and the allowed values.
    """
    if not isinstance(values, Mapping):
        raise error_type(
            code, f"{place}: must be a table of keys", "write each value as KEY = VALUE"
        )
    try:
        return DeclaredMetadata.model_validate(dict(values))
    except ValidationError as error:
        mistake = mistakes_in(error, DeclaredMetadata)[0]
        key = str(mistake.place[0])
        if mistake.kind == "unknown":
            raise _unknown(error_type, code, place, key, METADATA_KEYS) from None
        raise error_type(
            code,
            f"{place}: {key} = {_short(mistake.value)} {mistake.message}",
            f"correct {key} and run the same command again",
        ) from None


def resolve(
    path: str,
    defaults: Mapping[str, object],
    declared: Mapping[str, object],
    inferred: Mapping[str, object],
    *,
    default_source: str,
    record_name: str = "",
    declared_at: int = 1,
    ignore_keys: frozenset[str] = frozenset(),
) -> DocumentMetadata:
    """The metadata of one document.

    Args:
        path: the file, relative to the ingested folder.
        defaults: valid metadata from flags and manifests.
        declared: unvalidated metadata that the document declares; takes precedence.
        inferred: metadata from the format; defaults and declared metadata take precedence.
        default_source: the source_id if none is declared.
        record_name: the name of the document in a file of several documents, else empty.
        declared_at: the line where the declaration of the document begins.
        ignore_keys: declared keys that the manifest ignores.

    Raises:
        DocumentError: the document declares an unknown key or an invalid value, or is never valid.
    """
    own = {name: value for name, value in declared.items() if name not in ignore_keys}
    merged: dict[str, Any] = _usable(inferred)
    if defaults:
        merged |= DeclaredMetadata.model_validate(defaults).declared_values()
    if own:
        checked = validated(own, f"{path}:{declared_at}", DocumentError, "bad_metadata")
        merged |= checked.declared_values()
    valid_from, valid_until = merged.get("valid_from"), merged.get("valid_until")
    if valid_from and valid_until and valid_from > valid_until:
        raise DocumentError(
            "bad_metadata",
            f"{path}:{declared_at}: valid_from {valid_from} is after valid_until {valid_until}",
            "correct one of them and run the same command again",
        )
    _fold(merged, "tags", "keywords")
    _fold(merged, "retrieval_hints", "authors", "author")
    source_id = merged.pop("source_id", default_source)
    location = f"{path}#{record_name}" if record_name else path
    document_id = merged.pop("document_id", f"{source_id}/{location}")
    if "title" not in merged:
        name = record_name or PurePosixPath(path).stem.replace("_", " ").replace("-", " ")
        merged["title"] = name
    merged.setdefault("uri", location)
    lists = {name: tuple(value) for name, value in merged.items() if isinstance(value, list)}
    return DocumentMetadata(document_id=document_id, source_id=source_id, **{**merged, **lists})


def _fold(merged: dict[str, Any], key: str, *others: str) -> None:
    """Move the values of other keys, which mean the same to retrieval, into ``key``."""
    texts = [text for name in others for text in merged.pop(name, ())]
    if texts:
        merged[key] = list(dict.fromkeys([*merged.get(key, ()), *texts]))


def _usable(inferred: Mapping[str, object]) -> dict[str, Any]:
    """The valid part of inferred metadata. Invalid values are no error, as nobody declared them."""
    try:
        return DeclaredMetadata.model_validate(dict(inferred)).declared_values()
    except ValidationError as error:
        bad = {mistake.place[0] for mistake in mistakes_in(error, DeclaredMetadata)}
        return _usable({key: value for key, value in inferred.items() if key not in bad})


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
            "bad_manifest", f"{place}: reader and separator must be strings", "put them in quotes"
        )
    check_reader(reader, place)
    return Rule(glob, values, reader, separator)


def _strings(raw: Mapping[str, object], key: str, path: Path) -> tuple[str, ...]:
    values = raw.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ConfigurationError(
            "bad_manifest", f"{path}: {key} must be a list of strings", f'write {key} = ["…"]'
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
                f"{path} [chunking]: {key} = {_short(value)} must be a whole number",
                "give it in characters",
            )
    return raw


def _unknown(
    error_type: type[RolebundleError], code: str, place: str, key: str, allowed: Sequence[str]
) -> RolebundleError:
    similar = get_close_matches(key, allowed, n=1)
    suggestion = f"; did you mean {similar[0]}?" if similar else ""
    return error_type(
        code,
        f"{place}: unknown key {key!r}{suggestion}",
        f"allowed keys: {', '.join(allowed)}",
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
