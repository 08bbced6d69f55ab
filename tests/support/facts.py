"""A corpus to remember facts in, and what agents and its owner file there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.memory import RememberedFact, RememberRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.memory.facts import file_fact
from rolebundle.storage.check import find_problems
from rolebundle.storage.writing import open_writer
from support.corpora import as_owner, build, document

LIMITS = [
    "the token limit of the service is forty requests since 4.2",
    "the token limit was thirty for tablets",
]
DOCUMENTS = [
    document("limits", LIMITS, domain="api", valid_until="2027-01-01T00:00:00Z"),
    document("rumours", ["the limit may rise"], source_id="vendor", document_type="draft"),
    document("salary", ["the salary limit"], scope="hr"),
    document("board", ["the board limit"], sensitivity="confidential"),
]
READS = {"scopes": ["shared"], "access_level": "internal"}
FILES = {**READS, "may_write": ["remember"]}
POLICY = {
    "ada": FILES,
    "bob": {**FILES, "scopes": ["shared", "hr"], "access_level": "confidential"},
    "cy": {**FILES, "scopes": ["*"], "deny_patterns": ["limits.md"]},
    "eve": READS,
    "mia": {**READS, "may_write": ["mark"]},
    "rea": {**FILES, "roles": ["reviewer"]},
}
REVIEWER = {
    "version": "1.0",
    "role_id": "reviewer",
    "source_policy": {"forbidden_sources": [{"pattern": "draft", "reason": "not final"}]},
}
FACT = "The token limit is forty requests."


def facts_corpus(folder: Path) -> Path:
    """A corpus with a role beside it."""
    (folder / "reviewer.json").write_text(json.dumps(REVIEWER), encoding="utf-8")
    return build(folder, DOCUMENTS)


def file_as(
    agent: str | None, db: Path, fact: str = FACT, source: str = "limits#0", **fields: Any
) -> RememberedFact:
    request = RememberRequest(fact=fact, source=source, agent=agent, **fields)
    with Engine(db, (db.parent,)) as engine:
        return engine.remember(request)


def file_as_owner(
    db: Path, fact: str = FACT, source: str = "limits#0", **fields: Any
) -> RememberedFact:
    request = RememberRequest(fact=fact, source=source, **fields)
    return as_owner(db, file_fact, request, "Ana")


def refusal(call: Callable[[], Any]) -> tuple[str, str, str, str]:
    with pytest.raises(RolebundleError) as refused:
        call()
    error = refused.value
    return type(error).__name__, error.code, error.message, error.hint


def problems(db: Path) -> list[Any]:
    with open_writer(db) as corpus:
        return find_problems(corpus)
