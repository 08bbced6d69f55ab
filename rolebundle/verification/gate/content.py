"""What is in a file: its substance, its placeholders, and why it is no result. Pure.

Substance is what a change must change. White space (but for the indentation of Python, YAML and
Make), invisible characters, byte order marks, Unicode forms and comments of markup are none. JSON
and separated values are compared by their values, archives by their members. A file without
substance is empty. `docs/gate.md` says what is recognized.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import unicodedata
import zlib
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import PurePosixPath
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_for, reader_name_for
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.text.strict_json import NotStrictError, parse_strict

_MAX_BYTES = 8 << 20
"""Of a larger file every byte is substance."""
_ERROR_CHARACTERS = 600
"""A longer text that begins with an error or an apology goes on with a result."""
_LINE = 400
"""So much of a line is looked at for errors and placeholders, in characters."""
_STARTS = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpg jpeg": (b"\xff\xd8\xff",),
    "gif": (b"GIF8",),
    "webp wav": (b"RIFF",),
    "tif tiff": (b"II*\x00", b"MM\x00*"),
    "pdf": (b"%PDF-",),
    "zip docx xlsx pptx odt ods odp epub jar": (b"PK\x03\x04", b"PK\x05\x06"),
    "gz tgz": (b"\x1f\x8b",),
    "bz2": (b"BZh",),
    "xz": (b"\xfd7zXZ",),
    "sqlite sqlite3 db": (b"SQLite format 3\x00",),
    "parquet": (b"PAR1",),
    "mid midi": (b"MThd",),
}
"""How files of these suffixes begin."""
_TABLES, _JSON_LINES, _JSON = {"csv", "tsv"}, {"jsonl", "ndjson"}, {"json", "geojson", "ipynb"}
_MARKUP = frozenset("html htm xhtml xml svg md markdown vue svelte".split())
_SETTINGS = frozenset("yaml yml toml ini cfg conf env properties".split())
_INDENTED = frozenset("py pyi yaml yml mk".split())
_ENTRIES = {"po": "\n\n", "pot": "\n\n", "bib": "\n\n", "properties": "\n", "env": "\n"}
"""What is between the entries of a format whose order means nothing."""
_BLOCK_READERS = frozenset(
    "markdown rst org text html docx xlsx pptx opendocument epub ipynb".split()
)
# Unicode's Default_Ignorable_Code_Point, the blank pattern of Braille, and controls.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
_CODE = "\x1f"  # White space: before a line of a block of code.
_PAGE = re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_MARKUP_COMMENT = re.compile(r"(?s)<!--.*?(?:-->|\Z)")
_TAG = re.compile(r"<[^<>]*>")
_SHOWN = re.compile(
    r"<(?:img|svg|canvas|video|audio|iframe|object|embed|input|script)\b|<[^<>/=]+="
)
_BLOCK_COMMENT = re.compile(r"(?ms)<!--.*?(?:-->|\Z)|^[ \t]*/\*.*?(?:\*/|\Z)")
_COMMENT_LINE = re.compile(r"\s*(?:#(?![A-Za-z])|//|--|%|;)")
_SETTING_WITHOUT_VALUE = re.compile(
    r"\s*(?:\[[^\]]*\]|(?:- *)*(?:[^\s:=]+ *[:=] *(?:\{\}|\[\]|\"\"|''|null|~)?)?)\s*"
)
_STUB_LINE = re.compile(
    r"\s*(?:(?:async )?def .*|class (?!.*(?:ABC|Protocol)).*|pass|\.\.\."
    r"|raise NotImplementedError.*|import .*|from .*|@.*|\"\"\".*\"\"\"|[)\]].*)"
)
_LABEL = re.compile(r"#{1,6}\s.*|\*\*[^*]+\*\*:?|[^.:]{1,60}:")
_NO_LETTER = re.compile(r"[\W_]*")
_MARKERS = r"(?:TODO|TBD|TBA|TBC|FIXME)"
_ASKS = r"(?:insert|add|enter|fill|write|describe|replace|placeholder|your|todo|tbd)"
_LEAD = r"[\s>*+\-•|\"'_(\[]*(?:\d+[.)]\s+)?(?:\[[ x]\]\s*)?"
_PLACEHOLDER = re.compile(
    rf"{_LEAD}{_MARKERS}\b(?!s\b)"
    r"|(?i:" + _LEAD + r"(?:to ?do|to be (?:done|written|added|completed|determined|decided"
    r"|defined|announced)|coming soon|(?:your|insert|add|write)\b.*\bhere)\W*$)"
    rf"|.*(?:[|\t,;:=])[\s\"'*_]*{_MARKERS}[\s\"'*_]*(?:$|[|\t,;:}}\]])"
    rf"|(?i:.*(?:\[(?:tbd|todo|{_ASKS}[ _-][^\]]*)\](?![(\[:])|<{_ASKS}[ _-][^>=]*>))"
    r"|.*(?i:lorem ipsum dolor)|(?:<{7}|>{7}) \S"
)
_INLINE_CODE = re.compile(r"(`+).*?\1")
_OPEN_COMMENT = re.compile(rf".*<!--\s*(?:{_MARKERS}\b|(?i:{_ASKS}\b))")
_OPEN_CODE = re.compile(rf".*(?:#|//|/\*|--|;|%)\s*{_MARKERS}\b|(?:<{{7}}|>{{7}}) \S")
_TRACE_LINE = re.compile(r"\s.*|\s*|Traceback .*|During handling.*|The above .*|[\w.]+(?::.*)?")
_ERROR = re.compile(
    r"(?:[\[(]?[\d:.,TZ +-]{8,}[\])]?\s+)?\[?(?:[\w./-]+: (?:line )?)?(?:"
    r"(?:uncaught |api |http |fatal |internal |unexpected )*(?:[\w.$]*(?:error|exception)|fatal"
    r"|panic|critical|failed|failure|fehler|erreur)(?:\[\w+\]|\]| \w{0,4}\d+)?\s*[:!].*"
    r"|(?:an? )?(?:\w+ )?(?:error|exception) (?:has )?occurred.*|(?:failed|unable) to \w+.*"
    r"|(?:exception in thread|caused by:|npm err!|goroutine|curl:) .*"
    r"|.*\b(?:command not found|no such file or directory|(?:permission|access) denied|timed out"
    r"|connection (?:refused|reset)|core dumped|not found|out of memory|no space left on device)\W*"
    r"|(?:http\S* )?[45]\d\d(?: [a-z -]+)?\W*"
    r"|(?:i['’]m |i am |we['’]re |we are )?(?:very |so )?(?:sorry|afraid|unable to|not able to)\b.*"
    r"|(?:unfortunately|apologies|i apologi[sz]e|as an ai)\b.*"
    r"|(?:i|we) (?:can ?not|can['’]t|could(?: not|n['’]t)|(?:was|were)(?: not|n['’]t) able"
    r"|(?:was|were) unable|do(?: not|n['’]t) have) .*)",
    re.IGNORECASE,
)
_ERROR_TITLE = re.compile(
    r"<(?:title|h1)\b[^<>]*>\s*((?:error\W+)?[45]\d\d\b[^<]*|(?:[\w ]+ )?(?:not found|forbidden"
    r"|denied|error|gateway|unavailable)|just a moment\W*|too many requests)\s*<",
    re.IGNORECASE,
)
_ENVELOPE = frozenset("error errors message detail status code type request_id success ok".split())


class Content(NamedTuple):
    """What a file contains.

    Attributes:
        substance: digest of the substance; empty if there is none.
        body: the same without headings, so that a copy under another title is known.
        placeholders: the lines that wait for content.
        is_code: whether it is a program or settings, in whose comments placeholders are usual.
        error: the first line of the error message or apology that is all; empty if it is none.
        wrong_kind: why it is not what its name says; empty if it is.
        size: bytes without white space, where repeated lines and sentences count once.
    """

    substance: str
    body: str
    placeholders: Sequence[str] = ()
    is_code: bool = False
    error: str = ""
    wrong_kind: str = ""
    size: int = 0


def content_of(name: str, data: bytes) -> Content:
    """What the file of this name contains."""
    suffix, text = PurePosixPath(name.lower()).suffix[1:], _decoded(data)
    if text is not None:
        text = _INVISIBLE.sub("", text)
    if len(data) > _MAX_BYTES:
        return Content(sha256(data).hexdigest(), sha256(data).hexdigest(), size=len(data))
    if not (data.strip(b"\x00") if text is None else fold(text)):
        return Content("", "")
    reader = reader_name_for(name) or ""
    substance, lines, wrong = "", list[str](), _wrong_kind(suffix, reader, data, text)
    try:
        lines = _lines(name, suffix, reader, data, text)
        if not _is_empty(suffix, data, text, lines):
            substance = _substance(suffix, data, text)
    except (
        BadZipFile,
        DocumentError,
        csv.Error,
        EOFError,
        OSError,
        ValueError,
        zlib.error,
    ) as error:
        wrong = wrong or f"cannot be read ({str(error)[:80]})"
    is_prose = reader in _BLOCK_READERS and any(lines)
    is_code = reader in ("source", "") and suffix not in _TABLES
    prose = [line[:_LINE] for line in lines if not line.startswith(_CODE)]
    waits = _OPEN_CODE if is_code else _OPEN_COMMENT
    waiting = [line for line in (text or "").split("\n") if waits.match(line[:_LINE])]
    pieces = dict.fromkeys(re.split(r"(?<=[.!?。])\s+|\n", text or ""))
    return Content(
        _digest(substance),
        _digest(fold("\n".join(lines)) if is_prose and substance else substance),
        [line for line in prose if _PLACEHOLDER.match(_INLINE_CODE.sub("``", line))] * (not is_code)
        + waiting,
        is_code,
        _error(text, lines),
        wrong,
        len(data) - data.count(0)
        if text is None
        else sum(len(fold(piece).encode()) for piece in pieces),
    )


def fold(text: str, *, keep_lines: bool = False) -> str:
    """The text with one space for white space, in Unicode's form NFC, without what is invisible.

    With ``keep_lines`` lines and their indentation stay, but for empty ones.
    """
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    if not keep_lines:
        return " ".join(text.split())
    lines = [(line, line.lstrip()) for line in text.splitlines() if line.strip()]
    return "\n".join(
        line[: 0 if bare.startswith("#") else len(line) - len(bare)] + " ".join(bare.split())
        for line, bare in lines
    )


def _digest(substance: str) -> str:
    return sha256(substance.encode("utf-8", "replace")).hexdigest()[:32] if substance else ""


def _decoded(data: bytes) -> str | None:
    """The text; ``None`` if it is none."""
    if data.startswith(tuple(start for starts in _STARTS.values() for start in starts)):
        return None
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
        return None if _INVISIBLE.search(text) else text
    return None if text.count("\x00") * 20 > len(text) else text


def _wrong_kind(suffix: str, reader: str, data: bytes, text: str | None) -> str:
    starts = next((starts for names, starts in _STARTS.items() if suffix in names.split()), None)
    if starts:
        return "" if data.startswith(starts) else f"is no {suffix.upper()} file"
    if text is None:
        return "is no text" if reader or suffix in _TABLES else ""
    if _PAGE.match(text) and suffix not in _MARKUP:
        return "is a web page"
    if suffix in ("html", "htm", "xml", "svg") and "<" not in text:
        return f"is no {suffix.upper()} file"
    try:
        for part in text.splitlines() if suffix in _JSON_LINES else [text]:
            if suffix in _JSON | _JSON_LINES and part.strip():
                json.loads(part)
    except (ValueError, RecursionError) as error:
        # Settings may have comments, and a comma at the end.
        if not re.search(r"^[ \t]*//|/\*|,\s*[}\]]", text, re.MULTILINE):
            return f"is not JSON ({error})"
    return ""


def _lines(name: str, suffix: str, reader: str, data: bytes, text: str | None) -> list[str]:
    """The lines that are content: no headings, rules, comments, or heads of tables."""
    if reader not in _BLOCK_READERS:
        text = _BLOCK_COMMENT.sub("", text or "") if reader == "source" else text or ""
        return [
            line for line in text.splitlines() if line.strip() and not _COMMENT_LINE.match(line)
        ]
    found, lines = reader_for(name), list[str]()
    data = data if text is None else text.encode()
    documents = found.read(data, name, ReaderOptions()) if found else ()
    for document in documents:
        for block in document.blocks if isinstance(document, ParsedDocument) else ():
            part = [line for line in block.text.split("\n") if not re.match(r"\s*(```|~~~)", line)]
            if block.kind == "table" and len(part) > 1 and re.fullmatch(r"[\s|:+=-]+", part[1]):
                part = part[2:]
            if block.kind != "heading":
                lines += [(_CODE if block.kind == "code" else "") + line for line in part]
    return [x for x in lines if not _NO_LETTER.fullmatch(x) and not re.match(r"#{1,6}\s", x)]


def _is_empty(suffix: str, data: bytes, text: str | None, lines: list[str]) -> bool:
    """Whether a file that is not blank holds nothing."""
    if text is None:
        return not _members(data)
    if suffix in {"json", "geojson"} | _JSON_LINES:
        values = re.sub(r'"(?:[^"\\]|\\.)*": ', "", _substance(suffix, data, text))
        has_zero = re.search(r"0|false", values) and not re.search(r"\[\]|\{\}", values)
        return not has_zero and not re.search(r'"[^"]*\S|[1-9]|true', values.replace('""', ""))
    if suffix in _TABLES:
        rows = _rows(suffix, text)
        return len(rows) < 2 and not any(cell.isdecimal() for row in rows for cell in row)
    if suffix in ("html", "htm", "xml", "svg"):
        root = re.match(r"(?:\s*<[?!][^>]*>)*\s*<[^>]*>", _MARKUP_COMMENT.sub("", text))
        inside = re.sub(r"(?s)<head.*?(?:</head>|\Z)", "", text[root.end() :] if root else text)
        return not fold(_TAG.sub("", inside)) and not _SHOWN.search(inside)
    if suffix in _SETTINGS:
        return all(_SETTING_WITHOUT_VALUE.fullmatch(line) for line in lines)
    if suffix == "py" and re.search(r"^[ \t]*(?:async )?def ", text, re.MULTILINE):
        return all(_STUB_LINE.fullmatch(line) for line in lines)
    return all(_NO_LETTER.fullmatch(line) or _LABEL.fullmatch(line.strip()) for line in lines)


def _members(data: bytes) -> list[str]:
    """Digests of what a binary file holds: the members of an archive, or the whole."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.GzipFile(fileobj=BytesIO(data)).read(_MAX_BYTES)
    if data.startswith(b"PK"):
        with ZipFile(BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if info.file_size]
        return sorted(f"{i.filename} {i.CRC}" for i in infos if "docProps/" not in i.filename)
    if data.startswith(b"SQLite format 3\x00"):
        # A leaf of a table or an index with cells, after the page of the schema.
        size = int.from_bytes(data[16:18]) or 1
        pages = range(65536 if size == 1 else size, len(data), 65536 if size == 1 else size)
        if not any(data[at] in (10, 13) and any(data[at + 3 : at + 5]) for at in pages):
            return []
    return [sha256(data).hexdigest()] if data.strip(b"\x00") else []


