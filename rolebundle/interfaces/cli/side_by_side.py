"""Several roles' answers to one task as a table: a column a role, a row a rank."""

from __future__ import annotations

import click

from rolebundle.contracts.comparison import ComparedPassage, Comparison, RoleView
from rolebundle.interfaces.render import score_bar


def show(comparison: Comparison) -> None:
    """Print the table, as wide as the terminal."""
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
    # Through click, which knows what the terminal can show and when its reader has gone.
    with console.capture() as shown:
        console.print(table)
    click.echo(shown.get(), nl=False)


def _cells(comparison: Comparison, place: int) -> list[str]:
    passages = {one.chunk_id: one for one in comparison.passages}
    return [_cell(passages[name], place) for name in comparison.roles[place].selected]


def _cell(passage: ComparedPassage, place: int) -> str:
    score = passage.standings[place].score or 0.0
    path = list(dict.fromkeys([passage.title or passage.document_id, *passage.headings]))
    return (
        f"{score:.2f} {score_bar(score)} {passage.source_id}\n"
        f"{' › '.join(path[:1] + path[-1:] if len(path) > 1 else path)}\n{passage.locator}"
    )


def _verdict(view: RoleView) -> str:
    rejected = ", ".join(f"{count} {code}" for code, count in view.rejected_summary.items())
    warnings = ", ".join(view.warnings)
    return (
        f"trust {view.trust_posture}, {view.freshness_posture}\n"
        f"rejected: {rejected or 'none'}" + (f"\n! {warnings}" if warnings else "")
    )
