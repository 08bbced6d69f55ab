"""Step 6: the bundle, which contains every candidate."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.contracts.bundle import CorpusState, RetrievalBundle
from rolebundle.retrieval.bundle import assemble
from rolebundle.retrieval.candidate import (
    Pool,
    RejectedCandidate,
    Retrieval,
    Selection,
    SemanticReport,
)
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.vague import Vagueness
from rolebundle.text.intents import INTENTS, KINDS, task_intent
from support.corpora import overlay, resolved
from support.values import evidence, passage, query, ranked, rejected, weights

SUPPORTED = evidence({1: {0, 1}})
ROLE = overlay()
CORPUS = CorpusState(
    file="corpus.db", corpus_id="id", schema_version=1, generation=3, documents=2, chunks=5
)


def bundle_of(
    selection: Selection,
    before: tuple[RejectedCandidate, ...] = (),
    role: Any = None,
    fusion: Any = None,
    of_evidence: Evidence = SUPPORTED,
    vagueness: Vagueness | None = None,
) -> RetrievalBundle:
    left_out = [one.candidate for one in (*before, *selection.rejected)]
    request = resolved(role, task="token token rotation", fusion=fusion)
    retrieval = Retrieval(
        query=query(request.task, role),
        evidence=of_evidence,
        weights=weights(role, request.fusion),
        corpus=CORPUS,
        semantic=SemanticReport(),
        rerank=None,
        pool=Pool(),
        candidates=[*selection.selected, *left_out],
        rejected=before,
        ranked=selection.selected,
        selection=selection,
        vagueness=vagueness,
    )
    return assemble(request, retrieval, 0.001)


class TestBundle:
    def test_rejections_are_ordered_by_code_and_then_by_step_order(self) -> None:
        selection = Selection(
            (),
            (
                rejected("budget_cut", passage("z")),
                rejected("duplicate", passage("y")),
                rejected("low_score", passage("x")),
            ),
            (),
        )
        before = (rejected("stale", passage("b")), rejected("stale", passage("a")))
        bundle = bundle_of(selection, before)
        assert [(rejection.reason, rejection.chunk_id) for rejection in bundle.rejected] == [
            ("stale", "b"),
            ("stale", "a"),
            ("low_score", "x"),
            ("duplicate", "y"),
            ("budget_cut", "z"),
        ]
        assert bundle.rejected_summary == {
            "stale": 2,
            "low_score": 1,
            "duplicate": 1,
            "budget_cut": 1,
        }
        assert bundle.summary.total_candidates == 5

    def test_the_summary_counts(self) -> None:
        selection = Selection(
            (
                ranked(passage("a", trust_tier="authoritative", source_id="w"), freshness="stale"),
                ranked(passage("b", source_id="v"), freshness="fresh"),
                ranked(passage("c", source_id="w"), freshness="undated"),
            ),
            (),
            (),
        )
        before = (rejected("stale", passage("d")), rejected("forbidden_source", passage("e")))
        summary = bundle_of(selection, before).summary
        assert summary.selected_count == 3
        assert summary.stale_count == 2  # one selected, one rejected
        assert summary.forbidden_hits == 1
        assert summary.trust_tier_breakdown == {
            "authoritative": 1,
            "preferred": 0,
            "general": 2,
            "untrusted": 0,
        }
        assert summary.source_breakdown == {"v": 1, "w": 2}

    def test_the_trace_has_both_term_lists(self) -> None:
        role = overlay(mission="Find risks.", vocabulary={"boost_phrases": ["threat"]})
        trace = bundle_of(Selection(), role=role).query
        assert trace.lexical_query == ["token", "token", "rotation"]
        assert trace.expansion_query == ["threat"]
        assert trace.semantic_query == ["token token rotation"]
        assert trace.generated_at == "2026-11-01T00:00:00Z"

    @pytest.mark.parametrize(
        ("role", "fusion", "strategy"),
        [
            (None, "weighted", "default-weighted"),
            (None, "rrf", "default-weighted-rrf"),
            (overlay(), "weighted", "overlay-weighted"),
            (overlay(), "rrf", "overlay-weighted-rrf"),
        ],
    )
    def test_the_strategy_is_named(self, role: Any, fusion: str, strategy: str) -> None:
        bundle = bundle_of(Selection(), role=role, fusion=fusion)
        assert (bundle.summary.rerank_strategy, bundle.fusion) == (strategy, fusion)

    def test_the_overlay_is_named_by_role_and_digest(self) -> None:
        bundle = bundle_of(Selection(), role=ROLE)
        assert bundle.overlay is not None
        assert (bundle.role_id, bundle.overlay.role_id, bundle.overlay.digest) == (
            "reviewer",
            "reviewer",
            "digest",
        )
        assert bundle_of(Selection()).overlay is None

    def test_provenance_names_each_source_and_document_once_in_the_order_of_rank(self) -> None:
        selection = Selection(
            tuple(
                ranked(passage(name, source_id=source, document_id=document))
                for name, source, document in (
                    ("a", "w", "d2"), ("b", "v", "d1"), ("c", "w", "d2"),
                )
            ),
            (),
            (),
        )  # fmt: skip
        provenance = bundle_of(selection).provenance
        assert (provenance.source_ids, provenance.document_ids) == (["w", "v"], ["d2", "d1"])


class TestSelectedChunk:
    def test_the_fields_of_a_passage(self) -> None:
        one = ranked(
            passage(
                "c",
                "the text",
                document_id="d",
                source_id="w",
                source_kind="export",
                title="Title",
                uri="file:a",
                path="dir/a.pdf",
                start_line=3,
                end_line=9,
                page=4,
                anchor="p. 4",
                headings=("H1", "H2"),
                tags=("t",),
                updated_at="2026-10-01T00:00:00Z",
            ),
            0.123456789,
            lanes=("lexical", "semantic"),
            lexical=0.4,
            semantic=0.6,
            bm25=2.0,
            cosine=0.5,
            freshness="fresh",
            metadata_hits=("boost:domain(x×2)",),
            vocabulary_hits=("vocab:boost(threat)",),
            diversity_penalty=0.15,
        )
        of_evidence = evidence({one.passage.rowid: {0}}, cosines={one.passage.rowid: 0.5})
        (chosen,) = bundle_of(
            Selection((one,), (), ()), role=ROLE, of_evidence=of_evidence
        ).selected
        assert (chosen.rank, chosen.chunk_id, chosen.document_id) == (1, "c", "d")
        assert (chosen.source_id, chosen.source_type) == ("w", "export")
        assert chosen.headings == ["H1", "H2"]
        assert chosen.content == "the text"
        assert chosen.lanes == ["lexical", "semantic"]
        assert chosen.scores.final == 0.123457  # rounded to six places
        assert chosen.scores.diversity_penalty == 0.15
        assert chosen.raw is not None
        assert (chosen.raw.bm25, chosen.raw.cosine) == (2.0, 0.5)
        assert (chosen.raw.matched_words, chosen.raw.coverage) == (1, 0.5)
        assert chosen.raw.closeness == 0.75
        assert chosen.overlay_hits == ["boost:domain(x×2)", "vocab:boost(threat)"]
        assert chosen.citation.locator == "dir/a.pdf:3-9"
        assert chosen.citation.reference == "Title [w], p. 4"
        assert chosen.metadata.freshness.max_age_days == 365
        assert chosen.reasons_selected == [
            "has 1 of the task's 2 words",
            "close in meaning: cosine 0.50, closeness 0.75",
            "general trust, fresh",
            "policy: boost:domain(x×2)",
            "role vocabulary: vocab:boost(threat)",
            "source diversity −0.15",
        ]

    def test_a_passage_found_only_by_the_roles_words_has_that_reason(self) -> None:
        one = ranked(passage(), bm25=0.0, bm25_expansion=3.0, lexical=0.0)
        (chosen,) = bundle_of(Selection((one,), (), ()), role=ROLE).selected
        assert chosen.reasons_selected[0] == "has the role's words"

    def test_the_maximum_age_is_that_of_the_overlay_if_it_has_one(self) -> None:
        role = overlay(retrieval_policy={"freshness_max_age_days": 30.0})
        (chosen,) = bundle_of(Selection((ranked(),), (), ()), role=role).selected
        assert chosen.metadata.freshness.max_age_days == 30


ROW = {name: row for row, name in enumerate("abc", start=1)}


def chosen(**tiers: str) -> Selection:
    """Selected passages with these trust tiers."""
    return Selection(
        tuple(
            ranked(passage(name, rowid=ROW[name], trust_tier=tier)) for name, tier in tiers.items()
        ),
        (),
        (),
    )


def codes(bundle: RetrievalBundle) -> list[str]:
    return [warning.code for warning in bundle.warnings]


RARE: dict[str, Any] = {"frequencies": (1, 1, 1, 1), "chunks": 1000}


class TestEvidence:
    """Figures: of the best passage of the corpus, and of each selected one."""

    def test_the_tasks_evidence_and_the_weights_are_shown(self) -> None:
        of_evidence = evidence({ROW["a"]: {0}}, cosines={ROW["a"]: 0.4})
        bundle = bundle_of(chosen(a="general"), role=ROLE, of_evidence=of_evidence)
        assert bundle.evidence is not None
        assert bundle.weights is not None
        assert bundle.evidence.model_dump() == {
            "support": "weak",
            "strength": 0.5,  # (1/2 + (0.4 − 0.2) / (0.6 − 0.2)) / 2
            "words": 2,
            "specificity": 2.110703,  # ln 10 · 11 / 12
            "role_share": 0.4,
        }
        assert bundle.weights.model_dump() == {
            "lexical": 0.3, "semantic": 0.3, "metadata": 0.347826, "rerank": 0.052174,
        }  # fmt: skip

    def test_without_a_role_its_share_is_0(self) -> None:
        bundle = bundle_of(chosen(a="general"))
        assert bundle.evidence is not None
        assert bundle.weights is not None
        assert bundle.evidence.role_share == 0
        assert (bundle.weights.lexical, bundle.weights.metadata) == (0.5, 0)

    @pytest.mark.parametrize(("role", "other"), [(ROLE, "role"), (None, "task")])
    def test_a_passage_is_there_for_the_task_or_for_the_role(self, role: Any, other: str) -> None:
        # a has a word, b is close in meaning, c has neither.
        of_evidence = evidence({ROW["a"]: {0}}, cosines={ROW["b"]: 0.5, ROW["c"]: 0.3})
        selection = chosen(a="general", b="general", c="general")
        bundle = bundle_of(selection, role=role, of_evidence=of_evidence)
        assert [chunk.evidence for chunk in bundle.selected] == ["task", "task", other]
        raw = [chunk.raw for chunk in bundle.selected if chunk.raw]
        assert [(one.matched_words, one.coverage, one.closeness) for one in raw] == [
            (1, 0.5, 0.0), (0, 0.0, 0.75), (0, 0.0, 0.25),
        ]  # fmt: skip

    def test_without_the_semantic_lane_there_is_no_closeness(self) -> None:
        (only,) = bundle_of(chosen(a="general")).selected
        assert only.raw is not None
        assert (only.raw.coverage, only.raw.closeness) == (1.0, None)


class TestWeakEvidence:
    def caution(self, of_evidence: Evidence, role: Any = ROLE, asks: str = "") -> str:
        """The message of the warning, which comes first and is a part of the fallback's."""
        vagueness = Vagueness(1.0, task_intent(asks)) if asks else None
        bundle = bundle_of(
            chosen(a="authoritative"), role=role, of_evidence=of_evidence, vagueness=vagueness
        )
        if "WEAK_EVIDENCE" not in codes(bundle):
            return ""
        assert bundle.fallback is not None
        message = bundle.warnings[0].message or ""
        assert bundle.warnings[0].code == "WEAK_EVIDENCE"
        assert message in bundle.fallback.message
        assert bundle.fallback.action == "warn"
        return message

    def test_sound_evidence_has_none(self) -> None:
        assert self.caution(SUPPORTED) == ""
        assert "WEAK_EVIDENCE" not in codes(bundle_of(Selection(), role=ROLE))

    def test_thin_evidence(self) -> None:
        thin = evidence({1: {0}}, cosines={1: 0.4})
        assert self.caution(thin) == (
            "thin evidence, so treat the passages as hints: the best has 1 of the task's 2 words "
            "and a closeness of 0.50"
        )

    def test_no_evidence_though_the_request_allows_it(self) -> None:
        assert self.caution(evidence({}, **RARE)) == (
            "the corpus has nothing for this task, so these passages are guesses: the best has 0 "
            "of the task's 4 words"
        )

    def test_evidence_that_was_not_selected(self) -> None:
        # Another passage, which policy rejects, has all of the words.
        elsewhere = evidence({7: {0, 1}})
        assert self.caution(elsewhere) == (
            "no passage has what the task asks for; they are here for the role: the best has 0 of "
            "the task's 2 words"
        )
        assert self.caution(elsewhere, None) == (
            "no passage has what the task asks for: the best has 0 of the task's 2 words"
        )

    def test_a_vague_task_without_a_topic(self) -> None:
        """No passage needs its words."""
        for of_evidence in (evidence({7: {0, 1}}), evidence({1: {0}}, cosines={1: 0.4})):
            assert self.caution(of_evidence, asks="Where do I start? What goes wrong?") == (
                "the task is vague: it asks where to begin and what goes wrong, and names no topic, "
                "so the passages are those that fit this and the role best"
            )

    def test_each_intent_has_words(self) -> None:
        assert KINDS.keys() == set(INTENTS)

    def test_a_vague_task_that_asks_for_nothing_else(self) -> None:
        assert self.caution(evidence({7: {0, 1}}), asks="tokens").startswith("no passage has what")

    def test_a_vague_task_with_a_topic(self) -> None:
        assert self.caution(evidence({7: {0, 1}}), asks="What changed lately in tokens?") == (
            "the task is vague, so treat the passages as hints: besides its topic it asks for what "
            "is new, and the passages were chosen by this and by the role, too: the best has 0 of "
            "the task's 2 words"
        )


class TestTrustPosture:
    @pytest.mark.parametrize(
        ("matches", "posture"),
        [
            ({"a": {0}}, "strong"),
            ({"b": {0}, "c": {0}}, "mixed"),
            ({"c": {0, 1}}, "weak"),
            ({}, "weak"),
        ],
    )
    def test_it_is_of_the_passages_that_are_evidence_for_the_task(
        self, matches: dict[str, set[int]], posture: str
    ) -> None:
        selection = chosen(a="authoritative", b="preferred", c="general")
        of_evidence = evidence({ROW[name]: words for name, words in matches.items()})
        bundle = bundle_of(selection, role=ROLE, of_evidence=of_evidence)
        assert bundle.provenance.trust_posture == posture
        alone = bundle_of(selection, of_evidence=of_evidence)
        assert alone.provenance.trust_posture == posture
