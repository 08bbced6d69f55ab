"""Documents and passages as they are read from the corpus, and the models of their vectors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import (
    DEFAULT_SCOPE,
    Authority,
    ContentType,
    DatedBy,
    MarkState,
    Origin,
    Sensitivity,
    TrustTier,
)

Texts = tuple[str, ...]


def iso_utc(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC, the form of all times in the corpus."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


REMEMBERED_KIND = "agent"
"""The ``source_kind`` of remembered facts. The ``uri`` of one is what it cites."""

SupersessionReach = Literal["none", "source", "less_trusted", "any"]
"""Which documents a document may supersede: none, whatever it declares; those of its source; also
less trusted ones of other sources; or any. It never is a more trusted one."""


Attributes = tuple[tuple[str, Texts], ...]
"""Keys with their values, sorted by key. No key has a colon."""


OF_READING = "reading."
"""How the keys begin that say how a document was read. No document declares them."""
NOTES_OF_READING = f"{OF_READING}notes"
PARTLY_READ = f"{OF_READING}partly_read"
DATED_BY = f"{OF_READING}dated_by"
LINKS = f"{OF_READING}links"
WRAPPED = f"{OF_READING}wrapped"
"""The lines of a mail's file that its encoding continues in the next line."""
CHECKBOX = f"{OF_READING}task"
STATEMENT = f"{OF_READING}statement"
"""What the text says of itself and another document: ``replaces SR-14 of 14 February 2023``."""
LANGUAGE = f"{OF_READING}language"
"""The language of the text, as ISO 639-1 code, if it is not English."""
OBSERVED_TYPE = f"{OF_READING}document_type"
"""The type that a document shows without a declaration, and what shows it."""


ATTACHED = " › "
"""What is between the names of a file and of what is attached to it."""


def locator_path(document_id: str, source_id: str, path: str) -> str:
    """The path of a document's file; of an attachment the whole name without its source."""
    name = document_id.removeprefix(f"{source_id}/")
    return name if ATTACHED in name.removeprefix(path) else path


def attribute_lines(attributes: Attributes) -> Texts:
    """Each value of the attributes after its key, as ``key: value``."""
    return tuple(f"{key}: {text}" for key, texts in attributes for text in texts)


def attribute_texts(attributes: Attributes) -> Texts:
    """The different values of the attributes, without their keys, and without our notes."""
    own = (texts for key, texts in attributes if not key.startswith(OF_READING))
    return tuple(dict.fromkeys(text for texts in own for text in texts))


NO_TYPE = "document"
"""The type of documents that declare none."""


class DocumentMetadata(NamedTuple):
    """The metadata of a document, with defaults for everything that is not declared.

    Times are ISO 8601 in UTC. ``updated_at`` is ``None`` if it is not known; ``inferred_at`` is
    then when the file was last changed. It counts for freshness and for the order of versions only,
    because a fresh copy of an old text is not newer. ``valid_from`` and
    ``valid_until`` are the first and the last second at which the document applies; ``None`` for no
    bound. ``supersedes`` and ``contradicts`` are ids or paths of documents that this one replaces,
    and disagrees with.

    ``self_declared`` are the governance keys whose value is the document's own declaration.
    ``refused_claims`` are declarations that the owner does not allow, each as ``key: value``.
    ``attributes`` are declarations without a meaning of their own, such as a mail's sender.
    ``reach`` is which documents it may supersede; it is only set before the document is stored.
    """

    document_id: str
    source_id: str
    title: str
    uri: str
    document_type: str = NO_TYPE
    domain: str = "general"
    trust_tier: TrustTier = "general"
    updated_at: str | None = None
    inferred_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    language: str = "und"
    source_kind: str = "internal-document"
    sensitivity: Sensitivity = "internal"
    origin: Origin = "internal"
    scope: str = DEFAULT_SCOPE
    tags: Texts = ()
    applicable_roles: Texts = ()
    excluded_roles: Texts = ()
    retrieval_hints: Texts = ()
    supersedes: Texts = ()
    contradicts: Texts = ()
    self_declared: Texts = ()
    refused_claims: Texts = ()
    attributes: Attributes = ()
    reach: SupersessionReach = "source"

    @property
    def dated_by(self) -> DatedBy | None:
        """What ``updated_at`` is from; ``None`` if it is declared, or there is none."""
        by: DatedBy | None = dict[str, Any](self.attributes).get(DATED_BY, (None,))[0]
        return by

    @property
    def declares_subject(self) -> bool:
        """Whether somebody declared its type or its domain."""
        return self.document_type != NO_TYPE or self.domain != "general"

    @property
    def observed_type(self) -> tuple[str, str] | None:
        """The type that roles rank it by, if it declares none, and what shows it."""
        found = dict(self.attributes).get(OBSERVED_TYPE)
        return (found[0], found[-1]) if found else None

    @property
    def ranked_type(self) -> str:
        """The type that roles rank it by: the declared one, or else the observed one."""
        return self.observed_type[0] if self.observed_type else self.document_type


METADATA_VERSION = 16
"""Must be raised if documents get other metadata, so that unchanged files are read again."""
LATER_FIELDS = (
    "inferred_at",
    *DocumentMetadata._fields[DocumentMetadata._fields.index("attributes") : -1],
)
"""Fields that the first corpora did not have. Add others between ``attributes`` and ``reach``: the
digest of a document covers these only if they are set, so that stored digests stay valid."""


