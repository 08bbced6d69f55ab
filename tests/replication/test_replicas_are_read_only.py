"""Nobody changes a replica where it is read: no method, command, agent, repair or restore."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.admin import Admin
from rolebundle.admin.admin import _Part
from rolebundle.admin.purges import PurgeSelection
from rolebundle.contracts.decisions import NewDecision
from rolebundle.contracts.facts import RememberRequest
from rolebundle.contracts.marks import MarkRequest
from rolebundle.doctor import examine
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.watch import WatchOptions
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.transports.registry import open_transport
from rolebundle.storage.location import audit_path
from rolebundle.storage.opening import open_writer
from rolebundle.storage.records.stored_audit import StoredAudit, save_stored_audit
from support.commands import invoke
from support.reading_replicas import NOTE, POLICY, ask, contents, with_policy
from support.replica_files import make_replica

# -- methods, commands and agents ------------------------------------------------------------------


def _watch(admin: Admin, _: Path) -> object:
    return admin.watcher(WatchOptions(IngestOptions()), print, Event())


def _publish(admin: Admin, more: Path) -> object:
    options = PublishOptions("me", timedelta(days=1), timedelta(days=1))
    key = Ed25519PrivateKey.generate()
    return admin.replicas.publish(
        open_transport(str(more / "share")), key, options, level="internal"
    )


WRITES: dict[str, Callable[[Admin, Path], object]] = {
    "ingest": lambda a, more: a.ingest([more]),
    "update": lambda a, _: a.update(),
    "watcher": _watch,
    "roots.move": lambda a, more: a.roots.move(more, more),
    "roots.remove": lambda a, more: a.roots.remove(more, confirmed=True),
    "indexes.embed": lambda a, _: a.indexes.embed(),
    "indexes.use": lambda a, _: a.indexes.use("1"),
    "indexes.drop": lambda a, _: a.indexes.drop("1"),
    "indexes.optimize": lambda a, _: a.indexes.optimize(),
    "indexes.clear_vector_cache": lambda a, _: a.indexes.clear_vector_cache(),
    "quarantine.release": lambda a, _: a.quarantine.release("guide/hidden.md"),
    "quarantine.drop": lambda a, _: a.quarantine.drop("guide/hidden.md"),
    "marks.put": lambda a, _: a.marks.put(NOTE, "disputed", "Ana", "old"),
    "marks.remove": lambda a, _: a.marks.remove(NOTE),
    "decisions.record": lambda a, _: a.decisions.record(NewDecision(text="No", decided_by="Ana")),
    "decisions.end": lambda a, _: a.decisions.end("1", "Ana", "over"),
    "facts.remember": lambda a, _: a.facts.remember(
        RememberRequest(fact="A fact.", source=NOTE), "Ana"
    ),
    "facts.promote": lambda a, _: a.facts.promote("fact", "Ana"),
    "facts.forget": lambda a, _: a.facts.forget("fact", "Ana"),
    "replicas.publish": _publish,
    "replicas.forget_target": lambda a, _: a.replicas.forget_target("/mnt/share", confirmed=True),
    "purges.purge": lambda a, _: a.purges.purge(PurgeSelection([NOTE])),
    "purges.finish": lambda a, _: a.purges.finish(),
    "approvals.approve_manifest": lambda a, more: a.approvals.approve_manifest(more),
    "approvals.revoke_manifest": lambda a, more: a.approvals.revoke_manifest(more),
    "gates.start": lambda a, more: a.gates.start(more / "work.gate.toml"),
    "approvals.approve_contract": lambda a, more: a.approvals.approve_contract(
        more / "work.gate.toml"
    ),
    "approvals.revoke_contract": lambda a, more: a.approvals.revoke_contract(
        more / "work.gate.toml"
    ),
    "gates.count_blocks": lambda a, more: a.gates.count_blocks(more / "work.gate.toml", 1),
    "policy.set": lambda a, _: a.policy.set(POLICY, "toml"),
    "audit.set": lambda a, _: a.audit.set("required"),
    "backups.create": lambda a, more: a.backups.create(more / "copy.db"),
    "backups.rotate": lambda a, more: a.backups.rotate(more),
    "backups.restore": lambda a, more: a.backups.restore(more / "other.db", confirmed=True),
}
READS = {
    *("close", "documents.inspect", "documents.listing", "indexes.estimate"),
    *("indexes.waiting",),
    *("quarantine.documents", "quarantine.names", "quarantine.find", "marks.all", "decisions.all"),
    *("facts.all", "purges.plan", "policy.find_bridges", "audit.rows"),
}
OTHER_OPERATIONS = {
    "audit.collect",
    "indexes.complete",
    "repair",
    "replicas.pull",
    "purges.finish_in",
}
"""They change files beside it, leave a sound corpus alone, replace it, or need it open to write."""


def methods(subject: object) -> set[str]:
    return {name for name, _ in inspect.getmembers(subject, inspect.ismethod) if name[0] != "_"}


def test_every_method_of_the_admin_is_classified(tmp_path: Path) -> None:
    admin = Admin(tmp_path / "none.db")
    services = [name for name, value in vars(Admin).items() if isinstance(value, _Part)]
    public = methods(admin) | {
        f"{name}.{method}" for name in services for method in methods(getattr(admin, name))
    }
    known = WRITES.keys() | READS | OTHER_OPERATIONS
    assert len(services) > 10
    assert public == known


@pytest.fixture
def more(tmp_path: Path, image: bytes) -> Path:
    """Another folder, with what the commands are given."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "other.db").write_bytes(image)
    (folder / "rolebundle.toml").write_text("", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    contract = '[[criteria]]\nid = "a"\ncheck = "exists"\nfile = "policy.toml"\n'
    (folder / "work.gate.toml").write_text(contract, encoding="utf-8")
    return folder


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", WRITES)
def test_no_method_of_the_owner_changes_a_replica(db: Path, more: Path, name: str) -> None:
    make_replica(db)
    before, beside = contents(db), contents(more / "other.db")
    with Admin(db) as admin, pytest.raises(UsageError) as error:
        WRITES[name](admin, more)
    is_backup = name in ("backups.create", "backups.rotate")
    expected = "replica_no_backup" if is_backup else "replica_is_read_only"
    assert error.value.code == expected
    assert contents(db) == before and contents(more / "other.db") == beside


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("ingest", "{}"),
    ("ingest",),
    ("init", "{}"),
    (
        "corpus",
        "embed",
    ),
    ("corpus", "embed", "clear-cache"),
    ("corpus", "roots", "remove", "{}", "--yes"),
    ("policy", "set", "{}/policy.toml"),
    ("policy", "trust", "approve", "{}"),
    ("corpus", "quarantine", "release", "guide/hidden.md"),
    ("policy", "audit", "set", "required"),
    ("corpus", "purge", NOTE, "--yes"),
    ("corpus", "backup", "{}/copy.db"),
    ("corpus", "restore", "{}/other.db", "--yes"),
    ("gate", "start", "{}/work.gate.toml"),
    ("remember", "A fact.", "--source", NOTE, "--by", "Ana"),
    ("mark", NOTE, "disputed", "--by", "Ana", "--reason", "old"),
    ("decisions", "add", "No posts", "--by", "Ana"),
    ("decisions", "end", "1", "--by", "Ana", "--reason", "over"),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_changes_a_replica(db: Path, more: Path, command: tuple[str, ...]) -> None:
    make_replica(db)
    (more / "rolebundle.toml").unlink()
    if command[0] == "trust":
        (more / "rolebundle.toml").write_text("", encoding="utf-8")
    before, beside = contents(db), contents(more / "other.db")
    ended = invoke(*(part.replace("{}", str(more)) for part in command), "--db", db)
    assert ended.code == 2, ended.err
    assert "[replica_is_read_only]" in ended.err or "[replica_no_backup]" in ended.err
    assert contents(db) == before and contents(more / "other.db") == beside


def test_an_agent_changes_nothing(db: Path) -> None:
    with_policy(db)
    make_replica(db)
    before = db.read_bytes()
    with Engine(db, agent="bot") as engine:
        writes = (
            partial(engine.mark, MarkRequest(id=NOTE, state="disputed", reason="old", agent="bot")),
            partial(engine.remember, RememberRequest(fact="A fact.", source=NOTE, agent="bot")),
        )
        for write in writes:
            with pytest.raises(UsageError) as error:
                write()
            assert error.value.code == "replica_is_read_only"
            assert str(db.parent) not in error.value.message
    assert db.read_bytes() == before


def test_its_publisher_may_open_it(db: Path) -> None:
    make_replica(db)
    with pytest.raises(UsageError), open_writer(db):
        pass
    with open_writer(db, replica=True) as corpus, corpus.writing():
        corpus.run("DELETE FROM replica")
    with open_writer(db):
        pass


# -- repair, restore and audit ---------------------------------------------------------------------


def _damage_content(db: Path) -> None:
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE chunk SET content = 'forged'")
    raw.close()


def _damage_seal(db: Path) -> None:
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE seal SET tables = x'00'")
    raw.close()


def _lose_record(db: Path) -> None:
    """The table of the record cannot be read."""
    with sqlite3.connect(db) as raw:
        [[page]] = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'replica'")
        [[size]] = raw.execute("PRAGMA page_size")
    raw.close()
    with db.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 8)


