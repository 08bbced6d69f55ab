"""Count what ordinary answers warn of: five roles ask eight ordinary tasks of the sample corpus.

Run: python benchmarks/answers.py

A warning that most answers have is not read. So the table says how many of the 40 answers have each
warning and each state of the fallback. The corpus is built in a temporary folder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from documentation import print_table

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import demo_overlays

SAMPLE_CORPUS = Path(__file__).parent.parent / "sample_corpus"
NOW = datetime(2026, 11, 15, tzinfo=UTC)
MAX_FORBIDDEN_HITS = 8
ROLES = (
    "mossline-code-reviewer",
    "mossline-docs-writer",
    "mossline-incident-responder",
    "mossline-product-strategist",
    "mossline-security-reviewer",
)
TASKS = (
    "Plan release 3.0",
    "What should we worry about before the release?",
    "What has changed since the last release?",
    "What do we know about offline sync?",
    "How do uploads continue after an interruption?",
    "Which decisions are still open?",
    "What did we learn from the last incident?",
    "How does a user sign in?",
)


def answers(*, lexical_only: bool) -> list[RetrievalBundle]:
    """The answer to each task for each role."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "sample.db"
        with Admin(corpus) as admin:
            admin.ingest([SAMPLE_CORPUS])
        with Engine(corpus, overlay_folders((demo_overlays(),))) as engine:
            return [
                engine.retrieve(
                    RetrievalRequest(task=task, role=role, now=NOW, lexical_only=lexical_only)
                )
                for role, task in product(ROLES, TASKS)
            ]


def main() -> int:
    """Print the table; 1 if a goal is missed."""
    argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0]).parse_args()
    rows, is_met = [], True
    for lexical_only in (False, True):
        bundles = answers(lexical_only=lexical_only)
        lanes = "lexical only" if lexical_only else "hybrid"
        counts: Counter[str] = Counter(
            state for bundle in bundles if bundle.fallback for state in bundle.fallback.states
        )
        counts.update(warning.code for bundle in bundles for warning in bundle.warnings)
        for name, count in sorted(counts.items()):
            goal = f"≤ {MAX_FORBIDDEN_HITS}" if name == "forbidden_hit" else ""
            rows.append((f"{name}, {lanes}", f"{count} of {len(bundles)}", goal))
        is_met &= counts["forbidden_hit"] <= MAX_FORBIDDEN_HITS
    print_table(rows)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
