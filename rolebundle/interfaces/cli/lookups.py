"""`rolebundle retrieve | get | ls | grep`: answers, documents, passages and lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, BinaryIO

import click

from rolebundle.contracts.lookup import FoundLine, Lookup, Lookups
from rolebundle.contracts.request import GrepRequest, ListRequest, MultiGetRequest, RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.interfaces import render
from rolebundle.interfaces.cli.options import (
    Call,
    approvals_option,
    flag,
    request_file_option,
    with_call,
)
from rolebundle.interfaces.cli.output import print_json, print_note, with_folders, write_page
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object
from rolebundle.interfaces.layout import Style, harmless, terminal_width
from rolebundle.interfaces.model_text import columns_note, listed_line, lookup_lines
from rolebundle.interfaces.parse import parsed, request_from
from rolebundle.interfaces.shape import shaped_bundle, shaped_lookup, shaped_lookups
from rolebundle.retrieval.passage_text import line_notes, shown_name
from rolebundle.text.references import is_glob
from rolebundle.text.words import counted


@click.command()
@click.argument("references", metavar="REFERENCE...", nargs=-1, required=True)
@with_call("as_json", request=MultiGetRequest, only=["outline", "section", "agent", "max_chars"])
def get(call: Call, references: tuple[str, ...]) -> None:
    """Show passages, documents, or parts of them.

    REFERENCE is a chunk_id, a document_id, the path of a file (in the corpus or on this machine),
    path:start-end (lines), #document:from:count (passages, counted from 1), or a glob of paths.

    --max-chars bounds the text. If one of several references gave nothing, the others are shown,
    and the exit code is 2.

    \b
    rolebundle get security-review/security/token-lifecycle-audit.md
    rolebundle get security/token-lifecycle-audit.md:12-20
    rolebundle get security/token-lifecycle-audit.md --outline
    rolebundle get security/token-lifecycle-audit.md --section "Open findings"
    rolebundle get "#security-review/security/token-lifecycle-audit.md:2:3"
    rolebundle get "security/*.md" product/brief-release-3.0.md:1-20 --max-chars 20000
    """
    if call.fields.keys() >= {"outline", "section"}:
        raise click.UsageError("give --outline or --section, not both")
    max_chars = call.fields.get("max_chars")
    with call.engine(in_working_folder=True) as engine:
        answer = _look_up(engine, references, call.fields)
    if isinstance(answer, Lookup):
        answer = shaped_lookup(answer, max_chars)
        lookups, failures = [answer], []
    else:
        answer = shaped_lookups(answer, max_chars)
        lookups, failures = answer.lookups, answer.failures
    texts = ("\n".join(lookup_lines(lookup)) for lookup in lookups)
    call.print(answer, [harmless("\n\n".join(texts))], exclude_none=True)
    if isinstance(answer, Lookups) and answer.next and not call.as_json:
        print_note(f"{answer.omitted} left out, from {answer.next} on")
    if failures:
        raise UsageError(
            failures[0].code,
            f"{counted(len(failures), 'reference')} gave nothing: {failures[0].message}",
            failures[0].hint,
        )


def _look_up(
    engine: Engine, references: Sequence[str], fields: Mapping[str, Any]
) -> Lookup | Lookups:
    """What one reference names, or what several references or a glob name."""
    if len(references) == 1:
        # `get` says of any text that it names nothing.
        request = parsed(MultiGetRequest, {**fields, "ids": ["*"]})
        try:
            return engine.get(
                references[0], request.agent, outline=request.outline, section=request.section
            )
        except UsageError:
            # A name may have the characters of a glob, so a name comes first.
            if not is_glob(references[0]):
                raise
    return engine.multi_get(parsed(MultiGetRequest, {**fields, "ids": [*references]}))


@click.command()
@click.argument("prefix", required=False)
@with_call("as_json", request=ListRequest, without=["prefix"])
@flag("--corpora", "List the corpora of --in, with their folders.")
def ls(call: Call, prefix: str | None, corpora: bool) -> None:
    """List documents with date, number of passages and title, ordered by id.

    PREFIX is a folder or path (in the corpus or on this machine), a source, or a glob. A
    date that was not declared is shown with what it is from, such as its name or text.

    \b
    rolebundle ls
    rolebundle ls security-review
    rolebundle ls "product/**" --json
    """
    if corpora:
        # It has the readers of an ingest.
        from rolebundle.interfaces.cli.folders import corpora as listed

        call.print({"corpora": [*listed()]}, empty="no folder was read with --in")
        return
    request = parsed(ListRequest, {"prefix": prefix or None, **call.fields})
    with call.engine(in_working_folder=True) as engine:
        listing = engine.ls(request)
    lines = map(listed_line, listing.model_dump(exclude_none=True)["documents"])
    call.print(listing, lines, empty="no document", exclude_none=True)
    _print_next(call, "documents", listing.next)


def _print_next(call: Call, what: str, after: str | None) -> None:
    if after and not call.as_json:
        print_note(f"there are more {what}; continue with --after {quote(after)}")


@click.command()
@click.argument("pattern")
@click.argument("prefix", required=False)
@with_call("as_json", request=GrepRequest, without=["pattern", "prefix"])
def grep(call: Call, pattern: str, prefix: str | None) -> None:
    """Find lines with a text, such as a name, a number or an error code.

    PATTERN is an exact text. Case counts only if it has a capital letter. PREFIX is a folder or
    path (in the corpus or on this machine), a source, or a glob. It searches what `get` shows:
    without hidden text, with secrets masked.

    \b
    rolebundle grep "reuse grace window"
    rolebundle grep --regex "E-\\d{4}" "product/**" --json
    """
    given = {"pattern": pattern, "prefix": prefix or None, **call.fields}
    with call.engine(in_working_folder=True) as engine:
        found = engine.grep(parsed(GrepRequest, given))
    lines = (_found_line(line, call.style) for line in found.lines)
    case = "; case counts, as it has a capital letter" if pattern != pattern.lower() else ""
    call.print(found, lines, empty=f"no line matches{case}", exclude_none=True)
    _print_next(call, "lines", found.next)


def _found_line(line: FoundLine, style: Style) -> str:
    values = line.model_dump(exclude_none=True)
    locator = style("locator", shown_name(line.locator))
    text = f"{locator}{style('caution', line_notes(values))}: {harmless(line.text)}"
    return "\n".join([*map(harmless, columns_note(values)), text])


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
@flag("--explain", "In the text, also show scores, codes, states and figures, as in the JSON.")
@approvals_option(None)
@with_call("overlay_dirs", "html_file", request=RetrievalRequest, without=["task"])
def retrieve(
    call: Call,
    task: str | None,
    request_file: BinaryIO | None,
    form: str,
    approvals: str | None,
    explain: bool,
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
        if call.fields or call.html_file or form != "text":
            raise click.UsageError("--request has all fields; give no other options with it")
        fields = json_object(request_file.read(MAX_LINE_BYTES + 1))
    request = request_from(fields | ({"packet": True} if form == "prompt" else {}))
    # Options are typed by a person; a JSON request may have been written by a model.
    approvals = approvals or ("request" if request_file is None else "none")
    with call.engine(approvals=approvals) as engine:
        bundle = engine.retrieve(request)
    if call.html_file is not None:
        # Templates and their library take longer to import than all that an answer needs.
        from rolebundle.interfaces.pages.views import answer_page

        write_page(call.html_file, answer_page(bundle))
    if request_file is not None or form == "json":
        values = shaped_bundle(bundle, request.detail or "full", request.max_chars)
        print_json(values, indent=None if request_file else 2)
    elif bundle.packet is not None:
        click.echo(bundle.packet)
    else:
        text = render.text(
            bundle, terminal_width(), call.style, explain=explain, advice=with_folders
        )
        click.echo(text, color=call.style.color)
