"""Readers of markup: HTML, Markdown, reStructuredText."""

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.readers.lines import plain_words as plain_words_rst
from rolebundle.ingest.readers.markdown import plain_words
from support.amounts import linear_time
from support.reading import properties, read_document

# -- html ------------------------------------------------------------------------------------------


def read(text):
    return read_document(text, "a.html")


def blocks(text):
    return [(b.kind, b.text, b.start_line, b.end_line) for b in read(text).blocks]


def test_structure_and_lines():
    assert blocks(
        "<html><body>\n<h2>A <em>title</em></h2>\n<p\n class=x>two\nlines</p>\nloose\n<b>text</b>\n"
        "<ul><li>one</li>\n<li>two <p>more</p><ul><li>deep</li></ul></li></ul>\n"
        "<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr></table>\n"
        "<pre>\nx = 1\n\n  y</pre>\n<dl><dt>term</dt><dd>meaning</dd></dl>\n"
        "<blockquote>said</blockquote></body></html>"
    ) == [
        ("heading", "## A title", 2, 2),
        ("paragraph", "two lines", 4, 5),
        ("paragraph", "loose text", 6, 7),
        ("list", "- one\n- two more\n  - deep", 8, 9),
        ("table", "a | b\n1 | 2", 10, 11),
        ("code", "x = 1\n\n  y", 13, 15),
        ("paragraph", "term", 16, 16),
        ("paragraph", "meaning", 16, 16),
        ("paragraph", "said", 17, 17),
    ]


def test_invisible_elements_are_skipped_and_counted():
    document = read(
        "<body><p>kept<script>no()</script> too</p>"
        "<div hidden>no</div><div aria-hidden=true>no</div><p style='DISPLAY : none'>no</p>"
        "<style>no</style><template>no</template><!-- no --><noscript>no</noscript>"
        "</body>"
    )
    assert [b.text for b in document.blocks] == ["kept too"]
    assert [b.text for b in read("<p>con&shy;fig\u00adured</p>").blocks] == ["configured"]
    assert document.notes == ()  # Nobody misses it.


@pytest.mark.parametrize(("body", "text"), [
    ("10<span class=up>6</span>", "10^6"), ("H<b class=low>2</b>O", "H_2O"),
    ("1987<a class=up href=#n>3</a>", "1987[3]"), ("10<i style='vertical-align:super'>6</i>", "10^6"),
    ("<span class=other>10</span>6", "106"), ("<i class=gone>7.50</i>5", "~~7.50~~5"),
    ("<b class=first>1</b>914", "1914"), ("<b class=first>1</b> step", "1 step"),
])  # fmt: skip
def test_what_a_style_raises_lowers_or_strikes_out_is_apart(body, text):
    sheet = ".up{vertical-align: super} .low{vertical-align: sub} .other{vertical-align: middle}"
    sheet += " .gone{text-decoration: red line-through} .first{float: left}"
    assert [b.text for b in read(f"<style>{sheet}</style><p>{body}</p>").blocks] == [text]


def test_cells_and_items_may_be_struck_out_by_a_style():
    page = "<table><tr><td>Fee<td class=o>7.50<td>9</table><ul><li class=o>milk</ul>"
    blocks = read(f"<style>.o{{text-decoration: line-through}}</style>{page}").blocks
    assert [b.text for b in blocks] == ["Fee | ~~7.50~~ | 9", "- ~~milk~~"]


@pytest.mark.parametrize("links", ["#a #b #c", "#a #b other.html", "#a #b"])
def test_a_table_of_contents_is_left_out_and_no_heading_of_what_follows(links):
    items = "".join(f"<li>\n<a href={link}>{link[1:]}</a></li>" for link in links.split())
    mark = "<span><a href='#a'>#</a></span>"
    found = read(f"<h1>T</h1><h2>Contents</h2><ul>{items}</ul><h3>a{mark}</h3><p>text</p>").blocks
    contents = [block.text for block in found if block.kind == "list"]
    own = ["## Contents"] if contents else []
    assert [b.text for b in found if b.kind != "list"] == ["# T", *own, "### a", "text"]
    assert bool(contents) == (links != "#a #b #c")


LINKS = "".join(f"<li><a href=/{name}>{name} page</a></li>" for name in "abcd")


