"""What a walk leaves out: ignore files as git reads them, and what tools have generated."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.walk import FileEntry, Skipped, walk
from rolebundle.storage.opening import open_reader
from support.sound import paths_in
from support.source_tree import Tree


def write(root: Path, *names: str, **contents: str) -> None:
    for name in (*names, *contents):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents.get(name, "Text.\n"), encoding="utf-8")


def walked(
    root: Path, start: Path | None = None, *, ignore: bool = True
) -> tuple[list[str], dict[str, str]]:
    """The paths of the files, and path → reason of what is left out, without hidden names."""
    entries = walk(root, start or root, FileDefaults(), ignore=ignore)
    skipped = [entry for entry in entries if isinstance(entry, Skipped)]
    reasons = {entry.path: entry.message for entry in skipped if "hidden" not in entry.message}
    return [entry.path for entry in entries if isinstance(entry, FileEntry)], reasons


# -- ignore files ----------------------------------------------------------------------------------


def test_what_a_checkout_takes_over(tmp_path: Path) -> None:
    """Not the `.gitignore` of the checkout around it; but its own exclude file."""
    write(
        tmp_path, "a.log", "lib/a.log", "lib/b.tmp", "lib/c.bak", "lib/d.md",
        **{
            ".gitignore": "*.log\n", ".ignore": "*.bak\n",
            "lib/.git/info/exclude": "*.tmp\n", "lib/.git/HEAD": "",
        },
    )  # fmt: skip
    assert walked(tmp_path)[0] == ["lib/a.log", "lib/d.md"]


def test_the_exclude_file_of_a_linked_work_tree(tmp_path: Path) -> None:
    write(
        tmp_path, "work/a.tmp", "work/b.md",
        **{
            "main/.git/info/exclude": "*.tmp\n", "main/.git/worktrees/w/commondir": "../..\n",
            "work/.git": f"gitdir: {tmp_path}/main/.git/worktrees/w\n",
        },
    )  # fmt: skip
    assert walked(tmp_path / "work")[0] == ["b.md"]


def test_a_part_of_a_checkout(tmp_path: Path) -> None:
    """The files above it count, unless they leave out what was named."""
    write(
        tmp_path, "docs/a.md", "docs/a.log", "made/a.md", "made/a.log",
        **{".gitignore": "*.log\nmade/\n", ".git/HEAD": ""},
    )  # fmt: skip
    docs, generated = tmp_path / "docs", tmp_path / "made"
    assert walked(docs)[0] == ["a.md"]
    assert walked(generated)[0] == ["a.log", "a.md"]
    assert walked(tmp_path, docs / "a.log")[0] == ["docs/a.log"]


@pytest.mark.parametrize(
    "content",
    ["\x00\x01", "[", "!", "/", "*a" * 9000, "a\\", "(" * 2000, "{a,b}*\n" * 2_000, "\ufeff*.log"],
)
def test_malformed_ignore_files(tmp_path: Path, content: str) -> None:
    write(tmp_path, "a.md", "b.log", **{".gitignore": content})
    assert "a.md" in walked(tmp_path)[0]


NAMES = ("a", "b", "a.md", "b.txt", "x")
PATTERNS = st.builds(
    lambda bang, head, names, tail: bang + head + "/".join(names) + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/", "**/"]),
    st.lists(
        st.sampled_from([*NAMES, "*", "*.md", "?", "**", "[ab]", "a*"]), min_size=1, max_size=3
    ),
    st.sampled_from(["", "", "/", "/**", " "]),
)
TREE = [f"{a}/{b}/{c}" for a in ("a", "b") for b in ("a", "b", "x") for c in ("a.md", "b.txt")] + [
    "a.md",
    "b.txt",
    "a/a.md",
    "x",
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = tmp_path_factory.mktemp("checkout")
    write(root, *TREE)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@settings(max_examples=20)
@given(st.lists(PATTERNS, max_size=4), st.lists(PATTERNS, max_size=2))
@example(["[ab].md"], ["[!a].txt"])
def test_the_same_files_as_git(checkout: Path, outer: Sequence[str], inner: Sequence[str]) -> None:
    (checkout / ".gitignore").write_text("\n".join(outer) + "\n", encoding="utf-8")
    (checkout / "a" / ".gitignore").write_text("\n".join(inner) + "\n", encoding="utf-8")
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=checkout, capture_output=True, check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    ).stdout.decode().split("\0")  # fmt: skip
    visible = {path for path in listed if path and not path.endswith(".gitignore")}
    assert set(walked(checkout)[0]) == visible


# -- what tools have generated ---------------------------------------------------------------------


def test_generated_folders_and_lock_files(tmp_path: Path) -> None:
    write(
        tmp_path, "app/package.json", "app/node_modules/x/README.md", "app/dist/a.js",
        "app/build/a.js", "app/package-lock.json", "app/README.md", "rs/Cargo.toml",
        "rs/target/doc/a.html", "rs/Cargo.lock", "py/env/pyvenv.cfg", "py/env/lib/a.py",
        "conda/conda-meta/history", "conda/a.py", "sphinx/conf.py", "sphinx/_build/a.html",
        "sphinx/index.rst", "js/jquery.min.js", "js/site.css.map",
        **{"cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n", "cache/a.md": ""},
    )  # fmt: skip
    paths, reasons = walked(tmp_path)
    assert paths == [
        "app/README.md", "app/package.json", "rs/Cargo.toml", "sphinx/conf.py", "sphinx/index.rst",
    ]  # fmt: skip
    assert reasons == {
        "app/build/": "build output", "app/dist/": "build output", "rs/target/": "build output",
        "app/node_modules/": "dependencies", "app/package-lock.json": "lock file",
        "rs/Cargo.lock": "lock file", "py/env/": "virtual environment",
        "conda/": "virtual environment", "sphinx/_build/": "build output", "cache/": "cache",
        "js/jquery.min.js": "minified code", "js/site.css.map": "minified code",
    }  # fmt: skip
    assert len(walked(tmp_path, ignore=False)[0]) == 20
    assert walked(tmp_path / "js" / "jquery.min.js")[0] == ["jquery.min.js"], "it was named"
    assert walked(tmp_path / "py" / "env")[0] == ["lib/a.py", "pyvenv.cfg"], "it was named"


def test_folders_that_belong_to_a_corpus(tmp_path: Path) -> None:
    for name in ("overlays", "published"):
        write(tmp_path, f"team.db.{name}/ab/manifest.json", f"other.{name}/a.md")
    write(tmp_path, "team.db")
    paths, reasons = walked(tmp_path)
    assert paths == ["other.overlays/a.md", "other.published/a.md", "team.db"]
    assert reasons == {
        "team.db.overlays/": "overlays",
        "team.db.published/": "published replicas",
    }


def test_documents_in_a_folder_called_build(tmp_path: Path) -> None:
    write(
        tmp_path, "docs/build/install.md", "docs/target/audience.md", "docs/dist/notes.md",
        "docs/index.md", "cache/CACHEDIR.TAG", "cache/a.md",
    )  # fmt: skip
    paths, reasons = walked(tmp_path)
    assert reasons == {}
    assert len(paths) == 6


# -- the corpus ------------------------------------------------------------------------------------


def paths_of(tree: Tree) -> set[str]:
    with open_reader(tree.db) as corpus:
        return paths_in(corpus)


@pytest.fixture
def world(tree: Tree) -> Tree:
    write(tree.root, "a.md", "notes/b.md", "notes/c.md", "dist/d.md")
    return tree


def test_new_rules_take_documents_out_and_say_so(world: Tree) -> None:
    world.ingest()
    write(world.root, **{".gitignore": "notes/\n", "package.json": "{}"})
    report = world.ingest()
    assert report.removed == 3
    assert sorted(note.message for note in report.notes) == [
        "dist/: 1 file left the corpus: build output",
        "notes/: 2 files left the corpus: .gitignore: notes/",
    ]
    assert paths_of(world) == {"a.md", "package.json"}
    (world.root / ".gitignore").unlink()
    assert world.ingest().added == 2


def test_a_folder_that_became_a_link_out_of_the_root_says_what_left_and_the_next_step(
    world: Tree,
) -> None:
    world.ingest()
    outside = world.root.parent / "outside"
    (world.root / "notes").rename(outside)
    (world.root / "notes").symlink_to(outside)
    report = world.ingest()
    assert report.removed == 2
    assert [note.message for note in report.notes if note.code == "left_corpus"] == [
        "notes: 2 files left the corpus: a symbolic link to a target outside the folder; "
        "to have them again, ingest the folder that holds them now"
    ]
    assert paths_of(world) == {"a.md", "dist/d.md"}
    assert world.ingest().notes == []


def test_no_ignore_is_remembered(world: Tree) -> None:
    write(world.root, **{".gitignore": "*\n"})
    world.ingest(ignore=False)
    assert world.ingest().unchanged == 4
    assert world.ingest(ignore=True).removed == 4


def test_what_was_named_stays(world: Tree) -> None:
    """A later ingest of the folder above must not take it out again."""
    write(world.root, **{".gitignore": "notes/\n", "package.json": "{}"})
    world.ingest()
    world.ingest(world.root / "notes", world.root / "dist")
    named = {"a.md", "dist/d.md", "notes/b.md", "package.json"}
    assert paths_of(world) == named | {"notes/c.md"}, "its own rules do not count inside of it"
    report = world.ingest()
    assert (report.removed, report.unchanged) == (0, 5)
