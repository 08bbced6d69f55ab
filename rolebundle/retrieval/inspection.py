"""A document as the corpus has it: its passages as they are indexed, and what it replaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rolebundle.contracts.documents import DocumentMetadata, Passage, Superseder
from rolebundle.retrieval.lookup import readable_passages, resolve_reference
from rolebundle.retrieval.rank import estimated_tokens
from rolebundle.retrieval.request import ReferenceScope
from rolebundle.storage import documents, vector_index
from rolebundle.storage.answer_checks import verify_documents, verify_passages
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import DocumentName
from rolebundle.storage.passages import (
    chunk_texts,
    passages_of_documents,
    search_hints,
)
from rolebundle.storage.publications import PUBLISHED
from rolebundle.storage.sqlite import AMONG
from rolebundle.storage.vector_index import EmbeddingIndex

MAX_PASSAGES = 50
"""How many passages are shown at once."""

ReplacedState = Literal["replaced", "refused", "missing"]
"""Whether a document replaces what it claims to: yes; no, it may not; or that is not there."""


class InspectedPassage(NamedTuple):
    """A passage as the indexes have it.

    Attributes:
        place: its number in the document, from 1.
        title: the title under which it is indexed and embedded.
        hints: words under which it is found besides its text. They are not embedded.
        tokens: how many tokens it has for a model, estimated.
        has_vector: whether it is in the active index; ``None`` if there is no index.
    """

    passage: Passage
    place: int
    title: str
    hints: tuple[str, ...]
    tokens: int
    has_vector: bool | None


class Replaced(NamedTuple):
    """What a document claims to replace: an id, or a path that is not in the corpus."""

    name: str
    state: ReplacedState


class DocumentInspection(NamedTuple):
    """A document, and one page of its passages.

    Attributes:
        path: of its file within the root.
        location: of its file on this machine; empty if it lies on another one, or for an agent that
            must not learn it.
        passages: those from ``first`` on.
        first: place of the first one, from 1.
        total: how many passages the document has.
        chunk_id: the passage that was asked for; empty if none was, or if it is gone.
        superseded_by: what replaces the document.
        ignored_claims: ids of documents that claim to replace it, and may not.
    """

    document: DocumentMetadata
    path: str
    location: str
    passages: list[InspectedPassage]
    first: int
    total: int
    chunk_id: str
    superseded_by: tuple[Superseder, ...]
    ignored_claims: tuple[str, ...]
    replaces: list[Replaced]


def inspect_document(
    corpus: Corpus,
    reference: str,
    chunk_id: str,
    first: int,
    scope: ReferenceScope,
) -> DocumentInspection:
    """Describe a document.

    Args:
        corpus: an open corpus, in a read transaction.
        reference: a document id or a path, or a chunk id.
        chunk_id: a passage of it, which the page has.
        first: place of the first passage of the page, from 1, if no passage was named.
        scope: what may be named. Passages that no role may read are left out.

    Raises:
        UsageError: no document or passage has this reference, or it names several documents.
        AccessDenied: ``role_denied``: no passage may be read.
        CorpusCorrupt: a passage or the document is not what was stored.
    """
    named = documents.documents_named(corpus, reference, ())
    if len(named) != 1:
        found = resolve_reference(corpus, reference, scope)
        passage = found.passages[0]
        chunk_id = chunk_id or (passage.chunk_id if found.kind == "chunk" else "")
        named = documents.documents_named(corpus, passage.document.document_id, ())
    row = named[0].row
    verify_documents(corpus, [row])
    [(name, document, _)] = documents.listed_documents(corpus, [row])
    all_passages = passages_of_documents(corpus, [row])
    places = {passage.rowid: place for place, passage in enumerate(all_passages, start=1)}
    passages = readable_passages(reference, all_passages, scope)
    numbers = {passage.chunk_id: number for number, passage in enumerate(passages)}
    number = numbers.get(chunk_id, max(0, min(first, len(passages)) - 1))
    start = number - number % MAX_PASSAGES
    chosen = passages[numbers[chunk_id]] if chunk_id in numbers else None
    page = passages[start : start + MAX_PASSAGES]
    verify_passages(corpus, [passage.rowid for passage in page])
    index = vector_index.active_index(corpus)
    newer, ignored = documents.superseders(corpus, AMONG, [row])
    return DocumentInspection(
        document=document,
        path=name.path,
        location=_location(name, scope),
        passages=_inspected(corpus, index, page, places),
        first=start + 1,
        total=len(passages),
        chunk_id=chosen.chunk_id if chosen else "",
        superseded_by=newer.get(row, ()),
        ignored_claims=ignored.get(row, ()),
        replaces=_replaced(corpus, row, document),
    )


def _location(name: DocumentName, scope: ReferenceScope) -> str:
    is_shown = scope.absolute and not name.location.startswith(PUBLISHED)
    return name.location if is_shown else ""


def _inspected(
    corpus: Corpus,
    index: EmbeddingIndex | None,
    passages: Sequence[Passage],
    places: dict[int, int],
) -> list[InspectedPassage]:
    rowids = [passage.rowid for passage in passages]
    titles = {text.rowid: text.title for text in chunk_texts(corpus, rowids)}
    hints = search_hints(corpus, rowids)
    vectors = vector_index.vectors_of(corpus, index, rowids) if index else None
    return [
        InspectedPassage(
            passage,
            places[passage.rowid],
            titles[passage.rowid],
            hints[passage.rowid],
            estimated_tokens(passage.content),
            None if vectors is None else passage.rowid in vectors,
        )
        for passage in passages
    ]


def _replaced(corpus: Corpus, row: int, document: DocumentMetadata) -> list[Replaced]:
    claims = documents.claims_of(corpus, row)
    newer, _ = documents.superseders(corpus, AMONG, [claim.row for claim in claims])
    replaced = {
        claim.document_id
        for claim in claims
        if any(new.document_id == document.document_id for new in newer.get(claim.row, ()))
    }
    present = {claim.name for claim in claims}
    return [
        *(
            Replaced(name, "replaced" if name in replaced else "refused")
            for name in dict.fromkeys(claim.document_id for claim in claims)
        ),
        *(Replaced(name, "missing") for name in document.supersedes if name not in present),
    ]
