"""What the scan found travels with a passage, and cautions come before the first passage."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from rolebundle.contracts.bundle import BundleWarning, Fallback, RetrievalBundle
from rolebundle.contracts.lookup import Lookups
from rolebundle.contracts.terms import FALLBACK_ACTIONS, Detail, FallbackAction
from rolebundle.interfaces.cli.explain import text as why_text
from rolebundle.interfaces.model_text import answer_text, lookups_text
from rolebundle.interfaces.render import text
from rolebundle.interfaces.shape import shaped_bundle, shaped_lookup
from rolebundle.retrieval.compare import compare_roles
from rolebundle.retrieval.lookup import look_up
from rolebundle.retrieval.packet import packet
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from support.corpora import FLAGGED, ask, built, document, overlay, resolved, scratch_folder

DETAILS: tuple[Detail, ...] = get_args(Detail)
FLAG = "instruction_override"
LABEL = f"flagged: {FLAG}"
DOCUMENTS = [
    document("bad", ["token " + "text " * 300], FLAGGED, trust_tier="authoritative"),
    document("good", ["a token"], trust_tier="authoritative"),
]


@pytest.fixture(scope="module")
def corpus() -> Iterator[Corpus]:
    with scratch_folder() as folder, built(folder, DOCUMENTS) as opened:
        yield opened


def about(corpus: Corpus, role_id: str = "reviewer") -> RetrievalBundle:
    return ask(corpus, overlay(role_id=role_id), task="token", limit=5, lexical_only=True)


class TestFlags:
    @pytest.mark.parametrize("detail", DETAILS)
    @pytest.mark.parametrize("most", [None, 1000])
    def test_every_detail_has_them(self, corpus: Corpus, detail: Detail, most: int | None) -> None:
        answer = shaped_bundle(about(corpus), detail, most)
        flags = {
            passage["document_id"]: passage.get("metadata", {}).get("flags")
            for passage in answer["selected"]
        }
        assert flags
        assert flags.items() <= {"bad": [FLAG], "good": None}.items()

    def test_every_text_of_an_answer_has_them(self, corpus: Corpus) -> None:
        bundle = about(corpus)
        for form in (packet(bundle), text(bundle)):
            assert form.count(LABEL) == 1

    @pytest.mark.parametrize("most", [None, 1000])
    @pytest.mark.parametrize("reference", ["bad", "bad#0", "bad.md:1-1"])
    def test_get_has_them(self, corpus: Corpus, reference: str, most: int | None) -> None:
        lookup = shaped_lookup(look_up(corpus, reference, ReferenceRules()), most)
        assert [passage.flags for passage in lookup.passages] == [[FLAG]]
        assert LABEL in lookups_text(Lookups(lookups=[lookup]))

    def test_why_has_them(self, corpus: Corpus) -> None:
        request = resolved(task="token", lexical_only=True)
        answer = explain(corpus, request, "bad", ReferenceRules())
        assert answer.flags == [FLAG]
        assert LABEL in why_text(answer)
        assert LABEL in answer_text("why", answer.model_dump(exclude_none=True))
        assert explain(corpus, request, "good", ReferenceRules()).flags is None

    def test_compare_has_them(self, corpus: Corpus) -> None:
        compared = compare_roles([about(corpus, role) for role in ("one", "two")])
        flags = {passage.document_id: passage.flags for passage in compared.passages}
        assert flags == {"bad": [FLAG], "good": None}
        assert LABEL in answer_text("compare", compared.model_dump(exclude_none=True))

    def test_a_flagged_passage_is_not_for_actions_with_effects(self, corpus: Corpus) -> None:
        for chunk in about(corpus).selected:
            is_limited = not {"execute", "external_send"} & set(chunk.allowed_actions or ())
            assert is_limited == (chunk.document_id == "bad")
        bundle = ask(corpus, task="token", lexical_only=True, action="execute")
        assert [chunk.document_id for chunk in bundle.selected] == ["good"]
        assert bundle.rejected_summary == {"requires_approval": 1}


@pytest.mark.parametrize("action", FALLBACK_ACTIONS)
@pytest.mark.parametrize(
    ("codes", "concerning"),
    [
        (["ONLY_SHARED_CORPUS", "WEAK_EVIDENCE"], []),
        (["INDEX_STALE", "WEAK_EVIDENCE"], ["INDEX_STALE"]),
        (["FORBIDDEN_SOURCE_HIT", "CONFLICTING_EVIDENCE"],) * 2,
    ],
)
def test_cautions_come_before_the_first_passage(
    corpus: Corpus, codes: list[Any], concerning: list[str], action: FallbackAction
) -> None:
    warnings = [BundleWarning(code=code, message=f"about {code}") for code in codes]
    fallback = Fallback(
        state="healthy", states=["healthy", "conflicting"], action=action, message="the message"
    )
    bundle = about(corpus).model_copy(update={"warnings": warnings, "fallback": fallback})
    expected = ["the message"] * (action != "continue") + [f"about {code}" for code in concerning]
    for form in (text(bundle, 1000), packet(bundle)):
        before, _, _ = form.partition("good.md:1-1")
        assert all(message in before for message in expected)
        assert before.count("Caution: ") == bool(expected)
    for detail in DETAILS:
        answer = json.dumps(shaped_bundle(bundle, detail))
        places = [answer.index(f'"{name}"') for name in ("warnings", "fallback", "selected")]
        assert places == sorted(places)
