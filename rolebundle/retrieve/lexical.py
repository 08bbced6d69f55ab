"""The lexical lane: BM25 over FTS5, the task's terms and the role's scored apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rolebundle.contracts.candidate import LexicalHit, Query, Term
from rolebundle.corpus import lexical_index
from rolebundle.corpus.connection import Corpus


def match_expression(terms: Iterable[Term]) -> str:
    """Terms as an FTS5 expression in which no text is syntax (law 4).

    Each term is one quoted phrase, OR-joined; a term of weight n stands there n times, which is
    how bm25() comes to count it n times.
    """
    phrases = []
    for term in terms:
        literal = term.text.replace("\x00", " ").replace('"', '""')
        phrases += [f'"{literal}"'] * term.weight
    return " OR ".join(phrases)


def search(
    corpus: Corpus, query: Query, depth: int, within: Sequence[int] | None = None
) -> list[LexicalHit]:
    """Chunks that match the task best, and chunks that match the role's expansion best.

    Args:
        corpus: an open corpus.
        query: the built query.
        depth: how many chunks each of the two may propose.
        within: rowids of the documents to search in; ``None`` for all.

    Returns:
        Every proposed chunk with both scores, ordered by rowid.
    """
    task, expansion = match_expression(query.task_terms), match_expression(query.expansion_terms)
    by_task = dict(lexical_index.search(corpus, task, depth, within)) if task else {}
    by_role = dict(lexical_index.search(corpus, expansion, depth, within)) if expansion else {}
    # Each list is cut at its depth; what stands in one alone still has its true score in the other.
    if task and (missing := by_role.keys() - by_task.keys()):
        by_task |= lexical_index.score(corpus, task, sorted(missing))
    if expansion and (missing := by_task.keys() - by_role.keys()):
        by_role |= lexical_index.score(corpus, expansion, sorted(missing))
    return [
        LexicalHit(rowid, by_task.get(rowid, 0.0), by_role.get(rowid, 0.0))
        for rowid in sorted(by_task.keys() | by_role.keys())
    ]


def score(corpus: Corpus, query: Query, rowids: Sequence[int]) -> list[LexicalHit]:
    """The true lexical scores of chunks that the other lane proposed; zeros are left out."""
    if not rowids:
        return []
    task, expansion = match_expression(query.task_terms), match_expression(query.expansion_terms)
    by_task = lexical_index.score(corpus, task, rowids) if task else {}
    by_role = lexical_index.score(corpus, expansion, rowids) if expansion else {}
    return [
        LexicalHit(rowid, by_task.get(rowid, 0.0), by_role.get(rowid, 0.0), proposed=False)
        for rowid in sorted(by_task.keys() | by_role.keys())
    ]
