"""The vocabulary of a drafted overlay: the terms of what the role is about. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rolebundle.authoring.subject import Subject
from rolebundle.authoring.survey import SurveyedDocument
from rolebundle.authoring.terms import (
    MIN_SHARE,
    PassageWords,
    Term,
    characteristic_terms,
    terms_named,
)
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.query import MAX_BOOST_PHRASES, SIGNATURE_PHRASES
from rolebundle.text.counts import counted
from rolebundle.text.words import stems_of

MAX_PREFERRED_TERMS = 14
SOUGHT_FACTOR = 1.5
"""A word of the role's field leads to its passages less by chance than one that is typical here."""
GUESSED_SHARE = 0.25
"""The least share of the passages of a guessed subject that have a single word which is typical."""


def draft_vocabulary(
    subject: Subject, base: Overlay | None, notes: dict[str, str]
) -> dict[str, list[str]]:
    """The boost phrases and preferred terms of an overlay.

    Args:
        subject: what the role is about.
        base: the role that it extends; ``None`` for none.
        notes: gets the evidence of each term: place in the overlay → reason.
    """
    inside = [subject.passages.words[position] for position in subject.inside]
    chosen = set(subject.inside)
    outside = [
        words for position, words in enumerate(subject.passages.words) if position not in chosen
    ]
    # By a name the passages were found by words, and single words of theirs are often chance.
    least_share = GUESSED_SHARE if subject.is_guessed else MIN_SHARE
    found = characteristic_terms(inside, outside, least_share)
    sought = terms_named(subject.sought, inside, outside)
    reasons = {term: subject.sought[term.text] for term in sought}
    known = {term.words for term in sought}
    if subject.is_guessed and len(sought) >= SIGNATURE_PHRASES:
        # Without a word that was sought, a term is of another subject that the passages share.
        stems = {stem for words in known for stem in words}
        found = [term for term in found if stems.intersection(term.words)]
    terms = [*sought, *(term for term in found if term.words not in known)]
    terms.sort(key=lambda term: (-term.z, term.text))
    boosts = _signature(terms, inside, sought)
    boosts += [term for term in _phrases_first(terms) if term not in boosts]
    boosts = boosts[:MAX_BOOST_PHRASES]
    preferred = [term for term in terms if term not in boosts][:MAX_PREFERRED_TERMS]

    def evidence(term: Term) -> str:
        counts = (
            f"in {term.inside} of {counted(len(inside), 'passage')} about the role, of "
            f"{counted(term.documents, 'document')}, and in {term.outside} of {len(outside)} others"
        )
        why = reasons.get(term, f"typical of these passages: z {term.z:g}")
        return f"{why}; {counts}"

    lists: dict[str, list[str]] = {}
    for key, own in (("boost_phrases", boosts), ("preferred_terms", preferred)):
        if base is not None and not own:
            continue  # What the shipped role has stays.
        lists[key] = [term.text for term in own]
        notes.update({f"vocabulary.{key}[{n}]": evidence(term) for n, term in enumerate(own)})
    if base is not None:
        _add_inherited(lists, base, subject.passages.documents, notes)
    return lists


def _add_inherited(
    lists: dict[str, list[str]],
    base: Overlay,
    documents: Sequence[SurveyedDocument],
    notes: dict[str, str],
) -> None:
    """Add the terms of the role that is extended which the documents have.

    A list in the file replaces the inherited one, so they would be lost.
    """
    texts = [
        _stemmed(passage.text)
        for document in {entry.metadata.document_id: entry for entry in documents}.values()
        for passage in document.passages
    ]
    known_terms = {term.casefold() for terms in lists.values() for term in terms}
    for key, terms in lists.items():
        for term in getattr(base.vocabulary, key):
            phrase = _stemmed(term)
            number = sum(phrase in text for text in texts)
            if number and term.casefold() not in known_terms:
                known_terms.add(term.casefold())
                place = f"vocabulary.{key}[{len(terms)}]"
                notes[place] = f"from {base.role_id}; in {counted(number, 'passage')} here"
                terms.append(term)


def _stemmed(text: str) -> str:
    """The stems of all words, as the lexical index compares phrases."""
    return f" {' '.join(stems_of(text, 'en').all)} "


def _phrases_first(terms: Sequence[Term]) -> list[Term]:
    """The terms in their order, phrases before single words of the same strength."""
    order = {term: rank for rank, term in enumerate(terms)}
    return sorted(terms, key=lambda term: order[term] - (6 if len(term.words) > 1 else 0))


def _signature(
    terms: Sequence[Term], inside: Sequence[PassageWords], sought: Collection[Term]
) -> list[Term]:
    """The terms that together lead to the most passages of the subject, and to few others.

    They are added to every query of the role, so they are what a vague task is answered from.
    """
    sets = {
        term: {
            number
            for number, words in enumerate(inside)
            if any(
                run[start : start + len(term.words)] == term.words
                for run in words.stems
                for start in range(len(run) - len(term.words) + 1)
            )
        }
        for term in [*terms[:40], *(term for term in terms[40:] if term in sought)]
    }
    chosen: list[Term] = []
    covered: set[int] = set()

    def gain(term: Term) -> float:
        precision = term.inside / (term.inside + term.outside)
        if term in sought:
            precision *= SOUGHT_FACTOR
        # What is covered already counts a little, so that the last ones are not chance.
        return precision * (len(sets[term] - covered) + 0.25 * len(sets[term] & covered))

    while len(chosen) < SIGNATURE_PHRASES and len(chosen) < len(sets):
        best = max((term for term in sets if term not in chosen), key=gain)
        chosen.append(best)
        covered |= sets[best]
    return chosen
