"""Words of the task that no passage has are named, because the nearest passages do not show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.interfaces.render import text
from rolebundle.retrieval.answer.packet import packet
from support.corpora import ask, built, document

TEXTS = [f"configure the server with a file number{n}" for n in range(8)]
MANY = " ".join(f"unknown{letter}" for letter in "abcdefghijkl")


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
    assert "NAMES_MISSING" not in {warning.code for warning in bundle.warnings}


@pytest.mark.parametrize(
    ("task", "names", "words"),
    [
        ("Where do I configure Zorblax for the server?", "zorblax", ""),
        ("Where do I configure gpt4 for the server?", "gpt4", ""),
        ("Where do I configure autoscaling of Zorblax?", "zorblax", "autoscaling"),
        ("How does File-124 configure the server?", "124", ""),
        ("Wo ist der Server-0099 und wo ist die Zeit?", "0099", "zeit"),
        # Not a name, a name that occurs, and hardly a word of the task.
        ("Where do I configure 124 of the server?", "", "124"),
        ("Where do I configure the zorblax server?", "", "zorblax"),
        ("Where do I configure Number1 for the server?", "", ""),
        (f"configure the file of {' '.join(f'number{n}' for n in range(7))} for Zorblax", "", ""),
        # In German a capital says nothing.
        ("Wie und wo ist der Server und die Zeit?", "", "zeit"),
    ],
)
def test_a_missing_name_calls_for_a_warning(
    tmp_path: Path, task: str, names: str, words: str
) -> None:
    """A name has no other words, so passages about something else do not answer the task."""
    trusted = document("d", TEXTS, trust_tier="authoritative")
    with built(tmp_path, [trusted]) as corpus:
        bundle = ask(corpus, None, task=task, lexical_only=True, limit=2, allow_weak=True)
    messages = {warning.code: warning.message for warning in bundle.warnings}
    expected = [
        f"no passage of the corpus has these {kind} of the task: {named}" if named else None
        for kind, named in (("names", names), ("words", words))
    ]
    assert [messages.get("NAMES_MISSING"), messages.get("WORDS_MISSING")] == expected
    assert bundle.fallback is not None
    if "WEAK_EVIDENCE" not in messages:
        assert bundle.fallback.action == ("warn" if names else "continue")
    assert (expected[0] or "") in bundle.fallback.message


def test_every_form_of_the_answer_names_them(tmp_path: Path) -> None:
    with built(tmp_path, [document("d", TEXTS)]) as corpus:
        bundle = ask(corpus, None, task="configure the kubernetes server", lexical_only=True)
    sentence = "no passage of the corpus has these words of the task: kubernetes"
    assert f"! WORDS_MISSING: {sentence}" in text(bundle, 200)
    assert f"Note: {sentence}. If the task is about them" in packet(bundle)


def test_every_form_of_the_answer_names_a_missing_name_before_the_passages(tmp_path: Path) -> None:
    with built(tmp_path, [document("d", TEXTS)]) as corpus:
        bundle = ask(corpus, None, task="configure the Zorblax server", lexical_only=True)
    sentence = "no passage of the corpus has these names of the task: zorblax"
    for form in (text(bundle, 200), packet(bundle)):
        assert sentence in form[: form.index("number0")]
    assert f"{sentence}. Say so" in packet(bundle)


def test_words_in_other_passages_are_not_missing(tmp_path: Path) -> None:
    """All visible passages count, and not only those of the answer."""
    unrelated = document("other", ["kubernetes autoscaling in the cluster"])
    with built(tmp_path, [document("d", TEXTS), unrelated]) as corpus:
        bundle = ask(
            corpus, None, task="configure kubernetes autoscaling", lexical_only=True, limit=1
        )
    assert not {"NAMES_MISSING", "WORDS_MISSING"} & {warning.code for warning in bundle.warnings}
