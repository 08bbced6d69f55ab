"""Filling the embedding index: what a vector is made of, and the queue of chunks that wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from rolebundle.contracts.index import IndexIdentity
from rolebundle.embedding.provider import PROBE_TEXT, TEXT_FAULTS, EmbeddingProvider, unit_vectors
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.errors import EmbedderError
from rolebundle.ingest.chunking import CHUNKER_VERSION
from rolebundle.storage import documents, store, vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex

BATCH = 512
EMBEDDED_AS = f"{CHUNKER_VERSION}, tags"
"""What an index of today is made of: whose passages, and what of them besides title and text."""

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


def ensure_index(
    corpus: Corpus, provider: EmbeddingProvider, chunker: str, reach: str = "{}"
) -> EmbeddingIndex:
    """The corpus's index for this provider, created where the corpus has none.

    Raises:
        EmbedderError: the corpus has an index of another model (law 5), or the model is not at
            hand.
    """
    identity = IndexIdentity(provider.identity, chunker)
    index = vector_index.active_index(corpus)
    if index is None:
        with corpus.writing():
            # Another process may have been faster while we waited for the lock.
            index = vector_index.active_index(corpus) or vector_index.create_index(
                corpus, identity, reach=reach
            )
    if index.identity.model != identity.model:
        ours, theirs = identity.model, index.identity.model
        raise EmbedderError(
            "model_mismatch",
            f"the corpus's index was made by {theirs.provider}:{theirs.model} "
            f"(digest {theirs.digest}), and this is {ours.provider}:{ours.model} "
            f"(digest {ours.digest}); vectors of two models are never mixed",
            f"run `rolebundle embed --provider {ours.provider} --model {ours.model}` to build an "
            "index of this model beside it, or --lexical-only",
        )
    return _of_today(corpus, index, chunker)


def _of_today(corpus: Corpus, index: EmbeddingIndex, chunker: str) -> EmbeddingIndex:
    """The index without the vectors of what would be embedded otherwise today; those chunks wait.

    An earlier version may have left the tags out, say. Looked through once, and all at once.
    """
    if index.identity.chunker == chunker:
        return index
    with corpus.writing():
        after = 0
        while stored := vector_index.input_hashes(corpus, index, after, BATCH):
            after = max(stored)
            texts = _texts(corpus, list(stored))
            others = [row for row, text in texts.items() if stored[row] != input_hash(text)]
            vector_index.remove(corpus, index, others)
        store.increment_generation(corpus)
        return vector_index.set_chunker(corpus, index, chunker)


def build_index(
    corpus: Corpus,
    provider: EmbeddingProvider,
    chunker: str,
    progress: Progress,
    *,
    reach: str = "{}",
    started_at: str = "",
) -> tuple[EmbeddingIndex, EmbeddingReport]:
    """Give every chunk a vector of this model, beside the index that answers, and change over.

    Killed anywhere, the next call goes on where this one stopped. The change-over is one
    transaction, and takes place when no chunk waits.

    Raises:
        EmbedderError: the model is not at hand.
    """
    identity = IndexIdentity(provider.identity, chunker)
    with corpus.writing():
        index = vector_index.find_index(corpus, identity)
        if index is None:
            first = vector_index.active_index(corpus) is None
            index = vector_index.create_index(
                corpus, identity, reach=reach, started_at=started_at, activate=first
            )
        elif reach not in {"{}", index.reach}:
            # The model moved: to another port, or to other prefixes spelled out.
            vector_index.set_reach(corpus, index, reach)
    index = _of_today(corpus, index, chunker)
    embedded = 0
    while True:
        report = fill_index(corpus, index, provider, progress)
        embedded += report.embedded
        with corpus.writing():
            # Somebody may have ingested since the last batch; then there is more to do.
            left = count_waiting(corpus, index)
            if left == 0:
                vector_index.activate_index(corpus, index)
                store.increment_generation(corpus)
                return index, EmbeddingReport(embedded, 0)
        if report.problem or report.embedded == 0:
            return index, EmbeddingReport(embedded, left, report.problem)


def count_waiting(corpus: Corpus, index: EmbeddingIndex | None = None) -> int:
    """How many chunks have no vector in an index, or in the one that answers."""
    index = index or vector_index.active_index(corpus)
    embedded = vector_index.count_vectors(corpus, index) if index else 0
    return documents.counts(corpus).chunks - embedded


def fill_index(
    corpus: Corpus, index: EmbeddingIndex, provider: EmbeddingProvider, progress: Progress
) -> EmbeddingReport:
    """Give every waiting chunk its vector, in batches that are each written whole.

    Killed anywhere, the next call goes on where this one stopped. A batch that the model cannot
    embed is tried chunk by chunk; what fails alone keeps waiting and is said.
    """
    filling = _Filling(corpus, index)
    total = count_waiting(corpus, index)
    done, problem = filling.recall(), ""
    progress("embedding", done, total)
    try:
        for batch, (vectors, failure) in _ahead(filling.waiting(), provider):
            problem = problem or failure
            made = [
                (rowid, text, vector)
                for (rowid, text), vector in zip(batch.texts.items(), vectors, strict=True)
                if vector is not None
            ]
            done += filling.store(batch, made) if made else 0
            progress("embedding", done, total)
    except EmbedderError as error:
        # What is stored stays, and the rest waits.
        problem = f"{error.message}; {error.hint}"
    return EmbeddingReport(done, count_waiting(corpus, index), problem)


@dataclass(frozen=True, slots=True)
class _Batch:
    """What to embed, by rowid, and how often others had changed the corpus when it was read."""

    texts: dict[int, str]
    changes: int


class _Filling:
    """The queue of one run, and the way back into the corpus."""

    def __init__(self, corpus: Corpus, index: EmbeddingIndex) -> None:
        self.corpus = corpus
        self.index = index
        self.own_changes = 0

    def waiting(self) -> Iterator[_Batch]:
        """Batch after batch; each chunk once."""
        after = 0
        while rowids := vector_index.chunks_without_vector(self.corpus, self.index, after, BATCH):
            after = rowids[-1]
            # Counted before the texts are read: a change in between is then seen as one.
            changes = self._changes_of_others()
            yield _Batch(_texts(self.corpus, rowids), changes)

    def recall(self) -> int:
        """Give vectors from the cache to text that was embedded before; how many those were."""
        if vector_index.cache_size(self.corpus)[0] == 0:
            return 0
        done = 0
        for batch in self.waiting():
            hashes = {rowid: input_hash(text) for rowid, text in batch.texts.items()}
            model = self.index.identity.model
            known = vector_index.cached_vectors(self.corpus, model, list(hashes.values()))
            made = [
                (rowid, text, known[hashes[rowid]])
                for rowid, text in batch.texts.items()
                if hashes[rowid] in known
            ]
            done += self.store(batch, made) if made else 0
        return done

    def store(self, batch: _Batch, made: Sequence[tuple[int, str, bytes]]) -> int:
        """Store vectors of chunks that still are what was embedded; how many those were.

        While the model was at work, another process may have changed a chunk, or removed it and
        given its number to a new one. That one still waits, and gets its own vector.
        """
        with self.corpus.writing():
            if self._changes_of_others() != batch.changes:
                now = _texts(self.corpus, [rowid for rowid, _, _ in made])
                made = [one for one in made if now.get(one[0]) == one[1]]
            rows = [(rowid, input_hash(text), vector) for rowid, text, vector in made]
            if rows:
                vector_index.add(self.corpus, self.index, rows)
                store.increment_generation(self.corpus)
        self.own_changes += bool(rows)
        return len(rows)

    def _changes_of_others(self) -> int:
        return documents.counts(self.corpus).generation - self.own_changes


def _ahead(
    batches: Iterator[_Batch], provider: EmbeddingProvider
) -> Iterator[tuple[_Batch, Embedded]]:
    """Each batch with its vectors; the model works on the next ones while one is stored."""
    with ThreadPoolExecutor(provider.at_once) as pool:
        under_way: deque[tuple[_Batch, Future[Embedded]]] = deque()
        for batch in batches:
            texts = list(batch.texts.values())
            under_way.append((batch, pool.submit(_embedded, provider, texts)))
            if len(under_way) > provider.at_once:
                first, embedded = under_way.popleft()
                yield first, embedded.result()
        for last, embedded in under_way:
            yield last, embedded.result()


def _texts(corpus: Corpus, rowids: Sequence[int]) -> dict[int, str]:
    """What to embed, by rowid; rows that are gone by now are left out."""
    return {
        rowid: embedding_text(title, headings, content, tags)
        for rowid, title, headings, content, tags in documents.texts(corpus, rowids)
    }


def _embedded(
    provider: EmbeddingProvider, texts: Sequence[str], *, halved: bool = False
) -> Embedded:
    dimensions = provider.identity.dimensions
    try:
        matrix = unit_vectors(provider.embed_passages(texts), len(texts), dimensions)
    except EmbedderError as error:
        if error.code not in TEXT_FAULTS:
            # The server, the model or the way to it: no other text would fare better.
            raise
        if len(texts) == 1:
            return [None], error.message
        if not halved and not _embeds_at_all(provider):
            raise
        halves = [_embedded(provider, texts[: len(texts) // 2], halved=True)]
        halves.append(_embedded(provider, texts[len(texts) // 2 :], halved=True))
        return halves[0][0] + halves[1][0], halves[0][1] or halves[1][1]
    return [row.tobytes() for row in matrix], ""


def _embeds_at_all(provider: EmbeddingProvider) -> bool:
    """Whether a text that harms nobody is embedded.

    A server that fails on everything would be asked a thousand times for each batch, to no end.
    """
    try:
        unit_vectors(provider.embed_passages([PROBE_TEXT]), 1, provider.identity.dimensions)
    except EmbedderError:
        return False
    return True
