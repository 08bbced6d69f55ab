"""reStructuredText. Roles and directives of Sphinx keep their source text.

docutils is not used. Its parser reads the Linux kernel's documentation at 0.4 MB/s, gives no line
for one node in ten and either the first or the last line for the others, and replaces unknown
Sphinx directives by error nodes without their text. Retrieval needs structure and correct lines.
The rules here are those of the reStructuredText specification
(docutils.sourceforge.io/docs/ref/rst/restructuredtext.html), simplified in three points:

- a directive that is neither code nor a table ends with its first paragraph. The rest of its body
  is parsed by the same rules, so that an API description is not one very large block;
- a title may be longer than its underline (docutils only warns), and sections must begin at the
  left margin;
- quoted literal blocks without indentation are paragraphs.

Comments and bare internal targets (``.. _label:``) produce no output and begin no block.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import MAX_TITLE_CHARS, ReaderOptions, block_of, open_text

# All punctuation that may underline a title (spec: "Sections").
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")
_BULLET = re.compile(r"[-*+•‣⁃](?:\s|$)")
_ENUMERATOR = re.compile(
    r"(?:\(?(?:\d{1,4}|#|[A-Za-z]|[ivxlcIVXLC]{2,7})\)|(?:\d{1,4}|#|[A-Za-z]|[ivxlcIVXLC]{2,7})\.)\s"
)
_DIRECTIVE = re.compile(r"\.\.\s+(?:\|[^|]*\|\s*)?([A-Za-z][\w.+:-]*?)\s?::(?:\s|$)")
_TARGET = re.compile(r"\.\.\s+_(?:`[^`]*`|(?:\\.|[^:\\])+):(?:\s|$)(.*)")
_FOOTNOTE = re.compile(r"\.\.\s+(?:\[[^\]]+\](?:\s|$)|\|)")
_GRID = re.compile(r"\+[-=+]{2,}\+\s*$")
_SIMPLE = re.compile(r"=+(?:\s+=+)+\s*$")
_INLINE = re.compile(r":[\w:+.-]+:`([^`]*)`|``(.+?)``|`([^`]*)`_{0,2}|\*\*(.+?)\*\*|\*(\S[^*]*)\*")
_ANGLE_TARGET = re.compile(r"\s*<[^<>]*>$")
_CODE = frozenset(
    "code code-block sourcecode parsed-literal literalinclude doctest testcode testoutput"
    " prompt math graphviz kernel-render productionlist highlight ipython".split()
)
_TABLES = frozenset("table list-table csv-table flat-table".split())
_HEADER_LINE = re.compile(r"[A-Z][\w-]*: |[A-Z][\w-]*:$|[ \t]+\S")
_MAX_LEVEL = 6
# Limits the search for a closing border: a file of opening borders would take quadratic time.
_MAX_TABLE_LINES = 3000


class RstReader:
    """Reads ``.rst`` and similar files."""

    name = "rst"
    suffixes = suffixes_of("rst")
    version = 4

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file."""
        file = open_text(data, path)
        blocks = rst_blocks(file.lines)
        title = _preamble_title(file.lines)
        title = title or next((block.heading for block in blocks if block.level), "")
        yield ParsedDocument(
            blocks=blocks,
            inferred={"title": title} if title else {},
            lines=file.lines,
            notes=file.notes,
        )


def _preamble_title(lines: Sequence[str]) -> str:
    """The title in header fields at the beginning (``Title: …``), as PEPs and mails have them."""
    for line in takewhile(_HEADER_LINE.match, lines):
        name, _, value = line.partition(":")
        if name.lower() == "title":
            return plain_words(value)
    return ""


def rst_blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    """The blocks of a file."""
    return tuple(_Scanner(lines).blocks())


def plain_words(title: str) -> str:
    """A title without roles and inline markup."""
    if len(title) <= MAX_TITLE_CHARS and ("`" in title or "*" in title):
        title = _INLINE.sub(_unmarked, title)
    return " ".join(title.split())


