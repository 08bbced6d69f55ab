"""Collects the audits of replicas into the publisher's collection (docs/operations.md).

An audit comes as a file. Its chain is verified, and its new rows are added to the collection. A
row that is collected is never changed or removed, whatever a later file has.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rolebundle.contracts.audit import (
    AuditProblem,
    AuditRow,
    AuditVerification,
    CollectedAudit,
    CollectedState,
)
from rolebundle.contracts.base import writable
from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, UsageError
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_verification import Chain, damage_problem, verify_rows
from rolebundle.storage.audits import audit, collected_audits
from rolebundle.storage.audits.audit import (
    Head,
    genesis_hash,
    open_foreign_audit,
    tampered,
)
from rolebundle.storage.audits.collected_audits import (
    StoredLog,
    open_collected_log,
    open_collection,
    open_collection_for_writing,
)
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.storage.location import audit_path, collected_audits_path, is_there
from rolebundle.storage.opening import is_corpus

_LOG_ID = re.compile("[0-9a-f]{32}")
_PATTERN = "*.audit"


class CollectedLog(AuditLog):
    """The collected rows of one replica's audit, for reading.

    Args:
        corpus: the publisher's corpus.
        name: the id of the audit, or the beginning of exactly one id.

    Raises:
        UsageError: there is no such audit in the collection, or there are several.
        WrongFile, CorpusCorrupt, StorageError: the collection cannot be read.
    """

    def __init__(self, corpus: Path, name: str) -> None:
        super().__init__(corpus)
        self.path = collected_audits_path(corpus)
        with open_collection(self.path) as collection:
            ids = [log.log_id for log in collected_audits.logs(collection)]
        found = [log_id for log_id in ids if log_id.startswith(name)]
        if len(found) != 1:
            problem = "begins the ids of several collected audits" if found else "was not collected"
            raise UsageError(
                "no_such_log",
                f"{name[:40]!r} {problem}",
                "run `rolebundle policy audit collect`, which lists the ids",
            )
        self.log_id = found[0]

    def _open_reader(self) -> SqliteFile:
        return open_collected_log(self.path, self.log_id)

    def verify(self, expect: str = "") -> AuditVerification:
        """Check the chain of the collected rows again, as :meth:`AuditLog.verify`."""
        return _verify(self.path, self.log_id, expect)


def verify_collection(path: Path) -> dict[str, AuditVerification]:
    """Check the chains of all audits of a collection, by their ids.

    Raises:
        UsageError: there is no collection.
        WrongFile, CorpusCorrupt, StorageError: it cannot be read.
    """
    with open_collection(path) as collection:
        ids = [log.log_id for log in collected_audits.logs(collection)]
    return {log_id: _verify(path, log_id) for log_id in ids}


def _verify(path: Path, log_id: str, expect: str = "") -> AuditVerification:
    def end_problem(_: Chain) -> AuditProblem | None:
        problem = collected_audits.collection_problem(log)
        return AuditProblem(code="file_damaged", message=problem) if problem else None

    with open_collected_log(path, log_id) as log, log.reading():
        return verify_rows(log, log_id, expect, end_problem)


def collected_logs(corpus: Path) -> list[CollectedAudit]:
    """The collected audits, each as its file was found last; none without a collection.

    Raises:
        WrongFile, CorpusCorrupt, StorageError: the collection cannot be read.
    """
    path = collected_audits_path(corpus)
    if not is_there(path):
        return []
    with open_collection(path) as collection, collection.reading():
        return [_report(collection, log) for log in collected_audits.logs(collection)]


def collect(
    corpus: Path, sources: Sequence[Path], clock: Callable[[], str]
) -> list[CollectedAudit]:
    """Add the new rows of audits to the collection, each audit in one transaction.

    Args:
        corpus: the publisher's corpus.
        sources: audits, replicas with an audit beside them, or folders with audits in them or in
            their folders.
        clock: the time of the collection, as ISO 8601 in UTC.

    Returns:
        One report for each audit that was found, and for each source where none was.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the collection cannot be written.
    """
    own = os.path.realpath(audit_path(corpus))
    with open_collection_for_writing(collected_audits_path(corpus)) as collection:
        return [
            _collect_file(collection, path, clock())
            if isinstance(path, Path)
            else _unreadable(collection, source, path, clock())
            for source in sources
            for path in _audits_at(source, own)
        ]


def _audits_at(source: Path, own: str) -> Iterator[Path | StorageError]:
    """The audits that a source stands for, or why there are none."""
    try:
        if not source.is_dir():
            yield audit_path(source) if is_corpus(source) else source
            return
        folders = [source, *(entry for entry in _entries(source) if entry.is_dir())]
    except OSError as error:
        yield _no_folder(source, error)
        return
    found = False
    for folder in folders:
        try:
            files = [entry for entry in _entries(folder) if entry.match(_PATTERN)]
        except OSError as error:
            found = True
            yield _no_folder(folder, error)
            continue
        for file in files:
            # The publisher's own audit may lie in the same folder.
            if os.path.realpath(file) != own:
                found = True
                yield file
    if not found:
        yield StorageError("no_audits", f"there is no {_PATTERN} file in it or in its folders")


def _entries(folder: Path) -> list[Path]:
    """What is in a folder. Hidden names are old versions and incomplete copies of other tools."""
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


def _no_folder(folder: Path, error: OSError) -> StorageError:
    return StorageError("no_permission", f"{folder} cannot be read ({error.strerror})")


def _collect_file(collection: SqliteFile, path: Path, now: str) -> CollectedAudit:
    with ExitStack() as stack:
        try:
            log = stack.enter_context(open_foreign_audit(path))
            # One snapshot: rows that are written meanwhile come with the next collection.
            stack.enter_context(log.reading())
            # Before a row is read: another machine made these tables.
            if wrong_tables := audit.schema_problem(log):
                raise tampered(path, wrong_tables)
            head = audit.read_head(log)
            if not _LOG_ID.fullmatch(head.log_id):
                raise tampered(path, "its id cannot have been written")
        except RolebundleError as error:
            return _unreadable(collection, path, error, now)
        with collection.writing():
            before = collected_audits.extent(collection, head.log_id).rows
            state, problem = _add_rows(collection, log, head)
            stored = _stored(head.log_id, path, now, state, problem)
            report = _report(collection, stored, before)
            # Without a row that follows from it, the id in the file may be a wrong one.
            if report.rows:
                collected_audits.save_log(collection, stored)
            return report


def _unreadable(
    collection: SqliteFile, path: Path, error: RolebundleError, now: str
) -> CollectedAudit:
    """The report of a source without an audit, which is stored if it had one before."""
    message = error.message.removeprefix(f"{path}: ")
    problem = AuditProblem(code="file_unreadable", message=writable(message))
    with collection.writing():
        stored = _stored("", path, now, "unreadable", problem)
        known = [log for log in collected_audits.logs(collection) if log.source == stored.source]
        if not known:
            return _report(collection, stored)
        # If the file was replaced by that of another audit, this is the one of the two.
        last = max(known, key=lambda log: log.collected_at)
        stored = stored._replace(log_id=last.log_id)
        collected_audits.save_log(collection, stored)
        return _report(collection, stored)


def _add_rows(
    collection: SqliteFile, log: SqliteFile, head: Head
) -> tuple[CollectedState, AuditProblem | None]:
    """Add the rows of an audit up to its first flaw, and return its state."""
    log_id = head.log_id
    last_before = collected_audits.extent(collection, log_id).last
    chain, first = Chain(0, genesis_hash(log_id)), 1
    for row in _readable(audit.read_rows(log)):
        if isinstance(row, RolebundleError):
            return "broken", damage_problem(log.path, row, chain.last + 1)
        if chain.rows == 0 and row.seq > 1:
            # The file begins later. What the settings were before is not known.
            configured = {"mode": head.mode, "query": head.query}
            first, chain = row.seq, Chain(row.seq - 1, row.previous, configured=configured)
        problem = chain.follow(row)
        if problem is not None:
            return "broken", problem
        known = (
            collected_audits.neighbours(collection, log_id, row.seq)
            if row.seq <= last_before + 1
            else {}
        )
        before, same, after = (known.get(row.seq + step) for step in (-1, 0, 1))
        if (
            (same and same.hash != row.hash)
            or (before and before.hash != row.previous)
            or (after and after.previous != row.hash)
        ):
            message = f"row {row.seq} is not the one that was collected before"
            return "changed", AuditProblem(code="expected_differs", seq=row.seq, message=message)
        if not same:
            collected_audits.add_row(collection, log_id, row)
    try:
        problem = chain.end_problem(log, head)
    except RolebundleError as error:
        problem = damage_problem(log.path, error)
    if problem is not None:
        return "broken", problem
    missing = collected_audits.first_missing(collection, log_id)
    if missing < chain.last:
        message = f"row {missing} was never collected; the file begins with row {first}"
        return "gap", AuditProblem(code="row_missing", seq=missing, message=message)
    if first > 1 or chain.last < last_before:
        message = (
            f"the file has the rows {first} to {chain.last}, and lacks some of the rows up to "
            f"{max(last_before, first - 1)} that were collected before"
        )
        return "shortened", AuditProblem(code="expected_differs", message=message)
    return "ok", None


def _readable(rows: Iterator[AuditRow]) -> Iterator[AuditRow | RolebundleError]:
    """The rows that can be read, and then the error that ends them, if there is one."""
    try:
        yield from rows
    except RolebundleError as error:
        yield error


def _stored(
    log_id: str, path: Path, now: str, state: CollectedState, problem: AuditProblem | None
) -> StoredLog:
    text = problem.model_dump_json() if problem else ""
    return StoredLog(log_id, writable(str(path.absolute())), now, state, text)


def _report(collection: SqliteFile, log: StoredLog, before: int | None = None) -> CollectedAudit:
    """What is collected of a log. ``before``: how many rows there were before this time."""
    extent = collected_audits.extent(collection, log.log_id)
    try:
        return CollectedAudit.model_validate(
            {
                **log._asdict(),
                "new_rows": 0 if before is None else extent.rows - before,
                "rows": extent.rows,
                "first_time": extent.first_time,
                "last_time": extent.last_time,
                "problem": json.loads(log.problem) if log.problem else None,
            }
        )
    except ValueError as error:
        raise CorpusCorrupt(
            "collection_damaged",
            f"{collection.path}: the log {log.log_id[:40]!r} cannot have been written",
            "keep this file as evidence, and put a backup of it back",
        ) from error
