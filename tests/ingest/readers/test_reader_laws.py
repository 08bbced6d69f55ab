"""What holds for every reader, which reader a file has, and the definitions of source files."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.office.parts import zipped
from ingest.office.samples import SAMPLES as OFFICE_SAMPLES
from ingest.office.samples import VISIBLE as OFFICE
from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import NAMES, reader_name_for, reader_name_of
from rolebundle.text.decoding import clean, decode, split_lines
from support.amounts import few_examples
from support.reading import read_all, read_document

# -- Properties of every reader: correct lines, no lost text, and no crash on any bytes ------------

SEPARATOR = "====="
WORD = st.text(alphabet="abcdefgh é漢.", min_size=1, max_size=12).filter(str.strip)
# Two dots at the head of a line begin a comment in reStructuredText.
LINE = (
    st.lists(WORD, min_size=1, max_size=8)
    .map(lambda words: " ".join(words).strip())
    .filter(lambda line: not line.startswith(".."))
)
PARAGRAPH = st.lists(LINE, min_size=1, max_size=5).map("\n".join)
SEVERAL = st.lists(LINE, min_size=1, max_size=6)
SETTINGS = st.builds(
    lambda size, extra: ChunkSettings(size, size + extra), st.integers(20, 200), st.integers(0, 200)
)

MARKDOWN = st.one_of(
    PARAGRAPH,
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###"]), LINE),
    st.builds("{}\n----".format, LINE),
    SEVERAL.map(lambda ls: "\n".join(f"- {x}" for x in ls)),
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
    SEVERAL.map(lambda ls: "\n".join(f"* {x}" for x in ls)),
    SEVERAL.map(lambda ls: "x::\n\n" + "\n\n".join("  " + x for x in ls)),
    LINE.map(".. code-block:: c\n\n   {}".format),
    LINE.map(".. note::\n\n   {}".format),
    LINE.map("==== ====\n{}\n==== ====".format),
)
SOURCE = st.one_of(
    PARAGRAPH,
    SEVERAL.map(lambda ls: "def f():\n" + "\n\n".join("    " + x for x in ls)),
    LINE.map("{{\n  {}\n\n}}".format),
    LINE.map("# note\n@d(\n  1\n)\nclass C:\n  def f():\n\n    {}\nx".format),
)
FORMATS = {"markdown": ("a.md", MARKDOWN), "rst": ("a.rst", RST), "source": ("a.py", SOURCE),
           "text": ("a.txt", PARAGRAPH), "separated": ("a.txt", MARKDOWN)}  # fmt: skip


def documents_of(name: str, data: bytes, path: str) -> list[ParsedDocument]:
    return [d for d in read_all(data, path, name, SEPARATOR) if isinstance(d, ParsedDocument)]


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
        # Without what Markdown hides, the lines are still the file's.
        if document.hidden:
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
    assert_all_lines_held(lines, chunks)


def assert_all_lines_held(lines, chunks, may_miss=lambda line: False):
    held = {n for c in chunks for n in range(c.start_line, c.end_line + 1)}
    missing = [line for number, line in enumerate(lines, 1) if line.strip() and number not in held]
    assert [line for line in missing if not may_miss(line)] == []


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
        assert_all_lines_held(lines, chunks, THEMATIC_BREAK.match)


TEXTS = st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6)


@given(TEXTS, st.sampled_from([None, 2]))
def test_the_lines_of_a_ready_chunk_contain_its_text(contents, indent):
    chunks = [{"chunk_id": f"c{i}", "content": content} for i, content in enumerate(contents)]
    text = json.dumps({"documents": [{"document_id": "d", "chunks": chunks}]}, indent=indent)
    (document,) = documents_of("json", text.encode(), "a.json")
    lines = split_lines(text)
    for chunk in chunk_document("d", document, ChunkSettings()):
        cited = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        texts = re.findall(r'"(?:[^"\\]|\\.)*"', cited)
        assert chunk.content in [clean(json.loads(text))[0] for text in texts]


@pytest.mark.parametrize("suffix", OFFICE)
def test_the_lines_of_an_office_chunk_are_its_text(suffix):
    for data in OFFICE[suffix].values():
        (document,) = documents_of(reader_name_for(f"a.{suffix}"), data, f"a.{suffix}")
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
    "markdown": b"---\na: 1\n---\n# T\n\n- a\n  - b\n\n|a|b|\n|-|-|\n|1|2|\n\n> q\n\n```\nx\n```\n",
    "mbox": b"From a Mon Jan  1 09:30:00 2024\nMessage-ID: <a@b>\n\nx\n\nFrom b Mon Jan  1 09:30:00 2024\nSubject: y\n\n>From z\n",
    "pdf": b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\ntrailer << /Root 1 0 R >>",
    "rst": b"T\n=\n\n.. a::\n\n  b\n\n+--+\n|a |\n+--+\n\n== ==\na  b\n== ==\n\nx::\n\n y\n",
    "separated": b"===== A\n---\na: 1\n---\ntext\n=====\n",
    "source": b"def f():\n    x\n\n    y\n\n}\n",
    "text": b"+++\na = 1\n+++\none\n\ntwo\n",
    "emlx": b"28\nSubject: x\nFrom: a@b.c\n\ny\n<plist/>",
    "msg": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "mhtml": b"Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>x\n--b--\n",
    "ics": b"BEGIN:VEVENT\nSUMMARY:x\nDTSTART:20260502T100000Z\nRRULE:FREQ=DAILY;BYDAY=MO;COUNT=2\nATTENDEE;CN=a:b\nEND:VEVENT\n",
    "vcf": b"BEGIN:VCARD\nFN:x\nTEL;TYPE=home:1\nNOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=x:=C3\nEND:VCARD\n",
    "enex": b"<en-export><note><title>x</title><content>&lt;en-note&gt;y</content><resource><data>eA==</data></resource></note></en-export>",
    "canvas": b'{"nodes":[{"type":"text","text":"x"}],"edges":[{"label":"y"}]}',
    "subtitles": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v a>x <i>y\n",
    "archive": zipped({"a": "b"}),
    "rtf": b"{\\rtf1\\ansicpg1252{\\fonttbl\\f0\\fcharset0 A;}{\\colortbl;\\red9;}{\\s1 heading 1;}\\s1 x\\par{\\v y}\\u-10179?\\'e4\\bin2 ab{\\footnote z}a\\cell\\row}",
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
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_bytes_give_documents_or_a_coded_error(name, data):
    text = st.text().map(lambda text: text.encode("utf-8", "replace"))
    content = data.draw(st.binary() | text | damaged(name))
    try:
        documents = read_all(content, "x", name, SEPARATOR)
    except DocumentError:
        return
    parsed = [one for one in documents if isinstance(one, ParsedDocument)]
    for chunk in [c for one in parsed for c in chunk_document("d", one, ChunkSettings(20, 30))]:
        assert chunk.content.strip()
        assert "\x00" not in chunk.content
        "".join((chunk.content, *chunk.headings)).encode("utf-8")
        assert 1 <= chunk.start_line <= chunk.end_line


# -- registry --------------------------------------------------------------------------------------


BY_NAME = {
    "markdown": "a/b.md a/B.MD",
    "text": "a/b.txt a.org man3/printf.3 app.log.1 README deep/LICENSE",
    "rst": "b.rst _sources/index.rst.txt",
    "html": "b.xhtml",
    "pdf": "b.pdf",
    "docx": "b.DOCX",
    "xlsx": "b.xlsm",
    "pptx": "b.pptx",
    "opendocument": "b.ods",
    "epub": "b.epub",
    "json": "b.json",
    "jsonl": "b.ndjson",
    "source": "b.py Makefile",
    "subtitles": "a.srt b.VTT",
    "archive": "a.zip a.tar.gz b.tgz",
}


@pytest.mark.parametrize("name", BY_NAME)
def test_readers_by_file_name(name):
    assert set(map(reader_name_for, BY_NAME[name].split())) == {name}


@pytest.mark.parametrize("path", ["a.bin", "a", "a.gz", "README.xyz", ""])
def test_an_unknown_suffix_has_no_reader(path):
    assert reader_name_for(path) is None


MESSAGE = b"Subject: x\nFrom: a@b.c\nMessage-ID: <1@b>\n\ntext\n"


@pytest.mark.parametrize(("path", "data", "name"), [
    ("Mail/Inbox", b"From - Mon Jan 01 09:30:00 2024\r\n" + MESSAGE, "mbox"),
    ("cur/1700000000.M1P2.host:2,S", MESSAGE, "eml"),
    ("Mail/Inbox", MESSAGE, "eml"),
    ("fix.patch", b"From 0123 Mon Sep 17 00:00:00 2001\n" + MESSAGE, None),
    ("README", b"From: here to there\n\nMessage-ID: x\n", None),
    ("README", b"Name: x\nFrom: y\n\ntext", None),
    ("notes", b"From noon at 09:30 we wait.\n", None),
])  # fmt: skip
def test_mail_without_a_suffix_is_recognized(path, data, name):
    assert reader_name_of(path, data) == (name or reader_name_for(path) or "text")


# -- The definitions of source files, in many languages --------------------------------------------

FILES = {
    "a.js": (
        """\
