"""Find damage that SQLite does not detect, and repair what is derived from the chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import approximate_index, digests, lexical_index, vector_index
from rolebundle.storage.approximate_index import IndexPart
from rolebundle.storage.compartments import recount, visible_compartments, wrong_counts
from rolebundle.storage.connection import Corpus

_CHUNKS_OF = "SELECT c.id FROM chunk c JOIN document d ON d.id = c.document WHERE d.compartment = ?"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the corpus: a stable code and a message."""

    code: str
    message: str


def find_problems(corpus: Corpus) -> list[Problem]:
    """Compare everything in the file that can be compared. The corpus must be open for writing."""
    checks = (
        _file_problems,
        _count_problems,
        _row_problems,
        _lexical_problems,
        _vector_problems,
    )
    problems: list[Problem] = []
    for check in checks:
        try:
            problems += check(corpus)
        except CorpusCorrupt as error:
            # Damage that ends one check is a finding; the other checks still run.
            problems.append(Problem("unreadable", error.message))
        if check is _file_problems and problems:
            # sqlite-vec may end the process on a damaged tree; the file is lost in any case.
            break
    return problems


def repair(corpus: Corpus) -> list[str]:
    """Rebuild what derives from the chunks. Return what was done, in words.

    The lexical index is rebuilt. Vectors that do not match their hash are dropped, so that the
    next ingest computes them again. Damaged content cannot be repaired here: its file must be
    ingested again.

    Raises:
        CorpusCorrupt: the file itself is damaged. Nothing was written to it.
    """
    for problem in _file_problems(corpus):
        raise CorpusCorrupt(
            "beyond_repair",
            f"{corpus.path}: the file itself is damaged ({problem.message})",
            "run `rolebundle doctor --repair`, or `rolebundle restore BACKUP`",
        )
    done = []
    with corpus.writing():
        drifted = [
            compartment.id
            for compartment in visible_compartments(corpus)
            if _lexical_drift(corpus, compartment.id)
        ]
        for compartment in drifted:
            lexical_index.rebuild(corpus, compartment)
        if drifted:
            done.append("rebuilt the lexical index from the chunks")
        for part in _parts(corpus):
            if _is_malformed(corpus, part):
                _empty_part(corpus, part)
                done.append(f"emptied {part.table}, which was damaged as a whole")
                continue
            dropped = _drop_vectors(corpus, part, _bad_vectors(corpus, part))
            if dropped:
                done.append(f"dropped {dropped} damaged vectors of {part.table}")
        if any(_count_problems(corpus)):
            recount(corpus)
            corpus.run(
                "UPDATE corpus_state SET documents = (SELECT count(*) FROM document), "
                "chunks = (SELECT count(*) FROM chunk)"
            )
            done.append("counted documents and chunks again")
    return done


def _file_problems(corpus: Corpus) -> Iterator[Problem]:
    for (message,) in corpus.rows("PRAGMA integrity_check(20)"):
        if message != "ok":
            yield Problem("file_damaged", message)
    for table, rowid, parent, _ in corpus.rows("PRAGMA foreign_key_check"):
        yield Problem("orphan", f"row {rowid} of {table} points to a missing {parent}")


def _count_problems(corpus: Corpus) -> Iterator[Problem]:
    for table, column in (("document", "documents"), ("chunk", "chunks")):
        recorded = corpus.value(f"SELECT {column} FROM corpus_state")
        actual = corpus.value(f"SELECT count(*) FROM {table}")
        if recorded != actual:
            yield Problem("miscounted", f"the corpus records {recorded} {column}, and has {actual}")
    for wrong in wrong_counts(corpus):
        yield Problem(
            "miscounted",
            f"compartment {wrong.compartment} records {wrong.recorded} {wrong.what}, "
            f"and has {wrong.actual}",
        )


def _row_problems(corpus: Corpus) -> Iterator[Problem]:
    for row in digests.checked_chunks(corpus):
        if row.expected is None:
            yield Problem("content_damaged", f"{row.name}: its text does not match its hash")
        elif not row.is_intact:
            yield Problem("row_damaged", f"the chunk {row.name} does not match its digest")
    for row in digests.checked_documents(corpus):
        if not row.is_intact:
            yield Problem("row_damaged", f"the document {row.name} does not match its digest")
    for table in ("file", "scanned", "embedding_cache"):
        for row in digests.checked_rows(corpus, table):
            if not row.is_intact:
                yield Problem(
                    "row_damaged", f"row {row.rowid} of {table} does not match its digest"
                )


def _lexical_problems(corpus: Corpus) -> Iterator[Problem]:
    for compartment in visible_compartments(corpus):
        drift = _lexical_drift(corpus, compartment.id)
        if drift:
            yield Problem("lexical_drift", f"the lexical index differs from the chunks ({drift})")


def _lexical_drift(corpus: Corpus, compartment: int) -> str:
    try:
        lexical_index.check(corpus, compartment)
    except CorpusCorrupt as error:
        return error.message
    return ""


