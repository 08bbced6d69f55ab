"""What a comparison of scopes reads of the corpus: vectors scope by scope, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rolebundle.storage.connection import Corpus
from rolebundle.storage.sqlite_file import Row
from rolebundle.storage.vector_index import EmbeddingIndex

_EMBEDDED = (
    "FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d "
    "ON d.id = c.document WHERE e.index_id = ?"
)


def vectors_by_scope(corpus: Corpus, index: EmbeddingIndex) -> dict[str, int]:
    """Scope → how many of its chunks have a vector, by the names of the scopes."""
    return dict(
        corpus.rows(
            f"SELECT d.scope, count(*) {_EMBEDDED} GROUP BY d.scope ORDER BY d.scope", (index.id,)
        )
    )


def blocks(
    corpus: Corpus, index: EmbeddingIndex, scopes: Sequence[str], size: int
) -> Iterator[list[Row]]:
    """(chunk, document, vector) of everything in these scopes, at most ``size`` at a time.

    A vector of another length than the index's is damaged, and left out.
    """
    named = ", ".join("?" * len(scopes))
    after = -1
    while True:
        found = corpus.rows(
            f"SELECT e.chunk, d.id, e.vector {_EMBEDDED} AND e.chunk > ? "
            f"AND length(e.vector) = ? AND d.scope IN ({named}) ORDER BY e.chunk LIMIT ?",
            (index.id, after, 4 * index.identity.model.dimensions, *scopes, size),
        )
        if not found:
            return
        yield found
        after = found[-1][0]
