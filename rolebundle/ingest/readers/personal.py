"""What programs for people keep: calendars, contacts, notes, boards, subtitles, and archives.

Blocks have the lines of the file that hold them, though their text is written for people.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from html import unescape
from quopri import decodestring
from typing import Any

from lxml import etree

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import open_text, parser_errors, unique_key
from rolebundle.ingest.readers.html import read_page
from rolebundle.resources import data_file
from rolebundle.text.decoding import cleaned, decode, one_line
from rolebundle.text.strict_json import LocatedObject, line_index, parse_located
from rolebundle.text.words import counted


def _document(
    blocks: Iterable[Block], title: str = "", notes: tuple[str, ...] = (), updated_at: str = ""
) -> ParsedDocument:
    shown = tuple(block._replace(text=cleaned(block.text)) for block in blocks if block.text)
    inferred = {"title": cleaned(one_line(title))[:_MAX_TITLE_CHARS], "updated_at": updated_at}
    return ParsedDocument(blocks=shown, inferred=inferred, line_exact=False, notes=notes)


_MAX_TITLE_CHARS = 300


def _records(lines: Sequence[str], names: str) -> Iterator[tuple[int, int]]:
    """The first and last line, from 1, of each component with one of these names."""
    begin = re.compile(rf"BEGIN:({names})\s*$", re.IGNORECASE)
    start, end = 0, ""
    for number, line in enumerate(lines, 1):
        if not start and (match := begin.match(line)):
            start, end = number, f"end:{match[1].lower()}"
        elif start and line.strip().lower() == end:
            yield start, number
            start = 0


# -- calendars --


_LABELS = data_file(__file__, "labels.toml")
_DAY_OF_RULE = re.compile(r"([+-]?\d*)([A-Z]{2})")


def _read_calendar(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file, with one block for each event, task and journal entry."""
    import icalendar

    lines, notes = open_text(data, path)
    blocks: list[Block] = []
    starts: list[str] = []
    bad = 0
    for start, end in _records(lines, "VEVENT|VTODO|VJOURNAL"):
        try:
            event = icalendar.Component.from_ical("\r\n".join(lines[start - 1 : end]))
            times = [_time_text(event[key]) for key in ("DTSTART", "DUE") if key in event]
            shown = "\n".join(_event_lines(event))
            # Each event is a passage.
            blocks.append(Block("paragraph", shown, start, end, anchor=" ".join(times[:1])))
            starts += times
        except (ValueError, KeyError, IndexError, AttributeError, TypeError):
            bad += 1
            blocks.append(Block("paragraph", "\n".join(lines[start : end - 1]), start, end))
    name = next((line[13:] for line in lines if line.startswith("X-WR-CALNAME:")), "")
    if len(blocks) == 1:
        name = blocks[0].text.partition("\n")[0]
    notes += (f"damaged, and read as text: {counted(bad, 'entry')}",) if bad else ()
    # The date of a single event. Several have several.
    date = starts[0] if starts and len(blocks) == 1 else ""
    yield replace(_document(blocks, name, notes, date), has_fields=True)


def _event_lines(event: Any) -> Iterator[str]:
    yield one_line(str(event.get("SUMMARY", "")))
    for key, label in _LABELS["times"].items():
        if key in event:
            has_end = key == "DTSTART" and "DTEND" in event
            times = _period_text(event[key], event["DTEND"] if has_end else event[key])
            zone = event[key].params.get("TZID")
            yield f"{label}: {times}" + (f" ({zone})" if zone else "")
    for rule in _values(event, "RRULE"):
        yield f"Repeats: {_rule_text(rule)}"
    for key, label in _LABELS["dates"].items():
        dates = [_time_text(date) for value in _values(event, key) for date in value.dts]
        if dates:
            yield f"{label}: {', '.join(dates)}"
    for key, label in _LABELS["people"].items():
        if people := [_person(value) for value in _values(event, key)]:
            yield f"{label}: {', '.join(people)}"
    for key, label in _LABELS["event"].items():
        values = [
            v.to_ical().decode() if key == "CATEGORIES" else str(v) for v in _values(event, key)
        ]
        if text := one_line(", ".join(values)):
            yield f"{label}: {text}"
    for key in ("DESCRIPTION", "COMMENT"):
        yield from (line for value in _values(event, key) for line in str(value).splitlines())


def _values(event: Any, key: str) -> list[Any]:
    value = event.get(key, [])
    return value if isinstance(value, list) else [value]


def _period_text(start: Any, end: Any) -> str:
    """When an event begins and ends; once if both are the same."""
    times = [_time_text(start), _time_text(end)]
    if not isinstance(start.dt, datetime) and type(end.dt) is type(start.dt):
        # The day after the last one ends whole days.
        times = [times[0], str(end.dt - timedelta(days=1))] if end.dt > start.dt else times[:1]
    return " – ".join(dict.fromkeys(times))


