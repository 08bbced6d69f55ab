"""What tells the kind of a document, and what comes first."""

from __future__ import annotations

import pytest

from rolebundle.authoring.kinds import KINDS, domain_of_folder, kind_of_document

ADR = ["Wood", "Status", "Context", "Decision", "Consequences"]


@pytest.mark.parametrize(
    ("path", "reader", "headings", "expected"),
    [
        ("README.md", "markdown", [], ("readme", "name")),
        ("docs/CHANGELOG.rst", "rst", [], ("changelog", "name")),
        ("docs/adr/0001-wood.md", "markdown", [], ("adr", "folder")),
        ("notes/wood.md", "markdown", ADR, ("adr", "headings")),
        ("notes/wood.md", "markdown", ADR[:2], None),
        ("ops/db-runbook.md", "markdown", [], ("runbook", "name")),
        ("2026/03 Meetings/board.md", "markdown", [], ("meeting-notes", "folder")),
        ("daily/2026-03-01.md", "markdown", [], ("journal", "name")),
        ("inbox", "mbox", [], ("mail", "format")),
        ("src/app.py", "source", [], ("source-code", "format")),
        ("src/app_test.go", "source", [], ("test-code", "name")),
        ("tests/support/app.py", "source", [], ("test-code", "folder")),
        # What an archive holds is old, whatever it is.
        ("archive/adr/0001-wood.md", "markdown", ADR, ("archived", "folder")),
        # The name of a file counts before the folder.
        ("docs/reference/glossary.md", "markdown", [], ("glossary", "name")),
        ("recipes.py", "text", [], ("guide", "name")),
        ("product/requirements.md", "markdown", [], ("requirements", "name")),
        ("requirements-dev.txt", "text", [], ("source-code", "name")),
        ("search/x_api.feature", "text", [], ("test-code", "name")),
        ("docs/orders-api.html.md", "markdown", [], ("api-reference", "name")),
        ("docs/api_methods.md", "markdown", [], ("api-reference", "name")),
        # A program whose name ends in "api", and what happens to it.
        ("alerts/orders-api-queue-is-full.md", "markdown", [], None),
        ("garden.md", "markdown", ["Roses"], None),
    ],
)
def test_kind(
    path: str, reader: str, headings: list[str], expected: tuple[str, str] | None
) -> None:
    found = kind_of_document(path, reader, headings)
    assert (found and (found.kind.document_type, found.by)) == expected


def test_no_type_is_that_of_decisions_that_bind() -> None:
    # `decision` makes a document block actions; a guess must never do that.
    assert "decision" not in {kind.document_type for kind in KINDS}


def test_domain_of_folder() -> None:
    assert domain_of_folder("Security") == "security"
    assert domain_of_folder("on-call") == "operations"
    assert domain_of_folder("boats") == ""
