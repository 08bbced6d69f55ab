"""The lexical lane: BM25 over FTS5, the task's terms and the role's scored apart.

What an OR query costs is the scoring of every chunk that has a common word. In a large corpus only
those chunks are scored that have one of the *essential* terms: the rarest ones, down to where all
the commoner ones together could not lift a chunk among the best. This is MaxScore (Turtle and
Flood, "Query evaluation: strategies and optimizations", 1995) with the bound of a term taken from
what terms usually reach instead of from what they could at most; `benchmarks/retrieve.py` measures
what that misses.

Where several compartments are visible, each proposes its best, and what they propose is scored
again with the statistics of all that is visible (`rolebundle/retrieval/bm25.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rolebundle.contracts.candidate import LexicalHit, Query, Term
from rolebundle.retrieval.bm25 import Statistics, inverse_frequency
from rolebundle.storage import compartments, lexical_index
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.connection import Corpus

SCORE_ALL_UP_TO = 20_000
"""Chunks of a corpus in which every match is scored: it takes a few milliseconds."""
USUAL_REACH = 1.3
"""What a term usually adds to a good chunk's BM25, in idfs; at most it is k1 + 1 = 2.2."""
FIRST_ROWS = 3_000
"""About how many chunks the first look scores."""
SURE_OF = 50
"""The best so many must not change by leaving the common terms' chunks unscored."""


@dataclass(frozen=True, slots=True)
class LexicalFound:
    """What the lane proposed: rowid → BM25 against the task, and against the role's expansion."""

    task: dict[int, float]
    role: dict[int, float]
    others: dict[int, float] | None = None
    """Against the task, of what was to be scored on the way; 0 where nothing matches."""


class _Found(NamedTuple):
    """Rowid → BM25: of the best, and of others that were scored on the way."""

    best: dict[int, float]
    others: dict[int, float]


def match_expression(terms: Iterable[Term]) -> str:
    """Terms as an FTS5 expression in which no text is syntax (law 4).

    Each term is one quoted phrase, OR-joined; a term of weight n stands there n times, which is
    how bm25() comes to count it n times.
    """
    return " OR ".join(_literal(term) for term in terms for _ in range(term.weight))


def _literal(term: Term) -> str:
    text = term.text
    if term.form:
        from rolebundle.text.forms import index_tokens

        text = index_tokens(text)
    return '"' + text.replace("\x00", " ").replace('"', '""') + '"'


def search(
    corpus: Corpus,
    query: Query,
    depth: int,
    within: Sequence[int] | None = None,
    also: Sequence[int] = (),
) -> LexicalFound:
    """Chunks that match the task best, and chunks that match the role's expansion best.

    Args:
        corpus: an open corpus.
        query: the built query.
        depth: how many chunks each of the two may propose.
        within: rowids of the documents to search in; ``None`` for all.
        also: rowids that will have to be completed: in a large corpus it is cheaper to score them
            on the way.
    """
    places = compartments.searchable_compartments(corpus)
    task = _best(corpus, places, query.task_terms, depth, within, also)
    role = _best(corpus, places, query.expansion_terms, depth, within)
    return LexicalFound(task.best, role.best, task.others)


def complete(
    corpus: Corpus, query: Query, found: LexicalFound, rowids: Sequence[int]
) -> list[LexicalHit]:
    """The true scores of ``rowids`` on both counts, whoever proposed them; zeros are left out."""
    places = compartments.searchable_compartments(corpus)
    if not places:
        return []
    known = {**(found.others or {}), **found.task}
    task = _completed(corpus, places, query.task_terms, known, rowids)
    role = _completed(corpus, places, query.expansion_terms, found.role, rowids)
    proposed = found.task.keys() | found.role.keys()
    return [
        LexicalHit(rowid, task.get(rowid, 0.0), role.get(rowid, 0.0), rowid in proposed)
        for rowid in sorted(task.keys() | role.keys())
        if task.get(rowid) or role.get(rowid)
    ]


def terms_in(corpus: Corpus, terms: Iterable[Term], rowid: int) -> list[str]:
    """Those of the terms that the index has for a chunk, as they are shown, in their order."""
    return [
        term.shown
        for place in compartments.chunks_by_compartment(corpus, [rowid])
        for term in terms
        if lexical_index.matches(corpus, place, _literal(term), rowid)
    ]


def _completed(
    corpus: Corpus,
    places: Sequence[Compartment],
    terms: Sequence[Term],
    known: dict[int, float],
    rowids: Sequence[int],
) -> dict[int, float]:
    missing = [rowid for rowid in rowids if rowid not in known]
    if not terms or not missing:
        return known
    return known | _scores(corpus, places, terms, missing)


