"""A forbidden source is reported if one of its passages would have been selected, and only then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests

PROVIDER = HashingProvider()
FORBIDS: dict[str, Any] = {"forbidden_sources": [{"pattern": "adverts", "reason": "not evidence"}]}
ROLE = overlay(source_policy=FORBIDS)
STRONG = document("advert", ["token rotation, token rotation"], source_id="adverts")
OWN_DOCUMENTS = [document(f"ours{n}", [f"token rotation, step {n}"]) for n in range(3)]


def answered(documents: list[StoredDocument], role: Overlay = ROLE, **fields: Any) -> Any:
    with scratch_folder() as folder, built(folder, documents, PROVIDER) as corpus:
        return ask(corpus, role, PROVIDER, **{"task": "token rotation", "limit": 2, **fields})


def is_reported(bundle: RetrievalBundle) -> bool:
    assert bundle.fallback is not None
    reported = "FORBIDDEN_SOURCE_HIT" in {warning.code for warning in bundle.warnings}
    assert reported == ("forbidden_hit" in bundle.fallback.states)
    assert bundle.rejected_summary.get("forbidden_source", 0) == bundle.summary.forbidden_hits
    return reported


@pytest.mark.parametrize("lexical_only", [False, True])
class TestTheWarning:
    def test_a_forbidden_passage_among_the_best_is_reported(self, lexical_only: bool) -> None:
        bundle = answered([*OWN_DOCUMENTS, STRONG], lexical_only=lexical_only)
        assert is_reported(bundle)
        assert "1 passage of forbidden sources would have been selected: adverts" in {
            warning.message for warning in bundle.warnings
        }


@few_examples
@given(
    documents=corpora(),
    role=overlays(require_source_diversity=False, diversity="soft"),
    fields=requests(token_budget=None, lexical_only=True),
)
def test_it_is_what_the_role_would_get_if_it_forbade_nothing(
    documents: list[StoredDocument], role: Overlay, fields: dict[str, Any]
) -> None:
    """With the lexical lane alone, no candidate is compared with another one but for copies."""
    drawn = role.model_dump(exclude_none=True)
    drawn["source_policy"] |= {"forbidden_sources": [], "allowed_sources": []}
    with scratch_folder() as folder, built(folder, documents, PROVIDER) as corpus:
        governed = ask(corpus, role, **fields)
        free = ask(corpus, overlay(**drawn), **fields)
    assume("duplicate" not in free.rejected_summary)
    forbidden = {
        rejection.chunk_id
        for rejection in governed.rejected
        if rejection.reason == "forbidden_source"
    }
    hits = forbidden & {chunk.chunk_id for chunk in free.selected}
    messages = [
        warning.message for warning in governed.warnings if warning.code == "FORBIDDEN_SOURCE_HIT"
    ]
    assert len(messages) == bool(hits)
    assert all(message.startswith(f"{len(hits)} passage") for message in messages)
