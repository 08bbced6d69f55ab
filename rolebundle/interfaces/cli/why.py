"""`rolebundle why`: one passage, followed through every step."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.why import LaneTrace, ScoreTrace, Why
from rolebundle.interfaces.cli.names import document_names
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    engine_for,
    json_option,
    overlay_dir_option,
    overlay_option,
    request_options,
)
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import load_file
from rolebundle.retrieval.passage_text import flag_note, mark_note, one_line
from rolebundle.text.counts import counted

_WIDTH = 100
_LABEL_WIDTH = 9
_NAME_CHARS = 200
_COPY_CHARS = 1_000
_MAX_WORDS = 12
_FOUND_BY = {"task_words": "task's words", "role_words": "role's words", "meaning": "meaning"}


@click.command()
@click.argument("reference", metavar="CHUNK_OR_DOCUMENT", shell_complete=document_names)
@click.argument("task")
@db_option
@json_option
@request_options(RetrievalRequest, without=["task", "packet", "detail", "max_chars"])
@overlay_option
@overlay_dir_option
@embed_options
def why(
    reference: str,
    task: str,
    db: str | None,
    as_json: bool,
    fields: dict[str, Any],
    overlay_file: Path | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
) -> None:
    """Explain why a passage was selected for ROLE and TASK, or was not.

    CHUNK_OR_DOCUMENT is a chunk id, a document id, a path or path:start-end. If it names several
    passages, the one with the best rank is followed: through the lanes, the filter, the score and
    the selection, with the passages that ranked above it and what would have to be different.

    \b
    rolebundle why security/token-lifecycle-audit.md:12-20 "Review the token refresh flow"
    rolebundle why marketing/marketing/launch-page-3.0.md "Plan release 3.0" --role code-reviewer
    rolebundle why support-tickets/support/tickets.jsonl "Plan release 3.0" --limit 5 --json
    """
    if "role" in fields and overlay_file is not None:
        raise click.UsageError("--role and --overlay name two overlays; give only one of them")
    request = request_from({"task": task, **fields})
    with engine_for(
        db, overlay_dirs, embed_url=embed_url, allow_host=allow_host, here=True
    ) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        answer = engine.why(request, reference, overlay)
    click.echo(answer.model_dump_json(indent=2) if as_json else text(answer))


def text(why: Why) -> str:
    """The answer for a person: the verdict, each step, and what would have to be different."""
    lines = [one_line(f"{why.role_id or '(no role)'} · {why.task}", _WIDTH)]
    of = f"  (best ranked of {why.passages})" if why.passages > 1 else ""
    # Not cut to the width, because a person copies the locator and the id from here.
    place = f"{why.locator} ({why.anchor})" if why.anchor else why.locator
    lines.append(f"{one_line(place, _COPY_CHARS)}  {one_line(why.chunk_id, _COPY_CHARS)}{of}")
    lines += [flag_note(why.flags)] if why.flags else []
    lines += [mark_note(why.mark.model_dump())] if why.mark else []
    lines += [
        one_line(f"{name} claims to supersede its document, but may not", 2 * _WIDTH)
        for name in why.ignored_claims or ()
    ]
    lines += [
        one_line(f"its document declares {claim}; the owner does not allow it", 2 * _WIDTH)
        for claim in why.refused_claims or ()
    ]
    lines += ["", _verdict(why), ""]
    lines += _words(why)
    lines += _labelled("lanes", (_lane(lane) for lane in why.lanes))
    pool = why.pool
    refills = f", after {counted(pool.refills, 'refill')}" if pool.refills else ""
    lines += _labelled("pool", [f"{counted(pool.candidates, 'candidate')}{refills}"])
    lines += _labelled("filter", _filter(why))
    lines += _labelled("score", _score(why.score))
    lines += _labelled("place", [_place(why)])
    lines += _labelled(
        "lost to",
        (
            f"{passage.rank or '–':>3}  {passage.final:.3f}  "
            f"{one_line(passage.locator, _COPY_CHARS)}  {one_line(passage.chunk_id, _COPY_CHARS)}"
            for passage in why.lost_to
        ),
    )
    lines += _labelled("needs", (line for need in why.needs for line in _bullet(need)))
    return "\n".join(lines)


def _verdict(why: Why) -> str:
    if why.outcome == "selected":
        return f"SELECTED at rank {why.rank} of {why.selected_count}"
    if why.step == "where":
        return one_line(f"NOT SEARCHED: {why.notes}", 2 * _WIDTH)
    if why.outcome == "not_proposed":
        return "NOT PROPOSED: no lane found it"
    step = "in the selection" if why.step == "cut" else f"by the {why.step}"
    return one_line(f"REJECTED {step}: {why.code}: {why.notes}", 2 * _WIDTH)


def _words(why: Why) -> list[str]:
    words = why.words
    shown = [
        f"{name}: {_some(listed)}"
        for name, listed in (
            ("has", words.task_found),
            ("lacks", words.task_missing),
            ("has of the role's", words.role_found),
        )
        if listed
    ]
    return _labelled("words", shown)


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MAX_WORDS} more" if len(words) > _MAX_WORDS else ""
    return one_line(", ".join(words[:_MAX_WORDS]), _NAME_CHARS) + more


def _lane(lane: LaneTrace) -> str:
    name = f"{_FOUND_BY[lane.by]:<13}"
    if not lane.ran:
        return f"{name} not searched: {one_line(lane.note, _NAME_CHARS)}"
    measure = "cosine" if lane.by == "meaning" else "BM25"
    score = f"{measure} {lane.score:.3f}" if lane.score is not None else "no vector"
    if lane.rank is not None:
        return f"{name} rank {lane.rank} of {lane.pool} proposed, {score}"
    lowest = f"; the lowest of {lane.pool} proposed is {lane.least:.3f}" if lane.pool else ""
    return f"{name} not proposed, {score}{lowest}"


def _filter(why: Why) -> Iterable[str]:
    trace = why.filter
    if trace.allowed:
        by = f" by the date of its file, {trace.inferred_at[:10]}" if trace.inferred_at else ""
        yield f"allowed, {trace.freshness}{by}"
    else:
        yield one_line(f"rejected, {trace.code}: {trace.notes}", _NAME_CHARS)
    raw = why.score.raw.metadata
    factors = ", ".join(one_line(factor, _NAME_CHARS) for factor in trace.factors) or "no factor"
    yield f"metadata {raw:.3f}: {factors}"


def _score(score: ScoreTrace) -> Iterable[str]:
    if score.supposed:
        yield "if it had been proposed and allowed:"
    values, weights = score.scores, score.weights
    terms = (
        ("lexical", values.lexical, weights.lexical),
        ("semantic", values.semantic, weights.semantic),
        ("metadata", values.metadata, weights.metadata),
        # In the contract, `rerank` is the vocabulary term, not the score of a rerank model.
        ("vocabulary", values.rerank, weights.rerank),
    )
    for name, value, weight in terms:
        hits = ", ".join(score.vocabulary) if name == "vocabulary" else ""
        shown = f"   {one_line(hits, _NAME_CHARS)}" if hits else ""
        yield f"{name:<13} {value:.3f} × {weight:.2f} = {value * weight:.3f}{shown}"
    if score.mark_factor is not None:
        yield f"mark          × {score.mark_factor:g} in metadata and vocabulary"
    if values.diversity_penalty:
        yield f"{'diversity':<22} − {values.diversity_penalty:.3f}"
    yield f"{'final':<22} = {values.final:.3f}"
    if score.raw.contextual is not None:
        yield f"in context    score {score.raw.contextual:.3f}, in the semantic term"
    if score.rerank_note:
        yield one_line(score.rerank_note, 2 * _WIDTH)


def _place(why: Why) -> str:
    score = why.score
    would = "would be " if score.supposed else ""
    result = (
        f"rank {score.rank} of the answer"
        if score.rank is not None
        else f"{score.code} (limit {why.limit}, floor {why.min_score:g})"
    )
    return f"{would}{score.place} of {score.of} by final score: {result}"


def _bullet(need: str) -> list[str]:
    # Not broken inside an id, so that it can be copied.
    return textwrap.wrap(
        one_line(need, 10 * _WIDTH),
        _WIDTH - _LABEL_WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _labelled(label: str, lines: Iterable[str]) -> list[str]:
    labels = [label]
    return [f"{labels.pop() if labels else '':<{_LABEL_WIDTH}}{line}" for line in lines]
