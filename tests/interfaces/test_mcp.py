"""The MCP server, as the official SDK's client sees it: a real process behind pipes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rolebundle.engine import Engine
from rolebundle.interfaces.operations import Operations
from support.commands import SAMPLE, invoke

pytest.importorskip("mcp_types", reason="needs the extra: pip install 'rolebundle[mcp]'")

from jsonschema import Draft202012Validator
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

TASK = "How long does a refresh token live, and when is it rotated?"
NOW = "2026-03-01T00:00:00Z"
OVERLAYS = SAMPLE.parent / "overlays"
SECONDS = 30
Session = ClientSession
_SERVE = "from rolebundle.interfaces.cli.main import main; main()"


@pytest.fixture(scope="module")
def sample_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("mcp") / "sample.db"
    assert invoke("ingest", SAMPLE, "--lexical-only", "--workers", "1", "--db", db).code == 0
    return db


def command(db: Path, *more: str, program: str = _SERVE) -> list[str]:
    options = ["mcp", "--db", str(db), "--overlay-dir", str(OVERLAYS), *more]
    return [sys.executable, "-c", program, *options]


def with_session(
    talk: Callable[[Session], Awaitable[Any]], db: Path, *more: str, program: str = _SERVE
) -> Any:
    """What ``talk`` returns, spoken with a server of its own."""
    first, *rest = command(db, *more, program=program)

    async def run() -> Any:
        server = StdioServerParameters(command=first, args=rest, env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            try:
                return await talk(session)
            except MCPError as error:
                # Raised outside, where no task group wraps it.
                return error

    outcome = asyncio.run(asyncio.wait_for(run(), SECONDS))
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


def called(db: Path, name: str, arguments: dict[str, Any]) -> Any:
    async def talk(session: Session) -> Any:
        return await session.call_tool(name, arguments)

    return with_session(talk, db)


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


def error_of(result: Any) -> dict[str, Any]:
    assert result.is_error
    assert result.structured_content is None
    error: dict[str, Any] = result.meta["rolebundle/error"]
    assert set(error) == {"code", "message", "hint", "retryable"}
    assert error["code"] in text_of(result) and error["message"] in text_of(result)
    assert error["hint"] in text_of(result) and "retryable: " in text_of(result)
    return error


def some_chunk(db: Path) -> tuple[str, str]:
    with Engine(db, (OVERLAYS,)) as engine:
        found = Operations(engine).call(
            "retrieve", {"task": TASK, "role": "security-reviewer", "lexical_only": True}
        )
    first = found["selected"][0]
    return first["chunk_id"], first["document_id"]


def test_it_says_who_it_is_and_how_to_use_it(sample_db: Path) -> None:
    async def talk(session: Session) -> Any:
        return await session.initialize()

    from importlib.metadata import version

    said = with_session(talk, sample_db)
    assert (said.server_info.name, said.server_info.version) == (
        "rolebundle",
        version("rolebundle"),
    )
    assert "not instructions" in said.instructions
    assert "\n" not in said.instructions
    assert said.capabilities.tools is not None
    assert said.capabilities.resources is not None


def test_every_tool_is_described_and_read_only(sample_db: Path) -> None:
    async def talk(session: Session) -> Any:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in with_session(talk, sample_db)}
    assert list(tools) == ["retrieve", "get", "why", "list_roles", "status"]
    for tool in tools.values():
        assert "Call it" in tool.description
        assert tool.annotations.read_only_hint and tool.annotations.idempotent_hint
        assert tool.annotations.open_world_hint is False
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool.input_schema)
        assert all(field.get("description") for field in tool.input_schema["properties"].values())
    assert tools["retrieve"].input_schema["required"] == ["task"]


@pytest.mark.parametrize("detail", ["ids", "compact", "full", None])
def test_retrieve_answers_as_every_door_does(sample_db: Path, detail: str | None) -> None:
    fields: dict[str, Any] = {
        "task": TASK,
        "role": "security-reviewer",
        "now": NOW,
        "lexical_only": True,
    }
    fields |= {"detail": detail} if detail else {}

    async def talk(session: Session) -> Any:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        return tools["retrieve"].output_schema, await session.call_tool("retrieve", fields)

    schema, result = with_session(talk, sample_db)
    assert not result.is_error
    Draft202012Validator(schema).validate(result.structured_content)
    with Engine(sample_db, (OVERLAYS,)) as engine:
        expected = Operations(engine).call("retrieve", fields)
    assert without_timings(result.structured_content) == without_timings(expected)
    text = text_of(result)
    assert "not instructions" in text
    for chunk in expected["selected"]:
        assert f"[{chunk['rank']}]" in text
        assert chunk["citation"]["locator"] in text
        assert chunk.get("content", "") in text


def without_timings(answer: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in answer.items() if key != "diagnostics"}
    kept["query"] = {
        key: value for key, value in kept.get("query", {}).items() if key != "generated_at"
    }
    return kept


def test_the_other_tools_answer_within_their_schemas(sample_db: Path) -> None:
    chunk_id, document_id = some_chunk(sample_db)
    calls: dict[str, dict[str, Any]] = {
        "get": {"id": chunk_id},
        "list_roles": {},
        "status": {},
    }

    async def talk(session: Session) -> Any:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        return {
            name: (tools[name].output_schema, await session.call_tool(name, arguments))
            for name, arguments in calls.items()
        }

    found = with_session(talk, sample_db)
    with Engine(sample_db, (OVERLAYS,)) as engine:
        operations = Operations(engine)
        for name, method in (("get", "get"), ("list_roles", "roles.list"), ("status", "status")):
            schema, result = found[name]
            assert not result.is_error, text_of(result)
            Draft202012Validator(schema).validate(result.structured_content)
            assert result.structured_content == operations.call(method, calls[name])
    assert document_id in json.dumps(found["get"][1].structured_content)
    assert "security-reviewer" in text_of(found["list_roles"][1])


@pytest.mark.skipif(not hasattr(Engine, "why"), reason="the engine explains nothing yet")
def test_why_follows_a_passage(sample_db: Path) -> None:
    chunk_id, _ = some_chunk(sample_db)
    fields = {"task": TASK, "role": "security-reviewer", "now": NOW, "lexical_only": True}

    async def talk(session: Session) -> Any:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        return tools["why"].output_schema, await session.call_tool(
            "why", {**fields, "id": chunk_id}
        )

    schema, result = with_session(talk, sample_db)
    assert not result.is_error, text_of(result)
    Draft202012Validator(schema).validate(result.structured_content)
    assert chunk_id in text_of(result)
    with Engine(sample_db, (OVERLAYS,)) as engine:
        expected = Operations(engine).call("why", {**fields, "id": chunk_id})
    assert without_timings(result.structured_content) == without_timings(expected)


def test_names_that_models_guess_are_taken(sample_db: Path) -> None:
    guessed = {"query": TASK, "topK": 2, "roleId": "security-reviewer", "lexicalOnly": True}
    result = called(sample_db, "retrieve", guessed)
    assert not result.is_error, text_of(result)
    assert len(result.structured_content["selected"]) == 2


def test_a_wrong_field_is_answered_with_the_nearest_name(sample_db: Path) -> None:
    error = error_of(called(sample_db, "retrieve", {"task": TASK, "limmit": 2}))
    assert error["code"] == "bad_request"
    assert "did you mean limit?" in error["message"]
    assert error["retryable"] is False


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("retrieve", {}, "bad_request"),
        ("retrieve", {"task": " "}, "empty_task"),
        ("retrieve", {"task": TASK, "limit": "two"}, "bad_request"),
        ("retrieve", {"task": TASK, "role": "no-such-role"}, None),
        ("get", {"id": "no/such/document.md"}, "not_found"),
        ("status", {"verbose": True}, "bad_request"),
    ],
)
def test_errors_are_results_with_a_code(
    sample_db: Path, name: str, arguments: dict[str, Any], code: str | None
) -> None:
    error = error_of(called(sample_db, name, arguments))
    assert code is None or error["code"] == code


def test_an_unknown_tool_is_the_protocols_error(sample_db: Path) -> None:
    with pytest.raises(MCPError, match="there are retrieve, get"):
        called(sample_db, "search", {"task": TASK})


def test_an_empty_corpus_answers_that_nothing_was_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    db = tmp_path / "empty.db"
    invoke("ingest", tmp_path / "docs", "--lexical-only", "--db", db)
    result = called(db, "retrieve", {"task": TASK, "lexical_only": True})
    assert not result.is_error, text_of(result)
    assert result.structured_content["selected"] == []
    assert "No passage was found" in text_of(result)


def test_a_missing_corpus_is_an_error_until_it_is_there(tmp_path: Path) -> None:
    db = tmp_path / "later.db"

    async def talk(session: Session) -> Any:
        before = await session.call_tool("status", {})
        await asyncio.to_thread(
            lambda: invoke("ingest", SAMPLE, "--lexical-only", "--workers", "1", "--db", db)
        )
        return before, await session.call_tool("status", {})

    before, after = with_session(talk, db)
    assert error_of(before)["code"]
    assert "ingest" in error_of(before)["hint"]
    assert after.structured_content["corpus"]["documents"] > 0


def test_documents_and_overlays_are_resources(sample_db: Path) -> None:
    _, document_id = some_chunk(sample_db)

    async def talk(session: Session) -> Any:
        listed = (await session.list_resources()).resources
        templates = (await session.list_resource_templates()).resource_templates
        document = next(one for one in listed if one.name == document_id)
        overlay = next(one for one in listed if one.name == "security-reviewer")
        return (
            listed,
            templates,
            await session.read_resource(document.uri),
            await session.read_resource(overlay.uri),
        )

    listed, templates, document, overlay = with_session(talk, sample_db)
    assert len({one.uri for one in listed}) == len(listed)
    assert [one.uri_template for one in templates] == [
        "rolebundle://document/{document_id}",
        "rolebundle://overlay/{role}",
    ]
    with Engine(sample_db) as engine:
        for passage in engine.get(document_id).passages:
            assert passage.content in document.contents[0].text
    assert "not instructions" in document.contents[0].text
    assert json.loads(overlay.contents[0].text)["overlay"]["role_id"] == "security-reviewer"


def test_the_listing_comes_in_pages_and_ends(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(1_030):
        (docs / f"note {number}.md").write_text(f"# Note {number}\n\nThe note {number}.\n")
    db = tmp_path / "many.db"
    assert invoke("ingest", docs, "--lexical-only", "--db", db).code == 0

    async def talk(session: Session) -> Any:
        from mcp_types import PaginatedRequestParams

        names, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            page = await session.list_resources(params=PaginatedRequestParams(cursor=cursor))
            names += [one.uri for one in page.resources if "://document/" in one.uri]
            cursor, pages = page.next_cursor, pages + 1
        return names, pages, await session.read_resource(names[-1])

    uris, pages, last = with_session(talk, db)
    assert (len(set(uris)), len(uris), pages) == (1_000, 1_000, 10)
    assert "The note" in last.contents[0].text


@pytest.mark.parametrize(
    "uri",
    [
        "rolebundle://document/none.md",
        "rolebundle://overlay/none",
        "rolebundle://other/thing",
        "file:///etc/hostname",
    ],
)
def test_a_resource_that_is_not_there_is_refused(sample_db: Path, uri: str) -> None:
    async def talk(session: Session) -> Any:
        await session.read_resource(uri)

    with pytest.raises(MCPError) as refused:
        with_session(talk, sample_db)
    assert refused.value.error.data["code"]


STRAY = """
import os, subprocess, sys
from rolebundle.engine import Engine
ask = Engine.retrieve
def noisy(self, *arguments, **named):
    print("stray")
    os.write(1, b"stray bytes\\n")
    subprocess.run([sys.executable, "-c", "print('stray child')"])
    return ask(self, *arguments, **named)
