"""Every kind of SQLite file of ours is opened, refused and reported in the same way."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, WrongFile
from rolebundle.storage.audit import AUDIT_FORMAT
from rolebundle.storage.file import FileFormat
from rolebundle.storage.opening import corpus_format, open_writer
from rolebundle.storage.sqlite import SqliteFile, create_file

FORMATS = {
    "corpus": corpus_format(),
    "audit": AUDIT_FORMAT,
}


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def file_format(request: pytest.FixtureRequest) -> FileFormat:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.db"


def create(path: Path, file_format: FileFormat) -> None:
    assert create_file(path, file_format, lambda file: file.run("CREATE TABLE t (a)"))


def refusal(path: Path, file_format: FileFormat) -> RolebundleError:
    """The error of both ways to open a file, which leave the file as it is."""
    before = path.read_bytes() if path.is_file() else None
    errors = []
    for opened in (SqliteFile.open_read_only, SqliteFile.open_for_writing):
        with pytest.raises(RolebundleError) as caught:
            opened(path, file_format)
        errors.append(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert errors[0].code == errors[1].code
    assert errors[0].hint, "each error names the next step"
    return errors[0]


def test_a_created_file_is_complete_and_private(path: Path, file_format: FileFormat) -> None:
    before = os.umask(0)
    try:
        create(path, file_format)
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
        with SqliteFile.open_for_writing(path, file_format) as file:
            file.run("INSERT INTO t VALUES (1)")
            files = [*path.parent.iterdir()]
            assert {entry.name.removeprefix(path.name) for entry in files} == {"", "-wal", "-shm"}
            if sys.platform != "win32":
                assert {stat.S_IMODE(entry.stat().st_mode) for entry in files} == {0o600}
            assert file.db.pragma("application_id") == file_format.application_id
            assert file.db.pragma("user_version") == file_format.newest
    finally:
        os.umask(before)
    assert [*path.parent.iterdir()] == [path], "the last one folds the log into the file"
    with SqliteFile.open_read_only(path, file_format) as file:
        assert file.rows("SELECT a FROM t") == [(1,)]
        assert file.is_current()
        with pytest.raises(StorageError):
            file.run("INSERT INTO t VALUES (2)")


@pytest.mark.parametrize("has_links", [True, False])
def test_an_existing_file_is_not_replaced(
    path: Path, file_format: FileFormat, has_links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError("no links here")

    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    create(path, file_format)
    before = path.read_bytes()
    assert not create_file(path, file_format, lambda file: None)
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_cannot_be_filled_is_not_created(path: Path, file_format: FileFormat) -> None:
    with pytest.raises(CorpusCorrupt):
        create_file(path, file_format, lambda file: file.run("no statement"))
    assert [*path.parent.iterdir()] == []


@pytest.mark.parametrize("other_name", FORMATS)
def test_a_file_of_another_format_is_refused(
    path: Path, file_format: FileFormat, other_name: str
) -> None:
    if FORMATS[other_name] is file_format:
        pytest.skip("the same format")
    create(path, FORMATS[other_name])
    error = refusal(path, file_format)
    assert (type(error), error.code) == (WrongFile, "foreign_file")


def test_a_newer_version_is_refused(path: Path, file_format: FileFormat) -> None:
    create(path, file_format)
    with apsw.Connection(str(path)) as db:
        db.pragma("user_version", file_format.newest + 1)
    db.close()
    error = refusal(path, file_format)
    assert (type(error), error.code) == (WrongFile, "newer_schema")


@pytest.mark.parametrize("content", ["", "no database" * 100], ids=["empty", "text"])
def test_a_file_that_is_no_database_is_refused(
    path: Path, file_format: FileFormat, content: str
) -> None:
    path.write_text(content)
    assert type(refusal(path, file_format)) is CorpusCorrupt


def test_a_missing_file_and_a_folder_are_refused(path: Path, file_format: FileFormat) -> None:
    refusal(path, file_format)
    assert not path.exists()
    path.mkdir()
    refusal(path, file_format)
    assert [*path.iterdir()] == []


def test_a_foreign_files_log_is_not_folded_into_it(path: Path) -> None:
    other = path.with_name("other.db")
    with open_writer(other) as corpus:
        corpus.run("CREATE TABLE logged (x)")
        # What a kill at this moment would leave.
        path.write_bytes(other.read_bytes())
        log = Path(f"{path}-wal")
        log.write_bytes(path.with_name("other.db-wal").read_bytes())
    before = path.read_bytes(), log.read_bytes()
    with pytest.raises(WrongFile):
        SqliteFile.open_for_writing(path, AUDIT_FORMAT)
    assert (path.read_bytes(), log.read_bytes()) == before
