"""Compare searches through vectors: in vec0, in memory, and restricted ones.

Run: python benchmarks/vectors.py [FOLDER]

In one warm process, on the vectors of the documentation: vec0, int8 vectors in memory whose
candidates are scored exactly, and two ways to search among the documents that a role may see.
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

from documentation import add_arguments, build, gather, print_table, questions

from rolebundle.embedding.static import StaticProvider
from rolebundle.retrieval.lanes import query_vector
from rolebundle.retrieval.query import build_query
from rolebundle.storage import vector_index, vector_search
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.vector_index import EmbeddingIndex, IndexPart
from rolebundle.storage.vector_scan import scan_of

_RESULTS = 100
_SHARES = (0.01, 0.1, 0.4, 0.9)

Search = Callable[[bytes], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Result:
    """One way to search: its median in milliseconds, and its overlap with the exact result."""

    way: str
    milliseconds: float
    overlap_50: float
    least_50: float
    overlap_100: float


def measure(ways: dict[str, Search], queries: Sequence[bytes]) -> list[Result]:
    """Run all ways for each query in turns. The first way is the exact result."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    results: dict[str, list[Sequence[int]]] = {way: [] for way in ways}
    for query in queries:
        for way, search in ways.items():
            started = perf_counter()
            rowids = search(query)
            times[way].append(1000 * (perf_counter() - started))
            results[way].append(rowids)
    truth = results[next(iter(ways))]
    return [
        Result(
            way,
            median(times[way]),
            mean(_overlaps(truth, results[way], 50)),
            min(_overlaps(truth, results[way], 50)),
            mean(_overlaps(truth, results[way], 100)),
        )
        for way in ways
    ]


def _overlaps(truth: list[Sequence[int]], results: list[Sequence[int]], n: int) -> list[float]:
    pairs = zip(truth, results, strict=True)
    # If the chosen documents have no chunk, nothing is missed.
    return [
        len({*exact[:n]} & {*ours[:n]}) / len(exact[:n]) if exact else 1.0 for exact, ours in pairs
    ]


def search_all(corpus: Corpus, index: EmbeddingIndex, queries: Sequence[bytes]) -> list[Result]:
    """Measure the ways to search among all vectors."""
    part = _largest(index)
    started = perf_counter()
    scan = scan_of(corpus, part)
    assert scan is not None
    print(f"reading the vectors: {1000 * (perf_counter() - started):.0f} ms", file=sys.stderr)

    def exact(query: bytes) -> list[int]:
        sql = vector_search.search_sql(part)
        return [row[0] for row in corpus.rows(sql, (query, _RESULTS))]

    def in_memory(query: bytes) -> list[int]:
        candidates = scan.candidates(query, _RESULTS)
        return _best(vector_search.score(corpus, index, query, candidates))

    return measure({"vec0": exact, "in memory": in_memory}, queries)


def _largest(index: EmbeddingIndex) -> IndexPart:
    # There may also be a small part with quarantined documents.
    return max(index.parts, key=lambda part: part.vectors)


def _best(scores: dict[int, float]) -> list[int]:
    return sorted(scores, key=lambda rowid: (-scores[rowid], rowid))[:_RESULTS]


def among(
    corpus: Corpus, index: EmbeddingIndex, queries: Sequence[bytes], share: float
) -> list[Result]:
    """Measure the two ways to search among some of the documents."""
    own = _largest(index)
    rows = corpus.rows("SELECT id FROM document WHERE compartment = ?", (own.compartment,))
    rowids = sorted(rowid for (rowid,) in rows)
    chosen = json.dumps(sorted(random.Random(1).sample(rowids, int(share * len(rowids)))))

    def through_all(query: bytes) -> list[int]:
        sql = vector_search.search_sql(own, within=True)
        return [row[0] for row in corpus.rows(sql, (query, _RESULTS, chosen))]

    def one_by_one(query: bytes) -> list[int]:
        sql = vector_search.NEAREST_OF_FEW_SQL
        return [row[0] for row in corpus.rows(sql, (query, index.id, chosen, _RESULTS))]

    return measure({"vec0 with `rowid IN`": through_all, "one by one": one_by_one}, queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--questions", type=int, help="ask only the first so many (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    path = build(gather(arguments.folder, arguments.sample))
    _report(path, arguments.questions, arguments.json)


def _report(path: Path, count: int | None, as_json: bool) -> None:
    with open_reader(path) as corpus:
        corpus.load_vectors()
        index = vector_index.active_index(corpus)
        assert index is not None
        provider = StaticProvider()
        queries = [query_vector(build_query(task, None), provider) for task in questions(count)]
        all_results = search_all(corpus, index, queries)
        restricted = {share: among(corpus, index, queries, share) for share in _SHARES}
    if as_json:
        parts = {
            str(share): [asdict(result) for result in results]
            for share, results in restricted.items()
        }
        figures = {"vectors": index.vectors, "all": [asdict(result) for result in all_results]}
        print(json.dumps({**figures, "among": parts, "load": os.getloadavg()}, indent=2))
        return
    rows = [_row(f"all {index.vectors:,} vectors", result) for result in all_results]
    rows += [
        _row(f"among {share:.0%} of the documents", result)
        for share, ways in restricted.items()
        for result in ways
    ]
    print_table(rows)
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


def _row(where: str, result: Result) -> tuple[str, str, str]:
    best = f"overlap@50 {result.overlap_50:.3f} (least {result.least_50:.2f})"
    overlap = f"{best}, @100 {result.overlap_100:.3f}"
    return f"{where}: {result.way}", f"{result.milliseconds:.1f} ms", overlap


if __name__ == "__main__":
    main()
