"""A judge gives opinions on covered sentences. They count only if they are required."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.verification.judge import Judge
from support.corpora import NOW, build, document
from support.embedding_server import EmbeddingServer, Handler

TEXT = "The lifetime of an access token is fifteen minutes."
FALSE = "Elephants drink plenty of cold water every single day."
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("judge"), [document("tokens", [TEXT])])


def answering(answer: Any) -> Callable[[Handler], None]:
    return lambda handler: handler.json({"choices": [{"message": {"content": answer}}]})


def verified(db: Path, judge: Judge | None, draft: str = f"{TEXT}\n\n{FALSE}") -> Verification:
    with Engine(db, judge=judge) as engine:
        return engine.verify(VerifyRequest(draft=draft, chunk_ids=["tokens#0"], now=NOW))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("answer", "supported"),
    [
        ("Yes", True),
        ("**yes**, it does", True),
        ("No.", False),
        ("<think>Yes? Hardly.</think>\nNo", False),
        ("Not sure", None),
        ("", None),
        ("\x1b[31m" * 100, None),
    ],
)
@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_opinions_on_covered_sentences_only(
    db: Path, server: EmbeddingServer, kind: str, answer: str, supported: bool | None
) -> None:
    server.faults[CHAT] = answering(answer)
    judged = verified(db, Judge(f"{kind}:some-model:8b", server.url))
    [opinion] = judged.opinions
    assert opinion.supported is supported
    assert opinion.answer.isprintable() and len(opinion.answer) <= 200
    assert judged.judge == f"{kind}:some-model:8b"
    [body] = server.bodies_for(CHAT)
    assert body["model"] == "some-model:8b"
    assert body["messages"][-1]["content"] == f"Document: {TEXT}\nClaim: {TEXT}"


def test_no_answer_changes_the_verdict_if_it_is_not_required(
    db: Path, server: EmbeddingServer
) -> None:
    for draft in (TEXT, FALSE, f"{TEXT} {FALSE}"):
        plain = verified(db, None, draft)
        for answer in ("Yes", "No", None, 7):
            server.faults[CHAT] = answering(answer)
            assert verified(db, Judge("ollama:m", server.url), draft).verdict == plain.verdict


def test_a_judge_that_is_required_fails_with_two_denials(db: Path, server: EmbeddingServer) -> None:
    server.faults[CHAT] = answering("No")
    with Engine(db, judge=Judge("ollama:m", server.url)) as engine:
        verdicts = [
            engine.verify(
                VerifyRequest(draft=draft, chunk_ids=["tokens#0"], now=NOW, require=["judge"])
            )
            for draft in (TEXT, f"{TEXT}\n\n{TEXT}")
        ]
    assert [answer.verdict for answer in verdicts] == ["nothing_to_check", "failed"]
    assert verdicts[1].counts["judged_unsupported"] == 2


def test_a_judge_that_is_required_must_be_there(db: Path) -> None:
    with Engine(db) as engine:
        request = VerifyRequest(draft=TEXT, chunk_ids=["tokens#0"], now=NOW, require=["judge"])
        answer = engine.verify(request)
    assert (answer.verdict, answer.counts["not_checked"]) == ("failed", 1)


@pytest.mark.parametrize(
    "fault",
    [
        lambda handler: handler.json({"error": "no such model"}, 404),
        lambda handler: handler.json({"choices": []}),
        lambda handler: handler.json([1]),
        lambda handler: handler.text("<html>"),
        lambda handler: handler.text("", 302, location="http://192.0.2.1/"),
        lambda handler: handler.reset(),
        lambda handler: handler.pour(b" "),
    ],
)
def test_a_judge_that_fails_is_reported(
    db: Path, server: EmbeddingServer, fault: Callable[[Handler], None]
) -> None:
    server.faults[CHAT] = fault
    judged = verified(db, Judge("ollama:m", server.url, deadline_seconds=0.3), TEXT)
    assert judged.verdict == "nothing_wrong_found"
    assert judged.opinions == []
    assert judged.judge_problem and judged.judge_problem.startswith("the judge ollama:m failed: ")


@pytest.mark.parametrize("name", ["", "ollama", "ollama:", "static:m", "openai:m"])
def test_a_judge_needs_a_provider_and_a_model(name: str) -> None:
    with pytest.raises(RolebundleError) as caught:
        Judge(name)
    assert caught.value.code == "bad_judge"


def test_a_key_goes_to_the_server_that_it_is_for(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", "the-key")
    server.faults[CHAT] = answering("Yes")
    for kind, expected in (("openai", "Bearer the-key"), ("ollama", None)):
        server.seen.clear()
        verified(db, Judge(f"{kind}:m", server.url), TEXT)
        assert server.seen[0].headers.get("Authorization") == expected
