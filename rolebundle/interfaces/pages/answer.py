"""The answer page: a bundle for a person who asks why an agent got these passages."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from rolebundle.contracts.bundle import (
    Rejection,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedChunk,
)
from rolebundle.contracts.terms import LANES, RejectionCode
from rolebundle.interfaces.excerpt import Terms
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import marked_text, render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.interfaces.render import query_terms, replica_note
from rolebundle.retrieval.answer.packet import WARNINGS_OF_PASSAGES
from rolebundle.retrieval.answer.passage_text import limited_use

MAX_NOTES = 3


class ScorePart(NamedTuple):
    """A part of a final score.

    Attributes:
        kind: CSS class of its colour.
        name: what it measures.
        value: the term, in [0, 1], before it is multiplied.
        weight: what it is multiplied with.
        points: what it adds to the final score.
    """

    kind: str
    name: str
    value: float
    weight: float
    points: float


def answer_page(bundle: RetrievalBundle, site: Site = FILE) -> str:
    """The page of a bundle."""
    terms = query_terms(bundle)
    lanes = [chunk.lanes for chunk in bundle.selected]
    lanes += [rejection.lanes or [] for rejection in bundle.rejected]
    groups = _rejected_groups(bundle)
    return render(
        "answer",
        site,
        bundle=bundle,
        lanes={lane: sum(lane in proposing for proposing in lanes) for lane in LANES},
        refused=[group for group in groups if words.is_rule(group["code"])],
        lower=[group for group in groups if not words.is_rule(group["code"])],
        passages=[
            {
                "chunk": chunk,
                "title": marked_text(_title(chunk), terms),
                "text": marked_text(chunk.content, terms),
                "parts": score_parts(chunk.scores, bundle.weights),
                "limited_use": limited_use(chunk.allowed_actions),
            }
            for chunk in bundle.selected
        ],
        missing=_missing_words(bundle, terms),
        # The bar of every passage has the scale of the best one.
        top=max((chunk.scores.final for chunk in bundle.selected), default=1.0),
        warnings=_warnings(bundle),
        from_replica=replica_note(bundle),
    )


def _title(chunk: SelectedChunk) -> str:
    return words.heading_path(chunk.title or chunk.document_id, chunk.headings)


def score_parts(scores: Scores, weights: ScoreWeights | None) -> list[ScorePart]:
    """The terms of a final score that are not 0. Empty without weights, as in older bundles."""
    if weights is None:
        return []
    terms = (
        ("words", "the task's words", scores.lexical, weights.lexical),
        ("meaning", "its meaning", scores.semantic, weights.semantic),
        ("rules", "rules, trust and age", scores.metadata, weights.metadata),
        ("vocabulary", "the role's words", scores.rerank, weights.rerank),
        ("diversity", "source diversity", -scores.diversity_penalty, 1.0),
    )
    return [
        ScorePart(kind, name, value, weight, value * weight)
        for kind, name, value, weight in terms
        if weight and (value or kind != "diversity")
    ]


def _missing_words(bundle: RetrievalBundle, terms: Terms) -> list[str]:
    """The words of the task that no selected passage has, as they are searched for."""
    present = {
        match.term
        for chunk in bundle.selected
        for text in (_title(chunk), chunk.content, *chunk.metadata.tags)
        for match in terms.find(text)
    }
    return [word for place, word in enumerate(bundle.query.lexical_query) if place not in present]


def _rejected_groups(bundle: RetrievalBundle) -> list[dict[str, Any]]:
    """The candidates by rejection code, with their number and the most frequent explanations."""
    groups: dict[RejectionCode, list[Rejection]] = {}
    for rejection in bundle.rejected:
        groups.setdefault(rejection.reason, []).append(rejection)
    # Documents in quarantine are counted but not listed.
    for code in bundle.rejected_summary:
        groups.setdefault(code, [])
    return [
        {
            "code": code,
            "rejections": rejections,
            "total": len(rejections) or bundle.rejected_summary[code],
            "notes": _common_notes(code, rejections),
        }
        for code, rejections in groups.items()
    ]


def _common_notes(code: RejectionCode, rejections: list[Rejection]) -> list[str]:
    notes = Counter(rejection.notes for rejection in rejections if rejection.notes)
    # The notes of most candidates that were ranked lower differ, because they have their scores.
    is_shared = words.is_rule(code) or len(notes) == 1
    return [note for note, _ in notes.most_common(MAX_NOTES)] if is_shared else []


def _warnings(bundle: RetrievalBundle) -> list[tuple[str, str, str]]:
    """Code, message, and what to do, of each warning that says something about this answer."""
    lead = bundle.fallback.message if bundle.fallback else ""
    return [
        # The message of the fallback is above the warnings.
        (
            warning.code,
            "" if warning.message == lead else warning.message,
            words.WARNING_ADVICE.get(warning.code, ""),
        )
        for warning in bundle.warnings
        if bundle.selected or warning.code not in WARNINGS_OF_PASSAGES
    ]
