"""Readers of what programs for people keep: calendars, contacts, notes, boards, subtitles."""

import io
import struct
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import oxmsg
import pytest
from oxmsg.storage import Storage, Stream

from ingest.office.parts import zipped
from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.turns import with_turns
from support.reading import read_all, read_document

ICS = """BEGIN:VCALENDAR
X-WR-CALNAME:Harbour
BEGIN:VEVENT
SUMMARY:Gate\\, north
DTSTART;TZID=Europe/Berlin:20260502T100000
DTEND;TZID=Europe/Berlin:20260502T110000
RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,-1FR;UNTIL=20260601T000000Z
EXDATE:20260516T100000Z
LOCATION:Room 4711
ORGANIZER;CN=Kim:mailto:kim@b.org
ATTENDEE;CN="Lee, J":mailto:lee@b.org
ATTENDEE:MAILTO:c@d.e
DESCRIPTION:Bring the key.\\nAnd a
  lamp.
BEGIN:VALARM
TRIGGER:-PT15M
END:VALARM
END:VEVENT
BEGIN:VTODO
SUMMARY:Paint the gate
DUE;VALUE=DATE:20260510
END:VTODO
BEGIN:VEVENT
SUMMARY:Closed
DTSTART;VALUE=DATE:20261221
DTEND;VALUE=DATE:20270104
LOCATION:
END:VEVENT
BEGIN:VEVENT
SUMMARY:Fair
DTSTART;VALUE=DATE:20261224
DTEND;VALUE=DATE:20261225
END:VEVENT
BEGIN:VEVENT
SUMMARY:Flight
DTSTART;TZID=Asia/Tokyo:20260102T170000
DTEND;TZID=America/Los_Angeles:20260102T100000
END:VEVENT
BEGIN:VEVENT
SUMMARY:Old
DTSTART;VALUE=DATE:00010101
DTEND;VALUE=DATE:00010101
END:VEVENT
BEGIN:VEVENT
SUMMARY:Damaged
DTSTART:soon
END:VEVENT
END:VCALENDAR
"""
EVENT = """Gate, north
When: 2026-05-02 10:00 – 2026-05-02 11:00 (Europe/Berlin)
Repeats: every 2 weeks on Monday, the last Friday, until 2026-06-01
Except: 2026-05-16 10:00 UTC
Organizer: Kim <kim@b.org>
Attendees: Lee, J <lee@b.org>, c@d.e
Where: Room 4711
Bring the key.
And a lamp."""
VCF = """BEGIN:VCARD
VERSION:3.0
N:Müller;Jörg;;;
FN:Jörg Müller
ORG:Harbour;North
item1.TEL;type=CELL;type=VOICE:+49 4711
EMAIL;TYPE=work:j@b.org
ADR;TYPE=home:;;Kai 5;Kiel;;24103;
NOTE:Has the key\\, and
  the lamp.
END:VCARD
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6=
rg
TEL;HOME:0815
END:VCARD
"""
CARDS = [
    "Jörg Müller\nOrganization: Harbour, North\nPhone (cell): +49 4711\nE-mail (work): j@b.org\n"
    "Address (home): Kai 5, Kiel, 24103\nNote: Has the key, and the lamp.",
    "Müller, Jörg\nPhone (home): 0815",
]
ENEX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export3.dtd">
<en-export><note><title>Gate</title>
<content><![CDATA[<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "x.dtd">
<en-note><div>The code is 4711.</div>
<div><en-todo checked="true"/>Paint</div></en-note>]]></content>
<created>20260203T101112Z</created><tag>harbour</tag>
<resource><data encoding="base64">em
VicmE=</data><mime>text/plain</mime><resource-attributes><file-name>a.txt</file-name>
</resource-attributes></resource></note></en-export>"""
CANVAS = """{"nodes":[
  {"id":"1","type":"text","text":"The code\\nis 4711.","x":1},
  {"id":"2","type":"file","file":"notes/gate.md"},
  {"id":"3","type":"group","label":"Harbour"}],
 "edges":[{"id":"4","label":"opens"}]}"""
VTT = """WEBVTT

NOTE not shown

1
00:00:01.000 --> 00:00:05.000 align:start
<v Kim>The code <i>is</i>

00:00:05.000 --> 00:00:07.000
<v Kim>4711 &amp; more.

