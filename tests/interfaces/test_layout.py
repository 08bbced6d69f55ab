"""Columns of a terminal, colours, and characters that must not control it."""

import io

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.interfaces.layout import Style, columns, cut, harmless, has_color, spans, wrapped

texts = st.text(st.sampled_from("ab c-/用 \U0001f600é\u0301"), max_size=120)


@given(texts, st.integers(2, 40))
def test_wrapped_lines_fit_and_nothing_is_lost(text: str, width: int) -> None:
    lines = [text[start:end] for start, end in spans(text, width, break_words=True)]
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    wrapped_lines = wrapped(text, width, "  ")
    assert " ".join(wrapped_lines).split() == text.split(), "no word is broken"
    assert all(line.startswith("  ") for line in wrapped_lines)


@given(texts, st.integers(2, 40))
def test_a_cut_line_fits_and_says_so(text: str, width: int) -> None:
    line = cut(text, width)
    assert columns(line) <= width
    assert line == text or (line.endswith("…") and text.startswith(line[:-1]))


@given(st.text(st.sampled_from("a\n\t é用\x00\x1b\r\x07\x7f\x9b\u202e\u2028\u2066")))
def test_harmless_text_keeps_its_lines(text: str) -> None:
    harmless_text = harmless(text)
    assert len(harmless_text) == len(text)
    assert not any(
        character in harmless_text for character in "\x1b\r\x07\x7f\x9b\u202e\u2028\u2066"
    )
    assert harmless_text.count("\n") == text.count("\n")
    assert harmless("a\tb\n用 é \u200d") == "a\tb\n用 é \u200d"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_when_there_is_colour(
    environment: dict[str, str], on_terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert has_color(Terminal() if on_terminal else io.StringIO()) is expected
    assert not has_color(None)


def test_parts_are_painted_and_the_text_stays() -> None:
    painted = Style(color=True).parts("a token b", [(2, 7)])
    assert painted.startswith("a \x1b[")
    assert click.unstyle(painted) == "a token b"
    assert Style().parts("a token b", [(2, 7)]) == "a token b"
    assert Style()("caution", "x") == "x"
