"""The answer page: a bundle for a person who asks why an agent got these passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from rolebundle.contracts.bundle import (
    Rejection,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedChunk,
)
from rolebundle.contracts.codes import WARNINGS
from rolebundle.contracts.terms import LANES, Lane, RejectionCode
from rolebundle.interfaces.matches import Terms
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.marked import marked_text
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.interfaces.render import query_terms, replica_note
from rolebundle.retrieval.answer.passage_text import limited_use

MAX_NOTES = 3
_OF_PASSAGES = ("NO_HIGH_TRUST_MATCH", "ONLY_SHARED_CORPUS", "STALE_DOMINANT")
"""Warnings that say nothing about an empty answer."""


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


class PassageView(NamedTuple):
    """A selected passage as the page shows it.

    Attributes:
        title: of its document, and the headings above it.
        parts: of its score.
        limited_use: what it may be used for; empty if that is not limited.
    """

    chunk: SelectedChunk
    title: Markup
    text: Markup
    parts: list[ScorePart]
    limited_use: str


class RejectedGroup(NamedTuple):
    """The candidates with one rejection code; ``notes`` are the most frequent explanations."""

    code: RejectionCode
    rejections: list[Rejection]
    total: int
    notes: list[str]


class Flow(NamedTuple):
    """The way of the candidates from the lanes to the answer.

    Attributes:
        lanes: how many candidates each lane proposed.
        candidates: how many different candidates there are.
        refused: those that a rule of the owner rejected.
        lower: those that others preceded.
    """

    lanes: Mapping[Lane, int]
    candidates: int
    refused: list[RejectedGroup]
    lower: list[RejectedGroup]

    @property
    def refused_count(self) -> int:
        """How many candidates a rule of the owner rejected."""
        return sum(group.total for group in self.refused)

    @property
    def lower_count(self) -> int:
        """How many candidates others preceded."""
        return sum(group.total for group in self.lower)


def answer_page(bundle: RetrievalBundle, site: Site = FILE) -> str:
    """The page of a bundle."""
    terms = query_terms(bundle)
    return render(
        "answer",
        site,
        bundle=bundle,
        flow=flow_of(bundle),
        passages=_passages(bundle, terms),
        missing=_missing_words(bundle, terms),
        # The bar of every passage has the scale of the best one.
        top=max((chunk.scores.final for chunk in bundle.selected), default=1.0),
        warnings=_warnings(bundle),
        from_replica=replica_note(bundle),
    )


def _passages(bundle: RetrievalBundle, terms: Terms) -> list[PassageView]:
    return [
        PassageView(
            chunk,
            marked_text(_title(chunk), terms),
            marked_text(chunk.content, terms),
            score_parts(chunk.scores, bundle.weights),
            limited_use(chunk.allowed_actions),
        )
        for chunk in bundle.selected
    ]


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
    )
    parts = [
        ScorePart(kind, name, value, weight, value * weight)
        for kind, name, value, weight in terms
        if weight
    ]
    if scores.diversity_penalty:
        penalty = -scores.diversity_penalty
        parts.append(ScorePart("diversity", "source diversity", penalty, 1.0, penalty))
    return parts


def _missing_words(bundle: RetrievalBundle, terms: Terms) -> list[str]:
    """The words of the task that no selected passage has, as they are searched for."""
    present = {
        match.term
        for chunk in bundle.selected
        for text in (_title(chunk), chunk.content, *chunk.metadata.tags)
        for match in terms.find(text)
    }
    return [word for place, word in enumerate(bundle.query.lexical_query) if place not in present]


def flow_of(bundle: RetrievalBundle) -> Flow:
    """How many candidates each step passed on or rejected."""
    groups = [
        _group(code, list(rejections))
        for code, rejections in groupby(bundle.rejected, lambda rejection: rejection.reason)
    ]
    listed = {group.code for group in groups}
    # Documents in quarantine are counted but not listed.
    groups += [
        RejectedGroup(code, [], total, [])
        for code, total in bundle.rejected_summary.items()
        if code not in listed
    ]
    return Flow(
        {lane: _proposed_by(lane, bundle) for lane in LANES},
        bundle.summary.total_candidates,
        [group for group in groups if words.is_rule(group.code)],
        [group for group in groups if not words.is_rule(group.code)],
    )


def _proposed_by(lane: Lane, bundle: RetrievalBundle) -> int:
    lanes = [chunk.lanes for chunk in bundle.selected]
    lanes += [rejection.lanes or [] for rejection in bundle.rejected]
    return sum(lane in proposing for proposing in lanes)


def _group(code: RejectionCode, rejections: list[Rejection]) -> RejectedGroup:
    notes = Counter(rejection.notes for rejection in rejections if rejection.notes)
    common = [note for note, _ in notes.most_common(MAX_NOTES)]
    # The notes of most candidates that were ranked lower differ, because they have their scores.
    is_shared = words.is_rule(code) or len(notes) == 1
    return RejectedGroup(code, rejections, len(rejections), common if is_shared else [])


def _warnings(bundle: RetrievalBundle) -> list[tuple[str, str, str]]:
    """Code, message, and what to do, of each warning that says something about this answer."""
    lead = bundle.fallback.message if bundle.fallback else ""
    return [
        # The message of the fallback is above the warnings.
        (
            warning.code,
            "" if warning.message == lead else warning.message,
            WARNINGS[warning.code].advice,
        )
        for warning in bundle.warnings
        if bundle.selected or warning.code not in _OF_PASSAGES
    ]
