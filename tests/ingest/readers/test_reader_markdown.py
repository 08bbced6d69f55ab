import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.readers.markdown import plain_words
from support.reading import read_document

TEXT = """\
---
title: Declared
---
# The *first* `heading`

A paragraph
of two lines.

[ref]: https://example.org

Setext
======

- one
- two

  more of two

1. first
2. second

| a | b |
| - | - |
| 1 | 2 |

```python
# no heading

x = 1
```

    indented code

> quoted

***

<div>
html
</div>
"""


def read(text, path="a.md"):
    return read_document(text, path)


def test_blocks_are_the_source_lines_of_each_structure():
    document = read(TEXT)
    assert [(b.kind, b.level, b.start_line, b.end_line) for b in document.blocks] == [
        ("heading", 1, 4, 4),
        ("paragraph", 0, 6, 7),
        ("paragraph", 0, 9, 9),
        ("heading", 1, 11, 12),
        ("list", 0, 14, 17),
        ("list", 0, 19, 20),
        ("table", 0, 22, 24),
        ("code", 0, 26, 30),
        ("code", 0, 32, 32),
        ("paragraph", 0, 34, 34),
        ("paragraph", 0, 38, 40),
    ]
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


def test_front_matter_is_declared_and_the_first_heading_inferred():
    document = read(TEXT)
    assert document.declared == {"title": "Declared"}
    assert document.declared_at == 2
    assert document.inferred == {"title": "The first heading"}


def test_a_thematic_break_at_the_top_is_not_front_matter():
    document = read("---\n\n# A\n\ntext\n")
    assert document.declared == {}
    assert document.blocks[0].start_line == 3


def test_bad_front_matter_names_path_and_line():
    with pytest.raises(DocumentError, match=r"docs/x\.md:3"):
        read("---\nscope: 1\nscope: 2\n---\n", "docs/x.md")


def test_windows_line_ends_are_single_line_breaks():
    document = read("# A\r\n\r\ntext\r\nmore\r\n")
    assert document.blocks[1].text == "text\nmore"
    assert (document.blocks[1].start_line, document.blocks[1].end_line) == (3, 4)


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("plain", "plain"),
        ("`code` and **bold**", "code and bold"),
        ("[a link](https://example.org) ![alt](x.png)", "a link alt"),
        ("Install {#install}", "Install"),
        ("a &amp; b", "a & b"),
        ("*" * 600, "*" * 600),
    ],
)
def test_headings_are_plain_words(markup, words):
    assert plain_words(markup) == words


def test_an_empty_file_has_no_blocks():
    assert read("").blocks == ()
    assert read("\n \n").blocks == ()
