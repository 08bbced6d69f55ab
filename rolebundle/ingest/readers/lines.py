"""Plain text, reStructuredText and source code.

Plain text is paragraphs between blank lines. In AsciiDoc and Org, lines that begin a section are
headings; everything else in them is read as plain text, so that comments and settings are shown as
an editor shows them.

reStructuredText is read by rules. The first rule whose pattern matches a line says what begins
there; text that no rule matches is a paragraph. Roles and directives of Sphinx keep their source
text.

docutils is not used. Its parser reads the Linux kernel's documentation at 0.4 MB/s, gives no line
for one node in ten, and replaces unknown Sphinx directives by error nodes without their text.
The rules are those of its specification
(docutils.sourceforge.io/docs/ref/rst/restructuredtext.html), simplified in three points:

- a directive that is neither code nor a table ends with its first paragraph. The rest of its body
  is parsed by the same rules, so that an API description is not one very large block;
- a title may be longer than its underline (docutils only warns), and sections must begin at the
  left margin;
- quoted literal blocks without indentation are paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile

from rolebundle.errors import DocumentError
from rolebundle.ingest.front_matter import front_blocks, front_matter
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import (
    MAX_TITLE_CHARS,
    block_of,
    data_file,
    first_text,
    is_blank,
    open_text,
    runs,
    title_in,
)
from rolebundle.text.decoding import one_line
from rolebundle.text.references import HEADING_LINES

_MAX_LEVEL = 6


# Plain text

_NO_HEADING = re.compile("(?!)")
_ROWS = frozenset(("csv", "tsv", "psv", "tab"))
_NUMBER_CELL = re.compile(r"(?:^|[,;|\t])[\s\"]*[-+]?[\d.]+[\s\"%]*(?:[,;|\t]|$)")


def _read_text(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``, ``bad_front_matter``.
    """
    lines, notes = open_text(data, path)
    declared, declared_at, start, remarks = front_matter(lines, path)
    suffix = path.rpartition(".")[2].lower()
    heading = HEADING_LINES.get(suffix, _NO_HEADING)
    read = _rows(lines, start) if suffix in _ROWS else _text_blocks(lines, start, heading)
    blocks = tuple(read)
    own = front_blocks(lines, declared_at - 1, start - 1) if start else ()
    yield ParsedDocument(
        blocks=(*own, *blocks),
        inferred={"title": title_in(blocks)},
        declared=declared,
        declared_at=declared_at,
        lines=lines,
        notes=(*notes, *remarks),
    )


def _text_blocks(lines: Sequence[str], start: int, heading: re.Pattern[str]) -> Iterator[Block]:
    for first, last in runs(lines, start, len(lines)):
        at = first
        for i in range(first, last):
            if match := heading.match(lines[i]):
                if at < i:
                    yield block_of(lines, "paragraph", at, i)
                level, words = min(len(match[1]), _MAX_LEVEL), match[2].strip()
                yield block_of(lines, "heading", i, i + 1, level=level, heading=words)
                at = i + 1
        if at < last:
            yield block_of(lines, "paragraph", at, last)


def _rows(lines: Sequence[str], start: int) -> Iterator[Block]:
    """The rows of separated values. The first one is the header, unless it has a number."""
    header: str | None = None
    for at, end in runs(lines, start, len(lines)):
        if header is None:
            header = "" if _NUMBER_CELL.search(lines[at]) else lines[at]
        yield block_of(lines, "table", at, end)._replace(header=header)


# reStructuredText

Element = tuple[int, Block | None]
"""The end of an element, as an index, and its block if it has output."""


