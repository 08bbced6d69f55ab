"""Replicas to publish, an empty file to fetch one into, and a corpus to make a replica of."""

from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.memory import NewDecision
from rolebundle.ingest.options import IngestOptions
from rolebundle.memory.decisions import record_decision
from support.reading_replicas import HIDDEN, MACHINE


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