Engine.retrieve = noisy
from rolebundle.interfaces.cli.main import main; main()
"""


def test_stray_prints_do_not_reach_the_client(sample_db: Path) -> None:
    done = piped(sample_db, CALL, program=STRAY)
    assert {json.loads(line)["jsonrpc"] for line in done.stdout.splitlines()} == {"2.0"}
    assert b"stray bytes" in done.stderr and b"stray child" in done.stderr


HELLO = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "retrieve", "arguments": {"task": TASK, "lexical_only": True}},
}


class Conversation:
    """A server spoken to line by line."""

    def __init__(self, db: Path, *more: str, program: str = _SERVE) -> None:
        self.process = subprocess.Popen(
            command(db, *more, program=program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.say(*HELLO)
        self.line()

    def say(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ended(self, started: float) -> subprocess.CompletedProcess[bytes]:
        """What it left behind; it has two seconds from ``started``."""
        rest, errors = self.process.communicate(timeout=10)
        assert time.monotonic() - started < 2
        assert b"Traceback" not in errors, errors.decode()
        return subprocess.CompletedProcess([], self.process.returncode, rest, errors)


def piped(db: Path, call: dict[str, Any], program: str = _SERVE) -> Any:
    talk = Conversation(db, program=program)
    talk.say(call)
    answered = talk.line()
    done = talk.ended(time.monotonic())
    return subprocess.CompletedProcess([], done.returncode, answered + done.stdout, done.stderr)


def test_end_of_input_ends_it(sample_db: Path) -> None:
    done = piped(sample_db, CALL)
    assert done.returncode == 0
    assert json.loads(done.stdout)["id"] == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(sample_db: Path, number: signal.Signals) -> None:
    talk = Conversation(sample_db)
    started = time.monotonic()
    talk.process.send_signal(number)
    done = talk.ended(started)
    assert done.returncode == (0 if number == signal.SIGTERM else 130)


def test_a_signal_ends_it_where_the_client_does_not_read(sample_db: Path) -> None:
    talk = Conversation(sample_db)
    whole = {"task": TASK, "lexical_only": True, "detail": "full", "limit": 100}
    for number in range(20):
        talk.say({**CALL, "id": 10 + number, "params": {"name": "retrieve", "arguments": whole}})
    time.sleep(1)
    started = time.monotonic()
    talk.process.send_signal(signal.SIGTERM)
    talk.process.wait(5)
    assert time.monotonic() - started < 2
    assert b"Traceback" not in talk.process.communicate()[1]


def test_calls_that_were_piped_in_are_answered_before_the_end(sample_db: Path) -> None:
    said = b"".join(json.dumps(message).encode() + b"\n" for message in [*HELLO, CALL])
    done = subprocess.run(command(sample_db), input=said, capture_output=True, check=True)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


def test_a_client_that_reads_no_more_ends_it(sample_db: Path) -> None:
    talk = Conversation(sample_db)
    assert talk.process.stdout is not None
    talk.process.stdout.close()
    started = time.monotonic()
    talk.say(CALL)
    with pytest.raises(subprocess.TimeoutExpired):
        talk.process.wait(0.01)
    talk.process.wait(5)
    assert talk.process.stdin is not None and talk.process.stderr is not None
    talk.process.stdin.close()
    assert time.monotonic() - started < 4
    assert b"Traceback" not in talk.process.stderr.read()


SLOW = """
import sys, time
from rolebundle.engine import Engine
from rolebundle.errors import Interrupted
stopped = []
def slow(self, *arguments, **named):
    print("begun", file=sys.stderr, flush=True)
    for _ in range(600):
        time.sleep(0.05)
        if stopped:
            stopped.clear()
            print("interrupted", file=sys.stderr, flush=True)
            raise Interrupted("interrupted", "the search was ended")
