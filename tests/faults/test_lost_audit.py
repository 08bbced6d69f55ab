"""A required audit that is missing, shortened or replaced gives no answers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rolebundle.contracts.policy import AuditEntry
from rolebundle.policy.audit import AuditLog
from rolebundle.storage.file import audit_path
from support.commands import Outcome, invoke


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that knows four rows of its audit: settings, two answers, an ingest."""
    path = tmp_path_factory.mktemp("audited") / "c.db"
    assert ingested(path, "a.md").code == 0
    assert invoke("policy", "audit", "set", "required", "--db", path).code == 0
    assert retrieve(path).code == retrieve(path).code == 0
    shutil.copyfile(audit_path(path), path.parent / "short.audit")
    assert ingested(path, "b.md").code == 0
    assert retrieve(path).code == 0  # readers never write: the corpus does not know this row
    return path


@pytest.fixture
def db(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "c.db"


def ingested(db: Path, name: str) -> Outcome:
    (db.parent / "docs").mkdir(exist_ok=True)
    (db.parent / "docs" / name).write_text(f"# {name}\n\nThe token of {name}.\n", encoding="utf-8")
    return invoke("ingest", db.parent / "docs", "--lexical-only", "--db", db)


def retrieve(db: Path) -> Outcome:
    return invoke("retrieve", "token", "--lexical-only", "--db", db)


def remove(db: Path) -> None:
    audit_path(db).unlink()


def shorten(db: Path) -> None:
    shutil.copyfile(db.parent / "short.audit", audit_path(db))


def replace(db: Path) -> None:
    other_db = db.parent / "other" / "c.db"
    other_db.parent.mkdir()
    shutil.copyfile(db, other_db)
    invoke("policy", "audit", "set", "required", "--db", other_db)
    with AuditLog(other_db) as log:
        for _ in range(9):
            log.record(AuditEntry(kind="retrieve"))
    shutil.copyfile(audit_path(other_db), audit_path(db))


@pytest.mark.parametrize("lose", [remove, shorten, replace])
def test_an_audit_that_lost_rows_gives_no_answer(db: Path, lose: Callable[[Path], None]) -> None:
    lose(db)
    refused = retrieve(db)
    assert (refused.code, refused.out) == (6, "")
    assert "[audit_unwritable]" in refused.err
    assert "rolebundle policy audit set required" in refused.err
    # A write of the corpus does not make the corpus forget.
    invoke("corpus", "embed", "--db", db)
    assert retrieve(db).code == 6
    assert invoke("policy", "audit", "verify", "--db", db).code in (2, 7)


@pytest.mark.parametrize("lose", [remove, shorten])
def test_the_owner_can_accept_the_loss_and_that_is_recorded(
    db: Path, lose: Callable[[Path], None]
) -> None:
    lose(db)
    assert invoke("policy", "audit", "set", "required", "--db", db).code == 0
    assert retrieve(db).code == 0
    rows = [row for row in AuditLog(db).rows() if "lost_rows" in row.details]
    assert [row.details["lost_rows"] for row in rows] == [4]
    assert invoke("policy", "audit", "verify", "--db", db).code == 0
