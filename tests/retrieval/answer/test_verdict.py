"""The verdict of an empty answer: one small corpus for each verdict, and the rule itself."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import REJECTIONS, EmptyReason
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import EmbedderError
from rolebundle.interfaces import render
from rolebundle.retrieval.packet import packet
from rolebundle.retrieval.values import Candidate
from rolebundle.retrieval.verdict import empty_verdict
from rolebundle.storage.documents import StoredDocument
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
    with scratch_folder() as folder, built(folder, documents, indexed, waiting=waiting) as corpus:
        return ask(corpus, role, provider, task=task, **fields)


OF_THE_PROGRAM = re.compile(
    r"closeness|posture|\blane|_cut|no_overlay|(?:low|final)_score|[A-Z]_[A-Z]"
)
"""Words that a person sees only with --explain."""


def empty(*documents: Any, **fields: Any) -> tuple[EmptyReason | None, str]:
    """Verdict and message of an answer that must be empty."""
    bundle = answer(*documents, **fields)
    fallback = bundle.fallback
    assert bundle.selected == []
    assert (fallback.state, fallback.action) == ("no_strong_match", "block")
    if bundle.rejected:
        for code, count in bundle.rejected_summary.items():
            assert f"{count} {code}" in fallback.message
    assert f"No passage was found ({fallback.verdict})." in render.text(bundle, explain=True)
    assert not OF_THE_PROGRAM.search(render.text(bundle))
    advice = "The nearest places may" if bundle.nearest else "Do not claim anything"
    assert f"({fallback.verdict}). {advice}" in packet(bundle)
    return fallback.verdict, fallback.message


def _raise_unreachable(_texts: Sequence[str]) -> np.ndarray:
    raise EmbedderError("unreachable", "the model's server does not answer", "start it")


BREAD = document("bread", ["flour"])
BROKEN = BrokenProvider(_raise_unreachable)
BY_FLOOR = overlay(retrieval_policy=FLOOR)
ONLY_ROLE = overlay(vocabulary={"boost_phrases": ["threat model"]}, retrieval_policy=FLOOR)
BLOG = document("post", ["token rotation"], source_id="blog")
OLD_ONE = document("d", ["token rotation"], updated_at=OLD)
THEIRS = document("theirs", ["token rotation"], origin="external")
WEB = document("web", ["a token"], origin="untrusted")
EXCLUDING = document("d", ["a token"], excluded_roles=("reviewer",))
VERSIONS = [document("v1", ["token rotation"]), document("v2", ["flour"], supersedes=("v1",))]
OUT_OF_TIME = [
    document("old", ["token rotation"], valid_until=OLD),
    document("new", ["a token"], valid_from="2027-01-01T00:00:00Z"),
]
LONG = document("d", ["token rotation " * 4, "a token"])
UNREACHABLE = (
    "the search was incomplete (no candidates); the semantic lane did not run: "
    "the model's server does not answer; start it"
)
WITHOUT_MEANING = (
    "nothing in the corpus has the task's words, and meanings were not searched "
    "(no candidates); ask in other words, or without lexical_only"
)
WORDS_ALONE: dict[str, Any] = {"lexical_only": True}
NOWHERE: dict[str, Any] = {"where": {"source": "nowhere"}}


@pytest.mark.parametrize(
    ("verdict", "documents", "role", "fields", "parts"),
    [
        ("corpus_empty", [], None, {}, ["the corpus is empty: ", "run `rolebundle ingest PATH`"]),
        ("corpus_empty", [], None, NOWHERE, []),
        # It is reported before a failed lane.
        ("nothing_matches_where", [BREAD], None, NOWHERE | {"provider": BROKEN},
         ["no document matches source = nowhere;"]),
        ("no_evidence", [document("bread", ["flour", "butter"])], None, {},
         ["2 low_score", "do not guess"]),
        ("no_evidence", [document("d", ["a threat model"])], ONLY_ROLE, WORDS_ALONE, ["1 low_score"]),
        ("nothing_found", [BREAD], None, WORDS_ALONE, [WITHOUT_MEANING]),
        ("all_below_floor", [document("d", ["token rotation", "a token"]), BREAD], BY_FLOOR, {},
         ["3 low_score; the best: score 0.", "lower min_score"]),
        ("all_forbidden", [BLOG, document("weak", ["a token, by the way"]), BREAD], FORBIDS, {},
         ["everything relevant is forbidden to the role reviewer",
          "1 forbidden_source, 2 low_score; for one: blog: hearsay"]),
        # A forbidden neighbour does not hide that the words are there but weak.
        ("all_below_floor", [document("post", ["flour"], source_id="blog"),
                             document("d", ["a token"])], FORBIDS, {}, []),
        ("all_stale", [OLD_ONE, BREAD], EXCLUDING_OLD, {},
         ["1 stale, 1 low_score; for one: 2861 days old, the limit is 365",
          "freshness_max_age_days"]),
        ("all_taint_blocked", [document("web", ["token rotation"], origin="untrusted"), BREAD],
         BY_FLOOR, {"action": "suggest", "approval": "Ana"},
         ["everything relevant is not trusted enough",
          "1 taint_blocked, 1 low_score; for one: origin untrusted has trust 1"]),
        ("approval_needed", [THEIRS, WEB], None, {"action": "execute"},
         ["let a person approve it, and do not act before"]),
        ("approval_needed", [THEIRS, WEB], overlay(), {"action": "execute"},
         ["1 taint_blocked, 1 requires_approval; for one: origin external"]),
        ("all_taint_blocked", [WEB], overlay(), {"action": "execute"}, []),
        ("all_superseded", VERSIONS, None, WORDS_ALONE,
         ["1 conflict_downrank; for one: superseded by v2"]),
        ("none_valid", OUT_OF_TIME, None, WORDS_ALONE,
         ["1 not_yet_valid, 1 expired; for one: valid"]),
        ("all_seen", [document("d", ["token rotation"])], None, WORDS_ALONE | {"seen": ["d#0"]},
         ["1 already_seen; for one: it is in `seen`"]),
        ("rejected_by_policy", [EXCLUDING], EXCLUDING_OLD, {}, ["d excludes the role reviewer"]),
        ("rejected_by_policy", [EXCLUDING, document("old", ["token rotation"], updated_at=OLD)],
         EXCLUDING_OLD, {},
         ["the policy of the role reviewer rejected everything relevant (candidates rejected: ",
          "; for one: ", "; read the notes of the rejected"]),
        ("over_budget", [LONG, BREAD], None, {"token_budget": 1},
         ["the best: about 15 tokens do not fit: 0 of token_budget 1 are used",
          "raise token_budget"]),
        # There is an answer, whatever else there might be.
        ("over_budget", [document("d", ["a token"])], None,
         {"provider": BROKEN, "token_budget": 1}, []),
        ("lane_down", [BREAD], None, {"provider": BROKEN}, [UNREACHABLE]),
        ("lane_down", [document("bread", ["flour", "butter"])], BY_FLOOR, {"waiting": 1},
         ["(candidates rejected: 1 low_score)",
          "the semantic lane lacks vectors"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_each_verdict(
    verdict: str, documents: list[Any], role: Any, fields: dict[str, Any], parts: list[str]
) -> None:
    found, message = empty(documents, role, **fields)
    assert found == verdict
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize("by", ["overlay", "request"])
def test_no_evidence_if_it_is_required_and_weak(by: str) -> None:
    bread = document("bread", [f"flour number{n}" for n in range(60)])
    documents = [document("d", ["the rotation of a shift"]), bread]
    task = "rotation of credentials for the vendors and visitors of embassies abroad"
    strict = overlay(retrieval_policy={"evidence": "required"})
    fields: dict[str, Any] = {"task": task, "lexical_only": True}
    shown = answer(documents, overlay(), **fields)
    assert [passage.document_id for passage in shown.selected] == ["d"]
    assert [warning.code for warning in shown.warnings][:1] == ["WEAK_EVIDENCE"]
    assert shown.fallback.action == "warn"
    role = strict if by == "overlay" else overlay()
    required = {} if by == "overlay" else {"evidence": "required"}
    verdict, message = empty(documents, role, **fields, **required)
    assert verdict == "no_evidence"
    assert "1 low_score" in message
    assert answer(documents, role, task="a shift rotation", **required).selected
    # A request cannot open what the overlay closes.
    assert not answer(documents, strict, evidence="optional", **fields).selected


HIDING: dict[str, dict[str, Any]] = {
    "all_forbidden": {"source_id": "blog"},
    "none_valid": {"valid_until": OLD},
    "rejected_by_policy": {"excluded_roles": ("reviewer",)},
}


@pytest.mark.parametrize("evidence", ["required", "optional"])
@pytest.mark.parametrize("case", ["alone", "alone and thin", "beside thin"])
@pytest.mark.parametrize("verdict", HIDING)
def test_required_evidence_hides_no_policy(verdict: str, case: str, evidence: str) -> None:
    task = "rotation of credentials for the vendors and visitors of embassies abroad"
    thin = "the rotation of a shift"
    post = document("post", [thin if case == "alone and thin" else task], **HIDING[verdict])
    documents = [post, document("bread", [f"flour number{n}" for n in range(60)])]
    if case == "beside thin" and evidence == "required":
        documents.append(document("shift", [thin]))
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}]})
    found = answer(documents, role, task=task, lexical_only=True, evidence=evidence)
    assert (found.fallback.verdict, found.selected) == (verdict, [])
    hits = [warning.code for warning in found.warnings]
    assert ("FORBIDDEN_SOURCE_HIT" in hits) == (verdict == "all_forbidden")


WORDS = {"bm25": 1.0, "cosine": 0.5}
MEANING = {"bm25": None, "cosine": 0.5}
NEITHER = {"bm25": 0.0, "bm25_expansion": 2.0, "cosine": None}


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
def test_what_counts(rejections: list[Any], verdict: EmptyReason) -> None:
    steps: dict[str, list[Candidate]] = {"filter": [], "cut": []}
    for code, found in rejections:
        steps[REJECTIONS[code].step].append(rejected(code, **found))
    searched = retrieval(resolved(None), steps["cut"], steps["filter"])
    empty = replace(searched, corpus_state=CORPUS.model_copy(update={"chunks": 0}))
    assert empty_verdict(searched) == verdict
    assert empty_verdict(empty) == "corpus_empty"
    half = empty_verdict(replace(searched, semantic_problem="why"))
    assert half == ("over_budget" if verdict == "over_budget" else "lane_down")
    if rejections and verdict != "over_budget":
        assert empty_verdict(replace(searched, withheld_reason="so")) == "no_evidence"


def test_every_verdict_is_shown_above() -> None:
    source = Path(__file__).read_text("utf-8")
    assert [name for name in VERDICTS if f'("{name}", ' not in source] == []


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
    fallback = bundle.fallback
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
        is_required = "required" in (
            fields.get("evidence") or (role and role.retrieval_policy.evidence),
        )
        assert bundle.evidence.support == "off_topic" or is_required
    # Every code and its count stand in the message.
    if fallback.verdict != "corpus_empty":
        assert all(f"{n} {code}" in fallback.message for code, n in bundle.rejected_summary.items())
    assert RetrievalBundle.model_validate_json(bundle.model_dump_json(exclude_none=True)) == bundle
