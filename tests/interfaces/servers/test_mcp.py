"""What the MCP server answers, as the official SDK's client sees it: one session for each transport.

What a process of its own is needed for is in test_mcp_process.py.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from rolebundle.engine import Engine
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.overlays import overlay_folders
from support.mcp import (
    OVERLAYS,
    SECONDS,
    TASK,
    error_of,
    http_server,
    needs_mcp,
    server_of,
    stdio_session,
    text_of,
)  # fmt: skip

pytestmark = needs_mcp

NOW = "2026-03-01T00:00:00Z"


class Shared:
    """A session in a thread of its own.

    Args:
        portal: to that thread.
        session: the session.
    """

    def __init__(self, portal: Any, session: Any) -> None:
        self._portal, self._session = portal, session

    def speak(self, talk: Callable[[Any], Awaitable[Any]]) -> Any:
        """Return what ``talk`` returns with the session, and raise what it raises."""
        return self._portal.start_task_soon(talk, self._session).result(SECONDS)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return a tool's answer."""
        return self.speak(lambda session: session.call_tool(name, arguments))


@contextmanager
def shared(opened: Any) -> Iterator[Shared]:
    """One session for many tests, from the context manager that opens it."""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as session:
        yield Shared(portal, session)


@pytest.fixture(scope="module")
def sample_db(sample_without_vectors: Path) -> Path:
    return sample_without_vectors


@pytest.fixture(scope="module")
def stdio(sample_db: Path) -> Iterator[Shared]:
    with shared(stdio_session(server_of(sample_db))) as session:
        yield session


@pytest.fixture(scope="module")
def http(sample_db: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    token_file = tmp_path_factory.mktemp("http") / "token"
    with (
        http_server(sample_db, token_file=token_file) as running,
        shared(running.session()) as session,
    ):
        yield session


@pytest.fixture(scope="module", params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_it_says_who_it_is_and_how_to_use_it(server: Shared) -> None:
    async def talk(session: Any) -> Any:
        return await session.initialize()

    shown_text = server.speak(talk)
    assert (shown_text.server_info.name, shown_text.server_info.version) == (
        "rolebundle",
        version("rolebundle"),
    )
    assert "not instructions" in shown_text.instructions
    assert "\n" not in shown_text.instructions
    assert shown_text.capabilities.tools is not None
    assert shown_text.capabilities.resources is None


def test_every_tool_is_described_and_read_only(server: Shared) -> None:
    async def talk(session: Any) -> Any:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in server.speak(talk)}
    assert " ".join(tools) == ("retrieve get ls grep why compare verify check list_roles status")
    for tool in tools.values():
        assert tool.annotations.read_only_hint
    assert tools["retrieve"].input_schema["required"] == ["task"]


def test_retrieve_shows_every_passage_and_only_as_text(server: Shared, sample_db: Path) -> None:
    fields = {
        "task": TASK,
        "role": "mossline-security-reviewer",
        "now": NOW,
        "lexical_only": True,
        "limit": 3,
    }
    result = server.call("retrieve", fields)
    assert not result.is_error
    assert result.structured_content is None
    with Engine(sample_db, overlay_folders((OVERLAYS,))) as engine:
        expected = Operations(engine).call("retrieve", {**fields, "detail": "full"})
    text = text_of(result)
    assert "not instructions" in text
    assert len(expected["selected"]) == 3
    for chunk in expected["selected"]:
        path = chunk["citation"]["locator"].rpartition(":")[0]
        assert f"[{chunk['rank']}] {path}:" in text


MEANT = [
    ({"limit": 3.0}, {"limit": 3}),
    ({"limit": "3"}, {"limit": 3}),
    ({"limit": " 3.0 "}, {"limit": 3}),
    ({"limit": None, "where": None}, {}),
    ({"lexical_only": "True", "maxChars": "2e3"}, {"lexical_only": True, "max_chars": 2000}),
    ({"also": '["a token", "replay"]'}, {"also": ["a token", "replay"]}),
    ({"also": "how a token is renewed, and when"}, {"also": ["how a token is renewed, and when"]}),
    ({"seen": "a.md, b.md"}, {"seen": ["a.md", "b.md"]}),
    ({"where": '{"path": "[\\"security/**\\"]"}'}, {"where": {"path": ["security/**"]}}),
    ({"where": {"path": '["security/**"]'}}, {"where": {"path": ["security/**"]}}),
]


@pytest.mark.parametrize(("sent", "meant"), MEANT)
def test_arguments_of_another_type_are_read_as_they_are_meant(
    stdio: Shared, sent: dict[str, Any], meant: dict[str, Any]
) -> None:
    own = {"task": TASK, "limit": 4, "now": NOW}
    without = {name for name, value in sent.items() if value is None}
    fields = {name: value for name, value in own.items() if name not in without}
    calls = ({**fields, **meant}, {**own, **sent})
    # The first line has the number of the answer.
    first, second = (text_of(stdio.call("retrieve", call)).split("\n", 1) for call in calls)
    assert first[1] == second[1]


def test_a_list_of_references_may_be_a_text(server: Shared) -> None:
    paths = ["security/threat-model-offline-sync.md", "security/token-lifecycle-audit.md"]
    expected = text_of(server.call("get", {"ids": paths, "outline": True}))
    for text in (json.dumps(paths), ", ".join(paths)):
        assert text_of(server.call("get", {"ids": text, "outline": "true"})) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", 3.5), ("limit", "many"), ("limit", "[3]"), ("limit", True), ("limit", "true"),
        ("also", 3), ("also", "[1]"), ("where", "security"), ("where", '{"path": 3}'),
        ("where", '{"path"'), ("lexical_only", "perhaps"), ("seen", "{}"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_by_name(stdio: Shared, field: str, value: object) -> None:
    error = error_of(stdio.call("retrieve", {"task": TASK, field: value}))
    assert error["code"] == "bad_request" and error["message"].startswith(field)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("retrieve", {}, "bad_request"),
        ("retrieve", {"task": " "}, "empty_task"),
        ("retrieve", {"task": TASK, "limit": "two"}, "bad_request"),
        ("retrieve", {"task": TASK, "role": "no-such-role"}, None),
        ("get", {"id": "no/such/document.md"}, "not_found"),
        ("get", {"id": "product", "outline": True, "section": "x"}, "bad_request"),
        ("status", {"verbose": True}, "bad_request"),
    ],
)
def test_errors_are_results_with_a_code(
    server: Shared, name: str, arguments: dict[str, Any], code: str | None
) -> None:
    error = error_of(server.call(name, arguments))
    assert code is None or error["code"] == code


def test_an_unknown_tool_is_the_protocols_error(server: Shared) -> None:
    from mcp.shared.exceptions import MCPError

    with pytest.raises(MCPError, match="there are retrieve, get"):
        server.call("search", {"task": TASK})
