"""The answer page: all of a bundle is on it, and nothing of a document is markup."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.terms import FALLBACK_ACTIONS, FALLBACK_STATES, REJECTION_CODES
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.answer import answer_page, score_parts
from rolebundle.interfaces.pages.page import visible
from rolebundle.interfaces.pages.site import Site
from rolebundle.interfaces.parse import bundle_from
from support.commands import invoke

CHECKOUT = Path(__file__).parents[3]
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><svg onload=alert(1)>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "</pre></main><h1>x</h1>",
    "a\u202eb\u0000c\ud800d",
]


@pytest.fixture(scope="module")
def bundle() -> RetrievalBundle:
    values = json.loads((CHECKOUT / "docs" / "example-bundle.json").read_text(encoding="utf-8"))
    return bundle_from(values)


def text_of(page: str) -> str:
    return " ".join(html.fromstring(page).text_content().split())


def test_everything_that_was_selected_and_rejected_is_on_the_page(bundle: RetrievalBundle) -> None:
    text = text_of(answer_page(bundle))
    for chunk in bundle.selected:
        assert chunk.citation.locator in text
        assert f"{chunk.scores.final:.3f}" in text
        assert " ".join(chunk.content.split()) in text
    for rejection in bundle.rejected:
        assert rejection.chunk_id in text
        assert not rejection.notes or " ".join(rejection.notes.split()) in text
    for warning in bundle.warnings:
        assert warning.code in text
    for code, count in bundle.rejected_summary.items():
        assert f"{count} {words.REJECTION[code]} {code}" in text


def test_the_parts_of_a_score_sum_up_to_it(bundle: RetrievalBundle) -> None:
    for chunk in bundle.selected:
        points = sum(part.points for part in score_parts(chunk.scores, bundle.weights))
        assert points == pytest.approx(chunk.scores.final, abs=1e-4)


def test_a_page_in_a_file_leads_nowhere_and_loads_nothing(bundle: RetrievalBundle) -> None:
    tree = html.fromstring(answer_page(bundle))
    assert all(link.get("href").startswith("#") for link in tree.iter("a"))
    assert not tree.xpath("//script | //form | //img | //iframe | //@style | //link[@rel!='icon']")


def test_a_page_of_the_application_leads_to_why(bundle: RetrievalBundle) -> None:
    site = Site(base="/token/", request={"task": "a & b", "agent": "bot"})
    links = [link.get("href") for link in html.fromstring(answer_page(bundle, site)).iter("a")]
    assert any(link.startswith("/token/why?agent=bot&task=a+%26+b&id=") for link in links)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_a_bundle_is_markup(bundle: RetrievalBundle, hostile: str) -> None:
    page = answer_page(RetrievalBundle.model_validate(with_text(bundle.model_dump(), hostile)))
    names = [element.tag for element in html.fromstring(page).iter() if element.tag != "mark"]
    plain = answer_page(RetrievalBundle.model_validate(with_text(bundle.model_dump(), "plain")))
    assert names == [e.tag for e in html.fromstring(plain).iter() if e.tag != "mark"]
    assert escape(visible(hostile), quote=False).replace('"', "&#34;") in page.replace(
        "&quot;", "&#34;"
    )


def with_text(values: Any, text: str) -> Any:
    """The same values with a text instead of each that a document, a rule or a user chose."""
    if isinstance(values, dict):
        free = ("task_text", "title", "content", "headings", "notes", "message", "tags", "source_id",
                "overlay_hits", "lexical_query", "role_id", "locator", "anchor")  # fmt: skip
        return {
            name: replaced(value, text) if name in free else with_text(value, text)
            for name, value in values.items()
        }
    return [with_text(value, text) for value in values] if isinstance(values, list) else values


def replaced(value: Any, text: str) -> Any:
    if value is None:
        return None
    return [text] if isinstance(value, list) else text


@given(st.text())
def test_what_is_visible_hides_and_reorders_nothing(text: str) -> None:
    shown = visible(text)
    assert not {*shown} & {*"\u202a\u202b\u202d\u202e\u2066\u200b\u0000\x1b\ud800"}
    assert visible(shown) == shown


def test_every_code_has_plain_words() -> None:
    assert set(words.REJECTION) == set(words.REJECTION_ADVICE) == set(REJECTION_CODES)
    assert set(words.STATE) == set(FALLBACK_STATES)
    assert set(words.ACTION) == set(FALLBACK_ACTIONS)


def test_a_bundle_becomes_a_page_without_the_corpus(tmp_path: Path) -> None:
    page = tmp_path / "answer.html"
    bundle = str(CHECKOUT / "docs" / "example-bundle.json")
    assert invoke("inspect", bundle, "--html", str(page)).code == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    bundle = str(CHECKOUT / "docs" / "example-bundle.json")
    missing = invoke("inspect", bundle, "--html", str(tmp_path / "no" / "answer.html"))
    assert missing.code == 2 and "no_folder" in missing.err
    page = tmp_path / "answer.html"
    page.write_text("before")
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    assert invoke("inspect", str(broken), "--html", str(page)).code == 2
    assert page.read_text() == "before"
