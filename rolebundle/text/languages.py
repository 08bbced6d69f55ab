"""The function words of languages, and the language of a text. Pure.

The function words, in ``languages.toml``, are removed from queries. A language is detected by
script, letters and the most frequent words, so that what is indexed does not depend on how complete
a list of function words is.

Detection takes microseconds and loads no model. It decides which word forms are indexed and
searched in addition to the words (`forms.py`), and never removes anything from an index. So a wrong
guess finds no less than no guess.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain

from rolebundle.lazy import lazy_pattern
from rolebundle.resources import data_file
from rolebundle.text.spellings import folded

# -- function words --------------------------------------------------------------------------------

_TABLES = data_file(__file__, "languages.toml")
TITLES = frozenset(_TABLES["titles"].split())
"""What stands before a name, such as ``Ms``."""
IRREGULAR = [line.split() for line in _TABLES["irregular"].strip().split("\n")]
"""English words whose forms have other stems: the first form and the others of each."""
ENGLISH_STOP_WORDS = frozenset(_TABLES["english"].split()) | TITLES

NEGATIONS = frozenset("no not never none nobody nothing neither nor cannot without nowhere".split())
"""English words that deny; besides the contractions that end with "n't"."""

CALLED = frozenset(_TABLES["called"].split())
"""What people call members of their family, groups and their offices; these words are no names."""

NUMBER_WORDS = frozenset(_TABLES["number_words"].split())
"""English numbers as words."""


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


# -- the language of a text ------------------------------------------------------------------------

_MAX_CHARS = 4_000
"""Only this many characters from the beginning of a text are examined."""
_MIN_SHARE = 0.04
"""The minimum share of function words in a text of a language; running text has 0.3."""
_MIN_HITS = 2
"""The minimum number of function words."""
_MIN_DIFFERENT = 3
"""The minimum number of different function words that only English has, in an English text."""
_ALSO_OTHERS = frozenset[str]().union(*FREQUENT_WORDS.values())

# The letters of a language other than a to z, for texts too short to contain function words.
_ALPHABETS: dict[str, str] = _TABLES["letters"]
_BY_LETTERS: dict[str, list[str]] = _TABLES["by_letters"]
UNSPACED: str = _TABLES["unspaced"]
"""The letters of scripts without spaces, and of Korean, as a range of a pattern."""

# An address, a path or an identifier is one word, and belongs to no language.
_LATIN = re.compile(r"[a-z\u00df-\u024f\u0307\u1e00-\u1eff]+(?:[.@/:_]+\w+|\d\w*)*")
_UNSPACED = lazy_pattern(f"[{UNSPACED}]")
_SPECIAL = re.compile("[\u00df-\u024f\u0307\u1e00-\u1eff]")


def _languages_of(lists: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    languages: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for language, words in lists.items():
        for word in words:
            # Single letters are names of variables and units in every language.
            if word not in ENGLISH_STOP_WORDS and (len(word) > 1 or not word.isascii()):
                languages[word] += (language,)
    return dict(languages)


# Without English words: the others also identify the language of a text that is half English.
_LANGUAGES_OF = _languages_of(FREQUENT_WORDS)


@cache
def _languages_of_question_words() -> dict[str, tuple[str, ...]]:
    """A question is short: its few function words may be rare ones, if they are not ambiguous."""
    further = _languages_of(STOP_WORDS)
    ambiguous = {word for word in further if len(word) == 2 and word.isascii()} | ALSO_ENGLISH
    return {word: codes for word, codes in further.items() if word not in ambiguous} | {
        word: further[word] for word in _LANGUAGES_OF
    }


def is_unspaced(text: str) -> bool:
    """Whether a text contains letters of a script without spaces."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def likely_languages(text: str) -> tuple[str, ...]:
    """The languages other than English that a short text, such as a question, may be in.

    Returns:
        ISO 639-1 codes, for Latin letters and for others. Empty if nothing indicates a language. No
        code for Latin letters if more words are English.
    """
    text = text[:_MAX_CHARS].lower()
    languages = () if text.isascii() else _by_letters(text)
    most, best, words = _hits(text, _languages_of_question_words())
    own = sum(word in ENGLISH_STOP_WORDS for word in words)
    return languages + best if most >= own else languages


