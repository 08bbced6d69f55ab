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
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rolebundle.contracts.candidate import Candidate, Filtered
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieve.query import words_of
from rolebundle.retrieve.stop_words import STOP_WORDS

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

# Thai, Lao, Myanmar, Khmer; Chinese, Japanese; Korean, whose endings are not set apart.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)

_Near = list[tuple[float, int]]


def supported(
    allowed: Sequence[Filtered], overlay: Overlay | None, fusion: Fusion = "weighted"
) -> list[Filtered]:
    """The candidates with each lane's score mixed with that of their nearest neighbours.

    ``score = 0.6 · own + 0.4 · mean of the neighbours', weighed by similarity``, for either lane
    alike, so that the lanes keep the weights that the overlay gives them; less than 0.4 where the
    nearest are far. Copies of a text are not
    its neighbours. With ``rrf`` nothing is changed: there the rank is what counts.

    Args:
        allowed: what policy allows.
        overlay: for the lanes' weights, by which the best are found that take part.
        fusion: how the scores were normalized.

    Returns:
        The same candidates in the same order.
    """
    if fusion == "rrf":
        return list(allowed)
    policy = overlay.retrieval_policy if overlay else RetrievalPolicy()
    best = sorted(allowed, key=lambda one: _by_lanes(one.candidate, policy))[:AMONG]
    near = nearest([one.candidate.passage for one in best])
    mixed = {
        one.candidate.passage.chunk_id: _mixed(one, [(w, best[i].candidate) for w, i in found])
        for one, found in zip(best, near, strict=True)
    }
    return [mixed.get(one.candidate.passage.chunk_id, one) for one in allowed]


def _by_lanes(candidate: Candidate, policy: RetrievalPolicy) -> tuple[float, str]:
    by_words = policy.lexical_weight * candidate.lexical
    return -(by_words + policy.semantic_weight * candidate.semantic), candidate.passage.chunk_id


def nearest(passages: Sequence[Passage]) -> list[_Near]:
    """For each passage its nearest others: (cosine of their terms, position), nearest first.

    Those that have no term in common are not near; ties go to the lesser chunk id.
    """
    similar = _similarities(_weighed([_terms(one) for one in passages]))
    found: list[_Near] = []
    for own, others in zip(passages, similar, strict=True):
        ordered = sorted(
            (-cosine, passages[position].chunk_id, position)
            for position, cosine in others.items()
            if passages[position].content_hash != own.content_hash
        )
        found.append([(-negative, position) for negative, _, position in ordered[:NEIGHBOURS]])
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


def _terms(passage: Passage) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word in words_of(f"{passage.document.title} {passage.content}"):
        if word in STOP_WORDS:
            continue
        if word.isascii() or not _UNSPACED.search(word):
            counts[word[:LETTERS]] += 1
        else:
            counts.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return counts


def _weighed(texts: Sequence[Counter[str]]) -> list[dict[str, float]]:
    """Each text's terms, weighed by how often it has them and how few others do, at unit length.

    A term that no other text has counts for the length and is left out.
    """
    having = Counter(term for text in texts for term in text)
    informs = {term: math.log((len(texts) + 1) / count) for term, count in having.items()}
    weighed: list[dict[str, float]] = []
    for text in texts:
        weights = {term: math.log1p(count) * informs[term] for term, count in text.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        weighed.append(
            {term: weight / length for term, weight in weights.items() if having[term] > 1}
        )
    return weighed


def _similarities(texts: Sequence[dict[str, float]]) -> list[dict[int, float]]:
    """The cosines of all pairs that share a term."""
    holders: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for position, text in enumerate(texts):
        for term, weight in text.items():
            holders[term].append((position, weight))
    found: list[dict[int, float]] = [{} for _ in texts]
    # In the terms' order of appearance, so that sums come out the same to the last bit.
    for held in holders.values():
        for before, (position, weight) in enumerate(held):
            for other, others_weight in held[:before]:
                product = weight * others_weight
                found[position][other] = found[position].get(other, 0.0) + product
    for position, others in enumerate(found):
        for other, cosine in list(others.items()):
            if other < position:
                found[other][position] = cosine
    return found
