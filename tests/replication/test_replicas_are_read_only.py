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

from rolebundle.admin import (
    Admin,
    backups,
    indexes,
    purges,
    records,
)
from rolebundle.admin import (
    records as audit,
)
from rolebundle.admin import (
    records as replicas,
)
from rolebundle.contracts.memory import MarkRequest, NewDecision, RememberRequest
from rolebundle.doctor import examine
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.watch import WatchOptions
from rolebundle.policy.audit import AuditLog
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.transports import open_transport
from rolebundle.storage.file import audit_path
from rolebundle.storage.opening import open_writer
from rolebundle.storage.records import StoredAudit, save_stored_audit
from support.reading_replicas import NOTE, POLICY, ask, contents, with_policy
from support.replica_files import make_replica

# -- methods, commands and agents ------------------------------------------------------------------


def _watch(admin: Admin, _: Path) -> object:
    return admin.watcher(WatchOptions(IngestOptions()), print, Event())


def _publish(admin: Admin, more: Path) -> object:
    options = PublishOptions("me", timedelta(days=1), timedelta(days=1))
    key = Ed25519PrivateKey.generate()
    return replicas.publish_replica(
        admin.workspace, open_transport(str(more / "share")), key, options, level="internal"
    )


WRITES: dict[str, Callable[[Admin, Path], object]] = {
    "ingest": lambda a, more: a.ingest([more]),
    "update": lambda a, _: a.update(),
    "watcher": _watch,
    "move_root": lambda a, more: records.move_root(a.workspace, more, more),
    "remove_root": lambda a, more: records.remove_root(a.workspace, more, confirmed=True),
    "embed": lambda a, _: indexes.embed(a.workspace),
    "use_index": lambda a, _: indexes.use_index(a.workspace, "1"),
    "drop_index": lambda a, _: indexes.drop_index(a.workspace, "1"),
    "clear_vector_cache": lambda a, _: indexes.clear_vector_cache(a.workspace),
    "release_document": lambda a, _: records.release_document(a.workspace, "guide/hidden.md"),
    "drop_document": lambda a, _: records.drop_document(a.workspace, "guide/hidden.md"),
    "put_mark": lambda a, _: records.put_mark(a.workspace, NOTE, "disputed", "Ana", "old"),
    "remove_mark": lambda a, _: records.remove_mark(a.workspace, NOTE),
    "record_decision": lambda a, _: records.record_decision(
        a.workspace, NewDecision(text="No", decided_by="Ana")
    ),
    "end_decision": lambda a, _: records.end_decision(a.workspace, "1", "Ana", "over"),
    "file_fact": lambda a, _: records.file_fact(
        a.workspace, RememberRequest(fact="A fact.", source=NOTE), "Ana"
    ),
    "promote_fact": lambda a, _: records.promote_fact(a.workspace, "fact", "Ana"),
    "forget_fact": lambda a, _: records.forget_fact(a.workspace, "fact", "Ana"),
    "publish_replica": _publish,
    "forget_target": lambda a, _: replicas.forget_target(a.workspace, "/mnt/share", confirmed=True),
    "purge_documents": lambda a, _: purges.purge_documents(
        a.workspace, purges.PurgeSelection([NOTE])
    ),
    "finish_pending": lambda a, _: purges.finish_pending(a.workspace),
    "start_gate": lambda a, more: records.start_gate(a.workspace, more / "work.gate.toml"),
    "approve_contract": lambda a, more: records.approve_contract(
        a.workspace, more / "work.gate.toml"
    ),
    "revoke_contract": lambda a, more: records.revoke_contract(
        a.workspace, more / "work.gate.toml"
    ),
    "count_blocks": lambda a, more: records.count_blocks(a.workspace, more / "work.gate.toml", 1),
    "set_policy": lambda a, _: records.set_policy(a.workspace, POLICY, "toml"),
    "set_audit": lambda a, _: audit.set_audit(a.workspace, "required"),
    "create_backup": lambda a, more: backups.create_backup(a.workspace, more / "copy.db"),
    "rotate_backups": lambda a, more: backups.rotate_backups(a.workspace, more),
    "restore_backup": lambda a, more: backups.restore_backup(
        a.workspace, more / "other.db", confirmed=True
    ),
}
READS = {
    *("close", "estimate", "passages_waiting", "plan_of"),
    *("all_marks", "all_decisions", "all_facts"),
}
OTHER_OPERATIONS = {"complete", "repair", "pull_replica", "finish_in"}
"""They change files beside it, leave a sound corpus alone, replace it, or need it open to write."""


def test_every_act_of_the_owner_is_classified() -> None:
    public = {name for name, _ in inspect.getmembers(Admin, inspect.isfunction) if name[0] != "_"}
    for module in (audit, backups, indexes, purges, records, replicas):
        public |= {
            name
            for name, function in inspect.getmembers(module, inspect.isfunction)
            if name[0] != "_"
            and function.__module__ == module.__name__
            and next(iter(inspect.signature(function).parameters)) == "workspace"
        }
    assert public == WRITES.keys() | READS | OTHER_OPERATIONS


@pytest.fixture
def more(tmp_path: Path, image: bytes) -> Path:
    """Another folder, with what the commands are given."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "other.db").write_bytes(image)
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
    is_backup = name in ("create_backup", "rotate_backups")
    expected = "replica_no_backup" if is_backup else "replica_is_read_only"
    assert error.value.code == expected
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
        raw.execute("UPDATE seal SET digest = x'00'")
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
            backups.restore_backup(admin.workspace, more / "other.db", confirmed=True)
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
        backups.restore_backup(admin.workspace, copy, confirmed=True)
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
        assert audit.set_audit(admin.workspace, "required", "text").mode == "required"
    assert ask(db).selected
    with Admin(db) as admin:
        assert [row.kind for row in AuditLog(db).rows(limit=1, newest=True)] == ["retrieve"]
        with pytest.raises(UsageError) as refused:
            audit.set_audit(admin.workspace, "on")
    assert refused.value.code == "replica_is_read_only"
    audit_path(db).unlink()
    with pytest.raises(RolebundleError):
        ask(db)
    assert db.read_bytes() == before
