"""What `get` and `status` answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from rolebundle.contracts.bundle import CorpusState
from rolebundle.contracts.terms import ContentType, TrustTier


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FoundDocument(_Part):
    """The document that a lookup led to."""

    document_id: str
    source_id: str
    title: str
    uri: str
    document_type: str
    domain: str
    trust_tier: TrustTier
    updated_at: str | None
    superseded_by: list[str]


class FoundPassage(_Part):
    """A passage, whole, or the lines of it that were asked for."""

    chunk_id: str
    locator: str
    headings: list[str]
    content_type: ContentType
    content: str


class Lookup(_Part):
    """The answer to `get`: one reference, its document, its passages in order."""

    reference: str
    kind: Literal["chunk", "document", "lines"]
    document: FoundDocument
    passages: list[FoundPassage]


class SourceStatus(_Part):
    """What the corpus holds of one source."""

    source_id: str
    documents: int
    chunks: int
    trust_tiers: dict[str, int]


class CheckProblem(_Part):
    """Something that a check of the corpus found."""

    code: str
    message: str


class CorpusStatus(_Part):
    """The answer to `status`."""

    location: str
    bytes: int
    corpus: CorpusState
    sources: list[SourceStatus]
    waiting: int
    checked: bool = False
    problems: list[CheckProblem] = []
