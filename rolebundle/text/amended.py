"""Which sentences of a document a later one changes: "Clause 5: no photography". Pure."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.lazy import lazy_module
from rolebundle.text.replaced import document_pattern, is_same, says, without_figures
from rolebundle.text.words import content_words, sentences_of

# What few answers need is loaded by them.
if TYPE_CHECKING:
    from rolebundle.text.figures import Figure
text_figures = lazy_module("rolebundle.text.figures")


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


def _kind_of(figure: Figure) -> str:
    return figure.unit or "".join(figure.nouns[:1])


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
    clause, before = match["heading"] if match else "", ""
    found = list[ReadSentence]()
    for sentence in sentences_of(text):
        if of_others:
            match = named.search(sentence)
            had_words = content_words(named.sub(" ", before))  # Not below "Clause 5".
            clause = match["number"] if match else "" if had_words else clause
        elif match := own.search(sentence):
            clause = match["heading"] or match["line"]
        figures = (*text_figures.find_figures(sentence),)
        words = content_words(without_figures(named.sub(" ", sentence), figures), text)
        found.append(ReadSentence(sentence, clause, words, figures))
        before = sentence
    return (*found,)


def changes(old: str, heading: str, new: str, names: str) -> list[Change]:
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
    for later in read_sentences(new, of_others=True):
        pairs = [(_likeness(own, later, common), own) for own in read_sentences(old, heading)]
        likeness, own = max(pairs, key=lambda pair: pair[0], default=((), None))
        if own is not None and likeness and not says(later.text, "same"):
            found.append(Change(own, later))
    return found


def _likeness(old: ReadSentence, new: ReadSentence, common: frozenset[str]) -> tuple[float, ...]:
    """How much they are about the same, the more the higher; empty if they are not.

    Whether they are of one clause; how many kinds of figures differ, and how many words are shared;
    the part of the old one's words.
    """
    shared = (old.words & new.words) - common
    is_clause = old.clause == new.clause != ""
    kinds = {_kind_of(own) for own, other in product(*_alike(old, new)) if not is_same(own, other)}
    is_like = 2 * len(shared) >= min(len(old.words), len(new.words)) and len(shared) > 1
    is_other_clause = old.clause and new.clause and not is_clause
    if not shared or is_other_clause or not (is_clause or is_like):
        return ()
    return is_clause, len(kinds), len(shared), len(shared) / len(old.words)


def _alike(old: ReadSentence, new: ReadSentence) -> list[list[Figure]]:
    """The figures of both of a kind that both have, such as money, dates or persons."""
    kinds = {*map(_kind_of, old.figures)} & {*map(_kind_of, new.figures)} - {""}
    return [[f for f in one.figures if _kind_of(f) in kinds] for one in (old, new)]


def change_for(asked: frozenset[str], found: list[Change], old: str, heading: str) -> Change | None:
    """The change of what some words ask for; ``None`` if the text has other sentences about it."""
    best = max((len(asked & own.words) for own in read_sentences(old, heading)), default=0)
    near = [(len(asked & (c.old.words | c.new.words)), c) for c in found]
    most, change = max(near, key=lambda pair: pair[0], default=(0, None))
    return change if most >= max(best, 1) else None


def says_the_old(text: str, change: Change, amending: str) -> bool:
    """Whether a sentence says what was changed: its figure, its words, or that it is (not) so.

    Args:
        text: the sentence, as somebody else writes it.
        change: the old sentence, which it is about, and the new one.
        amending: the text with the new one, which may repeat other parts of the old one.
    """
    (old, new), words = change, content_words(text, amending)
    later = read_sentences(amending, of_others=True)
    if any(
        says(s.text, "same") and 0 < len(words & s.words) >= len(words & new.words) for s in later
    ):
        return False
    olds, news = _alike(old, new)
    if olds and news:
        own = [f for f in text_figures.find_figures(text) if any(is_same(f, o) for o in olds)]
        known = [figure for sentence in later for figure in sentence.figures]
        return any(not any(is_same(f, other) for other in known) for f in own)
    gone, added = words & (old.words - new.words), words & (new.words - old.words)
    is_turned = is_denied(old.text) != is_denied(new.text) and is_denied(old.text) == is_denied(
        text
    )
    return is_turned or len(gone) >= max(len(added), 1)
