"""What the corpus holds about a document and about a passage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from rolebundle.contracts.terms import ContentType, Origin, Sensitivity, TrustTier


def iso_utc(moment: datetime) -> str:
    """A moment as ISO 8601 in UTC, the one form in which the corpus keeps times."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class DocumentMetadata(NamedTuple):
    """What the corpus keeps about a document: every declaration resolved, defaults filled in."""

    document_id: str
    source_id: str
    title: str
    uri: str
    document_type: str = "document"
    domain: str = "general"
    trust_tier: TrustTier = "general"
    updated_at: str | None = None
    language: str = "und"
    source_kind: str = "internal-document"
    sensitivity: Sensitivity = "internal"
    origin: Origin = "internal"
    scope: str = "shared"
    tags: tuple[str, ...] = ()
    applicable_roles: tuple[str, ...] = ()
    excluded_roles: tuple[str, ...] = ()
    retrieval_hints: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()


class Superseder(NamedTuple):
    """A document that declares that it replaces another one."""

    document_id: str
    trust_tier: TrustTier


class Passage(NamedTuple):
    """A chunk as the corpus holds it, with the metadata that it carries."""

    rowid: int
    chunk_id: str
    path: str
    headings: tuple[str, ...]
    content: str
    content_type: ContentType
    content_hash: str
    start_line: int
    end_line: int
    page: int
    tags: tuple[str, ...]
    applicable_roles: tuple[str, ...]
    excluded_roles: tuple[str, ...]
    document: DocumentMetadata
    superseded_by: tuple[Superseder, ...] = ()
    flags: tuple[str, ...] = ()
    """The kinds of the intake scan's findings in its document."""

    @property
    def locator(self) -> str:
        """``path:start-end``, lines from 1, inclusive."""
        return f"{self.path}:{self.start_line}-{self.end_line}"
