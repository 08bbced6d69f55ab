"""Row 18: a file or folder that may only be read. Retrieval works; an ingest says exit 6."""

import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import SAMPLE, Outcome, invoke, invoke_as_a_common_user
from support.source_tree import write_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="permissions as Linux has them")


def as_user(*arguments: str | Path) -> Outcome:
    outcome = invoke_as_a_common_user(*arguments)
    assert "Traceback" not in outcome.err
    assert "[internal]" not in outcome.err
    return outcome


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    notes = {"a.md": "# A\n\nThe token.\n", "locked/b.md": "# B\n\nThe key.\n"}
    write_files(tmp_path / "notes", notes)
    (tmp_path / "store").mkdir()
    db = tmp_path / "store" / "c.db"
    assert invoke("ingest", tmp_path / "notes", "--lexical-only", "--db", db).code == 0
    yield tmp_path
    for path in (tmp_path / "store", tmp_path / "notes", tmp_path / "notes" / "locked"):
        path.chmod(stat.S_IRWXU)


def test_a_read_only_file(folder: Path) -> None:
    db = folder / "store" / "c.db"
    db.chmod(0o444)
    before = db.read_bytes()
    for _ in range(2):
        assert as_user("retrieve", "token", "--lexical-only", "--db", db).code == 0
    assert as_user("status", "--db", db).code == 0
    # Also where nothing would be written: the answer does not depend on what has changed.
    for path in (folder / "notes", SAMPLE / "wiki"):
        refused = as_user("ingest", path, "--lexical-only", "--db", db)
        assert refused.code == 6
        assert "[read_only]" in refused.err
    assert db.read_bytes() == before


@pytest.mark.parametrize(("mode", "has_empty_log"), [(0o644, False), (0o444, False), (0o444, True)])
def test_a_read_only_folder(folder: Path, mode: int, has_empty_log: bool) -> None:
    db = folder / "store" / "c.db"
    if has_empty_log:
        Path(f"{db}-wal").touch(0o444)
    names = sorted(path.name for path in db.parent.iterdir())
    db.chmod(mode)
    (folder / "store").chmod(0o555)
    before = db.read_bytes()
    for _ in range(2):
        assert "a.md:1-3" in as_user("retrieve", "token", "--lexical-only", "--db", db).out
    for target in (db, db.with_name("new.db"), db.parent / "deeper" / "new.db"):
        assert as_user("ingest", folder / "notes", "--lexical-only", "--db", target).code == 6
    assert db.read_bytes() == before
    assert sorted(path.name for path in db.parent.iterdir()) == names


def test_documents_that_may_not_be_read_are_skipped_and_kept(folder: Path) -> None:
    """What could not be looked at has not changed, as far as anyone knows."""
    db = folder / "store" / "c.db"
    (folder / "notes" / "locked").chmod(0o000)
    (folder / "notes" / "a.md").chmod(0o000)
    outcome = as_user("ingest", folder / "notes", "--lexical-only", "--json", "--db", db)
    assert outcome.code == 0
    report = outcome.json()
    assert {(skip["path"], skip["code"]) for skip in report["skipped"]} == {
        ("locked", "unreadable_folder"),
        ("a.md", "unreadable"),
    }
    assert (report["removed"], report["documents"]) == (0, 2)
