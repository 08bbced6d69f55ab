"""Declarations that limit who sees a document, in a form that its reader does not read.

They stand at its beginning: in a comment, in fields of another format, between fences of which one
is missing, or below another key. To ignore one would show the document to those whom its author
left out, so it is kept in quarantine until the owner decides.

Words of a text are none ("Scope: all staff"), and neither are code, data and figures. A scope has
many meanings, so alone it counts only where nothing but metadata stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.ingest.authority import folded_key, governing_key
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.scan.finding import UNREAD, HiddenPart
from rolebundle.text.decoding import split_lines
from rolebundle.text.words import first_of

MAX_BYTES = 16_384
"""What is searched of a file."""
_MAX_LINES, _MAX_NAMED, _MIN_PROSE_WORDS = 40, 5, 4
_NAME = r"[^\W\d_][\w.-]*"
_DATE = r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+\S*)?|\d{1,2}(?:[./-]\d{1,2}[./-]|\.? [^\W\d]+ )\d{2,4}"
_ROLES = rf"(?:{_NAME}(?:\s*,\s*{_NAME})*)?"
_LEVEL = r"(?i:(?:[a-z]+[ -])?(?:public|group|internal|confidential|restricted|secret|private))"
_ANY_LEVEL = r"[^\W\d_]+(?:[ -][^\W\d_]+){0,2}"
"""A level of any scale, in any language, where nothing but metadata stands."""
_VALUES = {"sensitivity": _LEVEL, "scope": _NAME, "valid_from": _DATE, "valid_until": _DATE}
_VALUES |= {"applicable_roles": _ROLES, "excluded_roles": _ROLES}
"""The keys that limit who sees a document, and what their values look like."""
_OF_PROGRAMS = re.compile("auth|api|client|token|depend|param", re.IGNORECASE)
"""Keys below which a scope is that of a program."""

_MARKS = " \t\xa0\"'`“”*_#%;:!|/<.,+\\([{}])>-"
"""What may stand around a value: marks of comments, tables, lists, quotes."""
_PAIR = re.compile(
    r"(?:@|property: *)([\w-]+)( )(.*)|@?([^\W\d_][\w .-]{1,30}?)[\"'`*_ ]*(::?|[=：|])(.*)",
    re.IGNORECASE,
)
_VALUE_ENDS = re.compile(r"\s#|[;,|]\s*[\"']?\w+[\"']?\s*[:=]")
"""Where a value ends: before a comment, or another pair on the same line."""
_TAG = re.compile(r"<(?:meta|html|body|main|article)\b[^>]{0,1000}", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(\"[^\"]*|'[^']*|[^\s>]+)")
_BLOCK = re.compile(
    r"-{3,}(?: ?\w+ ?-{3,})?|\+{3,}|\.\.|/{4}|<!--|:properties:|```\w*|~~~\w*", re.IGNORECASE
)
"""A line with which a block of metadata begins or ends."""
_ENDS = ("---", "...", "+++")
"""With which front matter ends."""
_EDITOR_LINE = re.compile(r"-\*-(.*)-\*-")
_LINK_COMMENT = re.compile(r"\[([\w-]+)\]:\s*#\s*[(\"'](.*)[)\"']")
"""A comment that Markdown has as a reference that nothing uses."""
_METADATA_HEADING = re.compile(r"\W*(?:meta-?data|properties|classification)\W*", re.IGNORECASE)
_FIELD = re.compile(r"<!--|//|%|\.\. |\[[^]]*\]:|(?:#\+|:)[\w-]+:\s")
"""How a line begins that is a comment or a field."""
_CODE = re.compile(
    r"```|~~~|#\+begin_|<pre|\[(?:source|listing)|-{4}|\.{4}|>|\.\. (?!meta)[\w-]+::|[^.:][^:]*::$",
    re.IGNORECASE,
)
"""A line with which code or a quotation begins."""
_COMMENT = re.compile(r"[#;*%]|//|--|<!--")
_QUOTES = re.compile(r"\"\"\"|'''|/\*|\*/|<!--|-->|--\[\[|\]\]")
"""The beginning or the end of a comment of several lines."""
_PLAIN = frozenset("html markdown rst separated source text".split())
"""Readers of files whose lines are searched as they are, with the comments."""
_FOREIGN = frozenset("eml emlx ics json jsonl mbox msg vcf".split())
"""Readers of files whose text is another person's, or data."""

_Found = tuple[int, str, str, bool]
"""The line from 1, or 0; the key as it was written; the value; whether it counts alone."""


def limiting_key(name: str) -> str:
    """The key that a name means; empty if that limits nothing."""
    name = re.split(r"[.:]", re.sub("^(?:x|data)-", "", name.strip().casefold()))[-1]
    key = governing_key(name)
    return key if key in _VALUES and (key != "scope" or folded_key(name) == key) else ""


