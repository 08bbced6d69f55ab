"""What limits a document is read, refused, or keeps it back by name; it is never ignored."""

from pathlib import Path

import pytest

from ingest.office.opendocuments import opendocument
from ingest.office.parts import members, zipped
from ingest.office.word import docx, paragraph
from rolebundle.admin import Admin
from rolebundle.admin.records import release_document
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.storage.opening import open_reader
from support.compartments import quarantined_documents
from support.source_tree import Tree, write_files

KEY = "sensitivity: confidential"
TEXT = "\n# Pay\n\nThe pay of people rises by three per cent a year.\n"
PAGE = "<html><head>{}</head><body{}><p>The pay of people.</p></body></html>"
CELL = '{"cells": [{"cell_type": "raw", "metadata": {},\n"source": [%s]}], "metadata": {%s}}'
MAIL = "From: a@b.org\nTo: c@d.org\nMessage-ID: <1@b.org>\n{}\n\nThe pay of people.\n"
KEPT: dict[str, tuple[str, str]] = {
    # name: text, and what the report says of the first key
    "blank.md": (f"\n\n---\n{KEY}\n---{TEXT}", "4: sensitivity"),
    "comment-above.md": (f"<!-- of the wiki -->\n---\nscope: hr\n---{TEXT}", "3: scope"),
    "unclosed.md": (f"---\nscope: hr\n{TEXT}", "2: scope"),
    "unclosed-toml.md": (f'+++\nsensitivity = "confidential"\n{TEXT}', "2: sensitivity"),
    "unclosed-list.md": (f"---\napplicable_roles:\n  - board\n{TEXT}", "2: applicable_roles"),
    "other-fence.md": (f"---\n{KEY}\n-----\n{TEXT}", "2: sensitivity"),
    "nested.md": (f"---\nabout:\n  scope: hr\n---{TEXT}", "3: scope"),
    "flow.md": (f"---\nabout: [{{sensitivity: secret}}]\n---{TEXT}", "2: sensitivity"),
    "late.md": (f"{TEXT}\n---\n{KEY}\n---\n", "7: sensitivity"),
    "second.md": (f"---\ntitle: Pay\n---\n<!-- scope: hr -->{TEXT}", "4: scope"),
    "yaml-fence.md": (f"```yaml\nscope: hr\n```{TEXT}", "2: scope"),
    "comment.md": (f"<!-- {KEY}; scope: hr -->{TEXT}", "1: sensitivity"),
    "comment-of-lines.md": (f"<!--\nscope: hr\n-->{TEXT}", "2: scope"),
    "table.md": (f"# Pay\n\n| Key | Value |\n|---|---|\n| Sensitivity | Secret |{TEXT}", "5: Sens"),
    "list.md": (f"- **Sensitivity:** confidential{TEXT}", "1: Sensitivity"),
    "wide.md": (f"# Pay\n\nsensitivity：confidential{TEXT}", "3: sensitivity"),
    "misspelt.txt": (f"Sensitivty: confidential\n{TEXT}", "1: Sensitivty"),
    "header.txt": (f"Title: Pay\nValid-Until: 2020-01-01\n{TEXT}", "2: Valid-Until"),
    "emacs.txt": (f"-*- {KEY} -*-\n{TEXT}", "1: sensitivity"),
    "variables.txt": (f"-*- mode: text; {KEY}; scope: hr -*-\n{TEXT}", "1: sensitivity"),
    "fence-with-words.md": (f"--- metadata ---\n{KEY}\n---{TEXT}", "2: sensitivity"),
    "link.md": (f"[scope]: # (hr)\n\n# Pay\n{TEXT}", "1: scope"),
    "heading.md": (f"# Pay of all our people\n\n## Metadata\n\n~~~\n{KEY}\n~~~{TEXT}", "6: sens"),
    "local-date.md": (f"# keep\n---\nvalid_until: 31.12.2020\n---\n{TEXT}", "3: valid_until"),
    "utf16.txt": (f"{KEY}\n{TEXT}", "1: sensitivity"),
    "keyword.org": ("#+TITLE: Pay\n#+SCOPE: hr\n\n* Pay\nText\n", "2: SCOPE"),
    "property.org": ("#+PROPERTY: sensitivity secret\n\n* Pay\nText\n", "1: sensitivity"),
    "drawer.org": ("* Pay\n:PROPERTIES:\n:SCOPE: hr\n:END:\nText\n", "3: SCOPE"),
    "attribute.adoc": ("= Pay\n:scope: hr\n\nText\n", "2: scope"),
    "comment.adoc": ("////\nscope: hr\n////\n= Pay\n\nText\n", "2: scope"),
    "field.rst": ("Pay\n===\n\n:scope: hr\n\nText\n", "4: scope"),
    "meta.rst": (".. meta::\n   :scope: hr\n\nPay\n===\n", "2: scope"),
    "front.rst": (f"---\n{KEY}\n---\n\nPay\n===\n", "2: sensitivity"),
    "docstring.py": (f'"""Pay.\n\n{KEY}\n"""\n', "3: sensitivity"),
    "doc.java": ("/**\n * Pay\n *\n * @sensitivity secret\n */\nclass A {}\n", "4: sensitivity"),
    "comment.yaml": (f"# {KEY}\npay: 1\n", "1: sensitivity"),
    "cell.ipynb": (CELL % (f'"---\\n", "{KEY}\\n"', ""), "2: sensitivity"),
    "notebook.ipynb": (CELL % ('"Pay"', '\n"scope": "hr"'), "3: metadata.scope"),
    "meta.html": (PAGE.format("\n<META CONTENT=hr\nNAME='dc.scope'>", ""), "2: dc.scope"),
    "data.html": (PAGE.format("", "\n data-sensitivity='secret'"), "1: data-sensitivity"),
    "visible.html": (
        PAGE.format("", "").replace("<p>", "<p>Sensitivity: secret</p><p>"),
        "1: Sens",
    ),
    "header.eml": (MAIL.format("X-Scope: hr"), "4: X-Scope"),
}
HARMLESS = {
    "tutorial.md": f"# Metadata\n\nA page may begin with these lines:\n\n```yaml\n---\n{KEY}\n---\n```\n",
    "indented.md": f"# Metadata\n\nA page may begin with these lines:\n\n    {KEY}\n",
    "quoted.md": f"# Metadata\n\nShe wrote:\n\n> {KEY}\n",
    "example.org": f"* Keywords\n#+begin_example\n#+SCOPE: hr\n{KEY}\n#+end_example\n",
    "listing.adoc": f"= Metadata\n\n[source,yaml]\n----\n{KEY}\n----\n",
    "literal.rst": f"Metadata\n========\n\nWrite it so::\n\n   {KEY}\n",
    "microphone.txt": "Microphone\n\nSensitivity: 5 mV/Pa\nScope: all staff\n",
    "camera.md": "# Camera\n\nSensitivity: ISO 100 to 25600\nScope: building\n",
    "offer.txt": "Offer\n\nValid until: 2026-01-01\nThe scope: hr and sales.\n",
    "oauth.md": "---\noauth:\n  scope: hr\n---\n# Login\n",
    "slides.md": "# Welcome to the course of autumn\n\n---\n\n# Scope\n\n---\nScope: tests\n",
    "generated.html": "<!-- made by mkpage; scope: build -->\n" + PAGE.format("", ""),
    "table.html": PAGE.format("", "").replace("<p>", "<table><tr><th scope='row'>a</table><p>"),
    "tests.py": '# scope: module\nscope = "hr"\nsensitivity: str = "public"\n',
    "data.yaml": f"scope: hr\n{KEY}\n",
    "data.json": '{"sensitivity": "confidential", "scope": "hr"}\n',
    "own.md": f"---\n{KEY}\nexcluded_roles: [a, b]\n---\n\n| sensitivity | confidential |\n|---|---|\n",
    "normal.eml": MAIL.format("Sensitivity: Company-Confidential"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_each_form_keeps_its_document_back_and_is_named(tree: Tree) -> None:
    texts = {name: text for name, (text, _) in KEPT.items()}
    write_files(tree.root, texts | {"utf16.txt": texts["utf16.txt"].encode("utf-16")})
    report = tree.ingest()
    assert report.refused() == [] and report.quarantined == len(KEPT)
    notes = {note.path: note.message for note in report.notes}
    assert {
        n: notes.get(n) for n, (_, at) in KEPT.items() if f"line {at}" not in notes.get(n, "")
    } == {}
    with Engine(tree.db) as engine:
        for name in KEPT:
            with pytest.raises(UsageError):
                engine.get(name)


@pytest.mark.parametrize("name", ["Sensitivity", "Scope"])
def test_properties_of_office_documents(tree: Tree, name: str) -> None:
    word, odt = docx(paragraph("The pay of people.")), opendocument("<text:p>The pay.</text:p>")
    custom = f'<Properties><property name="{name}"><v>Secret</v></property></Properties>'
    meta = (
        '<office:document-meta xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0"><office:meta>'
        f'<meta:user-defined meta:name="{name}">Secret</meta:user-defined></office:meta>'
        "</office:document-meta>"
    )
    files = {
        "a.docx": zipped(members(word) | {"docProps/custom.xml": custom.encode()}),
        "a.odt": zipped(members(odt) | {"meta.xml": meta.encode()}),
        "b.docx": word,
        "b.odt": odt,
    }
    write_files(tree.root, files)
    report = tree.ingest()
    kept = [note.path for note in report.notes if f"{name}: Secret" in note.message]
    assert (sorted(kept), report.quarantined) == (["a.docx", "a.odt"], 2)


def test_other_words_keep_nothing_back(tree: Tree) -> None:
    write_files(tree.root, HARMLESS)
    report = tree.ingest()
    assert ([note.message for note in report.notes], report.quarantined) == ([], 0)
    assert tree.at("normal.eml").sensitivity == tree.at("own.md").sensitivity == "confidential"


def test_the_owner_decides(tree: Tree) -> None:
    tree.write("rolebundle.toml", 'ignore_keys = ["scope"]\n')
    tree.write("a.md", f"<!-- {KEY} -->{TEXT}")
    tree.write("b.md", f"<!-- scope: hr -->{TEXT}")
    tree.ingest()
    with open_reader(tree.db) as corpus:
        [document_id] = quarantined_documents(corpus)
    with Admin(tree.db) as admin:
        release_document(admin.workspace, document_id)
    with Engine(tree.db) as engine:
        [passage, *_] = engine.get("a.md").passages
    assert passage.flags == ["governance_unread"]
    # Another text is another decision.
    tree.write("a.md", f"<!-- {KEY} -->{TEXT}more\n")
    assert tree.ingest().quarantined == 1
