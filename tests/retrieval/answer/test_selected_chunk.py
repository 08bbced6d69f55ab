"""What an answer shows of a selected passage."""

from __future__ import annotations

from rolebundle.retrieval.bundle import selected_chunk
from rolebundle.retrieval.evidence import Support
from support.corpora import overlay, resolved
from support.values import evidence, passage, ranked

ROLE = overlay()
NO_SUPPORT = Support(0, 2, 0.0, None)
"""What a passage has of a task of two words if it has none of them."""


class TestSelectedChunk:
    def test_the_fields_of_a_passage(self) -> None:
        candidate = ranked(
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
        rowid = candidate.passage.rowid
        support = evidence({rowid: {0}}, cosines={rowid: 0.5}).support(rowid)
        chosen = selected_chunk(1, candidate, resolved(ROLE), support)
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
        candidate = ranked(passage(), bm25=0.0, bm25_expansion=3.0, lexical=0.0)
        chosen = selected_chunk(1, candidate, resolved(ROLE), NO_SUPPORT)
        assert chosen.reasons_selected[0] == "has the role's words"

    def test_the_maximum_age_is_that_of_the_overlay_if_it_has_one(self) -> None:
        role = overlay(retrieval_policy={"freshness_max_age_days": 30.0})
        chosen = selected_chunk(1, ranked(), resolved(role), NO_SUPPORT)
        assert chosen.metadata.freshness.max_age_days == 30
