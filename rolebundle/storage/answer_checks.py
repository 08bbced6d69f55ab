"""The checks of what an answer is made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from rolebundle.storage import digests, lexical_index
from rolebundle.storage.compartments import searchable_compartments
from rolebundle.storage.corpus import Corpus, true_generation
from rolebundle.storage.stored_values import damaged
from rolebundle.storage.vector_index import EmbeddingIndex


def verify_passages(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare passages and their documents with their digests. Call it inside ``reading()``.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    chunks = sorted(rowids)
    digests.prefetch_of_chunks(corpus, chunks)
    _verify("passage", digests.checked(corpus, "chunk", chunks), corpus.path)
    of_chunks = digests.checked(corpus, "document", chunks, digests.OF_CHUNKS)
    _verify("document", of_chunks, corpus.path)


def verify_documents(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare documents with their digests.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    _verify("document", digests.checked(corpus, "document", sorted(rowids)), corpus.path)


def _verify(word: str, rows: Iterable[digests.Checked], path: Path) -> None:
    for row in rows:
        if not row.is_intact:
            raise damaged(f"the {word} {row.name}", "damaged_passage", path)


def verify_lexical_indexes(corpus: Corpus) -> None:
    """Check that the lexical indexes have as many chunks as there are.

    It is done once for each state of the corpus that this connection sees.

    Raises:
        CorpusCorrupt: they do not.
    """
    for compartment in searchable_compartments(corpus, with_facts=True):
        name = lexical_index.table_name(compartment.id)
        if corpus.verified.get(name) == true_generation(corpus):
            continue
        indexed, _ = corpus.lexical.extent(corpus, compartment.id)
        if indexed != compartment.chunks:
            raise damaged("the lexical index", "damaged_index", corpus.path)
        corpus.verified[name] = true_generation(corpus)


def vectors_problem(corpus: Corpus, index: EmbeddingIndex) -> str:
    """What is wrong with the sizes of an embedding index; empty if nothing is."""
    stored = "SELECT count(*) FROM embedded WHERE index_id = ? AND compartment = ?"
    for compartment, vectors in index.vector_counts.items():
        name = f"vectors_{index.id}_{compartment}"
        if corpus.verified.get(name) != true_generation(corpus):
            if corpus.value(stored, (index.id, compartment)) != vectors:
                return "the embedding index is damaged: it does not have what was stored"
            corpus.verified[name] = true_generation(corpus)
    return ""
