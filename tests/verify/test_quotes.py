"""How a draft is read: sentences, tokens and quotes."""

import random
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.verification import Finding, FindingCode, Outcome, Span
from rolebundle.text.tokens import tokens_of
from rolebundle.verify.draft import FileNames, Sentence, parse_draft
from rolebundle.verify.findings import validated_draft
from rolebundle.verify.quotes import QuoteResult, check_quote, is_term
from support.amounts import rounds
from support.values import passage
from verify.quote_cases import Case, honest, tampered

# -- A quote passes if a passage says it, in these words and in this sense -------------------------

GUIDE = """## Uploads

Large files are uploaded in parts. A part that was not confirmed is sent again within 24 hours,
unless the user has signed out. The upload limit is 1.5 GB per file and 50 MB in the free plan.
They are “resumable” on every platform — even on a *slow* network.

We never:

- delete a note without a copy
- sell data to advertisers

Sync v2 is retired. It will not come back. The team decided in March 2024 to keep only v3.
We rejected the proposal to store notes on a second server. Only owners and editors may share a
folder. Is the second server still needed? The value "0" and "max" stay as they are.
The sync service, which runs in two regions, retries every failed request.
The cache (a file on the disk) is emptied at midnight. Until the disk is full, the app goes on.
"""
UNRELATED = "The archive keeps a note for 90 days. The Berlin office answers every mail on Monday."
EVIDENCE = (
    passage("guide#1", GUIDE, path="guide.md"),
    passage("other#1", UNRELATED, path="other.md"),
)


class Checked(NamedTuple):
    """What was found out about the only quote of a draft."""

    code: str
    fails: bool
    chunk_id: str | None
    locator: str | None
    true_text: str | None
    note: str | None


def check(
    quote: str,
    *,
    draft: str = "It says “{}”.",
    cites: Passage | None = None,
    passages: tuple[Passage, ...] = EVIDENCE,
) -> Checked:
    text = draft.replace("{}", quote)
    [(sentence, start, end)] = [(s, *q) for s in parse_draft(text, FileNames({})) for q in s.quotes]
    prose = sentence.prose()
    around = prose[: start - sentence.start], prose[end - sentence.start :]
    code, found, true_text, note = check_quote(
        text[start:end], passages, [cites] if cites else [], around
    )
    return Checked(
        code,
        code not in ("exact", "normalized"),
        found and found.chunk_id,
        found and found.locator,
        true_text,
        note,
    )


@pytest.mark.parametrize(
    ("quote", "true_text"),
    [
        ("Large files are uploaded in parts.", None),
        ("Large files are uploaded in parts", None),
        ("large files are uploaded in parts", "Large files are uploaded in parts"),
        ("Large files are uploaded in parts,", "Large files are uploaded in parts"),
        ("They are 'resumable' on every platform - even on a slow network.", "They are “resumable” on every platform — even on a *slow* network."),
        ("Sync v2 is retired. It will not come back.", None),
        ("The upload\n limit is 1.5\u00a0GB per file and 50 MB in the free plan", "The upload limit is 1.5 GB per file and 50 MB in the free plan"),
        ("It will not come back", None),
        ("0", None),
        ("[l]arge files are uploaded in parts", "Large files are uploaded in parts"),
        ("The sync service … retries every failed request.", "The sync service, which runs in two regions, retries every failed request."),
        ("The cache [...] is emptied at midnight", "The cache (a file on the disk) is emptied at midnight"),
        ("… Large files are uploaded in parts …", "Large files are uploaded in parts"),
        ("Large files are up­loaded in parts", "Large files are uploaded in parts"),
    ],
)  # fmt: skip
def test_true_quotes_pass(quote: str, true_text: str | None) -> None:
    finding = check(quote)
    assert not finding.fails, finding.note
    assert finding.code == ("normalized" if true_text else "exact")
    assert finding.true_text == (true_text or quote)
    assert (finding.chunk_id, finding.locator) == ("guide#1", EVIDENCE[0].locator)