@pytest.mark.parametrize("main", [
    "<main>{}</main>", "<div role=main>{}</div>", "<article>{}</article>",
    "<div id=content>{}</div>",
])  # fmt: skip
def test_what_is_around_the_main_part_is_read(main):
    page = f"<body><ul>{LINKS}</ul><div>Rates are 7.</div>{main.format('<p>Boats.</p>')}</body>"
    assert [block.text for block in read(page).blocks][1:] == ["Rates are 7.", "Boats."]


@pytest.mark.parametrize("tag", ["nav", "header", "footer", "aside", "div role=navigation"])
def test_regions_lose_their_lists_of_links_only(tag):
    page = f"<p>{'Boats stay ashore. ' * 9}</p><{tag}><p>If it is red, stop.</p><ul>{LINKS}</ul>"
    assert [block.text for block in read(page).blocks][1:] == ["If it is red, stop."]


@pytest.mark.parametrize(("region", "rest"), [
    ("<header><p><a href=a>Home</a> | <a href=b>Staff</a></p><h1>Boats</h1></header>", ["# Boats"]),
    ("<footer><p><a href=a>Imprint</a> · <a href=b>Privacy</a></p><p>Tel. 12</p></footer>", ["Tel. 12"]),
    ("<nav><h2>Menu</h2><ul><li><a href=a>Home</a><li><a href=b>Staff</a></ul></nav>", []),
    ("<nav>Home | Staff | Login</nav>", []),
    ("<nav>If it is red, stop the pump. | Then call us.</nav>", ["If it is red, stop the pump. | Then call us."]),
    ("<header><a href=a>Home</a> of the boats</header>", ["Home of the boats"]),
])  # fmt: skip
def test_navigation_is_left_out(region, rest):
    page = f"{region}<main><p>{'Boats stay ashore. ' * 9}</p></main>"
    assert [block.text for block in read(page).blocks][:-1] == rest


def test_most_of_a_page_is_never_left_out():
    page = f"<nav><ul>{LINKS}</ul></nav><p>Short.</p>"
    assert read(page).blocks[0].text.startswith("- a page")
    page = f"<nav><ul>{LINKS}</ul></nav><p>{'A longer text. ' * 2}</p>"
    assert read(page).notes == ("left out: lists of links with 57% of the page's words",)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("10<sup>-5</sup> bar and 2<sup>10</sup> holes", "10^-5 bar and 2^10 holes"),
        ("built in 1987<sup>3</sup>.", "built in 1987[3]."),
        ("12 t<sup><a href=#n1>1</a></sup>", "12 t[1]"),
        (
            "over <s> five </s><del>four <strike>3</strike> </del> two",
            "over ~~five~~ ~~four~~ ~~3~~ two",
        ),
        ("<ul><li><del>key</del><li>mat</ul>", "- ~~key~~\n- mat"),
        ("2<sup>3<sup>4</sup></sup> and x<sub>i<sub>17</sub></sub>", "2^(3^4) and x_i_17"),
        ("2<sup>3<sup>4<sup>5</sup></sup></sup> holes", "2^(3^(4^5)) holes"),
        ("1<sup>1</sup>/<sub>2</sub> cups of H<sub>2</sub>O", "1 1/2 cups of H_2O"),
        ("<math><mfrac><mn>3</mn><mn>4</mn></mfrac></math> of it", "3/4 of it"),
        ("<ruby>東京<rp>(</rp><rt>とうきょう</rt></ruby>へ", "東京 (とうきょう)へ"),
        ("said.<span style='float:right'>170</span>", "said. 170"),
        ("<style>.n{display:block}</style>Total<b class=n>250</b>", "Total 250"),
        ("<b style='float:left'>O</b>nce", "Once"),
        ("<svg><text>North 4711</text><text>South 815</text></svg>", "North 4711 South 815"),
        ("<svg><text>7322<tspan dx=40>653</tspan></text></svg>", "7322 653"),
        ("<input type=checkbox checked>Key <input value=Ana>", "[x] Key Ana"),
        ("<pre><code><div>x = 1</div><div>y = 2</div></code></pre>", "x = 1\ny = 2"),
        ("<ol type=a start=2><li>no dogs<li>no fire</ol>", "b. no dogs\nc. no fire"),
        ("<ol reversed><li>x<li>y</ol>", "2. x\n1. y"),
        ("<ol><li value=7>x<li>y</ol>", "7. x\n8. y"),
        ("<button aria-expanded=false>When does it close?</button>", "###### When does it close?"),
        (
            "<table><tr><td rowspan=2>A<td>1<tr><td>2<tr><td colspan=2>T<td>3</table>",
            "A | 1\n | 2\nT |  | 3",
        ),
    ],
)
def test_what_a_browser_shows_without_letters_is_written(page, text):
    assert read(f"<body>{page}</body>").blocks[0].text == text