01:02:03.000 --> 01:02:05.000
<v Lee>Thanks.
"""
SRT = "1\n00:00:01,000 --> 00:00:05,000\nThe code\nis 4711.\n\n2\n00:00:06,000 --> 00:00:07,000\n{\\an8}Good.\n"


def test_labels_of_records_are_no_speakers():
    event = "BEGIN:VEVENT\nSUMMARY:Day {}\nDTSTART:2026050{}T100000\n{}END:VEVENT\n"
    events = [event.format(n, n, "LOCATION:Room 1\n" * (n < 4)) for n in range(1, 7)]
    card = "BEGIN:VCARD\nFN:Name {}\nTEL;TYPE=cell:0815\nTITLE:Dr\nEND:VCARD\n"
    cards = [card.format(n) for n in range(6)]
    for path, text in (("a.ics", "".join(events)), ("a.vcf", "".join(cards))):
        document = read_document(text, path)
        assert with_turns(document).blocks == document.blocks
        assert not any(
            c.headings for c in chunk_document("d", with_turns(document), ChunkSettings())
        )


def found(text: str, path: str) -> list[tuple[str, int, int]]:
    blocks = read_document(text, path).blocks
    return [(block.text, block.start_line, block.end_line) for block in blocks]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.ics",
            ICS,
            [
                (EVENT, 3, 18),
                ("Paint the gate\nDue: 2026-05-10", 19, 22),
                ("Closed\nWhen: 2026-12-21 – 2027-01-03", 23, 28),
                ("Fair\nWhen: 2026-12-24", 29, 33),
                ("Flight\nWhen: 2026-01-02 17:00 – 2026-01-02 10:00 (Asia/Tokyo)", 34, 38),
                ("Old\nWhen: 0001-01-01", 39, 43),
                ("SUMMARY:Damaged\nDTSTART:soon", 44, 47),
            ],
        ),
        ("a.vcf", VCF, [(CARDS[0], 1, 11), (CARDS[1], 12, 17)]),
        ("a.enex", ENEX, [("The code is 4711.", 5, 5), ("[x] Paint", 6, 6)]),
        (
            "a.canvas",
            CANVAS,
            [("The code\nis 4711.", 2, 2), ("notes/gate.md", 3, 3), ("Harbour", 4, 4), ("opens", 5, 5)],
        ),
        ("a.vtt", VTT, [("Kim: The code is 4711 & more.\nLee: Thanks.", 7, 13)]),
        ("a.srt", SRT, [("The code is 4711. Good.", 3, 8)]),
    ],
)  # fmt: skip
def test_what_programs_keep_is_written_for_people(path, text, expected):
    assert found(text, path) == expected
    assert found(text.replace("\n", "\r\n"), path) == expected


@pytest.mark.parametrize(
    ("path", "text", "anchors"),
    [
        (
            "a.ics",
            ICS,
            [
                "2026-05-02 10:00",
                "2026-05-10",
                "2026-12-21",
                "2026-12-24",
                "2026-01-02 17:00",
                "0001-01-01",
                "",
            ],
        ),
        ("a.vcf", VCF, ["contact 1", "contact 2"]),
    ],
)
def test_each_event_and_contact_is_a_passage(path, text, anchors):
    chunks = chunk_document("d", read_document(text, path), ChunkSettings())
    assert [chunk.anchor for chunk in chunks] == anchors


def test_times_of_subtitles_are_places():
    cues = "".join(
        f"00:{n:02}:00.000 --> 00:{n:02}:09.000\n{'word ' * 30}{n}\n\n" for n in range(9)
    )
    anchors = [block.anchor for block in read_document(f"WEBVTT\n\n{cues}", "a.vtt").blocks]
    assert anchors == ["00:00:00", "00:03:00", "00:06:00"]


def test_a_note_has_its_date_tags_and_files():
    (note,) = read_all(ENEX, "a.enex")
    assert (note.key, note.attached) == ("Gate", (("a.txt", b"zebra"),))
    assert {
        "title": "Gate",
        "tags": ["harbour"],
        "updated_at": "20260203T101112Z",
    }.items() <= note.inferred.items()


def test_archives_are_lists_of_their_files():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("b/offer.pdf"))
    for path, data in (("a.zip", zipped({"b/offer.pdf": "x"})), ("a.tar.gz", packed.getvalue())):
        document = read_document(data, path)
        assert [block.text for block in document.blocks] == ["- b/offer.pdf"]
        assert document.notes == ("left out: the content of 1 file",)


def test_a_message_of_apple_mail_has_its_lines():
    message = "Subject: Gate\nFrom: a@b.c\n\nThe code is 4711.\n"
    data = f"{len(message)}\n{message}<?xml version='1.0'?><plist/>\n"
    assert found(data, "a.emlx") == [("The code is 4711.", 5, 5)]


def test_a_message_of_outlook_is_read_as_mail(monkeypatch):
    message = SimpleNamespace(
        message_headers={"X-Scope": "hr"}, properties=SimpleNamespace(int_prop_value={0x36: 2}.get, binary_prop_value={}.get), subject="Gäte", sender='"Kim" <k@b.org>', sent_date=datetime(2026, 2, 3, tzinfo=UTC),
        recipients=[SimpleNamespace(name="Lee, J", email_address="l@b.org")],
        body="The code is 4711.\n", html_body=None,
        attachments=[SimpleNamespace(mime_type=None, file_name="ä.txt", file_bytes=b"zebra", _storage=Storage("", (), ()))],
    )  # fmt: skip
    monkeypatch.setattr("oxmsg.Message.load", lambda _data: message)
    document = read_document(b"\xd0\xcf\x11\xe0", "a.msg")
    assert [block.text for block in document.blocks] == ["The code is 4711.", "- attachment: ä.txt"]
    assert document.attached == (("ä.txt", b"zebra"),)
    assert {
        "title": "Gäte",
        "updated_at": "2026-02-03T00:00:00+00:00",
        "from": ["Kim <k@b.org>"],
        "to": ["Lee, J <l@b.org>"],
        "sensitivity": "confidential",
        "x-scope": "hr",
    }.items() <= document.inferred.items()


def outlook(header: int, *storages: Storage, **texts: bytes) -> Storage:
    """A message: the values of its properties by the hexadecimal number of their id and type."""
    entries = b"".join(
        struct.pack("<HHIII", int(name[5:], 16), int(name[1:5], 16), 6, len(value), 0)
        for name, value in texts.items()
    )
    streams = [Stream(f"__substg1.0_{name[1:]}", value) for name, value in texts.items()]
    properties = Stream("__properties_version1.0", bytes(header) + entries)
    return Storage("", (*streams, properties), storages)


RTF = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl\f0 Arial;}{\colortbl;\red255\green255\blue255;}
{\stylesheet{\s1\outlinelevel0 heading 1;}}{\info{\title The l\'e4ase}{\revtim\yr2026\mo3\dy4}}
{\*\userprops {\propname Sensitivity}\proptype30{\staticval secret}}
\pard\s1 Rent\par\pard It is 900 \u8364? {\v four words of secret}due\footnote Or later.}.\par
\trowd Month\cell Sum\cell\row\trowd May\cell 17\cell\row
\pard\outlinelevel1 Keys \u-10179?\u-8704?\par\pard{\*\shppict{\pict\pngblip 00ff}}
{\field{\*\fldinst HYPERLINK "https://x.org"}{\fldrslt The page}}{\cf1 white}{\deleted gone}.\par}"""


