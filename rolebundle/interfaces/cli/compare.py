"""`rolebundle compare`: one task, what each of several roles gets, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from rolebundle.contracts.comparison import (
    ComparedPassage,
    Comparison,
    Overlap,
    RoleView,
    Standing,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    engine_for,
    json_option,
    overlay_dir_option,
    request_options,
)
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import score_bar
from rolebundle.retrieval.passage_text import flag_note, one_line

_NOTES_CHARS = 120


@click.command()
@click.argument("task")
@click.option(
    "--roles", required=True, metavar="ROLE,ROLE[,…]", help="Two or more roles, with commas."
)
@db_option
@request_options(
    RetrievalRequest,
    only=[
        "agent",
        "action",
        "approval",
        "where",
        "seen",
        "limit",
        "lexical_only",
        "rerank",
        "as_of",
        "now",
    ],
)
@overlay_dir_option
@embed_options
@json_option
def compare(
    task: str,
    roles: str,
    db: str | None,
    fields: dict[str, Any],
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
    as_json: bool,
) -> None:
    """Compare what several ROLES get for TASK: what they share, what differs, and why.

    \b
    rolebundle compare "Plan release 3.0" --roles product-manager,security-reviewer
    rolebundle compare "Plan release 3.0" --roles technical-writer,incident-responder --json
    """
    role_ids = list(dict.fromkeys(role.strip() for role in roles.split(",") if role.strip()))
    if len(role_ids) < 2:
        raise click.UsageError("--roles: name at least two different roles, separated by commas")
    request = request_from({"task": task, **fields})
    with engine_for(db, overlay_dirs, embed_url=embed_url, allow_host=allow_host) as engine:
        comparison = engine.compare(request, role_ids)
    if as_json:
        click.echo(comparison.model_dump_json(exclude_none=True, indent=2))
        return
    print_table(comparison)
    for line in _lines(comparison):
        click.echo(line)


def print_table(comparison: Comparison) -> None:
    """Print a column for each role and a row for each rank, as wide as the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    title = Text(comparison.task_text)
    table = Table(title=title, expand=True, show_lines=True, pad_edge=False)
    for view in comparison.roles:
        table.add_column(view.role_id, ratio=1, overflow="fold")
    columns = [_cells(comparison, place) for place in range(len(comparison.roles))]
    for row in range(max(len(cells) for cells in columns)):
        table.add_row(*(Text(cells[row] if row < len(cells) else "") for cells in columns))
    table.add_row(*(Text(_verdict(view)) for view in comparison.roles))
    # click knows what the terminal can show, and reports a closed pipe.
    with console.capture() as capture:
        console.print(table)
    click.echo(capture.get(), nl=False)


def _cells(comparison: Comparison, place: int) -> list[str]:
    passages = {passage.chunk_id: passage for passage in comparison.passages}
    return [_cell(passages[name], place) for name in comparison.roles[place].selected]


def _cell(passage: ComparedPassage, place: int) -> str:
    score = passage.standings[place].score or 0.0
    path = list(dict.fromkeys([passage.title or passage.document_id, *passage.headings]))
    lines = [
        f"{score:.2f} {score_bar(score)} {passage.source_id}",
        " › ".join(path[:1] + path[-1:] if len(path) > 1 else path),
        passage.locator or passage.chunk_id,
        flag_note(passage.flags),
    ]
    return "\n".join(filter(None, lines))


def _verdict(view: RoleView) -> str:
    rejected = ", ".join(f"{count} {code}" for code, count in view.rejected_summary.items())
    warnings = ", ".join(view.warnings)
    return (
        f"trust {view.trust_posture}, {view.freshness_posture}\n"
        f"rejected: {rejected or 'none'}" + (f"\n! {warnings}" if warnings else "")
    )


def _lines(comparison: Comparison) -> Iterator[str]:
    yield ""
    for overlap in comparison.overlaps:
        yield _overlap(overlap)
    passages = {passage.chunk_id: passage for passage in comparison.passages}
    yield f"selected for all: {len(comparison.shared)}"
    for name in comparison.shared:
        yield f"  {_place(passages[name])}"
    for view in comparison.roles:
        yield f"selected for {view.role_id} only: {len(view.own)} of {len(view.selected)}"
        for name in view.own:
            yield f"  {_place(passages[name])}"
            yield from _elsewhere(passages[name])
    some = [
        passage
        for passage in comparison.passages
        if 1 < _selected_count(passage) < len(comparison.roles)
    ]
    if some:
        yield f"selected for some: {len(some)}"
    for passage in some:
        yield f"  {_place(passage)}"
        yield from _elsewhere(passage)


def _overlap(overlap: Overlap) -> str:
    return (
        f"{overlap.first} and {overlap.second}: {overlap.chunks:.0%} of the passages in common "
        f"({overlap.shared_chunks}), {overlap.documents:.0%} of the documents "
        f"({overlap.shared_documents})"
    )


def _selected_count(passage: ComparedPassage) -> int:
    return sum(standing.state == "selected" for standing in passage.standings)


def _place(passage: ComparedPassage) -> str:
    # Not cut to the width, because a person copies it from here.
    place = f"{passage.source_id}  {one_line(passage.locator or passage.chunk_id, 1000)}"
    return "  ".join(filter(None, [place, flag_note(passage.flags)]))


def _elsewhere(passage: ComparedPassage) -> Iterator[str]:
    for standing in passage.standings:
        if standing.state != "selected":
            yield f"    {standing.role_id}: {_reason(standing)}"


def _reason(standing: Standing) -> str:
    if standing.state == "not_found":
        return "not found"
    notes = f": {one_line(standing.notes, _NOTES_CHARS)}" if standing.notes else ""
    return f"{standing.reason}{notes}"
