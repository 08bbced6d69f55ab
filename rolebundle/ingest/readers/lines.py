"""Formats that are read line by line: plain text, pod, AsciiDoc, Org and reStructuredText.

Each format is a row of rules. The first rule whose pattern matches a line says what begins there;
text that no rule matches is a paragraph. Roles and directives of Sphinx keep their source text.

docutils is not used. Its parser reads the Linux kernel's documentation at 0.4 MB/s, gives no line
for one node in ten, and replaces unknown Sphinx directives by error nodes without their text.
The rules for reStructuredText are those of its specification
(docutils.sourceforge.io/docs/ref/rst/restructuredtext.html), simplified in three points:

- a directive that is neither code nor a table ends with its first paragraph. The rest of its body
  is parsed by the same rules, so that an API description is not one very large block;
- a title may be longer than its underline (docutils only warns), and sections must begin at the
  left margin;
- quoted literal blocks without indentation are paragraphs.

What is not shown, such as Org's comments and subtrees that are not exported, is not in the text.
Its lines stay empty, so that locators are correct.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import unescape
from itertools import takewhile
from typing import NamedTuple

from rolebundle.ingest.front_matter import front_matter
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import base
from rolebundle.scan.finding import HiddenPart

_MAX_LEVEL = 6

Element = tuple[int, Block | None]
"""The end of an element, as an index, and its block if it has output."""


class Scanner:
    """The lines of a file, without what is hidden in those that were read."""

    def __init__(self, lines: Sequence[str], start: int, form: Format) -> None:
        self.lines = list(lines)
        self.indents = [_indent(line) for line in lines]
        self.hidden: list[HiddenPart] = []
        self.properties: dict[str, list[str]] = defaultdict(list)
        self.title_styles: list[tuple[str, bool]] = []
        """In order of first use: adornment character, has an overline."""
        self._start = start
        self._form = form
        # Up to which line none closes what begins with the same mark, so that none is read again.
        self._unclosed: dict[str, int] = {}

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order."""
        at = self._start
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
                    is_literal = self._form.has_literals and block.text.rstrip().endswith("::")
                    literal_indent = indent if is_literal else -1
            at = end

    def _element(self, at: int) -> Element:
        for rule in self._form.rules:
            match = rule.start.match(self.lines[at])
            if match and (found := rule.read(self, at, match)):
                return found
        return self.element("paragraph", at, self.paragraph_end(at))

    def element(self, kind: BlockKind, at: int, end: int) -> Element:
        """A block of lines."""
        return end, base.block_of(self.lines, kind, at, end)

    def end_of_run(self, at: int, pattern: re.Pattern[str]) -> int:
        """The end of the lines below ``at`` that a pattern matches."""
        end = at + 1
        while end < len(self.lines) and pattern.match(self.lines[end]):
            end += 1
        return end

    def paragraph_end(self, at: int, _indent: int = 0) -> int:
        """A paragraph ends at a blank line, or at one that a rule matches which ends paragraphs."""
        end = at + 1
        while end < len(self.lines) and self.indents[end] >= 0:
            line = self.lines[end]
            if any(rule.ends_text and rule.start.match(line) for rule in self._form.rules):
                break
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

    def closed_end(self, at: int, closing: str, stop: re.Pattern[str] | None = None) -> int:
        """The index after a closing line; that after ``at`` if none is before the stop pattern."""
        if at >= self._unclosed.get(closing, 0):
            for i in range(at + 1, len(self.lines)):
                if self.lines[i].strip().lower() == closing:
                    return i + 1
                if stop and stop.match(self.lines[i]):
                    break
                self._unclosed[closing] = i + 1
        return at + 1

    def border_end(self, at: int) -> int:
        """The end of a simple table: the first border with a blank line below it."""
        if at >= self._unclosed.get("=", 0):
            for i in range(at + 1, len(self.lines)):
                if 0 <= self.indents[i] < self.indents[at]:
                    break
                if _SIMPLE_TABLE.match(self.lines[i]) and self.is_blank(i + 1):
                    return i + 1
                self._unclosed["="] = i + 1
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

    def hide(self, start: int, end: int, *, is_labelled: bool = False) -> Element:
        """Empty lines that are not shown."""
        text = " ".join(" ".join(self.lines[start:end]).split())
        kind = "invisible_element" if is_labelled else "markup_comment"
        self.hidden.append(HiddenPart(kind, text, is_labelled=is_labelled))
        return self.empty(start, end)

    def empty(self, start: int, end: int) -> Element:
        """Empty lines, such as those of properties, which are no text."""
        self.lines[start:end] = [""] * (end - start)
        self.indents[start:end] = [-1] * (end - start)
        return end, None

    def heading(self, start: int, end: int, level: int, words: str) -> Element:
        """A heading."""
        level = min(level, _MAX_LEVEL)
        return end, base.block_of(self.lines, "heading", start, end, level=level, heading=words)


