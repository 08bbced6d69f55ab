"""`rolebundle decisions add | list | show | end`: what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from rolebundle.admin.records import all_decisions, end_decision, record_decision
from rolebundle.contracts.decisions import DecisionEnd, DecisionList, DecisionRecord, NewDecision
from rolebundle.interfaces.cli.options import admin_for, db_option, engine_for, json_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.answer.passage_text import one_line

_MAX_CHARS = 1_000


@click.group()
def decisions() -> None:
    """Add, list, show and end decisions.

    \b
    rolebundle decisions add "Posts go out on Tuesdays" --by Ana --scope marketing
    rolebundle decisions list
    rolebundle decisions show marketing-12
    rolebundle decisions end marketing-12 --by Ana --reason "the new process is in place"
    """


def _help(name: str) -> str:
    return NewDecision.model_fields[name].description or ""


@decisions.command("add")
@click.argument("text")
@click.option("--by", "decided_by", metavar="NAME", required=True, help=_help("decided_by"))
@click.option("--scope", metavar="SCOPE", help=_help("scope"))
@click.option("--status", type=click.Choice(["active", "proposed"]), help=_help("status"))
@click.option(
    "--effect", type=click.Choice(["block", "require_approval", "warn"]), help=_help("effect")
)
@click.option(
    "--action",
    type=click.Choice(["read", "analyze", "suggest", "execute", "external_send"]),
    help=_help("action"),
)
@click.option("--about", metavar="WORDS", multiple=True, help=_help("about") + " May be repeated.")
@click.option(
    "--command", "commands", metavar="GLOB", multiple=True, help=_help("commands") + " May repeat."
)
@click.option("--reason", metavar="TEXT", help=_help("reason"))
@click.option("--from", "valid_from", metavar="TIME", help=_help("valid_from"))
@click.option("--until", "valid_until", metavar="TIME", help=_help("valid_until"))
@click.option(
    "--supersedes", metavar="ID", multiple=True, help=_help("supersedes") + " May be repeated."
)
@db_option
@json_option
def add_command(db: str | None, as_json: bool, about: tuple[str, ...], **values: Any) -> None:
    """Record a decision. From then on `check` and `retrieve` show it to agents.

    A decision is never changed: a new one supersedes it, or `decisions end` ends it.

    \b
    rolebundle decisions add "Backups are deleted by the retention job only" --by Ana \\
      --about "snapshots, archive" --command "restic forget*" --command "rm *restic*"
    rolebundle decisions add "Only the marketing team schedules posts" --by Ana --supersedes 12
    """
    words = [word.strip() for text in about for word in text.split(",") if word.strip()]
    values |= {name: list(values[name]) for name in ("commands", "supersedes")}
    fields = {key: value for key, value in values.items() if value is not None}
    new = parsed(NewDecision, {**fields, "about": words})
    with admin_for(db) as admin:
        show_decision(record_decision(admin.workspace, new), as_json)


@decisions.command("list")
@click.option("--all", "include_all", is_flag=True, help="Also decisions that have no effect now.")
@click.option("--scope", metavar="SCOPE", help="Only decisions of this scope.")
@click.option("--agent", metavar="ID", help="Only what this agent sees.")
@db_option
@json_option
def list_command(
    include_all: bool, scope: str | None, agent: str | None, db: str | None, as_json: bool
) -> None:
    """List the active decisions.

    \b
    rolebundle decisions list --scope marketing
    rolebundle decisions list --all --json
    """
    if agent is None:
        with admin_for(db) as admin:
            records = all_decisions(admin.workspace)
    else:
        with engine_for(db) as engine:
            records = engine.decisions(agent)
    records = [
        record
        for record in records
        if (include_all or record.state == "active") and scope in (None, record.scope)
    ]
    empty = "no decision" if include_all else "no active decision"
    answer = DecisionList(decisions=records)
    print_answer(answer, map(_line, records), as_json=as_json, empty=empty)


@decisions.command("show")
@click.argument("decision_id", metavar="ID")
@db_option
@json_option
def show_command(decision_id: str, db: str | None, as_json: bool) -> None:
    """Show a decision. ID is SCOPE-NUMBER, or the number of a decision of the scope shared.

    \b
    rolebundle decisions show marketing-12
    rolebundle decisions show 3 --json
    """
    from rolebundle.verification.decisions.records import find_decision

    with admin_for(db) as admin:
        corpus = admin.workspace.corpus
        with corpus.reading():
            record = find_decision(corpus, decision_id, datetime.now(UTC))
    show_decision(record, as_json)


@decisions.command("end")
@click.argument("decision_id", metavar="ID")
@click.option("--by", "ended_by", metavar="NAME", required=True, help="Who ends it.")
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@db_option
@json_option
def end_command(
    decision_id: str, ended_by: str, reason: str, db: str | None, as_json: bool
) -> None:
    """End a decision. It stays listed; what it has superseded stays superseded.

    \b
    rolebundle decisions end marketing-12 --by Ana --reason "the new process is in place"
    """
    end = parsed(DecisionEnd, {"ended_by": ended_by, "reason": reason})
    with admin_for(db) as admin:
        show_decision(end_decision(admin.workspace, decision_id, end.ended_by, end.reason), as_json)


def show_decision(record: DecisionRecord, as_json: bool) -> None:
    """Print a decision with all that is known of it."""
    details = (f"    {one_line(line, _MAX_CHARS)}" for line in _details(record))
    print_answer(record, [_line(record), *details], as_json=as_json)


def _line(record: DecisionRecord) -> str:
    text = one_line(record.text, _MAX_CHARS) or "(erased)"
    return f"{record.id}  {record.state}  {record.effect}  {text}"


def _details(record: DecisionRecord) -> Iterator[str]:
    if record.reason:
        yield f"because: {record.reason}"
    if record.about:
        yield f"about: {', '.join(record.about)}"
    if record.commands:
        yield f"commands: {', '.join(record.commands)}"
    if record.action:
        yield f"action: {record.action}"
    until = f" until {record.valid_until}" if record.valid_until else ""
    yield f"valid from {record.valid_from}{until}"
    yield f"decided by {record.decided_by or '(erased)'}, recorded {record.recorded_at}"
    if record.supersedes:
        yield f"supersedes {', '.join(record.supersedes)}"
    if record.ended_at:
        yield f"ended by {record.ended_by or '(erased)'} at {record.ended_at}: {record.end_reason}"
