"""Mail: the text of messages that people read, with subject, date, sender and recipients.

Of several forms of one text the plain one is taken, unless it lacks most of the words of the HTML.
HTML is read by the HTML reader, which removes what it hides. Attachments are named, not read.

The standard parser splits a message into its parts and decodes them. A passage has the lines of the
whole message: most texts are encoded, so that single lines of the file would not show them.

A message is foreign material: its origin is ``external``, and nothing in it is read as metadata
that governs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import Parser
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, cast

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import block_of, parser_errors, runs, unique_key
from rolebundle.ingest.readers.html import read_page
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import cleaned, one_line, split_lines, with_newlines

# A paragraph of the plain text is not in the HTML if that many, and that share, of its words are
# not.
_MIN_MISSING_WORDS = 4
_MISSING_SHARE = 0.5
"""The plain text is a stub, too, if it lacks this share of the words of the HTML."""
_WORD = re.compile(r"\w{3,}")
# From the start of a word only: from each letter a long line without spaces would take minutes.
_ADDRESS = re.compile(r"<?\b\w+:\S+|(?<!\S)\S+?@\S+")
_BOUNDARY = re.compile(r"boundary\s*\*?=", re.IGNORECASE)
_CONTENT_HEADER = re.compile(
    r"^content-[a-z-]{1,40}:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE
)
# On larger messages the standard parser would take minutes. Small mailboxes without a suffix are
# not read in a process with a limit of time.
_MAX_HEADER_CHARS = 20_000
_MAX_COMPARISONS = 50_000_000
_MAX_NAMES = 50
_MAX_TITLE_CHARS = 1_000
_MAX_TITLE_WORDS = 12
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pkcs7-mime"})

_Text = ParsedDocument
"""What one part adds to a document; the key is the name of an attachment."""


def _read_message(
    data: bytes, path: str, *, key: str = "", first_line: int = 1, anchor: str = ""
) -> ParsedDocument:
    """The document of a message.

    Args:
        data: the message, which is read as one character for each byte.
        path: the file, for messages.
        key: the name of the message in a file of several.
        first_line: the line of the file on which the message begins, from 1.
        anchor: the anchor of all its blocks.

    Raises:
        DocumentError: ``encrypted_mail``, ``mail_too_large`` or ``unreadable_mail``.
    """
    source = with_newlines(data.decode("latin-1"))
    header_chars = max((len(found[0]) for found in _CONTENT_HEADER.finditer(source)), default=0)
    # Each line is compared with the boundaries of all open parts.
    comparisons = len(_BOUNDARY.findall(source)) * source.count("\n")
    if header_chars > _MAX_HEADER_CHARS or comparisons > _MAX_COMPARISONS:
        raise DocumentError(
            "mail_too_large", f"{path}: its structure is too complex", "exclude the file"
        )
    # The standard parser raises nearly any exception on broken messages.
    with parser_errors("unreadable_mail", path):
        message = Parser().parsestr(source)
        if message.get_content_type() in _ENCRYPTED:
            raise DocumentError(
                "encrypted_mail", f"{path}: the message is encrypted", "save it decrypted"
            )
        texts = list(_texts(message, path))
        blocks = [block for text in texts for block in text.blocks]
        subject = header_text(message.get("Subject", ""))
        if subject and not blocks:
            blocks = [Block("paragraph", subject, 1, 1)]
        inferred = _metadata(message, blocks, [text.key for text in texts])
    last_line = first_line + source.rstrip("\n").count("\n")
    return ParsedDocument(
        blocks=tuple(
            block._replace(start_line=first_line, end_line=last_line, anchor=anchor, aligned=False)
            for block in blocks
        ),
        inferred=inferred,
        key=key,
        line_exact=False,
        notes=tuple(note for text in texts for note in text.notes),
        hidden=tuple(part for text in texts for part in text.hidden),
    )


def _texts(message: Message, path: str) -> Iterator[_Text]:
    """The texts of a message in the order of the file, and the attachments."""
    kind = message.get_content_type()
    if kind == "multipart/alternative":
        yield from _alternative(message, path)
    elif kind == "message/rfc822" or not message.is_multipart():
        is_named = message.get_content_disposition() == "attachment" or message.get_filename()
        if kind in {"text/plain", "text/html"} and not is_named:
            yield _text(message, path)
            return
        name = header_text(message.get_filename() or "") or cleaned(kind)
        yield _Text((Block("list", f"- attachment: {name}", 1, 1),), key=name)
    else:
        for child in _children(message):
            yield from _texts(child, path)


def _alternative(message: Message, path: str) -> list[_Text]:
    """One form of a text: the plain one, unless it is a stub; and what comes with it."""
    forms: dict[bool, _Text] = {}  # by whether it is plain
    others: list[_Text] = []
    problem: DocumentError | None = None
    for child in _children(message):
        # The HTML may come with its images, as multipart/related.
        is_plain = child.get_content_type() == "text/plain"
        try:
            for text in _texts(child, path):
                if text.key or is_plain in forms:
                    others.append(text)
                else:
                    forms[is_plain] = text
        except DocumentError as error:
            problem = error
    plain, html = forms.get(True), forms.get(False)
    if problem and not (plain and plain.blocks):
        raise problem
    if plain and html:
        shown, own = _words(html), _words(plain)
        is_stub = len(shown - own) > _MISSING_SHARE * len(shown)
        plain = html if is_stub else replace(plain, hidden=tuple(_missing(plain, shown)))
    return [text for text in (plain or html, *others) if text]


def _text(part: Message, path: str) -> _Text:
    """The text of a part."""
    raw = cast(bytes, part.get_payload(decode=True))
    text = cleaned(_decoded(raw, part.get_content_charset()))
    if part.get_content_type() == "text/html":
        page = read_page(text.encode(), path, is_message=True)
        # Their offsets are not those of the file.
        return replace(page, hidden=tuple(p._replace(start=0, end=0) for p in page.hidden))
    lines = split_lines(text)
    ranges = runs(lines, 0, len(lines))
    return _Text(tuple(block_of(lines, "paragraph", start, end) for start, end in ranges))


def _children(message: Message) -> Any:
    return message.get_payload() if message.is_multipart() else ()


def _words(text: _Text) -> set[str]:
    return {word for block in text.blocks for word in _WORD.findall(block.text.lower())}


def _missing(plain: _Text, html_words: Set[str]) -> Iterator[HiddenPart]:
    """The paragraphs of the plain form that the HTML, which people see, lacks."""
    for block in plain.blocks:
        words = _WORD.findall(_ADDRESS.sub("", block.text).lower())
        missing = sum(word not in html_words for word in words)
        if missing >= _MIN_MISSING_WORDS and missing > _MISSING_SHARE * len(words):
            yield HiddenPart("invisible_element", block.text, is_kept=True)


def _decoded(data: bytes, charset: str | None) -> str:
    for name in filter(None, (charset, "utf-8")):
        try:
            return data.decode(name)
        except (LookupError, ValueError):
            continue
    return data.decode("cp1252", "replace")


def header_text(value: object) -> str:
    """A header's value on one line, decoded."""
    text = one_line(_decoded(str(value)[:_MAX_HEADER_CHARS].encode("latin-1", "replace"), None))
    with suppress(MessageError, ValueError, LookupError):
        text = str(make_header(decode_header(text)))
    return one_line(cleaned(text))


