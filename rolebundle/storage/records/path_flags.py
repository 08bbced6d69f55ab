"""Governance flags of ingests, by the path that they were given for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import damaged, typed


def load(corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Real path → flag → value, ordered by path.

    Raises:
        CorpusCorrupt: a row is not what is stored.
    """
    rows = corpus.rows("SELECT location, flags FROM path_flags ORDER BY location")
    remembered = {}
    for location, text in typed(rows, str, str):
        try:
            flags = json.loads(text)
        except ValueError:
            flags = None
        if not isinstance(flags, dict):
            raise damaged("the flags of a path")
        remembered[location] = flags
    return remembered


def save(corpus: Corpus, remembered: Mapping[str, Mapping[str, object]]) -> None:
    """Replace all rows. Call it inside a write transaction."""
    corpus.run("DELETE FROM path_flags")
    rows = [(path, json.dumps(flags, sort_keys=True)) for path, flags in remembered.items()]
    corpus.insert("path_flags", rows)
