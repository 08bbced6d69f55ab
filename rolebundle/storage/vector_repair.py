"""Telling damaged vectors from sound ones, and taking them out; nothing here trusts the counts."""

from __future__ import annotations

from collections.abc import Sequence

from rolebundle.storage import fast_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import Share
from rolebundle.storage.vector_index import create_table


def is_misshapen(corpus: Corpus, share: Share) -> bool:
    """Whether vec0's own tables are not of the shape that it takes for granted.

    sqlite-vec 0.1.9 reads them unchecked, and a full scan of damaged ones can end the process.
    """
    table = share.table
    flaws = (
        f"SELECT count(*) FROM {table}_chunks WHERE typeof(size) <> 'integer' OR size <= 0 "
        "OR typeof(validity) <> 'blob' OR length(validity) * 8 <> size "
        "OR typeof(rowids) <> 'blob' OR length(rowids) <> size * 8",
        f"SELECT count(*) FROM {table}_rowids r LEFT JOIN {table}_chunks c "
        "ON c.chunk_id = r.chunk_id WHERE typeof(r.chunk_id) <> 'integer' OR c.chunk_id IS NULL "
        "OR typeof(r.chunk_offset) <> 'integer' OR r.chunk_offset NOT BETWEEN 0 AND c.size - 1",
        f"SELECT count(*) FROM {table}_chunks c LEFT JOIN {table}_vector_chunks00 v "
        "ON v.rowid = c.chunk_id WHERE typeof(v.vectors) <> 'blob' "
        f"OR length(v.vectors) <> c.size * {int(share.dimensions) * 4}",
    )
    return any(corpus.value(flaw) for flaw in flaws)


def clear(corpus: Corpus, share: Share) -> None:
    """Make a share anew, empty, so that each of its chunks waits for its vector again."""
    corpus.load_vectors()
    fast_index.remove(corpus, share)
    corpus.run(f"DROP TABLE {share.table}")
    create_table(corpus, share)
    corpus.run(
        f"DELETE FROM embedded WHERE index_id = ? AND chunk IN ({_CHUNKS_OF})",
        (share.index_id, share.compartment),
    )
    _set_count(corpus, share, 0)


_CHUNKS_OF = "SELECT c.id FROM chunk c JOIN document d ON d.id = c.document WHERE d.compartment = ?"


def drop(corpus: Corpus, share: Share, rowids: Sequence[int]) -> int:
    """Take damaged vectors out, and records that have no vector; how many there were.

    Unlike :func:`remove` it trusts neither the records nor the count.
    """
    corpus.load_vectors()
    fast_index.remove(corpus, share)
    corpus.run_many(f"DELETE FROM {share.table} WHERE rowid = ?", ((row,) for row in rowids))
    before = recorded(corpus, share)
    corpus.run(
        f"DELETE FROM embedded WHERE index_id = ? AND chunk IN ({_CHUNKS_OF}) "
        f"AND chunk NOT IN (SELECT rowid FROM {share.table})",
        (share.index_id, share.compartment),
    )
    after = recorded(corpus, share)
    _set_count(corpus, share, after)
    return max(len(rowids), before - after)


def recorded(corpus: Corpus, share: Share) -> int:
    """How many chunks of a share have a record of their vector, counted one by one."""
    return int(
        corpus.value(
            "SELECT count(*) FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk "
            "CROSS JOIN document d ON d.id = c.document "
            "WHERE e.index_id = ? AND d.compartment = ?",
            (share.index_id, share.compartment),
        )
    )


def _set_count(corpus: Corpus, share: Share, count: int) -> None:
    corpus.run(
        "UPDATE embedding_share SET vectors = ? WHERE index_id = ? AND compartment = ?",
        (count, share.index_id, share.compartment),
    )
