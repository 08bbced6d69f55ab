"""A write-ahead log that a killed writer leaves, without shared memory."""

from __future__ import annotations

from pathlib import Path

import apsw

from rolebundle.storage.opening import open_writer
from support.corpora import document, fill


def leave_a_log(db: Path) -> None:
    """Add a document with the word `unmerged` that only the log has, and remove `-shm`."""
    with open_writer(db) as corpus:
        corpus.db.pragma("wal_checkpoint(TRUNCATE)")
        fill(corpus, [document("late", ["an unmerged passage"])])
        log = Path(f"{db}-wal")
        contents = [(path, path.read_bytes()) for path in (db, log)]
        corpus.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    for path, content in contents:
        path.write_bytes(content)
    Path(f"{db}-shm").unlink(missing_ok=True)
    assert log.stat().st_size
