"""The outline of a document, one section of it, and what became of its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from support.commands import invoke

MARKDOWN = """# Guide

Text.

## Install

Run it.

```sh
# not a heading
## nor this
```

### On *Linux*

Use the package.

## Remove

- [One](https://a.example/1)
- [Two](https://a.example/2)
- [Three](https://a.example/3)
"""
RST = """=====
Guide
=====

Install
=======

Run it.

On Linux
--------

Use the package.

Remove
======

Delete it.
"""
HTML = "<h1>Guide</h1><p>Text.</p><h2>Install</h2><p>Run it.</p>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outline") / "docs"
    folder.mkdir()
    for name, text in (("a.md", MARKDOWN), ("b.rst", RST), ("c.html", HTML)):
        (folder / name).write_text(text, encoding="utf-8")
    db = folder.parent / "docs.db"
    assert invoke("ingest", folder, "--lexical-only", "--db", db).code == 0
    return folder


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with Engine(folder.parent / "docs.db") as opened:
        yield opened


def outline(engine: Engine, reference: str) -> list[tuple[str, int, int, int]]:
    lookup = engine.get(reference, outline=True)
    assert not lookup.passages
    return [
        (heading.heading, heading.level, heading.start_line, heading.end_line)
        for heading in lookup.outline or ()
    ]


def test_the_headings_of_markdown_have_their_lines(engine: Engine) -> None:
    found = outline(engine, "docs/a.md")
    assert [heading[:3] for heading in found] == [
        ("Guide", 1, 1),
        ("Install", 2, 5),
        ("On *Linux*", 3, 14),
        ("Remove", 2, 18),
    ]
    assert [heading[3] for heading in found[1:3]] == [17, 17], "up to the next heading"


def test_the_headings_of_underlined_titles_have_their_lines(engine: Engine) -> None:
    found = [heading[:3] for heading in outline(engine, "b.rst:1-3")]
    assert found == [("Guide", 1, 2), ("Install", 2, 5), ("On Linux", 3, 10), ("Remove", 2, 15)]


def test_a_section_is_the_text_below_a_heading(engine: Engine) -> None:
    [passage] = engine.get("docs/a.md", section="on linux").passages
    assert passage.content.rstrip() == "### On *Linux*\n\nUse the package."
    assert passage.locator == "a.md:14-17"
    text = "\n".join(part.content for part in engine.get("docs/a.md", section="Inst").passages)
    assert text.startswith("## Install") and "Use the package." in text and "Remove" not in text


@pytest.mark.parametrize(
    ("section", "message", "hint"),
    [
        ("Update", "has no such heading", "Guide, Install, On *Linux*, Remove"),
        ("e", "has several headings", "docs/a.md:18-"),
    ],
)
def test_a_section_that_is_not_there_is_a_coded_error(
    engine: Engine, section: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error:
        engine.get("docs/a.md", section=section)
    assert error.value.code == "not_found"
    assert message in error.value.message
    assert hint in error.value.hint


def test_the_text_of_a_whole_document_has_no_link_lists(folder: Path) -> None:
    db = folder.parent / "docs.db"
    whole = invoke("get", "docs/a.md", "--db", db).out
    assert "a.example" not in whole
    assert "(3 lines of links left out; --json has them)" in whole
    for more in (["--json"], ["--section", "Remove"]):
        assert "a.example/3" in invoke("get", "docs/a.md", *more, "--db", db).out
    assert "Remove" in invoke("get", "docs/a.md", "--outline", "--db", db).out


def test_a_file_that_changed_or_vanished_is_named(folder: Path, engine: Engine) -> None:
    assert engine.get("docs/a.md").warnings is None
    (folder / "a.md").write_text("# Another guide\n", encoding="utf-8")
    (folder / "b.rst").unlink()
    (changed,) = engine.get("docs/a.md", section="Install").warnings or ()
    (gone,) = engine.multi_get(["docs/b.rst"]).lookups[0].warnings or ()
    assert changed.code == gone.code == "SOURCE_CHANGED"
    assert "a.md) changed" in changed.message and "b.rst) no longer there" in gone.message
    assert "SOURCE_CHANGED" in invoke("get", "docs/a.md", "--db", folder.parent / "docs.db").out
