"""Step 4, part 2: candidates are scored together with the candidates that are like them. Pure.

*Neighbours.* Closely related texts tend to be relevant to the same requests (the cluster
hypothesis: van Rijsbergen, "Information Retrieval", 1979). So a part of a candidate's score comes
from its nearest neighbours among the candidates: one step of score regularization (Diaz,
"Regularizing ad hoc retrieval scores", CIKM 2005). It helps a passage that a lane missed because of
its choice of words.

*Feedback.* The first ten candidates represent the task, and every candidate is compared with them:
pseudo-relevance feedback (Rocchio, "Relevance feedback in information retrieval", 1971).
If the first ten have little in common, the feedback has little weight.

Both are about the task: the role does not decide which passages represent it. Only candidates that
policy allows take part, and no corpus is read: term frequencies are counted
among the candidates. Words are compared by their first five letters, which works like a stemmer
for many languages; scripts without spaces are compared by pairs of letters.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from rolebundle.contracts.document import Passage
from rolebundle.retrieval.candidate import Candidate, best_by_lanes
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.score import Weights
from rolebundle.text.languages import is_unspaced
from rolebundle.text.stop_words import ENGLISH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_COMPARED = 100
"""How many candidates, the best by their lanes, are compared: this bounds the cost."""
PREFIX_LETTERS = 5
"""Words are compared by their first letters, so many."""

NEIGHBOURS = 5
"""How many of the nearest candidates count."""
NEIGHBOUR_SHARE = 0.4
"""The neighbours' share of a lane's score, if they are near."""
NEAR_COSINE = 0.1
"""From this mean cosine on neighbours are near; below it their share shrinks in proportion."""

FEEDBACK_CANDIDATES = 10
"""How many of the first represent the task; their weights are 1 / log2(rank + 1)."""
FEEDBACK_SHARE = 0.15
"""The feedback's share of a lane's score, if the first candidates agree."""
AGREEMENT_COSINE = 0.05
"""From this mean cosine on they agree; below it the share shrinks in proportion."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How similar candidates are to each other.

    Attributes:
        chunk_ids: the candidates, in the order of their ids.
        cosines: of their terms, shape (n, n), in [0, 1]; 0 for a text with itself and its copies.
    """

    chunk_ids: Sequence[str]
    cosines: NDArray[np.float64]


def compare(candidates: Sequence[Candidate], weights: Weights) -> Comparison:
    """Compare the best candidates by their lanes with each other.

    Their order does not matter. So the comparison is the same before and after a model scores the
    first of them again.
    """
    best = best_by_lanes(candidates, weights, MAX_COMPARED)
    ordered = sorted(best, key=lambda candidate: candidate.chunk_id)
    return Comparison(
        [candidate.chunk_id for candidate in ordered],
        similarities([candidate.passage for candidate in ordered]),
    )


def smooth(
    candidates: Sequence[Candidate], comparison: Comparison, weights: Weights
) -> list[Candidate]:
    """The candidates with neighbours and feedback mixed into the scores of both lanes.

    Args and returns are those of :func:`apply_neighbours`.
    """
    return apply_feedback(apply_neighbours(candidates, comparison, weights), comparison, weights)


def apply_neighbours(
    candidates: Sequence[Candidate], comparison: Comparison, weights: Weights
) -> list[Candidate]:
    """The candidates, with each lane's score mixed with that of their nearest neighbours.

    ``score = 0.6 · own + 0.4 · mean of the neighbours', weighted by similarity``, for either lane,
    so that the lanes keep the weights that the overlay gives them. The share is less than 0.4 if
    the neighbours are far. Copies of a text are not its neighbours. The candidate with the highest
    score is not changed and so stays first: if one passage answers literally, it is not replaced by
    several that resemble each other.

    Args:
        candidates: the allowed candidates.
        comparison: of those that take part; the others are not changed.
        weights: of the score's terms.

    Returns:
        The same candidates in the same order; the lanes' terms stay in [0, 1].
    """
    by_id = {candidate.chunk_id: candidate for candidate in candidates}
    compared = [by_id[chunk_id] for chunk_id in comparison.chunk_ids]
    first = by_lanes(compared, weights)[:1]
    changed: dict[str, Candidate] = {}
    for position, neighbours in enumerate(nearest(comparison.cosines)):
        total = math.fsum(cosine for cosine, _ in neighbours)
        if not total or position in first:
            continue
        scores = [(cosine, compared[neighbour].score) for cosine, neighbour in neighbours]
        lexical = math.fsum(cosine * score.lexical for cosine, score in scores) / total
        semantic = math.fsum(cosine * score.semantic for cosine, score in scores) / total
        share = NEIGHBOUR_SHARE * min(1.0, total / len(neighbours) / NEAR_COSINE)
        candidate = compared[position]
        changed[candidate.chunk_id] = _mixed(
            candidate, "neighbours", share, (lexical, semantic), weights
        )
    return [changed.get(candidate.chunk_id, candidate) for candidate in candidates]


def apply_feedback(
    candidates: Sequence[Candidate], comparison: Comparison, weights: Weights
) -> list[Candidate]:
    """The candidates, with the feedback of the first ten mixed into the scores of both lanes.

    ``score = 0.85 · own + 0.15 · feedback``. The feedback is the weighted mean of the cosines with
    the first ten, without the candidate itself, divided by the highest; 1 for the first candidate,
    which so stays first, and 0 for candidates that were not compared.

    Args and returns are those of :func:`apply_neighbours`.
    """
    if len(comparison.chunk_ids) < 2:
        return list(candidates)
    by_id = {candidate.chunk_id: candidate for candidate in candidates}
    first = by_lanes([by_id[chunk_id] for chunk_id in comparison.chunk_ids], weights)
    scores, share = feedback(comparison.cosines, first[:FEEDBACK_CANDIDATES])
    if not share:
        return list(candidates)
    score_of = dict(zip(comparison.chunk_ids, scores, strict=True))
    changed = []
    for candidate in candidates:
        score = score_of.get(candidate.chunk_id, 0.0)
        changed.append(_mixed(candidate, "feedback", share, (score, score), weights))
    return changed


def by_lanes(candidates: Sequence[Candidate], weights: Weights) -> list[int]:
    """The positions of candidates that are ordered by chunk id, the best by their lanes first."""
    scores = [
        weights.lane_score(candidate.score.lexical, candidate.score.semantic)
        for candidate in candidates
    ]
    return sorted(range(len(scores)), key=lambda n: (-scores[n], n))


def similarities(passages: Sequence[Passage]) -> NDArray[np.float64]:
    """The cosines of the passages' terms, (n, n); 0 for a text with itself and its copies."""
    import numpy as np

    cosines = _cosines([_terms(_described(passage), passage.content) for passage in passages])
    numbers: dict[str, int] = {}
    copies = np.array(
        [numbers.setdefault(passage.content_hash, len(numbers)) for passage in passages]
    )
    cosines[copies[:, None] == copies] = 0.0
    return cosines


