"""`rolebundle demo`: the sample corpus, one task, three roles in columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.ingest.sync import IngestReport
from rolebundle.interfaces.cli.compare import print_table
from rolebundle.interfaces.cli.options import request_options
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.text.counts import counted

TASK = "What should we worry about before release 3.0?"
ROLES = ("mossline-security-reviewer", "mossline-product-strategist", "mossline-incident-responder")
NOW = "2026-11-15T00:00:00Z"
_PASSAGES = 5


@click.command()
@click.option("--task", default=TASK, show_default=True, help="The task for the three roles.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="Compare these roles instead. May be repeated.",
)
@click.option("--db", metavar="FILE", help="The demo's corpus file.  [default: cache folder]")
@request_options(RetrievalRequest, only=["lexical_only"])
def demo(task: str, roles: tuple[str, ...], db: str | None, fields: dict[str, Any]) -> None:
    """Ingest the sample corpus and show what three roles retrieve for one task.

    \b
    rolebundle demo
    rolebundle demo --task "What do we know about offline sync?"
    """
    path = Path(db) if db else _cached()
    with Engine(path, overlay_folders((demo_overlays(),))) as engine:
        report = _ingest(Admin(engine.workspace), fields, is_cached=not db)
        click.echo(
            f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')} in {path} "
            f"({counted(report.added, 'file')} added, {report.unchanged} unchanged)",
            err=True,
        )
        request = request_from({"task": task, "limit": _PASSAGES, "now": NOW, **fields})
        comparison = engine.compare(request, roles or ROLES)
    print_table(comparison)
    role = comparison.roles[0].role_id
    command = (
        f"rolebundle retrieve {task!r} --role {role} --db {path} --overlay-dir {demo_overlays()}"
    )
    click.echo(f"\nnext: {command}", err=True)


def _ingest(admin: Admin, fields: dict[str, Any], *, is_cached: bool) -> IngestReport:
    folders = [data_folder("sample_corpus")]
    try:
        return admin.ingest(folders, **fields)
    except EmbedderError as error:
        if not is_cached or error.code != "model_mismatch":
            raise
    # The cached corpus is of an earlier version and has the vectors of another model.
    admin.embed(ProviderSpec("static"))
    return admin.ingest(folders, **fields)


def _cached() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("rolebundle", appauthor=False) / "demo.db"
