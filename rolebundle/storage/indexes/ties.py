"""Ties at the edge of what a lane proposes are broken by chunk id.

Rowids depend on the order in which documents came into the corpus, chunk ids do not. So an updated
corpus and a rebuilt one propose the same chunks. A search asks for a few more than it needs; ids
are read only if there is a tie at the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rolebundle.storage.connection import Corpus

MARGIN = 32
"""How many results a search asks for in addition, to see where the ties at the edge end."""

GROWTH = 64
"""By how much the limit grows as long as the results tie. A search scores all matches, so that a
larger limit costs less than another search."""


def search_with_ties(
    search: Callable[[int], Mapping[int, float]], number: int, most: int | None = None
) -> Mapping[int, float]:
    """The results of a search, with all that tie with the last one needed.

    Args:
        search: returns the best results for a limit, as rowid → score, best first.
        number: how many are needed.
        most: the largest limit that the search allows; ties beyond it are not seen.
    """
    limit = number + MARGIN
    while True:
        limit = limit if most is None else min(limit, most)
        found = search(limit)
        scores = list(found.values())
        if len(found) < limit or limit == most or scores[number - 1] != scores[-1]:
            return found
        limit *= GROWTH


def first_by_score(corpus: Corpus, scores: Mapping[int, float], number: int) -> dict[int, float]:
    """The chunks with the highest scores, best first; ties at the edge go to the lower chunk id.

    Args:
        corpus: an open corpus.
        scores: rowid → score.
        number: how many, 1 or more.
    """
    ordered = sorted(scores, key=lambda rowid: (-scores[rowid], rowid))
    if len(ordered) > number and scores[ordered[number - 1]] == scores[ordered[number]]:
        edge = scores[ordered[number]]
        above = [rowid for rowid in ordered if scores[rowid] > edge]
        tied = [rowid for rowid in ordered if scores[rowid] == edge]
        names = "SELECT id, chunk_id FROM chunk WHERE id IN (SELECT value FROM json_each(?))"
        chunk_ids: dict[int, str] = dict(corpus.rows(names, (tied,)))
        ordered = above + sorted(tied, key=lambda rowid: chunk_ids.get(rowid, ""))
    return {rowid: scores[rowid] for rowid in ordered[:number]}
