"""Which sentences of a document a later one changes: "Clause 5: no photography". Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.lazy import lazy_module
from rolebundle.text.replaced import document_pattern, is_same, says, without_figures
from rolebundle.text.words import content_words, is_ordinary, language_of, sentences_of

# What few answers need is loaded by them.
if TYPE_CHECKING:
    from rolebundle.text.figures import Figure
text_figures = lazy_module("rolebundle.text.figures")

_CAPITALIZED = re.compile(r"\b[A-ZÀ-Þ][\w-]*")
_DIGITS_OF_NAME = 2
"""Digits of the number of a thing, such as shed 12; longer ones are often values."""

_MAX_OF_CLAUSE = 4
"""Sentences of a clause, with its heading, that is about one matter."""


class ReadSentence(NamedTuple):
    """A sentence, the number of its clause or "", and its words and figures."""

    text: str
    clause: str
    words: frozenset[str]
    figures: tuple[Figure, ...]


class Change(NamedTuple):
    """A sentence of a document, and the one of a later document that holds in its place."""

    old: ReadSentence
    new: ReadSentence


def is_denied(text: str) -> bool:
    """Whether a sentence says that something is not so, or forbidden."""
    return document_pattern("denial").search(text) is not None


def _is_heading(sentence: str) -> bool:
    return sentence.lstrip().startswith("#")


def _kind_of(figure: Figure) -> str:
    return figure.kind or "".join(figure.nouns[:1])


@lru_cache(maxsize=1024)
def read_sentences(
    text: str, heading: str = "", *, of_others: bool = False
) -> tuple[ReadSentence, ...]:
    """The sentences of a text.

    Their clauses are those of the text, whose first one may be in its heading; or ``of_others``,
    the ones that the sentences name: "Clause 5: …", "(number 5)".
    """
    own, named = map(document_pattern, ("own_number", "part_number"))
    match = own.search(f"# {heading}")
    clause, section, before = match["heading"] if match else "", "", ""
    found = list[ReadSentence]()
    for sentence in sentences_of(text):
        if of_others:
            match = named.search(sentence)
            if _is_heading(sentence):
                clause = section = match["number"] if match else ""
            elif match or content_words(named.sub(" ", before)):  # Not below "Clause 5".
                clause = match["number"] if match else section
        elif match := own.search(sentence):
            clause = match["heading"] or match["line"]
        plain = named.sub(lambda part: " " * len(part[0]), sentence)
        figures = (*text_figures.find_figures(plain),)
        words = content_words(without_figures(plain, figures), text)
        found.append(ReadSentence(sentence, clause, words, figures))
        before = sentence
    return (*found,)


@lru_cache(maxsize=256)
def changes(old: str, heading: str, new: str, names: str) -> tuple[Change, ...]:
    """The sentences of a text that a text which amends it changes.

    They are of one clause, as the new one says, or half of the words of one of them are the same.
    What "stays" changes nothing.

    Args:
        old: the text of a passage.
        heading: its own one, which may have the number of a clause.
        new: the text of a document that amends its document.
        names: of the first document; their words are in sentences about anything.
    """
    common, found = content_words(names, old), list[Change]()
    olds = [s for s in read_sentences(old, heading) if not _is_heading(s.text)]
    news = read_sentences(new, of_others=True)
    for later in [s for s in news if not _is_heading(s.text)] or news:
        stays = says(later.text, "stays")  # But not "stays with the tenant" for "stays with me".
        own_olds = [own for own in olds if not stays or says(own.text, "stays")]
        pairs = [(_likeness(own, later, common), own) for own in own_olds]
        best = max((likeness for likeness, _ in pairs), default=())
        # It may also change others of its clause, if it has half of their words.
        found += [
            Change(own, later)
            for likeness, own in pairs
            if likeness and (likeness == best or (likeness[0] and 2 * likeness[-1] >= 1))
        ]
    return (*found,)


def _likeness(old: ReadSentence, new: ReadSentence, common: frozenset[str]) -> tuple[float, ...]:
    """How much two sentences are about the same: the higher, the more.

    Returns:
        Whether they are of one clause; of how many kinds figures differ; how many words and named
        things they share; the same as a part of the old one's words. Empty if they are not about
        the same: sheds 2 and 3 are not shed 1.
    """
    things, others = map(_named_things, (old, new))
    shared: set[object] = {*(things & others), *((old.words & new.words) - common)}
    is_clause = old.clause == new.clause != ""
    pairs = product(*_figures_of_shared_kinds(old, new))
    kinds = {_kind_of(own) for own, other in pairs if not is_same(own, other)}
    # Who does something instead of another one may do it in other words.
    is_told = says(new.text, "change", "who", "turn")
    is_telling = is_told and not all(map(is_ordinary, old.words & shared))
    has_most = 2 * len(shared) >= min(len(old.words), len(new.words))
    has_enough = len(shared) > 1 and (has_most or is_telling)
    # The parties of a contract stand in both. German nouns have capitals.
    names = content_words(" ".join(_CAPITALIZED.findall(new.text)), new.text)
    has_more_than_names = language_of(new.text) == "de" or not shared <= names
    is_change = bool(kinds - {"date"}) or says(new.text, "change", "who", "new")
    is_like = has_enough and (is_change or has_more_than_names)
    # A row with another figure: "Full price | 12 €".
    is_row = bool(kinds) and old.words <= new.words and says(new.text, "change", "turn")
    is_other_clause = old.clause and new.clause and not is_clause
    is_other_thing = _are_others(things, others)
    # "Clause 4 now reads: £13.25 an hour."
    has_figure = is_clause and bool(kinds) and says(new.text, "change", "new")
    if is_other_clause or is_other_thing or not (shared or has_figure):
        return ()
    if not (is_clause or is_like or is_row):
        return ()
    return is_clause, len(kinds), len(shared), len(shared) / len(old.words)


def is_of_other_thing(task: str, change: Change) -> bool:
    """Whether a task names a thing with a number, such as room 7, and the change another one."""
    asked, things = (
        {(f.label, f.text) for one in sentences for f in one.figures if f.label and not f.unit}
        for sentences in (read_sentences(task), change)
    )
    return _are_others(asked, things)


def _are_others(things: set[tuple[str, str]], others: set[tuple[str, str]]) -> bool:
    """Whether things, each a noun and a number, are none of the others, but of one kind."""
    return things.isdisjoint(others) and not {*dict(things)}.isdisjoint(dict(others))


def _named_things(sentence: ReadSentence) -> set[tuple[str, str]]:
    """The nouns and numbers of things that have one, such as shed 1."""
    bare = [f for f in sentence.figures if f.label and not (f.unit or f.nouns)]
    return {(f.label, f.text) for f in bare if len(f.text) <= _DIGITS_OF_NAME}


def _figures_of_shared_kinds(old: ReadSentence, new: ReadSentence) -> list[list[Figure]]:
    """The figures of both of a kind that both have, such as money, dates or persons."""
    kinds = {*map(_kind_of, old.figures)} & {*map(_kind_of, new.figures)} - {""}
    return [[f for f in one.figures if _kind_of(f) in kinds] for one in (old, new)]


def _nearest(figures: list[Figure], other: Figure) -> list[Figure]:
    """The figures of the kind of another one that have most of the words beside it."""
    shared = [(len(f.near & other.near), f) for f in figures if _kind_of(f) == _kind_of(other)]
    return [f for number, f in shared if number == max(number for number, _ in shared)]


def change_for(
    asked: frozenset[str], found: Sequence[Change], old: str, heading: str
) -> Change | None:
    """The change of what some words ask for; ``None`` if another sentence has more of them.

    One short clause needs none of the words, because a question may have others.
    """
    sentences = read_sentences(old, heading)

    def shared(*texts: str) -> int:
        return len(asked & content_words(" ".join(texts), old))  # With those of its figures.

    best = max((shared(own.text) for own in sentences), default=0)
    near = [(shared(c.old.text, c.new.text), c) for c in found]
    most, change = max(near, key=lambda pair: pair[0], default=(0, None))
    is_short = len({own.clause for own in sentences}) == 1 and len(sentences) <= _MAX_OF_CLAUSE
    return change if most >= max(best, 0 if is_short else max(1, len(asked) / 4)) else None


def says_the_old(text: str, change: Change, amending: str) -> bool:
    """Whether a sentence says what was changed: its figure, its words, or that it is (not) so.

    Args:
        text: the sentence, as somebody else writes it.
        change: the old sentence, which it is about, and the new one.
        amending: the text with the new one, which may repeat other parts of the old one.
    """
    (old, new), words = change, content_words(text, amending)
    later = read_sentences(amending, of_others=True)
    staying = [s.words for s in later if s != new and says(s.text, "stays")]
    if any(0 < len(words & one & old.words) >= len(words & new.words) for one in staying):
        return False
    olds, news = _figures_of_shared_kinds(old, new)
    if olds and news:
        olds = [figure for other in news for figure in _nearest(olds, other)]
        own = [f for f in text_figures.find_figures(text) if any(is_same(f, o) for o in olds)]
        known = [figure for sentence in later for figure in sentence.figures]
        return any(not any(is_same(f, other) for other in known) for f in own)
    gone, added = words & (old.words - new.words), words & (new.words - old.words)
    of_old, of_new, of_text = map(is_denied, (old.text, new.text, text))
    is_turned = of_old != of_new and of_old == of_text
    return is_turned or len(gone) >= max(len(added), 1)
