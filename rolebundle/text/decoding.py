"""Bytes to text and text to lines, in the same way for every reader.

A locator ``path:start-end`` counts the lines that ``split_lines`` returns for the decoded file.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress

from rolebundle.errors import DocumentError, with_detail
from rolebundle.text.words import counted

_HEAD = 8192
_BOMS = (
    # UTF-32 first: its little-endian mark begins with the one of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_REPLACEMENT = "\ufffd"
_INVALID = re.compile(r"[\x00\ud800-\udfff]")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]")
# With a larger share of non-ASCII bytes the text is probably not Western, and cp1252 is wrong.
_MAX_WESTERN_SHARE = 0.25


def split_lines(text: str) -> list[str]:
    r"""The lines of ``text``, split at ``\n``, ``\r\n`` and ``\r``.

    ``str.splitlines`` also splits at form feeds, U+2028 and others, which editors do not count.
    """
    lines = with_newlines(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def with_newlines(text: str) -> str:
    r"""``text`` with ``\n`` for each line break that ``split_lines`` recognizes."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def clean(text: str) -> tuple[str, int]:
    """Replace NULs and unpaired surrogates by U+FFFD; return the text and their number."""
    with suppress(UnicodeEncodeError):
        # Encoding is the fastest test for surrogates: ten times as fast as a pattern.
        text.encode()
        if "\x00" not in text:
            return text, 0
    return _INVALID.subn(_REPLACEMENT, text)


def cleaned(text: str) -> str:
    """The text of :func:`clean`."""
    return clean(text)[0]


def one_line(text: str) -> str:
    """``text`` with each run of white space as one space, and none at its ends."""
    return " ".join(text.split())


def cleaned_note(count: int) -> tuple[str, ...]:
    """The note on ``count`` replaced characters; empty if there are none."""
    return (f"{counted(count, 'NUL or surrogate character')} replaced by U+FFFD",) if count else ()


def decode(data: bytes, path: str = "", declared: str = "") -> tuple[str, tuple[str, ...]]:
    """The text of a file without NULs, and notes on what was changed to decode it.

    Encodings: the one of the byte order mark, else UTF-8, else the declared one. If that is not
    known and the text looks Western, its lines that are not UTF-8 are cp1252.

    Args:
        data: the file.
        path: its path, for messages.
        declared: the name of the encoding, in lower case, that the text itself declares, if any.

    Raises:
        DocumentError: ``undecodable``.
    """
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    notes: tuple[str, ...] = ()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if declared and encoding == "utf-8":
            # Browsers decode pages that declare Latin-1 as cp1252.
            declared = "cp1252" if declared in {"iso-8859-1", "latin1", "us-ascii"} else declared
            with suppress(LookupError, UnicodeError):
                text, count = clean(data.decode(declared))
                return text, cleaned_note(count)
        high = len(_HIGH.findall(data))
        is_western = high <= len(data) * _MAX_WESTERN_SHARE and not _CONTROL.search(data)
        if encoding != "utf-8" or not is_western or b"\x00" in data:
            raise DocumentError(
                "undecodable",
                f"{path or 'the document'}: it is no text, or in an unknown encoding",
                with_detail("convert it to UTF-8, or exclude it", error),
            ) from error
        # Change logs of many years have lines in several encodings.
        text = "".join(map(_line, data.splitlines(keepends=True)))
        notes = ("not UTF-8: read as cp1252",)
    # Decoders never return surrogates, so only NULs need to be replaced.
    count = text.count("\x00")
    return text.replace("\x00", _REPLACEMENT), notes + cleaned_note(count)


def looks_binary(data: bytes) -> bool:
    """Whether ``data`` is not text: a NUL near the start and no byte order mark."""
    return b"\x00" in data[:_HEAD] and not any(data.startswith(mark) for mark, _ in _BOMS)


def _line(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
