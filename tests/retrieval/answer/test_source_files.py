"""The files behind an answer: their absolute paths, and whether they changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.retrieval import source_files
from rolebundle.retrieval.source_files import file_states
from rolebundle.storage.documents import SourceFile

REQUEST = RetrievalRequest(task="token", lexical_only=True, now="2026-11-01")  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe token {name}.\n", encoding="utf-8")
    return folder


@pytest.fixture
def engine(folder: Path, tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "c.db") as engine:
        Admin(engine.workspace).ingest([folder], IngestOptions(lexical_only=True))
        yield engine


def warnings_of(bundle: RetrievalBundle) -> dict[str, str]:
    return {
        warning.code: warning.message
        for warning in bundle.warnings
        if warning.code.startswith("SOURCE_")
    }


def change(file: Path) -> None:
    file.write_text("# A\n\nAnother token a.\n", encoding="utf-8")


def change_at_the_same_size(file: Path) -> None:
    status = file.stat()
    file.write_bytes(file.read_bytes().replace(b"token", b"taken"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def replace_by_a_link(file: Path) -> None:
    file.rename(file.with_suffix(".old"))
    file.symlink_to(file.with_suffix(".old"))


def replace_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def touch(file: Path) -> None:
    os.utime(file, ns=(1, 1))


def rewrite(file: Path) -> None:
    file.write_bytes(file.read_bytes())


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (change, "1 file (a.md) changed"),
        (change_at_the_same_size, "1 file (a.md) changed"),
        (replace_by_a_link, "1 file (a.md) changed"),
        (replace_by_a_pipe, "1 file (a.md) changed"),
        (Path.unlink, "1 file (a.md) no longer there"),
        (touch, None),
        (rewrite, None),
    ],
)
def test_a_file_that_changed_or_vanished_is_reported(
    engine: Engine, folder: Path, event: Any, expected: str | None
) -> None:
    assert warnings_of(engine.retrieve(REQUEST)) == {}
    event(folder / "a.md")
    found = warnings_of(engine.retrieve(REQUEST))
    assert set(found) == ({"SOURCE_CHANGED"} if expected else set())
    assert expected is None or expected in found["SOURCE_CHANGED"]


def test_an_ingest_ends_the_warning(engine: Engine, folder: Path) -> None:
    change(folder / "a.md")
    Admin(engine.workspace).ingest([folder], IngestOptions(lexical_only=True))
    assert warnings_of(engine.retrieve(REQUEST)) == {}


class TestAFileSystemThatDoesNotAnswer:
    """It costs a bounded time once, and is reported."""

    @pytest.fixture
    def mount(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A folder whose files are never answered for."""
        answers, lstat, dead = Event(), os.lstat, Path("/dead")

        def slow(path: str) -> os.stat_result:
            if str(path).startswith(f"{dead}/"):
                assert answers.wait(30)
            return lstat(path)

        monkeypatch.setattr(source_files, "_stuck", [])
        monkeypatch.setattr(source_files.os, "lstat", slow)
        yield dead
        answers.set()

    @staticmethod
    def file(path: Path) -> SourceFile:
        size = path.stat().st_size if path.exists() else 1
        modified = path.stat().st_mtime_ns if path.exists() else 1
        return SourceFile("c", str(path), path.name, "hash", size, modified)

    def test_it_blocks_once_and_others_are_looked_at(self, mount: Path, tmp_path: Path) -> None:
        live = tmp_path / "live.md"
        live.write_text("x", encoding="utf-8")
        files = [self.file(mount / "x.md"), self.file(live)]
        started = perf_counter()
        assert set(file_states(files, 0.05).values()) == {"unknown"}
        # From here on nobody waits for that folder.
        assert file_states(files, 25.0) == {str(mount / "x.md"): "unknown", str(live): "same"}
        assert perf_counter() - started < 20


def test_it_is_reported_if_a_file_could_not_be_looked_at(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str) -> os.stat_result:
        raise PermissionError(13, "no")

    monkeypatch.setattr(source_files.os, "lstat", refuse)
    found = warnings_of(engine.retrieve(REQUEST))
    assert found == {
        "SOURCE_UNCHECKED": "since the ingest: 2 files (a.md, b.md) could not be checked"
    }


class TestAbsolutePaths:
    def test_without_a_policy_a_citation_has_the_path(self, engine: Engine, folder: Path) -> None:
        paths = [chunk.citation.absolute_path for chunk in engine.retrieve(REQUEST).selected]
        assert sorted(map(str, paths)) == [str(folder / "a.md"), str(folder / "b.md")]

    @pytest.mark.parametrize("shows_paths", [None, False, True])
    def test_under_a_policy_only_if_the_rule_says_so(
        self, engine: Engine, folder: Path, shows_paths: bool | None
    ) -> None:
        rule = {"scopes": [], "access_level": "internal"}
        rule |= {} if shows_paths is None else {"show_paths": shows_paths}
        set_policy(engine.workspace, json.dumps({"ada": rule}), "json")
        change(folder / "a.md")
        text = engine.retrieve(REQUEST.model_copy(update={"agent": "ada"})).to_json()
        assert (str(folder) in text) == bool(shows_paths)
        assert "SOURCE_CHANGED" in text
