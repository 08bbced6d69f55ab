"""Sentences that state the same thing with another figure, another date or one negation more. Pure.

Two sentences are *aligned* if they have the same content words, apart from figures and negations;
one of them may have a few words more. Only aligned sentences are compared. They disagree if

- they have figures of the same unit (or dates) that differ, and all else is the same; or
- one of them negates what the other one asserts ("is required", "is not required", "is optional").

Sentences that differ in a name, a reference ("section 4", "version 9.2") or in two units speak of
different things: "grade 3 has 25 days" and "grade 4 has 28 days" agree. So do bounds from different
sides ("at least 8", "at most 12"). A version with a bound ("3.8 or later") is a figure. Sentences
that only their surroundings explain are not compared: "this option", "it", "yesterday". Negations
and opposites are English; figures are of any language with spaces between its words.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from rolebundle.text.statements import Figure, Statement, read
from rolebundle.text.words import stem

ALIGNED = 0.75
"""Aligned sentences share at least this part of their content words (Jaccard index)."""
SHOWN_CHARS = 60
"""The longest part of a sentence that is quoted."""
UNIT_TOLERANCE = 0.03
"""Values in different units are equal up to this part: 3 months are 90 days, 1024 MB are 1 GB."""
# "May sign" and "is allowed to sign" are the same.
_MODAL = frozenset(map(stem, "use allow require".split()))
# Exchanging them for another word does not change what a figure is about.
_NEUTRAL = _MODAL | frozenset(map(stem, "size number amount limit accept contain".split()))


# Cached, because the next request often has many of the same passages.
@lru_cache(maxsize=4096)
def disagreement(first_text: str, second_text: str) -> tuple[str, str] | None:
    """In what two sentences disagree: the values of the first and of the second, as text.

    Symmetrical, apart from the order of the values. ``None`` if they are not aligned or agree.
    """
    first, second = read(first_text), read(second_text)
    if first is None or second is None or not _are_aligned(first, second):
        return None
    figures = _differing_figures(first, second)
    # Of all negations, and of those outside of conditions.
    negated = [a != b for a, b in zip(first.negations, second.negations, strict=True)]
    if figures is not None and figures != ("", ""):
        return None if any(negated) else figures
    # A negation in a condition ("if it is not set") makes another case, and no disagreement. Words
    # that one of them lacks may be such a condition.
    is_sentence = not (first_text[0].islower() or second_text[0].islower())
    if (
        figures is not None
        and all(negated)
        and first.words ^ second.words <= _MODAL
        and is_sentence
    ):
        return _differing_words(first_text, second_text)
    return None


def _are_aligned(first: Statement, second: Statement) -> bool:
    shared = first.words & second.words
    only_first, only_second = first.words - shared - _NEUTRAL, second.words - shared - _NEUTRAL
    return not (
        (only_first and only_second)
        or first.references != second.references
        or only_first & first.names
        or only_second & second.names
        or len(shared) < ALIGNED * len(shared | only_first | only_second)
        or {first.bounds, second.bounds} == {frozenset({"least"}), frozenset({"most"})}
    )


def _differing_figures(first: Statement, second: Statement) -> tuple[str, str] | None:
    """The figures of one kind that differ; empty texts if none does, ``None`` if several kinds."""
    firsts, seconds = _by_kind(first.figures), _by_kind(second.figures)
    differing = []
    for kind in firsts.keys() & seconds.keys():
        left = [a.text for a in firsts[kind] if not any(_are_equal(a, b) for b in seconds[kind])]
        right = [b.text for b in seconds[kind] if not any(_are_equal(a, b) for a in firsts[kind])]
        if left and right:
            differing.append((", ".join(left), ", ".join(right)))
    if len(differing) > 1:
        return None
    return differing[0] if differing else ("", "")


def _by_kind(figures: tuple[Figure, ...]) -> dict[str, list[Figure]]:
    kinds: dict[str, list[Figure]] = defaultdict(list)
    for figure in figures:
        kinds[figure.kind].append(figure)
    return kinds


def _are_equal(first: Figure, second: Figure) -> bool:
    left, right = first.value, second.value
    if isinstance(left, float) and isinstance(right, float):
        is_converted = first.unit != second.unit and first.kind in ("time", "size")
        tolerance = UNIT_TOLERANCE if is_converted else 0.0
        return abs(left - right) <= tolerance * max(abs(left), abs(right))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right) == 3:
        return all(a is None or b is None or a == b for a, b in zip(left, right, strict=True))
    return left == right


def _differing_words(first: str, second: str) -> tuple[str, str]:
    """The parts of two sentences that differ, with one word before and after."""
    from difflib import SequenceMatcher

    words, second_words = first.split(), second.split()
    matcher = SequenceMatcher(None, words, second_words, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    start, end = changes[0][1], changes[-1][2]
    other_start, other_end = changes[0][3], changes[-1][4]
    return (
        _excerpt(words[max(0, start - 1) : end + 1]),
        _excerpt(second_words[max(0, other_start - 1) : other_end + 1]),
    )


def _excerpt(words: list[str]) -> str:
    text = " ".join(words).rstrip(".;,")
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
