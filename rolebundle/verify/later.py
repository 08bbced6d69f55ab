"""What later texts say in place of a sentence of a draft.

A cited text may be right, and outdated: a reply, a later mail, a later file of a dated series, a
later entry of notes or an amendment says something else about the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, filterfalse, product
from typing import NamedTuple

from rolebundle.contracts.dates import is_of_date
from rolebundle.contracts.documents import Passage, message_of
from rolebundle.retrieval.messages import is_later_mail, without_attribution
from rolebundle.retrieval.passage_text import quoted, shown_name
from rolebundle.retrieval.statements import amending_passages, changes_by, may_amend, names_of
from rolebundle.retrieval.versions import (
    date_of,
    dated_entries,
    day_of,
    day_of_copying,
    is_in_later_file,
    is_later_section,
    is_older,
    newer_by_path,
)
from rolebundle.text.amended import ReadSentence, is_denied, read_sentences, says_the_old
from rolebundle.text.figures import Figure, find_figures, words_near
from rolebundle.text.replaced import (
    Replaced,
    Said,
    digits_in,
    gone_statements,
    has_replacement_cue,
    is_limit,
    is_same,
    is_telling,
    replaced_figures,
    says,
    without_figures,
    words_gone,
)
from rolebundle.text.words import content_words, is_ordinary, sentences_of
from rolebundle.verify.evidence import DraftEvidence
from rolebundle.verify.figures import LONGER, FigureCheck, check_figures
from rolebundle.verify.findings import shortened
from rolebundle.verify.qualifiers import changes_nothing
from rolebundle.verify.sentences import (
    COVERED,
    LikeSentence,
    best_match,
    names_in,
    sentences_about,
    sentences_like,
    without_numbers,
)

_REPEATED = 0.65
"""From this share of its words on, a later sentence says the same."""
_SIZES = frozenset(("length", "length2", "length3", "mass"))
"""Units of figures that tell things of one kind apart: bottles of 0.5 and 0.75 litres."""
_TOLD: tuple[Said, ...] = ("new", "change", "from_day")


class _Pair(NamedTuple):
    """A later passage beside a cited one.

    Attributes:
        passage: the cited one.
        sentences: those of the later one that are like the one of the draft; none if one of them
            says that a figure of the draft stays. ``shared`` are the words of the draft itself.
        head: the words of the title and heading of the later one.
        most_kept: how many words a sentence that says that something stays shares at most.
        is_related: whether it is of the same series, or a later mail about the matter.
        is_in_place: whether its words about the same matter stand in place of the cited ones.
    """

    passage: Passage
    sentences: Sequence[LikeSentence]
    head: frozenset[str]
    most_kept: int
    is_related: bool
    is_in_place: bool

    def is_revoked_by(self, text: str) -> bool:
        """Whether it takes back a decision, such as one of the day of the cited text."""
        day = find_figures(date_of(self.passage))
        is_of_date = says(text, "change") and _has_day_of(day, text)
        return self.is_related and (is_of_date or says(text, "revoked"))


@dataclass(frozen=True)
class LaterTexts:
    """What the texts beside what a sentence cites say that no longer holds.

    Attributes:
        prose: the sentence without quotes and citations.
        text: the sentence with its quotes.
        source: what stands around the same figures in what is cited.
        cited: the passages that it cites.
        cited_lines: only their cited lines.
        passages: all that may say something else.
        evidence: what the draft may cite.
    """

    prose: str
    text: str
    source: str
    cited: Sequence[Passage]
    cited_lines: Sequence[Passage]
    passages: Sequence[Passage]
    evidence: DraftEvidence

    @cached_property
    def _entries(self) -> list[Passage]:
        """The dated entries of the passages."""
        return [entry for passage in self.passages for entry in dated_entries(passage)]

    @cached_property
    def _copied_on(self) -> str:
        return day_of_copying(self.passages)

    @cached_property
    def _figures(self) -> list[Figure]:
        return find_figures(self.text)

    @cached_property
    def _own(self) -> frozenset[str]:
        """The content words of the sentence, without figures and dates."""
        return without_numbers(without_figures(self.text, self._figures))

    def of_figure(
        self, check: FigureCheck, passage: Passage | None, checks: Sequence[FigureCheck]
    ) -> str:
        """The text that has another figure in place of one; "" without one.

        Args:
            check: the outcome for the figure.
            passage: which has it.
            checks: the outcomes for all figures of the sentence.
        """
        if note := self._replaced(check, passage, checks):
            return note
        sources = dict.fromkeys(p for p in (passage, *self.cited) if p)
        notes = (self._changed_by_later(check.figure, source) for source in sources)
        return next(filter(None, notes), "")

    def of_words(self) -> Iterator[tuple[Passage, str]]:
        """The cited passages that later texts change in words, with a note on each."""
        if not self._is_of_past:
            yield from chain(self._amended(), self._changed_by_text())

    def _replaced(
        self, check: FigureCheck, passage: Passage | None, checks: Sequence[FigureCheck]
    ) -> str:
        """The text that says that a figure no longer holds; "" if none does, or the draft does.

        Args:
            check: the outcome for the figure.
            passage: which has it; the text is about its words, and no older.
            checks: the outcomes for all figures of the sentence.
        """
        for other, old in self._replaced_figures:
            news = (old.new and is_same(c.figure, old.new) for c in checks)
            is_too_old = passage is not None and is_older(other, passage)
            if not is_same(check.figure, old.figure) or is_too_old or any(news):
                continue
            names = "\n".join((other.document.title, *other.headings))
            near = check.found.near if check.found else frozenset[str]()
            shared = self._words & content_words(f"{names}\n{old.context}")
            words = words_near(f"{names}\n{other.content}").union(LONGER.findall(other.content))
            beside = check.figure.near & near - words
            is_related = passage is not None and (
                is_later_mail(other, passage) or is_later_section(other, passage)
            )
            if is_related or (shared and len(beside) <= len(shared)):
                own = {p.path: "the cited text says that it no longer holds" for p in self.cited}
                return f"{own.get(other.path, shown_name(other.path))}: {quoted(old.words)}"
        return ""

    @cached_property
    def _replaced_figures(self) -> list[tuple[Passage, Replaced]]:
        """The figures that a passage says no longer hold, if the sentence speaks of no change."""
        digits = digits_in(self.prose)
        passages = [p for p in self.passages if has_replacement_cue(p.content, digits)]
        is_of_past = bool(passages) and self._is_of_past
        return [(p, old) for p in passages if not is_of_past for old in replaced_figures(p.content)]

    @cached_property
    def _is_of_past(self) -> bool:
        """Whether the sentence speaks of what was before, or of a change."""
        return says(self.text, "past", "change") or bool(replaced_figures(self.text))

    @cached_property
    def _words(self) -> frozenset[str]:
        """The content words of the sentence, and of its source, without figures."""
        texts = (without_figures(text, find_figures(text)) for text in (self.prose, self.source))
        return frozenset().union(*map(content_words, texts))

    def _changed_by_later(self, figure: Figure, passage: Passage) -> str:
        """What a reply or later mail has in place of a figure of the passage; "" for nothing."""
        text = _message_text(passage.content)
        own = (p for p in self.passages if message_of(p.anchor)[1])
        messages = (*self.evidence.quoted_messages, *own)
        quotes = [p for p in messages if p == passage or _message_text(p.content) in text]
        originals = [p for p in self.passages if text in _message_text(p.content)]
        replies = [p for p in self.passages if any(_is_reply(p, quote) for quote in quotes)]
        later = [p for p in self.passages if is_later_mail(p, passage)]
        # Of the years in names, another check says which is newer.
        of_series = (p for p in self.passages if is_in_later_file(p, passage))
        in_series = [p for p in of_series if not newer_by_path(passage, [p.path], "")]
        entry, *notes = self._later_entries(passage, figure)
        sources = [
            ("the mail that quotes it", passage, originals, replies),
            ("a later mail about it", passage, originals, later),
            ("a later file of the series", passage, [passage], in_series),
            *((f"a later entry of {shown_name(p.path)}", entry, [entry], [p]) for p in notes),
        ]
        for name, source, texts_before, mails in sources:
            known = " ".join([self.prose, *map(_own_text, texts_before)])
            texts = ["".join(self._about(figure, source, mail)) for mail in mails]
            for check in check_figures(self.prose, texts, texts) if any(texts) else ():
                is_other = check.figure.text == figure.text and check.found is None
                if is_other and check.others and not any(other in known for other in check.others):
                    return f"{name} has {', '.join(check.others)}"
        return ""

    def _later_entries(self, passage: Passage, figure: Figure | None = None) -> list[Passage]:
        """The entry of dated notes that the sentence is about, and the later ones.

        Returns:
            The cited entry, then the later ones of its file. For a passage without a date: the
            cited entry or passage, then all entries, or for a figure those that tell of a change.
        """
        cited = "\n".join(p.content for p in self.cited_lines if p.chunk_id == passage.chunk_id)

        def states(text: str) -> bool:
            is_cited = not cited or any(line and line in cited for line in text.split("\n"))
            return is_cited and (not figure or any(is_same(f, figure) for f in find_figures(text)))

        own = [p for p in self._entries if p.chunk_id == passage.chunk_id and states(p.content)]
        first = best_match(self.text, own).passage or passage
        if not date_of(passage):
            return [first, *(p for p in self._entries if not figure or says(p.content, "change"))]
        of_file = (p for p in self._entries if p.document.document_id == first.document.document_id)
        return [first, *(p for p in of_file if own and is_older(first, p))]

    def _about(self, figure: Figure, first: Passage, later: Passage) -> list[str]:
        """The sentences of a mail that have another figure; none if the mail says that this stays.

        They have the words of the draft, or of the earlier mail, ``first``, beside it; or they say
        what is new, if that mail has no other figure of this kind, such as a price, or the day
        until which something is due. An entry of notes or minutes has more of them.
        """
        source, mail = _own_text(first), _own_text(later)
        is_entry = later.document.document_type != "mail"
        of_source, sentences = find_figures(source), sentences_of(mail)
        own = [f for f in of_source if is_same(f, figure)]
        if not own:
            return []

        def is_like(other: Figure, text: str) -> bool:
            return other.unit == figure.unit and is_limit(text, other) == is_limit(source, own[0])

        is_only = not is_entry and own == [f for f in of_source if is_like(f, source)]
        text = without_figures(self.prose, find_figures(self.prose))
        beside = [s for s in sentences_about(text, source, 0.0, 1) if own[0].text in s]
        plain = [text, *(without_figures(s, find_figures(s)) for s in beside)]
        least = (0.0, 1 + is_entry) if figure.unit == "date" else (COVERED, 2)
        about = [{*sentences_about(one, mail, *least)} for one in plain]
        others = [s for s in sentences if any(is_like(f, s) for f in find_figures(s))]
        if any(says(s, "stays") and s in about[0] and s not in others for s in sentences):
            return []
        near = frozenset[str]().union(*about)
        others = [s for s in others if not _is_of_other_size(self.prose, s, figure.unit)]
        others = [s for s in others if not changes_nothing(s, is_of_day=self._has_day(s))]
        return [s for s in others if s in near or (is_only and says(s, "new", "change"))]

    def _amended(self) -> Iterator[tuple[Passage, str]]:
        """What a document that amends a cited one has in place of what the sentence says."""
        cited = {p.document: p for p in self.cited}
        for document, first in cited.items():
            passages = [p for p in self.cited if p.document == document]
            for by in amending_passages(first, (*self.evidence.stating, *self.passages)):
                amended = self._amended_sentences(passages, by) if by.document not in cited else ()
                is_outside = by.document.origin == "external"
                said = "says that it amends it" if is_outside else "amends it"
                for passage, text in amended:
                    words = f": {quoted(shortened(text))}" if may_amend(by, first) else ""
                    yield passage, f"{shown_name(by.path)} {said}{words}"

    def _amended_sentences(
        self, passages: Sequence[Passage], by: Passage
    ) -> Iterator[tuple[Passage, str]]:
        """The sentences of another passage that amend what the sentence says, and where it is."""
        names, text = names_of(passages[0]), " ".join(passage.content for passage in passages)
        words = content_words(self.prose, text) - content_words(names, text)
        figures = find_figures(self.prose)

        def shared(sentence: ReadSentence) -> int:
            same = (f for f in figures if any(is_same(f, own) for own in sentence.figures))
            return len(words & sentence.words) + sum(1 for _ in same)

        most = max((shared(s) for p in passages for s in read_sentences(p.content)), default=0)
        for passage in passages:
            for change in sorted(changes_by(by, passage), key=lambda one: -shared(one.old)):
                least = max(min(most, len(change.old.words)), 1)
                if 2 * shared(change.old) > least and says_the_old(self.prose, change, by.content):
                    yield passage, change.new.text

    def _changed_by_text(self) -> Iterator[tuple[Passage, str]]:
        """What later texts say is gone, and later files of a series, or mails, say is new."""
        noted = {entry.chunk_id for entry in self._entries}
        texts = [p for p in self.passages if p.chunk_id not in noted and p not in self.cited]
        every = product([*texts, *self._entries], self.cited)
        pairs = [(p, own) for p, own in every if p.document.document_id != own.document.document_id]
        for first, *entries in map(self._later_entries, self.cited):
            pairs += product(entries, [first])
        for other, passage in pairs:
            if change := self._later_sentence(other, passage):
                yield passage, f"{shown_name(other.locator)} is later: {quoted(shortened(change))}"

    def _later_sentence(self, later: Passage, passage: Passage) -> str:
        """The sentence of a later passage that says another thing; "" without one."""
        pair = self._pair(later, passage)
        for sentence in pair.sentences:
            if changes_nothing(sentence.text, is_of_day=self._has_day(sentence.text)):
                continue
            is_other = self._is_about(sentence, pair) and self._is_other(sentence, pair)
            if is_other or self._is_gone(sentence, pair):
                return " ".join(sentence.text.split())
        return ""

    def _pair(self, later: Passage, passage: Passage) -> _Pair:
        own, date, title = self._own, date_of(passage), later.document.title
        is_related = is_in_later_file(later, passage) or is_later_mail(later, passage)
        is_after = day_of(later, self._copied_on) > date
        # Of a passage without a date, a later text must be about the same by its name, or a day.
        is_named = later in self._entries or bool(own & content_words(title))
        is_of_same = is_related or date or is_named or self._has_day(later.content)
        is_prose = later.content_type != "table"
        like = sentences_like(self.text, later) if is_related or is_after else []
        if not is_of_same:
            like = [s for s in like if is_prose and says(s.text, "new", "change", "absent")]
        sentences = [s._replace(shared=s.shared & own) for s in like]
        kept = [s for s in sentences if _stays(s)]
        most_kept = max((len(s.shared) for s in kept), default=0)
        kept_figures = [figure for s in kept for figure in find_figures(s.text)]
        if any(is_same(f, g) for f, g in product(self._figures, kept_figures)):
            sentences = []
        heading, cited = (content_words(" ".join(p.headings[-1:])) for p in (later, passage))
        has_other_heading = heading and heading.isdisjoint(cited | own)
        head = content_words(" ".join((title, *later.headings[-1:])))
        repeats = (self._repeats(s._replace(shared=s.shared - head)) for s in sentences)
        is_in_place = is_related and is_prose and not has_other_heading and not any(repeats)
        return _Pair(
            passage, sentences, head, most_kept, is_related=is_related, is_in_place=is_in_place
        )

    def _is_gone(self, sentence: LikeSentence, pair: _Pair) -> bool:
        """Whether it says that words of the draft no longer hold."""
        statements = gone_statements(sentence.text)
        has_day = self._has_day(sentence.text)
        said = (s.stems for s in statements if has_day or not s.of or s.of & self._own)
        # "Backing tracks are forbidden" says nothing of a row at the back.
        said = (stems for stems in said if 2 * len(stems & self._own) > len(stems))
        said_before = words_gone(self.text) | words_gone(pair.passage.content)
        gone = frozenset[str]().union(*said) & self._own - said_before
        others = sentence.shared - gone
        is_of_related = pair.is_related and len(sentence.shared) > 1
        # Who is away does nothing of what the draft says.
        is_away = any(not s.of and s.stems <= gone and says(s.words, "absent") for s in statements)
        is_told = (has_day or bool(others)) and is_telling(gone, others)
        return bool(gone) and (is_of_related or is_away or is_told)

    def _is_about(self, sentence: LikeSentence, pair: _Pair) -> bool:
        """Whether it is about what the draft says, and does not say that this stays."""
        text, shared = sentence.text, len(sentence.shared)
        has_most = pair.is_related or shared > COVERED * len(self._own)
        is_of_matter = has_most or self._has_day(text) or self._has_other_value(text)
        # One word is too little to be about who is away.
        has_enough = shared > 1 or not says(text, "absent")
        # What a changed figure is of, the check of figures says.
        is_of_figure = replaced_figures(text) and not pair.is_revoked_by(text)
        is_unchanged = _stays(sentence) or is_of_figure or shared < pair.most_kept
        is_of_same = is_of_matter and has_enough and not is_unchanged
        return is_of_same and not _is_of_other_size(self.text, text)

    def _is_other(self, sentence: LikeSentence, pair: _Pair) -> bool:
        """Whether it says that something changes or is new, or has other words in their place."""
        text, shared, nouns = sentence
        shares_more_than_head = len(shared - pair.head) > 1 and not nouns <= pair.head
        shares_no_figure = digits_in(text).isdisjoint(digits_in(self.text))
        return (
            (len(nouns) > 1 and says(text, "change"))
            or (says(text, *_TOLD) and not all(map(is_ordinary, nouns - pair.head)))
            or pair.is_revoked_by(text)
            or self._has_other_value(text)
            or self._has_other_person(text)
            or (pair.is_in_place and shares_more_than_head and shares_no_figure)
        )

    def _has_other_person(self, text: str) -> bool:
        """Whether another person takes over from one of the draft, or does something on its day."""
        is_new = self._has_day(text) and any(n[0] not in self.text for n in names_in(text))
        return says(text, "who") and (is_new or any(n not in text for n in _long_names(self.prose)))

    def _has_other_value(self, text: str) -> bool:
        """Whether it tells of a new person or figure for something that the draft names."""
        names = _long_names(self.prose)
        named = [name for name in names if name in text]
        if not named or not says(text, *_TOLD):
            return False
        others = [name for name in _long_names(text) if name not in self.text]
        theirs = find_figures(text)
        kinds = {f.kind for f in self._figures} & {f.kind for f in theirs} - {"", "date"}
        same = {f.kind for f, other in product(self._figures, theirs) if is_same(f, other)}
        return (bool(others) and len(named) < len(names)) or bool(kinds - same)

    def _has_day(self, text: str) -> bool:
        """Whether a text has a day of the draft."""
        return _has_day_of(self._figures, text)

    def _repeats(self, sentence: LikeSentence) -> bool:
        """Whether a later sentence says that something stays, or nearly the same."""
        text, shared = sentence.text, sentence.shared
        words = content_words(without_figures(text, find_figures(text)))
        has_most = len(shared) >= _REPEATED * min(len(self._own), len(words))
        has_same_sense = is_denied(text) == is_denied(self.text)
        is_known = all(name[0] in self.text for name in names_in(text))
        is_staying = bool(shared) and _stays(sentence)
        return is_staying or (has_most and has_same_sense and is_known)


@lru_cache(maxsize=1024)
def _long_names(text: str) -> list[str]:
    """The names of more than one word in a text, such as those of people."""
    parts = (filterfalse(is_of_date, name[0].split()) for name in names_in(text))
    names = [" ".join(word for word in words if not word.isdigit()) for words in parts]
    return [name for name in names if " " in name]


def _has_day_of(figures: Sequence[Figure], text: str) -> bool:
    """Whether a text has a day of some figures."""
    days = [figure for figure in figures if figure.unit == "date"]
    found = find_figures(text) if days else []
    return any(is_same(*pair) for pair in product(days, found) if pair[1].unit == "date")


def _is_of_other_size(text: str, other: str, unit: str = "") -> bool:
    """Whether two texts have sizes of one unit, other than ``unit``, and no equal ones."""
    sizes, others = (
        [f for f in find_figures(one) if {kind for kind, _ in f.readings} <= _SIZES - {unit}]
        for one in (text, other)
    )
    pairs = [(f, g) for f, g in product(sizes, others) if f.unit == g.unit]
    return bool(pairs) and not any(is_same(f, g) for f, g in pairs)


def _stays(sentence: LikeSentence) -> bool:
    """Whether a sentence says that the matter of the shared words stays as it is.

    "It is now of zinc, at the same price" says so of the price, but not of the material.
    """
    parts = re.split(r",\s+", sentence.text)
    staying = [part for part in parts if says(part, "stays")]
    changed = " ".join(part for part in parts if part not in staying)
    of_staying, of_changed = (
        len(content_words(text, sentence.text) & sentence.shared)
        for text in (" ".join(staying), changed)
    )
    return bool(staying) and (of_staying > of_changed or not says(changed, "new", "change"))


@lru_cache(maxsize=1024)
def _message_text(content: str) -> str:
    return " ".join(without_attribution(content).split())


def _own_text(mail: Passage) -> str:
    """The text of a mail without the lines of another one that it quotes."""
    return "\n".join(line for line in mail.content.split("\n") if not line.startswith(">"))


def _is_reply(passage: Passage, quote: Passage) -> bool:
    """Whether a passage is of the mail, or of the newer message in it, that quotes another one."""
    (mail, number), (quote_mail, quote_number) = map(message_of, (passage.anchor, quote.anchor))
    return passage.document == quote.document and mail == quote_mail and number < quote_number
