"""Sources are doubted by the rules of retrieval; what is published obeys the trust table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import put_mark
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.engine import Engine
from support.corpora import FLAGGED, NOW, build, document

TEXT = "The lifetime of an access token is fifteen minutes."
LABELS: dict[str, dict[str, Any]] = {
    "plain": {"sensitivity": "public"},
    "old": {"updated_at": "2020-01-01T00:00:00Z", "sensitivity": "public"},
    "web": {"origin": "untrusted", "sensitivity": "public"},
    "forum": {"trust_tier": "untrusted", "sensitivity": "public"},
    "shared": {"origin": "external", "sensitivity": "public"},
    "team": {"sensitivity": "internal"},
    "board": {"sensitivity": "confidential"},
    "replaced": {"sensitivity": "public"},
    "newer": {"sensitivity": "public", "supersedes": ("replaced",)},
    "later": {
        "sensitivity": "public",
        "supersedes": ("plain",),
        "valid_from": "2030-01-01T00:00:00Z",
    },
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    documents = [
        *(document(name, [f"{TEXT} Says {name}."], **labels) for name, labels in LABELS.items()),
        document("flagged", [f"{TEXT} Says flagged."], FLAGGED, sensitivity="public"),
    ]
    with Engine(build(tmp_path_factory.mktemp("sources"), documents)) as opened:
        yield opened


def verified(
    engine: Engine, name: str, draft: str = f"{TEXT[:-1]} [1].", **fields: Any
) -> Verification:
    request = VerifyRequest(draft=draft, chunk_ids=[f"{name}#0"], now=NOW, **fields)
    return engine.verify(request)


def doubts(answer: Verification, check: str = "sources") -> list[tuple[str, bool]]:
    return [(f.code, f.fails) for f in answer.findings if f.check == check]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", []),
        ("old", [("stale_source", False)]),
        ("web", [("untrusted_source", False)]),
        ("forum", [("untrusted_source", False)]),
        ("replaced", [("superseded_source", True)]),
        ("flagged", [("flagged_source", False)]),
        ("team", []),
    ],
)
def test_doubts(engine: Engine, name: str, expected: list[tuple[str, bool]]) -> None:
    answer = verified(engine, name)
    assert doubts(answer) == expected
    assert answer.verdict == (
        "failed" if ("superseded_source", True) in expected else "nothing_wrong_found"
    )


def test_a_doubt_fails_if_and_only_if_retrieval_rejects_the_passage(engine: Engine) -> None:
    request = RetrievalRequest(task=TEXT, lexical_only=True, now=NOW, limit=50)
    bundle = engine.retrieve(request)
    superseded = {r.chunk_id for r in bundle.rejected if r.reason == "conflict_downrank"}
    assert superseded == {"replaced#0"}
    for name in (*LABELS, "flagged"):
        if name != "later":
            fails = any(failing for _, failing in doubts(verified(engine, name)))
            assert fails == (f"{name}#0" in superseded)


def test_a_quote_without_a_citation_has_a_source_too(engine: Engine) -> None:
    answer = verified(engine, "replaced", f'They wrote "{TEXT}"')
    assert ("superseded_source", True) in doubts(answer)


def test_a_source_is_doubted_once(engine: Engine) -> None:
    answer = verified(engine, "old", f"{TEXT[:-1]} [1][1]. {TEXT[:-1]} [1].")
    assert doubts(answer) == [("stale_source", False)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", set()),
        ("team", {"sensitive_source"}),
        ("board", {"sensitive_source", "unsendable_origin"}),
        ("shared", {"unsendable_origin"}),
        ("web", {"unsendable_origin"}),
        ("forum", {"unsendable_origin"}),
        ("flagged", {"unsendable_origin"}),
    ],
)
def test_publish(engine: Engine, name: str, expected: set[str]) -> None:
    answer = verified(engine, name, publish=True)
    assert {code for code, _ in doubts(answer, "publish")} == expected
    assert answer.verdict == ("failed" if expected else "nothing_wrong_found")
    assert doubts(verified(engine, name), "publish") == []


def test_publish_needs_a_known_source(engine: Engine) -> None:
    """Else a paraphrase of something confidential would pass."""
    draft = "Nobody outside of this building may learn about elephants."
    answer = verified(engine, "board", draft, publish=True, require=[])
    assert answer.verdict == "failed"


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_secrets_and_personal_data_are_not_published_or_repeated(engine: Engine) -> None:
    draft = f"{TEXT[:-1]} [1].\n\nCall ada.silva@posteo.de, with {SECRET}.\n"
    answer = verified(engine, "plain", draft, publish=True)
    codes = {code for code, _ in doubts(answer, "publish")}
    assert codes == {"secret", "personal_data"}
    assert answer.verdict == "failed"
    for redact in (False, True):
        answer = verified(engine, "plain", draft, publish=True, redact=redact)
        assert answer.validated_draft is not None
        published = answer.model_dump_json() if redact else answer.validated_draft
        assert SECRET not in published and "ada.silva" not in published


@pytest.mark.parametrize(
    ("state", "code", "fails"),
    [("disputed", "disputed_source", False), ("rejected", "rejected_source", True)],
)
def test_marks(tmp_path: Path, state: Any, code: str, fails: bool) -> None:
    db = build(tmp_path, [document("tokens", [TEXT])])
    with Admin(db) as admin:
        put_mark(
            admin.workspace, "tokens#0", state, marked_by="Ana", reason="it was measured again"
        )
    with Engine(db) as engine:
        answer = verified(engine, "tokens")
        [doubt] = [finding for finding in answer.findings if finding.code == code]
        assert doubt.fails == fails and doubt.note is not None
        assert "it was measured again" in doubt.note
        assert bool(answer.passages) != fails
        verification = engine.verify(VerifyRequest(draft=TEXT, now=NOW))
        assert verification.verdict == ("failed" if fails else "nothing_wrong_found")
