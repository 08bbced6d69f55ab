"""Look up what a reference names, and describe what the corpus contains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

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
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.retrieval.bundle import passage_mark
from rolebundle.retrieval.lanes import corpus_state
from rolebundle.storage import approximate_index, documents, vector_index
from rolebundle.storage.approximate_index import ApproximateState
from rolebundle.storage.check import Problem
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.storage.verify import verify_passages

_LINES = re.compile(r"^(?P<path>.+):(?P<start>\d{1,9})-(?P<end>\d{1,9})$", re.DOTALL)
_PASSAGES = re.compile(r"^#(?P<document>.+):(?P<first>\d{1,9}):(?P<count>\d{1,9})$", re.DOTALL)


def look_up(
    corpus: Corpus, reference: str, may_read: Callable[[Passage], bool] | None = None
) -> Lookup:
    """Look up the chunk, the document, the passages or the lines that a reference names.

    Args:
        corpus: an open corpus.
        reference: a chunk id, a document id, ``path:start-end`` with lines from 1, inclusive, or
            ``#document_id:from:count`` with passages from 1.
        may_read: whether a role of the agent may read a passage; others are left out.

    Raises:
        UsageError: nothing has this reference, or the lines belong to several documents.
        AccessDenied: ``role_denied``: every passage was left out.
        CorpusCorrupt: a passage or its document is not what was stored.
    """
    kind, passages, lines = resolve_reference(corpus, reference)
    if may_read is not None:
        passages = [passage for passage in passages if may_read(passage)]
        if not passages:
            raise AccessDenied(
                "role_denied",
                f"{reference}: no role of this agent may read it",
                "do not guess what it says; ask the owner of the corpus",
            )
    verify_passages(corpus, [passage.rowid for passage in passages])
    return _lookup(corpus, reference, kind, passages, lines)


def resolve_reference(
    corpus: Corpus, reference: str
) -> tuple[LookupKind, list[Passage], tuple[int, int] | None]:
    """The kind of a reference, the passages that it names, and the lines if it names any.

    Raises:
        UsageError: as :func:`look_up`.
    """
    is_storable = may_be_stored(reference)
    passage = documents.passage_by_id(corpus, reference) if is_storable else None
    if passage is not None:
        return "chunk", [passage], None
    passages = documents.passages_of_document(corpus, reference) if is_storable else []
    if passages:
        return "document", passages, None
    match = _PASSAGES.match(reference) if is_storable else None
    passages = _numbered_passages(corpus, match) if match else []
    if passages:
        return "passages", passages, None
    match = _LINES.match(reference) if is_storable else None
    start, end = (int(match["start"]), int(match["end"])) if match else (1, 0)
    if match and start <= end:
        passages = documents.passages_at_lines(corpus, match["path"], start, end)
        document_ids = sorted({passage.document.document_id for passage in passages})
        if len(document_ids) > 1:
            raise UsageError(
                "ambiguous_reference",
                f"{reference}: these lines belong to several documents",
                f"name one of them: {', '.join(document_ids)}",
            )
        if passages:
            return "lines", passages, (start, end)
    # A secret in the name of a document is masked in the corpus.
    from rolebundle.scan.confidential import without_secrets

    if is_storable and (stored := without_secrets(reference)) != reference:
        return resolve_reference(corpus, stored)
    raise UsageError(
        "not_found",
        f"{reference}: no chunk, document or lines of that name in this corpus",
        "copy a chunk_id, document_id or locator from a bundle",
    )


def may_be_stored(reference: str) -> bool:
    """Whether a stored name may be this: SQLite accepts no text with an unpaired surrogate."""
    return not any("\ud800" <= character <= "\udfff" for character in reference)


def named_document(reference: str) -> str:
    """The document id or path that a reference begins with; the whole reference if it is one."""
    match = _PASSAGES.match(reference)
    if match:
        return match["document"]
    match = _LINES.match(reference)
    return match["path"] if match else reference


def _numbered_passages(corpus: Corpus, match: re.Match[str]) -> list[Passage]:
    """The passages that ``#document_id:first:count`` names; none if there is no such document."""
    document, first, count = match["document"], int(match["first"]), int(match["count"])
    passages = documents.passages_from(corpus, document, first, count) if first and count else []
    total = 0 if passages else len(documents.passages_of_document(corpus, document))
    if total:
        raise UsageError(
            "not_found",
            f"{match[0]}: {document} has the passages 1 to {total}, and none of these",
            f"ask for #{document}:1:{total}, or less of it",
        )
    return passages


def whereabouts(corpus: Corpus, chunk_id: str, document_id: str | None) -> Whereabouts:
    """Where a passage of an earlier answer is today, or why the corpus no longer has it."""
    if documents.passage_by_id(corpus, chunk_id) is not None:
        return "in_corpus"
    if document_id is None:
        return "not_in_corpus"
    has_document = bool(documents.passages_of_document(corpus, document_id))
    return "document_changed" if has_document else "document_gone"


def corpus_status(corpus: Corpus, problems: Sequence[Problem] | None = None) -> CorpusStatus:
    """Describe what the corpus contains.

    Args:
        corpus: an open corpus; it is only read.
        problems: what a check of the file reported; ``None`` if it was not checked.
    """
    with corpus.reading():
        state = corpus_state(corpus)
        active_index = vector_index.active_index(corpus)
        embedded = vector_index.count_vectors(corpus, active_index) if active_index else 0
        sizes = documents.source_sizes(corpus)
        indexes = [
            _index_status(corpus, index, state.chunks) for index in vector_index.all_indexes(corpus)
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
            index.active
            and index.fast_recall is None
            and index.vectors >= approximate_index.MIN_VECTORS
            for index in indexes
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
    noise = index.noise
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
        noise_floor=noise.floor if noise else None,
        related_cosine=noise.related if noise else None,
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
            valid_from=document.valid_from,
            valid_until=document.valid_until,
            superseded_by=[newer.document_id for newer in first.superseded_by],
        ),
        passages=[_passage(passage, places.get(passage.rowid), lines) for passage in passages],
    )


def _passage(passage: Passage, place: int | None, lines: tuple[int, int] | None) -> FoundPassage:
    content, start, end = passage.content, passage.start_line, passage.end_line
    content_lines = content.split("\n")
    # Lines can be cut out only if the text is the file's own lines. Text that was extracted from
    # HTML or JSON is returned whole.
    if lines is not None and len(content_lines) == end - start + 1:
        first, last = max(start, lines[0]), min(end, lines[1])
        content = "\n".join(content_lines[first - start : last - start + 1])
        start, end = first, last
    return FoundPassage(
        anchor=passage.anchor or None,
        chunk_id=passage.chunk_id,
        place=place,
        locator=f"{passage.path}:{start}-{end}",
        headings=list(passage.headings),
        content_type=passage.content_type,
        flags=list(passage.flags) or None,
        mark=passage_mark(passage),
        content=content,
    )
