"""Marks on passages and documents. A mark counts for the text that was marked, and for no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rolebundle.contracts.documents import Mark, Passage
from rolebundle.storage.corpus import Corpus, corpus_contents
from rolebundle.storage.digests import content_hash
from rolebundle.storage.sqlite import IN_SET

MarkKind = Literal["chunk", "document"]


class StoredMark(NamedTuple):
    """A mark as it is stored. ``text_hash``: see :func:`text_hash`."""

    kind: MarkKind
    target: str
    text_hash: str
    mark: Mark


def all_marks(corpus: Corpus) -> list[StoredMark]:
    """Every mark, also those that have ended, ordered by target."""
    return corpus.select(StoredMark, "mark ORDER BY target, kind")


def mark_of(corpus: Corpus, kind: MarkKind, target: str) -> StoredMark | None:
    """The mark of a passage or document, or ``None``; it may have ended."""
    return _marks_of(corpus, kind, [target]).get(target)


def put_mark(corpus: Corpus, marked: StoredMark) -> None:
    """Store a mark instead of an earlier one. Call it inside a write transaction."""
    corpus.put("mark", marked)


def remove_mark(corpus: Corpus, kind: MarkKind, target: str) -> None:
    """Remove a mark, if there is one. Call it inside a write transaction."""
    corpus.run("DELETE FROM mark WHERE kind = ? AND target = ?", (kind, target))


def forget_marks(corpus: Corpus, document_ids: Sequence[str]) -> None:
    """Remove the marks of documents and their passages. Call it inside a write transaction.

    A passage may be gone since it was marked; its id begins with that of its document and a ``#``.
    """
    corpus.run(
        "DELETE FROM mark WHERE target IN (SELECT value FROM json_each(?1)) OR kind = 'chunk' AND ("
        "EXISTS (SELECT 1 FROM json_each(?1) WHERE substr(target, 1, length(value) + 1) "
        "= value || '#') OR target IN (SELECT c.chunk_id FROM chunk c JOIN document d "
        "ON d.id = c.document WHERE d.document_id IN (SELECT value FROM json_each(?1))))",
        (document_ids,),
    )


def text_hash(corpus: Corpus, kind: MarkKind, target: str) -> str | None:
    """The hash of the present text of a passage or document; ``None`` if it is gone.

    That of a document is the hash of those of its passages, in order.
    """
    if kind == "chunk":
        of_chunk = "SELECT content_hash FROM chunk WHERE chunk_id = ?"
        return next(iter(corpus.column(of_chunk, (target,))), None)
    hashes = corpus.column(
        "SELECT c.content_hash FROM document d JOIN chunk c ON c.document = d.id "
        "WHERE d.document_id = ? ORDER BY c.ordinal",
        (target,),
    )
    return content_hash("\n".join(map(str, hashes))) if hashes else None


def marks_for(corpus: Corpus, passages: Sequence[Passage]) -> dict[str, Mark]:
    """Chunk id → the mark that counts for it.

    That of an owner counts before that of an agent, and then that of the passage itself before that
    of its document.

    Args:
        corpus: an open corpus; a restricted one has the marks of what is visible.
        passages: whatever mark they have.
    """
    if not corpus_contents(corpus).has_marks:
        return {}
    chunks = _marks_of(corpus, "chunk", [passage.chunk_id for passage in passages])
    document_ids = sorted({passage.document.document_id for passage in passages})
    documents = {
        target: marked
        for target, marked in _marks_of(corpus, "document", document_ids).items()
        if marked.text_hash == text_hash(corpus, "document", target)
    }
    counting: dict[str, Mark] = {}
    for passage in passages:
        own = chunks.get(passage.chunk_id)
        of_document = documents.get(passage.document.document_id)
        candidates = [own.mark] if own and own.text_hash == passage.content_hash else []
        candidates += [of_document.mark] if of_document else []
        if candidates:
            counting[passage.chunk_id] = min(candidates, key=lambda mark: mark.authority != "owner")
    return counting


def _marks_of(corpus: Corpus, kind: MarkKind, targets: Sequence[str]) -> dict[str, StoredMark]:
    found = corpus.select(StoredMark, f"mark WHERE kind = ? AND target {IN_SET}", (kind, targets))
    return {marked.target: marked for marked in found}
