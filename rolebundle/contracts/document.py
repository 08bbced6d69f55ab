"""What may be declared about a document, and what the corpus then holds about a passage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints

from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.terms import ContentType, Origin, Sensitivity, TrustTier


def iso_utc(moment: datetime) -> str:
    """A moment as ISO 8601 in UTC, the one form in which the corpus keeps times."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _parse_moment(value: object) -> str:
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("an ISO 8601 date or time, such as 2026-03-01") from None
    else:
        raise ValueError("an ISO 8601 date or time, such as 2026-03-01")  # noqa: TRY004
    # A time without a zone is taken as UTC, so that the answer does not depend on the machine.
    return iso_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _without_repeats(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


Moment = Annotated[str, BeforeValidator(_parse_moment)]
Slug = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$"
    ),
]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
Slugs = Annotated[list[Slug], AfterValidator(_without_repeats)]


class DeclaredMetadata(BaseModel):
    """The keys that front matter, a manifest or a flag may set. ``None`` is: not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    document_id: Slug | None = None
    source_id: Slug | None = None
    title: Line | None = None
    uri: Line | None = None
    document_type: Slug | None = None
    domain: Slug | None = None
    trust_tier: TrustTier | None = None
    updated_at: Moment | None = None
    language: Slug | None = None
    source_kind: Slug | None = None
    sensitivity: Sensitivity | None = None
    origin: Origin | None = None
    scope: Slug | None = None
    tags: Slugs | None = None
    applicable_roles: list[RoleId] | None = None
    excluded_roles: list[RoleId] | None = None
    retrieval_hints: list[Line] | None = None
    supersedes: Slugs | None = None


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
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


@dataclass(frozen=True, slots=True)
class Superseder:
    """A document that declares that it replaces another one."""

    document_id: str
    trust_tier: TrustTier


@dataclass(frozen=True, slots=True)
class Passage:
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

    @property
    def locator(self) -> str:
        """``path:start-end``, lines from 1, inclusive."""
        return f"{self.path}:{self.start_line}-{self.end_line}"
