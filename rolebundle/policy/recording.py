"""The recorder of one engine: it writes answers and other calls to the audit, if that is on.

The audit's modules are imported for the first record: they are 5% of a cold start, and most corpora
have no audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolebundle.storage.connection import Corpus
from rolebundle.storage.location import audit_path, is_there
from rolebundle.storage.records import stored_policy
from rolebundle.storage.records.stored_audit import (
    StoredAudit,
    load_stored_audit,
    save_stored_audit,
)

if TYPE_CHECKING:
    from rolebundle.contracts.audit import AuditEntry, AuditKind, AuditMode
    from rolebundle.contracts.bundle import RetrievalBundle
    from rolebundle.policy.audit import AuditLog


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

    def record(self, corpus: Corpus, entry: Callable[[], AuditEntry]) -> None:
        """Write an entry, if the audit's settings or a policy ask for records.

        Raises:
            StorageError: ``audit_unwritable``: it is required, and could not be written.
        """
        known = load_stored_audit(corpus)
        log = self._open_log(corpus, known)
        if log is not None:
            warning = log.record(entry(), known).warning
            # Not again until it changes: a thousand answers would repeat the same warning.
            if warning and warning != self._warned:
                import logging

                logging.getLogger("rolebundle").warning(warning)
            self._warned = warning

    def answer(
        self,
        corpus: Corpus,
        bundle: RetrievalBundle,
        agent: str | None,
        action: str | None,
        hidden: Callable[[], Mapping[str, int]],
    ) -> None:
        """Record an answer, and the approvals that it needed.

        Args:
            corpus: an open corpus.
            bundle: the answer.
            agent: who asked.
            action: the action that was asked for.
            hidden: how many passages each rule of the policy kept from the agent.

        Raises:
            StorageError: as for :meth:`record`.
        """

        def entry() -> AuditEntry:
            from rolebundle.policy.audit import entry_of_bundle

            approved = [approval.approved_by for approval in bundle.approvals or ()]
            return entry_of_bundle(
                bundle,
                agent=agent or "",
                action=action or "read",
                hidden=hidden(),
                details={"approved_by": approved} if approved else None,
            )

        self.record(corpus, entry)
        for approval in bundle.approvals or ():
            self.note(
                corpus,
                "approval",
                agent=agent,
                action=approval.action,
                allowed=len(approval.chunk_ids),
                details={"approved_by": approval.approved_by},
            )

    def note(
        self,
        corpus: Corpus,
        kind: AuditKind,
        *,
        agent: str | None = None,
        role: str | None = None,
        action: str = "",
        query: str = "",
        allowed: int = 0,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Record something else than an answer; no text and no id of a document.

        Raises:
            StorageError: as for :meth:`record`.
        """

        def entry() -> AuditEntry:
            from rolebundle.contracts.audit import AuditEntry

            return AuditEntry(
                kind=kind,
                agent=agent or "",
                role=role or "",
                action=action,
                query=query,
                allowed=allowed,
                details=dict(details or {}),
            )

        self.record(corpus, entry)

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
            self.note(corpus, kind, agent=agent, details=details)

    def begin(self, corpus: Corpus) -> None:
        """Create the audit when a policy is set, unless it exists or was lost.

        Raises:
            StorageError: it cannot be created.
        """
        if load_stored_audit(corpus).log_id:
            return
        from rolebundle.contracts.audit import AuditSettings
        from rolebundle.policy.audit import AuditLog

        with AuditLog(self.path) as log:
            log.begin(AuditSettings(mode="on"))

    def store_head(self, corpus: Corpus) -> None:
        """Store the audit's head in the corpus, if records are required.

        Args:
            corpus: open for writing, outside of a transaction.
        """
        known = load_stored_audit(corpus)
        if known.required:
            from rolebundle.policy.audit import AuditLog

            with AuditLog(self.path) as log:
                stored = log.remembered(known)
            if stored != known:
                with corpus.writing():
                    save_stored_audit(corpus, stored)

    def _open_log(self, corpus: Corpus, known: StoredAudit) -> AuditLog | None:
        floor: AuditMode = "on" if stored_policy.has_policy(corpus) else "off"
        if known.required:
            floor = "required"
        if self._log is not None and self._log.floor != floor:
            self.close()
        if self._log is None:
            if floor == "off" and not is_there(audit_path(self.path)):
                return None
            from rolebundle.policy.audit import AuditLog

            self._log = AuditLog(self.path, floor=floor)
        return self._log

    def close(self) -> None:
        """Close the audit's file."""
        log, self._log = self._log, None
        if log is not None:
            log.close()
