"""The lexical index: FTS5 with BM25. SQL is built by one function and run by another."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rolebundle.corpus.connection import Corpus

# bm25() weights of title, headings, content, tags, hints.
COLUMN_WEIGHTS = (2.0, 1.5, 1.0, 1.0, 1.0)

_COLUMNS = "title, headings, content, tags, hints"
_BM25 = f"bm25(lexical, {', '.join(str(weight) for weight in COLUMN_WEIGHTS)})"
# A document filter, as a set that SQLite builds once; the unary plus keeps the planner from
# running the full-text query once for each rowid in it.
_WITHIN = " AND +rowid IN (SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?)))"
_AMONG = " AND +rowid IN (SELECT rowid FROM lexical WHERE lexical MATCH ?)"
_THESE = " AND +rowid IN (SELECT value FROM json_each(?))"


def search_sql(*, within: bool = False, among: bool = False) -> str:
    """The best chunks for a MATCH expression.

    Bindings: match[, documents as JSON][, another match], limit. With ``among`` only chunks that
    the other expression matches too are scored, and scoring is what an OR query's time goes to.
    bm25() is smaller for better matches; we turn its sign. Ties are broken by rowid.
    """
    return (
        f"SELECT rowid, -{_BM25} AS score FROM lexical WHERE lexical MATCH ?"
        f"{_WITHIN if within else ''}{_AMONG if among else ''} "
        "ORDER BY score DESC, rowid LIMIT ?"
    )


def score_sql() -> str:
    """The scores of given chunks; bindings: match, rowids as JSON."""
    return f"SELECT rowid, -{_BM25} FROM lexical WHERE lexical MATCH ?{_THESE}"


def search(
    corpus: Corpus,
    match: str,
    limit: int,
    *,
    within: Sequence[int] | None = None,
    among: str | None = None,
) -> list[tuple[int, float]]:
    """The ``limit`` best (rowid, BM25) for an FTS5 expression, best first.

    Args:
        corpus: an open corpus.
        match: the expression that is scored.
        limit: how many.
        within: rowids of the documents to search in.
        among: another expression; only what it matches is scored.
    """
    bindings: list[str | int] = [match]
    if within is not None:
        bindings.append(json.dumps(list(within)))
    if among is not None:
        bindings.append(among)
    sql = search_sql(within=within is not None, among=among is not None)
    return corpus.rows(sql, (*bindings, limit))


def frequency(corpus: Corpus, match: str) -> int:
    """How many chunks an expression matches; remembered until the corpus changes."""
    known = corpus.frequencies()
    if match not in known:
        known[match] = int(
            corpus.value("SELECT count(*) FROM lexical WHERE lexical MATCH ?", (match,))
        )
    return known[match]


def score(corpus: Corpus, match: str, rowids: Sequence[int]) -> dict[int, float]:
    """The BM25 of those of ``rowids`` that the expression matches at all."""
    return dict(corpus.rows(score_sql(), (match, json.dumps(list(rowids)))))


def matches(corpus: Corpus, match: str, rowid: int) -> bool:
    """Whether an expression matches this chunk."""
    found = corpus.rows(
        "SELECT 1 FROM lexical WHERE lexical MATCH ? AND rowid = ?",
        (match, rowid),
    )
    return bool(found)


def add(corpus: Corpus, first_rowid: int, last_rowid: int) -> None:
    """Index the chunks whose rowids lie in the range, ends included."""
    corpus.run(
        f"INSERT INTO lexical (rowid, {_COLUMNS}) "
        f"SELECT id, {_COLUMNS} FROM chunk WHERE id BETWEEN ? AND ?",
        (first_rowid, last_rowid),
    )


def remove(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Take chunks out of the index. Call it while their rows still hold what was indexed."""
    corpus.run(
        f"INSERT INTO lexical (lexical, rowid, {_COLUMNS}) "
        f"SELECT 'delete', id, {_COLUMNS} FROM chunk "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )


def rebuild(corpus: Corpus) -> None:
    """Build the index anew from the chunks."""
    corpus.run("INSERT INTO lexical (lexical) VALUES ('rebuild')")


def check(corpus: Corpus) -> None:
    """Compare the index with the chunks; rank = 1 is what compares the content.

    Raises:
        CorpusCorrupt: they differ.
    """
    corpus.run("INSERT INTO lexical (lexical, rank) VALUES ('integrity-check', 1)")
