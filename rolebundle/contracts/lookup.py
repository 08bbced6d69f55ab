"""What `get` and `status` answer."""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState
from rolebundle.contracts.terms import ContentType, TrustTier

LookupKind = Literal["chunk", "document", "lines", "passages"]


class FoundDocument(Contract):
    """The document that a lookup led to."""

    document_id: str
    source_id: str
    title: str
    uri: str
    document_type: str
    domain: str
    trust_tier: TrustTier
    updated_at: str | None = None
    superseded_by: list[str]


class FoundPassage(Contract):
    """A passage, whole, or the lines of it that were asked for.

    ``place`` is its number in the document, from 1: ``#document_id:place:count`` reads on from it.
    Where ``truncated``, ``content`` is the beginning of ``content_chars`` characters.
    """

    chunk_id: str
    place: int | None = None
    locator: str
    headings: list[str]
    content_type: ContentType
    content: str
    truncated: bool | None = None
    content_chars: int | None = None


class LookupReference(Contract):
    """What to ask `get` for."""

    id: str


class LookupOmitted(Contract):
    """How much of what was found does not stand in the answer."""

    passages: int
    content_chars: int


class LookupMore(Contract):
    """How to fetch the rest; no ``params`` where the reference itself is too long to be said."""

    method: Literal["get"]
    params: LookupReference | None = None
    omitted: LookupOmitted


class Lookup(Contract):
    """The answer to `get`: one reference, its document, its passages in order."""

    reference: str
    kind: LookupKind
    document: FoundDocument
    passages: list[FoundPassage]
    more: LookupMore | None = None


class SourceStatus(Contract):
    """What the corpus holds of one source."""

    source_id: str
    documents: int
    chunks: int
    trust_tiers: dict[str, int]


class IndexStatus(Contract):
    """One embedding index. ``fast_doubt`` says why its fast companion does not answer."""

    id: int
    provider: str
    model: str
    digest: str
    dimensions: int
    query_prefix: str
    passage_prefix: str
    normalization: str
    chunker: str
    active: bool
    vectors: int
    waiting: int
    since: str
    fast_recall: float | None = None
    fast_doubt: str = ""


class BetterModel(Contract):
    """A model at hand that would answer better, and the command that builds its index."""

    provider: str
    model: str
    command: str
    seconds: float
    brings: str


class CheckProblem(Contract):
    """Something that a check of the corpus found."""

    code: str
    message: str


class CorpusStatus(Contract):
    """The answer to `status`."""

    location: str
    bytes: int
    corpus: CorpusState
    sources: list[SourceStatus]
    waiting: int
    indexes: list[IndexStatus] = []
    cached_vectors: int = 0
    better_models: list[BetterModel] = []
    fast_index_would_pay: bool = False
    checked: bool = False
    problems: list[CheckProblem] = []