def _item_mark(line: str) -> str:
    """The bullet of a list item, ``1`` for any enumerator, ``""`` if the line begins no item."""
    if _BULLET.match(line):
        return line[0]
    return "1" if _ENUMERATOR.match(line) else ""


def _unmarked(match: re.Match[str]) -> str:
    words = next((group for group in match.groups() if group), "")
    return _ANGLE_TARGET.sub("", words) if "<" in words else words


def _indents(lines: Sequence[str]) -> list[int]:
    """The indentation of each line in columns; −1 for a blank line."""
    indents = []
    for line in lines:
        body = line.lstrip()
        width = len(line) - len(body)
        if not body:
            width = -1
        elif width and "\t" in line[:width]:
            width = len(line[:width].expandtabs(8))
        indents.append(width)
    return indents


@dataclass(slots=True)
class _Scanner:
    """Parses the lines of one file from top to bottom."""

    lines: Sequence[str]
    indents: list[int] = field(init=False)
    styles: list[tuple[str, bool]] = field(default_factory=list)
    """Title styles in order of first use: adornment character, has an overline."""
    borders: list[int] | None = None
    """Indexes of the lines that may close a simple table; computed when first used."""

    def __post_init__(self) -> None:
        self.indents = _indents(self.lines)

    def blocks(self) -> Iterator[Block]:
        at = 0
        # The indentation of the paragraph right above if it ends with `::`, else −1. Text that is
        # indented more is its literal block.
        literal_indent = -1
        while at < len(self.lines):
            indent = self.indents[at]
            if indent < 0:
                at += 1
                continue
            if 0 <= literal_indent < indent:
                end = self._body_end(at, literal_indent)
                block: Block | None = block_of(self.lines, "code", at, end)
            else:
                end, block = self._element_at(at, indent)
            literal_indent = -1
            if block is not None:
                yield block
                if block.kind == "paragraph" and self.lines[end - 1].rstrip().endswith("::"):
                    # The body of a directive is not a literal block.
                    is_directive = self.lines[at].lstrip().startswith(".. ")
                    literal_indent = -1 if is_directive else indent
            at = end

    def _element_at(self, at: int, indent: int) -> tuple[int, Block | None]:
        """The end of the element that begins at ``at``, and its block if it has output."""
        line = self.lines[at].strip() if indent else self.lines[at].rstrip()
        first = line[0]
        if not first.isalnum():
            if first == "." and (line == ".." or line.startswith((".. ", "..\t"))):
                return self._explicit_markup(at, indent, line)
            if indent == 0 and _ADORNMENT.match(line):
                element = self._overlined(at, line)
                if element:
                    return element
            if _GRID.match(line):
                return self._table(at, self._while_starts(at, ("+", "|")), "+=")
            if _SIMPLE.match(line):
                return self._table(at, self._simple_table_end(at, indent), "=")
            if line.startswith(">>>"):
                return self._element("code", at, self._paragraph_end(at))
        if indent == 0 and self._underlined(at, line):
            return at + 2, self._section(at, at + 2, line, (self.lines[at + 1][0], False))
        if _item_mark(line):
            return self._element("list", at, self._list_end(at, indent))
        return self._element("paragraph", at, self._paragraph_end(at))

    def _element(self, kind: BlockKind, start: int, end: int) -> tuple[int, Block]:
        """The end of an element with output, and its block."""
        return end, block_of(self.lines, kind, start, end)

    def _table(self, start: int, end: int, border: str) -> tuple[int, Block]:
        """A table, with its header row if ``border`` begins the line below its first row."""
        _, block = self._element("table", start, end)
        has_header = end > start + 3 and self.lines[start + 2].lstrip().startswith(border)
        return end, block._replace(header=self.lines[start + 1]) if has_header else block

    def _section(self, start: int, end: int, title: str, style: tuple[str, bool]) -> Block:
        if style not in self.styles:
            self.styles.append(style)
        level = min(self.styles.index(style) + 1, _MAX_LEVEL)
        words = plain_words(title)
        return block_of(self.lines, "heading", start, end, level=level, heading=words)

    def _underlined(self, at: int, title: str) -> bool:
        if at + 1 >= len(self.lines) or self.indents[at + 1] != 0:
            return False
        below = self.lines[at + 1].rstrip()
        if not _ADORNMENT.match(below) or below == "::":
            return False
        return len(below) >= min(len(title), 4) and not _ADORNMENT.match(title)

    def _overlined(self, at: int, line: str) -> tuple[int, Block | None] | None:
        """A title with an overline, or a transition; None if the line is neither."""
        below = self.lines[at + 2].rstrip() if at + 2 < len(self.lines) else ""
        if below and below[0] == line[0] and _ADORNMENT.match(below) and len(line) > 1:
            title = self.lines[at + 1].strip()
            if title and not _ADORNMENT.match(title):
                return at + 3, self._section(at, at + 3, title, (line[0], True))
        alone = at + 1 >= len(self.lines) or self.indents[at + 1] < 0
        return (at + 1, None) if alone and len(line) >= 4 else None

    def _explicit_markup(self, at: int, indent: int, line: str) -> tuple[int, Block | None]:
        """A directive, target, footnote or comment: its end, and its block if it has output."""
        directive = _DIRECTIVE.match(line)
        if directive:
            name = directive[1].rpartition(":")[2].lower()
            if name in _CODE:
                return self._element("code", at, self._body_end(at + 1, indent))
            if name in _TABLES:
                return self._element("table", at, self._body_end(at + 1, indent))
            return self._element("paragraph", at, self._paragraph_end(at))
        target = _TARGET.match(line)
        if target:
            has_body = at + 1 < len(self.lines) and self.indents[at + 1] > indent
            if has_body or target[1].strip():
                return self._element("paragraph", at, self._paragraph_end(at))
            return at + 1, None
        if _FOOTNOTE.match(line) or line.startswith(".. __"):
            return self._element("paragraph", at, self._paragraph_end(at))
        if line == ".." and (at + 1 >= len(self.lines) or self.indents[at + 1] < 0):
            return at + 1, None  # an empty comment has no body
        return self._body_end(at + 1, indent), None

    def _body_end(self, at: int, indent: int) -> int:
        """The end of the lines that are indented more than ``indent``."""
        end = at
        for i in range(at, len(self.lines)):
            if 0 <= self.indents[i] <= indent:
                break
            if self.indents[i] >= 0:
                end = i + 1
        return end

    def _paragraph_end(self, at: int) -> int:
        end = at + 1
        while end < len(self.lines) and self.indents[end] >= 0:
            end += 1
        return end

    def _while_starts(self, at: int, prefixes: tuple[str, ...]) -> int:
        end = at + 1
        while end < len(self.lines) and self.lines[end].lstrip().startswith(prefixes):
            end += 1
        return end

    def _simple_table_end(self, at: int, indent: int) -> int:
        """The index after the closing border: the first border with a blank line below it."""
        if self.borders is None:
            self.borders = [
                i
                for i, line in enumerate(self.lines)
                if line.lstrip().startswith("=")
                and (i + 1 == len(self.lines) or self.indents[i + 1] < 0)
                and _SIMPLE.match(line.strip())
            ]
        following = bisect_right(self.borders, at)
        if following == len(self.borders):
            return self._paragraph_end(at)
        closing = self.borders[following]
        if closing - at > _MAX_TABLE_LINES:
            return self._paragraph_end(at)
        if any(0 <= width < indent for width in self.indents[at:closing]):
            return self._paragraph_end(at)
        return closing + 1

    def _list_end(self, at: int, indent: int) -> int:
        """A list continues while its lines are indented further or begin another item."""
        mark = _item_mark(self.lines[at].strip())
        end, after_blank = at + 1, False
        for i in range(at + 1, len(self.lines)):
            if self.indents[i] < 0:
                after_blank = True
                continue
            if self.indents[i] < indent:
                break
            if self.indents[i] == indent and after_blank:
                line = self.lines[i].strip()
                if _item_mark(line) != mark:
                    break
                if indent == 0 and self._underlined(i, line):
                    break
            end, after_blank = i + 1, False
        return end


READER = RstReader()
