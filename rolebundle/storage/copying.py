"""Copying a corpus between a file and a database, row by row: ids, digests and vectors stay."""

from __future__ import annotations

from itertools import islice

from rolebundle.storage import compartments
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.publications import refuse_changes

_TABLES = (
    "corpus_state",
    "source",
    "file",
    "compartment",
    "document",
    "supersession",
    "chunk",
    "scanned",
    "embedding_index",
    "embedded",
    "embedding_share",
    "embedding_cache",
    "chunk_change",
    "policy",
    "purge",
    "approved_manifest",
    "path_flags",
    "audit_state",
    "mark",
    "decision",
    "decision_end",
    "remembered",
    "gate_baseline",
    "root",
)
"""In an order in which each row refers to rows that are there. What was published stays behind: it
was published from the other corpus."""
_ROWS = 1_000


def copy_corpus(source: Corpus, target: Corpus) -> None:
    """Copy everything into a new corpus. Call it inside a write transaction of that.

    Args:
        source: open for reading.
        target: open for writing, and empty.

    Raises:
        UsageError: the source is a replica.
        CorpusBusy, CorpusCorrupt, StorageError: it could not be copied.
    """
    with source.reading():
        refuse_changes(source)
        target.run("DELETE FROM corpus_state")
        for table in _TABLES:
            columns = ", ".join(target.columns(table))
            # In a database, the further rows are made from the first.
            chosen = " WHERE only_row = 1" if table == "policy" else ""
            rows = source.iterate(f"SELECT {columns} FROM {table}{chosen}")
            while batch := list(islice(rows, _ROWS)):
                target.insert(f"{table} ({columns})", batch)
        if target.is_database:
            # Its machines do not have the file that the policy was set from.
            target.run("UPDATE policy SET location = ''")
        target.renumber()
        for compartment in compartments.visible_compartments(target):
            target.lexical.create(target, compartment.id)
            target.lexical.rebuild(target, compartment.id)


def is_empty(corpus: Corpus) -> bool:
    """Whether nothing was ever stored in a corpus."""
    return corpus_counts(corpus).generation == 0