class Scanner:
    """The lines of a file of reStructuredText."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.indents = [_indent(line) for line in lines]
        self.title_styles: list[tuple[str, bool]] = []
        """In order of first use: adornment character, has an overline."""
        # Up to which line no border ends a simple table, so that none is read again.
        self._borderless = 0

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order."""
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
                end, block = self.element("code", at, self.body_end(at, literal_indent))
            else:
                end, block = self._element(at)
            literal_indent = -1
            if block is not None:
                yield block
                # The body of a directive is not a literal block.
                if block.kind == "paragraph" and not self.lines[at].lstrip().startswith(".. "):
                    literal_indent = indent if block.text.rstrip().endswith("::") else -1
            at = end

    def _element(self, at: int) -> Element:
        for pattern, read in _RULES:
            match = pattern.match(self.lines[at])
            if match and (found := read(self, at, match)):
                return found
        return self.element("paragraph", at, self.paragraph_end(at))

    def element(self, kind: BlockKind, at: int, end: int) -> Element:
        """A block of lines."""
        return end, block_of(self.lines, kind, at, end)

    def grid_end(self, at: int, _indent: int) -> int:
        """A table with a grid ends below its last line with a bar or a corner."""
        end = at + 1
        while end < len(self.lines) and self.lines[end].lstrip().startswith(("+", "|")):
            end += 1
        return end

    def paragraph_end(self, at: int, _indent: int = 0) -> int:
        """A paragraph ends at a blank line."""
        end = at + 1
        while not self.is_blank(end):
            end += 1
        return end

    def body_end(self, at: int, indent: int) -> int:
        """The end of the lines below ``at`` that are indented more than ``indent``."""
        end = at + 1
        for i in range(end, len(self.lines)):
            if 0 <= self.indents[i] <= indent:
                break
            if self.indents[i] >= 0:
                end = i + 1
        return end

    def border_end(self, at: int, _indent: int) -> int:
        """The end of a simple table: the first border with a blank line below it."""
        if at >= self._borderless:
            for i in range(at + 1, len(self.lines)):
                if 0 <= self.indents[i] < self.indents[at]:
                    break
                if _SIMPLE_TABLE.match(self.lines[i]) and self.is_blank(i + 1):
                    return i + 1
                self._borderless = i + 1
        return self.paragraph_end(at)

    def list_end(self, at: int, indent: int) -> int:
        """A list continues while its lines are indented further or begin another item."""
        mark = _item_mark(self.lines[at])
        end, after_blank = at + 1, False
        for i in range(at + 1, len(self.lines)):
            if self.indents[i] < 0:
                after_blank = True
                continue
            if self.indents[i] < indent:
                break
            is_item = self.indents[i] == indent and after_blank
            if is_item and (_item_mark(self.lines[i]) != mark or self.is_title(i)):
                break
            end, after_blank = i + 1, False
        return end

    def is_blank(self, at: int) -> bool:
        """Whether a line is blank, or after the last one."""
        return at >= len(self.lines) or self.indents[at] < 0

    def is_title(self, at: int) -> bool:
        """Whether a line has an underline, as titles of reStructuredText have."""
        if self.indents[at] or at + 1 >= len(self.lines):
            return False
        title, below = self.lines[at].rstrip(), self.lines[at + 1].rstrip()
        is_line = _ADORNMENT.match(below) is not None and below != "::"
        return is_line and len(below) >= min(len(title), 4) and not _ADORNMENT.match(title)


Read = Callable[[Scanner, int, re.Match[str]], Element | None]
"""What reads an element that begins at a line; ``None`` if it is text."""


def _indent(line: str) -> int:
    """The indentation of a line in columns; −1 for a blank line."""
    body = line.lstrip()
    width = line[: len(line) - len(body)]
    return len(width.expandtabs(8) if "\t" in width else width) if body else -1


def _block(
    kind: BlockKind, end: Callable[[Scanner, int, int], int] = Scanner.paragraph_end
) -> Read:
    """What reads a block that ends where ``end`` says."""
    return lambda scanner, at, _: scanner.element(kind, at, end(scanner, at, scanner.indents[at]))


# All punctuation that may underline a title (spec: "Sections").
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")
_ENUMERATOR = r"(?:\d{1,4}|#|[A-Za-z]|[ivxlcIVXLC]{2,7})"
_ITEM = re.compile(rf"\s*(?:([-*+•‣⁃])(?:\s|$)|(?:\(?{_ENUMERATOR}\)|{_ENUMERATOR}\.)\s)")
_SIMPLE_TABLE = re.compile(r"\s*=+(?:\s+=+)+\s*$")
_DIRECTIVE = r"\s*\.\.\s+(?:\|[^|]*\|\s*)?(?:[A-Za-z][\w.+-]*:)*(?i:{})\s?::(?:\s|$)"
_NAME = r"[A-Za-z][\w.+:-]*?"
_CODE = (
    "code|code-block|sourcecode|parsed-literal|literalinclude|doctest|testcode|testoutput"
    "|prompt|math|graphviz|kernel-render|productionlist|highlight|ipython"
)
_TABLES = "table|list-table|csv-table|flat-table"
# Roles, targets of links, and marks. A star between spaces is a sign of multiplication.
_INLINE = re.compile(r":[\w:+.-]+:(?=`)|\s*<[^<>`]*>(?=`)|`_{0,2}|(?<!\s)\*+|\*+(?!\s)")


