"""The audit: what is recorded, who reads it, and that nothing in it changes unseen."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import Mock

import apsw
import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.policy import AuditEntry, AuditSettings
from rolebundle.errors import CorpusBusy, StorageError, UsageError
from rolebundle.policy.audit import AuditLog, AuditNeeds, Recorder, bundle_digest
from rolebundle.policy.audit_check import verify_audit
from rolebundle.storage.opening import open_reader
from rolebundle.storage.records import StoredAudit
from support.corpora import ask, build, document, scratch_folder

REQUIRED = AuditSettings(mode="required", query="text")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    (tmp_path / "c.db").touch()
    with AuditLog(tmp_path / "c.db") as log:
        yield log


def entry(agent: str = "bot", **fields: Any) -> AuditEntry:
    return AuditEntry(**({"kind": "retrieve", "agent": agent, "query": "a task"} | fields))


# -- settings and records ------------------------------------------------------------------------


def test_nothing_is_recorded_until_it_is_turned_on(log: AuditLog) -> None:
    assert log.settings() == AuditSettings(mode="off", query="digest")
    assert log.record(entry()) == (None, "")
    assert not log.exists
    with pytest.raises(UsageError):
        list(log.rows())
    with pytest.raises(UsageError):
        verify_audit(log.path)


def test_settings_hold_for_every_process_and_are_recorded(log: AuditLog) -> None:
    log.set(REQUIRED, {"by": "ada"})
    with AuditLog(log.path.with_name("c.db")) as second_log:
        assert second_log.settings() == REQUIRED
        assert second_log.record(entry())[0] is not None
        second_log.set(AuditSettings(mode="off"))
    # Another process has turned it off, and this one has an open file.
    assert log.record(entry())[0] is None
    assert [(row.kind, row.details) for row in log.rows()] == [
        ("settings", {"by": "ada", "mode": "required", "query": "text"}),
        ("retrieve", {}),
        ("settings", {"mode": "off", "query": "digest"}),
    ]
    assert verify_audit(log.path).ok


def break_folder(log: AuditLog) -> None:
    log.path.unlink()
    log.path.mkdir()


def break_bytes(log: AuditLog) -> None:
    log.path.write_bytes(b"")


@pytest.mark.parametrize("damage", [break_folder, break_bytes, lambda log: log.path.unlink()])
@pytest.mark.parametrize("mode", ["required", "on"])
def test_a_record_that_cannot_be_written_is_an_error_or_a_warning(
    log: AuditLog, mode: Any, damage: Callable[[AuditLog], None]
) -> None:
    log.set(AuditSettings(mode=mode, query="text"))
    log.record(entry())
    log.close()
    damage(log)
    if mode == "on":
        row, warning = log.record(entry())
        assert (row, "not recorded in the audit" in warning) == (None, True)
        if not log.path.exists():
            return
        # Another process than the one that knew, as a command is: the strictest holds.
        log = AuditLog(log.path.with_name("c.db"))
    with pytest.raises(StorageError) as refused:
        log.record(entry())
    assert (refused.value.code, refused.value.exit_code) == ("audit_unwritable", 6)
    assert "audit set" in refused.value.hint


def test_a_stuck_process_is_not_waited_for_too_long(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "50")
    log.set(AuditSettings(mode="on"))
    # Not the sqlite3 module: locks of two SQLite libraries in one process do not see each other.
    stuck = apsw.Connection(str(log.path))
    stuck.execute("BEGIN IMMEDIATE")
    warning = log.record(entry())[1]
    assert "another process" in warning
    assert "ingest" not in warning
    with pytest.raises(CorpusBusy, match=r"\[audit_busy\]"):
        log.set(REQUIRED)
    stuck.execute("ROLLBACK")
    stuck.close()
    assert log.record(entry())[0] is not None
    assert verify_audit(log.path).ok


@pytest.mark.parametrize("floor", ["on", "required"])
def test_a_floor_holds_if_the_file_is_gone_or_less_strict(log: AuditLog, floor: Any) -> None:
    with AuditLog(log.path.with_name("c.db"), floor=floor) as demanded:
        assert demanded.settings().mode == floor
        if floor == "on":
            assert "there is no audit" in demanded.record(entry())[1]
        else:
            with pytest.raises(StorageError):
                demanded.record(entry())
        log.set(AuditSettings(mode="off"))
        assert demanded.record(entry())[0] is not None


def test_missing_rows_are_reported_with_the_next_row(log: AuditLog) -> None:
    log.set(REQUIRED)
    log.record(entry())
    log.close()
    db = sqlite3.connect(log.path)
    with db:
        db.execute("DELETE FROM entry WHERE seq = 2")
    db.close()
    row, warning = log.record(entry())
    assert row is not None
    assert "audit verify" in warning
    assert log.record(entry())[1] == ""
    assert verify_audit(log.path).problem.code == "row_altered"  # type: ignore[union-attr]


# -- bundles -------------------------------------------------------------------------------------


@pytest.fixture
def bundle() -> Iterator[RetrievalBundle]:
    with scratch_folder() as folder:
        path = build(folder, [document(f"d{n}", ["token rotation"]) for n in range(4)])
        with open_reader(path) as corpus:
            yield ask(corpus, task="token", lexical_only=True, limit=1)


def test_an_entry_has_counts_and_digests_and_no_text(
    bundle: RetrievalBundle, log: AuditLog
) -> None:
    log.set(REQUIRED)
    recorder = Recorder(log.path.with_name("c.db"))
    needs = AuditNeeds(StoredAudit(), has_policy=False, is_shared=False)
    recorder.record_answer(needs, bundle, "bot", None, lambda: {"scope": 2})
    recorder.close()
    row = [*log.rows()][-1]
    assert (row.kind, row.agent, row.action, row.query) == ("retrieve", "bot", "read", "token")
    assert row.allowed == 1
    assert row.bundle_digest == bundle_digest(bundle)
    assert row.blocked["scope"] == 2
    assert sum(row.blocked.values()) - 2 == len(bundle.rejected) > 0
    text = row.model_dump_json()
    for chunk in bundle.selected:
        assert chunk.chunk_id not in text
        assert chunk.content not in text
    assert not any(rejection.chunk_id in text for rejection in bundle.rejected)


def test_a_saved_bundle_has_the_recorded_digest(bundle: RetrievalBundle) -> None:
    saved = RetrievalBundle.model_validate_json(bundle.model_dump_json(exclude_none=True, indent=2))
    assert bundle_digest(saved) == bundle_digest(bundle)
    changed_bundle = saved.model_dump()
    changed_bundle["diagnostics"] |= {"latency_ms": 9999.0, "lexical_ms": 1.5}
    assert bundle_digest(RetrievalBundle.model_validate(changed_bundle)) == bundle_digest(bundle)
    changed_bundle["selected"][0]["content"] += "."
    assert bundle_digest(RetrievalBundle.model_validate(changed_bundle)) != bundle_digest(bundle)


def test_a_reader_of_the_corpus_never_waits_for_the_audit() -> None:
    with scratch_folder() as folder:
        path = build(folder, [document("d0", ["token rotation"])])
        with AuditLog(path) as log:
            log.set(REQUIRED)
            # A process that was stopped in the middle of a row.
            stuck = apsw.Connection(str(log.path))
            stuck.execute("BEGIN EXCLUSIVE")
            started = perf_counter()
            with open_reader(path) as corpus:
                assert ask(corpus, task="token", lexical_only=True).selected
            assert perf_counter() - started < 1
            stuck.execute("ROLLBACK")
            stuck.close()
            # And the other way round.
            with open_reader(path) as corpus, corpus.reading():
                corpus.rows("SELECT count(*) FROM chunk")
                before = path.read_bytes()
                assert log.record(entry())[0] is not None
                assert path.read_bytes() == before


# -- who reads it --------------------------------------------------------------------------------


def test_an_agent_reads_its_own_rows_and_cannot_count_the_others(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 33. What it gets is what it would get were nobody else there."""
    moment = Mock(now=Mock(return_value=datetime(2026, 1, 1, tzinfo=UTC)))
    monkeypatch.setattr("rolebundle.storage.audit.datetime", moment)
    alone = AuditLog(log.path.with_name("alone.db"))
    busy = AuditLog(log.path.with_name("busy.db"))
    chance = random.Random(33)
    for audit in (alone, busy):
        audit.set(REQUIRED)
    for number in range(30):
        own_entry = entry("bot", query=f"task {number}", allowed=number, blocked={"stale": number})
        for audit in (alone, busy):
            audit.record(own_entry)
        for _ in range(chance.randrange(4)):
            busy.record(entry(chance.choice(["other", "", "bot2"]), query="hidden", kind="ingest"))
    for query in ({}, {"newest": True, "limit": 7}, {"limit": 3}):
        seen = list(busy.rows("bot", **query))
        assert seen == list(alone.rows("bot", **query))
        assert {row.agent for row in seen} == {"bot"}
    assert [row.seq for row in busy.rows("bot")] == list(range(1, 31))
    assert "hidden" not in "".join(row.model_dump_json() for row in busy.rows("bot"))
    # Nobody is nobody: rows without an agent are the administrator's.
    assert list(busy.rows("")) == []
    alone.close()
    busy.close()


def test_rows_are_read_from_either_end(log: AuditLog) -> None:
    log.set(REQUIRED)
    for _ in range(4):
        log.record(entry())
    assert [row.seq for row in log.rows(newest=True)] == [5, 4, 3, 2, 1]
    assert [row.seq for row in log.rows(limit=2)] == [1, 2]


@pytest.mark.parametrize("head", ["1", "x:" + "0" * 64, "1:abc", ":", "-1:" + "0" * 64])
def test_an_expected_head_must_be_well_formed(log: AuditLog, head: str) -> None:
    log.set(REQUIRED)
    with pytest.raises(UsageError):
        verify_audit(log.path, head)
