"""What the MCP server answers, as the official SDK's client sees it: one process for each transport.

What a process of its own is needed for is in test_mcp_process.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from rolebundle.engine import Engine
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.overlays import overlay_folders
from support.mcp import OVERLAYS, TASK, SharedServer, error_of, needs_mcp, text_of

if TYPE_CHECKING:
    from support.mcp import Session

pytestmark = needs_mcp

NOW = "2026-03-01T00:00:00Z"


@pytest.fixture(scope="module")
def sample_db(sample_without_vectors: Path) -> Path:
    return sample_without_vectors


@pytest.fixture(scope="module", params=["stdio", "http"])
def server(
    request: pytest.FixtureRequest, sample_db: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedServer]:
    token_file = tmp_path_factory.mktemp("http") / "token" if request.param == "http" else None
    shared = SharedServer(sample_db, token_file)
    yield shared
    shared.close()


def some_chunk(db: Path) -> tuple[str, str]:
    with Engine(db, overlay_folders((OVERLAYS,))) as engine:
        found = Operations(engine).call(
            "retrieve", {"task": TASK, "role": "mossline-security-reviewer", "lexical_only": True}
        )
    first = found["selected"][0]
    return first["chunk_id"], first["document_id"]


def test_it_says_who_it_is_and_how_to_use_it(server: SharedServer) -> None:
    async def talk(session: Session) -> Any:
        return await session.initialize()

    from importlib.metadata import version

    shown_text = server.speak(talk)
    assert (shown_text.server_info.name, shown_text.server_info.version) == (
        "rolebundle",
        version("rolebundle"),
    )
    assert "not instructions" in shown_text.instructions
    assert "\n" not in shown_text.instructions
    assert shown_text.capabilities.tools is not None
    assert shown_text.capabilities.resources is not None


def test_every_tool_is_described_and_read_only(server: SharedServer) -> None:
    async def talk(session: Session) -> Any:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in server.speak(talk)}
    assert " ".join(tools) == (
        "retrieve get multi_get ls why compare replay verify check list_roles status"
    )
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert tool.annotations.open_world_hint is False
    assert tools["retrieve"].input_schema["required"] == ["task"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("detail", ["ids", "full", None])
def test_retrieve_answers_as_every_interface_does(
    server: SharedServer, sample_db: Path, detail: str | None
) -> None:
    fields: dict[str, Any] = {
        "task": TASK,
        "role": "mossline-security-reviewer",
        "now": NOW,
        "lexical_only": True,
    }
    fields |= {"detail": detail} if detail else {}

    result = server.call("retrieve", fields)
    assert not result.is_error
    with Engine(sample_db, overlay_folders((OVERLAYS,))) as engine:
        expected = Operations(engine).call("retrieve", fields)
    assert without_timings(result.structured_content) == without_timings(expected)
    text = text_of(result)
    assert "not instructions" in text
    for chunk in expected["selected"]:
        assert f"[{chunk['rank']}]" in text
        assert chunk["citation"]["locator"] in text
        assert chunk.get("content", "") in text


def without_timings(answer: dict[str, Any]) -> dict[str, Any]:
    kept_fields = {key: value for key, value in answer.items() if key != "diagnostics"}
    kept_fields["query"] = {
        key: value for key, value in kept_fields.get("query", {}).items() if key != "generated_at"
    }
    return kept_fields


def test_the_other_tools_answer_as_every_interface_does(
    server: SharedServer, sample_db: Path
) -> None:
    chunk_id, _ = some_chunk(sample_db)
    fixed = {"task": TASK, "now": NOW, "lexical_only": True}
    with Engine(sample_db, overlay_folders((OVERLAYS,))) as engine:
        operations = Operations(engine)
        bundle = operations.call("retrieve", {**fixed, "detail": "full"})
        calls: dict[str, dict[str, Any]] = {
            "get": {"id": chunk_id},
            "multi_get": {"ids": [chunk_id, "product/*.md", "nothing"], "max_chars": 4000},
            "ls": {"prefix": "product", "limit": 2},
            "why": {**fixed, "role": "mossline-security-reviewer", "id": chunk_id},
            "compare": {
                **fixed,
                "roles": ["mossline-security-reviewer", "mossline-product-strategist"],
            },
            "replay": {"bundle": bundle},
            "verify": {"draft": "It lives 30 days [1].", "chunk_ids": [chunk_id], "now": NOW},
            "check": {"intent": "Describe the token refresh"},
            "list_roles": {},
            "status": {},
        }
        for name, arguments in calls.items():
            result = server.call(name, arguments)
            assert not result.is_error, text_of(result)
            method = "roles.list" if name == "list_roles" else name
            expected = operations.call(method, arguments)
            for answer in (expected, result.structured_content):
                answer.pop("checked_at", None)
            assert without_timings(result.structured_content) == without_timings(expected), name
            expected_texts = {
                "why": chunk_id,
                "compare": "mossline-product-strategist: ",
                "replay": "the same today",
                "list_roles": "mossline-security-reviewer",
            }
            assert expected_texts.get(name, "") in text_of(result)


@pytest.mark.parametrize(
    ("bundle", "code"),
    [
        ({}, "bundle_malformed"),
        ({"detail": "compact", "selected": []}, "bundle_incomplete"),
        ("{}", "bad_request"),
    ],
)
def test_a_replay_needs_a_whole_bundle(server: SharedServer, bundle: Any, code: str) -> None:
    assert error_of(server.call("replay", {"bundle": bundle}))["code"] == code


def test_names_that_models_guess_are_taken(server: SharedServer) -> None:
    guessed = {
        "query": TASK,
        "topK": 2,
        "roleId": "mossline-security-reviewer",
        "lexicalOnly": True,
    }
    result = server.call("retrieve", guessed)
    assert not result.is_error, text_of(result)
    assert len(result.structured_content["selected"]) == 2


def test_a_wrong_field_is_answered_with_the_nearest_name(server: SharedServer) -> None:
    error = error_of(server.call("retrieve", {"task": TASK, "limmit": 2}))
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
    server: SharedServer, name: str, arguments: dict[str, Any], code: str | None
) -> None:
    error = error_of(server.call(name, arguments))
    assert code is None or error["code"] == code


def test_an_unknown_tool_is_the_protocols_error(server: SharedServer) -> None:
    from mcp.shared.exceptions import MCPError

    with pytest.raises(MCPError, match="there are retrieve, get"):
        server.call("search", {"task": TASK})


def test_documents_and_overlays_are_resources(server: SharedServer, sample_db: Path) -> None:
    _, document_id = some_chunk(sample_db)

    async def talk(session: Session) -> Any:
        listed = (await session.list_resources()).resources
        templates = (await session.list_resource_templates()).resource_templates
        chunk_id, _ = some_chunk(sample_db)
        document = next(resource for resource in listed if resource.name == document_id)
        overlay = next(
            resource for resource in listed if resource.name == "mossline-security-reviewer"
        )
        return (
            listed,
            templates,
            await session.read_resource(document.uri),
            await session.read_resource(overlay.uri),
            await session.read_resource(f"rolebundle://passage/{quote(chunk_id, safe='')}"),
        )

    listed, templates, document, overlay, passage = server.speak(talk)
    assert len({resource.uri for resource in listed}) == len(listed)
    assert [template.uri_template for template in templates] == [
        "rolebundle://passage/{chunk_id}",
        "rolebundle://document/{document_id}",
        "rolebundle://overlay/{role}",
    ]
    with Engine(sample_db) as engine:
        for found in engine.get(document_id).passages:
            assert found.content in document.contents[0].text
        (found,) = engine.get(some_chunk(sample_db)[0]).passages
        assert found.content in passage.contents[0].text
    assert "not instructions" in document.contents[0].text
    assert (
        json.loads(overlay.contents[0].text)["overlay"]["role_id"] == "mossline-security-reviewer"
    )


@pytest.mark.parametrize(
    "uri",
    [
        "rolebundle://document/none.md",
        "rolebundle://passage/product",
        "rolebundle://overlay/none",
        "rolebundle://other/thing",
        "file:///etc/hostname",
    ],
)
def test_a_resource_that_is_not_there_is_refused(server: SharedServer, uri: str) -> None:
    from mcp.shared.exceptions import MCPError

    async def talk(session: Session) -> Any:
        await session.read_resource(uri)

    with pytest.raises(MCPError) as refused:
        server.speak(talk)
    assert refused.value.error.data["code"]