def _metadata(
    message: Message, blocks: Sequence[Block], attached: Sequence[str]
) -> dict[str, object]:
    # A message without a subject has its first words as title.
    first_words = " ".join(blocks[0].text.split()[:_MAX_TITLE_WORDS]) if blocks else ""
    date = ""
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        parsed = parsedate_to_datetime(str(message.get("Date", "")))
        date = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).isoformat()
    return {
        "origin": "external",
        "document_type": "mail",
        "title": (header_text(message.get("Subject", "")) or first_words)[:_MAX_TITLE_CHARS],
        "updated_at": date,
        # Keys without a meaning to us become attributes of the document.
        "from": _people(message, "From"),
        "to": _people(message, "To"),
        "cc": _people(message, "Cc"),
        "attachments": list(dict.fromkeys(filter(None, attached)))[:_MAX_NAMES],
    }


def _people(message: Message, name: str) -> list[str]:
    """The names and addresses of a header."""
    # Names are decoded after the addresses are split: an encoded name may contain a comma.
    values = [one_line(str(v)[:_MAX_HEADER_CHARS]) for v in message.get_all(name, [])]
    people = (
        f"{header_text(person)} <{address}>" if person else address
        for person, address in getaddresses(values)[:_MAX_NAMES]
    )
    return [cleaned(person) for person in people if person]


# Files


# The line before a message has a time, and the first header is below it. So a sentence that begins
# with "From" is not one, even if the program that wrote it did not quote it.
_FROM_LINE = re.compile(
    rb"^From [^\r\n]{1,300}\d\d:\d\d[^\r\n]{0,100}\r?\n(?=[!-9;-~]+:)", re.MULTILINE
)
_MESSAGE_ID = re.compile(r"^message-id:\s*<?([^>\s]*)", re.MULTILINE | re.IGNORECASE)
# Programs mark a message as deleted and remove it much later.
_DELETED = re.compile(
    r"^(?:x-mozilla-status: *[0-9a-f]{3}[89a-f]|(?:x-)?status: *\w{0,8}D\w{0,8}) *$",
    re.MULTILINE | re.IGNORECASE,
)
_NOT_IN_KEYS = re.compile(r"[^\w.@+=-]+")
_MAX_KEY_CHARS = 120
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)


def _read_mailbox(
    data: bytes, path: str, _separator: str
) -> Iterable[ParsedDocument | DocumentError]:
    """One document per message; its key is its Message-ID. Bad messages are reported.

    Raises:
        DocumentError: ``unreadable_mailbox``.
    """
    keys: set[str] = set()
    number = 0
    for number, (start, end, line) in enumerate(_messages(data), 1):
        source = _QUOTED_FROM.sub(b"", data[start:end])
        head = with_newlines(source.decode("latin-1")).partition("\n\n")[0]
        if _DELETED.search(head):
            continue
        anchor = f"message {number}"
        found = _MESSAGE_ID.search(head)
        name = _NOT_IN_KEYS.sub("-", found[1])[:_MAX_KEY_CHARS].strip("-") if found else ""
        key = unique_key(name or f"message-{number}", keys)
        try:
            yield _read_message(
                source, f"{path}, {anchor}", key=key, first_line=line, anchor=anchor
            )
        except DocumentError as error:
            yield error
    if not number and data.strip():
        raise DocumentError(
            "unreadable_mailbox",
            f"{path}: it contains no message",
            "a mailbox has a line such as `From a@b.org Mon Jan  1 09:30:00 2024` before each "
            "message",
        )


def _messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    """The start and the end of each message in bytes, and its first line."""
    start = counted = 0
    line = 1
    for match in _FROM_LINE.finditer(data):
        if start:
            yield start, match.start(), line
        line += data.count(b"\n", counted, match.end())
        start = counted = match.end()
    if start:
        yield start, len(data), line


READERS = {
    "eml": (4, lambda data, path, _separator: [_read_message(data, path)]),
    "mbox": (4, _read_mailbox),
}
