"""Mail: the text of messages that people read, with subject, date, sender and recipients.

Of several forms of one text the plain one is taken, unless it lacks most of the words of the HTML.
HTML is read by the HTML reader, which removes what it hides. Attachments are named, and become
documents of their own; forwarded messages are read where they are, as mail programs show them.

The standard parser splits a message into its parts and decodes them. A passage has the lines of the
file that hold its text, however it is encoded.

A message is foreign material: its origin is ``external``, or ``untrusted`` if its headers show that
it is an advertisement or spam, and nothing in it is read as metadata that governs.
"""

from __future__ import annotations

import mimetypes
import quopri
import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from email.errors import MessageError
from email.header import decode_header
from email.message import EmailMessage, Message
from email.parser import Parser
from email.policy import SMTPUTF8
from email.utils import format_datetime, getaddresses, parsedate_to_datetime
from itertools import accumulate, islice, pairwise
from posixpath import basename, splitext
from typing import Any, NamedTuple, cast

from rolebundle.contracts.documents import QUOTED
from rolebundle.errors import DocumentError
from rolebundle.ingest.declarations import limiting_key
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import parser_errors, reader_name_for, unique_key
from rolebundle.ingest.readers.html import read_page
from rolebundle.ingest.readers.line_blocks import block_of, runs
from rolebundle.ingest.turns import messages
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import cleaned, decode, one_line, split_lines, with_newlines

# A paragraph of the plain text is not in the HTML if that many, and that share, of its words are
# not.
_MIN_MISSING_WORDS = 4
_MISSING_SHARE = 0.5
"""The plain text is a stub, too, if it lacks this share of the words of the HTML."""
_WORD = re.compile(r"\w{3,}")
_LINE_BREAK = re.compile(rb"\r\n?|\n")
_MAX_PADDING = 2
"""How many bytes fewer than its rows a text in base64 may have."""
# From the start of a word only: from each letter a long line without spaces would take minutes.
_ADDRESS = re.compile(r"<?\b\w+:\S+|(?<!\S)\S+?@\S+")
_DOMAIN = re.compile(r"@([\w.-]+\w)")
_ENCODED = re.compile(r"=\?[^?\s]+\?[qQ]\?[^?\s]*\?=")
_GROUP = re.compile(r"(?:^|[,;])\s*([^,;:\"<>@]{1,100}):[^:]{0,9000};")
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
_MAX_FORWARDED = 3
_MAX_WRAPPED = 2_000
"""Of so many lines of a text that its encoding continues in the next one the places are kept."""
_EMBEDDED, _PROPERTIES = "__substg1.0_3701000D", "__properties_version1.0"
"""The part of an attachment that is a message itself, and the part with its properties."""
_OF_OUTLOOK = SMTPUTF8.clone(linesep="\n")
_SHOWN_HEADERS = ("Subject", "From", "To", "Cc")
_ATTACHED_TEXT = {"text/calendar": ".ics", "text/vcard": ".vcf", "text/x-vcard": ".vcf"}
"""Texts that mail programs show as files, with the suffixes of their formats."""
_NOT_READ = frozenset(("text/x-amp-html", "text/watch-html", "application/mac-binhex40"))
"""Forms for few programs. The others do not show them at all."""
# What programs that do not know the encoding write.
_NO_CHARSETS = frozenset(("us-ascii", "ascii", "unknown-8bit", "x-unknown", "default"))
_DECODE: Mapping[str, Callable[[bytes], bytes]] = {
    "base64": b64decode,
    "quoted-printable": quopri.decodestring,
}
_CONFIDENTIAL = frozenset({"company-confidential", "private", "personal"})
"""Values of the header `Sensitivity` (RFC 2156)."""
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pkcs7-mime"})

