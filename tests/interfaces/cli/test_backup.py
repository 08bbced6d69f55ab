"""`backup` and `restore`: what is verified, kept, refused and reported."""

import gzip
import json
import stat
from pathlib import Path

import apsw
import pytest

from rolebundle.admin.backups import manifest_path, sha256_of
from rolebundle.storage.file import audit_path
from rolebundle.storage.writing import open_writer
from support.commands import CHECKOUT, invoke
from support.corpora import build, document, fill
from support.sound import assert_sound, contents

OLD = CHECKOUT / "tests" / "data" / "schema-6.db.gz"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with an audit."""
    monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "50")
    db = build(tmp_path, [document("d0", ["the token"]), document("d1", ["a key"])], name="c.db")
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    return db


@pytest.fixture
def saved(db: Path, tmp_path: Path) -> Path:
    saved = tmp_path / "saved.db"
    assert invoke("corpus", "backup", saved, "--db", db).code == 0
    return saved


def add(db: Path, name: str) -> None:
    with open_writer(db) as corpus:
        fill(corpus, [document(name, ["something new"])])


def names(folder: Path) -> set[str]:
    """The files of a folder, without those that SQLite puts beside them."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))}


class TestBackup:
    def test_the_backup_is_a_corpus_with_an_audit_and_a_manifest(
        self, db: Path, saved: Path
    ) -> None:
        assert contents(saved) == contents(db)
        assert invoke("policy", "audit", "verify", "--db", saved).code == 0
        manifest = json.loads(manifest_path(saved).read_text())
        assert (manifest["documents"], manifest["chunks"]) == (2, 2)
        assert manifest["corpus"]["sha256"] == sha256_of(saved)
        assert manifest["audit"]["name"] == "saved.db.audit"
        for file in (saved, audit_path(saved), manifest_path(saved)):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    @pytest.mark.parametrize("suffix", ["", ".audit", ".manifest.json"])
    def test_nothing_is_replaced(self, db: Path, tmp_path: Path, suffix: str) -> None:
        (tmp_path / f"b.db{suffix}").write_text("mine")
        outcome = invoke("corpus", "backup", tmp_path / "b.db", "--db", db)
        assert outcome.code == 2 and "[backup_exists]" in outcome.err
        assert {path.name for path in tmp_path.glob("b.db*")} == {f"b.db{suffix}"}
        assert (tmp_path / f"b.db{suffix}").read_text() == "mine"

    def test_a_damaged_corpus_is_not_backed_up(self, db: Path, tmp_path: Path) -> None:
        with open_writer(db) as corpus:
            corpus.run("UPDATE chunk SET content = 'forged' WHERE id = 1")
        before = names(tmp_path)
        outcome = invoke("corpus", "backup", tmp_path / "b.db", "--db", db)
        assert outcome.code == 7
        assert "rolebundle corpus doctor" in outcome.err
        assert names(tmp_path) == before

    def test_a_tampered_audit_is_reported_and_copied(self, db: Path, tmp_path: Path) -> None:
        with apsw.Connection(str(audit_path(db))) as log:
            log.execute("UPDATE entry SET agent = 'mallory'")
        outcome = invoke("corpus", "backup", tmp_path / "b.db", "--db", db)
        assert outcome.code == 0
        assert "warning: the audit is in the backup as it is" in outcome.err


