"""Words of the task that no passage has are named, because the nearest passages do not show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.interfaces.model_text import answer_text
from rolebundle.interfaces.render import text
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.retrieval.packet import packet
from support.corpora import ask, built, document

TEXTS = [f"configure the server with a file number{n}" for n in range(8)]
MANY = " ".join(f"unknown{n}" for n in range(12))


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("configure the server", ""),
        ("configure kubernetes autoscaling for the server", "kubernetes, autoscaling"),
        # A small part of the task, a general word, and nothing at all that is there.
        ("configure server file number1 number2 number3 number4 number5 kubernetes", ""),
        ("configure the server lately", ""),
        ("kubernetes", ""),
        (f"configure {MANY}", ", ".join(MANY.split()[:10]) + " and 2 more"),
    ],
)
def test_the_missing_words_are_named(tmp_path: Path, task: str, missing: str) -> None:
    with built(tmp_path, [document("d", TEXTS)]) as corpus:
        bundle = ask(corpus, None, task=task, lexical_only=True, limit=2, allow_weak=True)
    messages = [w.message for w in bundle.warnings if w.code == "WORDS_MISSING"]
    sentence = f"no passage of the corpus has these words of the task: {missing}"
    assert messages == ([sentence] if missing else [])


def test_every_form_of_the_answer_names_them(tmp_path: Path) -> None:
    with built(tmp_path, [document("d", TEXTS)]) as corpus:
        bundle = ask(corpus, None, task="configure the kubernetes server", lexical_only=True)
    sentence = "no passage of the corpus has these words of the task: kubernetes"
    assert f"! WORDS_MISSING: {sentence}" in text(bundle, 200)
    assert f"Note: {sentence}." in answer_text("retrieve", shaped_bundle(bundle, "compact"))
    assert f"- {sentence}. If the task is about them" in packet(bundle)


def test_words_in_other_passages_are_not_missing(tmp_path: Path) -> None:
    """All visible passages count, and not only those of the answer."""
    other = document("other", ["kubernetes autoscaling in the cluster"])
    with built(tmp_path, [document("d", TEXTS), other]) as corpus:
        bundle = ask(
            corpus, None, task="configure kubernetes autoscaling", lexical_only=True, limit=1
        )
    assert "WORDS_MISSING" not in {warning.code for warning in bundle.warnings}