def test_title_language_and_date_come_from_the_head():
    page = (
        "<html lang=de><head><title>\n The\n title</title>"
        "<meta property='article:modified_time' content='2026-03-01T10:00:00Z'>"
        "<meta name=last-modified content='last Tuesday'></head><body>x</body></html>"
    )
    assert properties(read(page)) == {
        "title": "The title", "language": "de", "updated_at": "2026-03-01T10:00:00Z",
    }  # fmt: skip
    assert properties(read("<h1>Only a heading</h1>")) == {"title": "Only a heading"}


def test_line_breaks_in_odd_places_are_counted():
    page = "<body><p>a</p\n><p>b &#10;\n<!-- x\ny --> c<img\nalt=x>d\n</p><p>e</p></body>"
    assert [block[1:] for block in blocks(page)] == [("a", 1, 1), ("b cd", 2, 5), ("e", 6, 6)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "last",
    ["</body></html>", "</html>", "</BODY\n>", "</html>\n<html><head><title>x</title><body>"],
)
def test_text_after_the_last_tags_is_read(last):
    found = blocks(f"<html><body><p>one</p>{last}\n<p>two</p>\n___\nthree")
    line = 2 + last.count("\n")
    assert found == [
        ("paragraph", "one", 1, 1),
        ("paragraph", "two", line, line),
        ("paragraph", "___ three", line + 1, line + 2),
    ]


@pytest.mark.parametrize("span", ["colspan", "rowspan"])
def test_tables_with_cells_over_several_have_their_lines(span):
    table = f"<table><tr><td {span}=2>A</td>\n<td>1</td></tr>\n<tr><td>2</td></tr>\n</table>"
    page = f"<p>x</p>\n{table}\n<table>\n<tr><td>B</td><td {span}=2>\n\nC</td></tr></table>"
    assert [(block[2], block[3]) for block in blocks(page)] == [(1, 1), (2, 4), (6, 9)]


def test_lines_beyond_the_limit_of_libxml2_are_correct():
    lines = (f"<p>line {i}</p>\n" if i % 20 == 0 else "\n" for i in range(2, 80_000))
    parsed_blocks = read(f"<body>\n{''.join(lines)}</body>").blocks
    assert len(parsed_blocks) == 3_999
    for block in parsed_blocks[::100]:
        number = int(block.text.split()[1])
        assert block.start_line <= number <= block.end_line
        assert number > 65_000 or block.start_line == block.end_line


def test_chunks_of_a_long_listing_have_exact_lines():
    page = "<body><pre>" + "\n".join(f"<b>line</b> {i}" for i in range(1, 300)) + "</pre></body>"
    (block,) = read(page).blocks
    assert block.aligned
    assert (block.start_line, block.end_line) == (1, 299)


def test_a_long_list_or_table_is_one_block_per_item():
    items = "".join(f"<li>item {i} {'x' * 40}</li>\n" for i in range(100))
    rows = "".join(f"<tr><td>row {i}</td><td>{'x' * 40}</td></tr>\n" for i in range(100))
    parsed_blocks = read(f"<body><ul>\n{items}</ul>\n<table>\n{rows}</table></body>").blocks
    assert [b.kind for b in parsed_blocks] == ["list"] * 100 + ["table"] * 100
    assert {b.end_line - b.start_line for b in parsed_blocks} == {0}


def test_the_page_is_decoded_by_its_own_charset():
    page = "<meta charset=koi8-r><p>мягких булок</p>".encode("koi8-r")
    assert [b.text for b in read(page).blocks] == ["мягких булок"]


def test_nothing_is_fetched_or_expanded():
    page = (
        '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><body><p>a &x; b</p>'
        '<iframe src="file:///etc/passwd"></iframe></body>'
    )
    assert "root:" not in read(page).blocks[0].text


def test_a_page_that_is_nested_too_deeply_is_an_error():
    with pytest.raises(DocumentError, match=r"\[unreadable_html\]"):
        read("<div>" * 400 + "deep" + "</div>" * 400 + "<p>after</p>")


