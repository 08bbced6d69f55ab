"""Count how many planted disagreements are reported, and how many warnings are false alarms.

Run: python benchmarks/conflicts.py [FOLDER] [--sample FRACTION]

Each line of conflicts-1.jsonl to -7 has a question and two short texts that state the same fact
with another figure, another date or a negation, in other surroundings. They are ingested among
the documentation as documents of equal trust, and the questions are asked. In the fourth set the
fact is stated in other words. The rules were written with the sentences of the first six sets at
hand, and without those of the last.

False alarms are counted in the answers of five roles to eight tasks on the sample corpus, in 200
answers from the documentation, and among 200 random pairs of its passages.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from documentation import Workplace, add_arguments, gather, print_table, questions

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.document import Passage
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.retrieval.conflicts import Comparison
from rolebundle.storage.content.passages import passages_by_rowid

_SETS = tuple(f"conflicts-{number}" for number in range(1, 8))
_NOW = datetime(2026, 11, 15, tzinfo=UTC)
_ROLES = (
    "mossline-code-reviewer",
    "mossline-docs-writer",
    "mossline-incident-responder",
    "mossline-product-strategist",
    "mossline-security-reviewer",
)
_TASKS = (
    "What should we do next quarter?",
    "Which risks does the next release have?",
    "How does a device stay signed in while it is offline?",
    "What went wrong in the last incident, and what has changed since?",
    "How long do we keep data, and who can see it?",
    "What do customers ask for most?",
    "How are conflicting edits of a note resolved?",
    "What has to be documented before the launch?",
)
_ANSWERS = _PAIRS = 200


@dataclass(frozen=True, slots=True)
class Pair:
    """A planted pair: the question, and the names of its two documents."""

    question: str
    names: tuple[str, str]


def plant(folder: Path, name: str) -> list[Pair]:
    """Write the documents of one set to ``folder``."""
    folder.mkdir(parents=True)
    lines = Path(__file__).with_name(f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = []
    for number, line in enumerate(lines, start=1):
        row = json.loads(line)
        names = f"{name}-{number}-one.md", f"{name}-{number}-two.md"
        for file, key in zip(names, ("first", "second"), strict=True):
            (folder / file).write_text(" ".join(row[key]) + "\n", encoding="utf-8")
        pairs.append(Pair(row["question"], names))
    return pairs


def build(place: Workplace) -> tuple[Path, dict[str, list[Pair]]]:
    """Ingest the documentation and all sets."""
    path, folder = place.corpus("conflicts"), place.folder / "planted"
    shutil.rmtree(folder, ignore_errors=True)
    planted = {name: plant(folder / name, name) for name in _SETS}
    with Admin(path) as admin:
        options = IngestOptions(workers=os.cpu_count() or 1)
        admin.ingest([place.files, folder], options)
    return path, planted


def conflicts(bundle: RetrievalBundle) -> list[str]:
    """The sentences of the warning about disagreement."""
    messages = [
        warning.message for warning in bundle.warnings if warning.code == "CONFLICTING_EVIDENCE"
    ]
    return messages[0].split("; ") if messages else []


def false_alarms(bundle: RetrievalBundle) -> list[str]:
    """The first of these sentences that names no planted document, or nothing."""
    return [sentence for sentence in conflicts(bundle) if "planted/" not in sentence][:1]


def is_reported(bundle: RetrievalBundle, pair: Pair) -> bool:
    """Whether one sentence names both documents of a pair."""
    return any(all(name in message for name in pair.names) for message in conflicts(bundle))


def headings(passages: list[Passage], count: int) -> list[str]:
    """Headings as further questions."""
    texts = sorted({passage.headings[-1] for passage in passages if passage.headings})
    texts = [text for text in texts if 3 <= len(text.split()) <= 12]
    return random.Random(7).sample(texts, count)


def random_pairs(passages: list[Passage]) -> list[tuple[Passage, Passage]]:
    """Pairs of passages of different documents."""
    chance = random.Random(7)
    pairs: list[tuple[Passage, Passage]] = []
    while len(pairs) < _PAIRS:
        first, second = chance.sample(passages, 2)
        if first.document.document_id != second.document.document_id:
            pairs.append((first, second))
    return pairs


def _disagree(first: Passage, second: Passage) -> bool:
    comparison = Comparison("")
    return bool(comparison.add(first) or comparison.add(second))


def on_the_sample(folder: Path, *, lexical_only: bool) -> list[str]:
    """The warnings of the answers of all roles to all tasks on the sample corpus."""
    path = folder / "sample.db"
    with Admin(path) as admin:
        admin.ingest([data_folder("sample_corpus")], IngestOptions())
    with Engine(path, overlay_folders((demo_overlays(),))) as engine:
        return [
            f"{role}, {task}: {message}"
            for role in _ROLES
            for task in _TASKS
            for message in false_alarms(
                engine.retrieve(
                    RetrievalRequest(task=task, role=role, now=_NOW, lexical_only=lexical_only)
                )
            )
        ]


def main() -> None:
    """Plant, ask, count, and print what was missed and what was reported wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    place = gather(arguments.folder, arguments.sample)
    path, planted = build(place)
    rows = []
    with Engine(path, overlay_folders((demo_overlays(),))) as engine:
        corpus = engine.workspace.corpus
        rowids = [row for (row,) in corpus.rows("SELECT id FROM chunk ORDER BY id")]
        chosen = random.Random(7).sample(rowids, min(len(rowids), 5000))
        passages = [
            passage
            for passage in passages_by_rowid(corpus, chosen).values()
            if not passage.path.startswith("conflicts-")
        ]
        for lexical_only in (False, True):
            lanes = "words only" if lexical_only else "both lanes"
            for name, pairs in planted.items():
                missed = []
                for pair in pairs:
                    request = RetrievalRequest(
                        task=pair.question, now=_NOW, lexical_only=lexical_only
                    )
                    if not is_reported(engine.retrieve(request), pair):
                        missed.append(pair.question)
                print(f"{name}, {lanes}, missed: {missed}")
                found = f"{len(pairs) - len(missed)} of {len(pairs)}"
                rows.append((f"{name}, {lanes}: found", found, f"≥ {len(pairs) * 9 // 10}"))
            tasks = questions()
            tasks += headings(passages, _ANSWERS - len(tasks))
            alarms = [
                f"{task}: {message}"
                for task in tasks
                for message in false_alarms(
                    engine.retrieve(
                        RetrievalRequest(task=task, now=_NOW, lexical_only=lexical_only)
                    )
                )
            ]
            print("\n".join(alarms))
            label = f"{_ANSWERS} answers from the documentation, {lanes}: with a warning"
            rows.append((label, f"{len(alarms) / _ANSWERS:.1%}", "≤ 2%"))
            on_sample = on_the_sample(place.folder, lexical_only=lexical_only)
            print("\n".join(on_sample))
            count = len(_ROLES) * len(_TASKS)
            rows.append(
                (
                    f"{count} answers from the sample corpus, {lanes}: with a warning",
                    f"{len(on_sample) / count:.1%}",
                    "≤ 2%",
                )
            )
    wrong = [pair for pair in random_pairs(passages) if _disagree(*pair)]
    rows.append((f"{_PAIRS} random pairs: with a conflict", f"{len(wrong) / _PAIRS:.1%}", "≤ 2%"))
    print_table(rows)


if __name__ == "__main__":
    main()
