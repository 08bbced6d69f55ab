"""What each part of the ranking brings: nDCG@10 without it, and the change in points.

Run: python benchmarks/parts.py COLLECTIONS --corpora FOLDER

COLLECTIONS is a folder with the test collections cranfield, cisi and cacm in the BEIR layout.
FOLDER has their corpora as cranfield.db, cisi.db and cacm.db, and that of the sample corpus as
sample.db. The collections are asked without a role, the golden sets with theirs. A part is taken
out by replacing its function or constant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

from rolebundle.engine import Engine
from rolebundle.evaluation.evaluation import documents_in, governed, ndcg
from rolebundle.evaluation.questions import (
    Judged,
    from_golden,
    load_collection,
    load_golden,
    references_in,
)
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import demo_overlays

NOW = datetime(2026, 11, 15, tzinfo=UTC)
COLLECTIONS = ("cranfield", "cisi", "cacm")
GOLDEN_SETS = (
    "mossline-security-reviewer",
    "mossline-code-reviewer",
    "mossline-product-strategist",
    "mossline-docs-writer",
    "mossline-incident-responder",
)
PARTS: Mapping[str, tuple[str, Any]] = {
    "nothing": ("rolebundle.retrieval.scoring.SUPPRESS_POINTS", -0.2),
    "confidence of the semantic lane": (
        "rolebundle.retrieval.semantic.query_fluency",
        lambda query, provider: 1.0,
    ),
    "repeated words": ("rolebundle.retrieval.query.MAX_REPEATS", 1),
    "other spellings": ("rolebundle.retrieval.query._other_spellings", lambda task: {}),
    "fewer words, less weight": ("rolebundle.retrieval.evidence.MIN_WORDS_FACTOR", 1.0),
    "correction of words": ("rolebundle.retrieval.lexical.MAX_CORRECTED", 0),
    "lift of exact words": ("rolebundle.retrieval.rank.MAX_RANK_OF_EXACT", sys.maxsize),
    "lift of the best without a role": (
        "rolebundle.retrieval.rank.MAX_RANK_OF_BEST",
        sys.maxsize,
    ),
    "copies": (
        "rolebundle.retrieval.rank.combine_copies",
        lambda rows, task: [[row] for row in rows],
    ),
    "source diversity": ("rolebundle.retrieval.rank.DIVERSITY_STEP", 0.0),
    "the role's vocabulary": ("rolebundle.retrieval.values.VOCABULARY_FACTOR", 0.0),
    "evidence for the role's part": ("rolebundle.retrieval.values.FULL_LANE_SCORE", 1e-9),
    "the role": ("rolebundle.retrieval.pipeline.role_share", lambda policy, specificity: 0.0),
}
"""Part → what is replaced, and with what. "nothing" replaces a constant with its own value."""


def mean_ndcg(engine: Engine, questions: Sequence[Judged]) -> float:
    """nDCG@10 of the governed answers, a mean over the judged questions."""
    document_of = documents_in(engine.workspace.corpus)
    return mean(
        ndcg(governed(engine, (question, grades), document_of)[1], grades, 10)
        for question, grades in questions
        if any(grades.values())
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("collections", type=Path)
    parser.add_argument("--corpora", type=Path, required=True)
    arguments = parser.parse_args()
    sets: dict[str, tuple[Engine, list[Judged]]] = {}
    for name in COLLECTIONS:
        engine = Engine(arguments.corpora / f"{name}.db")
        collection = load_collection(arguments.collections / name)
        references = references_in(engine.workspace.corpus)
        sets[name] = engine, from_golden(collection, references, None, NOW)[0]
    engine = Engine(arguments.corpora / "sample.db", overlay_folders((demo_overlays(),)))
    for name in GOLDEN_SETS:
        golden = load_golden(demo_overlays() / "golden" / f"{name}-v1.toml")
        references = references_in(engine.workspace.corpus)
        sets[name] = engine, from_golden(golden, references, name, NOW)[0]
    print(f"| points of nDCG@10 | {' | '.join(COLLECTIONS)} | golden sets |")
    print("| --- " * (len(COLLECTIONS) + 2) + "|")
    all_figures: dict[str, float] = {}
    for part, (target, replacement) in PARTS.items():
        with patch(target, replacement):
            figures = {name: mean_ndcg(*of_set) for name, of_set in sets.items()}
        all_figures = all_figures or figures
        changes = [figures[name] - all_figures[name] for name in COLLECTIONS]
        changes.append(mean(figures[name] - all_figures[name] for name in GOLDEN_SETS))
        print(f"| without {part} | {' | '.join(f'{100 * change:+.2f}' for change in changes)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
