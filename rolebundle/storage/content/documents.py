"""Reading documents; `store.py` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from rolebundle.contracts.document import DocumentMetadata, attribute_lines
from rolebundle.contracts.terms import TrustTier
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.sqlite_file import Row
from rolebundle.storage.files.stored_values import (
    check_rows,
    check_types,
    damaged,
    parse_attributes,
    parse_strings,
)
from rolebundle.storage.records.replica import PUBLISHED

METADATA_COLUMNS = (
    "d.document_id, s.source_id, d.title, d.uri, d.document_type, d.domain, d.trust_tier, "
    "d.updated_at, d.inferred_at, d.valid_from, d.valid_until, d.language, d.source_kind, "
    "d.sensitivity, d.origin, d.scope, d.tags, d.applicable_roles, d.excluded_roles, "
    "d.retrieval_hints, d.supersedes, d.contradicts, d.self_declared, d.refused_claims, "
    "d.attributes"
)
_FIRST_LIST = 16
_TRUST_TIER, _FIRST_MOMENT, _AFTER_MOMENTS = 6, 7, 11
_TRUST_TIERS = frozenset(get_args(TrustTier))
_DOCUMENT_TYPES: list[type] = [str] * 21
"""Without the times, which may be missing."""

DocumentField = Literal[
    "source", "document_type", "domain", "tags", "path", "updated_at", "attributes"
]
"""What a search can be narrowed by."""
# The columns of its values, and where they are.
_VALUES: dict[DocumentField, tuple[str, str]] = {
    "source": ("source_id", "document d JOIN source s ON s.id = d.source"),
    "document_type": ("document_type", "document d"),
    "domain": ("domain", "document d"),
    "tags": ("tags", "document d"),
    "path": ("path, uri", "document d JOIN file f ON f.id = d.file"),
    "updated_at": ("updated_at", "document d WHERE updated_at IS NOT NULL"),
    "attributes": ("attributes", "document d WHERE attributes <> '{}'"),
}


def documents_of(corpus: Corpus, rowids: Sequence[int]) -> list[int]:
    """The rowids of the documents of these chunks."""
    rows = corpus.rows(
        "SELECT DISTINCT document FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )
    return [document for (document,) in rows]


class DocumentName(NamedTuple):
    """The names of a document: its id, its source, and the path and location of its file."""

    row: int
    document_id: str
    source_id: str
    path: str
    location: str


_NAMES = (
    "SELECT d.id, d.document_id, s.source_id, f.path, f.location FROM document d "
    "JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file"
)


def document_names(
    corpus: Corpus, *, after: str = "", limit: int | None = None
) -> list[DocumentName]:
    """The names of the documents, ordered by id.

    Args:
        corpus: an open corpus.
        after: only documents with a greater id.
        limit: at most so many; ``None`` for all.
    """
    return _names(
        corpus.rows(
            f"{_NAMES} WHERE d.document_id > ? ORDER BY d.document_id LIMIT ?",
            (after, -1 if limit is None else limit),
        )
    )


def documents_named(corpus: Corpus, name: str, locations: Sequence[str]) -> list[DocumentName]:
    """The documents that a name means: the one with this id, else of the file at one of these
    absolute locations, else of the files with this path; ordered by id.
    """  # noqa: D205
    for column, names in (
        ("d.document_id", [name]),
        ("f.location", locations),
        ("f.path", [name]),
    ):
        condition = f"{column} IN (SELECT value FROM json_each(?)) ORDER BY d.document_id"
        rows = corpus.rows(f"{_NAMES} WHERE {condition}", (json.dumps([*names]),)) if names else []
        if rows:
            return _names(rows)
    return []


class SourceFile(NamedTuple):
    """The file of a chunk as it was when it was ingested; see :class:`StoredFile`."""

    chunk_id: str
    location: str
    path: str
    content_hash: str
    size: int
    modified_ns: int


def source_files(corpus: Corpus, chunk_ids: Sequence[str]) -> list[SourceFile]:
    """The files of these chunks, ordered by chunk id.

    Remembered facts have none, and those of a replica are on another machine.
    """
    rows = corpus.rows(
        "SELECT c.chunk_id, f.location, f.path, f.content_hash, f.size, f.modified_ns FROM chunk c "
        "JOIN document d ON d.id = c.document JOIN file f ON f.id = d.file "
        "WHERE c.chunk_id IN (SELECT value FROM json_each(?)) "
        "AND d.id NOT IN (SELECT document FROM remembered) ORDER BY c.chunk_id",
        (json.dumps([*chunk_ids]),),
    )
    check_rows(rows, (str, str, str, str, int, int), "a file")
    return [SourceFile(*row) for row in rows if not row[1].startswith(PUBLISHED)]


def listed_documents(
    corpus: Corpus, rowids: Sequence[int]
) -> list[tuple[DocumentName, DocumentMetadata, int]]:
    """Names, metadata and number of chunks of these documents, ordered by id."""
    rows = corpus.rows(
        "SELECT d.id, d.document_id, s.source_id, f.path, f.location, "
        f"(SELECT count(*) FROM chunk c WHERE c.document = d.id), {METADATA_COLUMNS} "
        "FROM document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file "
        "WHERE d.id IN (SELECT value FROM json_each(?)) ORDER BY d.document_id",
        (json.dumps([*rowids]),),
    )
    return [(_names([row[:5]])[0], parse_metadata(row[6:]), row[5]) for row in rows]


def _names(rows: Sequence[Row]) -> list[DocumentName]:
    check_rows(rows, (int, str, str, str, str), "a document")
    return [DocumentName(*row) for row in rows]


def all_documents(corpus: Corpus) -> list[tuple[int, DocumentMetadata]]:
    """(rowid, metadata) of every document."""
    rows = corpus.rows(
        f"SELECT d.id, {METADATA_COLUMNS} FROM document d JOIN source s ON s.id = d.source "
        "ORDER BY d.id"
    )
    return [(rowid, parse_metadata(columns)) for rowid, *columns in rows]


class DocumentKind(NamedTuple):
    """What the rules of an overlay look at in a document."""

    source_id: str
    document_type: str
    domain: str
    source_kind: str
    trust_tier: str
    path: str


_KIND = "s.source_id, d.document_type, d.domain, d.source_kind, d.trust_tier, f.path"
_KIND_TABLES = "document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file"


def document_kinds(corpus: Corpus) -> list[DocumentKind]:
    """What the rules of overlays look at in the documents, sorted, without repeats."""
    rows = corpus.rows(f"SELECT DISTINCT {_KIND} FROM {_KIND_TABLES} ORDER BY 1, 2, 3, 4, 5, 6")
    check_rows(rows, [str] * 6, "a document")
    return [DocumentKind(*row) for row in rows]


class KindCount(NamedTuple):
    """How many documents rules cannot tell apart, and the id of the first of them."""

    kind: DocumentKind
    documents: int
    document_id: str


def kind_counts(corpus: Corpus) -> list[KindCount]:
    """The kinds of :func:`document_kinds` with the number of their documents."""
    rows = corpus.rows(
        f"SELECT {_KIND}, count(*), min(d.document_id) FROM {_KIND_TABLES} "
        "GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6"
    )
    check_rows(rows, (*[str] * 6, int, str), "a document")
    return [KindCount(DocumentKind(*row[:6]), *row[6:]) for row in rows]


class DocumentGroup(NamedTuple):
    """Documents that a role's policy treats alike: metadata and path of one, and all rowids.

    ``applicable_roles`` are those of chunks, and empty if they were not asked for. So is ``path``.
    """

    document: DocumentMetadata
    path: str
    applicable_roles: tuple[str, ...]
    flags: tuple[str, ...]
    rowids: list[int]

    @property
    def excluded_roles(self) -> tuple[str, ...]:
        """The roles that every chunk excludes."""
        return self.document.excluded_roles

    @property
    def mark(self) -> None:
        """Nothing: marks are of single passages and documents, and not of groups."""


def document_groups(
    corpus: Corpus,
    *,
    dated: bool,
    by_role: bool = False,
    by_path: Callable[[DocumentMetadata, str], Hashable] | None = None,
) -> list[DocumentGroup]:
    """Groups of documents that a role's policy treats alike.

    A large corpus has few such groups, and to read all of its documents takes half a second.

    Args:
        corpus: an open corpus.
        dated: whether ``updated_at`` counts, too.
        by_role: whether it looks at applicable roles, too. If the chunks of a document have
            different ones, it is in several groups.
        by_path: if paths count, too: which of them policy treats alike, for documents with this
            metadata. It may look at the source kind in addition to the keys of policy.
    """
    kinds = "coalesce(scanned.kinds, '[]')"
    keys = (
        "source, document_type, domain, trust_tier, origin, sensitivity, excluded_roles, "
        f"valid_from, valid_until, {kinds}"
    )
    roles, chunks = "'[]'", ""
    if by_role:
        roles = "c.applicable_roles"
        chunks = "JOIN (SELECT DISTINCT document, applicable_roles FROM chunk) c ON c.document = id"
        keys += f", {roles}"
    if dated:
        keys += ", updated_at, inferred_at"
    if by_path:
        keys += ", source_kind"
    rows = corpus.rows(
        f"SELECT kind.rows, kind.roles, kind.kinds, {METADATA_COLUMNS} FROM (SELECT min(id) AS "
        f"first, json_group_array(id) AS rows, {roles} AS roles, {kinds} AS kinds FROM document "
        f"LEFT JOIN scanned ON scanned.document = id {chunks} GROUP BY {keys}) AS kind "
        "JOIN document d ON d.id = kind.first JOIN source s ON s.id = d.source ORDER BY d.id"
    )
    groups = [
        DocumentGroup(
            parse_metadata(columns),
            "",
            parse_strings(str(roles), "a list of a chunk"),
            parse_strings(str(kinds), "a list of a chunk"),
            json.loads(rowids),
        )
        for rowids, roles, kinds, *columns in rows
    ]
    return _divided(corpus, groups, by_path) if by_path else groups


def _divided(
    corpus: Corpus,
    groups: Iterable[DocumentGroup],
    kind_of: Callable[[DocumentMetadata, str], Hashable],
) -> list[DocumentGroup]:
    """The groups, divided by the kind of their documents' paths."""
    paths: dict[int, str] = {}
    for row in corpus.rows("SELECT d.id, f.path FROM document d JOIN file f ON f.id = d.file"):
        check_types(row, (int, str), "the path of a document")
        paths[row[0]] = row[1]
    divided: list[DocumentGroup] = []
    for group in groups:
        parts: dict[Hashable, DocumentGroup] = {}
        for rowid in group.rowids:
            path = paths.get(rowid)
            if path is None:
                raise damaged("the file of a document")
            part = group._replace(path=path, rowids=[])
            parts.setdefault(kind_of(group.document, path), part).rowids.append(rowid)
        divided += parts.values()
    return divided


