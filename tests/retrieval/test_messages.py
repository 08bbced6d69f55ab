"""Replies, later mails and sections about a matter, and quoted messages (docs/quality.md)."""

from typing import Any

import pytest

from rolebundle.contracts.documents import Passage
from rolebundle.retrieval.messages import (
    lift_later_ones_behind,
    put_doubtful_mail_behind,
    put_replies_first,
    without_attribution,
)
from rolebundle.retrieval.packet import packet
from support.corpora import answered, document
from support.values import passage, ranked


@pytest.mark.parametrize(
    ("source", "bm25", "final", "is_first"),
    [
        ("mail", None, 0.2, True),  # What is new in the mail that quotes it.
        ("other", None, 0.2, False),
        ("other", None, 0.4, True),
        ("other", 0.1, 0.2, True),
    ],
)
def test_a_reply_comes_before_the_mail_that_it_quotes(
    source: str, bm25: float | None, final: float, is_first: bool
) -> None:
    fields = {"document_id": source}
    reply = ranked(passage("reply", **fields), final, bm25=bm25)
    copy = ranked(passage("quote", anchor="quoted 1", **fields), 0.5)
    quote = ranked(passage("mail", document_id="mail", anchor=""), 0.5)
    rows = [copy, reply] if source == "mail" else [quote, copy, reply]
    copy.duplicate_of = None if source == "mail" else "mail"
    put_replies_first(rows)
    assert (rows[0] is reply) == is_first


@pytest.mark.parametrize(
    ("kind", "origin", "final", "is_first"),
    [
        ("mail", "untrusted", 0.5, False),
        ("mail", "untrusted", 0.4, True),
        ("mail", "external", 0.5, True),
        ("page", "untrusted", 0.5, True),
    ],
)
def test_an_untrusted_mail_is_not_above_what_answers_half_as_well(
    kind: str, origin: str, final: float, is_first: bool
) -> None:
    advert = ranked(passage("advert", document_type=kind, origin=origin), 0.9)
    rows = [advert, ranked(passage("own"), final)]
    put_doubtful_mail_behind(rows)
    assert (rows[0] is advert) == is_first


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("On 3 Mar 2026 Cy wrote:\nThe rent is 500.", "The rent is 500."),
        ("Am 3.3.2026 um 10:00, Ann Ek\nschrieb:\nDie Miete.", "Die Miete."),
        ("Von: Ann\nGesendet: 3. März\nAn: Bo\n\nDie Miete.", "\nDie Miete."),
        ("The rent is 500.\nPlease send:\nthe keys", "The rent is 500.\nPlease send:\nthe keys"),
        ("Rent: 500\nStart: May\nPlace: Ulm\n", "Rent: 500\nStart: May\nPlace: Ulm\n"),
    ],
)
def test_what_stands_above_a_quoted_message_is_no_part_of_it(message: str, text: str) -> None:
    assert without_attribution(message) == text


ANA, BEN, CEM = "Ana <a@x.example>", "Ben <b@y.example>", "Cem <c@z.example>"


def mail(name: str, title: str, day: int, sender: str, receiver: str, **fields: Any) -> Passage:
    people = (("from", (sender,)), ("to", (receiver,)))
    return passage(
        name, document_id=name, title=title, updated_at=f"2026-03-{day:02}T08:00:00Z",
        document_type="mail", attributes=people, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("title", "day", "people", "fields", "is_behind"),
    [
        ("Re: FWE-2024-0317 extension", 5, (CEM, BEN), {}, True),
        ("Re: Estate of Ida - new date", 5, (ANA, BEN), {}, True),
        ("Re: Estate of Ida - new date", 5, (BEN, ANA), {}, True),
        ("Re: Estate of Ida - new date", 5, ("A. <A@x.example>", "b@y.example"), {}, True),
        ("Re: Estate of Ida - new date", 5, (CEM, BEN), {}, False),
        ("Re: Estate of Ida - new date", 3, (ANA, BEN), {}, False),  # It is older.
        ("Re: Fee of a boat", 5, (ANA, BEN), {}, False),
        ("Lunch on 2026-03-09", 5, (ANA, BEN), {}, False),
        ("Re: Estate of Ida - new date", 5, (ANA, BEN), {"source_id": "theirs"}, False),
    ],
)
def test_a_later_mail_about_the_matter_comes_directly_behind(
    title: str, day: int, people: tuple[str, str], fields: dict[str, Any], is_behind: bool
) -> None:
    subject = "Re: Estate of Ida, FWE-2024-0317, hearing 2026-03-09"
    mails = [
        (mail("first", subject, 4, ANA, BEN), 0.9),
        (mail("other", "Oil", 9, ANA, BEN), 0.8),
        (mail("later", title, day, *people, **fields), 0.3),
    ]
    rows = [ranked(one, final) for one, final in mails]
    lift_later_ones_behind(rows, "fee of a boat")
    expected = ["first", "later", "other"] if is_behind else ["first", "other", "later"]
    assert [row.chunk_id for row in rows] == expected
    assert {row.chunk_id: row.follows_up for row in rows}["later"] == (
        "first" if is_behind else None
    )