def test_a_long_value_and_an_open_quote_are_no_attributes():
    path = "<svg><path d='" + "M 1 2 " * 20_000 + "'></svg>"
    page = f'{path}<p><a href=x">a link</a></p>' + "<p>many words</p>" * 20_000
    assert len(blocks(page)) == 20_001


@pytest.mark.parametrize("page", [b"", b" \n", b"<!--", b"<!-- x -->"])
def test_an_empty_page_has_no_blocks(page):
    assert read(page).blocks == ()


def test_control_characters_of_text_and_style_sheets_are_read():
    page = '<body><p>one&#27;[1m<br>&#27;two</p><p class="&#1;">kept for a model only, four</p>'
    assert blocks(page)[0][1] == "one\x1b[1m \x1btwo"
    for sheet in (".\\1 {display:none}", "[class='\x01']{display:none}"):
        document = read(f"<style>{sheet}</style>{page}")
        assert any(part.is_labelled for part in document.hidden)


# -- markdown --------------------------------------------------------------------------------------

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


def test_blocks_are_the_source_lines_of_each_structure():
    document = read_document(TEXT, "a.md")
    assert [(b.kind, b.level, b.start_line, b.end_line) for b in document.blocks] == [
        ("heading", 1, 4, 4), ("paragraph", 0, 6, 7), ("paragraph", 0, 9, 9),
        ("heading", 1, 11, 12), ("list", 0, 14, 17), ("list", 0, 19, 20), ("table", 0, 22, 24),
        ("code", 0, 26, 30), ("code", 0, 32, 32), ("paragraph", 0, 34, 34), ("paragraph", 0, 38, 40),
    ]  # fmt: skip
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


def test_front_matter_is_declared_and_the_first_heading_inferred():
    document = read_document(TEXT, "a.md")
    assert document.declared == {"title": "Declared"}
    assert document.declared_at == 2
    assert properties(document) == {"title": "The first heading"}


def test_a_thematic_break_at_the_top_is_not_front_matter():
    document = read_document("---\n\n# A\n\ntext\n", "a.md")
    assert document.declared == {}
    assert document.blocks[0].start_line == 3


@pytest.mark.parametrize(("markup", "words"), [
    ("plain", "plain"),
    ("`code` and **bold**", "code and bold"),
    ("[a link](https://example.org) ![alt](x.png)", "a link alt"),
    ("Install {#install}", "Install"),
    ("a &amp; b", "a & b"),
    ("*" * 600, "*" * 600),
])  # fmt: skip
def test_headings_are_plain_words(markup, words):
    assert plain_words(markup) == words


# -- rst -------------------------------------------------------------------------------------------

TEXT_RST = """\
.. SPDX-License-Identifier: MIT
   a comment
   of three lines

.. _label:

=====
Title
=====

:Author: Someone
:Date: today

Section
-------

A paragraph that ends like this::

  literal block

  still literal

* one
* two

  more of two

#. first
#. second

.. code-block:: python
   :linenos:

   x = 1

.. note:: Take care

   of this as well.

+---+---+
| a | b |
+---+---+

=== ===
 a   b
=== ===
 1   2
=== ===

Sub :ref:`part <x>`
~~~~~~~~~~~~~~~~~~~

>>> 1 + 1
2

----

.. _site: https://example.org

Other
-----
text right below
"""


def test_blocks_are_the_source_lines_of_each_structure_rst():
    document = read_document(TEXT_RST, "a.rst")
    assert [(b.kind, b.level, b.heading or b.text.split("\n")[0]) for b in document.blocks] == [
        ("heading", 1, "Title"), ("paragraph", 0, ":Author: Someone"), ("heading", 2, "Section"),
        ("paragraph", 0, "A paragraph that ends like this::"), ("code", 0, "  literal block"),
        ("paragraph", 0, "* one"), ("paragraph", 0, "  more of two"), ("paragraph", 0, "#. first"),
        ("code", 0, ".. code-block:: python"),
        ("paragraph", 0, ".. note:: Take care"), ("paragraph", 0, "   of this as well."),
        ("paragraph", 0, "+---+---+"), ("paragraph", 0, "=== ==="), ("heading", 3, "Sub part"),
        ("paragraph", 0, ">>> 1 + 1"), ("paragraph", 0, ".. _site: https://example.org"),
        ("heading", 2, "Other"), ("paragraph", 0, "text right below"),
    ]  # fmt: skip
    assert properties(document) == {"title": "Title"}
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


