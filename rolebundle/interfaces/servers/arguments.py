"""The arguments of a tool: the JSON Schema that a model is offered, and what a host sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from rolebundle.contracts.base import Contract
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import UsageError
from rolebundle.interfaces.json_lines import json_value
from rolebundle.interfaces.parse import canonical_name, names_in

Schema = dict[str, Any]

_SAME = "As for retrieve."
"""What tools that repeat a request of `retrieve` say of its fields."""


def offered_schema(contract: type[Contract], names: Sequence[str], *, is_first: bool) -> Schema:
    """JSON Schema of these fields of a request.

    It has no references, because some hosts do not resolve them. What is as in `retrieve`, the
    first tool, is not described again.
    """
    schema = _schema_of(contract)
    required = [name for name in names if name in schema.get("required", ())]
    own = schema["properties"]
    fields = {name: _plain(own[name], schema.get("$defs", {})) for name in names}
    if not is_first:
        of_retrieve = _schema_of(RetrievalRequest)["properties"]
        is_search = issubclass(contract, RetrievalRequest)
        for name in of_retrieve.keys() & fields.keys():
            if is_search or own[name] == of_retrieve[name]:
                fields[name] = {"type": fields[name]["type"], "description": _SAME}
    return {
        "type": "object",
        "properties": fields,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


@cache
def _schema_of(contract: type[Contract]) -> Schema:
    # Two tools may have one contract, and a process may have several servers.
    return contract.model_json_schema()


def _plain(value: Schema, definitions: Schema) -> Schema:
    """The schema of a value without references, alternatives and generated titles.

    Of alternatives, null is left out, enumerations are joined, and the first one stands for all.
    """
    choices = [choice for choice in _choices(value, definitions) if choice.get("type") != "null"]
    chosen = choices[0]
    # The contract checks the rest.
    plain: Schema = {"type": chosen["type"]}
    enumerated = (choice.get("enum", [choice.get("const")]) for choice in choices)
    if names := [name for part in enumerated for name in part if name is not None]:
        plain["enum"] = names
    # The first sentence; the rest is for people.
    if text := value.get("description"):
        plain["description"] = text.partition(". ")[0]
    if "items" in chosen:
        plain["items"] = _plain(chosen["items"], definitions)
    if "properties" in chosen:
        fields = chosen["properties"].items()
        plain["properties"] = {name: _plain(field, definitions) for name, field in fields}
    return plain


def _choices(value: Schema, definitions: Schema) -> list[Schema]:
    """The alternatives of a value, without references."""
    if "$ref" in value:
        return _choices(definitions[value["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in value:
        return [choice for part in value["anyOf"] for choice in _choices(part, definitions)]
    return [value]


_JSON_TYPES = {bool: "boolean", int: "integer", float: "integer", list: "array", dict: "object"}


def as_meant(contract: type[Contract], fields: Mapping[str, Any]) -> Any:
    """The fields of a call by a host that does not keep to the types.

    Whole numbers come as 3.0, and what is no text as one. A value gets the type that its schema
    has, if it can be read as one. Otherwise it stays, so that the contract refuses it by name.
    Fields with null are left out.
    """
    schema = _schema_of(contract)
    return _as_meant(fields, schema, schema.get("$defs", {}))


def _as_meant(value: Any, schema: Schema, definitions: Schema) -> Any:
    choices = {choice.get("type"): choice for choice in _choices(schema, definitions)}
    if isinstance(value, str) and ("string" not in choices or value.lstrip()[:1] in ("[", "{")):
        with suppress(UsageError, UnicodeEncodeError):
            # Some languages write True.
            read = json_value((value.lower() if "boolean" in choices else value).encode())
            value = read if _JSON_TYPES.get(type(read)) in choices else value
    is_name = isinstance(value, str) and not value.lstrip().startswith(("{", '["'))
    if is_name and value.strip() and choices.keys() <= {"array", "null"}:
        # A text with spaces is one wording, and not a list of names.
        names = names_in(value)
        value = [value] if any(" " in name for name in names) else names
    if isinstance(value, float) and value.is_integer() and "integer" in choices:
        return int(value)
    if isinstance(value, list) and "array" in choices:
        return [_as_meant(item, choices["array"].get("items", {}), definitions) for item in value]
    if isinstance(value, Mapping) and "object" in choices:
        fields = choices["object"].get("properties", {})
        return {
            name: _as_meant(item, fields.get(canonical_name(name, fields), {}), definitions)
            for name, item in value.items()
            if item is not None
        }
    return value
