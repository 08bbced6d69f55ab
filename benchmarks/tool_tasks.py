"""Does a reader who sees only the definitions of the tools choose the right one?

A model sees the server's instructions and the list of tools, and nothing else. So does a reader of
`--print`, who answers each task of `tests/data/tool_tasks.json` with one call. `--check` counts the
right ones.

    python benchmarks/tool_tasks.py --print > definitions.txt
    python benchmarks/tool_tasks.py --check answers.json

The answers: [{"id": 1, "tool": "retrieve", "arguments": {"task": "…"}}, …].
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from rolebundle.interfaces.servers.operations import INSTRUCTIONS, TOOLS

TASKS = Path(__file__).parent.parent / "tests" / "data" / "tool_tasks.json"
WITHHELD = ("approval",)
"""The fields that a server does not offer by default."""
QUESTION = """\
You work with the tools below. For each task, give the one call that you would make first, as JSON:
[{"id": 1, "tool": "NAME", "arguments": {}}, …]. Use only what stands here."""


def definitions() -> str:
    """The instructions and the tools as a client gets them, with the tools that write."""
    tools = [
        {
            "name": tool.name,
            "description": tool.text,
            "inputSchema": tool.input_schema(WITHHELD),
        }
        for tool in TOOLS
    ]
    return f"{INSTRUCTIONS}\n\n{json.dumps(tools, indent=1, ensure_ascii=False)}"


def read_tasks() -> list[dict[str, Any]]:
    """The tasks, each with id, situation and the calls that count as right."""
    tasks: list[dict[str, Any]] = json.loads(TASKS.read_text(encoding="utf-8"))["tasks"]
    return tasks


def mistake_in(answer: Mapping[str, Any] | None, task: Mapping[str, Any]) -> str:
    """What is wrong with the call for a task; empty if it is right."""
    if answer is None:
        return "no answer"
    tool = next((tool for tool in TOOLS if tool.name == answer.get("tool")), None)
    if tool is None:
        return f"there is no tool {answer.get('tool')!r}"
    arguments = answer.get("arguments", {})
    invalid = next(Draft202012Validator(tool.input_schema(WITHHELD)).iter_errors(arguments), None)
    if invalid is not None:
        return f"{tool.name}: {invalid.message}"
    mistakes = [_difference(tool.name, arguments, right) for right in task["expect"]]
    return "" if "" in mistakes else mistakes[0]


def _difference(tool: str, arguments: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    if tool != right["tool"]:
        return f"{tool} instead of {right['tool']}"
    for name, expected in right["arguments"].items():
        if not _fits(_at(arguments, name), expected):
            return f"{tool}: {name} is {_at(arguments, name)!r}, not {expected!r}"
    surplus = [name for name in right.get("absent", ()) if _at(arguments, name) is not None]
    return f"{tool}: {surplus[0]} was not asked for" if surplus else ""


def _at(arguments: Mapping[str, Any], name: str) -> Any:
    value: Any = arguments
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _fits(value: Any, expected: Any) -> bool:
    """Whether an argument has the expected value.

    {"any": true}: it is given. {"has": [text, …]}: it has these texts, in any case.
    {"glob": folder}: it names the folder, or a glob below it. Lists: in any order.
    """
    if not isinstance(expected, dict):
        if isinstance(expected, list) and isinstance(value, list):
            return sorted(value) == sorted(expected)
        return bool(value == expected)
    if value is None or "any" in expected:
        return value is not None
    if "has" in expected:
        return all(text.lower() in str(value).lower() for text in expected["has"])
    globs = value if isinstance(value, list) else [value]
    return len(globs) == 1 and str(globs[0]).lstrip("*/").rstrip("*/.md") == expected[
        "glob"
    ].rstrip("/")


def check(answers: Sequence[Mapping[str, Any]]) -> int:
    """Print what is wrong, and return the number of right answers."""
    by_id = {answer.get("id"): answer for answer in answers}
    right = 0
    for task in read_tasks():
        mistake = mistake_in(by_id.get(task["id"]), task)
        right += not mistake
        if mistake:
            print(f"{task['id']}: {mistake}\n    {task['situation']}")
    print(f"{right} of {len(read_tasks())} right")
    return right


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--print", action="store_true", help="print what a reader gets")
    mode.add_argument("--check", metavar="ANSWERS.json", type=Path, help="count right answers")
    arguments = parser.parse_args()
    if arguments.print:
        print(f"{QUESTION}\n\n{definitions()}\n")
        for task in read_tasks():
            print(f"{task['id']}. {task['situation']}")
        return
    sys.exit(check(json.loads(arguments.check.read_text(encoding="utf-8"))) < 28)


if __name__ == "__main__":
    main()
