"""The checks of a whole corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from rolebundle.contracts.upkeep import CheckProblem
from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import digests, facts, seal, vector_index
from rolebundle.storage.compartments import visible_compartments
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.partition import DenyMatcher, no_denied_patterns, placements
from rolebundle.storage.vector_index import EmbeddingIndex

Found = Iterable[tuple[str, str]]
"""Problems, each a stable code and a message."""


def find_problems(
    corpus: Corpus, deny_matcher: DenyMatcher = no_denied_patterns
) -> list[CheckProblem]:
    """Compare everything in the file that can be compared.

    Args:
        corpus: a corpus open for writing, because FTS5's check is a write statement.
        deny_matcher: the deny patterns of the policy that match a file.
    """
    of_file = () if corpus.is_shared else (_file_problems, _seal_problems)
    checks: Sequence[Callable[[Corpus], Found]] = (
        *of_file,
        _count_problems,
        _row_problems,
        partial(_placement_problems, deny_matcher=deny_matcher),
        _lexical_problems,
        _vector_problems,
    )
    problems: list[tuple[str, str]] = []
    for check in checks:
        try:
            problems += check(corpus)
        except CorpusCorrupt as error:
            # Damage that ends one check is a finding; the other checks still run.
            problems.append(("unreadable", error.message))
        except (AttributeError, TypeError, ValueError) as error:
            # A damaged page may return any type.
            problems.append(("unreadable", f"a value cannot be what was stored ({error})"))
        if {code for code, _ in problems} & {"file_damaged", "orphan", "schema_changed"}:
            # The other checks rely on sound pages and on the tables' form.
            break
    return [CheckProblem(code=code, message=message) for code, message in problems]


def _file_problems(corpus: Corpus) -> Found:
    for (message,) in corpus.rows("PRAGMA integrity_check(20)"):
        if message != "ok":
            yield "file_damaged", message
    for table, rowid, parent, _ in corpus.rows("PRAGMA foreign_key_check"):
        yield "orphan", f"row {rowid} of {table} points to a missing {parent}"


def _seal_problems(corpus: Corpus) -> Found:
    for name in sorted(seal.broken(corpus)):
        code = "schema_changed" if name == "sqlite_schema" else "seal_broken"
        yield code, f"the records in {name} are not what was stored"


_COUNTS = (
    "SELECT 'the corpus', documents, chunks, (SELECT count(*) FROM document), "
    "(SELECT count(*) FROM chunk) FROM corpus_state UNION ALL "
    "SELECT 'compartment ' || id, documents, chunks, "
    "(SELECT count(*) FROM document d WHERE d.compartment = k.id), "
    "(SELECT count(*) FROM document d JOIN chunk c ON c.document = d.id "
    "WHERE d.compartment = k.id) FROM compartment k"
)


def _count_problems(corpus: Corpus) -> Found:
    for name, *counts in corpus.rows(_COUNTS):
        recorded, actual = counts[:2], counts[2:]
        if recorded != actual:
            yield "miscounted", f"{name} records {recorded} documents and chunks, and has {actual}"


def _row_problems(corpus: Corpus) -> Found:
    for table in digests.DIGESTED:
        for rowid, name, expected, is_intact in digests.checked(corpus, table):
            if not is_intact:
                is_text = table == "chunk" and expected is None
                code, digest = ("content_damaged", "hash") if is_text else ("row_damaged", "digest")
                yield code, f"{name or f'row {rowid}'} of {table} does not match its {digest}"
    for number in facts.without_record(corpus):
        yield "row_damaged", f"row {number} of document is a fact without its record"


def _placement_problems(corpus: Corpus, deny_matcher: DenyMatcher) -> Found:
    """Documents that are not in the compartment that decides who may see them."""
    compartments = {compartment.id: compartment for compartment in visible_compartments(corpus)}
    for _, document_id, number, kind in placements(corpus, deny_matcher):
        if number not in compartments or compartments[number].kind != kind:
            yield "misplaced", f"the document {document_id} is not in the compartment it belongs to"


def _lexical_problems(corpus: Corpus) -> Found:
    for compartment in visible_compartments(corpus):
        try:
            corpus.lexical.check(corpus, compartment.id)
        except CorpusCorrupt as error:
            yield "lexical_drift", f"the lexical index differs from the chunks ({error.message})"


def _vector_problems(corpus: Corpus) -> Found:
    for index in vector_index.all_indexes(corpus):
        counts = vector_index.current_counts(corpus, index.id)
        counted = {place: number for place, number in counts.items() if number}
        stored: Counter[int] = Counter()
        for chunk, recorded, is_intact in _vectors(corpus, index):
            stored[recorded] += 1
            if not is_intact:
                yield "vectors_damaged", f"the vector of chunk {chunk} is not what was stored"
        if stored != counted:
            message = f"index {index.id} has {dict(stored)} vectors by compartment, not {counted}"
            yield "vectors_miscounted", message


def _vectors(corpus: Corpus, index: EmbeddingIndex) -> Iterator[tuple[int, int, bool]]:
    """The chunk and the compartment of each vector, and whether it is what was stored."""
    for chunk, recorded, compartment, input_hash, vector_hash, vector in corpus.iterate(
        "SELECT e.chunk, e.compartment, d.compartment, input_hash, vector_hash, vector "
        "FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d "
        "ON d.id = c.document WHERE e.index_id = ?",
        (index.id,),
    ):
        is_whole = recorded == compartment and len(vector) == 4 * index.identity.model.dimensions
        is_intact = is_whole and vector_index.vector_hash(input_hash, vector) == vector_hash
        yield chunk, recorded, is_intact


IN_INDEXES = ("lexical_drift", "vectors_damaged", "vectors_miscounted")
"""The codes of damage that :func:`rebuild_indexes` mends."""


def rebuild_indexes(corpus: Corpus) -> None:
    """Rebuild the lexical indexes, and remove damaged vectors. Call it in a write transaction."""
    for compartment in visible_compartments(corpus):
        corpus.lexical.rebuild(corpus, compartment.id)
    for index in vector_index.all_indexes(corpus):
        damaged = [chunk for chunk, _, is_intact in _vectors(corpus, index) if not is_intact]
        vector_index.remove(corpus, index, damaged)
        vector_index.recount(corpus, index)
    increment_generation(corpus)
