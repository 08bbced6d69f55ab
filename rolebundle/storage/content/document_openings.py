"""Which passages a reader begins with: the openings of documents, and what is newest."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rolebundle.storage.connection import Corpus

MAX_NEWEST_DOCUMENTS, MAX_INTRODUCTIONS, MAX_CHANGELOGS = 40, 20, 5
MAX_CHANGELOG_CHUNKS = 12
"""The newest entries of a changelog are in its first chunks."""

# No agent may see what is in quarantine.
_VISIBLE = "document d JOIN compartment k ON k.id = d.compartment AND k.quarantined = 0"
_WITHIN = "(?1 IS NULL OR d.id IN (SELECT value FROM json_each(?1)))"
_DATE = "coalesce(d.updated_at, d.inferred_at)"
_DEPTH = "length(f.path) - length(replace(f.path, '/', ''))"


def openings_of(corpus: Corpus, rowids: Sequence[int]) -> list[int]:
    """The rowids of the first chunks of the documents of these chunks."""
    rows = corpus.rows(
        "SELECT id FROM chunk WHERE ordinal = 0 AND document IN "
        "(SELECT document FROM chunk WHERE id IN (SELECT value FROM json_each(?)))",
        (json.dumps([*rowids]),),
    )
    return [rowid for (rowid,) in rows]


def newest_chunks(corpus: Corpus, until: str, within: Sequence[int] | None) -> list[int]:
    """The rowids of the first chunks of the newest documents and of changelogs.

    Args:
        corpus: an open corpus.
        until: later dates do not count, ISO 8601.
        within: rowids of documents; no others count. ``None`` for all.
    """
    newest = (
        f"SELECT d.id FROM {_VISIBLE} WHERE {_DATE} <= ?2 AND {_WITHIN} "
        f"ORDER BY {_DATE} DESC, d.document_id LIMIT {MAX_NEWEST_DOCUMENTS}"
    )
    changelogs = (
        f"SELECT d.id FROM {_VISIBLE} JOIN file f ON f.id = d.file WHERE {_WITHIN} "
        "AND (d.document_type = 'changelog' OR f.path LIKE '%changelog%' "
        "OR f.path LIKE '%changes.%' OR f.path LIKE '%history.%') "
        f"ORDER BY {_DEPTH}, {_DATE} DESC, d.document_id LIMIT {MAX_CHANGELOGS}"
    )
    return [
        *_chunks(corpus, newest, within, 1, until),
        *_chunks(corpus, changelogs, within, MAX_CHANGELOG_CHUNKS),
    ]


def introductions(
    corpus: Corpus, document_types: Sequence[str], within: Sequence[int] | None
) -> list[int]:
    """The rowids of the first two chunks of documents that introduce, the shallowest paths first.

    Args:
        corpus: an open corpus.
        document_types: types that introduce; so do files that are called README or index.
        within: rowids of documents; no others count. ``None`` for all.
    """
    documents = (
        f"SELECT d.id FROM {_VISIBLE} JOIN file f ON f.id = d.file WHERE {_WITHIN} "
        "AND (d.document_type IN (SELECT value FROM json_each(?2)) OR f.path LIKE '%readme%' "
        "OR f.path LIKE 'index.%' OR f.path LIKE '%/index.%') "
        f"ORDER BY {_DEPTH}, f.path, d.document_id LIMIT {MAX_INTRODUCTIONS}"
    )
    return _chunks(corpus, documents, within, 2, json.dumps([*document_types]))


def _chunks(
    corpus: Corpus, documents: str, within: Sequence[int] | None, count: int, *bindings: str
) -> list[int]:
    """The rowids of the first ``count`` chunks of the documents that a statement selects."""
    rows = corpus.rows(
        f"SELECT c.id FROM chunk c WHERE c.ordinal < {count} AND c.document IN ({documents})",
        (None if within is None else json.dumps([*within]), *bindings),
    )
    return [rowid for (rowid,) in rows]
