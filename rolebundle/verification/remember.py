"""Filing a fact with its source.

A fact is stored as a document of one passage, with the trust tier ``untrusted`` and the origin
``agent``. Its text is data: nothing in it is read as metadata. What governs the passages that it
cites also governs the fact: their scope, the roles and sources that roles reject, the deny patterns
that match their file, and until when they are valid. See docs/decisions/0024-remembered-facts.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from shlex import quote
from typing import Literal, NamedTuple
from unicodedata import normalize
from urllib.parse import urlsplit

from rolebundle.access_control import AccessControl
from rolebundle.contracts.document import REMEMBERED_KIND, DocumentMetadata, Passage, iso_utc
from rolebundle.contracts.facts import (
    MAX_FACT_CHARACTERS,
    FactRecord,
    RememberedFact,
    RememberRequest,
)
from rolebundle.contracts.terms import DEFAULT_SCOPE, Authority, Sensitivity, level_rank
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import AccessDenied, EmbedderError, UsageError
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.indexes import embed_chunks
from rolebundle.ingest.intake_scan import IntakeDocument, scan_documents
from rolebundle.ingest.parsed import ParsedDocument, ReadyChunk
from rolebundle.ingest.prepare import RunSettings, stored_documents
from rolebundle.policy.access import deny_matcher
from rolebundle.policy.trust import AgentView
from rolebundle.retrieval.lookups.lookup import ReferenceScope, find_reference
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import facts
from rolebundle.storage.content.facts import Fact, Record
from rolebundle.storage.content.stored_document import REMEMBERED, StoredDocument, StoredFile
from rolebundle.storage.digests import content_hash
from rolebundle.storage.indexes.compartments import visible_compartments
from rolebundle.storage.indexes.vector_index import active_index
from rolebundle.storage.verify import verify_passages

SOURCE_ID = "remembered"
"""The source of facts, or how it begins: the source of the cited document follows."""
_DEFAULT_SENSITIVITY: Sensitivity = "internal"
_PLAIN_TYPE = "document"
_MAX_ADDRESS_CHARS = 2_000


class Author(NamedTuple):
    """Who files a fact.

    Attributes:
        name: of the person or agent.
        view: what holds for the agent; ``None`` if the owner files it.
        may_read: whether a role of the agent may read a passage; ``None`` for every passage.
    """

    name: str
    view: AgentView | None = None
    may_read: Callable[[Passage], bool] | None = None

    @property
    def authority(self) -> Authority:
        """Whether the owner or an agent files it."""
        return "owner" if self.view is None else "agent"


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
        UsageError: the source is unknown, or the author may not see it; it is a fact itself or no
            address; the scope must be named; or nothing is left of the fact after the scan.
        AccessDenied: the fact may not be filed in that scope.
    """
    source = _resolve_source(seen, request.source, author)
    scope = _scope(seen, request.scope, source, author)
    sensitivity = _sensitivity(source, author)
    draft = _Draft(source, scope, sensitivity, now)
    document = draft.scanned(request.fact)
    fact_hash = _hash(normalized(document.chunks[0].content), scope, sensitivity)
    cited = source.document.document_id if source.document else ""
    known = facts.fact_with(seen, fact_hash, cited, source.locator)
    if known is not None:
        verify_passages(seen, [known.chunk])
        # An agent makes what a person promoted no newer than the person saw it.
        renew = not known.record.promoted_by or author.authority == "owner"
        return _filed(facts.count_repetition(corpus, known, now, renew=renew), "counted"), None
    name = f"fact-{_hash(fact_hash, cited or source.locator, size=12)}"
    file, document = draft.placed(seen, document, name)
    record = Record(fact_hash, cited, without_secrets(author.name), 1, now, now)
    fact = facts.put_fact(corpus, file, document, record, deny_matcher(corpus))
    # What was there and is not seen, for example in quarantine, must not show: not even its count.
    return _filed(fact._replace(record=record), "stored"), fact.chunk


def remember_as_agent(
    access: AccessControl, request: RememberRequest, remembered_by: str | None
) -> RememberedFact:
    """File a fact as an agent that may do so, and record that.

    The agent's view is taken while no other process can write. So a source that is purged, or a
    policy that is set, in the meantime cannot be missed.

    Args:
        access: what the agent may see and do.
        request: the fact and its source.
        remembered_by: the name that is stored; ``None`` for the agent's.

    Raises:
        AccessDenied: the policy does not allow the agent to remember, or not in that scope.
        UsageError: as for :func:`remember`.
        CorpusBusy, StorageError: the fact was not stored.
    """
    agent = access.resolve_agent(request.agent)
    with access.open_view(agent) as (_, view):
        # Before the lock, which others would wait for.
        access.check_write(view, "remember")
    workspace = access.workspace
    with workspace.open_writer() as corpus:
        with (
            workspace.recorder.change(corpus, "remember", agent=agent) as details,
            access.open_view(agent) as (seen, view),
        ):
            access.check_write(view, "remember")
            author = Author(remembered_by or agent or "agent", view, access.may_read(view))
            fact, chunk = remember(corpus, seen, request, author, iso_utc(datetime.now(UTC)))
            details["state"] = fact.state
        if chunk is not None:
            embed_passage(corpus, workspace.query_provider(corpus), chunk)
    return fact


