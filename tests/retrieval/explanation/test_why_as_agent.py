"""The owner asks what keeps a passage from an agent; an agent learns nothing of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import put_mark
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_writer
from rolebundle.storage.quarantine import Scanned
from support.commands import invoke
from support.corpora import NOW, build, document, file_of, put_file, set_policy

TASK = "the token limit"
RULE = {
    "scopes": ["shared"],
    "access_level": "internal",
    "deny_patterns": ["denied-*.md"],
    "roles": ["reader"],
    "role_required": False,
}
READER = {
    "version": "1.0",
    "role_id": "reader",
    "source_policy": {"forbidden_sources": [{"pattern": "draft", "reason": "not final"}]},
}
PER_RULE = 5


def _hidden() -> dict[str, tuple[str, StoredDocument]]:
    """Document id → the rule that hides it, and the document."""
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "scope": ("scope", {"scope": "hr"}),
        "level": ("access_level", {"sensitivity": "confidential"}),
        "denied": ("deny_pattern", {}),
        "quarantined": ("quarantine", {}),
        "role": ("role", {"document_type": "draft"}),
        "tainted": ("trust", {"origin": "untrusted"}),
        "marked": ("mark", {}),
        "expired": ("validity", {"valid_until": "2020-01-01T00:00:00Z"}),
    }
    return {
        f"{kind}-{number}": (
            rule,
            document(f"{kind}-{number}", [f"the token limit is {kind} {number}"], **fields),
        )
        for kind, (rule, fields) in kinds.items()
        for number in range(PER_RULE)
    }


@pytest.fixture
def db(tmp_path: Path) -> Path:
    (tmp_path / "reader.json").write_text(json.dumps(READER), encoding="utf-8")
    db = build(tmp_path, [document("limits", ["the token limit is forty"])])
    add(db, _hidden())
    with Admin(db) as admin:
        for number in range(PER_RULE):
            put_mark(admin.workspace, f"marked-{number}", "rejected", "Ana", "it is wrong")
    set_policy(db, {"ada": RULE, "eve": {**RULE, "scopes": ["none"]}})
    return db


def add(db: Path, documents: dict[str, tuple[str, StoredDocument]]) -> None:
    scanned = Scanned("quarantine", "h", '["instruction_override"]', "[]", "")
    with open_writer(db) as corpus, corpus.writing():
        for name, (rule, stored) in documents.items():
            found = replace(stored, scanned=scanned) if rule == "quarantine" else stored
            put_file(corpus, file_of(name), [found])


def request(agent: str | None = "ada", **fields: Any) -> RetrievalRequest:
    return RetrievalRequest(
        task=TASK, agent=agent, role="reader", action="suggest", lexical_only=True, now=NOW,
        **fields,
    )  # fmt: skip


def test_the_rule_is_named(db: Path) -> None:
    with Engine(db, (db.parent,)) as engine:
        for name, (rule, _) in _hidden().items():
            answer = engine.why_as_agent(request(), f"{name}#0")
            assert [one.rule for one in answer.hidden] == [rule], name
            assert answer.hidden[0].note
            assert answer.hidden[0].next
        seen = engine.why_as_agent(request(), "limits#0")
        assert seen.hidden == []
        assert seen.why is not None
        assert seen.why.outcome == "selected"
        nobody = engine.why_as_agent(request("nobody"), "limits#0")
        assert [one.rule for one in nobody.hidden] == ["agent"]
        with pytest.raises(UsageError):
            engine.why_as_agent(request(), "nothing#0")


def test_several_rules_are_all_named(db: Path) -> None:
    with Engine(db) as engine:
        answer = engine.why_as_agent(request("eve"), "denied-0#0")
    assert [one.rule for one in answer.hidden] == ["scope", "deny_pattern"]


def test_the_command_line_and_no_other_interface_has_it(db: Path) -> None:
    command = ("why", "scope-0#0", TASK, "--db", db, "--as-agent", "ada")
    outcome = invoke(*command)
    assert outcome.code == 0
    assert "HIDDEN from ada by scope" in outcome.out
    assert invoke(*command, "--json").json()["hidden"][0]["rule"] == "scope"
    assert invoke(*command, "--agent", "ada").code == 2
    with Engine(db, agent="ada") as engine, pytest.raises(AccessDenied):
        engine.why_as_agent(request(), "scope-0#0")
    with Engine(db) as engine:
        assert "why_as_agent" not in Operations(engine, allow_write=True).offered_methods


def _what_ada_learns(db: Path) -> list[str]:
    """The bytes of what the agent gets of hidden and missing passages, and of its own rows."""
    hidden = [name for name, (rule, _) in _hidden().items() if rule in HIDING]
    got = []
    with Engine(db, (db.parent,)) as engine:
        engine.retrieve(request())
        for name in [*hidden, "nothing-0"]:
            with pytest.raises(UsageError) as refused:
                engine.why(request(), f"{name}#0")
            got.append(f"{refused.value.code} {refused.value}".replace(name, "NAME"))
    rows = invoke("policy", "audit", "list", "--agent", "ada", "--json", "--db", db).json()["rows"]
    return [*got, json.dumps([row | {"time": ""} for row in rows])]


HIDING = ("scope", "access_level", "deny_pattern")


def test_an_agent_learns_nothing(db: Path) -> None:
    with_hidden = _what_ada_learns(db)
    rows = invoke("policy", "audit", "list", "--json", "--db", db).json()["rows"]
    blocked = next(row["blocked"] for row in rows if row["kind"] == "retrieve")
    assert {code: blocked[code] for code in HIDING} == dict.fromkeys(HIDING, PER_RULE)
    with Engine(db, (db.parent,)) as engine:
        engine.why_as_agent(request(), "scope-0#0")
    after = invoke("policy", "audit", "list", "--agent", "ada", "--json", "--db", db).json()["rows"]
    assert json.dumps([row | {"time": ""} for row in after]) == with_hidden[-1]
    assert not set(HIDING) & set(json.loads(with_hidden[-1])[0]["blocked"])


def test_its_rows_do_not_depend_on_what_is_hidden(db: Path, tmp_path: Path) -> None:
    """Byte for byte those of a corpus without the hidden documents."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "reader.json").write_text(json.dumps(READER), encoding="utf-8")
    other = build(folder, [document("limits", ["the token limit is forty"])])
    shown = {name: one for name, one in _hidden().items() if one[0] not in HIDING}
    add(other, shown)
    with Admin(other) as admin:
        for number in range(PER_RULE):
            put_mark(admin.workspace, f"marked-{number}", "rejected", "Ana", "it is wrong")
    set_policy(other, {"ada": RULE, "eve": {**RULE, "scopes": ["none"]}})
    ends = [_what_ada_learns(one) for one in (db, other)]
    blocked = [[row["blocked"] for row in json.loads(end[-1])] for end in ends]
    assert blocked[0] == blocked[1]
    assert ends[0][:-1] == ends[1][:-1]
