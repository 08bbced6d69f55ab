"""What a text itself says no longer holds: "1,120 euros instead of 1,390". Pure.

Also the documents that it says it replaces.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import filterfalse, product
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from rolebundle.contracts.dates import is_of_date
from rolebundle.lazy import lazy_module, lazy_pattern
from rolebundle.resources import data_file, expanded
from rolebundle.text.words import content_words, is_ordinary, language_of, stems_of

# What few answers need is loaded by them.
if TYPE_CHECKING:
    from rolebundle.text import figures as text_figures
    from rolebundle.text.figures import Figure, Reading
else:
    text_figures = lazy_module("rolebundle.text.figures")

_TABLES = data_file(__file__, "replaced.toml")
_NUMBER = re.compile(r"\d+(?:[.,'’]\d{3}(?!\d))*(?:[.,]\d{1,2}(?![.,]?\d))?")
_REACH = 45
"""Characters before a number in which a cue stands."""
_HIDDEN = "\ue000"
"""Each character of a figure, while the words around it are read."""
BESIDE = 80
"""Characters before and after a number that say what it is of."""
_JOINING_WORDS = 3
"""Between an old figure and a new one: "8th is moved to 22 May", not "3rd lesson is moved to"."""
_MAX_GONE = 6
"""How many words behind "not" it denies."""
_EXCERPT = 70
"""Characters before or behind a statement that are shown with it."""
_CONTEXT = 200
"""Characters around a statement that say what it is about."""


Said = Literal[
    "past", "change", "new", "from_day", "who", "stays", "turn", "there", "absent", "revoked"
]


class Replaced(NamedTuple):
    """A figure that no longer holds.

    Attributes:
        figure: what no longer holds.
        new: the nearest figure of its kind in the words that say so; ``None`` without one.
        words: the words that say so, on one line.
        context: the text around them, without figures.
    """

    figure: Figure
    new: Figure | None
    words: str
    context: str


class Gone(NamedTuple):
    """What no longer holds, and is no figure.

    Attributes:
        stems: of the content words among its first six words.
        words: the words that say so, on one line.
        of: the stems of those before them in their sentence, such as its subject.
    """

    stems: frozenset[str]
    words: str
    of: frozenset[str]


def _pattern(text: str | list[str], flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return lazy_pattern(expanded(text, _TABLES["words"] | {"figure": _HIDDEN}), flags)


_BEFORE, _BEHIND = map(_pattern, _TABLES["cues"].values())
_NUMBER_LABEL, _WEEKDAY, _BEFORE_DAY, _LIMIT = map(_pattern, _TABLES["names"].values())
_SAYS = {  # Lines may end anywhere in a sentence.
    kind: _pattern("".join(text).replace(" ", r"\s+")) for kind, text in _TABLES["says"].items()
}
# Small letters are matched in a fraction of the time; only one of them looks for capitals.
_GONE = {
    name: _pattern(text) if name == "gone" else _pattern(text, 0)
    for name, text in _TABLES["words_gone"].items()
}
_REPLACED_PATTERNS = [*map(_pattern, _TABLES["statements"].values())]
_START = attrgetter("start")
_NOUN = re.compile(r"\s+[^\W\d]")
_BREAK = re.compile(r"[.;:!?]\s|\n\s*\n")
_GREETING = re.compile(r"\A\s*[^\n.;:]{2,50},[ \t]*\n")
_JOINED = re.compile(r".*\b(?:and|but|und|aber|et|mais|y|pero|e|ma|en|maar)\s+(?:\w{2,3}\s+)?\Z")
"""What another clause, "… and the", has before the subject of its own one."""


@cache
def document_pattern(name: str) -> re.Pattern[str]:
    """An expression of the table about documents."""
    text = expanded(f"%{name}%", _TABLES["documents"])
    return re.compile(text, re.IGNORECASE | re.MULTILINE | re.DOTALL)


def document_statements(text: str, names: str) -> Iterator[str]:
    """What a text says of itself and another document: ``replaces SR-14 of 14 February 2023``.

    The first word is ``replaces``, ``replaced_by`` or ``amends`` (changes parts of it); then come
    the words that name the other one, up to the end of the sentence, 120 characters at most.

    Args:
        text: of a paragraph, list, heading or table.
        names: the title and path of its document, which may be the subject of a sentence.
    """
    parts = "cue", "sentence", "self", "not", "behind", "void"
    cue, sentence, own, no, behind, void = map(document_pattern, parts)
    for match in sentence.finditer(text) if cue.search(text) else ():
        subject, words = match["subject"].strip(" *_\n"), " ".join(match["words"].split())
        named = content_words(subject)
        is_own = named <= content_words(names) if named else not (subject or match["plural"])
        if (is_own or own.match(subject)) and not (no.search(subject) or behind.search(words)):
            yield f"{'replaced_by' if match['replaced_by'] else 'replaces'} {words}"
    for match in void.finditer(text) if cue.search(text) else ():
        if content_words(match["words"]) & content_words(names):
            yield f"replaces {' '.join(match['words'].split())}"
    for match in document_pattern("amends").finditer(text):
        before = _BREAK.split(text[max(0, match.start() - BESIDE) : match.start()])[-1]
        around = f"{before}{_BREAK.split(text[match.start() : match.end() + BESIDE])[0]}"
        words = " ".join((match["title"] or match["words"]).split())
        is_change = match["changing"] or says(around, "change")
        is_said = digits_in(words) and is_change and not no.search(before)
        if match["title"] or is_said:
            yield f"amends {words}"


def is_same(figure: Figure, other: Figure) -> bool:
    """Whether two figures are equal; one of two dates may lack a part; counted things agree."""
    if figure.unit == other.unit == "date":
        dates = [[date for date in f.dates if date[2]] for f in (figure, other)]
        pairs = product(*dates)
        return any(all((x or y) == (y or x) for x, y in zip(a, b, strict=True)) for a, b in pairs)
    is_of_other = figure.nouns and other.nouns and figure.nouns[0] not in other.nouns
    return text_figures.is_equal(figure, other) and not is_of_other


def says(text: str, *kinds: Said) -> bool:
    """Whether a text says something of these kinds.

    - past: what held before
    - change: that something changes
    - new: what holds from now on; from_day: from a day on
    - who: who does what another one did
    - stays: that something stays
    - turn: that something is decided, or happens, that changes what was said before
    - there: what cannot be "there", at the place in the sentence before it
    - absent: that somebody is away, ill or not free
    - revoked: that a decision no longer holds
    """
    return any(_SAYS[kind].search(text) for kind in kinds)


@lru_cache(maxsize=1024)
def gone_statements(text: str) -> tuple[Gone, ...]:
    """What a text says does not, or no longer, hold, if it is no figure."""
    found = []
    parts = re.split(r"\n\s*\n", _GREETING.sub("", text))
    for line in (" ".join(part.split()) for part in parts):
        lower = line.replace("İ", "I").lower()  # Of the same length.
        for match in _gone_in(line, lower):
            words = line[slice(*match.span("old"))].split()[:_MAX_GONE]
            least = max(0, match.start() - _EXCERPT)
            language = language_of(text)  # A few words alone seldom show their language.
            stems = frozenset(stems_of(" ".join(filterfalse(is_of_date, words)), language).content)
            if stems and not _NUMBER.search(" ".join(words)):
                start = line.rfind(". ", least, match.start()) + 2
                start = start if start > 1 else least and line.find(" ", least) + 1
                before = _JOINED.sub("", line[start : match.start()])
                subject = frozenset(stems_of(before, language).content)
                said = _BREAK.split(line[match.end() - 1 :] + " ", maxsplit=1)[0].rstrip()[1:]
                cut = f"{said[:_EXCERPT].rpartition(' ')[0]}…" if len(said) > _EXCERPT else said
                found.append(Gone(stems, line[start : match.end()] + cut, subject))
    return tuple(found)


def _gone_in(line: str, lower: str) -> Iterator[re.Match[str]]:
    for name, pattern in _GONE.items():
        if name != "there" or says(line, "there"):  # It is slow.
            yield from pattern.finditer(line if name == "gone" else lower)


def words_gone(text: str) -> frozenset[str]:
    """The stems of the words of which a text says that they do not, or no longer, hold."""
    return frozenset[str]().union(*(gone.stems for gone in gone_statements(text)))


def is_telling(gone: Set[str], shared: Set[str]) -> bool:
    """Whether two words are gone, or one beside shared words that are not all ordinary.

    Who shares only ordinary words may speak of something else.
    """
    return len(gone) > 1 or not all(map(is_ordinary, shared))


def is_limit(text: str, figure: Figure) -> bool:
    """Whether a figure of a text is a limit: "by 5 March", "up to 3 euros"."""
    return _LIMIT.search(text, max(0, figure.start - _REACH), figure.start) is not None


def digits_in(text: str) -> set[str]:
    """The digits of the numbers of a text, without marks and zeros at their ends."""
    return {*map(_digits, _NUMBER.findall(text))}


def _digits(number: str) -> str:
    return "".join(filter(str.isdecimal, number)).strip("0")


def has_replacement_cue(text: str, digits: Collection[str]) -> bool:
    """Whether a text may say that a number with one of these digits no longer holds: quick."""
    return any(
        _BEFORE.search(text, max(0, match.start() - _REACH), match.start())
        or _BEHIND.match(text, match.end())
        for match in _NUMBER.finditer(text)
        if _digits(match[0]) in digits
    )


def beside_numbers(text: str, digits: Collection[str]) -> str:
    """What stands around the numbers with one of these digits."""
    matches = (match for match in _NUMBER.finditer(text) if _digits(match[0]) in digits)
    return " ".join(text[max(0, m.start() - BESIDE) : m.end() + BESIDE] for m in matches)


def without_figures(text: str, figures: Iterable[Figure], sign: str = " ") -> str:
    """The text with a sign for each character of its figures."""
    signs = list(text)
    for figure in figures:
        end = figure.end - figure.text.endswith(".")
        signs[figure.start : end] = sign * (end - figure.start)
    return "".join(signs)


@lru_cache(maxsize=1024)
def replaced_figures(text: str) -> tuple[Replaced, ...]:
    """The figures of a text that it says no longer hold, in any order."""
    is_likely = has_replacement_cue(text, digits_in(text))
    figures = text_figures.find_figures(text) if is_likely else []
    hidden = without_figures(text, figures, _HIDDEN)
    matches = (m for statement in _REPLACED_PATTERNS for m in statement.finditer(hidden) if figures)
    found = (replaced for match in matches for replaced in _replaced_by(match, text, figures))
    return (*{replaced.figure.start: replaced for replaced in found}.values(),)


def _replaced_by(match: re.Match[str], text: str, figures: Sequence[Figure]) -> Iterator[Replaced]:
    """The figures that a statement, in a text whose figures are hidden, says no longer hold."""
    (first, last), hidden = match.span("old"), match.string
    least = max(0, match.start() - _EXCERPT)
    breaks = [found.end() for found in _BREAK.finditer(hidden, least, match.start())]
    start = breaks[-1] if breaks else least and hidden.find(" ", least) + 1
    end = match.end() + (hidden[match.end() : match.end() + 1] == ")")
    inside = figures[slice(*(bisect_left(figures, at, key=_START) for at in (start, end)))]
    end = max(end, inside[-1].end)
    old = [f for f in inside if first <= f.start < last and not f.is_counting]
    old = [f for f in old if f.unit not in ("name", "version")]
    words = " ".join(text[start:end].split()).rstrip(".,")
    context = hidden[max(0, start - _CONTEXT) : end + _CONTEXT].replace(_HIDDEN, " ")
    groups = match.groupdict()
    event, since, denied, changed = map(groups.get, ("event", "since", "not", "new"))
    is_joined = changed and len(hidden[last : match.start("new")].split()) <= _JOINING_WORDS
    for written in [f for f in old if f.unit == "date"] or old:  # "2 to 6 November".
        near = [f for f in inside if not first <= f.start < last]
        near.sort(key=lambda other: abs(other.start - written.start))
        names_a_thing = _names_a_thing(hidden, written, *near[:1])
        is_value = not names_a_thing and (is_joined if changed else not written.nouns)
        figure = _completed(written, near[0]) if near and is_value else written
        if event and figure.unit == "th" and not _NOUN.match(hidden, figure.end):
            day = None, None, int(figure.readings[0][1])  # "We cannot come on the 24th."
            figure = replace(figure, readings=(("date", day),))
        others = [other for other in near if other.kind == figure.kind]
        is_moment, is_bare = figure.unit in ("date", "clock"), figure.unit in ("", "th")
        is_short = len(_digits(figure.text)) < 2 and not figure.nouns
        is_no_value = is_bare and (denied or names_a_thing or is_short)
        is_unchanged = (event and not is_moment) or (changed and not others)
        if not (since or is_no_value or is_unchanged):
            yield Replaced(figure, next(iter(others), None), words, context)


def _names_a_thing(hidden: str, figure: Figure, new: Figure | None = None) -> bool:
    """Whether a bare number is a name, such as "no. 4", also of what is moved to a new day."""
    pair = figure, new
    before, before_new = (hidden[max(0, f.start - _REACH) : f.start] if f else "" for f in pair)
    is_moved = new is not None and (new.unit == "date" or _WEEKDAY.search(before_new))
    is_name = _NUMBER_LABEL.search(before) or (is_moved and not _BEFORE_DAY.search(before))
    return figure.unit in ("", "th") and bool(is_name)


def _completed(figure: Figure, new: Figure) -> Figure:
    """A bare number with the month, unit or noun of the figure in its place: "from 9 to 23 May"."""
    value = figure.readings[0][1]
    readings: list[Reading] = []
    if figure.unit not in ("", "th"):
        return figure
    if new.unit == "date" and 1 <= value <= 31:
        readings = [("date", (*day[:2], int(value))) for day in new.dates if day[2]]
    elif new.amount and new.unit:
        amounts = [(unit, n) for unit, n in new.readings if isinstance(n, Fraction)]
        readings = [(unit, value / new.amount * other) for unit, other in amounts]
    figure = replace(figure, nouns=figure.nouns or new.nouns)
    return replace(figure, readings=(*readings,)) if readings else figure
