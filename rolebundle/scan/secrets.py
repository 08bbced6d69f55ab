"""Secrets in a text: keys, tokens and passwords, by the formats that their issuers publish.

The formats come from the issuers' documentation (GitHub's and GitLab's token formats, AWS's unique
identifiers, RFC 7468 for keys, RFC 7519 for JSON Web Tokens, RFC 7617 for Basic authorization, …).
A fixed prefix is sufficient. A value that only its name or its place calls a secret must look
random too.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap
from math import log2
from typing import Literal, NamedTuple

from rolebundle.resources import data_file
from rolebundle.scan.finding import Finding
from rolebundle.scan.linear import compiled
from rolebundle.scan.note_passwords import LABEL, PAIR, Span, is_common, labelled, paired

# A private key of 16,384 bits has 13 kB; keys in PGP blocks are larger.
_MAX_KEY_CHARS = 65_536
_MIN_KEY_RUN = 32
_MIN_KEY_BITS = 2.5

_HEX = "[0-9a-fA-F]"
_QUOTED = r"\"[^\"\s]{6,}\"|'[^'\s]{6,}'|`[^`\s]{6,}`"
_VALUE = rf"(?:{_QUOTED}|[^\s\"'`<>]{{6,}})"
Value = Literal["whole", "password", "key", "token", "basic", "label", "pair"]
"""How a match is judged: a ``whole`` match by its entropy; a value that follows a name by its kind.

