"""How much of an answer comes back: what each detail holds, and that a bound is a bound."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle, product
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import BundleWarning, Fallback, RequestEcho, RetrievalBundle
from rolebundle.contracts.compact import CompactBundle
from rolebundle.contracts.lookup import Lookup, LookupFailure, Lookups
from rolebundle.contracts.operation_requests import MIN_MULTI_CHARS
from rolebundle.contracts.request import MIN_MAX_CHARS
from rolebundle.contracts.terms import (
    REJECTION_CODES,
    Detail,
    EmptyReason,
    FallbackState,
    WarningCode,
)
from rolebundle.engine import Engine
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.shape import COMPACT_CHARS, shaped_bundle
from rolebundle.interfaces.shape_lookup import shaped_lookup, shaped_lookups
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.lookups.lookup import ReferenceScope, look_up
from support.corpora import ask, built, document, overlay, scratch_folder

NOW = "2026-11-15T00:00:00Z"
TASKS = (
    "What should we worry about before release 3.0?",
    "What do we know about offline sync?",
    "Can a stolen tablet replay a token?",
    "How do we roll back the relay after a bad deploy?",
)
ROLES = (
    None,
    "mossline-security-reviewer",
    "mossline-product-strategist",
    "mossline-incident-responder",
    "mossline-docs-writer",
)
SMALL: tuple[Detail, ...] = ("ids", "compact")
DETAILS: tuple[Detail, ...] = get_args(Detail)

words = st.lists(
    st.sampled_from(["token", "sync", " ", "\n", '"', "\\", "\x00", "\u2028", "é", "😀", "a" * 50]),
    min_size=1,
    max_size=30,
).map("".join)
names = st.one_of(
    st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    st.integers(1, 900).map(lambda length: "n" * length),
    st.just('"' * 300),
)


ABOUT_PASSAGES = {"LOW_DIVERSITY", "EVIDENCE_KIND_MISSING", "NAMES_MISSING", "WORDS_MISSING"}
"""Warnings that are left out if no passage fits."""


@pytest.fixture(scope="module")
def sample(sample_without_vectors: Path) -> Iterator[Engine]:
    with Engine(sample_without_vectors, overlay_folders(())) as engine:
        yield engine


def bundle_for(engine: Engine, task: str = TASKS[0], **fields: Any) -> RetrievalBundle:
    request_fields = {"task": task, "now": NOW, "lexical_only": True} | fields
    return retrieved(engine, json.dumps(request_fields))


@cache
def retrieved(engine: Engine, request: str) -> RetrievalBundle:
    fields = json.loads(request)
    return engine.retrieve(
        request_from({name: value for name, value in fields.items() if value is not None})
    )


def size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def is_sound(bundle: RetrievalBundle, answer: dict[str, Any]) -> None:
    """It fits the contract; ids and counts are the bundle's; every cut is marked and counted."""
    parsed = CompactBundle.model_validate(answer)
    assert answer == parsed.model_dump(exclude_none=True)
    assert parsed.summary.selected_count == len(bundle.selected)
    assert parsed.rejected_summary == Counter(rejection.reason for rejection in bundle.rejected)
    assert parsed.summary.total_candidates == bundle.diagnostics.candidate_pool_size
    assert parsed.summary.total_candidates == (
        parsed.summary.selected_count + sum(parsed.rejected_summary.values())
    )
    omitted = parsed.more.omitted
    assert len(parsed.selected) + omitted.passages == len(bundle.selected)
    assert len(parsed.rejected or ()) + omitted.rejections == len(bundle.rejected)
    shown_chars = sum(len(passage.content or "") for passage in parsed.selected)
    all_chars = sum(len(passage.content) for passage in bundle.selected)
    assert shown_chars + omitted.content_chars == all_chars
    for passage, chunk in zip(parsed.selected, bundle.selected, strict=False):
        assert (passage.rank, passage.chunk_id) == (chunk.rank, chunk.chunk_id)
        assert passage.document_id == chunk.document_id
        assert passage.scores.final == chunk.scores.final
        assert passage.citation.locator == chunk.citation.locator
        if passage.truncated:
            assert passage.content is not None
            assert chunk.content.startswith(passage.content)
            assert passage.content_chars == len(chunk.content) > len(passage.content)
        elif parsed.detail == "compact":
            assert passage.content == chunk.content
    listed = [(rejection.chunk_id, rejection.reason) for rejection in parsed.rejected or ()]
    known = [(rejection.chunk_id, rejection.reason) for rejection in bundle.rejected]
    assert [pair for pair in known if pair in set(listed)] == listed
    assert [warning.code for warning in parsed.warnings] == [
        warning.code
        for warning in bundle.warnings
        if parsed.selected or warning.code not in ABOUT_PASSAGES
    ]


