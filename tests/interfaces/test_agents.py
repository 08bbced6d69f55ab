"""Agents: the command line, `serve`, MCP and Python refuse with the same bytes."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.json_lines import error_fields
from rolebundle.interfaces.servers import operations as tools
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import demo_overlays
from support.bundles import without_timings
from support.commands import CHECKOUT, invoke
from support.corpora import build, document, set_policy
from support.mcp import error_of, needs_mcp, run_session, server_of, stdio_session, text_of
from support.served import Served

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")

OVERLAYS = demo_overlays()
FOLDERS = overlay_folders((OVERLAYS,))
POLICY = {
    "ada": {"scopes": ["engineering"], "access_level": "internal"},
    "hugo": {"scopes": ["hr"], "access_level": "confidential"},
}
DOCUMENTS = [
    document("salary", ["the token plan", "zebra"], scope="hr", source_id="payroll"),
    document("bonus", ["the bonus token"], scope="hr", sensitivity="confidential"),
    document("plan", ["the token plan"], scope="engineering"),
    document("notes", ["token notes"], scope="engineering"),
]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("retrieve", {"task": "token", "lexical_only": True, "now": "2026-11-01"}),
    ("get", {"id": "plan"}),
    ("get", {"id": "salary"}),
    ("get", {"id": "never-was"}),
    ("get", {"id": "plan", "outline": True}),
    ("get", {"id": "salary", "outline": True}),
    ("get", {"id": "salary", "section": "Plan"}),
    ("get", {"id": "salary.md:1-1"}),
    ("get", {"id": "#salary:7:7"}),
    ("get", {"id": "/docs/plan.md"}),
    ("get", {"id": "salari.md"}),
    ("multi_get", {"ids": ["plan", "never-was", "*", "/docs/*.md"], "max_chars": 4_000}),
    ("multi_get", {"ids": ["plan", "salary"], "outline": True}),
    (
        "retrieve",
        {"task": "token", "seen": ["salary.md:1-1"], "lexical_only": True, "now": "2026-11-01"},
    ),
    ("ls", {}),
    ("ls", {"prefix": "payrol"}),
    ("ls", {"prefix": "/docs"}),
    ("grep", {"pattern": "token"}),
    ("grep", {"pattern": "zebra"}),
    ("grep", {"pattern": "token", "prefix": "payrol"}),
    ("why", {"id": "plan", "task": "token", "lexical_only": True, "now": "2026-11-01"}),
    ("why", {"id": "salary", "task": "token", "lexical_only": True, "now": "2026-11-01"}),
    ("verify", {"draft": "the token plan [1]", "chunk_ids": ["plan#0"], "now": "2026-11-01"}),
    ("verify", {"draft": "the token plan [1]", "chunk_ids": ["salary#0"], "now": "2026-11-01"}),
    ("verify", {"draft": "the token plan (salary.md:1-1)", "now": "2026-11-01"}),
    ("verify", {"draft": "x", "role": "no-such-role"}),
    (
        "compare",
        {
            "task": "token",
            "roles": ["mossline-docs-writer", "mossline-code-reviewer"],
            "lexical_only": True,
            "now": "2026-11-01",
        },
    ),
    ("roles.list", {}),
    ("status", {}),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = build(tmp_path_factory.mktemp("agents"), DOCUMENTS, name="team.db")
    set_policy(db, POLICY)
    return db


@pytest.fixture(scope="module")
def served(db: Path) -> Iterator[Served]:
    with Served("--db", db, "--overlay-dir", OVERLAYS, "--allow-write") as server:
        yield server


def by_python(db: Path, method: str, fields: dict[str, Any], **pinned: str) -> Any:
    with Engine(db, FOLDERS, **pinned) as engine:
        try:
            return without_timings(Operations(engine).call(method, fields))
        except RolebundleError as error:
            return error_fields(error)


def text_by_python(db: Path, method: str, fields: dict[str, Any]) -> Any:
    with Engine(db, FOLDERS) as engine:
        try:
            return Operations(engine).text(method, fields)
        except RolebundleError as error:
            return error_fields(error)


def by_serve(server: Served, method: str, fields: dict[str, Any]) -> Any:
    answer = server.ask(method, **fields)
    return without_timings(answer["result"]) if "result" in answer else answer["error"]["data"]


TOOLS = {tool.method: tool.name for tool in tools.TOOLS}


def unnumbered(answer: Any) -> Any:
    """An answer without its number: a server counts what its agents get."""
    return re.sub(r"^Answer a\d+\.", "", answer) if isinstance(answer, str) else answer


def all_by_mcp(db: Path, requests: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The text of each answer, or its error."""

    async def talk(session: Any) -> list[Any]:
        return [await session.call_tool(TOOLS[method], fields) for method, fields in requests]

    found = run_session(stdio_session(server_of(db)), talk)
    return [error_of(answer) if answer.is_error else text_of(answer) for answer in found]


