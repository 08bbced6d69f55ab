"""`rolebundle retrieve`: a task and a role in, a bundle out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import BinaryIO

import click

from rolebundle.interfaces import model_text, render
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    engine_for,
    overlay_dir_option,
    purpose_options,
    rerank_option,
)
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.policy.overlays import load_file

_NARROWEST = 40


@click.command()
@click.argument("task", required=False)
@click.option(
    "--request",
    "request_file",
    metavar="-|FILE",
    type=click.File("rb"),
    help="Read one JSON request, answer with one JSON line.  -: standard input.",
)
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
@purpose_options
@click.option("--limit", type=int, help="Passages wanted, 1 to 1000.  [default: the overlay's]")
@click.option("--token-budget", type=int, help="Bound on the passages' estimated tokens.")
@click.option("--lexical-only", is_flag=True, help="Words alone, without embeddings.")
@click.option("--fusion", type=click.Choice(["weighted", "rrf"]), help="How lanes are joined.")
@rerank_option
@click.option(
    "--detail", type=click.Choice(["ids", "compact", "full"]), help="With json: how much."
)
@click.option("--max-chars", type=int, help="With json: bound on the answer's characters.")
@click.option("--deadline-ms", type=int, help="Interrupt the search after so long.")
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
    task: str | None,
    request_file: BinaryIO | None,
    role: str | None,
    db: str | None,
    form: str,
    action: str | None,
    approval: str | None,
    agent: str | None,
    limit: int | None,
    token_budget: int | None,
    lexical_only: bool,
    fusion: str | None,
    rerank: str | None,
    detail: str | None,
    max_chars: int | None,
    deadline_ms: int | None,
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
    echo '{"task": "Plan release 3.0", "role": "docs-writer"}' | rolebundle retrieve --request -
    """
    if (task is None) == (request_file is None):
        raise click.UsageError("give a TASK, or a --request; not both")
    if role is not None and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give one of them")
    fields = {
        "task": task,
        "role": role,
        "agent": agent,
        "action": action,
        "approval": approval,
        "limit": limit,
        "token_budget": token_budget,
        "lexical_only": lexical_only,
        "fusion": fusion,
        "rerank": rerank,
        "detail": detail,
        "max_chars": max_chars,
        "deadline_ms": deadline_ms,
        "now": now,
    }
    given = {
        name: value for name, value in fields.items() if value is not None and value is not False
    }
    if request_file is not None:
        if given or overlay_file or form != "text":
            raise click.UsageError("--request brings every field; give no other option beside it")
        given = json_object(request_file.read(MAX_LINE_BYTES + 1))
    request = request_from(given)
    with engine_for(db, overlay_dirs, embed_url=embed_url, allow_host=allow_host) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        bundle = engine.retrieve(request, overlay)
    if bundle.diagnostics.rerank_note:
        click.echo(f"note: {bundle.diagnostics.rerank_note}", err=True)
    if request_file is not None:
        answer = shaped_bundle(bundle, request.detail or "full", request.max_chars)
        click.echo(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
    elif form == "json":
        answer = shaped_bundle(bundle, request.detail or "full", request.max_chars)
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    elif form == "prompt":
        click.echo(model_text.prompt(bundle))
    else:
        width = max(_NARROWEST, shutil.get_terminal_size((render.DEFAULT_WIDTH, 24)).columns)
        click.echo(render.text(bundle, width))
