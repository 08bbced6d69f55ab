"""The language of a sentence, and the stems of its content words. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]

from rolebundle.text.forms import forms
from rolebundle.text.languages import latin_language, likely_languages, non_latin_language
from rolebundle.text.stop_words import ENGLISH, STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_STEMMER = Stemmer.Stemmer("english", 0)  # Without a cache: `stem` has one.
_POSSESSIVE = re.compile(r"['’](?:s|t|re|ve|ll|d|m)$")
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[a-zA-Z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")


@lru_cache(maxsize=2048)
def language_of(text: str, default: str) -> str:
    """The language of a sentence or passage, as ISO 639-1 code; "und" if its script is unknown.

    Args:
        text: any text.
        default: the language of what surrounds it, for a sentence that does not show its own.
    """
    if not text.isascii():
        letters = len(_LETTERS.findall(text))
        if letters > 2 * len(_LATIN.findall(text)):
            return non_latin_language(text) or "und"
    languages = likely_languages(text)
    detected = latin_language(text)
    if detected in languages:
        return default if default in languages else detected
    own = STOP_WORDS.get(default, frozenset())
    words = WORD.findall(text.lower())
    return "en" if any(word in ENGLISH and word not in own for word in words) else default


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
        stop_words = STOP_WORDS.get(language, frozenset())
        of_content = forms(text, (language,), stop_words)
        content = [*of_content.stems, *of_content.pairs]
        return Stems(forms(text, (language,)).stems, content)
    stems, content = [], []
    for word in WORD.findall(text):
        lower = word.lower()
        if "'" in word or "’" in word:
            lower = _POSSESSIVE.sub("", lower)
        stems.append(stem(lower))
        if lower not in ENGLISH and len(lower) > 1:
            content.append(stems[-1])
    return Stems(stems, content)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The English stem of a word in lower case."""
    return str(_STEMMER.stemWord(word))
