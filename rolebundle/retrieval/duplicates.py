"""Candidates that say again what a better one says. Pure.

A candidate is a *duplicate* of a better one if it has the same text, or a *near-duplicate*: most of
the runs of three words are the same (Broder, "On the resemblance and containment of documents",
1997), and nothing that tells texts apart differs. That is a figure, a date, a negation, a name, an
identifier, or a word of the title that only the own text has. Templates differ in little more than
these: the manuals of two functions, the rules for two illnesses, a rule and its new version. A high
cosine does not tell them apart (docs/quality.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

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

_Shingles = frozenset[tuple[str, ...]]


class _Text(NamedTuple):
    passage: Passage
    shingles: _Shingles


def mark_duplicates(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in order; a duplicate has the chunk id of the better candidate.

    Superseded candidates are not compared: a newer version of a document may have the same text,
    and must not be rejected as a copy of the old one. What an agent filed displaces nothing that
    others wrote.
    """
    originals: dict[str, Passage] = {}
    compared: list[_Text] = []
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
            text = _Text(passage, _shingles(passage.content))
            sample = _sample(text.shingles)
            original = next(
                (
                    other.passage
                    for other in compared
                    if not other.shingles.isdisjoint(sample)
                    and _may_displace(other.passage, passage)
                    and _are_near(text, other)
                ),
                None,
            )
            if original is None:
                compared.append(text)
        known = originals.get(passage.content_hash)
        if known is None or not _may_displace(known, passage):
            originals[passage.content_hash] = original or passage
        marked.append(
            candidate if original is None else candidate._replace(duplicate_of=original.chunk_id)
        )
    return marked


def _may_displace(one: Passage, other: Passage) -> bool:
    return one.document.origin != "agent" or other.document.origin == "agent"


# Cached, because the next request often has many of the same candidates.
@lru_cache(maxsize=1024)
def _shingles(text: str) -> _Shingles:
    words = _words(text) or [text]
    if len(words) < SHINGLE_WORDS:
        return frozenset([tuple(words)])
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _words(text: str) -> list[str]:
    """The words without punctuation, which differs between the formats of a document."""
    return text.casefold().translate(_SPACES).split()


def _sample(shingles: _Shingles) -> list[tuple[str, ...]]:
    """So many shingles that a near-duplicate must share one: it lacks at most a fifth of them.

    One is added for rounding.
    """
    return list(islice(shingles, int((1 - NEAR_DUPLICATE) * len(shingles)) + 2))


def _are_near(one: _Text, other: _Text) -> bool:
    first, second = one.shingles, other.shingles
    # The Jaccard similarity cannot exceed the ratio of the sizes, which is cheap to compare.
    if len(first) < NEAR_DUPLICATE * len(second) or len(second) < NEAR_DUPLICATE * len(first):
        return False
    shared = len(first & second)
    if shared < NEAR_DUPLICATE * (len(first) + len(second) - shared):
        return False
    if one.passage.content.casefold().split() == other.passage.content.casefold().split():
        return True
    is_short = min(len(first), len(second)) < MIN_SHINGLES
    return not is_short and not _are_told_apart(one.passage, other.passage)


def _are_told_apart(one: Passage, other: Passage) -> bool:
    if {one.content_type, other.content_type} & _EXACT:
        return True
    if _distinctions(one.content) != _distinctions(other.content):
        return True
    words, others = set(_words(one.content)), set(_words(other.content))
    return not (
        _subject(one).isdisjoint(words - others) and _subject(other).isdisjoint(others - words)
    )


def _subject(passage: Passage) -> set[str]:
    return set(_words(" ".join((passage.document.title, *passage.headings))))


@lru_cache(maxsize=1024)
def _distinctions(text: str) -> frozenset[str]:
    """What tells a text from another one: figures, names, identifiers, negations."""
    from rolebundle.text.sentences import denies  # Needed for few texts.
    from rolebundle.text.stop_words import NUMBER_WORDS

    found = set()
    is_start = True
    for part in text.replace("’", "'").split():
        word = part.strip(_PUNCTUATION)
        folded = word.lower()
        is_name = not word.islower() and not (is_start and word.istitle())
        is_plain = word.replace("-", "").replace("'", "").isalpha()
        if word and (is_name or not is_plain or folded in NUMBER_WORDS or denies(folded)):
            found.add(folded)
        # A name at the start of a sentence cannot be recognized.
        is_start = not word or part[-1] in ".!?:"
    return frozenset(found)