_Places = Mapping[Message, "_Place"]
_Text = ParsedDocument
"""What one part adds to a document; the key is the name of an attachment as it is shown."""


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
        places = _places(message, source, first_line)
        texts = list(_texts(message, path, places))
        blocks = [block for text in texts for block in text.blocks]
        subject = header_text(message.get("Subject", ""))
        if subject and not blocks:
            blocks = [_in_head(Block("paragraph", subject, 0, 0), places[message])]
        inferred = _metadata(message, blocks, [text.key for text in texts])
    if anchor:
        blocks = [b._replace(anchor=", ".join(filter(None, (anchor, b.anchor)))) for b in blocks]
    return ParsedDocument(
        blocks=tuple(blocks),
        inferred=inferred,
        key=key,
        line_exact=False,
        notes=tuple(note for text in texts for note in text.notes),
        found=tuple(found for text in texts for found in text.found),
        hidden=tuple(part for text in texts for part in text.hidden),
        attached=tuple(file for text in texts for file in text.attached),
    )


class _Place(NamedTuple):
    """The lines where the headers of a part begin, and where its content begins."""

    head: int
    body: int


def _places(message: Message, source: str, line: int) -> dict[Message, _Place]:
    """The places of a message and of its parts, which are in order; ``line`` is the first one."""
    places: dict[Message, _Place] = {}
    at = counted = 0
    for part in message.walk():
        payload = "" if part.is_multipart() else str(part.get_payload())
        head = body = at
        if headers := part.items():
            name, value = map(re.escape, headers[0])
            first = re.compile(rf"^{name}[ \t]*:[ \t]*{value}", re.MULTILINE)
            head = found.start() if (found := first.search(source, at)) else at
            end = source.find("\n\n", head)
            body = len(source) if end < 0 else end + 2
        elif payload:
            head = body = max(source.find(payload, at), at)
        first_line = line + source.count("\n", counted, head)
        counted, line = body, first_line + source.count("\n", head, body)
        places[part] = _Place(first_line, line)
        at = body + len(payload)
    return places


def _texts(message: Message, path: str, places: _Places, level: int = 0) -> Iterator[_Text]:
    """The texts of a message in the order of the file, and the attachments."""
    kind = message.get_content_type()
    encoding = str(message.get("Content-Transfer-Encoding", "")).strip().lower()
    children = _children(message)
    is_forwarded = kind == "message/rfc822" and encoding not in _DECODE
    if kind == "multipart/alternative":
        yield from _alternative(message, path, places, level)
    elif is_forwarded and children and level < _MAX_FORWARDED:
        inner = children[0]
        anchor = ", ".join(filter(None, ("forwarded", _date(inner)[:10])))
        head = _forwarded_head(inner, places[inner])
        for text in (head, *_texts(inner, path, places, level + 1)):
            blocks = (b._replace(anchor=b.anchor or anchor) for b in text.blocks)
            yield replace(text, blocks=tuple(blocks))
    elif message.is_multipart() and not kind.startswith("message/"):
        for child in children:
            yield from _texts(child, path, places, level)
    elif _is_shown(message, kind):
        yield _text(message, path, places[message])
    else:
        yield _attachment(message, kind, encoding, places[message])


def _is_shown(message: Message, kind: str) -> bool:
    """Whether mail programs show a part in its place, and not as a file."""
    is_file = message.get_content_disposition() == "attachment"
    if is_file or kind in _ATTACHED_TEXT or kind in _NOT_READ:
        return False
    has_name = bool(message.get_filename())
    is_text = kind.startswith(("text/", "multipart/"))  # "multipart" without parts
    return kind in {"text/plain", "text/html"} or (is_text and not has_name)


def _forwarded_head(message: Message, place: _Place) -> _Text:
    """What mail programs show above a forwarded message."""
    values = ((name, header_text(message.get(name, ""))) for name in _SHOWN_HEADERS)
    text = "\n".join(f"{name}: {value[:_MAX_TITLE_CHARS]}" for name, value in values if value)
    return _Text((_in_head(Block("paragraph", text, 0, 0), place),) if text else ())


def _in_head(block: Block, place: _Place) -> Block:
    """A block whose text is in the headers of a part."""
    return block._replace(start_line=place.head, end_line=max(place.head, place.body - 2))


