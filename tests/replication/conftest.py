"""Replicas to publish, and an empty file to fetch it into."""

from __future__ import annotations

from pathlib import Path

import pytest

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
