"""Who may mark which passage as what.

Only a person's mark changes answers. An agent may dispute what it sees, which other readers are
shown, and remove its own marks.
"""

from __future__ import annotations

from datetime import UTC, datetime

from rolebundle.access_control import AccessControl
from rolebundle.contracts.document import Mark, iso_utc
from rolebundle.contracts.marks import MarkRecord, MarkRequest
from rolebundle.contracts.terms import MarkState
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.policy.access import role_denied
from rolebundle.retrieval.lookups.lookup import (
    Named,
    ReferenceScope,
    find_reference,
    resolve_reference,
)
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import increment_generation
from rolebundle.storage.records import marks as storage
from rolebundle.storage.records.marks import MarkKind, StoredMark
from rolebundle.verification.statements import checked_statement

Target = tuple[MarkKind, str]
"""What a mark is of: a chunk or a document, and its id."""


def resolve_target(reference: str, named: Named) -> Target:
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


def mark_as_owner(
    corpus: Corpus, reference: str, state: MarkState, marked_by: str, reason: str
) -> MarkRecord:
    """Mark a passage or document as the owner.

    Args:
        corpus: open for writing, inside a write transaction.
        reference: a chunk id or a document id.
        state: what it is marked as.
        marked_by: the name of the person or tool.
        reason: why.

    Raises:
        UsageError: nothing has this reference, or it names a part of a document.
    """
    named = resolve_reference(corpus, reference, ReferenceScope(absolute=True))
    target = resolve_target(reference, named)
    mark = Mark(state, marked_by, "owner", reason, iso_utc(datetime.now(UTC)))
    return put_mark(corpus, target, mark)


def remove_mark_as_owner(corpus: Corpus, target: str) -> MarkRecord:
    """Remove a mark, whoever has made it.

    Args:
        corpus: open for writing, inside a write transaction.
        target: the chunk id or document id that is marked, which may be gone, or another
            reference to it.

    Raises:
        UsageError: it has no mark.
    """
    marked = {mark.target: mark.kind for mark in reversed(list_marks(corpus))}
    if target not in marked:
        named = find_reference(corpus, target, ReferenceScope(absolute=True))
        if named is not None and named.kind in ("chunk", "document"):
            target = resolve_target(target, named)[1]
    return remove_mark(corpus, (marked.get(target, "document"), target))


def mark_as_agent(access: AccessControl, request: MarkRequest) -> MarkRecord:
    """Mark a passage or document that an agent sees, or remove the agent's own mark.

    Raises:
        AccessDenied: the policy does not allow the agent to mark, the agent may not set this
            state, or somebody else has marked it.
        UsageError: nothing has this reference, or the agent may not see it; or the reason gives
            instructions to a model.
        CorpusBusy, StorageError: the mark was not stored.
    """
    with access.writing(request.agent, "mark") as writing:
        scope, name = access.reference_scope(writing.view), writing.name
        named = resolve_reference(writing.seen, request.id, scope)
        if scope.may_read is not None and not all(map(scope.may_read, named.passages)):
            raise role_denied(writing.view)
        target = resolve_target(request.id, named)
        _check_own(writing.corpus, target, name)
        writing.details["state"] = request.state
        if request.state == "unverified":
            return remove_mark(writing.corpus, target)
        mark = Mark(request.state, name, "agent", request.reason, iso_utc(datetime.now(UTC)))
        return put_mark(writing.corpus, target, mark)


def put_mark(corpus: Corpus, target: Target, mark: Mark) -> MarkRecord:
    """Store a mark instead of an earlier one.

    Args:
        corpus: open for writing, inside a write transaction.
        target: what is marked.
        mark: the mark.

    Raises:
        AccessDenied: an agent may not set this state.
        UsageError: the reason of an agent gives instructions to a model.
    """
    mark = mark._replace(reason=checked_statement(mark.reason, mark.authority))
    if mark.authority == "agent" and mark.state != "disputed":
        raise AccessDenied(
            "mark_denied",
            f"an agent may not mark a passage as {mark.state}",
            "mark it as disputed, and ask a person: `rolebundle mark` without --agent",
        )
    stored = StoredMark(*target, storage.text_hash(corpus, *target) or "", mark)
    storage.put_mark(corpus, stored)
    increment_generation(corpus)
    return _record(stored, ended=False)


def remove_mark(corpus: Corpus, target: Target) -> MarkRecord:
    """Remove a mark, which may have ended, and return it.

    Raises:
        UsageError: ``not_marked``.
    """
    stored = storage.mark_of(corpus, *target)
    if stored is None:
        raise UsageError(
            "not_marked", f"{target[1]}: has no mark", "`rolebundle mark list` shows the marks"
        )
    storage.remove_mark(corpus, *target)
    increment_generation(corpus)
    return _record(stored, ended=False).model_copy(update={"state": "unverified"})


def list_marks(corpus: Corpus) -> list[MarkRecord]:
    """Every mark of the visible corpus, also those that have ended."""
    return [
        _record(
            stored, ended=storage.text_hash(corpus, stored.kind, stored.target) != stored.text_hash
        )
        for stored in storage.all_marks(corpus)
    ]


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


def _record(stored: StoredMark, *, ended: bool) -> MarkRecord:
    return MarkRecord(kind=stored.kind, target=stored.target, ended=ended, **stored.mark._asdict())
