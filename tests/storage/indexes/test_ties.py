"""Ties at the edge of a search are broken by chunk id, and cost a second search only if needed."""

from __future__ import annotations

from pathlib import Path

from rolebundle.storage import lexical_index
from rolebundle.storage.lexical_index import GROWTH, MARGIN, first_by_score, search_with_ties
from rolebundle.storage.opening import open_reader
from support.corpora import build, document


def searched(scores: list[float], number: int, most: int | None = None) -> tuple[int, list[int]]:
    """How many results come back, and the limits of the searches."""
    limits: list[int] = []

    def search(limit: int) -> dict[int, float]:
        limits.append(limit)
        return dict(enumerate(scores[:limit]))

    return len(search_with_ties(search, number, most)), limits


def test_one_search_is_enough_if_the_ties_end_in_it() -> None:
    falling = [float(-n) for n in range(1_000)]
    assert searched(falling, 10) == (10 + MARGIN, [10 + MARGIN])
    assert searched(falling[:5], 10) == (5, [10 + MARGIN])
    assert searched([], 1) == (0, [1 + MARGIN])


def test_the_search_goes_on_while_the_last_one_ties_with_the_edge() -> None:
    flat = [1.0] * 1_000
    length, limits = searched(flat, 10)
    assert length == 1_000 and limits == [42, 42 * GROWTH]
    assert searched(flat, 10, most=100) == (100, [42, 100])
    assert searched(flat, 100, most=100) == (100, [100])


def test_the_lower_chunk_id_wins_at_the_edge(tmp_path: Path) -> None:
    names = [f"n{number:03}" for number in range(60)]
    path = build(tmp_path, [document(name, ["the token"], title="t") for name in names[::-1]])
    with open_reader(path) as corpus:
        ids = dict(corpus.rows("SELECT id, chunk_id FROM chunk"))
        [compartment] = [row[0] for row in corpus.rows("SELECT id FROM compartment")]
        best = lexical_index.search(corpus, compartment, "token", 7)
        assert {ids[rowid] for rowid, _ in best} == {f"{name}#0" for name in names[:7]}
        above = {max(ids): 2.0} | dict.fromkeys(ids, 1.0) | {max(ids): 2.0}
        first_three = first_by_score(corpus, above, 3)
        assert [ids[rowid] for rowid in first_three] == ["n000#0", "n001#0", "n002#0"]
        assert first_by_score(corpus, {}, 3) == {}
