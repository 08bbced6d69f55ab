"""Find lines by an exact text or a regular expression, in what `get` would show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from time import perf_counter
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.lookup import FoundLine, FoundLines
from rolebundle.contracts.operation_requests import DEFAULT_LINES, GrepRequest
from rolebundle.errors import Interrupted, UsageError
from rolebundle.retrieval.bundle import passage_mark
from rolebundle.retrieval.lookups.listing import READ_AT_ONCE, documents_below
from rolebundle.retrieval.lookups.lookup import ReferenceScope, has_lines_of_file
from rolebundle.scan import linear
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import DocumentName
from rolebundle.storage.content.passages import (
    PlacedText,
    passages_by_rowid,
    passages_of_documents,
    placed_texts,
)
from rolebundle.storage.verify import verify_passages
from rolebundle.text.references import may_be_stored

MAX_SECONDS = 10.0
"""How long the texts may be searched; 20,000 passages take a tenth of a second. Only texts that the
agent may read are timed, so that the bound does not depend on others."""


MAX_SHOWN = 300
"""So many characters of a longer line are shown."""
_EACH_LINE = "(?m)"
"""``^`` and ``$`` match at each line."""
_ESCAPE = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|.)", re.DOTALL)


class _Hit(NamedTuple):
    """A line that was found: its document and its number among the lines found in it, from 1; the
    chunk that has it, its line in the file (``None`` if it has none), and what is shown of it.
    """  # noqa: D205

    document_id: str
    number: int
    rowid: int
    line: int | None
    shown: str

    @property
    def position(self) -> str:
        """``after`` of the lines behind this one."""
        return f"{self.number}:{self.document_id}"


def find_lines(corpus: Corpus, request: GrepRequest, scope: ReferenceScope) -> FoundLines:
    """One page of the lines with a text, ordered by document id, then as in the document.

    Args:
        corpus: an open corpus.
        request: what is searched for, and where.
        scope: what the prefix may name. Passages that no role may read are not searched.

    Raises:
        UsageError: ``bad_pattern``; ``not_found``: no document has this prefix.
        Interrupted: ``search_too_long``.
        CorpusCorrupt: a passage that has such a line, or its document, is not what was stored.
    """
    pattern = LinePattern(request.pattern, is_regex=request.regex)
    number, after = _position(request.after)
    limit = request.limit or DEFAULT_LINES
    with corpus.interruptible():
        named = documents_below(corpus, request.prefix or "", scope)
        later = [name for name in named if name.document_id >= after]
        hits = (
            hit
            for hit in _hits(corpus, pattern, later, scope)
            if hit.document_id > after or hit.number > number
        )
        page = [*islice(hits, limit + 1)]
        shown = page[:limit]
        rowids = [*{hit.rowid for hit in shown}]
        verify_passages(corpus, rowids)
        passages = passages_by_rowid(corpus, rowids)
    return FoundLines(
        lines=[_line(hit, passages[hit.rowid]) for hit in shown],
        next=shown[-1].position if len(page) > limit else None,
    )


def _position(after: str | None) -> tuple[int, str]:
    """The number and the document of the line that a page begins behind."""
    number, colon, document = (after or "0:").partition(":")
    if colon and number.isdecimal() and number.isascii() and len(number) < 10:
        return int(number), document
    raise UsageError(
        "bad_request", "after: is no `next` of an answer of grep", "leave it out for the first page"
    )


def _hits(
    corpus: Corpus, pattern: LinePattern, named: list[DocumentName], scope: ReferenceScope
) -> Iterator[_Hit]:
    seconds = 0.0
    for first in range(0, len(named), READ_AT_ONCE):
        part = named[first : first + READ_AT_ONCE]
        texts = _readable_texts(corpus, [name.row for name in part], scope)
        for name in part:
            number = last_line = 0
            for text in texts.get(name.row, ()):
                corpus.raise_if_interrupted()
                started = perf_counter()
                matches = [*pattern.find(text.content)]
                seconds += perf_counter() - started
                if seconds > MAX_SECONDS:
                    raise Interrupted(
                        "search_too_long",
                        f"pattern: the search takes longer than {MAX_SECONDS:g} seconds",
                        "search only a folder or source, or with a simpler expression",
                    )
                has_lines = has_lines_of_file(text.content, text.start_line, text.end_line)
                for place, shown in matches:
                    line = text.start_line + place if has_lines else None
                    # Chunks may overlap.
                    if line is None or line > last_line:
                        last_line, number = line or last_line, number + 1
                        yield _Hit(name.document_id, number, text.rowid, line, shown)


def _readable_texts(
    corpus: Corpus, documents: list[int], scope: ReferenceScope
) -> dict[int, list[PlacedText]]:
    texts = placed_texts(corpus, documents)
    if scope.may_read is None:
        return texts
    passages = passages_of_documents(corpus, documents)
    readable = {passage.rowid for passage in filter(scope.reads, passages)}
    return {
        document: [text for text in placed if text.rowid in readable]
        for document, placed in texts.items()
    }


def _line(hit: _Hit, passage: Passage) -> FoundLine:
    lines = f"{passage.start_line}-{passage.end_line}" if hit.line is None else str(hit.line)
    return FoundLine(
        locator=f"{passage.path}:{lines}",
        document_id=hit.document_id,
        chunk_id=passage.chunk_id,
        text=hit.shown,
        flags=list(passage.flags) or None,
        mark=passage_mark(passage),
        superseded_by=[newer.document_id for newer in passage.superseded_by] or None,
    )


# -- the pattern ---------------------------------------------------------------------------------


class LinePattern:
    """An exact text or a regular expression of RE2. Case counts only if it has a capital letter.

    Args:
        pattern: what is searched for.
        is_regex: whether it is a regular expression.

    Raises:
        UsageError: ``bad_pattern``: it is empty, matches the empty text, or has a line break, or
            RE2 does not accept it.
    """

    def __init__(self, pattern: str, *, is_regex: bool) -> None:
        letters = _ESCAPE.sub("", pattern) if is_regex else pattern
        try:
            _check_text(pattern, is_regex=is_regex)
            self._regex = linear.check(
                _EACH_LINE + pattern if is_regex else pattern,
                literal=not is_regex,
                case_sensitive=any(map(str.isupper, letters)),
                never_nl=True,
            )
        except linear.PatternError as error:
            raise UsageError(
                "bad_pattern",
                f"pattern: {str(error).replace(_EACH_LINE, '')}",
                "give an exact text"
                + (r", or an expression of RE2 such as E-\d{4}" if is_regex else " of one line"),
            ) from None

    def find(self, text: str) -> Iterator[tuple[int, str]]:
        """The numbers of the lines that have a match, from 0, and what is shown of each."""
        data = text.encode()
        number = start = 0
        while start <= len(data) and (match := self._regex.search(data, start)):
            line_start = data.rfind(b"\n", 0, match.start()) + 1
            line_end = data.find(b"\n", match.end())
            line_end = len(data) if line_end < 0 else line_end
            number += data.count(b"\n", start, line_start)
            before, found, after = (
                part.decode()
                for part in (
                    data[line_start : match.start()],
                    data[match.start() : match.end()],
                    data[match.end() : line_end],
                )
            )
            yield number, _shown(before, found, after.rstrip())
            number, start = number + 1, line_end + 1


def _check_text(pattern: str, *, is_regex: bool) -> None:
    if not pattern.strip():
        raise linear.PatternError("is empty")
    if not may_be_stored(pattern):
        raise linear.PatternError("holds unpaired surrogates, which are not Unicode text")
    breaks = {"\n", "\r"} | ({r"\n", r"\r"} if is_regex else set())
    if breaks & {*pattern, *_ESCAPE.findall(pattern)}:
        raise linear.PatternError("has a line break, and lines are searched one by one")


def _shown(before: str, found: str, after: str) -> str:
    """A line, or the part around its match if it is long."""
    line = f"{before}{found}{after}"
    if len(line) <= MAX_SHOWN:
        return line
    space = max(0, MAX_SHOWN - len(found))
    start = max(0, min(len(before) - space // 2, len(line) - MAX_SHOWN))
    end = start + MAX_SHOWN
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
