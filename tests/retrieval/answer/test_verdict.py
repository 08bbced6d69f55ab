"""The verdict of an empty answer: one small corpus for each verdict, and the rule itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import Fallback, RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import EmptyReason
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import EmbedderError
from rolebundle.interfaces import render
from rolebundle.retrieval.answer.passage_text import packet
from rolebundle.retrieval.answer.warnings import empty_verdict
from rolebundle.retrieval.candidate import SemanticReport
from rolebundle.storage.content.stored_document import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay, resolved, scratch_folder
from support.fake_embedder import BrokenProvider, HashingProvider
from support.strategies import corpora, overlays, requests
from support.values import CORPUS, rejected, retrieval

PROVIDER = HashingProvider()
VERDICTS = get_args(EmptyReason)
OLD = "2019-01-01T00:00:00Z"
# No passage reaches it: at most 0.3 for words, 0.3 for meaning and 0.2 for metadata.
FLOOR = {"min_score": 0.9}
FORBIDS = overlay(
    source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}]},
    retrieval_policy=FLOOR,
)
EXCLUDING_OLD = overlay(
    retrieval_policy={"freshness_max_age_days": 365.0, "stale_penalty": 1.0, **FLOOR}
)


def answer(
    documents: Sequence[StoredDocument],
    role: Overlay | None = None,
    provider: EmbeddingProvider | None = PROVIDER,
    waiting: int = 0,
    task: str = "token rotation",
    **fields: Any,
) -> RetrievalBundle:
    indexed = None if provider is None else PROVIDER
    with (
        scratch_folder() as folder,
        built(folder, documents, indexed, waiting=waiting) as corpus,
    ):
        return ask(corpus, role, provider, task=task, **fields)


def fallback_of(bundle: RetrievalBundle) -> Fallback:
    assert bundle.fallback is not None
    return bundle.fallback


def empty(*documents: Any, **fields: Any) -> tuple[EmptyReason | None, str]:
    """Verdict and message of an answer that must be empty."""
    bundle = answer(*documents, **fields)
    fallback = fallback_of(bundle)
    assert bundle.selected == []
    assert (fallback.state, fallback.action) == ("no_strong_match", "block")
    if bundle.rejected:
        for code, count in bundle.rejected_summary.items():
            assert f"{count} {code}" in fallback.message
    assert f"No passage was found ({fallback.verdict})." in render.text(bundle)
    assert f"({fallback.verdict}). Do not claim anything" in packet(bundle)
    return fallback.verdict, fallback.message


def _raise_unreachable(_texts: Sequence[str]) -> np.ndarray:
    raise EmbedderError("unreachable", "the model's server does not answer", "start it")


class TestEachVerdict:
    def test_corpus_empty(self) -> None:
        verdict, message = empty([])
        assert verdict == "corpus_empty"
        assert message == "the corpus is empty: run `rolebundle ingest PATH`"

    def test_nothing_matches_where_is_reported_before_a_failed_lane(self) -> None:
        bread = document("bread", ["flour"])
        where = {"source": "nowhere"}
        verdict, message = empty([bread], None, BrokenProvider(_raise_unreachable), where=where)
        assert verdict == "nothing_matches_where"
        assert message.startswith("no document matches source = nowhere;")
        assert empty([], where=where)[0] == "corpus_empty"

    def test_no_evidence_by_words_or_by_meaning(self) -> None:
        verdict, message = empty([document("bread", ["flour", "butter"])])
        assert verdict == "no_evidence"
        assert "2 low_score" in message
        assert "do not guess" in message

    @pytest.mark.parametrize("by", ["overlay", "request"])
    def test_no_evidence_if_it_is_required_and_weak(self, by: str) -> None:
        bread = document("bread", [f"flour number{n}" for n in range(60)])
        documents = [document("d", ["the rotation of a shift"]), bread]
        task = "rotation of credentials for the vendors and visitors of embassies abroad"
        strict = overlay(retrieval_policy={"evidence": "required"})
        fields: dict[str, Any] = {"task": task, "lexical_only": True}
        shown = answer(documents, overlay(), **fields)
        assert [passage.document_id for passage in shown.selected] == ["d"]
        assert [warning.code for warning in shown.warnings][:1] == ["WEAK_EVIDENCE"]
        assert fallback_of(shown).action == "warn"
        role = strict if by == "overlay" else overlay()
        required = {} if by == "overlay" else {"evidence": "required"}
        verdict, message = empty(documents, role, **fields, **required)
        assert verdict == "no_evidence"
        assert "1 low_score" in message
        assert answer(documents, role, task="a shift rotation", **required).selected
        # A request cannot open what the overlay closes.
        assert not answer(documents, strict, evidence="optional", **fields).selected

    def test_nothing_found_by_a_lexical_only_request_does_not_mention_near_meanings(self) -> None:
        verdict, message = empty([document("bread", ["flour"])], lexical_only=True)
        assert verdict == "nothing_found"
        assert message == (
            "nothing in the corpus has the task's words, and meanings were not searched "
            "(no candidates); ask in other words, or without lexical_only"
        )

    def test_matches_of_only_the_roles_words_are_no_evidence(self) -> None:
        role = overlay(vocabulary={"boost_phrases": ["threat model"]}, retrieval_policy=FLOOR)
        documents = [document("d", ["a threat model"])]
        verdict, message = empty(documents, role, lexical_only=True)
        assert verdict == "no_evidence"
        assert "1 low_score" in message

    def test_all_below_floor(self) -> None:
        verdict, message = empty(
            [document("d", ["token rotation", "a token"]), document("bread", ["flour"])],
            overlay(retrieval_policy=FLOOR),
        )
        assert verdict == "all_below_floor"
        assert "3 low_score; the best: score 0." in message
        assert "lower min_score" in message

    def test_all_forbidden_whatever_else_is_near_or_weak(self) -> None:
        verdict, message = empty(
            [
                document("post", ["token rotation"], source_id="blog"),
                document("weak", ["a token, by the way"]),
                document("bread", ["flour"]),
            ],
            FORBIDS,
        )
        assert verdict == "all_forbidden"
        assert message.startswith("everything relevant is forbidden to the role reviewer")
        assert "1 forbidden_source, 2 low_score; for one: blog: hearsay" in message

    def test_a_forbidden_neighbour_does_not_hide_that_the_words_are_there_but_weak(self) -> None:
        documents = [document("post", ["flour"], source_id="blog"), document("d", ["a token"])]
        assert empty(documents, FORBIDS)[0] == "all_below_floor"

    def test_all_stale(self) -> None:
        verdict, message = empty(
            [document("d", ["token rotation"], updated_at=OLD), document("bread", ["flour"])],
            EXCLUDING_OLD,
        )
        assert verdict == "all_stale"
        assert "1 stale, 1 low_score; for one: 2861 days old, the limit is 365" in message
        assert "freshness_max_age_days" in message

    def test_all_taint_blocked(self) -> None:
        verdict, message = empty(
            [document("web", ["token rotation"], origin="untrusted"), document("d", ["flour"])],
            overlay(retrieval_policy=FLOOR),
            action="suggest",
            approval="Ana",
        )
        assert verdict == "all_taint_blocked"
        assert message.startswith("everything relevant is not trusted enough")
        assert "1 taint_blocked, 1 low_score; for one: origin untrusted has trust 1" in message

    @pytest.mark.parametrize("role", [None, overlay()])
    def test_approval_needed(self, role: Overlay | None) -> None:
        documents = [
            document("theirs", ["token rotation"], origin="external"),
            document("web", ["a token"], origin="untrusted"),
        ]
        verdict, message = empty(documents, role, action="execute")
        assert verdict == "approval_needed"
        assert "1 taint_blocked, 1 requires_approval; for one: origin external" in message
        assert message.endswith("let a person approve it, and do not act before")
        verdict, _ = empty(documents[1:], role, action="execute")
        assert verdict == "all_taint_blocked"

    def test_all_superseded(self) -> None:
        documents = [
            document("v1", ["token rotation"]),
            document("v2", ["flour"], supersedes=("v1",)),
        ]
        verdict, message = empty(documents, lexical_only=True)
        assert verdict == "all_superseded"
        assert "1 conflict_downrank; for one: superseded by v2" in message

    def test_none_valid(self) -> None:
        documents = [
            document("old", ["token rotation"], valid_until=OLD),
            document("new", ["a token"], valid_from="2027-01-01T00:00:00Z"),
        ]
        verdict, message = empty(documents, lexical_only=True)
        assert verdict == "none_valid"
        assert "1 not_yet_valid, 1 expired; for one: valid" in message

    def test_all_seen(self) -> None:
        verdict, message = empty(
            [document("d", ["token rotation"])], seen=["d#0"], lexical_only=True
        )
        assert verdict == "all_seen"
        assert "1 already_seen; for one: it is in `seen`" in message

    @pytest.mark.parametrize("also", [{}, {"updated_at": OLD}])
    def test_rejected_by_policy_by_another_rule_or_by_several(self, also: dict[str, Any]) -> None:
        excluding = document("d", ["a token"], excluded_roles=("reviewer",))
        more = [document("old", ["token rotation"], **also)] if also else []
        verdict, message = empty([excluding, *more], EXCLUDING_OLD)
        assert verdict == "rejected_by_policy"
        assert "d excludes the role reviewer" in message or "days old" in message

    def test_over_budget(self) -> None:
        documents = [
            document("d", ["token rotation " * 4, "a token"]),
            document("bread", ["flour"]),
        ]
        verdict, message = empty(documents, token_budget=1)
        assert verdict == "over_budget"
        assert "the best: about 15 tokens do not fit: 0 of token_budget 1 are used" in message
        assert message.endswith("raise token_budget")

    def test_over_budget_is_reported_before_a_failed_lane(self) -> None:
        # There is an answer, whatever else there might be.
        found = empty(
            [document("d", ["a token"])], None, BrokenProvider(_raise_unreachable), token_budget=1
        )
        assert found[0] == "over_budget"

    def test_lane_down_if_the_model_fails(self) -> None:
        verdict, message = empty(
            [document("bread", ["flour"])], None, BrokenProvider(_raise_unreachable)
        )
        assert verdict == "lane_down"
        assert message == (
            "the search was incomplete (no candidates); the semantic lane did not run: "
            "the model's server does not answer; start it"
        )

    def test_lane_down_if_chunks_have_no_vector(self) -> None:
        verdict, message = empty(
            [document("bread", ["flour", "butter"])], overlay(retrieval_policy=FLOOR), waiting=1
        )
        assert verdict == "lane_down"
        assert "(candidates rejected: 1 low_score)" in message
        assert message.endswith("1 of 2 chunks without a vector; run `rolebundle corpus embed`")


WORDS = {"bm25": 1.0, "cosine": 0.5}
MEANING = {"bm25": None, "cosine": 0.5}
NEITHER = {"bm25": 0.0, "bm25_expansion": 2.0, "cosine": None}


class TestRule:
    @pytest.mark.parametrize(
        ("rejections", "verdict"),
        [
            ([], "nothing_found"),
            ([("low_score", MEANING), ("duplicate", MEANING)], "nothing_found"),
            ([("forbidden_source", NEITHER)], "nothing_found"),
            ([("low_score", WORDS), ("duplicate", WORDS)], "all_below_floor"),
            ([("low_score", WORDS), ("stale", MEANING)], "all_below_floor"),
            ([("low_score", WORDS), ("stale", WORDS)], "all_stale"),
            ([("low_score", MEANING), ("stale", MEANING)], "all_stale"),
            ([("stale", WORDS), ("forbidden_source", MEANING)], "all_stale"),
            ([("stale", WORDS), ("forbidden_source", WORDS)], "rejected_by_policy"),
            ([("role_mismatch", WORDS)], "rejected_by_policy"),
            ([("conflict_downrank", WORDS)], "all_superseded"),
            ([("expired", WORDS), ("stale", MEANING)], "none_valid"),
            ([("expired", WORDS), ("not_yet_valid", WORDS)], "none_valid"),
            ([("expired", WORDS), ("stale", WORDS)], "rejected_by_policy"),
            ([("already_seen", WORDS), ("low_score", WORDS)], "all_seen"),
            ([("already_seen", WORDS), ("stale", WORDS)], "all_stale"),
            ([("already_seen", MEANING), ("stale", WORDS)], "all_stale"),
            ([("taint_blocked", WORDS), ("low_score", WORDS)], "all_taint_blocked"),
            ([("taint_blocked", MEANING)], "all_taint_blocked"),
            ([("requires_approval", WORDS), ("stale", MEANING)], "approval_needed"),
            ([("requires_approval", WORDS), ("taint_blocked", WORDS)], "approval_needed"),
            ([("requires_approval", WORDS), ("stale", WORDS)], "rejected_by_policy"),
            ([("budget_cut", MEANING), ("forbidden_source", WORDS)], "over_budget"),
        ],
    )
    def test_what_counts(self, rejections: list[Any], verdict: EmptyReason) -> None:
        candidates = [rejected(code, **found) for code, found in rejections]
        searched = retrieval(resolved(None))
        empty = searched._replace(corpus=CORPUS.model_copy(update={"chunks": 0}))
        assert empty_verdict(candidates, searched) == verdict
        assert empty_verdict(candidates, empty) == "corpus_empty"
        half = empty_verdict(candidates, searched._replace(semantic=SemanticReport("why")))
        assert half == ("over_budget" if verdict == "over_budget" else "lane_down")
        if candidates and verdict != "over_budget":
            assert empty_verdict(candidates, searched._replace(withheld="so")) == "no_evidence"

    def test_every_verdict_is_shown_above(self) -> None:
        source = Path(__file__).read_text("utf-8")
        assert [name for name in VERDICTS if f'verdict == "{name}"' not in source] == []


@few_examples
@given(
    documents=corpora(),
    waiting=st.integers(0, 3),
    role=st.none() | overlays(),
    fields=requests(),
    fails=st.booleans(),
    terse=st.booleans(),
)
def test_empty_if_and_only_if_there_is_a_verdict(
    documents: list[StoredDocument],
    waiting: int,
    role: Overlay | None,
    fields: dict[str, Any],
    fails: bool,
    terse: bool,
) -> None:
    provider = BrokenProvider(_raise_unreachable) if fails else PROVIDER
    bundle = answer(
        documents, role, provider, waiting, **fields | ({"token_budget": 1} if terse else {})
    )
    fallback = fallback_of(bundle)
    assert (fallback.verdict is not None) == (not bundle.selected)
    if fallback.verdict is None:
        return
    assert fallback.verdict in VERDICTS
    assert fallback.action == "block"
    warned = {warning.code for warning in bundle.warnings}
    if fallback.verdict not in ("corpus_empty", "nothing_matches_where", "over_budget"):
        assert (fallback.verdict == "lane_down") == bool(
            warned & {"SEMANTIC_LANE_DEGRADED", "INDEX_STALE"}
        )
    if fallback.verdict == "no_evidence":
        assert bundle.evidence is not None
        is_required = "required" in (
            fields.get("evidence") or (role and role.retrieval_policy.evidence),
        )
        assert bundle.evidence.support == "off_topic" or is_required
    # Every code and its count stand in the message.
    if fallback.verdict != "corpus_empty":
        assert all(f"{n} {code}" in fallback.message for code, n in bundle.rejected_summary.items())
    assert RetrievalBundle.model_validate_json(bundle.to_json()) == bundle
