"""The time is the owner's: through no interface does an agent choose it without a permission."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.memory import RememberRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.json_lines import error_fields
from rolebundle.interfaces.servers.operations import TOOLS as OFFERED
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import demo_overlays
from support.commands import invoke
from support.corpora import build, document, set_policy
from support.mcp import error_of, needs_mcp, run_session, server_of, stdio_session
from support.served import Served

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")

RULE = {"scopes": ["*"], "access_level": "internal"}
POLICY = {
    "ada": RULE | {"may_set_time": False, "may_write": ["mark", "remember"]},
    "kim": RULE | {"may_set_time": True},
}
DOCUMENTS = [
    document("plan", ["the token plan"]),
    document("old", ["the token of the past"], valid_until="2020-01-01T00:00:00Z"),
    document("later", ["the token of the future"], valid_from="2099-01-01T00:00:00Z"),
]
ROLES = ["mossline-docs-writer", "mossline-code-reviewer"]
AT = [{"now": "2100-01-01"}, {"now": "2019-01-01"}, {"as_of": "2100-01-01"}]
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("retrieve", {"task": "token", "lexical_only": True}),
    ("why", {"task": "token", "id": "later", "lexical_only": True}),
    ("compare", {"task": "token", "roles": ROLES, "lexical_only": True}),
]
TIMED = [(method, fields | at) for method, fields in ASKED for at in AT]
TIMED += [("verify", {"draft": "the token of the future", "now": "2100-01-01"})]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = build(tmp_path_factory.mktemp("time"), DOCUMENTS, name="team.db")
    set_policy(db, POLICY)
    return db


@pytest.fixture
def engine(db: Path) -> Iterator[Engine]:
    with Engine(db, overlay_folders((demo_overlays(),))) as engine:
        yield engine


def ask(engine: Engine, method: str, **fields: Any) -> Any:
    try:
        return Operations(engine).call(method, fields)
    except RolebundleError as error:
        return error_fields(error)


def documents_in(bundle: Any) -> list[str]:
    return [passage["document_id"] for passage in bundle["selected"]]


@needs_mcp
def test_no_interface_takes_the_time_from_an_agent(db: Path, engine: Engine) -> None:
    expected = ask(engine, *TIMED[0][:1], **TIMED[0][1], agent="ada")
    assert expected["code"] == "time_denied" and "may_set_time = true" in expected["hint"]
    with Served("--db", db) as server:
        for method, fields in TIMED:
            assert ask(engine, method, **fields, agent="ada") == expected
            assert server.ask(method, **fields, agent="ada")["error"]["data"] == expected
    tools = {tool.method: tool.name for tool in OFFERED}

    async def talk(session: Any) -> list[Any]:
        return [await session.call_tool(tools[m], f | {"agent": "ada"}) for m, f in TIMED]

    answers = run_session(stdio_session(server_of(db)), talk)
    assert [error_of(answer) for answer in answers] == [expected] * len(TIMED)
    for at in AT:
        [(key, value)] = at.items()
        option = f"--{key.replace('_', '-')}"
        refused = invoke("retrieve", "token", option, value, "--agent", "ada", "--db", db)
        assert (refused.code, refused.out) == (4, "")
        assert expected["message"] in refused.err and expected["hint"] in refused.err


def test_who_may_set_the_time_gets_what_is_valid_then(db: Path, engine: Engine) -> None:
    for fields, valid in ((AT[0], "later"), (AT[1], "old"), ({}, None)):
        found = ask(engine, "retrieve", **ASKED[0][1], **fields, agent="kim")
        assert sorted(documents_in(found)) == sorted(filter(None, ["plan", valid]))
    assert documents_in(ask(engine, "retrieve", **ASKED[0][1], agent="ada")) == ["plan"]
    # A comparison fixes one time for all roles, and needs no permission for it.
    assert ask(engine, "compare", **ASKED[2][1], agent="ada")["roles"]


@pytest.mark.parametrize("name", ["old", "later"])
def test_what_is_not_valid_is_answered_as_what_is_missing(
    db: Path, engine: Engine, name: str
) -> None:
    def answers(name: str) -> str:
        references = [
            name,
            f"{name}.md",
            f"{name}#0",
            f"{name}.md:1-1",
            f"#{name}:1:1",
            f"#{name}:9:1",
        ]
        calls: list[tuple[str, dict[str, Any]]] = [
            *(("get", {"id": reference}) for reference in references),
            ("get", {"id": name, "outline": True}),
            ("multi_get", {"ids": [*references, f"{name}*"]}),
            ("ls", {}),
            ("ls", {"limit": 1}),
            ("ls", {"prefix": f"{name}.md"}),
            ("grep", {"pattern": "token"}),
            ("grep", {"pattern": "token", "prefix": name}),
            ("mark", {"id": name, "state": "disputed", "reason": "it is old"}),
        ]
        found = [ask(engine, method, **fields, agent="ada") for method, fields in calls]
        fact = RememberRequest(fact=f"the token of {name}", source=name, agent="ada")
        with pytest.raises(RolebundleError) as error:
            engine.remember(fact)
        return json.dumps([*found, error_fields(error.value)])

    assert answers(name).replace(name, "X") == answers("gone").replace("gone", "X")
    for command in (["get", name], ["ls", name], ["grep", "token", name]):
        hidden = invoke(*command, "--agent", "ada", "--db", db)
        missing = invoke(
            *(part.replace(name, "gone") for part in command), "--agent", "ada", "--db", db
        )
        assert hidden.out == missing.out == ""
        assert hidden.err.replace(name, "X") == missing.err.replace("gone", "X")


def test_verify_takes_no_evidence_from_what_is_not_valid(engine: Engine) -> None:
    draft = {"draft": "the token of the future (later.md:1-1)"}
    assert ask(engine, "verify", **draft, agent="ada")["passages"] == []
    named = ask(engine, "verify", **draft, chunk_ids=["later#0"], agent="ada")
    assert "rejected_source" in named["counts"]


def test_without_a_policy_the_owner_sees_the_dates(tmp_path: Path) -> None:
    db = build(tmp_path, DOCUMENTS, name="own.db")
    shown = invoke("get", "old", "--db", db)
    assert "the token of the past" in shown.out and "valid until 2020-01-01" in shown.out
    found = invoke(
        "retrieve", "token", "--lexical-only", "--now", "2019-06-01", "--format", "json", "--db", db
    )
    assert sorted(documents_in(found.json())) == ["old", "plan"]
    assert "later" in invoke("ls", "--db", db).out
