"""Listing files: order, hidden and generated folders, manifests; reading a file safely."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.manifests import FileDefaults, read_manifest
from rolebundle.ingest.walk import FileEntry, Skipped, read_bytes, walk

NO_DEFAULTS = FileDefaults()


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")


def walked(root: Path, start: Path | None = None) -> tuple[list[str], dict[str, str]]:
    entries = list(walk(root, start or root, NO_DEFAULTS, read_manifest(root)))
    paths = [entry.path for entry in entries if isinstance(entry, FileEntry)]
    return paths, {entry.path: entry.code for entry in entries if isinstance(entry, Skipped)}


def test_every_file_in_order(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a/z.md", "a/b/c.md", "a.md", "B.md")
    paths, skipped = walked(tmp_path)
    assert paths == ["B.md", "a/b/c.md", "a/z.md", "a.md", "b.md"]
    assert skipped == {}


def test_hidden_and_generated(tmp_path: Path) -> None:
    write(
        tmp_path, ".env", ".git/config", "node_modules/x/y.js", "__pycache__/a.pyc", "a.md",
        "deep/.hidden.md",
    )  # fmt: skip
    paths, skipped = walked(tmp_path)
    assert paths == ["a.md"]
    assert skipped == dict.fromkeys(
        (".env", ".git/", "node_modules/", "__pycache__/", "deep/.hidden.md"), "ignored"
    )


def test_only_the_manifest_of_the_root_counts(tmp_path: Path) -> None:
    """It also counts if a part of the root is read. No manifest is a document."""
    write(tmp_path, "a.md", "b.log", "deep/er/a.md", "deep/er/b.log")
    (tmp_path / "rolebundle.toml").write_text(
        "ignore = ['**/*.log']\n[defaults]\ntitle = 'top'", encoding="utf-8"
    )
    (tmp_path / "deep" / "rolebundle.toml").write_text("no TOML", encoding="utf-8")
    assert walked(tmp_path) == (
        ["a.md", "deep/er/a.md"],
        {
            "b.log": "ignored",
            "deep/er/b.log": "ignored",
            "deep/rolebundle.toml": "manifest_ignored",
        },
    )
    start = tmp_path / "deep" / "er"
    assert walked(tmp_path, start) == (["deep/er/a.md"], {"deep/er/b.log": "ignored"})
    [entry] = walk(tmp_path, start / "a.md", NO_DEFAULTS, read_manifest(tmp_path))
    assert isinstance(entry, FileEntry)
    assert entry.defaults.authority.values == {"title": "top"}


def test_a_single_file(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md", ".c.md")
    assert walked(tmp_path, tmp_path / "a.md") == (["a.md"], {})
    assert walked(tmp_path, tmp_path / ".c.md") == ([], {".c.md": "ignored"})


def test_a_start_that_is_a_link(tmp_path: Path) -> None:
    write(tmp_path, "root/a.md", "outside/b.md")
    (tmp_path / "root" / "link").symlink_to("../outside")
    assert walked(tmp_path / "root", tmp_path / "root" / "link") == ([], {"link": "escapes_root"})


# -- reading ------------------------------------------------------------------------------------


def test_read_bytes(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    assert read_bytes(str(tmp_path / "a.md"), "a.md", 4) == b"a.md"
    (tmp_path / "empty").touch()
    assert read_bytes(str(tmp_path / "empty"), "empty", 0) == b""


def test_read_bytes_raises(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    (tmp_path / "link.md").symlink_to("a.md")
    os.mkfifo(tmp_path / "pipe")
    for name, cap, code in (
        ("a.md", 3, "too_large"),
        ("link.md", 100, "unreadable"),
        ("pipe", 100, "not_a_file"),
        (".", 100, "not_a_file"),
        ("none", 100, "unreadable"),
    ):
        with pytest.raises(DocumentError) as caught:
            read_bytes(str(tmp_path / name), name, cap)
        assert caught.value.code == code
        assert caught.value.message.startswith(f"{name}: ")
        assert caught.value.hint


def test_a_file_over_the_cap_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(DocumentError, match="1,099,511,627,776 bytes, over the cap of 10"):
        read_bytes(str(path), "huge", 10)


@pytest.mark.parametrize(
    ("glob", "meant"),
    [
        ("secret", "'secret/**'"),
        ("secret/", "'secret/**'"),
        ("/secret/**", "'secret/**'"),
        ("./secret/*.md", "'secret/*.md'"),
        ("Secret/**", "'secret/**'"),
        ("b.md", "'**/b.md'"),
        ("deep", "'**/deep/**'"),
        ("secrets/**", ""),
    ],
)
def test_a_glob_without_a_file_is_named(tmp_path: Path, glob: str, meant: str) -> None:
    write(tmp_path, "a.md", "secret/c.md", "secret/deep/b.md")
    manifest = tmp_path / "rolebundle.toml"
    manifest.write_text(f"[[rule]]\nglob = '{glob}'\nsensitivity = 'confidential'\n", "utf-8")
    note = walk(tmp_path, tmp_path, NO_DEFAULTS, read_manifest(tmp_path))[-1]
    assert isinstance(note, Skipped)
    assert note.code == "glob_matches_nothing"
    guess = f"; did you mean {meant}?" if meant else ""
    assert note.message == f"rolebundle.toml: rule 1: {glob!r} matches no file{guess}"
    manifest.write_text(f"ignore = ['{glob}']", "utf-8")
    entries = walk(tmp_path, tmp_path, NO_DEFAULTS, read_manifest(tmp_path))
    assert sum(isinstance(entry, Skipped) for entry in entries) == bool(meant)


def test_a_glob_with_a_file_is_not_named(tmp_path: Path) -> None:
    """Not even if the walk sees only a part of the manifest's files."""
    write(tmp_path, "a/b.md", "c/d.md", "c/e/f.md")
    text = "ignore = ['c/d.md']\n[[rule]]\nglob = 'a/*'\n[[rule]]\nglob = 'c/**'\n"
    (tmp_path / "rolebundle.toml").write_text(text, encoding="utf-8")
    for start in (tmp_path, tmp_path / "a", tmp_path / "c", tmp_path / "c" / "e" / "f.md"):
        codes = walked(tmp_path, start)[1].values()
        assert set(codes) <= {"ignored"}, start
    excluded = frozenset({str(tmp_path / "a")})
    without_a = walk(tmp_path, tmp_path, NO_DEFAULTS, read_manifest(tmp_path), excluded=excluded)
    assert all(entry.path != "rolebundle.toml" for entry in without_a)