@pytest.fixture(scope="module")
def lookups() -> Iterator[Callable[[str], Lookup]]:
    documents = [
        document("guide", [f"passage {n} " + "text " * 60 for n in range(1, 31)]),
        document("long", ["word " * 2000, "end"], attributes=(("key", ("value " * 500,)),)),
    ]
    with scratch_folder() as folder, built(folder, documents) as corpus:
        yield lambda reference: look_up(corpus, reference, ReferenceScope())


class TestDetails:
    def test_full_is_the_bundle(self, sample: Engine) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        assert shaped_bundle(bundle, "full") == bundle.model_dump(exclude_none=True)
        assert shaped_bundle(bundle, "full", 10**6) == bundle.model_dump(exclude_none=True)

    def test_ids_hold_no_text_of_a_document_but_titles(self, sample: Engine) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        answer = shaped_bundle(bundle, "ids")
        is_sound(bundle, answer)
        assert "rejected" not in answer
        for passage in answer["selected"]:
            assert set(passage) == {
                "rank", "chunk_id", "document_id", "source_id", "title", "scores", "citation",
                "allowed_actions",
            }  # fmt: skip

    @pytest.mark.sample(2)
    @pytest.mark.parametrize(
        ("task", "role"),
        [
            *zip(cycle(TASKS), ROLES, strict=False),
            *(pytest.param(*case, marks=pytest.mark.slow) for case in product(TASKS, ROLES)),
        ],
    )
    def test_a_compact_answer_is_small_and_names_every_passage(
        self, sample: Engine, task: str, role: str | None
    ) -> None:
        bundle = bundle_for(sample, task, role=role)
        answer = shaped_bundle(bundle, "compact")
        is_sound(bundle, answer)
        for passage in answer["selected"]:
            assert passage["citation"].pop("absolute_path")
        assert size(answer) <= COMPACT_CHARS
        assert len(answer["selected"]) == len(bundle.selected) > 0
        for passage, chunk in zip(answer["selected"], bundle.selected, strict=True):
            assert (passage["title"], passage["source_id"]) == (chunk.title, chunk.source_id)
            assert passage["metadata"]["trust_tier"] == chunk.metadata.trust_tier
            assert passage["metadata"]["freshness"]["status"] == chunk.metadata.freshness.status
            assert passage["content"]
            assert len(" ".join(passage["reasons_selected"])) <= 120

    @pytest.mark.parametrize("detail", SMALL)
    def test_what_else_a_small_answer_says(self, sample: Engine, detail: Detail) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer", limit=3)
        assert bundle.overlay is not None
        assert bundle.corpus is not None
        assert bundle.fallback is not None
        answer = shaped_bundle(bundle, detail)
        assert (answer["version"], answer["detail"]) == ("1.0", detail)
        assert answer["query"] == {"task_text": TASKS[0], "generated_at": NOW}
        assert answer["request"] == {"limit": 3, "lexical_only": True}
        assert answer["overlay"] == bundle.overlay.model_dump()
        assert answer["corpus"]["generation"] == bundle.corpus.generation
        assert answer["fallback"]["action"] == bundle.fallback.action
        assert answer["provenance"]["trust_posture"] == bundle.provenance.trust_posture

    def test_without_a_bound_no_passage_is_left_out(self, sample: Engine) -> None:
        bundle = bundle_for(sample, limit=60)
        answer = shaped_bundle(bundle, "compact")
        is_sound(bundle, answer)
        assert len(answer["selected"]) == len(bundle.selected) > 20
        assert size(answer) > COMPACT_CHARS

    def test_the_rejections_listed_are_the_nearest_of_each_code(self, sample: Engine) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        listed = shaped_bundle(bundle, "compact")["rejected"]
        assert 0 < len(listed) <= 5
        firsts = {rejection.reason: rejection.chunk_id for rejection in reversed(bundle.rejected)}
        nearest = {rejection["reason"]: rejection["chunk_id"] for rejection in reversed(listed)}
        assert all(firsts[code] == chunk_id for code, chunk_id in nearest.items())
        assert len(nearest) == min(5, len(firsts))


