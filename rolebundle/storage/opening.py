"""Opening a corpus for reading, and what a corpus file is; `writing.py` opens it for writing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.errors import UsageError, WrongFile
from rolebundle.resources import data_folder
from rolebundle.storage import seal
from rolebundle.storage.address import address_of
from rolebundle.storage.corpus import Corpus, LexicalIndex, VectorSearch
from rolebundle.storage.file import FileFormat, never_filled
from rolebundle.storage.lexical_index import former_view
from rolebundle.storage.sqlite import closed_on_error
from rolebundle.text.words import counted

# A corpus file does not need it.
if TYPE_CHECKING:
    from rolebundle.storage import lexical_index, vector_search

    # What a corpus file imports late has the same functions as what a database uses.
    _OF_A_FILE: tuple[LexicalIndex, VectorSearch] = lexical_index, vector_search

APPLICATION_ID = 0x52424E44
"""``RBND`` in the file's header."""

SINCE_REPLICAS = 10
"""The schema version since which there are replicas."""

_CHUNKS_PER_SECOND = 3_000
"""How fast a migration builds the lexical indexes again."""
_VIEW_NAME = re.compile(r"^indexed_(\d{1,9})$")


def open_reader(path: Path, *, verify: bool = True) -> Corpus:
    """Open a corpus for retrieval. Takes no write lock and works on a read-only file (law 8).

    Args:
        path: the corpus file.
        verify: refuse a corpus with a broken seal.

    Raises:
        UsageError: there is no file.
        WrongFile, CorpusCorrupt, StorageError: it is not a corpus that this version reads.
    """
    if address := address_of(path):
        from rolebundle.storage.postgres import opening as postgres

        return postgres.open_reader(path, address, corpus_format())
    corpus = Corpus.open_read_only(path, corpus_format())
    with closed_on_error(corpus):
        version = schema_version(corpus)
        if version == 0:
            raise never_filled(path, "the corpus was never filled")
        if version < latest_version():
            seconds = 1 + int(corpus.value("SELECT chunks FROM corpus_state")) // _CHUNKS_PER_SECOND
            raise WrongFile(
                "older_schema",
                f"{path}: has schema {version}, this version reads {latest_version()}",
                "run `rolebundle ingest` once with this version: it backs the file up "
                f"and migrates it, in about {counted(seconds, 'second')}",
            )
        if verify:
            seal.verify(corpus)
    return corpus


@cache
def migrations() -> tuple[Path, ...]:
    """The migration files, oldest first. File number n brings the schema to version n."""
    return tuple(sorted(data_folder("migrations").glob("[0-9][0-9][0-9][0-9]_[a-z]*.sql")))


def latest_version() -> int:
    """The newest schema version, which this package reads and writes."""
    return len(migrations())


def schema_version(corpus: Corpus) -> int:
    """The schema version of an open file."""
    return int(corpus.value("PRAGMA user_version"))


@cache
def corpus_format() -> FileFormat:
    """How a corpus file is recognized. Every older schema can be migrated."""
    return FileFormat(
        name="a corpus",
        application_id=APPLICATION_ID,
        oldest=0,
        newest=latest_version(),
        foreign_hint="name another file with --db",
        missing_error=_no_corpus,
        is_own_view=_is_own_view,
    )


def _no_corpus(path: Path) -> UsageError:
    if path.is_dir():
        step = "name a file with --db, such as team.db"
        return UsageError("corpus_is_folder", f"{path}: is a folder, and a corpus is a file", step)
    return UsageError(
        "corpus_missing",
        f"{path}: there is no corpus here",
        "name a folder with --in FOLDER, or run `rolebundle ingest PATH`, or name a file with --db",
    )


def _is_own_view(kind: str, name: str, sql: str) -> bool:
    """Whether a trigger or view of the schema is exactly a view of an earlier version."""
    match = _VIEW_NAME.match(name) if kind == "view" else None
    return match is not None and former_view(int(match[1])) == (name, sql)