@pytest.mark.parametrize(
    "quote",
    [
        "It will come back.",
        "The upload limit is 1.5 MB per file",
        "Lаrge files are uploaded in parts.",
        "in parts. It will not come back.",
        "Large files are uploaded in parts. The upload limit is 1.5 GB per file",
        "The archive keeps a note for 90 days. Large files are uploaded in parts.",
        # An ellipsis or an insertion that changes the sense.
        "A part … is sent again within 24 hours, unless the user has signed out",
        "Large files are uploaded in parts … unless the user has signed out",
        "Sync v2 is retired. … The team decided in March 2024",
        "Large files are uploaded in parts … The archive keeps a note for 90 days",
        "The upload limit is [about] 1.5 GB per file",
        "Large files are uploaded in parts [1]. A part",
    ],
)
def test_changed_quotes_fail(quote: str) -> None:
    finding = check(quote)
    assert finding.fails
    assert finding.code in ("near", "absent")


@pytest.mark.parametrize(
    "quote",
    [
        "confirmed is sent again within 24 hours",
        "A part that was not confirmed is sent again within 24 hours",
        "loaded in parts",
        "The upload limit is 1",
    ],
)
def test_quotes_that_are_cut_do_not_pass(quote: str) -> None:
    finding = check(quote)
    assert finding.code in ("near", "cut_short")
    assert finding.note


SENSES = """Nobody, and that is firm, may delete notes from the archive. Nobody but Ana may sign it.
The following is not allowed: posting automatically to public channels. The app stores no passwords.
Every device keeps a full copy of the notes. We rejected this because of cost.
It would be wrong to say that the server reads private notes. It has yet to be audited by a client.
Critics claim that the update broke sync for all users. I doubt the vendor will ship it on time.
The limit is 500 requests per minute. Revenue rose 5% in 2024 (not counting Norway). The vendor
promised to ship the patch in May, but it did not. There is no evidence that the cable overheats.
All employees except managers must clock in daily. The fix works on Linux and, with limits, on macOS.
The plan costs $5 to $10 per seat. Version 3.1.4 fixes it. It takes 5 days at most to restore it.

| Export to all channels | no | yes |

## Do not

1. Share the signing key with contractors.
2. Restart relay nodes at night.
"""


@pytest.mark.parametrize(
    "quote",
    [
        "the server reads private notes",
        "the update broke sync for all users",
        "the cable overheats",
        "All employees … must clock in daily",
        "The fix works on Linux and … on macOS",
    ],
)
def test_what_is_left_out_around_a_quote_is_read(quote: str) -> None:
    finding = check(quote, passages=(passage("s#1", SENSES),))
    assert (finding.code, finding.fails) == ("near", True)


def test_a_quote_of_another_passage_is_misattributed() -> None:
    finding = check("Large files are uploaded in parts", cites=EVIDENCE[1])
    assert (finding.code, finding.fails, finding.chunk_id) == ("misattributed", True, "guide#1")
    assert EVIDENCE[0].locator in (finding.note or "")
    assert not check("Large files are uploaded in parts", cites=EVIDENCE[0]).fails


def test_the_difference_is_named() -> None:
    figure = check("The archive keeps a note for 80 days.")
    assert "the passage says “90”, the quote “80”" in (figure.note or "")
    assert (figure.true_text or "").startswith("The archive keeps a note for 90 days")


def test_what_the_draft_itself_says_is_not_left_out() -> None:
    """The draft says in its own words that it is denied."""
    assert check("store notes on a second server").fails
    assert not check("store notes on a second server", draft="They refused to “{}”.").fails


