"""`rolebundle retrieve`: a task and a role in, a bundle out."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.govern.overlays import load_file
from rolebundle.interfaces import render
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    engine_for,
    overlay_dir_option,
)
from rolebundle.interfaces.parse import request_from

_NARROWEST = 40


@click.command()
@click.argument("task")
@click.option("--role", metavar="ROLE", help="Whose overlay governs. None: shared corpus only.")
@db_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prompt"]),
    default="text",
    show_default=True,
    help="For a person, a program, or a model's context.",
)
@click.option("--limit", type=int, help="Passages wanted, 1 to 1000.  [default: the overlay's]")
@click.option("--token-budget", type=int, help="Bound on the passages' estimated tokens.")
@click.option("--lexical-only", is_flag=True, help="Words alone, without embeddings.")
@click.option("--fusion", type=click.Choice(["weighted", "rrf"]), help="How lanes are joined.")
@click.option("--now", metavar="TIME", help="Measure ages against this ISO 8601 time.")
@click.option(
    "--overlay",
    "overlay_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Govern by this overlay file instead of a role's.",
)
@overlay_dir_option
@embed_options
def retrieve(
    task: str,
    role: str | None,
    db: str | None,
    form: str,
    limit: int | None,
    token_budget: int | None,
    lexical_only: bool,
    fusion: str | None,
    now: str | None,
    overlay_file: Path | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
) -> None:
    """Retrieve what ROLE may use for TASK.

    \b
    rolebundle retrieve "Review the token refresh flow" --role security-reviewer
    rolebundle retrieve "Plan release 3.0" --role product-strategist --format json
    rolebundle retrieve "Plan release 3.0" --role docs-writer --format prompt --token-budget 1500
    """
    if role is not None and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give one of them")
    fields = {
        "task": task,
        "role": role,
        "limit": limit,
        "token_budget": token_budget,
        "lexical_only": lexical_only,
        "fusion": fusion,
        "now": now,
    }
    request: RetrievalRequest = request_from(
        {name: value for name, value in fields.items() if value is not None}
    )
    with engine_for(db, overlay_dirs, embed_url=embed_url, allow_host=allow_host) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        bundle = engine.retrieve(request, overlay)
    if form == "json":
        click.echo(bundle.to_json(indent=2))
    elif form == "prompt":
        click.echo(render.prompt(bundle))
    else:
        width = max(_NARROWEST, shutil.get_terminal_size((render.DEFAULT_WIDTH, 24)).columns)
        click.echo(render.text(bundle, width))
