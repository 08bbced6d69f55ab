"""The draft page: the whole draft, each finding, and where each of them leads."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html

from rolebundle.contracts.lookup import FoundPassage
from rolebundle.contracts.verification import (
    CheckedPassage,
    CheckName,
    Finding,
    FindingCode,
    JudgeOpinion,
    Span,
    Verdict,
    Verification,
)
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.draft import draft_page
from rolebundle.interfaces.pages.page import visible
from rolebundle.interfaces.pages.site import Site

DRAFT = 'Tokens live "for an hour" [1].\nElephants fly. Key: s3cr3t-value.\n'
HOSTILE = "</pre></textarea><script>alert(1)</script>\u202e"


def finding(part: str, check: str, code: str, **fields: object) -> Finding:
    start = DRAFT.index(part)
    values = {"check": check, "code": code, "fails": False, "text": part} | fields
    return Finding.model_validate({"span": Span(start=start, end=start + len(part))} | values)


QUOTE = finding(
    "for an hour", "quotes", "near", fails=True, chunk_id="a#1", locator="a.md:1-2",
    true_text="for one\nhour", note="changed figure", remedy="Quote it word for word.",
)  # fmt: skip
COVERED = finding(
    'Tokens live "for an hour" [1].', "coverage", "covered", chunk_id="a#1", locator="a.md:1-2",
    true_text="Tokens live for one hour.",
)  # fmt: skip
ELEPHANTS = finding("Elephants fly.", "coverage", "uncovered", remedy="Leave it out.")
SECRET = finding("s3cr3t-value", "publish", "secret", fails=True, text="", remedy="Remove it.")
WHOLE_DRAFT = Finding(
    check="sources", code="unknown_passage", fails=True, span=Span(start=0, end=0), text="",
    chunk_id="gone#1", note="the corpus has no such passage",
)  # fmt: skip
FINDINGS = [WHOLE_DRAFT, COVERED, QUOTE, ELEPHANTS, SECRET]
PASSAGES = {
    "a#1": FoundPassage(
        chunk_id="a#1", locator="a.md:1-2", headings=["Tokens"], content_type="paragraph",
        content="Tokens live for one   hour.\nThey rotate.",
    )
}  # fmt: skip


def verification(findings: list[Finding], **fields: object) -> Verification:
    values: dict[str, object] = {
        "verdict": "failed", "message": "something fails", "counts": {}, "findings": findings,
    }  # fmt: skip
    return Verification.model_validate(values | fields)


def page_of(answer: Verification, draft: str = DRAFT, site: Site | None = None) -> html.HtmlElement:
    return html.fromstring(draft_page(answer, draft, PASSAGES, site or Site()))


def text_of(element: html.HtmlElement) -> str:
    return " ".join(element.text_content().split())


def draft_of(page: html.HtmlElement) -> str:
    """The draft on the page without the numbers of the problems."""
    (draft,) = page.xpath("//pre[@class='draft']")
    for number in draft.xpath(".//sup"):
        number.drop_tree()
    return str(draft.text_content())


def test_what_fails_leads_to_its_reason_and_this_to_its_passage() -> None:
    page = page_of(verification(FINDINGS))
    (quote,) = page.xpath("//pre[@class='draft']/a[text()='for an hour']")
    assert (quote.get("class"), quote.get("href")) == ("bad", "#finding-2")
    assert text_of(quote.getnext()) == "✗2"
    assert quote.getnext().xpath("./a/@id") == ["at-2"]
    (reason,) = page.xpath("//*[@id='finding-2']")
    for text in (
        "✗2 Not what the passage says near", "line 1:14", "Changed figure", "for one hour",
        "What to do: Quote it word for word.", "a.md:1-2",
    ):  # fmt: skip
        assert text in text_of(reason)
    assert reason.xpath(".//a[@href='#passage-2']")
    (passage,) = page.xpath("//*[@id='passage-2']")
    assert [mark.text for mark in passage.xpath(".//mark")] == ["for one   hour"]


def test_what_passes_leads_to_its_passage() -> None:
    page = page_of(verification([COVERED]))
    (claim,) = page.xpath("//pre[@class='draft']/a")
    assert (claim.get("class"), claim.get("href")) == ("good", "#passage-1")
    assert page.xpath("//*[@id='passage-1']//mark/text()") == ["Tokens live for one   hour."]


def test_everything_of_the_answer_is_on_the_page() -> None:
    span = COVERED.span
    answer = verification(
        FINDINGS,
        passages=[
            CheckedPassage(number=7, chunk_id="a#1", locator="a.md:1-2"),
            CheckedPassage(number=8, chunk_id="b#1", locator="b.md:3-4"),
        ],
        uncited_sentences=[ELEPHANTS.span],
        validated_draft="[[near: …]]",
        judge="ollama:judge",
        judge_problem="the judge is slow",
        opinions=[JudgeOpinion(span=span, supported=False, answer="No, it says one.")],
    )
    page = page_of(answer)
    text = text_of(page)
    for part in (
        "The draft has errors", "Something fails", "Sentences without a citation: 1", "[[near: …]]",
        "Opinions of ollama:judge: 1", "not supported", "No, it says one.", "the judge is slow",
        "[7] in the draft", "b.md:3-4", "Checked against 2 passages", "3 to correct",
        "1 to look at", "the whole draft", "The corpus has no such passage",
    ):  # fmt: skip
        assert part in text, part
    rows = [[text_of(cell) for cell in row] for row in page.xpath("//tbody/tr")]
    assert ["Sentences", "1", "0", "1", "1 covered, 1 uncovered"] in rows
    assert ["Quotes", "0", "1", "0", "1 near"] in rows


def test_a_secret_is_not_shown() -> None:
    page = draft_page(verification(FINDINGS), DRAFT, PASSAGES)
    assert "s3cr3t" not in page
    assert "Key: ••••••••••••.\n" in draft_of(html.fromstring(page))


@settings(max_examples=30)
@given(
    st.text(max_size=60),
    st.lists(
        st.tuples(
            st.integers(0, 60), st.integers(0, 60), st.booleans(), st.booleans(),
            st.sampled_from(get_args(CheckName)),
        ),
        max_size=8,
    ),
)  # fmt: skip
def test_the_whole_draft_is_shown_and_every_link_has_a_target(
    text: str, spans: list[tuple[int, int, bool, bool, CheckName]]
) -> None:
    # An HTML parser makes other line ends a line feed, and drops one at the beginning of `pre`.
    draft = "a" + re.sub(r"\s", " ", text)
    findings = [
        Finding(
            check=check, code="near", fails=fails, span=Span(start=first, end=last),
            text=draft[first:last], chunk_id="a#1", remedy="Do it." if has_remedy else None,
        )
        for first, last, fails, has_remedy, check in spans
        if first < last <= len(draft)
    ]  # fmt: skip
    page = page_of(verification(findings), draft)
    # Before `draft_of`, which removes the numbers of the problems.
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in page.xpath("//main//a/@href")} <= set(ids)
    problems = [item for item in findings if item.fails or item.remedy]
    assert len(page.xpath("//article[@class='finding']")) == len(problems)
    assert draft_of(page) == visible(draft)


@pytest.mark.parametrize("site", [Site(), Site(base="/token/", is_owner=True)])
def test_no_text_is_markup(site: Site) -> None:
    nasty = COVERED.model_copy(
        update={
            "fails": True, "text": HOSTILE, "note": HOSTILE, "remedy": HOSTILE,
            "true_text": HOSTILE, "locator": HOSTILE,
        }
    )  # fmt: skip
    answer = verification([nasty], message=HOSTILE, validated_draft=HOSTILE)
    passages = {
        "a#1": PASSAGES["a#1"].model_copy(update={"content": HOSTILE, "headings": [HOSTILE]})
    }
    page = draft_page(answer, DRAFT + HOSTILE, passages, site)
    tree = html.fromstring(page)
    assert not tree.xpath("//script | //img | //@onload | //@style")
    assert "\u202e" not in page
    assert len(tree.xpath("//main")) == 1 and len(tree.xpath("//pre")) == 3
    links = tree.xpath("//main//a/@href")
    assert site.is_live == any(link.startswith("/token/document") for link in links)
    assert site.is_live == bool(tree.xpath("//form"))


def test_every_code_check_and_verdict_has_words() -> None:
    assert set(words.FINDING) == set(get_args(FindingCode))
    assert set(words.CHECK) == set(get_args(CheckName))
    assert set(words.VERDICT) == set(get_args(Verdict))
