"""The form of the workbench gives back the overlay that it was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from rolebundle.authoring.edited_overlay import edited_overlay
from rolebundle.authoring.neutral_overlay import overlay_text
from rolebundle.contracts.lint import LintProblem
from rolebundle.interfaces.pages.site import Site
from rolebundle.interfaces.pages.workbench import Edit, trial_page
from rolebundle.policy.overlay_lint import lint_error, lint_note, lint_warning
from support.overlay_files import overlays

SITE = Site(base="/token/", is_owner=True)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@given(overlays, words)
def test_a_copy_that_is_not_edited_is_the_overlay(values: dict[str, Any], label: str) -> None:
    values |= {"label": label}
    page = trial_page([], [], Edit("a", "copy", overlay_text(values), ["task"]), SITE)
    [field] = html.fromstring(page).xpath("//textarea[@name='overlay']")
    # As a browser sends it.
    sent = field.text_content().replace("\n", "\r\n")
    edited = edited_overlay("copy", sent, Path("team.db"))
    assert json.loads(edited.content) == values | {"role_id": "copy"}


def test_many_findings_are_cut_and_errors_come_first() -> None:
    findings = [lint_warning(f"words[{n}]", "never_matches", "nothing") for n in range(5_000)]
    error = lint_error("", "e", "broken")
    items = listed([*findings, error])
    assert "broken" in items[0].text_content()
    assert items[-1].text_content() == "and 4801 more"
    assert len(items) == 201


def test_the_gravest_findings_come_first() -> None:
    findings = [lint_note("", "n", "c"), lint_warning("", "w", "b"), lint_error("", "e", "a")]
    assert [item.text_content().split()[:2] for item in listed(findings)] == [
        ["error", "a"],
        ["warning", "b"],
        ["note", "c"],
    ]


def listed(findings: list[LintProblem]) -> list[Any]:
    page = trial_page(findings, [], Edit("a", "b", "", []), SITE)
    return list(html.fromstring(page).xpath("//section[@aria-labelledby='lint']//li"))
