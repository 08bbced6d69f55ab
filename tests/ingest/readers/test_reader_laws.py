"""Properties of every reader: correct lines, no lost text, and no crash on any bytes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_for, reader_names
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.text.decoding import clean, decode, split_lines
from support.amounts import few_examples
from support.office.samples import SAMPLES as OFFICE_SAMPLES
from support.office.samples import VISIBLE as OFFICE

OPTIONS = ReaderOptions(separator="=====")
WORD = st.text(alphabet="abcdefgh é漢.", min_size=1, max_size=12).filter(str.strip)
# Two dots at the head of a line begin a comment in reStructuredText.
LINE = (
    st.lists(WORD, min_size=1, max_size=8)
    .map(lambda words: " ".join(words).strip())
    .filter(lambda line: not line.startswith(".."))
)
PARAGRAPH = st.lists(LINE, min_size=1, max_size=5).map("\n".join)
SETTINGS = st.builds(
    lambda size, extra: ChunkSettings(size, size + extra),
    st.integers(20, 200),
    st.integers(0, 200),
)

MARKDOWN = st.one_of(
    PARAGRAPH,
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###"]), LINE),
    st.builds("{}\n----".format, LINE),
    st.lists(LINE, min_size=1, max_size=6).map(lambda ls: "\n".join(f"- {x}" for x in ls)),
    st.lists(LINE, min_size=1, max_size=9).map(lambda ls: "```\n" + "\n\n".join(ls) + "\n```"),
    st.lists(LINE, max_size=5).map(lambda ls: "|a|b|\n|-|-|\n" + "".join(f"|{x}|y|\n" for x in ls)),
    LINE.map("[{}]: https://example.org".format),
    LINE.map("> {}".format),
    LINE.map("<div>{}</div>".format),
    LINE.map("<!-- {} -->".format),
)
RST = st.one_of(
    PARAGRAPH,
    st.builds(lambda t, c: f"{t}\n{c * max(4, len(t))}", LINE, st.sampled_from("=-~^")),
    st.builds(lambda t: f"{'=' * 60}\n{t}\n{'=' * 60}", LINE),
    st.lists(LINE, min_size=1, max_size=6).map(lambda ls: "\n".join(f"* {x}" for x in ls)),
    st.lists(LINE, min_size=1, max_size=6).map(
        lambda ls: "x::\n\n" + "\n\n".join("  " + x for x in ls)
    ),
    LINE.map(".. code-block:: c\n\n   {}".format),
    LINE.map(".. note::\n\n   {}".format),
    LINE.map("==== ====\n{}\n==== ====".format),
)
ORG = st.one_of(
    PARAGRAPH,
    st.builds("{} {}".format, st.sampled_from(["*", "**", "***"]), LINE),
    LINE.map("# {}".format),
    LINE.map("* {} :noexport:".format),
    LINE.map(":PROPERTIES:\n:a: {}\n:END:".format),
    LINE.map("#+begin_src c\n\n{}\n#+end_src".format),
    LINE.map("#+begin_comment\n{}\n#+end_comment".format),
)
SOURCE = st.one_of(
    PARAGRAPH,
    st.lists(LINE, min_size=1, max_size=6).map(
        lambda ls: "def f():\n" + "\n\n".join("    " + x for x in ls)
    ),
    LINE.map("{{\n  {}\n\n}}".format),
    LINE.map("# note\n@d(\n  1\n)\nclass C:\n  def f():\n\n    {}\nx".format),
)
FORMATS = {"markdown": ("a.md", MARKDOWN), "rst": ("a.rst", RST), "source": ("a.py", SOURCE),
           "org": ("a.org", ORG),           "text": ("a.txt", PARAGRAPH), "separated": ("a.txt", MARKDOWN)}  # fmt: skip


def documents_of(name: str, data: bytes, path: str) -> list[ParsedDocument]:
    reader = reader_for(path, name)
    assert reader is not None
    return [d for d in reader.read(data, path, OPTIONS) if isinstance(d, ParsedDocument)]


@st.composite
def files(draw: st.DrawFn, name: str) -> tuple[str, bytes]:
    path, block = FORMATS[name]
    blocks = draw(st.lists(block, min_size=1, max_size=12))
    if name == "separated":
        blocks = [part for block in blocks for part in ("===== " + draw(LINE), block)]
    gap = draw(st.sampled_from(["\n\n", "\n\n\n", "\n \n"]))
    text = gap.join(blocks) + draw(st.sampled_from(["", "\n", "\n\n"]))
    return path, text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()


@pytest.mark.sample(2)
@few_examples
@pytest.mark.parametrize("name", sorted(FORMATS))
@given(data=st.data())
def test_the_lines_of_a_line_exact_chunk_are_its_text(name, data):
    path, content = data.draw(files(name))
    settings = data.draw(SETTINGS)
    lines = split_lines(decode(content)[0])
    for document in documents_of(name, content, path):
        # Without what Markdown hides, and Org's drawers, the lines are still the file's.
        if document.hidden or name == "org":
            assert len(document.lines) == len(lines)
            lines = document.lines
        for block in document.blocks:
            assert block.text == "\n".join(lines[block.start_line - 1 : block.end_line])
        for chunk in chunk_document("d", document, settings):
            cited = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
            assert chunk.content in cited
            # Only a line that alone is over the maximum is cut inside.
            if chunk.content != cited:
                assert any(len(line) > settings.maximum for line in cited.split("\n"))


@pytest.mark.sample(2)
@few_examples
@pytest.mark.parametrize("name", ["markdown", "rst", "source", "text"])
@given(data=st.data())
def test_no_line_with_text_is_lost(name, data):
    path, content = data.draw(files(name))
    (document,) = documents_of(name, content, path)
    chunks = chunk_document("d", document, data.draw(SETTINGS))
    lines = document.lines if document.hidden else split_lines(decode(content)[0])
    assert_all_lines_held(lines, document, chunks)


def assert_all_lines_held(lines, document, chunks, may_miss=lambda line: False):
    held = {n for c in chunks for n in range(c.start_line, c.end_line + 1)}
    missing = [
        line
        for number, line in enumerate(lines, 1)
        if line.strip() and number not in held and not may_miss(line)
    ]
    assert missing == []


THEMATIC_BREAK = re.compile(r"\s*[->*\d.)\s]*([-*_])(\s*\1){2,}\s*$")


@given(st.text(alphabet="ab #-*_=`~>|[]():!<\n \t1.+\\", max_size=200), SETTINGS)
def test_no_line_of_any_markdown_is_lost(text, chosen):
    try:
        (document,) = documents_of("markdown", text.encode(), "a.md")
    except DocumentError:
        return
    # Without what Markdown hides, such as the rest of a document after "<!--".
    lines = document.lines if document.hidden else split_lines(text)
    body = lines[0].rstrip() not in {"---", "+++"} if lines else True
    chunks = chunk_document("d", document, chosen)
    if body:
        assert_all_lines_held(lines, document, chunks, THEMATIC_BREAK.match)


@given(
    st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6),
    st.sampled_from([None, 2]),
)
def test_the_lines_of_a_ready_chunk_contain_its_text(contents, indent):
    chunks = [{"chunk_id": f"c{i}", "content": content} for i, content in enumerate(contents)]
    text = json.dumps({"documents": [{"document_id": "d", "chunks": chunks}]}, indent=indent)
    (document,) = documents_of("json", text.encode(), "a.json")
    lines = split_lines(text)
    for chunk in chunk_document("d", document, ChunkSettings()):
        cited = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        decoded = [
            clean(json.loads(f'"{found}"'))[0]
            for found in re.findall(r'"((?:[^"\\]|\\.)*)"', cited)
        ]
        assert chunk.content in decoded


@pytest.mark.parametrize("suffix", OFFICE)
def test_the_lines_of_an_office_chunk_are_its_text(suffix):
    for data in OFFICE[suffix].values():
        (document,) = documents_of(reader_for(f"a.{suffix}").name, data, f"a.{suffix}")
        for block in document.blocks:
            assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])
        for chunk in chunk_document("d", document, ChunkSettings(30, 40)):
            cited = "\n".join(document.lines[chunk.start_line - 1 : chunk.end_line])
            assert chunk.content in cited


SAMPLES = {
    "eml": b"From: a@b.c\nSubject: =?utf-8?q?x?=\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nx\n--b\nContent-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<p>y=\nz\n--b--\n",
    "html": b"<html><body><table><tr><td>a<pre>b</pre><ul><li>c</ul></table><p hidden>d",
    "ipynb": b'{"cells": [{"cell_type": "markdown", "source": ["# T\\n", "x"]}, {"cell_type": "code", "source": "y"}]}',
    "json": b'{"documents": [{"document_id": "d", "chunks": [{"chunk_id": "c", "content": "x"}]}]}',
    "jsonl": b'{"_id": "1", "text": "x", "metadata": {"domain": "y"}}\n{"_id": 2}\n',
    "man": b".TH A 1\n.SH \"A\n.TP\n\\fBa\\fR \\(em\n.Op Fl a Ar b\n.de X\n..\n.TS\na\n.TE\n.It Xr b 1 ,\n",
    "markdown": b"---\na: 1\n---\n# T\n\n- a\n  - b\n\n|a|b|\n|-|-|\n|1|2|\n\n> q\n\n```\nx\n```\n",
    "mbox": b"From a Mon Jan  1 09:30:00 2024\nMessage-ID: <a@b>\n\nx\n\nFrom b Mon Jan  1 09:30:00 2024\nSubject: y\n\n>From z\n",
    "org": b"#+TITLE: x\n* A :noexport:\nb\n* C\n:PROPERTIES:\n:a: b\n:END:\n# d\n#+begin_src e\nf\n#+end_src\n",
    "pdf": b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\ntrailer << /Root 1 0 R >>",
    "rst": b"T\n=\n\n.. a::\n\n  b\n\n+--+\n|a |\n+--+\n\n== ==\na  b\n== ==\n\nx::\n\n y\n",
    "separated": b"===== A\n---\na: 1\n---\ntext\n=====\n",
    "source": b"def f():\n    x\n\n    y\n\n}\n",
    "subtitles": b"WEBVTT\n\nNOTE x\n\n1\n00:01.000 --> 00:02.000\n<v A>y</v>\n\n2\n00:00:03,000 --> 00:00:04,000\nz\n",
    "text": b"+++\na = 1\n+++\none\n\ntwo\n",
    **OFFICE_SAMPLES,
}  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    sample = SAMPLES[name]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(sample)))
        until = draw(st.integers(at, min(len(sample), at + 6)))
        sample = sample[:at] + draw(st.binary(max_size=6)) + sample[until:]
    return sample


@pytest.mark.sample(4)
@few_examples
@pytest.mark.parametrize("name", reader_names())
@given(data=st.data())
def test_any_bytes_give_documents_or_a_coded_error(name, data):
    content = data.draw(
        st.one_of(st.binary(), st.text().map(lambda t: t.encode("utf-8", "replace")), damaged(name))
    )
    reader = reader_for("x", name)
    assert reader is not None
    try:
        documents = list(reader.read(content, "x", OPTIONS))
    except DocumentError:
        return
    for document in documents:
        if isinstance(document, ParsedDocument):
            for chunk in chunk_document("d", document, ChunkSettings(20, 30)):
                assert chunk.content.strip()
                assert "\x00" not in chunk.content
                chunk.content.encode("utf-8")
                "".join(chunk.headings).encode("utf-8")
                assert 1 <= chunk.start_line <= chunk.end_line
