"""Subtitles (WebVTT and SubRip): the speech, without numbers and timestamps.

Cues are joined to paragraphs of about 1,000 characters. The anchor of a paragraph is the time at
which it begins. Comments and styles are not speech; comments are hidden text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import NamedTuple

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions, open_text, runs
from rolebundle.scan.finding import HiddenPart

_PARAGRAPH_CHARS = 1_000
_TIME = r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]?\d)(?:[.,]\d{1,3})?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s|$)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,100})?\s{1,9}([^<>]{1,200})>", re.IGNORECASE)
# Also the styles that SubRip files have from other formats, such as {\an8}.
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</?\d[\d:.]*>|\{\\[^{}]*\}")
_BEGINS_LINE = re.compile(r"- |(?:-\s*)?([^\W\d_][\w .'-]{0,40}):\s+(?=\S)")


class _Line(NamedTuple):
    """A line of speech, from a time on; ``number`` is its line in the file."""

    time: str
    text: str
    speaker: str
    number: int


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``.
    """
    file = open_text(data, path)
    hidden: list[HiddenPart] = []
    blocks = tuple(_paragraphs(_speech(file.lines, hidden)))
    # The text after WEBVTT is a title if there is any.
    head = file.lines[0].lstrip("\ufeff") if file.lines else ""
    is_titled = head.startswith("WEBVTT")
    title = head.removeprefix("WEBVTT").strip(" \t-–—:") if is_titled else ""
    yield ParsedDocument(
        blocks=blocks,
        inferred={"title": title} if title else {},
        line_exact=False,
        notes=file.notes,
        hidden=tuple(hidden),
    )


def _speech(lines: Sequence[str], hidden: list[HiddenPart]) -> Iterator[_Line]:
    for start, end in runs(lines, 0, len(lines)):
        if lines[start].startswith("NOTE"):
            comment = " ".join(" ".join(lines[start:end]).split()).removeprefix("NOTE").strip()
            hidden.append(HiddenPart("markup_comment", comment, is_labelled=False))
            continue
        time = ""
        for i in range(start, end):
            if timing := _TIMING.match(lines[i]):
                time = ":".join(f"{int(part or 0):02}" for part in timing.group(1, 2, 3))
                continue
            # Some files have no blank line before the number of a cue.
            is_number = lines[i].strip().isdigit()
            is_number = is_number and i + 1 < end and _TIMING.match(lines[i + 1]) is not None
            text = " ".join(unescape(_TAG.sub("", lines[i])).split())
            if time and text and not is_number:
                voice = _VOICE.search(lines[i])
                speaker = " ".join(unescape(voice[1]).split()) if voice else ""
                yield _Line(time, text, speaker, i + 1)


def _paragraphs(speech: Iterable[_Line]) -> Iterator[Block]:
    """Consecutive lines as paragraphs."""
    group: list[_Line] = []
    length = 0
    for line in speech:
        # Players of live subtitles repeat the line above.
        if group and (line.text, line.speaker) == (group[-1].text, group[-1].speaker):
            continue
        if group and length + len(line.text) > _PARAGRAPH_CHARS:
            yield _paragraph(group)
            group, length = [], 0
        group.append(line)
        length += len(line.text) + 1
    if group:
        yield _paragraph(group)


def _paragraph(group: Sequence[_Line]) -> Block:
    """A paragraph; each change of the speaker begins a line."""
    lines: list[str] = []
    speaker = ""
    for line in group:
        if line.speaker and (line.speaker != speaker or not lines):
            lines.append(f"{line.speaker}: {line.text}")
        elif not lines or _BEGINS_LINE.match(line.text):
            lines.append(line.text)
        else:
            lines[-1] += f" {line.text}"
        speaker = line.speaker or speaker
    text = "\n".join(lines)
    return Block("paragraph", text, group[0].number, group[-1].number, anchor=group[0].time)


READER = Reader("subtitles", 1, _read)
