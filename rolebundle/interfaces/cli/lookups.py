"""`rolebundle get | ls | grep`: documents, passages and lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from rolebundle.contracts.lookup import FoundLine, ListedDocument, Lookup, Lookups
from rolebundle.contracts.request import GrepRequest, ListRequest, MultiGetRequest
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.options import Call, with_call
from rolebundle.interfaces.cli.output import print_note
from rolebundle.interfaces.layout import Style, columns, cut, harmless, terminal_width, wrapped
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.shape import shaped_lookup, shaped_lookups
from rolebundle.retrieval.passage_text import flag_note, line_notes, mark_note, one_line
from rolebundle.text.references import is_glob
from rolebundle.text.words import counted

_LONG = 1_000


@click.command()
@click.argument("references", metavar="REFERENCE...", nargs=-1, required=True)
@with_call("as_json", request=MultiGetRequest, only=["outline", "section", "agent", "max_chars"])
def get(call: Call, references: tuple[str, ...]) -> None:
    """Show passages, documents, or parts of them.

    REFERENCE is a chunk_id, a document_id, the path of a file (in the corpus or on this machine),
    path:start-end (lines), #document:from:count (passages, counted from 1), or a glob of paths. Of
    a whole document, lists of links are left out; --json has them.

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
    texts = ("\n".join(lookup_lines(lookup, call.style)) for lookup in lookups)
    call.print(answer, ["\n\n".join(texts)], exclude_none=True)
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
    request = parsed(MultiGetRequest, {**fields, "ids": ["*"]})
    part: dict[str, Any] = {"outline": request.outline, "section": request.section}
    if len(references) == 1:
        try:
            return engine.get(references[0], request.agent, **part)
        except UsageError:
            # A name may have the characters of a glob, so a name comes first.
            if not is_glob(references[0]):
                raise
    request = parsed(MultiGetRequest, {**fields, "ids": [*references]})
    return engine.multi_get(request.ids, request.agent, **part)


def lookup_lines(lookup: Lookup, style: Style) -> Iterator[str]:
    """A lookup as text for a person."""
    width = terminal_width()
    document = lookup.document
    file_date = f"file of {document.inferred_at}" if document.inferred_at else "undated"
    date = document.updated_at or file_date
    title = one_line(f"{document.title} [{document.source_id}]", _LONG)
    for line in wrapped(f"{title} · {document.trust_tier} · {date}", width):
        yield style("heading", line)
    if document.valid_from or document.valid_until:
        valid = [document.valid_from or "always", document.valid_until or "any time"]
        yield f"valid from {valid[0]} until {valid[1]}"
    for document_id in document.superseded_by:
        yield style("caution", f"superseded by {one_line(document_id, _LONG)}")
    for warning in lookup.warnings or ():
        for line in wrapped(f"! {warning.code}: {one_line(warning.message, _LONG)}", width):
            yield style("caution", line)
    outermost = min((heading.level for heading in lookup.outline or ()), default=0)
    for heading in lookup.outline or ():
        lines = f"{heading.start_line}-{heading.end_line}"
        indent = "  " * (heading.level - outermost)
        yield f"{lines:>12}  {indent}{one_line(heading.heading, _LONG)}"
    for passage in lookup.passages:
        anchor = f" ({passage.anchor})" if passage.anchor else ""
        place = one_line(f"{passage.locator}{anchor}", _LONG)
        name = one_line(passage.chunk_id, _LONG)
        yield from ("", f"── {style('locator', place)}  {name}")
        mark = mark_note(passage.mark.model_dump() if passage.mark else None)
        for label in filter(None, (flag_note(passage.flags), mark)):
            yield from (style("caution", line) for line in wrapped(label, width, "   "))
        yield harmless(passage.content)


_TITLE_CHARS = 60
_ID_CHARS = 1_000
_MIN_TITLE = 8


@click.command()
@click.argument("prefix", required=False)
@with_call("as_json", request=ListRequest, without=["prefix"])
def ls(call: Call, prefix: str | None) -> None:
    """List documents with date, number of passages and title, ordered by id.

    PREFIX is a folder or path (in the corpus or on this machine), a source, or a glob. ~ marks a
    date that was not declared: it comes from the file's name or its last change.

    \b
    rolebundle ls
    rolebundle ls security-review
    rolebundle ls "product/**" --json
    """
    request = parsed(ListRequest, {**({"prefix": prefix} if prefix else {}), **call.fields})
    with call.engine(in_working_folder=True) as engine:
        listing = engine.ls(request)
    call.print(
        listing,
        (_listed_line(document, call.style) for document in listing.documents),
        empty="no document",
        exclude_none=True,
    )
    _print_next(call, "documents", listing.next)


def _print_next(call: Call, what: str, after: str | None) -> None:
    if after and not call.as_json:
        print_note(f"there are more {what}; continue with --after {after}")


def _listed_line(document: ListedDocument, style: Style) -> str:
    inferred = f"~{document.inferred_at[:10]}" if document.inferred_at else "undated"
    date = document.updated_at[:10] if document.updated_at else inferred
    name = one_line(document.document_id, _ID_CHARS)
    before = f"{date:<11}  {counted(document.chunks, 'passage'):>12}  "
    space = terminal_width() - columns(f"{before}{name}  ")
    # The id is whole, because a person copies it; the title is in what is left of the line.
    title = cut(one_line(document.title, _TITLE_CHARS), space) if space >= _MIN_TITLE else ""
    return f"{before}{style('locator', name)}  {title}".rstrip()


_LOCATOR_CHARS = 1_000


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
    given = {"pattern": pattern, **({"prefix": prefix} if prefix else {}), **call.fields}
    with call.engine(in_working_folder=True) as engine:
        found = engine.grep(parsed(GrepRequest, given))
    lines = (_found_line(line, call.style) for line in found.lines)
    call.print(found, lines, empty="no line matches", exclude_none=True)
    _print_next(call, "lines", found.next)


def _found_line(line: FoundLine, style: Style) -> str:
    notes = line_notes(line.model_dump(exclude_none=True))
    locator = style("locator", one_line(line.locator, _LOCATOR_CHARS))
    return f"{locator}: {harmless(line.text)}" + (style("caution", notes) if notes else "")
