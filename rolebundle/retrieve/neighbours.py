"""Step 3b: a passage is judged together with the passages that are about the same. Pure.

Closely related texts tend to be relevant to the same questions (van Rijsbergen's cluster
hypothesis, 1979), so part of a candidate's score comes from its nearest neighbours among the
candidates: score regularization (Diaz, "Regularizing ad hoc retrieval scores", CIKM 2005), in one
step. A lane that missed a passage for its choice of words is put right by passages that it found.

Only what policy allows has a say, only texts that are in the pool are read, and nothing is looked
up: how telling a term is, is counted in the pool itself. Words count by their beginnings, which
does for many languages what a stemmer does for one, and scripts without spaces by pairs of letters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rolebundle.analysis.forms import forms, is_unspaced
from rolebundle.analysis.stop_words import ENGLISH
from rolebundle.contracts.candidate import Candidate, Filtered
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieve.query import words_of
from rolebundle.retrieve.rerank import best_by_lanes

NEIGHBOURS = 5
"""How many of the nearest are asked."""
SHARE = 0.4
"""Their share of the score, where they are near."""
NEAR = 0.1
"""The mean cosine from which they are; under it their share shrinks in proportion, to nothing."""
LETTERS = 5
"""A word's beginning that counts for the word."""
AMONG = 100
"""So many candidates, the best by their lanes, take part: this bounds the cost."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Near = list[tuple[float, int]]


def supported(
    allowed: Sequence[Filtered], overlay: Overlay | None, fusion: Fusion = "weighted"
) -> list[Filtered]:
    """The candidates with each lane's score mixed with that of their nearest neighbours.

    ``score = 0.6 · own + 0.4 · mean of the neighbours', weighed by similarity``, for either lane
    alike, so that the lanes keep the weights that the overlay gives them; less than 0.4 where the
    nearest are far. Copies of a text are not its neighbours. With ``rrf`` nothing is changed: there
    the rank is what counts.

    Args:
        allowed: what policy allows.
        overlay: for the lanes' weights, by which the best are found that take part.
        fusion: how the scores were normalized.

    Returns:
        The same candidates in the same order.
    """
    if fusion == "rrf":
        return list(allowed)
    best = best_by_lanes(allowed, overlay, fusion, AMONG)
    near = nearest([one.candidate.passage for one in best])
    mixed = {
        one.candidate.passage.chunk_id: _mixed(one, [(w, best[i].candidate) for w, i in found])
        for one, found in zip(best, near, strict=True)
    }
    return [mixed.get(one.candidate.passage.chunk_id, one) for one in allowed]


def nearest(passages: Sequence[Passage]) -> list[_Near]:
    """For each passage its nearest others: (cosine of their terms, position), nearest first.

    Those that have no term in common are not near; ties go to the lesser chunk id.
    """
    if len(passages) < 2:
        return [[] for _ in passages]
    import numpy as np  # Only where the semantic lane answers, which has it loaded.

    order = sorted(range(len(passages)), key=lambda position: passages[position].chunk_id)
    ordered = [passages[position] for position in order]
    cosines = _cosines([_terms(one.document.title, one.content) for one in ordered])
    texts: dict[str, int] = {}
    copies = np.array([texts.setdefault(one.content_hash, len(texts)) for one in ordered])
    cosines[copies[:, None] == copies] = 0.0
    # Stable, so that ties stay in the order of the ids.
    others = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
    weights = np.take_along_axis(cosines, others, axis=1)
    found: list[_Near] = [[] for _ in passages]
    for position, near, near_by in zip(order, weights.tolist(), others.tolist(), strict=True):
        pairs = zip(near, near_by, strict=True)
        found[position] = [(weight, order[other]) for weight, other in pairs if weight > 0]
    return found


def _mixed(filtered: Filtered, near: Sequence[tuple[float, Candidate]]) -> Filtered:
    total = math.fsum(weight for weight, _ in near)
    if not total:
        return filtered
    own = filtered.candidate
    share = SHARE * min(1.0, total / len(near) / NEAR)
    lexical = math.fsum(weight * one.lexical for weight, one in near) / total
    semantic = math.fsum(weight * one.semantic for weight, one in near) / total
    mixed = replace(
        own,
        lexical=(1 - share) * own.lexical + share * lexical,
        semantic=(1 - share) * own.semantic + share * semantic,
        lexical_alone=own.lexical,
        semantic_alone=own.semantic,
    )
    return replace(filtered, candidate=mixed)


@lru_cache(maxsize=1024)
def _terms(title: str, content: str) -> list[str]:
    # Cached, because one question's candidates are often the next one's, too.
    text = f"{title} {content}"
    words = [word for word in words_of(text) if word not in ENGLISH]
    if not is_unspaced(text):
        return [word[:LETTERS] for word in words]
    pieces = forms(text, ())
    spaced = [word[:LETTERS] for word in words if not is_unspaced(word)]
    return spaced + (pieces.pairs or pieces.letters)


def _cosines(texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The cosines of all pairs of texts, (n, n): by how often each has a term, and how few do.

    A term that no other text has counts for the length of its own and for nothing else. Rounded,
    so that another order of summing gives the same.
    """
    import numpy as np

    columns: defaultdict[str, int] = defaultdict()
    columns.default_factory = columns.__len__  # A new term gets the next column.
    at = [columns[term] for text in texts for term in text]
    if not columns:
        return np.zeros((len(texts), len(texts)))
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    cells, counts = np.unique(rows * len(columns) + np.array(at), return_counts=True)
    rows, terms = np.divmod(cells, len(columns))
    having = np.bincount(terms, minlength=len(columns))
    weights = np.log1p(counts) * np.log((len(texts) + 1) / having)[terms]
    lengths = np.sqrt(np.bincount(rows, weights * weights, minlength=len(texts)))
    shared = having[terms] > 1
    places = (np.cumsum(having > 1) - 1)[terms[shared]]
    matrix = np.zeros((len(texts), np.count_nonzero(having > 1)))
    matrix[rows[shared], places] = (weights / lengths[rows])[shared]
    return np.asarray((matrix @ matrix.T).round(9))
