"""Mail messages: the text that people read, with subject, date, sender and recipients.

Of several forms of one text the plain one is taken, unless it is empty or only refers to the HTML.
HTML is read by the HTML reader, which removes what it hides. Attachments are named, not read.

The standard parser splits a message into its parts. The text of a part is decoded here, because its
lines must be those of the file. Each decoded line has the lines of the file that encode it: one for
plain encodings, all up to the next hard break for quoted-printable, the whole part for base64.

A message is foreign material: its origin is ``external``, and nothing in it is read as metadata
that governs.
"""

from __future__ import annotations

import binascii
import quopri
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.parser import Parser
from email.utils import getaddresses, parsedate_to_datetime

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers.base import is_blank
from rolebundle.ingest.readers.html import read_page
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import clean, split_lines, with_newlines

_MAX_STUB_CHARS = 300
"""A longer plain text is not taken for a stub."""
_STUB_SHARE = 3
"""A short plain text is a stub if the HTML has this many times its characters."""
# A paragraph of the plain text is not in the HTML if that many, and that share, of its words are
# not.
_MIN_MISSING_WORDS = 4
_MISSING_SHARE = 0.5
_WORD = re.compile(r"\w{3,}")
# From the start of a word only: from each letter a long line without spaces would take minutes.
_ADDRESS = re.compile(r"<?\b\w+:\S+|(?<!\S)\S+?@\S+")
_MAX_PARTS = 1_000
_MIN_ATTACHMENT_BYTES = 4_000_000
"""Larger attachments are removed before the message is parsed."""
_MAX_HEADER_BYTES = 4_000
# The blank line before a text in base64.
_ENCODED = re.compile(rb"\n\r?\n(?=[A-Za-z0-9+/]{57,}\r?\n)")
_MAX_NAMES = 50
_MAX_VALUE_CHARS = 5_000
_MAX_PEOPLE_CHARS = 20_000
_MAX_HEADER_CHARS = 20_000
_MAX_COMPARISONS = 50_000_000
_CONTENT_HEADER = re.compile(
    r"^content-[a-z-]{1,40}:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE
)
_SUBJECT = re.compile(r"^subject:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)
_BOUNDARY = re.compile(r"boundary\s*\*?=", re.IGNORECASE)
_MAX_TITLE_WORDS = 12
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pkcs7-mime"})
_QUOTE = re.compile(r"\s{0,3}((?:>\s?)+)")
_SIGNATURE = re.compile(r"--\s?$")

Lines = tuple[int, int]
"""The first and the last line of the file, from 1, inclusive."""


@dataclass(slots=True)
class _Part:
    """A part of a message that is not made of parts.

    Attributes:
        message: the part.
        payload: its text in the file.
        header: the lines of the file between the part before it and its text.
        body: the lines of its text.
    """

    message: Message
    payload: str
    header: Lines
    body: Lines

    @property
    def name(self) -> str:
        """The file name of an attachment, or its type."""
        name = header_text(self.message.get_filename() or "")
        return name or clean(self.message.get_content_type())[0]

    @property
    def is_text(self) -> bool:
        """Whether people read the part as text of the message."""
        is_attached = self.message.get_content_disposition() == "attachment"
        is_named = bool(self.message.get_filename())
        kind = self.message.get_content_type()
        return kind in {"text/plain", "text/html"} and not is_attached and not is_named


def source_text(data: bytes) -> str:
    """A mail file as text with one character for each byte, and ``\\n`` for each line break.

    Large attachments have empty lines. The standard parser would need several times their size.
    """
    return with_newlines(_without_attachments(data).decode("latin-1"))


def _without_attachments(data: bytes) -> bytes:
    if len(data) < _MIN_ATTACHMENT_BYTES:
        return data
    parts: list[bytes] = []
    copied_until = 0
    for match in _ENCODED.finditer(data):
        start = match.end()
        end = data.find(b"\n-", start)  # base64 has no hyphens
        end = len(data) if end < 0 else end
        header = data[max(0, start - _MAX_HEADER_BYTES) : start].lower()
        is_text = header[header.rfind(b"content-type:") :].startswith(b"content-type: text/")
        if start >= copied_until and end - start >= _MIN_ATTACHMENT_BYTES and not is_text:
            parts += [data[copied_until:start], b"\n" * data.count(b"\n", start, end)]
            copied_until = end
    return b"".join([*parts, data[copied_until:]]) if parts else data


def read_message(
    source: str, path: str, *, key: str = "", first_line: int = 1, anchor: str = ""
) -> ParsedDocument:
    """The document of a message.

    Args:
        source: the message, from :func:`source_text`.
        path: the file, for messages.
        key: the name of the message in a file of several.
        first_line: the line of the file on which the message begins.
        anchor: the anchor of all its blocks.

    Raises:
        DocumentError: ``encrypted_mail`` or ``unreadable_mail``.
    """
    _check_size(source, path)
    try:
        message = Parser().parsestr(source)
        if message.get_content_type() in _ENCRYPTED and not _is_signed_only(message):
            raise DocumentError(
                "encrypted_mail", f"{path}: the message is encrypted", "save it decrypted"
            )
        texts = list(_Texts(source, path, first_line).of(message))
        found = [block for text in texts for block in text.blocks]
        found = found or _subject(message, source, first_line)
        blocks = tuple(block._replace(anchor=anchor) for block in found)
        attached = [name for text in texts for name in text.attached]
        inferred = _metadata(message, blocks, attached)
    except DocumentError:
        raise
    except Exception as error:
        # The standard parser raises nearly any exception on broken messages.
        raise DocumentError(
            "unreadable_mail",
            f"{path}: the message is damaged",
            with_detail("save it again in the mail program, or exclude it", error),
        ) from error
    return ParsedDocument(
        blocks=blocks,
        inferred=inferred,
        key=key,
        line_exact=False,
        notes=tuple(note for text in texts for note in text.notes),
        hidden=tuple(part for text in texts for part in text.hidden),
    )


def _check_size(source: str, path: str) -> None:
    """Refuse a message on which the standard parser would take minutes."""
    lengths = [len(match[0]) for match in _CONTENT_HEADER.finditer(source)]
    boundaries = len(_BOUNDARY.findall(source))
    # Each line is compared with the boundaries of all open parts.
    comparisons = boundaries * source.count("\n")
    if max(lengths, default=0) > _MAX_HEADER_CHARS or comparisons > _MAX_COMPARISONS:
        reason = "its structure is too complex"
        raise DocumentError("mail_too_large", f"{path}: {reason}", "exclude the file")


def header_text(value: object) -> str:
    """A header's value on one line, decoded."""
    raw = " ".join(str(value)[:_MAX_VALUE_CHARS].split())
    try:
        pieces = decode_header(raw)
    except (MessageError, ValueError):
        pieces = [(raw, None)]
    text = "".join(
        # Without an encoded word the value is a text.
        _decoded(piece if isinstance(piece, bytes) else piece.encode("latin-1", "replace"), charset)
        for piece, charset in pieces
    )
    return " ".join(clean(text)[0].split())


@dataclass(frozen=True, slots=True)
class _Text:
    """What one part adds to a document; ``attached`` is the name of an attachment."""

    blocks: tuple[Block, ...] = ()
    hidden: tuple[HiddenPart, ...] = ()
    notes: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()


class _Texts:
    """Finds the texts of a message, with their lines."""

    def __init__(self, source: str, path: str, first_line: int) -> None:
        self._source = source
        self._path = path
        self._at = 0
        self._line = first_line
        self._parts = 0

    def of(self, message: Message) -> Iterator[_Text]:
        """The texts in the order of the file, and the attachments."""
        kind = message.get_content_type()
        if kind == "multipart/alternative":
            yield from self._alternative(message)
        elif kind == "message/rfc822" or not message.is_multipart():
            part = self._located(message)
            yield self._read(part) if part.is_text else _attachment(part)
        else:
            for child in _children(message):
                yield from self.of(child)

    def _alternative(self, message: Message) -> Iterator[_Text]:
        """One form of a text: the plain one, unless it is a stub; and what comes with it."""
        texts: dict[str, _Text] = {}
        further_texts: list[_Text] = []
        problem: DocumentError | None = None
        for child in _children(message):
            kind = child.get_content_type()
            # The HTML may come with its images, as multipart/related.
            name = "text/html" if kind.startswith("multipart/") else kind
            try:
                for text in self.of(child):
                    if text.attached or name in texts:
                        further_texts.append(text)
                    else:
                        texts[name] = text
            except DocumentError as error:
                problem = error
        plain, html = texts.get("text/plain"), texts.get("text/html")
        if problem and not (plain and plain.blocks):
            raise problem
        if html and (plain is None or _is_stub(plain, html)):
            chosen: _Text | None = html
        else:
            chosen = _with_label(plain, html) if plain and html else plain
        return iter([*([chosen] if chosen else []), *further_texts])

    def _located(self, message: Message) -> _Part:
        """The part with its lines in the file."""
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise DocumentError(
                "mail_too_large", f"{self._path}: more than {_MAX_PARTS} parts", "exclude the file"
            )
        payload = message.get_payload()
        if not isinstance(payload, str):
            payload = "".join(map(str, _children(message)))  # an attached message
        before = self._line
        # The blank line ends the header, in which a short text might be found as well.
        found = self._source.find(f"\n\n{payload}", max(0, self._at - 1))
        if found < 0:  # broken
            line_breaks = self._source.count("\n", self._at)
            return _Part(message, payload, (before, before), (before, before + line_breaks))
        start, end = found + 2, found + 2 + len(payload)
        first = before + self._source.count("\n", self._at, start)
        last = first + payload.count("\n")
        self._at, self._line = end, last
        if payload.endswith("\n"):
            last -= 1
        return _Part(message, payload, (before, max(before, first - 1)), (first, max(first, last)))

    def _read(self, part: _Part) -> _Text:
        text, lines = _decoded_lines(part)
        if part.message.get_content_type() == "text/plain":
            return _Text(tuple(_plain_blocks(split_lines(text), lines)))
        page = read_page(text.encode(), self._path, is_message=True)
        last = len(lines) - 1
        blocks = (
            block._replace(
                start_line=lines[min(block.start_line - 1, last)][0],
                end_line=lines[min(block.end_line - 1, last)][1],
                aligned=False,
            )
            for block in page.blocks
        )
        # Their offsets are not those of the file.
        hidden = (part._replace(start=0, end=0) for part in page.hidden)
        return _Text(tuple(blocks), tuple(hidden), page.notes)


def _children(message: Message) -> Sequence[Message]:
    payload = message.get_payload()
    return (
        [child for child in payload if isinstance(child, Message)]
        if isinstance(payload, list)
        else ()
    )


def _attachment(part: _Part) -> _Text:
    if part.message.get_content_type() == "message/rfc822":
        children = _children(part.message)
        name = header_text(children[0].get("Subject", "")) if children else ""
        name = f"message: {name}" if name else part.name
    else:
        name = part.name
    block = Block("list", f"- attachment: {name}", *part.header)
    return _Text((block,), attached=(name,))


def _is_signed_only(message: Message) -> bool:
    return "signed" in str(message.get_param("smime-type", "")).lower()


def _with_label(plain: _Text, html: _Text) -> _Text:
    """The plain form, labelled for its paragraphs that the HTML, which people see, lacks."""
    html_words = {word for block in html.blocks for word in _WORD.findall(block.text.lower())}
    hidden = []
    for block in plain.blocks:
        words = _WORD.findall(_ADDRESS.sub("", block.text).lower())
        missing = sum(word not in html_words for word in words)
        if missing >= _MIN_MISSING_WORDS and missing > _MISSING_SHARE * len(words):
            hidden.append(HiddenPart("invisible_element", block.text, is_kept=True))
    return replace(plain, hidden=(*plain.hidden, *hidden))


def _is_stub(plain: _Text, html: _Text) -> bool:
    length = _length(plain)
    return length <= _MAX_STUB_CHARS and length * _STUB_SHARE < _length(html)


def _length(text: _Text) -> int:
    return sum(len(block.text) for block in text.blocks)


def _decoded_lines(part: _Part) -> tuple[str, list[Lines]]:
    """The text of a part, and the lines of the file for each of its lines."""
    raw = part.payload.encode("latin-1", "replace")
    encoding = str(part.message.get("Content-Transfer-Encoding", "")).strip().lower()
    first, last = part.body
    groups = [(number, number) for number in range(first, last + 1)]
    if encoding == "quoted-printable":
        groups = _soft_lines(part.payload, first)
        raw = quopri.decodestring(raw)
    elif encoding == "base64":
        groups = []
        raw = _base64(raw)
    charset = part.message.get_content_charset()
    text = with_newlines(clean(_decoded(raw, charset))[0])
    count = len(split_lines(text))
    # Broken encodings and charsets of several bytes may have other lines.
    return text, groups if len(groups) >= count > 0 else [(first, last)] * max(count, 1)


def _soft_lines(payload: str, first: int) -> list[Lines]:
    """The lines of the file that each line of quoted-printable text comes from."""
    groups: list[Lines] = []
    start = first
    lines = split_lines(payload)
    for number, line in enumerate(lines, first):
        is_last = number == first + len(lines) - 1
        if is_last or not line.rstrip(" \t").endswith("="):
            groups.append((start, number))
            start = number + 1
    return groups


def _base64(raw: bytes) -> bytes:
    for padding in (b"", b"=", b"=="):
        try:
            return binascii.a2b_base64(raw + padding)
        except binascii.Error:
            continue
    return b""


def _decoded(data: bytes, charset: str | None) -> str:
    for name in (charset, "utf-8"):
        try:
            if name:
                return data.decode(name)
        except (LookupError, ValueError):
            continue
    return data.decode("cp1252", "replace")


def _plain_blocks(lines: Sequence[str], places: Sequence[Lines]) -> Iterator[Block]:
    """Paragraphs. A quotation is apart from its answer, and a signature from the text."""
    start, depth, in_signature = -1, 0, False

    def block(end: int) -> Block:
        text = "\n".join(lines[start:end])
        return Block("paragraph", text, places[start][0], places[end - 1][1])

    for i, line in enumerate(lines):
        quote = _QUOTE.match(line)
        line_depth = quote[1].count(">") if quote else 0
        begins_signature = _SIGNATURE.match(line) is not None
        if is_blank(line) or (quote and is_blank(line[quote.end() :])):
            if start >= 0:
                yield block(i)
            start = -1
            continue
        is_apart = begins_signature or (not in_signature and line_depth != depth)
        if start >= 0 and is_apart:
            yield block(i)
            start = i
        elif start < 0:
            start = i
        depth, in_signature = line_depth, in_signature or begins_signature
    if start >= 0:
        yield block(len(lines))


def _metadata(
    message: Message, blocks: Sequence[Block], attached: Sequence[str]
) -> dict[str, object]:
    title = header_text(message.get("Subject", "")) or _title_of(blocks)
    metadata: dict[str, object] = {"origin": "external", "document_type": "mail"}
    if title:
        metadata["title"] = title[:1000]
    try:
        date = parsedate_to_datetime(str(message.get("Date", "")))
        metadata["updated_at"] = (date if date.tzinfo else date.replace(tzinfo=UTC)).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        pass
    # Keys without a meaning to us become attributes of the document.
    extra_keys = {
        "from": _people(message, "From"),
        "to": _people(message, "To"),
        "cc": _people(message, "Cc"),
        "attachments": list(dict.fromkeys(attached))[:_MAX_NAMES],
    }
    return metadata | {key: values for key, values in extra_keys.items() if values}


def _subject(message: Message, source: str, first_line: int) -> list[Block]:
    """The subject with its lines. A message without text is found by it."""
    subject = header_text(message.get("Subject", ""))
    header = _SUBJECT.search(source)
    if not subject or header is None:
        return []
    first = first_line + source.count("\n", 0, header.start())
    return [Block("paragraph", subject, first, first + header[0].count("\n"))]


def _title_of(blocks: Sequence[Block]) -> str:
    """The beginning of a message without a subject."""
    return " ".join(blocks[0].text.split()[:_MAX_TITLE_WORDS]) if blocks else ""


def _people(message: Message, name: str) -> list[str]:
    """The names and addresses of a header."""
    values = [str(value)[:_MAX_PEOPLE_CHARS] for value in message.get_all(name, [])[:_MAX_NAMES]]
    # Names are decoded after the addresses are split: an encoded name may contain a comma.
    try:
        pairs = getaddresses([" ".join(value.split()) for value in values])[:_MAX_NAMES]
    except (RecursionError, ValueError, IndexError):  # comments in comments
        return []
    people = (
        f"{header_text(person)} <{address}>" if person else address for person, address in pairs
    )
    return [clean(person)[0] for person in people if person]
