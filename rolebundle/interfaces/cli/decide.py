"""`rolebundle decide`: record a decision."""

from __future__ import annotations

from typing import Any

import click

from rolebundle.admin.records import record_decision
from rolebundle.contracts.decisions import NewDecision
from rolebundle.interfaces.cli.decisions import show_decision
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.parse import parsed


def _help(name: str) -> str:
    return NewDecision.model_fields[name].description or ""


@click.command()
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
def decide(db: str | None, as_json: bool, about: tuple[str, ...], **values: Any) -> None:
    """Record a decision. From then on `check` and `retrieve` show it to agents.

    A decision is never changed: a new one supersedes it, or `decisions end` ends it.

    \b
    rolebundle decide "Backups are deleted by the retention job only" --by Ana \\
      --about "snapshots, archive" --command "restic forget*" --command "rm *restic*"
    rolebundle decide "Posts are scheduled by the marketing team only" --by Ana --supersedes 12
    """
    words = [word.strip() for text in about for word in text.split(",") if word.strip()]
    values |= {name: list(values[name]) for name in ("commands", "supersedes")}
    fields = {key: value for key, value in values.items() if value is not None}
    new = parsed(NewDecision, {**fields, "about": words})
    with admin_for(db) as admin:
        show_decision(record_decision(admin.workspace, new), as_json)
