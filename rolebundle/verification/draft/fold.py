"""Text without the differences of typography, with the source range of each character. Pure.

Two texts that fold to the same text have the same meaning. Folding changes Unicode forms (NFKC),
quotation marks, apostrophes, dashes, ellipses, white space and line breaks, invisible characters,
and the marks of Markdown for emphasis, code, links and blockquotes. It does not change case.

NFKC is not applied if it changes the meaning: 10² would be 102, and ① would be 1. Such
characters stay as they are. A fraction keeps its distance: 1½ is "1 1/2". Struck-out text keeps its
marks, and so do characters that change the direction of text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple


class Folded(NamedTuple):
    """A folded text. Its character ``i`` stands for ``starts[i]`` to ``ends[i]`` of the original.

    Both sequences never decrease.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The range of the original that a range of the folded text stands for; not empty."""
        return self.starts[start], self.ends[end - 1]


_HYPHENATION = re.compile(r"(?<=[^\W\d_]{2})[-‐][ \t]*(?:\r\n|\n|\r)[ \t>]*(?=[^\W\d_]{2})")
# Not before a figure: there it means "more than".
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)+(?![ \t]*[-−+.\d$€£])", re.MULTILINE)
_LINE_MARKS = re.compile(r"(?<=[\r\n])[ \t]*(?:>[ \t]?)+")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff]+")
_FRACTION_SLASH = "\u2044"
_DASHES = "-‐‑‒–—―−⁃⸺⸻﹘﹣"
_DOUBLE_HYPHEN = re.compile(r"(?<=\w)-{2,3}(?=\w)|(?<=\s)-{2,3}(?=\s)")
_DASH = re.compile(f"(?<![{_DASHES}])[{_DASHES[1:]}](?![{_DASHES}])")
_MARKS = str.maketrans(
    dict.fromkeys("“”„‟«»″〝〞〟「」『』", '"')
    | dict.fromkeys("‘’‚‛‹›′´ʼʻʹ", "'")
    | {_FRACTION_SLASH: "/"}
)
_LINK = re.compile(r"(?<![\w!])\[([^\[\]]*)\]\([^()\s]*\)")
_STARS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]+)(?<=[^\s*])\1(?![\w*])")
_UNDERSCORES = re.compile(r"(?<!\w)(__?)(?=[^\s_])([^_]+)(?<=[^\s_])\1(?!\w)")
_BACKTICKS = re.compile("`+")
_SPACED_DOTS = re.compile(r"(?<!\.)\. \. \.(?! ?\.)")
# All white space but a single space.
_SPACE = re.compile(r"\s{2,}|[^\S ]")
_WIDE = "\u3001-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff60"
_SPACE_IN_WIDE = re.compile(f"(?<=[{_WIDE}]) (?=[{_WIDE}])")
# "7- -3" stays: its second hyphen is a sign.
_SPACED_DASH = re.compile(r"(?<!-)(?<!- )(?: -|- | - )(?! ?-)")
# After a digit the marks are feet and inches.
_QUOTATION_MARK = re.compile(r'(?<!\d)"')
_MAX_ROUNDS = 20


@lru_cache(maxsize=512)
def fold(text: str, *, joins_lines: bool = False) -> Folded:
    """The folded text. ``joins_lines``: a hyphen at the end of a line divides a word.

    Folding a folded text changes nothing.
    """
    folded = Folded(text, list(range(len(text))), list(range(1, len(text) + 1)))
    if joins_lines:
        folded = _replace(folded, _HYPHENATION, "")
    for _ in range(_MAX_ROUNDS):
        refolded = _fold_once(folded)
        if refolded.text == folded.text:
            break
        folded = refolded
    return folded


def without_quote_marks(text: str) -> str:
    """The text of a blockquote without the marks of its lines but the first."""
    return _LINE_MARKS.sub("", text)


def _fold_once(folded: Folded) -> Folded:
    # Each pattern needs the characters that are looked for first; most texts have few of them.
    if ">" in folded.text:
        folded = _replace(folded, _QUOTE_MARKS, "")
    if not folded.text.isascii():
        folded = _normalized(_replace(folded, _INVISIBLE, ""))
    if "--" in folded.text:
        folded = _replace(folded, _DOUBLE_HYPHEN, "-")
    if not folded.text.isascii():
        folded = _replace(folded, _DASH, "-")
        folded = Folded(folded.text.translate(_MARKS), folded.starts, folded.ends)
    if "](" in folded.text:
        folded = _replace(folded, _LINK, 1)
    if "*" in folded.text:
        folded = _replace(folded, _STARS, 2)
    if "_" in folded.text:
        folded = _replace(folded, _UNDERSCORES, 2, _is_emphasis)
    if "`" in folded.text:
        folded = _replace(folded, _BACKTICKS, "")
    folded = _replace(folded, _SPACE, " ")
    if ". . ." in folded.text:
        folded = _replace(folded, _SPACED_DOTS, "...")
    if " -" in folded.text or "- " in folded.text:
        folded = _replace(folded, _SPACED_DASH, "-")
    if not folded.text.isascii():
        folded = _replace(folded, _SPACE_IN_WIDE, "")
    if '"' in folded.text:
        folded = Folded(_QUOTATION_MARK.sub("'", folded.text), folded.starts, folded.ends)
    return folded


def _replace(
    folded: Folded,
    pattern: re.Pattern[str],
    by: str | int,
    condition: Callable[[re.Match[str]], bool] | None = None,
) -> Folded:
    """Replace matches by a text, whose characters stand for the whole match, or by a group."""
    text, starts, ends = folded
    texts: list[str] = []
    new_starts: list[int] = []
    new_ends: list[int] = []
    at = 0
    for match in pattern.finditer(text):
        first, last = match.span()
        if condition and not condition(match):
            continue
        texts.append(text[at:first])
        new_starts += starts[at:first]
        new_ends += ends[at:first]
        if isinstance(by, int):
            inner, outer = match.span(by)
            texts.append(text[inner:outer])
            new_starts += starts[inner:outer]
            new_ends += ends[inner:outer]
        else:
            texts.append(by)
            new_starts += [starts[first]] * len(by)
            new_ends += [ends[last - 1]] * len(by)
        at = last
    if not at:
        return folded
    texts.append(text[at:])
    return Folded("".join(texts), new_starts + list(starts[at:]), new_ends + list(ends[at:]))


def _is_emphasis(match: re.Match[str]) -> bool:
    """Two underscores around one word are a name in a program: ``__init__``."""
    return len(match[1]) == 1 or any(map(str.isspace, match[2]))


def _normalized(folded: Folded) -> Folded:
    """Apply NFKC to each character with its marks."""
    text, starts, ends = folded
    if unicodedata.is_normalized("NFKC", text):
        return folded
    borders = [at for at in range(len(text)) if not at or not _is_mark(text[at])] + [len(text)]
    pieces: list[str] = []
    new_starts: list[int] = []
    new_ends: list[int] = []
    for first, last in pairwise(borders):
        cluster = text[first:last]
        piece = cluster if cluster.isascii() else _compatible(cluster)
        if _FRACTION_SLASH in piece and _FRACTION_SLASH not in cluster:
            piece = (
                " " * (text[first - 1 : first].isdecimal())
                + piece
                + " " * (text[last : last + 1].isdecimal())
            )
        pieces.append(piece)
        if piece == cluster:
            new_starts += starts[first:last]
            new_ends += ends[first:last]
        else:
            new_starts += [starts[first]] * len(piece)
            new_ends += [ends[last - 1]] * len(piece)
    return Folded("".join(pieces), new_starts, new_ends)


@lru_cache(maxsize=8192)
def _is_mark(character: str) -> bool:
    """Whether a character is combined with the one before it."""
    return (
        unicodedata.category(character)[0] == "M"
        or "\u1160" <= character <= "\u11ff"  # Hangul's vowels and final consonants.
        or character in "\uff9e\uff9f"
    )


@lru_cache(maxsize=8192)
def _compatible(cluster: str) -> str:
    """NFKC, or NFC if that would change what is said."""
    has_sense = any(map(_must_stay, cluster))
    return unicodedata.normalize("NFC" if has_sense else "NFKC", cluster)


def _must_stay(character: str) -> bool:
    kind, _, parts = unicodedata.decomposition(character).partition(" ")
    if not kind.startswith("<") or kind in (
        "<wide>",
        "<narrow>",
        "<font>",
        "<noBreak>",
        "<fraction>",
    ):
        return False
    normalized = unicodedata.normalize("NFKC", character)
    is_raised = kind in ("<super>", "<sub>") and " " not in parts
    return (
        is_raised
        or kind == "<circle>"
        or any(map(str.isdigit, normalized))
        or (normalized.startswith(" ") and len(normalized) > 1)
    )