Read = Callable[[Scanner, int, re.Match[str]], Element | None]


class Rule(NamedTuple):
    """What begins at a line: a pattern, and what reads it from there; ``None`` if it is text.

    ``ends_text`` is whether such a line ends a paragraph above it.
    """

    start: re.Pattern[str]
    read: Read
    ends_text: bool = False


class Format(NamedTuple):
    """The rules of a format.

    Attributes:
        rules: its rules.
        title_levels: the levels of headings that can be the title.
        has_literals: whether a text that ends with ``::`` begins a literal block.
    """

    rules: tuple[Rule, ...] = ()
    title_levels: int = _MAX_LEVEL
    has_literals: bool = False


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


def _heading(words: Callable[[str], str] = str) -> Read:
    """What reads a heading of one line: group 1 is its level, or its marks, and 2 its words."""

    def read(scanner: Scanner, at: int, match: re.Match[str]) -> Element:
        level = int(match[1]) if match[1].isdigit() else len(match[1])
        return scanner.heading(at, at + 1, level, words(match[2]).strip())

    return read


# pod and AsciiDoc

_POD_FORMATTING = re.compile(r"[A-Z]<+\s*([^<>]*?)\s*>+")


def _without_formatting(words: str) -> str:
    return _POD_FORMATTING.sub(r"\1", words) if len(words) <= base.MAX_TITLE_CHARS else words


def _read_fence(scanner: Scanner, at: int, match: re.Match[str]) -> Element | None:
    """A block whose lines are shown as they are. Without an end it is text."""
    end = scanner.closed_end(at, match[1])
    return scanner.element("code", at, end) if end > at + 1 else None


_POD = Format(
    (
        Rule(re.compile(r"=head([1-6])\s+(.*)"), _heading(_without_formatting), ends_text=True),
        Rule(re.compile(r"[ \t]"), _block("code")),
    ),
    title_levels=0,  # the first heading is NAME
)
_ASCIIDOC = Format(
    (
        Rule(re.compile(r"(={1,6})\s+(\S.*)"), _heading(), ends_text=True),
        # A block of code may name its language.
        Rule(re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|```)(?:\s*$|(?<=`)\w)"), _read_fence, True),
    ),
    title_levels=1,
)

# Org

_ORG_HEADING = re.compile(r"(\*+)[ \t]+(?=\S)(.*)")
_TAGS = re.compile(r"[ \t]+:([\w@#%:]+):[ \t]*$")
_KEYWORDS = re.compile(
    r"(?:(?:TODO|NEXT|WAITING|STARTED|DONE|CANCELLED|CANCELED)[ \t]+)?(?:\[#\w\][ \t]*)?"
)
_COMMENT_KEYWORD = re.compile(r"COMMENT(?:[ \t]+|$)")
_SETTING = re.compile(r"[ \t]*#\+(\w+):[ \t]*(\S.*)")
_PROPERTY = re.compile(r"[ \t]*:([^\s:]+):[ \t]+(\S.*)")
_INLINE_COMMENT = re.compile(r"@@comment:(.*?)@@")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LINK = re.compile(r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]")
_ORG_CODE = frozenset({"src", "example", "export"})
_SHOWN_SETTINGS = ("author", "email", "description", "category")