def _lose_schema(db: Path) -> None:
    with db.open("r+b") as file:
        file.write(b"\0" * 4096)


@pytest.mark.parametrize("damage", [_damage_content, _damage_seal, _lose_record, _lose_schema])
def test_a_damaged_replica_is_not_made_an_ordinary_corpus(
    db: Path, more: Path, damage: Callable[[Path], None]
) -> None:
    make_replica(db)
    damage(db)
    before = contents(db)
    with Admin(db) as admin:
        assert not examine(db).sound
        with pytest.raises(UsageError) as error:
            admin.repair()
        assert error.value.code == "replica_is_read_only" and "pull" in error.value.hint
        with pytest.raises(UsageError) as error:
            admin.backups.restore(more / "other.db", confirmed=True)
        assert error.value.code == "replica_is_read_only"
    assert contents(db) == before


def test_a_sound_replica_is_left_alone(db: Path) -> None:
    make_replica(db)
    before = contents(db)
    assert not Admin(db).repair().repaired
    assert contents(db) == before


def test_a_copy_of_a_replica_is_no_backup(db: Path, more: Path) -> None:
    copy = more / "replica.db"
    copy.write_bytes(db.read_bytes())
    make_replica(copy)
    before = db.read_bytes()
    with Admin(db) as admin, pytest.raises(UsageError) as error:
        admin.backups.restore(copy, confirmed=True)
    assert error.value.code == "replica_no_backup"
    assert db.read_bytes() == before


