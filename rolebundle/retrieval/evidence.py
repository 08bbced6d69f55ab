"""How much of the task the visible corpus has, on an absolute scale. Pure.

BM25 and cosines only order passages: every task has a best passage. Evidence is what a passage has
of the task in itself: the share of the task's words, weighted by how rare they are (*coverage*),
and how close its meaning is, between the embedding model's noise and what it gives to related texts
(*closeness*).

A word's weight is ``r · ln(1 + N / df)`` in nats, for ``df`` of ``N`` visible chunks and its rarity
``r`` in English (``text/words.py``). For a word that no chunk has, ``df`` is 1.
With other wordings of the task (``also``) the coverage is the mean of all: an answer that fits one
guessed wording alone is thin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.contracts.documents import Noise, Passage
from rolebundle.contracts.terms import TaskSupport
from rolebundle.text.spellings import key_of
from rolebundle.text.words import stem

JUDGED_PER_RANKING = 5
"""The evidence is judged by the first 5 passages of the ranking, and by the best 5 by BM25."""
COVERAGE_WEIGHT, CLOSENESS_WEIGHT = 18, 10
"""The evidence is weak if ``18 · coverage + 10 · closeness`` is below ``ln(1 + N)`` for all these
passages. The bound grows with the number N of visible chunks, because among many of them one has
more of the words, and is closer, by chance. docs/quality.md has how both numbers were chosen."""
ENOUGH_COVERAGE, ENOUGH_CLOSENESS = 0.25, 0.5
"""A passage with this coverage or this closeness is evidence for the task."""
ENOUGH_SHARE, ENOUGH_NATS = 0.65, 24
"""BM25 counts fully if a passage has 65% of the task's words, by weight, or words of 24 nats."""
MIN_WORDS_FACTOR = 0.01
MAX_COMPARED = 12
"""How many of the best by BM25 are compared to see how specific the task is."""
SHARE_OF_MEAN = 0.4
"""The specificity is at least this share of the mean of what these have."""
_KIND_ATTRIBUTE = "evidence_kind"
_WORD = re.compile(r"[^\W_]+")


class Support(NamedTuple):
    """What one passage has of the task.

    Attributes:
        matched_words: how many of the task's own words it has.
        total_words: how many words the task has.
        coverage: the share of the weight of the words, in [0, 1]; the mean of all wordings.
        closeness: of its meaning, in [0, 1]; ``None`` if its cosine is not known.
        best_coverage: that of the wording of which it has most.
    """

    matched_words: int = 0
    total_words: int = 0
    coverage: float = 0.0
    closeness: float | None = None
    best_coverage: float = 0.0

    @property
    def is_for_task(self) -> bool:
        """Whether the passage has the words of a wording, or is close in meaning."""
        is_close = (self.closeness or 0.0) >= ENOUGH_CLOSENESS
        return self.best_coverage >= ENOUGH_COVERAGE or is_close


