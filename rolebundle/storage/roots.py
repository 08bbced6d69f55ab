"""The roots: which folders and files were ingested, and how. See ``contracts/ingest.py``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from rolebundle.contracts.ingest import Root
from rolebundle.storage import digests
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.sqlite import IN_SET

_COLUMNS = "location, prefix, source_id, options, documents, synced_at"
_BELOW = "(f.location = ? OR (f.location >= ? AND f.location < ?))"
"""The files at and below a path, by the index of locations; see :func:`_bounds`."""

_GIVEN_SOURCE = "NOT EXISTS (SELECT 1 FROM json_each(d.self_declared) WHERE value = 'source_id')"
"""Documents that do not declare their source themselves."""


def load(corpus: Corpus) -> list[Root]:
    """Every root, ordered by location."""
    names = _COLUMNS.split(", ")
    rows = corpus.rows(f"SELECT {_COLUMNS} FROM root ORDER BY location")
    return [
        Root.model_validate(dict(zip(names, row, strict=True)) | {"options": json.loads(row[3])})
        for row in rows
    ]


def save(corpus: Corpus, roots: Sequence[Root]) -> None:
    """Replace all rows. Call it inside a write transaction."""
    corpus.run("DELETE FROM root")
    rows = []
    for root in roots:
        options = root.options.model_dump(exclude_defaults=True)
        values = root.model_dump() | {"options": json.dumps(options, sort_keys=True)}
        rows.append(tuple(values[name] for name in _COLUMNS.split(", ")))
    corpus.insert(f"root ({_COLUMNS})", rows)


def forget_empty(corpus: Corpus, locations: Sequence[str]) -> None:
    """Forget the roots at and above these files that have no file left.

    Call it inside a write transaction.
    """
    above = "r.location = f.value OR substr(f.value, 1, length(r.location) + 1) = r.location || ?"
    roots = f"SELECT DISTINCT r.location FROM root r JOIN json_each(?) f ON {above}"
    rows = corpus.rows(roots, (locations, os.sep))
    empty = (row for row in rows if not files_below(corpus, *row))
    corpus.run_many("DELETE FROM root WHERE location = ?", empty)


def files_below(corpus: Corpus, location: str) -> list[str]:
    """The locations of the files at and below a path."""
    return corpus.column(f"SELECT f.location FROM file f WHERE {_BELOW}", _bounds(location))


def count_documents(corpus: Corpus, location: str) -> int:
    """How many documents come from files at and below a path."""
    counted = "SELECT count(*) FROM file f JOIN document d ON d.file = f.id"
    return int(corpus.value(f"{counted} WHERE {_BELOW}", _bounds(location)))


def sources_outside(corpus: Corpus, location: str) -> set[str]:
    """The sources of documents that do not come from a path, as their owner gave them."""
    sources = (
        "SELECT DISTINCT s.source_id FROM file f JOIN document d ON d.file = f.id "
        f"JOIN source s ON s.id = d.source WHERE NOT {_BELOW} AND {_GIVEN_SOURCE}"
    )
    return set(corpus.column(sources, _bounds(location)))


def move_files(corpus: Corpus, moves: Mapping[str, str]) -> None:
    """Give files other locations; their documents keep their ids, text and vectors.

    Call it inside a write transaction. No file has one of the new locations.
    """
    files = corpus.column(f"SELECT id FROM file WHERE location {IN_SET}", (sorted(moves),))
    documents = corpus.column(f"SELECT id FROM document WHERE file {IN_SET}", (files,))
    with digests.renewing(corpus, documents, file=files):
        renamed = ((new, old) for old, new in moves.items())
        corpus.run_many("UPDATE file SET location = ? WHERE location = ?", renamed)


def _bounds(location: str) -> tuple[str, str, str]:
    """The parameters of ``_BELOW``."""
    folder = location.rstrip(os.sep)
    return location, folder + os.sep, folder + chr(ord(os.sep) + 1)
