"""How well the strength of the evidence separates questions from foreign ones.

Run: python benchmarks/evidence.py COLLECTIONS [--corpora FOLDER] [--lexical-only]

COLLECTIONS is a folder with the test collections cranfield, cisi and cacm in the BEIR layout. Each
collection, and the sample corpus, is asked its own questions and those of others. For each pair:
the area under the ROC curve of ``evidence.strength``, own against foreign questions on the same
corpus; and at the shipped thresholds how many own questions are blocked, and how many foreign ones.
The corpora are built with the default model in a temporary folder, unless FOLDER has them as
cranfield.db, cisi.db, cacm.db and sample.db.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from documentation import print_table

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import TaskEvidence
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.evaluation.collection import load_collection

ROOT = Path(__file__).parent.parent
SAMPLE = "sample corpus"
COLLECTIONS = ("cranfield", "cisi", "cacm")
# cisi and cacm are close in topic, so their questions are not foreign to each other.
FOREIGN = (
    ("cranfield", "cisi"),
    ("cranfield", "cacm"),
    ("cranfield", SAMPLE),
    ("cisi", "cranfield"),
    ("cisi", SAMPLE),
    ("cacm", "cranfield"),
    ("cacm", SAMPLE),
    (SAMPLE, "cranfield"),
    (SAMPLE, "cisi"),
    (SAMPLE, "cacm"),
)
"""The questions of the first are asked of the second."""


def questions_of(name: str, collections: Path) -> list[str]:
    """The judged questions of a collection, or those of the golden sets of the sample corpus."""
    if name != SAMPLE:
        return list(load_collection(collections / name).questions.values())
    golden_sets = sorted((ROOT / "sample_corpus" / "overlays" / "golden").glob("*.toml"))
    tasks = [
        question["task"]
        for path in golden_sets
        for question in tomllib.loads(path.read_text("utf-8"))["questions"]
    ]
    return sorted(set(tasks))


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """The probability that a positive exceeds a negative; a tie counts half."""
    wins = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    return wins / (len(positives) * len(negatives))


def evidence_of(
    engine: Engine, questions: Sequence[str], *, lexical_only: bool
) -> list[TaskEvidence]:
    """The evidence for each question."""
    found = []
    for question in questions:
        bundle = engine.retrieve(
            RetrievalRequest(task=question, limit=1, lexical_only=lexical_only)
        )
        assert bundle.evidence is not None
        found.append(bundle.evidence)
    return found


def share_off_topic(evidence: Sequence[TaskEvidence]) -> float:
    """The share that is answered as off-topic."""
    return mean(answer.support == "off_topic" for answer in evidence)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("collections", type=Path)
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--lexical-only", action="store_true")
    arguments = parser.parse_args()
    evidence: dict[tuple[str, str], list[TaskEvidence]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in (*COLLECTIONS, SAMPLE):
            corpus = (arguments.corpora or Path(temporary)) / f"{name.split()[0]}.db"
            if not corpus.exists():
                source = ROOT / "sample_corpus"
                if name != SAMPLE:
                    source = arguments.collections / name / "corpus.jsonl"
                with Admin(corpus) as admin:
                    admin.ingest([source])
            askers = [
                name,
                *(asker for asker, target in FOREIGN if target == name),
            ]
            with Engine(corpus) as engine:
                for asker in askers:
                    evidence[asker, name] = evidence_of(
                        engine,
                        questions_of(asker, arguments.collections),
                        lexical_only=arguments.lexical_only,
                    )
    areas, blocked, rows = [], [], []
    for asker, target in FOREIGN:
        own, foreign = (
            evidence[target, target],
            evidence[asker, target],
        )
        areas.append(
            area_under_curve(
                [answer.strength for answer in own], [answer.strength for answer in foreign]
            )
        )
        blocked.append(share_off_topic(foreign))
        rows.append(
            (
                f"{asker} on {target}",
                f"AUC {areas[-1]:.3f}",
                f"off-topic {blocked[-1]:.0%}",
            )
        )
    rows.append(("mean, worst", f"AUC {mean(areas):.3f}, {min(areas):.3f}", f"{mean(blocked):.0%}"))
    own_answers = [answer for name in (*COLLECTIONS, SAMPLE) for answer in evidence[name, name]]
    rows += [
        (f"own questions of {name}", "blocked", f"{share_off_topic(evidence[name, name]):.1%}")
        for name in (*COLLECTIONS, SAMPLE)
    ]
    rows.append(("all own questions", "blocked", f"{share_off_topic(own_answers):.1%}"))
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