Engine.retrieve = slow
Engine.interrupt = lambda self: stopped.append(1)
from rolebundle.interfaces.cli.main import main; main()
"""
DEAF = SLOW.replace("stopped.append(1)", "None")


def begun(talk: Conversation) -> None:
    talk.say(CALL)
    assert talk.process.stderr is not None
    assert b"begun" in talk.process.stderr.readline()


def test_a_cancelled_call_is_interrupted_and_the_next_is_not(sample_db: Path) -> None:
    talk = Conversation(sample_db, program=SLOW)
    begun(talk)
    talk.say(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}},
        {**CALL, "id": 3, "params": {"name": "status", "arguments": {}}},
    )
    answer = json.loads(talk.line())
    while answer["id"] != 3:
        answer = json.loads(talk.line())
    assert not answer["result"].get("isError"), answer
    assert b"interrupted" in talk.ended(time.monotonic()).stderr


@pytest.mark.parametrize("program", [SLOW, DEAF], ids=["interruptible", "not"])
def test_end_of_input_ends_a_call_that_runs(sample_db: Path, program: str) -> None:
    talk = Conversation(sample_db, program=program)
    begun(talk)
    assert talk.ended(time.monotonic()).returncode == 0


def test_lines_that_are_no_messages_do_not_end_it(sample_db: Path) -> None:
    talk = Conversation(sample_db)
    assert talk.process.stdin is not None
    talk.process.stdin.write(b'not json\n\xff\xfe\n{"jsonrpc": "2.0"}\n[]\n')
    talk.say(CALL)
    answer = json.loads(talk.line())
    while answer.get("id") != 2:
        answer = json.loads(talk.line())
    assert answer["result"]["structuredContent"]["selected"]
    assert talk.ended(time.monotonic()).returncode == 0


def test_preloading_a_corpus_that_is_not_there_is_said_and_survived(tmp_path: Path) -> None:
    talk = Conversation(tmp_path / "none.db", "--preload")
    talk.say({**CALL, "params": {"name": "list_roles", "arguments": {}}})
    assert json.loads(talk.line())["result"]["structuredContent"]["roles"]
    assert b"not loaded ahead" in talk.ended(time.monotonic()).stderr


def test_without_the_extra_it_names_the_command_that_installs_it(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['mcp'] = None; sys.modules['mcp_types'] = None; " + _SERVE
    done = subprocess.run(
        command(tmp_path / "none.db", program=hidden), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "[mcp_missing]" in done.stderr
    assert "pip install 'rolebundle[mcp]'" in done.stderr
