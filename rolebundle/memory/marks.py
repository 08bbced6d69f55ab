"""Marks on passages and documents, of the owner and of agents."""

from __future__ import annotations

from datetime import UTC, datetime

from rolebundle.access_control import AccessControl
from rolebundle.contracts.documents import Mark, iso_utc
from rolebundle.contracts.memory import MarkRecord, MarkRequest
from rolebundle.contracts.terms import MarkState
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.policy.access import role_denied
from rolebundle.retrieval.lookup import Referent, find_reference, resolve_reference
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.scan.scan import scan_text
from rolebundle.storage import marks as storage
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.marks import MarkKind, StoredMark
from rolebundle.workspace import Workspace

Target = tuple[MarkKind, str]
"""What a mark is of: a chunk or a document, and its id."""


def _target(reference: str, named: Referent) -> Target:
    """What a reference marks.

    Args:
        reference: a reference.
        named: what it names.

    Raises:
        UsageError: ``bad_target``: it names some lines or passages of a document.
    """
    kind, passage = named.kind, named.passages[0]
    document_id = passage.document.document_id
    exact = [found for found in named.passages if found.locator == reference]
    if len(exact) == 1:
        # The place of a passage, which answers show, and not only some of its lines.
        kind, passage = "chunk", exact[0]
    if kind not in ("chunk", "document"):
        raise UsageError(
            "bad_target",
            f"{reference}: a mark is of one passage or of a whole document",
            f"name {passage.chunk_id} or {document_id}",
        )
    return kind, passage.chunk_id if kind == "chunk" else document_id


def put_mark(
    workspace: Workspace, reference: str, state: MarkState, marked_by: str, reason: str
) -> MarkRecord:
    """Mark a passage or document as the owner, instead of an earlier mark.

    Args:
        workspace: of the corpus.
        reference: a chunk id or a document id.
        state: what it is marked as.
        marked_by: the name of the person or tool.
        reason: why.

    Raises:
        UsageError: nothing has this reference, or it names a part of a document.
    """
    with workspace.recorded_change("mark") as (corpus, details):
        details["state"] = state
        named = resolve_reference(corpus, reference, ReferenceRules(absolute=True))
        mark = Mark(state, marked_by, "owner", scan_text(reason).text, iso_utc(datetime.now(UTC)))
        return _store(corpus, _target(reference, named), mark)


def remove_mark(workspace: Workspace, target: str) -> MarkRecord:
    """Remove a mark as the owner, whoever has made it.

    Args:
        workspace: of the corpus.
        target: the chunk id or document id that is marked, which may be gone, or another
            reference to it.

    Raises:
        UsageError: ``not_marked``.
    """
    with workspace.recorded_change("mark") as (corpus, details):
        details["state"] = "unverified"
        marked = {mark.target: mark.kind for mark in reversed(storage.all_marks(corpus))}
        if target not in marked:
            named = find_reference(corpus, target, ReferenceRules(absolute=True))
            if named is not None and named.kind in ("chunk", "document"):
                target = _target(target, named)[1]
        return _remove(corpus, (marked.get(target, "document"), target))


def all_marks(workspace: Workspace) -> list[MarkRecord]:
    """Every mark, also if it has ended because the text changed."""
    corpus = workspace.corpus
    with workspace.answering_corpus.reading():
        return [
            _mark_record(
                stored,
                ended=storage.text_hash(corpus, stored.kind, stored.target) != stored.text_hash,
            )
            for stored in storage.all_marks(corpus)
        ]


def mark_as_agent(access: AccessControl, request: MarkRequest) -> MarkRecord:
    """Mark a passage or document that an agent sees, or remove the agent's own mark.

    Raises:
        AccessDenied: the policy does not allow the agent to mark, the agent may not set this
            state, or somebody else has marked it.
        UsageError: nothing has this reference, or the agent may not see it; or the reason gives
            instructions to a model.
        CorpusBusy, StorageError: the mark was not stored.
    """
    with access.writing(request.agent, "mark") as (name, corpus, seen, view, details):
        rules = access.reference_rules(view, seen)
        named = resolve_reference(seen, request.id, rules)
        if not all(map(rules.allows_reading, named.passages)):
            raise role_denied(view)
        target = _target(request.id, named)
        _check_own(corpus, target, name)
        details["state"] = request.state
        if request.state == "unverified":
            return _remove(corpus, target)
        reason = _checked_reason(request.reason)
        if request.state != "disputed":
            raise AccessDenied(
                "mark_denied",
                f"an agent may not mark a passage as {request.state}",
                "mark it as disputed, and ask a person: `rolebundle mark` without --agent",
            )
        mark = Mark(request.state, name, "agent", reason, iso_utc(datetime.now(UTC)))
        return _store(corpus, target, mark)


def _checked_reason(reason: str) -> str:
    """The reason of an agent with its secrets masked. Other agents will read it.

    Raises:
        UsageError: ``unsafe_text``: it gives instructions to a model, or hides text.
    """
    result = scan_text(reason)
    kinds = {finding.kind for finding in result.findings}
    if unsafe := sorted(k for k in kinds if not k.startswith(("secret_", "personal_"))):
        raise UsageError(
            "unsafe_text",
            f"the text reads like an attack on other readers: {', '.join(unsafe)}",
            "say in plain words what is wrong",
        )
    return result.text


def _store(corpus: Corpus, target: Target, mark: Mark) -> MarkRecord:
    stored = StoredMark(*target, storage.text_hash(corpus, *target) or "", mark)
    storage.put_mark(corpus, stored)
    increment_generation(corpus)
    return _mark_record(stored, ended=False)


def _remove(corpus: Corpus, target: Target) -> MarkRecord:
    """Remove a mark, which may have ended."""
    stored = storage.mark_of(corpus, *target)
    if stored is None:
        raise UsageError(
            "not_marked", f"{target[1]}: has no mark", "`rolebundle mark list` shows the marks"
        )
    storage.remove_mark(corpus, *target)
    increment_generation(corpus)
    return _mark_record(stored, ended=False).model_copy(update={"state": "unverified"})


def _check_own(corpus: Corpus, target: Target, agent: str) -> None:
    """Check that an agent changes no mark of somebody else."""
    stored = storage.mark_of(corpus, *target)
    if stored is not None and (stored.mark.authority, stored.mark.marked_by) != ("agent", agent):
        author = "the owner" if stored.mark.authority == "owner" else "another agent"
        raise AccessDenied(
            "mark_denied",
            f"{target[1]}: was marked by {author}, and this agent may not change that",
            "tell a person what is wrong with it",
        )


def _mark_record(stored: StoredMark, *, ended: bool) -> MarkRecord:
    return MarkRecord(kind=stored.kind, target=stored.target, ended=ended, **stored.mark._asdict())
