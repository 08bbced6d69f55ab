"""A bundle as text for a person, and what all text formats print alike."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any

from rolebundle.contracts.bundle import Fallback, Rejection, RetrievalBundle, SelectedChunk
from rolebundle.retrieval.passage_text import (
    bridge_note,
    constraint_line,
    flag_note,
    limited_use,
    one_line,
    source_note,
)
from rolebundle.text.counts import counted

DEFAULT_WIDTH = 100
_BAR_WIDTH = 10
_MAX_EXAMPLES = 3
_REASON_CHARS = 160
_LOCATOR_CHARS = 1_000
_CAUTION_CHARS = 1_000
_FOR_OWNERS = frozenset({"ONLY_SHARED_CORPUS", "LOW_DIVERSITY", "RERANK_DEGRADED"})
_IN_THE_MESSAGE = frozenset({"NO_HIGH_TRUST_MATCH", "WEAK_EVIDENCE"})
"""Warnings that add nothing to the fallback's message."""
_INDENT = " " * 5


def text(bundle: RetrievalBundle, width: int = DEFAULT_WIDTH) -> str:
    """The bundle for a person: passages, then rejections by code, then postures and warnings.

    Args:
        bundle: what was retrieved.
        width: columns of the terminal; lines are wrapped or cut to it.
    """
    role = bundle.role_id or "(no role)"
    lines = [one_line(f"{role} · {bundle.query.task_text}", width)]
    # Without `model_dump`: building the whole bundle's serializer takes a tenth of the search.
    before = cautions(
        {
            "fallback": bundle.fallback and dict(bundle.fallback),
            "warnings": [dict(warning) for warning in bundle.warnings],
        }
    )
    before += [f"Decision {constraint_line(dict(item))}" for item in bundle.constraints or ()]
    lines += [wrapped for caution in before for wrapped in textwrap.wrap(caution, width)]
    lines.append("")
    if not bundle.selected:
        verdict = bundle.fallback.verdict if bundle.fallback else None
        lines += [f"No passage was found{f' ({verdict})' if verdict else ''}.", ""]
    for chunk in bundle.selected:
        lines += [*_passage(chunk, width), ""]
    lines += _rejections(bundle, width)
    lines += [
        f"kept back: {one_line(document.document_id, _LOCATOR_CHARS)}: quarantined: "
        f"{', '.join(document.kinds)}; rolebundle quarantine show {quote(document.document_id)}"
        for document in bundle.kept_back or ()
    ]
    lines += [
        f"approved by {one_line(approval.approved_by, _REASON_CHARS)} for {approval.action}: "
        f"{counted(len(approval.chunk_ids), 'passage')}"
        for approval in bundle.approvals or ()
    ]
    provenance, fallback = bundle.provenance, bundle.fallback
    lines.append(
        f"trust {provenance.trust_posture} · freshness {provenance.freshness_posture}"
        + (f" · {_fallback(fallback)}" if fallback else "")
    )
    lines += [f"! {warning.code}: {warning.message}" for warning in bundle.warnings]
    candidates = counted(bundle.summary.total_candidates, "candidate")
    lines.append(
        f"{bundle.summary.selected_count} of {candidates} in {bundle.diagnostics.latency_ms:.0f} ms"
    )
    return "\n".join(lines)


def cautions(answer: Mapping[str, Any]) -> list[str]:
    """What the reader should know before the first passage: at most two lines, none if it is sound.

    The first line is the message of the fallback, if its action is not ``continue``. The second one
    has the warnings that concern the reader.

    Args:
        answer: a bundle or a part of one as plain values, with ``fallback`` and ``warnings``.
    """
    fallback = answer.get("fallback") or {}
    lines = []
    if fallback.get("action", "continue") != "continue":
        lines.append(
            fallback.get("message") or ", ".join(fallback.get("states") or [fallback["state"]])
        )
    warnings = [
        warning.get("message") or warning["code"]
        for warning in answer["warnings"]
        if warning["code"] not in _FOR_OWNERS | _IN_THE_MESSAGE
    ]
    if warnings:
        lines.append("; ".join(warnings))
    return [f"Caution: {one_line(line, _CAUTION_CHARS)}." for line in lines]


def score_bar(score: float) -> str:
    """A score in [0, 1] as a bar."""
    filled = round(min(1.0, max(0.0, score)) * _BAR_WIDTH)
    return "█" * filled + "░" * (_BAR_WIDTH - filled)


def _fallback(fallback: Fallback) -> str:
    states = " + ".join(fallback.states or [fallback.state])
    # Any other action has its message above the passages.
    message = f": {fallback.message}" if fallback.action == "continue" else ""
    return f"{states}, {fallback.action}{message}"


def _passage(chunk: SelectedChunk, width: int) -> Iterable[str]:
    place = one_line(chunk.citation.locator or chunk.chunk_id, _LOCATOR_CHARS)
    anchor = f" ({chunk.citation.anchor})" if chunk.citation.anchor else ""
    # Not cut to the width, because a person copies the locator from here.
    yield (
        f"{chunk.rank or 0:>3}  {chunk.scores.final:.3f} {score_bar(chunk.scores.final)}  "
        f"{chunk.source_id}  {place}{anchor}"
    )
    path = dict.fromkeys([chunk.title or chunk.document_id, *chunk.headings])
    yield f"{_INDENT}{one_line(' › '.join(path), width - len(_INDENT))}"
    why = "; ".join(one_line(reason, _REASON_CHARS) for reason in chunk.reasons_selected)
    yield from _wrapped(f"why: {why}", width)
    for label in filter(
        None,
        [
            flag_note(chunk.metadata.flags),
            bridge_note(chunk.bridge_role),
            source_note(chunk.metadata.remembered_from),
            limited_use(chunk.allowed_actions),
        ],
    ):
        yield f"{_INDENT}{label}"
    yield from _wrapped(one_line(chunk.content), width)


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _rejections(bundle: RetrievalBundle, width: int) -> list[str]:
    if not bundle.rejected:
        return ["rejected: none", ""]
    lines = [f"rejected: {len(bundle.rejected)}"]
    for code, count in bundle.rejected_summary.items():
        rejections = [rejection for rejection in bundle.rejected if rejection.reason == code]
        lines.append(f"  {code:<18} {count:>4}")
        lines += [
            f"{_INDENT}{_example(rejection, width - len(_INDENT))}"
            for rejection in rejections[:_MAX_EXAMPLES]
        ]
    return [*lines, ""]


def _example(rejection: Rejection, length: int) -> str:
    notes = f": {rejection.notes}" if rejection.notes else ""
    return one_line(f"{rejection.chunk_id}{notes}", length)
