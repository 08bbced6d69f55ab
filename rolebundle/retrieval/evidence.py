"""How much of the task the visible corpus supports, on an absolute scale. Pure.

BM25 and cosines only order passages: every task has a best passage. Evidence is what a passage has
of the task in itself: the share of the task's words, weighted by how rare they are, and how close
its meaning is, between the embedding model's noise and what it gives to related texts.

A word's weight is ``ln(1 + N / df)`` in nats, for ``df`` of ``N`` visible chunks; a word that no
chunk has weighs as much as a word of one chunk. ``unit`` is the weight of such a word.

docs/decisions/0021 has the reasons for the constants, and the formula of the role's share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.contracts.index import Noise
from rolebundle.contracts.terms import TaskSupport

BEST_BY_WORDS, BEST_BY_MEANING = 12, 3
"""The best by BM25 and by cosine, so many of each, decide about the evidence for a task."""

OFF_TOPIC_STRENGTH = 0.57
OFF_TOPIC_WORDS = 0.7
"""The best passage of an off-topic task is under this strength by more than this many words of the
task. So a missing word of a short task is no reason."""
CLOSE_TO_TASK = 0.65
"""If the best passage is this close in meaning, the task is not off-topic, whatever its words."""
UNREAD_CONFIDENCE = 0.2
"""A model that reads a task with less confidence knows pairs of letters, and no words of it."""
MAX_TASK_SIZE = 8.0
"""A longer task counts as a task of this many words: no passage has half of a long story."""
NEARLY_NOTHING = 0.25
"""If all words of a task occur somewhere, it is off-topic only if no passage is stronger."""
WEAK_STRENGTH = 0.5
"""Up to this strength the evidence is weak."""
OFF_TOPIC_COVERAGE, WEAK_COVERAGE = 0.15, 0.3
"""The thresholds if meanings were not searched; the first is hardly a word of the task."""
RARE_NAME = 0.8
"""A name with at least this weight, in units, is rare."""
NAME_COVERAGE = OFF_TOPIC_COVERAGE
"""A name counts in a passage with this coverage: one name of a long task may occur by chance."""

HAS_WORDS, IS_CLOSE = 0.25, 0.5
"""A passage with this coverage or this closeness is evidence for the task."""

MAX_ROLE_FACTOR = 2.2
ROLE_FACTOR_STEEPNESS = 4
HALF_SPECIFIC = 3.8
"""The specificity in nats that halves the role factor."""
BY_CHANCE = 0.1
"""Under this closeness the best passages may have the task's words by chance."""
ANSWERED_WORDS, ANSWERED_CLOSENESS = (6.0, 9.0), (0.3, 0.6)
"""A passage with so many nats of the task's words, and so close in meaning, begins to answer it, or
answers it."""
COMPLETE_WORDS = 3
"""A passage need not be close in meaning if it has all words of the task, and these are at least so
many: one or two words may meet by chance."""
ANSWERED_SPECIFICITY = 4.5
"""An answered task counts as at least so specific, in nats."""


class TaskWords(NamedTuple):
    """The task's content words, and how many of the visible chunks have each.

    Attributes:
        frequencies: one for each word.
        chunks: how many chunks are visible.
        matches: rowid → the positions of the words that the chunk has, for the chunks in question.
        names: the positions of the words that look like the name of one thing.
        general: the positions of the words that name no topic.
    """

    frequencies: Sequence[int] = ()
    chunks: int = 0
    matches: Mapping[int, frozenset[int]] = MappingProxyType({})
    names: frozenset[int] = frozenset()
    general: frozenset[int] = frozenset()

    @property
    def topical(self) -> TaskWords:
        """The words that may name a topic."""
        if not self.general:
            return self
        topical_places = [
            place for place in range(len(self.frequencies)) if place not in self.general
        ]
        places = {place: number for number, place in enumerate(topical_places)}

        def moved(positions: Iterable[int]) -> frozenset[int]:
            return frozenset(places[place] for place in positions if place in places)

        return TaskWords(
            frequencies=[self.frequencies[place] for place in topical_places],
            chunks=self.chunks,
            matches={rowid: moved(positions) for rowid, positions in self.matches.items()},
            names=moved(self.names),
        )

    def weight(self, positions: Iterable[int]) -> float:
        """The sum of the weights of these words, in nats."""
        return math.fsum(
            math.log1p(self.chunks / max(1, self.frequencies[position])) for position in positions
        )

    @property
    def total(self) -> float:
        """The weight of all words, in nats."""
        return self.weight(range(len(self.frequencies)))

    @property
    def has_name(self) -> bool:
        """Whether a chunk in question has a rare name and more than hardly a word of the task."""
        return any(
            self.weight([position]) >= RARE_NAME * self.unit
            for matched in self.matches.values()
            if self.weight(matched) >= NAME_COVERAGE * self.total
            for position in matched & self.names
        )

    @property
    def unit(self) -> float:
        """The weight of a word that one chunk has, in nats."""
        return math.log1p(self.chunks)