def documents_with(
    corpus: Corpus, field: DocumentField, holds: Callable[[Sequence[str]], bool]
) -> set[int]:
    """The rowids of the documents whose values of a field meet a condition.

    A path has two values: that of the file within its root, and the URI. Undated documents have no
    ``updated_at`` and are left out. Values of attributes come after their key, as ``key: value``.
    """
    columns, tables = _VALUES[field]
    types = [str] * (1 + columns.count(","))
    answers: dict[Row, bool] = {}
    rowids = set()
    for rowid, *row in corpus.rows(f"SELECT d.id, {columns} FROM {tables}"):
        # Many documents have the same values.
        values = tuple(row)
        answer = answers.get(values)
        if answer is None:
            check_types(values, types, "a document")
            if field == "tags":
                answer = holds(parse_strings(row[0], "a list of a document"))
            elif field == "attributes":
                answer = holds(attribute_lines(parse_attributes(row[0])))
            else:
                answer = holds(values)
            answers[values] = answer
        if answer:
            rowids.add(rowid)
    return rowids


def values_of(corpus: Corpus, field: DocumentField) -> list[str]:
    """The values that documents have in a field, sorted."""
    present: set[str] = set()

    def collect(values: Sequence[str]) -> bool:
        present.update(values)
        return False

    documents_with(corpus, field, collect)
    return sorted(present)


