"""`rolebundle compare`: one task, what each of several roles sees, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from rolebundle.contracts.comparison import ComparedPassage, Comparison, Overlap, Standing
from rolebundle.interfaces.cli import side_by_side
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    engine_for,
    json_option,
    overlay_dir_option,
    purpose_options,
    rerank_option,
)
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import one_line

_NOTE = 120


@click.command()
@click.argument("task")
@click.option(
    "--roles", required=True, metavar="ROLE,ROLE[,…]", help="Two roles or more, by commas."
)
@db_option
@purpose_options
@click.option("--limit", type=int, help="Passages a role, 1 to 1000.  [default: its overlay's]")
@click.option("--lexical-only", is_flag=True, help="Words alone, without embeddings.")
@rerank_option
@click.option("--now", metavar="TIME", help="Measure ages against this ISO 8601 time.")
@overlay_dir_option
@embed_options
@json_option
def compare(
    task: str,
    roles: str,
    db: str | None,
    action: str | None,
    approval: str | None,
    agent: str | None,
    limit: int | None,
    lexical_only: bool,
    rerank: str | None,
    now: str | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
    as_json: bool,
) -> None:
    """Show what each of ROLES sees for TASK, what they share, and why one lacks what another has.

    \b
    rolebundle compare "Plan release 3.0" --roles product-strategist,security-reviewer
    rolebundle compare "Plan release 3.0" --roles docs-writer,incident-responder --json
    """
    wanted = list(dict.fromkeys(role.strip() for role in roles.split(",") if role.strip()))
    if len(wanted) < 2:
        raise click.UsageError("--roles: name two different roles or more, with commas between")
    given = {
        "task": task,
        "agent": agent,
        "action": action,
        "approval": approval,
        "limit": limit,
        "lexical_only": lexical_only,
        "rerank": rerank,
        "now": now,
    }
    request = request_from({name: value for name, value in given.items() if value is not None})
    with engine_for(db, overlay_dirs, embed_url=embed_url, allow_host=allow_host) as engine:
        comparison = engine.compare(request, wanted)
    if as_json:
        click.echo(comparison.model_dump_json(exclude_none=True, indent=2))
        return
    side_by_side.show(comparison)
    for line in _lines(comparison):
        click.echo(line)


def _lines(comparison: Comparison) -> Iterator[str]:
    yield ""
    for overlap in comparison.overlaps:
        yield _overlap(overlap)
    passages = {one.chunk_id: one for one in comparison.passages}
    yield f"seen by all: {len(comparison.shared)}"
    for name in comparison.shared:
        yield f"  {_where(passages[name])}"
    for view in comparison.roles:
        yield f"seen by {view.role_id} alone: {len(view.own)} of {len(view.selected)}"
        for name in view.own:
            yield f"  {_where(passages[name])}"
            yield from _elsewhere(passages[name])
    some = [one for one in comparison.passages if 1 < _seers(one) < len(comparison.roles)]
    if some:
        yield f"seen by some: {len(some)}"
    for passage in some:
        yield f"  {_where(passage)}"
        yield from _elsewhere(passage)


def _overlap(one: Overlap) -> str:
    return (
        f"{one.first} and {one.second}: {one.chunks:.0%} of the passages in common "
        f"({one.shared_chunks}), {one.documents:.0%} of the documents ({one.shared_documents})"
    )


def _seers(passage: ComparedPassage) -> int:
    return sum(one.state == "selected" for one in passage.standings)


def _where(passage: ComparedPassage) -> str:
    # Never cut: a person copies it from here.
    return f"{passage.source_id}  {one_line(passage.locator or passage.chunk_id, 1000)}"


def _elsewhere(passage: ComparedPassage) -> Iterator[str]:
    for one in passage.standings:
        if one.state != "selected":
            yield f"    {one.role_id}: {_why(one)}"


def _why(one: Standing) -> str:
    if one.state == "not_found":
        return "not found"
    return f"{one.reason}: {one_line(one.notes, _NOTE)}" if one.notes else str(one.reason)
