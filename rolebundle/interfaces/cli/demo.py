"""`rolebundle demo`: the sample corpus, one task, three roles side by side."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.govern.overlays import overlay_folders
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import score_bar
from rolebundle.resources import data_folder

TASK = "What should we worry about before release 3.0?"
ROLES = ("security-reviewer", "product-strategist", "incident-responder")
NOW = "2026-11-15T00:00:00Z"
_PASSAGES = 5


@click.command()
@click.option("--task", default=TASK, show_default=True, help="What the three roles are asked.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Roles to compare instead.")
@click.option("--db", metavar="FILE", help="Keep the demo's corpus here.  [default: cache folder]")
@click.option("--lexical-only", is_flag=True, help="Words alone, without embeddings.")
def demo(task: str, roles: tuple[str, ...], db: str | None, lexical_only: bool) -> None:
    """Ingest the sample corpus and show what three roles retrieve for one task.

    \b
    rolebundle demo
    rolebundle demo --task "What do we know about offline sync?"
    """
    path = Path(db) if db else _cached()
    with Engine(path, overlay_folders(())) as engine:
        report = engine.ingest([data_folder("sample_corpus")], lexical_only=lexical_only)
        click.echo(
            f"{report.documents} documents, {report.chunks} chunks in {path} "
            f"({report.added} files added, {report.unchanged} unchanged)",
            err=True,
        )
        fields = {"task": task, "limit": _PASSAGES, "now": NOW, "lexical_only": lexical_only}
        requests: list[RetrievalRequest] = [
            request_from({**fields, "role": role}) for role in roles or ROLES
        ]
        bundles = [engine.retrieve(request) for request in requests]
    _show(task, bundles)
    click.echo(
        f"\nnext: rolebundle retrieve {task!r} --role {bundles[0].role_id} --db {path}", err=True
    )


def _cached() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("rolebundle", appauthor=False) / "demo.db"


def _show(task: str, bundles: list[RetrievalBundle]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(title=Text(task), expand=True, show_lines=True, pad_edge=False)
    for bundle in bundles:
        table.add_column(bundle.role_id, ratio=1, overflow="fold")
    depth = max(len(bundle.selected) for bundle in bundles)
    for row in range(depth):
        table.add_row(*(Text(_cell(bundle, row)) for bundle in bundles))
    table.add_row(*(Text(_verdict(bundle)) for bundle in bundles))
    # Through click, which knows what the terminal can show and when its reader has gone.
    with console.capture() as shown:
        console.print(table)
    click.echo(shown.get(), nl=False)


def _cell(bundle: RetrievalBundle, row: int) -> str:
    if row >= len(bundle.selected):
        return ""
    chunk = bundle.selected[row]
    path = list(dict.fromkeys([chunk.title or chunk.document_id, *chunk.headings]))
    return (
        f"{chunk.scores.final:.2f} {score_bar(chunk.scores.final)} {chunk.source_id}\n"
        f"{' › '.join(path[:1] + path[-1:] if len(path) > 1 else path)}\n{chunk.citation.locator}"
    )


def _verdict(bundle: RetrievalBundle) -> str:
    rejected = ", ".join(f"{count} {code}" for code, count in bundle.rejected_summary.items())
    warnings = ", ".join(warning.code for warning in bundle.warnings)
    provenance = bundle.provenance
    return (
        f"trust {provenance.trust_posture}, {provenance.freshness_posture}\n"
        f"rejected: {rejected}" + (f"\n! {warnings}" if warnings else "")
    )
