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


def disagreement(first: str, second: str) -> tuple[str, str] | None:
    """In what two sentences disagree: the values of the first and of the second, as text.

    Symmetrical, apart from the order of the values. ``None`` if they are not aligned or agree.
    """
    one, other = read(first), read(second)
    if one is None or other is None or not _are_aligned(one, other):
        return None
    figures = _differing_figures(one, other)
    negated = [mine != its for mine, its in zip(one.negations, other.negations, strict=True)]
    if figures is not None and figures != ("", ""):
        return None if any(negated) else figures
    # A negation in a condition ("if it is not set") makes another case, and no disagreement. Words
    # that one of them lacks may be such a condition.
    is_sentence = not (first[0].islower() or second[0].islower())
    if figures is not None and all(negated) and one.words ^ other.words <= _MODAL and is_sentence:
        return _differing_words(first, second)
    return None


def _are_aligned(one: Statement, other: Statement) -> bool:
    shared = one.words & other.words
    only_one, only_other = one.words - shared - _NEUTRAL, other.words - shared - _NEUTRAL
    return not (
        (only_one and only_other)
        or one.references != other.references
        or only_one & one.names
        or only_other & other.names
        or len(shared) < ALIGNED * len(shared | only_one | only_other)
        or {one.bounds, other.bounds} == {frozenset({"least"}), frozenset({"most"})}
    )


def _differing_figures(one: Statement, other: Statement) -> tuple[str, str] | None:
    """The figures of one kind that differ; empty texts if none does, ``None`` if several kinds."""
    first, second = _by_kind(one.figures), _by_kind(other.figures)
    differing = []
    for kind in first.keys() & second.keys():
        left = [a.text for a in first[kind] if not any(_are_equal(a, b) for b in second[kind])]
        right = [b.text for b in second[kind] if not any(_are_equal(a, b) for a in first[kind])]
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


def _are_equal(one: Figure, other: Figure) -> bool:
    first, second = one.value, other.value
    if isinstance(first, float) and isinstance(second, float):
        is_converted = one.unit != other.unit and one.kind in ("time", "size")
        tolerance = UNIT_TOLERANCE if is_converted else 0.0
        return abs(first - second) <= tolerance * max(abs(first), abs(second))
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second) == 3:
        return all(a is None or b is None or a == b for a, b in zip(first, second, strict=True))
    return first == second


def _differing_words(first: str, second: str) -> tuple[str, str]:
    """The parts of two sentences that differ, with one word before and after."""
    from difflib import SequenceMatcher

    words, others = first.split(), second.split()
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    start, end = changes[0][1], changes[-1][2]
    other_start, other_end = changes[0][3], changes[-1][4]
    return (
        _shown(words[max(0, start - 1) : end + 1]),
        _shown(others[max(0, other_start - 1) : other_end + 1]),
    )


def _shown(words: list[str]) -> str:
    text = " ".join(words).rstrip(".;,")
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
