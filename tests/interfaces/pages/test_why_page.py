"""The page of `why`: every step with its result in words, and all that would have to change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.contracts.why import Why
from rolebundle.interfaces.pages.views import steps_of, why_page
from rolebundle.retrieval.request import ReferenceScope
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from support.commands import invoke
from support.corpora import built, document, overlay, resolved
from support.fake_embedder import HashingProvider
from support.pages import HOSTILE, elements_of, is_closed, text_of, with_text

ROLE = overlay(
    vocabulary={"boost_phrases": ["token vault"], "suppress_phrases": ["gossip"]},
    source_policy={
        "forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}],
        "trust_tier_boosts": {"general": 1.2},
    },
)
DOCUMENTS = [
    document("plan", ["token rotation plan of the token vault", "token gossip", "the token again"]),
    document("posts", ["token rotation news"], source_id="blog"),
    document("bread", ["flour and water"]),
]
PASSED, STOPPED = "passed", "stopped here"
WOULD_PASS, WOULD_STOP = "not reached; would pass", "not reached; would stop here, too"
FREE = {
    "task", "title", "locator", "notes", "reference", "chunk_id", "document_id", "role_id",
    "factors", "vocabulary", "task_found", "task_missing", "role_found", "note",
    "source_id", "agent",
}  # fmt: skip
"""The fields that a document, a rule or a user chose."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    with built(tmp_path_factory.mktemp("why"), DOCUMENTS, HashingProvider()) as corpus:
        yield corpus


def why(corpus: Corpus, reference: str, **fields: object) -> Why:
    return explain(corpus, resolved(ROLE, **fields), reference, ReferenceScope())


@pytest.mark.parametrize(
    ("reference", "fields", "results"),
    [
        ("plan#0", {}, (PASSED, PASSED, PASSED, PASSED)),
        ("plan#2", {"limit": 1}, (PASSED, PASSED, PASSED, STOPPED)),
        ("posts#0", {}, (PASSED, PASSED, STOPPED, WOULD_PASS)),
        ("bread#0", {"limit": 1}, (PASSED, STOPPED, WOULD_PASS, WOULD_STOP)),
        ("posts#0", {"where": {"source": "other"}}, (STOPPED, WOULD_STOP, WOULD_STOP, WOULD_PASS)),
    ],
)
def test_each_step_has_its_result_in_words(
    corpus: Corpus, reference: str, fields: dict[str, object], results: tuple[str, ...]
) -> None:
    explanation = why(corpus, reference, **fields)
    assert tuple(words for words, _ in steps_of(explanation).values()) == results
    text = text_of(why_page(explanation))
    places = [
        text.index(title) for title in ("document searched?", "propose it?", "rules allow it?")
    ]
    places.append(text.index("Is it selected?"))
    for place, result in zip(places, results, strict=True):
        assert text[place:].split("? ", 1)[1].startswith(result)


@pytest.mark.parametrize(
    ("reference", "fields"),
    [
        ("plan#0", {}),
        ("plan", {"limit": 1}),
        ("plan#1", {"limit": 1}),
        ("posts#0", {}),
        ("bread#0", {"task": "unheard of"}),
        ("posts#0", {"where": {"source": "other"}}),
    ],
)
def test_all_of_the_explanation_is_on_the_page(
    corpus: Corpus, reference: str, fields: dict[str, object]
) -> None:
    explanation = why(corpus, reference, **fields)
    text = text_of(why_page(explanation))
    expected = [explanation.task, explanation.title, explanation.locator, explanation.chunk_id]
    for lane in explanation.lanes:
        if not lane.ran:
            expected.append(lane.note)
        if lane.rank is not None:
            expected.append(f"{lane.rank} of {lane.pool}")
        if lane.score is not None:
            expected.append(f"{lane.score:.3f}".replace("-", "−"))
        if lane.least is not None:
            expected.append(f"{lane.least:.3f}".replace("-", "−"))
    expected += [word for words in explanation.words.values() for word in words]
    score = explanation.score
    if score.to_beat is not None:
        expected.append(f"The score to beat is {score.to_beat:.3f}.")
    expected += [f"{score.scores.final:.3f}", f"{score.place} of {score.of} ranked"]
    for rival in explanation.lost_to:
        expected += [rival.locator, f"{rival.final:.3f}"]
    expected += [explanation.filter.notes, explanation.code or "", score.code or ""]
    expected.append(f"at most {explanation.limit} passages")
    assert [part for part in expected if part not in text] == []


@pytest.mark.parametrize("reference", ["posts#0", "plan#1"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_an_explanation_is_markup(corpus: Corpus, reference: str, hostile: str) -> None:
    explanation = why(corpus, reference, limit=1)
    page, plain = (
        why_page(Why.model_validate(with_text(explanation.model_dump(), text, FREE)))
        for text in (hostile, "plain")
    )
    assert elements_of(page) == elements_of(plain)


def test_a_page_in_a_file_leads_nowhere(corpus: Corpus) -> None:
    assert is_closed(why_page(why(corpus, "plan#1", limit=1)))


def test_the_command_writes_the_page(small_db: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    arguments = ("auth", "token refresh", "--db", str(small_db), "--html", str(page))
    printed = invoke("why", *arguments)
    assert (printed.code, "SELECTED" in printed.out) == (0, True)
    assert is_closed(page.read_text(encoding="utf-8"))
    assert invoke("why", *arguments[:-1], str(tmp_path / "no" / "why.html")).code == 2
