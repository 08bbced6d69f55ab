"""`rolebundle demo`: the sample corpus, one task, three roles side by side."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.admin import Admin
from rolebundle.engine import Engine
from rolebundle.interfaces.cli import side_by_side
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import overlay_folders
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
        report = Admin(engine.workspace).ingest(
            [data_folder("sample_corpus")], lexical_only=lexical_only
        )
        click.echo(
            f"{report.documents} documents, {report.chunks} chunks in {path} "
            f"({report.added} files added, {report.unchanged} unchanged)",
            err=True,
        )
        fields = {"task": task, "limit": _PASSAGES, "now": NOW, "lexical_only": lexical_only}
        comparison = engine.compare(request_from(fields), roles or ROLES)
    side_by_side.show(comparison)
    role = comparison.roles[0].role_id
    click.echo(f"\nnext: rolebundle retrieve {task!r} --role {role} --db {path}", err=True)


def _cached() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("rolebundle", appauthor=False) / "demo.db"
