"""Dates of files that declare none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rolebundle.ingest import dates
from rolebundle.ingest.dates import inferred_at, last_commits
from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.walk import FileEntry
from rolebundle.storage.documents import all_documents
from rolebundle.storage.opening import open_reader
from support.commands import invoke

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
MAY, JUNE = 1_714_723_200, 1_717_401_600
"""2024-05-03 08:00 and 2024-06-03 08:00 in UTC."""


def git(folder: Path, *arguments: str, at: int = MAY) -> None:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    times = {"GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_COMMITTER_DATE": f"{at} +0200"}
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=m")
    subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, env={**os.environ, **own, **times}
    )


def sign_last_commit(folder: Path) -> None:
    """Replace the last commit by one with a signature, which only a program can check."""
    show = subprocess.run(
        ["git", "cat-file", "commit", "HEAD"], cwd=folder, capture_output=True, check=True
    )
    head, message = show.stdout.split(b"\n\n", 1)
    signature = b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"
    command = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
    signed = subprocess.run(
        command, cwd=folder, input=head + signature + message, capture_output=True, check=True
    )
    (folder / ".git/refs/heads/m").write_bytes(signed.stdout)


def write(path: Path, text: str = "# A\n\nText.\n", at: int = 0) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if at:
        os.utime(path, (at, at))
    return str(path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two files of May, one of which was committed again in June, and one untracked file."""
    folder = tmp_path / "checkout"
    for name in ("old.md", "docs/new é.md"):
        write(folder / name)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    write(folder / "docs/new é.md", "# B\n\nOther.\n")
    git(folder, "commit", "-qam", "two", at=JUNE)
    write(folder / "untracked.md")
    return folder


def times_of(folder: Path, **options: Any) -> dict[str, int | None]:
    files = [str(path) for path in sorted(folder.rglob("*.md"))]
    return {
        str(Path(path).relative_to(folder)): time
        for path, time in last_commits(files, **options).items()
    }


@needs_git
class TestCheckouts:
    def test_the_last_commit_that_touched_a_file(self, checkout: Path) -> None:
        assert times_of(checkout) == {"old.md": MAY, "docs/new é.md": JUNE}
        assert times_of(checkout / "docs") == {"new é.md": JUNE}

    def test_checkouts_below_a_folder(self, checkout: Path, tmp_path: Path) -> None:
        shutil.copytree(checkout, tmp_path / "all" / "a")
        shutil.copytree(checkout, tmp_path / "all" / "a" / "b")
        write(tmp_path / "all" / "c.md")
        times = times_of(tmp_path / "all")
        assert times == {
            "a/old.md": MAY, "a/docs/new é.md": JUNE, "a/b/old.md": MAY, "a/b/docs/new é.md": JUNE,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("attributes", "text"),
        [("", "# A\r\n\r\nText.\r\n"), ("* filter=lfs", "The text, of which git has a pointer.\n")],
    )
    def test_a_text_that_git_stores_otherwise(
        self, checkout: Path, attributes: str, text: str
    ) -> None:
        write(checkout / ".gitattributes", attributes)
        (checkout / "old.md").write_bytes(text.encode())
        assert times_of(checkout)["old.md"] == MAY

    def test_a_broken_checkout(self, checkout: Path) -> None:
        (checkout / ".git" / "HEAD").write_text("nonsense")
        assert times_of(checkout) == {}
        shutil.rmtree(checkout / ".git")
        (checkout / ".git").write_text("gitdir: /nowhere")
        assert times_of(checkout) == {}

    def test_a_history_that_takes_too_long(
        self, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What git tracks then has no date: its file's time is that of the checkout."""
        monkeypatch.setattr(dates, "_LOG", ["cat-file", "--batch", "--no-such-option"])
        assert times_of(checkout) == {"old.md": None, "docs/new é.md": None}

    def test_the_callers_environment_does_not_count(
        self, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GIT_DIR", str(tmp_path))
        monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
        assert times_of(checkout)["old.md"] == MAY
        assert not (tmp_path / "trace").exists()

    def test_a_hostile_configuration_runs_nothing(self, checkout: Path, tmp_path: Path) -> None:
        ran = tmp_path / "ran"
        evil = write(tmp_path / "evil.sh", f"#!/bin/sh\necho $0 $@ >> {ran}\nexit 1\n")
        Path(evil).chmod(0o755)
        for key in (
            "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "diff.external",
            "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge",
            "filter.x.process", "gpg.program", "core.askPass", "pager.log", "alias.log",
            "remote.o.uploadpack", "trailer.x.command", "core.alternateRefsCommand",
        ):  # fmt: skip
            git(checkout, "config", key, evil)
        settings = {
            "log.showSignature": "true", "log.follow": "true", "log.showRoot": "false",
            "core.hooksPath": str(tmp_path), "color.ui": "always", "diff.renames": "copies",
            "remote.o.url": f"ext::{evil}", "remote.o.promisor": "true",
            "protocol.ext.allow": "always", "protocol.allow": "always",
            "extensions.partialClone": "o", "core.repositoryFormatVersion": "1",
        }  # fmt: skip
        for key, value in settings.items():
            git(checkout, "config", key, value)
        write(checkout / ".gitattributes", "* diff=x filter=x\n")
        sign_last_commit(checkout)
        for hook in ("post-index-change", "reference-transaction", "post-checkout"):
            shutil.copy(evil, checkout / ".git" / "hooks" / hook)
            shutil.copy(evil, tmp_path / hook)
        ran.unlink(missing_ok=True)
        assert times_of(checkout) == {"old.md": MAY, "docs/new é.md": JUNE}
        assert not ran.exists()
        write(checkout / "old.md", "# Edited\n")  # its filter is not run to compare it
        assert times_of(checkout) == {"old.md": MAY, "docs/new é.md": JUNE}
        assert not ran.exists()
        # A missing object is not fetched either.
        objects = sorted((checkout / ".git" / "objects").glob("??/*"))
        for path in objects:
            path.unlink()
        times_of(checkout)
        assert not ran.exists(), ran.read_text()


def entry(seconds: float) -> FileEntry:
    return FileEntry("/a.md", "a.md", 1, int(seconds * 1e9), FileDefaults(), frozenset())


@pytest.mark.parametrize(
    ("seconds", "date"),
    [
        (MAY + 0.9, "2024-05-03T08:00:00Z"),
        (0, None),
        (315_532_800, None),  # 1980-01-01: what archives write if they know no time
        (-5, None),
        (1e11, "5138-11-16T09:46:40Z"),
        (1e13, None),
    ],
)
def test_the_time_of_a_file(seconds: float, date: str | None) -> None:
    assert inferred_at(entry(seconds), {}) == date


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("2026-03-01.md", "2026-03-01"),
        ("minutes/2026_03_01 planning.md", "2026-03-01"),
        ("20260301-planning.md", "2026-03-01"),
        ("2026-02-30.md", "2024-05-03"),
        ("2026-03-01 to 2026-03-05.md", "2024-05-03"),
        ("2026-03-01/planning.md", "2024-05-03"),
        ("v120260301.md", "2024-05-03"),
    ],
)
def test_a_date_in_the_name_counts_more_than_a_commit(name: str, date: str) -> None:
    file = entry(JUNE)._replace(path=name)
    found = inferred_at(file, {file.location: MAY})
    assert found is not None and found[:10] == date


