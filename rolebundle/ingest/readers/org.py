"""Org: headings, lists, tables and source blocks.

Comments and subtrees that are not exported are hidden text. They and property drawers are not in
the text; their lines stay empty, so that locators are correct.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rolebundle.ingest.front_matter import read_front_matter
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, block_of, open_text, runs
from rolebundle.scan.finding import HiddenPart

_HEADING = re.compile(r"(\*+)[ \t]+(?=\S)(.*)")
_TAGS = re.compile(r"[ \t]+:([\w@#%:]+):[ \t]*$")
_KEYWORDS = re.compile(
    r"(?:(?:TODO|NEXT|WAITING|STARTED|DONE|CANCELLED|CANCELED)[ \t]+)?(?:\[#\w\][ \t]*)?"
)
_COMMENT_KEYWORD = re.compile(r"COMMENT(?:[ \t]+|$)")
_SETTING = re.compile(r"[ \t]*#\+(\w+):[ \t]*(.*)")
_BEGIN = re.compile(r"[ \t]*#\+begin_(\w+)", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:PROPERTIES:[ \t]*$", re.IGNORECASE)
_DRAWER_END = re.compile(r"[ \t]*:END:[ \t]*$", re.IGNORECASE)
_PROPERTY = re.compile(r"[ \t]*:([^\s:]+):[ \t]+(\S.*)")
_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|$)")
_INLINE_COMMENT = re.compile(r"@@comment:(.*?)@@")
_ITEM = re.compile(r"[ \t]*(?:[-+]|\d+[.)])[ \t]|[ \t]+\*[ \t]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LINK = re.compile(r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]")
_CODE = frozenset({"src", "example", "export"})
_SHOWN_SETTINGS = ("author", "email", "description", "category")
_MAX_LEVEL = 6


class OrgReader:
    """Reads ``.org``."""

    name = "org"
    suffixes = suffixes_of("org")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file.

        Raises:
            DocumentError: ``undecodable``, ``bad_front_matter``.
        """
        file = open_text(data, path)
        front = read_front_matter(file.lines, path)
        outline = _Outline(list(file.lines), front.body_index if front else 0)
        blocks = tuple(outline.blocks())
        yield ParsedDocument(
            blocks=blocks,
            declared=front.declared if front else {},
            declared_at=front.declared_at if front else 1,
            inferred=outline.metadata(blocks),
            lines=outline.lines,
            notes=file.notes,
            hidden=tuple(outline.hidden),
        )