def plain_words(title: str) -> str:
    """A title of reStructuredText without roles and inline markup."""
    if len(title) <= MAX_TITLE_CHARS and ("`" in title or "*" in title):
        title = _INLINE.sub("", title)
    return one_line(title)


def _item_mark(line: str) -> str:
    """The bullet of a list item, ``1`` for any enumerator, ``""`` if the line begins no item."""
    match = _ITEM.match(line)
    return (match[1] or "1") if match else ""


def _read_target(scanner: Scanner, at: int, match: re.Match[str]) -> Element:
    """A target. A bare internal one (``.. _label:``) has no output."""
    has_body = not scanner.is_blank(at + 1) and scanner.indents[at + 1] > scanner.indents[at]
    has_output = has_body or match[1].strip()
    if not has_output:
        return at + 1, None
    return scanner.element("paragraph", at, scanner.paragraph_end(at))


def _read_comment(scanner: Scanner, at: int, _match: re.Match[str]) -> Element:
    """A comment. An empty one has no body."""
    is_empty = scanner.lines[at].strip() == ".." and scanner.is_blank(at + 1)
    return (at + 1 if is_empty else scanner.body_end(at, scanner.indents[at])), None


def _read_overline(scanner: Scanner, at: int, match: re.Match[str]) -> Element | None:
    """A title with an overline, or a transition."""
    line = match[0].rstrip()
    title, below = (*scanner.lines[at + 1 : at + 3], "", "")[:2]
    is_pair = below[:1] == line[0] and _ADORNMENT.match(below)
    if is_pair and len(line) > 1 and title.strip() and not _ADORNMENT.match(title.strip()):
        return _section(scanner, at, at + 3, title, (line[0], True))
    return (at + 1, None) if scanner.is_blank(at + 1) and len(line) >= 4 else None


def _read_title(scanner: Scanner, at: int, match: re.Match[str]) -> Element | None:
    if not scanner.is_title(at):
        return None
    return _section(scanner, at, at + 2, match[0], (scanner.lines[at + 1][0], False))


def _section(
    scanner: Scanner, start: int, end: int, title: str, style: tuple[str, bool]
) -> Element:
    if style not in scanner.title_styles:
        scanner.title_styles.append(style)
    level = min(scanner.title_styles.index(style) + 1, _MAX_LEVEL)
    words = plain_words(title)
    return end, block_of(scanner.lines, "heading", start, end, level=level, heading=words)


_RULES: tuple[tuple[re.Pattern[str], Read], ...] = (
    (re.compile(_DIRECTIVE.format(_CODE)), _block("code", Scanner.body_end)),
    (re.compile(_DIRECTIVE.format(_TABLES)), _block("table", Scanner.body_end)),
    (re.compile(_DIRECTIVE.format(_NAME)), _block("paragraph")),
    (re.compile(r"\s*\.\.\s+_(?!_)(?:`[^`]*`|(?:\\.|[^:\\])+):(?:\s|$)(.*)"), _read_target),
    # Footnotes, and targets without a name.
    (re.compile(r"\s*\.\.\s+(?:\[[^\]]+\](?:\s|$)|\||__)"), _block("paragraph")),
    (re.compile(r"\s*\.\.(?:\s|$)"), _read_comment),
    (_ADORNMENT, _read_overline),
    (re.compile(r"\s*\+[-=+]{2,}\+\s*$"), _block("table", Scanner.grid_end)),
    (_SIMPLE_TABLE, _block("table", Scanner.border_end)),
    (re.compile(r"\s*>>>"), _block("code")),
    (re.compile(r"\S.*"), _read_title),
    (_ITEM, _block("list", Scanner.list_end)),
)


_HEADER_LINE = re.compile(r"[A-Z][\w-]*: |[A-Z][\w-]*:$|[ \t]+\S")


def _preamble_title(lines: Sequence[str]) -> str:
    """The title in header fields at the beginning (``Title: …``), as PEPs have them."""
    for line in takewhile(_HEADER_LINE.match, lines):
        name, _, value = line.partition(":")
        if name.lower() == "title":
            return plain_words(value)
    return ""


