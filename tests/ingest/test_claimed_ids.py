"""No document takes the id or the source of another, whichever is read first."""

from __future__ import annotations

import json
import shutil

import pytest

from rolebundle.storage.opening import open_reader
from support.sound import assert_sound
from support.source_tree import BODY, OWNER, Tree, codes, front


def test_a_document_does_not_take_the_source_of_others(tree: Tree) -> None:
    tree.write("rolebundle.toml", OWNER)
    tree.write("security/threat-model.md", "Text.\n")
    tree.write("a.md", front(source_id="SECURITY-review") + "Text.\n")
    tree.write("b.md", front(source_id="mine") + "Text.\n")
    tree.ingest()
    assert (tree.at("a.md").source_id, tree.at("b.md").source_id) == ("w", "mine")
    assert tree.at("a.md").refused_claims == ("source_id: SECURITY-review",)


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours"), ("",)])
@pytest.mark.parametrize("claimed", ["ours/a.md", "chunk"])
def test_an_id_by_right_is_kept_whatever_the_order(
    tree: Tree, order: tuple[str, ...], claimed: str
) -> None:
    real = tree.write("ours/a.md", f"{BODY}\n")
    (tree.root / "ours" / "rolebundle.toml").write_text("[defaults]\nsource_id = 'ours'\n")
    (tree.root / "theirs").mkdir()
    if claimed == "chunk":
        probe = Tree(tree.root.parent / "probe")
        shutil.copytree(real.parent, probe.root / "ours")
        probe.ingest(probe.root / "ours")
        with open_reader(probe.db) as corpus:
            [(chunk_id,)] = corpus.rows("SELECT chunk_id FROM chunk")
        chunk = {"chunk_id": chunk_id, "content": "Taken."}
        text = json.dumps({"documents": [{"document_id": "d", "title": "t", "chunks": [chunk]}]})
        tree.write("theirs/p.json", text)
    else:
        tree.write("theirs/p.md", front(document_id="ours/a.md") + "Taken.\n")
    reports = [tree.ingest(tree.root / name, manifests=True) for name in order]
    if order == ("",):
        # One root: ids are relative to it.
        assert "ours/ours/a.md" in tree.documents()
        return
    assert not any(report.refused() for report in reports)
    assert any("claim_refused" in codes(report) for report in reports)
    with open_reader(tree.db) as corpus:
        rows = dict(
            corpus.rows(
                "SELECT d.document_id, content FROM chunk c JOIN document d ON d.id = c.document"
            )
        )
        chunk_ids = {name for (name,) in corpus.rows("SELECT chunk_id FROM chunk")}
    assert rows["ours/a.md"] == BODY
    assert "Taken." in rows.values()
    assert len(chunk_ids) == 2
    assert_sound(tree.db)
    before = tree.db.read_bytes()
    for name in order:
        assert tree.ingest(tree.root / name).unchanged == 1
    assert tree.db.read_bytes() == before


def test_a_source_with_a_slash_takes_no_id(tree: Tree) -> None:
    """The document `a.md` of the source `w/n` would have the id of `n/a.md` of the source `w`."""
    tree.write("a.md", front(source_id="w/n") + "Taken.\n")
    tree.write("n/a.md", "Text.\n")
    report = tree.ingest()
    assert (report.refused(), codes(report)) == ([], ["claim_refused"])
    assert tree.documents()["w/n/a.md"].uri == "n/a.md"
    assert tree.at("a.md").document_id == "w/n/a.md#w/n/a.md"


@pytest.mark.parametrize("is_foreign_first", [False, True])
def test_a_foreign_folder_with_the_name_of_ours_takes_no_id(
    tree: Tree, is_foreign_first: bool
) -> None:
    ours = tree.write("ours/docs/a.md", "Text.\n").parent
    theirs = tree.write("theirs/docs/a.md", "Taken.\n").parent
    untrusted = {"trust_tier": "untrusted", "origin": "untrusted"}
    for is_foreign in (is_foreign_first, not is_foreign_first):
        report = tree.ingest(theirs if is_foreign else ours, flags=untrusted if is_foreign else {})
        assert report.refused() == []
    tiers = {name: metadata.trust_tier for name, metadata in tree.documents().items()}
    second_name = "docs/a.md#docs/a.md" if is_foreign_first else "theirs-docs/a.md"
    assert tiers == {"docs/a.md": "general", second_name: "untrusted"}
