"""The files of a gate, and whether they have content."""

from __future__ import annotations

import ast
import csv
import errno
import gzip
import json
import os
import re
import stat
import tomllib
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import unescape
from io import BytesIO, StringIO
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from rolebundle import system
from rolebundle.contracts.gate import FileState
from rolebundle.ingest.readers import reader_name_for
from rolebundle.text import paths as globs
from rolebundle.text.strict_json import NotStrictError, parse_strict
from rolebundle.verification.messages import message_in, patterns, regex, words

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
_TABLE_HEAD = re.compile(r"(?m)^.*\|.*\n(?=[ \t]*[|:-][\s|:-]*-[\s|:-]*$)")
_NO_CONTENT = re.compile(r"\s*(?:```|~~~)|\s*#{1,6}\s|[\W_]*$")
_LABEL = re.compile(r"\s*(?:\*\*[^*]+\*\*:?|[^.:]{1,60}:|[\W_]*)\s*")
_FIELD = re.compile(r"<?\{\{[^{}]{0,80}\}\}>?")
_FENCE = re.compile(r"\s*```")
_DIFF = re.compile(r"\s*(?:diff --git .*\n(?:.*\n)*?)?--- \S.*\n\+\+\+ \S.*\n@@ ")

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
    is_code = reader == "source" or names
    if (names and not regex("has", names).search(text)) or (is_code and _FENCE.match(text)):
        return f"is no {suffix.upper()} file, but other text"
    if is_code and suffix not in ("diff", "patch") and _DIFF.match(text):
        return "is a diff, not the changed file"
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
    """Whether a line is a label, fields of a template, or a row of a table with a first cell."""
    _, *cells = line.strip().removeprefix("|").split("|")
    is_bare = len(cells) > 1 and not any(map(str.isalnum, "".join(cells)))
    return is_bare or _LABEL.fullmatch(_FIELD.sub("", line)) is not None


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


MAX_FILE_BYTES = 64 << 20
"""A larger file is not read, and nothing is known of it."""
MAX_JSON_BYTES = 8 << 20
MAX_ENTRIES = 100_000
"""How many files in the contract's folder are looked at."""
MAX_MATCHES = 2_000
"""How many files the contract may name."""
_MAX_OTHERS = 5_000
_MAX_OTHER_BYTES = 8 << 20
_MAX_OTHER_BYTES_IN_ALL = 256 << 20
# What SQLite and this package put beside the corpus.
_COMPANION = re.compile(r"(?:\.audit)?(?:-wal|-shm|-journal)?|\.published/.*")


class NotReadable(Exception):
    """Why a file cannot be judged. ``is_known``: it certainly is no file of the work."""

    def __init__(self, reason: str, *, is_known: bool = True) -> None:
        super().__init__(reason)
        self.is_known = is_known


def read_regular(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file that is no symbolic link.

    Raises:
        NotReadable: it is missing, of another kind, too large, or not readable.
    """
    try:
        if path.is_dir():
            raise NotReadable("is a folder, not a file")
        with os.fdopen(os.open(path, system.READ_FLAGS), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotReadable("is a special file, not a file")
            data = file.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotReadable("does not exist") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise NotReadable("is a symbolic link, which is not followed") from None
        reason = getattr(error, "strerror", None) or "not a name of a file"
        raise NotReadable(f"cannot be read ({reason})", is_known=False) from error
    if len(data) > max_bytes:
        raise NotReadable(f"has over {max_bytes:,} bytes", is_known=False)
    return data


def read_json(data: bytes) -> Any:
    """The value of a JSON file.

    Raises:
        NotReadable: it is too large.
        NotStrictError: it is not valid JSON.
    """
    if len(data) > MAX_JSON_BYTES:
        raise NotReadable(f"has over {MAX_JSON_BYTES:,} bytes", is_known=False)
    try:
        return parse_strict(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotStrictError("not UTF-8") from error


class WorkFolder:
    """The contract's folder, as it is at one moment.

    Args:
        contract: absolute path of the contract, which is no work.
        corpus: the corpus file. It and the files beside it are no work either.
    """

    def __init__(self, contract: Path, corpus: Path) -> None:
        self.folder = contract.parent
        self._contract = contract.name
        self._root = os.path.realpath(self.folder)
        self._corpus = os.path.realpath(corpus)
        self._names = cache(self._walk)

    def _walk(self) -> list[str]:
        """The regular files, as relative paths in order; one too many if there are too many."""
        names: list[str] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if name not in words("names", "filled_by_tools")]
            prefix = Path(folder).relative_to(self._root)
            names += [(prefix / name).as_posix() for name in files]
            if len(names) > MAX_ENTRIES:
                break
        return sorted(name for name in names if self._is_work(name))

    def _is_work(self, path: str) -> bool:
        full = Path(self._root, path)
        is_text = path.encode("utf-8", "ignore").decode() == path  # Others cannot be recorded.
        return is_text and full.is_file() and not full.is_symlink() and not self._is_own(path)

    def _is_own(self, path: str) -> bool:
        full = os.path.join(self._root, path)  # noqa: PTH118 - both sides are texts
        companion = full.startswith(self._corpus) and _COMPANION.fullmatch(full, len(self._corpus))
        return path == self._contract or bool(companion)

    def matches(self, paths: Sequence[str | None]) -> list[str]:
        """The files that paths and globs of the contract name, in order, each once.

        Raises:
            NotReadable: they are too many.
        """
        names: dict[str, None] = {}
        for path in filter(None, paths):
            if not ("*" in path or "?" in path):
                names[path] = None
                continue
            found = self._names()
            names |= dict.fromkeys(name for name in found if globs.matches(path, name))
            if len(names) > MAX_MATCHES or len(found) > MAX_ENTRIES:
                raise NotReadable("names too many files", is_known=False)
        return list(names)

    def read(self, path: str) -> bytes:
        """Read a file of the work.

        Raises:
            NotReadable: as for :func:`read_regular`; or a folder on its path is a symbolic link,
                or the file belongs to the gate.
        """
        if self._is_own(path):
            raise NotReadable("belongs to the gate itself")
        parent = Path(self._root, path).parent
        if os.path.realpath(parent) != str(parent):
            raise NotReadable("is behind a symbolic link, which is not followed")
        return read_regular(Path(self._root, path))

    def state(self, path: str) -> FileState | None:
        """The state of a file; ``None`` if it is not there.

        Raises:
            NotReadable: nothing is known of it.
        """
        try:
            return state_of(path, self.read(path))
        except NotReadable as error:
            if error.is_known:
                return None
            raise

    def others(self, known: Sequence[FileState]) -> list[FileState]:
        """The files whose state is not known yet, within the bounds."""
        named = {state.path for state in known}
        states: list[FileState] = []
        total = 0
        for name in self._names():
            try:
                data = b"" if name in named else read_regular(self.folder / name, _MAX_OTHER_BYTES)
            except NotReadable:
                continue
            total += len(data)
            if len(states) == _MAX_OTHERS or total > _MAX_OTHER_BYTES_IN_ALL:
                break
            if data:
                states.append(state_of(name, data))
        return states


def state_of(path: str, data: bytes, content: Content | None = None) -> FileState:
    """What a baseline records of a file."""
    content = content or content_of(path, data)
    return FileState(
        path=path,
        sha256=sha256(data).hexdigest(),
        substance=content.substance,
        body=content.body,
        placeholders=len(content.placeholders),
    )
