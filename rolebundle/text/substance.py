"""How much of a text is prose, and not quotes, links, directives or code."""

from __future__ import annotations

import re
from functools import cache, lru_cache

ENOUGH_WORDS = 20
"""A text with so many words of prose is no stub."""
ENOUGH_PROSE = 0.5
"""If so much of a text is prose, all else is what the prose explains."""
MIN_LINE_WORDS = 4
"""A line with fewer words is a heading, a name, or the end of a sentence."""
MIN_PLAIN_WORDS = 0.7
"""The least share of plain words in a line of prose: no names, paths, numbers or code."""

_NOT_PLAIN = re.compile(r"[=<>{}\[\]|\\/$&^~_*`@#+\d]")
# Lines without one of these have no inline markup.
_MARKED = re.compile(r"[`\]<${*_#]|://")
# Link targets, addresses and the marks of inline markup. What is linked is read.
_INLINE = (
    r"\]\([^()]*\)|`_{1,2}(?!\w)|<?(?:https?|ftp|mailto):[^\s>]*>?|``?[^`\s]*``?"
    r"|:[\w-]++(?::[\w-]++)?+:`[^`]*`|\{[\w:-]++\}`[^`]*`|\*\*|__|</?[a-z!][^<>]*>"
    r"|\$[^$]*\$|\(?#\d+\)?|\(\s*\)"
)
_LINK = r"\[[^\[\]]*\]\([^()]*\)|`[^`<]*<[^`>]*>`_{1,2}"
# Headings, rules, directives, options, labels, headers and attributions of mail, imports, prompts.
_NO_PROSE = (
    r"#{1,6}\s|[-=~^*+_.\"'`#|:\s]{3,}$|\.\.\s|:[\w-]+:|\([\w-]+\)=|---|>>>|\$\s"
    r"|(?:from|to|sent|date|subject|cc|message-id|in-reply-to):\s|\[\[.*\]\]\s*$"
    r"|import\s|from\s+\S+\s+import\b|on\b.*\bwrote:\s*$"
)
# After such a line the rest of a mail is a copy of another one, if it is not marked as a quote.
_ATTRIBUTION = r"on\b.*\bwrote:|-{3,}\s*original message\b.*|from:\s.*[@<].*"
_FENCE = re.compile(r"(?:```+|~~~+|:::+)[ \t]*([^`\s]*)")
_QUOTES = (">", "|")
# What follows is the sender's or the list's signature.
_SIGNATURE = re.compile(r"(?:--|_{5,})$")
_BULLET = re.compile(r"(?:[-*+•]|\d+[.)])\s+")
# Scripts without spaces: two letters count as a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{2}")
_LICENCE = (
    "permission is hereby granted",
    "without warranties or conditions",
    "without warranty of any kind",
    "redistribution and use in source",
)


@lru_cache(maxsize=1024)
def substance(text: str, *, is_mail: bool = False) -> float:
    """How much prose a text has, in [0, 1].

    ``min(1, p / 20) · min(1, 2·p / n)`` for ``p`` words in lines of prose and ``n`` words in all.
    Licence texts have none. Cached, because the next request often has many of the same texts.

    Args:
        text: Markdown, reStructuredText, or plain.
        is_mail: whether lines after ``>`` or ``|`` are quotes of another message.
    """
    folded = " ".join(text.lower().split())
    if any(phrase in folded for phrase in _LICENCE):
        return 0.0
    enough = max(ENOUGH_WORDS, ENOUGH_PROSE * _count(text))
    prose = total = 0
    fences: list[bool] = []
    known: set[str] = set()
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    for number, line in enumerate(lines):
        if is_mail and (_SIGNATURE.match(line) or _begins_copy(lines, number)):
            break
        if fence := _FENCE.match(line):
            # The block of a directive (```{note}) is read like the rest.
            if fence[1] or not fences:
                fences.append(not fence[1].startswith("{"))
            else:
                fences.pop()
            continue
        read = _pattern(_INLINE).sub(" ", line) if _MARKED.search(line) else line
        words = _count(read)
        total += words
        if any(fences) or (is_mail and line.startswith(_QUOTES)):
            continue
        if words >= MIN_LINE_WORDS and not (_pattern(_NO_PROSE).match(line) or _is_link(line)):
            # A log repeats its lines.
            prose += _words_of_prose(read) if line not in known else 0
            known.add(line)
            if prose >= enough:
                return 1.0
    if not prose:
        return 0.0
    return min(1.0, prose / ENOUGH_WORDS) * min(1.0, prose / (ENOUGH_PROSE * total))


def _is_link(line: str) -> bool:
    """Whether there is hardly more than links in a line."""
    if "](" not in line and "`_" not in line:
        return False
    return len(_pattern(_LINK).sub(" ", line).split()) < MIN_LINE_WORDS


def _begins_copy(lines: list[str], number: int) -> bool:
    """Whether another message follows the line, whose lines are not marked as quotes."""
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return bool(_pattern(_ATTRIBUTION).fullmatch(lines[number])) and not following.startswith(
        _QUOTES
    )


def _words_of_prose(line: str) -> int:
    """The words of a line without markup, if it is prose; else 0."""
    line = _BULLET.sub("", line, count=1).strip()
    count, words = _count(line), line.split()
    plain = sum(_NOT_PLAIN.search(word) is None for word in words)
    return count if count >= MIN_LINE_WORDS and plain >= MIN_PLAIN_WORDS * len(words) else 0


def _count(text: str) -> int:
    words = len(text.split())
    return words if text.isascii() else words + len(_UNSPACED.findall(text))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