def _attachment(message: Message, kind: str, encoding: str, place: _Place) -> _Text:
    """The line that names an attachment, and its content."""
    file_name = header_text(message.get_filename() or "")
    data = cast(bytes, message.get_payload(decode=True) or b"")
    if kind == "message/rfc822":  # It may be encoded.
        inner = "".join(map(str, _children(message))).lstrip("\n").encode("latin-1", "replace")
        with suppress(ValueError):
            data = _DECODE.get(encoding, bytes)(inner)
    suffix = _ATTACHED_TEXT.get(kind) or mimetypes.guess_extension(kind) or ""
    name = basename(file_name.replace("\\", "/"))[-_MAX_KEY_CHARS:] or "attachment"
    name = name if splitext(name)[1] else name + (".eml" if kind == "message/rfc822" else suffix)
    # Parts without a name, such as signatures, are no files of people unless their format is known.
    is_read = kind not in _NOT_READ and bool(file_name or reader_name_for(name))
    shown = file_name or cleaned(kind)
    # Mail programs show a picture in its place, without its name.
    is_picture = kind.startswith("image/") and message.get_content_disposition() != "attachment"
    block = _in_head(Block("list", f"- attachment: {shown}", 0, 0), place)
    attached = ((name, data),) if data and is_read else ()
    return _Text(() if is_picture else (block,), key=shown, attached=attached)


def _alternative(message: Message, path: str, places: _Places, level: int) -> list[_Text]:
    """One form of a text: the plain one, unless it is a stub; and what comes with it."""
    forms: dict[bool, list[_Text]] = {}  # by whether they are plain; the last one is the best
    others: list[_Text] = []
    problem: DocumentError | None = None
    for child in _children(message):
        # The HTML may come with its images, as multipart/related.
        kind = child.get_content_type()
        if kind.startswith("text/") and kind not in ("text/plain", "text/html", "text/calendar"):
            continue  # another form of the same text
        try:
            texts = list(_texts(child, path, places, level))
        except DocumentError as error:
            problem = error
            continue
        others += [text for text in texts if text.key]
        if own := [text for text in texts if not text.key]:
            forms[kind == "text/plain"] = own
    plain, html = forms.get(True, []), forms.get(False, [])
    if problem and not any(text.blocks for text in plain):
        raise problem
    if plain and html:
        shown, missing = _words(html), _words(html) - _words(plain)
        is_stub = len(missing) > _MISSING_SHARE * len(shown)
        plain = [replace(text, hidden=tuple(_missing(text, shown))) for text in plain]
        plain = html if is_stub else plain
    return [*(plain or html), *others]


def _text(part: Message, path: str, place: _Place) -> _Text:
    """The text of a part, with the lines of the message that hold it."""
    raw = cast(bytes, part.get_payload(decode=True))
    payload = str(part.get_payload())
    text, notes = _decoded(raw, part.get_content_charset() or "")
    lines = split_lines(text)
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    rows = _rows(payload, encoding, raw, len(lines))
    if str(part.get_param("delsp")).lower() == "yes":
        lines, rows = _without_soft_breaks(lines, rows)
    is_html = part.get_content_type() == "text/html"
    if is_html:
        page = read_page(text.encode(), path, is_message=True, is_mail=True)
        # Their offsets are not those of the file.
        hidden = tuple(p._replace(start=0, end=0) for p in page.hidden)
        found = replace(page, hidden=hidden, notes=(*notes, *page.notes), found=())
    else:
        found = _Text(tuple(_paragraphs(lines)), notes=notes)
        # Without different rows the places of the lines are not known.
        if encoding == "quoted-printable" and rows[:1] != rows[1:2]:
            wrapped = (place.body + row for first, last in rows for row in range(first, last))
            lines_found = (("wrapped", str(line)) for line in islice(wrapped, _MAX_WRAPPED))
            found = replace(found, found=tuple(lines_found))
    is_same = encoding != "base64" and not is_html
    placed = (_in_rows(block, rows, place.body, is_same) for block in found.blocks)
    return replace(found, blocks=tuple(placed))


