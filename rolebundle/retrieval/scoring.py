"""The components of the score: of the lanes; of the role's rules, vocabulary and marks. Pure.

``weighted`` needs the true scores of both lanes for every candidate. So each hit has the score of
each lane that can score it, no matter which lane proposed it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from rolebundle.contracts.documents import Passage, Texts
from rolebundle.contracts.overlay import Vocabulary
from rolebundle.contracts.terms import MarkState
from rolebundle.retrieval.filter import BASE_SCORE, metadata_score
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.values import Candidate, Pool, Weights
from rolebundle.text.spellings import folded, others_of, with_spellings

RRF_K = 10
BOOST_POINTS = 0.15
PREFERRED_POINTS = 0.08
"""Points of a preferred term, and the sum that gives the full score: one such term is enough."""
SUPPRESS_POINTS = -0.2
_POINTS = {
    "vocab:boost": BOOST_POINTS,
    "vocab:preferred": PREFERRED_POINTS,
    "vocab:suppress": SUPPRESS_POINTS,
}
SATURATED_METADATA = 2.25
"""A higher metadata score counts as this one."""

UNMARKED_VALUE = 0.8
"""The value of a passage without a mark."""
MARK_VALUES: Mapping[MarkState, float] = MappingProxyType(
    {"disputed": 0.5, "tool_verified": 0.9, "supervisor_verified": 1.0}
)
"""The values of marks. The role's part is multiplied by a value divided by ``UNMARKED_VALUE``."""


# -- the lanes -------------------------------------------------------------------------------------


def score_hits(pool: Pool, weights: Weights) -> list[Candidate]:
    """One candidate for each hit, ordered by chunk id.

    The lanes' scores are normalized to [0, 1]:

    - ``weighted``: BM25 is divided by its maximum; cosines become 0 at that of unrelated texts and
      1 at the highest one, and are multiplied with the pool's ``query_fluency``.
    - ``rrf``: (k + 1) / (k + rank) with k = 10 (Cormack, Clarke and Buettcher, "Reciprocal rank
      fusion", SIGIR 2009). A passage that the lane did not propose and score gets 0. Their k is 60;
      with 10 the scores are spread about like those of ``weighted``, so that the role weighs the
      same with both.

    The maxima are those of round 0.

    Only what a candidate has of the task counts here. The role's components count in ``rank``.
    """
    rows = sorted((hit.unscored() for hit in pool.hits.values()), key=lambda row: row.chunk_id)
    first_round = [row for row in rows if row.round == 0]
    best_bm25 = max((row.bm25 or 0.0 for row in first_round), default=0.0)
    best_expansion = max((row.bm25_expansion or 0.0 for row in first_round), default=0.0)
    for row in rows:
        row.lexical = _normalized(row.bm25, best_bm25)
        row.expansion_score = _normalized(row.bm25_expansion, best_expansion)
    cosines = {row.chunk_id: row.cosine for row in rows if row.cosine is not None}
    if weights.fusion == "rrf":
        having = [row for row in rows if "lexical" in row.lanes and row.lexical]
        lexical = _reciprocal_ranks({row.chunk_id: row.lexical for row in rows}, having)
        for row in rows:
            row.lexical = lexical.get(row.chunk_id, 0.0)
        semantic = _reciprocal_ranks(cosines, [row for row in rows if "semantic" in row.lanes])
    else:
        unrelated = pool.noise.unrelated if pool.noise else 0.0
        best = max((row.cosine or 0.0 for row in first_round), default=0.0)
        semantic = {
            chunk_id: pool.query_fluency * _normalized(cosine - unrelated, best - unrelated)
            for chunk_id, cosine in cosines.items()
        }
    for row in rows:
        row.semantic = semantic.get(row.chunk_id, 0.0)
        row.weigh(weights)
    return rows