class Evidence(NamedTuple):
    """What the visible corpus has of the task: its content words, and its meaning.

    Attributes:
        frequencies: how many of the visible chunks have each word.
        chunks: how many chunks are visible.
        matches: rowid → the positions of the words that the chunk has, for the chunks in question.
        positions_by_wording: for the task, and then for each other wording, the positions of its
            words.
        rarities: how rare each word is in English, in [0, 1].
        noise: of the embedding model; ``None`` if meanings were not searched.
        cosines: rowid → cosine with the task.
        specificity: how far the best passage stands out among the best twelve, by rare words of
            the task; at least 0. See :meth:`with_scores`.
        words_factor: what the weight of BM25 is multiplied with; see :meth:`with_scores`.
        best_support: the support of the best of the first passages.
        task_support: ``off_topic`` if none of the task's words occurs and nothing is close in
            meaning; ``weak`` if the first passages have little of the words and of the meaning;
            else ``supported``.
    """

    frequencies: Sequence[int] = ()
    chunks: int = 0
    matches: Mapping[int, frozenset[int]] = MappingProxyType({})
    positions_by_wording: Sequence[frozenset[int]] = (frozenset(),)
    rarities: Sequence[float] = ()
    noise: Noise | None = None
    cosines: Mapping[int, float] = MappingProxyType({})
    specificity: float = 0.0
    words_factor: float = 1.0
    best_support: Support = Support()
    task_support: TaskSupport = "supported"

    def nats_of(self, positions: Iterable[int]) -> float:
        """The sum of the weights of these words, in nats."""
        weights = _weights(self.chunks, (*self.frequencies,), (*self.rarities,))
        return math.fsum(map(weights.__getitem__, positions))

    def _nats_found(self, *rowids: int) -> list[tuple[float, float]]:
        """For each wording with a weight: the weight of its words in the chunks, and of all."""
        matched = self._matched(*rowids)
        totals = [(wording, self.nats_of(wording)) for wording in self.positions_by_wording]
        return [(self.nats_of(matched & wording), total) for wording, total in totals if total]

    def _matched(self, *rowids: int) -> frozenset[int]:
        return frozenset.intersection(*(self.matches.get(row, frozenset()) for row in rowids))

    def support(self, *rowids: int) -> Support:
        """What a passage has of the task, or all of several have; their words were looked up."""
        own = self.positions_by_wording[0]
        known = [c for c in map(self._closeness, rowids) if c is not None]
        # If no word has a weight, because all are as common as "the", no passage lacks anything.
        shares = [found / total for found, total in self._nats_found(*rowids)] or [1.0]
        return Support(
            matched_words=len(self._matched(*rowids) & own),
            total_words=len(own),
            coverage=math.fsum(shares) / len(shares),
            closeness=min(known) if len(known) == len(rowids) else None,
            best_coverage=max(shares),
        )

    def with_scores(
        self,
        bm25: Mapping[int, float],
        cosines: Mapping[int, float],
        noise: Noise | None,
        exponent: float = 1.0,
    ) -> Evidence:
        """The evidence with the meaning and the specificity of the task, and the words' factor.

        It counts the twelve best passages by BM25, allowed by the role or not::

            specificity = max(best − mean, 0.4 · mean)
            words_factor = (max((share / 0.65)², nats / 24), between 0.01 and 1) ** exponent

        ``best`` and ``mean`` are of the sums of the rarities, in English, of the task's words in
        each passage; a missing passage counts as 0. In a large corpus all have many of the words,
        so that none stands out: there 0.4 of the mean counts.

        ``share`` and ``nats`` are, for a passage and a wording, the share of the wording's weight
        that the passage has, and this weight itself. The highest factor of all is taken. Every task
        has a best passage by BM25, also one that has a single word by chance. So BM25 counts less
        if even the best passages have few of the words.

        Args:
            bm25: rowid → BM25 against the task's terms; in the order that breaks ties. The matches
                of :func:`best_by_bm25` must be known.
            cosines: rowid → cosine with the task.
            noise: of the embedding model; ``None`` if meanings were not searched.
            exponent: above 0. A low one lets the words keep their weight, for a model that
                understands little of the task.
        """
        own = self.positions_by_wording[0]
        rarity_sums = [
            math.fsum(self.rarities[position] for position in self.matches[rowid] & own)
            for rowid in best_by_bm25(bm25)
        ]
        mean = math.fsum(rarity_sums) / MAX_COMPARED
        specificity = max(0.0, max(rarity_sums, default=0.0) - mean, mean * SHARE_OF_MEAN)
        factors = [
            max((found / total / ENOUGH_SHARE) ** 2, found / ENOUGH_NATS)
            for rowid in best_by_bm25(bm25)
            for found, total in self._nats_found(rowid)
        ]
        factor = min(1.0, max((MIN_WORDS_FACTOR, *factors))) ** exponent
        return self._replace(
            noise=noise, cosines=cosines, specificity=specificity, words_factor=factor
        )

    def with_support(self, rowids: Sequence[int]) -> Evidence:
        """The evidence with ``best_support`` and ``task_support``, by these passages (rowids)."""
        supports = [self.support(rowid) for rowid in rowids]
        best = max(supports, key=lambda support: support.coverage, default=Support())
        closest = max((self._closeness(rowid) or 0.0 for rowid in self.cosines), default=0.0)
        strengths = [
            COVERAGE_WEIGHT * support.coverage + CLOSENESS_WEIGHT * (support.closeness or 0.0)
            for support in supports
        ]
        task_support: TaskSupport = "supported"
        if not any(self.frequencies) and closest < ENOUGH_CLOSENESS:
            task_support = "off_topic"
        elif max(strengths, default=0.0) < math.log1p(max(1, self.chunks)):
            task_support = "weak"
        return self._replace(best_support=best, task_support=task_support)

    def missing(self, rowids: Sequence[int] | None = None) -> list[int]:
        """The positions of the task's own words that no visible passage has.

        Args:
            rowids: if given, only these passages count.
        """
        own = self.positions_by_wording[0]
        if rowids is None:
            return [position for position in sorted(own) if not self.frequencies[position]]
        found = frozenset[int]().union(*(self.matches.get(rowid, ()) for rowid in rowids))
        return sorted(own - found)

    def _closeness(self, rowid: int) -> float | None:
        cosine = self.cosines.get(rowid)
        return None if self.noise is None or cosine is None else self.noise.closeness(cosine)


@lru_cache(maxsize=256)
def _weights(
    chunks: int, frequencies: tuple[int, ...], rarities: tuple[float, ...]
) -> tuple[float, ...]:
    # Cached, because each passage is weighed several times.
    pairs = zip(frequencies, rarities, strict=True)
    return tuple(rarity * math.log1p(chunks / max(1, number)) for number, rarity in pairs)


def best_by_bm25(bm25: Mapping[int, float]) -> list[int]:
    """The rowids of the best by BM25; ties go to the one that comes first in the mapping."""
    return sorted(bm25, key=lambda rowid: -bm25[rowid])[:MAX_COMPARED]


# -- evidence kinds ------------------------------------------------------------------------------


def shown_kinds(kinds: Sequence[str], passage: Passage) -> list[str]:
    """The evidence kinds that a passage shows, in the order of ``kinds``.

    A passage shows a kind if the kind's words stand together, in their order, in its document type,
    in one of its tags, in a value of its document's attribute ``evidence_kind``, or in one of the
    headings above it. Case and punctuation do not count, and an English plural counts as its
    singular. So ``decision-record`` is shown by the document type ``decision-record``, the tag
    ``Decision Record`` and the heading "Decision records in force".
    """
    attributes = dict(passage.document.attributes)
    own = passage.document.document_type, *passage.tags, *passage.headings
    texts = [_normalized(text) for text in (*own, *attributes.get(_KIND_ATTRIBUTE, ()))]
    return [
        kind for kind in dict.fromkeys(kinds) if any(_normalized(kind) in text for text in texts)
    ]


@lru_cache(maxsize=4096)
def _normalized(text: str) -> str:
    """The words with a space before and after each, so that a part of a word is not found."""
    return f" {' '.join(map(stem, _WORD.findall(key_of(text))))} "
