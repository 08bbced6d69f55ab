"""What a request asks for: times, places, what was seen, limits, actions."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import Approval, RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import Origin
from rolebundle.contracts.why import Why
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.values import MAX_DEPTH, POOL_DEPTH
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.amounts import few_examples
from support.corpora import (
    answered,
    ask,
    build,
    built,
    document,
    file_of,
    fill,
    overlay,
    put_file,
    resolved,
    retrieve,
    scratch_folder,
)
from support.fake_embedder import HashingProvider
from support.strategies import LONG, corpora, overlays, requests

# -- An action and its approval, from the request to the bundle ------------------------------------

PROVIDER = HashingProvider()
ORIGIN_OF: dict[str, Origin] = {"ours": "internal", "theirs": "external", "web": "untrusted"}
THREE = [document(name, [f"token {name}"], origin=origin) for name, origin in ORIGIN_OF.items()]
ALL = ["analyze", "read", "suggest", "execute", "external_send"]


def about(role: Overlay | None = None, **fields: Any) -> RetrievalBundle:
    """What a corpus with documents of each origin answers."""
    request = resolved(role, task="token", lexical_only=True, **fields)
    with scratch_folder() as folder, built(folder, THREE) as corpus:
        return retrieve(corpus, request)


def selected(bundle: RetrievalBundle) -> set[str]:
    return {passage.document_id for passage in bundle.selected}


def codes(bundle: RetrievalBundle) -> dict[str, str]:
    """Document → the code of its rejected passage."""
    return {rejection.chunk_id.partition("#")[0]: rejection.reason for rejection in bundle.rejected}


def ids(bundle: RetrievalBundle) -> list[str]:
    return [chunk.chunk_id for chunk in bundle.selected]


def notes(bundle: RetrievalBundle, chunk_id: str) -> str | None:
    [note] = [rejection.notes for rejection in bundle.rejected if rejection.chunk_id == chunk_id]
    return note


@pytest.mark.parametrize("role", [None, overlay()])
@pytest.mark.parametrize(
    ("fields", "rejected"),
    [
        ({}, {}),
        ({"action": "read"}, {}),
        ({"action": "analyze"}, {}),
        ({"action": "suggest"}, {"web": "taint_blocked"}),
        ({"action": "suggest", "approval": "Ana"}, {"web": "taint_blocked"}),
        ({"action": "execute"}, {"web": "taint_blocked", "theirs": "requires_approval"}),
        ({"action": "external_send"}, {"web": "taint_blocked", "theirs": "requires_approval"}),
        ({"action": "execute", "approval": "Ana"}, {"web": "taint_blocked"}),
        ({"action": "external_send", "approval": "Ana"}, {"web": "taint_blocked"}),
    ],
)
def test_the_rejections_of_each_action(
    fields: dict[str, Any], rejected: dict[str, str], role: Overlay | None
) -> None:
    bundle = about(role, **fields)
    assert codes(bundle) == rejected
    assert selected(bundle) == {*ORIGIN_OF} - {*rejected}
    warned = "ACTION_RESTRICTED" in {warning.code for warning in bundle.warnings}
    assert warned == bool(rejected)


def test_each_passage_lists_its_allowed_actions_and_an_approval_its_passages() -> None:
    bundle = about(action="execute", approval=" Ana Silva ")
    actions = [
        {chunk.document_id: chunk.allowed_actions for chunk in answer.selected}
        for answer in (about(), bundle)
    ]
    assert actions[0] == {"ours": ALL, "theirs": ALL[:3], "web": ALL[:2]}
    assert actions[1] == {"ours": ALL, "theirs": ALL[:4]}
    assert bundle.approvals == [
        Approval(approved_by="Ana Silva", action="execute", chunk_ids=["theirs#0"])
    ]
    assert RetrievalBundle.model_validate_json(bundle.model_dump_json(exclude_none=True)) == bundle


def test_an_untrusted_copy_does_not_replace_the_owned_original() -> None:
    text = "the token is rotated by the same hand each month"
    documents = [
        document("a-web", [text], origin="untrusted", trust_tier="authoritative"),
        document("ours", [text]),
    ]
    bundle = answered(documents, task="token", action="execute")
    assert selected(bundle) == {"ours"}
    assert codes(bundle) == {"a-web": "taint_blocked"}


# -- `where` narrows the search before the lanes run -----------------------------------------------

FORBIDS = overlay(
    source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}]},
    retrieval_policy={"min_score": 0.0},
)
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


CROWD = [f"token token token x{n}" for n in range(POOL_DEPTH + 20)]
WANTED = document("wanted", ["one token of many"])


def test_what_is_not_searched_takes_no_place() -> None:
    shelf = [document("crowd", CROWD, domain="noise"), WANTED]
    bundle = answered(shelf, NO_FLOOR, PROVIDER, task="token", where={"domain": "general"})
    assert [chunk.chunk_id for chunk in bundle.selected] == ["wanted#0"]
    assert (bundle.rejected, bundle.diagnostics.refills) == ([], 0)


def test_a_refill_stays_within_where() -> None:
    shelf = [
        document("crowd", CROWD, source_id="blog"),
        WANTED,
        document("outside", ["token token"], domain="theirs"),
    ]
    bundle = answered(shelf, FORBIDS, task="token", where={"domain": "general"}, limit=3)
    assert ids(bundle) == ["wanted#0"]
    assert bundle.diagnostics.refills == 1
    assert bundle.diagnostics.dropped_forbidden_count == POOL_DEPTH + 20  # All tie.
    assert {rejection.notes for rejection in bundle.rejected} == {"blog: hearsay"}


def test_scores_are_those_of_the_whole_corpus(shelf: Corpus) -> None:
    bundle = ask(shelf, None, task="token", lexical_only=True)
    narrowed = ask(shelf, None, task="token", lexical_only=True, where={"tags": "oncall"})
    raw = {chunk.chunk_id: chunk.raw for chunk in bundle.selected}
    assert [chunk.raw for chunk in narrowed.selected] == [raw["oncall#0"]]


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"source": "nowhere"}, "source = nowhere"),
        ({"source": "nowhere", "domain": "platform"}, "source = nowhere"),
        ({"source": "nowhere", "tags": ["a", "b"]}, "source = nowhere or tags = a, b"),
        ({"tags": [*"abcdefg"]}, "tags = a, b, c, d, e and 2 more"),
        ({"tags": "release", "domain": "platform"}, "domain = platform and tags = release together"),
        ({"updated_before": "1999-01-01"}, "updated_before = 1999-01-01T00:00:00Z"),
        ({"source": "runboks"}, "source = runboks (did you mean runbooks?)"),
        ({"tags": "page"}, "tags = page (did you mean paging?)"),
    ],
)  # fmt: skip
def test_the_key_that_excludes_everything_is_named(
    shelf: Corpus, where: dict[str, Any], named: str
) -> None:
    bundle = ask(shelf, None, PROVIDER, task="token", where=where)
    assert bundle.selected == bundle.rejected == []
    assert bundle.fallback.verdict == "nothing_matches_where"
    assert bundle.fallback.message == (
        f"no document matches {named}; correct `where`, or ask without it"
    )


def test_why_names_the_keys_that_exclude_a_document(shelf: Corpus) -> None:
    def why(**where: str) -> Why:
        request = resolved(NO_FLOOR, task="token", where=where)
        return explain(shelf, request, "undated", ReferenceRules(), PROVIDER)

    found = why(domain="platform", tags="oncall", updated_after="2026-01-01")
    assert (found.outcome, found.step, found.rank) == ("not_proposed", "where", None)
    assert found.notes == (
        "its document does not match where: tags = oncall, updated_after = 2026-01-01T00:00:00Z"
    )
    assert found.score.supposed
    assert found.request.where is not None
    # What is needed is enough.
    enough = why(domain="platform")
    assert (enough.outcome, enough.step) == ("selected", None)


# -- Documents apply from and until a time, and an answer can be as of a time ----------------------

MARCH, JULY, DECEMBER = "2026-03-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-12-01T00:00:00Z"
"""The time of a request that names none is the first of November."""


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("dates", "fields", "code"),
    [
        ({}, {}, None),
        ({"valid_from": JULY}, {}, None),
        ({"valid_from": JULY}, {"now": "2026-06-30"}, "not_yet_valid"),
        ({"valid_from": JULY}, {"as_of": "2026-06-30T23:59:59Z"}, "not_yet_valid"),
        ({"valid_from": JULY}, {"as_of": JULY}, None),
        ({"valid_from": DECEMBER}, {}, "not_yet_valid"),
        ({"valid_until": JULY}, {}, "expired"),
        ({"valid_until": JULY}, {"as_of": JULY}, None),
        ({"valid_until": JULY}, {"as_of": "2026-07-01T00:00:01Z"}, "expired"),
        ({"valid_until": JULY}, {"as_of": "2026-07-01T01:00:00+02:00"}, None),
        ({"valid_until": DECEMBER}, {}, None),
        # A later version counts only if the answer is as of a time.
        ({"updated_at": DECEMBER}, {}, None),
        ({"updated_at": JULY}, {"now": MARCH}, None),
        ({"updated_at": JULY}, {"as_of": MARCH}, "not_yet_valid"),
        ({"updated_at": JULY}, {"as_of": JULY}, None),
        # The time of the ages does not decide what is valid as of another.
        ({"valid_until": JULY}, {"as_of": MARCH, "now": "2026-11-01"}, None),
    ],
    ids=str,
)
def test_a_document_is_valid_from_and_until(
    dates: dict[str, str], fields: dict[str, str], code: str | None
) -> None:
    bundle = answered([document("d", ["token"], **dates)], task="token", **fields)
    assert codes(bundle) == ({"d": code} if code else {})
    assert selected(bundle) == (set() if code else {"d"})


@pytest.mark.parametrize("dates", [{"updated_at": JULY}, {"valid_until": "2020-01-01T00:00:00Z"}])
def test_what_is_not_valid_takes_no_place(dates: dict[str, str]) -> None:
    documents = [document("crowd", CROWD, **dates), WANTED]
    bundle = answered(documents, task="token", as_of=MARCH, limit=3)
    assert selected(bundle) == {"wanted"}
    assert bundle.diagnostics.refills == 1


class TestSuperseding:
    def versions(self, **newer: Any) -> list[StoredDocument]:
        return [
            document("v1", ["token one"], updated_at="2026-01-01T00:00:00Z"),
            document("v2", ["token two"], supersedes=("v1",), **newer),
        ]

    @pytest.mark.parametrize(
        ("newer", "fields", "expected"),
        [
            ({"updated_at": JULY}, {}, {"v2"}),
            ({"updated_at": JULY}, {"as_of": MARCH}, {"v1"}),
            ({"updated_at": JULY}, {"as_of": JULY}, {"v2"}),
            ({"valid_from": DECEMBER}, {}, {"v1"}),
            ({"valid_from": JULY}, {"as_of": MARCH}, {"v1"}),
            ({"updated_at": MARCH, "valid_from": DECEMBER}, {"as_of": JULY}, {"v1"}),
            # What it replaced does not come back when it expires.
            ({"valid_until": JULY}, {}, set()),
        ],
        ids=str,
    )
    def test_a_later_version_supersedes_nothing_yet(
        self, newer: dict[str, Any], fields: dict[str, Any], expected: set[str]
    ) -> None:
        assert selected(answered(self.versions(**newer), task="token", **fields)) == expected

    def test_the_last_version_that_is_valid_counts(self) -> None:
        third = document("v3", ["token three"], supersedes=("v2", "v1"), updated_at=DECEMBER)
        documents = [*self.versions(updated_at=MARCH), third]
        bundle = answered(documents, task="token", as_of=JULY)
        assert selected(bundle) == {"v2"}
        assert codes(bundle) == {"v1": "conflict_downrank", "v3": "not_yet_valid"}
        assert notes(bundle, "v1#0") == "superseded by v2"

    def test_what_was_seen_and_is_not_superseded_yet(self) -> None:
        versions = self.versions(updated_at=JULY)
        bundle = answered(versions, task="token", seen=["v1#0"], as_of=MARCH)
        assert codes(bundle) == {"v1": "already_seen", "v2": "not_yet_valid"}


# -- `seen` leaves out what the agent already has, and others take the places ----------------------


@pytest.fixture(scope="module")
def shelf_seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    texts = [f"token {'filler ' * (n % 40)}number{n}" for n in range(POOL_DEPTH + 50)]
    with built(tmp_path_factory.mktemp("seen"), [document("many", texts)], PROVIDER) as corpus:
        yield corpus


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_the_next_ones_take_the_places(shelf_seen: Corpus, fusion: str) -> None:
    fields = {"task": "token", "lexical_only": True, "fusion": fusion}
    first = ask(shelf_seen, None, limit=5, **fields)
    second = ask(shelf_seen, None, limit=5, seen=ids(first), **fields)
    assert ids(first) + ids(second) == ids(ask(shelf_seen, None, limit=10, **fields))
    assert second.rejected_summary["already_seen"] == 5
    assert {notes(second, chunk_id) for chunk_id in ids(first)} == {"it is in `seen`"}


def test_what_must_not_be_used_keeps_its_code() -> None:
    documents = [
        document("forbidden", ["token one"], source_id="blog"),
        document("external", ["token two"], origin="external"),
        document("old", ["token three"]),
        document("new", ["token four"], supersedes=("old",)),
    ]
    seen = ["forbidden#0", "external#0", "old#0"]
    bundle = answered(documents, FORBIDS, task="token", action="execute", seen=seen)
    assert codes(bundle) == {
        "forbidden": "forbidden_source",
        "external": "requires_approval",
        "old": "conflict_downrank",
    }


def test_what_was_not_seen_decides_the_verdict() -> None:
    documents = [document("a", ["token"]), document("b", ["token two"], source_id="blog")]
    fallback = answered(documents, FORBIDS, task="token", seen=["a#0"]).fallback
    assert fallback.verdict == "all_forbidden"
    assert fallback.message.startswith(
        "apart from what is in `seen`, everything relevant is forbidden to the role reviewer "
        "(candidates rejected: 1 forbidden_source, 1 already_seen; for one: blog: hearsay)"
    )


# -- The first passages do not depend on how many are asked for ------------------------------------

CROWD_LIMIT = [f"token rotation x{n} of {n % 9}" for n in range(POOL_DEPTH + 60)]
CROWDS = {
    "allowed": [document("crowd", CROWD_LIMIT)],
    "forbidden": [document("crowd", CROWD_LIMIT, source_id="vendor-blog")],
    # The role prefers what only a deeper search finds.
    "preferred": [
        document("crowd", CROWD_LIMIT),
        document("later", [f"a token {LONG} y{n}" for n in range(9)], source_id="policy"),
    ],
    "copies": [document("crowd", [f"{LONG} token rotation x{n}" for n in range(POOL_DEPTH + 60)])],
}


OF_THE_TASK = ("WEAK_EVIDENCE", "WORDS_MISSING", "WORDS_CORRECTED")


@cache
def _base(kind: str) -> bytes:
    with scratch_folder() as folder:
        return build(folder, CROWDS[kind], HashingProvider()).read_bytes()


@few_examples
@example(
    kind="preferred",
    documents=[],
    role=overlay(source_policy={"preferred_sources": [{"pattern": "policy", "boost": 9.0}]}),
    fields={"task": "", "lexical_only": True},
    limits=[10, 250],
)
@given(
    kind=st.sampled_from([*CROWDS]),
    documents=corpora(most=6),
    role=st.none() | overlays(min_score=0.0),
    fields=requests(limit=None, token_budget=None),
    limits=st.tuples(st.integers(1, 20), st.integers(1, 300)).map(sorted),
)
def test_the_answer_to_a_limit_begins_the_answer_to_a_larger_one(
    kind: str,
    documents: list[StoredDocument],
    role: Overlay | None,
    fields: dict[str, Any],
    limits: list[int],
) -> None:
    fields |= {"task": f"token rotation {fields['task']}"}
    smaller, larger = limits
    with (
        scratch_folder() as folder,
        built(folder, documents, HashingProvider(), base=_base(kind)) as corpus,
    ):
        few = ask(corpus, role, HashingProvider(), **fields | {"limit": smaller})
        many = ask(corpus, role, HashingProvider(), **fields | {"limit": larger})
    assert [(chunk.chunk_id, chunk.scores) for chunk in many.selected[:smaller]] == [
        (chunk.chunk_id, chunk.scores) for chunk in few.selected
    ]
    # Nor does the verdict depend on it.
    assert few.evidence == many.evidence
    assert {w.message for w in few.warnings if w.code in OF_THE_TASK} == {
        w.message for w in many.warnings if w.code in OF_THE_TASK
    }


# -- The pipeline on real corpus files: refills, and limits ----------------------------------------


def test_what_a_hard_limit_leaves_out_takes_no_place() -> None:
    policy = {"diversity": "hard", "max_chunks_per_source": 2, "min_score": 0.0}
    role = overlay(retrieval_policy=policy)
    wanted = document("wanted", [f"{'filler ' * 90} token"], source_id="other")
    bundle = answered([document("crowd", CROWD), wanted], role, task="token", limit=5)
    assert [passage.source_id for passage in bundle.selected] == ["wiki", "wiki", "other"]


def test_the_depth_grows_with_the_limit_and_has_a_bound() -> None:
    assert (POOL_DEPTH, MAX_DEPTH) == (40, 4096)
    many = document("many", [f"token x{n}" for n in range(300)])
    bundle = answered([many], FORBIDS, task="token", limit=160)
    assert len(bundle.selected) == 160
    assert bundle.diagnostics.candidate_pool_size == 160
