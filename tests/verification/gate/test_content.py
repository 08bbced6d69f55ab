"""What is substance, what is empty, and what is no result."""

from __future__ import annotations

import unicodedata
import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.verification.gate_files import content_of
from support.amounts import lengths, linear_time

NAMES = ("a.md", "a.rst", "a.txt", "a.js", "a.py", "a.yaml", "a.html", "a.po", "Makefile", "a.xyz")
_texts = st.text(st.sampled_from("abß é#*-<>|`:[]0 \n\t"), max_size=60)


def substance(name: str, text: str | bytes) -> str:
    return content_of(name, text.encode() if isinstance(text, str) else text).substance


@given(st.sampled_from(NAMES), _texts, st.integers(0, 60))
def test_what_nobody_sees_is_no_substance(name: str, text: str, at: int) -> None:
    before = substance(name, text)
    assert substance(name, text.replace("\n", "\r\n")) == before
    assert substance(name, text.replace("\n", "\n\n") + "\n") == before
    assert substance(name, text[:at] + "\u200b" + text[at:]) == before
    assert substance(name, unicodedata.normalize("NFD", text)) == before
    assert substance(name, b"\xef\xbb\xbf" + text.encode()) == before


@given(st.sampled_from(NAMES), st.lists(st.from_regex("[a-z]{2,6}", fullmatch=True), min_size=4))
def test_another_word_is_substance(name: str, words: list[str]) -> None:
    text = "\n".join(words)
    assert substance(name, text) != substance(name, text.replace(words[0], "figure", 1))


@given(st.sampled_from([*NAMES, "a.json", "a.csv", "a.zip", "a.png"]), st.binary(max_size=300))
def test_every_content_is_judged(name: str, data: bytes) -> None:
    content = content_of(name, data)
    assert content.substance or not content.body
    assert len(content.wrong_kind) < 200


def _archive(members: dict[str, str]) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return data.getvalue()


def test_an_archive_is_its_members() -> None:
    one = _archive({"a.txt": "a", "b.txt": "b"})
    assert substance("a.zip", one) == substance("a.zip", _archive({"b.txt": "b", "a.txt": "a"}))
    assert substance("a.zip", one) != substance("a.zip", _archive({"a.txt": "a"}))
    assert not substance("a.zip", _archive({"a.txt": "", "folder/": ""}))
    assert content_of("a.zip", one[:40]).wrong_kind


RESULTS = [
    "42", "Yes.", "v3.0.1", "Failed tests: 0. Passed: 14.", "Error rate: 0.2% (was 1.4%).",
    "Error handling was moved to the edge.", "Not found in 2019; first seen in 2020.",
    "Errors are handled: the server retries twice.", "The report was not changed.",
    "Todo app: a list of items", "We ask users to insert the card here, and then to wait.",
    "See [Add a user](users.md), and press <Enter>.", "Killed 3 processes.",
    "**ERROR 12: no date.** Write the date.\n\n**fatal: locked.** Wait.\n\nThen go on.\n",
]  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_what_is_a_result(text: str) -> None:
    content = content_of("a.md", text.encode())
    assert (content.error, list(content.placeholders)) == ("", [])
    assert content.substance


@lengths
@pytest.mark.parametrize(
    "unit", ["error ", "error: ", "[", "<!--", "{", "a: ", "sorry ", "<h1", "# ", "|"]
)
@pytest.mark.parametrize("name", ["a.txt", "a.py", "a.csv", "a.json"])
def test_a_text_takes_linear_time(name: str, unit: str, length: int) -> None:
    data = (unit * (length // len(unit)) + "x").encode()
    with linear_time(length):
        content_of(name, data)
