"""The owner's functions on records: policy, quarantine, roots, marks, audit, replicas."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.gate import GateStart
from rolebundle.contracts.ingest import RootChange
from rolebundle.contracts.memory import (
    DecisionRecord,
    FactRecord,
    MarkRecord,
    NewDecision,
    RememberedFact,
    RememberRequest,
)
from rolebundle.contracts.policy import AuditMode, AuditSettings, QueryMode
from rolebundle.contracts.terms import MarkState
from rolebundle.contracts.upkeep import PublishReport, PullReport, ReplicaManifest
from rolebundle.errors import UsageError
from rolebundle.ingest import roots as ingested_roots
from rolebundle.policy import access
from rolebundle.policy.access import resolve_audience
from rolebundle.policy.audit import AuditLog
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions, forget, publish
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import PrivateKey, PublicKey
from rolebundle.scan import scan
from rolebundle.scan.confidential import without_secrets
from rolebundle.storage import records as approvals
from rolebundle.storage.address import address_of, replica_of
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.publications import load_manifest, refuse_changes
from rolebundle.storage.records import StoredAudit, load_stored_audit, save_stored_audit
from rolebundle.verification import decisions, gate, memory
from rolebundle.verification.gate import has_inline_code, load_contract, location_of
from rolebundle.workspace import Workspace

# -- marks and decisions --------------------------------------------------------------------------


def put_mark(
    workspace: Workspace, reference: str, state: MarkState, marked_by: str, reason: str
) -> MarkRecord:
    """See :func:`rolebundle.verification.memory.mark_as_owner`."""
    with workspace.recorded_change("mark") as (corpus, details):
        details["state"] = state
        return memory.mark_as_owner(corpus, reference, state, marked_by, reason)


def remove_mark(workspace: Workspace, target: str) -> MarkRecord:
    """See :func:`rolebundle.verification.memory.remove_mark_as_owner`."""
    with workspace.recorded_change("mark") as (corpus, details):
        details["state"] = "unverified"
        return memory.remove_mark_as_owner(corpus, target)


def all_marks(workspace: Workspace) -> list[MarkRecord]:
    """Every mark, also if it has ended because the text changed."""
    with workspace.answering_corpus.reading():
        return memory.list_marks(workspace.corpus)


def record_decision(workspace: Workspace, new: NewDecision) -> DecisionRecord:
    """Record a decision of the owner. The corpus file is created if it is missing."""
    with workspace.recorded_change("decide", create=True) as (corpus, details):
        record = decisions.record_decision(corpus, new, datetime.now(UTC))
        details.update(decision=record.id, effect=record.effect, state=record.state)
    return record


def end_decision(
    workspace: Workspace, decision_id: str, ended_by: str, reason: str
) -> DecisionRecord:
    """See :func:`rolebundle.verification.decisions.end_decision`."""
    with workspace.recorded_change("decide") as (corpus, details):
        record = decisions.end_decision(corpus, decision_id, ended_by, reason, datetime.now(UTC))
        details.update(decision=record.id, state=record.state)
    return record


def all_decisions(workspace: Workspace) -> list[DecisionRecord]:
    """Every decision, with its present state, ordered by scope and number."""
    with workspace.answering_corpus.reading():
        return decisions.list_decisions(workspace.corpus, datetime.now(UTC))


# -- remembered facts -----------------------------------------------------------------------------


def file_fact(workspace: Workspace, request: RememberRequest, remembered_by: str) -> RememberedFact:
    """File a fact with its source as the owner; the agent of the request is ignored."""
    with workspace.recorded_change("remember") as (corpus, details):
        author, now = memory.Author(remembered_by), iso_utc(datetime.now(UTC))
        fact, chunk = memory.remember(corpus, corpus, request, author, now)
        details.update(_fact_details(fact, remembered_by))
    memory.embed_passage(workspace, chunk)
    return fact


def promote_fact(workspace: Workspace, document_id: str, promoted_by: str) -> FactRecord:
    """Raise a fact's trust; see :func:`rolebundle.verification.memory.promote`."""
    with workspace.recorded_change("promote") as (corpus, details):
        fact = memory.promote(corpus, document_id, promoted_by)
        details.update(_fact_details(fact, promoted_by))
    return fact


def forget_fact(workspace: Workspace, document_id: str, forgotten_by: str) -> FactRecord:
    """Remove a fact, and return it. A purge also erases its bytes."""
    with workspace.recorded_change("forget") as (corpus, details):
        fact = memory.forget(corpus, document_id)
        details.update(_fact_details(fact, forgotten_by))
    return fact


def all_facts(workspace: Workspace) -> list[FactRecord]:
    """Every remembered fact, the last filed first."""
    with workspace.answering_corpus.reading():
        return memory.list_facts(workspace.corpus)


