"""Putting on record what was asked and done, where a record is wanted.

Apart from the audit itself, which takes longer to load than many an answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolebundle.storage import policy_rows
from rolebundle.storage.connection import Corpus
from rolebundle.storage.location import audit_path, is_there

if TYPE_CHECKING:
    from rolebundle.contracts.audit import AuditEntry, AuditKind
    from rolebundle.contracts.bundle import RetrievalBundle
    from rolebundle.policy.audit import AuditLog


class Recorder:
    """The audit of one corpus, opened when the first record is wanted.

    Args:
        path: the corpus file.
        warn: told what a person should hear when a record could not be made and none is required.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] | None = None) -> None:
        self.path = path
        self.warn = warn or _to_standard_error
        self._log: AuditLog | None = None
        self._warned = ""

    def record(self, corpus: Corpus, entry: Callable[[], AuditEntry]) -> None:
        """Put an entry on record, if one is wanted: by the audit's settings, or by a policy.

        Raises:
            StorageError: ``audit_unwritable``: it is required, and could not be made.
        """
        log = self._wanted(corpus)
        if log is not None:
            warning = log.record(entry()).warning
            # Once, and again when it is another one: a thousand answers say nothing new.
            if warning and warning != self._warned:
                self.warn(warning)
            self._warned = warning

    def answer(
        self, corpus: Corpus, bundle: RetrievalBundle, agent: str | None, action: str | None
    ) -> None:
        """Put an answer on record, and the approval that it needed.

        Raises:
            StorageError: as for :meth:`record`.
        """

        def entry() -> AuditEntry:
            from rolebundle.policy.audit import entry_of_bundle

            approved = [one.approved_by for one in bundle.approvals or ()]
            return entry_of_bundle(
                bundle,
                agent=agent or "",
                action=action or "read",
                details={"approved_by": approved} if approved else None,
            )

        self.record(corpus, entry)
        for one in bundle.approvals or ():
            self.note(
                corpus,
                "approval",
                agent=agent,
                action=one.action,
                allowed=len(one.chunk_ids),
                details={"approved_by": one.approved_by},
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
        """Put on record something else than an answer; no text and no id of a document.

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

    def begin(self) -> None:
        """Make the audit of a corpus that a policy was set for, unless somebody has set it before.

        Raises:
            StorageError: it cannot be made.
        """
        from rolebundle.contracts.audit import AuditSettings
        from rolebundle.policy.audit import AuditLog

        with AuditLog(self.path) as log:
            log.begin(AuditSettings(mode="on"))

    def _wanted(self, corpus: Corpus) -> AuditLog | None:
        if self._log is None:
            governed = policy_rows.ever_set(corpus)
            if not governed and not is_there(audit_path(self.path)):
                return None
            from rolebundle.policy.audit import AuditLog

            self._log = AuditLog(self.path, floor="on" if governed else "off")
        return self._log

    def close(self) -> None:
        """Close the audit's file."""
        log, self._log = self._log, None
        if log is not None:
            log.close()


def _to_standard_error(warning: str) -> None:
    print(f"warning: {warning}", file=sys.stderr)
