"""A manifest counts if it is the owner's or approved; any other is named and not read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.commands import invoke
from support.source_tree import Tree, approve, codes


def checkout(tree: Tree, mark: str = ".git") -> Path:
    tree.write("lib/deep/rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\n")
    tree.write("lib/deep/a.md", "Text.\n")
    (tree.root / "lib" / mark).mkdir()
    return tree.root / "lib" / "deep"


@pytest.mark.parametrize("mark", [".git", ".hg", ".svn"])
def test_a_manifest_in_a_checkout_counts_after_approval(tree: Tree, mark: str) -> None:
    folder = checkout(tree, mark)
    report = tree.ingest()
    assert (codes(report), tree.at("lib/deep/a.md").trust_tier) == (["manifest_ignored"], "general")
    assert f"rolebundle policy trust {folder / 'rolebundle.toml'}" in report.notes[0].message
    assert invoke("policy", "trust", folder, "--db", tree.db).code == 0
    report = tree.ingest()
    assert [(grant.path, grant.documents) for grant in report.grants] == [
        ("lib/deep/rolebundle.toml", 1)
    ]
    assert tree.at("lib/deep/a.md").trust_tier == "authoritative"
    (folder / "rolebundle.toml").write_text("[defaults]\ntrust_tier = 'preferred'\n")
    report = tree.ingest()
    assert (codes(report), tree.at("lib/deep/a.md").trust_tier) == (["manifest_ignored"], "general")
    approve(tree, folder / "rolebundle.toml")
    tree.ingest()
    assert tree.at("lib/deep/a.md").trust_tier == "preferred"
    assert str(folder) in invoke("policy", "trust", "list", "--db", tree.db).out
    assert invoke("policy", "trust", "revoke", folder, "--db", tree.db).code == 0
    tree.ingest()
    assert tree.at("lib/deep/a.md").trust_tier == "general"
    assert invoke("policy", "trust", "revoke", folder, "--db", tree.db).code == 2


def test_a_manifest_that_does_not_count_is_not_parsed(tree: Tree) -> None:
    folder = checkout(tree)
    (folder / "rolebundle.toml").write_text("no TOML")
    assert codes(tree.ingest()) == ["manifest_ignored"]
    assert invoke("policy", "trust", folder, "--db", tree.db).code == 3


def test_the_root_may_be_a_checkout(tree: Tree) -> None:
    folder = checkout(tree)
    report = tree.ingest(folder)
    assert (report.notes, tree.at("a.md").trust_tier) == ([], "authoritative")


def test_a_link_is_no_manifest(tree: Tree) -> None:
    tree.write("elsewhere", "[defaults]\ntrust_tier = 'authoritative'\n")
    tree.write("n/a.md", "Text.\n")
    (tree.root / "n" / "rolebundle.toml").symlink_to("../elsewhere")
    assert codes(tree.ingest()) == ["manifest_ignored"]
    assert tree.at("n/a.md").trust_tier == "general"


@pytest.fixture
def give_to_another_user() -> Iterator[Callable[[Path], None]]:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only the root user can give files to other users")
    yield lambda path: os.chown(path, 12345, 12345)


@pytest.mark.parametrize("where", ["", "n/"])
def test_a_manifest_of_another_user_does_not_count(
    tree: Tree, give_to_another_user: Callable[[Path], None], where: str
) -> None:
    give_to_another_user(
        tree.write(f"{where}rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\n")
    )
    tree.write("n/a.md", "Text.\n")
    report = tree.ingest()
    assert (codes(report), tree.at("n/a.md").trust_tier) == (["manifest_ignored"], "general")
    assert "another user (uid 12345)" in report.notes[0].message


@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_manifest_above_that_is_not_ours(
    tree: Tree, give_to_another_user: Callable[[Path], None], of: str
) -> None:
    manifest = tree.write("rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\n")
    tree.write("n/a.md", "Text.\n")
    tree.ingest(tree.root / "n")
    assert tree.documents().keys() == {"w/n/a.md"}
    give_to_another_user(manifest if of == "file" else tree.root)
    report = tree.ingest(tree.root / "n")
    assert (codes(report), tree.at("a.md").trust_tier) == (["manifest_ignored"], "general")
    assert tree.documents().keys() == {"n/a.md"}


def test_no_manifests(tree: Tree) -> None:
    tree.write("rolebundle.toml", "no TOML")
    tree.write("a.md", "Text.\n")
    assert (
        invoke("ingest", tree.root, "--no-manifests", "--lexical-only", "--db", tree.db).code == 0
    )
    assert tree.at("a.md").trust_tier == "general"
