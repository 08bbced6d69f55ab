"""The answer page: all of a bundle is on it, and nothing of a document is markup."""

import json
import re
from html import escape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.pages.checks import HOSTILE, elements_of, is_closed, text_of, with_text
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.terms import FALLBACK_ACTIONS, REJECTION_CODES
from rolebundle.interfaces.pages.views import (
    ACTION_WORDS,
    REJECTION_WORDS,
    answer_page,
    score_parts,
    visible,
)
from support.commands import invoke

CHECKOUT = Path(__file__).parents[3]
FREE = {
    "task_text", "title", "content", "headings", "notes", "message", "tags", "source_id",
    "overlay_hits", "lexical_query", "role_id", "locator", "anchor",
}  # fmt: skip
"""The fields that a document, a rule or a user chose."""


@pytest.fixture(scope="module")
def bundle() -> RetrievalBundle:
    values = json.loads((CHECKOUT / "docs" / "example-bundle.json").read_text(encoding="utf-8"))
    return RetrievalBundle.model_validate(values)


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
    # Scores are compared with the best one found, which may be irrelevant.
    outside = re.sub(r"<details>.*?</details>", "", answer_page(bundle), flags=re.DOTALL)
    assert outside.count('class="passage"') == len(bundle.selected)
    assert not re.search(r'class="(final|bar|score)"', outside)
    for code, count in bundle.rejected_summary.items():
        assert f"{count} {REJECTION_WORDS[code]}" in text


def test_the_parts_of_a_score_sum_up_to_it(bundle: RetrievalBundle) -> None:
    assert bundle.selected
    for chunk in bundle.selected:
        points = sum(part["points"] for part in score_parts(chunk.scores, bundle.weights))
        assert points == pytest.approx(chunk.scores.final, abs=1e-4)


def test_a_page_in_a_file_leads_nowhere_and_loads_nothing(bundle: RetrievalBundle) -> None:
    assert is_closed(answer_page(bundle))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_a_bundle_is_markup(bundle: RetrievalBundle, hostile: str) -> None:
    page, plain = (
        answer_page(RetrievalBundle.model_validate(with_text(bundle.model_dump(), text, FREE)))
        for text in (hostile, "plain")
    )
    assert elements_of(page) == elements_of(plain)
    assert escape(visible(hostile), quote=False).replace('"', "&#34;") in page.replace(
        "&quot;", "&#34;"
    )


@given(st.text())
def test_what_is_visible_hides_and_reorders_nothing(text: str) -> None:
    visible_text = visible(text)
    assert not {*visible_text} & {*"\u202a\u202b\u202d\u202e\u2066\u200b\u0000\x1b\ud800"}
    assert visible(visible_text) == visible_text


def test_every_code_has_plain_words() -> None:
    assert set(REJECTION_WORDS) == set(REJECTION_CODES)
    assert set(ACTION_WORDS) == set(FALLBACK_ACTIONS)


def test_a_page_is_written_whole_or_not_at_all(sample_db: Path, tmp_path: Path) -> None:
    ask = ("retrieve", "token", "--lexical-only", "--db", str(sample_db), "--html")
    missing = invoke(*ask, str(tmp_path / "no" / "answer.html"))
    assert missing.code == 2 and "no_folder" in missing.err
    page = tmp_path / "answer.html"
    assert invoke(*ask, str(page)).code == 0
    before = page.read_bytes()
    assert invoke(*ask, str(page), "--role", "nobody").code == 3
    assert page.read_bytes() == before
    assert sorted(tmp_path.glob("*.html*")) == [page]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"{}", b"<!DOCTYPE html>"])
def test_a_page_replaces_only_a_page(sample_db: Path, tmp_path: Path, content: bytes) -> None:
    foreign, link = tmp_path / "other", tmp_path / "link.html"
    foreign.write_bytes(content)
    link.symlink_to(foreign)
    for name in (foreign, link):
        refused = invoke("retrieve", "token", "--db", str(sample_db), "--html", str(name))
        assert refused.code == 2 and "not_a_page" in refused.err
    assert foreign.read_bytes() == content and link.is_symlink()