def _rows(suffix: str, text: str) -> list[list[str]]:
    head = text.lstrip().split("\n")[0]
    separator = "\t" if suffix == "tsv" else max(",;\t|", key=head.count)
    rows = csv.reader(StringIO(text, newline=""), delimiter=separator)
    return [row for row in ([fold(cell) for cell in row] for row in rows) if any(row)]


def _substance(suffix: str, data: bytes, text: str | None) -> str:
    if text is None:
        return "\n".join(_members(data))
    if suffix in _TABLES:
        return json.dumps(_rows(suffix, text))
    try:
        if suffix in _JSON | _JSON_LINES:
            parts = text.splitlines() if suffix in _JSON_LINES else [text]
            values = [parse_strict(part) for part in parts if part.strip()]
            return fold(
                "\n".join(json.dumps(v, sort_keys=True, ensure_ascii=False) for v in values)
            )
    except NotStrictError:
        pass
    if suffix in _MARKUP:
        text = re.sub(r">\s+(?=<)", ">", _MARKUP_COMMENT.sub("", text))
    if separator := _ENTRIES.get(suffix):
        text = "\n".join(sorted(re.split(rf"{separator}+", text.replace("\r\n", "\n").strip())))
    return fold(text, keep_lines=suffix in _INDENTED or not suffix)


