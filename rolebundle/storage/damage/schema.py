"""The schema that a corpus must have, compared with the one that it has."""

from __future__ import annotations

import re
from pathlib import Path

import apsw

from rolebundle.storage.connection import Corpus
from rolebundle.storage.indexes import approximate_index, lexical_index, vector_index
from rolebundle.storage.indexes.compartments import visible_compartments
from rolebundle.storage.opening import corpus_format, migrated, migrations

_SEQUENCE = "sqlite_sequence"
"""It comes with vec0's tables, and VACUUM drops it if it is empty."""
# Approximate indexes stay where their extension is missing, and are not read.
_MAY_STAY = re.compile(
    r"sqlite_sequence|fast_\d+(?:_\d+)?(?:_(?:base|config|idx|idx_idx|meta|model))?"
)

_Key = tuple[str, str]
"""The type and the name of a table, index, view or trigger."""
_Entry = tuple[str, str | None]
"""Its table, and the statement that creates it; ``None`` for an index that SQLite makes."""


def schema_differences(corpus: Corpus) -> list[str]:
    """What the schema has that it must not have, lacks, or has in another form, in words."""
    actual, expected = _entries(corpus), _expected(corpus)
    differences = []
    for key in sorted(actual.keys() | expected.keys()):
        has, must_have = actual.get(key), expected.get(key)
        if must_have is None and _MAY_STAY.fullmatch(key[1]):
            continue
        if has != must_have and (has or key[1] != _SEQUENCE):
            fault = "foreign" if must_have is None else "changed" if has else "missing"
            differences.append(f"the {key[0]} {key[1]!r} of the schema is {fault}")
    return differences


def _entries(corpus: Corpus) -> dict[_Key, _Entry]:
    rows = corpus.rows("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return {(str(kind), str(name)): (str(table), sql) for kind, name, table, sql in rows}


def _expected(corpus: Corpus) -> dict[_Key, _Entry]:
    """The schema of an empty corpus with the same compartments and embedding indexes."""
    with Corpus(Path(":memory:"), apsw.Connection(":memory:"), True, corpus_format()) as twin:
        twin.db.deserialize("main", migrated(migrations()))
        for compartment in visible_compartments(corpus):
            lexical_index.create(twin, compartment.id)
        for index in vector_index.all_indexes(corpus):
            for part in index.parts:
                twin.load_vectors()
                vector_index.create_table(twin, part)
                if part.approximate and approximate_index.is_available(twin):
                    approximate_index.create_table(twin, part)
        return _entries(twin)
