"""The ``rolebundle.toml`` of a folder, and what it says of each file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.manifest import ManifestFile, ManifestRule
from rolebundle.contracts.mistakes import Mistake, mistakes_in
from rolebundle.contracts.terms import TrustTier
from rolebundle.errors import ConfigurationError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.readers import reader_names
from rolebundle.policy.policy_json import problem_of
from rolebundle.text.counts import counted


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
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            "bad_manifest",
            f"{path}: not readable as TOML ({error})",
            "correct the file and run again",
        ) from error
    try:
        file = ManifestFile.model_validate(values)
    except ValidationError as error:
        raise _malformed(path, mistakes_in(error, ManifestFile)) from error
    for number, rule in enumerate(file.rule, start=1):
        check_reader(rule.reader, f"{path} rule {number}")
    defaults = file.defaults.declared_values()
    rules = tuple(map(_rule, file.rule))
    sources = {
        declared["source_id"]
        for declared in (defaults, *(rule.values for rule in rules))
        if "source_id" in declared
    }
    return Manifest(
        defaults=defaults,
        rules=rules,
        max_trust=file.max_trust,
        trust_documents=file.trust_documents,
        ignore=tuple(file.ignore),
        ignore_keys=frozenset(file.ignore_keys),
        chunking=file.chunking.model_dump(exclude_none=True),
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


def _rule(rule: ManifestRule) -> Rule:
    return Rule(
        rule.glob,
        rule.declared_values(),
        rule.reader,
        rule.separator,
        rule.max_trust,
        rule.trust_documents,
    )


def _malformed(path: str, mistakes: Sequence[Mistake]) -> ConfigurationError:
    first, more = mistakes[0], len(mistakes) - 1
    place = first.place
    if place[0] == "rule" and len(place) > 1:
        # Rules have no names, and people count from 1.
        place = (f"rule {int(place[1]) + 1}", *place[2:])
    problem = problem_of(first._replace(place=place))
    others = f" (and {counted(more, 'more mistake')})" if more else ""
    return ConfigurationError(
        "bad_manifest", f"{path}: {problem.place}: {problem.message}{others}", problem.hint
    )
