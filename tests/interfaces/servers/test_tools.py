"""The tools for models: small, without references, each with a valid example."""

import json

import pytest
from jsonschema import Draft202012Validator

from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.servers.operations import INSTRUCTIONS, METHODS, TOOLS, Operation
from support.mcp import needs_mcp

MAX_BYTES, MAX_READING_BYTES = 10_240, 9_000
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
    reading = [tool for tool in tools if tool["annotations"]["readOnlyHint"]]
    assert len(json.dumps(reading, ensure_ascii=False).encode()) <= MAX_READING_BYTES
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
