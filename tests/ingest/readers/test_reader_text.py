import pytest

from support.reading import read_all


def read(text, path):
    return read_all(text, path, "text")[0]


def shape(document):
    return [(b.kind, b.level, b.heading, b.start_line, b.end_line) for b in document.blocks]


def test_paragraphs_are_separated_by_blank_lines():
    document = read("one\ntwo\n \t\n\nthree\n", "a.txt")
    assert shape(document) == [("paragraph", 0, "", 1, 2), ("paragraph", 0, "", 5, 5)]
    assert "title" not in document.inferred


def test_front_matter_is_read():
    document = read("---\ntitle: T\n---\ntext", "a.txt")
    assert document.declared == {"title": "T"}
    assert shape(document) == [("paragraph", 0, "", 4, 4)]


def test_pod_has_headings_and_verbatim_paragraphs():
    document = read(
        "=head1 B<The> C<< name >>\n\ntext\n\n    code\n    more\n\n=head2 Sub\n", "a.pod"
    )
    assert shape(document) == [
        ("heading", 1, "The name", 1, 1),
        ("paragraph", 0, "", 3, 3),
        ("code", 0, "", 5, 6),
        ("heading", 2, "Sub", 8, 8),
    ]


def test_asciidoc_has_headings():
    document = read("= Title\ntext\n== Sub\nmore", "a.adoc")
    assert document.inferred == {"title": "Title"}
    assert shape(document) == [
        ("heading", 1, "Title", 1, 1),
        ("paragraph", 0, "", 2, 2),
        ("heading", 2, "Sub", 3, 3),
        ("paragraph", 0, "", 4, 4),
    ]


@pytest.mark.parametrize("fence", ["----", "....", "////", "```asciidoc"])
def test_asciidoc_in_a_block_of_asciidoc_has_no_headings(fence):
    document = read(
        f"= Title\n\n{fence}\n= Example\n\n== Part\n{fence[:4].strip('a')}\n\n== Sub\n", "a.adoc"
    )
    assert [b.heading for b in document.blocks if b.heading] == ["Title", "Sub"]


def test_asciidoc_after_a_fence_that_does_not_end_has_headings():
    document = read("= Title\n\n----\n\n== Sub\n", "a.adoc")
    assert [b.heading for b in document.blocks if b.heading] == ["Title", "Sub"]


def test_a_form_feed_does_not_end_a_line():
    document = read("one\ftwo\n\nthree\u2028four\n", "a.txt")
    assert [(b.start_line, b.end_line) for b in document.blocks] == [(1, 1), (3, 3)]