CUTS = """
The battery lasts up to three years if measurements are sent every 15 minutes. Returns are free,
provided that the box is whole. The club pays the rest (up to 900 euros). While mail is read daily,
the desk is empty on Sundays. The new menu is on by default, but it can still change. Tools may be
borrowed by members. This does not apply to ladders. The office is closed in May, because the
lift is repaired. Parking is free, so come by car. The shop sells tea, coffee and cake.
The club matches what you pay, up to 90 euros. You can claim your costs. The claim is capped at the
price of a bus ticket. Boats can be sailed alone. Please be aware that the wind is strong.
A tent may be put up with the consent of the owner. The hall opens on Sunday, as a trial of a month.
Bikes are insured between 07:00 and 22:00. Lamps may go out, and never alone. A fee may be raised
once, by no more than 4 %. Talks last 5 days UNLESS a vote says otherwise. Old plates are thrown away,
even if they look clean. Der Chor zahlt die Hälfte, es sei denn, er ist verreist.
Die Werkstatt schließt im Mai, weil der Boden geschliffen wird. Le prêt est gratuit, à condition de rendre la clé.
El taller abre cada día, salvo los lunes. Il corso è gratuito, purché si paghi il libro. De zaal is
vrij, mits de vloer droog is.
Apart from the two phones, nobody could call for help. The grant is carried over (without a fee).
The crew was not experienced enough for such a storm. Most members, who pay by card, get a mail.
Kayaks may be hired together with a guide in summer. A key is lost if it is not back 10 days after the
course. Guests may swim and they have not to pay. No member may borrow money beyond the reserve. A
prize goes to the child who has no other prize. Tokens are refunded less 5 euros. If the boiler is
off, call Ken at once. While the hosts are there, guests eat for
free. Where possible leave your shoes outside. A new fob is made upon payment of a fee. Dogs are
welcome, with some exceptions. The stage, if it is dry, may be used. Rooms are let by the two wardens. We look whether
it can be done for free. In the event of a strike the fee is paid back. 4.2 For people who join in
May, the badge is valid for a year. Children may be admitted as guests of a member. The hall is a place
without nuts, while this cannot be promised. The return of a tent pays it all back minus 10 euros.
For example, boats are kept in the shed. Bikes are shipped to all members (May 2026). The office is in Boston, MA and falls under its rules.
1. The Blue Bird (4 min)
"""


