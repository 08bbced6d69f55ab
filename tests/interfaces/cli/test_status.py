"""`rolebundle status`: what of the corpus's own overlays matches nothing in it."""

from pathlib import Path

import pytest

from support.commands import invoke
from support.corpora import build, document
from support.overlay_files import write


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ROLEBUNDLE_OVERLAYS", raising=False)
    db = build(tmp_path, [document("plan", ["a rollback plan"])], name="team.db")
    (tmp_path / "team.db.overlays").mkdir()
    return db


def test_own_overlays_are_compared_with_the_corpus(db: Path, tmp_path: Path) -> None:
    folder = tmp_path / "team.db.overlays"
    write(folder, "fits", vocabulary={"preferred_terms": ["rollback"]})
    write(
        folder,
        "odd",
        vocabulary={"preferred_terms": ["rollback", "zebra"]},
        source_policy={"forbidden_sources": [{"path": "drafts/**"}]},
    )
    write(folder, "broken", lable="")
    roles = {
        role["role_id"]: role for role in invoke("status", "--json", "--db", db).json()["roles"]
    }
    assert {*roles} == {"fits", "odd", "broken"}
    assert (roles["fits"]["problem"], roles["fits"]["unmatched"]) == ("", [])
    assert [finding.split(": ")[0] for finding in roles["odd"]["unmatched"]] == [
        "source_policy.forbidden_sources[0].path",
        "vocabulary.preferred_terms[1]",
    ]
    assert "did you mean label?" in roles["broken"]["problem"]
    text = invoke("status", "--db", db).out
    assert "! role odd: 2 rules or words without a match in this corpus" in text
    assert "! role broken: " in text
    assert "code-reviewer" not in text


def test_a_corpus_without_declared_trust_is_reported_once(db: Path, tmp_path: Path) -> None:
    """Each of its answers would warn of the same."""
    trusted = build(tmp_path, [document("plan", ["a plan"], trust_tier="preferred")], name="t.db")
    for corpus, is_reported in ((db, True), (trusted, False)):
        outcome = invoke("status", "--db", corpus)
        assert ("trust: no document is declared preferred" in outcome.out) == is_reported
        answer = invoke(
            "retrieve",
            "plan",
            "--lexical-only",
            "--role",
            "code-reviewer",
            "--format",
            "json",
            "--db",
            corpus,
        ).json()
        assert "NO_HIGH_TRUST_MATCH" not in {warning["code"] for warning in answer["warnings"]}
        assert (
            "no document of the corpus declares trust" in answer["fallback"]["message"]
        ) == is_reported