// head
import x from 'y';

/** Doc
 * text function no() {
 */
export default class Foo extends Bar {
  constructor(a, b = 1) {
    super();
    if (a) {
      b();
    }
  }
  async get(x) {
    items.forEach(function (i) {
      go(i);
    });
  }
}

export const add = (a, b) => a + b;
const t = `
function inTemplate() {
`;
function last() {
  return 1;
}
module.exports = { add };
""",
        "class Foo|class Foo > constructor|class Foo > get|add|function last",
    ),
    "a.c": (
        """\
#include <stdio.h>

#define A 1

struct foo {
	int a;
};

static int
bar (int a)
{
#ifdef X
	x();
#endif
out:
	return baz(a);
}

int main(int argc, char **argv) {
	printf("hi");
	return 0;
}

static struct foo *get(void)
{
}
int x = 3;
int fwd(int a);
""",
        "struct foo|bar|main|get",
    ),
    "a.py": (
        '''\
class A:
    """Doc
def no(): x
"""

    @deco(
        1,
    )
    async def f(self):
        def inner():
            pass

        return 1

    x = 1

# comment
@a
def g(): pass
if __name__ == "__main__":
    g()
''',
        "class A|class A > def f|class A > def f > def inner|def g",
    ),
}
SHORT = {
    "a.rs": ("impl<'a> A<'a> {\n    /// new\n    pub fn new() -> Self {\n        A {}\n    }\n\n    pub(crate) async fn go(&self) {}\n}\nmod tests {\n    #[test]\n    fn t() {}\n}\n", "impl<'a> A<'a>|impl<'a> A<'a> > fn new|impl<'a> A<'a> > fn go|mod tests|mod tests > fn t"),
    "a.java": ("@Service\npublic class A extends B {\n    private int x = foo(1);\n\n    @Override\n    public List<String> get(int a,\n            int b) {\n        if (a > b) {\n            return foo(a);\n        }\n    }\n    interface In { void x(); }\n}\n", "class A|class A > get|class A > interface In"),
    "a.ts": ("export interface A {\n  b: string;\n}\nexport type T = string;\n@Component({\n  x,\n})\nexport class C {\n  private async run(a: string): Promise<void> {\n  }\n}\n", "interface A|type T|class C|class C > run"),
    "a.go": ("// Foo does.\nfunc Foo(a int) error {\n}\n\ntype S struct {\n}\n\nfunc (s *S) Bar() {\n}\n", "func Foo|type S|func (s *S) Bar"),
    "a.cs": ("namespace X\n{\n    [Test]\n    public class A\n    {\n        public int Get(int a)\n        {\n            return Foo(a);\n        }\n    }\n}\n", "namespace X|namespace X > class A|namespace X > class A > Get"),
    "a.cpp": ("template <typename T>\nclass A : public B {\n  A() : x_(1) {}\n  int get() const {\n    return x_;\n  }\n};\n\nnamespace n {\nvoid A::go(int x) {\n  for (auto& a : b) {\n  }\n}\n}\n", "class A|class A > get|namespace n|A::go"),
    "a.rb": ("module M\n  class A < B\n    def x(a)\n      1\n    end\n\n    def self.y?\n    end\n  end\nend\n", "module M|module M > class A|module M > class A > def x|module M > class A > def self.y?"),
    "a.php": ("<?php\nnamespace A;\n\nfinal class A\n{\n    public function get(int $x): int\n    {\n    }\n}\nfunction b() {}\n", "namespace A|class A|class A > function get|function b"),
    "a.sh": ("set -e\n\nfoo() {\n  echo\n}\n\nfunction bar {\n  cat\n}\nfoo\n", "foo|function bar"),
    "a.kt": ("data class A(val x: Int)\n\nfun String.b(x: Int): Int {\n}\nobject O {\n    private fun c() = 1\n}\n", "class A|fun String.b|object O|object O > fun c"),
    "a.sql": ("CREATE TABLE IF NOT EXISTS foo (\n  id int\n);\n\ncreate or replace function bar() returns int as $$\n", "CREATE TABLE IF NOT EXISTS foo|create or replace function bar"),
    "a.yaml": ("name: x\non:\n  push: y\njobs:\n  a: b\n", "name|on|jobs"),
    "a.toml": ("x = 1\n\n[project]\nname = 1\n\n[[tool.x]]\ny = 1\n", "[project]|[[tool.x]]"),
    "Makefile": ("X := 1\nall: a b\n\tcc\n\nclean:\n\trm\n", "all|clean"),
    "a.lua": ("local function a(x)\nend\n\nfunction M.b()\nend\nM.c = function()\nend\n", "function a|function M.b|M.c"),
}  # fmt: skip


def paths(document: ParsedDocument) -> list[str]:
    """The path of each definition, as a chunk of its own would have it."""
    chunks = chunk_document("d", document, ChunkSettings(1, 10_000))
    return list(dict.fromkeys(" > ".join(chunk.headings) for chunk in chunks if chunk.headings))


@pytest.mark.parametrize("path", [*FILES, *SHORT])
def test_definitions_have_their_names(path):
    text, expected = (FILES | SHORT)[path]
    assert paths(read_document(text, path)) == expected.split("|")


def blocks(document: ParsedDocument) -> list[tuple[int, str, int, int]]:
    return [(b.level, b.heading, b.start_line, b.end_line) for b in document.blocks]


def test_a_definition_has_its_comments_and_decorators_and_ends_with_its_body():
    assert blocks(read_document(FILES["a.py"][0], "a.py")) == [
        (1, "class A", 1, 4), (2, "def f", 6, 9), (3, "def inner", 10, 11), (3, "", 13, 13),
        (2, "", 15, 15), (1, "def g", 17, 19), (1, "", 20, 21),
    ]  # fmt: skip


def test_a_definition_in_c_has_its_type_labels_and_directives():
    assert (1, "bar", 9, 17) in blocks(read_document(FILES["a.c"][0], "a.c"))


def test_comments_and_strings_of_several_lines_define_nothing():
    text = (
        'x = """\ndef a():\n    pass\n"""\n\ny = 1  # """\ndef b():\n    """\nc\n    """\n    z\n'
    )
    found = blocks(read_document(text, "a.py"))
    assert found == [(0, "", 1, 4), (0, "", 6, 6), (1, "def b", 7, 11)]


