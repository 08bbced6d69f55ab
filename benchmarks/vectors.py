"""Which search through vectors is the fastest that keeps the answer, on one process and warm.

Beside each other, on the vectors of the documentation: float vectors, int8 vectors with exact
re-scoring, and the IVF index of `rolebundle embed --optimize`; and two ways to search among the
few documents that a role may see.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import apsw
import sqlite_vec
from documentation import Missing, add_arguments, gather, print_table, questions
from retrieve import build

from rolebundle.embedding.static import StaticProvider
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.semantic import query_vector
from rolebundle.storage import approximate_index, vector_index
from rolebundle.storage.approximate_index import Share
from rolebundle.storage.connection import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.vector_index import EmbeddingIndex

_WANTED = 100
_SHARES = (0.01, 0.1, 0.4, 0.9)

Search = Callable[[bytes], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Found:
    """One way to search: its median in milliseconds, and what it finds of the exact best."""

    way: str
    milliseconds: float
    overlap_50: float
    least_50: float
    overlap_100: float


def measure(ways: dict[str, Search], queries: Sequence[bytes]) -> list[Found]:
    """All ways, side by side for each query; the first one is the truth."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    found: dict[str, list[Sequence[int]]] = {way: [] for way in ways}
    for query in queries:
        for way, search in ways.items():
            started = perf_counter()
            rowids = search(query)
            times[way].append(1000 * (perf_counter() - started))
            found[way].append(rowids)
    truth = found[next(iter(ways))]
    return [
        Found(
            way,
            median(times[way]),
            mean(_overlaps(truth, found[way], 50)),
            min(_overlaps(truth, found[way], 50)),
            mean(_overlaps(truth, found[way], 100)),
        )
        for way in ways
    ]


def _overlaps(truth: list[Sequence[int]], found: list[Sequence[int]], n: int) -> list[float]:
    pairs = zip(truth, found, strict=True)
    return [len({*exact[:n]} & {*ours[:n]}) / len(exact[:n]) for exact, ours in pairs]


def whole(corpus: Corpus, index: EmbeddingIndex, queries: Sequence[bytes]) -> list[Found]:
    """The ways to search among all vectors."""
    share = _largest(index)
    both = _with_small(corpus, index)

    def exact(query: bytes) -> list[int]:
        sql = "SELECT rowid FROM v WHERE embedding MATCH ? AND k = ? ORDER BY distance"
        return [rowid for (rowid,) in both.execute(sql, (query, _WANTED))]

    def small(query: bytes, times: int) -> list[int]:
        sql = (
            "SELECT rowid FROM v WHERE small MATCH vec_quantize_int8(?, 'unit') AND k = ? "
            "ORDER BY distance"
        )
        proposed = [rowid for (rowid,) in both.execute(sql, (query, times * _WANTED))]
        return _best(vector_index.score(corpus, index, query, proposed))

    def fast(query: bytes) -> list[int]:
        proposed = approximate_index.nearest(corpus, share, query, 2 * _WANTED)
        return _best(vector_index.score(corpus, index, query, proposed))

    ways: dict[str, Search] = {
        "float, exact": exact,
        f"int8, k = {_WANTED}, scored again": lambda query: small(query, 1),
        f"int8, k = {2 * _WANTED}, scored again": lambda query: small(query, 2),
    }
    if approximate_index.is_usable(corpus, share):
        ways["IVF (`--optimize`), scored again"] = fast
    return measure(ways, queries)


def _largest(index: EmbeddingIndex) -> Share:
    # Beside it there may be a few documents that the scan keeps back.
    return max(index.shares, key=lambda share: share.vectors)


def _best(scores: dict[int, float]) -> list[int]:
    return sorted(scores, key=lambda rowid: (-scores[rowid], rowid))[:_WANTED]


def _with_small(corpus: Corpus, index: EmbeddingIndex) -> apsw.Connection:
    """A table in memory that has every vector as floats and as int8."""
    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    dimensions = index.identity.model.dimensions
    columns = f"embedding float[{dimensions}], small int8[{dimensions}]"
    db.execute(f"CREATE VIRTUAL TABLE v USING vec0 ({columns})")
    with db:
        db.executemany(
            "INSERT INTO v (rowid, embedding, small) "
            "VALUES (?1, ?2, vec_quantize_int8(?2, 'unit'))",
            corpus.each(f"SELECT rowid, embedding FROM {_largest(index).table}"),
        )
    return db


def among(
    corpus: Corpus, index: EmbeddingIndex, queries: Sequence[bytes], share: float
) -> list[Found]:
    """The two ways to search among some of the documents."""
    own = _largest(index)
    rows = corpus.rows("SELECT id FROM document WHERE compartment = ?", (own.compartment,))
    rowids = sorted(rowid for (rowid,) in rows)
    chosen = json.dumps(sorted(random.Random(1).sample(rowids, int(share * len(rowids)))))

    def through_all(query: bytes) -> list[int]:
        sql = vector_index.search_sql(own, within=True)
        return [row[0] for row in corpus.rows(sql, (query, _WANTED, chosen))]

    def one_by_one(query: bytes) -> list[int]:
        sql = vector_index.NEAREST_OF_FEW_SQL
        return [row[0] for row in corpus.rows(sql, (query, index.id, chosen, _WANTED))]

    return measure({"vec0 with `rowid IN`": through_all, "one by one": one_by_one}, queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--questions", type=int, help="ask only the first so many (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    try:
        path = build(gather(arguments.folder, arguments.sample))
    except Missing as problem:
        sys.exit(str(problem))
    _report(path, arguments.questions, arguments.json)


def _report(path: Path, count: int | None, as_json: bool) -> None:
    with open_reader(path) as corpus:
        corpus.load_vectors()
        index = vector_index.active_index(corpus)
        assert index is not None
        provider = StaticProvider()
        queries = [query_vector(build_query(task, None), provider) for task in questions(count)]
        everything = whole(corpus, index, queries)
        restricted = {share: among(corpus, index, queries, share) for share in _SHARES}
    if as_json:
        parts = {str(share): [asdict(one) for one in found] for share, found in restricted.items()}
        figures = {"vectors": index.vectors, "all": [asdict(one) for one in everything]}
        print(json.dumps({**figures, "among": parts, "load": os.getloadavg()}, indent=2))
        return
    rows = [_row(f"all {index.vectors:,} vectors", found) for found in everything]
    rows += [
        _row(f"among {share:.0%} of the documents", found)
        for share, ways in restricted.items()
        for found in ways
    ]
    print_table(rows)
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


def _row(where: str, found: Found) -> tuple[str, str, str]:
    best = f"overlap@50 {found.overlap_50:.3f} (least {found.least_50:.2f})"
    overlap = f"{best}, @100 {found.overlap_100:.3f}"
    return f"{where}: {found.way}", f"{found.milliseconds:.1f} ms", overlap


if __name__ == "__main__":
    main()