def _error(text: str | None, lines: list[str]) -> str:
    """The first line of an error message or an apology that is the whole content."""
    if text is None or not lines:
        return ""
    is_short = len(fold(_TAG.sub("", text))) <= _ERROR_CHARACTERS
    if _PAGE.match(text) and is_short and (title := _ERROR_TITLE.search(text)):
        return title[1]
    plain = [line.strip(_CODE)[:_LINE] for line in lines]
    for begin, line in enumerate(plain):
        is_whole = begin == 0 or not lines[begin].startswith(_CODE)
        if is_whole and line.startswith("Traceback (most recent call last)"):
            return line if all(map(_TRACE_LINE.fullmatch, plain[begin:])) else ""
    rest = [line for line in plain if not line[:1].isspace() and not line.startswith(("at ", "Ca"))]
    is_all = all(_ERROR.fullmatch(line.strip()) for line in rest)
    if _ERROR.fullmatch(plain[0].strip()) and (is_all or (is_short and len(plain) <= 3)):
        return plain[0].strip()
    try:
        value = parse_strict(text) if text.lstrip().startswith("{") and is_short else {}
    except NotStrictError:
        value = {}
    is_error = value.get("error") or value.get("errors") or value.get("success") is False
    return plain[0].strip() if is_error and _ENVELOPE.issuperset(value) else ""
