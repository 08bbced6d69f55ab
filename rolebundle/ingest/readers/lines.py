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
(docutils.sourceforge.io/docs/ref/rst/restructuredtext.html), simplified in four points:

- lists and drawn tables are paragraphs;
- a directive that is neither code nor a table ends with its first paragraph. The rest of its body
  is parsed by the same rules, so that an API description is not one very large block;
- a title may be longer than its underline (docutils only warns), and sections must begin at the
  left margin;
- quoted literal blocks without indentation are paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile

from rolebundle.errors import DocumentError
from rolebundle.ingest.front_matter import front_matter, with_blocks
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument, title_in
from rolebundle.ingest.readers import MAX_TITLE_CHARS, open_text
from rolebundle.ingest.readers.line_blocks import block_of, first_text, is_blank, runs
from rolebundle.resources import data_file, expanded
from rolebundle.text.decoding import one_line
from rolebundle.text.references import HEADING_LINES
from rolebundle.text.tables import CELL_MARKS, MAX_HEADER_ROW, header_index

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
    front, start = front_matter(lines, path)
    suffix = path.rpartition(".")[2].lower()
    heading = HEADING_LINES.get(suffix, _NO_HEADING)
    read = _rows(lines, start) if suffix in _ROWS else _text_blocks(lines, start, heading)
    yield with_blocks(front, tuple(read), notes, lines=lines)


def _text_blocks(lines: Sequence[str], start: int, heading: re.Pattern[str]) -> Iterator[Block]:
    for first, last in runs(lines, start, len(lines)):
        at = first
        for i in range(first, last):
            if match := heading.match(lines[i]):
                if at < i:
                    yield block_of(lines, "paragraph", at, i)
                level, words = min(len(match[1]), _MAX_LEVEL), match[2].strip()
                yield block_of(lines, "heading", i, i + 1)._replace(level=level, heading=words)
                at = i + 1
        if at < last:
            yield block_of(lines, "paragraph", at, last)


def _rows(lines: Sequence[str], start: int) -> Iterator[Block]:
    """The rows of separated values. A row with a number is no header."""
    rows = [line for line in lines[start:] if not is_blank(line)]
    mark = max(CELL_MARKS, key="".join(rows[:MAX_HEADER_ROW]).count)
    header = rows[header_index(rows, mark)] if rows else ""
    header = "" if _NUMBER_CELL.search(header) else header
    for at, end in runs(lines, start, len(lines)):
        yield block_of(lines, "table", at, end)._replace(header=header)


# reStructuredText

# All punctuation that may underline a title (spec: "Sections").
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")
_DIRECTIVE = r"\s*\.\.\s+(?:\|[^|]*\|\s*)?(?:[A-Za-z][\w.+-]*:)*(?i:{})\s?::(?:\s|$)"
_TABLE = data_file(__file__, "outlines.toml")
_CODE, _TABLES = ("|".join(_TABLE["directives"][kind].split()) for kind in ("code", "table"))
_MARKUP = re.compile(r"\s*\.\.(?:\s|$)")
_RULES: tuple[tuple[re.Pattern[str], BlockKind | None, bool], ...] = (
    (re.compile(_DIRECTIVE.format(_CODE)), "code", True),
    (re.compile(_DIRECTIVE.format(_TABLES)), "table", True),
    (re.compile(_DIRECTIVE.format(r"[A-Za-z][\w.+:-]*?")), "paragraph", False),
    # A label without a target has no output.
    (re.compile(r"\s*\.\.\s+_(?!_)(?:`[^`]*`|(?:\\.|[^:\\])+):[ \t]*\n(?![ \t]+\S)"), None, False),
    # Targets, footnotes, and targets without a name.
    (re.compile(r"\s*\.\.\s+(?:_\S.*?:\s|\[[^\]]+\](?:\s|$)|\||__)"), "paragraph", False),
    # An empty comment has no body.
    (re.compile(r"\s*\.\.\s*\n\s*$"), None, False),
    (_MARKUP, None, True),
)
"""How an element begins, for which the line below it is seen, too; the kind of its block, ``None``
if it has no output; and whether all that is indented below belongs to it."""
# Roles, targets of links, and marks. A star between spaces is a sign of multiplication.
_INLINE = re.compile(r":[\w:+.-]+:(?=`)|\s*<[^<>`]*>(?=`)|`_{0,2}|(?<!\s)\*+|\*+(?!\s)")


