"""From bytes to text and from text to lines, the same way for every reader.

A locator ``path:start-end`` counts the lines that ``split_lines(decode(data))`` gives.
"""

from __future__ import annotations

import codecs
import re

from rolebundle.errors import DocumentError

_HEAD = 8192
_BOMS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_REPLACEMENT = "\ufffd"
_NOT_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]")
# Above this share of bytes beyond ASCII, cp1252 is a guess that turns Cyrillic into gibberish.
_WESTERN_SHARE = 0.25


def split_lines(text: str) -> list[str]:
    r"""The lines of ``text``, cut at ``\n``, ``\r\n`` and ``\r``.

    ``str.splitlines`` also cuts at form feeds, U+2028 and others, which no editor counts.
    """
    lines = with_newlines(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def with_newlines(text: str) -> str:
    r"""``text`` with ``\n`` for every line break that ``split_lines`` cuts at."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def clean(text: str) -> tuple[str, int]:
    """``text`` with NULs and lone surrogates replaced by U+FFFD, and how many there were."""
    try:
        # Encoding is the quickest way to look for surrogates, ten times as fast as a pattern.
        text.encode()
    except UnicodeEncodeError:
        return _NOT_TEXT.subn(_REPLACEMENT, text)
    if "\x00" in text:
        return _NOT_TEXT.subn(_REPLACEMENT, text)
    return text, 0


def cleaned_note(count: int) -> tuple[str, ...]:
    """What to say about ``count`` replaced characters."""
    return (f"{count} NUL or surrogate characters replaced by U+FFFD",) if count else ()


def decode(data: bytes, path: str = "") -> str:
    """The text of a file, cleaned.

    Raises:
        DocumentError: ``undecodable``.
    """
    return decode_noting(data, path)[0]


def decode_noting(data: bytes, path: str = "") -> tuple[str, tuple[str, ...]]:
    """The text of a file, cleaned, and notes on what had to be done for it.

    Raises:
        DocumentError: ``undecodable``.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _finish(_strictly(data, encoding, path), ())
    try:
        return _finish(data.decode("utf-8"), ())
    except UnicodeDecodeError as error:
        return _finish(_western(data, path, error), ("not UTF-8: read as cp1252",))


def looks_binary(data: bytes) -> bool:
    """Whether ``data`` is no text: a NUL near its start, and no mark of an encoding with NULs."""
    return b"\x00" in data[:_HEAD] and not any(data.startswith(mark) for mark, _ in _BOMS)


def _finish(text: str, notes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    # No decoder gives surrogates.
    count = text.count("\x00")
    return text.replace("\x00", _REPLACEMENT), notes + cleaned_note(count)


def _strictly(data: bytes, encoding: str, path: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(path, str(error)) from error


def _western(data: bytes, path: str, why_not_utf8: UnicodeDecodeError) -> str:
    high = len(_HIGH.findall(data))
    if high > len(data) * _WESTERN_SHARE or _CONTROL.search(data) or b"\x00" in data:
        raise _undecodable(path, str(why_not_utf8)) from why_not_utf8
    return _strictly(data, "cp1252", path)


def _undecodable(path: str, reason: str) -> DocumentError:
    return DocumentError(
        "undecodable",
        f"{path or 'the document'}: not readable as text: {reason}",
        "convert it to UTF-8, or exclude it",
    )
