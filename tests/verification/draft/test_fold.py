"""Folding removes typography and nothing that is said."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.verification.draft.fold import fold

SAME = [
    ("“Don’t”", '"Don\'t"'),
    ("«a» ‹b› „c“", "\"a\" 'b' 'c'"),
    ("re‑sync 5–10 – x — y—z", "re-sync 5-10 - x -- y - z"),
    ("wait … here", "wait ... here"),
    ("wait . . . here", "wait ... here"),
    ("a\u00a0b\u2009c\r\n d\u2028e", "a b c d e"),
    ("zero\u200bwidth so\u00adft\ufeff", "zerowidth soft"),
    (unicodedata.normalize("NFD", "naïve café"), "naïve café"),
    ("ﬁle Ⅳ ｆｕｌｌ １２ №", "file IV full 12 No"),
    ("**Never** _ever_ `x` *a b*", "Never ever x a b"),
    ("**a *b* c**", "a b c"),
    ("[the guide](docs/a.md) says", "the guide says"),
    ("a\n> b", "a b"),
    ("1½ and ½", "1 1/2 and 1/2"),
    ("漢字\n漢字", "漢字漢字"),
    ("5 ㎎ ™", "5 mg TM"),
]
DIFFERENT = [
    ("10²", "102"),
    ("x₂", "x2"),
    ("①", "1"),
    ("1½", "11/2"),
    ("½5", "1/25"),
    ("⒈5", "1.5"),
    ("㎡", "m2"),
    ("2*3*4", "234"),
    ("~~old~~", "old"),
    ("5'", '5"'),
    ("a\n> 5", "a 5"),
    ("--force", "-force"),
    ("5–-10", "5-10"),
    ("5 - -3", "5 - 3"),
    ("5- -3", "5-3"),
    ("\u202e51", "51"),
    ("аdmin", "admin"),
    ("US", "us"),
    ("__init__", "init"),
    ("snake_case_name", "snakecasename"),
    ("a[i](x)", "ai"),
    ("résumé", "resume"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_typography_is_folded(first: str, second: str) -> None:
    assert fold(first).text == fold(second).text


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_what_says_something_else_stays_different(first: str, second: str) -> None:
    assert fold(first).text != fold(second).text


def test_a_word_that_a_line_break_divides() -> None:
    assert fold("an exam-\nple of well-\nknown", joins_lines=True).text == "an example of wellknown"
    assert fold("an exam-\nple of well-\nknown").text == "an exam-ple of well-known"
    assert fold("5-\n10", joins_lines=True).text == "5-10"


TEXTS = st.text(max_size=40) | st.lists(
    st.sampled_from(
        [
            *(text for pair in SAME + DIFFERENT for text in pair),
            *"*_`->.[]()\"' \n5½²e\u0301\u0303ᄀ\u1161ㄱㅏｶﾞ–—…´",
        ]
    ),
    max_size=12,
).map("".join)


@given(TEXTS, st.booleans())
def test_each_range_has_an_origin(text: str, joins_lines: bool) -> None:
    folded = fold(text, joins_lines=joins_lines)
    assert len(folded.text) == len(folded.starts) == len(folded.ends)
    assert list(folded.starts) == sorted(folded.starts)
    assert list(folded.ends) == sorted(folded.ends)
    for start, end in zip(folded.starts, folded.ends, strict=True):
        assert 0 <= start < end <= len(text)


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    folded = fold(text).text
    assert fold(folded).text == folded


@given(TEXTS)
def test_canonical_forms_are_one(text: str) -> None:
    assert (
        fold(unicodedata.normalize("NFD", text)).text
        == fold(unicodedata.normalize("NFC", text)).text
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "piece",
    ["*", "_a ", "[", "[a](", "`", "-", " ", "> ", "\u0301", "½", "*a", "__a", "**a* "],
)
def test_time_is_linear(piece: str) -> None:
    fold((piece * 200_000)[:200_000])