A ``password`` has 8 characters or more, a ``key`` 12, a ``token`` 16. A ``basic`` one is the base64
of a user and a password. A ``label`` and a ``pair`` are the passwords of notes.
"""
_MIN_CHARS = {"password": 8, "key": 12, "token": 16}
_MIN_BITS = {"password": 2.5, "key": 2.75, "token": 2.9}


class Format(NamedTuple):
    """The format of one kind of secret.

    Args:
        kind: its name. The finding's kind is ``secret_`` and this name.
        begins: an RE2 expression for its beginning. For a named value, everything before the value.
        goes_on: an RE2 expression for the rest; by default a value in quotes or without them.
        min_bits: the lowest entropy per character of a ``whole`` match, in bits.
        value: how the match is judged. All but ``whole`` report and mask the value only.
    """

    kind: str
    begins: str
    goes_on: str = _VALUE
    min_bits: float = 2.5
    value: Value = "whole"


# `name = `, `"name": `, `name := `, `['name'] = `, `define('NAME', `, `<name>`, `--name `.
_SIGN = r"(?:[\"'\]\\]{0,3}[ \t]{0,8}(?::=|=>|=|:)[ \t]{0,8}\\?|[\"'],[ \t]{0,8}|>)"
_OPTION = r"(?i:\s--?(?:[a-z]+-)?"


def _named_formats(value: Value, alternatives: Sequence[str]) -> list[Format]:
    names = "|".join(alternatives)
    return [
        Format("named_secret", rf"(?i:{names}){_SIGN}", value=value),
        Format("named_secret", rf"{_OPTION}(?:{names}))[ \t]{{1,4}}", value=value),
    ]


TABLE = data_file(__file__, "findings.toml")
"""What is found, and how much it weighs."""
PERSONAL = tuple(Format(**row) for row in TABLE["personal"])
"""The formats of personal data."""
FORMATS = (
    *(Format(**row) for row in TABLE["secrets"]),
    *chain.from_iterable(starmap(_named_formats, TABLE["names"].items())),
    Format("password", LABEL, "", value="label"),
    Format("password", PAIR, "", value="pair"),
)


def expression(name: str) -> re.Pattern[str]:
    """A list of alternatives in the data file, without regard to case."""
    return re.compile("|".join(TABLE["expressions"][name]), re.IGNORECASE)


_PLACEHOLDER = expression("placeholder")
_PLACEHOLDER_VALUE = expression("placeholder_value")
_REFERENCE = expression("reference")
_WORDS = re.compile(
    r"(?:[A-Za-z]+\d{0,4}|\d{1,4})(?:(?:[-_.:/@+]{1,3}|%20)(?:[A-Za-z]+\d{0,4}|\d{1,4}))*[!?.]*"
)
"""The names of things: words with few digits at their ends."""
_EXPRESSION = re.compile(
    r"[A-Za-z_$][\w$.?]*(?:\(|\[[^\]]*(?:\]|$))"
    r"|(?i:[a-z_$][\w$.?]*(?:passw|secret|token|key|credential)\w*[,;)]*$)"
    r"|[a-z_]\w*(?:\.[A-Z_]+)+$|.*(?:&&|\|\|)"
)
"""Code without quotes: a call, a subscript, a type, or the name of another secret."""
_IPV6 = re.compile(rf":{_HEX}{{1,4}}:{_HEX}{{0,4}}:{_HEX}{{1,4}}")
_CASE_CHANGE = re.compile("[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_NO_VALUE_STARTS = {"=": "$%{<([", ":": "$%{<([!&*@|>"}
_STOPS = re.compile(r"[,;)}\]|\\]|&\w+=")
_KEY_RUN = re.compile(rf"[A-Za-z0-9+/=]{{{_MIN_KEY_RUN},}}")
_KEY_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s\\]|[A-Z][A-Za-z-]+: [^\n]*\n)*")
_TOKEN_RUN = re.compile(r"(?:[\w/+=-]|\.(?=[\w-]))*")
_UNBOUNDED = frozenset({"json_web_token", "onepassword_token", "grafana_token"})
"""Formats that may be longer than the longest match."""
_BASE64_RUN = 24
_KEY_CHARS = re.compile(r"[A-Za-z0-9+/]+")


def masked(text: str, findings: Iterable[Finding]) -> str:
    """The text with each secret replaced by its kind. Line numbers stay the same."""
    parts: list[str] = []
    copied_until = 0
    for finding in findings:
        if not finding.kind.startswith("secret_") or finding.start < copied_until:
            continue
        lines = text.count("\n", finding.start, finding.end)
        kind = finding.kind.removeprefix("secret_")
        parts += (text[copied_until : finding.start], f"[masked: {kind}]", "\n" * lines)
        copied_until = finding.end
    parts.append(text[copied_until:])
    return "".join(parts)


def places(format_: Format, text: str, start: int, end: int, matched: str) -> Iterator[Span]:
    """Start and end of each secret that a match finds."""
    if format_.value == "label":
        yield from labelled(text, start)
    elif format_.value == "pair":
        yield from paired(text, start)
    elif format_.kind == "private_key":
        yield from _private_key(text, start, end, matched)
    elif format_.kind == "putty_key":
        last = text.find("\nPrivate-MAC: ", end, end + _MAX_KEY_CHARS)
        if last > 0:
            yield start, _end_of_run(text, last + len("\nPrivate-MAC: "))
    elif format_.kind == "password_hash":
        if text[start - 1 : start] == ":":  # As in the files of passwords; others may be examples.
            yield start, end
    elif format_.value != "whole":
        yield from _named(format_, text, start, end, matched)
    elif _entropy(matched) >= format_.min_bits and not _is_inside_base64(text, start):
        stop = _end_of_run(text, end) if format_.kind in _UNBOUNDED else end
        if not _PLACEHOLDER.search(_decoded_payload(matched)):
            yield start, stop


def _named(format_: Format, text: str, start: int, end: int, matched: str) -> Iterator[Span]:
    """The place of a value that its name or its place calls a secret."""
    prefix = compiled(format_.begins).match(matched.encode("utf-8", "replace"))
    before = prefix.group().decode("utf-8", "replace")
    value_start, value = _value(before, matched[len(before) :])
    if format_.value == "basic":
        is_secret = _is_random(_base64_text(value).partition(":")[2], "password")
    else:
        is_address = format_.kind == "pgpass_password" and _IPV6.match(matched)
        is_public = re.search(r"(?i:public)[_-]?(?i:key)?[_-]?$", text[max(0, start - 12) : start])
        is_secret = not is_address and not is_public and _is_random(value, format_.value)
    if is_secret and (not before.endswith(">") or text[end : end + 2] == "</"):
        start += len(before) + value_start
        yield start, start + len(value)


def _value(before: str, text: str) -> tuple[int, str]:
    """The value that follows a name, without its quotes, and its offset; empty without one."""
    if text[0] in "\"'`" and text[-1] == text[0]:
        return 1, text[1:-1]
    if before.endswith(":") and "://" in before:
        return 0, text.removesuffix("@")
    sign = before.rstrip()[-1:]
    if text[0] in _NO_VALUE_STARTS.get(sign, "$<{"):
        return 0, ""
    if before.endswith("=") and before[:-1].isupper() and not _EXPRESSION.match(text):
        return 0, text  # A variable of the environment: a whole word, whatever its characters.
    if sign == "," or "(" in text or _EXPRESSION.match(text):
        return 0, ""  # Another argument, or code.
    stop = _STOPS.search(text)
    return 0, text[: stop.start()] if stop else text.rstrip(".:?!")


def _is_random(value: str, kind: str) -> bool:
    """Whether a value looks like a password, a key or a token, and not like a name or a word."""
    if len(value) < _MIN_CHARS[kind]:
        return False
    if _PLACEHOLDER.search(value) or _PLACEHOLDER_VALUE.search(value) or _REFERENCE.match(value):
        return False
    if is_common(value):
        return False
    has_digit, has_lower, has_upper = (
        any(map(is_kind, value)) for is_kind in (str.isdigit, str.islower, str.isupper)
    )
    if not (has_lower or has_upper) or _entropy(value) < _MIN_BITS[kind]:
        return False
    # Random letters change their case at every second place, most words in CamelCase do not.
    if len(_CASE_CHANGE.findall(value)) * 3 > len(value):
        return True
    has_all = has_lower and has_upper and not value.isalnum()
    return (has_digit or (kind == "password" and has_all)) and not _WORDS.fullmatch(
        value.lstrip("/.~")
    )


def _private_key(text: str, start: int, end: int, matched: str) -> Iterator[Span]:
    """The place of a key with its material. A header alone is no secret."""
    if not matched.startswith("-"):  # The base64 of a key.
        if "PRIVATE KEY" in _base64_text(matched[:400]):
            yield start, _end_of_run(text, end)
        return
    last = text.find("-----END ", end, end + _MAX_KEY_CHARS)
    next_key = text.find("-----BEGIN ", end, end + _MAX_KEY_CHARS)
    if last < 0 or 0 <= next_key < last:
        body = _KEY_BODY.match(text, end, end + _MAX_KEY_CHARS)
        last = stop = body.end() if body else end
    else:
        dashes = text.find("-----", last + 9, last + 80)
        stop = dashes + 5 if dashes >= 0 else last + 9
    material = "".join(_KEY_RUN.findall(text, end, last))
    if not _PLACEHOLDER.search(material) and _entropy(material) >= _MIN_KEY_BITS:
        yield start, stop


def _end_of_run(text: str, end: int) -> int:
    run = _TOKEN_RUN.match(text, end, end + _MAX_KEY_CHARS)
    return run.end() if run else end


def _is_inside_base64(text: str, start: int) -> bool:
    """Whether the text before an offset is a long run of base64, such as that of an image."""
    before = text[max(0, start - _BASE64_RUN) : start]
    return len(before) == _BASE64_RUN and _KEY_CHARS.fullmatch(before) is not None


def _decoded_payload(matched: str) -> str:
    """A match with the payload of a JSON Web Token, whose examples are readable only there."""
    if not matched.startswith("eyJ"):
        return matched
    return matched + _base64_text(matched.split(".")[1])


def _base64_text(value: str) -> str:
    """The text that a value encodes; empty if it encodes none."""
    value = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(value + "=" * (-len(value) % 4)).decode("utf-8", "replace")
    except ValueError:
        return ""


def _entropy(value: str) -> float:
    """Shannon's entropy in bits per character; 0 for the empty text."""
    total = len(value)
    return -sum(n / total * log2(n / total) for n in Counter(value).values())
