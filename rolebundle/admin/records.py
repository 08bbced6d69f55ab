"""The owner's functions on records: policy, quarantine, roots, marks, audit, replicas."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.ingest import RootChange
from rolebundle.contracts.policy import AuditMode, AuditSettings, QueryMode
from rolebundle.contracts.terms import Sensitivity
from rolebundle.contracts.upkeep import PublishReport, PullReport, ReplicaManifest
from rolebundle.errors import UsageError
from rolebundle.ingest import roots as ingested_roots
from rolebundle.policy import access
from rolebundle.policy.access import resolve_audience
from rolebundle.policy.audit import AuditLog
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions, forget, publish
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import PublicKey
from rolebundle.storage import partition, store
from rolebundle.storage.address import address_of, replica_of
from rolebundle.storage.corpus import Corpus, corpus_counts, increment_generation
from rolebundle.storage.partition import Flagged
from rolebundle.storage.publications import load_manifest, refuse_changes
from rolebundle.storage.records import StoredAudit, has_policy, load_stored_audit, save_stored_audit
from rolebundle.workspace import Workspace

# -- quarantine and roots -------------------------------------------------------------------------


def flagged_document(corpus: Corpus, name: str) -> Flagged:
    """What the scan found in the document with this id or path.

    Raises:
        UsageError: there is no such document, or nothing was found in it.
    """
    document = partition.flagged_document(corpus, name)
    if document is None:
        problem = f"{name}: no document of that id or path has findings"
        step = "`rolebundle corpus quarantine list --all` names those that have"
        raise UsageError("not_flagged", problem, step)
    return document


def _quarantined_document(corpus: Corpus, document_id: str) -> Flagged:
    document = flagged_document(corpus, document_id)
    if document.scanned.verdict != "quarantine":
        problem = f"{document_id}: is not in quarantine but {document.scanned.verdict}"
        step = "`rolebundle corpus quarantine list` names those that are"
        raise UsageError("not_quarantined", problem, step)
    return document


def release_document(workspace: Workspace, document_id: str) -> None:
    """Release a document from quarantine for as long as its text does not change.

    Raises:
        UsageError: it is not in quarantine.
    """
    with workspace.recorded_change("release") as (corpus, _):
        partition.release(corpus, _quarantined_document(corpus, document_id))
        increment_generation(corpus)


def drop_document(workspace: Workspace, document_id: str) -> None:
    """Remove a quarantined document. It comes back only if its file changes.

    Raises:
        UsageError: it is not in quarantine.
    """
    with workspace.recorded_change("drop") as (corpus, _):
        # Its file stays, so that it is not read again until it changes.
        store.remove_documents(corpus, [_quarantined_document(corpus, document_id).rowid])
        store.drop_unused(corpus)
        increment_generation(corpus)


def move_root(workspace: Workspace, old: Path, new: Path) -> RootChange:
    """See :func:`rolebundle.ingest.roots.move_root`."""
    with workspace.recorded_change("ingest") as (corpus, details):
        change = ingested_roots.move_root(corpus, old, new)
        details["moved"] = change.documents
    return change


def remove_root(workspace: Workspace, path: Path, *, confirmed: bool = False) -> RootChange:
    """See :func:`rolebundle.ingest.roots.remove_root`."""
    if not confirmed:
        return ingested_roots.remove_root(workspace.corpus, path, confirmed=False)
    with workspace.recorded_change("ingest") as (corpus, details):
        change = ingested_roots.remove_root(corpus, path, confirmed=True)
        details["removed"] = change.documents
    return change


# -- the policy -----------------------------------------------------------------------------------


def set_policy(workspace: Workspace, content: str, kind: str, location: str = "") -> int:
    """Put a policy into force.

    Args:
        workspace: of the corpus.
        content: the policy's text.
        kind: ``toml`` or ``json``.
        location: the policy file; empty if there is none. If the file is missing or changed later,
            every agent is denied.

    Returns:
        The number of documents that moved to another compartment.

    Raises:
        ConfigurationError: the policy is malformed. The former policy stays in force.
        StorageError: the audit cannot be created or written. The former policy stays in force.
    """
    now = iso_utc(datetime.now(UTC))
    with workspace.recorded_change("scopes") as (corpus, details):
        moved = access.set_policy(corpus, content, kind, location, now)
        workspace.recorder.begin(corpus)
        details["moved"] = moved
    return moved


def publish_replica(
    workspace: Workspace,
    folder: PublishedFolder,
    options: PublishOptions,
    *,
    agent: str = "",
    scopes: Sequence[str] = (),
    level: Sensitivity | None = None,
) -> PublishReport:
    """Publish a replica for an agent, or for everyone up to a level.

    See :func:`rolebundle.replication.publish.publish`, and for the arguments
    :func:`rolebundle.policy.access.resolve_audience`.
    """
    corpus = workspace.corpus
    refuse_changes(corpus)
    audience = resolve_audience(corpus, folder.target, agent, scopes, level)
    report = publish(workspace.path, audience, folder, options)
    details = {"generation": report.manifest.generation, "for": audience.agent}
    workspace.record_event("publish", details=details)
    return report


def forget_target(workspace: Workspace, target: str, *, confirmed: bool) -> None:
    """Forget a target; see :func:`rolebundle.replication.publish.forget`."""
    refuse_changes(workspace.corpus)
    publication = forget(workspace.path, target, confirmed=confirmed)
    details = {"forgotten": publication.generation, "for": publication.agent}
    workspace.record_event("publish", details=details)


def pull_replica(workspace: Workspace, folder: PublishedFolder, key: PublicKey) -> PullReport:
    """Replace the replica by the published one; see :mod:`rolebundle.replication.pull`.

    That of a database is beside its link, and answers if the database cannot be reached.
    """
    if address_of(workspace.path):
        beside = Workspace(replica_of(workspace.path))
        report = pull_replica(beside, folder, key)
        _check_stand_in(workspace.corpus, beside.path, report.manifest)
        return report
    report = pull(folder, workspace.path, key)
    workspace.refresh()
    if report.manifest.policy_digest:
        # Also if it is current: an earlier pull may have been killed before it came to this.
        workspace.recorder.begin(workspace.corpus)
    if report.state == "updated":
        workspace.record_event("pull", details={"generation": report.manifest.generation})
    return report


def _check_stand_in(database: Corpus, replica: Path, manifest: ReplicaManifest) -> None:
    """Delete a replica that would answer otherwise than its database.

    Raises:
        UsageError: ``replica_unsuitable``: it is of another corpus, or for everyone, and the
            database has a policy.
    """
    is_other = manifest.corpus_id != corpus_counts(database).corpus_id
    if is_other or (has_policy(database) and not manifest.agent):
        replica.unlink()
        problem = (
            "is of another corpus" if is_other else "is for everyone, and the database has a policy"
        )
        raise UsageError(
            "replica_unsuitable",
            f"{replica}: {problem}; it was deleted",
            "publish one for an agent from a copy of the database: `rolebundle corpus copy`, "
            "`rolebundle replica publish TARGET --agent ID`",
        )


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
        settings = log.settings()
        if mode is None and query is None:
            return settings
        settings = AuditSettings(mode=mode or settings.mode, query=query or settings.query)
        if known.required != (settings.mode == "required"):
            # The corpus would have to remember it.
            refuse_changes(workspace.corpus)
        lost = known.required and not log.has(known)
        log.set(settings, {"lost_rows": known.rows} if lost else {})
    required = settings.mode == "required"
    if (required or known.required) and load_manifest(workspace.corpus) is None:
        with workspace.open_writer() as corpus, corpus.writing():
            save_stored_audit(corpus, StoredAudit(required))
    return settings
