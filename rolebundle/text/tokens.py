"""What a text says, apart from its typography and markup.

Two texts with the same tokens say the same. White space, invisible characters, emphasis, strikes,
code fences, backticks, escapes, HTML's entities, the marks of headings, lists, links, blockquotes
and roles (``:ref:``), lines without a letter or a digit, and the forms of quotation marks and
dashes make no difference. Case and the marks of letters do. Other forms of characters do not, as
`spellings.py` says: m² is m2, and 10² is not 102.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from html import unescape
from itertools import accumulate
from typing import NamedTuple

from rolebundle.text.languages import UNSPACED
from rolebundle.text.spellings import folded

Range = tuple[int, int]


class Tokens(NamedTuple):
    """``line`` has a space before, between and after the tokens.

    Attributes:
        line: the tokens on one line.
        spans: the range of each token in the text.
        starts: where each token begins in ``line``.
    """

    line: str
    spans: Sequence[tuple[int, int]]
    starts: Sequence[int]


_INVISIBLE = "\u00ad\u180e\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff"
_LETTER = rf"(?:[^\W\d_ʼʹ]|[\u0300-\u036f\u0900-\u0dff{_INVISIBLE}])"
_SKIPPED = (
    r"(?m:^[ \t]*(?:>[ \t]?)+(?![ \t]*[-−+.\d$€£])|^[ \t]*(?:[-*+•]|#{1,6})[ \t]+"
    r"|^[ \t]*`{3,}.*$|^[^\w\s]{3,}$)"
    r"|\\(?=[!-/:-@\[-`{-~])|\]\([^()\s]*(?:[ \t]+\"[^\"\n]*\")?\)|[\[\]`*]|~~"
    rf"|[{_INVISIBLE}]|:[a-z][\w:+-]*:(?=`)|(?<=`)~(?=\w)(?:\w+\.)*|\s<[^<>`\n]+>(?=`)"
    r"|(?<!\w)_+|_+(?!\w)"
)
_WORD = rf"{_LETTER}+(?:_+{_LETTER}+)*"
_DIVIDED = rf"{_WORD}(?:(?<=\w\w)[-‐][ \t]*\r?\n[ \t>]*(?=[^\W\d_][^\W\d_]){_WORD})*"
_PATTERNS = [
    re.compile(
        rf"(?P<skipped>{_SKIPPED})|&#?\w+;|\d+(?:[.,:/]\d+)*|[{UNSPACED}]|{word}|\.{{3,4}}|-{{2,3}}|\S"
    )
    for word in (_WORD, _DIVIDED)
]
_LINK_LABEL = re.compile(r"(?<![\w\])])\[[^\[\]]+\](\[[^\[\]\n]+\])")  # Of a link: [text][label].
_REMOVED = re.compile(rf"[{_INVISIBLE}]|[-‐][ \t]*\r?\n[ \t>]*")
_FORMS = str.maketrans(
    dict.fromkeys('“”„‟«»″〝〞〟「」『』"‘’‚‛‹›′´ʼʻʹ', "'")
    | dict.fromkeys("‐‑‒–—―−⁃⸺⸻﹘﹣", "-")
    | {"…": "..."}
)


@lru_cache(maxsize=1024)
def tokens_of(text: str, *, joins_lines: bool = False) -> Tokens:
    """The tokens of a text. ``joins_lines``: a hyphen at the end of a line divides a word."""
    found, spans = [], []
    labels = [match.span(1) for match in _LINK_LABEL.finditer(text)]
    for match in _PATTERNS[joins_lines].finditer(text):
        if match["skipped"] is not None or is_inside(match.start(), labels):
            continue
        if token := _canonical(match[0]):
            found.append(token)
            spans.append(match.span())
    starts = [*accumulate((len(token) + 1 for token in found), initial=1)]
    return Tokens(f" {' '.join(found)} ", spans, starts)


@lru_cache(maxsize=16_384)
def _canonical(token: str) -> str:
    if token.isascii() and token.isalnum():
        return token
    token = unescape(_REMOVED.sub("", token)) if len(token) > 1 else token
    if token[:2] == "--":
        return "-"
    return "".join(folded(token, keeps_letters=True).translate(_FORMS).split())


def is_inside(position: int, spans: Sequence[Range]) -> bool:
    """Whether a position is in one of the sorted, disjoint ranges."""
    at = bisect_right(spans, (position, position + 1_000_000)) - 1
    return at >= 0 and spans[at][0] <= position < spans[at][1]
