"""Find damage that SQLite does not detect. `salvage.py` saves what is not damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import digests, seal
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import facts
from rolebundle.storage.damage.schema import schema_differences
from rolebundle.storage.indexes import approximate_index, lexical_index, vector_index
from rolebundle.storage.indexes.approximate_index import ApproximateState, IndexPart
from rolebundle.storage.indexes.compartments import visible_compartments, wrong_counts
from rolebundle.storage.indexes.partition import DeniedPatterns, labels_of


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the corpus: a stable code and a message."""

    code: str
    message: str


def find_problems(corpus: Corpus, denied: DeniedPatterns | None = None) -> list[Problem]:
    """Compare everything in the file that can be compared.

    Args:
        corpus: a corpus open for writing, because FTS5's check is a write statement.
        denied: the deny patterns of the policy that match a file; ``None`` if they are not known,
            and not compared.
    """
    checks: Sequence[Callable[[Corpus], Iterable[Problem]]] = (
        _file_problems,
        _schema_problems,
        _seal_problems,
        _count_problems,
        _row_problems,
        partial(_placement_problems, denied=denied),
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
        except (TypeError, ValueError, struct.error) as error:
            # A damaged page may return any type.
            problems.append(Problem("unreadable", f"a value cannot be what was stored ({error})"))
        if check in (_file_problems, _schema_problems) and problems:
            # The other checks rely on sound pages and on the tables' form.
            break
    return problems


def _file_problems(corpus: Corpus) -> Iterator[Problem]:
    for (message,) in corpus.rows("PRAGMA integrity_check(20)"):
        if message != "ok":
            yield Problem("file_damaged", message)
    for table, rowid, parent, _ in corpus.rows("PRAGMA foreign_key_check"):
        yield Problem("orphan", f"row {rowid} of {table} points to a missing {parent}")


def _schema_problems(corpus: Corpus) -> Iterator[Problem]:
    for difference in schema_differences(corpus):
        yield Problem("schema_changed", difference)


def _seal_problems(corpus: Corpus) -> Iterator[Problem]:
    intact = seal.compare(corpus)
    if not intact.tables:
        yield Problem("seal_broken", "the corpus's own records are not what was stored")
    if not intact.indexes:
        yield Problem("seal_broken", "the records of the indexes are not what was stored")


def _count_problems(corpus: Corpus) -> Iterator[Problem]:
    for table, column in (("document", "documents"), ("chunk", "chunks")):
        recorded = corpus.value(f"SELECT {column} FROM corpus_state")
        actual = corpus.value(f"SELECT count(*) FROM {table}")
        if recorded != actual:
            yield Problem("miscounted", f"the corpus records {recorded} {column}, and has {actual}")
    for wrong in wrong_counts(corpus):
        yield Problem(
            "miscounted",
            f"compartment {wrong.compartment} records {wrong.recorded} {wrong.name}, "
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
    for table in ("file", "scanned", "embedding_cache", "remembered"):
        for row in digests.checked_rows(corpus, table):
            if not row.is_intact:
                yield Problem(
                    "row_damaged", f"row {row.rowid} of {table} does not match its digest"
                )
    for number in facts.without_record(corpus):
        yield Problem("row_damaged", f"row {number} of document is a fact without its record")


def _placement_problems(corpus: Corpus, denied: DeniedPatterns | None) -> Iterator[Problem]:
    """Documents that are not in the compartment that decides who may see them."""
    compartments = {compartment.id: compartment for compartment in visible_compartments(corpus)}
    for document_id, scope, sensitivity, number, path, location, verdict in corpus.iterate(
        "SELECT d.document_id, d.scope, d.sensitivity, d.compartment, f.path, f.location, "
        "s.verdict FROM document d JOIN file f ON f.id = d.file "
        "LEFT JOIN scanned s ON s.document = d.id"
    ):
        compartment = compartments.get(number)
        if (
            compartment is None
            or (compartment.scope, compartment.sensitivity) != (scope, sensitivity)
            or compartment.quarantined != (verdict == "quarantine")
            or (denied is not None and compartment.denied != labels_of(denied, path, location))
        ):
            yield Problem(
                "misplaced", f"the document {document_id} is not in the compartment it belongs to"
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
        if _is_malformed(corpus, part):
            yield Problem("vectors_damaged", f"{part.table}: its own tables are damaged")
            continue
        stored = corpus.value(f"SELECT count(*) FROM {part.table}_rowids")
        recorded = _count_records(corpus, part)
        if not stored == recorded == part.vectors:
            yield Problem(
                "vectors_miscounted",
                f"{part.table}: {stored} vectors, {recorded} records, {part.vectors} counted",
            )
        corpus.load_vectors()
        bad = _bad_vectors(corpus, part)
        if bad:
            yield Problem("vectors_damaged", f"{part.table}: {len(bad)} do not match their hash")
        elif _has_wrong_places(corpus, part):
            yield Problem("vectors_damaged", f"{part.table}: its own tables disagree")
        if part.approximate and _is_approximate_damaged(corpus, part):
            yield Problem(
                "approximate_index_damaged",
                f"{part.approximate_table}: it does not have the vectors of {part.table}",
            )


def _bad_vectors(corpus: Corpus, part: IndexPart) -> list[int]:
    corpus.load_vectors()
    pairs = corpus.iterate(
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


def _has_wrong_places(corpus: Corpus, part: IndexPart) -> bool:
    """Whether vec0's record of where each vector is differs from its blocks."""
    places = {
        rowid: (block, offset)
        for rowid, name, block, offset in corpus.iterate(
            f"SELECT rowid, id, chunk_id, chunk_offset FROM {part.table}_rowids"
        )
        if name is None
    }
    width = 4 * part.dimensions
    for block, size, validity, rowids, vectors in corpus.iterate(
        f"SELECT c.chunk_id, c.size, c.validity, c.rowids, v.vectors FROM {part.table}_chunks c "
        f"JOIN {part.table}_vector_chunks00 v ON v.rowid = c.chunk_id"
    ):
        numbers = struct.unpack(f"<{size}q", rowids)
        for place, rowid in enumerate(numbers):
            if validity[place // 8] >> place % 8 & 1:
                if places.pop(rowid, None) != (block, place):
                    return True
            elif rowid or any(vectors[place * width : (place + 1) * width]):
                return True  # sqlite-vec writes zeroes to a place that it frees.
    return bool(places)


def _is_approximate_damaged(corpus: Corpus, part: IndexPart) -> bool:
    """Whether vec1's table does not have exactly the vectors of a part."""
    if not approximate_index.is_available(corpus):
        return False
    count = 0
    for is_same in corpus.iterate(
        f"SELECT f.vec = e.vector FROM {part.approximate_table} f "
        "LEFT JOIN embedded e ON e.index_id = ? AND e.chunk = f.rowid",
        (part.index_id,),
    ):
        if not is_same[0]:
            return True
        count += 1
    values = f"{part.approximate_table}_idx"
    if corpus.value(f"SELECT count(*) FROM {values} WHERE typeof(val) <> 'blob'"):
        return True
    stored = corpus.value(f"SELECT count(*) FROM {part.approximate_table}_base")
    if not count == stored == part.vectors:
        return True
    return _has_damaged_buckets(corpus, part, count)


def _has_damaged_buckets(corpus: Corpus, part: IndexPart, count: int) -> bool:
    """Whether the head of a bucket is damaged; False for a format that is not known here.

    vec1 of apsw 3.54: 2 if the rowids are in order, else 0; how many vectors there are; how many of
    them are deleted; then 4 bytes for each rowid, and the vectors.
    """
    heads = [
        (*struct.unpack(">3I", head), length)
        for head, length in corpus.iterate(
            f"SELECT substr(val, 1, 12), length(val) FROM {part.approximate_table}_idx"
        )
    ]
    is_whole = [
        length == 12 + vectors * 4 * (1 + part.dimensions) for _, vectors, _, length in heads
    ]
    if not any(is_whole):
        return False
    state = ApproximateState.read(part.approximate)
    orders = {2} if state and not state.changed else {0, 2}
    return (
        not all(is_whole)
        or any(order not in orders for order, *_ in heads)
        or sum(vectors - deleted for _, vectors, deleted, _ in heads) != count
    )


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