def _read_org_heading(scanner: Scanner, at: int, match: re.Match[str]) -> Element:
    title = match[2]
    tags = _TAGS.search(title)
    is_comment = _COMMENT_KEYWORD.match(_KEYWORDS.sub("", title, count=1))
    if is_comment or (tags and "noexport" in tags[1].split(":")):
        inside = re.compile(rf"(?!\*{{1,{len(match[1])}}}[ \t]+\S)")
        return scanner.hide(at, scanner.end_of_run(at, inside), is_labelled=True)
    words = _KEYWORDS.sub("", _LINK.sub(r"\1", _TAGS.sub("", title)), count=1)
    return scanner.heading(at, at + 1, len(match[1]), words.strip() or title.strip())


def _read_org_block(scanner: Scanner, at: int, match: re.Match[str]) -> Element:
    """A block; only its first line if nothing closes it before the next heading."""
    name = match[1].lower()
    end = scanner.closed_end(at, f"#+end_{name}", _ORG_HEADING)
    if name == "comment" and end > at + 1:
        return scanner.hide(at, end)
    return scanner.element("code" if name in _ORG_CODE else "paragraph", at, end)


def _read_drawer(scanner: Scanner, at: int, _match: re.Match[str]) -> Element | None:
    """The properties of a drawer. Without an end it is text."""
    end = scanner.end_of_run(at, _PROPERTY)
    if end >= len(scanner.lines) or scanner.lines[end].strip().lower() != ":end:":
        return None
    for found in filter(None, map(_PROPERTY.match, scanner.lines[at + 1 : end])):
        scanner.properties[found[1].lower().rstrip("+")].append(found[2].strip())
    return scanner.empty(at, end + 1)


_ORG = Format(
    (
        Rule(_ORG_HEADING, _read_org_heading, ends_text=True),
        Rule(re.compile(r"[ \t]*#\+begin_(\w+)", re.IGNORECASE), _read_org_block, ends_text=True),
        Rule(re.compile(r"[ \t]*#(?:[ \t]|$)"), lambda s, at, _: s.hide(at, at + 1), True),
        Rule(re.compile(r"[ \t]*:PROPERTIES:[ \t]*$", re.IGNORECASE), _read_drawer, True),
        Rule(re.compile(r"[ \t]*\|"), _block("table")),
        Rule(re.compile(r"[ \t]*(?:[-+]|\d+[.)])[ \t]|[ \t]+\*[ \t]"), _block("list")),
    )
)


def _org_metadata(scanner: Scanner, blocks: Sequence[Block]) -> Mapping[str, object]:
    """What the settings of the file, and its properties, tell about the document."""
    settings: dict[str, list[str]] = defaultdict(list)
    for block in blocks:
        for line in block.text.split("\n") if block.kind != "code" else ():
            if match := _SETTING.match(line):
                settings[match[1].lower()].append(match[2].strip())
    date = _DATE.search(" ".join(settings["date"]))
    tags = [tag for value in settings["filetags"] for tag in re.split(r"[:\s]+", value) if tag]
    metadata: dict[str, object] = {
        "title": " ".join(settings["title"]),
        "updated_at": date[0] if date else "",
        "language": next(iter(settings["language"]), ""),
        "tags": tags,
        **{key: settings[key] for key in _SHOWN_SETTINGS},
        # Below one key, so that no property is taken for a key that governs.
        "property": dict(scanner.properties),
    }
    return {key: value for key, value in metadata.items() if value}


# reStructuredText

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
_INLINE = re.compile(r":[\w:+.-]+:`([^`]*)`|``(.+?)``|`([^`]*)`_{0,2}|\*\*(.+?)\*\*|\*(\S[^*]*)\*")
_ANGLE_TARGET = re.compile(r"\s*<[^<>]*>$")
_HEADER_LINE = re.compile(r"[A-Z][\w-]*: |[A-Z][\w-]*:$|[ \t]+\S")


def plain_words(title: str) -> str:
    """A title of reStructuredText without roles and inline markup."""
    if len(title) <= base.MAX_TITLE_CHARS and ("`" in title or "*" in title):
        title = _INLINE.sub(_unmarked, title)
    return " ".join(title.split())


