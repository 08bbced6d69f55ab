"""What the names of folders tell."""

from pathlib import Path

import pytest

from rolebundle.authoring import FOLDER_TYPES, draft_manifest
from rolebundle.ingest.manifests import parse_manifest


@pytest.mark.parametrize("with_sources", [True, False])
def test_each_top_folder_with_several_files_is_a_source(with_sources: bool) -> None:
    paths = ("README.md", "a/1.md", "a/2.md", "b c/x/1.md", "b c/y/2.md", "b-c/1.md", "b-c/2.md")
    text, sources, _ = draft_manifest((*paths, "one/1.md"), "notes", with_sources=with_sources)
    parsed = parse_manifest(text.encode(), Path("m"))
    assert {rule.glob: rule.source_id for rule in parsed.file.rule} == (
        {"a/**": "notes-a", "b c/**": "notes-b-c"} if with_sources else {}
    )
    expected = {"notes": 4, "notes-a": 2, "notes-b-c": 2}
    assert sources == (expected if with_sources else {})


@pytest.mark.parametrize(
    ("path", "document_type"),
    [
        ("adr/0001-wood.md", "adr"),
        ("docs/Meeting Notes/board.md", "meeting-notes"),
        ("ops/Runbooks/db.md", "runbook"),
        # What is not plain.
        ("decisions/wood.md", None),
        ("api/client.md", None),
        ("runbook.md", None),
    ],
)
def test_types_only_where_they_are_plain(path: str, document_type: str | None) -> None:
    _, _, types = draft_manifest([path], "notes")
    assert [*types] == ([document_type] if document_type else [])


def test_no_type_is_that_of_decisions_that_bind() -> None:
    # `decision` makes a document block actions; a guess must never do that.
    assert "decision" not in FOLDER_TYPES.values()