def _fact_details(fact: RememberedFact, name: str) -> dict[str, str]:
    return {"state": fact.state, "by": without_secrets(name)}


# -- quarantine and roots -------------------------------------------------------------------------


def release_document(workspace: Workspace, document_id: str) -> None:
    """See :func:`rolebundle.scan.scan.release_document`."""
    with workspace.recorded_change("release") as (corpus, _):
        scan.release_document(corpus, document_id)


def drop_document(workspace: Workspace, document_id: str) -> None:
    """See :func:`rolebundle.scan.scan.drop_document`."""
    with workspace.recorded_change("drop") as (corpus, _):
        scan.drop_document(corpus, document_id)


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


# -- gates and the policy -------------------------------------------------------------------------


def start_gate(workspace: Workspace, contract: Path, *, restart: bool = False) -> GateStart:
    """Record the state of the files that a contract names; ``restart`` replaces an earlier one.

    The corpus file is created if it is missing.
    """
    loaded = load_contract(contract)
    # Before the lock, which others would wait for: it reads all files.
    baseline = gate.make_baseline(loaded, workspace.path)
    with workspace.recorded_change("gate", create=True) as (corpus, details):
        start = gate.start_gate(corpus, loaded, baseline, datetime.now(UTC), restart=restart)
        details.update(
            step="restart" if start.restarts else "start",
            contract_hash=start.contract_hash,
            restarts=start.restarts,
        )
    return start


def count_blocks(workspace: Workspace, contract: Path, blocks: int) -> None:
    """See :func:`rolebundle.verification.gate.count_blocks`."""
    with workspace.open_writer() as corpus:
        gate.count_blocks(corpus, contract, blocks)


def approve_contract(workspace: Workspace, contract: Path, *, inline_code: bool = False) -> str:
    """Let the commands of a contract be run until its content changes; return its location.

    The corpus file is created if it is missing.

    Raises:
        UsageError: there is no such contract; or ``inline_code`` is false, and a command starts a
            shell, or an interpreter with code in an argument.
        ConfigurationError: the contract is wrong.
    """
    loaded = load_contract(contract)
    for command in loaded.commands:
        if not inline_code and has_inline_code(command):
            raise UsageError(
                "inline_code",
                f"{loaded.path}: has a shell or code as argument: {shlex.join(command)[:200]}",
                "put the code into a file beside the contract, or use --inline-code",
            )
    location, approved_at = str(loaded.path), iso_utc(datetime.now(UTC))
    with workspace.recorded_change("trust", create=True) as (corpus, details):
        approvals.approve(corpus, location, loaded.content_hash, approved_at)
        details["approved"] = 1
    return location


def revoke_contract(workspace: Workspace, contract: Path) -> str:
    """Withdraw the approval of a contract, which may be gone; return its location.

    Raises:
        UsageError: it was not approved.
    """
    location = str(location_of(contract))
    with workspace.recorded_change("trust") as (corpus, details):
        if not approvals.revoke(corpus, location):
            raise UsageError(
                "not_approved",
                f"{location}: was not approved",
                "`rolebundle gate approve` shows what was approved",
            )
        details["revoked"] = 1
    return location


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
    key: PrivateKey,
    options: PublishOptions,
    *,
    agent: str = "",
    scopes: Sequence[str] = (),
    level: str = "",
) -> PublishReport:
    """Publish a replica for an agent, or for everyone up to a level.

    See :func:`rolebundle.replication.publish.publish`, and for the arguments
    :func:`rolebundle.policy.access.resolve_audience`.
    """
    corpus = workspace.corpus
    refuse_changes(corpus)
    audience = resolve_audience(corpus, folder.target, agent, scopes, level)
    report = publish(workspace.path, audience, folder, key, options)
    workspace.note(
        "publish", details={"generation": report.manifest.generation, "for": audience.agent}
    )
    return report


def forget_target(workspace: Workspace, target: str, *, confirmed: bool) -> None:
    """Forget a target; see :func:`rolebundle.replication.publish.forget`."""
    refuse_changes(workspace.corpus)
    publication = forget(workspace.path, target, confirmed=confirmed)
    workspace.note(
        "publish", details={"forgotten": publication.generation, "for": publication.agent}
    )


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
        workspace.note("pull", details={"generation": report.manifest.generation})
    return report


def _check_stand_in(database: Corpus, replica: Path, manifest: ReplicaManifest) -> None:
    """Delete a replica that would answer otherwise than its database.

    Raises:
        UsageError: ``replica_unsuitable``: it is of another corpus, or for everyone, and the
            database has a policy.
    """
    is_other = manifest.corpus_id != corpus_counts(database).corpus_id
    if is_other or (approvals.has_policy(database) and not manifest.agent):
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
