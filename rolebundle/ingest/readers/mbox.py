"""A mailbox: one document per message.

One message at a time is decoded, so that a large mailbox takes little memory besides its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions
from rolebundle.ingest.readers.mail import read_message, source_text

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
_QUOTED_FROM = re.compile(r"^>(?=>*From )", re.MULTILINE)


def _read(
    data: bytes, path: str, _options: ReaderOptions
) -> Iterable[ParsedDocument | DocumentError]:
    """One document per message; its key is its Message-ID. Bad messages are reported.

    Raises:
        DocumentError: ``unreadable_mailbox``.
    """
    keys: set[str] = set()
    number = deleted = 0
    for number, (start, end, line) in enumerate(_messages(data), 1):
        source = _QUOTED_FROM.sub("", source_text(data[start:end]))
        head = source[: source.find("\n\n")]
        if _DELETED.search(head):
            deleted += 1
            continue
        anchor = f"message {number}"
        key = _key(head, number, keys)
        try:
            yield read_message(source, f"{path}, {anchor}", key=key, first_line=line, anchor=anchor)
        except DocumentError as error:
            yield error
    if deleted:
        yield DocumentError(
            "deleted_mail",
            f"{path}: {deleted} messages are marked as deleted",
            "nothing; the mail program removes them when it compacts the mailbox",
        )
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


def _key(head: str, number: int, used: set[str]) -> str:
    """A name for the message that no other one of the file has."""
    found = _MESSAGE_ID.search(head)
    name = _NOT_IN_KEYS.sub("-", found[1])[:_MAX_KEY_CHARS].strip("-") if found else ""
    key, n = name or f"message-{number}", 1
    while key in used:
        n += 1
        key = f"{name}-{n}"
    used.add(key)
    return key


READER = Reader("mbox", 1, _read)
