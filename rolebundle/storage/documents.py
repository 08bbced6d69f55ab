"""The rows of documents, and which ones supersede others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rolebundle.contracts.documents import (
    ATTACHED,
    NO_TYPE,
    OBSERVED_TYPE,
    PARTLY_READ,
    REMEMBERED_KIND,
    Attributes,
    DocumentGroup,
    DocumentMetadata,
    Superseder,
    Texts,
    attribute_lines,
    locator_path,
)
from rolebundle.contracts.terms import ORIGINS, TRUST_TIERS, TRUSTED_TIERS, ContentType, TrustTier
from rolebundle.storage.corpus import Corpus, corpus_contents, once_in_generation
from rolebundle.storage.publications import PUBLISHED
from rolebundle.storage.sqlite import IN_SET, NO_LIMIT, Binding, Row
from rolebundle.storage.stored_values import damage_error, fields_of, is_moment, rows_as, typed
from rolebundle.text.spellings import composed

# What an answer does not need is imported by the functions that need it.
if TYPE_CHECKING:
    from rolebundle.contracts.upkeep import SelfDeclaredDocument

FileIdentity = tuple[str, str, str]
"""(path, content hash, recipe: what it was read with). If all are equal, it is not read again."""


class Scanned(NamedTuple):
    """The findings in one document. ``kinds`` and ``findings`` are JSON arrays."""

    verdict: str
    """``label``, ``quarantine``, or ``released`` by a person."""
    content_hash: str
    kinds: str
    findings: str
    original: str
    """The text before hidden parts were removed; empty if nothing was removed."""


class StoredChunk(NamedTuple):
    """A chunk as it is stored. A tuple, because hundreds of thousands come out of the workers."""

    chunk_id: str
    headings: Texts
    content: str
    content_type: ContentType
    content_hash: str
    start_line: int
    end_line: int
    page: int = 0
    anchor: str = ""
    tags: Texts = ()
    applicable_roles: Texts = ()
    excluded_roles: Texts = ()
    forms: str = ""
    """Further word forms for the index (``rolebundle/text/forms.py``)."""
    flags: Texts | None = None
    """The kinds of the scan's findings in it; ``None`` for the kinds of the whole document."""


class StoredFile(NamedTuple):
    """A file as it was read. ``location`` is absolute, ``path`` relative to the ingested folder.

    ``size`` in bytes and ``modified_ns``, the time of its last change, are 0 if unknown.
    """

    location: str
    path: str
    content_hash: str
    recipe: str
    size: int = 0
    modified_ns: int = 0


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with its chunks, in order, and what the intake scan found in it."""

    metadata: DocumentMetadata
    chunks: tuple[StoredChunk, ...]
    scanned: Scanned | None = None


def superseders_sql(documents: str) -> str:
    """What supersedes documents, or claims to. ``documents`` is the condition of their rowids."""
    # If documents claim to replace one another in a cycle, none of these claims counts. "above" has
    # the newer document and all that replaces it in any number of steps, by claims that count. If
    # the old document is among them, there is a cycle.
    return (
        f"SELECT old.id, max(CASE WHEN {_claim_counts('claim', 'new', 'old')} THEN 1 ELSE 0 END) "
        "AS counts, new.document_id, "
        "new.trust_tier, new.updated_at, new.valid_from FROM document old "
        "JOIN file old_file ON old_file.id = old.file "
        "JOIN supersession claim ON claim.superseded IN (old.document_id, old_file.path) "
        "JOIN document new ON new.id = claim.newer "
        f"WHERE old.id {documents} AND new.id <> old.id "
        "AND NOT EXISTS (WITH RECURSIVE above (id) AS (SELECT new.id UNION SELECT further.newer "
        "FROM above JOIN document below ON below.id = above.id "
        "JOIN file below_file ON below_file.id = below.file JOIN supersession further "
        "ON further.superseded IN (below.document_id, below_file.path) "
        "JOIN document next ON next.id = further.newer "
        f"WHERE {_claim_counts('further', 'next', 'below')}) "
        "SELECT 1 FROM above WHERE id = old.id) "
        "GROUP BY old.id, new.id, new.document_id, new.trust_tier, new.updated_at, new.valid_from "
        "ORDER BY old.id, new.document_id"
    )


def superseders(
    corpus: Corpus, documents: str, *bindings: Binding
) -> tuple[dict[int, tuple[Superseder, ...]], dict[int, Texts]]:
    """By document: what replaces it, and the ids of what claims to, but may not.

    Args:
        corpus: an open corpus.
        documents: the SQL condition of the documents' rowids, such as ``IN_SET``.
        bindings: of the condition.
    """
    has_claims = corpus_contents(corpus).has_claims
    rows = corpus.rows(superseders_sql(documents), bindings) if has_claims else []
    newer: dict[int, tuple[Superseder, ...]] = {}
    ignored: dict[int, Texts] = {}
    for old, counts, *document in rows:
        if counts:
            newer[old] = (*newer.get(old, ()), Superseder(*document))
        else:
            ignored[old] = (*ignored.get(old, ()), document[0])
    return newer, ignored


def _claim_counts(claim: str, new: str, old: str) -> str:
    """The SQL condition under which a claim to supersede counts, given the names of the tables.

    A less trusted document must not hide a more trusted one by claiming to replace it, nor may a
    document from outside hide one of our own. Documents of other sources are beyond its reach,
    unless the owner says otherwise.
    """
    new_tier = _position(TRUST_TIERS, f"{new}.trust_tier")
    old_tier = _position(TRUST_TIERS, f"{old}.trust_tier")
    return (
        f"({claim}.reach <> 'none' AND ({new}.source = {old}.source OR {claim}.reach = 'any' "
        f"OR {claim}.reach = 'less_trusted' AND {new_tier} < {old_tier}) "
        f"AND {new_tier} <= {old_tier} "
        f"AND {_position(ORIGINS, f'{new}.origin')} <= {_position(ORIGINS, f'{old}.origin')})"
    )


def _position(values: Sequence[str], column: str) -> str:
    """The position of a column's value among fixed words, as SQL."""
    cases = " ".join(f"WHEN '{value}' THEN {number}" for number, value in enumerate(values))
    return f"CASE {column} {cases} END"


