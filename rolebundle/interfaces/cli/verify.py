"""`rolebundle verify`: check a draft against its sources."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.verification import (
    MAX_DRAFT_CHARACTERS,
    Finding,
    Verification,
    VerifyRequest,
)
from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    db_option,
    json_option,
    overlay_dir_option,
    overlay_option,
    request_options,
)
from rolebundle.interfaces.cli.replay import MAX_BUNDLE_BYTES
from rolebundle.interfaces.json_lines import NotJson, TooLarge, json_value
from rolebundle.interfaces.layout import harmless
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.shape import shaped_verification
from rolebundle.policy.overlays import load_file
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted

_QUOTED_CHARS = 200
_NOTE_CHARS = 400
_LOCATOR_CHARS = 1_000


@click.command()
@click.argument("draft_file", metavar="DRAFT|-", type=click.File("rb"))
@db_option
@click.option(
    "--bundle",
    "bundle_file",
    metavar="FILE",
    type=click.File("rb"),
    help="The bundle that the draft was written from, as JSON.",
)
@request_options(VerifyRequest, without=["draft", "bundle"])
@overlay_option
@overlay_dir_option
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    draft_file: BinaryIO,
    db: str | None,
    bundle_file: BinaryIO | None,
    fields: dict[str, Any],
    overlay_file: Path | None,
    overlay_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Check the quotes, citations, figures and sentences of a DRAFT against their sources.

    The sources are the passages of --bundle or of each --chunk; else the whole corpus. In the
    draft, [1] cites the first passage, and path:start-end lines. -: standard input. The exit code
    is 0 only if the verdict is `nothing_wrong_found`.

    \b
    rolebundle retrieve "Plan release 3.0" --role technical-writer --format json > bundle.json
    rolebundle verify answer.md --bundle bundle.json
    rolebundle verify answer.md --bundle bundle.json --publish --redact --json
    """
    if "role" in fields and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give only one of them")
    draft = _draft_text(draft_file.read(4 * MAX_DRAFT_CHARACTERS + 1))
    bundle = {"bundle": _bundle(bundle_file.read(MAX_BUNDLE_BYTES + 1))} if bundle_file else {}
    request = parsed(VerifyRequest, {"draft": draft, **bundle, **fields})
    options = EngineOptions(db, overlay_dirs)
    with options.engine(judging=True) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        answer = engine.verify(request, overlay)
    if as_json:
        shaped = shaped_verification(answer, request.detail or "full")
        click.echo(writable(json.dumps(shaped, ensure_ascii=False, indent=2)))
    else:
        for line in _lines(answer, draft, redacted=request.redact):
            click.echo(line)
    if answer.verdict != "nothing_wrong_found":
        ctx.exit(1)


def _draft_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            "draft_not_text", f"the draft is not UTF-8: {error}", "save the draft as UTF-8"
        ) from None


def _bundle(data: bytes) -> object:
    try:
        return json_value(data, MAX_BUNDLE_BYTES)
    except (TooLarge, NotJson) as error:
        raise UsageError(
            "bundle_malformed",
            f"this is no bundle: {error.message}",
            "give a file that `rolebundle retrieve --format json` wrote",
        ) from None


def _lines(answer: Verification, draft: str, *, redacted: bool) -> Iterator[str]:
    """The answer for a person: the verdict, what fails, what to look at, and the counts.

    If the draft was ``redacted``, what is left of it is at the end.
    """
    yield f"{answer.verdict.upper().replace('_', ' ')}: {one_line(answer.message, _NOTE_CHARS)}"
    starts = [0, *(at + 1 for at, character in enumerate(draft) if character == "\n")]
    failing = [finding for finding in answer.findings if finding.fails]
    noted = [finding for finding in answer.findings if not finding.fails and finding.remedy]
    for title, findings in (("fails", failing), ("to look at", noted)):
        if findings:
            yield f"\n{title}: {len(findings)}"
        for finding in findings:
            yield from _finding(finding, starts)
    held = Counter(f.code for f in answer.findings if not f.fails and not f.remedy)
    yield ""
    if held:
        yield f"found: {', '.join(f'{count} {code}' for code, count in held.most_common())}"
    if answer.uncited_sentences:
        yield f"{counted(len(answer.uncited_sentences), 'sentence')} without a citation"
    if answer.passages:
        yield f"checked against {counted(len(answer.passages), 'passage')}"
    for opinion in answer.opinions:
        supported = {True: "yes", False: "no", None: "unclear"}[opinion.supported]
        sentence = draft[opinion.span.start : opinion.span.end]
        place = _place(opinion.span.start, starts)
        excerpt = one_line(sentence, _QUOTED_CHARS)
        yield f"opinion of {answer.judge}: {supported}  {place}  {excerpt}"
    if answer.judge_problem:
        yield f"! {one_line(answer.judge_problem, _NOTE_CHARS)}"
    if answer.validated_draft is None:
        return
    if redacted:
        yield f"the draft without what fails:\n\n{harmless(answer.validated_draft)}"
    else:
        yield "--redact prints the draft without what fails; --json has it with marks"


def _finding(finding: Finding, starts: list[int]) -> Iterator[str]:
    is_whole = finding.span.end == 0
    place = "draft" if is_whole else _place(finding.span.start, starts)
    text = f"  {one_line(finding.text, _QUOTED_CHARS)}" if finding.text else ""
    yield f"  {place}  {finding.code}{text}"
    locator = finding.locator or finding.chunk_id
    for label, value in (
        ("passage", locator),
        ("note", finding.note),
        ("true text", finding.true_text),
        ("remedy", finding.remedy),
    ):
        if value:
            length = _LOCATOR_CHARS if label == "passage" else _NOTE_CHARS
            yield f"      {label}: {one_line(value, length)}"


def _place(offset: int, starts: list[int]) -> str:
    """``line:column`` of an offset in the draft, both from 1."""
    line = bisect_right(starts, offset)
    return f"{line}:{offset - starts[line - 1] + 1}"
