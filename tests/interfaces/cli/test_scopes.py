"""`rolebundle policy`: setting, showing and linting who may see what."""

from pathlib import Path
from typing import Any

import pytest

from support.commands import Outcome, invoke, is_coded
from support.corpora import build, document

POLICY = """
[ada]
scopes = ["engineering"]
access_level = "internal"
deny_patterns = ["attic/**"]

[boss]
scopes = ["*"]
access_level = "confidential"
"""

RULE = 'scopes = ["engineering"]\naccess_level = "internal"\n'


DOCUMENTS = [
    document("plan", ["the token plan"], scope="engineering"),
    document("attic/old", ["the token of old"], scope="engineering"),
    document("pay", ["the token pay"], scope="hr", sensitivity="confidential"),
]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, DOCUMENTS, name="team.db")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY, encoding="utf-8")
    return file


def scopes(db: Path, *arguments: str | Path) -> Outcome:
    outcome = invoke("policy", *arguments, "--db", db)
    is_coded(outcome)
    return outcome


def selected(db: Path, *options: str) -> list[str] | int:
    outcome = invoke(
        "retrieve", "token", "--lexical-only", "--format", "json", "--db", db, *options
    )
    if outcome.code:
        assert outcome.out == ""
        return outcome.code
    return sorted(passage["document_id"] for passage in outcome.json()["selected"])


def test_set_shows_its_result(db: Path, policy: Path) -> None:
    outcome = scopes(db, "set", policy)
    assert outcome.code == 0
    assert "agents: ada, boss\nmoved: 1\n" in outcome.out
    assert "all other agents see nothing" in outcome.err
    assert selected(db, "--agent", "ada") == ["plan"]
    assert selected(db, "--agent", "boss") == ["attic/old", "pay", "plan"]
    assert selected(db) == selected(db, "--agent", "eve") == selected(db, "--agent", "ADA") == 4
    second_outcome = scopes(db, "set", policy, "--json")
    assert second_outcome.json() == {"agents": ["ada", "boss"], "moved": 0, "location": str(policy)}


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("policy.toml", b"[ada", 3),
        ("policy.toml", b"[ada]\nscopes = []\naccess_level = 'secret'", 3),
        ("policy.json", b"\xff", 3),
        ("policy.yaml", b"ada: {}", 2),
    ],
)
def test_a_wrong_policy_is_refused_and_changes_nothing(
    db: Path, tmp_path: Path, name: str, content: bytes, code: int
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    for command in ("set", "lint"):
        refused = scopes(db, command, file)
        assert (refused.code, refused.out) == (code, "")
        assert name in refused.err
    assert selected(db) == ["attic/old", "pay", "plan"]
    assert not Path(f"{db}.audit").exists()


def test_a_missing_file_and_a_missing_corpus(db: Path, policy: Path, tmp_path: Path) -> None:
    missing = scopes(db, "set", tmp_path / "none.toml")
    assert (missing.code, missing.out) == (3, "")
    assert "[policy_unreadable]" in missing.err
    none = tmp_path / "none.db"
    for command in (["set", policy], ["show"], ["lint"], ["lint", policy]):
        assert scopes(none, *command).code == 2
    assert not none.exists()


def test_show(db: Path, policy: Path) -> None:
    assert "every agent sees every document" in scopes(db, "show").out
    scopes(db, "set", policy)
    output = scopes(db, "show").out
    assert (
        "agent ada, scopes engineering, access_level internal, deny_patterns attic/**, " in output
    )
    assert "agent boss, scopes *, access_level confidential, roles any, " in output
    found = scopes(db, "show", "--agent", "ada", "--json").json()
    assert [agent["agent"] for agent in found["agents"]] == ["ada"]
    assert (found["policy"], found["location"], found["doubt"]) == (True, str(policy), "")
    unknown = scopes(db, "show", "--agent", "adda")
    assert (unknown.code, unknown.out) == (2, "")
    assert "ada, boss" in unknown.err


def test_one_role_is_compared_for_an_agent_that_may_ask_without_one(db: Path, policy: Path) -> None:
    policy.write_text(f'{POLICY}\n[bob]\nroles = ["code-reviewer"]\n' + RULE, encoding="utf-8")
    scopes(db, "set", policy)
    compared = ("compare", "token", "--roles", "code-reviewer", "--lexical-only", "--db", db)
    assert invoke(*compared, "--agent", "ada").code == 0
    refused = invoke(*compared, "--agent", "bob")
    assert refused.code == 2 and "may ask without a role" in refused.err


def test_no_agent_reads_the_policy(db: Path, policy: Path) -> None:
    ingest = ("ingest", policy.parent, "--lexical-only", "--meta", "scope=engineering", "--db", db)
    assert "1 added" in invoke(*ingest).out
    scopes(db, "set", policy)
    second_outcome = invoke(*ingest)
    assert "1 removed" in second_outcome.out and "the policy of this corpus" in second_outcome.err


def test_show_says_why_everybody_is_denied(db: Path, policy: Path) -> None:
    scopes(db, "set", policy)
    policy.write_text(POLICY + "\n# a comment\n", encoding="utf-8")
    assert selected(db, "--agent", "boss") == 4
    output = scopes(db, "show").out
    assert "every agent is denied" in output and "was changed since it was set" in output
    assert "documents 0" in output
    linted = scopes(db, "lint")
    assert linted.code == 3
    assert "[policy_doubtful]" in linted.out


def codes(outcome: Outcome) -> list[Any]:
    return [finding["code"] for finding in outcome.json()["findings"]]


def test_lint_before_and_after(db: Path, policy: Path) -> None:
    assert codes(scopes(db, "lint", "--json")) == ["no_policy"]
    before = scopes(db, "lint", policy, "--json")
    assert (before.code, codes(before)) == (0, [])
    policy.write_text(POLICY.replace('["*"]', '["ops"]'), encoding="utf-8")
    before = scopes(db, "lint", policy, "--json")
    assert (before.code, codes(before)) == (0, ["unknown_scope"])
    assert "0 errors, 1 warning" in before.err
    scopes(db, "set", policy)
    assert codes(scopes(db, "lint", "--json")) == ["unknown_scope"]
    text = scopes(db, "lint", policy)
    assert text.out.startswith(f"{policy}: warning: boss.scopes: no document has the scope 'ops'")


def test_no_scope_is_nothing_and_every_command_names_the_remedy(db: Path, policy: Path) -> None:
    policy.write_text(POLICY.replace('["*"]', "[]"), encoding="utf-8")
    remedy = 'boss.scopes: is empty: it sees nothing; every scope is ["*"]'
    assert remedy in scopes(db, "set", policy).err
    assert selected(db, "--agent", "boss") == []
    assert selected(db, "--agent", "ada") == ["plan"]
    linted = scopes(db, "lint", policy)
    assert linted.code == 3 and f"error: {remedy}" in linted.out
    assert remedy in invoke("corpus", "doctor", "--db", db).out
    assert "NO scope" in scopes(db, "show").out


def test_lint_needs_no_corpus(policy: Path) -> None:
    linted = invoke("policy", "lint", policy)
    assert linted.code == 0
    policy.write_text(POLICY.replace('["*"]', "[]"), encoding="utf-8")
    assert "[no_scopes]" in invoke("policy", "lint", policy).out
    policy.write_text(POLICY.replace('"internal"', '"secret"'), encoding="utf-8")
    refused = invoke("policy", "lint", policy)
    assert refused.code == 3
    assert "ada.access_level: must be one of 'denied'" in refused.err
