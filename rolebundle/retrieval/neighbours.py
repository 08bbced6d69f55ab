"""Step 3c: a passage is judged together with the passages that are about the same. Pure.

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
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.contracts.candidate import Candidate, Filtered
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.rerank import beside_lanes, best_by_lanes, lane_weights
from rolebundle.text.forms import forms, is_unspaced
from rolebundle.text.stop_words import ENGLISH

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


class Circle(NamedTuple):
    """The best candidates by their lanes, ordered by chunk id, and how similar they are."""

    best: list[Filtered]
    cosines: NDArray[np.float64]
    """Shape (n, n), in [0, 1]; 0 for a text with itself and with its copies."""
    beside: list[float]
    """What metadata and vocabulary add to each one's score."""


def circle(
    allowed: Sequence[Filtered], overlay: Overlay | None, fusion: Fusion = "weighted"
) -> Circle:
    """Those of the candidates that judge each other; the overlay is for the weights."""
    best = best_by_lanes(allowed, overlay, fusion, AMONG)
    best.sort(key=lambda one: one.candidate.passage.chunk_id)
    cosines = similarities([one.candidate.passage for one in best])
    return Circle(best, cosines, [beside_lanes(one, overlay) for one in best])


def supported(
    allowed: Sequence[Filtered],
    overlay: Overlay | None,
    fusion: Fusion = "weighted",
    among: Circle | None = None,
) -> list[Filtered]:
    """The candidates with each lane's score mixed with that of their nearest neighbours.

    ``score = 0.6 · own + 0.4 · mean of the neighbours', weighed by similarity``, for either lane
    alike, so that the lanes keep the weights that the overlay gives them; less than 0.4 where the
    nearest are far. Copies of a text are not its neighbours. The first of all, by lanes, metadata
    and vocabulary, is left as it is, so that it stays first: whoever asks for the one passage that
    says it in so many words gets that, however many others resemble each other. With ``rrf``
    nothing is changed: there the rank is what counts.

    Args:
        allowed: what policy allows.
        overlay: for the lanes' weights, by which the best are found that take part.
        fusion: how the scores were normalized.
        among: the best, where they have been found already.

    Returns:
        The same candidates in the same order.
    """
    if fusion == "rrf":
        return list(allowed)
    among = among or circle(allowed, overlay, fusion)
    best, near = among.best, nearest(among.cosines)
    for first in first_of(among, best, overlay, fusion)[:1]:
        near[first] = []
    mixed = {
        one.candidate.passage.chunk_id: _mixed(one, [(w, best[i].candidate) for w, i in found])
        for one, found in zip(best, near, strict=True)
    }
    return [mixed.get(one.candidate.passage.chunk_id, one) for one in allowed]


def first_of(
    among: Circle,
    candidates: Sequence[Filtered],
    overlay: Overlay | None,
    fusion: Fusion = "weighted",
) -> list[int]:
    """The positions of a circle's candidates, the first by all that is known of them first."""
    policy = overlay.retrieval_policy if overlay else RetrievalPolicy()
    by_words, by_meaning = lane_weights(policy, fusion)
    known = [
        by_words * one.candidate.lexical + by_meaning * one.candidate.semantic + beside
        for one, beside in zip(candidates, among.beside, strict=True)
    ]
    return sorted(range(len(known)), key=lambda position: (-known[position], position))


def similarities(passages: Sequence[Passage]) -> NDArray[np.float64]:
    """The cosines of the passages' terms, (n, n); 0 for a text with itself and with its copies."""
    import numpy as np  # Only where the semantic lane answers, which has it loaded.

    cosines = _cosines([_terms(_about(one), one.content) for one in passages])
    texts: dict[str, int] = {}
    copies = np.array([texts.setdefault(one.content_hash, len(texts)) for one in passages])
    cosines[copies[:, None] == copies] = 0.0
    return cosines


def nearest(cosines: NDArray[np.float64]) -> list[_Near]:
    """For each passage its nearest others: (cosine of their terms, position), nearest first.

    Those that have no term in common are not near; ties go to the first.
    """
    import numpy as np

    # Stable, so that ties stay in the order of the passages.
    others = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
    weights = np.take_along_axis(cosines, others, axis=1)
    return [
        [(weight, other) for weight, other in zip(near, near_by, strict=True) if weight > 0]
        for near, near_by in zip(weights.tolist(), others.tolist(), strict=True)
    ]


def _mixed(filtered: Filtered, near: Sequence[tuple[float, Candidate]]) -> Filtered:
    total = math.fsum(weight for weight, _ in near)
    if not total:
        return filtered
    own = filtered.candidate
    share = SHARE * min(1.0, total / len(near) / NEAR)
    lexical = math.fsum(weight * one.lexical for weight, one in near) / total
    semantic = math.fsum(weight * one.semantic for weight, one in near) / total
    return filtered.with_lanes(
        (1 - share) * own.lexical + share * lexical,
        (1 - share) * own.semantic + share * semantic,
    )


def _about(passage: Passage) -> str:
    """What is said of the passage: the title of its document, and its tags."""
    return " ".join((passage.document.title, *passage.tags))


@lru_cache(maxsize=1024)
def _terms(about: str, content: str) -> dict[str, int]:
    """How often a text has each term, with what is said of it."""
    # Cached, because one question's candidates are often the next one's, too.
    text = f"{about} {content}"
    words = [word for word in words_of(text) if word not in ENGLISH]
    if not is_unspaced(text):
        return Counter([word[:LETTERS] for word in words])
    pieces = forms(text, ())
    beginnings = Counter([word[:LETTERS] for word in words if not is_unspaced(word)])
    return {**beginnings, **Counter(pieces.pairs or pieces.letters)}


def _cosines(texts: Sequence[Mapping[str, int]]) -> NDArray[np.float64]:
    """The cosines of all pairs of texts, (n, n): by how often each has a term, and how few do.

    A term that no other text has counts for the length of its own and for nothing else. Rounded,
    so that another order of summing gives the same.
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
