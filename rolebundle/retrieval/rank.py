"""Step 4: the allowed candidates get their final score and their order. Pure.

final = lexical·w1 + semantic·w2 + metadata·w3 + vocabulary·w4 − diversity penalty + lift

The mark that the owner gave a passage multiplies metadata and vocabulary, the role's part of the
score. A lift keeps the best passage for the task among the first five (law 11), and a passage with
a rare exact word of the task among the first three.

The diversity penalty orders passages, and the floor (``min_score``) judges them. So the penalty
takes no score under the floor: what is over the floor stays over it, no score becomes negative, and
final scores that are equal at the floor are ordered by what they were before the penalty.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import RetrievalPolicy, Vocabulary
from rolebundle.contracts.terms import MarkState
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.duplicates import mark_duplicates
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Weights

if TYPE_CHECKING:
    from rolebundle.retrieval.rerank import Scores

BOOST_PHRASE = 0.15
PREFERRED_TERM = 0.08
"""Also the score at which the role's phrases count fully."""
SUPPRESS_PHRASE = -0.2
SATURATED_METADATA = 2.25
"""A higher metadata score counts as this one."""
DIVERSITY_STEP = 0.15

KEPT_FIRST = 5
"""The passage that is first without a role is among so many of the first with one (law 11)."""
EXACT_FIRST = 3
"""A passage with a rare exact word of the task is among so many of the first."""

UNVERIFIED = 0.8
"""The value of a passage without a mark."""
MARK_VALUES: Mapping[MarkState, float] = MappingProxyType(
    {"disputed": 0.5, "tool_verified": 0.9, "supervisor_verified": 1.0}
)
"""The values of marks. The role's part is multiplied by a value divided by ``UNVERIFIED``."""


def rank(
    allowed: Sequence[Candidate],
    request: ResolvedRequest,
    weights: Weights,
    plain: Sequence[Candidate] = (),
    exact: Sequence[str] = (),
    scores: Scores | None = None,
) -> list[Candidate]:
    """Score and order the candidates by :func:`ranking_order`.

    Args:
        allowed: what policy allows.
        request: the resolved request.
        weights: of the score's terms.
        plain: the candidates, scored as without a role, if the role joins the lanes differently.
        exact: the rare exact words and phrases of the task.
        scores: asks the reranking model for the scores of the best passages.
    """
    first = [candidate for candidate in allowed if candidate.round == 0]
    later = [candidate for candidate in allowed if candidate.round > 0]
    if scores is not None:
        # Imported here: most answers are not reranked.
        from rolebundle.retrieval.rerank import rerank

        first = rerank(first, scores, weights)
    candidates = [with_role(candidate, request, weights) for candidate in (*first, *later)]
    candidates.sort(key=ranking_order)
    candidates = penalize_sources(mark_duplicates(candidates), request)
    candidates.sort(key=ranking_order)
    for words in exact:
        having = (candidate for candidate in candidates if has_words(candidate.passage, words))
        candidates = _lift(candidates, next(having, None), EXACT_FIRST, f"exact:{words}")
    if request.overlay is not None:
        best = _best_without_role(plain or first, candidates, request)
        candidates = _lift(candidates, best, KEPT_FIRST, "first without a role")
    return candidates


def has_words(passage: Passage, words: str) -> bool:
    """Whether the passage's text, headings or title have these words, one after the other."""
    text = " ".join((passage.document.title, *passage.headings, passage.content))
    return _contains(_fold_text(text), words)


def _best_without_role(
    plain: Sequence[Candidate], ranked: Sequence[Candidate], request: ResolvedRequest
) -> Candidate | None:
    """The ranked candidate that would be first without a role."""
    # Whether meanings count does not depend on the role's weights.
    has_semantic = any(
        candidate.cosine is not None or candidate.contextual is not None for candidate in plain
    )
    weights = Weights.of(
        RetrievalPolicy(),
        request.echo.fusion or "weighted",
        has_semantic=has_semantic,
        role_share=0.0,
    )

    def order(candidate: Candidate) -> tuple[float, str]:
        score = candidate.score
        return -weights.lane_score(score.lexical, score.semantic), candidate.chunk_id

    by_id = {
        candidate.chunk_id: candidate
        for candidate in ranked
        if not candidate.is_superseded and candidate.round == 0
    }
    best = min(
        (candidate for candidate in plain if candidate.chunk_id in by_id), key=order, default=None
    )
    return by_id[best.chunk_id] if best else None