def normalized(fact: str) -> str:
    """A fact as it is compared with others: without case, spacing, and the last full stop."""
    return " ".join(normalize("NFKC", fact).casefold().split()).rstrip(" .")


def embed_passage(corpus: Corpus, provider: EmbeddingProvider, chunk: int) -> None:
    """Embed the passage of a new fact, if the corpus has an index and its model is at hand.

    Else it waits for its vector, as after an ingest. Other waiting passages go on waiting, so that
    an agent cannot learn of them.
    """
    index = active_index(corpus)
    if index is not None:
        with suppress(EmbedderError):
            embed_chunks(corpus, index, provider, [chunk])


# -- where it comes from, and where it belongs -----------------------------------------------------


def _resolve_source(seen: Corpus, reference: str, author: Author) -> _Source:
    try:
        named = find_reference(seen, reference, ReferenceScope())
    except UsageError as error:
        if error.code != "not_found":
            raise
        named = None
    if named is None:
        if reference.casefold().startswith(("http://", "https://")):
            return _address(reference)
        raise _unknown_source(reference)
    _, passages, lines = named
    if author.may_read is not None:
        passages = [passage for passage in passages if author.may_read(passage)]
        if not passages:
            raise _unknown_source(reference)
    verify_passages(seen, [passage.rowid for passage in passages])
    first, last = passages[0], passages[-1]
    if facts.location_of(seen, first.rowid).startswith(REMEMBERED):
        raise UsageError(
            "source_is_fact",
            f"{reference}: is a remembered fact itself",
            f"cite its source: {first.document.uri}",
        )
    start = first.start_line if lines is None else max(lines[0], first.start_line)
    end = last.end_line if lines is None else min(lines[1], last.end_line)
    return _Source(f"{first.path}:{start}-{end}", first.document.title, passages)


def _address(reference: str) -> _Source:
    try:
        address = urlsplit(reference)
        host = address.hostname
    except ValueError:
        host = None
    if not host or len(reference) > _MAX_ADDRESS_CHARS or not reference.isprintable():
        raise UsageError(
            "bad_source",
            f"{reference[:100]}: is not the address of a page",
            "give a whole address, such as https://example.com/limits",
        )
    if "@" in address.netloc:
        # Every agent that sees the fact sees its source.
        raise UsageError(
            "source_has_password",
            f"the address of a page at {host} has a user name or password",
            "give the address without it",
        )
    return _Source(reference, host)


def _unknown_source(reference: str) -> UsageError:
    return UsageError(
        "not_found",
        f"{reference[:200]}: no passage, document or lines of that name in this corpus",
        "copy a chunk_id or locator from a bundle, or give an http(s) address",
    )


def _scope(seen: Corpus, requested: str | None, source: _Source, author: Author) -> str:
    """The scope of a fact: that of its source, unless the owner says otherwise."""
    own = source.document.scope if source.document else None
    if author.view is None:
        return requested or own or DEFAULT_SCOPE
    if own is not None:
        if requested not in (None, own):
            # Its locator would show the readers of one scope what there is in another.
            raise _scope_denied(f"a fact belongs to the scope of its source, {own}")
        return own
    scopes: Iterable[str] = author.view.scopes
    if not author.view.scopes:
        # Not any name, because each scope has indexes of its own.
        scopes = {compartment.scope for compartment in visible_compartments(seen)}
        if author.view.access_level is None:
            scopes.add(DEFAULT_SCOPE)
            requested = requested or DEFAULT_SCOPE
    if requested is None:
        if len(author.view.scopes) != 1:
            raise UsageError(
                "scope_needed",
                "an address does not say to which scope the fact belongs",
                "name one of your scopes in `scope`",
            )
        return author.view.scopes[0]
    if requested not in scopes:
        raise _scope_denied("this agent has no such scope")
    return requested


def _scope_denied(reason: str) -> AccessDenied:
    return AccessDenied(
        "scope_denied", f"the fact may not be filed there: {reason}", "leave `scope` out"
    )


def _sensitivity(source: _Source, author: Author) -> Sensitivity:
    """The sensitivity of a fact.

    That of an agent under a policy is the agent's own access level: nobody who sees less than the
    agent sees what it files.
    """
    if author.view is not None and author.view.access_level is not None:
        return author.view.access_level
    own = source.document.sensitivity if source.document else _DEFAULT_SENSITIVITY
    return max(own, _DEFAULT_SENSITIVITY, key=level_rank)


