import pytest

from rolebundle.errors import DocumentError
from support.reading import read_all

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
    return read_all(text, "cases.txt", "separated", separator)


def test_each_part_is_a_document_with_the_lines_of_the_whole_file():
    documents = read(TEXT)
    assert [(d.key, d.inferred.get("title")) for d in documents] == [
        ("0", None),
        ("first-case", "First Case"),
        ("first-case-2", "First case"),
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


@pytest.mark.parametrize(
    "text",
    [
        "=== First case ===\nbody one\n===\n=== Second: case ===\nbody two\n===\n",
        "===\nFirst case\n===\nbody one\n\n===\nSecond: case\n===\nbody two\n",
        "=====\n=== First case\n=====\nbody one\n=====\n=== Second: case =====\n\nbody two\n",
        "First case\nbody one\n===\nSecond: case\n\nbody two",
        "======\nFirst case\n\nbody one\n=====\nSecond: case\nbody two\n===\n",
    ],
)
def test_title_and_text_of_a_document_stay_together(text):
    documents = read(text)
    assert [d.inferred["title"] for d in documents] == ["First case", "Second: case"]
    for document, body in zip(documents, ("body one", "body two"), strict=True):
        block = document.blocks[-1]
        assert body in block.text
        assert document.lines[block.end_line - 1] == body


def test_a_record_of_one_line_is_no_title():
    assert [d.blocks[0].text for d in read("yes\n===\nno\n===\nperhaps\n")] == [
        "yes",
        "no",
        "perhaps",
    ]


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