@pytest.mark.parametrize(
    ("quote", "draft", "code"),
    [
        ("The battery lasts up to three years", "It says “{}”.", "cut_short"),
        ("Returns are free", "It says “{}”.", "cut_short"),
        ("The club pays the rest", "It says “{}”.", "cut_short"),
        ("The new menu is on by default", "It says “{}”.", "cut_short"),
        ("Tools may be borrowed by members", "It says “{}”.", "cut_short"),
        ("Tools may be borrowed by members.", "It says “{}”", "cut_short"),
        ("A tent may be put up", "It says “{}”.", "cut_short"),
        ("The hall opens on Sunday", "It says “{}”.", "cut_short"),
        ("Bikes are insured", "It says “{}”.", "cut_short"),
        ("Bikes are insured", "“{}”, from 07:00 to 22:00.", "exact"),
        ("Lamps may go out", "It says “{}”.", "cut_short"),
        ("A fee may be raised once", "It says “{}”.", "cut_short"),
        ("The club matches what you pay", "It says “{}”.", "cut_short"),
        ("You can claim your costs", "It says “{}”.", "cut_short"),
        ("Boats can be sailed alone.", "It says “{}”", "cut_short"),
        ("Returns are free", "“{}”, also with a box that is whole.", "cut_short"),
        ("Talks last 5 days", "It says “{}”.", "cut_short"),
        ("Der Chor zahlt die Hälfte", "Es heißt: “{}”.", "cut_short"),
        ("Le prêt est gratuit", "Il dit : “{}”.", "cut_short"),
        ("El taller abre cada día", "Dice: “{}”.", "cut_short"),
        ("Il corso è gratuito", "Dice: “{}”.", "cut_short"),
        ("De zaal is\nvrij", "Er staat: “{}”.", "cut_short"),
        ("nobody could call for help", "It says that “{}”.", "cut_short"),
        ("nobody could call for help", "Except for two phones, “{}” apart from these.", "exact"),
        ("get a mail", "Members “{}”.", "cut_short"),
        ("The grant is carried over", "It says “{}”.", "cut_short"),
        ("The crew was not experienced enough", "It says “{}”.", "cut_short"),
        ("Kayaks may be hired", "The rule: “{}” in summer.", "cut_short"),
        ("A key is lost if it is not back", "It says “{}”.", "cut_short"),
        ("Guests may swim", "It says “{}”.", "cut_short"),
        ("No member may borrow money", "It says “{}”.", "cut_short"),
        ("A\nprize goes to the child", "It says “{}”.", "cut_short"),
        ("Tokens are refunded", "It says “{}”.", "cut_short"),
        ("call Ken at once", "It says “{}”.", "cut_short"),
        ("call Ken at once", "If the boiler goes off, “{}”.", "exact"),
        ("may be used", "The stage “{}”.", "cut_short"),
        ("guests eat for\nfree", "It says “{}”.", "cut_short"),
        ("leave your shoes outside", "It says “{}”.", "cut_short"),
        ("A new fob is made", "It says “{}”.", "cut_short"),
        ("Dogs are\nwelcome", "It says “{}”.", "cut_short"),
        ("Rooms are let", "It says “{}”.", "cut_short"),
        ("can be done for free", "It “{}”.", "cut_short"),
        ("the fee is paid back", "It says “{}”.", "cut_short"),
        ("the badge is valid for a year", "It says “{}”.", "cut_short"),
        ("Children may be admitted", "It says “{}”.", "cut_short"),
        ("pays it all back", "A tent that is returned “{}”.", "cut_short"),
        ("The hall is a place\nwithout nuts", "It says “{}”.", "cut_short"),
        ("boats are kept in the shed", "It says “{}”.", "exact"),
        ("can be done for free", "They ask whether it “{}”.", "exact"),
        ("Old plates are thrown away", "It says “{}”.", "exact"),
        ("Bikes are shipped to all members", "It says “{}”.", "exact"),
        ("The office is in Boston", "It says “{}”.", "exact"),
        ("The Blue Bird", "Then comes “{}”.", "exact"),
        ("Die Werkstatt schließt im Mai", "Es heißt: “{}”.", "exact"),
        # A reason, a consequence and the rest of a list are no limits; the draft may say the limit.
        ("The office is closed in May", "It says “{}”.", "exact"),
        ("Parking is free", "It says “{}”.", "exact"),
        ("The shop sells tea", "It says “{}”.", "exact"),
        ("Returns are free", "If the box is whole, “{}”.", "exact"),
    ],
)
def test_a_quote_that_leaves_out_its_limit(quote: str, draft: str, code: str) -> None:
    passages = (passage("cuts#1", CUTS, path="cuts.md"),)
    assert check(quote, draft=draft, passages=passages).code == code


def test_a_blockquote_is_compared_without_its_marks() -> None:
    finding = check(
        "", draft="> The upload limit is\n> 1.5 GB per file and\n> 50 MB in the free plan."
    )
    assert (finding.code, finding.fails) == ("normalized", False)


# -- Generated drafts: no quote that was tampered with passes, and true quotes in other typography do
# The default sample has every kind a few times. The full counts are slow.


def results(case: Case) -> list[tuple[QuoteResult, bool]]:
    """What was found out about each quote, and whether it fails."""
    found = []
    for sentence in parse_draft(case.draft, FileNames({})):
        for start, end in sentence.quotes:
            result = check_quote(case.draft[start:end], case.passages, case.cited)
            is_own = is_term(case.draft[start:end]) and not case.cited
            found.append((result, result.code not in ("exact", "normalized") and not is_own))
    return found


def passing(cases: Iterator[Case]) -> list[Case]:
    return [case for case in cases if not any(fails for _, fails in results(case))]


def is_recognized(case: Case) -> bool:
    """Whether the quote is found and the passage's own text comes back."""
    found = results(case)
    if len(found) != 1 or found[0][1]:
        return False
    true_text = (found[0][0].true_text or "").rstrip(".")
    return " ".join(true_text.split()) == " ".join(case.true_text.split()).rstrip(".")


@rounds(120, 2_000)
def test_tampered_quotes_fail(rounds: int) -> None:
    assert len(passing(islice(tampered(random.Random(1)), rounds))) <= rounds / 1_000


