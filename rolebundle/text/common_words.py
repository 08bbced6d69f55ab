"""How common words are in English, by the order of a vocabulary that was made from much text.

The vocabulary is that of the model all-MiniLM-L6-v2 (BERT's), which has its words by frequency.
"""

from __future__ import annotations

import math
from functools import cache

from rolebundle.resources import ENGLISH_VOCABULARY

_FIRST_WORD = "the"
ORDINARY_PLACE = 6_000
"""Words up to this place are ordinary: that a text lacks one of them says little."""


def rarity(word: str) -> float:
    """How rare a word is in English, in [0, 1]: by Zipf's law the logarithm of its place.

    1 for a word that the vocabulary does not have: a name, an identifier, another language.
    """
    places = _places()
    place = places.get(word.lower())
    return 1.0 if place is None else math.log(place) / math.log(len(places))


def is_english(word: str) -> bool:
    """Whether the vocabulary has the word."""
    return word.lower() in _places()


def is_ordinary(word: str) -> bool:
    """Whether it is one of the most frequent words of English."""
    return _places().get(word.lower(), ORDINARY_PLACE) < ORDINARY_PLACE


@cache
def _places() -> dict[str, int]:
    """Word → its place by frequency, from 1. Parts of words ("##ing") are in it, and match none."""
    words = ENGLISH_VOCABULARY.read_text(encoding="utf-8").split("\n")
    first = words.index(_FIRST_WORD)
    return {word: place for place, word in enumerate(words[first:], start=1)}
