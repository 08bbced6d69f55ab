"""Replicas to publish, an empty file to fetch one into, and a corpus to make a replica of."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import record_decision
from rolebundle.contracts.decisions import NewDecision
from rolebundle.ingest.options import IngestOptions
from support.reading_replicas import HIDDEN, MACHINE
from support.transports import Replica, new_replica


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    """600 kB, so that a small change is a small part of it."""
    return _new(tmp_path, rows=150)


@pytest.fixture
def large_replica(tmp_path: Path) -> Replica:
    """2 MB: SQLite writes a change of all of it to the file before it commits."""
    return _new(tmp_path, rows=500)


@pytest.fixture
def small_replica(tmp_path: Path) -> Replica:
    """A replica of a few blocks."""
    return _new(tmp_path, rows=40)


def _new(tmp_path: Path, rows: int) -> Replica:
    (tmp_path / "staging").mkdir()
    return new_replica(tmp_path / "staging" / "replica.db", rows)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "reader").mkdir()
    path = tmp_path / "reader" / "copy.db"
    path.touch(0o600)
    return path


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A corpus of two documents, one more in quarantine, and a decision."""
    folder = tmp_path_factory.mktemp(MACHINE)
    guide = folder / "guide"
    guide.mkdir()
    (guide / "token.md").write_text("# Tokens\n\nA token rotates daily.\n", encoding="utf-8")
    (guide / "key.md").write_text("# Keys\n\nA key is kept in a safe.\n", encoding="utf-8")
    (guide / "hidden.md").write_text(f"# Hidden\n\nA token {HIDDEN} too.\n", encoding="utf-8")
    with Admin(folder / "c.db") as admin:
        admin.ingest([guide], IngestOptions(workers=1, lexical_only=True))
        record_decision(admin.workspace, NewDecision(text="Do not post tokens", decided_by="Ana"))
    return (folder / "c.db").read_bytes()


@pytest.fixture
def db(image: bytes, tmp_path: Path) -> Path:
    """An ordinary corpus."""
    path = tmp_path / "place" / "c.db"
    path.parent.mkdir()
    path.write_bytes(image)
    return path
