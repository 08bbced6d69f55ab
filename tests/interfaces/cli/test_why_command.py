"""`rolebundle why` as a person and as a program meet it."""

from pathlib import Path

from support.commands import AUDIT, invoke

TASK = "Review the token refresh flow"
WORDS = ("--lexical-only", "--now", "2026-11-15T00:00:00Z")


def chunk_of(db: Path, *options: str, rejected: str = "") -> str:
    """The first selected chunk, or the first that was rejected with a code."""
    bundle = invoke("retrieve", TASK, *WORDS, *options, "--format", "json", "--db", db).json()
    if not rejected:
        return str(bundle["selected"][0]["chunk_id"])
    return next(str(one["chunk_id"]) for one in bundle["rejected"] if one["reason"] == rejected)


def test_a_selected_passage(sample_db: Path) -> None:
    role = ("--role", "mossline-security-reviewer")
    first = chunk_of(sample_db, *role)
    outcome = invoke("why", first, TASK, *WORDS, *role, "--db", sample_db)
    assert (outcome.code, outcome.err) == (0, "")
    assert "SELECTED at rank 1 of" in outcome.out
    assert first in outcome.out
    labels = [line.partition(":")[0] for line in outcome.out.split("\n")]
    assert {"words", "lanes", "pool", "filter"} <= {*labels}
    assert "by meaning, ran no, note only words were asked for" in outcome.out
    assert "\nlexical       1.000 × " in outcome.out
    assert "to_beat" not in outcome.out


def test_a_rejected_passage_says_what_it_lost_to_and_the_score_to_beat(sample_db: Path) -> None:
    limit = ("--limit", "2")
    cut = chunk_of(sample_db, *limit, rejected="budget_cut")
    outcome = invoke("why", cut, TASK, *WORDS, *limit, "--db", sample_db)
    assert "REJECTED in the selection: budget_cut" in outcome.out
    assert "\nlost to: " in outcome.out
    assert "code budget_cut, to_beat 0." in outcome.out
    assert "\nlimit: 2\n" in outcome.out


def test_a_document_and_lines(sample_db: Path) -> None:
    outcome = invoke("why", f"{AUDIT}:12-20", "zebra", *WORDS, "--db", sample_db)
    assert "NOT PROPOSED: no lane found it" in outcome.out
    assert "task_missing zebra" in outcome.out
    assert AUDIT in outcome.out.split("\n")[1]