def _parts(corpus: Corpus) -> list[IndexPart]:
    return [part for index in vector_index.all_indexes(corpus) for part in index.parts]


def _vector_problems(corpus: Corpus) -> Iterator[Problem]:
    for part in _parts(corpus):
        corpus.load_vectors()
        if _is_malformed(corpus, part):
            yield Problem("vectors_damaged", f"{part.table}: its own tables are damaged")
            continue
        stored = corpus.value(f"SELECT count(*) FROM {part.table}")
        recorded = _count_records(corpus, part)
        if not stored == recorded == part.vectors:
            yield Problem(
                "vectors_miscounted",
                f"{part.table}: {stored} vectors, {recorded} records, {part.vectors} counted",
            )
        bad = _bad_vectors(corpus, part)
        if bad:
            yield Problem("vectors_damaged", f"{part.table}: {len(bad)} do not match their hash")


def _bad_vectors(corpus: Corpus, part: IndexPart) -> list[int]:
    corpus.load_vectors()
    pairs = corpus.each(
        f"SELECT v.rowid, v.embedding, e.input_hash, e.vector, e.vector_hash FROM {part.table} v "
        "LEFT JOIN embedded e ON e.index_id = ? AND e.chunk = v.rowid",
        (part.index_id,),
    )
    return [
        rowid
        for rowid, indexed, input_hash, stored, expected in pairs
        if not isinstance(stored, bytes)
        or indexed != stored
        or vector_index.vector_hash(input_hash, stored) != expected
    ]


# -- the tables of a part ------------------------------------------------------------------------


def _is_malformed(corpus: Corpus, part: IndexPart) -> bool:
    """Whether vec0's own tables do not have the form that sqlite-vec relies on.

    sqlite-vec 0.1.9 does not check them. A full scan of damaged tables can end the process.
    """
    table = part.table
    flaws = (
        f"SELECT count(*) FROM {table}_chunks WHERE typeof(size) <> 'integer' OR size <= 0 "
        "OR typeof(validity) <> 'blob' OR length(validity) * 8 <> size "
        "OR typeof(rowids) <> 'blob' OR length(rowids) <> size * 8",
        f"SELECT count(*) FROM {table}_rowids r LEFT JOIN {table}_chunks c "
        "ON c.chunk_id = r.chunk_id WHERE typeof(r.chunk_id) <> 'integer' OR c.chunk_id IS NULL "
        "OR typeof(r.chunk_offset) <> 'integer' OR r.chunk_offset NOT BETWEEN 0 AND c.size - 1",
        f"SELECT count(*) FROM {table}_chunks c LEFT JOIN {table}_vector_chunks00 v "
        "ON v.rowid = c.chunk_id WHERE typeof(v.vectors) <> 'blob' "
        f"OR length(v.vectors) <> c.size * {int(part.dimensions) * 4}",
    )
    return any(corpus.value(flaw) for flaw in flaws)


def _empty_part(corpus: Corpus, part: IndexPart) -> None:
    """Replace a part by an empty one. Its chunks need new vectors."""
    corpus.load_vectors()
    approximate_index.drop(corpus, part)
    corpus.run(f"DROP TABLE {part.table}")
    vector_index.create_table(corpus, part)
    corpus.run(
        f"DELETE FROM embedded WHERE index_id = ? AND chunk IN ({_CHUNKS_OF})",
        (part.index_id, part.compartment),
    )
    _set_count(corpus, part, 0)


def _drop_vectors(corpus: Corpus, part: IndexPart, rowids: Sequence[int]) -> int:
    """Delete damaged vectors, and records without a vector. Return how many there were.

    Unlike ``vector_index.remove`` it relies neither on the records nor on the count.
    """
    corpus.load_vectors()
    approximate_index.drop(corpus, part)
    corpus.run_many(f"DELETE FROM {part.table} WHERE rowid = ?", ((row,) for row in rowids))
    before = _count_records(corpus, part)
    corpus.run(
        f"DELETE FROM embedded WHERE index_id = ? AND chunk IN ({_CHUNKS_OF}) "
        f"AND chunk NOT IN (SELECT rowid FROM {part.table})",
        (part.index_id, part.compartment),
    )
    after = _count_records(corpus, part)
    _set_count(corpus, part, after)
    return max(len(rowids), before - after)


def _count_records(corpus: Corpus, part: IndexPart) -> int:
    """How many chunks of a part have a record of their vector, counted one by one."""
    return int(
        corpus.value(
            "SELECT count(*) FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk "
            "CROSS JOIN document d ON d.id = c.document "
            "WHERE e.index_id = ? AND d.compartment = ?",
            (part.index_id, part.compartment),
        )
    )


def _set_count(corpus: Corpus, part: IndexPart, count: int) -> None:
    corpus.run(
        "UPDATE embedding_share SET vectors = ? WHERE index_id = ? AND compartment = ?",
        (count, part.index_id, part.compartment),
    )
