"""Opening the corpus file: who may read it, who may write it, and what is refused unopened."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import monotonic, perf_counter, sleep

import apsw

from rolebundle.errors import Interrupted, StorageError, WrongFile
from rolebundle.storage.migrate import (
    APPLICATION_ID,
    apply_migrations,
    corpus_format,
    latest_version,
)
from rolebundle.storage.narrowing import NARROWING
from rolebundle.storage.sqlite_file import (
    Row,
    SqliteFile,
    busy_timeout,
    is_missing_or_empty,
    mapped_errors,
)

CACHE_KIB = 32_768
"""Pages that a writer caches: an ingest returns to the pages of the indexes."""
LOG_PAGES = 16_384
"""How long the write-ahead log grows before it is folded into the file: 64 MB."""

FREQUENCIES_KEPT = 10_000
_PAUSE_SECONDS = 0.02
_STEPS_BETWEEN_LOOKS = 10_000  # of SQLite's machine: well under a millisecond


@dataclass(slots=True)
class Corpus(SqliteFile):
    """One open corpus file."""

    _vectors_loaded: bool = field(default=False, init=False)
    _extras: set[str] = field(default_factory=set, init=False)
    _stopped: bool = field(default=False, init=False)
    _end: float = field(default=inf, init=False)
    _frequencies: tuple[Row, dict[tuple[int, str], int]] = field(default=((), {}), init=False)
    _counts_occurrences: bool = field(default=False, init=False)
    narrowed: bool = False
    """Whether only what :meth:`show` names can be seen through this connection."""

    def interrupt(self) -> None:
        """End what runs inside :meth:`interruptible` now; from any thread."""
        self._stopped = True
        self.db.interrupt()

    @contextmanager
    def interruptible(self, seconds: float | None = None) -> Iterator[None]:
        """A block that ends with ``Interrupted`` when it is told to, or after so many seconds.

        SQLite's own interrupt ends only the statement that runs at that moment; this one also ends
        the block's next one.
        """
        self._stopped = False
        self._end = perf_counter() + (inf if seconds is None else seconds)
        self.db.set_progress_handler(self._is_over, _STEPS_BETWEEN_LOOKS)
        try:
            yield
            # A model works outside of SQLite, and may have used the time up.
            self.refuse_if_over()
        finally:
            self.db.set_progress_handler(None)
            self._stopped, self._end = False, inf

    def _is_over(self) -> bool:
        return self._stopped or perf_counter() > self._end

    def refuse_if_over(self) -> None:
        """Between two pieces of work outside of SQLite: go on, or end the block now.

        Raises:
            Interrupted: it was told to end, or its time is over.
        """
        if self._is_over():
            raise Interrupted(
                "interrupted",
                f"{self.path}: the search was interrupted before it was done",
                "ask again with a longer deadline_ms, or with lexical_only",
            )

    def narrow(self) -> None:
        """From now on, only what :meth:`show` names can be seen through this connection.

        Each table of the file disappears behind a temporary view of its name, so that no statement
        can forget to ask: it sees the visible part, or nothing.
        """
        if self.narrowed:
            return
        with self._mapped_errors(), self._taking_notes():
            for statement in NARROWING:
                self.db.execute(statement)
        self.narrowed = True

    def show(self, compartments: Iterable[int], *, generation: int = 0) -> None:
        """Let these compartments be seen until the end of :meth:`reading`.

        Args:
            compartments: their numbers.
            generation: the state that the corpus says it is in. A count of writes would tell an
                agent of those to what it cannot see.
        """
        if not self.narrowed or not self.db.in_transaction:
            raise AssertionError("show() is for a narrowed corpus, inside reading()")
        with self._mapped_errors(), self._taking_notes():
            self.db.execute("DELETE FROM temp.visible")
            self.db.executemany(
                "INSERT INTO temp.visible VALUES (?)", ((one,) for one in compartments)
            )
            self.db.execute("DELETE FROM temp.shown_state")
            self.db.execute("INSERT INTO temp.shown_state VALUES (?)", (generation,))

    @contextmanager
    def _taking_notes(self) -> Iterator[None]:
        # query_only keeps a reader from writing anything, its own notes in memory as well. The file
        # itself is open for reading alone.
        self.db.pragma("query_only", False)
        try:
            yield
        finally:
            self.db.pragma("query_only", not self.writable)

    @contextmanager
    def own_views(self) -> Iterator[None]:
        """A block in which the file's views work: ours, which opening it has made sure of."""
        self.db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 1)
        try:
            yield
        finally:
            self.db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)

    def frequencies(self) -> dict[tuple[int, str], int]:
        """A place to remember how often terms occur, emptied when the corpus changes."""
        # The file's own state, also where an agent sees another one.
        state = tuple(self.rows("SELECT corpus_id, generation FROM main.corpus_state"))
        if state != self._frequencies[0] or len(self._frequencies[1]) > FREQUENCIES_KEPT:
            self._frequencies = (state, {})
        return self._frequencies[1]

    def load_extra(self, name: str) -> bool:
        """Load an extension that ships inside apsw; False where this build has none such."""
        if name in self._extras:
            return True
        try:
            import apsw.sqlite_extra

            self.db.enable_load_extension(True)
            apsw.sqlite_extra.load(self.db, name)
            self.db.enable_load_extension(False)
        except (ImportError, apsw.Error, ValueError):
            return False
        self._extras.add(name)
        return True

    def load_occurrences(self, column_weights: Sequence[float]) -> None:
        """Make the function ``occurrences`` available to full-text queries on this connection.

        It gives, as packed doubles, the chunk's tokens, and for each phrase of the query how often
        it occurs in the chunk, each time weighted by its column.
        """
        if self._counts_occurrences:
            return

        def occurrences(api: apsw.FTS5ExtensionApi, /, *_: object) -> bytes:
            found = array("d", [float(api.column_size(-1))])
            for phrase in range(api.phrase_count):
                places = zip(api.phrase_locations(phrase), column_weights, strict=True)
                found.append(sum(len(column) * weight for column, weight in places))
            return found.tobytes()

        with self._mapped_errors():
            self.db.register_fts5_function("occurrences", occurrences)
        self._counts_occurrences = True

    def load_vectors(self) -> None:
        """Make sqlite-vec's functions and tables available on this connection."""
        if self._vectors_loaded:
            return
        import sqlite_vec

        with self._mapped_errors():
            self.db.enable_load_extension(True)
            self.db.load_extension(sqlite_vec.loadable_path())
            self.db.enable_load_extension(False)
        self._vectors_loaded = True