# -- the document ----------------------------------------------------------------------------------


class _Draft(NamedTuple):
    """A fact that becomes a document."""

    source: _Source
    scope: str
    sensitivity: Sensitivity
    now: str

    def scanned(self, fact: str) -> StoredDocument:
        """The fact as a document without a name, as the scan leaves it.

        Raises:
            UsageError: nothing is left.
        """
        chunk = ReadyChunk("", fact, 1, fact.count("\n") + 1)
        [scanned] = scan_documents(
            [IntakeDocument(ParsedDocument(ready=(chunk,)), self._metadata())], ScanSettings()
        )
        # The scan is done; the step after it is without one.
        settings = RunSettings(ChunkSettings(), MAX_FACT_CHARACTERS, scan=None)
        [document] = stored_documents([IntakeDocument(scanned.parsed, scanned.metadata)], settings)
        if not document.chunks:
            raise UsageError(
                "empty_fact", "the fact has no visible text", "state it in plain words"
            )
        return replace(document, scanned=scanned.scanned)

    def placed(
        self, seen: Corpus, document: StoredDocument, name: str
    ) -> tuple[StoredFile, StoredDocument]:
        """The document under its name, and its place below the file of its source."""
        document_id = f"{SOURCE_ID}/{name}"
        [chunk] = document.chunks
        chunk = chunk._replace(chunk_id=f"{document_id}#{chunk.content_hash[:10]}")
        path, location = name, name
        if self.source.passages:
            first = self.source.passages[0]
            path = f"{first.path}/{name}"
            location = f"{facts.location_of(seen, first.rowid)}/{name}"
        file = StoredFile(f"{REMEMBERED}{location}", path, content_hash(chunk.content), "")
        metadata = document.metadata._replace(document_id=document_id)
        return file, replace(document, metadata=metadata, chunks=(chunk,))

    def _metadata(self) -> DocumentMetadata:
        document, passages = self.source.document, self.source.passages
        metadata = DocumentMetadata(
            document_id="",
            source_id=SOURCE_ID,
            title=self.source.title,
            uri=self.source.locator,
            document_type="fact",
            trust_tier="untrusted",
            updated_at=self.now,
            source_kind=REMEMBERED_KIND,
            sensitivity=self.sensitivity,
            origin="agent",
            scope=self.scope,
            reach="none",
        )
        if document is None:
            return metadata
        # Roles reject by source, type and domain. What they reject must not come back as a fact.
        kind = [] if document.document_type == _PLAIN_TYPE else [document.document_type]
        return metadata._replace(
            source_id="/".join([SOURCE_ID, document.source_id, *kind]),
            domain=document.domain,
            valid_from=document.valid_from,
            valid_until=document.valid_until,
            applicable_roles=next(
                filter(None, (passage.applicable_roles for passage in passages)), ()
            ),
            excluded_roles=tuple(
                dict.fromkeys(role for passage in passages for role in passage.excluded_roles)
            ),
        )


def _hash(*values: str, size: int = 16) -> str:
    text = json.dumps(values)
    return blake2b(text.encode("ascii"), digest_size=size).hexdigest()


# -- what the owner does ---------------------------------------------------------------------------


def list_facts(corpus: Corpus) -> list[FactRecord]:
    """Every fact, the last filed first."""
    missing_sources = facts.missing_sources(corpus)
    return [_record(fact, missing_sources) for fact in facts.all_facts(corpus)]


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
            f"rolebundle quarantine show {quote(document_id)}",
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
    record = _record(fact, facts.missing_sources(corpus))
    facts.forget(corpus, fact)
    return record


def _fact_named(corpus: Corpus, document_id: str) -> Fact:
    fact = facts.fact_named(corpus, document_id)
    if fact is None:
        raise UsageError(
            "no_such_fact",
            f"{document_id[:200]}: no remembered fact has this id",
            "`rolebundle remember list` shows the facts",
        )
    return fact


def _record(fact: Fact, missing_sources: set[str]) -> FactRecord:
    return FactRecord(
        **_filed(fact, "stored").model_dump(),
        remembered_by=fact.record.remembered_by,
        promoted_by=fact.record.promoted_by or None,
        source_is_gone=fact.record.source_document in missing_sources,
    )


def _filed(fact: Fact, state: Literal["stored", "counted"]) -> RememberedFact:
    return RememberedFact.model_validate(
        {
            "state": "quarantined" if fact.verdict == "quarantine" else state,
            "document_id": fact.document_id,
            "chunk_id": fact.chunk_id,
            "locator": fact.locator,
            "source": fact.source,
            "fact": fact.content,
            "scope": fact.scope,
            "sensitivity": fact.sensitivity,
            "trust_tier": fact.trust_tier,
            "count": fact.record.filings,
            "first_at": fact.record.first_at,
            "last_at": fact.record.last_at,
            "flags": list(fact.flags) or None,
        }
    )
