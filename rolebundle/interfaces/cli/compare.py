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
from rolebundle.contracts.terms import RANKED_LOWER
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    engine_options,
    html_option,
    json_option,
    request_options,
    with_style,
)
from rolebundle.interfaces.layout import columns as display_width
from rolebundle.interfaces.layout import folded, terminal_width
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import score_bar
from rolebundle.interfaces.style import PLAIN, Style
from rolebundle.retrieval.answer.passage_text import flag_note, one_line
from rolebundle.retrieval.explanation.compare import compare_roles

_NOTES_CHARS = 120
_COPY_CHARS = 1_000


@click.command()
@click.argument("task")
@click.option(
    "--roles", required=True, metavar="ROLE,ROLE[,…]", help="Two or more roles, with commas."
)
@engine_options
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
@json_option
@html_option
@with_style
def compare(
    task: str,
    roles: str,
    fields: dict[str, Any],
    options: EngineOptions,
    as_json: bool,
    html_file: Path | None,
    style: Style,
) -> None:
    """Compare what several ROLES get for TASK: what they share, what differs, and why.

    \b
    rolebundle compare "Plan release 3.0" --roles product-manager,security-reviewer
    rolebundle compare "Plan release 3.0" --roles technical-writer,incident-responder --json
    rolebundle compare "Plan 3.0" --roles product-manager,technical-writer --html roles.html

    The page of --html also has the answer without a role, and what each role changes against it.
    """
    role_ids = list(dict.fromkeys(role.strip() for role in roles.split(",") if role.strip()))
    if len(role_ids) < 2:
        raise click.UsageError("--roles: name at least two different roles, separated by commas")
    request = request_from({"task": task, **fields})
    with options.engine() as engine:
        bundles = engine.retrieve_for_roles(request, role_ids, without_role=html_file is not None)
    if html_file is not None:
        from rolebundle.interfaces.cli.page_file import write_page
        from rolebundle.interfaces.pages.compare import compare_page

        write_page(html_file, compare_page(compare_roles(bundles)))
    comparison = compare_roles(bundles[-len(role_ids) :])
    if as_json:
        click.echo(comparison.model_dump_json(exclude_none=True, indent=2))
        return
    print_table(comparison, style)
    width = terminal_width()
    for line in _lines(comparison, style):
        # A line that begins with two spaces has a locator, which is not broken.
        is_place = line.startswith("  ") and not line.startswith("   ")
        for part in [line] if is_place else folded(line, width):
            click.echo(part, color=style.color)


def print_table(comparison: Comparison, style: Style = PLAIN) -> None:
    """Print a column for each role and a row for each rank, as wide as the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = terminal_width()
    # A column has a space on both sides and a border on its right; the table one on its left.
    inner = (width - 1) // max(1, len(comparison.roles)) - 3
    title = Text(one_line(comparison.task_text, width))
    table = Table(title=title, expand=True, show_lines=True)
    for view in comparison.roles:
        table.add_column(one_line(view.role_id), ratio=1, overflow="fold")
    columns = [_cells(comparison, place, inner, style) for place in range(len(comparison.roles))]
    for row in range(max(len(cells) for cells in columns)):
        cells = (cells[row] if row < len(cells) else "" for cells in columns)
        table.add_row(*map(Text.from_ansi, cells))
    table.add_row(*(Text(_verdict(view)) for view in comparison.roles))
    console = Console(
        highlight=False,
        width=width,
        force_terminal=style.color,
        color_system="standard" if style.color else None,
    )
    # click knows what the terminal can show, and reports a closed pipe.
    with console.capture() as capture:
        console.print(table)
    click.echo(capture.get(), nl=False, color=style.color)


def _cells(comparison: Comparison, place: int, width: int, style: Style) -> list[str]:
    passages = {passage.chunk_id: passage for passage in comparison.passages}
    return [_cell(passages[name], place, width, style) for name in comparison.roles[place].selected]


def _cell(passage: ComparedPassage, place: int, width: int, style: Style) -> str:
    score = passage.standings[place].score or 0.0
    path = list(dict.fromkeys([passage.title or passage.document_id, *passage.headings]))
    title = " › ".join(path[:1] + path[-1:] if len(path) > 1 else path)
    lines = [
        f"{score:.2f} {score_bar(score)} {one_line(passage.source_id)}",
        style("heading", one_line(title)),
    ]
    # A locator is never broken. If the column is too narrow, it is only in the list below.
    locator = one_line(passage.locator or passage.chunk_id, _COPY_CHARS)
    lines += [style("locator", locator)] if display_width(locator) <= width else []
    lines += [style("caution", flag_note(passage.flags))] if passage.flags else []
    return "\n".join(lines)


def _verdict(view: RoleView) -> str:
    counts = view.rejected_summary.items()
    lower = ", ".join(f"{count} {code}" for code, count in counts if code in RANKED_LOWER)
    rejected = ", ".join(f"{count} {code}" for code, count in counts if code not in RANKED_LOWER)
    warnings = ", ".join(view.warnings)
    lines = [
        f"trust {view.trust_posture}, {view.freshness_posture}"
        if view.selected
        else "no passage was found",
        f"ranked lower: {lower}" if lower else "",
        f"rejected: {rejected or 'none'}",
        f"! {warnings}" if warnings else "",
    ]
    return "\n".join(filter(None, lines))


def _lines(comparison: Comparison, style: Style) -> Iterator[str]:
    yield ""
    for overlap in comparison.overlaps:
        yield _overlap(overlap)
    passages = {passage.chunk_id: passage for passage in comparison.passages}
    yield f"selected for all: {len(comparison.shared)}"
    for name in comparison.shared:
        yield f"  {_locator_line(passages[name], style)}"
    for view in comparison.roles:
        yield f"selected for {view.role_id} only: {len(view.own)} of {len(view.selected)}"
        for name in view.own:
            yield f"  {_locator_line(passages[name], style)}"
            yield from _other_standings(passages[name])
    some = [
        passage
        for passage in comparison.passages
        if 1 < _selected_count(passage) < len(comparison.roles)
    ]
    if some:
        yield f"selected for some: {len(some)}"
    for passage in some:
        yield f"  {_locator_line(passage, style)}"
        yield from _other_standings(passage)


def _overlap(overlap: Overlap) -> str:
    if overlap.chunks == 1 and not overlap.shared_chunks:
        return f"{overlap.first} and {overlap.second}: neither got a passage"
    return (
        f"{overlap.first} and {overlap.second}: {overlap.chunks:.0%} of the passages in common "
        f"({overlap.shared_chunks}), {overlap.documents:.0%} of the documents "
        f"({overlap.shared_documents})"
    )


def _selected_count(passage: ComparedPassage) -> int:
    return sum(standing.state == "selected" for standing in passage.standings)


def _locator_line(passage: ComparedPassage, style: Style) -> str:
    # Not cut to the width, because a person copies it from here.
    locator = one_line(passage.locator or passage.chunk_id, _COPY_CHARS)
    place = f"{style('locator', locator)}  {one_line(passage.source_id)}"
    return "  ".join(filter(None, [place, style("caution", flag_note(passage.flags))]))


def _other_standings(passage: ComparedPassage) -> Iterator[str]:
    for standing in passage.standings:
        if standing.state != "selected":
            yield f"    {standing.role_id}: {_reason(standing)}"


def _reason(standing: Standing) -> str:
    if standing.state == "not_found":
        return "not found"
    notes = f": {one_line(standing.notes, _NOTES_CHARS)}" if standing.notes else ""
    return f"{standing.reason}{notes}"
