"""The observed types of documents: what shows them, and that only the rank of a role sees them."""

import json
from pathlib import Path
from time import perf_counter

import pytest

from rolebundle.contracts.documents import OBSERVED_TYPE, DocumentMetadata
from rolebundle.ingest import metadata as resolving
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.document_types import observed_type
from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.parsed import Block, ParsedDocument
from support.commands import invoke
from support.source_tree import write_files


def parsed(text: str) -> ParsedDocument:
    lines = text.split("\n")
    blocks = (Block("paragraph", line, number, number) for number, line in enumerate(lines, 1))
    return ParsedDocument(tuple(blocks), lines=lines)


INVOICE = "Invoice no. 2026-118\nCleaning of the stairs\nTotal: 214.00 EUR"
LETTER = "Dear Mr Lindholm,\nthe water in flat 5 was ours.\nYours sincerely"
MINUTES = "Present: Ana, Ben\nAgenda\n1. Roof"

SHOWN: list[tuple[str, str, str, str | None]] = [
    # The name, in several languages and with what surrounds it.
    ("CHANGELOG.md", "", "", "changelog"),
    ("Verein/2026-03-12-Protokoll.md", "", "", "minutes"),
    ("Mietvertrag Wohnung 3.pdf", "", "", "contract"),
    ("Rechnung Telekom März.pdf", "", "", "invoice"),
    ("acta de la reunión 2024-10-17.docx", "", "", "minutes"),
    ("umowa najmu.odt", "", "", "contract"),
    ("facture 118.pdf", "", "", "invoice"),
    ("minutes FINAL.txt", "", "", "minutes"),
    ("AvonLifts_INV_30817.pdf", "", "", "invoice"),
    ("Tender report no 2 draft.pdf", "", "", "report"),
    ("bug_report.md", "", "", "form"),
    ("quote Zander roof.docx", "", "", "quote"),
    ("minutes board 2026-11-02 (short).txt", "", "", "minutes"),
    ("Sitzungsprotokoll.docx", "", "", "minutes"),
    ("Übergabeprotokoll WE1.docx", "", "", "report"),
    ("Wohnungsübergabeprotokoll.docx", "", "", "report"),
    ("Abnahmeprotokoll Bad.pdf", "", "", "report"),
    ("handover record flat 4.md", "", "", "report"),
    ("Flat 4 handover record.md", "", "", "report"),
    ("état des lieux.pdf", "", "", "report"),
    ("acta de entrega piso.docx", "", "", "report"),
    ("protokół odbioru lokalu.docx", "", "", "report"),
    ("Netzwerkprotokoll.md", "", "", None),
    # The head of a name is the last word, before what it is about.
    ("invoice template.docx", "", "", "form"),
    ("Guide to contracts.md", "", "", "guide"),
    ("Managing contracts.md", "", "", None),
    ("user surveys.md", "", "", None),
    ("reports.md", "", "", None),
    ("Berechnung.odt", "", "", None),
    ("preferences.md", "", "", None),
    # The title; a sentence is none.
    ("db.md", "Runbook: the queue is full", "", "runbook"),
    ("x.md", "What we thought of when somebody asked us for the report", "", None),
    # Parts.
    ("x.pdf", "", INVOICE, "invoice"),
    ("x.odt", "", LETTER, "letter"),
    ("x.md", "", MINUTES, "minutes"),
    ("x.md", "", "## [1.2.0] - 2026-01-02\n### Added\n- A\n## [1.1.0]", "changelog"),
    ("x.txt", "", "From: Ana\nTo: Ben\nSubject: roof\n\nIt leaks.", "mail"),
    ("x.md", "", "## Context\nRust.\n## Decision\nWood.", "decision"),
    ("x.md", "", "We had an invoice and a total of three meetings.", None),
    # Folders, the nearest first; there a name of a subject says what it is about.
    ("Notes/Meetings/2026-01-26 mon.txt", "", "", "minutes"),
    ("Meetings/lift quotes.md", "", "", "minutes"),
    ("Letters/out/lease.odt", "", "", "letter"),
    ("reference-architecture/aws.md", "", "", None),
    # The file itself says that it is another paper than its folder.
    ("Invoices/R-67 reminder 1 Fenwick.txt", "", INVOICE, None),
    ("Invoices/insurance confirmation 2026.pdf", "", "", None),
    ("Offers/AB-41.docx", "Order confirmation AB-41", "", None),
    ("Notes/LS 55231.pdf", "", "Sawmill Brandt - Delivery note 55231", None),
    ("Delivery notes/LS 55232.pdf", "", "", None),
    ("Angebote/Auftragsbestätigung 7.docx", "", "", None),
    ("Invoices/R-68 Fenwick.txt", "", "", "invoice"),
    # Formats.
    ("rents.xlsx", "Invoice", "", "sheet"),
    ("src/label.py", "", "", "source"),
    ("src/test_label.py", "", "", "test"),
    ("deploy.yaml", "", "", "configuration"),
    ("poem.md", "Spring", "The river rises.", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "title", "text", "expected"), SHOWN)