def _without_soft_breaks(
    lines: Sequence[str], rows: Sequence[tuple[int, int]]
) -> tuple[list[str], list[tuple[int, int]]]:
    """The lines of a flowed text, and their rows, without the breaks after a space.

    With ``DelSp`` the space goes, too (https://www.rfc-editor.org/rfc/rfc3676#section-4.1).
    """
    parts: list[list[str]] = []
    places: list[tuple[int, int]] = []
    above = ""
    for line, (first, last) in zip(lines, rows, strict=True):
        if above.endswith(" ") and above != "-- " and ">" not in (above[:1], line[:1]):
            parts[-1][-1:] = above[:-1], line
            places[-1] = places[-1][0], last
        else:
            parts.append([line])
            places.append((first, last))
        above = line
    return ["".join(own) for own in parts], places


def _paragraphs(lines: list[str]) -> Iterator[Block]:
    """The paragraphs of a plain text. Those of each quoted message are apart, without its marks.

    So a passage of it has the text of the passage of that message itself.
    """
    for number, (label, at, own) in enumerate(messages(lines)):
        for start, end in runs(own, 0, len(own)):
            block = block_of(own, "paragraph", start, end).moved(at)
            yield block._replace(header=label, anchor=f"{QUOTED} {number}" if label else "")


def _in_rows(block: Block, rows: Sequence[tuple[int, int]], first: int, is_same: bool) -> Block:
    """A block of a part with the lines of its message."""
    start, _ = rows[min(block.start_line, len(rows)) - 1]
    _, end = rows[min(block.end_line, len(rows)) - 1]
    aligned = is_same and end - start == block.text.count("\n")
    return block._replace(start_line=first + start, end_line=first + end, aligned=aligned)


