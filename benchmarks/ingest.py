"""Measure ingest: lexical against a bare FTS5 insert, a second run, and with embedding.

Run: python benchmarks/ingest.py [FOLDER]

Compared are lexical ingest and a bare FTS5 insert of the same chunks, a second ingest of
unchanged files and the first one, ingest with embedding and the embedder alone on the same texts.
Each pair is measured three times in turns, and the means count, because the speed of a shared
machine varies.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from time import perf_counter

import apsw
from documentation import Missing, Workplace, add_arguments, gather, print_table

from rolebundle.admin import Admin
from rolebundle.embedding.provider import embedding_text
from rolebundle.embedding.static import StaticProvider
from rolebundle.ingest.indexes import BATCH
from rolebundle.ingest.options import IngestOptions
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import chunk_texts
from rolebundle.workspace import Workspace

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_COLUMNS = "title, headings, content, tags, hints"
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds by the clock, and seconds of all processors, worker processes included.

    On a busy machine the clock is unfair to work that runs in parallel.
    """

    clock: float
    processors: float


@dataclass(frozen=True, slots=True)
class Lexical:
    """Lexical ingest, the bare insert, and the second ingest."""

    files: int
    megabytes: float
    chunks: int
    workers: int
    first: Times
    bare: Times
    speeds: tuple[float, ...]
    """Speed of the ingest ÷ speed of the bare insert, in each round."""
    second: Times
    nothing_written: bool
    peak_rss_mb: int
    """Peak of the first round, like that of the workers."""
    peak_rss_worker_mb: int

    @property
    def speed(self) -> float:
        """Speed of the ingest ÷ speed of the bare insert."""
        return self.bare.clock / self.first.clock

    @property
    def second_share(self) -> float:
        """Time of the second ingest ÷ time of the first one."""
        return self.second.clock / self.first.clock


@dataclass(frozen=True, slots=True)
class Embedding:
    """Ingest with embedding, and the embedder alone."""

    files: int
    chunks: int
    ingest: Times
    embedder: Times
    speeds: tuple[float, ...]
    """Speed of the ingest ÷ speed of the embedder, in each round."""
    peak_rss_mb: int

    @property
    def speed(self) -> float:
        """Speed of the ingest ÷ speed of the embedder."""
        return self.embedder.clock / self.ingest.clock


def lexical(place: Workplace, workers: int) -> Lexical:
    path = place.corpus("lexical")

    def ingest() -> Times:
        _remove(path)
        return _timed(lambda: _ingest(path, place.files, workers))

    def ingest_again() -> Times:
        return _timed(lambda: _ingest(path, place.files, workers))

    firsts = [ingest()]
    peaks = _peak_rss(resource.RUSAGE_SELF), _peak_rss(resource.RUSAGE_CHILDREN)
    before = _state(path)
    seconds = [ingest_again()]
    after = _state(path)
    with open_reader(path) as corpus:
        rows = corpus.rows(f"SELECT id, {_COLUMNS} FROM chunk")
    bares = [_timed(lambda: _bare_insert(place.corpus("bare"), rows))]
    for _ in range(_ROUNDS - 1):
        firsts.append(ingest())
        seconds.append(ingest_again())
        bares.append(_timed(lambda: _bare_insert(place.corpus("bare"), rows)))
    return Lexical(
        files=place.count,
        megabytes=place.size / 1e6,
        chunks=len(rows),
        workers=workers,
        first=_mean(firsts),
        bare=_mean(bares),
        speeds=_speeds(bares, firsts),
        second=_mean(seconds),
        nothing_written=before == after,
        peak_rss_mb=peaks[0],
        peak_rss_worker_mb=peaks[1],
    )


def embedding(place: Workplace, workers: int) -> Embedding:
    provider = StaticProvider()
    provider.embed_queries(["load the model before the clock starts"])
    path = place.corpus("embedded")
    ingests, alones, peaks = [], [], []
    texts: list[str] = []

    def alone() -> None:
        for start in range(0, len(texts), BATCH):
            provider.embed_passages(texts[start : start + BATCH])

    for _ in range(_ROUNDS):
        _remove(path)
        ingests.append(_timed(lambda: _ingest(path, place.files, workers, provider)))
        peaks.append(_peak_rss(resource.RUSAGE_SELF))
        with open_reader(path) as corpus:
            texts = _embedding_texts(corpus)
        alones.append(_timed(alone))
    return Embedding(
        place.count,
        len(texts),
        _mean(ingests),
        _mean(alones),
        _speeds(alones, ingests),
        peaks[0],
    )


def _ingest(
    path: Path,
    files: Path,
    workers: int,
    provider: StaticProvider | None = None,
) -> None:
    options = IngestOptions(workers=workers, lexical_only=provider is None)
    with Admin(Workspace(path, provider)) as admin:
        report = admin.ingest([files], options)
    if report.refused() or report.embedding_problem:
        raise Missing(f"the ingest did not go well: {report}")