_DOCUMENT_COLUMNS = {name: f"d.{name}" for name in DocumentMetadata._fields}
METADATA = {**_DOCUMENT_COLUMNS, "source_id": "s.source_id", "reach": "'source'"}
"""The SQL of each field of the metadata. ``reach`` is stored with each claim: a constant here."""
_MOMENTS = ("updated_at", "inferred_at", "valid_from", "valid_until")
_COLUMNS_OF_FIELD = {
    "source": ("source_id",),
    "path": ("path", "uri"),
    "links_to": ("attributes",),
    "task": ("attributes",),
    "document_type": ("document_type", "attributes"),
}
"""The columns of the fields by which a search is narrowed, if they have another name."""
_COLUMN_TYPES = {"path": str, **fields_of(DocumentMetadata)}


class DocumentName(NamedTuple):
    """The names of a document: its id, its source, and the path and location of its file."""

    rowid: int
    document_id: str
    source_id: str
    path: str
    location: str


DOCUMENT_TABLES = "document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file"
ATTACHED_AT = "d.document_id = s.source_id || '/' || ?"
"""The condition of an attachment with this locator path."""
_NAME = {"rowid": "d.id"}


def document_names(
    corpus: Corpus, *, after: str = "", limit: int | None = None, facts: bool = False
) -> list[DocumentName]:
    """The names of the documents, ordered by id.

    Args:
        corpus: an open corpus.
        after: only documents with a greater id.
        limit: the most documents; ``None`` for all.
        facts: whether remembered facts are among them.
    """
    chosen = "document_id > ? AND (? = 1 OR source_kind <> ?) ORDER BY document_id LIMIT ?"
    bindings = (after, facts, REMEMBERED_KIND, NO_LIMIT if limit is None else limit)
    return corpus.select(DocumentName, f"{DOCUMENT_TABLES} WHERE {chosen}", bindings, _NAME)


def documents_named(corpus: Corpus, name: str, locations: Sequence[str]) -> list[DocumentName]:
    """The documents that a name means, ordered by id: the first of these that there are.

    1. the document with this id
    2. those of the file at one of these absolute locations
    3. those of the files with this path
    4. one of these whose letters and marks are composed in another way
    5. the attachment at this place

    The name of a file does not name its attachments.
    """
    columns = (("document_id", [name]), ("location", locations), ("path", [name]))
    for column, names in columns:
        named = f"{column} {IN_SET} ORDER BY document_id"
        if found := corpus.select(
            DocumentName, f"{DOCUMENT_TABLES} WHERE {named}", (names,), _NAME
        ):
            files = [d for d in found if locator_path(d.document_id, d.source_id, d.path) == d.path]
            return files or found
    # People type letters with marks in composed form; some file systems have the decomposed one.
    known = [] if name.isascii() else document_names(corpus, facts=True)
    for column, names in columns:
        wanted = [*map(composed, names)]
        if found := [one for one in known if composed(getattr(one, column)) in wanted]:
            return found
    if ATTACHED not in name:
        return []
    return corpus.select(
        DocumentName, f"{DOCUMENT_TABLES} WHERE {ATTACHED_AT} ORDER BY 2", (name,), _NAME
    )


