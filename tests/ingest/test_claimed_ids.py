"""No document takes the id or the source of another, whichever is read first."""

from __future__ import annotations

import json
import shutil

import pytest

from rolebundle.storage import roots
from rolebundle.storage.opening import open_reader
from support.sound import assert_sound
from support.source_tree import BODY, OWNER, Tree, front


def test_a_document_does_not_take_the_source_of_others(tree: Tree) -> None:
    tree.write("rolebundle.toml", OWNER)
    tree.write("security/threat-model.md", "Text.\n")
    tree.write("a.md", front(source_id="SECURITY-review") + "Text.\n")
    tree.write("b.md", front(source_id="mine") + "Text.\n")
    tree.ingest()
    assert (tree.at("a.md").source_id, tree.at("b.md").source_id) == ("w", "mine")
    assert tree.at("a.md").refused_claims == ("source_id: SECURITY-review",)


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
@pytest.mark.parametrize("claimed", ["document", "source", "chunk"])
def test_an_id_by_right_is_kept_whatever_the_order(
    tree: Tree, order: tuple[str, ...], claimed: str
) -> None:
    """What declares it for itself is refused, until it declares another one."""
    real = tree.write("ours/a.md", f"{BODY}\n")
    if claimed == "chunk":
        probe = Tree(tree.root.parent / "probe")
        shutil.copytree(real.parent, probe.root / "ours")
        probe.ingest(probe.root / "ours")
        with open_reader(probe.db) as corpus:
            [(chunk_id,)] = corpus.rows("SELECT chunk_id FROM chunk")
        chunk = {"chunk_id": chunk_id, "content": "Taken."}
        text = json.dumps({"documents": [{"document_id": "d", "title": "t", "chunks": [chunk]}]})
        claim = tree.write("theirs/p.json", text)
    elif claimed == "document":
        claim = tree.write("theirs/p.md", front(document_id="ours/a.md") + "Taken.\n")
    else:
        claim = tree.write("theirs/a.md", front(source_id="ours") + "Taken.\n")
    tree.write("theirs/b.md", "Text.\n")
    reports = [tree.ingest(tree.root / name) for name in order]
    assert [refused.path for report in reports for refused in report.refused()] == [claim.name]
    assert tree.documents().keys() == {"ours/a.md", "theirs/b.md"}
    with open_reader(tree.db) as corpus:
        assert [root.documents for root in roots.load(corpus)] == [1, 1]
    assert_sound(tree.db)
    before = tree.documents()
    for name in order:
        report = tree.ingest(tree.root / name)
        assert (report.unchanged, len(report.refused())) == (1, name == "theirs")
    assert tree.documents() == before
    claim.write_text("Other text.\n")
    assert tree.ingest(claim).refused() == []


def test_of_two_files_in_one_run_the_one_with_the_right_is_kept(tree: Tree) -> None:
    """The document `a.md` of the source `w/n` would have the id of `n/a.md` of the source `w`."""
    tree.write("a.md", front(source_id="w/n") + "Taken.\n")
    tree.write("n/a.md", "Text.\n")
    report = tree.ingest()
    assert [refused.path for refused in report.refused()] == ["a.md"]
    assert tree.documents()["w/n/a.md"].uri == "n/a.md"


@pytest.mark.parametrize("is_foreign_first", [False, True])
def test_folders_of_one_name_have_ids_of_their_own(tree: Tree, is_foreign_first: bool) -> None:
    ours = tree.write("ours/docs/a.md", "Text.\n").parent
    theirs = tree.write("theirs/docs/a.md", "Other text.\n").parent
    untrusted = {"trust_tier": "untrusted", "origin": "untrusted"}
    for is_foreign in (is_foreign_first, not is_foreign_first):
        report = tree.ingest(theirs if is_foreign else ours, flags=untrusted if is_foreign else {})
        assert report.refused() == []
    tiers = {name: metadata.trust_tier for name, metadata in tree.documents().items()}
    ids = ("ours-docs/a.md", "docs/a.md") if is_foreign_first else ("docs/a.md", "theirs-docs/a.md")
    assert tiers == dict(zip(ids, ("general", "untrusted"), strict=True))
