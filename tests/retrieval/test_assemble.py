"""Step 5: the cut, and the bundle that accounts for it."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.contracts.bundle import CorpusState, Diagnostics, RetrievalBundle
from rolebundle.contracts.candidate import Ranked, Rejected
from rolebundle.contracts.document import Superseder
from rolebundle.retrieval.assemble import Context, Cut, assemble, cut, estimated_tokens
from support.corpora import NOW, overlay
from support.values import passage, query, ranked, rejected

CORPUS = CorpusState(
    file="corpus.db", corpus_id="id", schema_version=1, generation=3, documents=2, chunks=5
)


def diagnostics(pool: int = 0) -> Diagnostics:
    return Diagnostics(
        latency_ms=1.0,
        candidate_pool_size=pool,
        deduped_count=0,
        dropped_forbidden_count=0,
        dropped_stale_count=0,
    )


def ids(ones: tuple[Any, ...]) -> list[str]:
    return [one.passage.chunk_id for one in ones]


def told(made: Cut) -> dict[str, tuple[str, str]]:
    return {one.passage.chunk_id: (one.reason, one.notes) for one in made.rejected}


def of_length(chunk_id: str, characters: int, **fields: Any) -> Ranked:
    return ranked(passage(chunk_id, "x" * characters), **fields)


class TestLimit:
    def test_the_best_are_taken_in_order(self) -> None:
        made = cut([ranked(passage(name)) for name in "abc"], 2, 0.0)
        assert ids(made.selected) == ["a", "b"]
        assert told(made) == {"c": ("budget_cut", "score 0.500 is past the limit of 2 passages")}

    def test_fewer_than_the_limit_are_all_taken(self) -> None:
        assert ids(cut([ranked(passage("a"))], 10, 0.0).selected) == ["a"]


class TestFloor:
    def test_under_the_floor_is_a_low_score(self) -> None:
        made = cut([ranked(passage("a"), 0.1), ranked(passage("b"), 0.0999)], 9, 0.1)
        assert ids(made.selected) == ["a"]
        assert told(made) == {"b": ("low_score", "score 0.100 is under the floor of 0.1")}

    def test_the_floor_is_for_the_score_before_the_diversity_penalty(self) -> None:
        # It orders the sources, and says nothing about how well a passage answers.
        one = ranked(passage("a"), final=-0.05, diversity_penalty=0.25)
        assert ids(cut([one], 9, 0.15).selected) == ["a"]

    def test_a_low_score_is_told_before_a_full_limit(self) -> None:
        made = cut([ranked(passage("a"), 0.9), ranked(passage("b"), 0.01)], 1, 0.1)
        assert told(made)["b"][0] == "low_score"


class TestDuplicates:
    def test_a_copy_leaves_and_takes_no_place(self) -> None:
        made = cut(
            [
                ranked(passage("a")),
                ranked(passage("b"), duplicate_of="a"),
                ranked(passage("c")),
            ],
            2,
            0.0,
        )
        assert ids(made.selected) == ["a", "c"]
        assert told(made) == {"b": ("duplicate", "the same text as a")}


class TestSuperseded:
    OLD = passage("old", superseded_by=(Superseder("v2", "general"), Superseder("v3", "general")))

    def test_it_leaves_whatever_its_score_and_its_replacements_are_named(self) -> None:
        made = cut([ranked(self.OLD, 0.9), ranked(passage("a"))], 1, 0.0)
        assert ids(made.selected) == ["a"]
        assert told(made) == {"old": ("conflict_downrank", "superseded by v2, v3")}

    def test_it_is_a_conflict_where_it_would_have_been_selected(self) -> None:
        assert cut([ranked(self.OLD, 0.9)], 1, 0.0).conflicts == (self.OLD,)

    def test_and_none_under_the_floor_or_past_the_limit(self) -> None:
        assert cut([ranked(self.OLD, 0.05)], 1, 0.1).conflicts == ()
        assert cut([ranked(passage("a")), ranked(self.OLD, 0.4)], 1, 0.1).conflicts == ()


class TestTokenBudget:
    @pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
    def test_four_characters_a_token_rounded_up(self, characters: int, tokens: int) -> None:
        assert estimated_tokens("x" * characters) == tokens

    def test_greedy_by_final_score(self) -> None:
        # 10 + 15 of 30 tokens are used, 10 do not fit, 5 do: a passage that is too long ends
        # nothing for the shorter ones behind it.
        made = cut(
            [of_length("a", 40), of_length("b", 60), of_length("c", 40), of_length("d", 20)],
            9,
            0.0,
            30,
        )
        assert ids(made.selected) == ["a", "b", "d"]
        assert told(made) == {
            "c": ("budget_cut", "about 10 tokens do not fit: 25 of token_budget 30 are used")
        }

    def test_an_exact_fit_fits(self) -> None:
        assert ids(cut([of_length("a", 40), of_length("b", 40)], 9, 0.0, 20).selected) == ["a", "b"]

    def test_nothing_fits(self) -> None:
        assert cut([of_length("a", 40)], 9, 0.0, 9).selected == ()

    def test_the_limit_holds_besides(self) -> None:
        made = cut([of_length("a", 4), of_length("b", 4)], 1, 0.0, 100)
        assert "limit of 1" in told(made)["b"][1]


def bundle_of(made: Cut, before: tuple[Rejected, ...] = (), **context: Any) -> RetrievalBundle:
    role = context.pop("role", None)
    settings: dict[str, Any] = {
        "query": query("token token rotation", role),
        "overlay": role,
        "overlay_digest": "abc" if role else "",
        "fusion": "weighted",
        "now": NOW,
        "corpus": CORPUS,
    }
    pool = len(made.selected) + len(made.rejected) + len(before)
    return assemble(made, before, Context(**(settings | context)), diagnostics(pool))


class TestBundle:
    def test_rejections_are_told_by_code_and_inside_a_code_as_their_step_ordered_them(self) -> None:
        made = Cut(
            (),
            (
                rejected("budget_cut", passage("z")),
                rejected("duplicate", passage("y")),
                rejected("low_score", passage("x")),
            ),
            (),
        )
        before = (rejected("stale", passage("b")), rejected("stale", passage("a")))
        bundle = bundle_of(made, before)
        assert [(one.reason, one.chunk_id) for one in bundle.rejected] == [
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
        made = Cut(
            (
                ranked(passage("a", trust_tier="authoritative", source_id="w"), freshness="stale"),
                ranked(passage("b", source_id="v"), freshness="fresh"),
                ranked(passage("c", source_id="w"), freshness="undated"),
            ),
            (),
            (),
        )
        before = (rejected("stale", passage("d")), rejected("forbidden_source", passage("e")))
        summary = bundle_of(made, before).summary
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

    def test_both_weights_and_both_term_lists_stand_in_the_trace(self) -> None:
        role = overlay(mission="Find risks.", vocabulary={"boost_phrases": ["threat"]})
        trace = bundle_of(Cut((), (), ()), role=role).query
        assert trace.lexical_query == ["token", "token", "rotation"]
        assert trace.expansion_query == ["threat"]
        assert trace.semantic_query == ["token token rotation", "Role context: Find risks."]
        assert trace.weights is not None
        assert trace.weights.lexical_expansion == 0.2
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
        bundle = bundle_of(Cut((), (), ()), role=role, fusion=fusion)
        assert (bundle.summary.rerank_strategy, bundle.fusion) == (strategy, fusion)

    def test_the_overlay_is_named_by_role_and_digest(self) -> None:
        bundle = bundle_of(Cut((), (), ()), role=overlay())
        assert bundle.overlay is not None
        assert (bundle.role_id, bundle.overlay.role_id, bundle.overlay.digest) == (
            "reviewer",
            "reviewer",
            "abc",
        )
        assert bundle_of(Cut((), (), ())).overlay is None

    def test_provenance_names_each_source_and_document_once_in_the_order_of_rank(self) -> None:
        made = Cut(
            tuple(
                ranked(passage(name, source_id=source, document_id=document))
                for name, source, document in (
                    ("a", "w", "d2"), ("b", "v", "d1"), ("c", "w", "d2"),
                )
            ),
            (),
            (),
        )  # fmt: skip
        provenance = bundle_of(made).provenance
        assert (provenance.source_ids, provenance.document_ids) == (["w", "v"], ["d2", "d1"])


class TestSelectedChunk:
    def test_everything_that_a_passage_carries(self) -> None:
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
                headings=("H1", "H2"),
                tags=("t",),
                updated_at="2026-10-01T00:00:00Z",
            ),
            0.123456789,
            lanes=("lexical", "semantic"),
            lexical=0.4,
            semantic=0.6,
            bm25=2.0,
            cosine=0.7,
            freshness="fresh",
            overlay_hits=("boost:domain(x×2)",),
            vocabulary_hits=("vocab:boost(threat)",),
            diversity_penalty=0.15,
        )
        (chosen,) = bundle_of(Cut((one,), (), ()), role=overlay()).selected
        assert (chosen.rank, chosen.chunk_id, chosen.document_id) == (1, "c", "d")
        assert (chosen.source_id, chosen.source_type) == ("w", "export")
        assert chosen.headings == ["H1", "H2"]
        assert chosen.content == "the text"
        assert chosen.lanes == ["lexical", "semantic"]
        assert chosen.scores.final == 0.123457  # rounded to six places
        assert chosen.scores.diversity_penalty == 0.15
        assert chosen.raw is not None
        assert (chosen.raw.bm25, chosen.raw.cosine) == (2.0, 0.7)
        assert chosen.overlay_hits == ["boost:domain(x×2)", "vocab:boost(threat)"]
        assert chosen.citation.locator == "dir/a.pdf:3-9"
        assert chosen.citation.reference == "Title [w], p. 4"
        assert chosen.metadata.freshness.max_age_days == 365
        assert chosen.reasons_selected == [
            "has the task's words (lexical 0.40)",
            "close in meaning (semantic 0.60)",
            "general trust, fresh",
            "policy: boost:domain(x×2)",
            "role vocabulary: vocab:boost(threat)",
            "source diversity −0.15",
        ]

    def test_a_passage_that_only_the_roles_words_found_says_so(self) -> None:
        one = ranked(passage(), bm25=0.0, bm25_expansion=3.0, lexical=0.2)
        (chosen,) = bundle_of(Cut((one,), (), ())).selected
        assert chosen.reasons_selected[0] == "has the role's words (lexical 0.20)"

    def test_the_maximum_age_is_the_overlays_where_it_names_one(self) -> None:
        role = overlay(retrieval_policy={"freshness_max_age_days": 30.0})
        (chosen,) = bundle_of(Cut((ranked(),), (), ()), role=role).selected
        assert chosen.metadata.freshness.max_age_days == 30
