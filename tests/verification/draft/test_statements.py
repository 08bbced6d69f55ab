"""Sentences, names and near copies are compared with what the passages say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.engine import Engine
from support.corpora import NOW, build, document

GUIDE = """The relay keeps a copy of each message for the audit. The server must not accept expired
tokens. All owners may share a folder with other teams. The nightly export is enabled by default.
Set the variable RELAY_TIMEOUT before the relay service starts in the cluster. The incident was
handled by Ana Ruiz in the Lund office. To show a trace of each thread, run::

    pkill -SIGUSR1 relay
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine(
        build(tmp_path_factory.mktemp("statements"), [document("guide", [GUIDE])])
    ) as opened:
        yield opened


def verified(engine: Engine, draft: str) -> Verification:
    return engine.verify(VerifyRequest(draft=draft, chunk_ids=["guide#0"], now=NOW))


@pytest.mark.parametrize(
    ("draft", "difference"),
    [
        ("The server must accept expired tokens.", "not"),
        ("The server may not accept expired tokens.", "modal"),
        ("Some owners may share a folder with other teams.", "quantifier"),
        ("The nightly export is disabled by default.", '"disabl" for "enabl"'),
        ("The relay does not keep a copy of each message for the audit.", "not"),
    ],
)
def test_a_near_copy_that_differs_is_a_remark(engine: Engine, draft: str, difference: str) -> None:
    answer = verified(engine, draft)
    [finding] = [finding for finding in answer.findings if finding.code == "differs"]
    assert not finding.fails and finding.remedy
    assert difference in (finding.note or "")


@pytest.mark.parametrize(
    "draft",
    [
        "The server mustn't accept tokens that expired.",
        "Expired tokens are never accepted by the server.",
        "Every owner may share a folder with other teams.",
        "The relay keeps a copy of each message for the audit.",
        "By default, the nightly export is enabled.",
    ],
)
def test_a_faithful_copy_does_not_differ(engine: Engine, draft: str) -> None:
    assert "differs" not in verified(engine, draft).counts


@pytest.mark.parametrize(
    ("draft", "name"),
    [
        ("Set the variable RELAY_DEADLINE before the relay service starts.", "RELAY_TIMEOUT"),
        ("Run this:\n\n    pkill -SIGUSR2 relay\n", "-SIGUSR1"),
    ],
)
def test_an_identifier_that_replaces_one_of_the_passage_fails(
    engine: Engine, draft: str, name: str
) -> None:
    answer = verified(engine, draft)
    [finding] = [finding for finding in answer.findings if finding.code == "wrong_name"]
    assert (finding.fails, finding.true_text) == (True, name)
    assert answer.verdict == "failed"


@pytest.mark.parametrize(
    "draft",
    [
        "It was written by Grace Hopper.",
        "The incident in the office was handled by Bob Lind in Lund.",
        "Call `start_engine()` first, and then wait.",
    ],
)
def test_a_name_that_stands_nowhere_is_a_remark(engine: Engine, draft: str) -> None:
    answer = verified(engine, draft)
    assert answer.counts.get("unknown_name") == 1
    assert answer.verdict != "failed"


def test_languages_that_capitalize_nouns_have_no_names(engine: Engine) -> None:
    draft = "Der Server nimmt die Nachricht an, und das Haus ist für die Kunden nicht offen."
    assert "unknown_name" not in verified(engine, draft).counts


def test_the_words_of_a_sentence_stand_together(engine: Engine) -> None:
    answer = verified(engine, "The relay keeps copies of each message. Elephants drink cold water.")
    assert (answer.counts["covered"], answer.counts["uncovered"]) == (1, 1)
