"""Values that pass between the steps of the pipeline, with defaults for most fields."""

from __future__ import annotations

from typing import Any

from rolebundle.contracts.candidate import Candidate, Filtered, Query, Ranked, Rejected
from rolebundle.contracts.document import DocumentMetadata, Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import FreshnessStatus, RejectionCode
from rolebundle.retrieval.query import build_query
from rolebundle.storage.store import content_hash

_DOCUMENT_FIELDS = frozenset(DocumentMetadata.__dataclass_fields__)


def passage(chunk_id: str = "c1", content: str = "", **fields: Any) -> Passage:
    """Make a passage; ``fields`` are its own or its document's (``source_id=…``).

    As in the corpus, the passage carries its document's roles unless it has its own. Every passage
    has a text of its own unless one is given.
    """
    of_document = {name: fields.pop(name) for name in [*fields] if name in _DOCUMENT_FIELDS}
    document = DocumentMetadata(
        **{"document_id": f"doc-{chunk_id}", "source_id": "wiki", "title": "T", "uri": "u"}
        | of_document
    )
    text = content or f"text of {chunk_id}"
    settings: dict[str, Any] = {
        "rowid": abs(hash(chunk_id)) % 10_000,
        "path": "a.md",
        "headings": (),
        "content_type": "paragraph",
        "content_hash": content_hash(text),
        "start_line": 1,
        "end_line": 2,
        "page": 0,
        "tags": document.tags,
        "applicable_roles": document.applicable_roles,
        "excluded_roles": document.excluded_roles,
    }
    return Passage(chunk_id=chunk_id, content=text, document=document, **(settings | fields))


def candidate(of: Passage | None = None, **fields: Any) -> Candidate:
    settings: dict[str, Any] = {
        "lanes": ("lexical",),
        "lexical": 0.5,
        "semantic": 0.0,
        "bm25": 1.0,
        "bm25_expansion": 0.0,
        "cosine": None,
    }
    return Candidate(passage=of or passage(), **(settings | fields))


def filtered(
    of: Passage | None = None,
    metadata_score: float = 0.5,
    freshness: FreshnessStatus = "undated",
    overlay_hits: tuple[str, ...] = (),
    **fields: Any,
) -> Filtered:
    return Filtered(candidate(of, **fields), metadata_score, freshness, overlay_hits)


def ranked(of: Passage | None = None, final: float = 0.5, **fields: Any) -> Ranked:
    ours = {
        "metadata": 0.2,
        "vocabulary": 0.0,
        "vocabulary_hits": (),
        "diversity_penalty": 0.0,
        "duplicate_of": None,
    }
    ours |= {name: fields.pop(name) for name in [*fields] if name in ours}
    return Ranked(filtered=filtered(of, **fields), final=final, **ours)  # type: ignore[arg-type]


def rejected(
    reason: RejectionCode, of: Passage | None = None, notes: str = "so", **fields: Any
) -> Rejected:
    of = of or passage("rejected")
    return Rejected(of, reason, notes, candidate(of, **fields))


def query(task: str = "token rotation", role: Overlay | None = None) -> Query:
    return build_query(task, role)
