"""What the names of folders and files tell."""

from pathlib import Path

import pytest

from rolebundle.authoring.drafting import FOLDER_TYPES, FORMAT_TYPES, ManifestDraft, draft_manifest
from rolebundle.ingest.manifests import parse_manifest


def draft(*paths: str, **more: object) -> ManifestDraft:
    return draft_manifest(paths, "notes", **more)  # type: ignore[arg-type]


def rules(manifest: ManifestDraft) -> dict[str, dict[str, object]]:
    parsed = parse_manifest(manifest.text.encode(), Path("m"))
    return {rule.glob: rule.declared_values() for rule in parsed.file.rule}


def test_each_top_folder_with_several_files_is_a_source() -> None:
    paths = ("README.md", "a/1.md", "a/2.md", "b c/x/1.md", "b c/y/2.md", "one/1.md")
    manifest = draft(*paths)
    assert rules(manifest) == {
        "a/**": {"source_id": "notes-a"},
        "b c/**": {"source_id": "notes-b-c"},
    }
    assert manifest.sources == {"notes": 2, "notes-a": 2, "notes-b-c": 2}


def test_names_that_differ_by_case_or_signs_and_foreign_ones_are_no_ids_of_sources() -> None:
    paths = [f"{name}/{n}.md" for name in ("a b", "a-b", "c") for n in range(2)]
    sources = draft(*paths, reserved={"notes-c"}).sources
    assert [*sources] == ["notes-a-b", "notes-a-b-2", "notes-c-2"]


@pytest.mark.parametrize(
    ("path", "document_type"),
    [
        ("adr/0001-wood.md", "adr"),
        ("docs/03 Meeting Notes/board.md", "meeting-notes"),
        ("ops/Runbooks/db.md", "runbook"),
        ("mail/inbox.eml", "mail"),
        ("src/app.py", "source-code"),
        # The format is more special than the folder.
        ("runbooks/restart.sh", "source-code"),
        # What is not plain.
        ("decisions/wood.md", None),
        ("api/client.md", None),
        ("runbook.md", None),
        ("deploy.yaml", None),
        ("data.json", None),
    ],
)
def test_types_only_where_they_are_plain(path: str, document_type: str | None) -> None:
    types = draft(path).document_types
    assert [*types] == ([document_type] if document_type else [])


def test_no_type_is_that_of_decisions_that_bind() -> None:
    # `decision` makes a document block actions; a guess must never do that.

    assert "decision" not in {*FOLDER_TYPES.values(), *FORMAT_TYPES.values()}
