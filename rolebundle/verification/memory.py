"""Marks and remembered facts: what agents may add, and within which limits."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from shlex import quote
from textwrap import wrap
from typing import NamedTuple, TypeVar
from unicodedata import normalize
from urllib.parse import urlsplit

from rolebundle.access_control import AccessControl
from rolebundle.contracts.documents import REMEMBERED_KIND, DocumentMetadata, Mark, Passage, iso_utc
from rolebundle.contracts.memory import (
    FactRecord,
    MarkRecord,
    MarkRequest,
    RememberedFact,
    RememberRequest,
)
from rolebundle.contracts.terms import DEFAULT_SCOPE, Authority, MarkState, Sensitivity, level_rank
from rolebundle.errors import AccessDenied, EmbedderError, UsageError
from rolebundle.ingest.indexes import embed_chunks
from rolebundle.ingest.parsed import ParsedDocument, ready_chunk
from rolebundle.ingest.prepare import RunSettings, stored_documents
from rolebundle.policy.access import deny_matcher, role_denied
from rolebundle.policy.trust import AgentView
from rolebundle.retrieval.lexical import matching_words
from rolebundle.retrieval.lookup import Named, find_reference, resolve_reference
from rolebundle.retrieval.query import read_task
from rolebundle.retrieval.rank import has_words
from rolebundle.retrieval.request import ReferenceScope
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.instructions import FORGED_STATE
from rolebundle.scan.scan import scan_text
from rolebundle.storage import facts
from rolebundle.storage import marks as storage
from rolebundle.storage.compartments import REMEMBERED
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.digests import content_hash, verify_passages
from rolebundle.storage.documents import StoredDocument, StoredFile
from rolebundle.storage.facts import Fact, Record
from rolebundle.storage.marks import MarkKind, StoredMark
from rolebundle.storage.vector_index import active_index
from rolebundle.verification.evidence import cited_lines
from rolebundle.verification.sentences import difference
from rolebundle.workspace import Workspace

SOURCE_ID = "remembered"
"""The source of facts, or how it begins: the source of the cited document follows."""
_MAX_ADDRESS_CHARS = 2_000
# A query keeps only the first words of a text, and in scripts without spaces each letter counts.
_CHARACTERS_AT_ONCE, _LETTERS_AT_ONCE = 300, 48


_Answer = TypeVar("_Answer", bound=RememberedFact)


class Author(NamedTuple):
    """Who files a fact.

    Attributes:
        name: of the person or agent.
        view: what holds for the agent; ``None`` if the owner files it.
        scope: what it may cite.
    """

    name: str
    view: AgentView | None = None
    scope: ReferenceScope = ReferenceScope()


class _Source(NamedTuple):
    """Where a fact comes from. An address has no passages."""

    locator: str
    title: str
    passages: Sequence[Passage] = ()

    @property
    def document(self) -> DocumentMetadata | None:
        return self.passages[0].document if self.passages else None


def remember(
    corpus: Corpus, seen: Corpus, request: RememberRequest, author: Author, now: str
) -> tuple[RememberedFact, int | None]:
    """File a fact.

    Args:
        corpus: open for writing, inside a write transaction.
        seen: the corpus as the author sees it, in a snapshot of the same state.
        request: the fact and its source.
        author: who files it.
        now: ISO 8601 in UTC.

    Returns:
        The fact, and the row of its passage if that is new.

    Raises:
        UsageError: the source is unknown, or the author may not see it; it is a fact itself, or
            does not say the fact; or nothing is left of the fact after the scan.
        AccessDenied: the fact may not be filed in that scope, or the agent's quota is reached.
    """
    source = _resolve_source(seen, request.source, author)
    document = _scanned(request, source, author, now)
    [chunk], metadata = document.chunks, document.metadata
    _check_said(seen, chunk.content, source)
    cited = source.document.document_id if source.document else ""
    fact_hash = _hash(normalized(chunk.content), metadata.scope, metadata.sensitivity)
    name = f"fact-{_hash(fact_hash, cited or source.locator, size=12)}"
    known = facts.fact_named(seen, f"{SOURCE_ID}/{name}")
    if known is not None:
        verify_passages(seen, [known.chunk])
        # An agent makes what a person promoted no newer than the person saw it.
        renew = not known.record.promoted_by or author.view is None
        fact = facts.count_repetition(corpus, known, now, renew=renew)
        return _answered(RememberedFact, fact, state="counted"), None
    _check_quota(corpus, author, now)
    file, document = _placed(seen, document, source, name)
    record = Record(fact_hash, cited, without_secrets(author.name), 1, now, now)
    fact = facts.put_fact(corpus, file, document, record, deny_matcher(corpus))
    # What was there and is not seen, for example in quarantine, must not show: not even its count.
    return _answered(RememberedFact, fact._replace(record=record)), fact.chunk


def remember_as_agent(access: AccessControl, request: RememberRequest) -> RememberedFact:
    """File a fact as an agent that may do so, and record that.

    Raises:
        AccessDenied: the policy does not allow the agent to remember, not in that scope, or not
            so much a day.
        UsageError: as for :func:`remember`.
        CorpusBusy, StorageError: the fact was not stored.
    """
    with access.writing(request.agent, "remember") as (name, corpus, seen, view, details):
        scope = access.reference_scope(view, seen)._replace(absolute=False)
        author = Author(name, view, scope)
        fact, chunk = remember(corpus, seen, request, author, iso_utc(datetime.now(UTC)))
        details["state"] = fact.state
    embed_passage(access.workspace, chunk)
    return fact


def normalized(fact: str) -> str:
    """A fact as it is compared with others: without case, spacing, and the last full stop."""
    return " ".join(normalize("NFKC", fact).casefold().split()).rstrip(" .")


def embed_passage(workspace: Workspace, chunk: int | None) -> None:
    """Embed the passage of a new fact, if the corpus has an index and its model is at hand.

    Else it waits for its vector, as after an ingest. Other waiting passages go on waiting, so that
    an agent cannot learn of them.
    """
    if chunk is None:
        return
    with workspace.open_writer() as corpus, suppress(EmbedderError):
        if index := active_index(corpus):
            embed_chunks(corpus, index, workspace.query_provider(corpus), [chunk])


# -- where it comes from, and where it belongs -----------------------------------------------------


def _resolve_source(seen: Corpus, reference: str, author: Author) -> _Source:
    is_address = reference.casefold().startswith(("http://", "https://"))
    # What was fetched from an address is a document, and no address is invented.
    stored = facts.document_from(seen, reference) if is_address else None
    scope = author.scope
    try:
        named = find_reference(seen, stored or reference, scope)
    except UsageError as error:
        if error.code != "not_found":
            raise
        named = None
    passages = [*filter(scope.reads, named.passages)] if named else []
    if named is None or not passages:
        if is_address and author.view is None:
            return _address(reference)
        raise UsageError(
            "not_found",
            f"{reference[:200]}: no passage, document or lines of that name in this corpus",
            "copy a chunk_id or locator from an answer; the owner may also give an http(s) address",
        )
    verify_passages(seen, [passage.rowid for passage in passages])
    first, last = passages[0], passages[-1]
    if first.document.source_kind == REMEMBERED_KIND:
        raise UsageError(
            "source_is_fact",
            f"{reference}: is a remembered fact itself",
            f"cite its source: {first.document.uri}",
        )
    lines = named.lines or (first.start_line, last.end_line)
    start, end = max(lines[0], first.start_line), min(lines[1], last.end_line)
    return _Source(f"{first.place}:{start}-{end}", first.document.title, passages)


def _address(reference: str) -> _Source:
    try:
        address = urlsplit(reference)
        host = address.hostname
    except ValueError:
        host = None
    is_plain = len(reference) <= _MAX_ADDRESS_CHARS and reference.isprintable()
    # Every agent that sees the fact sees its source, so a password must not be in it.
    if not host or not is_plain or "@" in address.netloc:
        raise UsageError(
            "bad_source",
            "the source is not the address of a page without a user name and password",
            "give a whole address, such as https://example.com/limits",
        )
    return _Source(reference, host)


def _scope(requested: str | None, source: _Source, author: Author) -> str:
    """The scope of a fact: that of its source, unless the owner says otherwise."""
    own = source.document.scope if source.document else DEFAULT_SCOPE
    if author.view is not None and requested not in (None, own):
        # Its locator would show the readers of one scope what there is in another.
        raise AccessDenied(
            "scope_denied",
            f"the fact may not be filed there: it belongs to the scope of its source, {own}",
            "leave `scope` out",
        )
    return requested or own


def _sensitivity(source: _Source, author: Author) -> Sensitivity:
    """The sensitivity of a fact.

    That of an agent under a policy is the agent's own access level: nobody who sees less than the
    agent sees what it files.
    """
    if author.view is not None and author.view.access_level is not None:
        return author.view.access_level
    own = source.document.sensitivity if source.document else "internal"
    return own if level_rank(own) > level_rank("internal") else "internal"


# -- whether it may be filed -----------------------------------------------------------------------


def _check_said(seen: Corpus, fact: str, source: _Source) -> None:
    """Check that the passages have most words of the fact, and all numbers, names and quotes."""
    rowids = [passage.rowid for passage in source.passages]
    words: dict[str, bool] = {}
    needed: list[str] = []
    for text in wrap(fact, _CHARACTERS_AT_ONCE if fact.isascii() else _LETTERS_AT_ONCE):
        task = read_task(text)
        found = matching_words(seen, task.content_words, rowids).values()
        for place, (word, *_) in enumerate(task.content_words):
            words[word.text] = any(place in places for places in found)
        needed += [
            text for text in task.exact if not any(has_words(p, text) for p in source.passages)
        ]
    missing = [word for word, is_there in words.items() if not is_there]
    needed += [word for word in missing if any(map(str.isdigit, word))]
    plain = [is_there for word, is_there in words.items() if not any(map(str.isdigit, word))]
    if source.passages and (needed or 2 * plain.count(False) >= max(1, len(plain))):
        named = ", ".join(list(dict.fromkeys(needed or missing))[:8])
        raise UsageError(
            "source_does_not_say",
            f"{source.locator}: does not say the fact: words that it lacks: {named or 'all'}",
            "name the passage that says it, and state the fact in its words, numbers and names",
        )
    opposite = difference(fact, [cited_lines(source.locator, p) for p in source.passages])
    if opposite is not None:
        sentence = " ".join(opposite[2].split())[:200]
        raise UsageError(
            "source_says_otherwise",
            f"{source.locator}: may say the opposite, {opposite[0]}: {sentence}",
            "read the source, and state the fact in its words",
        )


def _check_quota(corpus: Corpus, author: Author, now: str) -> None:
    """Check that an agent has not filed as many facts on this day (in UTC) as it may."""
    if author.view is None:
        return
    today = datetime.fromisoformat(now).replace(hour=0, minute=0, second=0, microsecond=0)
    quota = author.view.facts_per_day
    if facts.filed_since(corpus, without_secrets(author.name), iso_utc(today)) >= quota:
        raise AccessDenied(
            "quota_reached",
            f"this agent has filed {quota} new facts today, and may not file more",
            f"file it after {iso_utc(today + timedelta(days=1))}; "
            "the owner can set `facts_per_day` in the agent's rule",
        )


# -- the document ----------------------------------------------------------------------------------


def _scanned(request: RememberRequest, source: _Source, author: Author, now: str) -> StoredDocument:
    """The fact as a document without a name, as the scan leaves it.

    Raises:
        UsageError: nothing is left, or it forges a state.
    """
    chunk = ready_chunk("", request.fact, 1, request.fact.count("\n") + 1)
    metadata = _metadata(source, now)._replace(
        scope=_scope(request.scope, source, author), sensitivity=_sensitivity(source, author)
    )
    intake = (ParsedDocument(ready=(chunk,)), metadata)
    [document] = stored_documents([intake], RunSettings())
    if not document.chunks:
        raise UsageError("empty_fact", "the fact has no visible text", "state it in plain words")
    if document.scanned is not None and FORGED_STATE in document.scanned.kinds:
        raise UsageError(
            "forged_state",
            "the fact has a state in brackets, as if a person had verified it",
            "leave the state out; a person promotes a fact or marks a passage",
        )
    return document


def _placed(
    seen: Corpus, document: StoredDocument, source: _Source, name: str
) -> tuple[StoredFile, StoredDocument]:
    """The document under its name, and its place below the file of its source."""
    document_id = f"{SOURCE_ID}/{name}"
    [chunk] = document.chunks
    first = source.passages[0] if source.passages else None
    path = f"{first.path}/{name}" if first else name
    location = f"{facts.location_of(seen, first.rowid)}/{name}" if first else name
    return StoredFile(f"{REMEMBERED}{location}", path, content_hash(chunk.content), ""), replace(
        document,
        metadata=document.metadata._replace(document_id=document_id),
        chunks=(chunk._replace(chunk_id=f"{document_id}#{chunk.content_hash[:10]}"),),
    )


def _metadata(source: _Source, now: str) -> DocumentMetadata:
    metadata = DocumentMetadata(
        document_id="",
        source_id=SOURCE_ID,
        title=source.title,
        uri=source.locator,
        document_type="fact",
        trust_tier="untrusted",
        updated_at=now,
        source_kind=REMEMBERED_KIND,
        origin="agent",
        reach="none",
    )
    document = source.document
    if document is None:
        return metadata
    # Roles reject by source, type and domain. What they reject must not come back as a fact.
    kind = [document.document_type] if document.document_type != "document" else []
    applicable = (passage.applicable_roles for passage in source.passages)
    excluded = (role for passage in source.passages for role in passage.excluded_roles)
    return metadata._replace(
        source_id="/".join([SOURCE_ID, document.source_id, *kind]),
        domain=document.domain,
        valid_from=document.valid_from,
        valid_until=document.valid_until,
        applicable_roles=next(filter(None, applicable), ()),
        excluded_roles=tuple(dict.fromkeys(excluded)),
    )


def _hash(*values: str, size: int = 16) -> str:
    return blake2b(json.dumps(values).encode("ascii"), digest_size=size).hexdigest()


# -- what the owner does ---------------------------------------------------------------------------


def list_facts(corpus: Corpus) -> list[FactRecord]:
    """Every fact, the last filed first."""
    missing = facts.missing_sources(corpus)
    marks = storage.all_marks(corpus)
    changed = {stored.target for stored in marks if stored.mark.reason == facts.SOURCE_CHANGED}
    return [_record(fact, missing, changed) for fact in facts.all_facts(corpus)]


def promote(corpus: Corpus, document_id: str, promoted_by: str) -> FactRecord:
    """Raise a fact to the trust tier ``general``. Call it inside a write transaction.

    Raises:
        UsageError: there is no such fact, it is in quarantine, or it was promoted before.
    """
    fact = _fact_named(corpus, document_id)
    if fact.verdict == "quarantine":
        raise UsageError(
            "quarantined",
            f"{document_id}: is in quarantine: {', '.join(fact.flags)}",
            f"rolebundle corpus quarantine show {quote(document_id)}",
        )
    if fact.record.promoted_by:
        raise UsageError(
            "already_promoted",
            f"{document_id}: was promoted by {fact.record.promoted_by}",
            "nothing is left to do",
        )
    return _record(facts.promote(corpus, fact, promoted_by), facts.missing_sources(corpus))


def forget(corpus: Corpus, document_id: str) -> FactRecord:
    """Remove a fact, and return it. Call it inside a write transaction.

    Raises:
        UsageError: there is no such fact.
    """
    fact = _fact_named(corpus, document_id)
    facts.forget(corpus, fact)
    record = _record(fact, facts.missing_sources(corpus))
    return record.model_copy(update={"state": "forgotten"})


def _fact_named(corpus: Corpus, document_id: str) -> Fact:
    fact = facts.fact_named(corpus, document_id)
    if fact is None:
        raise UsageError(
            "no_such_fact",
            f"{document_id[:200]}: no remembered fact has this id",
            "`rolebundle remember list` shows the facts",
        )
    return fact


def _record(fact: Fact, missing: Collection[str], changed: Collection[str] = ()) -> FactRecord:
    """The record of a fact, with the ids of missing sources, and of facts whose source changed."""
    state = {
        "source_is_gone": fact.record.source_document in missing,
        "source_has_changed": fact.document_id in changed,
    }
    return _answered(FactRecord, fact, promoted_by=fact.record.promoted_by or None, **state)


def _answered(model: type[_Answer], fact: Fact, **more: object) -> _Answer:
    """A fact as an answer shows it."""
    values = {**fact._asdict(), **fact.record._asdict(), "state": "stored", **more}
    values |= {
        "fact": fact.content,
        "count": fact.record.filings,
        "flags": list(fact.flags) or None,
    }
    if fact.verdict == "quarantine":
        values["state"] = "quarantined"
    return model.model_validate({name: values[name] for name in model.model_fields})


def checked_statement(text: str, authority: Authority) -> str:
    """The text with its secrets masked.

    Raises:
        UsageError: ``unsafe_text``: an agent wrote instructions to a model, or hidden text. Other
            agents will read it.
    """
    result = scan_text(text)
    kinds = {finding.kind for finding in result.findings}
    unsafe = sorted(kind for kind in kinds if not kind.startswith(("secret_", "personal_")))
    if unsafe and authority == "agent":
        raise UsageError(
            "unsafe_text",
            f"the text reads like an attack on other readers: {', '.join(unsafe)}",
            "say in plain words what is wrong",
        )
    return result.text


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
    with access.writing(request.agent, "mark") as (name, corpus, seen, view, details):
        scope = access.reference_scope(view, seen)
        named = resolve_reference(seen, request.id, scope)
        if not all(map(scope.reads, named.passages)):
            raise role_denied(view)
        target = resolve_target(request.id, named)
        _check_own(corpus, target, name)
        details["state"] = request.state
        if request.state == "unverified":
            return remove_mark(corpus, target)
        mark = Mark(request.state, name, "agent", request.reason, iso_utc(datetime.now(UTC)))
        return put_mark(corpus, target, mark)


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
    return _mark_record(stored, ended=False)


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
    return _mark_record(stored, ended=False).model_copy(update={"state": "unverified"})


def list_marks(corpus: Corpus) -> list[MarkRecord]:
    """Every mark of the visible corpus, also if it has ended."""
    return [
        _mark_record(
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


def _mark_record(stored: StoredMark, *, ended: bool) -> MarkRecord:
    return MarkRecord(kind=stored.kind, target=stored.target, ended=ended, **stored.mark._asdict())
