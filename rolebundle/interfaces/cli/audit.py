"""`rolebundle audit list | show | verify | export | set`: the record of who was shown what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from rolebundle.contracts.audit import (
    AUDIT_KINDS,
    AUDIT_MODES,
    QUERY_MODES,
    AuditMode,
    AuditRow,
    AuditSettings,
    QueryMode,
)
from rolebundle.contracts.base import Contract
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import db_option, json_option
from rolebundle.interfaces.render import one_line
from rolebundle.policy.audit import AuditLog, iso_moment
from rolebundle.storage.location import corpus_path
from rolebundle.storage.opening import open_reader

_QUERY = 80
_LISTED = 20


def _agent_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--agent",
        metavar="ID",
        help="Read as this agent: its own rows, counted from 1, without hashes.",
    )(command)


@click.group()
def audit() -> None:
    """The audit: who asked what, how much was shown, how much was kept back, what was changed.

    It lies beside the corpus, in FILE.audit, and every door obeys its settings. Rows are only
    appended, and each holds the hash of the one before it.

    \b
    rolebundle audit set --mode required --query digest
    rolebundle audit list --limit 5
    rolebundle audit verify
    """


@audit.command("list")
@db_option
@_agent_option
@click.option("--by", metavar="ID", help="Rows of this agent, with numbers and hashes.")
@click.option("--kind", type=click.Choice(AUDIT_KINDS), metavar="KIND", help="Such as retrieve.")
@click.option("--since", metavar="TIME", help="From this ISO 8601 time on.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_LISTED,
    show_default=True,
    help="At most so many, the newest.",
)
@json_option
def list_command(
    db: str | None,
    agent: str | None,
    by: str | None,
    kind: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """The newest rows, the newest last.

    \b
    rolebundle audit list --kind retrieve --limit 50
    rolebundle audit list --by reviewer-bot --since 2026-11-01 --json
    rolebundle audit list --agent reviewer-bot
    """
    if agent is not None and by is not None:
        raise click.UsageError("--agent reads its own rows and no other's; leave out --by")
    with _log(db) as log:
        found = log.rows(
            agent,
            by=by,
            kind=kind or "",
            since=iso_moment(since) if since else "",
            limit=limit,
            newest=True,
        )
        rows = list(found)[::-1]
    if as_json:
        _print_json({"rows": [row.model_dump() for row in rows]})
        return
    for row in rows:
        click.echo(_line(row))
    if not rows:
        click.echo("the audit has no such row", err=True)


@audit.command("show")
@click.argument("seq", type=click.IntRange(min=1))
@db_option
@_agent_option
@json_option
def show_command(seq: int, db: str | None, agent: str | None, as_json: bool) -> None:
    """One row, whole, by its number in the list.

    \b
    rolebundle audit show 12
    rolebundle audit show 1 --agent reviewer-bot --json
    """
    with _log(db) as log:
        row = log.row(seq, agent)
    if as_json:
        _print_contract(row)
        return
    for name, value in row.model_dump().items():
        plain = json.dumps(value) if isinstance(value, dict) else str(value)
        # Never cut: a person may compare it.
        click.echo(f"{name:<13}  {one_line(plain, 10_000)}".rstrip())


@audit.command("verify")
@db_option
@click.option("--expect", default="", metavar="SEQ:HASH", help="A head that was printed before.")
@json_option
def verify_command(db: str | None, expect: str, as_json: bool) -> None:
    """Whether a row was altered, dropped, moved or put in; exit code 7 where one was.

    Prints the head, SEQ:HASH. Whoever can write the file can also make it anew as a whole: keep
    the head where they cannot write, and give it back with --expect.

    \b
    rolebundle audit verify
    rolebundle audit verify --expect "$(cat /elsewhere/head)"
    rolebundle audit verify --json
    """
    with _log(db) as log:
        found = log.verify(expect)
    if as_json:
        _print_contract(found)
    elif found.ok:
        click.echo(found.head)
    if found.problem is not None:
        raise CorpusCorrupt(
            "audit_tampered",
            f"{log.path}: {one_line(found.problem.message, 1000)} ({found.problem.code})",
            "keep the file as evidence and compare it with a backup or an export; to begin a new "
            "audit, move it away and run `rolebundle audit set`",
        )
    what = "as expected, and " if expect else ""
    click.echo(f"{found.rows} rows, {what}none altered, dropped or moved", err=True)


@audit.command("export")
@db_option
@_agent_option
@click.option("--jsonl", is_flag=True, expose_value=False, help="A row a line: it always does.")
def export_command(db: str | None, agent: str | None) -> None:
    """All rows as lines of JSON, oldest first.

    Without its hash, a line is the text whose SHA-256 the hash is.

    \b
    rolebundle audit export --jsonl > audit.jsonl
    rolebundle audit export --jsonl --agent reviewer-bot
    """
    with _log(db) as log:
        for line in log.export(agent):
            click.echo(line)


@audit.command("set")
@db_option
@click.option(
    "--mode",
    type=click.Choice(AUDIT_MODES),
    help="on: warn where no record can be made. required: give no answer then.",
)
@click.option("--query", type=click.Choice(QUERY_MODES), help="What is kept of the task's text.")
@json_option
def set_command(
    db: str | None, mode: AuditMode | None, query: QueryMode | None, as_json: bool
) -> None:
    """Say whether records are made, for every door; without options, show what was said.

    The change is put on record itself.

    \b
    rolebundle audit set --mode on
    rolebundle audit set --mode required --query text
    rolebundle audit set --mode off
    """
    path = corpus_path(db)
    # An audit of a corpus that is not there would lie in wait for another one.
    open_reader(path).close()
    with AuditLog(path) as log:
        now = log.settings()
        if mode or query:
            now = log.set(AuditSettings(mode=mode or now.mode, query=query or now.query))
    if as_json:
        _print_contract(now)
    else:
        click.echo(f"mode {now.mode}, query {now.query}")


def _log(db: str | None) -> AuditLog:
    return AuditLog(corpus_path(db))


def _line(row: AuditRow) -> str:
    who = " · ".join(one_line(one) for one in (row.agent, row.role, row.action) if one)
    blocked = ", ".join(f"{one_line(code)} {count}" for code, count in sorted(row.blocked.items()))
    parts = [f"{row.seq:>6}  {row.time}  {row.kind:<9}", who or "–"]
    if row.bundle_digest or row.allowed or blocked:
        parts.append(f"{row.allowed} allowed" + (f"; blocked: {blocked}" if blocked else ""))
    parts += [one_line(row.query, _QUERY)] if row.query else []
    parts += [one_line(json.dumps(row.details), _QUERY)] if row.details else []
    return "  ".join(parts)


def _print_contract(value: Contract) -> None:
    _print_json(value.model_dump(exclude_none=True))


def _print_json(value: object) -> None:
    # ASCII, as it is hashed: what was asked may hold characters that cannot be written.
    click.echo(json.dumps(value, indent=2))
