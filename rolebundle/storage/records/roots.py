"""The roots: which folders and files were ingested, and how. See ``contracts/roots.py``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from rolebundle.contracts.roots import Root, RootOptions
from rolebundle.storage import digests
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import damaged, typed

_COLUMNS = "location, prefix, source_id, options, documents, synced_at"
_BELOW = "(f.location = ? OR (f.location >= ? AND f.location < ?))"
"""The files at and below a path, by the index of locations; see :func:`_bounds`."""

_GIVEN_SOURCE = "NOT EXISTS (SELECT 1 FROM json_each(d.self_declared) WHERE value = 'source_id')"
"""Documents that do not declare their source themselves."""


def load(corpus: Corpus) -> list[Root]:
    """Every root, ordered by location.

    Raises:
        CorpusCorrupt: a row is not what is stored.
    """
    roots = []
    rows = corpus.rows(f"SELECT {_COLUMNS} FROM root ORDER BY location")
    for location, prefix, source_id, options, documents, synced_at in typed(
        rows, str, str, str, str, int, str
    ):
        try:
            settings = RootOptions.model_validate(json.loads(options))
        except (ValueError, ValidationError) as error:
            raise damaged("the options of a root") from error
        roots.append(
            Root(
                location=location,
                prefix=prefix,
                source_id=source_id,
                options=settings,
                documents=documents,
                synced_at=synced_at,
            )
        )
    return roots


def save(corpus: Corpus, roots: Sequence[Root]) -> None:
    """Replace all rows. Call it inside a write transaction."""
    corpus.run("DELETE FROM root")
    corpus.run_many(
        f"INSERT INTO root ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (
                root.location,
                root.prefix,
                root.source_id,
                json.dumps(root.options.model_dump(exclude_defaults=True), sort_keys=True),
                root.documents,
                root.synced_at,
            )
            for root in roots
        ),
    )


def forget_empty(corpus: Corpus, locations: Sequence[str]) -> None:
    """Forget the roots at and above these files that have no file left.

    Call it inside a write transaction.
    """
    above = "r.location = f.value OR substr(f.value, 1, length(r.location) + 1) = r.location || ?"
    rows = corpus.rows(
        f"SELECT DISTINCT r.location FROM root r JOIN json_each(?) f ON {above}",
        ([*locations], os.sep),
    )
    corpus.run_many(
        "DELETE FROM root WHERE location = ?",
        (row for row in rows if not files_below(corpus, *row)),
    )


def files_below(corpus: Corpus, location: str) -> list[str]:
    """The locations of the files at and below a path."""
    return corpus.column(f"SELECT f.location FROM file f WHERE {_BELOW}", _bounds(location))


def count_documents(corpus: Corpus, location: str) -> int:
    """How many documents come from files at and below a path."""
    return int(
        corpus.value(
            f"SELECT count(*) FROM file f JOIN document d ON d.file = f.id WHERE {_BELOW}",
            _bounds(location),
        )
    )


def count_documents_of(corpus: Corpus, locations: Sequence[str]) -> int:
    """How many documents come from these files."""
    return int(
        corpus.value(
            "SELECT count(*) FROM file f JOIN document d ON d.file = f.id "
            "WHERE f.location IN (SELECT value FROM json_each(?))",
            ([*locations],),
        )
    )


def sizes_and_times(corpus: Corpus, locations: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Location → size and time of the last change of these files, as they were ingested."""
    rows = corpus.rows(
        "SELECT location, size, modified_ns FROM file "
        "WHERE location IN (SELECT value FROM json_each(?))",
        ([*locations],),
    )
    return {location: (size, modified_ns) for location, size, modified_ns in rows}


def sources_below(corpus: Corpus, location: str) -> set[str]:
    """The sources of documents from files at and below a path, as their owner gave them."""
    return set(
        corpus.column(
            "SELECT DISTINCT s.source_id FROM file f JOIN document d ON d.file = f.id "
            f"JOIN source s ON s.id = d.source WHERE {_BELOW} AND {_GIVEN_SOURCE}",
            _bounds(location),
        )
    )


def sources_outside(corpus: Corpus, location: str) -> set[str]:
    """The sources of documents that do not come from a path, as their owner gave them."""
    return set(
        corpus.column(
            "SELECT DISTINCT s.source_id FROM document d JOIN file f ON f.id = d.file "
            f"JOIN source s ON s.id = d.source WHERE NOT {_BELOW} AND {_GIVEN_SOURCE}",
            _bounds(location),
        )
    )


def move_files(corpus: Corpus, moves: Mapping[str, str]) -> None:
    """Give files other locations; their documents keep their ids, text and vectors.

    Call it inside a write transaction. No file has one of the new locations.
    """
    chosen = (sorted(moves),)
    is_moved = "f.location IN (SELECT value FROM json_each(?))"
    files = corpus.rows(f"SELECT f.id FROM file f WHERE {is_moved}", chosen)
    documents = corpus.rows(
        f"SELECT d.id FROM file f JOIN document d ON d.file = f.id WHERE {is_moved}", chosen
    )
    with digests.renewing(corpus, [row for (row,) in documents], file=[row for (row,) in files]):
        corpus.run_many(
            "UPDATE file SET location = ? WHERE location = ?",
            ((new, old) for old, new in moves.items()),
        )


def _bounds(location: str) -> tuple[str, str, str]:
    """The parameters of ``_BELOW``."""
    folder = location.rstrip(os.sep)
    return location, folder + os.sep, folder + chr(ord(os.sep) + 1)