def scale_by_range(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores scaled by their minimum and maximum to [0, 1]; if all are equal, they become 1."""
    lowest, highest = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    width = highest - lowest
    return {key: (score - lowest) / width if width > 0 else 1.0 for key, score in scores.items()}


def _normalized(score: float | None, highest: float) -> float:
    """A score divided by the highest one of round 0, in [0, 1]."""
    return min(1.0, max(0.0, score or 0.0) / highest) if highest > 0 else 0.0


def _reciprocal_ranks(
    scores: Mapping[str, float], proposed: Iterable[Candidate]
) -> dict[str, float]:
    ranked = sorted(proposed, key=lambda row: (row.round, -scores[row.chunk_id], row.chunk_id))
    return {row.chunk_id: (RRF_K + 1) / (RRF_K + rank) for rank, row in enumerate(ranked, start=1)}


# -- the role --------------------------------------------------------------------------------------


def add_role_part(row: Candidate, request: ResolvedRequest, weights: Weights) -> None:
    """Write the role's components; without a role there are none.

    Each component has a maximum. Above it, further matching rules add nothing, so that the task
    decides among the passages that the role prefers:

    - metadata, for the metadata score ``m``: ``tie · ln(2m) + rest · m / 2.25``, where ``tie``
      and ``rest`` are the role's factors (:meth:`Weights.role_factors`), and ``ln(2m)`` and
      ``m / 2.25`` are cut to [0, 1].
    - vocabulary: ``(1 − e) · min(1, v / 0.08) + e · x`` for the score ``v`` of the role's phrases,
      the normalized BM25 ``x`` of the expansion terms, and the overlay's ``expansion_weight``
      ``e``.

    The vocabulary is multiplied with the sum of the factors, and both factors with that of a mark
    (:func:`mark_factor`).
    """
    if not request.ranks_by_role:
        return
    passage = row.passage
    row.matched_phrases = matched_phrases(passage.content, passage.tags, request.vocabulary)
    expansion_weight = request.retrieval_policy.expansion_weight
    row.vocabulary = (1 - expansion_weight) * phrase_score(row.matched_phrases)
    row.vocabulary += expansion_weight * row.expansion_score
    (tie, rest), by_mark, factors = weights.role_factors(row), 1.0, {}
    if (nearness := weights.distance_factor(row)) < 1.0:
        # The name is shown. It is about the lanes' score, and not about `Evidence`.
        factors["penalty:weak-evidence"] = nearness
    if passage.mark is not None and passage.mark.owner_state is not None:
        by_mark = factors[f"mark:{passage.mark.state}"] = mark_factor(passage.mark.owner_state)
    row.role_factors = tie * by_mark, rest * by_mark
    row.metadata = _metadata_component(row, row.metadata_score)
    row.vocabulary *= sum(row.role_factors)
    row.factor_notes = tuple(f"{name}(×{round(factor, 3):g})" for name, factor in factors.items())


def add_moved_from(
    ranked: Sequence[Candidate],
    shown: Sequence[Candidate],
    request: ResolvedRequest,
    weights: Weights,
) -> None:
    """Write which of the overlay's rules changed the place of each shown passage.

    The place without a rule: what the rule gives is taken from every passage, and they are sorted
    again. Lifts and the diversity of sources stay.
    """
    rows = [row for row in ranked if row.can_be_selected]
    ranks = {row.chunk_id: number for number, row in enumerate(rows, start=1)}
    for rule in dict.fromkeys(rule for row in shown for rule in row.rules):
        lost = {row.chunk_id: _lost_without(rule, row, request, weights) for row in rows}
        without = sorted(
            rows, key=lambda row: (row.round, lost[row.chunk_id] - row.final, ranks[row.chunk_id])
        )
        before = {row.chunk_id: number for number, row in enumerate(without, start=1)}
        for row in shown:
            if rule in row.rules and before.get(row.chunk_id, 0) != ranks.get(row.chunk_id, 0):
                row.moved_from = {**row.moved_from, rule: before[row.chunk_id]}


def _lost_without(rule: str, row: Candidate, request: ResolvedRequest, weights: Weights) -> float:
    """What a passage's final score would lose without a rule; 0 if a lift holds the passage."""
    if row.lift_reasons:
        return 0.0
    if rule in row.metadata_factors:
        others = [factor for name, factor in row.metadata_factors.items() if name != rule]
        without = _metadata_component(row, metadata_score(others))
        return weights.metadata * (_metadata_component(row, row.metadata_score) - without)
    if rule in row.matched_phrases:
        phrases = [name for name in row.matched_phrases if name != rule]
        lost = phrase_score(row.matched_phrases) - phrase_score(phrases)
        lost *= weights.vocabulary * (1 - request.retrieval_policy.expansion_weight)
        return lost * sum(row.role_factors)
    return 0.0


def mark_factor(state: MarkState) -> float:
    """What a mark multiplies the role's part of the score with.

    For a passage marked as rejected it is 1: ``why`` shows the score that it would have without
    the mark.
    """
    return MARK_VALUES.get(state, UNMARKED_VALUE) / UNMARKED_VALUE


def _metadata_component(row: Candidate, score: float) -> float:
    """The component of the role's metadata rules if they gave the metadata score ``m``.

    The first factor is multiplied by ``ln(2m)``, cut to [0, 1]: 0 without a boost or with a
    penalty, 1 from a boost of e on. The second one is multiplied by ``m / 2.25``, cut to 1.
    """
    tie, rest = row.role_factors
    preference = min(1.0, math.log(max(1.0, score / BASE_SCORE)))
    return tie * preference + rest * min(1.0, score / SATURATED_METADATA)


def matched_phrases(text: str, tags: Sequence[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The phrases of the role's vocabulary that a chunk has.

    Boost and suppress phrases are looked for in the text, preferred terms also in the tags. Case
    and spacing do not count. A phrase must begin with a word: "threat model" is in "threat models",
    "api" is not in "rapid".
    """
    phrases = vocabulary.boost_phrases, vocabulary.preferred_terms, vocabulary.suppress_phrases
    return _matched_phrases(text, tuple(tags), *map(tuple, phrases))


@lru_cache(maxsize=1024)
def _matched_phrases(text: str, tags: Texts, *phrases: Texts) -> Texts:
    # Cached, because the next request often has many of the same candidates.
    content = fold_text(text)
    tagged = fold_text(" | ".join(tags).replace("-", " ")) + " | " + fold_text(" | ".join(tags))
    texts = content, f"{content} | {tagged}", content
    return tuple(
        f"vocab:{label}({phrase})"
        for label, text, own in zip(("boost", "preferred", "suppress"), texts, phrases, strict=True)
        for phrase, key in _folded(own)
        if key in text and contains(text, key)  # The first is quick, and few are there.
    )


def phrase_score(phrases: Iterable[str]) -> float:
    """The part of the vocabulary component that phrases give, in [0, 1].

    Their points (+0.15 for each boost phrase, +0.08 for each preferred term, −0.2 for each suppress
    phrase) divided by ``PREFERRED_POINTS``.
    """
    points = sum(_POINTS[phrase.partition("(")[0]] for phrase in phrases)
    return min(1.0, max(0.0, points) / PREFERRED_POINTS)


@lru_cache(maxsize=4096)
def fold_text(text: str) -> str:
    """A text as phrases are compared with it: without regard to case and spacing."""
    # Cached, because each role compares its own phrases with the same texts.
    return " ".join(folded(text).casefold().split())


@lru_cache(maxsize=64)
def _folded(phrases: Texts) -> list[tuple[str, str]]:
    return [(phrase, fold_text(phrase)) for phrase in phrases]


def contains(text: str, phrase: str) -> bool:
    """Whether a folded text has a folded phrase at the beginning of a word."""
    start = text.find(phrase) if phrase else -1
    while start > 0 and text[start - 1].isalnum():
        start = text.find(phrase, start + 1)
    return start >= 0


def has_phrase(passage: Passage, phrase: str) -> bool:
    """Whether the passage's text, headings or title have a phrase."""
    parts = (passage.document.title, *passage.headings, passage.content)
    text = fold_text(with_spellings(" ".join(parts)))
    return any(contains(text, fold_text(one)) for one in (phrase, *others_of(phrase)))
