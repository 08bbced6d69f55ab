"""Law 7. Locators are true: the lines that a citation names contain the passage's text.

Files are ingested from disk, and every selected passage is looked up in its file. In a text file
the lines contain the content character for character, without what Markdown hides. Lines of JSONL
and HTML are parsed first. If the scan flagged hidden characters, lines and content are compared as
they are displayed.
"""

import json
import re
from collections.abc import Callable, Sequence
from html import escape, unescape
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.sync import ingest
from rolebundle.scan.characters import HIDDEN, TO_LATIN
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.text.decoding import decode, split_lines
from support.amounts import FEW_EXAMPLES
from support.corpora import ask, overlay, scratch_folder
from support.fake_embedder import HashingProvider
from support.reading import read_document
from support.values import WORDS

words = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=12,
).map(" ".join)
endings = st.sampled_from(["\n", "\r\n", "\r"])
gaps = st.sampled_from(["\n", "\n\n", "\n\n\n", "\n \n", "\f\n", "\n\u2028\n"])

markdown_blocks = st.one_of(
    words,
    words.map(lambda text: f"# {text}"),
    words.map(lambda text: f"{text}\n==="),
    words.map(lambda text: f"### {text} ###"),
    st.lists(words, min_size=1, max_size=4).map(lambda items: "\n".join(f"- {i}" for i in items)),
    st.lists(words, min_size=1, max_size=4).map(lambda items: "\n".join(f"1. {i}" for i in items)),
    st.lists(words, min_size=1, max_size=3).map(
        lambda rows: "\n".join(["| a | b |", "|---|---|", *(f"| {row} | 1 |" for row in rows)])
    ),
    st.lists(words, max_size=4).map(lambda lines: "\n".join(["```py", *lines, "```"])),
    st.lists(words, min_size=1, max_size=3).map(lambda lines: "\n".join(f"> {x}" for x in lines)),
    words.map(lambda text: f"    {text}"),
    words.map(lambda text: f"<div>{text}</div>"),
    words.map(lambda text: f"[{text}]: https://example.org"),
    st.just("```\nnever closed"),
    st.just("---"),
)
front_matter = st.sampled_from(["", "---\ntitle: T\ntags: [a, b]\n---\n", "\ufeff"])


@st.composite
def text_file(draw: st.DrawFn, blocks: st.SearchStrategy[str], head: str = "") -> bytes:
    text = head
    for block in draw(st.lists(blocks, max_size=8)):
        text += block + draw(gaps)
    ending = draw(endings)
    return text.replace("\n", ending).encode()


markdown_files = st.tuples(
    st.just("a.md"), front_matter.flatmap(lambda head: text_file(markdown_blocks, head))
)
plain_files = st.tuples(
    st.sampled_from(["a.txt", "a.log", "a.py", "a.rst", "a.c"]),
    text_file(st.one_of(words, markdown_blocks)),
)


@st.composite
def jsonl_file(draw: st.DrawFn) -> tuple[str, bytes]:
    texts = draw(st.lists(st.lists(words, min_size=1, max_size=4).map("\n\n".join), max_size=6))
    lines = [
        json.dumps({"_id": f"r{n}", "title": "T", "text": text}, ensure_ascii=n % 2 == 0)
        for n, text in enumerate(texts)
    ]
    return "a.jsonl", draw(endings).join([*lines, ""]).encode()


@st.composite
def html_file(draw: st.DrawFn) -> tuple[str, bytes]:
    inline = words.map(escape)
    blocks = st.one_of(
        inline.map(lambda text: f"<p>{text}</p>"),
        inline.map(lambda text: f"<h2>{text}</h2>"),
        inline.map(lambda text: f"<p>{text}\n<b>{text}</b>\n{text}</p>"),
        st.lists(inline, min_size=1, max_size=3).map(
            lambda items: "<ul>\n" + "\n".join(f"<li>{item}</li>" for item in items) + "\n</ul>"
        ),
        inline.map(lambda text: f"<pre>{text}\n  {text}</pre>"),
        inline.map(lambda text: f"<table><tr><td>{text}</td>\n<td>{text}</td></tr></table>"),
        st.just("<script>\nvar hidden = 1;\n</script>"),
    )
    content = draw(text_file(blocks, "<!doctype html><html><body>\n"))
    return "a.html", content + b"</body></html>"


