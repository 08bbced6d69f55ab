"""`rolebundle mark TARGET | list | remove`: what people and agents state about passages."""

from __future__ import annotations

from typing import Any, cast, get_args

import click

from rolebundle.admin.records import all_marks, put_mark, remove_mark
from rolebundle.contracts.marks import MarkList, MarkRecord, MarkRequest
from rolebundle.contracts.terms import MarkState
from rolebundle.interfaces.cli.options import (
    admin_for,
    db_option,
    engine_for,
    group_with_default,
    json_option,
    request_options,
)
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.answer.passage_text import one_line


@click.group(cls=group_with_default("set"))
def mark() -> None:
    """Mark passages and documents as rejected, disputed or verified.

    A rejected passage is in no answer. The other states raise or lower the role's part of the
    score. A mark counts as long as the marked text does not change.

    \b
    rolebundle mark wiki/limits.md disputed --by Ana --reason "the limit is 40 since May"
    rolebundle mark list
    rolebundle mark remove wiki/limits.md
    """


@mark.command("set")
@click.argument("target", metavar="PASSAGE|DOCUMENT")
@click.argument("state", type=click.Choice(get_args(MarkState)))
@request_options(MarkRequest, only=["reason", "agent"])
@click.option("--by", metavar="NAME", help="The person or tool that says so.")
@db_option
@json_option
def set_command(
    target: str,
    state: str,
    fields: dict[str, Any],
    by: str | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Mark a passage or a document. `rolebundle mark PASSAGE|DOCUMENT` does the same.

    With --agent an agent marks, as far as the policy allows it; else the owner does.

    \b
    rolebundle mark set wiki/limits.md supervisor_verified --by Ana --reason "I measured it"
    """
    request = parsed(MarkRequest, {"id": target, "state": state, **fields})
    if request.agent is not None:
        if by is not None:
            raise click.UsageError("--agent and --by name two; give only one of them")
        with engine_for(db) as engine:
            record = engine.mark(request)
    elif by is None or not by.strip():
        raise click.UsageError("say who marks it: --by NAME")
    else:
        with admin_for(db) as admin:
            record = put_mark(
                admin.workspace, request.id, cast(MarkState, state), by, request.reason
            )
    print_answer(record, [_line(record)], as_json=as_json)


@mark.command("list")
@db_option
@json_option
def list_command(db: str | None, as_json: bool) -> None:
    """List all marks, also those that have ended because the text changed.

    \b
    rolebundle mark list
    rolebundle mark list --json
    """
    with admin_for(db) as admin:
        marks = all_marks(admin.workspace)
    answer = MarkList(marks=marks)
    print_answer(answer, map(_line, marks), as_json=as_json, empty="nothing is marked")


@mark.command("remove")
@click.argument("target", metavar="PASSAGE|DOCUMENT")
@db_option
@json_option
def remove_command(target: str, db: str | None, as_json: bool) -> None:
    """Remove the mark of a passage or document, which may be gone.

    \b
    rolebundle mark remove wiki/limits.md
    """
    with admin_for(db) as admin:
        record = remove_mark(admin.workspace, target)
    print_answer(record, [_line(record)], as_json=as_json)


def _line(record: MarkRecord) -> str:
    ended = "  (ended: the text changed)" if record.ended else ""
    return (
        f"{one_line(record.target, 1000)}  {record.state}  {one_line(record.marked_by)} "
        f"({record.authority}, {record.marked_at}): {one_line(record.reason, 1000)}{ended}"
    )
