"""`retrieve --format md|csv|paths`: no text of a document is markup, a formula, or another line."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.interfaces.csv_rows import COLUMNS, csv_rows
from rolebundle.interfaces.layout import harmless
from rolebundle.interfaces.markdown import markdown
from rolebundle.interfaces.path_list import paths
from support.commands import invoke, run
from support.corpora import ask, built, chunk, document, overlay, scratch_folder

hostile = st.lists(
    st.sampled_from(
        [
            "```",
            "\n````\n",
            "\r",
            "\n# no\n",
            "[x](http://a)",
            "<b>",
            "<!--",
            "![i](j)",
            "&amp;",
            "|",
            "\\",
            "`",
            "*",
            "_",
            "~~",
            "\n---\n",
            "\n> ",
            "\n1. ",
            "http://a.b",
            "www.a.b",
            "a",
            " ",
            "=1+1",
            "@x",
            "-1",
            "+",
            "＝",
            "\t",
            '"',
            ",",
            "\x1b[2J",
            "\x00",
            "\u202e",
            "\u2028",
            "\n",
        ]
    ),
    max_size=8,
).map("".join)


def bundle_of(title: str, heading: str, content: str) -> RetrievalBundle:
    part = chunk("c#0", f"{content} token", headings=(f"h{heading}",))
    stored = document("d", [""], title=f"{title}t")
    stored = replace(stored, chunks=(part,))
    with scratch_folder() as folder, built(folder, [stored]) as corpus:
        return ask(corpus, overlay(), task=f"token {title}", lexical_only=True)


# -- Markdown ------------------------------------------------------------------------------------


@given(hostile, hostile, hostile)
def test_a_report_has_only_its_own_markup(title: str, heading: str, content: str) -> None:
    bundle = bundle_of(title, heading, content)
    parsed = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown(bundle))
    kinds = [token.type for token in parsed]
    fences = [token.content.removesuffix("\n") for token in parsed if token.type == "fence"]
    assert fences == [harmless(found.content) for found in bundle.selected]
    levels = [token.tag for token in parsed if token.type == "heading_open"]
    assert levels == ["h1", *["h2" for _ in bundle.selected]]
    inline = [child.type for token in parsed for child in token.children or ()]
    assert set(inline) <= {"text", "text_special", "softbreak"}
    assert not {"html_block", "table_open", "code_block", "hr", "ordered_list_open"} & set(kinds)


def test_a_report_links_to_the_files(sample_without_vectors: Path) -> None:
    markdown_text = report(sample_without_vectors, "md")
    parser = MarkdownIt()
    parser.validateLink = lambda _url: True  # type: ignore[method-assign] # By default no files.
    parsed = parser.parse(markdown_text)
    links = [
        child.attrs["href"]
        for token in parsed
        for child in token.children or ()
        if child.type == "link_open"
    ]
    assert len(links) == 3
    assert all(Path(unquote(urlsplit(str(link)).path)).is_file() for link in links)
    assert "\n- budget_cut: " in markdown_text


# -- comma-separated values ----------------------------------------------------------------------


@given(hostile, hostile, hostile)
def test_rows_are_those_of_rfc_4180_and_no_formulas(title: str, heading: str, content: str) -> None:
    bundle = bundle_of(title, heading, content)
    table = csv_rows(bundle)
    assert table.endswith("\r\n")
    rows = list(csv.DictReader(io.StringIO(table, newline=""), strict=True))
    assert [row["rank"] for row in rows] == [str(found.rank) for found in bundle.selected]
    for row, found in zip(rows, bundle.selected, strict=True):
        assert tuple(row) == COLUMNS
        for value in row.values():
            assert value.lstrip()[:1] not in {*"=+-@＝＋－＠"} or is_number(value)
            assert value[:1] not in {*"\t\r\n"}
        assert row["content"].removeprefix("'") == harmless(found.content).removeprefix("'")


def is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return not value.startswith("+")


def test_a_formula_is_a_text() -> None:
    [row] = csv.DictReader(io.StringIO(csv_rows(bundle_of("", "", "=HYPERLINK(1)")), newline=""))
    assert row["content"] == "'=HYPERLINK(1) token"
    assert row["chunk_id"] == "c#0"


# -- paths ---------------------------------------------------------------------------------------


def report(db: Path, form: str, *more: str) -> str:
    common = ("Can a stolen tablet replay a token?", "--lexical-only")
    outcome = invoke(
        "retrieve",
        *common,
        "--limit",
        "3",
        "--now",
        "2026-11-15",
        "--format",
        form,
        *more,
        "--db",
        db,
    )
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_each_file_is_named_once_and_exists(sample_without_vectors: Path) -> None:
    named = report(sample_without_vectors, "paths", "--limit", "20").splitlines()
    assert len(named) == len(set(named)) < 20
    assert all(Path(path).is_absolute() and Path(path).is_file() for path in named)


def test_a_path_is_that_of_the_corpus_if_the_file_must_not_be_known() -> None:
    bundle = bundle_of("", "", "")
    assert [found.citation.absolute_path for found in bundle.selected] == [None]
    assert paths(bundle) == ["d.md"]


@pytest.mark.skipif(sys.platform == "win32", reason="such names do not exist there")
@pytest.mark.parametrize("name", ["a b.md", "it's $(x) é.md", "line\nbreak.md"])
def test_every_name_is_passed_on_with_null(tmp_path: Path, name: str) -> None:
    db, file = notes(tmp_path, name)
    command = ("retrieve", "token", "--lexical-only", "--format", "paths", "--db", db)
    assert run(*command, "--null").out == f"{file}\0"
    lines = run(*command)
    assert lines.out == ("" if "\n" in name else f"{file}\n")
    assert ("--null" in lines.err) == ("\n" in name)


def notes(folder: Path, name: str) -> tuple[Path, Path]:
    """A corpus, and its only file."""
    file = folder / "notes" / name
    file.parent.mkdir()
    file.write_text("A token.", encoding="utf-8")
    assert invoke("ingest", file.parent, "--lexical-only", "--db", folder / "c.db").code == 0
    return folder / "c.db", file


def test_null_is_only_for_paths(sample_without_vectors: Path) -> None:
    refused = invoke("retrieve", "token", "--null", "--db", sample_without_vectors)
    assert (refused.code, refused.out) == (2, "")


def test_cautions_are_messages_beside_a_table(tmp_path: Path) -> None:
    db, _ = notes(tmp_path, "a.md")
    for form in ("csv", "paths"):
        outcome = invoke(
            "retrieve", "a token of Zorblax", "--lexical-only", "--format", form, "--db", db
        )
        assert outcome.code == 0
        assert "no passage mentions: Zorblax" in outcome.err
        assert "Caution: " not in outcome.out