def english_share(texts: Iterable[str]) -> float:
    """The part of texts that is English, by characters, in [0, 1]; 1 if nothing shows a language.

    Texts that show no language, such as code and tables, do not count.
    """
    english = known = 0
    for text in texts:
        shown = shows_english(text)
        english += len(text[:_MAX_CHARS]) if shown else 0
        known += len(text[:_MAX_CHARS]) if shown is not None else 0
    return english / known if known else 1.0


def shows_english(text: str) -> bool | None:
    """Whether a text is in English; ``None`` if it shows no language.

    It is if a tenth of its words are English function words, and more than are those of any other
    language; three must be different and in no other language, as "no" is. It is in another one if
    most of its letters are not Latin, or if a twentieth of its words are function words of that
    language.
    """
    lowered = text[:_MAX_CHARS].lower()
    most, _, words = _hits(lowered)
    own = [word for word in words if word in ENGLISH_STOP_WORDS]
    is_sure = len({*own} - _ALSO_OTHERS) >= _MIN_DIFFERENT
    letters = [letter for letter in lowered if letter.isalpha()]
    is_latin = 2 * sum(letter < "\u0250" for letter in letters) >= len(letters)
    if is_latin and is_sure and len(own) > most and len(own) >= 0.1 * len(words):
        return True
    is_other = not is_latin or most >= max(_MIN_HITS, 0.05 * len(words))
    return False if is_other else None


def language_name(code: str) -> str:
    """The English name of a language; its code if it is not known."""
    return "English" if code == "en" else _TABLES["stemmers"].get(code, code).title()


def clear_language(text: str) -> str:
    """The language of a sentence in Latin letters that two of its function words show, or ``""``.

    Rare function words count, too, and English ones must be fewer; for English, twice as many.
    """
    most, best, words = _hits(text[:_MAX_CHARS].lower(), _languages_of_question_words())
    own = sum(word in ENGLISH_STOP_WORDS for word in words)
    if most >= _MIN_HITS and most > own:
        return best[0] if len(best) == 1 else ""
    return "en" if own >= _MIN_HITS and own > 2 * most else ""


def latin_language(text: str) -> str:
    """The language of running text in Latin letters; ``""`` if it is English or unknown.

    Args:
        text: the first 4,000 characters are examined.
    """
    text = text[:_MAX_CHARS].lower()
    most, best, words = _hits(text)
    return best[0] if most >= max(_MIN_HITS, _MIN_SHARE * len(words)) else ""


def non_latin_language(text: str) -> str:
    """The most likely language of a text in letters other than Latin, or ``""``."""
    return next(iter(_by_letters(text[:_MAX_CHARS].lower())), "")


def _by_letters(text: str) -> tuple[str, ...]:
    return next(
        (tuple(codes) for letters, codes in _BY_LETTERS.items() if re.search(letters, text)), ()
    )


def _hits(
    text: str, languages_of: Mapping[str, tuple[str, ...]] = _LANGUAGES_OF
) -> tuple[int, tuple[str, ...], list[str]]:
    """The most hits of a language, the languages with that number, and the words of the text.

    A hit is a function word; a language whose alphabet has all special letters gets one more.
    """
    words = _LATIN.findall(text)
    hinting = [word for word in words if word in languages_of]
    hits = Counter(chain.from_iterable(map(languages_of.__getitem__, hinting)))
    if not text.isascii() and (special := set(_SPECIAL.findall("".join(set(text))))):
        hits.update(code for code, letters in _ALPHABETS.items() if special.issubset(letters))
    most = max(hits.values(), default=0)
    return most, tuple(sorted(code for code, count in hits.items() if count == most)), words
