"""No byte free, or a medium that is read-only: reads answer, also from an unmerged log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from rolebundle.engine import Engine
from rolebundle.storage.opening import open_reader, open_writer
from support.commands import CHECKOUT, invoke_as_a_common_user
from support.corpora import document, fill

READS = (
    ("retrieve", "token", "--lexical-only"),
    ("get", "a.md:1-3"),
    ("why", "a.md:1-3", "token", "--lexical-only"),
    ("status",),
    (
        "compare",
        "token",
        "--roles",
        "mossline-docs-writer,mossline-code-reviewer",
        "--lexical-only",
    ),
)
SCRIPT = """
import json, subprocess, sys
from pathlib import Path
from support.commands import invoke
from support.leftover_log import leave_a_log

place, reads = Path(sys.argv[1]), json.loads(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], check=True)
(place / "docs").mkdir()
(place / "docs" / "a.md").write_text("# A\\n\\nThe token.\\n")
db = place / "c.db"
assert invoke("ingest", place / "docs", "--lexical-only", "--db", db).code == 0

def full():
    with open(place / "fill", "ab", buffering=0) as file:
        try:
            while file.write(bytes(512)):
                pass
        except OSError:
            pass

def asked():
    return [[*outcome] for outcome in (
        (done.code, done.err) for done in (invoke(*read, "--db", db) for read in reads))]

def files():
    return sorted(path.name for path in place.iterdir())

results = {}
full()
results["full"] = asked()
before = db.read_bytes()
write = invoke("ingest", place / "docs", "--lexical-only", "--db", db)
results["write"] = [[write.code, write.err]]
assert db.read_bytes() == before
(place / "fill").unlink()
leave_a_log(db)
full()
results["log"] = asked()
results["log answers"] = [invoke("retrieve", "unmerged", "--lexical-only", "--db", db).out]
(place / "fill").unlink()
subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
results["read-only"] = asked()
results["read-only answers"] = [invoke("retrieve", "unmerged", "--lexical-only", "--db", db).out]
json.dump(results, sys.stdout)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs")
@pytest.mark.slow
def test_a_disk_with_0_bytes_free_and_a_read_only_medium(tmp_path: Path) -> None:
    unshare = ("unshare", "-rm") if shutil.which("unshare") else ()
    if not unshare or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("this machine does not allow to mount")
    result = subprocess.run(
        [*unshare, sys.executable, "-c", SCRIPT, str(tmp_path), json.dumps(READS)],
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    results = json.loads(result.stdout)
    for name in ("full", "log", "read-only"):
        assert [outcome[0] for outcome in results[name]] == [0] * len(READS), results[name]
    assert results["write"][0][0] == 6
    assert "[storage_full]" in results["write"][0][1]
    for name in ("log answers", "read-only answers"):
        assert "unmerged" in results[name][0]


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
    from rolebundle.storage.files import sqlite_file

    connect = sqlite_file._connect

    def without_memory(name: str, *arguments: object, **options: object) -> apsw.Connection:
        if not name.startswith("file:"):
            raise apsw.CantOpenError("no shared memory")
        return connect(name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite_file, "_connect", without_memory)
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
    import errno

    from rolebundle.errors import FULL_ERRNOS
    from rolebundle.storage.files.sqlite_errors import own_error

    assert {errno.ENOSPC, errno.EFBIG, errno.EDQUOT} == set(FULL_ERRNOS)
    for reason in FULL_ERRNOS:
        error = own_error(apsw.IOError("disk I/O error"), Path("c.db"), reason)
        assert (error.code, error.exit_code) == ("storage_full", 6)