def _rows(payload: str, encoding: str, data: bytes, lines: int) -> list[tuple[int, int]]:
    """The first and the last row of an encoded text that hold each line of the decoded one.

    Rows count from 0. If they do not tell it, as in UTF-16, each line has all rows.
    """
    rows = payload.split("\n")
    if encoding == "base64":
        sizes = [len(row.strip()) * 3 // 4 for row in rows]
    elif encoding == "quoted-printable":
        decoded = (quopri.decodestring(f"{row}\n".encode("latin-1", "replace")) for row in rows)
        sizes = [*map(len, decoded)]
    else:
        sizes = [len(row) + 1 for row in rows]
    ends = list(accumulate(sizes))
    starts = [0, *(match.end() for match in _LINE_BREAK.finditer(data))]
    if abs(ends[-1] - len(data)) > _MAX_PADDING or len(starts) - lines not in (0, 1):
        return [(0, len(rows) - 1)] * max(1, lines)
    bounds = [*starts[:lines], len(data)]
    found = ((bisect_right(ends, a), bisect_right(ends, b - 1)) for a, b in pairwise(bounds))
    return [(min(a, len(rows) - 1), min(b, len(rows) - 1)) for a, b in found] or [(0, 0)]


def _children(message: Message) -> Any:
    return message.get_payload() if message.is_multipart() else ()


def _words(texts: Iterable[_Text]) -> set[str]:
    blocks = (block for text in texts for block in text.blocks)
    return {word for block in blocks for word in _WORD.findall(block.text.lower())}


def _missing(plain: _Text, html_words: Set[str]) -> Iterator[HiddenPart]:
    """The paragraphs of the plain form that the HTML, which people see, lacks."""
    for block in plain.blocks:
        words = _WORD.findall(_ADDRESS.sub("", block.text).lower())
        missing = sum(word not in html_words for word in words)
        if missing >= _MIN_MISSING_WORDS and missing > _MISSING_SHARE * len(words):
            yield HiddenPart("invisible_element", block.text, is_kept=True)


def _decoded(data: bytes, charset: str) -> tuple[str, tuple[str, ...]]:
    """A text in an encoding that a message declares, and notes on what was changed."""
    charset = charset.lower()
    if charset.startswith(("utf-16", "utf-32", "utf-7")):
        with suppress(LookupError, ValueError):
            return cleaned(data.decode(charset)), ()
    try:
        text, notes = decode(data, declared="" if charset in _NO_CHARSETS else charset)
        return cleaned(text), notes
    except DocumentError:
        return cleaned(data.decode("cp1252", "replace")), ("not UTF-8: read as cp1252",)


def header_text(value: object) -> str:
    """A header's value on one line, decoded."""
    source = one_line(str(value)[:_MAX_HEADER_CHARS])
    text, _ = _decoded(source.encode("latin-1", "replace"), "")
    with suppress(MessageError, ValueError, LookupError):
        # A part that is not encoded is a text if it is alone, else bytes.
        parts = [(part, charset or "") for part, charset in decode_header(text)]
        texts = (p if isinstance(p, str) else _word_text(p, charset) for p, charset in parts)
        text = "".join(texts)
    return one_line(cleaned(text))


def _word_text(word: bytes, charset: str) -> str:
    """A part of a header. What is not encoded is as ``decode_header`` returns it."""
    return _decoded(word, charset)[0] if charset else word.decode("raw-unicode-escape")


def _metadata(
    message: Message, blocks: Sequence[Block], attached: Sequence[str]
) -> dict[str, object]:
    # A message without a subject has its first words as title.
    first_words = " ".join(blocks[0].text.split()[:_MAX_TITLE_WORDS]) if blocks else ""
    level = str(message.get("Sensitivity", "")).strip().lower()
    limits = {name: header_text(text) for name, text in message.items() if limiting_key(name)}
    return {
        **limits,
        "sensitivity": "confidential" if level in _CONFIDENTIAL else "",
        "origin": "untrusted" if _is_doubtful(message) else "external",
        "document_type": "mail",
        "title": (header_text(message.get("Subject", "")) or first_words)[:_MAX_TITLE_CHARS],
        "updated_at": _date(message),
        # Keys without a meaning to us become attributes of the document.
        **{name: _people(message, name) for name in ("from", "to", "cc")},
        "attachments": list(dict.fromkeys(filter(None, attached)))[:_MAX_NAMES],
    }


def _is_doubtful(message: Message) -> bool:
    """Whether it is an advertisement or newsletter, counts as spam, or is answered to others.

    By its headers (RFC 2369, RFC 3834, SpamAssassin's). Who takes another one's name often wants
    answers at another domain. A discussion list names an address to which its members write.
    """
    if "List-Post" in message:
        return False
    precedence, spam = (
        str(message.get(name, "")).strip().lower() for name in ("Precedence", "X-Spam-Status")
    )
    sender, answered = (
        {tuple(found.lower().split(".")[-2:]) for found in _DOMAIN.findall(str(message.get(name)))}
        for name in ("From", "Reply-To")
    )
    is_bulk = "List-Unsubscribe" in message or precedence in ("bulk", "junk")
    return is_bulk or spam.startswith("yes") or bool(answered and sender.isdisjoint(answered))


def _date(message: Message) -> str:
    """The date of a message, ISO 8601; empty if it has none."""
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        parsed = parsedate_to_datetime(str(message.get("Date", "")))
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).isoformat()
    return ""


def _people(message: Message, name: str) -> list[str]:
    """The names and addresses of a header, and the names of groups, such as the undisclosed."""
    # Names are decoded after the addresses are split: an encoded name may contain a comma, and some
    # programs do not encode it.
    headers = (one_line(str(v)[:_MAX_HEADER_CHARS]) for v in message.get_all(name, []))
    values = [_ENCODED.sub(lambda word: word[0].replace(",", "=2C"), header) for header in headers]
    found = getaddresses(values)[:_MAX_NAMES]
    if any(address.startswith("@") for _, address in found):  # No comma is between two addresses.
        found = [("", value) for value in values]
    people = (f"{header_text(p)} <{address}>" if p else address for p, address in found)
    groups = (header_text(name) for value in values for name in _GROUP.findall(value))
    return [cleaned(person) for person in (*people, *groups) if person]


# Files


