"""Words of a text: how they are divided, counted and capitalized, and where sentences end."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import Stemmer

from rolebundle.resources import ENGLISH_VOCABULARY, data_file
from rolebundle.text.forms import forms
from rolebundle.text.languages import (
    ENGLISH_STOP_WORDS,
    IRREGULAR,
    STOP_WORDS,
    clear_language,
    latin_language,
    likely_languages,
    non_latin_language,
)

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_STEMMER = Stemmer.Stemmer("english", 0)  # Without a cache: `stem` has one.
_FIRST_FORMS = {form: first for first, *others in IRREGULAR for form in others}
_FORMS_BY_STEM = {_STEMMER.stemWord(line[0]): line for line in IRREGULAR}
_POSSESSIVE = re.compile(r"['’](?:s|t|re|ve|ll|d|m)$")
_SENTENCE = 300
"""Characters up to which a text may have few function words of its language."""
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[a-zA-Z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")


@lru_cache(maxsize=2048)
def language_of(text: str) -> str:
    """The language of a sentence or passage, as ISO 639-1 code; "und" if its script is unknown.

    English if it shows no other one.
    """
    if not text.isascii() and len(_LETTERS.findall(text)) > 2 * len(_LATIN.findall(text)):
        return non_latin_language(text) or "und"
    detected = latin_language(text)
    if detected in likely_languages(text):
        return detected
    return "en" if len(text) > _SENTENCE else clear_language(text) or "en"


@lru_cache(maxsize=2048)
def known_language(text: str) -> str:
    """The language of a sentence or passage; ``""`` if its words show none."""
    language = language_of(text)
    return clear_language(text) if language == "en" else language


class Stems(NamedTuple):
    """The words of a text: stems of all of them in their order, and of what it is about."""

    all: list[str]
    content: list[str]


def stems_of(text: str, language: str) -> Stems:
    """The stems of a text.

    A script without spaces has pairs of letters instead of stems.

    Args:
        text: any text.
        language: ISO 639-1 code.
    """
    if language != "en":
        of_content = forms(text, (language,), STOP_WORDS.get(language, frozenset()))
        content = [*of_content.stems, *of_content.pairs]
        return Stems(forms(text, (language,)).stems, content)
    stems, content = [], []
    for word in WORD.findall(text):
        lower = word.lower()
        if "'" in word or "’" in word:
            lower = _POSSESSIVE.sub("", lower)
        stems.append(stem(lower))
        if lower not in ENGLISH_STOP_WORDS and len(lower) > 1:
            content.append(stems[-1])
    return Stems(stems, content)


@lru_cache(maxsize=2048)
def content_words(text: str, sample: str = "") -> frozenset[str]:
    """The stems of the content words of a text; pairs of letters in a script without spaces.

    A few words seldom show their language, but the text ``sample`` of that language does.
    """
    return frozenset(stems_of(text, language_of(sample or text)).content)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The English stem of a word in lower case; of ``paid`` that of ``pay``."""
    return str(_STEMMER.stemWord(_FIRST_FORMS.get(word, word)))


def other_forms(word: str) -> list[str]:
    """The forms of an English word in lower case that have another stem: of ``pays``, ``paid``."""
    forms = _FORMS_BY_STEM.get(stem(word), ())
    return [form for form in forms if _STEMMER.stemWord(form) != _STEMMER.stemWord(word)]


_LONG_WORD = re.compile("[A-Z]{5,}(?![A-Za-z])")


def lower_capitals(text: str) -> str:
    """The text with its words of five or more capitals in lower case; these are seldom acronyms.

    If most of its letters are capitals, all of it is in lower case: ``"THE BOUNDARY LAYER"``
    becomes ``"the boundary layer"``, and ``"Clean up with VACUUM in SQL"`` becomes ``"Clean up with
    vacuum in SQL"``. A text without such a word, for example ``"HTTP API"``, does not change.
    """
    if _LONG_WORD.search(text) is None:
        return text
    if sum(map(str.isupper, text)) > sum(map(str.islower, text)):
        return text.lower()
    return _LONG_WORD.sub(lambda word: word[0].lower(), text)


_FIRST_WORD = "the"
ORDINARY_PLACE = 1_000
"""Words up to this place are ordinary: that a text lacks one of them says little."""


def rarity(word: str) -> float:
    """How rare a word is in English, in [0, 1]: by Zipf's law the logarithm of its place.

    1 for a word that the vocabulary of an English model does not have: a name, an identifier,
    another language.
    """
    places = _places()
    return math.log(places.get(word.lower(), len(places))) / math.log(len(places))


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
    return dict(zip(words[first:], range(1, len(words)), strict=False))


