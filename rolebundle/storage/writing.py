"""Opening a corpus for writing: create it, check it, migrate it.

`migrations/` holds the history of the schema, one numbered SQL file each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import apsw

from rolebundle.errors import storage_errors
from rolebundle.storage import digests, file, lexical_index, opening, partition, seal, vector_index
from rolebundle.storage.address import address_of
from rolebundle.storage.backup import back_up
from rolebundle.storage.compartments import visible_compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import busy_timeout, folder_lock, remove_stale_partials
from rolebundle.storage.publications import refuse_changes
from rolebundle.storage.sqlite import MappedErrors, SqliteFile, closed_on_error, is_missing_or_empty

CACHE_KIB = 32_768
"""Pages that a writer caches: an ingest returns to the pages of the indexes."""
PAGE_BYTES = 8_192
"""The page size of a new file: a vector of 256 dimensions wastes a fifth of a page of 4,096."""
LOG_PAGES = 8_192
"""How long the write-ahead log grows before it is folded into the file: 64 MB."""
_PAUSE_SECONDS = 0.02


# The versions whose tables or columns are filled by code.
_SINCE_COMPARTMENTS = 2
_SINCE_DIGESTS = 7
_SINCE_FACTS_APART = 12
_SINCE_WORDS_COMPARED = 16


def open_writer(
    path: Path, *, lock: bool = True, verify: bool = True, replica: bool = False
) -> Corpus:
    """Open a corpus for writing. Create or migrate it if necessary.

    An existing file is first checked through a read-only connection, so that a foreign or newer
    file is refused before a byte of it changes.

    Args:
        path: the file.
        lock: prevent other processes from replacing the file while it is open. False for a private
            copy.
        verify: refuse a corpus with a broken seal. Only a check or a repair opens such a one.
        replica: open a replica, too. Only its publisher changes one; others, a private copy of it.

    Raises:
        UsageError: ``replica_is_read_only``.
        WrongFile, CorpusCorrupt, StorageError, CorpusBusy: it cannot be written.
    """
    if is_missing_or_empty(path):
        _create(path)
    if address := address_of(path):
        from rolebundle.storage.postgres import opening as postgres

        return postgres.open_writer(path, address, opening.corpus_format())
    with ExitStack() as locks:
        if lock:
            locks.enter_context(folder_lock(path, exclusive=False))
        corpus = _open_writer(path, verify, replica, is_private=not lock)
        corpus.on_close = locks.pop_all().close
    # Of runs that were killed, also those that created the audit or a backup beside the corpus.
    remove_stale_partials(path)
    return corpus


def _create(path: Path) -> None:
    """Create a corpus without documents, which only its owner can read.

    It gets its name when it is complete, so that a kill leaves no part of one. If the name is
    taken by an empty file, the caller fills that.
    """
    with storage_errors(
        "cannot_create", f"{path}: it cannot be created", "choose another file with --db"
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        with file.partial_file(path) as partial:
            _open_writer(partial, verify=True, replica=False, is_private=True).close()
            file.rename_if_free(partial, path)


def _open_writer(path: Path, verify: bool, replica: bool, *, is_private: bool) -> Corpus:
    if not is_missing_or_empty(path):
        with Corpus.open_read_only(path, opening.corpus_format()) as corpus:
            if not replica and opening.schema_version(corpus) >= opening.SINCE_REPLICAS:
                refuse_changes(corpus)
            if verify and opening.schema_version(corpus) == opening.latest_version():
                seal.verify(corpus)
    corpus = Corpus.open_for_writing(path, opening.corpus_format(), create=True)
    db = corpus.db
    with closed_on_error(db), MappedErrors(path, corpus.file_format):
        _retry_while_busy(lambda: _use_write_ahead_log(db))
        # FULL: what was acknowledged survives a power loss, not only a crash.
        db.pragma("synchronous", "full")
        # Pages that many batches change, such as the lexical index's, are copied once.
        db.pragma("wal_autocheckpoint", LOG_PAGES)
        db.pragma("cache_size", -CACHE_KIB)
        db.pragma("foreign_keys", True)
        db.pragma("secure_delete", True)
        _apply_migrations(corpus, is_private=is_private)
        _drop_former_indexes(corpus)
    return corpus


def _use_write_ahead_log(db: apsw.Connection) -> None:
    if db.pragma("user_version") == 0:
        # In the file's header, so that a bare `file corpus.db` can read it.
        db.pragma("application_id", opening.APPLICATION_ID)
        db.pragma("page_size", PAGE_BYTES)
    # EXTRA while the file gives up its first journal. If that journal came back after a power
    # loss, it would undo the change to WAL, and with it all that the log holds.
    db.pragma("synchronous", "extra")
    db.pragma("journal_mode", "wal")


def _retry_while_busy(step: Callable[[], None]) -> None:
    """Repeat what SQLite refuses at once, without waiting, while others create the same file."""
    deadline = monotonic() + busy_timeout() / 1000
    while True:
        try:
            return step()
        except apsw.BusyError:
            if monotonic() >= deadline:
                raise
            sleep(_PAUSE_SECONDS)


def _apply_migrations(corpus: Corpus, *, is_private: bool) -> None:
    """Bring the schema to the newest version, in one transaction.

    An existing corpus is first backed up beside the file, unless it is a private copy.

    Raises:
        StorageError: the backup could not be made.
    """
    db, latest = corpus.db, opening.latest_version()
    version = db.pragma("user_version")
    if version >= latest:
        return
    if version > 0 and not is_private:
        back_up(corpus, Path(f"{corpus.path}.schema-{version}.bak"))
    with SqliteFile.writing(corpus):
        # Another process may have been faster while we waited for the lock.
        version = db.pragma("user_version")
        if version == 0:
            db.execute(_statements(opening.migrations()))
            db.execute("INSERT INTO corpus_state VALUES (1, ?, 0, 0, 0)", (uuid4().hex,))
        else:
            for entry in opening.migrations()[version:]:
                db.execute(entry.read_text(encoding="utf-8"))
        # After all steps, because it reads and writes the newest schema.
        if _SINCE_COMPARTMENTS <= version < _SINCE_WORDS_COMPARED:
            for compartment in visible_compartments(corpus):
                lexical_index.drop(corpus, compartment.id)
                lexical_index.create(corpus, compartment.id)
                lexical_index.rebuild(corpus, compartment.id)
        if version < _SINCE_COMPARTMENTS:
            partition.assign_compartments(corpus, partition.no_denied_patterns)
        if version < _SINCE_DIGESTS:
            vector_index.rehash(corpus)
            for table in digests.DIGESTED:
                digests.write(corpus, table)
        elif version < _SINCE_FACTS_APART:
            partition.separate_facts(corpus)
        if version < latest:
            seal.write(corpus)
        db.pragma("user_version", latest)


def _drop_former_indexes(corpus: Corpus) -> None:
    """Drop the tables of vectors of earlier versions, which no search uses.

    Their extensions are not needed: without the row of the virtual table in the schema, the tables
    behind it are ordinary ones.
    """
    virtual = "sql LIKE 'CREATE VIRTUAL TABLE %' AND (name GLOB 'fast_*' OR name GLOB 'vectors_*')"
    if not corpus.value(f"SELECT count(*) FROM sqlite_schema WHERE {virtual}"):
        return
    db = corpus.db
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        with corpus.writing():
            db.pragma("writable_schema", True)
            corpus.run(f"DELETE FROM sqlite_schema WHERE {virtual}")
            db.pragma("writable_schema", "reset")
            for drop in corpus.column(
                "SELECT format('DROP TABLE \"%w\"', name) FROM sqlite_schema "
                "WHERE type = 'table' AND (name GLOB 'fast_*' OR name GLOB 'vectors_*')"
            ):
                corpus.run(drop)
            corpus.run("DELETE FROM seal WHERE name GLOB 'fast_*' OR name GLOB 'vectors_*'")
    finally:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


@cache
def _statements(migrations: tuple[Path, ...]) -> str:
    """What creates the schema of an empty database as it is after these migrations.

    Migrations alter tables, which takes eight times as long as to create them as they are in the
    end. A process that creates several corpora runs the migrations once.
    """
    db = apsw.Connection(":memory:")
    for script in migrations:
        db.execute(script.read_text(encoding="utf-8"))
    statements = db.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY rowid")
    return ";\n".join(str(sql) for (sql,) in statements)