def with_unread(
    parsed: ParsedDocument, metadata: DocumentMetadata, reader: str, beginning: bytes, *ignored: str
) -> ParsedDocument:
    """The document; if its metadata lacks what it declares, with a part that quarantines it.

    Args:
        parsed: the document.
        metadata: what was read of it.
        reader: the name of its reader.
        beginning: the first bytes of the file.
        ignored: keys that the owner ignores.
    """
    text = beginning.replace(b"\0", b"").decode("utf-8-sig", "replace").lstrip("\ufffd")
    raw = [*enumerate(split_lines(text), 1)]
    rest = raw[parsed.declared_at - 1 :]
    if parsed.declared:
        ends = (place for place, (_, line) in enumerate(rest) if line.rstrip() in _ENDS)
        rest = rest[next(ends, len(rest)) + 1 :]
    lines = rest[:_MAX_LINES] if reader in _PLAIN else []
    if reader == "html" or reader not in _PLAIN | _FOREIGN:
        texts = [block.text for block in parsed.blocks[:_MAX_LINES] if block.kind != "code"]
        lines += [(0, line) for line in "\n".join(texts).split("\n")[:_MAX_LINES]]
    others = {name: value for name, value in parsed.declared.items() if name not in _VALUES}
    found = [*_in_properties(parsed.inferred), *_in_properties(others)]
    found += _in_tags(text) if reader == "html" else ()
    found += _in_lines(lines, is_source=reader == "source")
    found = [one for one in found if limiting_key(one[1]) not in ignored]
    if all(_has(metadata, name, value) for _, name, value, is_meant in found if is_meant):
        return parsed
    places = [f"line {n or _line_of(name, raw)}: {name}: {value}" for n, name, value, _ in found]
    named = f"{first_of([*dict.fromkeys(places)], _MAX_NAMED)}: not read there"
    note = f"{named}, so it is in quarantine: declare it in front matter, or release the document"
    part = HiddenPart(UNREAD, named, is_kept=True)
    return replace(parsed, notes=(*parsed.notes, note), hidden=(*parsed.hidden, part))


def _line_of(name: str, lines: Iterable[tuple[int, str]]) -> int:
    own = name.rpartition(".")[2].lower()
    return next((number for number, line in lines if own in line.lower()), 1)


def _has(metadata: DocumentMetadata, name: str, value: str) -> bool:
    """Whether the metadata says what was declared, or something stricter, or its owner refused."""
    key = limiting_key(name)
    held = repr(getattr(metadata, key)).casefold()
    is_known = all(f"'{part.casefold()}" in held for part in re.split(r"\s*,\s*", value or "?"))
    is_refused = f"{key}: {value}" in metadata.refused_claims
    return is_known or is_refused or held == "'confidential'"


def _in_properties(
    values: Mapping[str, object], above: str = "", line: int = 0
) -> Iterator[_Found]:
    """What the properties of a format declare, and keys below others in front matter."""
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Mapping):
                yield from _in_properties(item, name)
        text, key = ", ".join(map(str, items)).strip(_MARKS), limiting_key(name)
        pattern = _ANY_LEVEL if key == "sensitivity" else _VALUES.get(key, "")
        if key and re.fullmatch(pattern, text):
            yield line, name, text, key != "scope" or not _OF_PROGRAMS.search(above)


def _in_tags(text: str) -> Iterator[_Found]:
    """What the tags of a page declare: ``<meta name="…" content="…">`` and ``data-…="…"``."""
    for tag in _TAG.finditer(text):
        values = {name.lower(): value for name, value in _ATTRIBUTE.findall(tag[0])}
        names = (values.get(name, "").strip(_MARKS) for name in ("name", "property", "itemprop"))
        values |= {name: values.get("content", "") for name in names}
        yield from _in_properties(values, line=text.count("\n", 0, tag.start()) + 1)


def _expanded(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, with those of editors and of comments of Markdown as fields."""
    for number, line in lines:
        if variables := _EDITOR_LINE.search(line):
            yield from ((number, f"// {pair.strip()}") for pair in variables[1].split(";"))
        else:
            yield number, _LINK_COMMENT.sub(r"// \1: \2", line)


def _in_lines(lines: Iterable[tuple[int, str]], *, is_source: bool) -> Iterator[_Found]:
    """What the first lines of a text declare before any code."""
    is_first, has_prose, is_block, is_quoted, text, last = True, False, False, False, "", ""
    for number, line in _expanded(lines):
        above, last, text = text, text or last, line.strip()
        is_quoted ^= len(_QUOTES.findall(text)) % 2 == 1
        is_fence = text[:1] in tuple("`~-+")
        is_open = is_first or is_block or not (above or is_fence or has_prose)
        is_open |= _METADATA_HEADING.fullmatch(last) is not None
        is_start = is_open and _BLOCK.fullmatch(text) is not None
        is_block = not is_block if is_start else is_block and bool(text)
        if _CODE.match(text) and not is_start and not (above and text[0] in "-."):
            return
        if is_source and not (is_quoted or _COMMENT.match(text)):
            continue
        is_field = not is_source and _FIELD.match(text) is not None
        is_alone = not has_prose and (is_block or is_field)
        pair = _PAIR.fullmatch(re.sub(r"^[^\w@]+", "", text))
        name, mark, value = [*filter(None, pair.groups()), ""][:3] if pair else ("", "", "")
        is_assigned = mark == "=" and not (is_block or is_first)
        is_first = is_first and (is_alone or is_start or not text)
        is_indented = has_prose and (line[:1] == "\t" or line[:4] == "    ")
        if not (key := limiting_key(name)) or is_indented or is_assigned:
            is_prose = text[:1].isalnum() and not is_block
            has_prose |= is_prose and len((name or text).split()) >= _MIN_PROSE_WORDS
            continue
        value = _VALUE_ENDS.split(value)[0].strip(_MARKS)
        pattern = _ANY_LEVEL if key == "sensitivity" and is_alone else _VALUES[key]
        if re.fullmatch(pattern, value):
            is_word = key == "scope" or " " in name
            yield number, name, value, key == "sensitivity" or is_alone or not is_word
