"""The text of documents whose format has no lines. A locator counts the lines of this text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.scan.finding import HiddenPart
from rolebundle.scan.hidden_style import SAME_COLOR, WHITE, Color
from rolebundle.text.decoding import clean, cleaned_note, with_newlines

_MAX_CHARS = 20_000_000
# What a block, or a line of one, needs in memory besides its text.
_CHARS_OF_BLOCK = 50
_MAX_HIDDEN_CHARS = 2_000_000
_MAX_PART_CHARS = 20_000
_MIN_LABELLED_WORDS = 4
_MAX_FONT_SIZE = 1.5  # points
_MAX_OPACITY = 0.05
_USUAL = frozenset(
    ("alt_text", "comment", "field_code", "hidden_cells", "hidden_slide", "tracked_deletion")
)
"""Kinds of hidden text that ordinary documents have."""
_JOINED: frozenset[BlockKind] = frozenset(("list", "table", "code"))


class TextBlocks:
    """Collects the blocks of a document in its order, and numbers their lines.

    Adjacent lists, tables and pieces of code at the same anchor are one block each.

    Args:
        too_large: makes the error for a document with too much text.
    """

    def __init__(self, too_large: Callable[[str], DocumentError]) -> None:
        self._too_large = too_large
        self._blocks: list[Block] = []
        self._lines: list[str] = []
        self.title = ""
        """The first heading of the highest level that can be the title; empty if there is none."""
        self._title_level = 0
        self._kind: BlockKind | None = None
        self._pending: list[str] = []
        self._anchor = self._header = ""
        self._chars = self._replaced = 0

    def heading(self, text: str, level: int, anchor: str = "", *, is_title: bool = True) -> None:
        """Add a heading; white space is collapsed.

        Args:
            text: the heading.
            level: its level, from 1; 0 for a title of the document.
            anchor: where it is in the document.
            is_title: whether it can be the title of the document. A name of a sheet cannot.
        """
        words = " ".join(text.split())
        if words:
            self._count(len(words))
            self.end_block()
            if is_title and (not self.title or level < self._title_level):
                self.title, self._title_level = words, level
            self._store("heading", words, anchor, level=min(max(level, 1), 6))

    def add(self, kind: BlockKind, text: str, anchor: str = "", header: str = "") -> None:
        """Add a block.

        Args:
            kind: the kind of the block.
            text: its text; nothing is added if it is blank.
            anchor: where it is in the document, such as ``slide 4``.
            header: the header row of a table, as it is in the text of its first block.
        """
        self._count(len(text))
        text = with_newlines(text).strip("\n")
        text = text.strip() if kind == "paragraph" else text.rstrip()
        if not text or text.isspace():
            return
        if kind not in _JOINED:
            self.end_block()
            self._store(kind, text, anchor)
            return
        if (kind, anchor, header) != (self._kind, self._anchor, self._header):
            self.end_block()
            self._kind, self._anchor, self._header = kind, anchor, header
        self._pending.append(text)

    def end_block(self) -> None:
        """End a list, table or piece of code: what follows is another one."""
        if self._kind is not None:
            kind, self._kind = self._kind, None
            self._store(kind, "\n".join(self._pending), self._anchor, header=self._header)
            self._pending = []

    def beginning(self) -> str:
        """The first lines of the text."""
        return "\n".join(line[:1000] for line in self._lines[:60])

    def table(self, rows: Iterable[Sequence[str]], anchor: str = "") -> None:
        """Add a table, one line for each row. Its first row is the header row."""
        lines = []
        for row in rows:
            if line := row_line(row):
                self._count(len(line))
                lines.append(line)
        self.end_block()
        self.add("table", "\n".join(lines), anchor, lines[0] if len(lines) > 1 else "")
        self.end_block()

    def document(
        self, properties: Mapping[str, Any], hidden: HiddenTexts, notes: Iterable[str] = ()
    ) -> ParsedDocument:
        """The document with all blocks.

        Args:
            properties: metadata that the document stores about itself.
            hidden: its hidden texts.
            notes: what was left out, for the report.
        """
        self.end_block()
        inferred = dict(properties)
        if title := inferred.get("title") or self.title:
            inferred["title"] = title
        return ParsedDocument(
            blocks=tuple(self._blocks),
            inferred=inferred,
            lines=self._lines,
            notes=(*cleaned_note(self._replaced), *notes),
            hidden=hidden.parts(),
        )

    def _count(self, chars: int) -> None:
        self._chars += chars + _CHARS_OF_BLOCK
        if self._chars > _MAX_CHARS:
            raise self._too_large(f"more than {_MAX_CHARS:,} characters of text")

    def _store(
        self, kind: BlockKind, text: str, anchor: str, level: int = 0, header: str = ""
    ) -> None:
        text, replaced = clean(text)
        self._replaced += replaced
        if self._lines:
            self._lines.append("")
        start = len(self._lines) + 1
        self._lines += text.split("\n")
        block = Block(kind, text, start, len(self._lines), level, text if level else "")
        self._blocks.append(block._replace(anchor=anchor, header=header))


def row_line(cells: Sequence[str]) -> str:
    """A row of a table as one line; empty if all of its cells are."""
    words = [" ".join(cell.split()) for cell in cells]
    while words and not words[-1]:
        words.pop()
    return " | ".join(words)


# Hidden text


def hidden_kind(text_color: Color | None, background: Color | None, size: float | None) -> str:
    """How a text is hidden by its look; empty if it is not.

    Args:
        text_color: the color of the text; ``None`` if it is the usual one or not known.
        background: the color behind it; ``None`` if that is not known.
        size: the size of the font in points; ``None`` if it is the usual one.
    """
    is_clear = text_color is not None and text_color.alpha <= _MAX_OPACITY
    if is_clear or (size is not None and size <= _MAX_FONT_SIZE):
        return "invisible_element"
    if text_color is None or background is None:
        return ""
    behind = background.over(WHITE)
    return "white_text" if text_color.over(behind).distance(behind) <= SAME_COLOR else ""


class HiddenTexts:
    """Collects what a document hides, by kind."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, bool, bool], list[str]] = {}
        self._chars = 0

    def add(self, kind: str, text: str, *, is_usual: bool = False, is_kept: bool = False) -> None:
        """Add a hidden text.

        Args:
            kind: the kind of the finding.
            text: the text.
            is_usual: whether ordinary documents have such parts; those of some kinds are usual.
            is_kept: whether the text stays in the document, because people may see it.
        """
        words = text.split()
        self._chars += len(text)
        if words and self._chars <= _MAX_HIDDEN_CHARS:
            key = kind, is_usual or kind in _USUAL, is_kept
            self._texts.setdefault(key, []).append(" ".join(words))

    def parts(self) -> tuple[HiddenPart, ...]:
        """The hidden texts of each kind as few parts, which the scan searches one by one."""
        parts = []
        for (kind, is_usual, is_kept), texts in self._texts.items():
            joined = "\n".join(texts)
            is_labelled = (
                not is_usual and len(joined.split(None, _MIN_LABELLED_WORDS)) >= _MIN_LABELLED_WORDS
            )
            for start in range(0, len(joined), _MAX_PART_CHARS):
                text = joined[start : start + _MAX_PART_CHARS]
                parts.append(HiddenPart(kind, text, is_labelled=is_labelled, is_kept=is_kept))
        return tuple(parts)