def counted(number: int, noun: str) -> str:
    """``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[str], most: int) -> str:
    """At most so many of the names, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_IN_NUMBER = re.compile(r"(?<=[\d.,:/'’-])[.,:/'’-]?\d|(?:(?<=\d)\s|(?<=\d\s))\d{3}(?!\d)")
_OF_NUMBERS = "0123456789.,:/'’- \xa0\u202f"


def place_to_cut(text: str, length: int) -> int:
    """The last place up to ``length`` that is not in a number: a part of one is another number."""
    if _IN_NUMBER.match(text, length):
        return len(text[:length].rstrip(_OF_NUMBERS)) or length
    return length


def place_to_begin(text: str, start: int) -> int:
    """The first place from ``start`` on that is not in a number."""
    if start and _IN_NUMBER.match(text, start):
        return len(text) - len(text[start:].lstrip(_OF_NUMBERS))
    return start


def words_found(found: int, words: int) -> str:
    """How many of a task's words were found: ``2 of the task's 5 words``."""
    if not found:
        return "none of the task's words"
    return f"{found} of the task's {words} words" if words > 1 else "the task's only word"


def age(hours: float) -> str:
    """A time in words: ``less than an hour``, ``3 hours``, ``5 days``."""
    if hours < 1:
        return "less than an hour"
    return counted(int(hours), "hour") if hours < 48 else counted(int(hours / 24), "day")


_TABLES = data_file(__file__, "languages.toml")
_ABBREVIATIONS = frozenset(_TABLES["abbreviations"].split())
_BEFORE_NUMBERS = frozenset(_TABLES["before_numbers"].split())
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_MONTH = re.compile(
    r"\s+(?:jan|feb|mär|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])", re.IGNORECASE
)
_ENDING = re.compile(r"[\w.:'’]*$")
_FUNCTION_WORDS = frozenset[str]().union(*STOP_WORDS.values())
_LABEL = re.compile(r"(?<![^\W\d_])(?P<what>[^\W\d_]{3,}) [^\W\d_]$")
"""A thing with a letter, such as ``studio B``; not a name with an initial, ``by J. Smith``."""
_BEFORE_ORDINALS = re.compile(r"\b(?:vom|am|zum|im|beim|de[rnms]|die|das|bis) *$", re.IGNORECASE)
"""German words before a number with a full stop: ``vom 4.``, ``die 2. Mahnung``."""


_BLANK_LINE = re.compile(r"[ \t]*\r?\n[ \t]*\r?\n")


def is_no_sentence_end(text: str, stop: int) -> bool:
    """Whether the full stop at ``stop`` follows an abbreviation, or the number of a day or item.

    Nor does a sentence end before a small letter. It always ends with its paragraph.
    """
    before, following = text[max(0, stop - 12) : stop], text[stop + 1 : stop + 8]
    if _BLANK_LINE.match(following):
        return False
    if following.lstrip()[:1].islower():
        return True
    word = _ENDING.findall(before)[0].lower()
    if re.split("['’]", word)[-1] in _BEFORE_NUMBERS:  # Of "dell'art".
        return following.lstrip()[:1].isdigit()
    if word.isdigit() and len(word) < 3:
        before = before.removesuffix(word).rstrip(" \t")
        is_ordinal = _MONTH.match(following) or _BEFORE_ORDINALS.search(before)
        return before[-1:] in ("", "\n", ".", ":", ";") or is_ordinal is not None
    label = _LABEL.search(before)
    if label and label["what"].islower() and label["what"] not in _FUNCTION_WORDS:
        return False
    return word in _ABBREVIATIONS or (word != "i" and _INITIALS.fullmatch(word) is not None)


_SENTENCE_BREAK = re.compile(
    r"[.!?][\"')\]”’»*_`]*\s+(?=[^\sa-z])|[。！？]|\n[ \t]*\n\s*"
    r"|\n(?=[ \t]*(?:[-*•+|#>]|\d+[.)]|[a-z]\))[ \t])|(?:^|(?<=\n))[ \t]*#[^\n]*\n"
)


@lru_cache(maxsize=1024)
def sentence_starts(content: str) -> tuple[int, ...]:
    """Where the sentences and items of a passage begin, in order; the first is 0."""
    starts = {0}
    for match in _SENTENCE_BREAK.finditer(content):
        if match[0][0] != "." or not is_no_sentence_end(content, match.start()):
            starts.add(match.end())
    return tuple(sorted(starts))


@lru_cache(maxsize=1024)
def sentences_of(content: str) -> tuple[str, ...]:
    """The sentences and items of a text."""
    return tuple(content[a:b] for a, b in pairwise((*sentence_starts(content), len(content))))
