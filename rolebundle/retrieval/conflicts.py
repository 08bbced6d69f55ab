"""Which passages of an answer disagree. Pure.

Two passages *conflict* if their documents are two, have the same trust tier, and

- one of them declares that it contradicts the other one (``contradicts``), or
- a sentence of each states the same thing with another figure, another date or one negation more
  (``rolebundle/text/disagreements.py``).

Records of what happened, such as changelogs, have no conflicts: each of their entries is about
another time. Neither have passages about different identifiers: "the buffer has 64 bytes" is true
of one driver, and "the buffer has 32 bytes" of another one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.retrieval.query import words_of
from rolebundle.text.sentences import Sentence, may_disagree, sentences, topic_of

MAX_COMPARED = 50
"""So many passages of an answer, the best, are compared with each other: this bounds the cost."""

_Index = defaultdict[str, list[int]]
"""Word → the numbers of the sentences that have it."""


class Conflict(NamedTuple):
    """Two passages that disagree.

    Attributes:
        first: the passage that ranks higher.
        second: the other one.
        values: what each says; ``None`` if the conflict is declared.
        relevance: how many words the sentences of the first one share with the task.
        outdated: the older one of both, if it was left out for its age.
    """

    first: Passage
    second: Passage
    values: tuple[str, str] | None = None
    relevance: int = 0
    outdated: Passage | None = None

    @property
    def sentence(self) -> str:
        """One sentence that names both passages and both values."""
        first, second = self.first.chunk_id, self.second.chunk_id
        if self.values is None:
            return f"{first} and {second} disagree, as one of their documents declares"
        values = f"{first} says {self.values[0]!r}, {second} says {self.values[1]!r}"
        return f"{values}, and the older one was left out" if self.outdated else values

    def older(self) -> Passage | None:
        """The older one, if both are dated and the conflict is not declared.

        ``None`` if only the newer one was filed by an agent: it replaces nothing that others wrote.
        """
        dates = self.first.document.updated_at, self.second.document.updated_at
        if self.values is None or None in dates or dates[0] == dates[1]:
            return None
        # Dates are ISO 8601 in UTC, so that they sort as text.
        older, newer = self.first, self.second
        if str(dates[0]) > str(dates[1]):
            older, newer = newer, older
        is_agents = newer.document.origin == "agent" and older.document.origin != "agent"
        return None if is_agents else older

    def note(self) -> str:
        """Why the older one is left out."""
        newer, older = self.first, self.second
        values = self.values or ("", "")
        if self.older() is self.first:
            newer, older, values = older, newer, values[::-1]
        day = str(newer.document.updated_at)[:10]
        return f"{newer.chunk_id} of {day} is newer and says {values[0]!r}, not {values[1]!r}"


class Comparison:
    """Compares passages one after the other, each with those that were added before it.

    Sentences are found by the words that they share, because only few sentences of an answer are
    alike. A sentence without a figure can only disagree with one that has more or fewer negations.
    """

    def __init__(self, task: str) -> None:
        """If two passages disagree in several sentences, the nearest to the task is reported."""
        self._topic = topic_of(task)
        self._passages: list[Passage] = []
        self._sentences: list[tuple[int, Sentence]] = []
        self._with_figures: _Index = defaultdict(list)
        self._negated: _Index = defaultdict(list)
        self._plain: _Index = defaultdict(list)

    def add(self, passage: Passage, among: Container[str] | None = None) -> list[Conflict]:
        """Add a passage, and return its conflicts with earlier ones, in their order.

        Args:
            passage: the passage.
            among: the chunk ids of the earlier passages that count; ``None`` for all.
        """
        if len(self._passages) >= MAX_COMPARED:
            return []
        counting = {
            number: earlier
            for number, earlier in enumerate(self._passages)
            if among is None or earlier.chunk_id in among
        }
        own = () if _is_record(passage) else sentences(passage.content)
        similar: dict[int, list[tuple[Sentence, Sentence]]] = defaultdict(list)
        for sentence in own:
            for number, earlier in self._similar(sentence, counting):
                similar[number].append((earlier, sentence))
        conflicts = [
            _conflict(earlier, passage, similar.get(number, ()), self._topic)
            for number, earlier in counting.items()
        ]
        for sentence in own:
            self._remember(len(self._passages), sentence)
        self._passages.append(passage)
        return [conflict for conflict in conflicts if conflict]

    def _similar(self, sentence: Sentence, counting: Container[int]) -> list[tuple[int, Sentence]]:
        """The earlier sentences that may disagree, each with the number of its passage."""
        indexes = [self._negated, self._plain] if sentence.negations else [self._negated]
        if sentence.has_figure:
            indexes.append(self._with_figures)
        shared = Counter(
            chain.from_iterable(
                index[word] for index in indexes for word in sentence.words if word in index
            )
        )
        entries = (self._sentences[number] for number, count in shared.items() if count > 1)
        return [
            (number, earlier)
            for number, earlier in entries
            if number in counting and may_disagree(earlier, sentence)
        ]

    def _remember(self, passage: int, sentence: Sentence) -> None:
        indexes = [self._negated if sentence.negations else self._plain]
        if sentence.has_figure:
            indexes.append(self._with_figures)
        for index in indexes:
            for word in sentence.words:
                index[word].append(len(self._sentences))
        self._sentences.append((passage, sentence))


def _conflict(
    first: Passage,
    second: Passage,
    similar: Sequence[tuple[Sentence, Sentence]],
    topic: frozenset[str],
) -> Conflict | None:
    """The conflict of two passages; ``similar`` are pairs of their sentences."""
    first_document, second_document = first.document, second.document
    if (
        first_document.trust_tier != second_document.trust_tier
        or first_document.document_id == second_document.document_id
    ):
        return None
    if _declares(first, second) or _declares(second, first):
        return Conflict(first, second)
    if not similar or _identifiers(first) != _identifiers(second):
        return None
    # Imported here: most answers do not need its patterns.
    from rolebundle.text.disagreements import disagreement

    nearest = sorted(similar, key=lambda pair: -len(pair[0].words & topic))
    for first_sentence, second_sentence in nearest:
        if values := disagreement(first_sentence.text, second_sentence.text):
            return Conflict(first, second, values, len(first_sentence.words & topic))
    return None


def _declares(passage: Passage, claimed_passage: Passage) -> bool:
    claimed = passage.document.contradicts
    return bool(claimed) and (
        claimed_passage.document.document_id in claimed or claimed_passage.path in claimed
    )


# -- what a passage is about ---------------------------------------------------------------------

_RECORDS = frozenset("changelog changelogs changes news history journal".split())


def _is_record(passage: Passage) -> bool:
    """Whether the document is a record of what happened, by its title, file name or type."""
    document = passage.document
    name = passage.path.rpartition("/")[2]
    words = words_of(f"{document.title} {name} {document.document_type}")
    return not _RECORDS.isdisjoint(words) or "release notes" in " ".join(words)


def _identifiers(passage: Passage) -> frozenset[str]:
    subject = " ".join((passage.document.title, *passage.headings[-1:]))
    return _own_identifiers(subject, passage.content)


@lru_cache(maxsize=1024)
def _own_identifiers(subject: str, content: str) -> frozenset[str]:
    """The identifiers in title and heading that the text has, too.

    The others may be a number of the document.
    """
    from rolebundle.text.statements import identifiers

    content = content.lower()
    return frozenset(name for name in identifiers(subject) if name in content)
