"""The text of Windows metafiles (EMF and WMF), the pictures of embedded objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from struct import error, unpack_from

from rolebundle.text.decoding import one_line

_PLACEABLE = b"\xd7\xcd\xc6\x9a"
_TEXT, _WMF_TEXT = 84, 0x0A32  # EMR_EXTTEXTOUTW and META_EXTTEXTOUT
_GLYPHS = 0x10  # The text is numbers of glyphs.

_Text = tuple[int, int, int, str]
"""Its top, where it begins and ends from the left, and its characters."""


def metafile_lines(data: bytes) -> list[str]:
    """The lines of text of a picture, as they are drawn, up to where it is damaged."""
    lines: list[str] = []
    top = end = quarter = 0
    with suppress(error):
        for y, x, right, text in _emf(data) if data[40:44] == b" EMF" else _wmf(data):
            if lines and y == top:
                lines[-1] += text if abs(x - end) <= quarter else f" {text}"
            else:
                lines.append(text)
            # A gap of less than a quarter of a character is no space.
            top, end, quarter = y, right, (right - x) // max(len(text) * 4, 1)
    return list(filter(None, map(one_line, lines)))


def _emf(data: bytes) -> Iterator[_Text]:
    at = 0
    while at + 8 <= len(data):
        kind, size = unpack_from("<II", data, at)
        if kind == _TEXT:
            x, y, count, offset, options = unpack_from("<iiIII", data, at + 36)
            (widths,) = unpack_from("<I", data, at + 72)
            text = data[at + offset : at + min(offset + count * 2, size)]
            advance = data[at + widths : at + min(widths + count * 4, size)]
            if not options & _GLYPHS:
                right = x + sum(unpack_from(f"<{len(advance) // 4}I", advance))
                yield y, x, right, text.decode("utf-16-le", "ignore")
        at += max(size, 8)


def _wmf(data: bytes) -> Iterator[_Text]:
    """Texts whose characters depend on a font are only read if they are ASCII."""
    at = 40 if data.startswith(_PLACEABLE) else 18
    while at + 6 <= len(data):
        size, kind = unpack_from("<IH", data, at)
        if kind == _WMF_TEXT:
            y, x, count, options = unpack_from("<hhhH", data, at + 6)
            start = at + (22 if options & 6 else 14)
            text = data[start : min(start + count, at + size * 2)]
            yield y, x, -1, text.decode("ascii") if text.isascii() else ""
        at += max(size * 2, 6)
