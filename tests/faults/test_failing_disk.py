"""Rows 5 to 7: a full disk, a quota, a failing sync."""

import errno
import random
import resource
import shutil
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.policy import AuditSettings
from rolebundle.engine import Engine
from rolebundle.errors import FULL_ERRNOS, StorageError
from rolebundle.policy.audit import AuditLog
from rolebundle.storage import sqlite
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.sqlite import mapped_error
from rolebundle.storage.writing import open_writer
from support.commands import (
    CHECKOUT,
    PROGRAM,
    forked_program,
    invoke,
    invoke_as_a_common_user,
    invoke_in_a_child,
)
from support.corpora import ask, document, fill, scratch_folder
from support.fake_embedder import HashingProvider
from support.faulty_file_system import shimmed_disk
from support.operations import assert_acknowledged_rows, audit_entry, reported_row
from support.sound import assert_sound, contents


def put(corpus: Corpus, number: int) -> None:
    texts = [f"token {number}, part {part}: {'word ' * 150}" for part in range(2)]
    fill(corpus, [document(f"d{number}", texts)], HashingProvider())


# -- a write or a sync that fails --------------------------------------------------------------


def every(sample: int, full: int) -> pytest.MarkDecorator:
    """Give a test the parameter ``step``: ``sample`` by default, ``full`` if slow tests run."""
    return pytest.mark.parametrize("step", [sample, pytest.param(full, marks=pytest.mark.slow)])


def fail_at_every_place(kind: str, error: type[apsw.Error], code: str, step: int) -> int:
    """Fail every ``step``-th operation of a kind, one in each run, until a run has fewer."""
    failures = 0
    for nth in count(1, step):
        with scratch_folder() as folder:
            path = folder / "c.db"
            with shimmed_disk() as disk:
                corpus = open_writer(path)
                put(corpus, 0)
                put(corpus, 1)
                before = corpus.rows("SELECT chunk_id, content FROM chunk ORDER BY chunk_id")
                disk.fail_at(kind, nth, error)
                try:
                    put(corpus, 2)
                    put(corpus, 3)
                    failed = False
                except StorageError as raised:
                    failed = True
                    assert (raised.exit_code, raised.code) == (6, code), raised
                    assert not corpus.db.in_transaction
                if failed:
                    failures += 1
                    # Reads go on while the disk still fails, and find whole documents.
                    after = corpus.rows("SELECT chunk_id, content FROM chunk ORDER BY chunk_id")
                    assert after[: len(before)] == before
                    assert len(after) in (len(before), len(before) + 2)
                    assert ask(corpus, provider=HashingProvider(), task="token").selected
                    disk.fail = None
                    put(corpus, 4)
                disk.fail = None
                corpus.close()
            assert_sound(path)
            if not failed:
                break
    return failures


@every(20, 1)
def test_the_nth_write_finds_the_disk_full(step: int) -> None:
    assert fail_at_every_place("write", apsw.FullError, "storage_full", step) >= 3


@every(2, 1)
def test_the_nth_sync_fails(step: int) -> None:
    assert fail_at_every_place("sync", apsw.IOError, "io_error", step) >= 1


@pytest.mark.parametrize(
    ("kind", "error"),
    [("write", apsw.FullError), ("write", apsw.IOError), ("sync", apsw.IOError)],
    ids=["full", "write", "sync"],
)
def test_an_audit_on_a_disk_that_fails(kind: str, error: type[apsw.Error]) -> None:
    """Never acknowledged, reported in both modes, and the log goes on when there is room again."""
    failures = 0
    for nth in count(1):
        with scratch_folder() as folder:
            corpus = folder / "c.db"
            with AuditLog(corpus) as log:
                log.set(AuditSettings(mode="required", query="text"))
                acknowledged = [reported_row(log, 0)]
            with shimmed_disk() as disk:
                log = AuditLog(corpus)
                disk.fail_at(kind, nth, error)
                failed = False
                try:
                    acknowledged += (reported_row(log, number) for number in range(3))
                except StorageError as raised:
                    failed = True
                    assert (raised.code, raised.exit_code) == ("audit_unwritable", 6)
                disk.fail = None
                log.close()  # The faulty file system's files are held by one connection alone.
                log.set(AuditSettings(mode="on"))
                disk.fail_at(kind, 1, error)
                row, warning = log.record(audit_entry(9))
                assert (row, bool(warning)) == (None, True)
                disk.fail = None
                acknowledged.append(reported_row(log, 10))
                log.close()
            assert_acknowledged_rows(corpus, acknowledged)
            failures += failed
            if not failed:
                break
    assert failures >= 3


# -- quotas ------------------------------------------------------------------------------------


def notes(folder: Path, number: int) -> Path:
    folder.mkdir(exist_ok=True)
    for n in range(number):
        chance = random.Random(n)
        words = " ".join(f"w{chance.randrange(10**6)}" for _ in range(200))
        (folder / f"{number}-{n}.md").write_text(f"# Note {n}\n\n{words}\n", encoding="utf-8")
    return folder


def limit_pages() -> None:
    def limit(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", 60)

    apsw.connection_hooks.append(limit)


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, 64 * 1024))


@pytest.mark.parametrize("limit", [limit_pages, limit_file_size])
def test_a_quota(tmp_path: Path, limit: Callable[[], None]) -> None:
    db, many = tmp_path / "c.db", notes(tmp_path / "many", 60)
    assert invoke("ingest", notes(tmp_path / "few", 3), "--lexical-only", "--db", db).code == 0
    before = contents(db)
    full = invoke_in_a_child("ingest", many, "--lexical-only", "--db", db, before=limit)
    assert (full.code, full.out) == (6, "")
    assert "[storage_full]" in full.err and "run the same command again" in full.err
    assert "Traceback" not in full.err
    assert contents(db) == before
    note = invoke_in_a_child("retrieve", "note", "--lexical-only", "--db", db, before=limit)
    assert note.code == 0
    assert_sound(db)
    assert invoke("ingest", many, "--lexical-only", "--db", db).code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["status", "ls", "--help"])
def test_an_output_that_cannot_be_written(sample_db: Path, command: str) -> None:
    db = [] if command == "--help" else ["--db", str(sample_db)]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*(PROGRAM if command == "--help" else forked_program()), command, *db],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            check=False,
        )
    assert result.returncode == 6
    assert "[storage_full]" in result.stderr
    assert "Traceback" not in result.stderr


# -- No byte free, or a medium that is read-only: reads answer, also from an unmerged log ----------


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
        error = mapped_error(apsw.IOError("disk I/O error"), Path("c.db"), reason)
        assert (error.code, error.exit_code) == ("storage_full", 6)
