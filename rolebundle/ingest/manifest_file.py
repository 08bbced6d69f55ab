"""The ``rolebundle.toml`` of a folder, and what it says of each file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rolebundle.contracts.terms import TRUST_TIERS, TrustTier
from rolebundle.errors import ConfigurationError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.metadata import shortened, similar_key, unknown_key, validated
from rolebundle.ingest.readers import reader_names

_READER_KEYS = ("reader", "separator")
_AUTHORITY_KEYS = ("max_trust", "trust_documents")
_RULE_KEYS = frozenset({"glob", *_READER_KEYS, *_AUTHORITY_KEYS})
_CHUNKING_KEYS = ("size", "overlap", "maximum")


@dataclass(frozen=True, slots=True)
class Rule:
    """One ``[[rule]]`` of a manifest: valid metadata of the files that match its glob.

    ``None`` and empty strings leave to earlier rules what they say.
    """

    glob: str
    values: Mapping[str, Any]
    reader: str = ""
    separator: str = ""
    max_trust: TrustTier | None = None
    trust_documents: bool | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The ``rolebundle.toml`` of a folder. Later rules override earlier ones, key by key."""

    defaults: Mapping[str, Any]
    rules: tuple[Rule, ...] = ()
    max_trust: TrustTier | None = None
    """The highest trust tier that a document or a nested manifest may declare for itself."""
    trust_documents: bool = False
    """Whether documents may change what the manifest sets for them."""
    ignore: tuple[str, ...] = ()
    ignore_keys: frozenset[str] = frozenset()
    chunking: Mapping[str, int] = field(default_factory=dict)
    """``size``, ``overlap`` and ``maximum``; only used in the outermost manifest."""
    sources: frozenset[str] = frozenset()
    """All source ids that it assigns, casefolded."""

    def globs(self) -> list[tuple[str, str]]:
        """Its globs, each with its place in the file: ``ignore`` or the number of a rule."""
        rules = [(f"rule {number}", rule.glob) for number, rule in enumerate(self.rules, start=1)]
        return [*(("ignore", glob) for glob in self.ignore), *rules]


@dataclass(frozen=True, slots=True)
class FileDefaults:
    """What flags and manifests say of one file."""

    authority: Authority = field(default_factory=Authority)
    reader: str = ""
    separator: str = ""
    fingerprint: str = field(init=False)
    """All but the reader as one text, to compare it. Most files of a folder share it."""

    def __post_init__(self) -> None:
        authority = self.authority
        parts = (
            self.separator,
            sorted(authority.values.items()),
            sorted(authority.bound),
            sorted(authority.sources),
            authority.max_trust,
            authority.trusts_documents,
            sorted(authority.by_owner),
        )
        object.__setattr__(self, "fingerprint", repr(parts))


EMPTY_MANIFEST = Manifest(defaults={})


