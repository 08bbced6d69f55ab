"""`rolebundle retrieve`: a task and a role in, a bundle out."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.interfaces import render
from rolebundle.interfaces.cli.options import Call, approvals_option, request_file_option, with_call
from rolebundle.interfaces.cli.output import print_note, write_page
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object
from rolebundle.interfaces.layout import terminal_width
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.vector_index import all_indexes


@click.command()
@click.argument("task", required=False)
@request_file_option
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
@approvals_option(None)
@with_call("overlay_dirs", "overlay_file", "html_file", request=RetrievalRequest, without=["task"])
def retrieve(
    call: Call,
    task: str | None,
    request_file: BinaryIO | None,
    form: str,
    verbose: bool,
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
    fields = call.fields | ({} if task is None else {"task": task})
    if request_file is not None:
        if call.fields or call.overlay_file or call.html_file or form != "text":
            raise click.UsageError("--request has all fields; give no other options with it")
        fields = json_object(request_file.read(MAX_LINE_BYTES + 1))
    request = request_from(fields | ({"packet": True} if form == "prompt" else {}))
    # Options are typed by a person; a JSON request may have been written by a model.
    approvals = approvals or ("request" if request_file is None else "none")
    with call.engine(approvals=approvals) as engine:
        bundle = engine.retrieve(request, call.overlay)
        if not engine.access.has_policy():
            _print_building(engine.workspace.corpus)
    if call.html_file is not None:
        # Templates and their library take longer to import than all that an answer needs.
        from rolebundle.interfaces.pages.views import answer_page

        write_page(call.html_file, answer_page(bundle))
    if request_file is not None or form == "json":
        values = shaped_bundle(bundle, request.detail or "full", request.max_chars)
        layout: dict[str, Any] = {"separators": (",", ":")} if request_file else {"indent": 2}
        click.echo(json.dumps(values, ensure_ascii=False, **layout))
    elif bundle.packet is not None:
        click.echo(bundle.packet)
    else:
        text = render.text(bundle, terminal_width(), call.style, verbose=verbose)
        click.echo(text, color=call.style.color)


def _print_building(corpus: Corpus) -> None:
    if len(all_indexes(corpus)) < 2:
        return
    # Imported here: most corpora have one index.
    from rolebundle.ingest.indexes import building_note

    if note := building_note(corpus):
        print_note(f"note: {note}")
