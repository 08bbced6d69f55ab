"""The state of a corpus: its identity, its generation and its sizes."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import damaged, records


def increment_generation(corpus: Corpus) -> None:
    """Count the generation up. Every transaction that changes an answer ends with this."""
    corpus.run("UPDATE corpus_state SET generation = generation + 1")


class CorpusCounts(NamedTuple):
    """The identity, generation and recorded sizes of a corpus."""

    corpus_id: str
    generation: int
    documents: int
    chunks: int


def corpus_counts(corpus: Corpus) -> CorpusCounts:
    """The corpus's identity, generation and sizes."""
    rows = corpus.rows("SELECT corpus_id, generation, documents, chunks FROM corpus_state")
    if not rows:
        raise damaged("its own state")
    return records(CorpusCounts, rows)[0]


def true_generation(corpus: Corpus) -> int:
    """The generation of the file, also if the connection is restricted."""
    return int(corpus.value("SELECT generation FROM main.corpus_state"))