def _unmarked(match: re.Match[str]) -> str:
    words = next((group for group in match.groups() if group), "")
    return _ANGLE_TARGET.sub("", words) if "<" in words else words


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
    level = scanner.title_styles.index(style) + 1
    return scanner.heading(start, end, level, plain_words(title))


def _table(border: str, end: Callable[[Scanner, int], int]) -> Read:
    """What reads a table, with a header if ``border`` begins the line below its first row."""

    def read(scanner: Scanner, at: int, _match: re.Match[str]) -> Element:
        lines, last = scanner.lines, end(scanner, at)
        block = base.block_of(lines, "table", at, last)
        if last > at + 3 and lines[at + 2].lstrip().startswith(border):
            block = block._replace(header=lines[at + 1])
        return last, block

    return read


_GRID_ROW = re.compile(r"\s*[+|]")

_RST = Format(
    (
        Rule(re.compile(_DIRECTIVE.format(_CODE)), _block("code", Scanner.body_end)),
        Rule(re.compile(_DIRECTIVE.format(_TABLES)), _block("table", Scanner.body_end)),
        Rule(re.compile(_DIRECTIVE.format(_NAME)), _block("paragraph")),
        Rule(re.compile(r"\s*\.\.\s+_(?!_)(?:`[^`]*`|(?:\\.|[^:\\])+):(?:\s|$)(.*)"), _read_target),
        # Footnotes, and targets without a name.
        Rule(re.compile(r"\s*\.\.\s+(?:\[[^\]]+\](?:\s|$)|\||__)"), _block("paragraph")),
        Rule(re.compile(r"\s*\.\.(?:\s|$)"), _read_comment),
        Rule(_ADORNMENT, _read_overline),
        Rule(
            re.compile(r"\s*\+[-=+]{2,}\+\s*$"),
            _table("+=", lambda scanner, at: scanner.end_of_run(at, _GRID_ROW)),
        ),
        Rule(_SIMPLE_TABLE, _table("=", Scanner.border_end)),
        Rule(re.compile(r"\s*>>>"), _block("code")),
        Rule(re.compile(r"\S.*"), _read_title),
        Rule(_ITEM, _block("list", Scanner.list_end)),
    ),
    has_literals=True,
)


def _preamble_title(lines: Sequence[str]) -> str:
    """The title in header fields at the beginning (``Title: …``), as PEPs and mails have them."""
    for line in takewhile(_HEADER_LINE.match, lines):
        name, _, value = line.partition(":")
        if name.lower() == "title":
            return plain_words(value)
    return ""


# Readers

_BY_SUFFIX = {"pod": _POD, "adoc": _ASCIIDOC, "asciidoc": _ASCIIDOC}


def read_text(data: bytes, path: str, options: base.ReaderOptions) -> Iterable[ParsedDocument]:
    """Plain text, pod or AsciiDoc, by the suffix.

    Raises:
        DocumentError: ``undecodable``, ``bad_front_matter``.
    """
    form = _BY_SUFFIX.get(path.rpartition(".")[2].lower(), Format())
    return _read(data, path, options, form)


def _read(
    data: bytes, path: str, _options: base.ReaderOptions, form: Format
) -> Iterable[ParsedDocument]:
    lines, notes = base.open_text(data, path)
    front = front_matter(lines if form is not _RST else (), path)
    scanner = Scanner(lines, front.body_index, form)
    if form is _ORG and b"@@comment:" in data:
        for at, line in enumerate(scanner.lines):
            for match in _INLINE_COMMENT.finditer(line):
                scanner.hidden.append(HiddenPart("markup_comment", match[1], is_labelled=False))
            scanner.lines[at] = _INLINE_COMMENT.sub("", line)
    blocks = tuple(scanner.blocks())
    inferred = dict(_org_metadata(scanner, blocks)) if form is _ORG else {}
    title = _preamble_title(lines) if form is _RST else ""
    headings = (block.heading for block in blocks if 1 <= block.level <= form.title_levels)
    if title := title or next(headings, ""):
        inferred.setdefault("title", title)
    yield ParsedDocument(
        blocks=blocks,
        inferred=inferred,
        declared=front.declared,
        declared_at=front.declared_at,
        lines=scanner.lines,
        notes=(*notes, *front.notes),
        hidden=tuple(scanner.hidden),
    )