def _time_text(value: Any) -> str:
    time = value.dt
    if not isinstance(time, datetime):
        return str(time)
    return time.strftime("%Y-%m-%d %H:%M") + (" UTC" if str(time.tzinfo) == "UTC" else "")


def _person(value: Any) -> str:
    address = re.sub("^mailto:", "", str(value), flags=re.IGNORECASE)
    name = value.params.get("CN", "")
    return f"{name} <{address}>" if name else address


def _rule_text(rule: Any) -> str:
    """A recurrence in words: ``every 2 weeks on Monday, until 2026-06-01``."""
    of = {key.upper(): values for key, values in rule.items()}
    unit = _LABELS["units"].get(of["FREQ"][0], str(of["FREQ"][0]).lower())
    number = int(of.get("INTERVAL", [1])[0])
    parts = [f"every {number} {unit}s" if number > 1 else f"every {unit}"]
    days = [_DAY_OF_RULE.sub(_day_text, str(day)) for day in of.get("BYDAY", ())]
    if days:
        parts[0] += f" on {', '.join(days)}"
    for key, label in _LABELS["rule"].items():
        if key in of:
            parts[0] += f" {label} {', '.join(map(str, of[key]))}"
    if "COUNT" in of:
        parts.append(f"{of['COUNT'][0]} times")
    if "UNTIL" in of:
        parts.append(f"until {str(of['UNTIL'][0])[:10]}")
    return ", ".join(parts)


def _day_text(match: re.Match[str]) -> str:
    day: str = _LABELS["days"].get(match[2], match[2])
    position = {"": "", "-1": "the last "}.get(match[1], f"the {match[1].lstrip('+')}. ")
    return position + day


# -- contacts --


