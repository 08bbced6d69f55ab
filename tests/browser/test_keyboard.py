"""The application by keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rolebundle.interfaces.inspector.application import VIEWS
from support.browsing import Corpus, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
MAX_STOPS = 400


def tab_to(page: Page, selector: str, text: str = "") -> None:
    """Press Tab until an element of this kind, with this text, has the focus and shows it."""
    for _ in range(MAX_STOPS):
        page.keyboard.press("Tab")
        focused = page.locator("*:focus")
        if focused.count() and focused.evaluate(
            "(at, [selector, text]) => at.matches(selector) && at.textContent.includes(text)",
            [selector, text],
        ):
            outline = focused.evaluate("at => getComputedStyle(at).outlineStyle")
            assert outline != "none", f"{selector} does not show that it has the focus"
            return
    pytest.fail(f"no stop of the Tab key is a {selector} with {text!r}")


def choose(page: Page, name: str, role: str) -> None:
    """Choose a role in a field: its name is typed."""
    tab_to(page, f"select[name={name}]")
    page.keyboard.type(role)


def heading(page: Page) -> str:
    return page.locator("h1").inner_text()


def test_ask_open_a_rejection_follow_why_and_compare(visitor: Visitor, sample: Corpus) -> None:
    role, other_role = sample.request["role"], sample.other_role
    page = visitor.page
    visitor.visit(sample.running.address)

    tab_to(page, "input[name=task]")
    page.keyboard.type(sample.request["task"])
    choose(page, "role", role)
    with page.expect_navigation():
        tab_to(page, "button", "Ask")
        page.keyboard.press("Enter")
    assert heading(page) == sample.request["task"]

    tab_to(page, "#kept-back summary", "forbidden_source")
    page.keyboard.press("Space")
    tab_to(page, "#kept-back details[open] a")
    rejected = page.locator("*:focus").inner_text()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert rejected in visitor.text()
    assert "forbidden" in visitor.text()

    assert "compare" in VIEWS
    visitor.page.go_back()
    choose(page, "other", other_role)
    with page.expect_navigation():
        tab_to(page, "button", "Compare")
        page.keyboard.press("Enter")
    assert role in visitor.text()
    assert other_role in visitor.text()
    assert visitor.page_problems(sample.running.path) == []


def test_the_first_stop_skips_to_the_content(visitor: Visitor, sample: Corpus) -> None:
    visitor.visit(sample.running.to("answer", **sample.request))
    visitor.page.keyboard.press("Tab")
    assert visitor.page.locator("*:focus").inner_text() == "Skip to the content"
    visitor.page.keyboard.press("Enter")
    assert visitor.page.url.endswith("#main")


def test_every_part_that_opens_is_opened_by_keyboard(visitor: Visitor, sample: Corpus) -> None:
    visitor.visit(sample.running.to("answer", **sample.request))
    page = visitor.page
    closed = page.locator("details:not([open]) > summary")
    while before := closed.count():
        closed.first.focus()
        page.keyboard.press("Enter")
        assert closed.count() == before - 1
