"""`rolebundle check`: an intent against what was decided; also as the hook of a host."""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.decisions import (
    MAX_INTENT_CHARACTERS,
    CheckAnswer,
    CheckRequest,
)
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    engine_options,
    json_option,
    request_file_option,
    request_options,
)
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.answer.passage_text import constraint_line, one_line

_EXIT_STOPPED, _EXIT_HOOK_BLOCKS = 1, 2
_STOPPING = frozenset({"block", "require_approval"})
_READING_TOOLS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read"})
"""Tools of hosts that only read, whatever action the hook was set up for."""


@click.command()
@click.argument("intent", required=False)
@request_file_option
@click.option(
    "--hook",
    is_flag=True,
    help="Be the hook that a host calls before a tool: read its JSON (tool_name, tool_input) or a "
    "request from standard input. Exit code 2 stops the tool, with the reason on standard error.",
)
@request_options(CheckRequest, without=["intent"])
@engine_options
@json_option
def check(
    intent: str | None,
    request_file: BinaryIO | None,
    hook: bool,
    fields: dict[str, Any],
    options: EngineOptions,
    as_json: bool,
) -> None:
    """Find decisions that may apply to INTENT: none_found, warn, require_approval or block.

    The answer is advice, and quotes the decisions with id, date and reason. Exit code 1 if it is
    require_approval or block.

    \b
    rolebundle check "schedule a post about 3.0" --also "publish the news of 3.0"
    rolebundle check --command "restic forget --keep-last 3"
    echo '{"intent": "schedule a post about 3.0"}' | rolebundle check --request -
    rolebundle check --hook --action execute < tool-call.json
    """
    has_own = intent is not None or "command" in fields
    if has_own + (request_file is not None) + hook != 1:
        raise click.UsageError("give one of INTENT or --command, --request and --hook")
    if request_file is not None and fields:
        raise click.UsageError("--request has all fields; give no other options with it")
    try:
        if hook:
            data = json_object(sys.stdin.buffer.read(MAX_LINE_BYTES + 1))
            fields = fields | _fields_of_call(data) if "tool_name" in data else data | fields
        elif request_file is not None:
            fields = json_object(request_file.read(MAX_LINE_BYTES + 1))
        elif intent is not None:
            fields["intent"] = intent
        request = parsed(CheckRequest, fields)
        with options.engine() as engine:
            answer = engine.check(request)
    except RolebundleError as error:
        if not hook:
            raise
        # A host goes on after any other code.
        click.echo(writable(f"rolebundle check: {error}"), err=True)
        click.get_current_context().exit(_EXIT_HOOK_BLOCKS)
    if hook:
        _end_hook(answer)
    if as_json or request_file is not None:
        values = answer.model_dump(exclude_none=True)
        indent = 2 if as_json else None
        click.echo(writable(json.dumps(values, ensure_ascii=False, indent=indent)))
    else:
        for line in _lines(answer):
            click.echo(line)
    click.get_current_context().exit(_EXIT_STOPPED if answer.verdict in _STOPPING else 0)


def _fields_of_call(data: dict[str, object]) -> dict[str, object]:
    """The fields of a request, from what a host says of a tool call."""
    values = data.get("tool_input")
    if isinstance(values, dict) and isinstance(command := values.get("command"), str):
        fields = {"command": command}
        if description := str(values.get("description") or ""):
            fields["intent"] = description
    else:
        fields = {"intent": ". ".join([str(data["tool_name"]).replace("_", " "), *_texts(values)])}
    if any(len(text) > MAX_INTENT_CHARACTERS for text in fields.values()):
        click.echo(
            f"rolebundle check: only the first {MAX_INTENT_CHARACTERS:,} characters of the call "
            "were compared",
            err=True,
        )
    if data["tool_name"] in _READING_TOOLS:
        fields["action"] = "read"
    return {name: text[:MAX_INTENT_CHARACTERS] for name, text in fields.items()}


def _texts(value: object) -> list[str]:
    """The texts in plain values, in order."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in values for text in _texts(item)]


def _end_hook(answer: CheckAnswer) -> None:
    if answer.verdict != "none_found":
        click.echo(one_line(f"{answer.verdict}: {answer.message}", 4_000), err=True)
    click.get_current_context().exit(_EXIT_HOOK_BLOCKS if answer.verdict in _STOPPING else 0)


def _lines(answer: CheckAnswer) -> list[str]:
    lines = [one_line(f"{answer.verdict}: {answer.message}", 4_000)]
    lines += [f"  {constraint_line(item.model_dump())}" for item in answer.decisions]
    for rule in answer.policies:
        rulings = ", ".join(f"{origin} {ruling}" for origin, ruling in rule.rulings.items())
        lines.append(f"  policy: {rule.action} has risk {rule.risk}: {rulings}")
    if answer.degraded:
        lines.append(f"  only words were compared: {one_line(answer.degraded)}")
    return [*lines, f"  {answer.advisory}"]
