"""Jupyter notebooks of the formats 3 and 4: the cells as people wrote them, without outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, is_blank, open_text
from rolebundle.ingest.readers.markdown import plain_words, read_markdown
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import clean, split_lines
from rolebundle.text.strict_json import LineIndex, LocatedObject, NotStrictError, parse_located

# Tags and settings with which a notebook is shown without the source of a cell.
_HIDING_TAGS = frozenset({"hide-cell", "hide-input", "hide_input", "remove-cell", "remove-input"})
_HIDING_KEYS = ("hide_input", "hidden", "source_hidden")

Lines = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell.

    Attributes:
        number: from 1.
        kind: ``code``, ``markdown``, ``heading`` or ``raw``.
        level: of a heading.
        lines: its lines.
        places: for each line its lines in the file.
        is_aligned: whether each line is one line of the file.
        is_hidden: whether people see it only after a click, or not at all.
    """

    number: int
    kind: str
    level: int
    lines: list[str]
    places: list[Lines]
    is_aligned: bool
    is_hidden: bool


class NotebookReader:
    """Reads ``.ipynb``."""

    name = "ipynb"
    suffixes = suffixes_of("ipynb")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file. A chunk never spans two cells.

        Raises:
            DocumentError: ``unreadable_notebook``, ``undecodable``.
        """
        file = open_text(data, path)
        text = "\n".join(file.lines)
        notebook = _parse(text, path)
        index = LineIndex(text)
        blocks: list[Block] = []
        hidden: list[HiddenPart] = []
        for cell in _cells(notebook, index, max(1, len(file.lines))):
            cell_blocks, cell_hidden = _read_cell(cell)
            blocks += cell_blocks
            hidden += cell_hidden
        metadata = _mapping(notebook, "metadata")
        title = next((block.heading for block in blocks if block.heading), "")
        title = title or _string(metadata, "title") or _string(metadata, "name")
        language = _string(_mapping(metadata, "language_info"), "name") or _string(
            _mapping(metadata, "kernelspec"), "language"
        )
        inferred: dict[str, object] = {"title": title} if title else {}
        if language:
            inferred["programming_language"] = language
        yield ParsedDocument(
            blocks=tuple(blocks),
            inferred=inferred,
            line_exact=False,
            notes=file.notes,
            hidden=tuple(hidden),
        )


def _parse(text: str, path: str) -> Mapping[str, Any]:
    try:
        value = parse_located(text)
    except NotStrictError:
        try:
            # Outputs may contain NaN, which Jupyter writes. Without offsets, lines are not known.
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(path, "it is no notebook, or damaged", error) from error
    if not isinstance(value, dict) or not ("cells" in value or "worksheets" in value):
        raise _unreadable(path, "it is no notebook", "it has no cells")
    return value


def _unreadable(path: str, reason: str, detail: object) -> DocumentError:
    step = with_detail("save it in Jupyter again, or exclude it", detail)
    return DocumentError("unreadable_notebook", f"{path}: {reason}", step)


def _cells(notebook: Mapping[str, Any], index: LineIndex, last: int) -> Iterator[_Cell]:
    sheets = [sheet for sheet in _list(notebook, "worksheets") if isinstance(sheet, dict)]
    raw_cells = [cell for owner in (notebook, *sheets) for cell in _list(owner, "cells")]
    for number, raw in enumerate(raw_cells, 1):
        if not isinstance(raw, dict):
            continue
        key = "source" if "source" in raw else "input"
        source = raw.get(key)
        pieces = source if isinstance(source, list) else [source]
        texts = [clean(piece)[0] for piece in pieces if isinstance(piece, str)]
        lines = split_lines("".join(texts))
        if all(map(is_blank, lines)):
            continue
        first, end = 1, last
        if isinstance(raw, LocatedObject):
            first, end = (index.line(at) for at in raw.spans[key])
        # Jupyter writes one string per line, and each on a line of its own.
        is_aligned = len(lines) == len(texts) == end - first - 1
        places = (
            [(n, n) for n in range(first + 1, end)] if is_aligned else [(first, end)] * len(lines)
        )
        level = raw.get("level")
        yield _Cell(
            number=number,
            kind=str(raw.get("cell_type")),
            level=level if isinstance(level, int) and 1 <= level <= 6 else 1,
            lines=lines,
            places=places,
            is_aligned=is_aligned,
            is_hidden=_is_hidden(_mapping(raw, "metadata")),
        )


def _is_hidden(metadata: Mapping[str, Any]) -> bool:
    settings = (metadata, _mapping(metadata, "jupyter"))
    if any(owner.get(key) is True for owner in settings for key in _HIDING_KEYS):
        return True
    return any(tag in _HIDING_TAGS for tag in _list(metadata, "tags") if isinstance(tag, str))


def _read_cell(cell: _Cell) -> tuple[list[Block], list[HiddenPart]]:
    hidden: list[HiddenPart] = []
    if cell.kind == "markdown":
        _, parts, blocks = read_markdown(cell.lines, 0, len(cell.lines))
        # Their offsets are not those of the file.
        hidden += (part._replace(start=0, end=0) for part in parts)
    else:
        blocks = (_whole_cell(cell),)
    if cell.is_hidden:
        text = "\n".join(block.text for block in blocks)
        hidden.append(HiddenPart("invisible_element", text, is_kept=True))
    return [
        block._replace(
            start_line=cell.places[block.start_line - 1][0],
            end_line=cell.places[block.end_line - 1][1],
            anchor=f"cell {cell.number}",
            aligned=cell.is_aligned,
        )
        for block in blocks
    ], hidden


def _whole_cell(cell: _Cell) -> Block:
    visible_lines = [i for i, line in enumerate(cell.lines) if not is_blank(line)]
    first, last = visible_lines[0], visible_lines[-1]
    text = "\n".join(cell.lines[first : last + 1])
    if cell.kind == "heading":
        words = plain_words(" ".join(text.split()))
        return Block("heading", text, first + 1, last + 1, cell.level, words)
    return Block("code" if cell.kind == "code" else "paragraph", text, first + 1, last + 1)


def _mapping(owner: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = owner.get(key)
    return value if isinstance(value, dict) else {}


def _list(owner: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = owner.get(key)
    return value if isinstance(value, list) else ()


def _string(owner: Mapping[str, Any], key: str) -> str:
    value = owner.get(key)
    return " ".join(clean(value)[0].split()) if isinstance(value, str) else ""


READER = NotebookReader()
