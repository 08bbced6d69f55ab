"""What is declared of documents, the ingested roots, and the answers of `ingest`."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints

from rolebundle.contracts.base import Contract, list_of, moment_of, without_repeats, zoned
from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.terms import Origin, Sensitivity, TrustTier


def utc_text(value: str) -> str | None:
    """A date or time, as ISO 8601 in UTC; ``None`` if the text is none."""
    try:
        return _utc_text(value, time())
    except ValueError:
        return None


def _utc_text(value: object, of_day: time) -> str:
    moment = moment_of(value) if isinstance(value, str) else value
    try:
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime.combine(moment, of_day)
        if isinstance(moment, datetime):
            return iso_utc(zoned(moment))
    except (ValueError, OverflowError):
        pass
    raise ValueError("must be an ISO 8601 date or time, such as 2026-03-01")


_TAG_SEPARATOR = re.compile(r"[,\n]")
_KEYWORD_SEPARATOR = re.compile(r"[,;\n]")
# A comma may be part of a name: "Kim, A. and Lee, B.".
_AUTHOR_SEPARATOR = re.compile(r"[;\n]|\s(?:and|&)\s")
_MAX_NAMES = 50


def _one_as_list(value: object) -> object:
    """A text as a list of one, and a blank text as an empty list."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    return value


def _roles(value: object) -> object:
    # No id of a role has a comma.
    if isinstance(value, str):
        return [role.strip() for role in value.split(",")] if value.strip() else []
    return value


def _split_names(
    value: object, separator: re.Pattern[str], max_chars: int = 200, most: int | None = _MAX_NAMES
) -> list[str]:
    """Return the different names in a value.

    Args:
        value: a string with separators, an integer, an object with a ``name`` or ``label``, or a
            list of strings, integers and such objects.
        separator: what separates the names in a string. Strings in a list are not split.
        max_chars: longer names are wrapped into several.
        most: at most so many names; ``None`` for all.

    Raises:
        ValueError: the value has another form.
    """
    items = separator.split(value) if isinstance(value, str) else value
    names: list[str] = []
    for item in items if isinstance(items, list) else [items]:
        if item is None:
            continue
        name = item.get("name", item.get("label")) if isinstance(item, dict) else item
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)  # Some collections number their authors.
        if not isinstance(name, str):
            raise ValueError("must be a text, or a list of texts")  # noqa: TRY004 (pydantic's contract)
        # To wrap a name takes ten times as long as everything else here.
        short = " ".join(name.split())
        names += textwrap.wrap(short, max_chars) if len(short) > max_chars else [short]
    # More authors or keywords would make the document long for BM25, and do not describe its
    # content.
    return list(dict.fromkeys(filter(None, names)))[:most]


UtcText = Annotated[str, BeforeValidator(partial(_utc_text, of_day=time()))]
"""A date or time as ISO 8601 in UTC. A date is its first second."""
UtcEndText = Annotated[str, BeforeValidator(partial(_utc_text, of_day=time(23, 59, 59)))]
"""The same, but a date is its last second."""


# One line in any script; it may have spaces and slashes.
ShortLine = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$"
    ),
]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
ShortLines = Annotated[
    list[ShortLine], BeforeValidator(_one_as_list), AfterValidator(without_repeats)
]
Lines = Annotated[list[Line], BeforeValidator(_one_as_list)]
Roles = Annotated[list[RoleId], BeforeValidator(_roles)]
Tags = Annotated[
    list[ShortLine], BeforeValidator(partial(_split_names, separator=_TAG_SEPARATOR, most=None))
]
Keywords = Annotated[
    list[ShortLine], BeforeValidator(partial(_split_names, separator=_KEYWORD_SEPARATOR))
]
Authors = Annotated[
    list[Line], BeforeValidator(partial(_split_names, separator=_AUTHOR_SEPARATOR, max_chars=1000))
]
KeyKind = Literal["governs", "limits", "matched", "describes"]
"""What a key decides.

- ``governs``: who may see a document, for what, and what it outranks or hides. A document may not
  raise it against its owner.
- ``limits``: when the document applies. It and ``governs`` are guarded against typing errors.
- ``matched``: what a role's source rules look at. It binds a document whose trust is limited.
- ``describes``: nothing. A value that has another form in other tools becomes an attribute.
"""