def nearest(cosines: NDArray[np.float64]) -> list[list[tuple[float, int]]]:
    """For each passage its nearest others as (cosine, position), nearest first.

    Passages without a common term are not near. Ties go to the lower position.
    """
    import numpy as np

    # Stable, so that ties stay in the order of the passages.
    nearest_positions = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
    values = np.take_along_axis(cosines, nearest_positions, axis=1)
    return [
        [(cosine, position) for cosine, position in zip(row, positions, strict=True) if cosine > 0]
        for row, positions in zip(values.tolist(), nearest_positions.tolist(), strict=True)
    ]


def feedback(cosines: NDArray[np.float64], first: Sequence[int]) -> tuple[list[float], float]:
    """How similar each passage is to the first ones, in [0, 1]; and the share of the feedback.

    Args:
        cosines: of all pairs, (n, n); 0 on the diagonal.
        first: the positions of the passages that represent the task, the best first.
    """
    import numpy as np

    weights = np.zeros(len(cosines))
    weights[list(first)] = 1 / np.log2(np.arange(len(first)) + 2)
    weights /= weights.sum()
    # Rounded, so that another order of summing gives the same.
    common = ((cosines @ weights) / np.maximum(1 - weights, 1e-9)).round(9)
    highest = float(common.max())
    if not highest:
        return [0.0] * len(cosines), 0.0
    pairs = len(first) * (len(first) - 1)
    agreement = round(float(cosines[np.ix_(first, first)].sum()) / pairs, 9) if pairs else 0.0
    scores = common / highest
    scores[first[0]] = 1.0
    return scores.tolist(), FEEDBACK_SHARE * min(1.0, agreement / AGREEMENT_COSINE)


def _mixed(
    candidate: Candidate,
    step: Literal["neighbours", "feedback"],
    share: float,
    lane_scores: tuple[float, float],
    weights: Weights,
) -> Candidate:
    score, (lexical, semantic) = candidate.score, lane_scores
    return candidate.with_score(
        score.with_lanes(
            step,
            (1 - share) * score.lexical + share * lexical,
            (1 - share) * score.semantic + share * semantic,
            weights,
        )
    )


def _described(passage: Passage) -> str:
    """What describes the passage besides its text: its document's title, and its tags."""
    return " ".join((passage.document.title, *passage.tags))


@lru_cache(maxsize=1024)
def _terms(description: str, content: str) -> dict[str, int]:
    """How often a text with its description has each term."""
    # Cached, because the next request often has many of the same candidates.
    text = f"{description} {content}"
    words = [word for word in words_of(text) if word not in ENGLISH]
    if not is_unspaced(text):
        return Counter([word[:PREFIX_LETTERS] for word in words])
    # Imported here: its patterns would take a tenth of a cold start.
    from rolebundle.text.forms import forms

    pieces = forms(text, ())
    prefixes = Counter([word[:PREFIX_LETTERS] for word in words if not is_unspaced(word)])
    return {**prefixes, **Counter(pieces.pairs or pieces.letters)}


def _cosines(texts: Sequence[Mapping[str, int]]) -> NDArray[np.float64]:
    """The cosines of all pairs of texts, (n, n), each term weighted by tf · idf.

    ``tf = ln(1 + count)``, ``idf = ln((n + 1) / texts with the term)``. A term that only one text
    has adds to the length of that text and to nothing else. Rounded, so that another order of
    summing gives the same.
    """
    import numpy as np

    columns: defaultdict[str, int] = defaultdict()
    columns.default_factory = columns.__len__  # A new term gets the next column.
    terms = np.array([columns[term] for text in texts for term in text], dtype=np.intp)
    if not columns:
        return np.zeros((len(texts), len(texts)))
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    counts = np.array([count for text in texts for count in text.values()])
    having = np.bincount(terms, minlength=len(columns))
    weights = np.log1p(counts) * np.log((len(texts) + 1) / having)[terms]
    lengths = np.sqrt(np.bincount(rows, weights * weights, minlength=len(texts)))
    shared = having[terms] > 1
    places = (np.cumsum(having > 1) - 1)[terms[shared]]
    matrix = np.zeros((len(texts), np.count_nonzero(having > 1)))
    matrix[rows[shared], places] = (weights / lengths[rows])[shared]
    return np.asarray((matrix @ matrix.T).round(9))