class TestTheRest:
    @pytest.mark.sample(2)
    @pytest.mark.parametrize("role", ROLES)
    def test_the_handle_gives_the_whole_bundle(self, sample: Engine, role: str | None) -> None:
        bundle = bundle_for(sample, role=role, limit=4, token_budget=900, fusion="rrf")
        more = shaped_bundle(bundle, "compact", 4000)["more"]
        assert (more["method"], more["params"]["detail"]) == ("retrieve", "full")
        assert "repeat" not in more
        second_bundle = sample.retrieve(request_from(more["params"]))
        assert second_bundle.without_timings() == bundle.without_timings()

    def test_a_long_task_has_to_be_sent_again(self, sample: Engine) -> None:
        task = "release " * 500
        more = shaped_bundle(bundle_for(sample, task), "compact")["more"]
        assert more["repeat"] == ["task"]
        assert request_from({**more["params"], "task": task}).detail == "full"

    def test_a_long_field_has_to_be_sent_again(self, sample: Engine) -> None:
        where = {"path": [f"{'*' * 100}{n}" for n in range(20)] + ["**"]}
        bundle = bundle_for(sample, where=where)
        answer = shaped_bundle(bundle, "compact")
        assert answer["selected"]
        assert "where" not in answer["request"]
        assert answer["more"]["repeat"] == ["where"]
        second_request = request_from({**answer["more"]["params"], "where": where})
        assert sample.retrieve(second_request).without_timings() == bundle.without_timings()

    def test_many_seen_ids_do_not_shorten_the_passages(self, sample: Engine) -> None:
        bundle = bundle_for(sample, limit=3, seen=[f"{'n' * 60}#{n}" for n in range(1000)])
        alone = shaped_bundle(bundle_for(sample, limit=3), "compact")
        answer = shaped_bundle(bundle, "compact")
        assert answer["more"]["repeat"] == ["seen"]
        contents, expected = (
            [passage["content"] for passage in of["selected"]] for of in (answer, alone)
        )
        assert [len(content) > 500 for content in contents] == [len(c) > 500 for c in expected]

    def test_a_shortened_passage_comes_whole_by_get(self, sample: Engine) -> None:
        bundle = bundle_for(sample)
        answer = shaped_bundle(bundle, "compact")
        cut = [passage for passage in answer["selected"] if passage.get("truncated")]
        assert cut
        assert "get with a chunk_id" in " ".join(answer["more"]["notes"])
        (passage,) = sample.get(cut[0]["chunk_id"]).passages
        assert len(passage.content) == cut[0]["content_chars"]
        assert passage.content.startswith(cut[0]["content"])


# If nothing matches `where`, there is no candidate.
LONGEST_VERDICT = max({*get_args(EmptyReason)} - {"nothing_matches_where"}, key=len)