class Support(NamedTuple):
    """What one passage has of the task.

    Attributes:
        matched: how many of the task's words it has.
        words: how many words the task has.
        coverage: their share of the weight of all words, in [0, 1].
        closeness: of its meaning, in [0, 1]; ``None`` if meanings were not searched.
    """

    matched: int
    words: int
    coverage: float
    closeness: float | None

    @property
    def strength(self) -> float:
        """The mean of coverage and closeness, in [0, 1]; without closeness the coverage."""
        return self.coverage if self.closeness is None else (self.coverage + self.closeness) / 2

    @property
    def is_for_task(self) -> bool:
        """Whether the passage has the task's words or is close in meaning."""
        return self.coverage >= HAS_WORDS or (self.closeness or 0.0) >= IS_CLOSE


class Evidence(NamedTuple):
    """What the visible corpus has of the task.

    Attributes:
        words: the task's words and who has them.
        noise: of the embedding model; ``None`` if meanings were not searched.
        cosines: rowid → cosine with the task.
        best: the support of the best passage.
        best_by_topic: the support of the best passage if only the words that may name a topic
            count.
        specificity: how much more of the task's words the best passage has than the best
            ``BEST_BY_WORDS`` have on average, in nats, at least 0.
        has_name: whether one of the passages that decide has a rare name of the task.
        has_topic: whether the task names a topic, and not only what it wants to read of all topics,
            such as a beginning or the newest.
        confidence: how well the embedding model reads the task, in (0, 1].
    """

    words: TaskWords
    noise: Noise | None
    cosines: Mapping[int, float]
    best: Support
    best_by_topic: Support
    specificity: float
    has_name: bool = False
    has_topic: bool = True
    confidence: float = 1.0

    def support(self, rowid: int) -> Support:
        """What a passage has of the task. Its words must have been looked up."""
        return _support(self.words, self.noise, self.cosines, rowid)

    @property
    def task(self) -> TaskSupport:
        """How well the corpus supports the task.

        ``off_topic``: some of its words are absent and nothing is close in meaning. ``weak``: its
        words occur but are common or far apart, or little is close in meaning. A task is not
        off-topic if a rare name of it occurs: names do not match by accident. General words of
        English, which may be rare where they are seldom used, do not make a task off-topic. If none
        of its words occur and the model does not read them either, closeness says nothing.
        """
        strength, words, topic = self.best.strength, self.words.topical, self.best_by_topic
        if not self.words.total:
            return "supported"
        may_be_off_topic = self.has_topic and not self.has_name
        if self.best.closeness is None:
            if may_be_off_topic and strength < OFF_TOPIC_COVERAGE:
                return "off_topic"
            return "weak" if strength < WEAK_COVERAGE else "supported"
        is_unread = self.confidence < UNREAD_CONFIDENCE
        if may_be_off_topic and is_unread and words.frequencies and not any(words.frequencies):
            return "off_topic"
        size = min(MAX_TASK_SIZE, words.total / words.unit)
        lacking = (OFF_TOPIC_STRENGTH - topic.strength) * size
        may_be_off_topic &= self.best.closeness < CLOSE_TO_TASK
        may_be_off_topic &= 0 in words.frequencies or topic.strength < NEARLY_NOTHING
        if may_be_off_topic and lacking > OFF_TOPIC_WORDS:
            return "off_topic"
        return "weak" if strength <= WEAK_STRENGTH else "supported"

    @property
    def certainty(self) -> float:
        """How surely the best passage answers the task, in [0, 1].

        It has rare words of the task, and it is close in meaning or has all of the task's words.
        Other passages may, too, so that it need not stand out.
        """
        best = self.best
        by_words = _share_of_range(best.coverage * self.words.total, ANSWERED_WORDS)
        if best.matched == best.words >= COMPLETE_WORDS:
            return by_words
        return by_words * _share_of_range(best.closeness or 0.0, ANSWERED_CLOSENESS)

    @property
    def role_factor(self) -> float:
        """What the role's share of the score is multiplied with: 2.2 for a vague task, then less.

        ``2.2 / (1 + (s / 3.8)⁴)``: if many passages have the task's words equally, the task cannot
        choose among them, and the role does; if one stands out, the task decides. ``s`` is the
        specificity with two corrections:

        - If meanings were searched and nothing is close (closeness under 0.1), the best passage may
          have the task's words by chance. ``s`` is smaller in proportion, unless one is a rare
          name.
        - If a passage surely answers the task, others may have its words, too: ``s`` is at least
          4.5 · ``certainty``.
        """
        specificity = self.specificity
        if self.best.closeness is not None and not self.has_name:
            specificity *= min(1.0, self.best.closeness / BY_CHANCE)
        specificity = max(specificity, ANSWERED_SPECIFICITY * self.certainty)
        return MAX_ROLE_FACTOR / (1 + (specificity / HALF_SPECIFIC) ** ROLE_FACTOR_STEEPNESS)

    @property
    def vagueness(self) -> float:
        """How vague the task is: 1 at the highest role factor, 0 from half of it on."""
        return max(0.0, 2 * self.role_factor / MAX_ROLE_FACTOR - 1)


