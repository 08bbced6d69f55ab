"""The first passages of an answer do not depend on how many are asked for.

Precisely: the passages for a limit are the first of those for every higher limit. Here a lane
proposes ``DEPTH`` chunks at first and few ties, so that small corpora are searched again.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval import pipeline
from rolebundle.storage import passages
from rolebundle.storage.documents import StoredDocument
from support.amounts import EXAMPLES
from support.corpora import ask, built, document, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import DATES, LONG, TIERS, corpora, few_words, overlays, requests

DEPTH = 4
PROVIDER = HashingProvider()


@st.composite
def copies(draw: st.DrawFn) -> list[StoredDocument]:
    """Copies of few texts, with other titles, white space, formats, dates, sources and trust."""
    texts = draw(st.lists(st.tuples(few_words, st.booleans()), min_size=1, max_size=3))
    made = []
    for number in range(draw(st.integers(2, 10))):
        words, is_long = draw(st.sampled_from(texts))
        text = f"{words} {LONG}" if is_long else words
        gap = draw(st.sampled_from((" ", " ", "\n")))
        stored = document(
            f"{draw(st.sampled_from(('c', 'copy')))}-{number}",
            [text.replace(" ", gap)],
            title=draw(few_words),
            source_id=draw(st.sampled_from(("wiki", "policy", "tickets"))),
            trust_tier=draw(st.sampled_from(TIERS)),
            updated_at=draw(st.sampled_from(DATES))[0],
        )
        made.append(stored)
    return made


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    crowd=[],
    twins=[
        document(f"c{number}", ["token"], updated_at=date)
        for number, date in enumerate([None] * 5 + ["2019-01-01T00:00:00Z"])
    ],
    role=None,
    fields={"task": "token"},
)
@given(
    crowd=corpora(most=6),
    twins=copies(),
    role=st.none() | overlays() | overlays(min_score=0.0),
    fields=requests(limit=None, seen=None),
)
def test_the_first_passages_do_not_depend_on_the_limit(
    monkeypatch: pytest.MonkeyPatch,
    crowd: list[StoredDocument],
    twins: list[StoredDocument],
    role: Overlay | None,
    fields: dict[str, Any],
) -> None:
    monkeypatch.setattr(pipeline, "POOL_DEPTH", DEPTH)
    monkeypatch.setattr(passages, "MAX_TIED", 1)
    with scratch_folder() as folder, built(folder, [*crowd, *twins], PROVIDER) as corpus:
        names = {
            limit: [
                row.chunk_id for row in ask(corpus, role, PROVIDER, limit=limit, **fields).selected
            ]
            for limit in (1, 2, 3, 5, 8, 30)
        }
    # What does not fit, or is under the floor, counts as found, so that fewer may be selected.
    fits = "token_budget" not in fields and role and not role.retrieval_policy.min_score
    for limit, first in names.items():
        assert names[30][: limit if fits else len(first)] == first