def _lift(
    candidates: Sequence[Candidate], lifted: Candidate | None, place: int, reason: str
) -> list[Candidate]:
    """The candidates, in which one is among the first so many, and kept by a hard limit.

    A copy is lifted by lifting the passage that stands for it. What is not selected anyway, because
    it is superseded or a copy, takes no place.
    """
    if lifted is None or lifted.is_superseded:
        return list(candidates)
    chunk_id = lifted.duplicate_of or lifted.chunk_id
    before = [
        candidate
        for candidate in candidates
        if candidate.duplicate_of is None and not candidate.is_superseded
    ]
    names = [candidate.chunk_id for candidate in before]
    if chunk_id not in names:
        return list(candidates)
    final = 0.0
    if names.index(chunk_id) >= place:
        # Just above the one whose place it takes.
        final = math.nextafter(before[place - 1].score.final, math.inf)
    moved = [
        candidate._replace(is_kept=True, score=candidate.score.lifted_to(final, reason))
        if candidate.chunk_id == chunk_id
        else candidate
        for candidate in candidates
    ]
    return sorted(moved, key=ranking_order)


# -- the role's part -----------------------------------------------------------------------------


def with_role(candidate: Candidate, request: ResolvedRequest, weights: Weights) -> Candidate:
    """The candidate with the role's terms in its score; without a role, the candidate itself.

    Both terms saturate, so that a passage of the role's ground is not pushed further by every rule
    that it matches, and the task decides among such passages:

    - metadata: ``min(1, m / 2.25)`` for the metadata score ``m``.
    - vocabulary: ``(1 − e) · min(1, v / 0.08) + e · x`` for the score ``v`` of the role's phrases,
      the normalized BM25 ``x`` of the role's terms, and the overlay's ``expansion_weight`` ``e``.

    A mark then multiplies both with :func:`mark_factor`.
    """
    if not request.ranks_by_role:
        return candidate
    passage = candidate.passage
    phrases, hits = vocabulary_score(passage.content, passage.tags, request.vocabulary)
    by_expansion = request.policy.expansion_weight
    vocabulary = (1 - by_expansion) * min(1.0, phrases / PREFERRED_TERM)
    vocabulary += by_expansion * candidate.expansion
    metadata = normalize_metadata(candidate.metadata_score)
    score = candidate.score.with_role(
        (metadata, candidate.metadata_hits), (vocabulary, hits), weights
    )
    if passage.mark is not None and passage.mark.ruling is not None:
        factor = mark_factor(passage.mark.ruling)
        score = score.with_mark(factor, f"mark:{passage.mark.state}(×{factor:g})", weights)
    return candidate.with_score(score)


def mark_factor(state: MarkState) -> float:
    """What a mark multiplies the role's part of the score with; 1 for a rejected passage.

    The filter rejects such a passage. Its score is only supposed, as if it were allowed.
    """
    return MARK_VALUES.get(state, UNVERIFIED) / UNVERIFIED


def normalize_metadata(score: float) -> float:
    """``min(1, m / 2.25)`` for the metadata score ``m``, which is at least 0."""
    return min(1.0, score / SATURATED_METADATA)


def ranking_order(candidate: Candidate) -> tuple[int, float, float, str]:
    """The sort key of the ranking: the highest final score first.

    What a deeper search found comes after what the searches before it found, whatever its score. So
    the first passages do not depend on how many are asked for. Ties are broken by the score before
    the diversity penalty, and then by chunk id.
    """
    score = candidate.score
    return candidate.round, -score.final, -score.before_diversity, candidate.passage.chunk_id


# -- vocabulary ----------------------------------------------------------------------------------


