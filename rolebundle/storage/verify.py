"""What retrieval verifies before it shows anything: the rows of passages, and sizes of indexes.

It looks only at what is visible through the connection (law 9). The check of everything is in
`damage/check.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import digests
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import documents_of
from rolebundle.storage.files.stored_values import DAMAGE_HINT
from rolebundle.storage.indexes import lexical_index
from rolebundle.storage.indexes.approximate_index import IndexPart
from rolebundle.storage.indexes.compartments import Compartment, searchable_compartments
from rolebundle.storage.indexes.vector_index import EmbeddingIndex

_WHOLE_WORD = re.compile(r"(?<!\S)[A-Za-z0-9]+(?!\S)")
"""A word that is one token of the index, whatever surrounds it."""


def verify_passages(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare passages and their documents with their digests. Call it inside ``reading()``.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    _verify(corpus, "chunk", "passage", rowids)
    verify_documents(corpus, documents_of(corpus, sorted(rowids)))


def verify_documents(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare documents with their digests.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    _verify(corpus, "document", "document", rowids)


def _verify(corpus: Corpus, table: str, word: str, rowids: Collection[int]) -> None:
    for row in digests.checked(corpus, table, sorted(rowids)):
        if not row.is_intact:
            raise _damaged(corpus, "damaged_passage", f"the {word} {row.name}")


def verify_lexical_indexes(corpus: Corpus) -> None:
    """Check that the lexical indexes have as many chunks as there are, and find a known one.

    It is done once for each state of the corpus that this connection sees.

    Raises:
        CorpusCorrupt: they do not.
    """
    verified = corpus.verified_tables()
    for compartment in searchable_compartments(corpus, facts=True):
        name = lexical_index.table_name(compartment.id)
        if name in verified:
            continue
        indexed = lexical_index.extent(corpus, compartment.id).chunks
        if indexed != compartment.chunks or not _finds_first_chunk(corpus, compartment):
            raise _damaged(corpus, "damaged_index", "the lexical index")
        verified.add(name)


def _finds_first_chunk(corpus: Corpus, compartment: Compartment) -> bool:
    rows = corpus.rows(
        "SELECT c.id, c.content FROM document d CROSS JOIN chunk c ON c.document = d.id "
        "WHERE d.compartment = ? LIMIT 1",
        (compartment.id,),
    )
    if not rows:
        return False
    [(rowid, content)] = rows
    word = _WHOLE_WORD.search(str(content))
    return word is None or bool(
        lexical_index.matching(corpus, compartment.id, [f'"{word[0]}"'], [rowid])
    )


def vectors_problem(corpus: Corpus, index: EmbeddingIndex) -> str:
    """What is wrong with the sizes of an embedding index; empty if nothing is."""
    verified = corpus.verified_tables()
    for part in index.parts:
        if part.vectors and part.table not in verified:
            if not _has_all_vectors(corpus, part):
                return "the embedding index is damaged: it does not have what was stored"
            verified.add(part.table)
    return ""


def _has_all_vectors(corpus: Corpus, part: IndexPart) -> bool:
    try:
        blocks = corpus.rows(
            f"SELECT chunk_id, validity FROM {part.table}_chunks ORDER BY chunk_id"
        )
        stored = sum(int.from_bytes(validity, "little").bit_count() for _, validity in blocks)
        has_records = corpus.value(
            f"SELECT EXISTS (SELECT 1 FROM {part.table}_rowids r CROSS JOIN embedded e "
            "ON e.index_id = ? AND e.chunk = r.rowid)",
            (part.index_id,),
        )
    except (CorpusCorrupt, TypeError):
        return False
    return stored == part.vectors and bool(has_records)


def _damaged(corpus: Corpus, code: str, subject: str) -> CorpusCorrupt:
    return CorpusCorrupt(
        code,
        f"{corpus.path}: the corpus is damaged: {subject} is not what was stored",
        DAMAGE_HINT,
    )
