"""`where` narrows the search before the lanes run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.why import Why
from rolebundle.retrieval.lanes import POOL_DEPTH
from rolebundle.retrieval.lookup import ReferenceScope
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader, open_writer
from support.corpora import ask, build, built, document, file_of, fill, overlay, put_file, resolved
from support.fake_embedder import HashingProvider

PROVIDER = HashingProvider()
NO_FLOOR = overlay(retrieval_policy={"min_score": 0.0, "max_selected_chunks": 50})
DOCUMENTS = (
    ("guides/on-call.md", document("oncall", ["token one"], source_id="runbooks",
     document_type="runbook", domain="platform", tags=("oncall", "paging"),
     updated_at="2026-03-01T12:00:00Z", attributes=(("Status", ("draft",)), ("for", ("a", "b"))))),
    ("guides/deep/release.md", document("release", ["token two"], source_id="Runbooks",
     document_type="runbook", domain="product", tags=("release",),
     updated_at="2026-01-01T00:00:00Z", attributes=(("status", ("final",)), ("draft", ("x",))))),
    ("wiki.md", document("straße", ["token three"], source_id="Straße", uri="https://wiki.org/a/b",
     updated_at="2025-12-31T23:59:59Z")),
    ("undated.md", document("undated", ["token four"], domain="platform",
     inferred_at="2026-03-01T12:00:00Z")),
)  # fmt: skip
EVERY = {"oncall", "release", "straße", "undated"}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    path = build(tmp_path_factory.mktemp("shelf"), [])
    with open_writer(path) as corpus:
        with corpus.writing():
            for place, stored in DOCUMENTS:
                file = file_of(place)._replace(path=place)
                put_file(corpus, file, [stored])
        fill(corpus, [], PROVIDER)
    with open_reader(path) as corpus:
        yield corpus


def searched(corpus: Corpus, where: dict[str, Any], **fields: Any) -> set[str]:
    """The documents of all candidates; the bundle lists no others."""
    bundle = ask(corpus, NO_FLOOR, PROVIDER, task="token", where=where, **fields)
    listed = [*bundle.selected, *bundle.rejected]
    assert len(listed) == bundle.diagnostics.candidate_pool_size
    return {candidate.chunk_id.partition("#")[0] for candidate in listed}


@pytest.mark.parametrize("lexical_only", [True, False])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, EVERY),
        ({"source": "runbooks"}, {"oncall", "release"}),
        ({"source": ["RUNBOOKS", "wiki"]}, {"oncall", "release", "undated"}),
        ({"source": "run"}, set()),
        ({"source": "STRASSE"}, {"straße"}),
        ({"document_type": "Runbook"}, {"oncall", "release"}),
        ({"domain": "platform"}, {"oncall", "undated"}),
        ({"domain": "platform", "source": "runbooks"}, {"oncall"}),
        ({"tags": ["paging", "release"]}, {"oncall", "release"}),
        ({"tags": "oncall, paging"}, set()),
        ({"path": "guides/*"}, {"oncall"}),
        ({"path": "guides/**"}, {"oncall", "release"}),
        ({"path": ["*.md", "https://wiki.org/**"]}, {"straße", "undated"}),
        ({"path": "https://wiki.org/*"}, set()),
        ({"path": "GUIDES/**"}, set()),
        ({"updated_after": "2026-01-01"}, {"oncall", "release"}),
        ({"updated_before": "2026-01-01"}, {"straße"}),
        ({"updated_after": "2026-01-01", "updated_before": "2026-03-01"}, {"release"}),
        ({"updated_after": "2026-03-01T13:00:00+01:00"}, {"oncall"}),
        ({"updated_after": "2026-03-01T12:00:01"}, set()),
        ({"attributes": {"status": "DRAFT"}}, {"oncall"}),
        ({"attributes": {"status": ["draft", "final"]}}, {"oncall", "release"}),
        ({"attributes": {"status": ["draft", "final"], "FOR": "b"}}, {"oncall"}),
        ({"attributes": {"status": "dra"}}, set()),
        ({"attributes": {"status: draft": "x"}}, set()),
    ],
    ids=lambda value: str(value if isinstance(value, dict) else sorted(value)),
)
def test_only_documents_that_match_every_key_are_searched(
    shelf: Corpus, where: dict[str, Any], expected: set[str], lexical_only: bool
) -> None:
    assert searched(shelf, where, lexical_only=lexical_only) == expected


def test_what_is_not_searched_takes_no_place(tmp_path: Path) -> None:
    crowd = [f"token token token x{n}" for n in range(POOL_DEPTH + 20)]
    shelf = [document("crowd", crowd, domain="noise"), document("wanted", ["one token of many"])]
    with built(tmp_path, shelf, PROVIDER) as corpus:
        bundle = ask(corpus, NO_FLOOR, PROVIDER, task="token", where={"domain": "general"})
    assert [chunk.chunk_id for chunk in bundle.selected] == ["wanted#0"]
    assert (bundle.rejected, bundle.diagnostics.refills) == ([], 0)


def test_a_refill_stays_within_where(tmp_path: Path) -> None:
    crowd = [f"token token token x{n}" for n in range(POOL_DEPTH + 20)]
    shelf = [
        document("crowd", crowd, source_id="blog", domain="ours"),
        document("wanted", ["one token of many"], domain="ours"),
        document("outside", ["token token"]),
    ]
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "blog"}]})
    with built(tmp_path, shelf) as corpus:
        bundle = ask(corpus, role, task="token", where={"domain": "ours"}, limit=3)
    assert [chunk.chunk_id for chunk in bundle.selected] == ["wanted#0"]
    assert bundle.diagnostics.refills == 1
    assert "outside#0" not in [rejection.chunk_id for rejection in bundle.rejected]


def test_scores_are_those_of_the_whole_corpus(shelf: Corpus) -> None:
    bundle = ask(shelf, None, task="token", lexical_only=True)
    narrowed = ask(shelf, None, task="token", lexical_only=True, where={"tags": "oncall"})
    raw = {chunk.chunk_id: chunk.raw for chunk in bundle.selected}
    assert [chunk.raw for chunk in narrowed.selected] == [raw["oncall#0"]]


class TestNothingMatches:
    @pytest.mark.parametrize(
        ("where", "named"),
        [
            ({"source": "nowhere"}, "source = nowhere"),
            ({"source": "nowhere", "domain": "platform"}, "source = nowhere"),
            ({"source": "nowhere", "tags": ["a", "b"]}, "source = nowhere or tags = a, b"),
            ({"tags": [*"abcdefg"]}, "tags = a, b, c, d, e and 2 more"),
            ({"tags": "release", "domain": "platform"}, "domain = platform and tags = release together"),
            ({"updated_before": "1999-01-01"}, "updated_before = 1999-01-01T00:00:00Z"),
            ({"path": "guides"}, "path = guides (did you mean guides/**?)"),
            ({"path": "release.md"}, "path = release.md (did you mean **/release.md?)"),
            ({"path": "guide/**"}, "path = guide/** (did you mean guides/**?)"),
            ({"path": "Guides/relese.md"}, "path = Guides/relese.md"),
            ({"source": "runboks"}, "source = runboks (did you mean runbooks?)"),
            ({"tags": "page"}, "tags = page (did you mean paging?)"),
        ],
    )  # fmt: skip
    def test_the_key_that_excludes_everything_is_named(
        self, shelf: Corpus, where: dict[str, Any], named: str
    ) -> None:
        bundle = ask(shelf, None, PROVIDER, task="token", where=where)
        assert bundle.selected == bundle.rejected == []
        assert bundle.fallback is not None
        assert bundle.fallback.verdict == "nothing_matches_where"
        assert bundle.fallback.message == (
            f"no document matches {named}; correct `where`, or ask without it"
        )


class TestWhy:
    def why(self, shelf: Corpus, reference: str, **fields: Any) -> Why:
        return explain(shelf, resolved(NO_FLOOR, **fields), reference, ReferenceScope(), PROVIDER)

    def test_the_keys_that_exclude_a_document_are_named(self, shelf: Corpus) -> None:
        where = {"domain": "platform", "tags": "oncall", "updated_after": "2026-01-01"}
        found = self.why(shelf, "undated", task="token", where=where)
        assert (found.outcome, found.step, found.rank) == ("not_proposed", "where", None)
        assert found.notes == (
            "its document does not match where: tags = oncall, updated_after = 2026-01-01T00:00:00Z"
        )
        assert found.score.supposed
        assert found.request.where is not None
        # What is needed is enough.
        enough = self.why(shelf, "undated", task="token", where={"domain": "platform"})
        assert (enough.outcome, enough.step) == ("selected", None)
