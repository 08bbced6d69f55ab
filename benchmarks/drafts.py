"""Measure `verify` against `retrieve`, as ratios of the same run.

Run: python benchmarks/drafts.py [FOLDER]

Named evidence: a draft of 3,000 words, written from the 20 passages of an answer, is verified
against this answer; the ratio is to the `retrieve` of that answer. Whole corpus: the same draft
without citations is verified against everything; the ratio is to a lexical `retrieve` of each
sentence that is checked.

The draft has sentences of the passages with citations, some of them quoted, and some with a
changed figure or words of their own.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

from documentation import Missing, add_arguments, build, gather, print_table, questions

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.engine import Engine
from rolebundle.storage.corpus import corpus_counts
from rolebundle.verification.draft import parse_draft

_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_WORDS = 3_000
_PASSAGES = 20
_OWN = "Nobody in this office has ever written such a plain sentence about it."


def draft_from(bundle: RetrievalBundle, *, cited: bool, seed: int = 7) -> str:
    """A draft of about 3,000 words from the passages of a bundle."""
    generator = random.Random(seed)
    sentences: list[str] = []
    for chunk in bundle.selected:
        text = " ".join(chunk.content.split())
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text):
            citation = f" [{chunk.rank}]" if cited else ""
            if 6 <= len(part.split()) <= 40:
                sentences.append(_written(part.rstrip(".!?"), citation, generator))
    if not sentences:
        raise Missing("the answer has no sentences; use other documents")
    words, draft = 0, []
    while words < _WORDS:
        sentence = generator.choice(sentences)
        words += len(sentence.split())
        draft.append(sentence)
    return "\n\n".join(" ".join(draft[at : at + 5]) for at in range(0, len(draft), 5))


def _written(text: str, citation: str, generator: random.Random) -> str:
    match generator.randrange(5):
        case 0:
            return f'The guide says: "{text}"{citation}.'
        case 1:
            return f"{re.sub('[0-9]', '7', text)}{citation}."
        case 2:
            return f"{_OWN} {text}{citation}."
    return f"{text}{citation}."


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    """The median time of a call, after a first one that is not counted."""
    work()
    times = []
    for _ in range(rounds):
        started = perf_counter()
        work()
        times.append(1000 * (perf_counter() - started))
    return median(times)


def against_corpus(engine: Engine, draft: str) -> tuple[int, float, float]:
    """Checked sentences, milliseconds of a lexical retrieve of each, and of verifying them.

    Both are measured in turns, paragraph by paragraph, so that other programs slow both alike.
    """
    count, single, against_all = 0, 0.0, 0.0
    for paragraph in draft.split("\n\n"):
        checked = [s.text for s in parse_draft(paragraph) if s.has_content]
        lexical = [RetrievalRequest(task=text, lexical_only=True, now=_NOW) for text in checked]
        request = VerifyRequest(draft=paragraph, now=_NOW)
        count += len(checked)
        single += milliseconds(lambda: [engine.retrieve(request) for request in lexical], 1)  # noqa: B023
        against_all += milliseconds(lambda: engine.verify(request), 1)  # noqa: B023
    return count, single, against_all


def measure(path: Path, tasks: list[str], rounds: int) -> None:
    """Print the ratios of each task's draft, and their medians."""
    named, ratios, rows = [], [], []
    with Engine(path) as engine:
        for task in tasks:
            request = RetrievalRequest(task=task, limit=_PASSAGES, now=_NOW)
            bundle = engine.retrieve(request)
            values = bundle.model_dump(exclude_none=True)
            checked = VerifyRequest(draft=draft_from(bundle, cited=True), bundle=values, now=_NOW)
            retrieve = milliseconds(lambda: engine.retrieve(request), rounds)  # noqa: B023
            verify = milliseconds(lambda: engine.verify(checked), rounds)  # noqa: B023
            named.append(verify / retrieve)

            count, retrieval, against_all = against_corpus(engine, draft_from(bundle, cited=False))
            ratios.append(against_all / retrieval)
            rows.append((task, retrieve, verify, count, retrieval, against_all))
        chunks = corpus_counts(engine.workspace.corpus).chunks
    for task, retrieve, verify, count, retrieval, against_all in rows:
        print(
            f"{task[:50]:<50}  retrieve {retrieve:6.1f} ms, verify {verify:6.1f} ms; "
            f"{count} sentences: retrieve {retrieval:7.0f} ms, verify {against_all:7.0f} ms"
        )
    print_table(
        [
            (f"verify {_WORDS:,} words against {_PASSAGES} passages / retrieve",
             f"{median(named):.2f} (most {max(named):.2f})", "≤ 3"),
            (f"verify against {chunks:,} chunks / lexical retrieve of each sentence",
             f"{median(ratios):.2f} (most {max(ratios):.2f})", "≤ 1"),
        ]
    )  # fmt: skip


def main() -> None:
    """Gather, build and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_arguments(parser)
    parser.add_argument("--corpus", type=Path, help="measure on this corpus file instead")
    parser.add_argument("--questions", type=int, default=5, help="number of drafts (default: 5)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default: 5)")
    options = parser.parse_args()
    path = options.corpus or build(gather(options.folder, options.sample))
    measure(path, questions(options.questions), options.rounds)


if __name__ == "__main__":
    main()