# A key of this kind, which need not be declared.
T = TypeVar("T")
Governing = Annotated[T | None, "governs"]
Limiting = Annotated[T | None, "limits"]
Matched = Annotated[T | None, "matched"]
Describing = Annotated[T | None, "describes"]


class DeclaredMetadata(Contract):
    """The keys that front matter, a manifest or a command line option may set, with their kinds.

    ``None`` means that the key is not declared. ``keywords``, ``authors`` and ``author`` are keys
    of other tools: keywords are added to ``tags``, authors to ``retrieval_hints``, at most 50 each.
    A single text is a list of one; in tags and roles, commas separate several.
    """

    document_id: Governing[ShortLine] = None
    source_id: Governing[ShortLine] = None
    title: Describing[Line] = None
    uri: Describing[Line] = None
    document_type: Matched[ShortLine] = None
    domain: Matched[ShortLine] = None
    trust_tier: Governing[TrustTier] = None
    updated_at: UtcText | None = None
    valid_from: Limiting[UtcText] = None
    valid_until: Limiting[UtcEndText] = None
    language: Describing[ShortLine] = None
    source_kind: Describing[ShortLine] = None
    sensitivity: Governing[Sensitivity] = None
    origin: Governing[Origin] = None
    scope: Governing[ShortLine] = None
    tags: Describing[Tags] = None
    keywords: Describing[Keywords] = None
    applicable_roles: Governing[Roles] = None
    excluded_roles: Governing[Roles] = None
    retrieval_hints: Describing[Lines] = None
    authors: Describing[Authors] = None
    author: Describing[Authors] = None
    supersedes: Governing[ShortLines] = None
    contradicts: Governing[ShortLines] = None

    def declared_values(self) -> dict[str, Any]:
        """Return the declared values by key. This takes a third of the time of ``model_dump``."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


class ManifestRule(DeclaredMetadata):
    """Metadata of the files that match a glob, and how they are read.

    Attributes:
        glob: the files, relative to the folder of the manifest.
        reader: the reader of the files; if missing, the one of their format.
        separator: a line that begins with this text starts a new document.
        max_trust: the highest trust tier that the files may declare for themselves.
        trust_documents: whether the files may change what the manifest says of them.
    """

    glob: Annotated[str, StringConstraints(min_length=1)]
    reader: str = ""
    separator: str = ""
    max_trust: TrustTier | None = None
    trust_documents: bool | None = None

    def declared_values(self) -> dict[str, Any]:
        """Return the declared metadata by key."""
        values = super().declared_values()
        return {key: values[key] for key in values if key in METADATA_KEYS}


class ManifestFile(Contract):
    """A ``rolebundle.toml``. Of the rules that match a file, the later ones override the earlier.

    Attributes:
        defaults: metadata of all files.
        rule: the rules.
        ignore: globs of files that are left out.
        ignore_keys: keys that documents declare and that do not count.
        chunking: the size of chunks in characters.
        max_trust: the highest trust tier that a document may declare for itself.
        trust_documents: whether documents may change what the manifest says of them.
    """

    defaults: DeclaredMetadata = DeclaredMetadata.model_construct()
    rule: list[ManifestRule] = []
    ignore: list[str] = []
    ignore_keys: list[str] = []
    chunking: dict[Literal["size", "maximum"], int] = {}
    max_trust: TrustTier | None = None
    trust_documents: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, folder or record that was not ingested, with a code and the reason.

    Also a remark on a file that was ingested, with the code ``note``. A message may begin with the
    path.
    """

    path: str
    code: str
    message: str


LOST = "its former text was removed: "
"""The beginning of the reason why a file is skipped, if the corpus had its documents."""
ERROR_CODES = frozenset(
    {"bad_metadata", "bad_front_matter", "duplicate_document_id", "duplicate_chunk_id"}
)
"""Errors in documents that their author must correct. The run continues; its exit code is 10."""