class TestBounds:
    def test_what_gives_way_first(self, sample: Engine) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        seen = []
        for most in range(16_000, MIN_MAX_CHARS - 1, -400):
            answer = shaped_bundle(bundle, "compact", most)
            is_sound(bundle, answer)
            assert size(answer) <= most
            shown_count = len(answer["selected"])
            is_complete = not any(passage.get("truncated") for passage in answer["selected"])
            seen.append((shown_count, len(answer.get("rejected", ())), is_complete))
        assert seen[0] == (8, 5, True)
        assert all(
            rejections == 5
            for shown_count, rejections, is_complete in seen
            if is_complete and shown_count == 8
        )
        assert all(rejections == 0 for shown_count, rejections, _ in seen if shown_count < 8)
        assert all(shown_count >= 1 for shown_count, _, _ in seen)

    def test_omitted_passages_are_reported(self, sample: Engine) -> None:
        answer = shaped_bundle(bundle_for(sample), "compact", 3000)
        omitted = answer["more"]["omitted"]["passages"]
        assert omitted > 0
        assert answer["more"]["notes"][0] == f"{omitted} passages did not fit in max_chars"

    def test_a_full_bundle_that_does_not_fit_comes_compact(self, sample: Engine) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        answer = shaped_bundle(bundle, "full", 20_000)
        is_sound(bundle, answer)
        assert answer["detail"] == "compact"
        assert 10_000 < size(answer) <= 20_000
        assert len(answer["rejected"]) > 5

    @given(
        st.lists(st.tuples(names, words), min_size=0, max_size=6, unique_by=lambda pair: pair[0]),
        names,
        st.sampled_from(["token", "token sync " * 30, "token " + "x" * 3000]),
        st.integers(1, 8),
        st.integers(MIN_MAX_CHARS, 12_000),
        st.booleans(),
    )
    @example([("n" * 900, "token " * 900)], '"' * 900, "token", 5, MIN_MAX_CHARS, True)
    def test_a_bound_is_a_bound(
        self, texts: list[tuple[str, str]], source: str, task: str, limit: int, most: int, on: bool
    ) -> None:
        role = overlay(
            source_policy={"forbidden_sources": [{"pattern": "nn", "reason": "x" * 300}]}
        )
        documents = [
            document(
                name, [f"token {text}", text * 20], source_id=source, title=text.strip() or "t"
            )
            for name, text in texts
        ]
        with scratch_folder() as folder, built(folder, documents) as corpus:
            bundle = ask(corpus, role if on else None, task=task, limit=limit, lexical_only=True)
            lookups = [
                look_up(corpus, passage.document_id, ReferenceScope())
                for passage in bundle.selected
            ]
        for detail in DETAILS:
            answer = shaped_bundle(bundle, detail, most)
            assert size(answer) <= most
            if "detail" in answer:
                is_sound(bundle, answer)
            else:
                assert detail == "full"
                assert RetrievalBundle.model_validate(answer) == bundle
        for detail in SMALL:
            is_sound(bundle, shaped_bundle(bundle, detail))
        for lookup in lookups:
            found = shaped_lookup(lookup, most)
            assert size(found) <= most
            Lookup.model_validate(found)

    # An empty answer has no passages of one source, and none without anything of the role's own.
    # APPROVAL_REFUSED takes the place of ACTION_RESTRICTED, and SOURCE_CHANGED that of
    # SOURCE_UNCHECKED. With a role the corpus is not only the shared one.
    @pytest.mark.parametrize(
        ("verdict", "never"),
        [
            (
                None,
                {"INDEX_STALE", "ACTION_RESTRICTED", "SOURCE_CHANGED", "ONLY_SHARED_CORPUS"},
            ),
            (
                LONGEST_VERDICT,
                {
                    "INDEX_STALE",
                    "LOW_DIVERSITY",
                    "ONLY_SHARED_CORPUS",
                    "ACTION_RESTRICTED",
                    "SOURCE_CHANGED",
                    "SOURCE_UNCHECKED",
                },
            ),
        ],
    )
    @pytest.mark.parametrize("detail", DETAILS)
    def test_all_codes_at_once_fit_into_the_least(
        self, sample: Engine, detail: Detail, verdict: EmptyReason | None, never: set[str]
    ) -> None:
        """A lane that did not run has no vectors to wait for, and with SEEN_UNKNOWN none was seen."""
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        rejections = [code for code in REJECTION_CODES if code != "already_seen"]
        codes: list[WarningCode] = [code for code in get_args(WarningCode) if code not in never]
        worst = bundle.model_copy(
            update={
                "role_id": "r" * 64,
                # Three searches propose 4,096 each at most, a few times.
                "rejected_summary": dict.fromkeys(rejections, 9_999) | {"quarantined": 99_999},
                "warnings": [BundleWarning(code=code, message="m" * 999) for code in codes],
                "fallback": Fallback(
                    state="no_strong_match",
                    states=[*get_args(FallbackState)],
                    action="continue",
                    message="m" * 999,
                    verdict=verdict,
                ),
                "request": RequestEcho(limit=1000, token_budget=10**400, fusion="weighted"),
                "selected": [
                    passage.model_copy(update={"chunk_id": "c" * 900})
                    for passage in bundle.selected
                ],
            }
        )
        answer = shaped_bundle(worst, detail, MIN_MAX_CHARS)
        assert size(answer) <= MIN_MAX_CHARS
        assert not answer["selected"]
        assert [warning["code"] for warning in answer["warnings"]] == [
            code for code in codes if code not in ABOUT_PASSAGES
        ]
        CompactBundle.model_validate(answer)


