"""Remembered facts: what agents and the owner file, within which limits, with its source."""

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
from rolebundle.contracts.documents import REMEMBERED_KIND, DocumentMetadata, Passage, iso_utc
from rolebundle.contracts.memory import FactRecord, RememberedFact, RememberRequest
from rolebundle.contracts.terms import DEFAULT_SCOPE, Sensitivity, level_rank
from rolebundle.errors import AccessDenied, EmbedderError, UsageError
from rolebundle.ingest.indexes import embed_chunks
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.prepare import RunSettings, stored_document
from rolebundle.policy.access import deny_matcher
from rolebundle.policy.trust import AgentView
from rolebundle.retrieval.lexical import matching_words
from rolebundle.retrieval.lookup import find_reference
from rolebundle.retrieval.query import read_task
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.scoring import has_phrase
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.instructions import FORGED_STATE
from rolebundle.storage import facts
from rolebundle.storage.compartments import REMEMBERED
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.digests import content_hash, verify_passages
from rolebundle.storage.documents import StoredChunk, StoredDocument, StoredFile
from rolebundle.storage.facts import Fact, Record
from rolebundle.storage.marks import all_marks
from rolebundle.storage.vector_index import active_index
from rolebundle.text.references import parse_lines
from rolebundle.verify.evidence import cited_lines
from rolebundle.verify.sentences import difference
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
        rules: what it may cite.
    """

    name: str
    view: AgentView | None = None
    rules: ReferenceRules = ReferenceRules()


class _Source(NamedTuple):
    """Where a fact comes from. An address has no passages."""

    locator: str
    title: str
    passages: Sequence[Passage] = ()

    @property
    def document(self) -> DocumentMetadata | None:
        return self.passages[0].document if self.passages else None


def _file(
    corpus: Corpus, seen: Corpus, request: RememberRequest, author: Author
) -> tuple[RememberedFact, int | None]:
    """File a fact.

    Args:
        corpus: open for writing, inside a write transaction.
        seen: the corpus as the author sees it, in a snapshot of the same state.
        request: the fact and its source.
        author: who files it.

    Returns:
        The fact, and the row of its passage if that is new.

    Raises:
        UsageError: the source is unknown, or the author may not see it; it is a fact itself, or
            does not say the fact; or nothing is left of the fact after the scan.
        AccessDenied: the fact may not be filed in that scope, or the agent's quota is reached.
    """
    source, now = _resolve_source(seen, request.source, author), iso_utc(datetime.now(UTC))
    document = _scanned(request, source, author, now)
    [chunk], metadata = document.chunks, document.metadata
    _check_said(seen, chunk.content, source)
    cited = source.document.document_id if source.document else ""
    fact_hash = _hash(_normalized(chunk.content), metadata.scope, metadata.sensitivity)
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
        UsageError: as for :func:`_file`.
        CorpusBusy, StorageError: the fact was not stored.
    """
    with access.writing(request.agent, "remember") as (name, corpus, seen, view, details):
        author = Author(name, view, access.reference_rules(view, seen)._replace(absolute=False))
        fact, chunk = _file(corpus, seen, request, author)
        details["state"] = fact.state
    _embed_passage(access.workspace, chunk)
    return fact


def _normalized(fact: str) -> str:
    """A fact as it is compared with others: without case, spacing, and the last full stop."""
    return " ".join(normalize("NFKC", fact).casefold().split()).rstrip(" .")


def _embed_passage(workspace: Workspace, chunk: int | None) -> None:
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
    rules = author.rules
    try:
        named = find_reference(seen, stored or reference, rules)
    except UsageError as error:
        if error.code != "not_found":
            raise
        named = None
    passages = [*filter(rules.allows_reading, named.passages)] if named else []
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
    return _Source(f"{first.locator_path}:{start}-{end}", first.document.title, passages)


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
            text for text in task.exact if not any(has_phrase(p, text) for p in source.passages)
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
    lines = parse_lines(source.locator)
    opposite = difference(fact, [cited_lines(p, lines) for p in source.passages], fact)
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
    chunk = StoredChunk("", (), request.fact, "paragraph", "", 1, request.fact.count("\n") + 1)
    metadata = _metadata(source, now)._replace(
        scope=_scope(request.scope, source, author), sensitivity=_sensitivity(source, author)
    )
    document = stored_document((ParsedDocument(ready=(chunk,)), metadata), RunSettings())
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


def file_fact(workspace: Workspace, request: RememberRequest, remembered_by: str) -> RememberedFact:
    """File a fact with its source as the owner; the agent of the request is ignored.

    Raises:
        UsageError: as for :func:`_file`.
    """
    with workspace.recorded_change("remember") as (corpus, details):
        fact, chunk = _file(corpus, corpus, request, Author(remembered_by))
        details.update(state=fact.state, by=without_secrets(remembered_by))
    _embed_passage(workspace, chunk)
    return fact


def all_facts(workspace: Workspace) -> list[FactRecord]:
    """Every remembered fact, the last filed first."""
    corpus = workspace.corpus
    with workspace.answering_corpus.reading():
        missing = facts.missing_sources(corpus)
        marks = all_marks(corpus)
        changed = {stored.target for stored in marks if stored.mark.reason == facts.SOURCE_CHANGED}
        return [_record(fact, missing, changed) for fact in facts.all_facts(corpus)]


def promote_fact(workspace: Workspace, document_id: str, promoted_by: str) -> FactRecord:
    """Raise a fact to the trust tier ``general``.

    Raises:
        UsageError: there is no such fact, it is in quarantine, or it was promoted before.
    """
    with workspace.recorded_change("promote") as (corpus, details):
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
        promoted = facts.promote(corpus, fact, promoted_by)
        record = _record(promoted, facts.missing_sources(corpus))
        details.update(state=record.state, by=without_secrets(promoted_by))
    return record


def forget_fact(workspace: Workspace, document_id: str, forgotten_by: str) -> FactRecord:
    """Remove a fact, and return it. A purge also erases its bytes.

    Raises:
        UsageError: there is no such fact.
    """
    with workspace.recorded_change("forget") as (corpus, details):
        fact = _fact_named(corpus, document_id)
        facts.forget(corpus, fact)
        record = _record(fact, facts.missing_sources(corpus))
        record = record.model_copy(update={"state": "forgotten"})
        details.update(state=record.state, by=without_secrets(forgotten_by))
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
