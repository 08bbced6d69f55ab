"""Remembered facts: documents of one passage that agents and people filed.

The text is a document like any other, in a compartment of facts alone. Its file row names no file:
its location begins with ``REMEMBERED``, and continues with the location of the source. So deny
patterns that match the source also match the fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rolebundle.contracts.documents import Mark
from rolebundle.storage import digests, marks, store
from rolebundle.storage.compartments import REMEMBERED
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.documents import StoredDocument, StoredFile
from rolebundle.storage.partition import DenyMatcher
from rolebundle.storage.seal import row_digest
from rolebundle.storage.sqlite import IN_SET, Binding
from rolebundle.storage.stored_values import typed

SOURCE_CHANGED = "its source has changed since it was filed"
"""The reason of the mark that an ingest sets. A person who has read the source removes it."""
_FACTS = (
    "remembered r JOIN document d ON d.id = r.document JOIN file f ON f.id = d.file "
    "JOIN chunk c ON c.document = d.id LEFT JOIN scanned ON scanned.document = d.id"
)
_COLUMNS = {
    "rowid": "r.document",
    "filings": "r.count",
    "source": "d.uri",
    "verdict": "coalesce(scanned.verdict, '')",
    "flags": "coalesce(scanned.kinds, '[]')",
    "chunk": "c.id",
    "content": "c.content",
    "locator": "f.path || ':' || c.start_line || '-' || c.end_line",
}


class Record(NamedTuple):
    """What is known of a fact besides its document.

    Attributes:
        fact_hash: of the normalized text, the scope and the sensitivity.
        source_document: the id of the document that it cites; empty for an address.
        remembered_by: who filed it first.
        filings: how often it was filed.
        first_at, last_at: when it was filed first and last; ISO 8601 in UTC.
        promoted_by: who promoted it; empty if nobody did.
    """

    fact_hash: str
    source_document: str
    remembered_by: str
    filings: int
    first_at: str
    last_at: str
    promoted_by: str = ""


class Fact(NamedTuple):
    """A stored fact.

    Attributes:
        rowid: of its document.
        record: what is known of it.
        source: the locator of its source.
        verdict: that of the scan; empty if it found nothing.
        flags: the kinds of the scan's findings.
        chunk: the rowid of its only chunk.
    """

    rowid: int
    record: Record
    document_id: str
    source: str
    scope: str
    sensitivity: str
    trust_tier: str
    verdict: str
    flags: tuple[str, ...]
    chunk: int
    chunk_id: str
    content: str
    locator: str


def all_facts(corpus: Corpus) -> list[Fact]:
    """Every fact, the last filed first."""
    return _facts(corpus, "ORDER BY last_at DESC, document_id")


def _facts(corpus: Corpus, condition: str, *bindings: Binding) -> list[Fact]:
    return corpus.select(Fact, f"{_FACTS} {condition}", bindings, _COLUMNS)


def fact_named(corpus: Corpus, document_id: str) -> Fact | None:
    """The fact with this document id, or ``None``."""
    return next(iter(_facts(corpus, "WHERE document_id = ?", document_id)), None)


def filed_since(corpus: Corpus, name: str, since: str) -> int:
    """How many facts somebody has filed first since a time, ISO 8601, that are still there."""
    filed = "SELECT count(*) FROM remembered WHERE remembered_by = ? AND first_at >= ?"
    return int(corpus.value(filed, (name, since)))


def document_from(corpus: Corpus, address: str) -> str | None:
    """The id of the first visible document, no fact, that was fetched from an address."""
    fetched = "uri = ? AND id NOT IN (SELECT document FROM remembered) ORDER BY id"
    found = corpus.column(f"SELECT document_id FROM document WHERE {fetched}", (address,))
    return next(iter(found), None)


_FILE_OF = "file f JOIN document d ON d.file = f.id"


def location_of(corpus: Corpus, chunk: int) -> str:
    """The location of the file of a chunk."""
    of_chunk = f"{_FILE_OF} JOIN chunk c ON c.document = d.id WHERE c.id = ?"
    [(location,)] = typed(corpus.rows(f"SELECT f.location FROM {of_chunk}", (chunk,)), str)
    return str(location)


def put_fact(
    corpus: Corpus,
    file: StoredFile,
    document: StoredDocument,
    record: Record,
    deny_matcher: DenyMatcher,
) -> Fact:
    """Store a fact, also instead of one with the same id. Call it inside a write transaction.

    If there is one, its count continues and its record stays.

    Raises:
        DocumentError: its id is taken.
    """
    former = fact_named(corpus, document.metadata.document_id)
    if former is not None:
        known = former.record
        record = known._replace(filings=known.filings + 1, last_at=record.last_at)
        # Its source may have moved.
        forget(corpus, former)
    [problem] = store.put_files(corpus, [(file, [document])], deny_matcher)
    if problem is not None:
        raise problem
    row = int(corpus.value(f"SELECT d.id FROM {_FILE_OF} WHERE f.location = ?", (file.location,)))
    _put_record(corpus, row, record)
    increment_generation(corpus)
    [fact] = _facts(corpus, "WHERE d.id = ?", row)
    return fact


def count_repetition(corpus: Corpus, fact: Fact, at: str, *, renew: bool) -> Fact:
    """Count a fact that was filed again. Call it inside a write transaction.

    Args:
        corpus: a corpus open for writing.
        fact: the fact as it is stored.
        at: the time; ISO 8601 in UTC.
        renew: whether the fact is now as new as this filing.
    """
    record = fact.record._replace(filings=fact.record.filings + 1, last_at=at)
    return _changed(corpus, fact, record, {"updated_at": at} if renew else {})


def promote(corpus: Corpus, fact: Fact, promoted_by: str) -> Fact:
    """Raise a fact to the trust tier general. Call it inside a write transaction."""
    record = fact.record._replace(promoted_by=promoted_by)
    return _changed(corpus, fact, record, {"trust_tier": "general"})._replace(trust_tier="general")


def _changed(corpus: Corpus, fact: Fact, record: Record, columns: Mapping[str, str]) -> Fact:
    """A fact with a new record, and new values in columns of its document."""
    _put_record(corpus, fact.rowid, record)
    for column, value in columns.items():
        with digests.renewing(corpus, [fact.rowid]):
            corpus.run(f"UPDATE document SET {column} = ? WHERE id = ?", (value, fact.rowid))
    increment_generation(corpus)
    return fact._replace(record=record)


@contextmanager
def marking_changed(corpus: Corpus, document_ids: Sequence[str], at: str) -> Iterator[None]:
    """A block in which documents are replaced.

    After it, facts that cite a changed passage are marked as disputed. Call it inside a write
    transaction. ``at``: ISO 8601 in UTC.
    """
    hashes = "SELECT c.content_hash FROM chunk c JOIN document d ON d.id = c.document"
    of_document = f"{hashes} WHERE d.document_id = ?"
    cited: dict[str, set[str]] = {}
    sources: dict[str, str] = {}
    for fact in _facts(corpus, f"WHERE source_document {IN_SET}", document_ids):
        first, _, last = fact.source.rpartition(":")[2].partition("-")
        lines = f"{of_document} AND c.start_line <= ? AND c.end_line >= ?"
        source = sources[fact.document_id] = fact.record.source_document
        cited[fact.document_id] = {*corpus.column(lines, (source, int(last), int(first)))}
    yield
    mark = Mark("disputed", "ingest", "owner", SOURCE_CHANGED, at)
    for name, former in cited.items():
        if not former <= {*corpus.column(of_document, (sources[name],))}:
            digest = marks.text_hash(corpus, "document", name) or ""
            marks.put_mark(corpus, marks.StoredMark("document", name, digest, mark))


def forget(corpus: Corpus, fact: Fact) -> None:
    """Remove a fact. Call it inside a write transaction."""
    of_fact = f"SELECT f.location FROM {_FILE_OF} WHERE d.id = ?"
    store.remove_files(corpus, corpus.column(of_fact, (fact.rowid,)))
    store.drop_unused(corpus)
    increment_generation(corpus)


def citing(corpus: Corpus, document_ids: Sequence[str]) -> set[int]:
    """The rows of the facts whose source is one of these documents."""
    chosen = f"source_document {IN_SET} AND source_document <> ''"
    return set(corpus.column(f"SELECT document FROM remembered WHERE {chosen}", (document_ids,)))


def missing_sources(corpus: Corpus) -> set[str]:
    """The ids of documents that facts cite and that the corpus has no more."""
    missing = "source_document NOT IN (SELECT document_id FROM document)"
    cited = "SELECT source_document FROM remembered WHERE source_document <> ''"
    return set(corpus.column(f"{cited} AND {missing}"))


def without_record(corpus: Corpus) -> set[int]:
    """The rows of documents that are facts, and of which nothing else is known."""
    facts = "f.location LIKE ? AND d.id NOT IN (SELECT document FROM remembered)"
    return set(corpus.column(f"SELECT d.id FROM {_FILE_OF} WHERE {facts}", (f"{REMEMBERED}%",)))


def _put_record(corpus: Corpus, row: int, record: Record) -> None:
    values = (row, *record)
    corpus.insert("remembered", [(*values, row_digest(values))], "REPLACE")
