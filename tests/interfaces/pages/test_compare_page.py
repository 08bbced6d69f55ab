"""Roles side by side: every standing is on the page, in the cell of its role."""

from pathlib import Path

import pytest
from lxml import html

from interfaces.pages.checks import HOSTILE, elements_of, is_closed, with_text
from rolebundle.contracts.why import Comparison
from rolebundle.interfaces.pages.views import REJECTION_WORDS, compare_page
from rolebundle.retrieval.compare import compare_roles
from support.commands import invoke
from support.corpora import ask, built, document, overlay
from support.overlay_files import write

DOCUMENTS = [
    document("plan", ["token", "token rotation of the plan"]),
    document("posts", ["a word about the token", "gossip about a token"], source_id="blog"),
    document("attic", ["an old token of the attic"], source_id="attic"),
    document("words", ["credential vault"]),
]
STRICT = overlay(
    role_id="strict",
    source_policy={
        "forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}, {"pattern": "attic"}],
        "trust_tier_boosts": {"general": 1.5},
    },
)
WIDE = overlay(
    role_id="wide",
    vocabulary={"boost_phrases": ["credential"]},
    source_policy={"forbidden_sources": [{"pattern": "attic"}]},
)
NARROW = overlay(role_id="narrow", retrieval_policy={"max_selected_chunks": 1})
FREE = {
    "task_text", "title", "headings", "notes", "source_id", "locator", "overlay_hits", "document_id",
    "flags",
}  # fmt: skip
"""The fields that a document, a rule or a user chose."""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    with built(tmp_path_factory.mktemp("compare"), DOCUMENTS) as corpus:
        roles = (None, STRICT, WIDE, NARROW)
        return compare_roles([ask(corpus, role, task="token") for role in roles])


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The texts of the cells of the table below a heading."""
    [section] = html.fromstring(page).xpath(f"//section[@aria-labelledby='{heading}']")
    return [
        [" ".join(cell.text_content().split()) for cell in row.xpath("./th | ./td")]
        for row in section.xpath(".//tbody/tr")
    ]


def test_every_standing_is_in_the_cell_of_its_role(comparison: Comparison) -> None:
    by_locator = {passage.locator: passage for passage in comparison.passages}
    rows = [row for row in rows_of(compare_page(comparison), "passages") if len(row) > 1]
    assert len(rows) == len(comparison.passages)
    for name, *cells in rows:
        [locator] = [locator for locator in by_locator if locator and locator in name]
        for cell, standing in zip(cells, by_locator.pop(locator).standings, strict=True):
            if standing.rank is not None:
                assert cell.startswith(f"Rank {standing.rank}")
                assert f"score {standing.score:.3f}" in cell
            elif standing.reason is not None:
                assert REJECTION_WORDS[standing.reason] in cell.lower()
                assert f"{standing.reason} {standing.notes}" in cell
            else:
                assert cell == "Not proposed"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_a_comparison_is_markup(comparison: Comparison, hostile: str) -> None:
    page, plain = (
        compare_page(Comparison.model_validate(with_text(comparison.model_dump(), text, FREE)))
        for text in (hostile, "plain")
    )
    assert elements_of(page) == elements_of(plain)


def test_the_command_writes_the_page_with_the_answer_without_a_role(
    small_db: Path, tmp_path: Path
) -> None:
    for role in ("one", "two"):
        write(tmp_path, role)
    page = tmp_path / "roles.html"
    arguments = ("compare", "token refresh", "--roles", "one,two", "--db", str(small_db), "--json")
    arguments += ("--overlay-dir", str(tmp_path))
    printed = invoke(*arguments, "--html", str(page))
    assert printed.code == 0
    # What is printed does not depend on the page.
    assert [view["role_id"] for view in printed.json()["roles"]] == ["one", "two"]
    written = page.read_text(encoding="utf-8")
    assert is_closed(written)
    assert len(rows_of(written, "overlaps")) == 3
