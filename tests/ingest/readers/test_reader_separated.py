import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.readers import reader_for
from rolebundle.ingest.readers.base import ReaderOptions

TEXT = """\
before

=== First Case
---
tags: [a]
---
# Inside

text
=== First case
more
===
=== Last
"""


def read(text, separator="==="):
    reader = reader_for("cases.txt", "separated")
    return list(reader.read(text.encode(), "cases.txt", ReaderOptions(separator=separator)))


def test_each_part_is_a_document_with_the_lines_of_the_whole_file():
    documents = read(TEXT)
    assert [(d.key, d.inferred.get("title")) for d in documents] == [
        ("0", None),
        ("first-case", "First Case"),
        ("first-case-2", "First case"),
        ("3", None),
        ("last", "Last"),
    ]
    assert documents[1].declared == {"tags": ["a"]}
    assert documents[1].declared_at == 5
    assert [(b.kind, b.start_line, b.end_line) for b in documents[1].blocks] == [
        ("heading", 7, 7),
        ("paragraph", 9, 9),
    ]
    assert [(b.text, b.start_line) for b in documents[2].blocks] == [("more", 11)]


def test_blank_text_before_the_first_separator_is_not_a_document():
    assert [d.key for d in read("\n\n=== A\nx\n")] == ["a"]


def test_no_separator_is_an_error():
    with pytest.raises(DocumentError) as caught:
        read("x", "")
    assert caught.value.code == "no_separator"


def test_bad_front_matter_in_one_part_does_not_affect_the_others():
    good, bad, last = read("=== A\nx\n=== B\n---\nscope: 1\nscope: 2\n---\n=== C\ny\n")
    assert isinstance(bad, DocumentError)
    assert bad.code == "bad_front_matter"
    assert "cases.txt:6" in bad.message
    assert [d.key for d in (good, last)] == ["a", "c"]