class TestRestore:
    def test_only_with_confirm(self, db: Path, saved: Path, tmp_path: Path) -> None:
        add(db, "d2")
        before, files = contents(db), names(tmp_path)
        outcome = invoke("corpus", "restore", saved, "--db", db)
        assert outcome.code == 2
        assert "done: no\n" in outcome.out
        assert "[not_confirmed]" in outcome.err
        assert contents(db) == before
        assert names(tmp_path) == files

    def test_the_former_corpus_is_kept(self, db: Path, saved: Path) -> None:
        expected = contents(db)
        add(db, "d2")
        changed = contents(db)
        report = invoke("corpus", "restore", saved, "--yes", "--json", "--db", db).json()
        assert contents(db) == expected
        assert_sound(db)
        assert contents(Path(report["replaced"])) == changed
        assert report["audit"] == "kept"
        # And back again: what was set aside can be restored, too.
        assert invoke("corpus", "restore", report["replaced"], "--yes", "--db", db).code == 0
        assert contents(db) == changed
        rows = invoke("policy", "audit", "list", "--json", "--db", db).json()["rows"]
        assert [row["kind"] for row in rows].count("restore") == 2

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "cut", "stale log"])
    def test_over_a_corpus_that_is_damaged_or_missing(
        self, db: Path, saved: Path, damage: str
    ) -> None:
        image = db.read_bytes()
        for suffix in ("-wal", "-shm"):
            Path(f"{db}{suffix}").unlink(missing_ok=True)
        if damage == "missing":
            db.unlink()
        elif damage == "stale log":
            db.write_bytes(b"garbage" * 1000)
            Path(f"{db}-wal").write_bytes(image[:5000])
            Path(f"{db}-journal").write_bytes(image[:5000])
        else:
            db.write_bytes(
                {"empty": b"", "garbage": b"garbage" * 1000, "cut": image[:9000]}[damage]
            )
        report = invoke("corpus", "restore", saved, "--yes", "--json", "--db", db).json()
        assert contents(db) == contents(saved)
        assert_sound(db)
        assert (report["replaced"] is None) == (damage == "missing")
        if damage == "stale log":
            assert Path(f"{report['replaced']}-wal").read_bytes() == image[:5000]
            assert not Path(f"{db}-journal").exists()

    @pytest.mark.parametrize("suffix", ["", ".audit", ".manifest.json"])
    def test_a_damaged_backup_changes_nothing(self, db: Path, saved: Path, suffix: str) -> None:
        add(db, "d2")
        before = contents(db)
        audit_path(db).unlink()  # so that the one of the backup is needed
        file = Path(f"{saved}{suffix}")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0x80
        file.write_bytes(data)
        outcome = invoke("corpus", "restore", saved, "--yes", "--db", db)
        assert outcome.code == 7
        assert "[backup_damaged]" in outcome.err
        assert contents(db) == before

    def test_an_audit_that_lost_rows_is_replaced_and_kept(self, db: Path, tmp_path: Path) -> None:
        older = audit_path(db).read_bytes()
        add(db, "d2")
        assert invoke("retrieve", "token", "--lexical-only", "--db", db).code == 0
        saved = tmp_path / "saved.db"
        assert invoke("corpus", "backup", saved, "--db", db).code == 0
        for suffix in ("-wal", "-shm"):
            Path(f"{audit_path(db)}{suffix}").unlink(missing_ok=True)
        audit_path(db).write_bytes(older)
        report = invoke("corpus", "restore", saved, "--yes", "--json", "--db", db).json()
        assert report["audit"] == "restored"
        assert invoke("policy", "audit", "verify", "--db", db).code == 0
        assert len(list(tmp_path.glob("c.db.audit.replaced-*"))) == 1

    def test_refused_while_another_process_writes(self, db: Path, saved: Path) -> None:
        before = db.read_bytes()
        with open_writer(db):
            outcome = invoke("corpus", "restore", saved, "--yes", "--db", db)
        assert outcome.code == 5
        assert db.read_bytes() == before

        # A writer that does not know the lock of this package.
        connection = apsw.Connection(str(db))
        connection.execute("BEGIN IMMEDIATE")
        assert invoke("corpus", "restore", saved, "--yes", "--db", db).code == 5
        connection.close()
        assert invoke("corpus", "restore", saved, "--yes", "--db", db).code == 0

    def test_other_files_are_refused(self, db: Path, saved: Path, tmp_path: Path) -> None:
        foreign = tmp_path / "other.db"
        with apsw.Connection(str(foreign)) as connection:
            connection.execute("CREATE TABLE t (a)")
        data = foreign.read_bytes()
        assert invoke("corpus", "restore", saved, "--yes", "--db", foreign).code == 8
        assert foreign.read_bytes() == data
        assert invoke("corpus", "restore", foreign, "--yes", "--db", db).code == 8
        assert invoke("corpus", "restore", db, "--yes", "--db", db).code == 2
        assert invoke("corpus", "restore", tmp_path / "none", "--yes", "--db", db).code == 2

    def test_purges_that_come_back_are_named(self, db: Path, saved: Path) -> None:
        assert invoke("corpus", "purge", "d0", "--yes", "--db", db).code == 0
        outcome = invoke("corpus", "restore", saved, "--yes", "--db", db)
        assert outcome.code == 0
        assert "warning: 1 purge came after this backup" in outcome.err

    def test_a_purge_names_the_file_that_was_set_aside(self, db: Path, saved: Path) -> None:
        assert invoke("corpus", "restore", saved, "--yes", "--db", db).code == 0
        outcome = invoke("corpus", "purge", "d0", "--yes", "--backups", "--json", "--db", db)
        assert outcome.json()["backups_deleted"] == 1

    def test_a_backup_of_an_older_schema(self, db: Path, tmp_path: Path) -> None:
        """As a migration leaves it. The restored corpus has the newest schema."""
        backup = tmp_path / "old.bak"
        backup.write_bytes(gzip.decompress(OLD.read_bytes()))
        assert invoke("corpus", "restore", backup, "--yes", "--db", db).code == 0
        assert invoke("status", "--db", db).code == 0
        assert_sound(db)
        assert not [*tmp_path.glob("*.schema-*")]