def parse_metadata(columns: Sequence[object]) -> DocumentMetadata:
    """The metadata of a document as it is stored.

    Args:
        columns: the values of ``METADATA_COLUMNS``.

    Raises:
        CorpusCorrupt: they are something else.
    """
    moments = columns[_FIRST_MOMENT:_AFTER_MOMENTS]
    other_columns = (*columns[:_FIRST_MOMENT], *columns[_AFTER_MOMENTS:])
    check_types(other_columns, _DOCUMENT_TYPES, "a document")
    if columns[_TRUST_TIER] not in _TRUST_TIERS or not all(map(_is_moment_or_none, moments)):
        raise damaged(f"the document {columns[0]!r}")
    plain, lists = columns[:_FIRST_LIST], columns[_FIRST_LIST:-1]
    tuples = (parse_strings(str(text), "a list of a document") for text in lists)
    attributes = parse_attributes(str(columns[-1]))
    return DocumentMetadata(*plain, *tuples, attributes)  # type: ignore[arg-type, call-arg]


def _is_moment_or_none(value: object) -> bool:
    if value is None:
        return True
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


class SourceSize(NamedTuple):
    """How much of one source and trust tier there is."""

    source_id: str
    trust_tier: str
    documents: int
    chunks: int


def source_sizes(corpus: Corpus) -> list[SourceSize]:
    """The sizes of all sources, ordered by source and trust tier."""
    rows = corpus.rows(
        "SELECT s.source_id, d.trust_tier, count(*), "
        "sum((SELECT count(*) FROM chunk c WHERE c.document = d.id)) FROM source s "
        "JOIN document d ON d.source = s.id "
        "GROUP BY s.source_id, d.trust_tier ORDER BY s.source_id, d.trust_tier"
    )
    check_rows(rows, (str, str, int, int), "a source")
    return [SourceSize(*row) for row in rows]


