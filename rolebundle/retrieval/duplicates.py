"""Candidates that say again what a better one says. Pure.

A candidate is a *duplicate* of a better one if it has the same text, or a *near-duplicate*: most of
the runs of three words are the same (Broder, "On the resemblance and containment of documents",
1997), and nothing that tells texts apart differs. That is a figure, a date, a negation, a name, an
identifier, or a word of the title that only the own text has. Templates differ in little more than
these: the manuals of two functions, the rules for two illnesses, a rule and its new version. A high
cosine does not tell them apart (docs/quality.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, Self

from rolebundle.contracts.document import Passage
from rolebundle.retrieval.candidate import Candidate

NEAR_DUPLICATE = 0.8
"""Near-duplicates have at least this Jaccard similarity of word shingles."""
MIN_SHINGLES = 20
"""In a shorter text every word and sign counts."""
SHINGLE_WORDS = 3
NEAR_DUPLICATE_WINDOW = 50
"""Candidates are compared with the best so many different texts; exact copies with all."""

_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~–—…“”‘’·•"
_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))

_EXACT = frozenset(("code", "table"))
"""In source code and in tables any word or sign may make the difference."""


class _Text(NamedTuple):
    """What of a passage is compared. ``subject`` is its title and its headings."""

    content: str
    subject: str
    is_exact: bool

    @classmethod
    def of(cls, passage: Passage) -> Self:
        subject = " ".join((passage.document.title, *passage.headings))
        return cls(passage.content, subject, passage.content_type in _EXACT)


def mark_duplicates(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in order; a duplicate has the chunk id of the better candidate.

    Superseded candidates are not compared: a newer version of a document may have the same text,
    and must not be rejected as a copy of the old one. What an agent filed displaces nothing that
    others wrote.
    """
    originals: dict[str, Passage] = {}
    compared: list[tuple[_Text, Passage]] = []
    marked: list[Candidate] = []
    for candidate in ranked:
        if candidate.is_superseded:
            marked.append(candidate)
            continue
        passage = candidate.passage
        original = originals.get(passage.content_hash)
        if original is not None and not _may_displace(original, passage):
            original = None
        # The window counts different texts, so that copies of the best cannot fill it.
        if original is None and len(compared) < NEAR_DUPLICATE_WINDOW:
            text = _Text.of(passage)
            original = next(
                (
                    compared_passage
                    for other_text, compared_passage in compared
                    if _may_displace(compared_passage, passage) and _are_near(text, other_text)
                ),
                None,
            )
            if original is None:
                compared.append((text, passage))
        known = originals.get(passage.content_hash)
        if known is None or not _may_displace(known, passage):
            originals[passage.content_hash] = original or passage
        marked.append(
            candidate if original is None else candidate._replace(duplicate_of=original.chunk_id)
        )
    return marked


def _may_displace(original: Passage, duplicate: Passage) -> bool:
    return original.document.origin != "agent" or duplicate.document.origin == "agent"


# Cached, because a deeper search and the next request compare many of the same passages again.
@lru_cache(maxsize=1 << 15)
def _are_near(first_text: _Text, second_text: _Text) -> bool:
    first, second = _shingles(first_text.content), _shingles(second_text.content)
    # The Jaccard similarity cannot exceed the ratio of the sizes, which is cheap to compare.
    if len(first) < NEAR_DUPLICATE * len(second) or len(second) < NEAR_DUPLICATE * len(first):
        return False
    if second.isdisjoint(_sample(first)):
        return False
    shared = len(first & second)
    if shared < NEAR_DUPLICATE * (len(first) + len(second) - shared):
        return False
    if shared == len(first) == len(second) and _folded(first_text.content) == _folded(
        second_text.content
    ):
        return True
    is_short = min(len(first), len(second)) < MIN_SHINGLES
    return not is_short and not _are_distinct(first_text, second_text)


@lru_cache(maxsize=1024)
def _shingles(text: str) -> frozenset[int]:
    """The hashes of the runs of three words."""
    words = _words(text) or [text]
    if len(words) < SHINGLE_WORDS:
        return frozenset([hash(tuple(words))])
    return frozenset(map(hash, zip(words, words[1:], words[2:], strict=False)))


def _sample(shingles: frozenset[int]) -> Iterator[int]:
    """So many shingles that a near-duplicate must share one: it lacks at most a fifth of them.

    One is added for rounding.
    """
    return islice(shingles, int((1 - NEAR_DUPLICATE) * len(shingles)) + 2)


def _words(text: str) -> list[str]:
    """The words without punctuation, which differs between the formats of a document."""
    return text.casefold().translate(_SPACES).split()


def _folded(text: str) -> list[str]:
    return text.casefold().split()


def _are_distinct(first_text: _Text, second_text: _Text) -> bool:
    if first_text.is_exact or second_text.is_exact:
        return True
    # Near-duplicates differ in few words, so that only few are looked at.
    first, second = _word_pairs(first_text.content), _word_pairs(second_text.content)
    differing = _distinctions(first - second) ^ _distinctions(second - first)
    if differing and not differing <= _distinctions(first & second):
        return True
    words, second_words = _distinct_words(first_text.content), _distinct_words(second_text.content)
    return not (
        _distinct_words(first_text.subject).isdisjoint(words - second_words)
        and _distinct_words(second_text.subject).isdisjoint(second_words - words)
    )


@lru_cache(maxsize=1024)
def _distinct_words(text: str) -> frozenset[str]:
    return frozenset(_words(text))


@lru_cache(maxsize=1024)
def _word_pairs(text: str) -> frozenset[tuple[str, str]]:
    """Each word after the one before it, with punctuation; an empty one before the first."""
    words = text.replace("’", "'").split()
    return frozenset(zip(["", *words], words, strict=False))


def _distinctions(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """What tells a text from another one: figures, names, identifiers, negations."""
    return {_distinction(before, word) for before, word in pairs} - {""}


@lru_cache(maxsize=8192)
def _distinction(before: str, word: str) -> str:
    """The word in lower case if it tells texts apart, else an empty text."""
    from rolebundle.text.sentences import denies  # Needed for few texts.
    from rolebundle.text.stop_words import NUMBER_WORDS

    # A name at the start of a sentence cannot be recognized.
    is_start = not before.strip(_PUNCTUATION) or before[-1] in ".!?:"
    word = word.strip(_PUNCTUATION)
    folded = word.lower()
    is_name = not word.islower() and not (is_start and word.istitle())
    is_plain = word.replace("-", "").replace("'", "").isalpha()
    tells_apart = is_name or not is_plain or folded in NUMBER_WORDS or denies(folded)
    return folded if tells_apart else ""
