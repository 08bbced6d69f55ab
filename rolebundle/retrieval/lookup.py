"""What a reference names, and what the corpus contains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rolebundle.contracts.document import Passage
from rolebundle.contracts.lookup import (
    CheckProblem,
    CorpusStatus,
    FoundDocument,
    FoundPassage,
    IndexStatus,
    Lookup,
    LookupKind,
    SourceStatus,
)
from rolebundle.contracts.replay import Whereabouts
from rolebundle.errors import UsageError
from rolebundle.retrieval.lanes import corpus_state
from rolebundle.storage import approximate_index, documents, vector_index
from rolebundle.storage.approximate_index import ApproximateState
from rolebundle.storage.check import Problem
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex

_LINES = re.compile(r"^(?P<path>.+):(?P<start>\d{1,9})-(?P<end>\d{1,9})$", re.DOTALL)
_PASSAGES = re.compile(r"^#(?P<document>.+):(?P<first>\d{1,9}):(?P<count>\d{1,9})$", re.DOTALL)


def look_up(corpus: Corpus, reference: str) -> Lookup:
    """The chunk, the document or the lines that a reference names.

    Args:
        corpus: an open corpus.
        reference: a chunk id, a document id, ``path:start-end`` with lines from 1, inclusive, or
            ``#document_id:from:count`` with passages from 1.

    Raises:
        UsageError: there is no such thing, or the path names lines of several documents.
    """
    kind, passages, lines = referenced(corpus, reference)
    return _lookup(corpus, reference, kind, passages, lines)


def referenced(
    corpus: Corpus, reference: str
) -> tuple[LookupKind, list[Passage], tuple[int, int] | None]:
    """What kind of reference it is, the passages that it names, and the lines if it names any.

    Raises:
        UsageError: as :func:`look_up`.
    """
    # SQLite takes no text with an unpaired surrogate, so nothing has such a name.
    known = not any("\ud800" <= character <= "\udfff" for character in reference)
    chunk = documents.passage_by_id(corpus, reference) if known else None
    if chunk is not None:
        return "chunk", [chunk], None
    whole = documents.passages_of_document(corpus, reference) if known else []
    if whole:
        return "document", whole, None
    counted = _PASSAGES.match(reference) if known else None
    part = _counted(corpus, counted) if counted else []
    if part:
        return "passages", part, None
    named = _LINES.match(reference) if known else None
    start, end = (int(named["start"]), int(named["end"])) if named else (1, 0)
    if named and start <= end:
        found = documents.passages_at_lines(corpus, named["path"], start, end)
        if len({passage.document.document_id for passage in found}) > 1:
            ids = ", ".join(sorted({passage.document.document_id for passage in found}))
            raise UsageError(
                "ambiguous_reference",
                f"{reference}: these lines belong to several documents",
                f"name one of them: {ids}",
            )
        if found:
            return "lines", found, (start, end)
    raise UsageError(
        "not_found",
        f"{reference}: no chunk, document or lines of that name in this corpus",
        "copy a chunk_id, document_id or locator from a bundle",
    )


def _counted(corpus: Corpus, named: re.Match[str]) -> list[Passage]:
    document, first, count = named["document"], int(named["first"]), int(named["count"])
    found = documents.passages_from(corpus, document, first, count) if first and count else []
    held = 0 if found else len(documents.passages_of_document(corpus, document))
    if held:
        raise UsageError(
            "not_found",
            f"{named[0]}: {document} has the passages 1 to {held}, and none of these",
            f"ask for #{document}:1:{held}, or less of it",
        )
    return found


def whereabouts(corpus: Corpus, chunk_id: str, document_id: str | None) -> Whereabouts:
    """What became of a passage of an earlier answer."""
    if documents.passage_by_id(corpus, chunk_id) is not None:
        return "in_corpus"
    if document_id is None:
        return "not_in_corpus"
    there = documents.passages_of_document(corpus, document_id)
    return "document_changed" if there else "document_gone"


def corpus_status(corpus: Corpus, problems: Sequence[Problem] | None = None) -> CorpusStatus:
    """What the corpus holds.

    Args:
        corpus: an open corpus; it is only read.
        problems: what a check of the file reported; ``None`` if it was not checked.
    """
    with corpus.reading():
        state = corpus_state(corpus)
        index = vector_index.active_index(corpus)
        embedded = vector_index.count_vectors(corpus, index) if index else 0
        sizes = documents.source_sizes(corpus)
        indexes = [
            _index_status(corpus, one, state.chunks) for one in vector_index.all_indexes(corpus)
        ]
        cached, _ = vector_index.cache_size(corpus)
    by_source: dict[str, list[tuple[str, int, int]]] = {}
    for source_id, tier, document_count, chunk_count in sizes:
        by_source.setdefault(source_id, []).append((tier, document_count, chunk_count))
    return CorpusStatus(
        location=str(corpus.path),
        bytes=corpus.path.stat().st_size,
        corpus=state,
        sources=[
            SourceStatus(
                source_id=source_id,
                documents=sum(row[1] for row in rows),
                chunks=sum(row[2] for row in rows),
                trust_tiers=dict(Counter({tier: count for tier, count, _ in rows})),
            )
            for source_id, rows in by_source.items()
        ],
        waiting=state.chunks - embedded,
        indexes=indexes,
        cached_vectors=cached,
        fast_index_would_pay=any(
            one.active and one.fast_recall is None and one.vectors >= approximate_index.MIN_VECTORS
            for one in indexes
        ),
        checked=problems is not None,
        problems=[
            CheckProblem(code=problem.code, message=problem.message) for problem in problems or ()
        ],
    )


def _index_status(corpus: Corpus, index: EmbeddingIndex, chunks: int) -> IndexStatus:
    model = index.identity.model
    states = [ApproximateState.read(part.approximate) for part in index.parts]
    recalls = [state.recall for state in states if state]
    return IndexStatus(
        id=index.id,
        provider=model.provider,
        model=model.model,
        digest=model.digest,
        dimensions=model.dimensions,
        query_prefix=model.query_prefix,
        passage_prefix=model.passage_prefix,
        normalization=index.identity.normalization,
        chunker=index.identity.chunker,
        active=index.active,
        vectors=index.vectors,
        waiting=chunks - index.vectors,
        since=index.started_at,
        fast_recall=min(recalls) if recalls else None,
        fast_doubt=vector_index.stale_reason(corpus, index),
    )


def _lookup(
    corpus: Corpus,
    reference: str,
    kind: LookupKind,
    passages: list[Passage],
    lines: tuple[int, int] | None,
) -> Lookup:
    first = passages[0]
    places = documents.positions(corpus, [passage.rowid for passage in passages])
    document = first.document
    return Lookup(
        reference=reference,
        kind=kind,
        document=FoundDocument(
            document_id=document.document_id,
            source_id=document.source_id,
            title=document.title,
            uri=document.uri,
            document_type=document.document_type,
            domain=document.domain,
            trust_tier=document.trust_tier,
            updated_at=document.updated_at,
            superseded_by=[newer.document_id for newer in first.superseded_by],
        ),
        passages=[_passage(passage, places.get(passage.rowid), lines) for passage in passages],
    )


def _passage(passage: Passage, place: int | None, lines: tuple[int, int] | None) -> FoundPassage:
    content, start, end = passage.content, passage.start_line, passage.end_line
    held = content.split("\n")
    # Lines can be cut out only if the text is the file's own lines. Text that was extracted from
    # HTML or JSON is returned whole.
    if lines is not None and len(held) == end - start + 1:
        first, last = max(start, lines[0]), min(end, lines[1])
        content = "\n".join(held[first - start : last - start + 1])
        start, end = first, last
    return FoundPassage(
        chunk_id=passage.chunk_id,
        place=place,
        locator=f"{passage.path}:{start}-{end}",
        headings=list(passage.headings),
        content_type=passage.content_type,
        content=content,
    )
