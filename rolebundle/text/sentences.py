"""The sentences of a text, with what shows quickly that two of them cannot disagree. Pure.

This is the first half of finding disagreements, and cheap. The second half, which reads what a
sentence states, is in ``disagreements.py`` and needed for few pairs of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from rolebundle.text.stop_words import ENGLISH, NEGATIONS, NUMBER_WORDS, ORDINALS, STOP_WORDS

MIN_CHARS, MAX_CHARS = 15, 400

CONTRACTIONS = "n't", "n’t"
# Words that mean the same in rules; after the bar, words that deny it.
OPPOSITES = """
    required require requires mandatory obligatory compulsory necessary | optional voluntary
    allowed allow allows permitted permit permits | forbidden forbid forbids prohibited
    allowed | banned blocked
    enabled enable enables activated | disabled disable disables deactivated off
    included include includes including | excluded exclude excludes excluding
    accepted accept accepts | rejected reject rejects refused refuse refuses
    open opens opened | closed close closes
    keep keeps kept retain retains retained store stores stored hold holds held |
    begin begins starts start started |
    ends end ended finish finishes finished |
    lasts last takes take |
    automatically | manually
    compatible | incompatible
    secure | insecure
    sensitive | insensitive
    costs cost charges charge charged price prices fee fees |
    pays pay paid paying |
    sends send sent sending |
    gives give gave given |
    sells sell sold |
    gets get receives receive received obtains obtain obtained |
    carries carry carried bears bear |
    days day daily |
    years year yearly annual annually |
    memory ram |
    width wide |
    height high |
    length long |
    depth deep |
    weight weigh weighs heavy |
"""
_UNDENIED = "uni", "unan", "under", "until", "unless"
_DENIALS = NEGATIONS.union(*(line.partition("|")[2].split() for line in OPPOSITES.splitlines()))
_STOP_WORDS = frozenset[str]().union(*STOP_WORDS.values())
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_FIGURE_WORDS = (
    NUMBER_WORDS.keys()
    | ORDINALS.keys()
    | frozenset(_WEEKDAYS)
    | {f"{day}s" for day in _WEEKDAYS}
    | frozenset(
        "once twice half hundred thousand million dozen noon midday midnight january february "
        "march april may june july august september october november december".split()
    )
)
_SYNONYMS = {
    word: line.split()[0] for line in OPPOSITES.strip().splitlines() for word in line.split()
}
_NO_TOPIC = (
    ENGLISH
    | _FIGURE_WORDS
    | frozenset("second minute hour day week month year".split())
    | frozenset("seconds minutes hours days weeks months years".split())
)
# "For a week" has a figure, and "weekly" is one.
_IN_FIGURES = _FIGURE_WORDS | frozenset(
    "minute hour day week fortnight month quarter year hourly daily weekly monthly quarterly "
    "yearly annually".split()
)


class Sentence(NamedTuple):
    """A sentence, and what is needed to see quickly that it disagrees with no other one.

    Attributes:
        text: the sentence on one line.
        words: the first five letters of its content words; the same for synonyms.
        has_figure: whether it has a digit, a number word or the name of a month or a day.
        negations: how many words it has that deny.
    """

    text: str
    words: frozenset[str]
    has_figure: bool
    negations: int


# Where sentences end: after a full stop, at a semicolon, at a blank line, before an item of a list
# or a heading.
END = re.compile(
    r"(?<=[.!?])[\"')\]”’]*\s+(?=[^\sa-z])|(?<=;)\s+|\n\s*\n\s*|\n(?=\s*(?:[-*•+|#>]|\d+[.)])\s)"
)
_MARKER = re.compile(r"\s*(?:[-*•+>]+|\d+[.)])\s+")
_TOKENS = re.compile(r"[^\W_]+(?:['’]t\b)?")


@lru_cache(maxsize=1024)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text that can be compared; without tables, headings and source code."""
    # Cached, because the next request often has many of the same passages.
    if "```" in text:
        text = re.sub(r"```.*?(?:```|\Z)", "\n\n", text, flags=re.DOTALL)
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[Sentence]:
    for part in END.split(text):
        line = " ".join(part.split())
        if marker := _MARKER.match(line):
            line = line[marker.end() :]
        line = line.replace("`", "").replace("*", "")
        if not MIN_CHARS <= len(line) <= MAX_CHARS or line[0] in "#|":
            continue
        tokens = _TOKENS.findall(line.lower())
        # A heading, a caption or "Status: accepted" states nothing.
        if _STOP_WORDS.isdisjoint(tokens) and (line[-1] not in ".!" or ":" in line):
            continue
        has_figure = any(map(str.isdigit, line)) or not _IN_FIGURES.isdisjoint(tokens)
        negations = sum(map(denies, tokens))
        words = _beginnings(token for token in tokens if not token[0].isdigit())
        yield Sentence(line, words, has_figure, negations)


@lru_cache(maxsize=64)
def topic_of(task: str) -> frozenset[str]:
    """The first letters of a task's words, as in ``Sentence.words``."""
    return topic_words(task)


def topic_words(text: str) -> frozenset[str]:
    """The first letters of the content words of any text, as in ``Sentence.words``."""
    return _beginnings(_TOKENS.findall(text.lower()))


def _beginnings(tokens: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_beginning, tokens)) - {""}


@lru_cache(maxsize=8192)
def _beginning(word: str) -> str:
    if len(word) < 3 or word in _NO_TOPIC:
        return ""
    return _SYNONYMS.get(word, word[2:] if is_denied(word) else word)[:5]


def may_disagree(first: Sentence, second: Sentence) -> bool:
    """Whether it is worth reading both sentences: a test of a microsecond."""
    if first.negations == second.negations and not (first.has_figure and second.has_figure):
        return False
    if first.text == second.text:
        return False
    words, second_words = first.words, second.words
    return 2 * len(words & second_words) >= max(len(words), len(second_words), 2)


@lru_cache(maxsize=8192)
def denies(word: str) -> bool:
    """Whether a lowercase word is a negation or the denial of another word."""
    return word in _DENIALS or word.endswith(CONTRACTIONS) or is_denied(word)


def is_denied(word: str) -> bool:
    """Whether a word is the denial of another one: "unavailable", "unsafe"."""
    return len(word) > 5 and word.startswith("un") and not word.startswith(_UNDENIED)
