"""Following a reference back into the corpus, and saying what the corpus holds."""

from __future__ import annotations

import re
from collections import Counter

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
from rolebundle.corpus import check as corpus_check
from rolebundle.corpus import documents, fast_index, vector_cache, vector_index
from rolebundle.corpus.connection import Corpus
from rolebundle.corpus.fast_index import FastState
from rolebundle.corpus.vector_index import EmbeddingIndex
from rolebundle.errors import UsageError
from rolebundle.retrieve.pipeline import corpus_state

_LINES = re.compile(r"^(?P<path>.+):(?P<start>\d{1,9})-(?P<end>\d{1,9})$", re.DOTALL)


def look_up(corpus: Corpus, reference: str) -> Lookup:
    """The chunk, the document or the lines that a reference names.

    Args:
        corpus: an open corpus.
        reference: a chunk id, a document id, or ``path:start-end`` with lines from 1, inclusive.

    Raises:
        UsageError: there is no such thing, or the path names lines of several files.
    """
    # Nothing is stored under a name that is no text, and SQLite would not take it.
    known = not any("\ud800" <= character <= "\udfff" for character in reference)
    chunk = documents.passage_by_id(corpus, reference) if known else None
    if chunk is not None:
        return _lookup(reference, "chunk", [chunk])
    whole = documents.passages_of_document(corpus, reference) if known else []
    if whole:
        return _lookup(reference, "document", whole)
    named = _LINES.match(reference) if known else None
    start, end = (int(named["start"]), int(named["end"])) if named else (1, 0)
    if named and start <= end:
        found = documents.passages_at(corpus, named["path"], start, end)
        if len({passage.document.document_id for passage in found}) > 1:
            ids = ", ".join(sorted({passage.document.document_id for passage in found}))
            raise UsageError(
                "ambiguous_reference",
                f"{reference}: these lines belong to several documents",
                f"name one of them: {ids}",
            )
        if found:
            return _lookup(reference, "lines", found, (start, end))
    raise UsageError(
        "not_found",
        f"{reference}: no chunk, document or lines of that name in this corpus",
        "copy a chunk_id, document_id or locator from a bundle",
    )


def corpus_status(corpus: Corpus, *, check: bool = False, repair: bool = False) -> CorpusStatus:
    """What the corpus holds; with ``check`` what is wrong, with ``repair`` after mending."""
    if repair:
        corpus_check.repair(corpus)
    found = corpus_check.problems(corpus) if check else []
    with corpus.reading():
        state = corpus_state(corpus)
        index = vector_index.active_index(corpus)
        embedded = vector_index.count_embedded(corpus, index) if index else 0
        sizes = documents.source_sizes(corpus)
        indexes = [
            _index_status(corpus, one, state.chunks) for one in vector_index.all_indexes(corpus)
        ]
        cached, _ = vector_cache.size(corpus)
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
            one.active and one.fast_recall is None and one.vectors >= fast_index.WORTH_VECTORS
            for one in indexes
        ),
        checked=check,
        problems=[CheckProblem(code=one.code, message=one.message) for one in found],
    )


def _index_status(corpus: Corpus, index: EmbeddingIndex, chunks: int) -> IndexStatus:
    model = index.identity.model
    fast = FastState.read(index.fast)
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
        fast_recall=fast.recall if fast else None,
        fast_doubt=fast_index.doubt(corpus, index.id, index.fast),
    )


def _lookup(
    reference: str, kind: LookupKind, passages: list[Passage], lines: tuple[int, int] | None = None
) -> Lookup:
    first = passages[0]
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
        passages=[_passage(passage, lines) for passage in passages],
    )


def _passage(passage: Passage, lines: tuple[int, int] | None) -> FoundPassage:
    content, start, end = passage.content, passage.start_line, passage.end_line
    held = content.split("\n")
    # Only where the text is the file's own lines can lines be cut out of it; text that was taken
    # out of HTML or JSON comes whole.
    if lines is not None and len(held) == end - start + 1:
        first, last = max(start, lines[0]), min(end, lines[1])
        content = "\n".join(held[first - start : last - start + 1])
        start, end = first, last
    return FoundPassage(
        chunk_id=passage.chunk_id,
        locator=f"{passage.path}:{start}-{end}",
        headings=list(passage.headings),
        content_type=passage.content_type,
        content=content,
    )
