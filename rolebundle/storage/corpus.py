"""An open corpus, and the numbers that tell whether it has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from math import inf
from time import perf_counter
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar
from weakref import WeakValueDictionary

import apsw

from rolebundle.errors import CorpusCorrupt
from rolebundle.lazy import Floats, Integers, lazy_module
from rolebundle.storage import seal, sqlite
from rolebundle.storage.sqlite import UNUSABLE, Bindings, SqliteFile, interrupted_error
from rolebundle.storage.stored_values import damage_error, rows_as

_STEPS_BETWEEN_CHECKS = 10_000  # of SQLite's virtual machine: well under a millisecond

_ALLOWED = "(SELECT compartment FROM temp.allowed_compartment)"
_ALLOWED_DOCUMENT = f"main.document d WHERE d.compartment IN {_ALLOWED}"
_BY_DOCUMENT = (
    ("scanned", "id", "document"),
    ("remembered", "id", "document"),
    ("supersession", "id", "newer"),
    ("file", "file", "id"),
    ("source", "source", "id"),
)
"""Tables with what belongs to documents: the column of the document, and theirs."""
RESTRICTING_VIEWS = (
    "CREATE TEMP TABLE allowed_compartment (compartment INTEGER PRIMARY KEY)",
    "CREATE TEMP TABLE restricted_state (generation INTEGER NOT NULL)",
    f"CREATE TEMP VIEW compartment AS SELECT * FROM main.compartment WHERE id IN {_ALLOWED}",
    f"CREATE TEMP VIEW document AS SELECT * FROM main.document WHERE compartment IN {_ALLOWED}",
    "CREATE TEMP VIEW chunk AS SELECT c.* FROM main.chunk c CROSS JOIN main.document d "
    "ON d.id = c.document CROSS JOIN temp.allowed_compartment v ON v.compartment = d.compartment",
    # The plus sign keeps SQLite from using the index on compartments, by which it would read the
    # vectors of all chunks where a few are wanted.
    f"CREATE TEMP VIEW embedded AS SELECT * FROM main.embedded WHERE +compartment IN {_ALLOWED}",
    "CREATE TEMP VIEW embedding_share AS SELECT * FROM main.embedding_share "
    f"WHERE compartment IN {_ALLOWED}",
    *(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} WHERE 1 = 0" for name in seal.HIDDEN),
    f"CREATE TEMP VIEW mark AS SELECT * FROM main.mark WHERE EXISTS (SELECT 1 FROM "
    f"{_ALLOWED_DOCUMENT} AND d.document_id = CASE mark.kind WHEN 'document' THEN mark.target ELSE "
    "(SELECT x.document_id FROM main.chunk c JOIN main.document x ON x.id = c.document "
    "WHERE c.chunk_id = mark.target) END)",
    *(
        f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} "
        f"WHERE EXISTS (SELECT 1 FROM {_ALLOWED_DOCUMENT} AND d.{column} = {name}.{key})"
        for name, column, key in _BY_DOCUMENT
    ),
    "CREATE TEMP VIEW corpus_state AS SELECT only_row, corpus_id, "
    "(SELECT coalesce(max(generation), 0) FROM temp.restricted_state) AS generation, "
    "(SELECT coalesce(sum(documents), 0) FROM compartment) AS documents, "
    "(SELECT coalesce(sum(chunks), 0) FROM compartment) AS chunks FROM main.corpus_state",
)
"""One statement each. A test compares them with the schema."""


Ranges = list[tuple[int, int]]
"""The first and the last rowid of chunks, ends included."""


class LexicalIndex(Protocol):
    """The functions of a module that keeps the words of chunks, by compartment."""

    def create(self, corpus: Corpus, compartment: int) -> None:
        """Create an empty index."""

    def drop(self, corpus: Corpus, compartment: int) -> None:
        """Remove an index."""

    def add_chunks(self, corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
        """Index these chunks."""

    def remove_chunks(self, corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
        """Remove chunks. Call it while their rows still have the indexed text."""

    def rebuild(self, corpus: Corpus, compartment: int) -> None:
        """Rebuild the index from the chunks."""

    def merge(self, corpus: Corpus, compartment: int) -> bool:
        """Do one step of joining what commits left. Return whether there may be more."""

    def check(self, corpus: Corpus, compartment: int) -> None:
        """Raise CorpusCorrupt if the index differs from the chunks."""

    def extent(self, corpus: Corpus, compartment: int) -> tuple[int, int]:
        """The number of chunks and tokens."""

    def lengths(self, corpus: Corpus, compartment: int, ranges: Ranges) -> tuple[Integers, Floats]:
        """The rowids in these ranges, sorted, and the number of tokens of each."""

    def keys_of(
        self, corpus: Corpus, compartment: int, words: Sequence[str], *, with_offsets: bool
    ) -> dict[str, Integers]:
        """Word → its occurrences; see :func:`rolebundle.storage.lexical_index.keys_of`."""


class VectorSearch(Protocol):
    """The functions of a module that measures the vectors of chunks."""

    def nearest(
        self,
        corpus: Corpus,
        index_id: int,
        vector: bytes,
        limit: int,
        compartment_ids: Sequence[int],
        document_rowids: Sequence[int] | None,
    ) -> dict[int, float]:
        """The nearest chunks of compartments, or of documents in them: rowid → cosine."""

    def cosines(
        self, corpus: Corpus, index_id: int, vector: bytes, rowids: Sequence[int]
    ) -> dict[int, float]:
        """Rowid → cosine, of those chunks that have a vector."""

    def prefetch(self, corpus: Corpus, index_id: int, rowids: Sequence[int]) -> None:
        """Say that :meth:`cosines` will be asked of these chunks."""


@dataclass(slots=True)
class Corpus(SqliteFile):
    """One open corpus file."""

    lexical: ClassVar[LexicalIndex] = lazy_module("rolebundle.storage.lexical_index")
    vectors: ClassVar[VectorSearch] = lazy_module("rolebundle.storage.vector_search")
    min_vectors_in_memory: ClassVar[int] = 2_000
    """From how many vectors on a process that answers again keeps them in memory."""
    is_shared: ClassVar[bool] = False
    """Whether several machines use it, so that it knows no file of one of them, such as that of its
    policy or its audit."""
    is_restricted: bool = False
    """Whether only the compartments of :meth:`restrict_to_compartments` are visible."""
    _has_vector_functions: bool = False
    first_snapshot_searched: int = 0
    """The first :attr:`snapshot` in which vectors were searched."""
    in_place_of: str | None = None
    """The name of the database's link, if this replica answers because it cannot be reached."""
    before_commit: Callable[[Corpus], None] | None = None
    """Called before each commit into a database."""
    _is_stopped: bool = False
    _end: float = inf
    _snapshots: int = 0
    allowed: tuple[int, list[int], int] = (0, [], 0)
    """A snapshot, the compartments that are visible in it, and its generation."""
    in_memory: dict[Hashable, Any] = field(default_factory=dict)
    """What searches keep; :func:`kept_in_memory` keeps it so."""
    verified: dict[str, int] = field(default_factory=dict)
    """Indexes → the generation at which they were verified."""
    read_in_snapshot: dict[Hashable, Any] = field(default_factory=dict)
    """What :func:`once_in_snapshot` has read, with the number of the snapshot."""

    @property
    def is_closed(self) -> bool:
        """Whether the connection to a database was lost."""
        return False

    def size_in_bytes(self) -> int:
        """How many bytes the corpus takes."""
        return self.path.stat().st_size

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See :meth:`SqliteFile.reading`; each outermost block is another :attr:`snapshot`."""
        self._snapshots += not self._is_inside()
        with SqliteFile.reading(self):
            yield

    @property
    def snapshot(self) -> int:
        """Which snapshot is read, counted from 1; 0 outside of :meth:`reading`, and in a writer."""
        return self._snapshots if self._is_inside() and not self.writable else 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write transaction, which ends with new seals. Inside another one: the same one."""
        if self.db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            yield
            return
        with SqliteFile.writing(self):
            broken_before = seal.broken(self)
            yield
            seal.write(self, broken_before)

    def prefetch(self, sql: str, bindings: Bindings) -> None:
        """Say that the rows of a statement will be asked for in this snapshot.

        A database sends it with the next one, so that both take one round trip.
        """

    def standby_seconds(self) -> float | None:
        """How old the newest change is that a standby server has; ``None`` if it is none."""
        return None

    def column_names(self, table: str) -> list[str]:
        """The names of a table's columns."""
        return self.column("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))

    def renumber(self) -> None:
        """Let new rows have the numbers after those that were inserted with their own."""

    def rewrite(self) -> bool:
        """Write the whole corpus anew, so that no byte of what was deleted is left in it.

        False if somebody still reads a former state, so that something is left.
        """
        self.run("VACUUM")
        return True

    def empty_log(self) -> bool:
        """Fold the log into the file, and truncate it. False if somebody still reads from it."""
        [(busy, *_)] = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    # -- interruption --------------------------------------------------------------------------

    def interrupt(self) -> None:
        """End the current :meth:`interruptible` block. Can be called from any thread."""
        self._is_stopped = True
        self.db.interrupt()

    @contextmanager
    def interruptible(self, seconds: float | None = None) -> Iterator[None]:
        """A block that raises ``Interrupted`` after :meth:`interrupt`, or after so many seconds.

        SQLite's own interrupt ends only the statement that runs at that moment. This one also ends
        the next statement of the block.
        """
        self._is_stopped = False
        self._end = perf_counter() + (inf if seconds is None else seconds)
        self.db.set_progress_handler(self._is_over, _STEPS_BETWEEN_CHECKS)
        try:
            yield
            # A model works outside of SQLite, and may have used up the time.
            self.raise_if_interrupted()
        except CorpusCorrupt as error:
            # SQLite reports an interrupt while it sets up a virtual table as this error.
            if error.code == UNUSABLE:
                self.raise_if_interrupted()
            raise
        finally:
            self.db.set_progress_handler(None)
            self._is_stopped, self._end = False, inf

    def _is_over(self) -> bool:
        return self._is_stopped or perf_counter() > self._end

    def raise_if_interrupted(self) -> None:
        """Check between two pieces of work outside of SQLite whether to go on.

        Raises:
            Interrupted: :meth:`interrupt` was called, or the time is over.
        """
        if self._is_over():
            raise interrupted_error(self.path)

    # -- restriction ---------------------------------------------------------------------------

    def enable_restriction(self) -> None:
        """From now on this connection sees nothing but :meth:`restrict_to_compartments` allows."""
        if self.is_restricted:
            return
        with self._mapped_errors(), self._writable_temporary_tables():
            for statement in RESTRICTING_VIEWS:
                self.db.execute(statement)
        self.is_restricted = True

    def restrict_to_compartments(self, compartments: Iterable[int], *, generation: int = 0) -> None:
        """Make these compartments visible, and no others, until the end of :meth:`reading`.

        Args:
            compartments: their numbers.
            generation: the generation that the corpus reports. The true one counts writes, also
                those to documents that the agent may not see.
        """
        self._check_restriction(sorted(compartments), generation)
        with self._mapped_errors(), self._writable_temporary_tables():
            self.db.execute("DELETE FROM temp.allowed_compartment")
            rows = ((number,) for number in self.allowed[1])
            self.db.executemany("INSERT INTO temp.allowed_compartment VALUES (?)", rows)
            self.db.execute("DELETE FROM temp.restricted_state")
            self.db.execute("INSERT INTO temp.restricted_state VALUES (?)", (generation,))

    def _check_restriction(self, compartments: list[int], generation: int) -> None:
        if not self.is_restricted or not self._is_inside():
            raise AssertionError("call enable_restriction() first, and stay inside reading()")
        allowed = self._snapshots, compartments, generation
        if self.allowed[0] == self._snapshots and self.allowed != allowed:
            raise AssertionError("what is visible in a snapshot must not change")
        self.allowed = allowed
        self.read_in_snapshot.clear()

    @contextmanager
    def _writable_temporary_tables(self) -> Iterator[None]:
        # query_only also forbids writes to temporary tables. A reader's file itself is open
        # read-only in any case.
        self.db.pragma("query_only", False)
        try:
            yield
        finally:
            self.db.pragma("query_only", not self.writable)

    # -- extensions -----------------------------------------------------------------

    def load_vector_functions(self) -> None:
        """Make sqlite-vec's functions available on this connection."""
        if self._has_vector_functions:
            return
        sqlite.load_vectors_library(self.db)
        self._has_vector_functions = True

    def word_table_of(self, index: str) -> str:
        """Make the words of a full-text index readable, one row for each occurrence.

        Args:
            index: the name of an FTS5 table.

        Returns:
            The name of a table with the columns ``term``, ``doc``, ``col`` and ``offset``
            (https://sqlite.org/fts5.html#the_fts5vocab_virtual_table_module).
        """
        name = f"temp.words_of_{index}"
        with self._mapped_errors(), self._writable_temporary_tables():
            self.db.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} "
                f"USING fts5vocab(main, {index}, instance)"
            )
        return name


