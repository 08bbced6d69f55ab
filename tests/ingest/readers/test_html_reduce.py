"""A page that is read from a reduced source has the same content."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.ingest.readers import html as html_reader
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.html_reduce import Reduced, reduce_source

INLINE = ["span", "a", "code", "em", "strong", "b", "i", "tt", "sub"]
ATTRIBUTES = [
    "",
    ' class="k"',
    ' href="a.html#b" title="x>y"',
    '\n  id="q"',
    " data-x='1'",
    " name=n",
    ' style="display:none"',
    " hidden",
    ' aria-hidden="true"',
    ' class="linenos"',
]
word = st.sampled_from("one two three four &amp; &lt;b&gt; fünf 六".split())
space = st.sampled_from([" ", "\n", "", "  \n"])


@st.composite
def text(draw, depth=2):
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        parts += [draw(word), draw(space)]
        if depth and draw(st.booleans()):
            name = draw(st.sampled_from(INLINE))
            parts.append(f"<{name}{draw(st.sampled_from(ATTRIBUTES))}>")
            parts.append(draw(text(depth=depth - 1)) + f"</{name}>" + draw(space))
    return "".join(parts)


@st.composite
def block(draw, depth=2):
    name = draw(st.sampled_from(["p", "h2", "pre", "li", "td", "div", "nav", "comment", "script"]))
    inside = draw(text())
    if name == "comment":
        return f"<!-- {draw(st.sampled_from(['x', 'a-b', '<i>y</i>', '<p>-</p>']))} -->"
    if name == "script":
        return draw(st.sampled_from(["<script>a < b</script>", '<script>"</b>"</script>']))
    if name == "li":
        return f"<ul>\n<li>{inside}</li><li>{draw(text())}</li></ul>"
    if name == "td":
        return f"<table><tr><th>{inside}</th>\n<td>{draw(text())}</td></tr></table>"
    if name == "div" and depth:
        inside += "".join(draw(st.lists(block(depth=depth - 1), max_size=2)))
    return f"<{name}>{inside}</{name}>\n"


@st.composite
def page(draw):
    before = "".join(draw(st.lists(block(), max_size=3)))
    inside = "".join(draw(st.lists(block(), max_size=4)))
    around = draw(
        st.sampled_from(
            [
                "{}{}",
                "{}<main>{}</main>",
                '{}<div class="d"\n role="main">{}</div>',
                "{}<main>{}</main><main>twice</main>",
                "<article>{}</article><main>{}</main><main>twice</main>",
                "{}<article>{}</article>",
            ]
        )
    )
    head = "<head>\n<title>the title</title><meta charset=utf-8></head>"
    return (
        f"<!DOCTYPE html>\n<html lang=en>{head}<body>{around.format(before, inside)}</body></html>"
    )


def read(source):
    return next(iter(html_reader.READER.read(source.encode(), "a.html", ReaderOptions())))


def read_whole(source, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            html_reader, "reduce_source", lambda source, **_: Reduced(source, is_cut=False)
        )
        return read(source)


@given(source=page())
def test_a_reduced_page_is_read_like_the_whole_page(source, monkeypatch):
    less, complete = read(source), read_whole(source, monkeypatch)
    assert [(b.kind, b.text, b.level) for b in less.blocks] == [
        (b.kind, b.text, b.level) for b in complete.blocks
    ]
    assert (less.inferred, less.notes) == (complete.inferred, complete.notes)
    for ours, theirs in zip(less.blocks, complete.blocks, strict=True):
        # An empty tag on a line of its own is no longer counted in.
        assert theirs.start_line <= ours.start_line <= ours.end_line <= theirs.end_line


FRAGMENTS = [
    "<!-- hid1 --<b>> hid2 -->",
    "<!-<a>- seen1 -->",
    "<!-- -<b>-> hid3 -->",
    "<!-- <main> hid4 -->",
    "<!-- </head> hid5 -->",
    "<scr<b>ipt>seen2</script>",
    "<script>hid6 <<b>/script> hid7</script>",
    "<script>'<a>' < hid8</script>",
    "<div hid<b>den>seen3</div>",
    '<p title="<a>">seen4</p>',
    "<p title='<main>'>seen5</p>",
    "<textarea><main> hid9</textarea>",
    '<a style="display:none">hid10</a>',
    "<span hidden>hid11</span>",
    "<span HIDDEN>hid12</span>",
    "<A STYLE='display:none'>hid13</A>",
    "<a\nhidden\n>hid14</a>",
    "<a title=hidden>seen6</a>",
    "<i aria-hidden=true></i>",
    "<b/>seen7</b>",
    "<main>seen8</main>",
    "<div role=main>seen9</div>",
    '<div title="role=main">seen10</div>',
    "<title>seen11 <b> seen12</title>",
    "<nav>hid15</nav>",
    "</head>",
    "<p>seen13</p>",
    "<svg><title>hid16</title></svg>",
    "<>seen14</>",
    "seen15 < seen16",
    "<a",
    "-->",
    '"',
    ">",
]


@given(fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=8))
def test_a_reduced_page_shows_no_more_than_the_whole_page(fragments, monkeypatch):
    source = "<html><head></head><body>" + "".join(fragments)
    assert words_of(read(source)) <= words_of(read_whole(source, monkeypatch))


def words_of(document):
    return set(re.findall(r"\w+", " ".join(b.text for b in document.blocks)))


@pytest.mark.parametrize(
    ("source", "less"),
    [
        ('<p><a href="b">x</a> <code>y</code></p>', "<p>x y</p>"),
        ('<p>x<a\nhref="b">y</a><b>z</b></p>', '<p>x<a\nhref="b">y</a>z</p>'),
        ('<i\nclass="icon"></i><b>x</b>', '<i\nclass="icon"></i>x'),
        ("<head></head><body>\n<nav>\nn</nav><main>x</main>", "<head></head>\n\n<main>x</main>"),
        ("<head></head><nav>n</nav><p role='main'>x", "<head></head><nav>n</nav><p role='main'>x"),
        ('<i class="icon" aria-hidden="true"></i>x', "x"),
        ("<b hidden>x</b><em>y</em>", "<b hidden>x</b>y"),
        ('<span class="linenos">1</span><b>x</b>', '<span class="linenos">1</span>x'),
    ],
)
def test_the_parts_that_are_removed(source, less):
    assert reduce_source(source.encode()).source.decode() == less


@pytest.mark.parametrize(
    "source",
    [
        "<!-- x --<b>> y --><b>z</b>",
        "<b>x</b> < y",
        "<b>x</b><textarea><b></textarea>",
        "<b title='<i>'>x</b>",
        "<b>x</b><script>'</i>'</script>",
        "<b>x</b><![CDATA[y]]>",
    ],
)
def test_an_ambiguous_page_is_not_reduced(source):
    assert reduce_source(source.encode()) == Reduced(source.encode(), is_cut=False)


@pytest.mark.slow
def test_a_page_with_more_text_than_libxml2_accepts_at_once_is_read():
    text = ("x" * 40 + "<b>y</b> ") * 260_000
    assert len(read(f"<pre>{text}</pre>").blocks[0].text) == 42 * 260_000 - 1
