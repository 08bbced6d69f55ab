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
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, is_blank, open_text, runs
from rolebundle.scan.finding import HiddenPart

_PARAGRAPH_CHARS = 1_000
_TIME = r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]?\d)(?:[.,]\d{1,3})?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s|$)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,100})?\s{1,9}([^<>]{1,200})>", re.IGNORECASE)
# Also the styles that SubRip files have from other formats, such as {\an8}.
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</?\d[\d:.]*>|\{\\[^{}]*\}")
_SPEAKER = re.compile(r"(?:-\s*)?([^\W\d_][\w .'-]{0,40}):\s+(?=\S)")


class _Cue(NamedTuple):
    """What is said from a time on; ``first`` and ``last`` are lines of the file."""

    time: str
    text: str
    speaker: str
    first: int
    last: int


class SubtitlesReader:
    """Reads ``.vtt`` and ``.srt``."""

    name = "subtitles"
    suffixes = suffixes_of("subtitles")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file.

        Raises:
            DocumentError: ``undecodable``.
        """
        file = open_text(data, path)
        hidden: list[HiddenPart] = []
        cues = list(_cues(file.lines, hidden))
        yield ParsedDocument(
            blocks=tuple(_paragraphs(cues)),
            inferred=_title(file.lines),
            line_exact=False,
            notes=file.notes,
            hidden=tuple(hidden),
        )


def _cues(lines: Sequence[str], hidden: list[HiddenPart]) -> Iterator[_Cue]:
    for start, end in runs(lines, 0, len(lines)):
        timing = next((i for i in range(start, end) if _TIMING.match(lines[i])), -1)
        if timing < 0 or lines[start].startswith("NOTE"):
            text = " ".join(" ".join(lines[start:end]).split())
            if lines[start].startswith("NOTE"):
                comment = text[len("NOTE") :].strip()
                hidden.append(HiddenPart("markup_comment", comment, is_labelled=False))
            continue
        # Some files have no blank line between two cues.
        begins = [i for i in range(timing, end) if _TIMING.match(lines[i])]
        for begin, following in zip(begins, [*begins[1:], end], strict=True):
            stop = following
            if stop < end and stop - 1 > begin and lines[stop - 1].strip().isdigit():
                stop -= 1  # the number of the next cue
            yield from _speech(lines, begin, stop)


def _speech(lines: Sequence[str], timing: int, end: int) -> Iterator[_Cue]:
    match = _TIMING.match(lines[timing])
    assert match is not None
    time = f"{int(match[1] or 0):02}:{int(match[2]):02}:{int(match[3]):02}"
    for i in range(timing + 1, end):
        voice = _VOICE.search(lines[i])
        text = " ".join(unescape(_TAG.sub("", lines[i])).split())
        speaker = " ".join(unescape(voice[1]).split()) if voice else ""
        if text:
            yield _Cue(time, text, speaker, i + 1, i + 1)


def _paragraphs(cues: Sequence[_Cue]) -> Iterator[Block]:
    """Consecutive cues as paragraphs; each change of the speaker begins a line."""
    group: list[_Cue] = []
    length = 0
    for cue in cues:
        # Players of live subtitles repeat the line above.
        if group and cue.text == group[-1].text and cue.speaker == group[-1].speaker:
            continue
        if group and length + len(cue.text) > _PARAGRAPH_CHARS:
            yield _paragraph(group)
            group, length = [], 0
        group.append(cue)
        length += len(cue.text) + 1
    if group:
        yield _paragraph(group)


def _paragraph(group: Sequence[_Cue]) -> Block:
    lines: list[str] = []
    speaker = ""
    for cue in group:
        begins_line = not lines or _SPEAKER.match(cue.text) or cue.text.startswith("- ")
        if cue.speaker and (cue.speaker != speaker or not lines):
            lines.append(f"{cue.speaker}: {cue.text}")
        elif begins_line:
            lines.append(cue.text)
        else:
            lines[-1] += f" {cue.text}"
        speaker = cue.speaker or speaker
    text = "\n".join(lines)
    return Block("paragraph", text, group[0].first, group[-1].last, anchor=group[0].time)


def _title(lines: Sequence[str]) -> dict[str, object]:
    """The text after ``WEBVTT``, which is a title if there is any."""
    head = lines[0].lstrip("\ufeff") if lines else ""
    title = head.removeprefix("WEBVTT").lstrip(" \t-–—:") if head.startswith("WEBVTT") else ""
    return {} if is_blank(title) else {"title": title.strip()}


READER = SubtitlesReader()
