"""`rolebundle retrieve`: a task and a role in, a bundle out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import click

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.interfaces import render
from rolebundle.interfaces.cli.options import (
    approvals_option,
    db_option,
    embed_options,
    engine_for,
    overlay_dir_option,
    overlay_option,
    request_file_option,
    request_options,
)
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import load_file

_MIN_WIDTH = 40


@click.command()
@click.argument("task", required=False)
@request_file_option
@db_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prompt"]),
    default="text",
    show_default=True,
    help="text for a person, json for a program, prompt for a model's context.",
)
@request_options(RetrievalRequest, without=["task"])
@overlay_option
@overlay_dir_option
@embed_options
@approvals_option(None)
def retrieve(
    task: str | None,
    request_file: BinaryIO | None,
    db: str | None,
    form: str,
    fields: dict[str, Any],
    overlay_file: Path | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
    approvals: str | None,
) -> None:
    """Retrieve what ROLE may use for TASK.

    \b
    rolebundle retrieve "Review the token refresh flow" --role security-reviewer
    rolebundle retrieve "Plan release 3.0" --role product-manager --format json
    rolebundle retrieve "Plan 3.0" --role technical-writer --format prompt --token-budget 1500
    echo '{"task": "Plan 3.0", "role": "technical-writer"}' | rolebundle retrieve --request -

    An approval counts if --approved-by names it. In a --request it counts with --approvals request.
    """
    if (task is None) == (request_file is None):
        raise click.UsageError("give either a TASK or a --request")
    if "role" in fields and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give only one of them")
    if task is not None:
        fields["task"] = task
    if request_file is not None:
        if fields or overlay_file or form != "text":
            raise click.UsageError("--request has all fields; give no other options with it")
        fields = json_object(request_file.read(MAX_LINE_BYTES + 1))
    if form == "prompt":
        fields["packet"] = True
    request = request_from(fields)
    # Options are typed by a person; a JSON request may have been written by a model.
    approvals = approvals or ("request" if request_file is None else "none")
    with engine_for(
        db, overlay_dirs, embed_url=embed_url, allow_host=allow_host, approvals=approvals
    ) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        bundle = engine.retrieve(request, overlay)
    if bundle.diagnostics.rerank_note:
        click.echo(f"note: {bundle.diagnostics.rerank_note}", err=True)
    if request_file is not None or form == "json":
        # Delayed: the text does not need it.
        from rolebundle.interfaces.shape import shaped_bundle

        answer = shaped_bundle(bundle, request.detail or "full", request.max_chars)
        if form == "json":
            click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        else:
            click.echo(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
    elif bundle.packet is not None:
        click.echo(bundle.packet)
    else:
        width = max(_MIN_WIDTH, shutil.get_terminal_size((render.DEFAULT_WIDTH, 24)).columns)
        click.echo(render.text(bundle, width))