class _Outline:
    """Reads the lines of a file. ``lines`` are then without what is hidden."""

    def __init__(self, lines: list[str], start: int) -> None:
        self.lines = lines
        self.hidden: list[HiddenPart] = []
        self._start = start
        # For each name of a block, the line up to which no line ends it.
        self._unclosed: dict[str, int] = {}
        self._settings: dict[str, list[str]] = defaultdict(list)
        self._properties: dict[str, list[str]] = defaultdict(list)

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order."""
        lines, at, text = self.lines, self._start, self._start
        while at < len(lines):
            end = self._skip(at)
            if end > at:  # its lines are empty
                at = end
                continue
            heading = _HEADING.match(lines[at])
            begin = _BEGIN.match(lines[at])
            if not heading and not begin:
                at += 1
                continue
            yield from self._text(text, at)
            if heading:
                yield self._heading(at, heading)
                at += 1
            elif begin:
                end = self._block_end(at, begin[1])
                kind: BlockKind = "code" if begin[1].lower() in _CODE else "paragraph"
                yield block_of(lines, kind, at, end)
                at = end
            text = at
        yield from self._text(text, len(lines))

    def metadata(self, blocks: Sequence[Block]) -> Mapping[str, object]:
        """What the settings of the file, and its properties, tell about the document."""
        settings = self._settings
        title = " ".join(settings["title"]) or next((b.heading for b in blocks if b.heading), "")
        metadata: dict[str, object] = {"title": title} if title else {}
        date = _DATE.search(" ".join(settings["date"]))
        if date:
            metadata["updated_at"] = date[0]
        if settings["language"]:
            metadata["language"] = settings["language"][0]
        tags = [tag for value in settings["filetags"] for tag in re.split(r"[:\s]+", value) if tag]
        if tags:
            metadata["tags"] = tags
        metadata |= {key: settings[key] for key in _SHOWN_SETTINGS if settings[key]}
        # Below one key, so that no property is taken for a key that governs.
        return metadata | {"property": self._properties} if self._properties else metadata

    def _skip(self, at: int) -> int:
        """Empty what begins at a line and is not shown; return its end, else ``at``."""
        lines = self.lines
        line = lines[at]
        heading = _HEADING.match(line)
        if heading:
            if not _is_unexported(heading[2]):
                return at
            return self._hide(at, self._subtree_end(at, len(heading[1])), is_labelled=True)
        begin = _BEGIN.match(line)
        if begin:
            end = self._block_end(at, begin[1])
            is_comment = begin[1].lower() == "comment" and end > at + 1
            return self._hide(at, end) if is_comment else at
        if _COMMENT.match(line):
            return self._hide(at, at + 1)
        if _DRAWER.match(line):
            return self._drawer(at)
        setting = _SETTING.match(line)
        if setting and setting[2]:
            self._settings[setting[1].lower()].append(setting[2].strip())
        elif "@@comment:" in line:
            for match in _INLINE_COMMENT.finditer(line):
                self.hidden.append(HiddenPart("markup_comment", match[1], is_labelled=False))
            lines[at] = _INLINE_COMMENT.sub("", line)
        return at

    def _hide(self, start: int, end: int, *, is_labelled: bool = False) -> int:
        text = " ".join(" ".join(self.lines[start:end]).split())
        kind = "invisible_element" if is_labelled else "markup_comment"
        self.hidden.append(HiddenPart(kind, text, is_labelled=is_labelled))
        self.lines[start:end] = [""] * (end - start)
        return end

    def _drawer(self, at: int) -> int:
        """Read a property drawer. Without an end it is text."""
        for i in range(at + 1, len(self.lines)):
            if _DRAWER_END.match(self.lines[i]):
                for line in self.lines[at + 1 : i]:
                    match = _PROPERTY.match(line)
                    if match:
                        self._properties[match[1].lower().rstrip("+")].append(match[2].strip())
                self.lines[at : i + 1] = [""] * (i + 1 - at)
                return i + 1
            if not _PROPERTY.match(self.lines[i]):
                break
        return at

    def _subtree_end(self, at: int, level: int) -> int:
        for i in range(at + 1, len(self.lines)):
            heading = _HEADING.match(self.lines[i])
            if heading and len(heading[1]) <= level:
                return i
        return len(self.lines)

    def _block_end(self, at: int, name: str) -> int:
        """The end of a block; of its first line if nothing closes it before the next heading."""
        closing = f"#+end_{name}".lower()
        if at < self._unclosed.get(closing, 0):
            return at + 1
        for i in range(at + 1, len(self.lines)):
            if self.lines[i].strip().lower() == closing:
                return i + 1
            if self.lines[i].startswith("*") and _HEADING.match(self.lines[i]):
                self._unclosed[closing] = i
                return at + 1
        self._unclosed[closing] = len(self.lines)
        return at + 1

    def _heading(self, at: int, match: re.Match[str]) -> Block:
        words = _LINK.sub(r"\1", _TAGS.sub("", match[2]))
        words = _KEYWORDS.sub("", words, count=1).strip() or match[2].strip()
        level = min(len(match[1]), _MAX_LEVEL)
        return block_of(self.lines, "heading", at, at + 1, level=level, heading=words)

    def _text(self, start: int, end: int) -> Iterator[Block]:
        for first, last in runs(self.lines, start, end):
            yield block_of(self.lines, _kind(self.lines[first]), first, last)


def _is_unexported(title: str) -> bool:
    tags = _TAGS.search(title)
    if tags and "noexport" in tags[1].split(":"):
        return True
    return _COMMENT_KEYWORD.match(_KEYWORDS.sub("", title, count=1)) is not None


def _kind(line: str) -> BlockKind:
    if line.lstrip().startswith("|"):
        return "table"
    return "list" if _ITEM.match(line) else "paragraph"


READER = OrgReader()
