"""The first passages do not depend on how many are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.policy.overlays import overlay_folders

TASKS = ("rate limits of the API", "What should we worry about before release 3.0?")


@pytest.fixture(scope="module")
def large_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in which each lane can propose more than the first search asks for."""
    folder = tmp_path_factory.mktemp("rounds")
    notes = folder / "notes"
    notes.mkdir()
    for number in range(400):
        word = ("limit", "release", "quota", "token")[number % 4]
        (notes / f"{number}.md").write_text(
            f"# Note {number}\n\nThe API has a rate {word} number {number}. "
            f"We worry about release {number % 7} of part {number % 13}.\n",
            encoding="utf-8",
        )
    corpus = folder / "corpus.db"
    with Admin(corpus) as admin:
        admin.ingest([notes])
    return corpus


@pytest.mark.parametrize("fields", [{}, {"lexical_only": True}, {"fusion": "rrf"}], ids=str)
@pytest.mark.parametrize("role", [None, "security-reviewer"])
def test_the_first_ten_do_not_depend_on_the_limit(
    large_corpus: Path, fields: dict[str, object], role: str | None
) -> None:
    with Engine(large_corpus, overlay_folders(())) as engine:
        for task in TASKS:
            answers = [
                engine.retrieve(
                    RetrievalRequest.model_validate(
                        {"task": task, "role": role, "limit": limit, "now": "2026-11-15", **fields}
                    )
                )
                for limit in (10, 60, 250)
            ]
            first = [
                [(chunk.chunk_id, chunk.scores) for chunk in answer.selected[:10]]
                for answer in answers
            ]
            assert len(first[0]) == 10
            assert answers[2].diagnostics.refills
            assert first[0] == first[1] == first[2]
