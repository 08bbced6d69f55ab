"""No byte free, or a medium that is read-only: reads answer, also from an unmerged log."""

import errno
import shutil
from pathlib import Path

import apsw
import pytest

from rolebundle.engine import Engine
from rolebundle.errors import FULL_ERRNOS
from rolebundle.storage import sqlite
from rolebundle.storage.opening import open_reader
from rolebundle.storage.sqlite import own_error
from rolebundle.storage.writing import open_writer
from support.commands import invoke_as_a_common_user
from support.corpora import document, fill


@pytest.fixture
def unmerged(tmp_path: Path) -> Path:
    """A corpus whose only document is in a log without shared memory, as after a crash."""
    with open_writer(tmp_path / "whole.db") as corpus:
        fill(corpus, [document("old", ["an old token"])])
        corpus.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        corpus.db.pragma("wal_checkpoint(TRUNCATE)")
        fill(corpus, [document("new", ["a new token"])])
        (tmp_path / "store").mkdir()
        for suffix in ("", "-wal"):
            shutil.copyfile(
                f"{tmp_path / 'whole.db'}{suffix}", tmp_path / "store" / f"c.db{suffix}"
            )
    return tmp_path / "store" / "c.db"


def test_a_log_in_a_read_only_folder_is_honoured(unmerged: Path) -> None:
    before = {path.name: path.read_bytes() for path in unmerged.parent.iterdir()}
    unmerged.parent.chmod(0o555)
    try:
        outcome = invoke_as_a_common_user("retrieve", "token", "--lexical-only", "--db", unmerged)
    finally:
        unmerged.parent.chmod(0o755)
    assert outcome.code == 0, outcome.err
    assert "a new token" in outcome.out and "an old token" in outcome.out
    assert {path.name: path.read_bytes() for path in unmerged.parent.iterdir()} == before


def test_a_reader_without_shared_memory_notices_what_is_written_later(
    unmerged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite._connect

    def without_memory(name: str, *arguments: object, **options: object) -> apsw.Connection:
        if not name.startswith("file:"):
            raise apsw.CantOpenError("no shared memory")
        return connect(name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite, "_connect", without_memory)
    with Engine(unmerged) as engine:
        assert engine.status().corpus.documents == 2
        reader = engine.workspace.corpus
        engine.refresh()
        assert engine.workspace.corpus is reader
        monkeypatch.undo()
        with open_writer(unmerged) as corpus:
            corpus.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            fill(corpus, [document("newest", ["the newest token"])])
            engine.refresh()
            assert engine.status().corpus.documents == 3
    with open_reader(unmerged) as corpus:
        assert corpus.value("SELECT count(*) FROM document") == 3


def test_a_file_too_large_and_a_used_up_quota_are_full() -> None:
    assert {errno.ENOSPC, errno.EFBIG, errno.EDQUOT} == set(FULL_ERRNOS)
    for reason in FULL_ERRNOS:
        error = own_error(apsw.IOError("disk I/O error"), Path("c.db"), reason)
        assert (error.code, error.exit_code) == ("storage_full", 6)