def _best(
    corpus: Corpus,
    places: Sequence[Compartment],
    terms: Sequence[Term],
    depth: int,
    within: Sequence[int] | None,
    also: Sequence[int] = (),
) -> _Found:
    """The best chunks of all places, by the statistics of all of them together."""
    if not terms or not places:
        return _Found({}, {})
    if len(places) == 1:
        return _best_of(corpus, places[0], terms, depth, within, also)
    terms = _occurring(corpus, places, terms)
    if not terms:
        return _Found({}, {})
    together = _statistics(corpus, places, terms)
    estimates: dict[int, float] = {}
    for place in places:
        found = _best_of(corpus, place, terms, depth, within).best
        if found:
            alone = _statistics(corpus, [place], terms)
            scale = together.reach / alone.reach
            estimates |= {rowid: score * scale for rowid, score in found.items()}
    # Twice as many as are wanted, since the scores of single places only come near.
    likely = sorted(estimates, key=lambda rowid: (-estimates[rowid], rowid))[: 2 * depth]
    scores = _scores(corpus, places, terms, likely)
    best = sorted(scores, key=lambda rowid: (-scores[rowid], rowid))[:depth]
    return _Found({rowid: scores[rowid] for rowid in best}, {})


def _scores(
    corpus: Corpus, places: Sequence[Compartment], terms: Sequence[Term], rowids: Sequence[int]
) -> dict[int, float]:
    """The BM25 of those of the chunks that have any of the terms, by the places' statistics."""
    if len(places) == 1:
        return lexical_index.score(corpus, places[0].id, match_expression(terms), rowids)
    terms = _occurring(corpus, places, terms)
    if not terms:
        return {}
    together = _statistics(corpus, places, terms)
    once = " OR ".join(_literal(term) for term in terms)
    return {
        rowid: together.bm25(tokens, occurrences)
        for place, chunks in compartments.chunks_by_compartment(corpus, rowids).items()
        for rowid, (tokens, *occurrences) in lexical_index.occurrences(
            corpus, place, once, chunks
        ).items()
    }


def _occurring(corpus: Corpus, places: Sequence[Compartment], terms: Sequence[Term]) -> list[Term]:
    """Those of the terms that occur at all; the others add nothing but work."""
    counts = _frequencies(corpus, places, terms)
    return [term for term, count in zip(terms, counts, strict=True) if count]


def _frequencies(corpus: Corpus, places: Sequence[Compartment], terms: Sequence[Term]) -> list[int]:
    """For each of the terms how many chunks of all places have it."""
    literals = [_literal(term) for term in terms]
    counted = (lexical_index.frequencies(corpus, place.id, literals) for place in places)
    return [sum(counts) for counts in zip(*counted, strict=True)]


def _statistics(corpus: Corpus, places: Sequence[Compartment], terms: Sequence[Term]) -> Statistics:
    extents = [lexical_index.extent(corpus, place.id) for place in places]
    frequencies = _frequencies(corpus, places, terms)
    return Statistics.of(
        sum(extent.chunks for extent in extents),
        sum(extent.tokens for extent in extents),
        frequencies,
        [term.weight for term in terms],
    )


def _best_of(
    corpus: Corpus,
    place: Compartment,
    terms: Sequence[Term],
    depth: int,
    within: Sequence[int] | None,
    also: Sequence[int] = (),
) -> _Found:
    """The best chunks of one place, by its own statistics."""
    match = match_expression(terms)
    if within is not None or place.chunks <= SCORE_ALL_UP_TO:
        found = lexical_index.search(corpus, place.id, match, depth, within=within)
        return _Found(dict(found), {})
    counted = list(zip(terms, _frequencies(corpus, [place], terms), strict=True))
    rarest = sorted((pair for pair in counted if pair[1]), key=lambda pair: (pair[1], pair[0].text))
    taken = _first_look([frequency for _, frequency in rarest])
    while taken < len(rarest):
        among = " OR ".join(_literal(term) for term, _ in rarest[:taken])
        found, others = lexical_index.search_among(corpus, place.id, match, depth, among, also)
        # Fewer than the depth would look as if the corpus had no more.
        sure = found[min(SURE_OF, depth) - 1][1] if len(found) == depth else 0.0
        needed = essential(rarest, place.chunks, sure)
        if needed <= taken:
            return _Found(dict(found), dict.fromkeys(also, 0.0) | others)
        taken = needed
    return _Found(dict(lexical_index.search(corpus, place.id, match, depth)), {})


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
        chunks: how many the index has.
        score: the BM25 that has to be reached.

    Returns:
        The least n for which all terms after the n-th together usually stay under the score.
    """
    reach = 0.0
    for position in range(len(rarest), 0, -1):
        term, frequency = rarest[position - 1]
        reach += USUAL_REACH * term.weight * inverse_frequency(chunks, frequency)
        if reach > score:
            return position
    return 0
