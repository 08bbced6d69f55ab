"""Words of the task: those that no passage has, exact ones, misspelled ones, and other wordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.interfaces.render import text
from rolebundle.storage.documents import StoredDocument
from support.corpora import ask, built, document, overlay

TEXTS = [f"configure the server with a file number{n}" for n in range(8)]
SERVER = document("d", TEXTS)


def answer(folder: Path, task: str, *documents: StoredDocument, **fields: Any) -> RetrievalBundle:
    with built(folder, documents or (SERVER,)) as corpus:
        return ask(corpus, fields.pop("role", None), task=task, lexical_only=True, **fields)


def messages(bundle: RetrievalBundle) -> dict[str, str]:
    return {warning.code: warning.message or "" for warning in bundle.warnings}


class TestMissing:
    @pytest.mark.parametrize(
        ("task", "missing"),
        [
            ("configure the server", []),
            ("configure kubernetes autoscaling for the server", ["kubernetes", "autoscaling"]),
            ("Where do I configure Zorblax for the server?", ["Zorblax"]),
            ("configure the server E4711", ["E4711"]),
            # Whether an ordinary word is missing says little.
            ("configure many servers for a long time", []),
        ],
    )
    def test_words_that_no_passage_has_are_named(
        self, tmp_path: Path, task: str, missing: list[str]
    ) -> None:
        bundle = answer(tmp_path, task, limit=2)
        message = messages(bundle).get("WORDS_MISSING", "")
        assert bool(message) == bool(missing)
        assert all(word in message for word in missing)
        assert message in text(bundle, 500)


class TestExact:
    """What is quoted, numbers and identifiers can only be meant exactly."""

    OFTEN = document("often", [f"restart the pump after an alarm{' again' * n}" for n in range(6)])
    OTHERS = document("others", [f"the weather is slow to start, day{n}" for n in range(90)])

    @pytest.mark.parametrize(
        ("word", "content"),
        [
            ("6260", "the fault 6260 is of the valve"),
            ("E_OVERHEAT", "E_OVERHEAT"),
            ("pumpControl", "pumpControl is a class"),
            ("src/pump.py", "see src/pump.py"),
            ('"slow start"', "a slow start"),
        ],
    )
    @pytest.mark.parametrize("has_role", [False, True])
    def test_a_rare_one_is_in_the_first_three_passages(
        self, tmp_path: Path, word: str, content: str, has_role: bool
    ) -> None:
        role = overlay(source_policy={"document_type_boosts": {"manual": 0.01}})
        far = "words about other things " * 30
        rare = document("rare", [f"{content} {far}"], document_type="manual")
        task = f"restart the pump after an alarm {word}"
        documents = (self.OFTEN, self.OTHERS, rare)
        bundle = answer(tmp_path, task, *documents, role=role if has_role else None)
        first = [passage.document_id for passage in bundle.selected[:3]]
        assert first == ["often", "often", "rare"]
        assert "WORDS_MISSING" not in messages(bundle)

    @pytest.mark.parametrize("word", ["6261", "E_COLD", "pumpState", '"slow stop"'])
    def test_one_that_no_passage_has_is_named(self, tmp_path: Path, word: str) -> None:
        bundle = answer(tmp_path, f"restart the pump {word}", self.OFTEN)
        assert word.strip('"') in messages(bundle)["WORDS_MISSING"]


class TestMisspelled:
    def test_a_word_is_searched_as_a_known_one_too_and_the_answer_says_so(
        self, tmp_path: Path
    ) -> None:
        bundle = answer(tmp_path, "konfigure servar", limit=1)
        assert bundle.selected
        found = messages(bundle)
        assert "server for servar" in found["WORDS_CORRECTED"]
        assert "WORDS_MISSING" not in found or "servar" not in found["WORDS_MISSING"]

    @pytest.mark.parametrize("word", ["serverless", "Servar", "serv4r"])
    def test_other_words_and_names_are_as_they_are(self, tmp_path: Path, word: str) -> None:
        found = messages(answer(tmp_path, f"configure the {word}"))
        assert "WORDS_CORRECTED" not in found
        assert word in found["WORDS_MISSING"]