def _rst_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The blocks of a file of reStructuredText."""
    indents = [*map(_indent, lines), -1]
    # In order of first use: the character of the line, and whether it is above, too.
    styles: list[tuple[str, bool]] = []
    # The indentation of the paragraph right above if it ends with `::`, else −1. Text that is
    # indented more is its literal block.
    at, literal_indent = 0, -1
    while at < len(lines):
        indent, end = indents[at], indents.index(-1, at)
        kind: BlockKind | None = "paragraph"
        if indent < 0:
            at += 1
            continue
        if 0 <= literal_indent < indent:
            kind, end = "code", _body_end(indents, at, literal_indent)
        elif found := _title_end(lines, at):
            end, title, style = found
            if title:
                styles += [style] * (style not in styles)
                level = min(styles.index(style) + 1, _MAX_LEVEL)
                words = plain_words(title)
                yield block_of(lines, "heading", at, end)._replace(level=level, heading=words)
            kind = None
        elif _MARKUP.match(lines[at]):
            kind, end = _markup_end(lines, indents, at)
        if kind:
            block = block_of(lines, kind, at, end)
            yield block
        # The body of a directive is not a literal block.
        is_text = kind == "paragraph" and not _MARKUP.match(lines[at])
        literal_indent = indent if is_text and block.text.rstrip().endswith("::") else -1
        at = end


def _indent(line: str) -> int:
    """The indentation of a line in columns; −1 for a blank line."""
    body = line.lstrip()
    width = line[: len(line) - len(body)]
    return len(width.expandtabs(8) if "\t" in width else width) if body else -1


def _body_end(indents: Sequence[int], at: int, indent: int) -> int:
    """The end of the lines below ``at`` that are indented more than ``indent``."""
    below = takewhile(lambda i: not 0 <= indents[i] <= indent, range(at + 1, len(indents)))
    return max((i + 1 for i in below if indents[i] > indent), default=at + 1)


def _title_end(lines: Sequence[str], at: int) -> tuple[int, str, tuple[str, bool]] | None:
    """The end of a title, or of a line between sections, which has no text; the title; its style.

    A style is the character of its line, and whether there is one above it, too.
    """
    line, title, below = (text.rstrip() for text in (*lines[at : at + 3], "", "")[:3])
    if _MARKUP.match(line):
        return None
    if not _ADORNMENT.match(line):
        is_line = not line[:1].isspace() and title != "::" and _ADORNMENT.match(title)
        is_long = len(title) >= min(len(line), 4)
        return (at + 2, line, (title[0], False)) if is_line and is_long else None
    is_pair = below[:1] == line[0] and _ADORNMENT.match(below)
    if is_pair and len(line) > 1 and title and not _ADORNMENT.match(title.strip()):
        return at + 3, title, (line[0], True)
    return (at + 1, "", (line[0], True)) if not title and len(line) >= 4 else None


def _markup_end(
    lines: Sequence[str], indents: Sequence[int], at: int
) -> tuple[BlockKind | None, int]:
    """The kind of an element that begins with two dots, ``None`` without output; and its end."""
    own = "\n".join((*lines[at : at + 2], "")[:2])
    kind, has_body = next(rule[1:] for rule in _RULES if rule[0].match(own))
    if has_body:
        return kind, _body_end(indents, at, indents[at])
    return kind, indents.index(-1, at) if kind else at + 1


def plain_words(title: str) -> str:
    """A title of reStructuredText without roles and inline markup."""
    if len(title) <= MAX_TITLE_CHARS and ("`" in title or "*" in title):
        title = _INLINE.sub("", title)
    return one_line(title)


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
    blocks = tuple(_rst_blocks(lines))
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
    found: dict[str, str] = {}
    for suffixes, expression in _TABLE["definitions"].items():
        whole = expanded(expression, _TABLE["parts"])
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
_SLASHES = frozenset(_TABLE["slashes"].split())
"""Suffixes of languages whose comments begin with slashes."""
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
        yield block_of(lines, "code", start, end)._replace(level=level, heading=heading)


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


READERS = {"text": (8, _read_text), "rst": (6, _read_rst), "source": (5, _read_source)}
