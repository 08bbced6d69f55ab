"""The lexical lane: BM25 over FTS5, the task's terms and the role's scored apart.

What an OR query costs is the scoring of every chunk that has a common word. In a large corpus only
those chunks are scored that have one of the *essential* terms: the rarest ones, down to where all
the commoner ones together could not lift a chunk among the best. This is MaxScore (Turtle and
Flood, "Query evaluation: strategies and optimizations", 1995) with the bound of a term taken from
what terms usually reach instead of from what they could at most; `benchmarks/retrieve.py` measures
what that misses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rolebundle.contracts.base import plain_value
from rolebundle.contracts.candidate import LexicalHit, Query, Term
from rolebundle.corpus import lexical_index
from rolebundle.corpus.connection import Corpus

SCORE_ALL_UP_TO = 20_000
"""Chunks of a corpus in which every match is scored: it takes a few milliseconds."""
USUAL_REACH = 1.3
"""What a term usually adds to a good chunk's BM25, in idfs; at most it is k1 + 1 = 2.2."""
FIRST_ROWS = 3_000
"""About how many chunks the first look scores."""
SURE_OF = 50
"""The best so many must not change by leaving the common terms' chunks unscored."""


@plain_value
class LexicalFound:
    """What the lane proposed: rowid → BM25 against the task, and against the role's expansion."""

    task: dict[int, float]
    role: dict[int, float]


def match_expression(terms: Iterable[Term]) -> str:
    """Terms as an FTS5 expression in which no text is syntax (law 4).

    Each term is one quoted phrase, OR-joined; a term of weight n stands there n times, which is
    how bm25() comes to count it n times.
    """
    return " OR ".join(_literal(term) for term in terms for _ in range(term.weight))


def _literal(term: Term) -> str:
    return '"' + term.text.replace("\x00", " ").replace('"', '""') + '"'


def search(
    corpus: Corpus,
    query: Query,
    depth: int,
    within: Sequence[int] | None = None,
    *,
    chunks: int = 0,
) -> LexicalFound:
    """Chunks that match the task best, and chunks that match the role's expansion best.

    Args:
        corpus: an open corpus.
        query: the built query.
        depth: how many chunks each of the two may propose.
        within: rowids of the documents to search in; ``None`` for all.
        chunks: how many the corpus has; a large one is searched by its essential terms.
    """
    return LexicalFound(
        _best(corpus, query.task_terms, depth, within, chunks),
        _best(corpus, query.expansion_terms, depth, within, chunks),
    )


def complete(
    corpus: Corpus, query: Query, found: LexicalFound, rowids: Sequence[int]
) -> list[LexicalHit]:
    """The true scores of ``rowids`` on both counts, whoever proposed them; zeros are left out."""
    task = _completed(corpus, query.task_terms, found.task, rowids)
    role = _completed(corpus, query.expansion_terms, found.role, rowids)
    proposed = found.task.keys() | found.role.keys()
    return [
        LexicalHit(rowid, task.get(rowid, 0.0), role.get(rowid, 0.0), rowid in proposed)
        for rowid in sorted(task.keys() | role.keys())
    ]


def terms_in(corpus: Corpus, terms: Iterable[Term], rowid: int) -> list[str]:
    """Those of the terms that the index has for a chunk, in their order."""
    return [term.text for term in terms if lexical_index.matches(corpus, _literal(term), rowid)]


def _completed(
    corpus: Corpus, terms: Sequence[Term], known: dict[int, float], rowids: Sequence[int]
) -> dict[int, float]:
    missing = [rowid for rowid in rowids if rowid not in known]
    if not terms or not missing:
        return known
    return known | lexical_index.score(corpus, match_expression(terms), missing)


def _best(
    corpus: Corpus,
    terms: Sequence[Term],
    depth: int,
    within: Sequence[int] | None,
    chunks: int,
) -> dict[int, float]:
    if not terms:
        return {}
    match = match_expression(terms)
    if within is not None or chunks <= SCORE_ALL_UP_TO:
        return dict(lexical_index.search(corpus, match, depth, within=within))
    counted = [(term, lexical_index.frequency(corpus, _literal(term))) for term in terms]
    rarest = sorted((pair for pair in counted if pair[1]), key=lambda pair: (pair[1], pair[0].text))
    taken = _first_look([frequency for _, frequency in rarest])
    while taken < len(rarest):
        among = " OR ".join(_literal(term) for term, _ in rarest[:taken])
        found = lexical_index.search(corpus, match, depth, among=among)
        # Fewer than the depth would look as if the corpus had no more.
        sure = found[min(SURE_OF, depth) - 1][1] if len(found) == depth else 0.0
        needed = essential(rarest, chunks, sure)
        if needed <= taken:
            return dict(found)
        taken = needed
    return dict(lexical_index.search(corpus, match, depth))


def _first_look(frequencies: Sequence[int]) -> int:
    """How many of the rarest terms to begin with: at least one, and about ``FIRST_ROWS`` chunks."""
    total = 0
    for taken, frequency in enumerate(frequencies):
        total += frequency
        if taken and total > FIRST_ROWS:
            return taken
    return len(frequencies)


def essential(rarest: Sequence[tuple[Term, int]], chunks: int, score: float) -> int:
    """How many of the rarest terms a chunk must have one of, to reach ``score``.

    Args:
        rarest: terms with their frequencies, the rarest first.
        chunks: how many the corpus has.
        score: the BM25 that has to be reached.

    Returns:
        The least n for which all terms after the n-th together usually stay under the score.
    """
    reach = 0.0
    for position in range(len(rarest), 0, -1):
        term, frequency = rarest[position - 1]
        # FTS5's own idf, with its floor for terms that more than half of the chunks have.
        idf = max(1e-6, math.log((chunks - frequency + 0.5) / (frequency + 0.5)))
        reach += USUAL_REACH * term.weight * idf
        if reach > score:
            return position
    return 0