def test_what_shows_a_type(path: str, title: str, text: str, expected: str | None) -> None:
    found = observed_type(path, title, parsed(text))
    assert (found and found[0]) == expected
    assert found is None or found[1]


@pytest.mark.parametrize(
    "line",
    ["_" * 9, "invoice no ", "a b " * 40, " \t#*", "From:", "1. ", "the parties", "é" * 9, "\n"],
)
def test_any_text_is_looked_at_in_little_time(line: str) -> None:
    for text in (line * 20_000, f"{line}\n" * 20_000):
        start = perf_counter()
        observed_type("x.md", text[:400], parsed(text))
        assert perf_counter() - start < 1


def resolve(path: str, **declared: object) -> DocumentMetadata:
    defaults = FileDefaults(Authority(default_source="s"))
    return resolving.resolve(path, defaults, ParsedDocument(declared=declared))


@pytest.mark.parametrize("path", [path for path, _, _, expected in SHOWN if expected])
def test_it_is_no_declaration(path: str) -> None:
    """Not even for a name that shows a decision: rules, filters and gates look at what is declared."""
    shown, other = resolve(path), resolve("x.md")
    own = {"document_id", "title", "uri", "attributes", "updated_at"}
    for key in {*DocumentMetadata._fields} - own:
        assert getattr(shown, key) == getattr(other, key)


@pytest.mark.parametrize("declared", ["report", "document"])
def test_a_declared_type_counts_instead(declared: str) -> None:
    metadata = resolve("adr/0001.md", document_type=declared)
    assert metadata.observed_type is None and metadata.ranked_type == declared
    claimed = resolve("poem.md", **{OBSERVED_TYPE: "runbook", "reading": {"document_type": "adr"}})
    assert claimed.observed_type is None


def test_roles_rank_by_it_and_nothing_else_changes(tmp_path: Path) -> None:
    text = "The pump of the cellar stops at night.\n"
    files = {
        "ops/runbooks/a.md": text + "One.",
        "b.md": text + "Two.",
        "minutes.md": text + "Three.",
    }
    db = tmp_path / "c.db"
    overlays = {
        "operator": {"document_type_boosts": {"runbook": 4, "minutes": 0.2}},
        "forbids": {"forbidden_sources": [{"pattern": "minutes"}, {"pattern": "runbook"}]},
    }
    for role, policy in overlays.items():
        values = {"version": "1.0", "role_id": role, "mission": "Pump.", "source_policy": policy}
        write_files(tmp_path / "c.db.overlays", {f"{role}.json": json.dumps(values)})
    folder = write_files(tmp_path / "notes", files)
    assert invoke("ingest", folder, "--lexical-only", "--workers", "1", "--db", db).code == 0

    def answer(*more: str) -> list[str]:
        options = ("--lexical-only", "--json", "--db", db)
        selected = invoke("retrieve", "pump of the cellar", *more, *options).json()["selected"]
        return [chunk["uri"] for chunk in selected]

    assert answer("--role", "operator")[0] == "ops/runbooks/a.md"
    assert answer("--role", "operator")[-1] == "minutes.md"
    assert sorted(answer("--role", "forbids")) == sorted(files)
    assert answer("--where", "document_type=runbook") == ["ops/runbooks/a.md"]
    listed = {one["path"]: one for one in invoke("ls", "--json", "--db", db).json()["documents"]}
    assert listed["minutes.md"]["document_type"] == "minutes"
    assert listed["minutes.md"]["typed_by"] == "its name has 'minutes'"
    assert "typed_by" not in listed["b.md"] and "document_type" not in listed["b.md"]
    lint = invoke("overlay", "lint", "operator", "--json", "--db", db).json()
    assert lint["overlays"][0]["findings"] == []
