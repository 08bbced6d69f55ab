"""Audits of replicas, and what is collected of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from rolebundle.contracts.audit import AuditEntry, AuditSettings, CollectedAudit
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_collection import CollectedLog, collect
from rolebundle.storage.audits import audit
from rolebundle.storage.audits.audit import open_audit_writer, read_head, seal
from rolebundle.storage.location import audit_path, collected_audits_path

NOW = "2026-11-23T06:00:00Z"


def write(corpus: Path, rows: int, agent: str = "bot", **fields: Any) -> Path:
    """Add rows to the audit of a replica, the first of which makes it, and return its file."""
    path = audit_path(corpus)
    if not path.exists():
        with AuditLog(corpus) as log:
            log.set(AuditSettings(mode="on", query="text"))
        rows -= 1
    with open_audit_writer(path) as file, file.writing():
        for number in range(rows):
            entry = AuditEntry(
                kind="retrieve",
                agent=agent,
                query=f"task {number}",
                allowed=number,
                blocked={"stale": 1},
                details={"n": number},
            )
            entry = entry.model_copy(update=fields)
            audit._insert(file, seal(entry, read_head(file), f"2026-11-22T06:00:00.{number:03}Z"))
    return path


def execute(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def exported(corpus: Path) -> list[str]:
    with AuditLog(corpus) as log:
        return list(log.export())


def collected(home: Path, log_id: str) -> list[str]:
    with CollectedLog(home, log_id) as log:
        return list(log.export())


def stored_rows(home: Path) -> list[Any]:
    db = sqlite3.connect(collected_audits_path(home))
    rows = db.execute("SELECT * FROM collected ORDER BY 1, 2").fetchall()
    db.close()
    return rows


def collect_one(home: Path, source: Path) -> CollectedAudit:
    (report,) = collect(home, [source], lambda: NOW)
    assert (report.problem is None) == (report.state == "ok"), report
    return report
