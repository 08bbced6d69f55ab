"""Commands of the owner with a required audit that cannot be written: no change lacks its record."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.policy import AuditEntry
from rolebundle.memory.facts import all_facts
from rolebundle.policy.audit import AuditLog
from rolebundle.storage.file import audit_path
from support.commands import Outcome, invoke
from support.operations import POLICY, Place, Rows, stored_rows
from support.source_tree import write_files

BY = ("--by", "Ana")
COMMANDS: dict[str, tuple[str, ...]] = {
    "decide": ("decisions", "add", "Do not post automatically", *BY),
    "decisions end": ("decisions", "end", "1", *BY, "--reason", "over"),
    "gate approve": ("gate", "approve", "{}/work.gate.toml"),
    "gate start": ("gate", "start", "{}/work.gate.toml"),
    "mark set": ("mark", "tree/n1.md", "disputed", *BY, "--reason", "old"),
    "mark remove": ("mark", "remove", "tree/n2.md"),
    "purge": ("corpus", "purge", "tree/n1.md", "--yes"),
    "quarantine drop": ("corpus", "quarantine", "drop", "tree/hidden.md"),
    "quarantine release": ("corpus", "quarantine", "release", "tree/hidden.md"),
    "remember add": ("remember", "Another fact.", "--source", "https://example.com/a", *BY),
    "remember forget": ("remember", "forget", "{fact}", *BY),
    "remember promote": ("remember", "promote", "{fact}", *BY),
    "roots move": ("corpus", "roots", "move", "{}/tree", "{}/moved"),
    "roots remove": ("corpus", "roots", "remove", "{}/tree", "--yes"),
    "scopes set": ("policy", "set", "{}/policy.toml"),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that requires records. Beside it is what the commands name, which they only read."""
    place = Place(tmp_path_factory.mktemp("owner") / "corpus", files=3)
    folder = place.folder.parent
    place.folder.mkdir()
    place.write_tree(1)
    (folder / "moved").mkdir()
    contract = '[[criteria]]\nid = "a"\ncheck = "exists"\nfile = "tree/n1.md"\n'
    write_files(folder, {"work.gate.toml": contract, "policy.toml": POLICY})
    for arguments in (
        ("ingest", "{}/tree", "--lexical-only"),
        ("decisions", "add", "Do not fly drones", *BY),
        ("mark", "tree/n2.md", "disputed", *BY, "--reason", "old"),
        ("remember", "A fact.", "--source", "https://example.com/a", *BY),
        ("policy", "audit", "set", "required"),
    ):
        assert run(arguments, place.db, place.db).code == 0
    return place.db


@pytest.fixture
def db(base: Path, tmp_path: Path) -> Path:
    """A copy of the corpus and its audit."""
    return shutil.copytree(base.parent, tmp_path / "corpus") / base.name


def run(arguments: tuple[str, ...], base: Path, db: Path) -> Outcome:
    with Admin(db) as admin:
        fact = all_facts(admin.workspace)[0].document_id if "{fact}" in arguments else ""
    folder = str(base.parent.parent)
    named = (text.replace("{}", folder).replace("{fact}", fact) for text in arguments)
    return invoke(*named, "--db", db)


def changeable(db: Path) -> Rows:
    """What commands change: all but what the corpus remembers of its audit."""
    return {
        name: rows for name, rows in stored_rows(db).items() if name not in ("audit_state", "seal")
    }


# By default, the audit is missing for each command and obstructed for every fifth.
@pytest.mark.parametrize(("name", "is_obstructed"), [
    *((name, False) for name in COMMANDS),
    *(pytest.param(name, True, marks=[pytest.mark.slow] if number % 5 else [])
      for number, name in enumerate(COMMANDS)),
])  # fmt: skip
def test_what_cannot_be_recorded_is_not_done(
    name: str, is_obstructed: bool, base: Path, db: Path
) -> None:
    """The audit is missing, or something else has its name."""
    before = stored_rows(db)
    audit = audit_path(db)
    kept = audit.rename(db.parent / "kept")
    if is_obstructed:
        audit.mkdir()
    files = set(db.parent.iterdir())
    refused = run(COMMANDS[name], base, db)
    assert (refused.code, refused.out) == (6, "")
    assert "[audit_unwritable]" in refused.err
    assert stored_rows(db) == before
    assert set(db.parent.iterdir()) == files
    # With its audit it does something.
    if is_obstructed:
        audit.rmdir()
    kept.rename(audit)
    content = changeable(db)
    with AuditLog(db) as log:
        rows = len(list(log.rows()))
        assert run(COMMANDS[name], base, db).code == 0
        assert len(list(log.rows())) > rows
    assert changeable(db) != content


def test_an_ingest_stays_and_gives_no_answer(base: Path, db: Path, tmp_path: Path) -> None:
    """It commits in batches. Nothing of it is shown until the owner accepts the loss."""
    audit_path(db).unlink()
    more = write_files(tmp_path / "more", {"new.md": "# Zebra\n\nA zebra.\n"})
    refused = run(("ingest", str(more), "--lexical-only"), base, db)
    assert refused.code == 6
    assert "[audit_unwritable]" in refused.err
    zebra = ("retrieve", "zebra", "--lexical-only", "--format", "json")
    assert run(zebra, base, db).code == 6
    assert run(("policy", "audit", "set", "required"), base, db).code == 0
    assert "A zebra." in run(zebra, base, db).out
    with AuditLog(db) as log:
        assert [row.kind for row in log.rows()] == ["settings", "retrieve"]


# -- An audit that is missing, shortened or replaced gives no answers ------------------------------


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
def audited(original: Path, tmp_path: Path) -> Path:
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
def test_an_audit_that_lost_rows_gives_no_answer(
    audited: Path, lose: Callable[[Path], None]
) -> None:
    lose(audited)
    refused = retrieve(audited)
    assert (refused.code, refused.out) == (6, "")
    assert "[audit_unwritable]" in refused.err
    assert "rolebundle policy audit set required" in refused.err
    # A write of the corpus does not make the corpus forget.
    invoke("corpus", "embed", "--db", audited)
    assert retrieve(audited).code == 6
    assert invoke("policy", "audit", "verify", "--db", audited).code in (2, 7)


@pytest.mark.parametrize("lose", [remove, shorten])
def test_the_owner_can_accept_the_loss_and_that_is_recorded(
    audited: Path, lose: Callable[[Path], None]
) -> None:
    lose(audited)
    assert invoke("policy", "audit", "set", "required", "--db", audited).code == 0
    assert retrieve(audited).code == 0
    rows = [row for row in AuditLog(audited).rows() if "lost_rows" in row.details]
    assert [row.details["lost_rows"] for row in rows] == [4]
    assert invoke("policy", "audit", "verify", "--db", audited).code == 0