class Superseder(NamedTuple):
    """A document that replaces another one, by its own declaration; times as in the metadata."""

    document_id: str
    trust_tier: TrustTier
    updated_at: str | None = None
    valid_from: str | None = None


class Mark(NamedTuple):
    """What somebody has stated about a passage or its document; ``marked_at`` is ISO 8601."""

    state: MarkState
    marked_by: str
    authority: Authority
    reason: str
    marked_at: str

    @property
    def owner_state(self) -> MarkState | None:
        """The state that changes answers: that of the owner. An agent's is only shown."""
        return self.state if self.authority == "owner" else None


QUOTED = "quoted"
"""How the anchor of a message begins that another one quotes."""
SENDER_FIELD = "(?:From|Von|De|Da|Van|Från|Fra|Od)"
"""A pattern: what mail programs write before the sender of a message."""


def message_of(anchor: str) -> tuple[str, int]:
    """The anchor of a message's mail, and its number in it: 0 is new, 1 and more are quoted."""
    mail, _, last = anchor.rpartition(", ")
    word, _, number = last.partition(" ")
    return (mail, int(number)) if word == QUOTED and number.isdecimal() else (anchor, 0)


class Passage(NamedTuple):
    """A chunk with the metadata of its document.

    Lines are counted from 1, and ``end_line`` is included. ``page`` is 0 if there are no pages.
    ``ordinal`` is its position in the document, from 0.
    ``anchor`` is where it is, in a format in which lines do not tell it: ``p. 3``, ``slide 4``.
    ``flags`` are the kinds of the scan's findings in it, and of those that concern all of its
    document. ``ignored_claims`` are ids of
    documents that claim to replace its document, and may not. ``mark`` is the mark that counts for
    its present text.
    """

    rowid: int
    chunk_id: str
    path: str
    headings: Texts
    content: str
    content_type: ContentType
    content_hash: str
    start_line: int
    end_line: int
    page: int
    tags: Texts
    applicable_roles: Texts
    excluded_roles: Texts
    document: DocumentMetadata
    superseded_by: tuple[Superseder, ...] = ()
    flags: Texts = ()
    ignored_claims: Texts = ()
    mark: Mark | None = None
    anchor: str = ""
    ordinal: int = 0

    @property
    def locator_path(self) -> str:
        """The path of the file; of an attachment with its name, as ``mail.eml › offer.pdf``."""
        return locator_path(self.document.document_id, self.document.source_id, self.path)

    @property
    def locator(self) -> str:
        """``locator_path:start-end``, lines from 1, inclusive."""
        return f"{self.locator_path}:{self.start_line}-{self.end_line}"


class FoundDocument(Contract):
    """The document of a lookup.

    Attributes:
        inferred_at: when its file was last changed, for a document without a date.
        dated_by: what ``updated_at`` is from, if it is not declared.
        attributes: keys of its front matter and properties of its format, with their values.
        superseded_by: ids of documents that replace it.
        linked_from: ids of documents that link to it; missing if there are none.
    """

    document_id: str
    source_id: str
    title: str
    uri: str
    document_type: str
    domain: str
    trust_tier: TrustTier
    updated_at: str | None = None
    inferred_at: str | None = None
    dated_by: DatedBy | None = None
    attributes: dict[str, list[str]] | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    superseded_by: list[str]
    linked_from: list[str] | None = None


class DocumentGroup(NamedTuple):
    """Documents that a role's policy treats alike: metadata and path of one, and all rowids.

    ``applicable_roles`` are those of chunks, and empty if they were not asked for. So is ``path``.
    ``excluded_roles`` are those that every chunk excludes. Marks are of single passages and
    documents, and not of groups.
    """

    document: DocumentMetadata
    path: str
    applicable_roles: Texts
    flags: Texts
    rowids: list[int]
    excluded_roles: Texts
    mark: None = None


class ModelIdentity(NamedTuple):
    """Everything about a model that its vectors depend on.

    Attributes:
        digest: identifies the version of the model.
        query_prefix: text that is put before a query.
        passage_prefix: text that is put before a passage.
    """

    provider: str
    model: str
    digest: str
    dimensions: int
    query_prefix: str = ""
    passage_prefix: str = ""

    @property
    def choice(self) -> str:
        """How an owner names it; the path of a folder is no part of a model's identity."""
        return "folder:PATH" if self.provider == "folder" else f"{self.provider}:{self.model}"


class IndexIdentity(NamedTuple):
    """What the vectors of an index depend on.

    Attributes:
        model: the model.
        chunker: version of the chunker and of the text that is embedded for a chunk.
        normalization: ``unit`` if vectors have length 1.
    """

    model: ModelIdentity
    chunker: str
    normalization: str = "unit"


class Noise(NamedTuple):
    """What a model's cosines of a question and a passage mean, measured on a fixed text sample.

    Attributes:
        floor: 95 of 100 unrelated pairs have at most this cosine, in [−1, 1].
        related: 90 of 100 related pairs have at most this cosine, in [−1, 1].
    """

    floor: float
    related: float

    @property
    def unrelated(self) -> float:
        """About the mean cosine of unrelated pairs."""
        # From 0.2 to 0.33, questions change by at most two of 120, and roles by two points.
        return self.floor - 0.28 * (self.related - self.floor)

    def closeness(self, cosine: float) -> float:
        """Where a cosine lies between the two, in [0, 1]."""
        width = max(self.related - self.floor, 1e-6)
        return min(1.0, max(0.0, (cosine - self.floor) / width))
