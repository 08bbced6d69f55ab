"""`rolebundle replay`: repeat the request of a bundle, and compare the answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.replay import Outcome, PassageChange, Replay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    engine_options,
    json_option,
    overlay_option,
    request_options,
)
from rolebundle.interfaces.json_lines import NotJson, TooLarge, json_value
from rolebundle.interfaces.parse import bundle_from, malformed_bundle
from rolebundle.policy.overlays import load_file
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted

MAX_BUNDLE_BYTES = 64 << 20
"""Well above a thousand passages of the largest chunk size."""
_NOTES_CHARS = 120
_WHEREABOUTS = {
    "in_corpus": "still in the corpus, but no lane proposes it",
    "document_changed": "its document was edited and no longer has this text",
    "document_gone": "its document is no longer in the corpus",
    "not_in_corpus": "no longer in the corpus",
}


@click.command()
@click.argument("bundle_file", metavar="BUNDLE|-", type=click.File("rb"))
@engine_options
@overlay_option
@request_options(RetrievalRequest, only=["agent"])
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    bundle_file: BinaryIO,
    overlay_file: Path | None,
    options: EngineOptions,
    fields: dict[str, Any],
    as_json: bool,
) -> None:
    """Repeat the request of a BUNDLE, and report what has changed since.

    Task, role, limits and time are those of the bundle. -: standard input. The exit code is 1 if
    the answer is different.

    \b
    rolebundle retrieve "Plan release 3.0" --role technical-writer --format json > bundle.json
    rolebundle replay bundle.json
    rolebundle replay bundle.json --json
    """
    bundle = parse_bundle(bundle_file.read(MAX_BUNDLE_BYTES + 1))
    with options.engine(**fields) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        replayed = engine.replay(bundle, overlay)
    if as_json:
        click.echo(replayed.model_dump_json(exclude_none=True, indent=2))
    else:
        for line in _lines(replayed):
            click.echo(line)
    if not replayed.same:
        ctx.exit(1)


def parse_bundle(data: bytes) -> RetrievalBundle:
    """A whole bundle from its JSON.

    Raises:
        UsageError: ``bundle_malformed``, or ``bundle_incomplete`` for one in less detail.
    """
    try:
        values = json_value(data, MAX_BUNDLE_BYTES)
    except TooLarge:
        raise malformed_bundle(f"over {MAX_BUNDLE_BYTES:,} bytes") from None
    except NotJson as error:
        raise malformed_bundle(error.reason) from None
    return bundle_from(values)


def _lines(replay: Replay) -> Iterator[str]:
    role = one_line(replay.role_id) or "(no role)"
    request = f"{role} · {one_line(replay.task_text)} · as of {replay.generated_at}"
    if replay.same:
        yield f"the answer is the same today: {request}"
        return
    yield f"the answer is different today: {request}"
    for cause in replay.causes:
        before, after = one_line(cause.before), one_line(cause.after)
        yield f"  {cause.kind}: {before} → {after}" if before or after else f"  {cause.kind}"
        yield f"    {one_line(cause.message, 300)}"
    if replay.same_selection:
        yield f"the same selection in the same order: {counted(replay.selected_after, 'passage')}"
    else:
        yield (
            f"{replay.kept} of {counted(replay.selected_before, 'selected passage')} still "
            f"selected today, and {counted(replay.selected_after - replay.kept, 'other')}"
        )
    selected_in_either = [change for change in replay.passages if _is_selected_in_either(change)]
    for change in selected_in_either:
        yield from _change(change)
    hidden_count = len(replay.passages) - len(selected_in_either)
    if hidden_count:
        yield (
            f"  not selected in either answer: {counted(hidden_count, 'candidate')}; "
            "--json lists them"
        )
    yield f"differs: {', '.join(replay.differs)}"


def _is_selected_in_either(change: PassageChange) -> bool:
    outcomes = (change.before, change.after)
    return any(outcome is not None and outcome.rank is not None for outcome in outcomes)


def _change(change: PassageChange) -> Iterator[str]:
    yield f"  {one_line(change.chunk_id, 1000)}"
    before, after = _outcome_text(change.before), _outcome_text(change.after)
    yield f"    {', '.join(change.kinds)}: {before} → {after}"
    if change.whereabouts:
        yield f"    {_WHEREABOUTS[change.whereabouts]}"


def _outcome_text(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not proposed"
    if outcome.reason is None:
        return f"rank {outcome.rank}, {outcome.score:.3f}"
    notes = f" ({one_line(outcome.notes, _NOTES_CHARS)})" if outcome.notes else ""
    return f"{outcome.reason}{notes}"
