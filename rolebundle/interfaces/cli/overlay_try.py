"""`rolebundle overlay try`: what a role changes in the answer to one task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from rolebundle.contracts.authoring import OverlayTrial, TriedPassage
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import AccessDenied
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    engine_options,
    json_option,
    request_options,
)
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import load_file
from rolebundle.retrieval.answer.passage_text import one_line

_RANK_WIDTH = 9
_LINE_CHARS = 1_000
_RULE_CHARS = 140
_INDENT = " " * (2 * _RANK_WIDTH)


@click.command("try")
@click.argument("role", metavar="ROLE|FILE")
@click.argument("task")
@engine_options
@request_options(
    RetrievalRequest, only=["agent", "action", "where", "limit", "lexical_only", "now"]
)
@json_option
def try_command(
    role: str,
    task: str,
    fields: dict[str, Any],
    options: EngineOptions,
    as_json: bool,
) -> None:
    """Show what ROLE changes in the answer to TASK, against no role.

    Each passage has its rank with the role and without it, and the rules and terms of the overlay
    that moved it. ROLE may be an overlay file that is not in any folder yet.

    \b
    rolebundle overlay try release-manager "What should I look at first?"
    rolebundle overlay try ./release-manager.json "What broke?" --limit 5 --json
    """
    from rolebundle.authoring.trial import try_role

    is_file = role.endswith(".json") or Path(role).name != role
    request = request_from({"task": task, **({} if is_file else {"role": role}), **fields})
    with options.engine() as engine:
        overlay = load_file(Path(role), engine.overlay_folders) if is_file else None
        try:
            trial = try_role(engine, request, overlay)
        except AccessDenied as error:
            if error.code == "role_denied":
                error.hint = f"this asks without a role, too: name an agent that may; {error.hint}"
            raise
    print_answer(trial, _lines(trial), as_json=as_json, indent=2)


def _lines(trial: OverlayTrial) -> Iterator[str]:
    yield one_line(f"{trial.role_id} · {trial.task_text}", _LINE_CHARS)
    yield (
        f"the role's rules make up {trial.role_share:.0%} of the score of this task; "
        f"{trial.overlap:.0%} of the passages are the same without it"
    )
    yield f"\n{'with':<{_RANK_WIDTH}}{'without':<{_RANK_WIDTH}}passage"
    for passage in trial.passages:
        yield from _passage(passage)
    if not trial.passages:
        yield "no passage with or without the role"
    if trial.fallback is not None and trial.fallback.action != "continue":
        yield f"\n{one_line(trial.fallback.message or trial.fallback.state, _LINE_CHARS)}"
    if trial.passages and not trial.rules_used:
        yield f"\nno rule of {trial.role_id} matches any of its passages"


def _passage(passage: TriedPassage) -> Iterator[str]:
    place = one_line(passage.locator or passage.chunk_id, _LINE_CHARS)
    ranks = f"{_rank(passage.rank_with):<{_RANK_WIDTH}}{_rank(passage.rank_without):<{_RANK_WIDTH}}"
    title = f"  {one_line(passage.title)}" if passage.title else ""
    yield f"{ranks}{place}{title}"
    for rule in passage.moved_by:
        yield f"{_INDENT}{one_line(rule, _RULE_CHARS)}"
    if passage.code is not None:
        notes = f": {passage.notes}" if passage.notes else ""
        yield f"{_INDENT}{one_line(f'{passage.code}{notes}', _RULE_CHARS)}"
    elif passage.rank_with is None:
        yield f"{_INDENT}not found with the role"


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)
