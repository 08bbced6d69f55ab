"""The tools for models: small, without references, each with a valid example."""

from __future__ import annotations

import json
import runpy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.servers.operations import INSTRUCTIONS, METHODS, TOOLS, Operation
from support.commands import CHECKOUT
from support.mcp import needs_mcp

TASKS = runpy.run_path(str(CHECKOUT / "benchmarks" / "tool_tasks.py"))
definitions, mistake_in, read_tasks = (
    TASKS[name] for name in ("definitions", "mistake_in", "read_tasks")
)
MAX_BYTES = 10_240
for_each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


@needs_mcp
def test_the_whole_list_is_small_enough_for_a_small_model() -> None:
    from rolebundle.interfaces.servers.mcp import offered_tools

    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in offered_tools(METHODS, takes_approvals=True)
    ]
    assert len(tools) == len(TOOLS) == len({tool["name"] for tool in tools})
    text = json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) <= MAX_BYTES
    assert not [tool["name"] for tool in tools if "outputSchema" in tool]


@for_each_tool
def test_a_schema_is_plain(tool: Operation) -> None:
    schema = tool.input_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    text = json.dumps(schema)
    assert not [word for word in ("$ref", "$defs", "anyOf", '"null"') if word in text]
    assert set(tool.fields) <= set(tool.contract.model_fields)
    assert all(field.get("description") for field in schema["properties"].values())
    required = {name for name, field in tool.contract.model_fields.items() if field.is_required()}
    assert set(schema.get("required", ())) == required


@for_each_tool
def test_a_description_says_when_to_call_it(tool: Operation) -> None:
    assert "Call it" in tool.text
    if tool.example is not None:
        Draft202012Validator(tool.input_schema()).validate(tool.example)
        parsed(tool.contract, tool.example)
        assert json.dumps(tool.example) in tool.text
    assert f"`{tool.name}`" in INSTRUCTIONS or tool.writes


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


@for_each_tool
def test_an_example_does_not_give_away_the_answer_to_a_task(tool: Operation) -> None:
    example_texts = [
        text for text in texts(tool.example) if text not in ("1.0", "rejected", "execute")
    ]
    situations = " ".join(task["situation"] for task in read_tasks())
    assert not [text for text in example_texts if text in situations]


def test_an_approval_can_be_withheld() -> None:
    retrieve = TOOLS[0]
    assert "approval" in retrieve.input_schema()["properties"]
    assert "approval" not in retrieve.input_schema(["approval"])["properties"]


@needs_mcp
def test_what_the_reader_of_the_tasks_gets_is_what_a_client_gets() -> None:
    from rolebundle.interfaces.servers.mcp import offered_tools

    text = definitions()
    assert INSTRUCTIONS in text
    tools = json.loads(text.removeprefix(INSTRUCTIONS))
    assert [(tool["description"], tool["inputSchema"]) for tool in tools] == [
        (tool.description, tool.input_schema)
        for tool in offered_tools(METHODS, takes_approvals=False)
    ]


def a_right_answer(task: dict[str, Any]) -> dict[str, Any]:
    """The call that a task expects, with a text for each loose expectation."""
    arguments: dict[str, Any] = {}
    for name, expected in task["expect"][0]["arguments"].items():
        value = expected
        if isinstance(expected, dict):
            value = "x"
            if "has" in expected:
                value = " ".join(expected["has"])
            elif "glob" in expected:
                value = f"{expected['glob'].rstrip('/')}/**"
        outer, _, key = name.partition(".")
        if key:
            arguments.setdefault(outer, {})[key] = value
        else:
            arguments[outer] = value
    return {"id": task["id"], "tool": task["expect"][0]["tool"], "arguments": arguments}


def test_the_tasks_can_be_solved_and_use_every_tool() -> None:
    tasks = read_tasks()
    assert [task["id"] for task in tasks] == list(range(1, len(tasks) + 1))
    assert {right["tool"] for task in tasks for right in task["expect"]} == {
        tool.name for tool in TOOLS
    }
    for task in tasks:
        assert mistake_in(a_right_answer(task), task) == ""
        assert all(right["tool"] not in task["situation"].split() for right in task["expect"])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (None, "no answer"),
        ({"tool": "search"}, "there is no tool"),
        ({"tool": "status", "arguments": {}}, "instead of retrieve"),
        ({"arguments": {"task": "token", "rolle": "x"}}, "Additional properties"),
        ({"arguments": {"task": "token"}}, "role is None"),
        ({"arguments": {}}, "required property"),
    ],
)
def test_a_wrong_call_is_counted_as_wrong(change: dict[str, Any] | None, expected: str) -> None:
    task = read_tasks()[0]
    answer = None if change is None else a_right_answer(task) | change
    assert expected in mistake_in(answer, task)
