"""Raised and lowered characters never join the text that they follow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from rolebundle.ingest.readers.mathml import mathml_text
from rolebundle.ingest.readers.notation import (
    Script,
    chinese_number,
    formula,
    fraction,
    joined_scripts,
    list_number,
    marked,
    raised,
    root,
    ruby,
    written,
)

UP: Script = "raised"
DOWN: Script = "lowered"


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([("2", ""), ("10", UP)], "2^10"),
        ([("10", ""), ("-5", UP)], "10^-5"),
        ([("x", ""), ("n+1", UP)], "x^(n+1)"),
        ([("5 m", ""), ("2", UP)], "5 m^2"),
        ([("1987", ""), ("3", UP)], "1987[3]"),
        ([("harbour", ""), ("3", UP), (".", "")], "harbour[3]."),
        ([("1", ""), ("1", UP), ("/", ""), ("2", DOWN)], "1 1/2"),
        ([("1", ""), ("s", UP), ("t", UP)], "1st"),
        ([("Na", ""), ("+", UP), (" of Acme", ""), ("®", UP)], "Na^+ of Acme®"),
        ([("H", ""), ("2", DOWN), ("O", "")], "H_2O"),
        ([("log", ""), ("2", DOWN), ("64", "")], "log_2 64"),
        ([("x", ""), ("1", DOWN), ("2", UP)], "x_1^2"),
        ([("96", ""), ("3)", UP)], "96[3]"),
        ([("x", ""), ("1", DOWN), (" + y", ""), ("2", UP)], "x_1 + y^2"),
    ],
)
def test_scripts(runs, text):
    assert joined_scripts(runs) == text


def test_other_signs():
    assert raised("1", "1987", is_note=True) == "[1]"
    assert raised("11", "", "And it came") == "11 "  # The number of a verse.
    assert fraction("1", "2") == "1/2"
    assert fraction("a+b", "2") == "(a+b)/2"
    assert root("2") == "√(2)"
    assert ruby("東京", "（とうきょう）") == "東京 (とうきょう)"


@given(st.text("0123456789", min_size=1), st.text("0123456789", min_size=1))
def test_a_raised_number_never_continues_a_number(base, exponent):
    assert base + exponent not in joined_scripts([(base, ""), (exponent, UP)])
    assert base + exponent not in joined_scripts([(base, ""), (exponent, DOWN)])


def test_marked_texts_are_written_when_their_line_is_complete():
    line = f"2{marked('1', UP)}{marked('0', UP)} H{marked('2', DOWN)}O"
    assert written(line) == "2^10 H_2O"
    assert written("plain") == "plain"
    assert written(f"2{formula('1/2')}{formula('x')}, ({formula('y')})") == "2 1/2 x, (y)"


def test_numbers_of_lists():
    def numbers(form: str, *values: int) -> list[str]:
        return [list_number(value, form) for value in values]

    assert numbers("1", 0, 1, 12) == ["0", "1", "12"]
    assert numbers("01", 1, 12) == ["01", "12"]
    assert numbers("a", 1, 26, 27, 52, 703) == ["a", "z", "aa", "az", "aaa"]
    assert numbers("AA", 1, 27, 54) == ["A", "AA", "BBB"]
    assert numbers("i", 4, 9, 14, 1994) == ["iv", "ix", "xiv", "mcmxciv"]
    assert numbers("1st", 1, 12, 22, 113) == ["1st", "12th", "22nd", "113th"]
    assert numbers("One", 4, 20, 21, 130) == ["Four", "Twenty", "Twenty-one", "130"]
    assert numbers("①", 2, 20, 21) == ["②", "⑳", "21"]
    assert numbers("А", 1, 30) == ["А", "АА"]
    assert numbers("*", 1, 4, 5) == ["*", "§", "**"]
    assert numbers("α", 1, 24, 25) == ["α", "ω", "αα"]
    assert numbers("Ա", 3, 12, 100) == ["Գ", "ԺԲ", "100"]
    assert numbers("א", 9, 15, 16, 21) == ["ט", "טו", "טז", "כא"]
    assert numbers("ა", 1, 33) == ["ა", "ლგ"]
    assert numbers("१", 2, 10) == ["२", "१०"]
    assert numbers("一", 3, 10, 21) == ["三", "十", "二十一"]
    assert [*map(chinese_number, (0, 12345, 1001))] == ["〇", "一万二千三百四十五", "一千〇一"]


def sup(base: str, exponent: str) -> str:
    return f"<msup>{base}{exponent}</msup>"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (sup("<mn>10</mn>", "<mrow><mo>-</mo><mn>5</mn></mrow>"), "10^-5"),
        ("<mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac><mi>x</mi>", "2 1/2 x"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>", "(a+b)/2"),
        ("<mo>(</mo><mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac><mo>)</mo>", "(n; k)"),
        ("<msqrt><mn>2</mn></msqrt><mroot><mi>x</mi><mn>3</mn></mroot>", "√(2)√[3](x)"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup><mi>y</mi>", "x_1^2 y"),
        (sup("<mi>f</mi>", "<mo>′</mo>"), "f′"),
        ("<munder><mi>lim</mi><mrow><mi>n</mi><mo>→</mo><mi>∞</mi></mrow></munder>", "lim_(n→∞)"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", "x¯"),
        ("<mfenced open='['><mi>a</mi><mi>b</mi></mfenced>", "[a,b)"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr/></mtable>", "1 2; "),
        ("<semantics><mi>a</mi><annotation>b</annotation></semantics>", "a"),
        ("<mi>sin</mi><mo>\u2061</mo><mi>x</mi><mphantom><mn>9</mn></mphantom>", "sin x"),
    ],
)
def test_formulas(formula, text):
    for namespace in ("", " xmlns='http://www.w3.org/1998/Math/MathML'"):
        element = etree.fromstring(f"<math{namespace}>{formula}</math>")
        assert mathml_text(element) == text.strip()