def _share_of_range(value: float, limits: tuple[float, float]) -> float:
    """How far ``value`` is from the first limit to the second, in [0, 1]."""
    low, high = limits
    return min(1.0, max(0.0, (value - low) / (high - low)))


def best_passages(bm25: Mapping[int, float], cosines: Mapping[int, float]) -> list[int]:
    """The rowids that decide about the evidence: those of the best by BM25 and by cosine.

    Ties go to the one that comes first in the mapping.
    """
    best = (*_best(bm25, BEST_BY_WORDS), *_best(cosines, BEST_BY_MEANING))
    return list(dict.fromkeys(best))


def weigh_evidence(
    bm25: Mapping[int, float],
    cosines: Mapping[int, float],
    words: TaskWords,
    noise: Noise | None,
    confidence: float = 1.0,
) -> Evidence:
    """The evidence for a task in everything that is visible, allowed by the role or not.

    Args:
        bm25: rowid → BM25 against the task's terms; in the order that breaks ties.
        cosines: rowid → cosine with the task; in the order that breaks ties.
        words: with the matches of :func:`best_passages`.
        noise: of the embedding model; ``None`` if meanings were not searched.
        confidence: how well it reads the task, in (0, 1].
    """
    rowids, topical = best_passages(bm25, cosines), words.topical
    masses = [words.weight(words.matches.get(rowid, ())) for rowid in _best(bm25, BEST_BY_WORDS)]

    def best_by(words: TaskWords) -> Support:
        supports = (_support(words, noise, cosines, rowid) for rowid in rowids)
        no_support = Support(0, len(words.frequencies), 0.0, None)
        return max(supports, key=lambda support: support.strength, default=no_support)

    return Evidence(
        words=words,
        noise=noise,
        cosines=cosines,
        best=best_by(words),
        best_by_topic=best_by(topical),
        # Rounding may make the mean of twelve equal masses larger than each of them.
        specificity=max(0.0, max(masses, default=0.0) - math.fsum(masses) / BEST_BY_WORDS),
        has_name=words.has_name,
        confidence=confidence,
    )


def _support(
    words: TaskWords,
    noise: Noise | None,
    cosines: Mapping[int, float],
    rowid: int,
) -> Support:
    matched = words.matches.get(rowid, frozenset())
    total = words.total
    coverage = words.weight(matched) / total if total else 0.0
    closeness = None
    if noise is not None:
        closeness = noise.closeness(cosines.get(rowid, -1.0))
    return Support(len(matched), len(words.frequencies), coverage, closeness)


def _best(scores: Mapping[int, float], number: int) -> list[int]:
    return sorted(scores, key=lambda rowid: -scores[rowid])[:number]