def _require_audit(db: Path) -> None:
    """As a publisher whose corpus requires records; its head is not that of the replica."""
    with open_writer(db) as corpus, corpus.writing():
        save_stored_audit(corpus, StoredAudit(True))


def test_a_required_audit_is_kept_here(db: Path) -> None:
    _require_audit(db)
    make_replica(db)
    before = db.read_bytes()
    with pytest.raises(StorageError) as error:
        ask(db)
    assert error.value.code == "audit_unwritable"
    with Admin(db) as admin:
        assert admin.audit.set("required", "text").mode == "required"
    assert ask(db).selected
    with Admin(db) as admin:
        assert [row.kind for row in admin.audit.rows(1)[1]] == ["retrieve"]
        with pytest.raises(UsageError) as refused:
            admin.audit.set("on")
    assert refused.value.code == "replica_is_read_only"
    audit_path(db).unlink()
    with pytest.raises(RolebundleError):
        ask(db)
    assert db.read_bytes() == before


def test_settings_in_the_file_of_the_audit_can_be_changed(db: Path) -> None:
    make_replica(db)
    with Admin(db) as admin:
        assert admin.audit.set("on").mode == "on"
    assert ask(db).selected
    with Admin(db) as admin:
        assert len(admin.audit.rows(5)[1]) >= 1
        assert admin.audit.set("off").mode == "off"
