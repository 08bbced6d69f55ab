"""Filling the embedding index: what a vector is made of, and the queue of chunks that wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b

from rolebundle.contracts.document import Passage
from rolebundle.contracts.index import IndexIdentity
from rolebundle.corpus import documents, store, vector_index
from rolebundle.corpus.connection import Corpus
from rolebundle.corpus.vector_index import EmbeddingIndex
from rolebundle.embed.provider import EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError

BATCH = 512

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

Embedded = tuple[list[bytes | None], str]
"""A vector for each text, or ``None`` for one that failed; and why the first one failed."""


@dataclass(frozen=True, slots=True)
class EmbeddingReport:
    """How many chunks got a vector, how many still wait, and why."""

    embedded: int
    waiting: int
    problem: str = ""


def embedding_text(passage: Passage) -> str:
    """What is embedded for a passage: its title, its heading path, its content."""
    path = [passage.document.title, *passage.headings]
    return "\n".join([" › ".join(dict.fromkeys(path)), passage.content])


def ensure_index(corpus: Corpus, provider: EmbeddingProvider, chunker: str) -> EmbeddingIndex:
    """The corpus's index for this provider, created where the corpus has none.

    Raises:
        EmbedderError: the corpus has an index of another model (law 5).
    """
    identity = IndexIdentity(provider.identity, chunker)
    index = vector_index.active_index(corpus)
    if index is None:
        with corpus.writing():
            # Another process may have been faster while we waited for the lock.
            index = vector_index.active_index(corpus) or vector_index.create_index(corpus, identity)
    if index.identity.model != identity.model:
        ours, theirs = identity.model, index.identity.model
        raise EmbedderError(
            "model_mismatch",
            f"the corpus's index was made by {theirs.provider}:{theirs.model} "
            f"(digest {theirs.digest}), and this is {ours.provider}:{ours.model} "
            f"(digest {ours.digest}); vectors of two models are never mixed",
            "ingest into a new corpus file with --db, or with --lexical-only into this one",
        )
    return index


def fill_index(
    corpus: Corpus, index: EmbeddingIndex, provider: EmbeddingProvider, progress: Progress
) -> EmbeddingReport:
    """Give every waiting chunk its vector, in batches that are each written whole.

    Killed anywhere, the next call goes on where this one stopped. A batch that the model cannot
    embed is tried chunk by chunk; what fails alone keeps waiting and is said.
    """
    total = documents.counts(corpus).chunks - vector_index.count_embedded(corpus, index)
    done, problem = 0, ""
    progress("embedding", done, total)
    for texts, (vectors, failure) in _ahead(_waiting(corpus, index), provider):
        problem = problem or failure
        made = [
            (rowid, text, vector)
            for (rowid, text), vector in zip(texts.items(), vectors, strict=True)
            if vector is not None
        ]
        done += _store(corpus, index, made) if made else 0
        progress("embedding", done, total)
    left = documents.counts(corpus).chunks - vector_index.count_embedded(corpus, index)
    return EmbeddingReport(done, left, problem)


def _waiting(corpus: Corpus, index: EmbeddingIndex) -> Iterator[dict[int, str]]:
    """What is to be embedded, by rowid, batch after batch; each chunk once."""
    after = 0
    while rowids := vector_index.waiting(corpus, index, after, BATCH):
        after = rowids[-1]
        yield _texts(corpus, rowids)


def _ahead(
    batches: Iterator[dict[int, str]], provider: EmbeddingProvider
) -> Iterator[tuple[dict[int, str], Embedded]]:
    """Each batch with its vectors; the model works on the next one while one is stored."""
    with ThreadPoolExecutor(1) as pool:
        under_way: deque[tuple[dict[int, str], Future[Embedded]]] = deque()
        for batch in batches:
            under_way.append((batch, pool.submit(_embedded, provider, list(batch.values()))))
            if len(under_way) == 2:
                texts, embedded = under_way.popleft()
                yield texts, embedded.result()
        for texts, embedded in under_way:
            yield texts, embedded.result()


def count_waiting(corpus: Corpus) -> int:
    """How many chunks have no vector in the index that answers."""
    index = vector_index.active_index(corpus)
    embedded = vector_index.count_embedded(corpus, index) if index else 0
    return documents.counts(corpus).chunks - embedded


def _texts(corpus: Corpus, rowids: Sequence[int]) -> dict[int, str]:
    """What to embed, by rowid; rows that are gone by now are left out."""
    passages = documents.passages(corpus, rowids)
    return {rowid: embedding_text(passages[rowid]) for rowid in rowids if rowid in passages}


def _store(corpus: Corpus, index: EmbeddingIndex, made: Sequence[tuple[int, str, bytes]]) -> int:
    """Store vectors of chunks that still are what was embedded; how many those were.

    While the model was at work, another process may have changed a chunk, or removed it and given
    its number to a new one. That one still waits, and gets its own vector.
    """
    with corpus.writing():
        now = _texts(corpus, [rowid for rowid, _, _ in made])
        rows = [
            (rowid, blake2b(text.encode(), digest_size=16).hexdigest(), vector)
            for rowid, text, vector in made
            if now.get(rowid) == text
        ]
        if rows:
            vector_index.add(corpus, index, rows)
            store.note_change(corpus)
    return len(rows)


def _embedded(provider: EmbeddingProvider, texts: Sequence[str]) -> Embedded:
    dimensions = provider.identity.dimensions
    try:
        matrix = unit_vectors(provider.embed_passages(texts), len(texts), dimensions)
    except EmbedderError as error:
        if len(texts) == 1:
            return [None], error.message
        halves = [_embedded(provider, texts[: len(texts) // 2])]
        halves.append(_embedded(provider, texts[len(texts) // 2 :]))
        return halves[0][0] + halves[1][0], halves[0][1] or halves[1][1]
    return [row.tobytes() for row in matrix], ""
