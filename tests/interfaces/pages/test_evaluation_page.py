"""The pages of evaluation reports: every figure is on them, and no name is markup."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lxml import html

from rolebundle.contracts.evaluation import (
    Check,
    Distinctiveness,
    EvalReport,
    EvaluatedCorpus,
    Governance,
    Harm,
    ListedResult,
    QuestionResult,
    RolePair,
    RoleShare,
    Seconds,
    Spread,
)
from rolebundle.evaluation.comparison import compare, with_change_thresholds, with_thresholds
from rolebundle.evaluation.evaluation import summarize_systems
from rolebundle.evaluation.metrics import METRICS
from rolebundle.interfaces.pages.evaluation import evaluation_page
from rolebundle.interfaces.pages.evaluation_change import evaluation_change_page
from rolebundle.interfaces.pages.site import Site
from support.pages import text_of

HOSTILE = "</style></summary><script>alert(1)</script>\u202e"
SPREAD = Spread(mean=2.5, p50=1, p90=2, p95=3, p99=4, most=5)


def question(name: str, lexical: float, governed: float, **fields: Any) -> QuestionResult:
    scores = {
        system: dict.fromkeys(METRICS, value)
        for system, value in (("lexical", lexical), ("governed", governed))
    }
    values: dict[str, Any] = {
        "id": name, "task": f"task of {name}", "scores": scores, "latency_ms": 7.0, "passages": 2,
        "answer_characters": 99,
    }  # fmt: skip
    return QuestionResult.model_validate(values | fields)


def report(*questions: QuestionResult, **fields: Any) -> EvalReport:
    values: dict[str, Any] = {
        "kind": "golden", "name": "mine", "corpus": EvaluatedCorpus(documents=3, chunks=4),
        "metrics": list(METRICS), "systems": summarize_systems(questions),
        "judged": len(questions), "questions": list(questions), "latency_ms": SPREAD,
        "answer_characters": SPREAD, "passages": SPREAD,
        "seconds": Seconds(ingest=1, questions=2, total=3), "passed": True,
    }  # fmt: skip
    return EvalReport.model_validate(values | fields)


LOST = question(
    "lost",
    0.9,
    0.25,
    role="guard",
    best=["first", "second"],
    documents=[
        ListedResult(id="first", rank=1, score=0.8125, lexical_rank=4, grade=0),
        ListedResult(id="second", rank=2, score=0.5),
        ListedResult(id="kept", grade=3, rejected="forbidden_source", lexical_rank=1),
        ListedResult(id="nowhere", grade=1),
    ],
)
WON = question("won", 0.1, 0.7, best=["only-an-id"])


def test_a_question_opens_to_its_documents_and_to_where_the_relevant_ones_are() -> None:
    page = html.fromstring(evaluation_page(report(WON, LOST)))
    lost, won = page.xpath("//details[@class='question']")
    assert lost.xpath("./summary//code/text()") == ["lost"], "the worst change is first"
    assert "0.900 → 0.250 −0.650" in " ".join(lost.xpath("./summary")[0].text_content().split())
    rows = [
        [" ".join(cell.text_content().split()) for cell in row] for row in lost.xpath(".//tbody/tr")
    ]
    assert rows == [
        ["1", "first", "no (0)", "0.812", "4", ""],
        ["2", "second", "not judged", "0.500", "–", ""],
        ["–", "kept", "yes (3)", "", "1", "kept back: from a source that this role may not use"],
        ["–", "nowhere", "yes (1)", "", "–", "not proposed by any lane"],
    ]
    assert "2 relevant not among the first ten" in lost.text_content()
    assert "only-an-id" in won.text_content(), "a report without documents has the best ids"


def test_everything_of_a_report_is_on_the_page() -> None:
    check = Check(
        question="lost", kind="expect_trust", about="", expected="strong", found="weak", held=False
    )
    full_report = with_thresholds(
        report(
            LOST,
            WON,
            degraded="the model is down",
            notes=["a note"],
            governance=Governance(leak_rate=0.125, rejection_accuracy=0.5, checks=[check]),
            distinctiveness=Distinctiveness(
                questions=2,
                mean_overlap=0.345,
                roles=[RoleShare(role_id="guard", domains=["law"], own_share=0.61, own_first=0.62)],
                pairs=[RolePair(first="guard", second="planner", overlap=0.345)],
            ),
            harm=[
                Harm(
                    role_id="guard", digest="d", without=0.5, with_overlay=0.4, relative=-0.2,
                    p_value=0.031, wins=1, losses=5,
                )
            ],
        ),
        {"mrr": 0.99},
    )  # fmt: skip
    text = text_of(evaluation_page(full_report))
    for words in (
        "Not passed", "the model is down", "a note", "12.5%", "expected strong, found weak",
        "at least 0.99", "not met", "34.5%", "61.0%", "62.0%", "−20.00%", "0.031*", "1 / 5",
        "1 won, 1 lost, 0 the same", "p95 3.0", "1.0 s to ingest", "2.5 passages on average",
    ):  # fmt: skip
        assert words in text, words
    for system in full_report.systems:
        for value in system.metrics.values():
            assert f"{value:.4f}" in text


def test_many_questions_are_folded_and_none_is_missing() -> None:
    questions = [question(f"q{n}", 0.5, 0.4) for n in range(40)]
    page = html.fromstring(evaluation_page(report(*questions)))
    assert len(page.xpath("//details[@class='question']")) == 40
    assert page.xpath("//details[@class='group']/summary/text()") == ["25 more"]


def test_a_report_without_grades_has_no_scores() -> None:
    page = evaluation_page(report(question("q", 0, 0, scores={}), judged=0))
    assert "nDCG" not in text_of(page)
    assert page.count('class="plot"') == 2


def test_before_and_after_are_aligned() -> None:
    later = LOST.model_copy(
        update={
            "best": ["kept", "first"],
            "documents": [
                ListedResult(id="kept", rank=1, grade=3),
                ListedResult(id="first", rank=2, grade=0),
                ListedResult(id="nowhere", grade=1),
            ],
            "scores": WON.scores,
        }
    )
    before, after = report(LOST, WON), report(later, WON)
    comparison = with_change_thresholds(compare(before, after, ("a", "b")), after, {"mrr": 0.9})
    page = html.fromstring(evaluation_change_page(comparison, before, after))
    better, same = page.xpath("//details[@class='question']")
    rows = [
        [" ".join(cell.text_content().split()) for cell in row]
        for row in better.xpath(".//tbody/tr")
    ]
    assert rows == [
        ["kept", "yes (3)", "–", "1", "new"],
        ["first", "no (0)", "1", "2", "down 1"],
        ["second", "not judged", "2", "–", "gone"],
        ["nowhere", "yes (1)", "–", "–", "in neither"],
    ]
    assert "0.250 → 0.700 +0.450" in " ".join(better.text_content().split())
    assert "the same, in the same order" in same.text_content()
    text = " ".join(page.text_content().split())
    for change in comparison.changes:
        assert f"{change.before:.4f}" in text and f"{change.after:.4f}" in text
    assert "not met" in text and "1.0 ms → 1.0 ms" in text


@pytest.mark.parametrize("site", [Site(), Site(base="/token/", is_owner=True)])
def test_no_name_is_markup_and_a_file_leads_nowhere(site: Site) -> None:
    nasty = LOST.model_copy(
        update={
            "id": HOSTILE, "task": HOSTILE * 9, "role": HOSTILE,
            "documents": [ListedResult(id=HOSTILE, rank=1)],
        }
    )  # fmt: skip
    check = Check(question=HOSTILE, kind="must_not_return", about=HOSTILE, expected=HOSTILE,
                  found=HOSTILE, held=False)  # fmt: skip
    governance = Governance(checks=[check])
    before = report(nasty, name=HOSTILE, notes=[HOSTILE], governance=governance)
    after = report(nasty.model_copy(update={"best": [HOSTILE]}), name=HOSTILE)
    comparison = compare(before, after, (HOSTILE, HOSTILE))
    for page in (
        evaluation_page(before, site),
        evaluation_change_page(comparison, before, after, site),
    ):
        assert not html.fromstring(page).xpath("//script | //img | //iframe | //main//style")
        assert "\u202e" not in page
        assert not re.search(r" style=| on\w+=", page)
        links = [link.get("href") for link in html.fromstring(page).xpath("//main//a")]
        assert bool(links) == site.is_live
        assert all(link.startswith("/token/") for link in links)
