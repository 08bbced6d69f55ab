"""`rolebundle retrieve`: a task and a role in, a bundle out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import click

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    approvals_option,
    engine_options,
    html_option,
    overlay_option,
    request_file_option,
    request_options,
    with_style,
)
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.style import Style
from rolebundle.policy.overlays import load_file
from rolebundle.storage.connection import Corpus
from rolebundle.storage.indexes.vector_index import all_indexes


@click.command()
@click.argument("task", required=False)
@request_file_option
@engine_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prompt"]),
    default="text",
    show_default=True,
    help="text for a person, json for a program, prompt for a model's context.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("-v", "--verbose", is_flag=True, help="Show all reasons and all rejections.")
@with_style
@html_option
@request_options(RetrievalRequest, without=["task"])
@overlay_option
@approvals_option(None)
def retrieve(
    task: str | None,
    request_file: BinaryIO | None,
    form: str,
    verbose: bool,
    style: Style,
    html_file: Path | None,
    fields: dict[str, Any],
    overlay_file: Path | None,
    options: EngineOptions,
    approvals: str | None,
) -> None:
    """Retrieve what ROLE may use for TASK.

    \b
    rolebundle retrieve "Review the token refresh flow" --role security-reviewer
    rolebundle retrieve "Plan release 3.0" --role product-manager --format json
    rolebundle retrieve "Plan 3.0" --role technical-writer --format prompt --token-budget 1500
    rolebundle retrieve "Plan release 3.0" --role product-manager --html answer.html
    echo '{"task": "Plan 3.0", "role": "technical-writer"}' | rolebundle retrieve --request -

    An approval counts if --approved-by names the person. In a --request it counts only with
    --approvals request.
    """
    if (task is None) == (request_file is None):
        raise click.UsageError("give either a TASK or a --request")
    if "role" in fields and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give only one of them")
    if task is not None:
        fields["task"] = task
    if request_file is not None:
        if fields or overlay_file or html_file or form != "text":
            raise click.UsageError("--request has all fields; give no other options with it")
        from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object

        fields = json_object(request_file.read(MAX_LINE_BYTES + 1))
    request = request_from(fields | ({"packet": True} if form == "prompt" else {}))
    # Options are typed by a person; a JSON request may have been written by a model.
    approvals = approvals or ("request" if request_file is None else "none")
    with options.engine(approvals=approvals) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        bundle = engine.retrieve(request, overlay)
        if not engine.access.has_policy():
            _print_building(engine.workspace.corpus)
    # Each form imports its modules, because the others need none of them.
    if html_file is not None:
        from rolebundle.interfaces.cli.page_file import write_page
        from rolebundle.interfaces.pages.views import answer_page

        write_page(html_file, answer_page(bundle))
    if request_file is not None:
        click.echo(json.dumps(_values(bundle, request), ensure_ascii=False, separators=(",", ":")))
    elif form == "json":
        click.echo(json.dumps(_values(bundle, request), ensure_ascii=False, indent=2))
    elif bundle.packet is not None:
        click.echo(bundle.packet)
    else:
        from rolebundle.interfaces import render
        from rolebundle.interfaces.layout import terminal_width

        text = render.text(bundle, terminal_width(), style, verbose=verbose)
        click.echo(text, color=style.color)


def _print_building(corpus: Corpus) -> None:
    if len(all_indexes(corpus)) < 2:
        return
    # Imported here: most corpora have one index.
    from rolebundle.ingest.default_model import building_note

    if note := building_note(corpus):
        click.echo(f"note: {note}", err=True)


def _values(bundle: RetrievalBundle, request: RetrievalRequest) -> dict[str, Any]:
    from rolebundle.interfaces.shape import shaped_bundle

    return shaped_bundle(bundle, request.detail or "full", request.max_chars)
