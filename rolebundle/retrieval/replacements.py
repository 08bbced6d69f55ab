"""What a text says that it replaces or changes in another document. Pure.

Such a statement moves nothing, because anybody can write one. A warning names it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from rolebundle.contracts.dates import is_month, names_of_day
from rolebundle.contracts.documents import DocumentMetadata, Passage
from rolebundle.resources import data_file
from rolebundle.retrieval.passage_text import sentence_at
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.values import Candidate, ranking_order
from rolebundle.retrieval.versions import DRAFT
from rolebundle.text.languages import likely_languages, stop_words_of

_OWN_DATE = re.compile(r"^\W*(?:[^\W\d]+,? )?\d{1,2}\.? ?[^\W\d]+ \d{4}\W*$", re.MULTILINE)
"""A line with nothing but the date of the document itself."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_MAX_CHARS = 2_000
_HEAD_LINES = 5
_NAME_CHARS, _REFERENCE_CHARS = 300, 100
"""Within its first characters a document says what it is, and which other document it is about."""
_MAX_SENTENCE = 300
_MAX_DOCUMENTS = 3
"""A number or date that is in the heads of more documents identifies none of them."""


class Statement(NamedTuple):
    """A sentence of ``by`` that says that another document is replaced or changed."""

    by: Candidate
    sentence: str


def stated_replacements(
    first: Candidate, ranked: Sequence[Candidate], task: str
) -> list[Statement]:
    """The statements of lower candidates about the document of the first passage.

    A statement is about that document if they share a word and a date or id. Of the statement
    count its sentence, and the title and first 100 characters of its document; of the first
    passage's document the file name, title, date and first 300 characters. Of several statements of
    a document the one with the most words of the task is returned, then the shortest.
    """
    document = first.passage.document
    rows = [row for row in ranked if row.passage.document.document_id == document.document_id]
    own = _names_of(rows)
    digits = {word for name in own for word in name.split() if _is_number(word)}
    others = [row for row in ranked if _has_any(row.passage, digits)]
    asked, statements = _names_in(task), defaultdict[str, list[Statement]](list)
    stated = [(row, text) for row in others for text in _stated(row, document)]
    for row, text in stated:
        by = row.passage.document
        head = _beginning(row.passage, _REFERENCE_CHARS)
        shared = own & _names_in("\n".join((by.title, _OWN_DATE.sub("", head), text)))
        words = {name for name in shared if name.isalpha()}
        # "Replaces the draft" is about no other document than a draft.
        is_other = any(state in words_of(text) for state in DRAFT) and own.isdisjoint(DRAFT)
        numbers = [name for name in shared - words if words.difference(name.split())]
        is_lower = ranking_order(row) > ranking_order(first) and not is_other
        if is_lower and any(_is_rare(number, ranked) for number in numbers):
            statements[by.document_id].append(Statement(row, text))
    return [
        max(of_one, key=lambda s: (len(asked & _names_in(s.sentence)), -len(s.sentence)))
        for of_one in statements.values()
    ]


def _names_of(rows: Iterable[Candidate]) -> frozenset[str]:
    """The names in the file name, title, date and first lines of a document with these passages."""
    texts = list[str]()
    for row in rows:
        passage, document = row.passage, row.passage.document
        first = _beginning(passage, _NAME_CHARS)
        # What it says of others does not name it.
        first = first[: min([len(first), *_offsets_of_replacing(first)])]
        name = passage.path.rpartition("/")[2].rpartition(".")[0]
        texts += [document.title, name, first, *names_of_day(document.updated_at or "")]
    return _names_in("\n".join(texts))


def _beginning(passage: Passage, chars: int) -> str:
    return passage.content[:chars] if passage.start_line <= _HEAD_LINES else ""


def _has_any(passage: Passage, digits: Iterable[str]) -> bool:
    return any(word in passage.content or word in passage.document.title for word in digits)


def _is_rare(number: str, rows: Sequence[Candidate]) -> bool:
    """Whether few documents have a date or id in their heads."""
    documents = defaultdict[str, list[Candidate]](list)
    for row in rows:
        documents[row.passage.document.document_id].append(row)
    return sum(number in _names_of(of_one) for of_one in documents.values()) <= _MAX_DOCUMENTS


def _stated(row: Candidate, document: DocumentMetadata) -> Iterator[str]:
    """The sentences of a passage that may say that another document, no newer one, is replaced."""
    by = row.passage.document
    is_older = by.updated_at is not None and by.updated_at < (document.updated_at or "")
    if is_older or by.document_id == document.document_id or row.passage.flags:
        return
    content = row.passage.content
    offsets = _offsets_of_replacing(content[:_MAX_CHARS])
    sentences = (sentence_at(content, offset) for offset in offsets)
    for sentence in dict.fromkeys(_OWN_DATE.sub("", sentence).strip() for sentence in sentences):
        if len(sentence) <= _MAX_SENTENCE and sentence.count("|") < 3:
            yield sentence


def _offsets_of_replacing(text: str) -> list[int]:
    # Some capital letters are two small ones, which would move the offsets.
    small = text.lower() if len(text.lower()) == len(text) else text
    words = chain.from_iterable(data_file(__file__, "replacements.toml")["words"].values())
    return sorted(offset for word in words if (offset := small.find(word)) >= 0)


def _names_in(text: str) -> frozenset[str]:
    """Content words, ids of three digits or more, and dates (``3 march``); no years."""
    stop_words = stop_words_of(likely_languages(text))
    content = [word for word in words_of(text) if word not in stop_words]
    words = [word for word in content if len(word) > 3 and word.isalpha()]
    ids = [word for word in content if _is_number(word) and sum(map(str.isdigit, word)) > 2]
    dates = [" ".join(sorted(pair)) for pair in pairwise(content) if _is_date(*pair)]
    return frozenset([*words, *ids, *dates])


def _is_date(first: str, second: str) -> bool:
    numbers = [_is_number(first), _is_number(second)]
    return all(numbers) or (any(numbers) and (is_month(first) or is_month(second)))


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word)) and not _YEAR.fullmatch(word)