def test_a_file_that_does_not_parse_has_an_outline():
    text = "class A:\n    def b(:\n        )))\n\n    def c(self):\n"
    assert paths(read_document(text, "a.py")) == ["class A", "class A > def b", "class A > def c"]


def test_a_passage_with_several_definitions_names_them_all():
    text = "class A:\n    x = 1\n\n" + "".join(
        f"    def f{n}(self):\n        return {'a + ' * 20}1\n\n" for n in range(6)
    )
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings(400, 600))
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.headings == ("class A", ", ".join(re.findall(r"def f\d", chunk.content)))


@pytest.mark.parametrize("size", [150, 400])
def test_passages_end_at_definitions(size):
    text = "".join(f"def f{n}():\n    a = {n}\n\n    return a + {n}\n\n\n" for n in range(60))
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings(size, 600))
    assert len(chunks) > 5
    assert all(chunk.content.startswith("def f") for chunk in chunks)


def test_a_long_definition_is_split_and_each_part_has_its_name():
    text = "def f():\n" + "".join(f"    a{n} = {n}\n" for n in range(300))
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings())
    assert len(chunks) > 1
    assert {chunk.headings for chunk in chunks} == {("def f",)}


def test_generated_code_is_not_read():
    index = 'Object.assign(window.search, {"body":"' + "Words of a page. " * 200 + '"});\n'
    with pytest.raises(DocumentError, match=r"a\.js: minified or generated code"):
        read_document(index, "a.js")
    assert blocks(read_document(index + "\n\n" * 10, "a.js"))
    assert blocks(read_document(index, "a.txt"))


def test_a_hostile_line_takes_little_time():
    for path in [*FILES, *SHORT]:
        for part in ("(", "a(", "a ", "<a>", "[", "static ", "a::", '"""', "/*", "`", "\\"):
            read_document(part * (300 // len(part)) + "\n" + part * 5_000 + "\n" * 200, path)