class TestLookup:
    def test_without_a_bound_it_is_the_lookup(self, lookups: Callable[[str], Lookup]) -> None:
        found = lookups("guide")
        assert shaped_lookup(found) == found.model_dump(exclude_none=True)
        assert shaped_lookup(found, 10**6) == shaped_lookup(found)
        assert Lookup.model_validate(shaped_lookup(found)) == found

    @pytest.mark.sample(3)
    @pytest.mark.parametrize("start", ["guide", "#guide:5:20", "guide.md:3-30"])
    @pytest.mark.parametrize("most", [1000, 2500, 6000])
    def test_the_rest_is_read_on(
        self, lookups: Callable[[str], Lookup], start: str, most: int
    ) -> None:
        wanted = [passage.chunk_id for passage in lookups(start).passages]
        read: list[str] = []
        reference: str | None = start
        while reference:
            answer = shaped_lookup(lookups(reference), most)
            assert size(answer) <= most
            Lookup.model_validate(answer)
            assert not any("truncated" in passage for passage in answer["passages"])
            read += [passage["chunk_id"] for passage in answer["passages"]]
            reference = answer["more"]["params"]["id"] if "more" in answer else None
        assert read == wanted

    def test_a_first_passage_that_does_not_fit_is_shortened(
        self, lookups: Callable[[str], Lookup]
    ) -> None:
        answer = shaped_lookup(lookups("long"), 1500)
        (passage,) = answer["passages"]
        assert (passage["truncated"], passage["content_chars"]) == (True, 10_000)
        assert 1000 < size(answer) <= 1500
        assert answer["more"] == {
            "method": "get",
            "params": {"id": "#long:2:1"},
            "omitted": {"passages": 1, "content_chars": 10_003 - len(passage["content"])},
        }

    def test_a_single_passage_is_asked_for_again(self, lookups: Callable[[str], Lookup]) -> None:
        answer = shaped_lookup(lookups("long#0"), 1000)
        assert answer["more"]["params"] == {"id": "long#0"}
        assert answer["passages"][0]["truncated"]


class TestLookups:
    def test_without_a_bound_everything_comes(self, lookups: Callable[[str], Lookup]) -> None:
        found = Lookups(lookups=[lookups("guide"), lookups("long")])
        assert shaped_lookups(found) == found.model_dump(exclude_none=True)

    @pytest.mark.parametrize("most", [MIN_MULTI_CHARS, 3000, 12_000])
    @pytest.mark.parametrize("failed", [0, 1, 40])
    def test_what_does_not_fit_is_counted(
        self, lookups: Callable[[str], Lookup], most: int, failed: int
    ) -> None:
        failure = LookupFailure(
            reference="\"'" * 900, code="not_found", message="m" * 9000, hint=""
        )
        found = Lookups(
            lookups=[lookups("long"), lookups("guide"), lookups("long#0")],
            failures=[failure] * failed,
        )
        answer = shaped_lookups(found, most)
        assert size(answer) <= most
        Lookups.model_validate(answer)
        assert answer["lookups"]
        shown_count = len(answer["lookups"]) + len(answer["failures"])
        assert shown_count + answer["omitted"] == 3 + failed
        assert ("next" in answer) == bool(answer["omitted"])


def test_the_example_of_the_documentation() -> None:
    path = Path(__file__).parent.parent.parent / "docs" / "example-bundle.json"
    bundle = RetrievalBundle.model_validate_json(path.read_bytes())
    answer = shaped_bundle(bundle, "compact", MIN_MAX_CHARS)
    assert len(answer["selected"]) == 1
    assert size(answer) <= MIN_MAX_CHARS


def test_every_field_of_the_projection_is_in_the_contract() -> None:
    from rolebundle.contracts.compact import CompactBundle
    from rolebundle.interfaces.shape import _PROJECTION

    schema = CompactBundle.model_json_schema()

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        choices = part.get("anyOf", [part])
        for choice in [choice.get("items", choice) for choice in choices]:
            if "$ref" in choice:
                return dict(schema["$defs"][choice["$ref"].removeprefix("#/$defs/")])
        return part

    for field in _PROJECTION:
        part = schema
        for name in field.path.split("."):
            part = resolved(part["properties"][name])
