"""Addresses, paths, hashes, versions and identifiers of a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from rolebundle.text.figures import patterns
from rolebundle.text.figures.reader import FigureReader
from rolebundle.text.figures.values import (
    FigureKind,
    Reading,
    canonical_address,
    canonical_identifier,
    canonical_url,
    canonical_version,
    digits_of,
    measured_readings,
)


def read_address(reader: FigureReader, start: int) -> bool:
    """Read an address, a path, a hash or a constant that begins here."""
    if start == reader.tried:
        return False
    reader.tried = start
    low, stop = reader.low, start + patterns.MAX_CHUNK
    chunk_match = patterns.CHUNK.match(low, start, stop)
    if chunk_match is None:
        return False
    chunk = chunk_match[0]
    is_url = "://" in chunk or chunk.startswith("www.")
    if is_url and (match := patterns.URL.match(low, start, start + patterns.MAX_URL)):
        return _url(reader, match)
    for sign, pattern, kind, canonical in _ADDRESSES:
        if sign in chunk and (match := pattern.match(low, start, stop)):
            reader.add(start, match.end(), Reading(kind, canonical(match[1])))
            return True
    if match := patterns.HEX.match(low, start, stop):
        readings = measured_readings(Fraction(int(match[1], 16)), ())
        reader.add(start, match.end(), Reading("identifier", match[0]), *readings)
        return True
    if match := patterns.CONSTANT.match(reader.text, start, stop):
        reader.add(start, match.end(), Reading("identifier", canonical_identifier(match[0])))
        return True
    return _path(reader, start, chunk)


def _url(reader: FigureReader, match: re.Match[str]) -> bool:
    text = match[0].rstrip(patterns.TRAILING)
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip(patterns.TRAILING)
    start = match.start()
    # Paths of addresses are compared with their case.
    reader.add(
        start,
        start + len(text),
        Reading("url", canonical_url(reader.text[start : start + len(text)])),
    )
    return True


def _path(reader: FigureReader, start: int, chunk: str) -> bool:
    low = reader.low
    if (
        "." in chunk
        and (match := patterns.HOST.match(low, start, start + patterns.MAX_CHUNK))
        and not patterns.FILE.fullmatch(match[0])
    ):
        return _url(reader, match)
    has_slash = "/" in chunk or "\\" in chunk
    match = (
        patterns.PATH.match(low, start, start + patterns.MAX_CHUNK)
        if has_slash
        else patterns.FILE.match(low, start, start + patterns.MAX_CHUNK)
        if "." in chunk
        else None
    )
    if match is None:
        return False
    text = match[0].rstrip(patterns.TRAILING + "/\\")
    path, _, line = re.sub(r"[:](?=\d+(?:-\d+)?$)", "\0", text).partition("\0")
    is_rooted = re.match(r"(?:[a-z]:[\\/]|~/|\.{1,2}[\\/]|/)[\w.@-]{2}", path)
    if not re.search(r"[a-z]", path) or not (is_rooted or patterns.FILE.search(path)):
        return False
    path = path.replace("\\", "/").removeprefix("./")
    reader.add(start, start + len(text), Reading("path", f"{path}:{line}" if line else path))
    return True


def read_version(reader: FigureReader, start: int, chunk: str) -> bool:
    """Read a version: 1.2.3, v2, 1.0.0-rc.1."""
    match = patterns.VERSION.match(reader.low, start, start + patterns.MAX_CHUNK)
    if match is None:
        return False
    number = match[2]
    plain = number.replace(".", "").isdecimal()
    if not match[1] and number.count(".") < (2 if plain else 1):
        return False
    if match[1] and match[1][0] == "v" and match[1].strip(". ") not in ("v", "ver", "version"):
        return False
    readings = [Reading("version", canonical_version(number))]
    grouped = re.fullmatch(r"\d{1,3}(?:\.\d{3})+", number)
    if grouped and not match[1]:
        if re.match(r",\d", reader.low[match.end() : match.end() + 2]):
            return False
        value = Fraction(number.replace(".", ""))
        readings.append(Reading("number", value, "", value))
        if reader.comma:
            return False
    reader.add(start, match.end(), *readings)
    return True


def read_identifier(reader: FigureReader, start: int) -> bool:
    """Letters with digits: CVE-2024-1234, RFC9110, E0308, x86-64."""
    match = patterns.IDENTIFIER.match(reader.low, start, start + patterns.MAX_CHUNK)
    if match is None:
        return False
    text = match[0].rstrip("_")
    if text[0] != "#" and not re.search(r"\d", text):
        return False
    reader.add(start, start + len(text), Reading("identifier", canonical_identifier(text)))
    return True


_ADDRESSES: tuple[tuple[str, re.Pattern[str], FigureKind, Callable[[str], str]], ...] = (
    ("@", patterns.MAIL, "mail", str),
    ("-", patterns.UUID, "hash", str),
    (".", patterns.IP, "address", str),
    ("10.", patterns.DOI, "identifier", str),
    ("-", patterns.MAC, "address", lambda text: text.replace("-", ":")),
    (":", patterns.MAC, "address", str),
    (":", patterns.IP6, "address", canonical_address),
    ("+", patterns.PHONE, "identifier", digits_of),
    ("", patterns.HASH, "hash", str),
)
"""A sign, and the pattern of an address that contains it; its kind and canonical form."""
