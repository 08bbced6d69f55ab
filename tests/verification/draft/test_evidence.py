"""The passages that a draft is checked against are read again, as agent and role may see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.policy.overlays import ResolvedOverlay
from support.corpora import NOW, build, document, overlay, set_policy

DRAFT = "The lifetime of an access token is fifteen minutes [1]."
TOKENS = "The lifetime of an access token is fifteen minutes."
DOCUMENTS = [
    document("tokens", [TOKENS, "Refresh tokens rotate."], scope="engineering"),
    document("rumours", ["Tokens never expire."], source_id="vendor", scope="engineering"),
    document("salary", ["The salary of Ada is secret."], scope="hr"),
    document(
        "old",
        ["Access tokens lived for an hour in those days."],
        scope="engineering",
        updated_at="2020-01-01T00:00:00Z",
    ),
]
POLICY = {"ada": {"scopes": ["engineering"], "access_level": "internal"}}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("evidence"), DOCUMENTS)


@pytest.fixture(scope="module")
def engine(db: Path) -> Iterator[Engine]:
    with Engine(db) as opened:
        yield opened


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    db = build(tmp_path_factory.mktemp("governed"), DOCUMENTS)
    set_policy(db, POLICY)
    with Engine(db) as opened:
        yield opened


def verified(
    engine: Engine, draft: str = DRAFT, role: Overlay | None = None, **fields: Any
) -> Verification:
    resolved = ResolvedOverlay(role, "digest", Path("role.json"), ()) if role else None
    return engine.verify(VerifyRequest(draft=draft, now=NOW, **fields), resolved)


def codes(answer: Verification, check: str = "sources") -> list[str]:
    return [finding.code for finding in answer.findings if finding.check == check]


@pytest.mark.parametrize("detail", ["ids", "compact", "full"])
def test_a_bundle_in_any_detail_is_evidence(engine: Engine, detail: Any) -> None:
    request = RetrievalRequest(task="lifetime of a token", lexical_only=True, now=NOW)
    bundle = shaped_bundle(engine.retrieve(request), detail)
    answer = verified(engine, bundle=bundle)
    assert [(p.number, p.chunk_id) for p in answer.passages] == [
        (passage["rank"], passage["chunk_id"]) for passage in bundle["selected"]
    ]
    assert answer.passages
    assert codes(answer) == []


def test_a_shortened_content_is_not_a_changed_one(engine: Engine) -> None:
    passage = {"chunk_id": "tokens#0", "content": "The lifetime of", "truncated": True}
    assert codes(verified(engine, bundle={"selected": [passage]})) == []
    del passage["truncated"]
    assert codes(verified(engine, bundle={"selected": [passage]})) == ["changed_passage"]


def test_a_bundle_of_knowledge_core_is_evidence(engine: Engine) -> None:
    """Its passages have no rank: their places are the numbers."""
    passages = [{"chunk_id": "rumours#0"}, {"chunk_id": "tokens#0", "content": TOKENS}]
    bundle = {"version": "1.0", "role_id": "", "selected": passages, "rejected": []}
    answer = verified(engine, "The lifetime of an access token [2].", bundle=bundle)
    assert [(p.number, p.chunk_id) for p in answer.passages] == [(1, "rumours#0"), (2, "tokens#0")]
    assert codes(answer, "citations") == ["cited"]


@pytest.mark.parametrize(
    "bundle",
    [
        {},
        {"selected": "tokens#0"},
        {"selected": ["tokens#0"]},
        {"selected": [{"chunk_id": 1}]},
        {"selected": [{"chunk_id": "\ud800"}]},
        {"selected": [{"chunk_id": "x"}] * 1001},
        {"selected": [], "role_id": "No Role\n"},
        {"selected": [], "role_id": 7},
    ],
)
def test_what_is_no_bundle_is_refused(engine: Engine, bundle: Any) -> None:
    with pytest.raises(UsageError) as caught:
        verified(engine, bundle=bundle)
    assert caught.value.code == "bundle_malformed"


def test_unknown_and_changed_passages_fail(engine: Engine) -> None:
    answer = verified(engine, chunk_ids=["tokens#0", "gone#7", "tokens#0\x00"])
    assert codes(answer) == ["unknown_passage"] * 2
    assert answer.verdict == "failed"
    changed = {"chunk_id": "tokens#0", "content": "Tokens live for a year."}
    answer = verified(engine, "Tokens live for a year.", bundle={"selected": [changed]})
    assert codes(answer) == ["changed_passage"]
    assert (answer.verdict, answer.passages) == ("failed", [])


def test_a_passage_named_once_as_it_is_and_once_changed_is_no_evidence(engine: Engine) -> None:
    same = {"chunk_id": "tokens#0", "content": TOKENS}
    changed = {"chunk_id": "tokens#0", "content": "Tokens live for a year."}
    for selected in ([same, changed], [changed, same]):
        answer = verified(engine, bundle={"selected": selected})
        assert codes(answer) == ["changed_passage"]
        assert answer.passages == []


def test_what_the_roles_policy_rejects_is_no_evidence(engine: Engine) -> None:
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "vendor", "reason": "no"}]})
    answer = verified(engine, "Tokens never expire [1].", role, chunk_ids=["rumours#0"])
    assert codes(answer) == ["rejected_source"]
    assert codes(answer, "citations") == ["unknown_citation"]
    assert answer.passages == []


def test_a_stale_passage_fails_only_if_the_role_rejects_stale_ones(engine: Engine) -> None:
    draft = "Access tokens lived for an hour in those days [1]."
    answer = verified(engine, draft, chunk_ids=["old#0"])
    [stale] = [finding for finding in answer.findings if finding.code == "stale_source"]
    assert not stale.fails
    strict = overlay(retrieval_policy={"freshness_max_age_days": 30, "stale_penalty": 1.0})
    answer = verified(engine, draft, strict, chunk_ids=["old#0"])
    [stale] = [finding for finding in answer.findings if finding.code == "stale_source"]
    assert stale.fails
    assert answer.passages == []


def test_the_role_of_the_bundle_applies(engine: Engine, tmp_path: Path) -> None:
    role = {
        "version": "1.0",
        "role_id": "reviewer",
        "source_policy": {"forbidden_sources": [{"pattern": "vendor", "reason": "no"}]},
    }
    (tmp_path / "reviewer.json").write_text(json.dumps(role), encoding="utf-8")
    bundle = {"role_id": "reviewer", "selected": [{"chunk_id": "rumours#0"}]}
    with Engine(engine.workspace.path, (tmp_path,)) as other_engine:
        assert codes(verified(other_engine, bundle=bundle)) == ["rejected_source"]
        assert codes(verified(other_engine, bundle=bundle | {"role_id": ""})) == []


def test_an_agent_cannot_tell_hidden_from_unknown(governed: Engine) -> None:
    answers = []
    for chunk_id in ("salary#0", "nothing#0"):
        for content in (None, "The salary of Ada is secret.", "something else"):
            passage = {"chunk_id": chunk_id} | ({"content": content} if content else {})
            answer = verified(governed, agent="ada", bundle={"selected": [passage]})
            answers.append(answer.model_dump_json().replace(chunk_id, "ID"))
    assert len(set(answers)) == 1
    assert "unknown_passage" in answers[0]


def test_the_whole_corpus_is_what_the_agent_sees(governed: Engine) -> None:
    answer = verified(governed, 'The note says "The salary of Ada is secret".', agent="ada")
    assert answer.verdict == "failed"
    assert "salary#0" not in {finding.chunk_id for finding in answer.findings}
    answer = verified(governed, "The lifetime of an access token is fifteen minutes.", agent="ada")
    assert {finding.chunk_id for finding in answer.findings} == {"tokens#0"}


def test_what_policy_rejects_takes_no_place_from_what_it_allows(tmp_path: Path) -> None:
    many = [
        document(f"rumour{number:02}", [TOKENS], source_id="vendor", title=TOKENS)
        for number in range(40)
    ]
    db = build(tmp_path, [*many, document("tokens", [f"{TOKENS} And more of other things."])])
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "vendor", "reason": "no"}]})
    with Engine(db) as engine:
        answer = verified(engine, TOKENS, role)
    assert {finding.chunk_id for finding in answer.findings} == {"tokens#0"}


def test_bundle_and_ids_together_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        VerifyRequest(draft="x", bundle={"selected": []}, chunk_ids=["a"])
