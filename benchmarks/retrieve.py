"""Measure governed retrieval against a naive hybrid search, and a cold start against imports.

Run: python benchmarks/retrieve.py [FOLDER] [--only warm|cold|near-equal]

Warm, in one process: the governed retrieve (overlay, both lanes, bundle), the lexical lane alone,
and the naive pair: an OR query for 100 rows through FTS5 and an exact KNN for 100 rows through
sqlite-vec, on the same file. Cold: a one-shot `rolebundle retrieve` against a Python that only
imports apsw, click and pydantic. Near-equal: the warm measurement on documents from one template,
almost all of which are duplicates of the best; only with `--only near-equal`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import cycle, islice, product
from pathlib import Path
from statistics import median
from time import perf_counter

from documentation import Missing, Workplace, add_arguments, gather, print_table, questions

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.retrieval.lanes import query_vector
from rolebundle.retrieval.lexical import match_expression
from rolebundle.retrieval.query import build_query
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.indexes import vector_index
from rolebundle.storage.indexes.compartments import searchable_compartments
from rolebundle.storage.indexes.lexical_index import table_name as lexical_table

_ROWS = 100
_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_ROLES = (
    "mossline-code-reviewer",
    "mossline-docs-writer",
    "mossline-incident-responder",
    "mossline-product-strategist",
    "mossline-security-reviewer",
)
_IMPORTS = "import apsw, click, pydantic"
_NEAR_EQUAL = 5_000
_WORDS = (
    "slow quick plain large small quiet broken fresh heavy narrow wide early late simple".split()
)
_TEMPLATE = """# Checklist for a release

Before the release the owner reads the change log and asks the support team whether customers wait
for a fix. The owner opens the {0} form in the portal and waits until the {1} reviewer approves it.
After the release the owner watches the error rate on the dashboard. If it grows, the owner rolls
the release back and writes a report, which names the cause and the {2} steps that follow. The team
reads the report in the weekly meeting. The backup of the database is made before the migration and
is kept for a while. The {3} restore is tested by another person.
"""
_NEAR_EQUAL_TASKS = (
    "When is the backup of the database made?",
    "What does the owner do after the release?",
    "Who tests the restore?",
)


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of one way to answer over all questions, in milliseconds."""

    name: str
    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Warm:
    """Latencies of all ways to answer on one corpus."""

    documents: int
    chunks: int
    questions: int
    governed: Latency
    lexical_only: Latency
    naive: Latency
    naive_lexical: Latency
    naive_semantic: Latency


@dataclass(frozen=True, slots=True)
class Cold:
    """Milliseconds of a one-shot answer and of the imports; the ratio is a median over pairs."""

    pairs: int
    one_shot: float
    imports: float
    ratio: float


def build(place: Workplace) -> Path:
    """Ingest the files with vectors; unchanged files are skipped."""
    path = place.corpus("retrieve")
    with Admin(path) as admin:
        admin.ingest([place.files], IngestOptions(workers=os.cpu_count() or 1))
    return path


def build_near_equal() -> tempfile.TemporaryDirectory[str]:
    """A folder with the corpus ``near-equal.db`` of documents from one template."""
    folder = tempfile.TemporaryDirectory()
    files = Path(folder.name, "files")
    files.mkdir()
    chosen = islice(product(_WORDS, repeat=4), _NEAR_EQUAL)
    for number, words in enumerate(chosen):
        (files / f"{number}.md").write_text(_TEMPLATE.format(*words), encoding="utf-8")
    with Admin(Path(folder.name, "near-equal.db")) as admin:
        admin.ingest([files])
    return folder


