"""`ls` and `grep`: documents below a path, and lines with a text.

`grep` also finds a document by its title, its name, or the people of a mail. Such a match is in no
line of a passage. So the first passage is shown for it, if no line of the document matches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product, repeat, starmap
from time import perf_counter
from typing import NamedTuple

from rolebundle.contracts.documents import NO_TYPE, NOTES_OF_READING, PARTLY_READ, Passage
from rolebundle.contracts.lookup import (
    FoundLine,
    FoundLines,
    ListedDocument,
    Listing,
    Lookup,
    LookupFailure,
    Lookups,
)
from rolebundle.contracts.request import (
    DEFAULT_LINES,
    DEFAULT_LISTED,
    MAX_REFERENCES,
    GrepRequest,
    ListRequest,
)
from rolebundle.errors import AccessDenied, Interrupted, UsageError
from rolebundle.retrieval.bundle import passage_mark, shared_fields
from rolebundle.retrieval.lookup import columns_of, lines_of_file, look_up
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.source_files import shown_path
from rolebundle.scan import linear
from rolebundle.storage import documents
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.digests import verify_documents, verify_passages
from rolebundle.storage.documents import DocumentHead, DocumentName
from rolebundle.storage.passages import (
    PlacedText,
    passages_by_rowid,
    passages_of_documents,
    placed_texts,
)
from rolebundle.text.paths import matches
from rolebundle.text.references import MAX_SUGGESTIONS, is_glob, may_be_stored, similar_names
from rolebundle.text.spellings import composed, folded, placed
from rolebundle.text.words import place_to_begin, place_to_cut

READ_AT_ONCE = 100
FACTS = "remembered"
"""How a prefix begins that names remembered facts. Others name documents only."""


def list_documents(corpus: Corpus, request: ListRequest, rules: ReferenceRules) -> Listing:
    """One page of the documents below a path or of a source, ordered by id.

    Args:
        corpus: an open corpus.
        request: what is listed.
        rules: what the prefix may name. Documents that no role may read are left out.

    Raises:
        UsageError: ``not_found``: no document has this prefix.
        CorpusCorrupt: a document is not what was stored.
    """
    limit = request.limit or DEFAULT_LISTED
    after = request.after or ""
    is_whole = request.prefix is None and rules.may_read is None and not rules.not_valid_now
    if is_whole and may_be_stored(after):
        # Only what is shown is read: a large corpus has many names.
        later = documents.document_names(corpus, after=after, limit=limit + 1)
    else:
        named = documents_below(corpus, request.prefix or "", rules)
        later = [name for name in named if name.document_id > after]
    readable = _first_readable(corpus, later, limit + 1, rules)
    page = readable[:limit]
    rowids = [name.rowid for name in page]
    verify_documents(corpus, rowids)
    return Listing(
        documents=[
            ListedDocument(
                **shared_fields(document, ListedDocument)
                | {"document_type": None if (kind := document.ranked_type) == NO_TYPE else kind},
                typed_by=document.observed_type[1] if document.observed_type else None,
                path=name.path,
                chunks=chunks,
                notes=list(dict(document.attributes).get(NOTES_OF_READING, ())) or None,
                dated_by=document.dated_by,
                partly_read=PARTLY_READ in dict(document.attributes) or None,
                absolute_path=shown_path(name.location, name.path) if rules.absolute else None,
            )
            for name, (document, chunks) in zip(
                page, documents.listed_documents(corpus, rowids), strict=True
            )
        ],
        next=page[-1].document_id if len(readable) > limit else None,
    )


def documents_below(corpus: Corpus, prefix: str, rules: ReferenceRules) -> list[DocumentName]:
    """The documents below a path, of a source, or matching a glob, ordered by id.

    Raises:
        UsageError: ``not_found``: no role of the agent may read any; not for an empty prefix.
    """
    named = _matching(corpus, prefix, rules)
    if prefix and not _first_readable(corpus, named, 1, rules):
        raise _nothing_below(corpus, prefix, rules)
    return named


def look_up_all(
    corpus: Corpus,
    references: Sequence[str],
    rules: ReferenceRules,
    *,
    outline: bool = False,
    section: str | None = None,
) -> Lookups:
    """Look up references and globs; what several of them name comes once.

    Args:
        corpus: an open corpus.
        references: each as for :func:`look_up`, or a glob of paths or ids.
        rules: what they may name.
        outline: whether only the headings of each document are given.
        section: the heading of each document whose text is looked up.
    """
    found: dict[tuple[str, ...], Lookup] = {}
    failures: list[LookupFailure] = []
    for reference in dict.fromkeys(_expanded(corpus, references, rules)):
        if isinstance(reference, LookupFailure):
            failures.append(reference)
            continue
        try:
            lookup = look_up(corpus, reference, rules, outline=outline, section=section)
            parts = (f"{passage.chunk_id} {passage.locator}" for passage in lookup.passages)
            found.setdefault((lookup.kind, lookup.document.document_id, *parts), lookup)
        except (UsageError, AccessDenied) as error:
            failures.append(_failure(reference, error))
    return Lookups(lookups=[*found.values()], failures=failures)


def _expanded(
    corpus: Corpus, references: Sequence[str], rules: ReferenceRules
) -> list[str | LookupFailure]:
    expanded: list[str | LookupFailure] = []
    for reference in references:
        if not is_glob(reference) or rules.without_invalid(
            documents.documents_named(corpus, reference, ())
        ):
            expanded.append(reference)
            continue
        matching = _matching(corpus, reference, rules)
        readable = _first_readable(corpus, matching, MAX_REFERENCES + 1, rules)
        expanded += [name.document_id for name in readable[:MAX_REFERENCES]]
        if len(readable) > MAX_REFERENCES:
            error = UsageError(
                "too_many_documents",
                f"{reference}: matches more than {MAX_REFERENCES} documents",
                "the first ones are here; list the others with ls, or use a narrower glob",
            )
            expanded.append(_failure(reference, error))
        if not readable:
            expanded.append(_failure(reference, _nothing_below(corpus, reference, rules)))
    return expanded


def _failure(reference: str, error: UsageError | AccessDenied) -> LookupFailure:
    return LookupFailure(
        reference=reference, code=error.code, message=error.message, hint=error.hint
    )


def _matching(corpus: Corpus, prefix: str, rules: ReferenceRules) -> list[DocumentName]:
    """The documents below a path, of a source, or matching a glob, ordered by id."""
    if not may_be_stored(prefix):
        return []
    # Facts are many, and agents file them: whoever wants them asks for them.
    named = rules.without_invalid(documents.document_names(corpus, facts=prefix.startswith(FACTS)))
    if prefix in ("", ".") and not (rules.absolute and rules.folder and prefix):
        return named
    if is_glob(prefix):
        globs = [prefix, *rules.locations(prefix)]
        return [
            name for name in named if any(starmap(matches, product(globs, _spellings(name, rules))))
        ]
    folders = [composed(prefix.removeprefix("./").rstrip("/"))]
    folders += [composed(place) for place in rules.locations(prefix) if place != os.sep]
    starts = tuple(f"{folder}/" for folder in folders)
    return [
        name
        for name in named
        if composed(name.source_id) in folders
        or any(f"{spelling}/".startswith(starts) for spelling in _spellings(name, rules))
    ]


def _spellings(name: DocumentName, rules: ReferenceRules) -> tuple[str, ...]:
    names = (name.document_id, name.path, *([name.location] if rules.absolute else []))
    return tuple(map(composed, names))


def _first_readable(
    corpus: Corpus, named: Sequence[DocumentName], count: int, rules: ReferenceRules
) -> list[DocumentName]:
    """The first ``count`` of these documents that a role of the agent may read."""
    if rules.may_read is None:
        return [*named[:count]]
    found: list[DocumentName] = []
    for start in range(0, len(named), READ_AT_ONCE):
        part = named[start : start + READ_AT_ONCE]
        passages = passages_of_documents(corpus, [name.rowid for name in part])
        readable = {passage.document.document_id for passage in passages if rules.may_read(passage)}
        found += [name for name in part if name.document_id in readable]
        if len(found) >= count:
            break
    return found[:count]


def _nothing_below(corpus: Corpus, prefix: str, rules: ReferenceRules) -> UsageError:
    named = rules.without_invalid(documents.document_names(corpus))
    folders = {f for n in named for f in (n.source_id, n.path.rpartition("/")[0]) if f}
    known = {(folder, folder) for folder in folders}
    names = [*sorted(known), *((name.document_id, name.path) for name in named)]
    near = [] if rules.may_read else similar_names(prefix, names)[:MAX_SUGGESTIONS]
    return UsageError(
        "not_found",
        f"{prefix}: no document has this path, source or id in this corpus",
        f"did you mean {' or '.join(near)}?" if near else "list all documents with ls",
    )


MAX_SECONDS = 10.0
"""How long the texts may be searched; 20,000 passages take a tenth of a second. Only texts that the
agent may read are timed, so that the bound does not depend on others."""


MAX_SHOWN = 300
"""How many characters of a longer line are shown."""
MAX_WITH_CONTEXT = 3
"""In an answer of no more lines, each is shown with lines around it."""
_BEFORE, _AFTER = 2, 8
_PEOPLE = ("from", "to", "cc")
"""The attributes of a mail that name people."""
_LAST_PART = re.compile("[/#]")
"""Before the name of a file, or of a record in it."""
_EACH_LINE = "(?m)"
"""``^`` and ``$`` match at each line."""
_AS_TYPED = str.maketrans("’‘‚“”„–—", "'''\"\"\"--")
"""Quotation marks and dashes, as a keyboard has them."""
_INNER_SPACE = re.compile(r"(?<=\S)\s+(?=\S)")
_GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*)"
"""What a space of a text stands for."""
_ESCAPE = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|.)", re.DOTALL)


class _Match(NamedTuple):
    """A line, or a name, that was found, before it is shown.

    Attributes:
        document_id: its document.
        number: its number among those that were found in the document, from 1.
        rowid: of the chunk that has it.
        lines: its first and last line in the file; ``None`` without lines.
        shown: what is shown of it.
        in_chunk: its first and last line in the chunk, from 0; ``None`` for a name.
    """

    document_id: str
    number: int
    rowid: int
    lines: tuple[int, int] | None
    shown: str
    in_chunk: tuple[int, int] | None = None


def find_lines(corpus: Corpus, request: GrepRequest, rules: ReferenceRules) -> FoundLines:
    """One page of the lines with a text, ordered by document id, then as in the document.

    Args:
        corpus: an open corpus.
        request: what is searched for, and where.
        rules: what the prefix may name. Passages that no role may read are not searched.

    Raises:
        UsageError: ``bad_pattern``; ``not_found``: no document has this prefix.
        Interrupted: ``search_too_long``.
        CorpusCorrupt: a passage that has such a line, or its document, is not what was stored.
    """
    pattern = LinePattern(request.pattern, is_regex=request.regex)
    number, after = _position(request.after)
    limit = request.limit or DEFAULT_LINES
    with corpus.interruptible():
        named = documents_below(corpus, request.prefix or "", rules)
        later = [name for name in named if name.document_id >= after]
        found = _hits(corpus, pattern, later, rules)
        hits = (hit for hit in found if hit.document_id > after or hit.number > number)
        page = [*islice(hits, limit + 1)]
        shown = page[:limit]
        rowids = [*{hit.rowid for hit in shown}]
        verify_passages(corpus, rowids)
        passages = passages_by_rowid(corpus, rowids)
    last = page[limit - 1] if len(page) > limit else None
    contexts = _contexts(shown, passages) if len(shown) <= MAX_WITH_CONTEXT else repeat(None)
    columns = [columns_of(passages[h.rowid], h.in_chunk[0]) if h.in_chunk else None for h in shown]
    tables = [(hit.document_id, header) for hit, header in zip(shown, columns, strict=True)]
    return FoundLines(
        lines=[
            _line(hit, passages[hit.rowid], text, None if table in tables[:n] else table[1])
            for n, (hit, table, text) in enumerate(zip(shown, tables, contexts, strict=False))
        ],
        next=f"{last.number}:{last.document_id}" if last else None,
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
    corpus: Corpus, pattern: LinePattern, named: list[DocumentName], rules: ReferenceRules
) -> Iterator[_Match]:
    seconds = 0.0
    for first in range(0, len(named), READ_AT_ONCE):
        part = named[first : first + READ_AT_ONCE]
        texts = _readable_texts(corpus, [name.rowid for name in part], rules)
        heads = documents.document_heads(corpus, [*texts])
        for name in part:
            number = last_line = 0
            for text in texts.get(name.rowid, ()):
                corpus.raise_if_interrupted()
                started = perf_counter()
                found = [*pattern.find(text.content)]
                seconds += perf_counter() - started
                if seconds > MAX_SECONDS:
                    raise Interrupted(
                        "search_too_long",
                        f"pattern: the search takes longer than {MAX_SECONDS:g} seconds",
                        "search only a folder or source, or with a simpler expression",
                    )
                place = (text.start_line, text.end_line, heads[name.rowid].attributes)
                of_file = lines_of_file(text.content, *place) if found else None
                for first_line, end_line, shown in found:
                    lines = (of_file[first_line][0], of_file[end_line][1]) if of_file else None
                    # Chunks may overlap.
                    if lines is None or lines[0] > last_line:
                        last_line, number = lines[1] if lines else last_line, number + 1
                        in_chunk = first_line, end_line
                        yield _Match(name.document_id, number, text.rowid, lines, shown, in_chunk)
            if not number and (own := texts.get(name.rowid)):
                for head in _name_lines(name, heads[name.rowid], pattern):
                    yield _Match(name.document_id, 1, own[0].rowid, None, head)


def _name_lines(name: DocumentName, head: DocumentHead, pattern: LinePattern) -> list[str]:
    """The first of the names of a document that has a match, with what it is; or none."""
    people = ((key, ", ".join(texts)) for key, texts in head.attributes if key in _PEOPLE)
    names = (("title", head.title), ("file", _LAST_PART.split(name.document_id)[-1]), *people)
    found = (f"{kind}: {shown}" for kind, text in names for *_, shown in pattern.find(text))
    return [*islice(found, 1)]


def _readable_texts(
    corpus: Corpus, rowids: list[int], rules: ReferenceRules
) -> dict[int, list[PlacedText]]:
    texts = placed_texts(corpus, rowids)
    if rules.may_read is None:
        return texts
    passages = passages_of_documents(corpus, rowids)
    readable = {passage.rowid for passage in filter(rules.allows_reading, passages)}
    return {name: [text for text in own if text.rowid in readable] for name, own in texts.items()}


def _line(hit: _Match, passage: Passage, context: str | None, columns: str | None) -> FoundLine:
    first, last = hit.lines or (passage.start_line, passage.end_line)
    lines = str(first) if hit.lines and first == last else f"{first}-{last}"
    return FoundLine(
        locator=f"{passage.locator_path}:{lines}",
        document_id=hit.document_id,
        chunk_id=passage.chunk_id,
        text=hit.shown,
        context=context,
        columns=columns,
        flags=list(passage.flags) or None,
        mark=passage_mark(passage),
        superseded_by=[newer.document_id for newer in passage.superseded_by] or None,
    )


def _contexts(hits: Sequence[_Match], passages: Mapping[int, Passage]) -> Iterator[str | None]:
    """Each line with those around it in its passage; ``None`` if the one before shows it."""
    shown = -1, 0  # The chunk of the last context, and its last line.
    for hit in hits:
        if hit.in_chunk is None or (hit.rowid == shown[0] and hit.in_chunk[1] <= shown[1]):
            yield None
            continue
        first, last = hit.in_chunk
        lines = passages[hit.rowid].content.split("\n")
        shown = hit.rowid, last + _AFTER
        above, below = lines[max(0, first - _BEFORE) : first], lines[last + 1 :][:_AFTER]
        yield "\n".join([*map(_shown, above), hit.shown, *map(_shown, below)])


# -- the pattern ---------------------------------------------------------------------------------


class LinePattern:
    """A text or a regular expression of RE2. Case counts only if it has a capital letter.

    A text is compared as words are (:mod:`rolebundle.text.spellings`), and may go on in the next
    line, as in a PDF; an expression is compared exactly, line by line.

    Args:
        pattern: what is searched for.
        is_regex: whether it is a regular expression.

    Raises:
        UsageError: ``bad_pattern``: it is empty, matches the empty text, or has a line break, or
            RE2 does not accept it.
    """

    def __init__(self, pattern: str, *, is_regex: bool) -> None:
        letters = _ESCAPE.sub("", pattern) if is_regex else pattern
        # An expression is compared with the letters as they are.
        self._folds = not is_regex
        pattern = pattern if is_regex else (folded(pattern) or pattern).translate(_AS_TYPED)
        of_words = _GAP.join(map(re.escape, _INNER_SPACE.split(pattern)))
        try:
            _check_text(pattern, is_regex=is_regex)
            self._regex = linear.check(
                _EACH_LINE + pattern if is_regex else of_words,
                case_sensitive=any(map(str.isupper, letters)),
                never_nl=is_regex,
            )
        except linear.PatternError as error:
            raise UsageError(
                "bad_pattern",
                f"pattern: {str(error).replace(_EACH_LINE, '')}",
                "give an exact text"
                + (r", or an expression of RE2 such as E-\d{4}" if is_regex else " of one line"),
            ) from None

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The first and last line of each match, from 0, and what is shown of them."""
        lines = text.split("\n") if self._folds and not text.isascii() else None
        data = (folded(text).translate(_AS_TYPED) if lines else text).encode()
        number = start = 0
        while start <= len(data) and (match := self._regex.search(data, start)):
            line_start = data.rfind(b"\n", 0, match.start()) + 1
            line_end = data.find(b"\n", match.end())
            line_end = len(data) if line_end < 0 else line_end
            number += data.count(b"\n", start, line_start)
            line = data[line_start:line_end].decode().rstrip()
            offset = len(data[line_start : match.start()].decode())
            last = number + line.count("\n")
            if lines:
                line = "\n".join(lines[number : last + 1]).rstrip()
                offset = placed(line).starts[offset]
            yield number, last, _shown(line.replace("\n", " "), offset)
            number, start = last + 1, line_end + 1


def _check_text(pattern: str, *, is_regex: bool) -> None:
    if not pattern.strip():
        raise linear.PatternError("is empty")
    if not may_be_stored(pattern):
        raise linear.PatternError("holds unpaired surrogates, which are not Unicode text")
    breaks = {"\n", "\r"} | ({r"\n", r"\r"} if is_regex else set())
    if breaks & {*pattern, *_ESCAPE.findall(pattern)}:
        raise linear.PatternError("has a line break, and lines are searched one by one")


def _shown(line: str, offset: int = 0) -> str:
    """A line, or the part around its match if it is long."""
    start = place_to_begin(line, max(0, min(offset - MAX_SHOWN // 2, len(line) - MAX_SHOWN)))
    end = start + place_to_cut(line[start:], MAX_SHOWN)
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
