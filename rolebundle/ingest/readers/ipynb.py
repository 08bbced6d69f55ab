"""Jupyter notebooks of the formats 3 and 4: the cells as people wrote them, without outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions, is_blank, open_text
from rolebundle.ingest.readers.markdown import plain_words, read_markdown
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import clean, split_lines
from rolebundle.text.strict_json import LineIndex, LocatedObject, NotStrictError, parse_located

# Tags and settings with which a notebook is shown without the source of a cell.
_HIDING_TAGS = frozenset({"hide-cell", "hide-input", "hide_input", "remove-cell", "remove-input"})
_HIDING_KEYS = ("hide_input", "hidden", "source_hidden")


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file. A chunk never spans two cells.

    Raises:
        DocumentError: ``unreadable_notebook``, ``undecodable``.
    """
    file = open_text(data, path)
    text = "\n".join(file.lines)
    notebook = _parsed(text, path)
    sheets = filter(_is_object, _list(notebook, "worksheets"))
    cells = [cell for owner in (notebook, *sheets) for cell in _list(owner, "cells")]
    blocks: list[Block] = []
    hidden: list[HiddenPart] = []
    index = LineIndex(text)
    for number, cell in enumerate(cells, 1):
        if _is_object(cell):
            blocks += _cell(cell, number, index, max(1, len(file.lines)), hidden)
    metadata = _object(notebook, "metadata")
    heading = next((block.heading for block in blocks if block.heading), "")
    kernel, language = _object(metadata, "kernelspec"), _object(metadata, "language_info")
    inferred = {
        "title": heading or _string(metadata, "title") or _string(metadata, "name"),
        "programming_language": _string(language, "name") or _string(kernel, "language"),
    }
    yield ParsedDocument(
        blocks=tuple(blocks),
        inferred={key: value for key, value in inferred.items() if value},
        line_exact=False,
        notes=file.notes,
        hidden=tuple(hidden),
    )


def _parsed(text: str, path: str) -> Mapping[str, Any]:
    detail: object = "it has no cells"
    try:
        try:
            value = parse_located(text)
        except NotStrictError:
            # Outputs may contain NaN, which Jupyter writes. Without offsets, lines are not known.
            value = json.loads(text)
        if isinstance(value, dict) and ("cells" in value or "worksheets" in value):
            return value
    except (ValueError, RecursionError) as error:
        detail = error
    raise DocumentError(
        "unreadable_notebook",
        f"{path}: it is no notebook, or damaged",
        with_detail("save it in Jupyter again, or exclude it", detail),
    )


def _cell(
    cell: Mapping[str, Any], number: int, index: LineIndex, last: int, hidden: list[HiddenPart]
) -> Iterator[Block]:
    """The blocks of a cell. What it hides is added to ``hidden``."""
    key = "source" if "source" in cell else "input"
    source = cell.get(key)
    pieces = source if isinstance(source, list) else [source]
    texts = [clean(piece)[0] for piece in pieces if isinstance(piece, str)]
    lines = split_lines("".join(texts))
    filled = [i for i, line in enumerate(lines) if not is_blank(line)]
    if not filled:
        return
    first, end = 1, last
    if isinstance(cell, LocatedObject):
        first, end = (index.line(at) for at in cell.spans[key])
    # Jupyter writes one string per line, and each on a line of its own.
    is_aligned = len(lines) == len(texts) == end - first - 1
    kind = cell.get("cell_type")
    if kind == "markdown":
        _, parts, blocks = read_markdown(lines, 0, len(lines))
        # Their offsets are not those of the file.
        hidden += (part._replace(start=0, end=0) for part in parts)
    else:
        text = "\n".join(lines[filled[0] : filled[-1] + 1])
        block = Block(
            "code" if kind == "code" else "paragraph", text, filled[0] + 1, filled[-1] + 1
        )
        if kind == "heading":
            level = cell.get("level")
            level = level if isinstance(level, int) and 1 <= level <= 6 else 1
            words = plain_words(" ".join(text.split()))
            block = block._replace(kind="heading", level=level, heading=words)
        blocks = (block,)
    if _is_hidden(_object(cell, "metadata")):
        text = "\n".join(block.text for block in blocks)
        hidden.append(HiddenPart("invisible_element", text, is_kept=True))
    for block in blocks:
        yield block._replace(
            start_line=first + block.start_line if is_aligned else first,
            end_line=first + block.end_line if is_aligned else end,
            anchor=f"cell {number}",
            aligned=is_aligned,
        )


def _is_hidden(metadata: Mapping[str, Any]) -> bool:
    """Whether people see a cell only after a click, or not at all."""
    settings = (metadata, _object(metadata, "jupyter"))
    tags = [tag for tag in _list(metadata, "tags") if isinstance(tag, str)]
    return not _HIDING_TAGS.isdisjoint(tags) or any(
        owner.get(key) is True for owner in settings for key in _HIDING_KEYS
    )


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _object(owner: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = owner.get(key)
    return value if isinstance(value, dict) else {}


def _list(owner: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = owner.get(key)
    return value if isinstance(value, list) else ()


def _string(owner: Mapping[str, Any], key: str) -> str:
    value = owner.get(key)
    return " ".join(clean(value)[0].split()) if isinstance(value, str) else ""


READER = Reader("ipynb", 1, _read)
