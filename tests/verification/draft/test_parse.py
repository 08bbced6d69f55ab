"""A draft is split into sentences, quotes and citations, and no quote is overlooked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.verification.draft import Sentence, parse_draft


def sentences(text: str) -> list[str]:
    return [sentence.text for sentence in parse_draft(text)]


def content(text: str) -> list[str]:
    return [sentence.text for sentence in parse_draft(text) if sentence.has_content]


def quotes(text: str) -> list[str]:
    return [text[a:b] for s in parse_draft(text) for a, b in s.quotes]


def cited(text: str) -> list[tuple[int, str, str]]:
    return [(n, c.kind, c.target) for n, s in enumerate(parse_draft(text)) for c in s.citations]


@pytest.mark.parametrize(
    "text",
    [
        "Use a token, e.g. The short one.",
        "Ask Dr. Ruiz about v1.2 today.",
        "The U.S. Office has 1.5 million files.",
        "Read www.example.org/a.B.html first.",
        'He said "It failed. We know why." today.',
        "Call `a. B. C.` twice.",
        "See No. 2 and Fig. 3 for it.",
        "Der Vertrag endet am 3. März um Mitternacht.",
    ],
)
def test_what_does_not_end_a_sentence(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Another thing!", ["One thing.", "Another thing!"]),
        ('He said "It failed." Then he left.', ['He said "It failed."', "Then he left."]),
        ("The answer is no. On 2 March it was.", ["The answer is no.", "On 2 March it was."]),
        ("It holds. [1] The next one.[2] End.", ["It holds. [1]", "The next one.[2]", "End."]),
        ("It holds. [1] says so too.", ["It holds. [1] says so too."]),
        ("一つ目です。二つ目です。", ["一つ目です。", "二つ目です。"]),
        ("- one. Two\n- three", ["one.", "Two", "three"]),
        ("| A | B |\n|---|---|\n| a. B | c |", ["| A | B |", "| a. B | c |"]),
    ],
)
def test_what_ends_a_sentence(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "# Upload limits",
        "Upload limits\n=====",
        "```\nThe limit is 5.\n```",
        "https://example.org/limits",
        "Is the limit 5 MB?",
        "The limits are these:",
        "[1] docs/guide.md:1-9",
    ],
)
def test_what_states_nothing_has_no_content(text: str) -> None:
    assert content(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "The limit is high.",
        "# The limit is 5 MB.",
        "Limit: 5",
        "```\nThe limit of an open fence is 5.",
        "Sure, and the limit of an upload is 5 MB.",
    ],
)
def test_what_states_something_has_content(text: str) -> None:
    assert content(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('He said "a b c".', ["a b c"]),
        ("He said “a b c”.", ["a b c"]),
        ("Er sagte „a b c“.", ["a b c"]),
        ("Er sagte »a b c«.", ["a b c"]),
        ("Il dit « a b c ».", ["a b c"]),
        ("Il dit ‹a b c›.", ["a b c"]),
        ("Han sa ”a b c”.", ["a b c"]),
        ("彼は「あいう」と言った。", ["あいう"]),
        ("He said 'a b c', and left.", ["a b c"]),
        ("He said ‘a b’s c’.", ["a b’s c"]),
        ("He said 'the users' notes are gone'.", ["the users' notes are gone"]),
        ("Don't touch the users' notes, it's the '90s.", []),
        ('A 5" disk and an 8" disk.', []),
        ('"a “b” c" d', ["a “b” c"]),
        ('“a "b" c” d', ['a "b" c']),
        ('"He said "x" to me" and left.', ['He said "x" to me']),
        ('He said "a. B. C." [1]', ["a. B. C."]),
        ('He said "a b c [1]".', ["a b c"]),
        ('`print("a b c")`', []),
        ('`"a b c"`', ["a b c"]),
        ("``a b c''", ["a b c"]),
        ("<q>a b c</q>", ["a b c"]),
        ("\u200b'a b c' and \u200b\"d e f\"", ["a b c", "d e f"]),
        ('<a href="a b c">d</a> <x "e f g">', ["e f g"]),
        ('("a b c", guide.pdf, p. 3)', ["a b c"]),
        ("- > a b c\n  > d e\n1. > f g h", ["a b c\n  > d e", "f g h"]),
        ("> a b\n> c\n\nd", ["a b\n> c"]),
        ('> "a b c" [1]', ["a b c"]),
        ('> "a" b "c"', ['a" b "c']),
        ("> a b.\n> — Ana, [1]", ["a b."]),
        ("> A b. [1] C d. [2]", ["A b.", "C d."]),
        ("> A b [1] c d. [2]", ["A b", "c d."]),
        ("> [!NOTE]\n> a b c", []),
        ('| "a b | c" |', ["a b", "c"]),
        ("He said “a b\n- c d” and\n- “e f”", ["a b", "c d", "e f"]),
    ],
)
def test_quotes(text: str, expected: list[str]) -> None:
    assert [quote.strip() for quote in quotes(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('He said "a b. C d', ["a b. C d"]),
        ("He said “a b. C d", ["a b. C d"]),
        ('He said a b" and left', ["He said a b"]),
        ('"a b" c d" e', ["a b", "c d"]),
        ("“a b\n\n“c d” e", ["a b", "c d"]),
    ],
)
def test_a_missing_mark_hides_nothing(text: str, expected: list[str]) -> None:
    assert [quote.strip() for quote in quotes(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is so [1].", [(0, "number", "1")]),
        ("It is so [1, 3] or [2-4].", [(0, "number", n) for n in "13234"]),
        ("It is so【2】.", [(0, "number", "2")]),
        ("It is so [^2].", [(0, "number", "2")]),
        ("It is so [Source 2].", [(0, "number", "2")]),
        ("It is so [1-900].", [(0, "number", "1-900")]),
        ("In [2024] it was, or [May 2026] (March, 2021).", []),
        ("It is so (source 9).", [(0, "number", "9")]),
        ("It is so.⁹ Then m² and 10².", [(0, "number", "9")]),
        ("It is so [Smith et al., 2021].", [(0, "work", "Smith et al., 2021")]),
        ("It is so [^note].", [(0, "work", "^note")]),
        ("It is so (docs/a.md:3-9).", [(0, "locator", "docs/a.md:3-9")]),
        ("It is so [docs/a.md:3–9; b.md:4].", [(0, "locator", "docs/a.md:3-9"), (0, "locator", "b.md:4-4")]),
        ("It is so [my notes/a b.md:3-9].", [(0, "locator", "my notes/a b.md:3-9")]),
        ("It is so, `docs/a.md#L3-L9`.", [(0, "locator", "docs/a.md:3-9")]),
        ("See [the guide](docs/a.md:3-9).", [(0, "locator", "docs/a.md:3-9")]),
        ("See [1](https://example.org/a:1-2).", [(0, "number", "1")]),
        ("See https://example.org/a.md:1-2 at 10:30-11:00.", []),
        ("See docs/a.md#0123456789-2 now.", [(0, "chunk_id", "docs/a.md#0123456789-2")]),
        ("See [policy#0] and PR#12.", [(0, "chunk_id", "policy#0")]),
        ("It is so (guide.pdf, p. 3).", [(0, "page", "guide.pdf#page=3")]),
        ("It is so (My guide [docs], pp. 3-4).", [(0, "page", "My guide [docs]#page=3"), (0, "page", "My guide [docs]#page=4")]),
        ("It is so.[^a]\n\n[^a]: docs/a.md:3-9", [(0, "locator", "docs/a.md:3-9"), (1, "locator", "docs/a.md:3-9")]),
        ("It is so.[^a]\n\n[^a]: Except on Sundays, of course.", []),
        ("As it says [2]:\n\n> a b c", [(0, "number", "2")]),
        ("```\n[1]\n```\nUse `x[1]` here.", []),
        ('"a [1] b c"', []),
    ],
)  # fmt: skip
def test_citations(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert cited(text) == expected


def check_laws(text: str, sentences: list[Sentence]) -> None:
    position = 0
    for sentence in sentences:
        assert position <= sentence.start < sentence.end
        assert sentence.text == text[sentence.start : sentence.end]
        position = sentence.end
        for start, end in sentence.quotes:
            assert sentence.start <= start < end
        for citation in sentence.citations:
            assert sentence.start <= citation.start < citation.end <= sentence.end
        assert len(sentence.prose()) == len(sentence.text)


PIECES = (
    "\" “ ” „ « » ' ‘ ’ 「 」 [ ] ( ) [1] [2-4] . ! ? 。 : > - # | ` ``` ~~~ <q> </q> "
    "a.md:1-2 (a.md, p.3) [^1] [^1]: [!NOTE] |-| === --- https://a.b — a The not 5"
).split()
DRAFTS = st.lists(st.sampled_from([*PIECES, " ", " ", "\n", "\n\n", "\n> "]), max_size=40)


@given(DRAFTS.map("".join) | st.text(max_size=60))
def test_parts_lie_in_their_sentences(text: str) -> None:
    check_laws(text, parse_draft(text))
