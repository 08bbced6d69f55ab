"""Tokens are without typography, and have all that is said."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.verification.quotes import tokens_of

SAME = [
    ("“Don’t”", '"Don\'t"'),
    ("«a» ‹b› „c“", "\"a\" 'b' 'c'"),
    ("re‑sync 5–10 – x — y—z", "re-sync 5-10 - x -- y - z"),
    ("wait … here", "wait ... here"),
    ("a\u00a0b\u2009c\r\n d\u2028e", "a b c d e"),
    ("zero\u200bwidth so\u00adft\ufeff", "zerowidth soft"),
    (unicodedata.normalize("NFD", "naïve café"), "naïve café"),
    ("ﬁle Ⅳ ｆｕｌｌ １２", "file IV full 12"),
    ("**Never** _ever_ `x` *a b*", "Never ever x a b"),
    ("[the guide](docs/a.md) says", "the guide says"),
    ("call :meth:`~a.b.run` of ``x``", "call run of x"),
    ("a\n> b", "a b"),
    ("漢字\n漢字", "漢字漢字"),
]
DIFFERENT = [
    ("10²", "102"),
    ("x₂", "x2"),
    ("①", "1"),
    ("½5", "1/25"),
    ("2*3*4", "234"),
    ("~~old~~", "old"),
    ("a\n> 5", "a 5"),
    ("\u202e51", "51"),
    ("аdmin", "admin"),
    ("US", "us"),
    ("1.5", "1. 5"),
    ("a part", "apart"),
    ("snake_case_name", "snakecasename"),
    ("résumé", "resume"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_typography_makes_no_difference(first: str, second: str) -> None:
    assert tokens_of(first).line == tokens_of(second).line


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_what_says_something_else_stays_different(first: str, second: str) -> None:
    assert tokens_of(first).line != tokens_of(second).line


def test_a_word_that_a_line_break_divides() -> None:
    text = "an exam-\nple of 5-\n10"
    assert tokens_of(text, joins_lines=True).line == " an example of 5 - 10 "
    assert tokens_of(text).line == " an exam - ple of 5 - 10 "


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
def test_each_token_has_its_range(text: str, joins_lines: bool) -> None:
    tokens = tokens_of(text, joins_lines=joins_lines)
    ends = [0, *(end for _, end in tokens.spans)]
    assert all(last <= start < end for last, (start, end) in zip(ends, tokens.spans, strict=False))
    assert all(end <= len(text) for end in ends)
    assert len(tokens.line.split()) == len(tokens.spans)
    assert all(tokens.line[start - 1] == " " for start in tokens.starts[:-1])