class IngestReport(Contract):
    """`ingest`.

    Attributes:
        added: number of files that were added; ``updated``, ``unchanged``, ``removed`` likewise.
        skipped: files, folders and records that were not ingested.
        failed: the paths that the run was given and that were skipped as a whole: files, and
            folders that cannot be listed. ``skipped`` has the reasons.
        flagged: number of documents of this run with findings of the scan.
        quarantined: number of documents of this run that were put into quarantine.
        notes: notes on files that were ingested, and on manifests. The code ``claim_refused`` means
            that a document or manifest declares what the owner does not allow;
            ``manifest_ignored`` that a manifest does not count; ``glob_matches_nothing`` that a
            glob of a manifest has no file; ``dominates`` that a document has more than half of the
            passages of a corpus with more than ten documents.
        documents: number of documents in the corpus after the run.
        chunks: number of chunks in the corpus after the run.
        trusted: number of documents in the corpus that are preferred or authoritative.
        embedded: number of chunks that were embedded in this run.
        waiting: number of chunks in the corpus without a vector.
        embedding_problem: why ``waiting`` chunks have no vector; empty if there was no problem.
    """

    model_config = ConfigDict(frozen=False)  # A run fills it.

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[Skipped] = []
    failed: list[str] = []
    flagged: int = 0
    quarantined: int = 0
    notes: list[Skipped] = []
    documents: int = 0
    chunks: int = 0
    trusted: int = 0
    embedded: int = 0
    waiting: int = 0
    embedding_problem: str = ""

    @property
    def changes(self) -> tuple[int, int, int]:
        """The numbers of files that were added, updated and removed."""
        return self.added, self.updated, self.removed

    def refused(self) -> list[Skipped]:
        """Skipped documents whose code is in ``ERROR_CODES``."""
        return [skipped for skipped in self.skipped if skipped.code in ERROR_CODES]


class ScanOptions(Contract):
    """Settings of the intake scan.

    Attributes:
        secrets: what happens to keys, tokens and passwords.
    """

    # Earlier versions stored more, such as the path of a file of patterns.
    model_config = ConfigDict(extra="ignore")

    secrets: Literal["mask", "quarantine", "off"] = "mask"


class RootOptions(Contract):
    """The options of an ingest that later ingests of the root keep.

    Flags that govern documents are remembered by path; `status` lists them.

    Attributes:
        meta: metadata of all files.
        chunking: ``size`` and ``maximum`` in characters.
        max_size: the maximum file size in bytes; null for the default.
        ignore: whether ignore files, and folders and files that are left out by default, count.
        scan: settings of the intake scan.
        lexical_only: whether the last ingest did not embed.
    """

    # Earlier versions stored a reader and its separator as well.
    model_config = ConfigDict(extra="ignore")

    meta: dict[str, Any] = {}
    chunking: dict[str, int] = {}
    max_size: int | None = None
    ignore: bool = True
    scan: ScanOptions = ScanOptions()
    lexical_only: bool = False


class Root(Contract):
    """A folder or file that was ingested.

    Attributes:
        location: its absolute path.
        prefix: how the paths of its files begin, which are relative to the folder of a manifest
            above it or of the file; empty if they are relative to the root.
        source_id: the source of its documents that declare none.
        documents: number of its documents.
        synced_at: when a whole ingest of it changed the corpus last, ISO 8601 in UTC; empty if none
            was completed.
    """

    location: str
    prefix: str = ""
    source_id: str
    options: RootOptions = RootOptions()
    documents: int = Field(0, ge=0)
    synced_at: str = ""


class RootChange(Contract):
    """`corpus roots move` and `corpus roots remove`.

    Attributes:
        location: the path of the root; after a move its new path.
        documents: number of documents that kept their ids and vectors, or that were removed.
    """

    location: str
    documents: int


class QuarantinedDocument(Contract):
    """A document with findings of the scan, and the kinds of these findings.

    With the verdict ``quarantine`` it is not retrieved; with ``label`` it is, with flags, and also
    with ``released``: a person has released it from quarantine.
    """

    document_id: str
    title: str
    path: str
    verdict: Literal["label", "quarantine", "released"]
    kinds: list[str]


class QuarantineDetails(QuarantinedDocument):
    """`corpus quarantine show`: one document with all its findings.

    Attributes:
        findings: ``kind``, ``start`` and ``end`` (offsets in characters, from 0), ``note``, and
            ``severity`` (``low`` or ``high``).
    """

    findings: list[dict[str, Any]]


METADATA_KEYS = tuple(DeclaredMetadata.model_fields)


def keys_that(*kinds: KeyKind) -> tuple[str, ...]:
    """The keys of these kinds, in the order of the contract."""
    fields = DeclaredMetadata.model_fields.items()
    return tuple(key for key, field in fields if not {*kinds}.isdisjoint(field.metadata))


RootList = list_of(Root, "roots", "RootList", "`corpus roots list`, ordered by location.")
QuarantineList = list_of(
    QuarantinedDocument, "documents", "QuarantineList", "`corpus quarantine list`."
)