def parse_manifest(content: bytes, path: str) -> Manifest:
    """The manifest with this content.

    Args:
        content: the bytes of the file.
        path: its path, for messages.

    Raises:
        ConfigurationError: it is no TOML, or contains an unknown key or an invalid value.
    """
    try:
        raw = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _bad_manifest(
            f"{path}: not readable as TOML ({error})", "correct the file and run again"
        ) from error
    allowed = ("defaults", "rule", "ignore", "ignore_keys", "chunking", *_AUTHORITY_KEYS)
    for key in raw:
        if key not in allowed:
            raise _unknown(path, key, allowed)
    raw_rules = raw.get("rule", [])
    if not isinstance(raw_rules, list) or not all(isinstance(rule, dict) for rule in raw_rules):
        raise _bad_manifest(f"{path}: 'rule' must be tables", "write each rule under [[rule]]")
    defaults = validated(raw.get("defaults", {}), f"{path} [defaults]", "bad_manifest")
    rules = tuple(_rule(rule, f"{path} rule {n}") for n, rule in enumerate(raw_rules, start=1))
    values = defaults.declared_values()
    sources = {
        declared["source_id"]
        for declared in (values, *(rule.values for rule in rules))
        if "source_id" in declared
    }
    max_trust, trust_documents = _authority_keys(raw, path)
    return Manifest(
        defaults=values,
        rules=rules,
        max_trust=max_trust,
        trust_documents=bool(trust_documents),
        ignore=_strings(raw, "ignore", path),
        ignore_keys=frozenset(_strings(raw, "ignore_keys", path)),
        chunking=_chunking(raw.get("chunking", {}), path),
        sources=frozenset(map(str.casefold, sources)),
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


def with_manifest(
    above: FileDefaults,
    manifest: Manifest,
    rules: Iterable[Rule],
    manifest_path: str,
    *,
    is_owner: bool,
) -> tuple[FileDefaults, tuple[str, ...]]:
    """The defaults of a file, with what the next manifest sets for it.

    Args:
        above: what the levels above say.
        manifest: the next manifest.
        rules: those of its rules that match the file. Later ones override earlier ones and the
            manifest's defaults.
        manifest_path: the path of the manifest, for reports.
        is_owner: whether it is the outermost manifest.

    Returns:
        The defaults of the file, and what the manifest may not declare, as ``key: value``.
    """
    values = dict(manifest.defaults)
    reader, separator = above.reader, above.separator
    max_trust, trust_documents = manifest.max_trust, manifest.trust_documents
    for rule in rules:
        values.update(rule.values)
        reader = rule.reader or reader
        separator = rule.separator or separator
        max_trust = rule.max_trust or max_trust
        if rule.trust_documents is not None:
            trust_documents = rule.trust_documents
    authority, refused = above.authority.with_level(
        values,
        path=manifest_path,
        is_owner=is_owner,
        max_trust=max_trust,
        trusts_documents=trust_documents,
        sources=manifest.sources,
    )
    return FileDefaults(authority, reader, separator), refused


def _rule(raw: Mapping[str, object], place: str) -> Rule:
    glob = raw.get("glob")
    if not isinstance(glob, str) or not glob:
        raise _bad_manifest(f"{place}: has no glob", 'add a line such as glob = "docs/**"')
    values = {key: value for key, value in raw.items() if key not in _RULE_KEYS}
    checked = validated(values, place, "bad_manifest")
    reader, separator = (raw.get(key, "") for key in _READER_KEYS)
    if not isinstance(reader, str) or not isinstance(separator, str):
        raise _bad_manifest(f"{place}: reader and separator must be strings", "put them in quotes")
    check_reader(reader, place)
    return Rule(glob, checked.declared_values(), reader, separator, *_authority_keys(raw, place))


def _authority_keys(raw: Mapping[str, object], place: str) -> tuple[TrustTier | None, bool | None]:
    """``max_trust`` and ``trust_documents``; ``None`` if they are missing."""
    max_trust, trust_documents = (raw.get(key) for key in _AUTHORITY_KEYS)
    if not isinstance(trust_documents, bool | None):
        raise _bad_manifest(
            f"{place}: trust_documents must be true or false", "write it without quotes"
        )
    return check_max_trust(max_trust, place), trust_documents


def check_max_trust(value: object, place: str) -> TrustTier | None:
    """Check a trust tier that bounds others; ``None`` for no bound.

    Raises:
        ConfigurationError: there is no such tier.
    """
    tier = next((tier for tier in TRUST_TIERS if tier == value), None)
    if tier is None and value is not None:
        raise _bad_manifest(
            f"{place}: max_trust = {shortened(value)} is no trust tier",
            f"trust tiers: {', '.join(TRUST_TIERS)}",
        )
    return tier


def _strings(raw: Mapping[str, object], key: str, path: str) -> tuple[str, ...]:
    values = raw.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _bad_manifest(f"{path}: {key} must be a list of strings", f'write {key} = ["…"]')
    return tuple(values)


def _chunking(raw: object, path: str) -> Mapping[str, int]:
    if not isinstance(raw, dict):
        raise _bad_manifest(
            f"{path}: chunking must be a table",
            "write a table [chunking] with size, overlap or maximum",
        )
    for key, value in raw.items():
        if key not in _CHUNKING_KEYS:
            raise _unknown(f"{path} [chunking]", key, _CHUNKING_KEYS)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _bad_manifest(
                f"{path} [chunking]: {key} = {shortened(value)} must be a whole number",
                "give it in characters",
            )
    return raw


def _bad_manifest(message: str, step: str) -> ConfigurationError:
    return ConfigurationError("bad_manifest", message, step)


def _unknown(place: str, key: str, allowed: Sequence[str]) -> ConfigurationError:
    return _bad_manifest(
        f"{place}: {unknown_key(key, similar_key(key, allowed))}",
        f"allowed keys: {', '.join(allowed)}",
    )
