"""Archives of XML, such as office documents and e-books, read within limits.

Only the members that a reader asks for are expanded, and the bytes are counted while they are read,
because an archive can lie about sizes. No entity is resolved, no DTD is read, nothing is fetched.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any
from urllib.parse import unquote

from lxml import etree

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, damaged
from rolebundle.ingest.readers.titles import is_own_title

_MAX_MEMBERS = 20_000
_MAX_EXPANDED = 400_000_000
"""All that is read of one file, in bytes. XML expands to ten or twenty times its packed size."""
_MAX_RATIO = 200
_MIN_RATIO_BYTES = 20_000_000
"""A member up to this size may have any ratio: a table of zeros is no bomb."""
_MAX_TREE = 16_000_000
"""The XML that is in memory as a tree at one time, in bytes.

A tree is about eight times as large, and thirty times if its elements are empty.
"""
_READ_BYTES = 1 << 16
_MAX_INTEGER = 2_000_000_000

_CENTRAL_ENTRY = b"PK\x01\x02"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
# "Strict" documents differ from the usual ones only in the names of their namespaces.
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PARSING: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
    "collect_ids": False,
}


@dataclass(frozen=True, slots=True)
class PackageReader:
    """The reader of files that are archives of XML. Each file is one document.

    Args:
        name: the name of the reader, also for the codes of errors.
        version: see :class:`rolebundle.ingest.readers.base.Reader`.
        document: makes the document of an archive.
    """

    name: str
    version: int
    document: Callable[[Package], ParsedDocument]

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The file suffixes that it reads."""
        return suffixes_of(self.name)

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterator[ParsedDocument]:
        """The document of a file.

        Raises:
            DocumentError: ``encrypted_NAME``, ``NAME_too_large`` or ``unreadable_NAME``.
        """
        try:
            document = self.document(Package(data, path, self.name))
        except DocumentError:
            raise
        except Exception as error:  # broken archives and documents raise nearly any exception
            raise damaged(f"unreadable_{self.name}", path, error) from error
        yield document


class Package:
    """The members of an archive.

    Args:
        data: the bytes of the file.
        path: the file, for messages.
        name: the name of the reader, for the codes of errors.

    Raises:
        DocumentError: ``encrypted_NAME``, ``NAME_too_large`` or ``unreadable_NAME``.
    """

    def __init__(self, data: bytes, path: str, name: str) -> None:
        self.path = path
        self._name = name
        self._expanded = 0
        # How many bytes were read since an element was released.
        self._kept = 0
        if data.startswith(_OLE):
            if _ENCRYPTED_STREAM in data:
                raise self.encrypted()
            raise DocumentError(
                f"unreadable_{name}",
                f"{path}: it is a file of an old binary format (.doc, .xls, .ppt)",
                f"save it as {name}, or exclude it",
            )
        # Counted before the directory is read, which needs half a kilobyte for each member.
        if data.count(_CENTRAL_ENTRY) > _MAX_MEMBERS:
            raise self.too_large(f"more than {_MAX_MEMBERS:,} members")
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        # Names are compared without regard to case, as Office does.
        self._members = {info.filename.lower(): info for info in self._archive.infolist()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._members

    def names(self) -> list[str]:
        """The names of all members, in the order of the archive."""
        return [info.filename for info in self._members.values()]

    def encrypted(self) -> DocumentError:
        """The error for a document that requires a password or a licence."""
        return DocumentError(
            f"encrypted_{self._name}",
            f"{self.path}: it is encrypted and requires a password",
            "save a copy without a password, or exclude it",
        )

    def too_large(self, reason: str) -> DocumentError:
        """The error for a document that exceeds a limit."""
        return DocumentError(
            f"{self._name}_too_large", f"{self.path}: {reason}", "split it, or exclude it"
        )

    def read(self, name: str) -> bytes:
        """The content of a member; empty if there is none with this name."""
        if name not in self:
            return b""
        self._kept = 0
        with self._open(name) as file:
            return b"".join(iter(file.read, b""))

    def parse(self, name: str, *, is_lenient: bool = False) -> Any:
        """The root element of a member; an empty element if there is none with this name.

        Args:
            name: the name of the member.
            is_lenient: whether mistakes, such as a prefix without a namespace, are no error.
        """
        data = self.read(name)
        parser = etree.XMLParser(**_PARSING, recover=is_lenient)
        root = etree.fromstring(data, parser) if data else None
        return etree.Element("none") if root is None else root

    def stream(self, name: str, *tags: str) -> Iterator[Any]:
        """The elements with one of ``tags`` as they end, inner elements first.

        The caller passes the elements that it has read to :meth:`release`, so that the tree stays
        small. Only one member is streamed at a time.
        """
        if name not in self:
            return
        with self._open(name) as file:
            self._kept = 0
            for _, element in etree.iterparse(file, tag=tags, **_PARSING):
                yield element

    def release(self, element: Any) -> None:
        """Free an element of a stream that was read, and its siblings before it."""
        self._kept = 0
        element.clear()
        parent = element.getparent()
        if parent is not None:
            while parent[0] is not element:
                del parent[0]

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """The relations of a member: id → (the last word of the type, the name of the target).

        Targets outside of the archive are left out.
        """
        folder, file_name = posixpath.split(name)
        return {
            relation.get("Id", ""): (
                relation.get("Type", "").rpartition("/")[2],
                joined(folder, relation.get("Target", "")),
            )
            for relation in self.parse(posixpath.join(folder, "_rels", f"{file_name}.rels"))
            if relation.get("TargetMode") != "External"
        }

    def _open(self, name: str) -> _CountedFile:
        info = self._members[name.lower()]
        if info.flag_bits & 1:
            raise self.encrypted()
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise ValueError(f"{name} is compressed in a way that its format does not have")
        return _CountedFile(self, self._archive.open(info), info)

    def count(self, size: int) -> None:
        """Count bytes that were read.

        Raises:
            DocumentError: ``NAME_too_large``.
        """
        self._expanded += size
        self._kept += size
        if self._expanded > _MAX_EXPANDED:
            raise self.too_large(f"it expands to more than {_MAX_EXPANDED:,} bytes")
        if self._kept > _MAX_TREE:
            raise self.too_large(f"one part of it has more than {_MAX_TREE:,} bytes")


class _CountedFile:
    """A member that is being read."""

    def __init__(self, package: Package, file: Any, info: zipfile.ZipInfo) -> None:
        self._package = package
        self._file = file
        self._size = 0
        self._max_size = max(_MIN_RATIO_BYTES, info.compress_size * _MAX_RATIO)

    def __enter__(self) -> _CountedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int = _READ_BYTES) -> bytes:
        data: bytes = self._file.read(min(size, _READ_BYTES))
        self._package.count(len(data))
        if not self._size:
            data = _STRICT.sub(_USUAL, data)
        self._size += len(data)
        if self._size > self._max_size:
            raise self._package.too_large(f"a member expands more than {_MAX_RATIO} times")
        return data


