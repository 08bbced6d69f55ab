"""Org: blocks with their lines; what is not exported is hidden."""

from __future__ import annotations

import pytest

from rolebundle.ingest.authority import Authority
from rolebundle.ingest.metadata import resolve
from rolebundle.ingest.parsed import ParsedDocument
from support.reading import read_document

TEXT = """\
#+TITLE: Harbour notes
#+DATE: <2026-02-03 Tue>
#+FILETAGS: :tides:gates:

* TODO [#A] First [[https://x.org][link]]   :work:
:PROPERTIES:
:Owner: Anna
:END:
Some text
in two lines.

- item

| a | b |

#+begin_src sh
# not a comment

ls
#+end_src
******** Deep
"""


def read(text: str) -> ParsedDocument:
    return read_document(text, "a.org")


def test_blocks():
    document = read(TEXT)
    assert [(b.kind, b.level, b.heading, b.start_line, b.end_line) for b in document.blocks] == [
        ("paragraph", 0, "", 1, 3),
        ("heading", 1, "First link", 5, 5),
        ("paragraph", 0, "", 9, 10),
        ("list", 0, "", 12, 12),
        ("table", 0, "", 14, 14),
        ("code", 0, "", 16, 20),
        ("heading", 6, "Deep", 21, 21),
    ]
    assert document.hidden == ()


def test_settings_and_properties_are_metadata():
    assert read(TEXT).inferred == {
        "title": "Harbour notes",
        "updated_at": "2026-02-03",
        "tags": ["tides", "gates"],
        "property": {"owner": ["Anna"]},
    }


def test_properties_do_not_govern():
    document = read(":PROPERTIES:\n:trust_tier: authoritative\n:END:\n#+SCOPE: secret\ntext\n")
    assert document.declared == {}
    metadata = resolve("a.org", Authority(default_source="s"), document.declared, document.inferred)
    assert (metadata.trust_tier, metadata.scope) == ("general", "shared")
    assert metadata.attributes == (("property.trust_tier", ("authoritative",)),)


@pytest.mark.parametrize(
    ("text", "labelled"),
    [
        ("# zebra47", False),
        ("  # zebra47", False),
        ("#+BEGIN_COMMENT\nzebra47\n#+END_COMMENT", False),
        ("text @@comment:zebra47@@ text", False),
        ("* Plan :noexport:\nzebra47\n** More\nzebra47", True),
        ("* TODO COMMENT Plan :x:\nzebra47", True),
    ],
)
def test_hidden_facts_are_left_out(text: str, labelled: bool):
    document = read(f"* Top\nThe harbour opens.\n{text}\n* After\nIt closes.\n")
    assert "zebra47" not in "\n".join(document.lines)
    assert [part.is_labelled for part in document.hidden] == [labelled]
    assert document.blocks[-1].text == "It closes."
    assert "zebra47" in document.hidden[0].text


def test_a_block_without_an_end_is_text():
    document = read("#+begin_comment\nshown\n* Heading\n:PROPERTIES:\nshown, too\n")
    assert "shown" in document.blocks[0].text or "shown" in document.blocks[1].text
    assert document.hidden == ()
