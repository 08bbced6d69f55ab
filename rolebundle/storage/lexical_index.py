"""The lexical indexes: FTS5 with BM25, one table a compartment.

SQL is built by one function and run by another. BM25 counts how often a term occurs in a table, so
that a table that held what an agent may not see would tell of it (docs/decisions/0011).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.sqlite_file import damaged

# bm25() weights of title, headings, content, tags, hints.
COLUMN_WEIGHTS = (2.0, 1.5, 1.0, 1.0, 1.0)

_COLUMNS = "title, headings, content, tags, hints"
_TOKENIZER = "porter unicode61 remove_diacritics 2"
# A document filter, as a set that SQLite builds once; the unary plus keeps the planner from
# running the full-text query once for each rowid in it.
_WITHIN = " AND +rowid IN (SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?)))"
_THESE = " AND +rowid IN (SELECT value FROM json_each(?))"
# A commit leaves a segment for each megabyte of words. FTS5 would merge them four by four as they
# come, and write a word of a large ingest several times; so they wait for a crowd, or for `merge`.
_SETTINGS = {"automerge": 0, "crisismerge": 128}
_PAGES_A_STEP = 2_000


class Extent(NamedTuple):
    """How many chunks an index holds, and how many tokens they have together."""

    chunks: int
    tokens: int


def table(compartment: int) -> str:
    """The FTS5 table of a compartment."""
    return f"lexical_{int(compartment)}"


def content_view(compartment: int) -> tuple[str, str]:
    """The name and the SQL of the view that FTS5 compares the index with, and rebuilds it from.

    The one view that the file may hold; only :func:`check` and :func:`rebuild` look at it.
    """
    name = f"indexed_{int(compartment)}"
    return name, (
        f"CREATE VIEW {name} AS SELECT c.id, c.title, c.headings, c.content, c.tags, c.hints "
        "FROM chunk c JOIN document d ON d.id = c.document "
        f"WHERE d.compartment = {int(compartment)}"
    )


def create(corpus: Corpus, compartment: int) -> None:
    """Make the empty index of a compartment. Call it inside a write transaction."""
    view, sql = content_view(compartment)
    corpus.run(sql)
    corpus.run(
        f"CREATE VIRTUAL TABLE {table(compartment)} USING fts5 ({_COLUMNS}, "
        f"content = '{view}', content_rowid = 'id', tokenize = '{_TOKENIZER}')"
    )
    for setting, value in _SETTINGS.items():
        _order(corpus, compartment, setting, value)


def drop(corpus: Corpus, compartment: int) -> None:
    """Remove the index of a compartment."""
    corpus.run(f"DROP TABLE IF EXISTS {table(compartment)}")
    corpus.run(f"DROP VIEW IF EXISTS {content_view(compartment)[0]}")


def _bm25(compartment: int) -> str:
    return f"bm25({table(compartment)}, {', '.join(str(weight) for weight in COLUMN_WEIGHTS)})"


def search_sql(compartment: int, *, within: bool = False) -> str:
    """The best chunks for a MATCH expression.

    Bindings: match[, documents as JSON], limit. bm25() is smaller for better matches; we turn its
    sign. Ties are broken by rowid.
    """
    name = table(compartment)
    return (
        f"SELECT rowid, -{_bm25(compartment)} AS score FROM {name} WHERE {name} MATCH ?"
        f"{_WITHIN if within else ''} ORDER BY score DESC, rowid LIMIT ?"
    )


def among_sql(compartment: int) -> str:
    """The best chunks among those that another expression matches too, and the scores of others.

    Bindings: the other match, match, rowids as JSON, limit, the rowids once more. Rows: rowid,
    score, 1 for the best and 0 for the others. Scoring is what an OR query's time goes to, and
    going through all that matches; so the scores of some more chunks come with it for nothing.
    """
    name = table(compartment)
    return (
        f"WITH telling (id) AS MATERIALIZED (SELECT rowid FROM {name} WHERE {name} MATCH ?), "
        f"scored (id, score) AS MATERIALIZED (SELECT rowid, -{_bm25(compartment)} FROM {name} "
        f"WHERE {name} MATCH ? AND (+rowid IN (SELECT id FROM telling) "
        "OR +rowid IN (SELECT value FROM json_each(?)))) "
        "SELECT id, score, 1 AS best FROM (SELECT id, score FROM scored "
        "WHERE id IN (SELECT id FROM telling) ORDER BY score DESC, id LIMIT ?) "
        "UNION ALL SELECT id, score, 0 FROM scored "
        "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY best DESC, score DESC, id"
    )


def score_sql(compartment: int) -> str:
    """The scores of given chunks; bindings: match, rowids as JSON."""
    name = table(compartment)
    return f"SELECT rowid, -{_bm25(compartment)} FROM {name} WHERE {name} MATCH ?{_THESE}"


def search(
    corpus: Corpus,
    compartment: int,
    match: str,
    limit: int,
    *,
    within: Sequence[int] | None = None,
) -> list[tuple[int, float]]:
    """The ``limit`` best (rowid, BM25) of a compartment for an FTS5 expression, best first.

    Args:
        corpus: an open corpus.
        compartment: where to search; the BM25 is by its own statistics.
        match: the expression that is scored.
        limit: how many.
        within: rowids of the documents to search in.
    """
    bindings: list[str | int] = [match]
    if within is not None:
        bindings.append(json.dumps(list(within)))
    sql = search_sql(compartment, within=within is not None)
    return corpus.rows(sql, (*bindings, limit))


def search_among(
    corpus: Corpus,
    compartment: int,
    match: str,
    limit: int,
    among: str,
    also: Sequence[int] = (),
) -> tuple[list[tuple[int, float]], dict[int, float]]:
    """As :func:`search`, scoring only what the expression ``among`` matches too, and ``also``.

    Returns:
        The ``limit`` best, best first; and the scores of those of ``also`` that match.
    """
    others = json.dumps(list(also))
    rows = corpus.rows(among_sql(compartment), (among, match, others, limit, others))
    best = [(rowid, score) for rowid, score, is_best in rows if is_best]
    return best, {rowid: score for rowid, score, _ in rows[len(best) :]}


def frequencies(corpus: Corpus, compartment: int, matches: Sequence[str]) -> list[int]:
    """How many chunks each expression matches; remembered until the corpus changes."""
    known = corpus.frequencies()
    missing = [match for match in matches if (compartment, match) not in known]
    if missing:
        name = table(compartment)
        counted = corpus.rows(
            f"SELECT key, (SELECT count(*) FROM {name} WHERE {name} MATCH value) FROM json_each(?)",
            (json.dumps(missing),),
        )
        known |= {(compartment, missing[place]): count for place, count in counted}
    return [known[compartment, match] for match in matches]


def score(corpus: Corpus, compartment: int, match: str, rowids: Sequence[int]) -> dict[int, float]:
    """The BM25 of those of ``rowids`` that the expression matches, by the compartment's figures."""
    return dict(corpus.rows(score_sql(compartment), (match, json.dumps(list(rowids)))))


