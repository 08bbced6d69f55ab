"""What texts say of others: that a document, a figure or words of it no longer hold. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

from rolebundle.contracts.dates import date_in_name, is_month, is_of_date, newest_words
from rolebundle.contracts.documents import STATEMENT, Passage
from rolebundle.lazy import lazy_module
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.values import Candidate, lift
from rolebundle.retrieval.versions import (
    ABOUT_AS_GOOD,
    MAX_CHECKED_FOR_NEWER,
    date_of,
    dated_entries,
    day_of,
    day_of_copying,
    is_draft_by_path,
    is_older,
    may_displace,
    naming_words,
    newer_by_path,
    recency_by_path,
)
from rolebundle.text.amended import Change, change_for, changes, is_of_other_thing
from rolebundle.text.languages import STOP_WORDS, stop_words_of
from rolebundle.text.replaced import (
    BESIDE,
    digits_in,
    gone_statements,
    has_replacement_cue,
    is_same,
    is_telling,
    replaced_figures,
    says,
    words_gone,
)
from rolebundle.text.spellings import folded
from rolebundle.text.sums import asks_for_sum
from rolebundle.text.tasks import tasks_in
from rolebundle.text.words import content_words, is_english, is_ordinary

text_figures = lazy_module("rolebundle.text.figures")

_LABEL = re.compile(r"(?<![^\W_])([^\W\d_]+)[-_ .]?(\d+[a-z]?)(?![^\W_])", re.IGNORECASE)
_YEAR_LABEL = re.compile(r"(?<![^\W_])([A-Z]{1,4}-\d{4})[-/](\d+)(?![^\W_])")
_VERSION = re.compile(r"(?<![^\W_])v(?:er(?:sion)?)?[-_. ]?(\d+(?:\.\d+)*)", re.IGNORECASE)
_DAY = re.compile(r"(?:\d\d?\.? |(?<= )(?=[A-Z]))([^\W\d_]{3,})")
_FUNCTION_WORDS = stop_words_of((*STOP_WORDS,))
_HEAD = 600
"""Characters of a passage that may have the number of its document."""
_ADDRESS = re.compile(r"\S+@\S+")
_MIN_ISSUER, _MAX_NAME_WORDS = 5, 3
"""Letters and words of the name of an issuer."""
_MAIL_PROVIDERS = frozenset(
    "gmail googlemail hotmail outlook yahoo icloud proton protonmail posteo mailbox laposte".split()
)
_MIN_TELLING = 5
"""Letters of a word that alone shows that a sentence is about a task."""
_MAX_STATEMENT = 300
"""Characters of a sentence that tells of a change."""
_BESIDE_DATE = 200
"""Characters beside a date that say what it is of: a passage seldom has the same one twice."""


def put_newer_versions_first(ranked: list[Candidate], task: str) -> None:
    """Put a newer version of the file of each of the first three passages above that passage.

    It answers about as well, may displace the older one, and the role does not prefer that one. The
    task does not name the older one.
    """
    passages = [row.passage for row in ranked]
    for first in ranked[:MAX_CHECKED_FOR_NEWER]:
        stating = replacing_passages(first.passage, passages)
        unnamed = (p for p in stating if not names_document(task, first.passage, p))
        ids = {p.document.document_id for p in unnamed}
        rows = [
            row
            for row in ranked
            if row.can_be_selected
            and row.final >= ABOUT_AS_GOOD * first.final
            and row.metadata_score >= first.metadata_score
            and may_displace(row, first)
        ]
        newer = newer_by_path(first.passage, [passage.path for passage in passages], task)
        rows = [r for r in rows if r.passage.path in newer or r.passage.document.document_id in ids]
        rows.sort(key=lambda row: (recency_by_path(row.passage.path), row.final))
        if rows and rows[-1].final < first.final:
            by = "name" if rows[-1].passage.path in newer else "text"
            reason = f"newer, by its {by}, than {first.chunk_id}"
            lift(ranked, rows[-1], first, reason)


def replacing_passages(first: Passage, others: Iterable[Passage]) -> list[Passage]:
    """A passage of each document that replaces the document of a passage, as one of the two says.

    They are trusted as much, no older, and no drafts. What is untrusted says nothing of others, and
    what is from outside replaces only what has the same sender. Empty if a declaration
    supersedes the first one.
    """
    found = _passages_saying("replaces", first, [*others])
    return [p for p in found if _may_be_quoted_against(p, first)]


def amending_passages(first: Passage, others: Iterable[Passage]) -> list[Passage]:
    """The passages of each document that changes parts of the document of a passage, as it says.

    The same holds as for :func:`replacing_passages`, but what is from outside may say it, too. The
    latest document is first.
    """
    known = {p.chunk_id: p for p in others}.values()
    ids = {p.document.document_id for p in _passages_saying("amends", first, known)}
    return sorted((p for p in known if p.document.document_id in ids), key=date_of, reverse=True)


def amendment(first: Passage, others: Iterable[Passage], task: str) -> tuple[Passage | None, str]:
    """The passage that amends what a passage says about a task, if one does, and its sentence.

    The sentence is empty for a text from outside about one of another sender, and if it is not
    known which one of several clauses is asked for.
    """
    content, heading = first.content, " ".join(first.headings[-1:])
    asked = content_words(task, content) - content_words(names_of(first), content)
    for by in amending_passages(first, others):
        found = [one for one in changes_by(by, first) if not is_of_other_thing(task, one)]
        change = change_for(asked, found, content, heading)
        if change or (found and asked.isdisjoint(content_words(content))):
            return by, change.new.text if change and may_amend(by, first) else ""
    return None, ""


def changes_by(by: Passage, first: Passage) -> tuple[Change, ...]:
    """The sentences of a passage that one which amends it changes."""
    found = changes(first.content, " ".join(first.headings[-1:]), by.content, names_of(first))
    days = text_figures.find_figures(date_of(first))

    def is_reference(change: Change) -> bool:
        """Whether the new sentence only names the document: "to the agreement of 2 May"."""
        dates = (figure for figure in change.new.figures if figure.unit == "date")
        has_day = any(is_same(*pair) for pair in product(days, dates))
        return has_day and not says(change.new.text, "change", "new", "turn")

    return tuple(change for change in found if not is_reference(change))


def names_of(passage: Passage) -> str:
    """The title and the name of the file of a passage."""
    return f"{passage.document.title} {_stem(passage)}"


def lift_amendments_behind(ranked: list[Candidate], task: str) -> None:
    """Put what amends one of the first three passages, as to the task, directly behind it."""
    can_be_first = [row for row in ranked if row.can_be_selected]
    for first in can_be_first[:MAX_CHECKED_FOR_NEWER]:
        rows = {row.passage.chunk_id: row for row in can_be_first}
        by, _ = amendment(first.passage, (row.passage for row in rows.values()), task)
        if by and may_amend(by, first.passage):
            lift(ranked, rows[by.chunk_id], first, f"amends {first.chunk_id}", behind=True)


def names_document(text: str, named: Passage, other: Passage) -> bool:
    """Whether a text names the document of a passage, and not another one."""
    return _name_strength(text, named, other) > 0


def _statements(passage: Passage) -> list[tuple[str, str]]:
    texts = (text for key, own in passage.document.attributes if key == STATEMENT for text in own)
    return [(kind, words) for kind, _, words in (text.partition(" ") for text in texts)]


def _may_be_quoted_against(new: Passage, old: Passage) -> bool:
    """Whether it may displace the old one; what is from outside, only one of the same sender."""
    is_from_same = "" != _sender(new) == _sender(old)
    is_trusted = new.document.origin != "external" or is_from_same
    return is_trusted and may_displace(Candidate(new), Candidate(old))


def may_amend(new: Passage, old: Passage) -> bool:
    """Whether its words may stand beside the old one; also a mail of who is named there.

    The name is that of the registered domain, in whole words (``portmaren`` for Port Maren), and no
    English word. It is harder to take than one before the address, but can be forged, too.
    """
    *labels, top = _sender(new).rpartition("@")[2].rstrip(">").casefold().split(".")
    if len(top) == len("uk") and len(labels) > 1 and len(labels[-1]) <= len("com"):
        labels.pop()  # Of co.uk.
    name = "".join(labels[-1:]).replace("-", "")
    words = words_of(_ADDRESS.sub(" ", f"{names_of(old)} {old.content}"))
    is_named = len(name) >= _MIN_ISSUER and name not in _MAIL_PROVIDERS and _names(words, name)
    return (is_named and new.document.origin == "external") or _may_be_quoted_against(new, old)


def _names(words: Sequence[str], name: str) -> bool:
    """Whether consecutive words, not all of them English, are a name without spaces."""
    spans = product(range(len(words)), range(1, 1 + _MAX_NAME_WORDS))
    parts = (words[start : start + length] for start, length in spans)
    return any("".join(part) == name and not all(map(is_english, part)) for part in parts)


def _sender(passage: Passage) -> str:
    """Name and address of who sent a mail; empty for other files."""
    return "".join(dict(passage.document.attributes).get("from", ())[:1])


def _passages_saying(
    kind: Literal["replaces", "amends"], old: Passage, others: Collection[Passage]
) -> list[Passage]:
    """A passage of each document that replaces, or amends, that of a passage, as they say."""
    keys = (key for p in (old, *others) for key, _ in p.document.attributes)
    if old.superseded_by or STATEMENT not in keys:
        return []
    known = {p.document.document_id: p for p in (*others, old)}
    numbers = defaultdict[str, frozenset[str]](frozenset)
    for p in (*others, old) if kind == "amends" else ():
        numbers[p.document.document_id] |= _labels(p.content[:_HEAD])

    def strength(words: str, named: Passage, by: Passage, said: str) -> int:
        return _name_strength(words, named, by, said, numbers[named.document.document_id])

    def is_said(said: str, by: Passage, named: Passage) -> bool:
        stems = _stem(named), _stem(by)
        return any(
            one == said
            and (best := strength(words, named, by, said)) > 0
            and all(
                strength(words, p, by, said) < best
                # What amends a document, and a mail about it, have names like it.
                or (said == "amends" and _sender(p) and not _sender(named))
                or (said == "amends" and any(own == said for own, _ in _statements(p)))
                for p in known.values()
                if _stem(p) not in stems and may_displace(Candidate(p), Candidate(named))
            )
            for one, words in _statements(by)
        )

    return [
        new
        for new in known.values()
        if new is not old
        and "untrusted" not in (new.document.trust_tier, new.document.origin)
        and not is_draft_by_path(new.path)
        and not is_older(new, old)
        and _may_contradict(Candidate(new), Candidate(old))
        and (is_said(kind, new, old) or (kind == "replaces" and is_said("replaced_by", old, new)))
    ]


def _name_strength(
    text: str, named: Passage, other: Passage, kind: str = "", numbers: Set[str] = frozenset()
) -> int:
    """How much of a name of a document a text has; 0 if this does not tell it from another one.

    What tells it is one of these:

    - a label that the other one does not have, such as ``SR-14``;
    - its version or its date;
    - all words of its title, or of the name of its file, that the other one does not have there.
      If that one has all of them, all are needed, and at least two.

    But for labels, both documents, or this one and the text, must have a word in common. What
    "amends" it may have its label, may name it by one of the ``numbers`` that stand in it, and by
    words of its names, if two stand there or in its own ones, or both lie in one folder.
    """
    dates, versions = {*_dates_in(text, date_of(other)[:4])}, {*_VERSION.findall(text)}
    written = {*words_of(text), *dates}
    other_names = names_of(other)
    is_amending = kind == "amends"
    labels = _labels(text) - (frozenset() if is_amending else _labels(other_names))
    asked = naming_words(filter(str.isalpha, words_of(text))) - _FUNCTION_WORDS
    own_names = naming_words(words_of(names_of(named))) - _FUNCTION_WORDS
    shared = own_names & asked.union(words_of(other_names))
    folders = {passage.path.rpartition("/")[0] for passage in (named, other)}
    has_enough = len(shared) > 1 or (len(folders) == 1 and folders != {""})
    is_named = is_amending and not (dates or labels) and asked <= shared and has_enough and asked
    found = 0
    for name in (named.document.title, _stem(named)):
        words = {word for word in words_of(name) if len(word) > 1 or word.isdecimal()}
        telling = words.difference(words_of(other_names)) or (words if len(words) > 1 else {name})
        related = (naming_words(words) - _FUNCTION_WORDS) & written.union(words_of(other_names))
        month = date_in_name(name)
        is_dated = any(map(date_of(named).startswith, dates))
        is_dated |= len(month) == len("2026-08") and any(d.startswith(month) for d in dates)
        is_version = not versions.isdisjoint(_VERSION.findall(name))
        is_told = is_dated or is_version or is_named or telling <= written
        is_numbered = is_amending and not labels.isdisjoint(numbers)
        if is_numbered or not labels.isdisjoint(_labels(name)) or (related and is_told):
            found = max(found, 1 + len(words & written) + is_dated)
    return found


@lru_cache(maxsize=4096)
def _labels(text: str) -> frozenset[str]:
    """Words with a number: ``SR-14`` as ``sr14``. No dates and versions."""
    return frozenset(map("-".join, _YEAR_LABEL.findall(text))) | frozenset(
        f"{word}{number}".casefold()
        for word, number in _LABEL.findall(folded(text))
        if naming_words([word.casefold()])
        and (word.isupper() or word.casefold() not in _FUNCTION_WORDS)
        and not re.fullmatch(r"(?:19|20)\d\d", number)
    )


@lru_cache(maxsize=4096)
def _dates_in(text: str, year: str) -> tuple[str, ...]:
    """The date of a text; without one the days and months in it, of the given year."""
    days = (found[0] for found in _DAY.finditer(text) if is_month(found[1].casefold()))
    date = date_in_name(text)
    return (date,) if date else (*filter(None, (date_in_name(f"{day} {year}") for day in days)),)


def _stem(passage: Passage) -> str:
    return passage.path.rpartition("/")[2].rpartition(".")[0]


# -- what a later text says of a passage -----------------------------------------------------------


class Outdated(NamedTuple):
    """What another passage says no longer holds.

    Attributes:
        figure: of the first passage; "" if it is something else.
        by: the passage that says so.
        words: its words; "" if they may not be quoted against the first one.
    """

    figure: str
    by: Candidate
    words: str


def outdated_figure(first: Candidate, others: Sequence[Candidate], task: str) -> Outdated | None:
    """A figure of a passage that another one says no longer holds; ``None`` if there is none.

    That one has a date, is no older, is trusted as much, and does not have the same in its place. A
    word of the task stands beside the figure in both. A text from outside is not quoted against an
    own file.
    """
    content, asked = first.passage.content, _words_in_any_language(task)
    digits = digits_in(content) if asked else set[str]()
    for row, _ in _contradicting(first, others) if digits else ():
        text = row.passage.content
        if is_older(row.passage, first.passage) or not has_replacement_cue(text, digits):
            continue
        figures: list[Any] = text_figures.find_figures(content)
        for figure, old in product(figures, replaced_figures(text)):
            if not is_same(figure, old.figure):
                continue
            reach = _BESIDE_DATE if figure.unit == "date" else BESIDE
            start, end = max(0, figure.start - reach), figure.end + reach
            beside = [f for f in figures if start <= f.start < end]
            has_new = old.new is not None and any(is_same(f, old.new) for f in beside)
            near = _words_in_any_language(content[start:end])
            if asked & near & _words_in_any_language(old.context) and not has_new:
                words = old.words if may_displace(row, first) else ""
                return Outdated(figure.text.rstrip("."), row, words)
    return None


def _words_in_any_language(text: str) -> frozenset[str]:
    """Its content words, as stems and as they are written: a part may show another language."""
    return content_words(text) | {word for word in words_of(text) if word not in _FUNCTION_WORDS}


def outdated_words(first: Candidate, others: Sequence[Candidate], task: str) -> Outdated | None:
    """Words of a passage that another one, with a later date, says no longer hold.

    Another word of the task stands there, or in the names of both; in these if the passage has no
    date.
    """
    document, date, asked = first.passage.document, date_of(first.passage), content_words(task)
    own = content_words(first.passage.content) - words_gone(first.passage.content)
    names = content_words(f"{document.title} {first.passage.path}")
    for row, day in _contradicting(first, others):
        for stems, words, _ in gone_statements(row.passage.content) if date < day else ():
            in_both = names & content_words(row.passage.document.title)
            near = content_words(words) if date else in_both
            gone, shared = stems & own, (asked - stems) & near
            # Without a quotation, all of the words that are gone must be in the passage.
            is_quoted = may_displace(row, first)
            is_said = 2 * len(gone) >= len(stems) if is_quoted else gone == stems
            if shared and is_said and is_telling(gone, shared):
                return Outdated("", row, words if is_quoted else "")
    return None


def later_change(first: Candidate, others: Sequence[Candidate], task: str) -> Outdated | None:
    """What another passage, with a later date, changes of what a passage says of a task.

    As in a text that amends it, a sentence of both is about the same. Words of the task stand in
    the older one, or the task asks for a sum, and both have one.
    """
    passage, date = first.passage, date_of(first.passage)
    of_time = (word for word in words_of(task) if is_of_date(word) or word in newest_words())
    no_matter = content_words(f"{names_of(passage)} {' '.join(of_time)}", passage.content)
    own, asked = content_words(passage.content), content_words(task, passage.content) - no_matter
    for row, day in _contradicting(first, others) if date else ():
        if not may_displace(row, first) or amending_passages(passage, [row.passage]):
            continue
        entries = dated_entries(row.passage) or [row.passage] * (day > date)
        texts = [p for p in entries if p is row.passage or is_older(passage, p)]
        for change in (one for text in texts for one in changes_by(text, passage)):
            words, gone = change.new.text, words_gone(change.new.text)
            common = change.old.words & change.new.words
            is_of_other = bool(gone) and gone.isdisjoint(own)
            if (
                says(words, "turn")
                and not is_of_other
                and len(common) > 1
                and not all(map(is_ordinary, common))
                and all(_is_statement(sentence.text) for sentence in change)
                and _is_asked(change, asked, task)
            ):
                return Outdated("", row, " ".join(words.split()))
    return None


def _is_asked(change: Change, asked: frozenset[str], task: str) -> bool:
    """Whether a task asks for what changed: by its words, or those that they begin, or a sum."""
    beginnings = (*(word for word in asked if len(word) >= _MIN_TELLING),)
    shared = {w for w in change.old.words if w in asked or w.startswith(beginnings)}
    in_both = [word for word in shared & change.new.words if len(word) >= _MIN_TELLING]
    are_sums = all(any(map(text_figures.is_money, s.figures)) for s in change)
    is_of_sum = are_sums and bool(asked) and asks_for_sum(task)
    return len(shared) > 1 or not all(map(is_ordinary, in_both)) or is_of_sum


def _is_statement(text: str) -> bool:
    """Whether a text is a sentence or a row, and no title, task or table."""
    is_short = len(text) < _MAX_STATEMENT and text.strip().count("\n") < (1 if "|" in text else 3)
    return is_short and not tasks_in(text) and not text.isupper() and not text.startswith("#")


def _contradicting(
    first: Candidate, others: Sequence[Candidate]
) -> Iterator[tuple[Candidate, str]]:
    """The dated others that may contradict a passage, and that it does not amend; with days."""
    copied_on = day_of_copying(row.passage for row in others)
    for row in others:
        day = day_of(row.passage, copied_on) if row is not first else ""
        is_other = day and _may_contradict(row, first)
        if is_other and not amending_passages(row.passage, [first.passage]):
            yield row, day


def _may_contradict(row: Candidate, first: Candidate) -> bool:
    """Whether it may displace the first one, or is from outside, and trusted as much."""
    document, other = row.passage.document, first.passage.document
    is_as_trusted = document.trust_tier == other.trust_tier
    return may_displace(row, first) or (document.origin == "external" and is_as_trusted)
