"""Looking for damage that SQLite alone does not see, and mending what can be mended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import lexical_index, vector_index, vector_repair
from rolebundle.storage.chunk_rows import content_hash
from rolebundle.storage.compartments import all_compartments, miscounted, recount
from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import Share


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: a stable code, and what was found."""

    code: str
    message: str


def problems(corpus: Corpus) -> list[Problem]:
    """Compare everything in the file that can be compared. Needs a corpus opened for writing."""
    looks = (
        _file_problems,
        _count_problems,
        _content_problems,
        _lexical_problems,
        _vector_problems,
    )
    found: list[Problem] = []
    for look in looks:
        try:
            found += look(corpus)
        except CorpusCorrupt as error:
            # Damage that ends one look is a finding, and no reason to leave out the others.
            found.append(Problem("unreadable", error.message))
        if look is _file_problems and found:
            # sqlite-vec may end the process on a damaged tree; the file is lost in any case.
            break
    return found


def repair(corpus: Corpus) -> list[str]:
    """Rebuild what derives from the chunks; what was done, in words.

    The lexical index is built anew. Vectors that do not match their hash are dropped, so that the
    next ingest makes them again. Damaged content cannot be repaired here: its file has to be
    ingested again.

    Raises:
        CorpusCorrupt: the file itself is damaged. Nothing was written to it.
    """
    for problem in _file_problems(corpus):
        raise CorpusCorrupt(
            "beyond_repair",
            f"{corpus.path}: the file itself is damaged ({problem.message})",
            "restore a backup, or ingest the documents into a new file with --db",
        )
    done = []
    with corpus.writing():
        drifted = [one.id for one in all_compartments(corpus) if _lexical_drift(corpus, one.id)]
        for compartment in drifted:
            lexical_index.rebuild(corpus, compartment)
        if drifted:
            done.append("rebuilt the lexical index from the chunks")
        for share in _shares(corpus):
            if vector_repair.is_misshapen(corpus, share):
                vector_repair.clear(corpus, share)
                done.append(f"emptied {share.table}, which was damaged as a whole")
                continue
            dropped = vector_repair.drop(corpus, share, _bad_vectors(corpus, share))
            if dropped:
                done.append(f"dropped {dropped} damaged vectors of {share.table}")
        if any(_count_problems(corpus)):
            recount(corpus)
            corpus.run(
                "UPDATE corpus_state SET documents = (SELECT count(*) FROM document), "
                "chunks = (SELECT count(*) FROM chunk)"
            )
            done.append("counted documents and chunks anew")
    return done


def _file_problems(corpus: Corpus) -> Iterator[Problem]:
    for (message,) in corpus.rows("PRAGMA integrity_check(20)"):
        if message != "ok":
            yield Problem("file_damaged", message)
    for table, rowid, parent, _ in corpus.rows("PRAGMA foreign_key_check"):
        yield Problem("orphan", f"row {rowid} of {table} points to a missing {parent}")


def _count_problems(corpus: Corpus) -> Iterator[Problem]:
    for table, column in (("document", "documents"), ("chunk", "chunks")):
        said = corpus.value(f"SELECT {column} FROM corpus_state")
        found = corpus.value(f"SELECT count(*) FROM {table}")
        if said != found:
            yield Problem("miscounted", f"the corpus says {said} {column}, and holds {found}")
    for compartment, what, said, found in miscounted(corpus):
        yield Problem(
            "miscounted", f"compartment {compartment} says {said} {what}, and holds {found}"
        )


def _content_problems(corpus: Corpus) -> Iterator[Problem]:
    for chunk_id, content, expected in corpus.each(
        "SELECT chunk_id, content, content_hash FROM chunk"
    ):
        if not isinstance(content, str) or content_hash(content) != expected:
            yield Problem("content_damaged", f"{chunk_id}: its text does not match its hash")


def _lexical_problems(corpus: Corpus) -> Iterator[Problem]:
    for compartment in all_compartments(corpus):
        drift = _lexical_drift(corpus, compartment.id)
        if drift:
            yield Problem("lexical_drift", f"the lexical index differs from the chunks ({drift})")


def _lexical_drift(corpus: Corpus, compartment: int) -> str:
    try:
        lexical_index.check(corpus, compartment)
    except CorpusCorrupt as error:
        return error.message
    return ""


def _shares(corpus: Corpus) -> list[Share]:
    return [share for index in vector_index.all_indexes(corpus) for share in index.shares]


def _vector_problems(corpus: Corpus) -> Iterator[Problem]:
    for share in _shares(corpus):
        corpus.load_vectors()
        if vector_repair.is_misshapen(corpus, share):
            yield Problem("vectors_damaged", f"{share.table}: its own tables are damaged")
            continue
        stored = corpus.value(f"SELECT count(*) FROM {share.table}")
        recorded = vector_repair.recorded(corpus, share)
        if not stored == recorded == share.vectors:
            yield Problem(
                "vectors_miscounted",
                f"{share.table}: {stored} vectors, {recorded} records, {share.vectors} counted",
            )
        bad = _bad_vectors(corpus, share)
        if bad:
            yield Problem("vectors_damaged", f"{share.table}: {len(bad)} do not match their hash")


def _bad_vectors(corpus: Corpus, share: Share) -> list[int]:
    corpus.load_vectors()
    pairs = corpus.each(
        f"SELECT v.rowid, v.embedding, e.vector, e.vector_hash FROM {share.table} v "
        "LEFT JOIN embedded e ON e.index_id = ? AND e.chunk = v.rowid",
        (share.index_id,),
    )
    return [
        rowid
        for rowid, scanned, kept, expected in pairs
        if not isinstance(kept, bytes)
        or scanned != kept
        or vector_index.vector_hash(kept) != expected
    ]
