"""Measure what isolation costs: an agent that sees three of ten scopes against one that sees all.

Run: python benchmarks/scopes.py [FOLDER]

The documentation is spread over ten scopes. Three agents ask the same questions in turns: one that
sees three scopes, one that sees all, and one on the same corpus without scopes and policy.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter

from documentation import add_arguments, build, gather, print_table, questions

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.policy.access import set_policy
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import demo_overlays
from rolebundle.storage import digests
from rolebundle.storage.writing import open_writer

_SCOPES = 10
_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_ROLES = ("mossline-code-reviewer", "mossline-docs-writer", "mossline-incident-responder")
_POLICY = {
    "three": {"scopes": ["scope-1", "scope-4", "scope-7"], "access_level": "internal"},
    "all": {"scopes": ["*"], "access_level": "internal"},
}
_SPREAD = f"UPDATE document SET scope = 'scope-' || (file % {_SCOPES})"


@dataclass(frozen=True, slots=True)
class Result:
    """Medians and 95th percentiles, in milliseconds, and what the agent sees."""

    chunks: int
    visible: int
    questions: int
    three: float
    three_p95: float
    all: float
    all_p95: float
    nobody: float

    @property
    def cost(self) -> float:
        """Latency with three of ten scopes ÷ latency with all."""
        return self.three / self.all


def scoped(base: Path, path: Path) -> Path:
    """Copy the corpus, spread it over ten scopes, and set the policy."""
    if not path.exists():
        making = path.with_suffix(".making")
        shutil.copyfile(base, making)
        with open_writer(making) as corpus:
            documents = [rowid for (rowid,) in corpus.rows("SELECT id FROM document")]
            with corpus.writing(), digests.renewing(corpus, documents):
                corpus.run(_SPREAD)
            set_policy(corpus, json.dumps(_POLICY), "json", "", "2026-11-01T00:00:00Z")
        making.rename(path)
        with Admin(path) as admin:
            # As `rolebundle policy set` leaves it: what agents are shown goes on record.
            admin.workspace.recorder.begin(admin.workspace.corpus)
    return path


def measure(base: Path, path: Path, tasks: Sequence[str], rounds: int) -> Result:
    """Ask every question as each agent, one agent after the other."""
    with (
        Engine(base, overlay_folders((demo_overlays(),))) as plain,
        Engine(path, overlay_folders((demo_overlays(),))) as engine,
    ):
        roles = dict(zip(tasks, cycle(_ROLES), strict=False))

        def ask(engine: Engine, agent: str | None) -> Callable[[str], object]:
            return lambda task: engine.retrieve(
                RetrievalRequest(task=task, role=roles[task], agent=agent, now=_NOW)
            )

        ways = {
            "three": ask(engine, "three"),
            "all": ask(engine, "all"),
            "nobody": ask(plain, None),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for task in tasks:
            for answer in ways.values():
                answer(task)
        for _ in range(rounds):
            for task in tasks:
                for name, answer in ways.items():
                    started = perf_counter()
                    answer(task)
                    times[name].append(1000 * (perf_counter() - started))
        visible = engine.status("three").corpus.chunks
        chunks = engine.status("all").corpus.chunks
    return Result(
        chunks,
        visible,
        len(tasks),
        median(times["three"]),
        _p95(times["three"]),
        median(times["all"]),
        _p95(times["all"]),
        median(times["nobody"]),
    )


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    place = gather(arguments.folder, arguments.sample)
    base = build(place)
    path = scoped(base, place.corpus("scoped"))
    tasks = questions(arguments.questions)
    result = measure(base, path, tasks, arguments.rounds)
    if arguments.json:
        print(json.dumps({**asdict(result), "cost": result.cost, "load": os.getloadavg()[0]}))
        return
    print_table(
        [
            (
                "chunks, of which an agent with 3 of 10 scopes sees",
                f"{result.visible:,} of {result.chunks:,}",
                "",
            ),
            (
                "governed retrieve, agent with 3 of 10 scopes",
                f"{result.three:.1f} ms (p95 {result.three_p95:.1f})",
                "",
            ),
            (
                "governed retrieve, agent with all scopes",
                f"{result.all:.1f} ms (p95 {result.all_p95:.1f})",
                "",
            ),
            ("the same corpus without scopes and policy", f"{result.nobody:.1f} ms", ""),
            ("**3 of 10 scopes ÷ all**", f"**{result.cost:.2f}**", "≤ 1.2"),
        ]
    )
    print(f"\n{result.questions} questions, load {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
