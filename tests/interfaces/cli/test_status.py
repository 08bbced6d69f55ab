"""`rolebundle status`: what it advises."""

from pathlib import Path

import pytest

from support.commands import invoke
from support.corpora import build, document


@pytest.mark.parametrize(("tier", "is_reported"), [("general", True), ("preferred", False)])
def test_a_corpus_without_declared_trust_is_reported_once(
    tmp_path: Path, tier: str, is_reported: bool
) -> None:
    """Each of its answers would warn of the same."""
    db = build(tmp_path, [document("plan", ["a rollback plan"], trust_tier=tier)])
    advice = "trust: no document is declared preferred"
    assert (advice in invoke("status", "--db", db).out) == is_reported
    role = ("--role", "code-reviewer", "--lexical-only", "--json")
    answer = invoke("retrieve", "plan", *role, "--db", db).json()
    assert "NO_HIGH_TRUST_MATCH" not in {warning["code"] for warning in answer["warnings"]}
    cause = "no document of the corpus declares trust"
    assert (cause in answer["fallback"]["message"]) == is_reported
