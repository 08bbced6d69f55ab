"""What a file of the work contains, and whether that is a result."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import re
import tomllib
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import unescape
from io import BytesIO, StringIO
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from rolebundle.gate.messages import message_in, patterns, regex
from rolebundle.ingest.readers import reader_name_for
from rolebundle.text.strict_json import NotStrictError, parse_strict

_MAX_BYTES = 8 << 20
"""Of a larger file every byte is substance."""
_LINE = 400
"""How many characters of a line are searched for errors and placeholders."""
_TABLES, _JSON_LINES = {"csv", "tsv"}, {"jsonl", "ndjson"}
_JSON = {"json", "geojson", "ipynb"} | _JSON_LINES
_TAGGED = {"html", "htm", "xhtml", "xml", "svg"}
_MARKUP = _TAGGED | {"vue", "svelte", "md", "markdown"}
_INDENTED = {"", "py", "pyi", "yaml", "yml", "mk"}
_PROSE_READERS = {"markdown", "rst", "org", "text", "html"}
_UNREADABLE = (BadZipFile, csv.Error, EOFError, OSError, ValueError, zlib.error)

_PAGE = re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_HEAD = re.compile(r"(?s)<head\b.*?(?:</head>|\Z)")
_UNSEEN = re.compile(r"(?is)<(style|script)\b.*?(?:</\1>|\Z)")
_MARKUP_COMMENT = re.compile(r"(?s)<!--.*?(?:-->|\Z)")
_TAG = re.compile(r"<[^<>]*>")
_BLOCK_COMMENT = re.compile(r"(?ms)^[ \t]*/\*.*?(?:\*/|\Z)")
_COMMENT_LINE = re.compile(r"\s*(?:#(?![^\W\d_])|//|--|%|;)")
_FENCED = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)")
_TABLE_HEAD = re.compile(r"(?m)^(?=.*\|).*+\n(?=[ \t]*+[|:-])(?=[ \t|:]*+-[ \t|:-]*+\r?$)")
_NO_CONTENT = re.compile(r"\s*(?:```|~~~)|\s*#{1,6}\s|[\W_]*$")
_LABEL = re.compile(r"\s*(?:\*\*[^*]+\*\*:?|[^.:]{1,60}:|[\W_]*)\s*")

_IDLE_NAMES = {"print", "__name__", "NotImplementedError", "main"}
_WORK = (
    ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.Return | ast.ClassDef | ast.With
)
"""What a program that does something has."""
_INLINE_CODE = re.compile(r"(`+).*?\1")


class Content(NamedTuple):
    """What a file contains.

    Attributes:
        substance: digest of the substance; empty if there is none.
        body: the same without headings, so that a copy under another title is known.
        placeholders: the lines that wait for content.
        is_code: whether it is a program or settings, in whose comments placeholders are usual.
        error: kind and beginning of the message of an agent or a tool that is all; empty if there
            is more.
        wrong_kind: why it is not what its name says; empty if it is.
    """

    substance: str
    body: str
    placeholders: Sequence[str] = ()
    is_code: bool = False
    error: str = ""
    wrong_kind: str = ""


def content_of(name: str, data: bytes) -> Content:
    """What the file of this name contains."""
    suffix, reader = PurePosixPath(name.lower()).suffix[1:], reader_name_for(name) or ""
    if len(data) > _MAX_BYTES:
        return Content(_digest(data), _digest(data))
    text = _decoded(data)
    if not (data.strip(b"\x00") if text is None else text.strip()):
        return Content("", "")
    is_code = reader in ("source", "") and suffix not in _TABLES
    wrong, substance = "", ""
    lines: list[str] = []
    try:
        wrong = _wrong_kind(suffix, reader, data, text)
        if text is None:
            substance = "\n".join(_members(data))
        else:
            lines = _lines(suffix, text, is_prose=reader in _PROSE_READERS)
            substance = "" if _is_empty(name, suffix, text, lines) else _substance(suffix, text)
    except _UNREADABLE as error:
        wrong = wrong or f"cannot be read ({str(error)[:80]})"
    body = fold("\n".join(lines)) if substance and lines and reader in _PROSE_READERS else substance
    return Content(
        substance=_digest(substance.encode("utf-8", "replace")),
        body=_digest(body.encode("utf-8", "replace")),
        placeholders=_placeholders(name, suffix, text or "", is_code=is_code),
        is_code=is_code,
        error=message_in(name, text, lines, is_code=is_code) if text else "",
        wrong_kind=wrong,
    )


def fold(text: str, *, keep_lines: bool = False) -> str:
    """The text with one space for white space, in Unicode's form NFC, without what is invisible.

    With ``keep_lines`` lines and their indentation stay, but for empty ones.
    """
    text = regex("text", "invisible").sub("", unicodedata.normalize("NFC", text))
    if not keep_lines:
        return " ".join(text.split())
    lines = [(line, line.lstrip()) for line in text.splitlines() if line.strip()]
    return "\n".join(
        line[: 0 if bare.startswith("#") else len(line) - len(bare)] + " ".join(bare.split())
        for line, bare in lines
    )


def _digest(substance: bytes) -> str:
    return sha256(substance).hexdigest()[:32] if substance else ""


def _decoded(data: bytes) -> str | None:
    """The text without invisible characters; ``None`` if the bytes are no text."""
    head = data[:20].decode("latin-1")
    if any(regex("starts", names).match(head) for names in patterns()["starts"]):
        return None
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
        return None if regex("text", "invisible").search(text) else text
    return None if text.count("\x00") * 20 > len(text) else regex("text", "invisible").sub("", text)


def _table_row(table: str, suffix: str) -> str:
    """The key of a table of the data file that names a suffix; empty if none does."""
    return next((names for names in patterns()[table] if suffix in names.split()), "")


def _wrong_kind(suffix: str, reader: str, data: bytes, text: str | None) -> str:
    if names := _table_row("starts", suffix):
        is_so = regex("starts", names).match(data[:20].decode("latin-1"))
        return "" if is_so else f"is no {suffix.upper()} file"
    if text is None:
        return "is no text" if reader or suffix in _TABLES else ""
    if _PAGE.match(text) and suffix not in _MARKUP:
        return "is a web page"
    names = _table_row("has", suffix)
    if names and not regex("has", names).search(text):
        return f"is no {suffix.upper()} file, but other text"
    if suffix == "toml":
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            return f"is not TOML ({error})"
    if reader in ("markdown", "rst") and text.lstrip().startswith(("{", "<?xml")):
        return "is JSON or XML" if text.rstrip().endswith(("}", ">")) else ""
    # Settings may have comments, and a comma at the end.
    if suffix in _JSON and not re.search(r"^[ \t]*//|/\*|,\s*[}\]]", text, re.MULTILINE):
        try:
            for part in _json_texts(suffix, text):
                json.loads(part)
        except (ValueError, RecursionError) as error:
            return f"is not JSON ({error})"
    return ""


def _json_texts(suffix: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()] if suffix in _JSON_LINES else [text]


def _lines(suffix: str, text: str, *, is_prose: bool) -> list[str]:
    """The lines that are content.

    Headings, fences, rules, comments and the heads of tables are none.
    """
    if suffix in _TAGGED or _PAGE.match(text) or text.startswith("<?xml"):
        text = unescape(_TAG.sub("\n", _UNSEEN.sub("", _MARKUP_COMMENT.sub("", text))))
    if is_prose:
        text = _TABLE_HEAD.sub("", _MARKUP_COMMENT.sub("", text))
        return [line for line in text.splitlines() if not _NO_CONTENT.match(line)]
    lines = _BLOCK_COMMENT.sub("", text).splitlines()
    return [line for line in lines if line.strip() and not _COMMENT_LINE.match(line)]


def _is_empty(name: str, suffix: str, text: str, lines: list[str]) -> bool:
    """Whether a text that is not blank holds nothing."""
    if suffix in _JSON:
        return all(map(_is_hollow, _values(suffix, text)))
    if suffix in _TABLES:
        rows = _rows(suffix, text)
        if regex("placeholder", "meant_in").search(name):
            return not rows
        return len(rows) < 2 and not any(cell.isdecimal() for row in rows for cell in row)
    if suffix in _TAGGED:
        inside = _HEAD.sub("", _MARKUP_COMMENT.sub("", text))
        # An attribute of an element below the root may be all that there is.
        return not fold(_TAG.sub("", inside)) and not re.search(r"<[a-z][^<>]*>.*<[^<>/]+=", inside)
    if suffix == "py":
        return _does_nothing(text)
    return all(map(_says_nothing, lines))


def _says_nothing(line: str) -> bool:
    """Whether a line is a label, or a row of a table with a first cell."""
    _, *cells = line.strip().removeprefix("|").split("|")
    is_bare = len(cells) > 1 and not any(map(str.isalnum, "".join(cells)))
    return is_bare or _LABEL.fullmatch(line) is not None


def _does_nothing(text: str) -> bool:
    """Whether a program in Python has nothing but constants, their output, and empty functions."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names <= _IDLE_NAMES and not any(isinstance(node, _WORK) for node in nodes)


