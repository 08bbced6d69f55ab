"""Bytes to text and text to lines, in the same way for every reader.

A locator ``path:start-end`` counts the lines that ``split_lines`` returns for the decoded file.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress

import webencodings

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
_REPLACEMENT_BYTES = _REPLACEMENT.encode()
_DECLARED = re.compile(
    rb"\A<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{2,40})"
    rb"|\A@charset\s+\"([\w.:-]{2,40})\""
    rb"|\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([\w.-]{2,40})"
    rb"|\"Content-Type:[^\n]{0,80}charset=([\w.:-]{2,40})"
    rb"|\\usepackage\[([\w-]{2,40})\]\{inputenc\}"
)
"""The declarations of XML, CSS, Python (and editors), PO files and LaTeX."""
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE
)
_MAX_META = 1_000_000
"""How far the declaration of a page is looked for, in bytes; browsers look further, too."""
_MAX_REPLACED_SHARE = 0.05
_SUPERSETS = {"gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs"}
"""Encodings that the standard reads as a larger one than Python."""
_INVALID = re.compile(r"[\x00\ud800-\udfff]")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]")
# With a larger share of non-ASCII bytes the text is probably not Western, and cp1252 is wrong.
_MAX_WESTERN_SHARE = 0.25
_HIGH_WORD = re.compile(rb"[\x80-\xff]{4,}")
_MIN_GUESSED = 20
"""From so few bytes that are not ASCII no encoding is guessed."""
_GUESSED = (
    "cp1251 koi8_r koi8_u cp866 iso8859_5 cp1253 cp1255 cp1256 cp874 cp932 gb18030 big5 cp949"
).split()


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


def cleaned_values(value: object) -> object:
    """A value, as of JSON, with its texts and keys cleaned."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, list):
        return [cleaned_values(item) for item in value]
    if isinstance(value, dict):
        return {cleaned(key): cleaned_values(item) for key, item in value.items()}
    return value


def one_line(text: str) -> str:
    """``text`` with each run of white space as one space, and none at its ends."""
    return " ".join(text.split())


def cleaned_note(count: int) -> tuple[str, ...]:
    """The note on ``count`` replaced characters; empty if there are none."""
    return (f"{counted(count, 'NUL or surrogate character')} replaced by U+FFFD",) if count else ()


def decode(data: bytes, path: str = "", declared: str = "") -> tuple[str, tuple[str, ...]]:
    """The text of a file without NULs, and notes on what was changed to decode it.

    Encodings: the one of the byte order mark, else UTF-8, else the declared one, by its label in
    the WHATWG's Encoding Standard. If that is not known, it is guessed for words of other letters
    than Latin ones; if the text looks Western, its lines that are not UTF-8 are cp1252.

    Args:
        data: the file.
        path: its path, for messages.
        declared: the label of the encoding that the format declares; if it is empty, the beginning
            of the text is searched for the usual declarations.

    Raises:
        DocumentError: ``undecodable``.
    """
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    label = declared if encoding == "utf-8" else ""
    if b"\x1b" in data[:_HEAD] and "2022" in label:  # it is also valid UTF-8
        text, count = _declared_text(data, label)
        return text, cleaned_note(count)
    notes: tuple[str, ...] = ()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            text, count = _declared_text(data, label or declared_encoding(data))
            if text and count <= len(text) * _MAX_REPLACED_SHARE:
                return text, cleaned_note(count)
        high = len(_HIGH.findall(data))
        is_western = high <= len(data) * _MAX_WESTERN_SHARE and not _CONTROL.search(data)
        is_text = is_western or not _line(data)[1]
        words = sum(map(len, _HIGH_WORD.findall(data)))
        if encoding == "utf-8" and words > high / 2 and (guessed := _guessed_encoding(data, high)):
            return data.decode(guessed, "replace"), (f"not UTF-8: read as {guessed}",)
        if encoding != "utf-8" or not is_text or b"\x00" in data:
            raise DocumentError(
                "undecodable",
                f"{path or 'the document'}: it is no text, or in an unknown encoding",
                with_detail("convert it to UTF-8, or exclude it", error),
            ) from error
        # Change logs of many years have lines in several encodings.
        lines = [_line(line) for line in data.splitlines(keepends=True)]
        text = "".join(text for text, _ in lines)
        is_cp1252 = any(is_cp1252 for _, is_cp1252 in lines)
        notes = ("not UTF-8: read as cp1252",) if is_cp1252 else ()
    # Decoders never return surrogates, so only NULs need to be replaced.
    text = text.replace("\x00", _REPLACEMENT)
    return text, notes + cleaned_note(text.count(_REPLACEMENT) - data.count(_REPLACEMENT_BYTES))


def _guessed_encoding(data: bytes, high: int) -> str:
    """The encoding in which words without Latin letters make sense; empty if none is likely."""
    if high < _MIN_GUESSED or _CONTROL.search(data) or b"\x00" in data or not _line(data)[1]:
        return ""
    from charset_normalizer import from_bytes

    # Half of a text of Japanese is hiragana.
    is_japanese = data.count(b"\xa4") > high / 8
    best = from_bytes(data, cp_isolation=["euc_jp"] if is_japanese else _GUESSED).best()
    return best.encoding if best else ""


def declared_encoding(data: bytes) -> str:
    """The label of the encoding that a text declares for itself; empty if there is none."""
    match = _DECLARED.search(data[:_HEAD]) or _META_CHARSET.search(data[:_MAX_META])
    return next(filter(None, match.groups())).decode("ascii").lower() if match else ""


def _declared_text(data: bytes, label: str) -> tuple[str, int]:
    """The text in an encoding, and how many characters were replaced; empty if it is not known."""
    label = label.replace("latin-", "latin")
    known = webencodings.lookup(label)
    name = _SUPERSETS.get(known.name, known.codec_info.name) if known else label
    if not label or name.startswith(("utf", "x-")):
        return "", 0
    try:
        text = codecs.decode(data, name, "replace")
    except (LookupError, UnicodeError):
        return "", 0
    text, _ = clean(text)
    return text, text.count(_REPLACEMENT)


def looks_binary(data: bytes) -> bool:
    """Whether ``data`` is not text: a NUL near the start and no byte order mark."""
    return b"\x00" in data[:_HEAD] and not any(data.startswith(mark) for mark, _ in _BOMS)


def _line(data: bytes) -> tuple[str, bool]:
    """A line, and whether it is cp1252. If most of its letters are UTF-8, one byte is damaged."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        valid = sum(ord(character) > 127 for character in text) - text.count(_REPLACEMENT)
        if valid > text.count(_REPLACEMENT):
            return text, False
        return data.decode("cp1252", "replace"), True
