"""A quote passes if a passage says it, in these words and in this sense."""

import time
from typing import NamedTuple

import pytest

from rolebundle.contracts.documents import Passage
from rolebundle.verification.draft import parse_draft
from rolebundle.verification.quotes import check_quote
from support.values import passage

GUIDE = """## Uploads

Large files are uploaded in parts. A part that was not confirmed is sent again within 24 hours,
unless the user has signed out. The upload limit is 1.5 GB per file and 50 MB in the free plan.
They are “resumable” on every platform — even on a *slow* network.

We never:

- delete a note without a copy
- sell data to advertisers

Sync v2 is retired. It will not come back. The team decided in March 2024 to keep only v3.
We rejected the proposal to store notes on a second server. Only owners and editors may share a
folder. Is the second server still needed? Refunds are paid within 30 days. Except for gifts.
The sync service, which runs in two regions, retries every failed request.
The cache (a file on the disk) is emptied at midnight. If the disk is full, the app stops.
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
    [(sentence, start, end)] = [(s, *q) for s in parse_draft(text) for q in s.quotes]
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
        ("[l]arge files are uploaded in parts", "Large files are uploaded in parts"),
        ("[The files] are “resumable” on every platform", "They are “resumable” on every platform"),
        ("Large files [sic] are uploaded in parts", "Large files are uploaded in parts"),
        ("The sync service … retries every failed request.", "The sync service, which runs in two regions, retries every failed request."),
        ("The cache [...] is emptied at midnight", "The cache (a file on the disk) is emptied at midnight"),
        ("… Large files are uploaded in parts …", "Large files are uploaded in parts"),
        ("Large files are up­loaded in parts", "Large files are uploaded in parts"),
        ("Large files are up-\nloaded in parts", "Large files are uploaded in parts"),
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
        "Large files are not uploaded in parts.",
        "It will come back.",
        "The upload limit is 1.5 MB per file",
        "The upload limit is 1,5 GB per file",
        "to keep v3",
        "The Munich office answers every mail",
        "large files may be uploaded in parts",
        "Only owners or editors may share a folder",
        "Lаrge files are uploaded in parts.",
        "in parts. It will not come back.",
        "Large files are uploaded in parts. The upload limit is 1.5 GB per file",
        "The archive keeps a note for 90 days. Large files are uploaded in parts.",
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
        "delete a note without a copy",
        "sell data to advertisers",
        "store notes on a second server",
        "owners and editors may share a folder",
        "the second server still needed",
        "Refunds are paid within 30 days",
        "5 GB per file and 50 MB in the free plan",
        "the app stops",
        "loaded in parts",
        "The upload limit is 1",
    ],
)
def test_quotes_that_are_cut_fail(quote: str) -> None:
    finding = check(quote)
    assert (finding.code, finding.fails) == ("near", True)
    assert finding.note


@pytest.mark.parametrize(
    "quote",
    [
        "A part … is sent again within 24 hours, unless the user has signed out",
        "Large files are uploaded in parts … unless the user has signed out",
        "Large files … in the free plan",
        "The upload limit … in the free plan",
        "Sync v2 is retired. … The team decided in March 2024",
        "retries every failed request … The sync service",
        "The sync service … runs in two regions, retries",
        "The sync … service, which runs",
        "Large files are … files are uploaded in parts",
        "Large files are uploaded in parts … The archive keeps a note for 90 days",
        "[Small] files are uploaded in parts",
        "The upload limit is [about] 1.5 GB per file",
        "[No files] are “resumable” on every platform",
        "[The 5 files] are “resumable” on every platform",
        "Large files are uploaded in parts [1]. A part",
        "Large … files … are … uploaded",
    ],
)
def test_ellipses_and_insertions_that_change_the_sense_fail(quote: str) -> None:
    finding = check(quote)
    assert finding.fails
    assert finding.code in ("near", "absent")


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
        "may delete notes from the archive",
        "posting automatically to public channels",
        "the server reads private notes",
        "audited by a client",
        "the update broke sync for all users",
        "the vendor will ship it on time",
        "The limit is 500 requests",
        "Revenue rose 5% in 2024",
        "The vendor promised to ship the patch in May",
        "the cable overheats",
        "All employees … must clock in daily",
        "The fix works on Linux and … on macOS",
        "The plan costs $5",
        "Version 3.1",
        "Export to all channels",
        "Share the signing key with contractors.",
        "Restart relay nodes at night",
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
    """The draft states the condition in its own words."""
    assert check("the app stops").fails
    assert not check("the app stops", draft="If no space is left on the disk, “{}”.").fails
    assert check("store notes on a second server").fails
    assert not check("store notes on a second server", draft="They refused to “{}”.").fails


def test_a_pronoun_in_brackets_stands_for_a_name() -> None:
    assert not check("[It] is 1.5 GB per file and 50 MB in the free plan").fails
    assert check("[It] are “resumable” on every other platform").fails


def test_a_blockquote_is_compared_without_its_marks() -> None:
    finding = check(
        "", draft="> The upload limit is\n> 1.5 GB per file and\n> 50 MB in the free plan."
    )
    assert (finding.code, finding.fails) == ("normalized", False)


def test_without_passages_a_quote_is_absent() -> None:
    assert check("a b c d", passages=()).code == "absent"


@pytest.mark.slow
def test_many_hostile_quotes_end_soon() -> None:
    content = "a b " * 400
    quotes = "".join(f"“a b … b a … a b … {'a b ' * number}” " for number in range(1, 40))
    started = time.process_time()
    for sentence in parse_draft(quotes):
        for start, end in sentence.quotes:
            check_quote(quotes[start:end], [passage("c#1", content)], [])
    assert time.process_time() - started < 4
