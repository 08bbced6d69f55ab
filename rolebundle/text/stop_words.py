"""Function words per language: removed from queries, and used to detect the language of a text.

``stop_words.toml`` has them. The language of a text is detected by lists of the most frequent
words, so that what is indexed does not depend on how complete a list of function words is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rolebundle.text.spellings import folded

_TABLES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
ENGLISH_STOP_WORDS = frozenset(_TABLES["english"].split())

NEGATIONS = frozenset("no not never none nobody nothing neither nor cannot without nowhere".split())
"""English words that deny; besides the contractions that end with "n't"."""

NUMBER_WORDS: dict[str, float] = {
    word: float(number)
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split(),
        start=1,
    )
}
NUMBER_WORDS |= {
    word: 10.0 * number
    for number, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), start=3)
}
"""English numbers as words, and their values."""


FREQUENT_WORDS = {code: frozenset(words.split()) for code, words in _TABLES["frequent"].items()}
"""Language code (ISO 639-1) → its most frequent words."""
ALSO_ENGLISH = frozenset(_TABLES["also_english"].split())
"""Function words that in an English question mean something else: they show no other language."""


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def _with_endings(words: str) -> Iterator[str]:
    for stem, *endings in (word.split("/") for word in words.split()):
        yield from (stem, *(stem + ending for ending in endings))


STOP_WORDS = {
    code: words.union(_with_endings(_TABLES["further"][code]))
    for code, words in FREQUENT_WORDS.items()
} | {"en": ENGLISH_STOP_WORDS}
"""Language code (ISO 639-1) → all function words."""


@cache
def stop_words_of(languages: tuple[str, ...]) -> frozenset[str]:
    """What is no content word in a task of these languages: English words are none in any.

    With spellings without marks: ``für`` is also ``fur`` and ``fuer``. A single letter without a
    mark may be the name of something in any language.
    """
    words = frozenset[str]().union(*(STOP_WORDS.get(language, ()) for language in languages))
    words |= {folded(word) for word in words} | {word.translate(_UMLAUTS) for word in words}
    return ENGLISH_STOP_WORDS.union(w for w in words if len(w) > 1 or not w.isascii())