_FROM_TRUSTED = "FROM document WHERE trust_tier IN ('preferred', 'authoritative')"


def count_trusted(corpus: Corpus) -> int:
    """How many documents are preferred or authoritative."""
    return int(corpus.value(f"SELECT count(*) {_FROM_TRUSTED}"))


def has_trusted(corpus: Corpus) -> bool:
    """Whether a document is preferred or authoritative."""
    return bool(corpus.value(f"SELECT EXISTS (SELECT 1 {_FROM_TRUSTED})"))


class SelfDeclared(NamedTuple):
    """A document whose authority is its own declaration, and the keys of that declaration."""

    document_id: str
    path: str
    trust_tier: TrustTier
    keys: tuple[str, ...]


def self_declared(corpus: Corpus) -> list[SelfDeclared]:
    """Documents that declare a trust tier above ``general`` or supersede others, by id.

    The key ``unknown`` stands for those of which an earlier version stored no origin.
    """
    rows = corpus.rows(
        "SELECT d.document_id, f.path, d.trust_tier, d.self_declared, d.supersedes "
        "FROM document d JOIN file f ON f.id = d.file WHERE d.self_declared <> '[]' "
        "ORDER BY d.document_id"
    )
    documents = []
    for document_id, path, trust_tier, declared, supersedes in rows:
        check_types((document_id, path, declared, supersedes), [str] * 4, "a document")
        keys = set(parse_strings(declared, "a list of a document"))
        if trust_tier not in ("authoritative", "preferred"):
            keys.discard("trust_tier")
        if supersedes == "[]":
            keys.discard("supersedes")
        keys &= {"trust_tier", "supersedes", "unknown"}
        if keys:
            documents.append(SelfDeclared(document_id, path, trust_tier, tuple(sorted(keys))))
    return documents


class AccessAttributes(NamedTuple):
    """What a policy's access rules look at in a document."""

    scope: str
    sensitivity: str
    path: str
    location: str


def access_attributes(corpus: Corpus) -> list[AccessAttributes]:
    """The distinct combinations in the corpus."""
    rows = corpus.rows(
        "SELECT DISTINCT d.scope, d.sensitivity, f.path, f.location FROM document d "
        "JOIN file f ON f.id = d.file"
    )
    check_rows(rows, (str, str, str, str), "a document")
    return [AccessAttributes(*row) for row in rows]