def _values(suffix: str, text: str) -> list[Any]:
    """The values of a JSON file; what is no strict JSON is its text."""
    try:
        return [parse_strict(part) for part in _json_texts(suffix, text)]
    except NotStrictError:
        return [fold(text)]


def _is_hollow(value: Any) -> bool:
    """Whether a value holds nothing. Beside an empty list, zero is nothing as well."""
    leaves = [*_leaves(value)]
    solid = [leaf for leaf in leaves if leaf is not None and leaf not in ("", [], {})]
    return not any(solid) if [] in leaves or {} in leaves else not solid


def _leaves(value: Any) -> Iterator[Any]:
    children = value.values() if isinstance(value, dict) else value
    if not children or not isinstance(value, dict | list):
        yield value.strip() if isinstance(value, str) else value
        return
    for child in children:
        yield from _leaves(child)


def _members(data: bytes) -> list[str]:
    """Digests of what a binary file holds: the members of an archive, or the whole."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.GzipFile(fileobj=BytesIO(data)).read(_MAX_BYTES)
    if data.startswith(b"PK"):
        with ZipFile(BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if info.file_size]
        return sorted(f"{i.filename} {i.CRC}" for i in infos if "docProps/" not in i.filename)
    return [_digest(data)] if data.strip(b"\x00") else []


def _rows(suffix: str, text: str) -> list[list[str]]:
    head = text.lstrip().split("\n")[0]
    separator = "\t" if suffix == "tsv" else max(",;\t|", key=head.count)
    rows = csv.reader(StringIO(text, newline=""), delimiter=separator)
    return [row for row in ([fold(cell) for cell in row] for row in rows) if any(row)]


def _substance(suffix: str, text: str) -> str:
    if suffix in _TABLES:
        return json.dumps(_rows(suffix, text))
    if suffix in _JSON:
        values = _values(suffix, text)
        return fold("\n".join(json.dumps(v, sort_keys=True, ensure_ascii=False) for v in values))
    if suffix in _MARKUP:
        text = re.sub(r">\s+(?=<)", ">", _MARKUP_COMMENT.sub("", text))
    return fold(text, keep_lines=suffix in _INDENTED)


def _placeholders(name: str, suffix: str, text: str, *, is_code: bool) -> list[str]:
    """The lines of prose, or of comments, that wait for content."""
    if regex("placeholder", "meant_in").search(name):
        return []
    comment = regex("placeholder", "code" if is_code else "hidden")
    found = [line for line in text.split("\n") if comment.match(line[:_LINE])]
    if is_code:
        return found
    prose = _TAG.sub("\n", text) if suffix in _TAGGED else _FENCED.sub("", text)
    prose = _MARKUP_COMMENT.sub("", prose)
    placeholder = regex("placeholder", "prose")
    lines = (_INLINE_CODE.sub("``", line[:_LINE]) for line in prose.split("\n"))
    return [line for line in lines if placeholder.match(line) and line[:1] != "#"] + found
