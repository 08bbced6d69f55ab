"""The state of a corpus: its identity, its generation and its sizes."""

from __future__ import annotations

from rolebundle.storage.connection import Corpus


def increment_generation(corpus: Corpus) -> None:
    """Count the generation up. Every transaction that changes an answer ends with this."""
    corpus.run("UPDATE corpus_state SET generation = generation + 1")