@rounds(120, 2_000)
def test_true_quotes_in_other_typography_are_recognized(rounds: int) -> None:
    cases = list(islice(honest(random.Random(2)), rounds))
    assert sum(map(is_recognized, cases)) >= 0.995 * len(cases)


# -- A draft is split into sentences, quotes and citations, and no quote is overlooked -------------


def sentences(text: str) -> list[str]:
    return [sentence.text for sentence in parse_draft(text, FileNames({}))]


def content(text: str) -> list[str]:
    return [sentence.text for sentence in parse_draft(text, FileNames({})) if sentence.has_content]


def quotes(text: str) -> list[str]:
    return [text[a:b] for s in parse_draft(text, FileNames({})) for a, b in s.quotes]


def cited(text: str) -> list[tuple[int, str, str]]:
    return [
        (n, c.kind, c.target)
        for n, s in enumerate(parse_draft(text, FileNames({})))
        for c in s.citations
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Use a token, e.g. The short one.",
        "Ask Dr. Ruiz about v1.2 today.",
        "The U.S. Office has 1.5 million files.",
        'He said "It failed. We know why." today.',
        "Der Vertrag endet am 3. März um Mitternacht.",
        "We met with J. Smith and Ann B. Lee today.",
    ],
)
def test_what_does_not_end_a_sentence(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Another thing!", ["One thing.", "Another thing!"]),
        ('He said "It failed." Then he left.', ['He said "It failed."', "Then he left."]),
        ("It comes from studio B. Vinyl runs.", ["It comes from studio B.", "Vinyl runs."]),
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
    ("text", "expected"),
    [
        ('He said "a b c".', ["a b c"]),
        ("He said “a b c”.", ["a b c"]),
        ("Er sagte „a b c“.", ["a b c"]),
        ("Il dit « a b c ».", ["a b c"]),
        ("彼は「あいう」と言った。", ["あいう"]),
        ("He said 'a b c', and left.", ["a b c"]),
        ("He said 'the users' notes are gone'.", ["the users' notes are gone"]),
        ("Don't touch the users' notes, it's the '90s.", []),
        ('A 5" disk and an 8" disk.', []),
        ('"a “b” c" d', ["a “b” c"]),
        ('"He said "x" to me" and left.', ['He said "x" to me']),
        ('He said "a. B. C." [1]', ["a. B. C."]),
        ('He said "a b c [1]".', ["a b c"]),
        ('`print("a b c")`', []),
        ("\u200b'a b c' and \u200b\"d e f\"", ["a b c", "d e f"]),
        ('("a b c", guide.pdf, p. 3)', ["a b c"]),
        ("- > a b c\n  > d e\n1. > f g h", ["a b c\n  > d e", "f g h"]),
        ('> "a b c" [1]', ["a b c"]),
        ('> "a" b "c"', ['a" b "c']),
        ("> a b.\n> — Ana, [1]", ["a b."]),
        ("> A b. [1] C d. [2]", ["A b.", "C d."]),
        ("> [!NOTE]\n> a b c", []),
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
    ],
)
def test_a_missing_mark_hides_nothing(text: str, expected: list[str]) -> None:
    assert [quote.strip() for quote in quotes(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is so [1].", [(0, "number", "1")]),
        ("It is so [1, 3] or [2-4].", [(0, "number", n) for n in "13234"]),
        ("It is so [^2].", [(0, "number", "2")]),
        ("In [2024] it was, or [May 2026] (March, 2021).", []),
        ("It is so (source 9).", [(0, "number", "9")]),
        ("It is so.⁹ Then m² and 10².", [(0, "number", "9")]),
        ("It is so [Smith et al., 2021].", [(0, "work", "Smith et al., 2021")]),
        ("It is so (docs/a.md:3-9).", [(0, "locator", "docs/a.md:3-9")]),
        ("It is so [docs/a.md:3–9; b.md:4].", [(0, "locator", "docs/a.md:3-9"), (0, "locator", "b.md:4-4")]),
        ("See [the guide](docs/a.md:3-9).", [(0, "locator", "docs/a.md:3-9")]),
        ("See https://example.org/a.md:1-2 at 10:30-11:00.", []),
        ("See docs/a.md#0123456789-2 now.", [(0, "chunk_id", "docs/a.md#0123456789-2")]),
        ("See [policy#0] and PR#12.", [(0, "chunk_id", "policy#0")]),
        ("It is so.[^a]\n\n[^a]: docs/a.md:3-9", [(1, "locator", "docs/a.md:3-9")]),
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
    "\" “ ” „ « » ' ‘ ’ 「 」 [ ] ( ) [1] [2-4] . ! ? 。 : > - # | ` ``` ~~~ "
    "a.md:1-2 (a.md, p.3) [^1] [^1]: [!NOTE] |-| === --- https://a.b — a The not 5"
).split()
DRAFTS = st.lists(st.sampled_from([*PIECES, " ", " ", "\n", "\n\n", "\n> "]), max_size=40)


@given(DRAFTS.map("".join) | st.text(max_size=60))
def test_parts_lie_in_their_sentences(text: str) -> None:
    check_laws(text, parse_draft(text, FileNames({})))


# -- Tokens are without typography, and have all that is said --------------------------------------

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
    ("over ~~five~~ three", "over five three"),
    ("call :meth:`~a.b.run` of ``x``", "call run of x"),
    ("a\n> b", "a b"),
    ("isn&apos;t&nbsp;&pound;5", "isn’t £5"),
    ("see [the `web` tag][web-tag] now", "see the web tag now"),
]
DIFFERENT = [
    ("10²", "102"),
    ("x₂", "x2"),
    ("½5", "1/25"),
    ("2*3*4", "234"),
    ("a\n> 5", "a 5"),
    ("m[row][column]", "m[row][key]"),
    ("\u202e51", "51"),
    ("аdmin", "admin"),
    ("US", "us"),
    ("1.5", "1. 5"),
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


# -- The validated draft has nothing that was not in the draft, and nothing that fails -------------

TEXT = "One is true. Two is not. Three is.\n\n- Four is a lie.\n- Five is true.\n"
SENTENCES = tuple(
    Sentence(m.start(), m.end(), m[0], "prose", True) for m in re.finditer(r"[A-Z][^.]*\.", TEXT)
)


def finding(start: int, end: int, code: FindingCode = "absent", *, fails: bool = True) -> Finding:
    span = Span(start=start, end=end)
    verdict: Outcome = "failed" if fails else "clean"
    return Finding(check="quotes", code=code, verdict=verdict, fails=fails, span=span, text="")


def at(words: str, code: FindingCode = "absent") -> Finding:
    start = TEXT.index(words)
    return finding(start, start + len(words), code)


def test_marks_name_the_codes() -> None:
    marked = validated_draft(
        TEXT, SENTENCES, [at("Two is not.", "uncovered"), at("not")], redact=False
    )
    assert marked == TEXT.replace("Two is not.", "[[uncovered, absent: Two is not.]]")


spans = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, len(TEXT))).map(sorted), max_size=6
)


def is_subsequence(part: str, complete: str) -> bool:
    characters = iter(complete)
    return all(character in characters for character in part)


@given(spans)
def test_redaction_only_removes_and_removes_all_that_fails(spans: list[list[int]]) -> None:
    findings = [finding(start, end) for start, end in spans]
    redacted = validated_draft(TEXT, SENTENCES, findings, redact=True)
    if redacted is None:
        assert all(start == end for start, end in spans)
        return
    assert is_subsequence(redacted, TEXT)
    for sentence in SENTENCES:
        is_hit = any(s < sentence.end and sentence.start < e and s < e for s, e in spans)
        assert (sentence.text in redacted) == (not is_hit)


@given(spans)
def test_without_its_marks_a_marked_draft_is_the_draft(spans: list[list[int]]) -> None:
    findings = [finding(start, end) for start, end in spans]
    marked = validated_draft(TEXT, SENTENCES, findings, redact=False)
    if marked is not None:
        assert re.sub(r"\[\[absent: |\]\]", "", marked) == TEXT