def ids_outside_validity(corpus: Corpus, at: str) -> frozenset[str]:
    """The ids of the documents that do not apply at a time, ISO 8601 in UTC."""
    outside = "SELECT document_id FROM document WHERE valid_from > ? OR valid_until < ?"
    return frozenset(corpus.column(outside, (at, at)))


_FILES_OF_CHUNKS = (
    "SELECT chunk_id, location, path, f.content_hash, recipe, size, modified_ns FROM chunk c "
    f"JOIN document d ON d.id = c.document JOIN file f ON f.id = d.file WHERE chunk_id {IN_SET} "
    "AND d.id NOT IN (SELECT document FROM remembered) ORDER BY chunk_id"
)


def prefetch_files_of_chunks(corpus: Corpus, chunk_ids: Sequence[str]) -> None:
    """Say that :func:`files_of_chunks` will be asked of these chunks."""
    corpus.prefetch(_FILES_OF_CHUNKS, (chunk_ids,))


def files_of_chunks(corpus: Corpus, chunk_ids: Sequence[str]) -> dict[str, StoredFile]:
    """Chunk id → its file as it was when it was ingested, ordered by chunk id.

    Remembered facts have no file, and the files of a replica are on another machine.
    """
    rows = corpus.rows(_FILES_OF_CHUNKS, (chunk_ids,))
    files = zip(rows, rows_as(StoredFile, (row[1:] for row in rows)), strict=True)
    return {row[0]: file for row, file in files if not file.location.startswith(PUBLISHED)}


def listed_documents(corpus: Corpus, rowids: Sequence[int]) -> list[tuple[DocumentMetadata, int]]:
    """Metadata and number of chunks of these documents, ordered by id."""
    chunks = "(SELECT count(*) FROM chunk c WHERE c.document = d.id)"
    rows = corpus.rows(
        f"SELECT {chunks}, {', '.join(METADATA.values())} FROM {DOCUMENT_TABLES} "
        f"WHERE d.id {IN_SET} ORDER BY document_id",
        (rowids,),
    )
    documents = metadata_of(row[1:] for row in rows)
    return [(document, row[0]) for row, document in zip(rows, documents, strict=True)]


class DocumentHead(NamedTuple):
    """What stands above the text of a document."""

    rowid: int
    title: str
    attributes: Attributes


def document_heads(corpus: Corpus, rowids: Sequence[int]) -> dict[int, DocumentHead]:
    """The heads of these documents by their rowids."""
    heads = corpus.select(DocumentHead, f"document WHERE id {IN_SET}", (rowids,), {"rowid": "id"})
    return {head.rowid: head for head in heads}


class DocumentKind(NamedTuple):
    """What the rules of an overlay look at in documents, and how many of them are alike in it."""

    source_id: str
    document_type: str
    domain: str
    source_kind: str
    trust_tier: str
    path: str
    documents: int = 1


def document_kinds(corpus: Corpus) -> list[DocumentKind]:
    """The kinds of the documents, sorted."""
    grouped = f"{DOCUMENT_TABLES} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6"
    return corpus.select(DocumentKind, grouped, columns={"documents": "count(*)"})