def joined(folder: str, target: str) -> str:
    """The name of the member that ``target`` points to from ``folder``, without a fragment."""
    target = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")


def number_in(text: str | None, default: float) -> float:
    """The number that a text is; ``default`` if it is none, as with a unit."""
    try:
        number = float(text or "")
    except ValueError:
        return default
    return number if isfinite(number) else default


def integer_in(text: str | None, default: int) -> int:
    """The whole number that a text is, up to two billion; ``default`` if it is none."""
    return int(min(max(number_in(text, default), -_MAX_INTEGER), _MAX_INTEGER))


def local_name(element: Any) -> str:
    """The name of an element without its namespace; empty for an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


# Core properties

_TEMPLATE_DATES = frozenset(("2013-12-23T23:15:00Z", "2013-01-27T09:15:58Z"))
"""Dates of the templates of python-docx and python-pptx, which their documents keep."""
_LIBRARIES = frozenset(("python-docx", "openpyxl", "steve canny", "unknown", "unknown author"))


def properties_of(root: Any) -> dict[str, Any]:
    """Title, author, date and language from the elements below ``root``.

    All formats call them ``title``, ``creator``, ``modified`` or ``date``, and ``language``.
    """
    texts: dict[str, list[str]] = {}
    for element in root:
        if text := " ".join((element.text or "").split()):
            texts.setdefault(local_name(element), []).append(text)
    creators = texts.get("initial-creator") or texts.get("creator") or ()
    dates = (*texts.get("modified", ()), *texts.get("date", ()))
    found = {
        "title": next(filter(is_own_title, texts.get("title", ())), ""),
        "authors": [author for author in creators if author.lower() not in _LIBRARIES],
        "updated_at": next(filter(_is_own_date, dates), ""),
        "language": next(iter(texts.get("language", ())), ""),
    }
    return {key: value for key, value in found.items() if value}


def _is_own_date(text: str) -> bool:
    """Whether ``text`` is an ISO 8601 date or time that is not that of a template."""
    try:
        return text not in _TEMPLATE_DATES and datetime.fromisoformat(text).year >= 1970
    except ValueError:
        return False
