"""`rolebundle retrieve`: a task and a role in, a bundle out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

from rolebundle.contracts.base import writable
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
from rolebundle.retrieval.answer.passage_text import caution, one_line
from rolebundle.storage.connection import Corpus
from rolebundle.storage.indexes.vector_index import all_indexes


@click.command()
@click.argument("task", required=False)
@request_file_option
@engine_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prompt", "md", "csv", "paths"]),
    default="text",
    show_default=True,
    help="text for a person, json for a program, prompt for a model's context, md for a report, "
    "csv for a table with a row for each passage, paths for the files, one a line.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("-v", "--verbose", is_flag=True, help="Show all reasons and all rejections.")
@click.option(
    "-0", "--null", is_flag=True, help="End each path with a NUL character, for xargs -0."
)
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
    null: bool,
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
    rolebundle retrieve "Plan release 3.0" --format paths --null | xargs -0 wc -l
    echo '{"task": "Plan 3.0", "role": "technical-writer"}' | rolebundle retrieve --request -

    An approval counts if --approved-by names the person. In a --request it counts only with
    --approvals request.
    """
    if (task is None) == (request_file is None):
        raise click.UsageError("give either a TASK or a --request")
    if "role" in fields and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give only one of them")
    if null and form != "paths":
        raise click.UsageError("--null is for --format paths")
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
        from rolebundle.interfaces.pages.answer import answer_page

        write_page(html_file, answer_page(bundle))
    if request_file is not None:
        click.echo(json.dumps(_values(bundle, request), ensure_ascii=False, separators=(",", ":")))
    elif form == "paths":
        _print_paths(bundle, null=null)
    elif form == "text" and bundle.packet is None:
        from rolebundle.interfaces import render
        from rolebundle.interfaces.layout import terminal_width

        text = render.text(bundle, terminal_width(), style, verbose=verbose)
        click.echo(text, color=style.color)
    else:
        _print(bundle, request, form)


def _print_building(corpus: Corpus) -> None:
    if len(all_indexes(corpus)) < 2:
        return
    # Imported here: most corpora have one index.
    from rolebundle.ingest.default_model import building_note

    if note := building_note(corpus):
        click.echo(f"note: {note}", err=True)


def _print(bundle: RetrievalBundle, request: RetrievalRequest, form: str) -> None:
    match form:
        case "text" | "prompt":
            click.echo(bundle.packet)
        case "json":
            click.echo(json.dumps(_values(bundle, request), ensure_ascii=False, indent=2))
        case "md":
            from rolebundle.interfaces.markdown import markdown

            click.echo(writable(markdown(bundle)))
        case "csv":
            from rolebundle.interfaces.csv_rows import csv_rows

            _print_caution(bundle)
            click.echo(writable(csv_rows(bundle)).encode(), nl=False)


def _values(bundle: RetrievalBundle, request: RetrievalRequest) -> dict[str, Any]:
    from rolebundle.interfaces.shape import shaped_bundle

    return shaped_bundle(bundle, request.detail or "full", request.max_chars)


def _print_caution(bundle: RetrievalBundle) -> None:
    """What the reader should know, where a table or a list of files has no place for it."""
    if line := caution(bundle):
        click.echo(writable(line), err=True)


def _print_paths(bundle: RetrievalBundle, *, null: bool) -> None:
    from rolebundle.interfaces.path_list import paths

    _print_caution(bundle)
    end = "\0" if null else "\n"
    for path in paths(bundle):
        if sys.stdout.isatty():
            click.echo(writable(one_line(path, len(path))))
        elif end in path:
            click.echo(f"left out, because of its line break: {path!r}; use --null", err=True)
        else:
            # As the system has it, also if it is no text, or the locale is not UTF-8.
            click.echo((path + end).encode("utf-8", "surrogateescape"), nl=False)
