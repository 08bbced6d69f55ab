"""The audit: who asked what, how much was shown, how much was withheld, and what was changed.

The engine records the calls of all interfaces, according to the settings in the audit's file
(docs/decisions/0009).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from pydantic import ValidationError

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.policy import (
    AUDIT_MODES,
    AuditEntry,
    AuditKind,
    AuditMode,
    AuditRow,
    AuditSettings,
)
from rolebundle.contracts.terms import REJECTION_CODES
from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.storage import audit, records
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import audit_path, is_there
from rolebundle.storage.records import StoredAudit, load_stored_audit, save_stored_audit
from rolebundle.storage.sqlite import Closable, SqliteFile

_LOGGER = logging.getLogger("rolebundle")


class AuditLog(Closable):
    """The audit of one corpus.

    Args:
        corpus: the corpus file; the audit lies beside it.
        floor: the lowest mode. It applies even if the settings in the file are lower or the file is
            missing.
    """

    def __init__(self, corpus: Path, *, floor: AuditMode = "off") -> None:
        self.path = audit_path(corpus)
        self.floor = floor
        self._writer: SqliteFile | None = None
        self._last_settings: AuditSettings | None = None
        self._lock = Lock()

    # -- settings ------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether there is a file with the audit's name."""
        return is_there(self.path)

    def settings(self) -> AuditSettings:
        """Return the settings in effect: those in the file, but at least the mode ``floor``.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: they cannot be read.
        """
        if not self.exists:
            return AuditSettings(mode=self.floor)
        with audit.open_audit_reader(self.path) as log:
            return self._with_floor(_settings_of(log))

    def set(self, settings: AuditSettings, details: Mapping[str, Any] | None = None) -> None:
        """Change the settings. Create the file if there is none.

        Args:
            settings: the new settings.
            details: what else to record about the change, such as who made it.

        Raises:
            CorpusBusy, WrongFile, CorpusCorrupt, StorageError: they were not changed.
        """
        more = dict(details or {})
        if self.exists or not audit.create_audit(self.path, settings, more):
            with audit.open_audit_writer(self.path) as log, log.writing():
                audit.configure(log, settings, more)
        self._last_settings = self._with_floor(settings)

    def begin(self) -> None:
        """Create the audit. An existing one keeps its settings, also ``off``.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: there is an audit that cannot be read, or none
                can be created.
        """
        if not self.exists:
            audit.create_audit(self.path, AuditSettings(mode="on"), {})
        self.settings()  # Whether it can be read.

    def _with_floor(self, settings: AuditSettings) -> AuditSettings:
        mode = max(settings.mode, self.floor, key=AUDIT_MODES.index)
        return AuditSettings(mode=mode, query=settings.query)

    # -- recording -----------------------------------------------------------------------------

    def record(
        self,
        entry: AuditEntry,
        known: StoredAudit = StoredAudit(),  # noqa: B008 - immutable
    ) -> tuple[AuditRow | None, str]:
        """Write an entry to the disk, if the settings ask for records.

        Args:
            entry: what to record.
            known: what the corpus remembers of the audit. If records are required, an audit that
                does not have this head any more is refused.

        Returns:
            the row, if it was written, and a warning if it could not be written, or if the rows
            before it were changed.

        Raises:
            StorageError: ``audit_unwritable``: a record could not be written, and the mode is
                `required`, or unknown because the file cannot be read. The caller must not answer.
        """
        with self._lock:
            if self._last_settings is None and self.floor == "off" and not self.exists:
                return None, ""
            mode: AuditMode | None = None
            try:
                log = self._open_writer()
                if known.required and not _has_head(log, known):
                    raise StorageError(
                        "audit_shortened",
                        f"{self.path}: is not the audit that the corpus knows, or lacks row "
                        f"{known.rows} of it",
                        "put the right file back, or accept the loss with `rolebundle policy audit "
                        "set required`, which is recorded",
                    )
                self._last_settings = self._with_floor(_settings_of(log))
                mode = self._last_settings.mode
                if mode == "off":
                    return None, ""
                row, is_intact = audit.append(log, entry)
            except RolebundleError as error:
                self.close()
                return None, self._failed(mode or self._mode_if_unwritable(), error)
        changed = f"{self.path}: the last rows of the audit were changed"
        return row, "" if is_intact else f"{changed}; run `rolebundle policy audit verify`"

    def has(self, known: StoredAudit) -> bool:
        """Whether the audit has the head that the corpus remembers.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: it cannot be read.
        """
        if not self.exists:
            return False
        with audit.open_audit_reader(self.path) as log:
            return _has_head(log, known)

    def _open_writer(self) -> SqliteFile:
        # If the file was renamed or deleted, a row in it would be lost.
        if self._writer is not None and not self._writer.is_current():
            self.close()
        if self._writer is None:
            self._writer = audit.open_audit_writer(self.path)
        return self._writer

    def _mode_if_unwritable(self) -> AuditMode:
        """Return the mode that applies to a record that cannot be written."""
        known = self._last_settings.mode if self._last_settings else None
        if not self.exists:
            # Removing the file does not turn the audit off.
            return known or self.floor
        # The file is there: use its settings if it can at least be read.
        try:
            return self.settings().mode
        except RolebundleError:
            # The strictest mode, unless this process knows another one. A known "off" is not used,
            # because it may have been changed since.
            return known if known and known != "off" else "required"

    def _failed(self, mode: AuditMode, error: RolebundleError) -> str:
        """The warning about a record that could not be written."""
        if mode == "off":
            return ""
        if mode == "on":
            return f"this was not recorded in the audit: {error.message}"
        if isinstance(error, UsageError):  # there is none
            error.hint = (
                "put the file back, or begin a new one with `rolebundle policy audit set required`"
            )
        raise StorageError(
            "audit_unwritable",
            f"this call cannot be recorded in the audit, so it is refused: {error.message}",
            f"{error.hint}; the owner of the corpus can also make records optional: "
            "`rolebundle policy audit set on`",
        ) from error

    # -- reading -------------------------------------------------------------------------------

    def rows(
        self, reader: str | None = None, *, limit: int | None = None, newest: bool = False
    ) -> Iterator[AuditRow]:
        """Rows of the audit.

        Args:
            reader: the agent that reads. It gets its own rows, counted from 1 and without hashes:
                the true numbers would reveal how much others do. ``""`` gets no rows. ``None`` is
                the administrator, who gets all rows.
            limit: the greatest number of rows.
            newest: the newest first.

        Raises:
            UsageError: there is no audit.
            WrongFile, CorpusCorrupt, StorageError: it cannot be read.
        """
        if reader == "":
            return
        agent = None if reader is None else audit.bounded_text(reader)
        with audit.open_audit_reader(self.path) as log:
            rows = islice(audit.read_rows(log, by=agent, newest=newest), limit)
            if agent is None:
                yield from rows
                return
            # In one snapshot: a row that is written meanwhile would change the count.
            with log.reading():
                numbers = count(audit.count_rows(log, agent), -1) if newest else count(1)
                for row, number in zip(rows, numbers, strict=False):
                    yield _numbered_for_agent(row, number)

    def close(self) -> None:
        """Close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            # The written rows are in the write-ahead log, so an error on closing loses nothing.
            with suppress(RolebundleError):
                writer.close()


def bundle_digest(bundle: RetrievalBundle) -> str:
    """Return the BLAKE2b digest of the bundle without timings. A saved bundle has the same."""
    text = audit.canonical(_whole_floats_as_integers(bundle.without_timings()))
    return f"blake2b:{blake2b(text.encode(), digest_size=32).hexdigest()}"


def _whole_floats_as_integers(value: Any) -> Any:
    # A bundle that was written and read again may have 365.0 instead of 365.
    if isinstance(value, dict):
        return {name: _whole_floats_as_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole_floats_as_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _settings_of(log: SqliteFile) -> AuditSettings:
    head = audit.read_head(log)
    try:
        return AuditSettings.model_validate({"mode": head.mode, "query": head.query})
    except ValidationError as error:
        raise audit.tampered(log.path, "its settings are not known") from error


def _has_head(log: SqliteFile, known: StoredAudit) -> bool:
    return not known.log_id or audit.reaches(log, known.log_id, known.rows, known.hash)


def _numbered_for_agent(row: AuditRow, number: int) -> AuditRow:
    # What the policy keeps from an agent, it must not learn of here either.
    blocked = {code: count for code, count in row.blocked.items() if code in REJECTION_CODES}
    return row.model_copy(update={"seq": number, "previous": "", "hash": "", "blocked": blocked})


class AuditNeeds(NamedTuple):
    """What a corpus needs of its audit.

    Attributes:
        known: what the corpus remembers of it.
        has_policy: whether it has a policy.
        is_shared: whether several machines use it, or it answers in place of such a corpus: each
            machine has its own audit of the calls that it answers.
    """

    known: StoredAudit
    has_policy: bool
    is_shared: bool

    @classmethod
    def of(cls, corpus: Corpus) -> AuditNeeds:
        """What an open corpus needs."""
        is_shared = corpus.is_shared or corpus.in_place_of is not None
        return cls(load_stored_audit(corpus), records.has_policy(corpus), is_shared)


class Recorder:
    """Records to the audit of one corpus, which it opens for the first record.

    If an optional record could not be written, a warning is logged.

    Args:
        path: the corpus file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log: AuditLog | None = None
        self._warned = ""

    def record(self, of: Corpus | AuditNeeds, entry: Callable[[], AuditEntry]) -> None:
        """Write an entry, if the audit's settings or a policy ask for records.

        Args:
            of: an open corpus, or what it needs.
            entry: makes the entry.

        Raises:
            StorageError: ``audit_unwritable``: it is required, and could not be written.
        """
        needs = of if isinstance(of, AuditNeeds) else AuditNeeds.of(of)
        log = self._open_log(needs)
        if log is not None:
            _, warning = log.record(entry(), needs.known)
            # Not again until it changes: a thousand answers would repeat the same warning.
            if warning and warning != self._warned:
                _LOGGER.warning(warning)
            self._warned = warning

    def record_answer(
        self,
        needs: AuditNeeds,
        bundle: RetrievalBundle,
        agent: str | None,
        action: str | None,
        hidden: Callable[[], dict[str, int]],
    ) -> None:
        """Record an answer, and the approvals that it needed.

        Args:
            needs: what the corpus needed in the snapshot of the answer.
            bundle: the answer.
            agent: who asked.
            action: the action that was asked for.
            hidden: how many passages each rule of the policy kept from the agent.

        Raises:
            StorageError: as for :meth:`record`.
        """
        approved = [approval.approved_by for approval in bundle.approvals or ()]
        self.record(
            needs,
            lambda: AuditEntry(
                kind="retrieve",
                agent=agent or "",
                role=bundle.role_id,
                action=action or "read",
                query=bundle.query.task_text,
                bundle_digest=bundle_digest(bundle),
                allowed=len(bundle.selected),
                blocked={code: n for code, n in bundle.rejected_summary.items() if n} | hidden(),
                details={"approved_by": approved} if approved else {},
            ),
        )
        for approval in bundle.approvals or ():
            self.record_event(
                needs,
                "approval",
                agent=agent,
                action=approval.action,
                allowed=len(approval.chunk_ids),
                details={"approved_by": approval.approved_by},
            )

    def record_event(
        self,
        of: Corpus | AuditNeeds,
        kind: AuditKind,
        *,
        agent: str | None = None,
        role: str | None = None,
        details: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """Record something else than an answer; no text and no id of a document.

        For the other fields see :class:`AuditEntry`.

        Raises:
            StorageError: as for :meth:`record`.
        """
        fields |= {"agent": agent or "", "role": role or "", "details": dict(details or {})}
        self.record(of, lambda: AuditEntry(kind=kind, **fields))

    @contextmanager
    def change(
        self, corpus: Corpus, kind: AuditKind, *, agent: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """One write transaction of the corpus, which is committed only if it could be recorded.

        The audit is another file, and its row is written first. So there is no change without its
        record. If the commit fails, there is a record without its change.

        Args:
            corpus: open for writing.
            kind: what is done.
            agent: who does it; ``None`` is the owner.

        Yields:
            The details of the record, to be filled in.

        Raises:
            StorageError: as for :meth:`record`. Nothing was changed.
        """
        with corpus.writing():
            details: dict[str, Any] = {}
            yield details
            self.record_event(corpus, kind, agent=agent, details=details)

    def begin(self, corpus: Corpus) -> None:
        """Create the audit when a policy is set, unless it exists or was lost.

        Raises:
            StorageError: it cannot be created.
        """
        if load_stored_audit(corpus).log_id:
            return
        with AuditLog(self.path) as log:
            log.begin()

    def store_head(self, corpus: Corpus) -> None:
        """Store the audit's head in the corpus, if records are required and none was lost.

        Args:
            corpus: open for writing, outside of a transaction.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: the audit cannot be read.
        """
        known, path = load_stored_audit(corpus), audit_path(self.path)
        if not known.required or not is_there(path):
            return
        with audit.open_audit_reader(path) as log, log.reading():
            head = audit.read_head(log) if _has_head(log, known) else None
        if head and (stored := StoredAudit(True, head.log_id, head.rows, head.hash)) != known:
            with corpus.writing():
                save_stored_audit(corpus, stored)

    def _open_log(self, needs: AuditNeeds) -> AuditLog | None:
        floor: AuditMode = "on" if needs.has_policy else "off"
        if needs.known.required:
            floor = "required"
        if self._log is not None and self._log.floor != floor:
            self.close()
        if self._log is None:
            if floor == "off" and not is_there(audit_path(self.path)):
                return None
            self._log = AuditLog(self.path, floor=floor)
            if needs.is_shared and floor == "on":
                self._log.begin()
        return self._log

    def close(self) -> None:
        """Close the audit's file."""
        log, self._log = self._log, None
        if log is not None:
            log.close()