def document_groups(
    corpus: Corpus,
    *,
    by_date: bool,
    by_role: bool = False,
    by_path: Callable[[DocumentMetadata, str], Hashable] | None = None,
) -> list[DocumentGroup]:
    """Groups of documents that a role's policy treats alike, so that it decides once for each.

    In a large corpus this saves half a second.

    If the scan found something else in one chunk than in others, a document is in several groups.

    Args:
        corpus: an open corpus.
        by_date: whether ``updated_at`` and ``inferred_at`` count, too.
        by_role: whether it looks at applicable roles, too. If the chunks of a document have
            different ones, it is in several groups.
        by_path: if paths count, too: gives a key for the metadata and path of a document; those
            with equal keys are one group. It may look at the source kind, too.
    """
    flags = "coalesce(found.kinds, '[]')"
    findings = (
        "LEFT JOIN (SELECT DISTINCT s.document, coalesce(c.flags, s.kinds) AS kinds FROM scanned s "
        "LEFT JOIN chunk c ON c.document = s.document) found ON found.document = id"
    )
    keys = (
        "source, document_type, domain, trust_tier, origin, sensitivity, excluded_roles, "
        f"valid_from, valid_until, {flags}"
    )
    roles, chunks = "'[]'", ""
    if by_role:
        roles = "c.applicable_roles"
        chunks = "JOIN (SELECT DISTINCT document, applicable_roles FROM chunk) c ON c.document = id"
        keys += f", {roles}"
    if by_date:
        keys += ", updated_at, inferred_at"
    if by_path:
        keys += ", source_kind"
    rows = corpus.rows(
        f"SELECT alike.rows, alike.roles, alike.flags, {', '.join(METADATA.values())} FROM (SELECT "
        f"min(id) AS first, json_group_array(id) AS rows, {roles} AS roles, {flags} AS flags "
        f"FROM document {findings} {chunks} GROUP BY {keys}) "
        "AS alike JOIN document d ON d.id = alike.first JOIN source s ON s.id = d.source "
        "ORDER BY d.id"
    )
    lists = typed((row[1:3] for row in rows), Texts, Texts)
    documents = metadata_of(row[3:] for row in rows)
    groups = [
        DocumentGroup(document, "", roles, flags, json.loads(row[0]), document.excluded_roles)
        for row, (roles, flags), document in zip(rows, lists, documents, strict=True)
    ]
    return _divided(corpus, groups, by_path) if by_path else groups


def _divided(
    corpus: Corpus,
    groups: Iterable[DocumentGroup],
    by_path: Callable[[DocumentMetadata, str], Hashable],
) -> list[DocumentGroup]:
    """The groups, divided by the key of their documents' paths."""
    rows = corpus.rows("SELECT d.id, f.path FROM document d JOIN file f ON f.id = d.file")
    paths: dict[int, str] = dict(typed(rows, int, str))
    divided: list[DocumentGroup] = []
    for group in groups:
        by_key: dict[Hashable, DocumentGroup] = {}
        for rowid in group.rowids:
            path = paths.get(rowid)
            if path is None:
                raise damage_error("the file of a document")
            empty = group._replace(path=path, rowids=[])
            by_key.setdefault(by_path(group.document, path), empty).rowids.append(rowid)
        divided += by_key.values()
    return divided


def documents_with(corpus: Corpus, field: str, holds: Callable[[Sequence[str]], bool]) -> set[int]:
    """The rowids of the documents whose :func:`texts_of` a field meet a condition."""
    columns = _COLUMNS_OF_FIELD.get(field, (field,))
    types = [_COLUMN_TYPES[column] for column in columns]
    answers: dict[Row, bool] = {}
    rowids = set()
    for rowid, *row in corpus.rows(f"SELECT d.id, {', '.join(columns)} FROM {DOCUMENT_TABLES}"):
        values = tuple(row)
        if values not in answers:  # Many documents have the same ones.
            [read] = typed([values], *types)
            answers[values] = holds(texts_of(field, dict(zip(columns, read, strict=True))))
        if answers[values]:
            rowids.add(rowid)
    return rowids


def texts_of(field: str, columns: Mapping[str, Any]) -> list[str]:
    """The texts of a field that a search is narrowed by, given a document's columns.

    A path has two: the path of the file within its root, and the URI. An undated document has no
    ``updated_at``. Values of attributes come after their key, as ``key: value``.
    """
    texts: list[str] = []
    for column in _COLUMNS_OF_FIELD.get(field, (field,)):
        value = columns[column]
        if field == "document_type" and column == "attributes":
            texts += dict(value).get(OBSERVED_TYPE, ())[:1]
        elif column == "attributes":
            texts += attribute_lines(value)
        elif value is not None:
            texts += [value] if isinstance(value, str) else value
    return texts


def field_values(corpus: Corpus, field: str) -> list[str]:
    """The values that documents have in a field, sorted."""
    present: set[str] = set()

    def collect(values: Sequence[str]) -> bool:
        present.update(values)
        return False

    documents_with(corpus, field, collect)
    return sorted(present)


def metadata_of(rows: Iterable[Sequence[object]]) -> list[DocumentMetadata]:
    """The metadata of documents, each from the values of ``METADATA``.

    Raises:
        CorpusCorrupt: they are something else.
    """
    documents = rows_as(DocumentMetadata, rows)
    for document in documents:
        moments = [getattr(document, name) for name in _MOMENTS]
        if not all(moment is None or is_moment(moment) for moment in moments):
            raise damage_error(f"the document {document.document_id!r}")
    return documents