def open_reader(path: Path) -> Corpus:
    """Open a corpus for retrieval. Takes no write lock and works on a read-only file (law 8).

    Raises:
        UsageError: there is no file.
        WrongFile, CorpusCorrupt, StorageError: it is not a corpus that this version reads.
    """
    corpus = Corpus.open_read_only(path, corpus_format())
    try:
        version = corpus.value("PRAGMA user_version")
        if version < latest_version():
            raise WrongFile(
                "older_schema",
                f"{path}: has schema {version}, this version reads {latest_version()}",
                "run `rolebundle ingest` once with this version: it backs the file up "
                "and migrates it",
            )
    except BaseException:
        corpus.close()
        raise
    return corpus


def open_writer(path: Path) -> Corpus:
    """Open a corpus for writing. Create or migrate it if necessary.

    An existing file is first checked through a read-only connection, so that a foreign or newer
    file is refused before a byte of it changes.

    Raises:
        WrongFile, CorpusCorrupt, StorageError, CorpusBusy: it cannot be written.
    """
    if not is_missing_or_empty(path):
        Corpus.open_read_only(path, corpus_format()).close()
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                "cannot_create",
                f"{path}: its folder cannot be made ({error.strerror})",
                "choose another file with --db",
            ) from error
    corpus = Corpus.open_for_writing(path, corpus_format(), create=True)
    db = corpus.db
    try:
        with mapped_errors(path, corpus.file_format):
            _retry_while_busy(lambda: _use_write_ahead_log(db))
            # FULL: what was acknowledged survives a power loss, not only a crash.
            db.pragma("synchronous", "full")
            # Pages that many batches change, such as the lexical index's, are copied once.
            db.pragma("wal_autocheckpoint", LOG_PAGES)
            db.pragma("cache_size", -CACHE_KIB)
            db.pragma("foreign_keys", True)
            db.pragma("secure_delete", True)
            apply_migrations(db, path)
    except BaseException:
        db.close()
        raise
    return corpus


def _use_write_ahead_log(db: apsw.Connection) -> None:
    if db.pragma("user_version") == 0:
        # In the file's header, so that a bare `file corpus.db` can read it.
        db.pragma("application_id", APPLICATION_ID)
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
