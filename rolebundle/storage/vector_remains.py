"""Bytes of vectors that were taken out, in the blocks that vec0 keeps vectors in.

sqlite-vec 0.1.9 writes zeroes over a vector that is deleted. Earlier versions left its bytes where
they were, until another vector took the place.
"""

from __future__ import annotations

from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import Share
from rolebundle.storage.vector_index import create_table


def overwrite(corpus: Corpus, share: Share) -> bool:
    """Make the vec0 table of a share anew where it holds more than its vectors; whether it did.

    Call it inside a write transaction.
    """
    blocks = corpus.rows(f"SELECT chunk_id FROM {share.table}_chunks")
    if not any(_has_remains(corpus, share, block) for (block,) in blocks):
        return False
    corpus.load_vectors()
    corpus.run(f"DROP TABLE {share.table}")
    create_table(corpus, share)
    corpus.run(
        f"INSERT INTO {share.table} (rowid, embedding) SELECT e.chunk, e.vector FROM embedded e "
        "CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d ON d.id = c.document "
        "WHERE e.index_id = ? AND d.compartment = ? AND length(e.vector) = ? ORDER BY e.chunk",
        (share.index_id, share.compartment, 4 * share.dimensions),
    )
    return True


def _has_remains(corpus: Corpus, share: Share, block: int) -> bool:
    """Whether a place that holds no vector holds bytes. One that cannot be read may."""
    found = corpus.rows(
        f"SELECT c.size, c.validity, v.vectors FROM {share.table}_chunks c "
        f"LEFT JOIN {share.table}_vector_chunks00 v ON v.rowid = c.chunk_id WHERE c.chunk_id = ?",
        (block,),
    )
    size, validity, vectors = found[0]
    width = 4 * share.dimensions
    if not (
        isinstance(validity, bytes)
        and isinstance(vectors, bytes)
        and len(validity) * 8 == size
        and len(vectors) == size * width
    ):
        return True
    empty = bytes(width)
    return any(
        not validity[place // 8] >> place % 8 & 1
        and vectors[place * width : (place + 1) * width] != empty
        for place in range(size)
    )
