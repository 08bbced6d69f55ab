"""Agent, action and approval in every interface, and what each refuses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.interfaces.servers.operations import TOOLS
from support.commands import invoke, run
from support.served import Served

TASK = "Rotate the token"
APPROVED = {"agent": "bot-7", "action": "execute", "approval": "Ana Silva"}
OPTIONS = ("--agent", "bot-7", "--action", "execute", "--approved-by", "Ana Silva")
APPROVALS = [("Ana Silva", "execute")]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("purpose")
    for origin in ("internal", "external", "untrusted"):
        (folder / f"{origin}.md").write_text(
            f"---\norigin: {origin}\n---\n# {origin}\n\nHow {origin} people rotate the token.\n",
            encoding="utf-8",
        )
    path = folder / "c.db"
    outcome = invoke("ingest", folder, "--lexical-only", "--workers", "1", "--db", path)
    assert outcome.code == 0, outcome.err
    yield path


def reply(answer: dict[str, Any]) -> tuple[set[str], dict[str, int], list[tuple[str, str]]]:
    return (
        {passage["title"] for passage in answer["selected"]},
        answer["rejected_summary"],
        [(approval["approved_by"], approval["action"]) for approval in answer.get("approvals", ())],
    )


def asked(server: Served, method: str = "retrieve", **fields: Any) -> Any:
    """What a server answers to the task."""
    return server.ask(method, task=TASK, lexical_only=True, **fields)["result"]


IGNORED = "the name of an approval in a request is not accepted here"
KEPT_BACK = ({"internal"}, {"taint_blocked": 1, "requires_approval": 1}, [])
RELEASED = ({"internal", "external"}, {"taint_blocked": 1}, APPROVALS)


def test_options_of_the_command_line(db: Path) -> None:
    command = ("retrieve", TASK, "--lexical-only", "--db", db, "--format", "json")
    assert reply(invoke(*command, "--action", "execute").json()) == KEPT_BACK
    answer = invoke(*command, *OPTIONS).json()
    assert reply(answer) == RELEASED
    assert answer["request"] == {**APPROVED, "lexical_only": True}


def test_a_request_of_one_shot(db: Path) -> None:
    fields = {"task": TASK, "lexical_only": True, "detail": "compact"}
    command = ("retrieve", "--request", "-", "--db", db)
    for more, options, expected in (
        ({"action": "execute"}, ("--approvals", "request"), KEPT_BACK),
        (APPROVED, ("--approvals", "request"), RELEASED),
        (APPROVED, (), KEPT_BACK),
    ):
        stdin = json.dumps(fields | more).encode()
        answer = json.loads(run(*command, *options, stdin=stdin).out)
        assert reply(answer) == expected
        assert (IGNORED in json.dumps(answer["warnings"])) == (not options)


def test_a_server_takes_no_approval_from_a_request(db: Path) -> None:
    with Served("--db", db) as server:
        answer = asked(server, **APPROVED)
        assert reply(answer) == KEPT_BACK
        assert "approval" not in answer["request"]
        [warning] = [
            warning for warning in answer["warnings"] if warning["code"] == "APPROVAL_REFUSED"
        ]
        assert IGNORED in warning["message"]
        explained = asked(server, "why", id="external.md:1-6", **APPROVED)
        assert (explained["outcome"], explained["code"]) == ("rejected", "requires_approval")


def test_the_program_of_the_host_decides(db: Path, tmp_path: Path) -> None:
    program, question = tmp_path / "ask", tmp_path / "question.json"
    program.write_text(f"#!/bin/sh\ncat > '{question}'\necho 'Ana Silva'\nexit $1\n")
    program.chmod(0o755)
    for code, expected in ((0, RELEASED), (1, KEPT_BACK)):
        approvals = f"command:'{program}' {code}"
        with Served("--db", db, "--approvals", approvals) as server:
            answer = asked(server, **(APPROVED | {"approval": "me"}))
        assert reply(answer) == expected
        request = json.loads(question.read_text())
        question.unlink()
        assert (request["agent"], request["action"], request["claim"]) == ("bot-7", "execute", "me")
        assert [passage["locator"] for passage in request["passages"]] == ["external.md:4-6"]
        assert TASK not in json.dumps(request)
        with Served("--db", db, "--approvals", approvals) as server:
            assert "approvals" not in asked(server)
        assert not question.exists()  # nothing needs an approval to be read


def test_a_request_to_the_sidecar(db: Path) -> None:
    with Served("--db", db, "--approvals", "request") as server:
        for fields in (
            APPROVED,
            {"agentId": "bot-7", "action": "execute", "approvedBy": "Ana Silva"},
        ):
            assert reply(asked(server, **fields)) == RELEASED
        bundle = asked(server, **APPROVED)
        second_answer = server.ask("retrieve", **bundle["more"]["params"])["result"]
        assert reply(second_answer) == RELEASED
        refused = server.ask("retrieve", task=TASK, action="delete")
        assert "action: must be one of 'read'" in refused["error"]["message"]


def test_an_approval_is_described_only_if_a_request_may_have_one() -> None:
    (tool,) = (tool for tool in TOOLS if tool.name == "retrieve")
    assert "never make one up" in tool.input_schema()["properties"]["approval"]["description"]
    assert "approval" not in tool.input_schema(("approval",))["properties"]