@lru_cache(maxsize=4_096, typed=True)
def cached_metadata(*row: object) -> DocumentMetadata:
    """The metadata of one document, from the values of ``METADATA``.

    Cached, because answers have passages of the same documents again and again.
    """
    return metadata_of([row])[0]


def source_sizes(corpus: Corpus) -> list[tuple[str, str, int, int]]:
    """Source, trust tier, number of documents and of chunks, ordered by source and trust tier."""
    rows = corpus.rows(
        "SELECT s.source_id, d.trust_tier, count(*), "
        "sum((SELECT count(*) FROM chunk c WHERE c.document = d.id)) FROM source s "
        "JOIN document d ON d.source = s.id "
        "GROUP BY s.source_id, d.trust_tier ORDER BY s.source_id, d.trust_tier"
    )
    return typed(rows, str, str, int, int)


def count_trusted(corpus: Corpus) -> int:
    """How many documents are preferred or authoritative."""
    trusted = "SELECT count(*) FROM document WHERE trust_tier IN ('preferred', 'authoritative')"
    # Kept, because it reads all documents.
    return once_in_generation(corpus, "trusted", lambda: int(corpus.value(trusted)))


def count_partly_read(corpus: Corpus) -> int:
    """How many documents a reader has read in part only."""
    # The quotation marks of a key are no part of a value, in which they are escaped.
    partly_read = "SELECT count(*) FROM document WHERE attributes LIKE ?"
    return int(corpus.value(partly_read, (f'%"{PARTLY_READ}"%',)))


def count_types(corpus: Corpus) -> Counter[str]:
    """How many documents are of each type, by declaration or else by what they show."""
    rows = corpus.rows(
        "SELECT document_type, CASE WHEN attributes LIKE ? THEN attributes ELSE '{}' END, count(*) "
        "FROM document GROUP BY 1, 2",
        (f'%"{OBSERVED_TYPE}"%',),
    )
    counts = Counter[str]()
    for declared, attributes, documents in rows:
        counts[json.loads(attributes).get(OBSERVED_TYPE, [declared])[0]] += documents
    del counts[NO_TYPE]
    return counts


MANY_DOCUMENTS = 10
"""In a corpus with more of them, one should not have most of the passages."""


def dominating(corpus: Corpus) -> str:
    """Which document has most of a larger corpus's passages, and what to do; empty if none has."""
    [(documents, chunks)] = corpus.rows("SELECT documents, chunks FROM corpus_state")
    most = "SELECT document, count(*) FROM chunk GROUP BY document ORDER BY 2 DESC, 1 LIMIT 1"
    for row, count in corpus.rows(most) if documents > MANY_DOCUMENTS else ():
        if 2 * count > chunks:
            path = corpus.value(f"SELECT f.path FROM {DOCUMENT_TABLES} WHERE d.id = ?", (row,))
            step = "if few will ask for it, name it in a file `.ignore`, and ingest again"
            return f"{path}: has {count:,} of the corpus's {chunks:,} passages; {step}"
    return ""


def self_declared(corpus: Corpus) -> list[SelfDeclaredDocument]:
    """Documents that declare a trust tier above ``general`` or supersede others, by id.

    The key ``unknown`` stands for documents of which an earlier version stored no origin.
    """
    from rolebundle.contracts.upkeep import SelfDeclaredDocument

    rows = corpus.rows(
        f"SELECT document_id, path, trust_tier, self_declared, supersedes FROM {DOCUMENT_TABLES} "
        "WHERE self_declared <> '[]' ORDER BY document_id"
    )
    documents = []
    for document_id, path, tier, declared, supersedes in typed(
        rows, str, str, TrustTier, Texts, str
    ):
        counting = {
            "trust_tier": tier in TRUSTED_TIERS,
            "supersedes": supersedes != "[]",
            "unknown": True,
        }
        keys = [key for key in sorted(declared) if counting.get(key)]
        if keys:
            documents.append(
                SelfDeclaredDocument(document_id=document_id, path=path, trust_tier=tier, keys=keys)
            )
    return documents


def scopes_and_files(corpus: Corpus) -> list[tuple[str, str, str]]:
    """The combinations of scope, path and location in the corpus."""
    rows = corpus.rows(f"SELECT scope, path, location FROM {DOCUMENT_TABLES} GROUP BY 1, 2, 3")
    return typed(rows, str, str, str)