def _shown_lines(name: str, data: bytes) -> Sequence[str]:
    """The lines of a file, without what Markdown hides, such as a link definition without links."""
    lines = split_lines(decode(data)[0])
    if not name.endswith(".md"):
        return lines
    document = read_document(data, name)
    if not document.hidden:
        return lines
    assert len(document.lines) == len(lines)
    return document.lines


Look = Callable[[str], str]


def _as_displayed(text: str) -> str:
    return _HIDDEN.sub("", text).translate(TO_LATIN)


_HIDDEN = re.compile(f"[{HIDDEN}]")


def _exact(lines: str, content: str, look: Look) -> bool:
    return look(content) in look(lines)


def _in_a_record(lines: str, content: str, look: Look) -> bool:
    # The text of a record is parsed into paragraphs, so only the words are compared.
    expected = " ".join(look(content).split())
    # If a record has only a title, the title is its text.
    records = [json.loads(line) for line in lines.split("\n")]
    texts = [record["text"] if record["text"].strip() else record["title"] for record in records]
    return any(expected in " ".join(look(text).split()) for text in texts)


def _in_markup(lines: str, content: str, look: Look) -> bool:
    # A page shows no soft hyphen inside a line.
    lines = lines.replace("\xad", "")
    visible_text = unescape(re.sub(r"<[^>]*>|</?\w+$|^[^<>]*>", " ", lines))
    expected = re.sub(r"\|(?:\s*-+\s*\|)*|^\s*[-*\d.]+\s|-{3,}", " ", content, flags=re.MULTILINE)
    return {*re.findall(r"\w+", look(expected))} <= {*re.findall(r"\w+", look(visible_text))}


HOLDS: dict[str, Callable[[str, str, Look], bool]] = {".jsonl": _in_a_record, ".html": _in_markup}
ALL_ALLOWED = overlay(retrieval_policy={"min_score": 0.0})


files = st.one_of(markdown_files, plain_files, jsonl_file(), html_file())


@settings(max_examples=4 * FEW_EXAMPLES)
# The scan puts the only document into quarantine.
@example(file=("a.md", "\U000e0000 \U000e0080 \xad0\n".encode()), sizes=(60, 120))
@example(
    file=("a.md", b"token\n---\n[token token token]: https://example.org\ntoken\n"), sizes=(60, 120)
)
@example(file=("a.html", "<p>token 0\xad0</p>\n".encode()), sizes=(60, 120))
@example(file=("a.jsonl", b'{"_id": "r0", "title": "T", "text": " "}\n'), sizes=(60, 120))
@given(file=files, sizes=st.sampled_from([(60, 120), (1500, 3000)]))
def test_the_cited_lines_contain_the_passage(
    file: tuple[str, bytes], sizes: tuple[int, int]
) -> None:
    (name, data), (size, maximum) = file, sizes
    options = IngestOptions(chunking={"size": size, "maximum": maximum})
    with scratch_folder() as temporary:
        files = temporary / "files"
        files.mkdir()
        (files / name).write_bytes(data)
        with open_writer(temporary / "corpus.db") as corpus:
            ingest(corpus, [files], HashingProvider(), options)
        with open_reader(temporary / "corpus.db") as corpus:
            bundle = ask(corpus, ALL_ALLOWED, HashingProvider(), task="token audit", limit=1000)
        for passage in bundle.selected:
            locator = passage.citation.locator
            path, _, span = locator.rpartition(":")
            start, end = map(int, span.split("-"))
            lines = _shown_lines(path, data)
            assert 1 <= start <= end <= len(lines), locator
            holds = HOLDS.get(Path(path).suffix, _exact)
            cited = "\n".join(lines[start - 1 : end])
            look = _as_displayed if passage.metadata.flags else str
            assert holds(cited, passage.content, look), (locator, passage.content, cited)
