"""Subtitles: speech in paragraphs, with the time at which they begin."""

from __future__ import annotations

from support.reading import read_document

VTT = """\
WEBVTT - Harbour meeting

NOTE zebra47

STYLE
::cue { color: red }

REGION
id:x

first
00:01.000 --> 00:04.000 align:start
<v Anna Berg>We open at <b>dawn</b>,

00:00:05.000 --> 00:07.000
<v Anna Berg>and close at dusk.

01:02:05.000 --> 01:02:07.000
<v.loud Ben>Who has the <00:01:06.000>keys &amp; maps?
"""


def test_vtt_is_speech_with_speakers():
    document = read_document(VTT, "a.vtt")
    (block,) = document.blocks
    assert (
        block.text
        == "Anna Berg: We open at dawn, and close at dusk.\nBen: Who has the keys & maps?"
    )
    assert (block.start_line, block.end_line, block.anchor) == (13, 19, "00:00:01")
    assert document.inferred == {"title": "Harbour meeting"}


def test_notes_and_styles_are_not_speech():
    document = read_document(VTT, "a.vtt")
    assert [part.text for part in document.hidden] == ["zebra47"]
    assert not any(word in document.blocks[0].text for word in ("zebra47", "color", "id:x"))


def test_srt_without_blank_lines_and_with_windows_ends():
    text = (
        "\ufeff1\r\n00:00:01,000 --> 00:00:04,000\r\nHello\r\n<i>there</i> {\\an8}\r\n"
        "2\r\n00:59:59,100 --> 01:02:04,000\r\nANNA: It was\r\n1984\r\n"
    )
    (block,) = read_document(text, "a.srt").blocks
    assert block.text == "Hello there\nANNA: It was 1984"
    assert (block.start_line, block.end_line) == (3, 8)


def test_paragraphs_have_about_1000_characters_and_their_time():
    cues = "".join(
        f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:00:00,000\n{'word ' * 9}{n}\n\n"
        for n in range(60)
    )
    blocks = read_document(cues, "a.srt").blocks
    assert len(blocks) == 3
    assert all(len(block.text) <= 1000 for block in blocks)
    assert [block.anchor for block in blocks] == ["00:00:00", "00:00:21", "00:00:41"]


def test_a_repeated_line_is_read_once():
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n\n00:02.000 --> 00:03.000\nhello\nworld\n"
    assert [block.text for block in read_document(text, "a.vtt").blocks] == ["hello world"]
