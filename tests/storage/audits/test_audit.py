"""The audit's file: made whole, recognized, chained, never forked."""

import json
import multiprocessing
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from rolebundle.contracts.policy import AuditEntry, AuditSettings
from rolebundle.errors import RolebundleError
from rolebundle.storage import audit
from rolebundle.storage.audit import (
    MAX_CHARACTERS,
    bounded_details,
    bounded_text,
    create_audit,
    open_audit_reader,
    open_audit_writer,
    query_digest,
)
from rolebundle.storage.file import audit_path
from support.amounts import rounds

ON = AuditSettings(mode="on", query="text")


def create(path: Path) -> bool:
    return create_audit(path, ON, {"by": "test"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "c.db.audit"
    assert create(path)
    return path


def exported(path: Path) -> list[dict[str, object]]:
    with open_audit_reader(path) as log:
        return [row.model_dump() for row in audit.read_rows(log)]


def test_the_first_row_records_the_settings(path: Path) -> None:
    assert exported(path)[0]["details"] == {"by": "test", "mode": "on", "query": "text"}
    with open_audit_writer(path) as log:
        assert log.db.pragma("synchronous") == 2


def test_it_is_beside_the_corpus_that_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    corpus = tmp_path / "real" / "c.db"
    corpus.touch()
    link = tmp_path / "link.db"
    link.symlink_to(corpus)
    assert audit_path(link) == audit_path(corpus) == corpus.with_name("c.db.audit")
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    assert audit_path(loop).name == "loop.db.audit"


def test_the_chain_can_be_verified_without_our_code(path: Path) -> None:
    """What docs/decisions/0009 promises, without a line of ours."""
    with open_audit_writer(path) as log:
        for number in range(5):
            audit.append(
                log, AuditEntry(kind="retrieve", query=f"é {number}", blocked={"stale": 2})
            )
        log_id = audit.read_head(log).log_id
    last = sha256(f"rolebundle-audit:1:{log_id}".encode()).hexdigest()
    for number, row in enumerate(exported(path), start=1):
        stored_hash = row.pop("hash")
        text = json.dumps(row, sort_keys=True, separators=(",", ":"))
        assert sha256(text.encode()).hexdigest() == stored_hash
        assert (row["seq"], row["previous"]) == (number, last)
        last = str(stored_hash)


def test_a_row_is_chained_to_the_head_even_if_the_last_rows_are_gone(path: Path) -> None:
    with open_audit_writer(path) as log:
        appended = [audit.append(log, AuditEntry(kind="get")) for _ in range(3)]
        assert all(is_intact for _, is_intact in appended)
        log.run("DELETE FROM entry WHERE seq = 4")
        after, is_intact = audit.append(log, AuditEntry(kind="get"))
    assert not is_intact
    assert (after.seq, after.previous) == (5, appended[-1][0].hash), "the gap stays"


def test_an_existing_row_is_not_overwritten(path: Path) -> None:
    with open_audit_writer(path) as log:
        log.run("UPDATE entry SET seq = 2")
        with pytest.raises(RolebundleError):
            audit.append(log, AuditEntry(kind="get"))
        assert audit.read_head(log).rows == 1


@pytest.mark.parametrize("text", ["", "a\0b", "\ud800", "x" * (MAX_CHARACTERS + 1), "🦉é\u202e"])
def test_any_text_can_be_recorded(path: Path, text: str) -> None:
    entry = AuditEntry(
        kind="retrieve", agent=text, role=text, action=text, query=text, details={"name": text}
    )
    with open_audit_writer(path) as log:
        row, _ = audit.append(log, entry)
    assert exported(path)[-1] == row.model_dump()
    assert len(row.query) <= MAX_CHARACTERS + 120


def test_cut_texts_are_marked_and_stay_different() -> None:
    first, second = (bounded_text("x" * MAX_CHARACTERS + end) for end in ("a", "b"))
    assert first != second
    assert f"{MAX_CHARACTERS + 1} characters" in first
    assert bounded_text("short") == "short"
    cut = bounded_details({"many": ["x"] * MAX_CHARACTERS})
    assert cut["cut"] is True
    assert bounded_details({"few": 1}) == {"few": 1}


def test_a_query_is_stored_as_the_settings_say(path: Path) -> None:
    entry_with_query = AuditEntry(kind="retrieve", query="secret plan")
    with open_audit_writer(path) as log:
        log_id = audit.read_head(log).log_id
        queries = []
        for query in ("text", "digest", "off"):
            with log.writing():
                audit.configure(log, AuditSettings(mode="on", query=query), {})
            row, _ = audit.append(log, entry_with_query)
            queries.append(row.query)
    digest = query_digest(log_id, "secret plan")
    assert queries == ["secret plan", digest, ""]
    assert query_digest("another log", "secret plan") != digest


def test_rows_are_read_in_pages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PAGE_ROWS", 3)
    with open_audit_writer(path) as log:
        for number in range(20):
            audit.append(log, AuditEntry(kind="get", agent="ab"[number % 2]))
    with open_audit_reader(path) as log:
        every = [row.seq for row in audit.read_rows(log)]
        assert every == list(range(1, 22))
        assert [row.seq for row in audit.read_rows(log, newest=True)] == every[::-1]
        own = [row.seq for row in audit.read_rows(log, by="a")]
        assert own == list(range(2, 22, 2))


def _append_many(path: Path, agent: str, rows: int) -> None:
    with open_audit_writer(path) as log:
        for number in range(rows):
            audit.append(log, AuditEntry(kind="get", agent=agent, details={"n": number}))


@rounds(5, 1000)
def test_many_processes_make_one_chain(tmp_path: Path, rounds: int) -> None:
    """Also in the first moment, when each of them finds no file."""
    path = tmp_path / "c.db.audit"
    rows = rounds

    def work(agent: str) -> None:
        create(path)
        _append_many(path, agent, rows)

    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=work, args=(f"agent-{n}",)) for n in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 5
    found = exported(path)
    assert [row["seq"] for row in found] == list(range(1, 5 * rows + 2))
    assert all(row["previous"] == before["hash"] for before, row in pairwise(found))
    for n in range(5):
        own = [row["details"] for row in found if row["agent"] == f"agent-{n}"]
        assert own == [{"n": number} for number in range(rows)], "none lost, in their order"
    assert [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name] == []