_T = TypeVar("_T")
_Arguments = ParamSpec("_Arguments")


def once_in_snapshot(
    read: Callable[Concatenate[Corpus, _Arguments], _T],
) -> Callable[Concatenate[Corpus, _Arguments], _T]:
    """A function that reads a small part of a corpus, of which each snapshot keeps the result.

    Nobody must change the result. Outside of :attr:`Corpus.snapshot` it is read each time.
    """

    @wraps(read)
    def kept(corpus: Corpus, /, *args: _Arguments.args, **named: _Arguments.kwargs) -> _T:
        if not corpus.snapshot:
            return read(corpus, *args, **named)
        known = corpus.read_in_snapshot
        if known.get("snapshot") != corpus.snapshot:
            known.clear()
            known["snapshot"] = corpus.snapshot
        key = (read, args, *named.items())
        if key not in known:
            known[key] = read(corpus, *args, **named)
        result: _T = known[key]
        return result

    return kept


def increment_generation(corpus: Corpus) -> None:
    """Count the generation up. Every transaction that changes an answer ends with this."""
    corpus.run("UPDATE corpus_state SET generation = generation + 1")


class CorpusCounts(NamedTuple):
    """The identity, generation and recorded sizes of a corpus."""

    corpus_id: str
    generation: int
    documents: int
    chunks: int