def warm(path: Path, tasks: Sequence[str], rounds: int) -> Warm:
    with Engine(path, overlay_folders((demo_overlays(),))) as engine:
        naive = _Naive(engine)
        roles = dict(zip(tasks, cycle(_ROLES), strict=False))
        ways: dict[str, Callable[[str], object]] = {
            "governed": lambda task: engine.retrieve(
                RetrievalRequest(task=task, role=roles[task], now=_NOW)
            ),
            "lexical_only": lambda task: engine.retrieve(
                RetrievalRequest(task=task, role=roles[task], now=_NOW, lexical_only=True)
            ),
            "naive_lexical": naive.lexical,
            "naive_semantic": naive.semantic,
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for task in tasks:
            naive.prepare(task)
            for answer in ways.values():
                answer(task)
        for _ in range(rounds):
            for task in tasks:
                # All ways answer one question after the other, so that drift affects them equally.
                for name, answer in ways.items():
                    times[name].append(_milliseconds(lambda: answer(task)))  # noqa: B023
        pairs = zip(times["naive_lexical"], times["naive_semantic"], strict=True)
        times["naive"] = [sum(pair) for pair in pairs]
        counts = corpus_counts(engine.workspace.corpus)
    latencies = {name: _latency(name, of) for name, of in times.items()}
    return Warm(counts.documents, counts.chunks, len(tasks), **latencies)


class _Naive:
    """A minimal hybrid search without governance."""

    def __init__(self, engine: Engine) -> None:
        self.corpus: Corpus = engine.workspace.corpus
        index = vector_index.active_index(self.corpus)
        if index is None:
            raise Missing("the corpus has no vectors; delete the working folder and run again")
        [place] = searchable_compartments(self.corpus)
        part = next(part for part in index.parts if part.compartment == place.id)
        self.words_table, self.table = lexical_table(place.id), part.table
        self.provider = engine.workspace.query_provider(self.corpus)
        self.corpus.load_vectors()
        self.words: dict[str, str] = {}
        self.vectors: dict[str, bytes] = {}

    def prepare(self, task: str) -> None:
        # Stop words are left out, as in our query; they would make it slower.
        query = build_query(task, None)
        self.words[task] = match_expression(query.task_terms)
        self.vectors[task] = query_vector(query, self.provider)

    def lexical(self, task: str) -> object:
        return self.corpus.rows(
            f"SELECT rowid, rank FROM {self.words_table} WHERE {self.words_table} MATCH ? "
            f"ORDER BY rank LIMIT {_ROWS}",
            (self.words[task],),
        )

    def semantic(self, task: str) -> object:
        return self.corpus.rows(
            f"SELECT rowid, distance FROM {self.table} WHERE embedding MATCH ? AND k = {_ROWS} "
            "ORDER BY distance",
            (self.vectors[task],),
        )


def cold(pairs: int) -> Cold:
    script = Path(sys.executable).parent / "rolebundle"
    if not script.exists():
        raise Missing(f"{script}: install rolebundle into this environment first")
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "sample.db"
        with Admin(db) as admin:
            admin.ingest([data_folder("sample_corpus")], IngestOptions(lexical_only=True))
        one_shot = [str(script), "retrieve", "Review the token refresh flow", "--lexical-only"]
        one_shot += ["--role", "mossline-security-reviewer", "--db", str(db)]
        one_shot += ["--overlay-dir", str(demo_overlays())]
        imports = [sys.executable, "-c", _IMPORTS]
        for command in (one_shot, imports):
            _run(command)
        times = [
            (_milliseconds(lambda: _run(one_shot)), _milliseconds(lambda: _run(imports)))
            for _ in range(pairs)
        ]
    return Cold(
        pairs=pairs,
        one_shot=median(ours for ours, _ in times),
        imports=median(theirs for _, theirs in times),
        ratio=median(ours / theirs for ours, theirs in times),
    )


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _milliseconds(action: Callable[[], object]) -> float:
    started = perf_counter()
    action()
    return (perf_counter() - started) * 1000


def _latency(name: str, times: list[float]) -> Latency:
    ordered = sorted(times)
    return Latency(name, median(ordered), ordered[int(0.95 * (len(ordered) - 1))])


def _warm_rows(warm: Warm, goal: str) -> list[tuple[str, str, str]]:
    labels = {
        "governed retrieve, overlay on, both lanes": warm.governed,
        "governed retrieve, overlay on, lexical only": warm.lexical_only,
        "naive pair": warm.naive,
        "its OR query, 100 rows": warm.naive_lexical,
        "its exact KNN, 100 rows": warm.naive_semantic,
    }
    rows = [
        (f"{label}, warm", f"median {latency.median:.1f} ms, p95 {latency.p95:.1f} ms", "")
        for label, latency in labels.items()
    ]
    governed, words = warm.governed.median, warm.lexical_only.median
    return [
        (
            f"corpus: {warm.documents:,} documents, {warm.chunks:,} chunks",
            f"{warm.questions} questions",
            "",
        ),
        *rows,
        (
            "**governed ÷ naive pair**, medians",
            f"**{governed / warm.naive.median:.2f}**",
            goal,
        ),
        (
            "governed, lexical only ÷ naive OR query, medians",
            f"{words / warm.naive_lexical.median:.2f}",
            "",
        ),
    ]


def _cold_rows(cold: Cold) -> list[tuple[str, str, str]]:
    return [
        (
            "one-shot `retrieve --role … --lexical-only`, sample corpus",
            f"{cold.one_shot:.0f} ms",
            "",
        ),
        (f'`python -c "{_IMPORTS}"`', f"{cold.imports:.0f} ms", ""),
        (
            f"**one-shot ÷ imports**, median of {cold.pairs} pairs",
            f"**{cold.ratio:.2f}**",
            "≤ 3.0",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--questions", type=int, help="number of questions (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--pairs", type=int, default=21, help="cold starts (default: %(default)s)")
    parser.add_argument("--only", choices=["warm", "cold", "near-equal"], help="measure only this")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    warm_figures = cold_figures = None
    if arguments.only in (None, "cold"):
        cold_figures = cold(arguments.pairs)
    if arguments.only == "near-equal":
        with build_near_equal() as folder:
            path = Path(folder, "near-equal.db")
            warm_figures = warm(path, _NEAR_EQUAL_TASKS, arguments.rounds)
    if arguments.only in (None, "warm"):
        path = build(gather(arguments.folder, arguments.sample))
        warm_figures = warm(path, questions(arguments.questions), arguments.rounds)
    if arguments.json:
        figures = {
            "warm": asdict(warm_figures) if warm_figures else None,
            "cold": asdict(cold_figures) if cold_figures else None,
            "load": os.getloadavg(),
        }
        print(json.dumps(figures, indent=2))
        return
    goal = "" if arguments.only == "near-equal" else "≤ 0.45"
    rows = _warm_rows(warm_figures, goal) if warm_figures else []
    print_table(rows + (_cold_rows(cold_figures) if cold_figures else []))
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
