"""The checks of a whole corpus file, and of what a replica must be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import digests, facts, lexical_index, seal, vector_index
from rolebundle.storage.compartments import (
    Compartment,
    searchable_compartments,
    visible_compartments,
)
from rolebundle.storage.corpus import Corpus, true_generation
from rolebundle.storage.partition import DeniedPatterns, no_denied_patterns, placements
from rolebundle.storage.stored_values import damaged
from rolebundle.storage.vector_index import EmbeddingIndex

# What an answer does not need is imported by the functions that need it.
if TYPE_CHECKING:
    from rolebundle.contracts.status import CheckProblem

Found = Iterable[tuple[str, str]]
"""Problems, each a stable code and a message."""


def find_problems(
    corpus: Corpus, denied: DeniedPatterns = no_denied_patterns
) -> list[CheckProblem]:
    """Compare everything in the file that can be compared.

    Args:
        corpus: a corpus open for writing, because FTS5's check is a write statement.
        denied: the deny patterns of the policy that match a file.
    """
    from rolebundle.contracts.status import CheckProblem

    # A database has checksums and constraints of its own.
    of_file = () if corpus.is_database else (_file_problems, _seal_problems)
    checks: Sequence[Callable[[Corpus], Found]] = (
        *of_file,
        _count_problems,
        _row_problems,
        partial(_placement_problems, denied=denied),
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
            message = f"{name} records {recorded} documents and chunks, and has {actual}"
            yield "miscounted", message


def _row_problems(corpus: Corpus) -> Found:
    for table in digests.DIGESTED:
        for row in digests.checked(corpus, table):
            if not row.is_intact:
                is_text = table == "chunk" and row.expected is None
                code, digest = ("content_damaged", "hash") if is_text else ("row_damaged", "digest")
                name = row.name or f"row {row.rowid}"
                yield code, f"{name} of {table} does not match its {digest}"
    for number in facts.without_record(corpus):
        yield "row_damaged", f"row {number} of document is a fact without its record"


def _placement_problems(corpus: Corpus, denied: DeniedPatterns) -> Found:
    """Documents that are not in the compartment that decides who may see them."""
    compartments = {compartment.id: compartment for compartment in visible_compartments(corpus)}
    for _, document_id, number, kind in placements(corpus, denied):
        if number not in compartments or compartments[number].kind != kind:
            message = f"the document {document_id} is not in the compartment it belongs to"
            yield "misplaced", message


def _lexical_problems(corpus: Corpus) -> Found:
    for compartment in visible_compartments(corpus):
        try:
            corpus.lexical.check(corpus, compartment.id)
        except CorpusCorrupt as error:
            message = f"the lexical index differs from the chunks ({error.message})"
            yield "lexical_drift", message


def _vector_problems(corpus: Corpus) -> Found:
    for index in vector_index.all_indexes(corpus):
        counted = {place: number for place, number in index.parts.items() if number}
        stored: Counter[int] = Counter()
        for chunk, own, place, input_hash, vector_hash, vector in corpus.iterate(
            "SELECT e.chunk, e.compartment, d.compartment, input_hash, vector_hash, vector "
            "FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d "
            "ON d.id = c.document WHERE e.index_id = ?",
            (index.id,),
        ):
            stored[own] += 1
            if (
                own != place
                or len(vector) != 4 * index.identity.model.dimensions
                or vector_index.vector_hash(input_hash, vector) != vector_hash
            ):
                yield "vectors_damaged", f"the vector of chunk {chunk} is not what was stored"
        if stored != counted:
            message = f"index {index.id} has {dict(stored)} vectors by compartment, not {counted}"
            yield "vectors_miscounted", message


_WHOLE_WORD = re.compile(r"(?<!\S)[A-Za-z0-9]+(?!\S)")
"""A word that is one token of the index, whatever surrounds it."""


def verify_passages(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare passages and their documents with their digests. Call it inside ``reading()``.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    chunks = sorted(rowids)
    digests.announce_of_chunks(corpus, chunks)
    _verify("passage", digests.checked(corpus, "chunk", chunks), corpus.path)
    of_chunks = digests.checked(corpus, "document", chunks, digests.OF_CHUNKS)
    _verify("document", of_chunks, corpus.path)


def verify_documents(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare documents with their digests.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    _verify("document", digests.checked(corpus, "document", sorted(rowids)), corpus.path)


def _verify(word: str, rows: Iterable[digests.Checked], path: Path) -> None:
    for row in rows:
        if not row.is_intact:
            raise damaged(f"the {word} {row.name}", "damaged_passage", path)


def verify_lexical_indexes(corpus: Corpus) -> None:
    """Check that the lexical indexes have as many chunks as there are, and find a known one.

    It is done once for each state of the corpus that this connection sees.

    Raises:
        CorpusCorrupt: they do not.
    """
    for compartment in searchable_compartments(corpus, facts=True):
        name = lexical_index.table_name(compartment.id)
        if corpus.verified.get(name) == true_generation(corpus):
            continue
        indexed = corpus.lexical.extent(corpus, compartment.id).chunks
        if indexed != compartment.chunks or not _finds_first_chunk(corpus, compartment):
            raise damaged("the lexical index", "damaged_index", corpus.path)
        corpus.verified[name] = true_generation(corpus)


def _finds_first_chunk(corpus: Corpus, compartment: Compartment) -> bool:
    rows = corpus.rows(
        "SELECT c.id, c.content FROM document d CROSS JOIN chunk c ON c.document = d.id "
        "WHERE d.compartment = ? LIMIT 1",
        (compartment.id,),
    )
    if not rows:
        return False
    [(rowid, content)] = rows
    word = _WHOLE_WORD.search(str(content))
    return word is None or corpus.lexical.has_word(corpus, compartment.id, word[0], rowid)


def vectors_problem(corpus: Corpus, index: EmbeddingIndex) -> str:
    """What is wrong with the sizes of an embedding index; empty if nothing is."""
    stored = "SELECT count(*) FROM embedded WHERE index_id = ? AND compartment = ?"
    for compartment, vectors in index.parts.items():
        name = f"vectors_{index.id}_{compartment}"
        if corpus.verified.get(name) != true_generation(corpus):
            if corpus.value(stored, (index.id, compartment)) != vectors:
                return "the embedding index is damaged: it does not have what was stored"
            corpus.verified[name] = true_generation(corpus)
    return ""
