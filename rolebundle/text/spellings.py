"""The one way to compare words: what is written differently and means the same.

:func:`folded` replaces characters: compatibility forms (ﬃ, fullwidth letters, ㎏), decomposed
ones, Latin letters with marks or of their own (é, ß, ł, ø), digits of other scripts, and what is
invisible (soft hyphens). A raised or lowered digit is joined to a letter (m², CO₂) and never to a
digit: 2¹⁰ is "2 10", not 210.

:func:`spellings` finds what is also written in another way: the parts of ``35kg`` and
``getUserName``, ``Wi-Fi`` as one word, ``1,250`` as one number, ``U.S.A.`` without its dots.

Index and task, `grep`, the names of files and the rules of overlays are all compared so. The shown
text stays as it is. If a result changes, a migration must build the index again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, is_normalized, name, normalize

_MAX_CHANGES = 3
"""A word in which letters and digits alternate more often is a hash or a key, and has no parts."""

_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b\u200d-\u200f\u202a-\u202c\u2060-\u2069\ufe00-\ufe0f\ufeff"
)
_REMOVED = re.compile(rf"[{_INVISIBLE}]+|(?<=[A-Za-z])\u200c+(?=[A-Za-z])")
_SIGNS = "[²³¹⁰⁴-⁾]+|[₀-₎]+|[¼-¾⅐-⅟↉①-⓿❶-➓ªº™℠]"
_HAS_SIGN = re.compile(_SIGNS)
_SIGN = re.compile(rf"(?P<before>[^\W\d_²³¹⁰-₎¼-¾]?)(?P<sign>{_SIGNS})")
# A character with what belongs to it; the letters of Korean before they are composed.
_CLUSTER = re.compile(
    rf"[^\W_]?(?:{_SIGNS})|[\u1100-\u11ff]+"
    rf"|.[\u0300-\u036f\u3099\u309a\uff9e\uff9f{_INVISIBLE}]*",
    re.DOTALL,
)
_LATIN_LETTER = re.compile(
    r"LATIN (SMALL|CAPITAL) (?:LETTER|LIGATURE) (?:DOTLESS )?([A-Z]{1,2})(?: WITH .*)?"
)
_OWN_LETTERS = {"ß": "ss", "ẞ": "Ss", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ŋ": "n", "Ŋ": "N"}


def folded(text: str, *, keeps_letters: bool = False) -> str:
    """The text with its characters as they are compared. Case and ASCII stay.

    Args:
        text: any text.
        keeps_letters: whether Latin letters keep their marks, and ß is not ss: for quotes, because
            Maße are no Masse.
    """
    if text.isascii():
        return text
    text = without_invisible(text)
    characters = {character for character in set(text) if character > "\x7f"}
    if _HAS_SIGN.search("".join(characters)):
        text = _SIGN.sub(_separated, text)
    for character in characters:
        if (plain := _plain(character, keeps_letters)) != character:
            text = text.replace(character, plain)
    return composed(text)


def without_invisible(text: str) -> str:
    """The text in the composed form, without invisible characters."""
    return text if text.isascii() else _REMOVED.sub("", composed(text))


def composed(text: str) -> str:
    """The text in the composed form (NFC), in which names of files are compared."""
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def key_of(name: str) -> str:
    """A name as it is compared with others, without regard to case."""
    return folded(name).casefold()


def _separated(found: re.Match[str]) -> str:
    before, sign = found["before"], normalize("NFKC", found["sign"]).replace("⁄", "/")
    return f"{before}{sign}" if before and sign.isdigit() else f"{before} {sign}"


@lru_cache(maxsize=16_384)
def _plain(character: str, keeps_letters: bool = False) -> str:
    """A character as letters and digits that are compared; itself if it is none or has no other."""
    if character.isdecimal():
        return str(int(character))
    compatible = normalize("NFKC", character)
    if not any(map(str.isalnum, compatible)):
        return character
    if keeps_letters:
        return compatible
    return "".join(_OWN_LETTERS.get(part) or _base(part) for part in compatible)


def _base(character: str) -> str:
    """The letters that a Latin letter with marks, or of its own, is written with in ASCII."""
    if latin := _LATIN_LETTER.fullmatch(name(character, "")):
        return latin[2].lower() if latin[1] == "SMALL" else latin[2].title()
    parts = normalize("NFD", character)
    return parts[0] if parts[0].isascii() and all(map(combining, parts[1:])) else character


class Placed(NamedTuple):
    """A folded text, and where each of its characters begins and ends in the text."""

    text: str
    starts: list[int]
    ends: list[int]


def placed(text: str) -> Placed:
    """The folded text, with the places of its characters."""
    parts = [(folded(found[0]), found.span()) for found in _CLUSTER.finditer(text)]
    starts, ends = ([span[side] for part, span in parts for _ in part] for side in (0, 1))
    return Placed("".join(part for part, _ in parts), starts, ends)


# -- other spellings -------------------------------------------------------------------------------

_EDGE = re.compile(
    r"(?<=[a-z][a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
_SPACE = "[ \u00a0\u2007\u2009\u202f]"
# Where a word may have another spelling, with the rest of it. Most texts have few such places.
_PLACE = re.compile(
    r"[A-Z0-9\-\u2010\u2011.,'’](?:(?<=[a-z][A-Z])|(?<=[^\W\d_]\d)|(?<=\d)(?=[^\W\d_])"
    r"|(?<=\d[.,'’])(?=\d)|(?<=[^\W\d_][-\u2010\u2011])(?=[^\W_])|(?<=[A-Z])(?=[A-Z][a-z]{2})"
    r"|(?<=\b[^\W\d_]\.)(?=[^\W\d_])|(?<=\b[^\W\d_]{2}\.)(?=[^\W\d_])"
    rf"|(?<=\d)(?={_SPACE}\d{{3}}(?!\d))(?P<spaced>))\S*"
)
_MAX_BEFORE = 64
_CHANGE = re.compile(r"(?<=\d)[^\W\d_]|(?<=[^\W\d_])\d")
_WORD = re.compile(r"[^\W_]+")
_GROUPS = r"(?<![\w.,])\d{1,3}(?:(?:,\d{2,3})*,\d{3}|(?:['’]\d{3})+"
_JOINED = re.compile(
    r"(?<![\w-])[^\W\d_]+(?:[-\u2010\u2011][^\W_]+){1,2}(?![\w-])"
    r"|(?<![\w.])(?:[^\W\d_]{1,2}\.){2,}(?:[^\W\d_](?!\w))?"
    rf"|{_GROUPS}|(?:\.\d{{3}})+)(?!\d|[.,]\d{{3}})"
    r"|(?<![\w.])[vV](?P<version>\d+(?:\.\d+)+)(?![\w.])"
)

_SPACED_NUMBER = re.compile(rf"(?<![\w.,])\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)")
_WHOLE = re.compile(rf"{_GROUPS}|(?:{_SPACE}\d{{3}})+)(?!\d|[.,]\d{{3}})")


class Spelling(NamedTuple):
    """What is also written in another way, and the words of the text that it stands for."""

    other: str
    words: tuple[str, ...]


def spellings(text: str) -> list[Spelling]:
    """The other spellings of words of a folded text, each once; all in lower case."""
    return [*dict.fromkeys(one for word in _candidates(text) for one in _of_word(word))]


def also_written(text: str) -> str:
    """The other spellings of the words of a folded text, as one text."""
    return " ".join(dict.fromkeys(map(_others_of_word, _candidates(text))))


@lru_cache(maxsize=2048)
def with_spellings(text: str) -> str:
    """The folded text, and the other spellings of its words."""
    own = folded(text)
    return f"{own} {also_written(own)}"


def _candidates(text: str) -> list[str]:
    """The words and spaced numbers of a text that may have another spelling."""
    found = []
    for place in _PLACE.finditer(text):
        start = place.start()
        before = text[max(0, start - _MAX_BEFORE) : start]
        last = max(before.rfind(" "), before.rfind("\n"))
        found.append(before[last + 1 :] + place[0])
        if place.lastgroup:
            found += _SPACED_NUMBER.findall(text)
    return found


def _joined(text: str) -> Spelling:
    words = tuple(_WORD.findall(text.lower()))
    return Spelling("".join(words), words)


@lru_cache(maxsize=65_536)
def _of_word(text: str) -> tuple[Spelling, ...]:
    """The other spellings of a word, or of a number whose groups have spaces between them."""
    if " " in text or _SPACED_NUMBER.fullmatch(text):
        return (_joined(text),)
    joined = [
        one._replace(other=match["version"] or one.other)
        for match in (_JOINED.finditer(text) if not text.isalnum() else ())
        for one in [_joined(match[0])]
    ]
    words = ((word, parts_of(word)) for word in _WORD.findall(text))
    return (*joined, *(Spelling(" ".join(p), (word.lower(),)) for word, p in words if p))


@lru_cache(maxsize=65_536)
def _others_of_word(text: str) -> str:
    return " ".join(one.other for one in _of_word(text))


def parts_of(word: str) -> list[str]:
    """The parts of a word at changes of case and between letters and digits; none if it has one."""
    if (word.isalpha() and word[1:].islower()) or len(_CHANGE.findall(word)) > _MAX_CHANGES:
        return []
    parts = _EDGE.split(word)
    return [part.lower() for part in parts] if len(parts) > 1 else []


def others_of(words: str) -> list[str]:
    """The other spellings of a text as a whole, such as a word or number."""
    text = folded(words)
    own = tuple(_WORD.findall(text.lower()))
    return [one.other for one in spellings(text) if one.words == own]


def with_whole_numbers(text: str) -> str:
    """The text with each number whose digits are in groups as one: 1,250 as 1250."""
    return _WHOLE.sub(lambda found: "".join(filter(str.isdecimal, found[0])), text)