@once_in_snapshot
def corpus_counts(corpus: Corpus) -> CorpusCounts:
    """The corpus's identity, generation and sizes."""
    rows = corpus.rows("SELECT corpus_id, generation, documents, chunks FROM corpus_state")
    if not rows:
        raise damage_error("its own state")
    return rows_as(CorpusCounts, rows)[0]


class CorpusContents(NamedTuple):
    """Whether a corpus has anything of a kind; most have not, and need not be asked for it."""

    has_policy: bool
    has_marks: bool
    has_decisions: bool
    has_claims: bool
    """Whether a visible document claims to supersede another one."""


@once_in_snapshot
def corpus_contents(corpus: Corpus) -> CorpusContents:
    """Of what kinds a corpus has anything."""
    tables = "main.policy", "main.mark", "main.decision", "supersession"
    exist = ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
    return CorpusContents(*map(bool, corpus.rows(f"SELECT {exist}")[0]))


@once_in_snapshot
def true_generation(corpus: Corpus) -> int:
    """The generation of the file, also if the connection is restricted."""
    if not corpus.is_restricted:
        return corpus_counts(corpus).generation
    return int(corpus.value("SELECT generation FROM main.corpus_state"))


# -- words and vectors in memory, and the record of changed chunks ---------------------------------

KEPT_GENERATIONS = 100
"""How many generations back changes are kept."""
_GAP = 100
"""Changed rowids that are no further apart are recorded as one range."""
_MAX_RANGES = 50
"""If there are more, they are recorded as one."""
MAX_CHANGED = 5_000
"""If more chunks may have changed, everything is read again."""