@pytest.mark.parametrize(
    ("path", "heading", "final", "fields", "is_behind"),
    [
        ("minutes/board 2026-11-09.md", "2. Fee", 0.5, {}, True),
        ("minutes/board 2026-11-09.md", "2. Cars", 0.8, {}, False),
        ("minutes/board 2026-11-09.md", "", 0.8, {}, False),
        ("minutes/board 2026-11-09.md", "2. Fee", 0.3, {}, False),
        ("minutes/board 2026-05-09.md", "2. Fee", 0.5, {}, False),  # It is older.
        ("minutes/garden 2026-11-09.md", "2. Fee", 0.5, {}, False),
        ("other/board 2026-11-09.md", "2. Fee", 0.5, {}, False),
        ("minutes/board 2026-11-09.md", "2. Fee", 0.5, {"source_id": "theirs"}, False),
    ],
)
def test_later_minutes_of_a_series_come_directly_behind(
    path: str, heading: str, final: float, fields: dict[str, Any], is_behind: bool
) -> None:
    rows = [
        ranked(passage("first", path="minutes/board 2026-09-21.md", headings=("1. Fee",)), 0.9),
        ranked(passage("other", path="fees.md"), 0.8),
        ranked(passage("later", path=path, headings=(heading,), **fields), final),
        ranked(passage("third", path="minutes/board 2026-07-20.md"), 0.1),
    ]
    lift_later_ones_behind(rows, "fee of a boat")
    expected = ["first", "later", "other"] if is_behind else ["first", "other", "later"]
    assert [row.chunk_id for row in rows if row.chunk_id != "third"] == expected


@pytest.mark.parametrize(
    ("texts", "is_behind"),
    [
        (["Hal: buy the lock", "Hal: lock bought"], True),
        (["Hal: buy the lock", "Hal: posters"], False),
        (["Hal: order paint", "Hal: lock bought"], False),
    ],
)
def test_sections_that_all_files_of_a_series_have_need_a_word_of_the_task(
    texts: list[str], is_behind: bool
) -> None:
    rows = [
        ranked(passage(text, text, path=f"board 2026-0{month}-21.md", headings=("Actions",)), final)
        for month, text, final in [(5, texts[0], 0.9), (8, texts[1], 0.6)]
    ]
    rows.insert(1, ranked(passage("other", path="locks.md"), 0.8))
    lift_later_ones_behind(rows, "Who buys the locks?")
    assert (rows[1].chunk_id == texts[1]) == is_behind


HEARING = "hearing in the cellar"


@pytest.mark.parametrize(
    ("task", "day", "says_so"),
    [(HEARING, 5, True), (HEARING, 3, False), ("Is a locked cellar upstairs?", 5, False)],
)
def test_a_note_says_which_mail_is_later_about_the_matter_that_is_asked(
    task: str, day: int, *, says_so: bool
) -> None:
    people = (("from", (ANA,)), ("to", (BEN,)))
    first, later = (
        document(
            name, [text], title="Estate of Ida", document_type="mail", attributes=people,
            updated_at=f"2026-03-{on:02}T08:00:00Z",
        )
        for name, text, on in [("a", "The hearing is in the locked cellar.", 4), ("b", "A hearing upstairs.", day)]
    )  # fmt: skip
    note = "[2] is later than [1], about the same matter"
    assert (note in packet(answered([first, later], None, task=task))) is says_so
