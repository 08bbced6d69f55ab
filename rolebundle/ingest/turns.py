"""Turns of transcripts and chats, and messages of threads, in the paragraphs of any format.

Each turn and message is a block of its own, so that chunks are cut between them. A chunk that
begins inside one has who speaks, and when, as its innermost heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from rolebundle.contracts.documents import QUOTED, SENDER_FIELD
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.text.decoding import one_line

_TEXT = frozenset({"paragraph", "list"})
_MIN_TURNS = 4
_TURNS_PER_NAME = 2
"""A list of keys and values has fewer: it names each only once."""
_MIN_SHARE = 0.25
"""Of the lines with text, that begin a turn."""
_NAME = r"(?P<name>[^\W\d_][\w.'’&-]{0,30}(?: [\w.'’&()@+-]{1,30}){0,4})"
_CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[.,]\d{1,3})?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?"
_DATE = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{4}-\d\d-\d\d)"
_HAS_DATE = re.compile(_DATE)
_TIME = rf"[\[(]?(?:{_DATE},?[T ])?{_CLOCK}[\])]?"
_TURN = re.compile(
    rf"[ \t]*\u200e?(?:[-*•>][ \t]+)?[*_]{{0,2}}"
    rf"(?:(?P<stamp>{_TIME})[*_]{{0,2}}(?:[ \t]+[-–—])?[ \t]+[*_]{{0,2}})?"
    rf"(?:<{_NAME.replace('name', 'nick')}>[ \t]|{_NAME}(?:[ \t]*[,–—-]?[ \t]*(?P<time>{_TIME}))?"
    rf"[*_]{{0,2}}(?::[*_]{{0,2}}(?:[ \t]|$)|(?P<alone>[ \t]*$)))"
)
# A line that is nothing but a day: of a chat, whose turns then have the clock only.
_DAY = re.compile(
    r"\W*(?:[^\W\d_]{2,12}\.?,? )?(\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|\d{1,2}\.? [^\W\d_]{3,10}\.?,? \d{4}|[^\W\d_]{3,10} \d{1,2}, \d{4})\W*"
)
# What mail programs write above a message: a sentence that ends with a colon, or its headers.
_QUOTE = re.compile(r"[ \t]*>[ \t]?")
_FROM = re.compile(rf"\W{{0,3}}{SENDER_FIELD}[ \t]?:[*_]{{0,2}}[ \t]+(\S.*)")
_FIELD = re.compile(r"\W{0,3}([^\W\d_][\w -]{0,20})[ \t]?:[*_]{0,2}[ \t]+(\S.*)")
_MIN_FIELDS = 2
_MAX_DEPTH = 20
_MAX_HEADER_CHARS = 120


Message = tuple[str, int, list[str]]
"""Who wrote it, and when, as the text says it; the index of its first line; its lines."""


def messages(lines: list[str], at: int = 0, label: str = "", depth: int = 0) -> list[Message]:
    """What is new in the text of a mail, and each message that it quotes, without marks.

    A mail that answers between quoted lines is one message, because neither says much alone.
    """
    if depth < _MAX_DEPTH and (quoted := [i for i, text in enumerate(lines) if _QUOTE.match(text)]):
        first, end = quoted[0], quoted[-1] + 1
        between = set(range(first, end)).difference(quoted)
        if not any(lines[i].strip() for i in between):
            inner = [_QUOTE.sub("", text, count=1) for text in lines[first:end]]
            name, start = attribution(lines[:first])
            above = messages(lines[:start], at, label, depth + 1)
            inner = [*lines[start:first], *inner]
            found = messages(inner, at + start, name or label or QUOTED, depth + 1)
            return [*above, *found, *messages(lines[end:], at + end, above[-1][0], _MAX_DEPTH)]
    for first in range(len(lines)):
        if depth < _MAX_DEPTH and (head := _head(lines, first)):
            name, end = head
            (_, _, own), *others = messages(lines[end:], at + end, name, depth + 1)
            quoted_message = (name, at + first, [*lines[first:end], *own])
            return [(label, at, lines[:first]), quoted_message, *others]
    return [(label, at, lines)]


def attribution(above: Sequence[str]) -> tuple[str, int]:
    """The sentence that ends with a colon above a quoted message, and the index of its first line.

    Empty, and the index after the last line, without one.
    """
    last = max((i for i, line in enumerate(above) if line.strip()), default=-1)
    if last < 0 or not above[last].rstrip().endswith(":"):
        return "", len(above)
    # Without a date, that is on the line above.
    start = last if any(map(str.isdigit, above[last])) else max(0, last - 1)
    return one_line(" ".join(above[start : last + 1])).rstrip(" :")[:_MAX_HEADER_CHARS], start


def _head(lines: Sequence[str], first: int) -> tuple[str, int] | None:
    """The sender and date in the headers of a message at a line, and the index after them."""
    if not (sender := _FROM.match(lines[first])):
        return None
    fields = [*takewhile(bool, map(_FIELD.match, lines[first + 1 :]))]
    if len(fields) < _MIN_FIELDS:
        return None
    dated = (field[2] for field in fields if field and any(map(str.isdigit, field[2])))
    name = ", ".join(filter(None, (sender[1].strip(), next(dated, "").strip())))
    return one_line(name)[:_MAX_HEADER_CHARS], first + 1 + len(fields)


def with_turns(parsed: ParsedDocument) -> ParsedDocument:
    """The document with a block for each turn or message, if it is a transcript, chat or thread."""
    texts = [block.text for block in parsed.blocks if block.kind in _TEXT]
    lines = [line for text in texts for line in text.split("\n") if line and not line.isspace()]
    is_thread = sum(_head(lines, i) is not None for i in range(len(lines))) > 1
    turns = [match for line in lines if (match := _turn(line))]
    timed = sum(bool(match["stamp"] or match["time"]) for match in turns)
    names = {match["name"] or match["nick"] for match in turns}
    is_talk = len(turns) >= max(_MIN_TURNS, _MIN_SHARE * len(lines)) and (
        2 * timed > len(turns) or len(turns) >= _TURNS_PER_NAME * len(names)
    )
    if (is_thread or is_talk) and not parsed.has_fields:
        return replace(parsed, blocks=tuple(_split(parsed, is_thread)))
    return parsed


def _turn(line: str) -> re.Match[str] | None:
    match = _TURN.match(line) if ":" in line[:_MAX_HEADER_CHARS] else None  # That is quick to see.
    # A line that is only a name needs a time.
    return None if match and match["alone"] is not None and not match["time"] else match


def _split(parsed: ParsedDocument, is_thread: bool) -> Iterator[Block]:
    speaker = day = ""
    message = 0
    for block in parsed.blocks:
        lines = block.text.split("\n")
        starts = {0: (speaker, message)}
        for number, line in enumerate(lines):
            if found := _DAY.fullmatch(block.heading or line):
                day = found[1]
            elif block.kind not in _TEXT:
                if block.kind == "heading" and not is_thread:
                    speaker, starts = "", {0: ("", message)}
                break
            elif is_thread:
                if head := _head(lines, number):
                    speaker, message = head[0], message + 1
                    starts[number] = speaker, message
            elif match := _turn(line):
                speaker = one_line(match[0]).strip(" *_:>-")[:_MAX_HEADER_CHARS]
                speaker = f"{day}, {speaker}" if day and not _HAS_DATE.search(speaker) else speaker
                starts[number] = speaker, message
        if block.kind == "table":
            starts = {0: (block.header, message)}
        for first, part in block.parts(starts, line_exact=parsed.line_exact):
            header, number = starts[first]
            anchor = f"message {number}" if number else block.anchor
            yield part._replace(header=header, anchor=anchor)