def test_a_commit_counts_more_than_the_time_of_the_file() -> None:
    assert inferred_at(entry(JUNE), {"/a.md": MAY}) == "2024-05-03T08:00:00Z"
    assert inferred_at(entry(JUNE), {"/a.md": None}) is None


class TestIngest:
    def dates(self, tmp_path: Path, **found: Any) -> dict[str, tuple[str | None, str | None]]:
        run = invoke("ingest", tmp_path / "n", "--lexical-only", "--json", "--db", tmp_path / "c")
        assert run.code == 0, run
        found |= run.json()
        with open_reader(tmp_path / "c") as corpus:
            return {
                metadata.document_id: (metadata.updated_at, metadata.inferred_at)
                for _, metadata in all_documents(corpus)
            }

    def test_only_documents_without_a_date_get_one(self, tmp_path: Path) -> None:
        write(tmp_path / "n/a.md", at=MAY)
        write(tmp_path / "n/b.md", "---\ndate: 2020-01-01\n---\n# B\n\nText.\n", at=MAY)
        write(
            tmp_path / "n/c.html",
            "<meta name='last-modified' content='2021-01-01'><p>Some text.</p>",
            at=MAY,
        )
        assert self.dates(tmp_path) == {
            "n/a.md": (None, "2024-05-03T08:00:00Z"),
            "n/b.md": ("2020-01-01T00:00:00Z", None),
            "n/c.html": ("2021-01-01T00:00:00Z", None),
        }

    def test_a_touched_file_keeps_its_date(self, tmp_path: Path) -> None:
        """The date is that of the text, as the corpus first saw it."""
        write(tmp_path / "n/a.md", at=MAY)
        before = self.dates(tmp_path)
        os.utime(tmp_path / "n/a.md", (JUNE, JUNE))
        assert self.dates(tmp_path) == before
        write(tmp_path / "n/a.md", "# A\n\nNew text.\n", at=JUNE)
        assert self.dates(tmp_path) == {"n/a.md": (None, "2024-06-03T08:00:00Z")}

    @needs_git
    def test_a_checkout(self, checkout: Path, tmp_path: Path) -> None:
        checkout.rename(tmp_path / "n")
        found = self.dates(tmp_path)
        assert found["n/old.md"] == (None, "2024-05-03T08:00:00Z")
        assert found["n/docs/new é.md"] == (None, "2024-06-03T08:00:00Z")
