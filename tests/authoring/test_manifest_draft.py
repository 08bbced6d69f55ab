"""What the names of folders tell."""

from pathlib import Path

import pytest

from rolebundle.authoring import draft_manifest
from rolebundle.ingest.manifests import parse_manifest


@pytest.mark.parametrize("with_sources", [True, False])
def test_each_top_folder_with_several_files_is_a_source(with_sources: bool) -> None:
    paths = ("README.md", "a/1.md", "a/2.md", "b c/x/1.md", "b c/y/2.md", "b-c/1.md", "b-c/2.md")
    text = draft_manifest((*paths, "one/1.md"), "notes", with_sources=with_sources)
    parsed = parse_manifest(text.encode(), Path("m"))
    assert {rule.glob: rule.source_id for rule in parsed.file.rule} == (
        {"a/**": "notes-a", "b c/**": "notes-b-c"} if with_sources else {}
    )
    assert text.count("# 2 files") == (2 if with_sources else 0)