def _read_rst(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``.
    """
    lines, notes = open_text(data, path)
    blocks = tuple(Scanner(lines).blocks())
    title = _preamble_title(lines) or title_in(blocks)
    yield ParsedDocument(blocks=blocks, inferred={"title": title}, lines=lines, notes=notes)


# -- source code and configuration --
#
# Definitions, by patterns of their first lines and by indentation.
#
# A block is a definition, or what stands together at the left margin.
# A definition begins with the comments and decorators right above it, and ends before the next line
# that is indented as much or less, apart from closing brackets and words such as ``end``. So the
# outline needs no grammar, holds for code that does not parse, and takes a microsecond per line.
# Lines inside of comments and strings of several lines neither begin nor end anything.


_MAX_LINE_CHARS = 300
"""In longer lines no definition is looked for."""
_MAX_HEADING_CHARS = 120


_Unit = tuple[int, int, str]
"""Where a part of a file begins, as an index; the level of its definition, from 1; and its name.

The rest of a file after a definition has the level of that definition and no name. Between
definitions the level is 0.
"""


@cache
def _definitions() -> Mapping[str, str]:
    """The expression for what begins a definition, by the suffix or name of the file."""
    outlines, found = data_file("outlines.toml"), dict[str, str]()
    for suffixes, expression in outlines["definitions"].items():
        whole = expression
        for name, part in reversed(outlines["parts"].items()):
            whole = whole.replace(f"%{name}%", part)
        found |= dict.fromkeys(suffixes.split(), re.sub(r"\n *", "", whole))
    return found


# In these, a definition continues to the next one.
_FLAT = frozenset({".ini", ".toml", ".cfg", ".properties"})
_PYTHON = frozenset({".py", ".pyi"})
_WITH_DIRECTIVES = frozenset(".c .cc .cpp .cxx .h .hh .hpp .m .mm .cs".split())
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_LONG_STRING = r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
_TOKENS_OF_PYTHON = re.compile(
    rf"#[^\n]*|{_LONG_STRING}|{_LONG_STRING.replace(chr(34), chr(39))}|{_STRING}", re.DOTALL
)
_TOKENS = re.compile(rf"//[^\n]*|/\*.*?\*/|{_LONG_STRING}|{_STRING}|`(?:\\.|[^`\\])*`", re.DOTALL)
_SLASHES = frozenset(
    ".js .jsx .mjs .ts .tsx .vue .svelte .go .rs .java .cs .kt .kts .scala .swift .php .dart"
    " .groovy .gradle .c .cc .cpp .cxx .h .hh .hpp .m .mm .css .scss .less .proto".split()
)
# What belongs to the unit above at its own indentation.
_CONTINUES = re.compile(
    r"[}\])]|\{\s*$|(?:end|else|elif|elsif|except|finally|catch|fi|done|esac|rescue|ensure|then|do"
    r"|where)\b"
)
_MOST_CHARS_OF_LINES = 500
"""Mean characters of a line in source code that a person wrote."""
_LABEL = re.compile(r"[A-Za-z_]\w*:\s*$")
_DECORATOR = re.compile(r"@|#!?\[|\[\w")
_COMMENT = re.compile(r"//|/\*|\*|#|--|;|%")
# A return type on a line of its own.
_TYPE_LINE = re.compile(r"(?:[A-Za-z_]\w*[ \t*]+)*[A-Za-z_]\w*[ \t*]*$|template\s*<.*>\s*$")


def _read_source(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``; ``unsupported``: no person wrote such long lines.
    """
    lines, notes = open_text(data, path)
    if sum(map(len, lines)) > _MOST_CHARS_OF_LINES * len(lines):
        raise DocumentError("unsupported", f"{path}: minified or generated code")
    name = path.rpartition("/")[2].lower()
    suffix = name[name.rfind(".") :] if "." in name else name
    blocks = tuple(_source_blocks(lines, list(_Outline(lines, suffix).units())))
    yield ParsedDocument(blocks=blocks, lines=lines, notes=notes)


def _source_blocks(lines: Sequence[str], units: Sequence[_Unit]) -> Iterator[Block]:
    """A unit has all lines up to the next one."""
    found: list[_Unit] = [*units, (len(lines), 0, "")]
    if found[0][0] > (first := first_text(lines)):
        found.insert(0, (first, 0, ""))
    for (start, level, heading), (end, *_) in pairwise(found):
        yield block_of(lines, "code", start, end, level=level, heading=heading)


class _Outline:
    """The state between two lines of a file."""

    def __init__(self, lines: Sequence[str], suffix: str) -> None:
        self._lines = lines
        self._suffix = suffix
        self._pattern = re.compile(_definitions().get(suffix, "(?!)"))
        # The indentation of each open definition, outermost first.
        self._open: list[int] = []

    def units(self) -> Iterator[_Unit]:
        inside = self._inside()
        # The first of the comments and decorators right above the line, and its indentation.
        above, above_indent, is_decorated = -1, 0, False
        for i, line in enumerate([*self._lines, ""]):
            body = line.lstrip()
            indent = len(line) - len(body)
            if not body:
                if above >= 0 and (not is_decorated or i == len(self._lines)):
                    yield from self._rest(above, above_indent)
                    above = -1
                continue
            is_in_decorator = is_decorated and (indent > above_indent or body[0] in ")]}")
            if i in inside or is_in_decorator or self._is_directive(i, body):
                continue
            is_below = above >= 0 and above_indent == indent
            start = above if is_below else i
            heading = self._heading(line)
            belongs_below = not heading and self._belongs_below(indent, body)
            if above >= 0 and not is_below and (heading or belongs_below):
                yield from self._rest(above, above_indent)
            if belongs_below:
                above, above_indent = start, indent
                is_decorated = (is_decorated and is_below) or bool(_DECORATOR.match(body))
                continue
            above, is_decorated = -1, False
            if heading:
                self._close(indent)
                self._open.append(indent)
                yield start, len(self._open), heading
            elif not self._continues(body):
                yield from self._rest(start, indent)

    def _rest(self, start: int, indent: int) -> Iterator[_Unit]:
        """The rest after a definition, or what stands at the left margin below a blank line."""
        if self._open and indent <= self._open[-1]:
            if self._suffix not in _FLAT:
                self._close(indent)
                yield start, len(self._open) + 1, ""
        elif not self._open and indent == 0 and (start == 0 or is_blank(self._lines[start - 1])):
            yield start, 0, ""

    def _close(self, indent: int) -> None:
        while self._open and self._open[-1] >= indent:
            self._open.pop()

    def _heading(self, line: str) -> str:
        """The name of the definition that begins on a line, or an empty text."""
        if len(line) > _MAX_LINE_CHARS or len(self._open) >= _MAX_LEVEL:
            return ""
        match = self._pattern.match(line)
        # A call with a function as its argument ends with an open brace as well.
        is_call = line.endswith("{") and line.count("(") != line.count(")")
        if match is None or not match.lastindex or is_call:
            return ""
        return one_line(match[match.lastindex])[:_MAX_HEADING_CHARS]

    def _is_directive(self, i: int, body: str) -> bool:
        """Whether a line is for the preprocessor, and in the middle of a definition."""
        is_inner = bool(self._open) and not is_blank(self._lines[i - 1])
        return is_inner and body[0] == "#" and self._suffix in _WITH_DIRECTIVES

    def _belongs_below(self, indent: int, body: str) -> bool:
        """Whether a line belongs to the definition below it, if there is one."""
        if self._suffix in _WITH_DIRECTIVES:
            if body[0] == "#":
                return False
            if indent == 0 and _TYPE_LINE.match(body) and not self._continues(body):
                return True
        return bool(_COMMENT.match(body) or _DECORATOR.match(body))

    def _continues(self, body: str) -> bool:
        """Whether a line belongs to the unit above at its own indentation."""
        is_label = self._suffix in _WITH_DIRECTIVES and _LABEL.match(body)
        return bool(is_label or _CONTINUES.match(body))

    def _inside(self) -> frozenset[int]:
        """The lines that begin inside of a comment or string of several lines."""
        is_python = self._suffix in _PYTHON
        if not is_python and self._suffix not in _SLASHES:
            return frozenset()
        inside: set[int] = set()
        line = counted = 0
        text = "\n".join(self._lines)
        closed = text.rfind("*/") + 2
        # From each "/*" without an end, the rest of the file would be searched.
        text = text[:closed] + text[closed:].replace("/*", "  ")
        for match in (_TOKENS_OF_PYTHON if is_python else _TOKENS).finditer(text):
            start, end = match.span()
            if breaks := text.count("\n", start, end):
                line += text.count("\n", counted, start)
                inside.update(range(line + 1, line + breaks + 1))
                line, counted = line + breaks, end
        return frozenset(inside)


READERS = {"text": (7, _read_text), "rst": (5, _read_rst), "source": (5, _read_source)}
