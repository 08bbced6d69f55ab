"""Whether the words of a sentence stand together in the evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.verification import Finding
from rolebundle.verification.draft.coverage import WINDOW, best_match, check_coverage
from rolebundle.verification.draft.parse import parse_draft
from support.values import passage

ROTATION = passage(
    "rotation",
    "Tokens rotate every thirty days. A lost laptop is reported to the security desk. "
    "The desk revokes its tokens within one hour.",
    title="Access",
)
KITCHEN = passage(
    "kitchen", "The kitchen closes at nine. Bread is baked in the morning.", title="House"
)


def check(draft: str, *passages_numbers: int) -> list[Finding]:
    passages = [ROTATION, KITCHEN]
    cited = {0: [passages[number] for number in passages_numbers]} if passages_numbers else {}
    return check_coverage(parse_draft(draft), passages, cited)


@pytest.mark.parametrize(
    "draft",
    [
        "Tokens rotate every thirty days.",
        "A lost laptop must be reported to the security desk [1].",
        "The security desk revokes the tokens of lost laptops within one hour.",
    ],
)
def test_a_sentence_with_the_words_of_the_evidence_is_covered(draft: str) -> None:
    (finding,) = check(draft)
    assert (finding.code, finding.fails, finding.chunk_id) == ("covered", False, "rotation")
    assert finding.locator == "a.md:1-2"
    assert finding.true_text


@pytest.mark.parametrize(
    "draft",
    [
        "The quarterly revenue of the northern region exceeded all forecasts.",
        "Employees may work from any country for three months.",
        "Passwords expire annually and contractors receive badges.",
    ],
)
def test_a_sentence_without_words_of_the_evidence_fails(draft: str) -> None:
    (finding,) = check(draft)
    assert (finding.code, finding.fails) == ("uncovered", True)
    assert finding.remedy


def test_a_covered_sentence_with_few_of_its_words_has_a_remedy() -> None:
    (finding,) = check("Wombats rotate pineapples every Christmas.")
    assert (finding.code, finding.fails) == ("covered", False)
    assert finding.note == (
        "40% of its content words stand together there; missing, among others: Wombats, "
        "pineapples, Christmas"
    )
    assert finding.remedy
    (finding,) = check("Tokens rotate every thirty pineapples.")
    assert (finding.code, finding.remedy) == ("covered", None)


def test_an_uncovered_sentence_names_the_passage_only_if_it_is_near() -> None:
    (near,) = check("Laptops of 47 visitors are reported to security.")
    assert (near.code, near.chunk_id) == ("uncovered", "rotation")
    (far,) = check("The 47 wombats eat pineapples in the morning.")
    assert (far.code, far.chunk_id, far.true_text) == ("uncovered", None, None)
    assert far.note == "no passage says this; missing, among others: 47, wombats, eat, pineapples"


def test_nothing_is_ever_called_supported() -> None:
    (finding,) = check("Tokens do not rotate every thirty days.")
    assert finding.code == "covered"


def test_a_cited_passage_is_preferred_and_another_one_is_named_if_it_does_not_cover() -> None:
    (cited,) = check("Bread is baked in the morning [2].", 1)
    (wrong,) = check("Bread is baked in the morning [1].", 0)
    assert cited.chunk_id == wrong.chunk_id == "kitchen"


def test_words_count_only_if_they_stand_together() -> None:
    filler = " ".join(f"Filler about topic number {n} goes on." for n in range(9))
    near = passage("near", "Wombats dig tunnels. They like carrots.")
    far = passage("far", f"Wombats dig. {filler} Tunnels like carrots.")
    sentence = "Wombats dig tunnels and like carrots"
    together, apart = best_match(sentence, "en", [near]), best_match(sentence, "en", [far])
    assert together
    assert apart
    assert together.features.coverage == 1
    assert apart.features.coverage < 1
    assert together.score > apart.score
    assert near.content.startswith(together.window.removeprefix("T "))


def test_a_missing_figure_lowers_the_score() -> None:
    true = best_match("The kitchen closes at 9.", "en", [KITCHEN])
    false = best_match("The kitchen closes at 23.", "en", [KITCHEN])
    assert true
    assert false
    assert true.score > false.score


def test_headings_questions_and_code_are_not_checked() -> None:
    assert check("# Revenue of the north\n\n```\nfoo bar\n```\n\nWho reports revenue?") == []


def test_without_evidence_nothing_is_covered() -> None:
    draft = parse_draft("Tokens rotate every thirty days.")
    assert [finding.code for finding in check_coverage(draft, [], {})] == ["uncovered"]


@pytest.mark.parametrize(
    ("evidence", "covered", "uncovered"),
    [
        (
            "Die Schlüssel werden alle dreißig Tage erneuert, und das ist nicht verhandelbar.",
            "Der Schlüssel wird alle dreißig Tage erneuert.",
            "Die Umsätze der nördlichen Region waren höher als erwartet.",
        ),
        (
            "Ключи меняются каждые тридцать дней, и это обязательно.",
            "Ключ меняется каждые тридцать дней.",
            "Выручка северного региона превысила все прогнозы.",
        ),
        (
            "密钥每三十天轮换一次。丢失的笔记本电脑须报告。",
            "密钥每三十天轮换一次。",
            "北部地区的季度收入超出预期。",
        ),
    ],
)
def test_other_languages_are_compared_by_their_word_forms(
    evidence: str, covered: str, uncovered: str
) -> None:
    source = passage("c1", evidence, title="")
    for draft, code in ((covered, "covered"), (uncovered, "uncovered")):
        findings = check_coverage(parse_draft(draft), [source], {})
        assert [finding.code for finding in findings] == [code]


def test_a_script_without_word_forms_is_not_a_pass() -> None:
    draft = "המפתחות מתחלפים כל שלושים יום."
    (finding,) = check_coverage(parse_draft(draft), [passage("c1", draft)], {})
    assert (finding.code, finding.fails) == ("unchecked_language", True)


@given(
    st.lists(st.sampled_from(["Alpha beats.", "Beta runs.", "Gamma sits.", "One.\n\n"]), max_size=8)
)
def test_the_best_window_is_the_best(pieces: list[str]) -> None:
    source = passage("c1", " ".join(pieces), title="")
    match = best_match("Alpha beats beta, gamma sits and runs", "en", [source])
    assert match
    parts = [part for piece in pieces for part in [piece.strip()] if part]
    words = {"alpha": 0, "beats": 1, "beta": 2, "gamma": 3, "sits": 4, "runs": 5}
    best = max(
        (
            sum(word in " ".join(parts[first : first + WINDOW]).lower() for word in words)
            for first in range(len(parts))
        ),
        default=0,
    )
    assert match.features.coverage == best / len(words)


@given(st.text(max_size=100), st.text(max_size=100))
def test_any_text_can_be_checked(draft: str, evidence: str) -> None:
    for finding in check_coverage(parse_draft(draft), [passage("c1", evidence)], {}):
        assert finding.fails == (finding.code != "covered")