@needs_mcp
@pytest.mark.sample(2)
@pytest.mark.parametrize("agent", ["ada", "hugo", "eve", None])
def test_every_interface_gives_the_same_answer(db: Path, served: Served, agent: str | None) -> None:
    refused, shown = [], list[Any]()
    by_tool: list[tuple[str, dict[str, Any]]] = []
    for method, fields in REQUESTS:
        request = fields | ({"agent": agent} if agent else {})
        ours = by_python(db, method, request)
        assert by_serve(served, method, request) == ours
        text = json.dumps(ours)
        if method in TOOLS:
            by_tool.append((method, request))
            shown.append(text_by_python(db, method, request))
            text += json.dumps(shown[-1])
        assert str(db.parent) not in text and str(CHECKOUT) not in text
        if agent != "hugo":
            text = text.replace(fields.get("id", "salary"), "")
            for named in fields.get("chunk_ids", ()):
                text = text.replace(named, "")
            assert "salary" not in text and "payroll" not in text and "bonus" not in text
        if ours.get("code") == "access_denied":
            refused.append(json.dumps(ours))
    assert [*map(unnumbered, all_by_mcp(db, by_tool))] == [*map(unnumbered, shown)]
    # An agent that the policy does not name gets one answer to everything.
    assert (len(refused), len(set(refused))) == ((0, 0) if agent in POLICY else (len(REQUESTS), 1))


def test_the_command_line_says_the_same(db: Path) -> None:
    hidden = invoke("get", "salary", "--agent", "ada", "--db", db)
    missing = invoke("get", "never-was", "--agent", "ada", "--db", db)
    assert (hidden.code, hidden.out) == (missing.code, missing.out) == (2, "")
    assert hidden.err.replace("salary", "X") == missing.err.replace("never-was", "X")
    ours = by_python(db, "get", {"id": "salary", "agent": "ada"})
    assert ours["message"] in hidden.err and ours["hint"] in hidden.err
    denied = by_python(db, "get", {"id": "plan", "agent": "eve"})
    refusals = {
        invoke(*command, *agent_options, "--db", db)
        for command in (
            ["get", "plan"],
            ["get", "salary"],
            ["retrieve", "token", "--lexical-only"],
            ["retrieve", "token", "--role", "no-such-role", "--format", "json"],
            ["why", "salary", "token", "--lexical-only"],
            [
                "compare",
                "token",
                "--roles",
                "mossline-docs-writer,mossline-security-reviewer",
                "--lexical-only",
            ],
        )
        for agent_options in ([], ["--agent", "eve"], ["--agent", "hugo "])
    }
    [refusal] = refusals
    assert (refusal.code, refusal.out) == (4, "")
    assert denied["message"] in refusal.err and denied["hint"] in refusal.err


def test_a_server_pinned_to_an_agent_serves_no_other(db: Path, tmp_path: Path) -> None:
    options = ("--db", db, "--overlay-dir", OVERLAYS, "--agent", "ada", "--allow-write")
    with Served(*options) as server:
        reply = server.ask("initialize")["result"]["capabilities"]
        assert "ingest" not in reply["methods"] and reply["allow_write"] is False
        for method, fields in REQUESTS:
            ours = by_python(db, method, fields | {"agent": "ada"})
            assert by_serve(server, method, fields) == ours
            assert by_serve(server, method, fields | {"agent": "ada"}) == ours
            for other_agent in ("hugo", "eve", "Ada"):
                refused = server.ask(method, **fields, agent=other_agent)["error"]
                assert (refused["code"], refused["data"]["code"]) == (-32001, "access_denied")
        error = server.ask("ingest", paths=[str(tmp_path)])["error"]
        assert (error["code"], error["data"]["code"]) == (-32001, "read_only_server")