# The line before a message has a time, and the first header is below it. So a sentence that begins
# with "From" is not one, even if the program that wrote it did not quote it.
_FROM_LINE = re.compile(
    rb"(?:\AFrom [^\r\n]{1,300}\d\d:\d\d[^\r\n]{0,100}\r?\n"
    rb"|^From [^\r\n]{1,300}\d\d:\d\d[^\r\n]{0,100}\r?\n(?=[!-9;-~]+:))",
    re.MULTILINE,
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
            place = f"{path}, {anchor}"
            yield _read_message(source, place, key=key, first_line=line, anchor=anchor)
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
    found = [*_FROM_LINE.finditer(data)]
    ends = [*(match.start() for match in found[1:]), len(data)]
    counted, line = 0, 1
    for match, end in zip(found, ends, strict=False):
        line += data.count(b"\n", counted, match.end())
        counted = match.end()
        yield counted, end, line


def _read_emlx(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """A message of Apple Mail: its length in bytes on the first line, and a list below it."""
    length, _, rest = data.partition(b"\n")
    with parser_errors("unreadable_mail", path):
        yield _read_message(rest[: int(length)], path, first_line=2)


def _read_msg(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """A message of Outlook, read as the same message in the usual form, whose lines it has."""
    import oxmsg

    with parser_errors("unreadable_msg", path):
        yield _read_message(bytes(_usual_form(oxmsg.Message.load(data), path)), path)


def _usual_form(message: Any, path: str, level: int = 0) -> EmailMessage:
    """A message of Outlook in the usual form, with the messages that are attached to it.

    Raises:
        DocumentError: ``unreadable_msg``.
    """
    import compressed_rtf
    import oxmsg
    from oxmsg.domain.constants import PID_RTF_COMPRESSED, PID_SENSITIVITY

    from rolebundle.ingest.readers.rtf import text_of

    with parser_errors("unreadable_msg", path):
        headers = {name.lower(): value for name, value in message.message_headers.items()}
        mail = EmailMessage(policy=_OF_OUTLOOK)
        people = [f'"{r.name}" <{r.email_address}>' for r in message.recipients]
        sent = message.sent_date
        for name, value in (
            ("Subject", message.subject),
            ("From", message.sender),
            ("To", headers.get("to") or ", ".join(people)),
            ("Cc", headers.get("cc")),
            ("Date", headers.get("date") or (sent and sent.year > 1601 and format_datetime(sent))),
            ("Sensitivity", message.properties.int_prop_value(PID_SENSITIVITY) and "private"),
            *((name, value) for name, value in headers.items() if limiting_key(name)),
        ):
            if value and one_line(value):
                mail[name] = one_line(value)
        body = message.body or ""
        rtf = message.properties.binary_prop_value(PID_RTF_COMPRESSED)
        if rtf and not (body.strip() or message.html_body):
            body, _hidden = text_of(compressed_rtf.decompress(rtf).decode("latin-1"))
        mail.set_content(cleaned(body), cte="8bit")
        if html := message.html_body:
            mail.add_alternative(html, subtype="html", cte="8bit")
        for file in message.attachments:
            parts = {part.name: part for part in file._storage.storages}
            inner = parts.get(_EMBEDDED) if level < _MAX_FORWARDED else None
            # Other objects than messages have no properties.
            if inner is not None and _PROPERTIES in inner._streams_by_name:
                embedded = oxmsg.Message(_with_long_header(inner))
                mail.add_attachment(_usual_form(embedded, path, level + 1))
                continue
            kind, name = (file.mime_type or "").partition("/"), one_line(file.file_name or "")
            is_kind = kind[0].isalpha() and kind[2].replace("-", "").isalnum()
            major, minor = (kind[0], kind[2]) if is_kind else ("application", "octet-stream")
            mail.add_attachment(file.file_bytes or b"", major, minor, filename=name or "attachment")
    return mail


def _with_long_header(message: Any) -> Any:
    """A message within another one, with eight more bytes before its properties, as a file has."""
    header = message._streams_by_name[_PROPERTIES]
    longer = replace(header, bytes_=header.bytes_[:24] + bytes(8) + header.bytes_[24:])
    return replace(message, streams=(*message._streams_by_name.values(), longer))


READERS = {
    "emlx": (10, _read_emlx),
    "msg": (9, _read_msg),
    "eml": (15, lambda data, path, _separator: [_read_message(data, path)]),
    "mbox": (15, _read_mailbox),
}
