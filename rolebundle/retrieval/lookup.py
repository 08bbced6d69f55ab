"""Look up what a reference names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rolebundle.contracts.bundle import BundleWarning
from rolebundle.contracts.documents import WRAPPED, Attributes, FoundDocument, Passage
from rolebundle.contracts.lookup import FoundPassage, Heading, Lookup, LookupKind
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.retrieval.bundle import passage_mark, shared_fields
from rolebundle.retrieval.passage_text import (
    header_above,
    heading_of_table,
    letters_of,
    name_from_shown,
    one_line,
)
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.source_files import source_warnings
from rolebundle.retrieval.where import links_to
from rolebundle.storage import documents
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.digests import verify_documents, verify_passages
from rolebundle.storage.documents import DocumentName, files_of_chunks
from rolebundle.storage.passages import (
    passage_by_id,
    passages_from,
    passages_of_document,
    passages_of_documents,
)
from rolebundle.text import references
from rolebundle.text.references import Lines, may_be_stored
from rolebundle.text.words import first_of

_MAX_NAMED = 5
"""How many documents are named in an error."""
_MAX_HEADINGS = 12
_MAX_LINKING = 100
_MARKDOWN = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
_RENDERED = (".html", ".htm", ".xhtml", ".epub", ".docx", ".odt", ".pptx", ".odp", ".eml")
"""Formats whose headings are shown with the marks of Markdown."""
_UNDERLINED = (*_MARKDOWN, ".rst", ".txt")
_MARKED = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_MARKS = {suffix[1:]: _MARKED for suffix in (*_MARKDOWN, *_RENDERED)} | references.HEADING_LINES
_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#])\1{2,}\s*")
_MAX_TRIED = 20
"""How many similar documents are looked at to suggest the ones that a role may read."""


class Referent(NamedTuple):
    """What a reference names.

    Attributes:
        kind: what kind of reference it is.
        passages: the passages, at least one, in the order of the document.
        lines: the first and the last line; ``None`` if it names no lines.
    """

    kind: LookupKind
    passages: list[Passage]
    lines: tuple[int, int] | None = None


def look_up(
    corpus: Corpus,
    reference: str,
    rules: ReferenceRules,
    *,
    outline: bool = False,
    section: str | None = None,
) -> Lookup:
    """Look up the chunk, the document, the passages or the lines that a reference names.

    Args:
        corpus: an open corpus.
        reference: a chunk id; a document id or path; ``path:start-end`` or ``id:start-end`` with
            lines from 1, inclusive; or ``#document_id:from:count`` with
            passages from 1.
        rules: what it may name. Passages that no role may read are left out.
        outline: whether only the headings of the document that has them are given.
        section: the heading of that document whose text is looked up instead.

    Raises:
        UsageError: nothing has this reference, it names several documents, or the document has no
            such heading.
        AccessDenied: ``role_denied``: every passage was left out.
        CorpusCorrupt: a passage or its document is not what was stored.
    """
    referent = resolve_reference(corpus, reference, rules)
    passages = readable_passages(reference, referent.passages, rules)
    headings = None
    if outline or section is not None:
        document = passages[0].document.document_id
        passages = readable_passages(reference, passages_of_document(corpus, document), rules)
        headings = outline_of(passages)
        referent = Referent("document", passages)
        if section is not None:
            heading = section_of(headings, document, section)
            first, last = heading.start_line, heading.end_line
            passages = [p for p in passages if p.start_line <= last and first <= p.end_line]
            headings, referent = None, Referent("lines", passages, (first, last))
    verify_passages(corpus, [passage.rowid for passage in passages])
    files = files_of_chunks(corpus, [passage.chunk_id for passage in passages])
    warnings = [
        BundleWarning.model_construct(code=code, message=message)
        for code, message in source_warnings(files.values()).items()
    ]
    shown = passages if headings is None else []
    return Lookup(
        reference=reference,
        kind=referent.kind,
        document=_document(
            passages[0], _linking(corpus, passages[0], rules) if referent.kind == "document" else []
        ),
        passages=[_passage(passage, referent.lines) for passage in shown],
        outline=headings,
        warnings=warnings or None,
    )


def chunk_ids_of(corpus: Corpus, references: Sequence[str], rules: ReferenceRules) -> list[str]:
    """The id of the chunk that each reference names. What does not name one stays as it is."""
    return [_chunk_id_of(corpus, reference, rules) or reference for reference in references]


def _chunk_id_of(corpus: Corpus, reference: str, rules: ReferenceRules) -> str | None:
    try:
        referent = find_reference(corpus, reference, rules)
    except UsageError:
        return None
    found = [*filter(rules.allows_reading, referent.passages if referent else ())]
    # Another passage may share a line of the locator.
    found = [passage for passage in found if passage.locator == name_from_shown(reference)] or found
    return found[0].chunk_id if len(found) == 1 else None


def readable_passages(
    reference: str, passages: list[Passage], rules: ReferenceRules
) -> list[Passage]:
    """The passages of a reference that a role may read.

    Raises:
        AccessDenied: ``role_denied``: no role may read any.
    """
    readable = [*filter(rules.allows_reading, passages)]
    if not readable:
        raise AccessDenied(
            "role_denied",
            f"{reference}: no role of this agent may read it",
            "do not guess what it says; ask the owner of the corpus",
        )
    return readable


def resolve_reference(corpus: Corpus, reference: str, rules: ReferenceRules) -> Referent:
    """What a reference names.

    Raises:
        UsageError: as :func:`look_up`.
    """
    found = find_reference(corpus, reference, rules)
    if found is None:
        near = _suggestions(corpus, reference, rules) if may_be_stored(reference) else []
        raise _not_found(reference, near)
    return found


def find_reference(corpus: Corpus, reference: str, rules: ReferenceRules) -> Referent | None:
    """As :func:`resolve_reference`; ``None`` if nothing has this reference.

    Raises:
        UsageError: it names several documents, a document without text, or lines or passages that
            its document does not have.
        CorpusCorrupt: a document without text is not what was stored.
    """
    if not may_be_stored(reference):
        return None
    passage = passage_by_id(corpus, reference)
    if passage is not None and passage.document.document_id not in rules.not_valid_now:
        return Referent("chunk", [passage])
    named = _named(corpus, reference, rules)
    if len(named) > 1:
        raise _ambiguous(f"{reference}: several documents have this path", named)
    if named:
        if not (passages := passages_of_documents(corpus, [named[0].rowid])):
            verify_documents(corpus, [named[0].rowid])
            raise UsageError(
                "no_text",
                f"{reference}: the document has no text",
                "if its file has text, ingest it again, or run `rolebundle corpus doctor`",
            )
        return Referent("document", passages)
    numbered = references.parse_passages(reference)
    if numbered and numbered[0] not in rules.not_valid_now:
        passages = _numbered_passages(corpus, reference, numbered)
        if passages:
            return Referent("passages", passages)
    lines = references.parse_lines(reference)
    if lines is not None and lines.start <= lines.end:
        passages = _passages_at_lines(corpus, reference, lines, rules)
        if passages:
            return Referent("lines", passages, (lines.start, lines.end))
    # A secret in the name of a document is masked in the corpus.
    # Imported here, because re2 takes time.
    from rolebundle.scan.confidential import without_secrets

    stored = without_secrets(name_from_shown(reference))
    return None if stored == reference else find_reference(corpus, stored, rules)


def _named(corpus: Corpus, name: str, rules: ReferenceRules) -> list[DocumentName]:
    return rules.without_invalid(documents.documents_named(corpus, name, rules.locations(name)))


def _passages_at_lines(
    corpus: Corpus, reference: str, lines: Lines, rules: ReferenceRules
) -> list[Passage]:
    named = _named(corpus, lines.path, rules)
    rowids = [document.rowid for document in named]
    passages = passages_of_documents(corpus, rowids, lines.start, lines.end)
    ids = {passage.document.document_id for passage in passages}
    if len(ids) > 1:
        raise _ambiguous(
            f"{reference}: these lines belong to several documents",
            [document for document in named if document.document_id in ids],
        )
    if passages or len(named) != 1 or rules.may_read is not None:
        return passages
    if all_passages := passages_of_documents(corpus, rowids):
        first = min(part.start_line for part in all_passages)
        last = max(part.end_line for part in all_passages)
        raise UsageError(
            "not_found",
            f"{reference}: there is no text at these lines",
            f"{lines.path} has text at the lines {first} to {last}",
        )
    return passages


def _numbered_passages(
    corpus: Corpus, reference: str, numbered: tuple[str, int, int]
) -> list[Passage]:
    """The passages that a reference numbers; none if there is no such document."""
    document, first, count = numbered
    passages = passages_from(corpus, document, first, count) if first and count else []
    total = 0 if passages else len(passages_of_document(corpus, document))
    if total:
        raise UsageError(
            "not_found",
            f"{reference}: {document} has the passages 1 to {total}, and none of these",
            f"ask for #{document}:1:{total}, or less of it",
        )
    return passages


def _ambiguous(message: str, named: Sequence[DocumentName]) -> UsageError:
    ids = [document.document_id for document in named]
    hint = f"name one of them: {first_of(ids, _MAX_NAMED)}"
    return UsageError("ambiguous_reference", message, hint)


def _not_found(reference: str, near: Sequence[str]) -> UsageError:
    named = reference if reference.strip() else repr(reference)
    return UsageError(
        "not_found",
        f"{named}: no passage, document or lines of that name in this corpus",
        "such names end with their server: retrieve again, or name path:start-end"
        if references.PLACE.match(named)
        else f"did you mean {' or '.join(near)}?"
        if near
        else "a question is for retrieve, or comes after the name in why; ls lists the documents"
        if reference.count(" ") > 1
        else "copy a chunk_id, document_id or locator from a bundle, or list the documents with ls",
    )


def _suggestions(corpus: Corpus, reference: str, rules: ReferenceRules) -> list[str]:
    """References with the names of documents that a wrong one may mean."""
    lines = references.parse_lines(reference)
    first, last = (min(lines[1:]), max(lines[1:])) if lines else (0, 0)
    names = rules.without_invalid(documents.document_names(corpus))
    near = references.similar_names(
        references.named_document(reference), ((name.document_id, name.path) for name in names)
    )
    rowids = {name.document_id: name.rowid for name in names}
    found: list[str] = []
    for document_id in near[:_MAX_TRIED]:
        passages = passages_of_documents(corpus, [rowids[document_id]])
        if rules.may_read is None or any(map(rules.allows_reading, passages)):
            is_there = any(p.start_line <= last and first <= p.end_line for p in passages)
            found.append(f"{document_id}:{first}-{last}" if is_there else document_id)
        if len(found) == references.MAX_SUGGESTIONS:
            break
    return found


def _linking(corpus: Corpus, passage: Passage, rules: ReferenceRules) -> list[str]:
    """The ids of the readable documents that link to the document of a passage."""
    attributes = dict(passage.document.attributes)
    names = [f"/{passage.path}", *attributes.get("aliases", ()), *attributes.get("alias", ())]
    rows = documents.documents_with(corpus, "attributes", links_to(names))
    every = (passages_of_documents(corpus, [row]) for row in rows)
    readable = ([*filter(rules.allows_reading, passages)] for passages in every)
    linking = {passages[0].document.document_id for passages in readable if passages}
    return sorted(linking - {passage.document.document_id, *rules.not_valid_now})[:_MAX_LINKING]


def _document(passage: Passage, linked_from: list[str]) -> FoundDocument:
    document = passage.document
    return FoundDocument(
        **shared_fields(document, FoundDocument)
        | {
            "attributes": {key: list(texts) for key, texts in document.attributes} or None,
            "dated_by": document.dated_by,
            "superseded_by": [newer.document_id for newer in passage.superseded_by],
            "linked_from": linked_from or None,
        }
    )


def lines_of_file(
    content: str, start: int, end: int, attributes: Attributes
) -> list[tuple[int, int]] | None:
    """The first and the last line of the file that hold each line of a chunk's text.

    ``None`` if the text is not the lines from ``start`` to ``end``, such as that of a page.
    """
    wrapped = {*dict(attributes).get(WRAPPED, ())}
    lines, line = list[tuple[int, int]](), start
    for _ in range(content.count("\n") + 1):
        first = line
        while str(line) in wrapped:
            line += 1
        lines.append((first, line))
        line += 1
    return lines if line == end + 1 else None


def columns_of(passage: Passage, at: int) -> str | None:
    """The header row above a line of a passage, counted from 0; ``None`` if there is none."""
    lines, below = passage.content.split("\n"), heading_of_table(passage._asdict())
    # Tables of office documents have no borders, and may stand between paragraphs.
    if passage.content_type == "excerpt" and " | " in lines[at]:
        below = ""
    header = header_above(lines, at, below)
    return one_line(header.text) if header else None


def _passage(passage: Passage, lines: tuple[int, int] | None) -> FoundPassage:
    content, start, end = passage.content, passage.start_line, passage.end_line
    # Text that was extracted from HTML or JSON is returned whole.
    columns = columns_of(passage, 0)
    of_file = lines and lines_of_file(content, start, end, passage.document.attributes)
    if lines and of_file:
        shown = [n for n, at in enumerate(of_file) if at[0] <= lines[1] and lines[0] <= at[1]]
        columns = columns_of(passage, shown[0])
        content = "\n".join(content.split("\n")[shown[0] : shown[-1] + 1])
        start, end = of_file[shown[0]][0], of_file[shown[-1]][1]
    return FoundPassage(
        anchor=passage.anchor or None,
        chunk_id=passage.chunk_id,
        place=passage.ordinal + 1,
        locator=f"{passage.locator_path}:{start}-{end}",
        headings=list(passage.headings),
        content_type=passage.content_type,
        flags=list(passage.flags) or None,
        mark=passage_mark(passage),
        columns=columns,
        content=content,
    )


# -- headings ------------------------------------------------------------------------------------


def outline_of(passages: Sequence[Passage]) -> list[Heading]:
    """The headings of a document.

    Args:
        passages: all passages of the document, in order.
    """
    found = [*_headings_in_text(passages)] or [*_headings_of_passages(passages)]
    last = max((passage.end_line for passage in passages), default=0)
    ends = [
        next((line - 1 for line, other, _ in found[index + 1 :] if other <= level), last)
        for index, (_, level, _) in enumerate(found)
    ]
    return [
        Heading(heading=name, level=level, start_line=line, end_line=max(line, end))
        for (line, level, name), end in zip(found, ends, strict=True)
    ]


def section_of(outline: Sequence[Heading], document: str, section: str) -> Heading:
    """The heading that a name means: the one that equals it, else the only one that has it.

    Raises:
        UsageError: ``not_found``: no heading or several ones have the name.
    """
    wanted = letters_of(section)
    equal = [heading for heading in outline if letters_of(heading.heading) == wanted]
    found = equal or [heading for heading in outline if wanted in letters_of(heading.heading)]
    if len(found) == 1:
        return found[0]
    problem, hint = "no such heading", "get all of it"
    if found:
        places = [f"{document}:{heading.start_line}-{heading.end_line}" for heading in found]
        problem = "several headings of that name"
        hint = f"get the lines of one of them: {first_of(places, _MAX_HEADINGS)}"
    elif outline:
        names = [heading.heading for heading in outline]
        hint = f"its headings are: {first_of(names, _MAX_HEADINGS)}"
    raise UsageError("not_found", f"{section}: {document} has {problem}", hint)


def _headings_in_text(passages: Sequence[Passage]) -> Iterator[tuple[int, int, str]]:
    """The line, level and text of each heading that stands in the file as it is indexed."""
    levels: dict[str, int] = {}
    fence = ""
    for passage in passages:
        lines = passage.content.split("\n")
        path = passage.path.lower()
        marks = _MARKS.get(path.rpartition(".")[2])
        if len(lines) != passage.end_line - passage.start_line + 1:
            if path.endswith(_RENDERED):
                marked = filter(None, map(_MARKED.fullmatch, lines))
                yield from ((passage.start_line, len(match[1]), match[2]) for match in marked)
            continue
        for index, line in enumerate(lines):
            mark = line.lstrip()[:3]
            if mark in ("```", "~~~"):
                fence = mark if not fence else "" if mark == fence else fence
            if fence or line[:1].isspace():
                continue
            if marks is not None and (found := marks.fullmatch(line)):
                yield passage.start_line + index, len(found[1]), found[2]
            elif path.endswith(_UNDERLINED) and _is_underlined(lines, index):
                is_over = index > 0 and lines[index - 1] == lines[index + 1]
                style = lines[index + 1][0] + ("above" if is_over else "")
                level = levels.setdefault(style, len(levels) + 1)
                yield passage.start_line + index, level, line.strip()


def _is_underlined(lines: Sequence[str], index: int) -> bool:
    """Whether a line is a heading by the line of marks below it."""
    line, below = lines[index].rstrip(), lines[index + 1] if index + 1 < len(lines) else ""
    above = lines[index - 1].strip() if index else ""
    return (
        any(map(str.isalnum, line))
        and _UNDERLINE.fullmatch(below) is not None
        and len(below.rstrip()) >= len(line)
        and (not above or above == below.strip())
    )


def _headings_of_passages(passages: Sequence[Passage]) -> Iterator[tuple[int, int, str]]:
    """The line, level and text of each heading with which a passage begins."""
    above: tuple[str, ...] = ()
    for passage in passages:
        for depth, name in enumerate(passage.headings):
            if passage.headings[: depth + 1] != above[: depth + 1]:
                yield passage.start_line, depth + 1, name
        above = passage.headings
