"""Looking into compartments: what each of them holds, and whether it is what belongs there."""

from __future__ import annotations

from rolebundle.storage import compartments, lexical_index, vector_index
from rolebundle.storage.approximate_index import Share
from rolebundle.storage.connection import Corpus

Kind = tuple[str, str, tuple[str, ...]]
"""Scope, sensitivity and deny patterns."""


def only_compartment(corpus: Corpus) -> int:
    """The compartment of a corpus with one scope, one sensitivity and no policy."""
    [found] = compartments.searchable_compartments(corpus)
    return found.id


def only_share(corpus: Corpus) -> Share:
    """What the active index has of the only compartment."""
    index = vector_index.active_index(corpus)
    assert index is not None
    [found] = index.shares
    return found


def search_everywhere(corpus: Corpus, match: str, limit: int = 1000) -> list[int]:
    """Rowids that the lexical indexes of all compartments have, of those in quarantine as well."""
    return [
        row
        for place in compartments.visible_compartments(corpus)
        for row, _ in lexical_index.search(corpus, place.id, match, limit)
    ]


def lexical_data(corpus: Corpus) -> list[tuple[object, ...]]:
    """Every row of the lexical index's own storage."""
    name = lexical_index.table_name(only_compartment(corpus))
    return corpus.rows(f"SELECT * FROM {name}_data ORDER BY id")


def kinds(corpus: Corpus) -> dict[str, Kind]:
    """Document id → the kind of the compartment that it is in."""
    by_id = {one.id: one for one in compartments.visible_compartments(corpus)}
    return {
        name: (by_id[place].scope, by_id[place].sensitivity, by_id[place].denied)
        for name, place in corpus.rows("SELECT document_id, compartment FROM document")
    }


def kept_back(corpus: Corpus) -> set[str]:
    """The documents that are in quarantine."""
    places = {one.id for one in compartments.visible_compartments(corpus) if one.quarantined}
    found = corpus.rows("SELECT document_id, compartment FROM document")
    return {name for name, place in found if place in places}


def tables(corpus: Corpus) -> set[str]:
    """What the schema has for single compartments, less what FTS5, vec0 and vec1 keep for theirs."""
    found = {
        name
        for (name,) in corpus.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL TABLE%'"
        )
    }
    return {
        name for name in found if name.startswith(("lexical_", "indexed_", "vectors_", "fast_"))
    }


def assert_each_in_its_place(corpus: Corpus) -> None:
    """Words, vectors and tables of every compartment are those of its documents, and no others."""
    corpus.load_vectors()
    places = compartments.visible_compartments(corpus)
    indexes = vector_index.all_indexes(corpus)
    for name, scope, sensitivity, verdict, place in corpus.rows(
        "SELECT document_id, scope, sensitivity, coalesce(verdict, ''), compartment FROM document d "
        "LEFT JOIN scanned s ON s.document = d.id"
    ):
        wanted = (scope, sensitivity, verdict == "quarantine")
        assert place in {
            one.id for one in places if (one.scope, one.sensitivity, one.quarantined) == wanted
        }, name
    expected = set()
    for place in places:
        expected |= {lexical_index.table_name(place.id), lexical_index.content_view(place.id)[0]}
        held = _rows(
            corpus,
            "SELECT c.id FROM chunk c JOIN document d ON d.id = c.document WHERE d.compartment = ?",
            place.id,
        )
        assert _rows(corpus, f"SELECT id FROM {lexical_index.table_name(place.id)}_docsize") == held
        assert lexical_index.extent(corpus, place.id).chunks == len(held) == place.chunks
        for index in indexes:
            embedded = held & _rows(
                corpus, "SELECT chunk FROM embedded WHERE index_id = ?", index.id
            )
            [share] = [one for one in index.shares if one.compartment == place.id] or [None]
            if share is None:
                assert not embedded
                continue
            assert _rows(corpus, f"SELECT rowid FROM {share.table}") == embedded
            assert share.vectors == len(embedded)
    for index in indexes:
        expected |= {share.table for share in index.shares}
        expected |= {share.approximate_table for share in index.shares if share.approximate}
    assert tables(corpus) == expected


def _rows(corpus: Corpus, sql: str, *bindings: int) -> set[int]:
    return {row for (row,) in corpus.rows(sql, bindings)}