_CARD_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^\";:])*)*):(.*)", re.DOTALL)
_KIND_OF_CARD = re.compile(r"(?:TYPE=)?\"?(home|work|cell|mobile|fax|main|other)\b", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([nN;,\\])")


def _read_contacts(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file, with one block for each contact."""
    lines, notes = open_text(data, path)
    blocks: list[Block] = []
    for number, (start, end) in enumerate(_records(lines, "VCARD"), 1):
        text = "\n".join(_card_lines(lines[start:end]))
        # Each contact is a passage.
        blocks.append(Block("paragraph", text, start, end, anchor=f"contact {number}"))
    name = blocks[0].text.partition("\n")[0] if len(blocks) == 1 else ""
    yield replace(_document(blocks, name, notes), has_fields=True)


def _card_lines(lines: Sequence[str]) -> Iterator[str]:
    # Long lines go on after a space; in quoted-printable after "=".
    text = re.sub(r"\n[ \t]", "", "\n".join(lines))
    text = re.sub(r"=\n", "", text) if "QUOTED-PRINTABLE" in text.upper() else text
    names: list[str] = []
    details: list[str] = []
    for line in text.split("\n"):
        match = _CARD_LINE.match(line)
        if not match:
            continue
        key, parameters, value = match[1].upper(), match[2], match[3]
        if "QUOTED-PRINTABLE" in parameters.upper():
            charset = re.search(r"CHARSET=([\w-]+)", parameters, re.IGNORECASE)
            value, _ = decode(decodestring(value.encode()), declared=charset[1] if charset else "")
        parts = [one_line(part) for part in re.split(r"(?<!\\);", value)]
        shown = ", ".join(filter(None, parts if key in ("ADR", "ORG", "N") else [value.strip()]))
        shown = _ESCAPED.sub(lambda m: "\n" if m[1] in "nN" else m[1], shown)
        if key in ("FN", "N") and shown:
            names.insert(0 if key == "FN" else len(names), shown)
        elif (label := _LABELS["card"].get(key)) and shown:
            kinds = ", ".join(dict.fromkeys(k.lower() for k in _KIND_OF_CARD.findall(parameters)))
            shown = re.sub(r"^(?:tel|mailto):", "", shown)
            details.append(f"{label} ({kinds}): {shown}" if kinds else f"{label}: {shown}")
    yield from names[:1]
    yield from details


# -- notes of Evernote --


_NO_MARKUP = re.compile(r"<\?xml[^>]*\?>|<!DOCTYPE[^>]*>")
_TODO = re.compile(r"<en-todo([^>]*?)/?>(?:</en-todo>)?")


def _read_notes(data: bytes, path: str, _separator: str) -> Iterator[ParsedDocument]:
    """One document per note, with what is attached to it."""
    with parser_errors("unreadable_enex", path):
        parser = etree.XMLParser(no_network=True, resolve_entities=False, huge_tree=True)
        notes = list(etree.fromstring(data, parser).iter("note"))
    keys: set[str] = set()
    for note in notes:
        content: Any = note.find("content")
        source = "" if content is None else content.text or ""
        source = _NO_MARKUP.sub("", source)
        source = _TODO.sub(
            lambda m: f"<input type=checkbox{' checked' if 'true' in m[1] else ''}>", source
        )
        page = read_page(source.encode(), path, is_message=True)
        above = (content.sourceline or 1) - 1 if content is not None else 0
        title = one_line(note.findtext("title") or "")
        attached = []
        for number, resource in enumerate(note.iter("resource"), 1):
            kind = (resource.findtext("mime") or "").rpartition("/")[2]
            name = resource.findtext("resource-attributes/file-name") or f"file {number}.{kind}"
            attached.append((name, b64decode(resource.findtext("data") or "")))
        yield ParsedDocument(
            blocks=tuple(block.moved(above) for block in page.blocks),
            inferred={
                "title": title,
                "tags": [tag.text for tag in note.iter("tag") if tag.text],
                "updated_at": note.findtext("updated") or note.findtext("created"),
                "author": note.findtext("note-attributes/author"),
            },
            key=unique_key(title or "note", keys),
            line_exact=False,
            notes=page.notes,
            hidden=tuple(part._replace(start=0, end=0) for part in page.hidden),
            attached=tuple(attached),
        )


# -- boards of Obsidian --


def _read_board(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file, with one block for each card, and the labels of groups and lines."""
    lines, notes = open_text(data, path)
    text = "\n".join(lines)
    with parser_errors("bad_json", path):
        board = parse_located(text or "{}")
    line_of, decoder = line_index(text), json.JSONDecoder()
    blocks = []
    members = board if isinstance(board, dict) else {}
    for card in [*(members.get("nodes") or []), *(members.get("edges") or [])]:
        if isinstance(card, LocatedObject):
            words = [card.get(key) for key in ("label", "text", "file", "url")]
            shown = "\n".join(word for word in words if isinstance(word, str))
            _, end = decoder.raw_decode(text, card.at)
            blocks.append(Block("paragraph", shown.strip(), line_of(card.at), line_of(end - 1)))
    yield _document(blocks, notes=notes)


# -- subtitles --


_TIME = re.compile(r"\s*(?:(\d+):)?(\d\d):(\d\d)[.,]\d{1,3}[ \t]+-->")
_SPEAKER = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_CUES_CHARS = 600


def _read_subtitles(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file. Each block has what is said within some lines, from a time on."""
    lines, notes = open_text(data, path)
    blocks: list[Block] = []
    anchor = speaker = last = ""
    is_cue = False
    for number, line in enumerate(lines, 1):
        if match := _TIME.match(line):
            anchor = f"{int(match[1] or 0):02}:{match[2]}:{match[3]}"
            is_cue = True
            continue
        is_cue = is_cue and bool(line.strip())
        if not is_cue:
            continue
        found = _SPEAKER.search(line)
        words = one_line(unescape(_TAG.sub("", line)))
        if not words or words == last:
            continue  # Live captions repeat the line above.
        last = words
        name = one_line(unescape(found[1])) if found else speaker
        is_new_speaker, speaker = name != speaker, name
        words = f"{speaker}: {words}" if is_new_speaker else words
        if blocks and len(blocks[-1].text) + len(words) < _CUES_CHARS:
            block = blocks[-1]
            joint = "\n" if is_new_speaker else " "
            blocks[-1] = block._replace(text=f"{block.text}{joint}{words}", end_line=number)
        else:
            blocks.append(Block("paragraph", words, number, number, anchor=anchor, header=name))
    yield _document(blocks, notes=notes)


# -- archives --


_MAX_NAMES = 20_000
_MAX_UNPACKED = 400_000_000


def _read_archive(data: bytes, path: str, _separator: str) -> Iterator[ParsedDocument]:
    """One document per archive: the list of its files, which are not read."""
    with parser_errors("unreadable_archive", path):
        names: list[str] = []
        left = _MAX_UNPACKED
        is_cut = False
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                names = [info.filename for info in packed.infolist() if not info.is_dir()]
        else:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as unpacked:
                for member in unpacked:
                    left -= member.size
                    is_cut = left < 0 or len(names) >= _MAX_NAMES
                    if is_cut:
                        break
                    names += [member.name] if member.isfile() else []
        shown = [f"- {one_line(name)}" for name in names[:_MAX_NAMES] if one_line(name)]
        blocks = [Block("list", "\n".join(shown), 1, len(shown), aligned=True)] if shown else []
        total = f"more than {len(shown):,} files" if is_cut else counted(len(names), "file")
        document = _document(blocks, notes=(f"left out: the content of {total}",))
        yield replace(document, left_out=1)


READERS = {
    "ics": (5, _read_calendar),
    "vcf": (3, _read_contacts),
    "enex": (5, _read_notes),
    "canvas": (1, _read_board),
    "subtitles": (2, _read_subtitles),
    "archive": (1, _read_archive),
}
