"""Mails: replies, later mails about a matter, and the messages that a mail quotes. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import islice, product

from rolebundle.contracts.documents import SENDER_FIELD, Passage, message_of
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.values import Candidate, lift
from rolebundle.retrieval.versions import (
    ABOUT_AS_GOOD,
    ABOUT_AS_GOOD_IN_SERIES,
    MAX_CHECKED_FOR_NEWER,
    later_sections,
    may_displace,
    naming_words,
    plain_words,
    standing_of,
)
from rolebundle.text.languages import likely_languages, stop_words_of

# A sentence with a date that ends with a colon, on one line or two; or the fields of a mail.
_ATTRIBUTION = re.compile(
    r"\A(?:[^\n]{0,99}\d[^\n]{0,99}:\n|[^\n]{0,99}\d[^\n]{0,99}[^.!?\n]\n[^\n]{0,99}:\n"
    rf"|\W*{SENDER_FIELD}[ \t]?:[^\n]*\n(?:\W*\w[\w -]{{0,20}}[ \t]?:[^\n]*\n)+)"
)
_MIN_QUOTED_WORDS = 4
"""A quoted message with fewer words may be in another mail by chance."""

_REPLY_MARKS = re.compile(r"\A(?:\s*\w{2,4}\s?:)+")
_NUMBERED = re.compile(r"\w[\w/.-]*\w")
_REFERENCE = re.compile(r"(?!(?:[\d./-]*[./-])?(?:19|20)\d\d(?:[./-][\d./-]*)?$)(?:\D*\d){4}")
"""A word of a subject that names a matter, such as ``FWE-2024-0317``; no year or date."""


def put_doubtful_mail_behind(ranked: list[Candidate]) -> None:
    """Put another passage with half of the score above an untrusted mail that is first."""
    rows = [row for row in ranked if row.can_be_selected]
    for first in filter(_is_doubtful, rows[:1]):
        best = next((r for r in rows if r.passage.document.origin != "untrusted"), None)
        if best and best.final >= ABOUT_AS_GOOD_IN_SERIES * first.final:
            lift(ranked, best, first, "above an untrusted mail")


def _is_doubtful(row: Candidate) -> bool:
    document = row.passage.document
    return (document.document_type, document.origin) == ("mail", "untrusted")


def put_replies_first(ranked: list[Candidate]) -> None:
    """Put a reply above the mail that it quotes, because it may correct that mail.

    If that mail is a file of its own, the reply has a task word or 70% of its score, and may
    displace it.
    """
    shown = {row.chunk_id: row for row in ranked if row.can_be_selected}
    mails = defaultdict[tuple[object, ...], list[tuple[int, Candidate]]](list)
    for row in ranked:
        mail, number = message_of(row.passage.anchor)
        mails[row.passage.document, row.round, mail].append((number, row))
    pairs = list[tuple[Candidate, Candidate]]()
    for messages in mails.values():
        for number, copy in messages:
            quote = shown.get(copy.duplicate_of or copy.chunk_id) if number else None
            newer = (row for other, row in messages if other < number and row.chunk_id in shown)
            replies = (row for row in newer if quote and _may_correct(row, quote))
            pairs += [(reply, quote) for reply in islice(replies, 1) if quote]
    # A reply that was put higher may be what another one quotes.
    for _, (reply, quote) in product(mails, pairs):
        if reply.final <= quote.final:
            lift(ranked, reply, quote, "answers a mail that it quotes")
            reply.ignores_source_limit |= quote.ignores_source_limit


def _may_correct(reply: Candidate, quote: Candidate) -> bool:
    if reply.passage.document == quote.passage.document:
        return True
    is_near = reply.bm25 or reply.final >= ABOUT_AS_GOOD * quote.final
    return bool(is_near) and may_displace(reply, quote)


def lift_later_ones_behind(ranked: list[Candidate], task: str) -> None:
    """Put a later mail or section about the matter of each of the first three directly behind it.

    It may change what that one says. It is the best of the later ones that may displace the first.
    """
    for first in [row for row in ranked if row.can_be_selected][:MAX_CHECKED_FOR_NEWER]:
        in_series = later_sections(first, ranked, task)
        later = (
            row
            for row in ranked
            if row.can_be_selected
            and (is_later_mail(row.passage, first.passage) or row.chunk_id in in_series)
            and may_displace(row, first)
        )
        best = next(later, None)
        if best is not None:
            best.follows_up = first.chunk_id
            reason = f"later, about the matter of {first.chunk_id}"
            lift(ranked, best, first, reason, behind=True)


def is_later_mail(later: Passage, first: Passage) -> bool:
    """Whether both are mails, not quoted ones, about one matter.

    Their subjects have one reference number, or half of the words, and then the same people.
    """
    mails = later, first
    if any(mail.document.document_type != "mail" or message_of(mail.anchor)[1] for mail in mails):
        return False
    date, first_date = (mail.document.updated_at or "" for mail in mails)
    subjects = [mail.document.title for mail in mails]
    references, others = ({*filter(_REFERENCE.match, _NUMBERED.findall(s))} for s in subjects)
    words, other_words = (_words_of_subject(subject) for subject in subjects)
    shares_words = 2 * len(words & other_words) >= min(len(words), len(other_words)) > 0
    return date > first_date > "" and bool(
        references & others or (shares_words and _people_of(later) <= _people_of(first, "cc"))
    )


@lru_cache(maxsize=4096)
def _words_of_subject(subject: str) -> frozenset[str]:
    """Its content words, without numbers and marks such as ``Re:``."""
    words = words_of(re.sub(r"\d+", " ", _REPLY_MARKS.sub("", subject)))
    return naming_words(words) - stop_words_of(likely_languages(subject))


def _people_of(mail: Passage, *more: str) -> Set[str]:
    """The addresses of its sender, its receivers, and the people of ``more`` headers."""
    attributes = dict(mail.document.attributes)
    people = (one for key in ("from", "to", *more) for one in attributes.get(key, ()))
    return {one.rpartition("<")[2].rstrip(">").casefold() for one in people}


def combine_quotes(rows: Sequence[Candidate]) -> None:
    """Write the chunk id of the mail that stands for a message that another mail quotes.

    It has all words of that message, and the same standing and mark. It gets the better score.
    """
    numbered = [(message_of(row.passage.anchor)[1], row) for row in rows if row.can_be_selected]
    quotes = sorted((item for item in numbered if item[0]), key=lambda item: item[0])
    having = defaultdict[str, list[tuple[int, Candidate]]](list)
    words = {row.chunk_id: plain_words(row.passage.content) for _, row in numbered if quotes}
    for number, row in numbered if quotes else ():
        for word in words[row.chunk_id]:
            having[word].append((number, row))
    for number, quote in quotes:
        own = plain_words(without_attribution(quote.passage.content))
        if len(own) < _MIN_QUOTED_WORDS:
            continue
        for other_number, row in min((having[word] for word in own), key=len):
            if (
                other_number < number
                and row.can_be_selected
                and own <= words[row.chunk_id]
                and row.passage.mark == quote.passage.mark
                and standing_of(row) == standing_of(quote)
            ):
                is_partial = not plain_words(without_attribution(row.passage.content)) <= own
                for copy in (quote, *(r for r in rows if r.duplicate_of == quote.chunk_id)):
                    copy.duplicate_of, copy.is_partial = row.chunk_id, is_partial
                row.raise_to(quote.final, f"quoted in {quote.chunk_id}, which ranked higher")
                break


def without_attribution(message: str) -> str:
    """The text of a quoted message without the lines above it, which say who wrote it, and when."""
    return _ATTRIBUTION.sub("", message)