# -- subtitles --
#
# Subtitles (WebVTT and SubRip): the speech, without numbers and timestamps.
#
# Cues are joined to paragraphs of about 1,000 characters. The anchor of a paragraph is the time at
# which it begins. Comments and styles are not speech; comments are hidden text.


_PARAGRAPH_CHARS = 1_000
_TIME = r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]?\d)(?:[.,]\d{1,3})?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s|$)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,100})?\s{1,9}([^<>]{1,200})>", re.IGNORECASE)
# Also the styles that SubRip files have from other formats, such as {\an8}.
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</?\d[\d:.]*>|\{\\[^{}]*\}")
_BEGINS_LINE = re.compile(r"- |(?:-\s*)?([^\W\d_][\w .'-]{0,40}):\s+(?=\S)")


_Line = tuple[str, str, str, int]
"""The time of a line of speech, its text, who speaks, and its line in the file."""


def _read_subtitles(
    data: bytes, path: str, _options: base.ReaderOptions
) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``.
    """
    lines, notes = base.open_text(data, path)
    hidden: list[HiddenPart] = []
    blocks = tuple(_paragraphs(_speech(lines, hidden)))
    # The text after WEBVTT is a title if there is any.
    head = lines[0].lstrip("\ufeff") if lines else ""
    is_titled = head.startswith("WEBVTT")
    title = head.removeprefix("WEBVTT").strip(" \t-–—:") if is_titled else ""
    yield ParsedDocument(
        blocks=blocks,
        inferred={"title": title} if title else {},
        line_exact=False,
        notes=notes,
        hidden=tuple(hidden),
    )


def _speech(lines: Sequence[str], hidden: list[HiddenPart]) -> Iterator[_Line]:
    for start, end in base.runs(lines, 0, len(lines)):
        if lines[start].startswith("NOTE"):
            comment = " ".join(" ".join(lines[start:end]).split()).removeprefix("NOTE").strip()
            hidden.append(HiddenPart("markup_comment", comment, is_labelled=False))
            continue
        time = ""
        for i in range(start, end):
            if timing := _TIMING.match(lines[i]):
                time = ":".join(f"{int(part or 0):02}" for part in timing.group(1, 2, 3))
                continue
            # Some files have no blank line before the number of a cue.
            is_number = lines[i].strip().isdigit()
            is_number = is_number and i + 1 < end and _TIMING.match(lines[i + 1]) is not None
            text = " ".join(unescape(_TAG.sub("", lines[i])).split())
            if time and text and not is_number:
                voice = _VOICE.search(lines[i])
                speaker = " ".join(unescape(voice[1]).split()) if voice else ""
                yield time, text, speaker, i + 1


def _paragraphs(speech: Iterable[_Line]) -> Iterator[Block]:
    """Consecutive lines as paragraphs."""
    group: list[_Line] = []
    length = 0
    for line in speech:
        # Players of live subtitles repeat the line above.
        if group and line[1:3] == group[-1][1:3]:
            continue
        if group and length + len(line[1]) > _PARAGRAPH_CHARS:
            yield _paragraph(group)
            group, length = [], 0
        group.append(line)
        length += len(line[1]) + 1
    if group:
        yield _paragraph(group)


def _paragraph(group: Sequence[_Line]) -> Block:
    """A paragraph; each change of the speaker begins a line."""
    lines: list[str] = []
    last_speaker = ""
    for _, text, speaker, _ in group:
        if speaker and (speaker != last_speaker or not lines):
            lines.append(f"{speaker}: {text}")
        elif not lines or _BEGINS_LINE.match(text):
            lines.append(text)
        else:
            lines[-1] += f" {text}"
        last_speaker = speaker or last_speaker
    (time, _, _, first), (_, _, _, last) = group[0], group[-1]
    return Block("paragraph", "\n".join(lines), first, last, anchor=time)


READERS = {
    "text": base.Reader("text", 4, read_text),
    "org": base.Reader("org", 1, partial(_read, form=_ORG)),
    "rst": base.Reader("rst", 4, partial(_read, form=_RST)),
    "subtitles": base.Reader("subtitles", 1, _read_subtitles),
}
