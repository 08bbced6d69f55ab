"""The audit of a corpus: its settings, its rows, and the rows of its replicas."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.audit import (
    AuditMode,
    AuditRow,
    AuditSettings,
    CollectedAudits,
    QueryMode,
)
from rolebundle.contracts.document import iso_utc
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_collection import collect
from rolebundle.storage.records.replica import load_record, refuse_changes
from rolebundle.storage.records.stored_audit import (
    StoredAudit,
    load_stored_audit,
    save_stored_audit,
)
from rolebundle.workspace import Workspace


def set_audit(
    workspace: Workspace, mode: AuditMode | None = None, query: QueryMode | None = None
) -> AuditSettings:
    """Change the settings of the audit, and return those in effect.

    The mode ``required`` is also stored in the corpus, with the audit's head: then an audit
    that is missing, or that lost its last rows, gives no answers. Setting it again accepts the
    audit that is there, and records which head is missing. In a replica its publisher decides
    whether records are required.

    Raises:
        UsageError: there is no corpus; or it is a replica, and would have to be changed.
        CorpusBusy, WrongFile, CorpusCorrupt, StorageError: they were not changed.
    """
    known = load_stored_audit(workspace.corpus)
    with AuditLog(workspace.path, floor="required" if known.required else "off") as log:
        if mode is None and query is None:
            return log.settings()
        settings = log.settings()
        settings = AuditSettings(mode=mode or settings.mode, query=query or settings.query)
        if known.required != (settings.mode == "required"):
            # The corpus would have to remember it.
            refuse_changes(workspace.corpus)
        lost = known.required and not log.has(known)
        log.set(settings, {"lost_rows": known.rows} if lost else {})
    required = settings.mode == "required"
    if (required or known.required) and load_record(workspace.corpus) is None:
        with workspace.open_writer() as corpus, corpus.writing():
            save_stored_audit(corpus, StoredAudit(required))
    return settings


def audit_rows(workspace: Workspace, limit: int) -> tuple[AuditSettings, list[AuditRow]]:
    """The settings of the audit, and its last rows, the newest first; none without an audit.

    Raises:
        WrongFile, CorpusCorrupt, StorageError: it cannot be read.
    """
    with AuditLog(workspace.path) as log:
        rows = [*log.rows(limit=limit, newest=True)] if log.exists else []
        return log.settings(), rows


def collect_audits(workspace: Workspace, sources: Sequence[Path]) -> CollectedAudits:
    """Add the new rows of replicas' audits to the collection beside the corpus.

    See :func:`rolebundle.policy.audit_collection.collect`.

    Raises:
        UsageError: there is no corpus.
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the collection cannot be written.
    """
    corpus = workspace.corpus
    logs = collect(workspace.path, sources, lambda: iso_utc(datetime.now(UTC)))
    details = {
        "logs": len({log.log_id for log in logs if log.log_id}),
        "rows": sum(log.new_rows for log in logs),
        "flawed": sum(log.state != "ok" for log in logs),
    }
    workspace.recorder.note(corpus, "collect", details=details)
    return CollectedAudits(logs=logs)
