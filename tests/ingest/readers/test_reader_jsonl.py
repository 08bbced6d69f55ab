import json

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.readers import reader_for
from rolebundle.ingest.readers.base import ReaderOptions
from support.reading import read_all


def read(text):
    return read_all(text, "a.jsonl")


def test_a_line_is_a_document():
    record = {
        "_id": 7,
        "title": "T",
        "text": "one\nline\n\n \ntwo",
        "metadata": {"domain": "x", "volume": "A"},
    }
    (document,) = read("\n" + json.dumps(record) + "\n")
    assert document.key == "7"
    assert document.declared == {"document_id": "7", "title": "T", "domain": "x"}
    assert document.declared_at == 2
    assert [(b.text, b.start_line, b.end_line) for b in document.blocks] == [
        ("one\nline", 2, 2),
        ("two", 2, 2),
    ]
    assert "'volume'" in document.notes[0]
    assert not document.line_exact


def test_an_unknown_key_is_noted_once():
    line = '{"_id": "%s", "text": "x", "metadata": {"volume": "A"}}\n'
    documents = read(line % "a" + line % "b")
    assert [len(d.notes) for d in documents] == [1, 0]


def test_a_record_without_text_is_indexed_by_its_title():
    (document,) = read('{"_id": "a", "title": "Only this", "text": ""}')
    assert [b.text for b in document.blocks] == ["Only this"]


def test_bad_lines_are_reported_and_the_others_are_read():
    good, *bad, last = read(
        '{"_id": "a", "text": "x"}\n{oops\n[1]\n{"_id": "a", "text": "y"}\n'
        '{"_id": [], "text": "y"}\n{"_id": "c", "text": 1}\n{"_id": "d", "_id": "e"}\n'
        '{"_id": "f", "metadata": 3}\n{"_id": "z", "text": "x"}\n'
    )
    assert [good.key, last.key] == ["a", "z"]
    assert all(isinstance(e, DocumentError) and e.code == "bad_json_line" for e in bad)
    assert "line 2 is not JSON" in bad[0].message
    assert "line 3 is not a JSON object" in bad[1].message
    assert "line 4 repeats the _id of line 1" in bad[2].message
    assert len(bad) == 7


def test_a_file_of_bad_lines_gives_a_short_report():
    results = read("x\n" * 1000)
    assert len(results) == 21
    assert "980 more lines" in results[-1].message


def test_unicode_separators_do_not_end_a_line():
    (document,) = read('{"_id": "a", "text": "x\u2028y"}\n')
    assert document.blocks[0].text == "x\u2028y"


def read_bytes(data):
    return list(reader_for("a.jsonl").read(data, "a.jsonl", ReaderOptions()))


def test_a_line_that_is_not_utf8_does_not_change_the_others():
    lines = [
        '{"text": "Füße"}'.encode(),
        b'{"text": "\xff"}',
        b"\xfe\x00\xff",
        '{"text": "日"}'.encode(),
    ]
    first, *bad, last = read_bytes(b"\n".join(lines))
    assert [first.blocks[0].text, last.blocks[0].text] == ["Füße", "日"]
    assert [error.message for error in bad] == [
        "a.jsonl: line 2 is not JSON",
        "a.jsonl: line 3 is not JSON",
    ]


def test_a_nul_concerns_its_record_only():
    nul, *bad, last = read_bytes(b'{"text": "a\x00b"}\n' + bytes(9000) + b'\n{"text": "c"}\n')
    assert (nul.blocks[0].text, last.blocks[0].text, len(bad)) == ("a\ufffdb", "c", 1)


def test_a_western_file_is_read_as_a_whole():
    (document,) = read_bytes('{"text": "Füße"}\n'.encode("cp1252"))
    assert document.blocks[0].text == "Füße"


@pytest.mark.parametrize("data", [bytes(range(256)) * 9, b"\xff\xfd\x01" * 99, bytes(99)])
def test_a_file_without_any_record_is_refused(data):
    with pytest.raises(DocumentError) as caught:
        read_bytes(data)
    assert caught.value.code in ("binary", "undecodable")


def test_the_number_of_an_export_is_no_document_id():
    for key, declared in {"_id": "7", "id": None}.items():
        (document,) = read_bytes(f'{{"{key}": 7, "text": "x"}}'.encode())
        assert document.key == "7"
        assert document.declared.get("document_id") == declared