ALL_CHUNKS: Ranges = [(0, 2**63 - 1)]


def joined(ranges: Iterable[tuple[int, int]], gap: int) -> Ranges:
    """Sorted ranges, in which those that are no further apart than ``gap`` are one."""
    result: Ranges = []
    for first, last in ranges:
        if result and first - result[-1][1] <= gap:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def record_changes(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Record that these chunks, their words or their vectors change with the next generation.

    Call it inside a write transaction that ends with
    :func:`increment_generation`.
    """
    ranges = joined(((rowid, rowid) for rowid in sorted(rowids)), _GAP)
    if len(ranges) > _MAX_RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]
    record_changed_ranges(corpus, ranges)


def record_changed_ranges(corpus: Corpus, ranges: Ranges) -> None:
    """Record that chunks of these ranges change with the next generation."""
    generation = true_generation(corpus) + 1
    corpus.run("DELETE FROM chunk_change WHERE generation < ?", (generation - KEPT_GENERATIONS,))
    corpus.insert("chunk_change (generation, first, last)", [(generation, *one) for one in ranges])


def changed_since(corpus: Corpus, generation: int) -> Ranges | None:
    """The ranges, sorted and apart, in which all chunks that changed since are.

    ``None`` if they are not known, or too many.
    """
    if not 0 <= true_generation(corpus) - generation < KEPT_GENERATIONS:
        return None  # The generation is lower if an older state was restored into a database.
    changes = "SELECT first, last FROM main.chunk_change WHERE generation > ? ORDER BY first"
    ranges = joined(corpus.rows(changes, (generation,)), 1)
    return ranges if sum(last - first + 1 for first, last in ranges) <= MAX_CHANGED else None


_shared: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
"""For all connections of this process. A value lives as long as an open corpus uses it. So its file
is open, too, and no other file can get its inode, which is in the key."""


def kept_in_memory(corpus: Corpus, name: Hashable, read: Callable[[], _T]) -> _T:
    """What is kept in memory under a name. Call it inside a snapshot.

    If few chunks changed since it was read, ``value.updated(corpus, ranges)`` returns a new value,
    for which only the chunks of these ranges are read; else ``read()`` reads all.

    Args:
        corpus: a corpus open for reading.
        name: the name.
        read: reads the whole value.
    """
    file = (corpus.path, corpus.stamp, corpus_counts(corpus).corpus_id, name)
    generation = true_generation(corpus)
    known, before, kept = corpus.in_memory.get(name, ((), 0, None))
    if (known, before) != (file, generation):
        key = (*file, generation)
        value = _shared.get(key)
        if value is None:
            ranges = changed_since(corpus, before) if known == file else None
            value = read() if ranges is None else kept.updated(corpus, ranges)
        _shared[key] = value
        corpus.in_memory[name] = (file, generation, value)
    found: _T = corpus.in_memory[name][2]
    return found


def once_in_generation(corpus: Corpus, name: Hashable, read: Callable[[], _T]) -> _T:
    """What ``read()`` returns, kept until the corpus changes, or what is visible of it.

    Call it inside a snapshot, after the connection is restricted if it is to be.
    """
    counts, generation = corpus_counts(corpus), true_generation(corpus)
    state = corpus.path, corpus.stamp, counts.corpus_id, generation, *corpus.allowed[1]
    known, kept = corpus.in_memory.get(name, ((), None))
    if known != state or not corpus.snapshot:
        kept = read()
        corpus.in_memory[name] = state, kept
    found: _T = kept
    return found
