"""Word forms: tokens that are indexed and searched in addition to the words of a text.

The lexical index folds case, strips Latin diacritics and stems English. Its tokens do not change,
so that identifiers, versions and error codes stay searchable. For other languages it also contains

- stems (Snowball) of words in the language of the text, or their first five letters if the language
  has no stemmer (McNamee and Mayfield, "Character n-gram tokenization for European
  language text retrieval", 2004);
- for scripts without spaces, and for Korean with its endings, single letters with their marks and
  all pairs of adjacent letters, which needs no dictionary and finds every name (Nie, Gao,
  Zhang and Zhou, "On the use of words and n-grams for Chinese information retrieval", 2000);
- for Vietnamese, whose tones distinguish words, syllables with their tone marks, and pairs of them;
- for other scripts with marks, such as Bengali, whole words.

A form begins with a private-use character, so that it equals no word of a text. Marks become
private-use characters, because the index would split words at them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import add
from typing import NamedTuple

import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]

from rolebundle.lazy import lazy_pattern
from rolebundle.resources import data_file
from rolebundle.text.languages import UNSPACED, is_unspaced, latin_language, non_latin_language

FORMS_VERSION = "forms-3"
_MAX_WORD_CHARS = 64
"""Longer words are not words of a language and get no stem."""
_PREFIX_CHARS = 5
"""The length of the prefix that is used as stem if there is no stemmer."""

_TABLES = data_file(__file__, "languages.toml")
_STEMMERS: dict[str, str] = _TABLES["stemmers"]
_BY_PREFIX = "uk"
_BY_SYLLABLE = "vi"
# Languages in letters other than Latin.
_NON_LATIN = frozenset(("ar", "el", "fa", "hi", "hy", "ru", "sr", "ta", "uk"))

_MARKS: str = _TABLES["marks"]
_WORD = re.compile(rf"[^\W_][^\W_{_MARKS}]*+(?:[{_MARKS}]++[^\W_]*+)*+")
_RUN = lazy_pattern(rf"[{UNSPACED}]+")
# A letter with its marks, the vowel that Thai and Lao write before it, and Khmer subscripts.
_LETTER = lazy_pattern(
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]?[{UNSPACED}](?:\u17d2[\u1780-\u17b3]|[{_MARKS}])*"
)
# Matches if a letter may consist of several characters.
_HAS_PARTS = re.compile(rf"[{_MARKS}\u0e40-\u0e44\u0ec0-\u0ec4]")
_MARK = re.compile(f"[{_MARKS}]")
_DIGIT = re.compile(r"\d")
_NOT_LATIN = lazy_pattern("[\u0370-\u1dff\u1f00-\u1fff\u2c00-\ud7ff\uf900-\ufdff]")
_FORM = "\ue000"
_PRIVATE, _PRIVATE_LETTERS = 0xE001, 0x18FF
_ASCII = bytes(range(128))
_SHORT = 300
_OTHER_LETTER = rf"[^\W{UNSPACED}]"
_GLUED = lazy_pattern(rf"(?<=[{UNSPACED}])(?={_OTHER_LETTER})|(?<={_OTHER_LETTER})(?=[{UNSPACED}])")


class Forms(NamedTuple):
    """The forms of a text, each kind in text order, with repeats."""

    stems: list[str]
    """One for each word and each language that it may belong to."""
    letters: list[str]
    """Letters of scripts without spaces, with their marks; syllables of Vietnamese."""
    pairs: list[str]
    """Pairs of adjacent letters."""


def index_tokens(forms: str) -> str:
    """Forms, separated by spaces, as tokens of the index; the same for indexing and searching."""
    return " ".join(_FORM + _MARK.sub(_private, form) for form in forms.split())


def spaced(text: str) -> str:
    """Insert spaces between an unspaced script and others: 用v2.1 becomes 用 v2.1."""
    return text if text.isascii() else _GLUED.sub(" ", text)


def index_text(texts: Iterable[str], language: str) -> str:
    """The tokens that are indexed in addition to the texts; ``""`` for plain English.

    Args:
        texts: the indexed texts of a passage.
        language: ISO 639-1 code for texts in Latin letters whose language is not detected.

    Returns:
        Forms, as by :func:`index_tokens`, and words that touch a script without spaces, which the
        index cannot separate.
    """
    plain: list[str] = []
    all_forms: list[str] = []
    for text in texts:
        if text.isascii() and language not in _STEMMERS:
            continue
        # Cached: titles and headings repeat in many passages.
        of_text = _of_text if len(text) > _SHORT else _of_short_text
        text_plain, text_forms = of_text(text, language)
        plain += text_plain
        all_forms += text_forms
    if not all_forms:
        return " ".join(plain)
    # The same as `index_tokens`, for all forms at once.
    return " ".join((*plain, _MARK.sub(_private, _FORM + f" {_FORM}".join(all_forms))))


def _of_text(text: str, language: str) -> tuple[Sequence[str], Sequence[str]]:
    """The plain words and the forms that are indexed in addition to one text."""
    if text.isascii():
        return (), forms(text, (language,)).stems
    non_ascii = text.encode("utf-8", "replace").translate(None, _ASCII).decode("utf-8", "ignore")
    # Digits of a script without spaces have forms like its letters.
    if not any(map(str.isalpha, non_ascii)) and not is_unspaced(non_ascii):
        return (), ()
    languages = [latin_language(text) or language]
    plain: list[str] = []
    if _NOT_LATIN.search(non_ascii):
        languages.append(non_latin_language(text))
        plain = _words_at_script_edges(text)
    stems, letters, pairs = forms(text, languages)
    return plain, [*stems, *letters, *pairs]


_of_short_text = lru_cache(maxsize=256)(_of_text)


def document_language(texts: Iterable[str], declared: str) -> str:
    """The language of a document's text in Latin letters, else the declared one.

    ``""`` stands for English.

    Args:
        texts: the first texts of the document.
        declared: ISO 639-1 code, perhaps with a country.
    """
    for text in texts:
        # The most frequent English word, which is fast to find.
        if text.isascii() and " the " in text:
            return ""
        if detected := latin_language(text):
            return detected
    return declared.partition("-")[0].lower()


def forms(text: str, languages: Sequence[str], without: Collection[str] = ()) -> Forms:
    """The forms of the words of a text in the languages that it may be in.

    Args:
        text: any text.
        languages: ISO 639-1 codes; each applies to words in its letters. Scripts without spaces
            need none.
        without: words in lower case that are skipped.
    """
    text = text.lower()
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    latin = tuple(code for code in languages if code in _STEMMERS and code not in _NON_LATIN)
    non_latin = tuple(code for code in languages if code in _NON_LATIN)
    by_syllable = _BY_SYLLABLE in languages
    find_letters = list if _HAS_PARTS.search(text) is None else _LETTER.findall
    result = Forms([], [], [])
    syllables: list[str] = []
    words = _WORD.findall(text)
    if not latin and not by_syllable:
        # Skips most words of a technical text in Chinese.
        words = [word for word in words if not word.isascii()]
    for word in words:
        if not word.isascii():
            runs = _RUN.findall(word)
            for run in runs:
                _add(find_letters(run), result)
            if runs:
                continue
        if word in without or len(word) > _MAX_WORD_CHARS:
            continue
        stems, is_syllable = _stems(word, latin, non_latin)
        result.stems.extend(stems)
        if is_syllable:
            syllables.append(word)
    if by_syllable:
        # Decomposed, so that the index does not strip the tone marks.
        _add([unicodedata.normalize("NFD", syllable) for syllable in syllables], result)
    return result


def word_forms(text: str, languages: Sequence[str]) -> Iterator[tuple[int, int, Forms]]:
    """The words of a text: where each begins and ends, and its forms in the given languages."""
    for word in _WORD.finditer(text):
        yield word.start(), word.end(), forms(word[0], languages)


def stems_in_any_language(word: str) -> list[str]:
    """The stems of a word in Latin letters in every language that has a stemmer, each once."""
    return [*dict.fromkeys(forms(word, [*_STEMMERS]).stems)]


def phrase_form(phrase: str, language: str) -> str:
    """A phrase as forms that are adjacent in the index; ``""`` if it has none.

    Args:
        phrase: one or more words.
        language: ISO 639-1 code, for words that are stemmed.
    """
    words = _WORD.findall(phrase)
    stems, letters, pairs = forms(phrase, (language,))
    if stems and len(stems) == len(words):
        return " ".join(stems)
    if all(map(_RUN.fullmatch, words)) or (language == _BY_SYLLABLE and not stems):
        return " ".join(pairs or letters)
    return ""


def _add(letters: list[str], result: Forms) -> None:
    result.letters.extend(letters)
    result.pairs.extend(map(add, letters, islice(letters, 1, None)))


@lru_cache(maxsize=16_384)
def _stems(
    word: str, latin: tuple[str, ...], non_latin: tuple[str, ...]
) -> tuple[tuple[str, ...], bool]:
    """The stems of a word in the languages of its letters, and whether its letters are Latin."""
    if _DIGIT.search(word):
        return (), False
    is_latin = not _NOT_LATIN.search(word)
    stems = tuple({_stemmer(code)(word): None for code in (latin if is_latin else non_latin)})
    unchanged = () if is_latin or not _MARK.search(word) else (word,)
    return stems or unchanged, is_latin


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Callable[[str], str]:
    if language == _BY_PREFIX:
        return lambda word: word[:_PREFIX_CHARS]
    stem: Callable[[str], str] = Stemmer.Stemmer(_STEMMERS[language]).stemWord
    return stem


def _words_at_script_edges(text: str) -> list[str]:
    """Words adjacent to a script without spaces, without the letters of that script."""
    if _GLUED.search(text) is None:
        return []
    return [_RUN.sub(" ", word) for word in text.split() if _GLUED.search(word)]


def _private(mark: re.Match[str]) -> str:
    return chr(_PRIVATE + ord(mark[0]) % _PRIVATE_LETTERS)
