"""`rolebundle status`: what it advises."""

from pathlib import Path

import pytest

from support.commands import invoke
from support.corpora import build, document


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("plan", ["a rollback plan"])], name="team.db")


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
