"""What later texts say in place of a sentence of a draft.

A cited text may be right, and outdated: a reply, a later mail, a later file of a dated series, a
later entry of notes or an amendment says something else about the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cached_property, lru_cache
from itertools import chain, filterfalse, product

from rolebundle.contracts.dates import is_of_date
from rolebundle.contracts.documents import Passage, message_of
from rolebundle.retrieval.messages import is_later_mail, without_attribution
from rolebundle.retrieval.passage_text import quoted, shown_name
from rolebundle.retrieval.statements import amending_passages, may_amend, names_of
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
from rolebundle.text.amended import ReadSentence, changes, is_denied, read_sentences, says_the_old
from rolebundle.text.figures import Figure, find_figures, words_near
from rolebundle.text.replaced import (
    Replaced,
    digits_in,
    gone_statements,
    has_replacement_cue,
    is_limit,
    is_same,
    replaced_figures,
    says,
    without_figures,
    words_gone,
)
from rolebundle.text.words import content_words, is_ordinary, sentences_of
from rolebundle.verify.evidence import DraftEvidence
from rolebundle.verify.figures import LONGER, FigureCheck, check_figures
from rolebundle.verify.findings import shortened
from rolebundle.verify.sentences import (
    COVERED,
    best_match,
    names_in,
    sentences_about,
    sentences_like,
    without_numbers,
)

_MIN_SHARED_SHARE = 0.3
"""What share of the words of a sentence a later one about the same has."""
_REPEATED = 0.65
"""From this share on, it says the same."""
_SIZES = frozenset(("length", "length2", "length3", "mass"))
"""Units of figures that tell things of one kind apart: bottles of 0.5 and 0.75 litres."""


class LaterTexts:
    """What the texts beside what a sentence cites say that no longer holds."""

    def __init__(
        self, prose: str, text: str, source: str, cited: Sequence[Passage],
        exact: Sequence[Passage], passages: Sequence[Passage], evidence: DraftEvidence,
    ) -> None:  # fmt: skip
        """Compare one sentence.

        Args:
            prose: the sentence without quotes and citations.
            text: the sentence with its quotes.
            source: what stands around the same figures in what is cited.
            cited: the passages that it cites.
            exact: only their cited lines.
            passages: all that may say something else.
            evidence: what the draft may cite.
        """
        self._prose, self._text, self._source, self._names = prose, text, source, _long_names(prose)
        self._cited, self._exact, self._all, self._evidence = cited, exact, passages, evidence
        self._quoted_messages = [
            *evidence.quotes,
            *(p for p in passages if message_of(p.anchor)[1]),
        ]
        self._copied_on = day_of_copying(passages)
        self._entries = [entry for passage in passages for entry in dated_entries(passage)]

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
        sources = dict.fromkeys(p for p in (passage, *self._cited) if p)
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
            cell = check.found.cell if check.found else None
            is_cell = cell and cell.column and cell.row  # The first cell names its row.
            is_related = passage is not None and (
                is_later_mail(other, passage) or is_later_section(other, passage)
            )
            if is_related or (shared and len(beside) <= (0 if is_cell else len(shared))):
                own = {p.path: "the cited text says that it no longer holds" for p in self._cited}
                return f"{own.get(other.path, shown_name(other.path))}: {quoted(old.words)}"
        return ""

    @cached_property
    def _replaced_figures(self) -> list[tuple[Passage, Replaced]]:
        """The figures that a passage says no longer hold, if the sentence speaks of no change."""
        digits = digits_in(self._prose)
        passages = [p for p in self._all if has_replacement_cue(p.content, digits)]
        is_of_past = bool(passages) and self._is_of_past
        return [(p, old) for p in passages if not is_of_past for old in replaced_figures(p.content)]

    @cached_property
    def _is_of_past(self) -> bool:
        """Whether the sentence speaks of what was before, or of a change."""
        return says(self._text, "past", "change") or bool(replaced_figures(self._text))

    @cached_property
    def _words(self) -> frozenset[str]:
        """The content words of the sentence, and of its source, without figures."""
        texts = (without_figures(text, find_figures(text)) for text in (self._prose, self._source))
        return frozenset().union(*map(content_words, texts))

    def _changed_by_later(self, figure: Figure, passage: Passage) -> str:
        """What a reply or later mail has in place of a figure of the passage; "" for nothing."""
        text = _message_text(passage.content)
        quotes = [
            p for p in self._quoted_messages if p == passage or _message_text(p.content) in text
        ]
        originals = [p for p in self._all if text in _message_text(p.content)]
        replies = [p for p in self._all if any(_is_reply(p, quote) for quote in quotes)]
        later = [p for p in self._all if is_later_mail(p, passage)]
        # Of the years in names, another check says which is newer.
        in_series = [
            p
            for p in self._all
            if is_in_later_file(p, passage) and not newer_by_path(passage, [p.path], "")
        ]
        entry, *notes = self._later_entries(passage, figure)
        sources = [
            ("the mail that quotes it", passage, originals, replies),
            ("a later mail about it", passage, originals, later),
            ("a later file of the series", passage, [passage], in_series),
            *((f"a later entry of {shown_name(p.path)}", entry, [entry], [p]) for p in notes),
        ]
        for name, source, texts_before, mails in sources:
            known = " ".join([self._prose, *map(_own_text, texts_before)])
            texts = ["".join(self._about(figure, source, mail)) for mail in mails]
            for check in check_figures(self._prose, texts, texts) if any(texts) else ():
                is_other = check.figure.text == figure.text and check.found is None
                if is_other and check.others and not any(other in known for other in check.others):
                    return f"{name} has {', '.join(check.others)}"
        return ""

    def _later_entries(self, passage: Passage, figure: Figure | None = None) -> list[Passage]:
        """The entry of dated notes that the sentence is about, then later ones.

        Without a date: the passage, and all entries, or for a figure those that tell of a change.
        """
        cited = "\n".join(p.content for p in self._exact if p.chunk_id == passage.chunk_id)

        def states(text: str) -> bool:
            is_cited = not cited or any(line and line in cited for line in text.split("\n"))
            return is_cited and (not figure or any(is_same(f, figure) for f in find_figures(text)))

        own = [p for p in self._entries if p.chunk_id == passage.chunk_id and states(p.content)]
        first = best_match(self._text, own).passage or passage
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
        text = without_figures(self._prose, find_figures(self._prose))
        beside = [s for s in sentences_about(text, source, 0.0, 1) if own[0].text in s]
        plain = [text, *(without_figures(s, find_figures(s)) for s in beside)]
        least = (0.0, 1 + is_entry) if figure.unit == "date" else (COVERED, 2)
        about = [{*sentences_about(one, mail, *least)} for one in plain]
        others = [s for s in sentences if any(is_like(f, s) for f in find_figures(s))]
        if any(says(s, "same") and s in about[0] and s not in others for s in sentences):
            return []
        near = frozenset[str]().union(*about)
        others = [s for s in others if not _is_of_other_size(self._prose, s, figure.unit)]
        return [s for s in others if s in near or (is_only and says(s, "new", "change"))]

    def _amended(self) -> Iterator[tuple[Passage, str]]:
        """What a document that amends a cited one has in place of what the sentence says."""
        cited = {p.document: p for p in self._cited}
        for document, first in cited.items():
            passages = [p for p in self._cited if p.document == document]
            for by in amending_passages(first, (*self._evidence.stating, *self._all)):
                amended = self._amended_sentences(passages, by) if by.document not in cited else ()
                for passage, text in amended:
                    is_outside = by.document.origin == "external"
                    said = "says that it amends it" if is_outside else "amends it"
                    said += f": {quoted(shortened(text))}" if may_amend(by, first) else ""
                    yield passage, f"{shown_name(by.path)} {said}"

    def _amended_sentences(
        self, passages: Sequence[Passage], by: Passage
    ) -> Iterator[tuple[Passage, str]]:
        """The sentences of another passage that amend what the sentence says, and where it is."""
        names = names_of(passages[0])
        text = " ".join(passage.content for passage in passages)
        words = content_words(self._prose, text) - content_words(names, text)
        figures = find_figures(self._prose)

        def shared(sentence: ReadSentence) -> int:
            same = (f for f in figures if any(is_same(f, own) for own in sentence.figures))
            return len(words & sentence.words) + sum(1 for _ in same)

        most = max((shared(s) for p in passages for s in read_sentences(p.content)), default=0)
        for passage in passages:
            heading = " ".join(passage.headings[-1:])
            found = changes(passage.content, heading, by.content, names)
            for change in sorted(found, key=lambda change: -shared(change.old)):
                least = max(min(most, len(change.old.words)), 1)
                if 2 * shared(change.old) > least and says_the_old(self._prose, change, by.content):
                    yield passage, change.new.text

    def _changed_by_text(self) -> Iterator[tuple[Passage, str]]:
        """What later texts say is gone, and later files of a series, or mails, say is new."""
        noted = {entry.chunk_id for entry in self._entries}
        texts = [p for p in self._all if p.chunk_id not in noted and p not in self._cited]
        pairs = [
            (later, passage)
            for later, passage in product([*texts, *self._entries], self._cited)
            if later.document.document_id != passage.document.document_id
        ]
        for first, *entries in map(self._later_entries, self._cited):
            pairs += product(entries, [first])
        for other, passage in pairs:
            if change := self._later_sentence(other, passage):
                yield passage, f"{shown_name(other.locator)} is later: {quoted(shortened(change))}"

    def _later_sentence(self, later: Passage, passage: Passage) -> str:
        """The sentence of a later passage that says another thing; "" without one.

        In a later file of a series, or a later mail about the matter, other words about the same
        are another thing, unless it says somewhere that this stays.
        """
        date, day = date_of(passage), day_of(later, self._copied_on)
        figures = find_figures(self._text)
        words, days = without_numbers(without_figures(self._text, figures)), _days(figures)
        own = words
        names = content_words(later.document.title)
        is_related = is_in_later_file(later, passage) or is_later_mail(later, passage)
        # Of a passage without a date, a later text must be about the same by its name, or a day.
        is_named = date or own & names or later in self._entries or _has_day(later.content, days)
        is_later = is_related or (day > date and is_named)
        known = words_gone(self._text) | words_gone(passage.content)
        head = content_words(" ".join((later.document.title, *later.headings[-1:])))
        like = (
            [(s, shared & own, nouns) for s, shared, nouns in sentences_like(self._text, later)]
            if is_later
            else []
        )
        most_kept = max((len(shared) for s, shared, _ in like if _stays(s, shared)), default=0)
        headings = [content_words(" ".join(p.headings[-1:])) for p in (later, passage)]
        is_other = is_related and later.content_type != "table"
        is_other &= not (headings[0] and headings[0].isdisjoint(headings[1] | own))
        is_other &= not any(self._repeats(s, shared - head, own) for s, shared, _ in like)
        own_digits = digits_in(self._text)
        kept = [s for s, shared, _ in like if _stays(s, shared)]
        if any(is_same(*pair) for s in kept for pair in product(figures, find_figures(s))):
            return ""
        for sentence, shared, nouns in like:
            stated = gone_statements(sentence)
            gone = frozenset[str]().union(*(old for old, _, of in stated if not of or of & own))
            gone &= own - known
            is_telling = len(gone) > 1 or not all(map(is_ordinary, shared - gone))
            is_of_day = _has_day(sentence, days)
            is_told = says(sentence, "new", "change", "from_day")
            has_other_value = is_told and self._has_other_value(sentence)
            is_about = is_related or is_of_day or len(shared) > COVERED * len(own)
            is_about |= has_other_value
            is_change = len(nouns) > 1 and says(sentence, "change")
            is_new = has_other_value or (is_told and not all(map(is_ordinary, nouns - head)))
            is_new |= says(sentence, "who") and (
                any(name not in sentence for name in self._names)
                or (is_of_day and any(name[0] not in self._text for name in names_in(sentence)))
            )
            # What a changed figure is of, the check of figures says.
            is_about &= not (_stays(sentence, shared) or replaced_figures(sentence))
            is_about &= len(shared) >= most_kept and not _is_of_other_size(self._text, sentence)
            is_new |= (
                is_other
                and len(shared - head) > 1
                and not nouns <= head
                and len(shared) >= _MIN_SHARED_SHARE * len(own)
                and digits_in(sentence).isdisjoint(own_digits)
            )
            if (is_about and (is_change or is_new)) or (gone and (is_related or is_telling)):
                return " ".join(sentence.split())
        return ""

    def _has_other_value(self, sentence: str) -> bool:
        """Whether it names what the draft does, and has another person or figure of its kind."""
        named = [name for name in self._names if name in sentence]
        others = [name for name in _long_names(sentence) if name not in self._text]
        own, theirs = find_figures(self._text), find_figures(sentence)
        kinds = {f.kind for f in own} & {f.kind for f in theirs} - {"", "date"}
        same = {f.kind for f, other in product(own, theirs) if is_same(f, other)}
        is_other_person = bool(others) and len(named) < len(self._names)
        return bool(named) and (is_other_person or bool(kinds - same))

    def _repeats(self, later: str, shared: Set[str], own: Set[str]) -> bool:
        """Whether a later sentence says that something stays, or nearly the same."""
        words = content_words(without_figures(later, find_figures(later)))
        is_alike = len(shared & own) >= _REPEATED * min(len(own), len(words))
        is_repeated = is_alike and is_denied(later) == is_denied(self._text)
        is_repeated &= all(name[0] in self._text for name in names_in(later))
        return is_repeated or (bool(shared) and _stays(later, shared))


def _long_names(text: str) -> list[str]:
    """The names of more than one word in a text, such as those of people."""
    parts = (filterfalse(is_of_date, name[0].split()) for name in names_in(text))
    names = [" ".join(word for word in words if not word.isdigit()) for words in parts]
    return [name for name in names if " " in name]


def _days(figures: Sequence[Figure]) -> list[Figure]:
    return [figure for figure in figures if figure.unit == "date"]


def _has_day(text: str, days: Sequence[Figure]) -> bool:
    found = _days(find_figures(text)) if days else []
    return any(is_same(day, figure) for day, figure in product(days, found))


def _is_of_other_size(text: str, other: str, unit: str = "") -> bool:
    """Whether two texts have figures of one kind of size, but for a unit, and none is equal."""
    sizes, others = (
        [f for f in find_figures(one) if _SIZES - {unit} >= {kind for kind, _ in f.readings}]
        for one in (text, other)
    )
    pairs = [(f, g) for f, g in product(sizes, others) if f.unit == g.unit]
    return bool(pairs) and not any(is_same(f, g) for f, g in pairs)


def _stays(sentence: str, words: Set[str]) -> bool:
    """Whether a sentence says that what it has some words about stays.

    Not so "It is now of zinc, at the same price": only the part without the words stays.
    """
    parts = sentence.split(", ")
    same = [part for part in parts if says(part, "same")]
    changed = " ".join(part for part in parts if part not in same)
    is_of_part = len(same) < len(parts) and says(changed, "new", "change")
    is_of_words = any(content_words(part, sentence) & words for part in same)
    return bool(same) and (is_of_words or not is_of_part)


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