def test_rich_text():
    """It is read as it is shown, and what is hidden is none of it."""
    source = RTF.replace(rb"due\footnote", rb"due{\footnote")
    document = read_document(source, "a.rtf")
    text = [(block.level, block.text) for block in document.blocks]
    assert text == [
        (1, "# Rent"),
        (0, "It is 900 € due [Or later.]."),
        (0, "Month | Sum\nMay | 17"),
        (2, "## Keys 😀"),
        (0, "The page."),
    ]
    assert {part.kind: part.text for part in document.hidden} == {
        "invisible_element": "four words of secret",
        "tracked_deletion": "gone",
        "white_text": "white",
    }
    inferred = dict(document.inferred)
    assert (inferred["title"], inferred["updated_at"]) == ("The läase", "2026-3-4")
    assert inferred["property.Sensitivity"] == "secret"
    # A white text may stand on a dark cell.
    shaded = read_document(source.replace(rb"\trowd", rb"\trowd\clcbpat2"), "a.rtf")
    assert "The pagewhite." in shaded.lines
    assert read_document(rb"{\rtf1 {\header x}Hello", "a.rtf").notes == (
        "left out: headers and footers",
    )
    for damaged in (b"Hello", b"", b"PK"):
        with pytest.raises(DocumentError, match=r"a\.rtf"):
            read_document(damaged, "a.rtf")


def test_messages_in_messages_of_outlook_and_their_rtf(monkeypatch):
    text = b"{\\rtf1\\ansi The key is in cabinet 17.\\par Room \\u937?.}"
    rtf = struct.pack("<IIII", len(text) + 12, len(text), 0x414C454D, 0) + text
    inner = outlook(24, p0037001F="Löck".encode("utf-16-le"), p10090102=rtf)
    inner = replace(inner, path="__substg1.0_3701000D")
    attached = replace(outlook(8, inner), path="__attach_version1.0_#00000000")
    whole = outlook(32, attached, p0037001F="Fwd".encode("utf-16-le"))
    monkeypatch.setattr("oxmsg.Message.load", lambda _data: oxmsg.Message(whole))
    document = read_document(b"\xd0\xcf\x11\xe0", "a.msg")
    assert [block.text for block in document.blocks] == [
        "Subject: Löck", "The key is in cabinet 17.\nRoom Ω.",
    ]  # fmt: skip