def occurrences(
    corpus: Corpus, compartment: int, match: str, rowids: Sequence[int]
) -> dict[int, tuple[float, ...]]:
    """What BM25 needs of single chunks, whatever the statistics it is computed with.

    Returns:
        rowid → (tokens, then for each phrase of the expression how often it occurs, weighted by
        the column), for those of ``rowids`` that the expression matches.
    """
    corpus.load_occurrences(COLUMN_WEIGHTS)
    name = table(compartment)
    found = corpus.rows(
        f"SELECT rowid, occurrences({name}) FROM {name} WHERE {name} MATCH ?{_THESE}",
        (match, json.dumps(list(rowids))),
    )
    return {rowid: tuple(memoryview(packed).cast("d")) for rowid, packed in found}


def extent(corpus: Corpus, compartment: int) -> Extent:
    """How much an index holds, from FTS5's own record of it.

    The record (row 1 of the table's data) is varints: the number of rows, then the tokens of each
    column; see "averages" in SQLite's ``fts5_index.c``.

    Raises:
        CorpusCorrupt: there is no such record.
    """
    block = corpus.value(f"SELECT block FROM {table(compartment)}_data WHERE id = 1")
    if not isinstance(block, bytes):
        raise damaged(f"the record of {table(compartment)}")
    numbers = _varints(block)
    return Extent(numbers[0], sum(numbers[1:])) if numbers else Extent(0, 0)


def _varints(block: bytes) -> list[int]:
    """SQLite's varints: seven bits a byte, the high bit set on all but the last."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def matches(corpus: Corpus, compartment: int, match: str, rowid: int) -> bool:
    """Whether an expression matches this chunk."""
    name = table(compartment)
    return bool(
        corpus.rows(f"SELECT 1 FROM {name} WHERE {name} MATCH ? AND rowid = ?", (match, rowid))
    )


def add(corpus: Corpus, compartment: int, first_rowid: int, last_rowid: int) -> None:
    """Index those chunks of the range, ends included, that belong to the compartment."""
    corpus.run(
        f"INSERT INTO {table(compartment)} (rowid, {_COLUMNS}) "
        f"SELECT c.id, {_columns('c')} FROM chunk c CROSS JOIN document d ON d.id = c.document "
        "WHERE c.id BETWEEN ? AND ? AND d.compartment = ?",
        (first_rowid, last_rowid, compartment),
    )


def add_these(corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
    """Index these chunks."""
    corpus.run(
        f"INSERT INTO {table(compartment)} (rowid, {_COLUMNS}) "
        f"SELECT id, {_COLUMNS} FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )


def remove(corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
    """Take chunks out of the index. Call it while their rows still hold what was indexed."""
    name = table(compartment)
    corpus.run(
        f"INSERT INTO {name} ({name}, rowid, {_COLUMNS}) "
        f"SELECT 'delete', id, {_COLUMNS} FROM chunk "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )


def rebuild(corpus: Corpus, compartment: int) -> None:
    """Build the index anew from the chunks."""
    name = table(compartment)
    with corpus.own_views():
        corpus.run(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")
    while merge(corpus, compartment):
        pass


def merge(corpus: Corpus, compartment: int) -> bool:
    """One step of merging the segments that commits left; about 8 MB of the file are written.

    Call it inside a write transaction. No answer changes by it; a word is looked up in each
    segment, so that fewer of them answer sooner.

    Returns:
        Whether there was anything to merge, and may be more.
    """
    before = corpus.value("SELECT total_changes()")
    _order(corpus, compartment, "merge", _PAGES_A_STEP)
    # One change is the order itself, and the next tells of a page (https://sqlite.org/fts5.html).
    return bool(corpus.value("SELECT total_changes()") - before >= 2)


def _order(corpus: Corpus, compartment: int, order: str, number: int) -> None:
    name = table(compartment)
    corpus.run(f"INSERT INTO {name} ({name}, rank) VALUES (?, ?)", (order, number))


def check(corpus: Corpus, compartment: int) -> None:
    """Compare the index with the chunks; rank = 1 is what compares the content.

    Raises:
        CorpusCorrupt: they differ.
    """
    with corpus.own_views():
        _order(corpus, compartment, "integrity-check", 1)


def _columns(alias: str) -> str:
    return ", ".join(f"{alias}.{column}" for column in _COLUMNS.split(", "))
