"""How much of an answer comes back: what each detail holds, and that a bound is a bound."""

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

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.compact_bundle import CompactBundle
from rolebundle.contracts.lookup import Lookup, Lookups
from rolebundle.contracts.request import MIN_MAX_CHARS
from rolebundle.contracts.terms import Detail
from rolebundle.engine import Engine
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.shape import shaped_bundle, shaped_lookup, shaped_lookups
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.lookup import look_up
from rolebundle.retrieval.request import ReferenceRules
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


def text_size(answer: dict[str, Any]) -> int:
    return sum(len(passage["content"]) for passage in answer["selected"])


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
    assert len(parsed.selected) + omitted["passages"] == len(bundle.selected)
    assert len(parsed.rejected or ()) + omitted["rejections"] == len(bundle.rejected)
    shown_chars = sum(len(passage.content or "") for passage in parsed.selected)
    all_chars = sum(len(passage.content) for passage in bundle.selected)
    assert shown_chars + omitted["content_chars"] == all_chars
    for passage, chunk in zip(parsed.selected, bundle.selected, strict=False):
        assert (passage.rank, passage.chunk_id) == (chunk.rank, chunk.chunk_id)
        assert passage.document_id == chunk.document_id
        assert passage.scores.final == chunk.scores.final
        assert passage.citation.locator == chunk.citation.locator
        if passage.truncated:
            assert passage.content is not None
            assert passage.content in chunk.content
            assert passage.content_chars == len(chunk.content) > len(passage.content)
            assert len(parsed.selected) == 1, "only a single passage is cut"
        elif parsed.detail == "compact":
            assert passage.content == chunk.content
    listed = [(rejection.chunk_id, rejection.reason) for rejection in parsed.rejected or ()]
    known = [(rejection.chunk_id, rejection.reason) for rejection in bundle.rejected]
    assert [pair for pair in known if pair in set(listed)] == listed
    assert [warning.code for warning in parsed.warnings] == [
        warning.code for warning in bundle.warnings
    ]


@pytest.fixture(scope="module")
def lookups() -> Iterator[Callable[[str], Lookup]]:
    documents = [
        document("guide", [f"passage {n} " + "text " * 60 for n in range(1, 31)]),
        document("long", ["word " * 2000, "end"], attributes=(("key", ("value " * 500,)),)),
    ]
    with scratch_folder() as folder, built(folder, documents) as corpus:
        yield lambda reference: look_up(corpus, reference, ReferenceRules())


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
    def test_a_compact_answer_has_every_passage_whole(
        self, sample: Engine, task: str, role: str | None
    ) -> None:
        bundle = bundle_for(sample, task, role=role)
        answer = shaped_bundle(bundle, "compact")
        is_sound(bundle, answer)
        for passage in answer["selected"]:
            assert passage["citation"].pop("absolute_path")
        assert len(answer["selected"]) == len(bundle.selected) > 0
        for passage, chunk in zip(answer["selected"], bundle.selected, strict=True):
            assert (passage["title"], passage["source_id"]) == (chunk.title, chunk.source_id)
            assert passage["metadata"]["trust_tier"] == chunk.metadata.trust_tier
            assert passage["metadata"]["freshness"]["status"] == chunk.metadata.freshness.status
            assert passage["content"] == chunk.content
            assert len(" ".join(passage["reasons_selected"])) <= 120


class TestTheRest:
    @pytest.mark.sample(2)
    @pytest.mark.parametrize("role", ROLES)
    def test_the_handle_gives_the_whole_bundle(self, sample: Engine, role: str | None) -> None:
        bundle = bundle_for(sample, role=role, limit=4, token_budget=900, fusion="rrf")
        more = shaped_bundle(bundle, "compact", 1000)["more"]
        assert (more["method"], more["params"]["detail"]) == ("retrieve", "full")
        assert "repeat" not in more
        second_bundle = sample.retrieve(request_from(more["params"]))
        assert second_bundle.without_timings() == bundle.without_timings()


class TestBounds:
    def test_whole_passages_come_from_the_top(self, sample: Engine) -> None:
        bundle = bundle_for(sample, role="mossline-security-reviewer")
        counts = []
        for most in range(9_000, MIN_MAX_CHARS - 1, -400):
            answer = shaped_bundle(bundle, "compact", most)
            is_sound(bundle, answer)
            assert text_size(answer) <= most
            assert len(answer["rejected"]) == 5
            omitted = answer["more"]["omitted"]["passages"]
            note = f"{omitted} passage{'s' * (omitted != 1)} did not fit in max_chars"
            assert (note in answer["more"].get("notes", ())) == (omitted > 0)
            counts.append(len(answer["selected"]))
        assert counts == sorted(counts, reverse=True)
        assert counts[0] == 8 and counts[-1] >= 1

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
                look_up(corpus, passage.document_id, ReferenceRules())
                for passage in bundle.selected
            ]
        for detail in DETAILS:
            answer = shaped_bundle(bundle, detail, most)
            if "detail" in answer:
                is_sound(bundle, answer)
            else:
                assert detail == "full"
                assert RetrievalBundle.model_validate(answer) == bundle
            assert detail == "ids" or text_size(answer) <= most
            assert detail == "ids" or bool(answer["selected"]) == bool(bundle.selected)
        for lookup in lookups:
            found = shaped_lookup(lookup, most)
            assert 0 < sum(len(passage.content) for passage in found.passages) <= most


class TestLookup:
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
            assert sum(len(passage.content) for passage in answer.passages) <= most
            assert not any(passage.truncated for passage in answer.passages)
            read += [passage.chunk_id for passage in answer.passages]
            reference = answer.more.params["id"] if answer.more else None
        assert read == wanted

    def test_a_first_passage_that_does_not_fit_is_cut(
        self, lookups: Callable[[str], Lookup]
    ) -> None:
        answer = shaped_lookup(lookups("long"), 1500)
        (passage,) = answer.passages
        assert (passage.truncated, passage.content_chars) == (True, 10_000)
        assert answer.more is not None
        assert answer.more.model_dump(exclude_none=True) == {
            "method": "get",
            "params": {"id": "#long:2:1"},
            "omitted": {"passages": 1, "content_chars": 10_003 - len(passage.content)},
        }


class TestLookups:
    @pytest.mark.parametrize(("most", "shown"), [(1000, 1), (4000, 1), (12_000, 2), (30_000, 3)])
    def test_what_does_not_fit_is_counted(
        self, lookups: Callable[[str], Lookup], most: int, shown: int
    ) -> None:
        found = Lookups(lookups=[lookups("long"), lookups("guide"), lookups("long#0")])
        answer = shaped_lookups(found, most)
        assert (len(answer.lookups), answer.omitted) == (shown, 3 - shown)
        assert answer.next == ([None, "long#0", "guide"][3 - shown])
