"""Look into compartments, and check that each has what belongs to it."""

from collections.abc import Iterable

import apsw

from rolebundle.retrieval.values import Term
from rolebundle.storage import compartments, lexical_index, vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.text.spellings import folded
from support.databases import IS_STORE

Kind = tuple[str, str, tuple[str, ...]]
"""Scope, sensitivity and deny patterns."""


def only_compartment(corpus: Corpus) -> int:
    """The compartment of a corpus with one scope, one sensitivity and no policy."""
    [rows] = compartments.searchable_compartments(corpus)
    return rows.id


def match_expression(terms: Iterable[Term]) -> str:
    """Terms as an FTS5 expression: each as often as it weighs, as quoted phrases joined by OR."""
    return " OR ".join(
        '"' + folded(term.text).replace("\x00", " ").replace('"', '""') + '"'
        for term in terms
        for _ in range(term.repeats)
    )


def fts5_scores(corpus: Corpus, place: int, match: str) -> dict[int, float]:
    """Rowid → FTS5's own BM25, for all chunks of a compartment that match an expression."""
    weights = ", ".join(map(str, lexical_index.COLUMN_WEIGHTS))
    scores = "SELECT rowid, -bm25({0}, {1}) FROM {0} WHERE {0} MATCH ?"
    if not IS_STORE:
        scores = scores.format(lexical_index.table_name(place), weights)
        return dict(corpus.rows(scores, (match,)))
    columns = ", ".join(lexical_index.COLUMNS)
    index = apsw.Connection(":memory:")
    index.execute(
        f"CREATE VIRTUAL TABLE words USING fts5 ({columns}, tokenize = '{lexical_index.TOKENIZER}')"
    )
    index.executemany(
        f"INSERT INTO words (rowid, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (row[0], *lexical_index.indexed_texts(row))
            for row in corpus.rows(f"{lexical_index.TEXTS} WHERE d.compartment = ?", (place,))
        ],
    )
    return dict(index.execute(scores.format("words", weights), (match,)))


def search_everywhere(corpus: Corpus, match: str) -> list[int]:
    """Return rowids from the lexical indexes of all compartments, quarantine included."""
    return [
        row
        for place in compartments.visible_compartments(corpus)
        for row in fts5_scores(corpus, place.id, match)
    ]


def kinds(corpus: Corpus) -> dict[str, Kind]:
    """Return document id → kind of its compartment."""
    found = {place.id: place for place in compartments.visible_compartments(corpus)}
    return {
        name: (found[place].scope, found[place].sensitivity, found[place].denied)
        for name, place in corpus.rows("SELECT document_id, compartment FROM document")
    }


def quarantined_documents(corpus: Corpus) -> set[str]:
    """Return the ids of quarantined documents."""
    found = compartments.visible_compartments(corpus)
    places = {place.id for place in found if place.quarantined}
    rows = corpus.rows("SELECT document_id, compartment FROM document")
    return {name for name, place in rows if place in places}


def tables(corpus: Corpus) -> set[str]:
    """Return the tables and views of single compartments, without the internal ones of FTS5."""
    names = corpus.column(
        "SELECT name FROM sqlite_schema WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL TABLE%'"
    )
    return {name for name in names if name.startswith(("lexical_", "indexed_"))}


def assert_compartments_are_separate(corpus: Corpus) -> None:
    """Assert that every compartment has the words, vectors and tables of its documents only."""
    places = compartments.visible_compartments(corpus)
    indexes = vector_index.all_indexes(corpus)
    for name, scope, sensitivity, verdict, place in corpus.rows(
        "SELECT document_id, scope, sensitivity, coalesce(verdict, ''), compartment FROM document d "
        "LEFT JOIN scanned s ON s.document = d.id"
    ):
        properties = (scope, sensitivity, verdict == "quarantine")
        assert place in {
            item.id
            for item in places
            if (item.scope, item.sensitivity, item.quarantined) == properties
        }, name
    expected = set()
    for place in places:
        expected.add(lexical_index.table_name(place.id))
        held = _rows(
            corpus,
            "SELECT c.id FROM chunk c JOIN document d ON d.id = c.document WHERE d.compartment = ?",
            place.id,
        )
        assert _rows(corpus, f"SELECT id FROM {lexical_index.table_name(place.id)}_docsize") == held
        assert lexical_index.extent(corpus, place.id)[0] == len(held) == place.chunks
        for index in indexes:
            of_index = "FROM embedded WHERE index_id = ?"
            embedded = held & _rows(corpus, f"SELECT chunk {of_index}", index.id)
            own = f"SELECT chunk {of_index} AND compartment = ?"
            assert _rows(corpus, own, index.id, place.id) == embedded
            assert vector_index.current_counts(corpus, index.id).get(place.id, 0) == len(embedded)
    assert tables(corpus) == expected


def _rows(corpus: Corpus, sql: str, *bindings: int) -> set[int]:
    return {row for (row,) in corpus.rows(sql, bindings)}
