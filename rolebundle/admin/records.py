"""What the owner of a corpus changes in it, each with a record in the audit.

Every function here has the errors of the function that does the work, and those of
:meth:`rolebundle.workspace.Workspace.recorded_change`. No function checks who asks.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.decisions import DecisionRecord, NewDecision
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.facts import FactRecord, RememberedFact, RememberRequest
from rolebundle.contracts.gate import GateStart
from rolebundle.contracts.marks import MarkRecord
from rolebundle.contracts.roots import RootChange
from rolebundle.contracts.terms import MarkState
from rolebundle.errors import UsageError
from rolebundle.ingest import roots as ingested_roots
from rolebundle.policy import access
from rolebundle.scan import quarantine
from rolebundle.scan.confidential import without_secrets
from rolebundle.storage.records import approvals
from rolebundle.verification import marks, remember
from rolebundle.verification.decisions import records
from rolebundle.verification.gate import start as gate
from rolebundle.verification.gate.contract import has_inline_code, load_contract, location_of
from rolebundle.workspace import Workspace

# -- marks and decisions --------------------------------------------------------------------------


def put_mark(
    workspace: Workspace, reference: str, state: MarkState, marked_by: str, reason: str
) -> MarkRecord:
    """See :func:`rolebundle.verification.marks.mark_as_owner`."""
    with workspace.recorded_change("mark") as (corpus, details):
        details["state"] = state
        return marks.mark_as_owner(corpus, reference, state, marked_by, reason)


def remove_mark(workspace: Workspace, target: str) -> MarkRecord:
    """See :func:`rolebundle.verification.marks.remove_mark_as_owner`."""
    with workspace.recorded_change("mark") as (corpus, details):
        details["state"] = "unverified"
        return marks.remove_mark_as_owner(corpus, target)


def all_marks(workspace: Workspace) -> list[MarkRecord]:
    """Every mark, also those that have ended because the text changed."""
    with workspace.answering_corpus.reading():
        return marks.list_marks(workspace.corpus)


def record_decision(workspace: Workspace, new: NewDecision) -> DecisionRecord:
    """Record a decision of the owner. The corpus file is created if it is missing."""
    with workspace.recorded_change("decide", create=True) as (corpus, details):
        record = records.record_decision(corpus, new, datetime.now(UTC))
        details.update(decision=record.id, effect=record.effect, state=record.state)
    return record


def end_decision(
    workspace: Workspace, decision_id: str, ended_by: str, reason: str
) -> DecisionRecord:
    """See :func:`rolebundle.verification.decisions.records.end_decision`."""
    with workspace.recorded_change("decide") as (corpus, details):
        record = records.end_decision(corpus, decision_id, ended_by, reason, datetime.now(UTC))
        details.update(decision=record.id, state=record.state)
    return record


def all_decisions(workspace: Workspace) -> list[DecisionRecord]:
    """Every decision, with its present state, ordered by scope and number."""
    with workspace.answering_corpus.reading():
        return records.list_decisions(workspace.corpus, datetime.now(UTC))


# -- remembered facts -----------------------------------------------------------------------------


def file_fact(workspace: Workspace, request: RememberRequest, remembered_by: str) -> RememberedFact:
    """File a fact with its source as the owner; the agent of the request is ignored."""
    with workspace.recorded_change("remember") as (corpus, details):
        author, now = remember.Author(remembered_by), iso_utc(datetime.now(UTC))
        fact, chunk = remember.remember(corpus, corpus, request, author, now)
        details.update(_fact_details(fact, remembered_by))
    remember.embed_passage(workspace, chunk)
    return fact


def promote_fact(workspace: Workspace, document_id: str, promoted_by: str) -> FactRecord:
    """Raise a fact's trust; see :func:`rolebundle.verification.remember.promote`."""
    with workspace.recorded_change("promote") as (corpus, details):
        fact = remember.promote(corpus, document_id, promoted_by)
        details.update(_fact_details(fact, promoted_by))
    return fact


def forget_fact(workspace: Workspace, document_id: str, forgotten_by: str) -> FactRecord:
    """Remove a fact, and return it. A purge also erases its bytes."""
    with workspace.recorded_change("forget") as (corpus, details):
        fact = remember.forget(corpus, document_id)
        details.update(_fact_details(fact, forgotten_by))
    return fact


def all_facts(workspace: Workspace) -> list[FactRecord]:
    """Every remembered fact, the last filed first."""
    with workspace.answering_corpus.reading():
        return remember.list_facts(workspace.corpus)


def _fact_details(fact: RememberedFact, name: str) -> dict[str, str]:
    return {"state": fact.state, "by": without_secrets(name)}


# -- quarantine and roots -------------------------------------------------------------------------


def release_document(workspace: Workspace, document_id: str) -> None:
    """See :func:`rolebundle.scan.quarantine.release_document`."""
    with workspace.recorded_change("release") as (corpus, _):
        quarantine.release_document(corpus, document_id)


def drop_document(workspace: Workspace, document_id: str) -> None:
    """See :func:`rolebundle.scan.quarantine.drop_document`."""
    with workspace.recorded_change("drop") as (corpus, _):
        quarantine.drop_document(corpus, document_id)


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
    """See :func:`rolebundle.verification.gate.start.count_blocks`."""
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
    approved_at = iso_utc(datetime.now(UTC))
    approval = approvals.Approval(str(loaded.path), loaded.content_hash, approved_at)
    with workspace.recorded_change("trust", create=True) as (corpus, details):
        approvals.approve(corpus, approval)
        details["approved"] = 1
    return approval.location


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
