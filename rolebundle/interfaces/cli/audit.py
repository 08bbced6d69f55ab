"""`rolebundle policy audit`: who asked and got what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from rolebundle.admin.audit import set_audit
from rolebundle.contracts.audit import (
    AUDIT_MODES,
    QUERY_MODES,
    AuditMode,
    AuditRow,
    AuditRows,
    QueryMode,
)
from rolebundle.contracts.base import Contract
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.policy.audit import AuditLog
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.location import corpus_path
from rolebundle.storage.opening import open_reader
from rolebundle.storage.records.stored_audit import load_stored_audit
from rolebundle.text.counts import counted

_QUERY_CHARS = 80
_DEFAULT_LIMIT = 20


def _agent_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--agent",
        metavar="ID",
        help="Read as this agent: only its own rows, numbered from 1, without hashes.",
    )(command)


@click.group()
def audit() -> None:
    """Set, read and verify the audit: who asked what, and what was shown and changed.

    It is the file FILE.audit beside the corpus. Its settings hold for every interface. Rows are
    only appended, and each row has the hash of the row before it.

    \b
    rolebundle policy audit set required --query digest
    rolebundle policy audit list --limit 5
    rolebundle policy audit verify
    """


@audit.command("list")
@db_option
@_agent_option
@click.option("--by", metavar="ID", help="Only rows of this agent, with their numbers and hashes.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="Number of rows at most. The newest are listed.",
)
@json_option
def list_command(
    db: str | None,
    agent: str | None,
    by: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the newest rows, the newest last.

    \b
    rolebundle policy audit list --limit 50
    rolebundle policy audit list --by reviewer-bot --json
    rolebundle policy audit list --agent reviewer-bot
    """
    if agent is not None and by is not None:
        raise click.UsageError("--agent reads only its own rows; leave out --by")
    with AuditLog(corpus_path(db)) as log:
        newest = log.rows(agent, by=by, limit=limit, newest=True)
        rows = list(newest)[::-1]
    if as_json:
        _print_json(AuditRows(rows=rows).model_dump())
        return
    for row in rows:
        click.echo(_line(row))
    if not rows:
        click.echo("the audit has no matching rows", err=True)


@audit.command("show")
@click.argument("seq", type=click.IntRange(min=1))
@db_option
@_agent_option
@json_option
def show_command(seq: int, db: str | None, agent: str | None, as_json: bool) -> None:
    """Show one row by its number in the list.

    \b
    rolebundle policy audit show 12
    rolebundle policy audit show 1 --agent reviewer-bot --json
    """
    with AuditLog(corpus_path(db)) as log:
        row = log.row(seq, agent)
    if as_json:
        _print_contract(row)
        return
    for name, value in row.model_dump().items():
        plain = json.dumps(value) if isinstance(value, dict) else str(value)
        # Not cut, because a person may compare it.
        click.echo(f"{name:<13}  {one_line(plain, 10_000)}".rstrip())


@audit.command("verify")
@db_option
@click.option(
    "--expect", default="", metavar="SEQ:HASH", help="A head that an earlier `verify` printed."
)
@json_option
def verify_command(db: str | None, expect: str, as_json: bool) -> None:
    """Check that no row was changed, removed, moved or inserted. Exit code 7 if one was.

    If records are required, the audit must have the head that the corpus remembers. Prints the
    head, SEQ:HASH. A person who can write the file could also replace all of it. To
    detect that, keep the head where they cannot write, and give it with --expect.

    \b
    rolebundle policy audit verify
    rolebundle policy audit verify --expect "$(cat /elsewhere/head)"
    rolebundle policy audit verify --json
    """
    with AuditLog(corpus_path(db)) as log:
        result = log.verify(expect or _known_head(db))
    if as_json:
        _print_contract(result)
    elif result.ok:
        click.echo(result.head)
    if result.problem is not None:
        raise CorpusCorrupt(
            "audit_tampered",
            f"{log.path}: {one_line(result.problem.message, 1000)} ({result.problem.code})",
            "keep the file as evidence and compare it with a backup or an export; to start a new "
            "audit, move the file away and run `rolebundle policy audit set`",
        )
    expectation = "as expected, and " if expect else ""
    click.echo(
        f"{counted(result.rows, 'row')}, {expectation}none changed, removed or moved", err=True
    )


@audit.command("export")
@db_option
@_agent_option
def export_command(db: str | None, agent: str | None) -> None:
    """Print all rows as lines of JSON, the oldest first.

    The hash of a row is the SHA-256 of its line without the hash.

    \b
    rolebundle policy audit export > audit.jsonl
    rolebundle policy audit export --agent reviewer-bot
    """
    with AuditLog(corpus_path(db)) as log:
        for line in log.export(agent):
            click.echo(line)


@audit.command("set")
@db_option
@click.argument("mode", type=click.Choice(AUDIT_MODES), required=False)
@click.option(
    "--query", type=click.Choice(QUERY_MODES), help="How the text of the task is recorded."
)
@json_option
def set_command(
    db: str | None, mode: AuditMode | None, query: QueryMode | None, as_json: bool
) -> None:
    """Set whether and how records are made, for every interface. The change itself is recorded.

    on: warn if no record can be made. required: then give no answer. Without MODE, the mode stays,
    and the settings are shown. The mode `required` is also stored in the corpus, with the
    audit's head. Then an audit that is missing or shortened gives no answers, until it is back or
    until `required` is set again, which records how many rows are lost.

    \b
    rolebundle policy audit set on
    rolebundle policy audit set required --query text
    rolebundle policy audit set off
    """
    path = corpus_path(db)
    # Without a corpus there is nothing to audit, and a later corpus would get this file.
    open_reader(path).close()
    with admin_for(db) as admin:
        settings = set_audit(admin.workspace, mode, query)
    if as_json:
        _print_contract(settings)
    else:
        click.echo(f"mode {settings.mode}, query {settings.query}")


def _known_head(db: str | None) -> str:
    """The head that the corpus remembers of a required audit; empty if there is none."""
    path = corpus_path(db)
    if not path.exists():
        return ""
    with open_reader(path) as corpus:
        known = load_stored_audit(corpus)
    return f"{known.rows}:{known.hash}" if known.required and known.rows else ""


def _line(row: AuditRow) -> str:
    names = " · ".join(one_line(name) for name in (row.agent, row.role, row.action) if name)
    blocked = ", ".join(f"{one_line(code)} {count}" for code, count in sorted(row.blocked.items()))
    parts = [f"{row.seq:>6}  {one_line(row.time)}  {one_line(row.kind):<9}", names or "–"]
    if row.bundle_digest or row.allowed or blocked:
        parts.append(f"{row.allowed} allowed" + (f"; blocked: {blocked}" if blocked else ""))
    parts += [one_line(row.query, _QUERY_CHARS)] if row.query else []
    parts += [one_line(json.dumps(row.details), _QUERY_CHARS)] if row.details else []
    return "  ".join(parts)


def _print_contract(value: Contract) -> None:
    _print_json(value.model_dump(exclude_none=True))


def _print_json(value: object) -> None:
    # ASCII, as it is hashed, because a query may hold characters that cannot be written.
    click.echo(json.dumps(value, indent=2))