def test_a_title_among_header_fields_goes_before_the_first_heading():
    text = (
        "PEP: 1\nTitle: Purpose of ``PEPs``\nAuthor: A,\n        B\n\nAbstract\n========\n\nText.\n"
    )
    assert properties(read_document(text, "a.rst")) == {"title": "Purpose of PEPs"}
    assert properties(read_document("See\nTitle: x\n\n" + text, "a.rst")) == {"title": "Abstract"}


@pytest.mark.parametrize(("title", "words"), [
    ("A :func:`name` call", "A name call"),
    ("``literal`` *stress*", "literal stress"),
    ("`text <https://example.org>`_", "text"),
    ("2 * 3 * 4", "2 * 3 * 4"),
])  # fmt: skip
def test_titles_are_plain_words(title, words):
    assert plain_words_rst(title) == words


@pytest.mark.parametrize("text", [
    ".. _" + "`a` " * 2000,
    "== ==\nx\n" * 3000,
    ".. _" + "\\" * 5000,
    ":a" * 5000 + "\n====",
    "".join(f".. _target{number}:\n" for number in range(4_000)),
], ids=["quotes", "tables", "escapes", "fields", "targets"])  # fmt: skip
def test_hostile_lines_take_linear_time(text):
    with linear_time(max(len(text), 50_000)):
        read_document(text + "\n", "a.rst")


def test_a_footnote_whose_text_begins_on_the_next_line_is_no_comment():
    lines = ["Notes", "=====", "", ".. [#one]", "    The text of the footnote.", "", "    More."]
    kinds = [
        (block.kind, block.start_line) for block in read_document("\n".join(lines), "a.rst").blocks
    ]
    assert kinds == [("heading", 1), ("paragraph", 4), ("paragraph", 7)]


def test_a_web_archive_has_the_text_of_its_page():
    source = (
        "MIME-Version: 1.0\nSnapshot-Content-Location: https://example.org/rules\n"
        'Content-Type: multipart/related; boundary="B"\n\n--B\n'
        "Content-Type: text/html; charset=windows-1251\n"
        "Content-Transfer-Encoding: quoted-printable\n\n<p>=CC=E0=FF=EA nine=\n teen</p>\n--B--\n"
    )
    document = read_document(source, "a.mhtml")
    assert [block.text for block in document.blocks] == ["Маяк nine teen"]
    assert document.inferred["uri"] == "https://example.org/rules"


STYLED = "<style>.p{list-style:none}.s li{list-style-type:upper-roman}</style>"


@pytest.mark.parametrize(("page", "text"), [
    ("<ol><li>a<li>b<ul><li>c</ul></ol>", "1. a\n2. b\n  - c"),
    ("<ol><li>a<ol type=a><li>b<ol type=i><li>c</ol></ol></ol>", "1. a\n  a. b\n    i. c"),
    ("<ol style='list-style:lower-greek' start=4><li>a</ol>", "δ. a"),
    ("<ol style='list-style-type:arabic-indic'><li>a<li value=12>b</ol>", "١. a\n١٢. b"),
    (f"{STYLED}<ol class=p><li>a</ol><ul class=s><li>b</ul>", "- a\nI. b"),
    (f"{STYLED}<ol class=p style='list-style:decimal'><li>a</ol>", "1. a"),
    ("<p>a <progress>7</progress><meter>8</meter> b</p>", "a b"),
    ("<p>a <noscript>7</noscript>b</p>", "a b"),
    ("<p><b style='display:inline-block'>4</b><b style='display:inline-block'>2</b></p>", "42"),
    ("<p><b style='display:inline-block;padding:1em'>4</b><b>2</b></p>", "4 2"),
    ("<style>.f{display:flex}</style><p class=f><span>4</span><b>2</b></p>", "4 2"),
])  # fmt: skip
def test_labels_fallbacks_and_boxes_are_read_as_they_are_shown(page, text):
    blocks = read_document(f"<body>{page}</body>".encode(), "a.html").blocks
    assert "\n".join(" ".join(b.text.split(" ")) for b in blocks).strip() == text


def test_scripts_of_a_mail_never_run():
    mail = b"Content-Type: text/html\n\n<p>a <noscript>7</noscript> b</p>"
    assert [block.text for block in read_document(mail, "a.eml").blocks] == ["a 7 b"]
