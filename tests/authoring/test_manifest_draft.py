"""What the names of folders tell."""

from pathlib import Path

import pytest

from rolebundle.authoring import draft_manifest
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


def test_types_are_shown_and_not_declared() -> None:
    paths = (
        "ops/Runbooks/db.md",
        "docs/Meeting Notes/board.md",
        "adr/0001-wood.md",
        "api/client.md",
    )
    text, _, types = draft_manifest((*paths, "ops/Runbooks/web.md", "poem.md"), "notes")
    assert types == {"runbook": 2, "minutes": 1, "decision": 1, "reference": 1}
    assert "#   runbook: 2 files\n" in text
    # A declared `decision` makes a document block actions; a guess must never do that.
    assert not any(
        rule.document_type for rule in parse_manifest(text.encode(), Path("m")).file.rule
    )