def vocabulary_score(
    text: str, tags: Sequence[str], vocabulary: Vocabulary
) -> tuple[float, tuple[str, ...]]:
    """How much of the role's vocabulary a chunk has, in [0, 1], and the phrases it has.

    +0.15 for each boost phrase in the text, +0.08 for each preferred term in the text or the tags,
    −0.2 for each suppress phrase in the text, clamped to [0, 1]. Case and spacing do not count. A
    phrase must begin where a word begins: "threat model" is in "threat models", "api" is not in
    "rapid".
    """
    phrases = vocabulary.boost_phrases, vocabulary.preferred_terms, vocabulary.suppress_phrases
    return _vocabulary_score(text, tuple(tags), *(tuple(group) for group in phrases))


@lru_cache(maxsize=1024)
def _vocabulary_score(
    text: str,
    tags: tuple[str, ...],
    boosts: tuple[str, ...],
    preferred: tuple[str, ...],
    suppressed: tuple[str, ...],
) -> tuple[float, tuple[str, ...]]:
    # Cached, because the next request often has many of the same candidates.
    content = _fold_text(text)
    tagged = _fold_text(" | ".join(tags).replace("-", " ")) + " | " + _fold_text(" | ".join(tags))
    score = 0.0
    hits: list[str] = []
    for phrase in _phrases_in(content, boosts):
        score += BOOST_PHRASE
        hits.append(f"vocab:boost({phrase})")
    for term in _phrases_in(f"{content} | {tagged}", preferred):
        if _contains(content, term) or _contains(tagged, term):
            score += PREFERRED_TERM
            hits.append(f"vocab:preferred({term})")
    for phrase in _phrases_in(content, suppressed):
        score += SUPPRESS_PHRASE
        hits.append(f"vocab:suppress({phrase})")
    return min(1.0, max(0.0, score)), tuple(hits)


@lru_cache(maxsize=1024)
def _fold_text(text: str) -> str:
    # Cached, because each role compares its own phrases with the same texts.
    return " ".join(text.casefold().split())


@lru_cache(maxsize=4096)
def _fold_phrase(phrase: str) -> str:
    return _fold_text(phrase)


@lru_cache(maxsize=64)
def _fold_phrases(phrases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_fold_phrase, phrases))


def _phrases_in(text: str, phrases: tuple[str, ...]) -> list[str]:
    # Most phrases do not occur at all, and a plain search is the quickest way to exclude them.
    pairs = zip(phrases, _fold_phrases(phrases), strict=True)
    return [phrase for phrase, folded in pairs if folded in text and _contains(text, phrase)]


def _contains(text: str, phrase: str) -> bool:
    folded = _fold_phrase(phrase)
    start = text.find(folded) if folded else -1
    while start > 0 and text[start - 1].isalnum():
        start = text.find(folded, start + 1)
    return start >= 0


# -- source diversity ----------------------------------------------------------------------------


def penalize_sources(ranked: Sequence[Candidate], request: ResolvedRequest) -> list[Candidate]:
    """Take 0.15 · (n − max) from the n-th candidate of a source, if the role requires diversity.

    The first passage of a document loses 0.15 at most: it may be the only answer, and other
    documents of its source may have taken the source's share (docs/decisions/0029).

    No score falls under ``request.min_score`` by this. Duplicates and superseded candidates will
    not be selected, so they do not count.
    """
    if not request.policy.require_source_diversity:
        return list(ranked)
    numbers: Counter[str] = Counter()
    documents: set[str] = set()
    penalized: list[Candidate] = []
    for candidate in ranked:
        if candidate.duplicate_of is None and not candidate.is_superseded:
            document = candidate.passage.document
            numbers[document.source_id] += 1
            excess = numbers[document.source_id] - request.policy.max_chunks_per_source
            if document.document_id not in documents:
                documents.add(document.document_id)
                excess = min(excess, 1)
            if excess > 0:
                score = candidate.score.with_diversity_penalty(
                    DIVERSITY_STEP * excess, request.min_score
                )
                candidate = candidate.with_score(score)  # noqa: PLW2901
        penalized.append(candidate)
    return penalized