def _bare_insert(path: Path, rows: list[tuple[object, ...]]) -> None:
    _remove(path)
    db = apsw.Connection(str(path))
    db.execute(f"CREATE VIRTUAL TABLE bare USING fts5 ({_COLUMNS}, tokenize = '{_TOKENIZER}')")
    with db:
        db.executemany(f"INSERT INTO bare (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.close()
    _remove(path)


def _embedding_texts(corpus: Corpus) -> list[str]:
    rowids = [row for (row,) in corpus.rows("SELECT id FROM chunk ORDER BY id")]
    return list(_texts(corpus, rowids))


def _texts(corpus: Corpus, rowids: list[int]) -> Iterator[str]:
    for start in range(0, len(rowids), BATCH):
        stored = chunk_texts(corpus, rowids[start : start + BATCH])
        yield from (embedding_text(*passage[1:]) for passage in stored)


def _state(path: Path) -> tuple[str, int, int]:
    """What a write would change: the file's hash, its time, and the corpus's generation."""
    with open_reader(path) as corpus:
        generation = corpus_counts(corpus).generation
    with path.open("rb") as stream:
        digest = blake2b()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest(), path.stat().st_mtime_ns, generation


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _timed(action: Callable[[], None]) -> Times:
    started, before = perf_counter(), os.times()
    action()
    after = os.times()
    # User and system time of this process and of its children that have ended.
    return Times(perf_counter() - started, sum(after[:4]) - sum(before[:4]))


def _mean(rounds: list[Times]) -> Times:
    return Times(
        fmean(times.clock for times in rounds), fmean(times.processors for times in rounds)
    )


def _speeds(least: list[Times], rounds: list[Times]) -> tuple[float, ...]:
    return tuple(first.clock / second.clock for first, second in zip(least, rounds, strict=True))


def _listed(speeds: tuple[float, ...]) -> str:
    return ", ".join(f"{speed:.2f}" for speed in speeds)


def _peak_rss(who: int) -> int:
    # In kilobytes on Linux; for RUSAGE_CHILDREN, that of the largest child.
    return resource.getrusage(who).ru_maxrss // 1024


def _figures(times: Times, chunks: int) -> str:
    return (
        f"{times.clock:.1f} s, {chunks / times.clock:,.0f} chunks/s; "
        f"{times.processors:.1f} processor seconds"
    )


def _rows(words: Lexical, vectors: Embedding | None) -> list[tuple[str, str, str]]:
    rows = [
        (
            f"lexical ingest, {words.files:,} files, {words.megabytes:,.0f} MB, "
            f"{words.chunks:,} chunks, {words.workers} workers",
            f"{_figures(words.first, words.chunks)}; "
            f"{words.megabytes / words.first.clock:.1f} MB/s",
            "",
        ),
        ("bare FTS5 insert of the same chunks", _figures(words.bare, words.chunks), ""),
        (
            "**lexical ingest ÷ bare insert**, speed",
            f"**{words.speed:.2f}** (rounds: {_listed(words.speeds)})",
            "≥ 0.22",
        ),
        (
            "second ingest, nothing changed",
            f"{words.second.clock:.2f} s; {words.second.processors:.2f} processor seconds; file "
            f"{'untouched' if words.nothing_written else 'CHANGED'}",
            "nothing written",
        ),
        ("**second ÷ first ingest**, time", f"**{words.second_share:.1%}**", "≤ 6%"),
        (
            "peak resident memory, lexical ingest",
            f"{words.peak_rss_mb} MB, largest worker {words.peak_rss_worker_mb} MB",
            "",
        ),
    ]
    if vectors is not None:
        rows += [
            (
                f"ingest with embedding, {vectors.files:,} files, {vectors.chunks:,} chunks",
                f"{_figures(vectors.ingest, vectors.chunks)}; peak {vectors.peak_rss_mb} MB",
                "",
            ),
            (
                "the embedder alone on the same texts",
                _figures(vectors.embedder, vectors.chunks),
                "",
            ),
            (
                "**ingest with embedding ÷ embedder**, speed",
                f"**{vectors.speed:.2f}** (rounds: {_listed(vectors.speeds)})",
                "≥ 0.7",
            ),
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument(
        "--embed-sample",
        type=float,
        default=0.1,
        metavar="FRACTION",
        help="embed this part of the files; 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="processes that parse, as for `rolebundle ingest` (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    words = lexical(gather(arguments.folder, arguments.sample), arguments.workers)
    vectors = None
    if arguments.embed_sample:
        part = min(arguments.sample, arguments.embed_sample)
        vectors = embedding(gather(arguments.folder, part), arguments.workers)
    if arguments.json:
        figures = {
            "lexical": {**asdict(words), "speed": words.speed, "second_share": words.second_share},
            "embedding": {**asdict(vectors), "speed": vectors.speed} if vectors else None,
            "load": os.getloadavg(),
        }
        print(json.dumps(figures, indent=2))
    else:
        print_table(_rows(words, vectors))
        print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
