"""`rolebundle why`: one passage, followed through every stage."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from rolebundle.contracts.why import LaneTrace, ScoreTrace, Why
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    engine_for,
    json_option,
    overlay_dir_option,
    purpose_options,
    rerank_option,
)
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import one_line
from rolebundle.policy.overlays import load_file

_WIDTH = 100
_LABEL = 9
_NAME = 200
_LISTED = 12
_FOUND_BY = {"task_words": "task's words", "role_words": "role's words", "meaning": "meaning"}


@click.command()
@click.argument("reference", metavar="CHUNK_OR_DOCUMENT")
@click.argument("task")
@click.option("--role", metavar="ROLE", help="Whose overlay governs. None: shared corpus only.")
@db_option
@json_option
@purpose_options
@click.option("--limit", type=int, help="Passages wanted, 1 to 1000.  [default: the overlay's]")
@click.option("--token-budget", type=int, help="Bound on the passages' estimated tokens.")
@click.option("--lexical-only", is_flag=True, help="Words alone, without embeddings.")
@click.option("--fusion", type=click.Choice(["weighted", "rrf"]), help="How lanes are joined.")
@rerank_option
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
def why(
    reference: str,
    task: str,
    role: str | None,
    db: str | None,
    as_json: bool,
    action: str | None,
    approval: str | None,
    agent: str | None,
    limit: int | None,
    token_budget: int | None,
    lexical_only: bool,
    fusion: str | None,
    rerank: str | None,
    deadline_ms: int | None,
    now: str | None,
    overlay_file: Path | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
) -> None:
    """Say why a passage is among what ROLE gets for TASK, or is not.

    CHUNK_OR_DOCUMENT is a chunk id, a document id or path:start-end. Of several passages the best
    placed one is followed: what the lanes, the filter, the score and the cut made of it, what it
    lost to, and what would have had to be different.

    \b
    rolebundle why security/token-lifecycle-audit.md:12-20 "Review the token refresh flow"
    rolebundle why marketing/marketing/launch-page-3.0.md "Plan release 3.0" --role code-reviewer
    rolebundle why support-tickets/support/tickets.jsonl "Plan release 3.0" --limit 5 --json
    """
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
        "deadline_ms": deadline_ms,
        "now": now,
    }
    request = request_from({name: value for name, value in fields.items() if value is not None})
    with engine_for(db, overlay_dirs, embed_url=embed_url, allow_host=allow_host) as engine:
        overlay = load_file(overlay_file, engine.overlay_folders) if overlay_file else None
        found = engine.why(request, reference, overlay)
    click.echo(found.model_dump_json(indent=2) if as_json else text(found))


def text(found: Why) -> str:
    """The answer for a person: the verdict, then each stage, then what it would have taken."""
    lines = [one_line(f"{found.role_id or '(no role)'} · {found.task}", _WIDTH)]
    of = f"  (best placed of {found.passages})" if found.passages > 1 else ""
    # Never cut: a person copies the locator and the id from here.
    lines.append(f"{one_line(found.locator, 1000)}  {one_line(found.chunk_id, 1000)}{of}")
    lines += ["", _verdict(found), ""]
    lines += _words(found)
    lines += _labelled("lanes", (_lane(lane) for lane in found.lanes))
    pool = found.pool
    refills = f", after {pool.refills} refills" if pool.refills else ""
    lines += _labelled("pool", [f"{pool.candidates} candidates{refills}"])
    lines += _labelled("filter", _filter(found))
    lines += _labelled("score", _score(found.score))
    lines += _labelled("place", [_place(found)])
    lines += _labelled(
        "lost to",
        (
            f"{one.rank or '–':>3}  {one.final:.3f}  {one_line(one.locator, 1000)}  "
            f"{one_line(one.chunk_id, 1000)}"
            for one in found.lost_to
        ),
    )
    lines += _labelled("needs", (line for need in found.needs for line in _bullet(need)))
    return "\n".join(lines)


def _verdict(found: Why) -> str:
    if found.outcome == "selected":
        return f"SELECTED at rank {found.rank} of {found.selected_count}"
    if found.outcome == "not_proposed":
        return "NOT PROPOSED: no lane found it"
    return one_line(f"REJECTED by the {found.step}: {found.code}: {found.notes}", 2 * _WIDTH)


def _words(found: Why) -> list[str]:
    words = found.words
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
    more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return one_line(", ".join(words[:_LISTED]), _NAME) + more


def _lane(lane: LaneTrace) -> str:
    name = f"{_FOUND_BY[lane.by]:<13}"
    if not lane.ran:
        return f"{name} not searched: {one_line(lane.note, _NAME)}"
    measure = "cosine" if lane.by == "meaning" else "BM25"
    score = f"{measure} {lane.score:.3f}" if lane.score is not None else "no vector"
    if lane.rank is not None:
        return f"{name} rank {lane.rank} of {lane.pool} proposed, {score}"
    least = f"; the least of {lane.pool} proposed has {lane.least:.3f}" if lane.pool else ""
    return f"{name} not proposed, {score}{least}"


def _filter(found: Why) -> Iterable[str]:
    made = found.filter
    if made.allowed:
        yield f"allowed, {made.freshness}"
    else:
        yield one_line(f"rejected, {made.code}: {made.notes}", _NAME)
    raw = found.score.raw.metadata
    factors = ", ".join(one_line(factor, _NAME) for factor in made.factors) or "no factor"
    yield f"metadata {raw:.3f}: {factors}"


def _score(score: ScoreTrace) -> Iterable[str]:
    if score.supposed:
        yield "what it would have, had it been let in:"
    values, weights = score.scores, score.weights
    for name in ("lexical", "semantic", "metadata", "rerank"):
        value, weight = getattr(values, name), getattr(weights, name)
        hits = ", ".join(score.vocabulary) if name == "rerank" else ""
        shown = f"   {one_line(hits, _NAME)}" if hits else ""
        yield f"{name:<13} {value:.3f} × {weight:.2f} = {value * weight:.3f}{shown}"
    if values.diversity_penalty:
        yield f"{'diversity':<22} − {values.diversity_penalty:.3f}"
    yield f"{'final':<22} = {values.final:.3f}"
    if score.raw.contextual is not None:
        yield f"in context    cosine {score.raw.contextual:.3f}, in the semantic term"
    if score.rerank_note:
        yield one_line(score.rerank_note, 2 * _WIDTH)


def _place(found: Why) -> str:
    score = found.score
    would = "would be " if score.supposed else ""
    came = (
        f"rank {score.rank} of the answer"
        if score.rank is not None
        else f"{score.code} (limit {found.limit}, floor {found.min_score:g})"
    )
    return f"{would}{score.place} of {score.of} by final score: {came}"


def _bullet(need: str) -> list[str]:
    # A broken id could not be copied.
    return textwrap.wrap(
        one_line(need, 10 * _WIDTH),
        _WIDTH - _LABEL,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _labelled(label: str, lines: Iterable[str]) -> list[str]:
    labels = [label]
    return [f"{labels.pop() if labels else '':<{_LABEL}}{line}" for line in lines]
