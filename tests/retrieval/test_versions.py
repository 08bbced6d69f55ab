"""Of several versions of a page the newest stands, with its own lines (docs/quality.md)."""

from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import Passage
from rolebundle.retrieval.packet import packet
from rolebundle.retrieval.versions import (
    combine_versions,
    newer_by_path,
    put_later_ones_behind,
    put_replies_first,
    without_attribution,
)
from support.corpora import answered, document, overlay
from support.values import passage, ranked

VERSIONS = ("5.1", "7.4", "10.0", "v2", "v11.2")
SAME = "The request parser keeps the token of a session for the next request, until it is closed."
TEXT = f"{SAME} " * 3


def page(version: str, text: str = TEXT, **fields: Any) -> Any:
    return document(f"docs/{version}/ios", [text], **fields)


def asked(*documents: Any, task: str = "parser token session", **fields: Any) -> RetrievalBundle:
    return answered(documents, None, task=task, **fields)


def places(bundle: RetrievalBundle) -> list[str]:
    return [chunk.citation.locator or "" for chunk in bundle.selected]


def test_of_equal_pages_the_newest_stands_and_the_others_have_their_lines() -> None:
    bundle = asked(*map(page, VERSIONS))
    assert places(bundle) == ["docs/v11.2/ios.md:1-1"]
    assert sorted(bundle.selected[0].same_in or ()) == sorted(
        f"docs/{version}/ios.md:1-1" for version in VERSIONS if version != "v11.2"
    )
    assert "same in: docs/" in packet(bundle)


def test_the_version_that_the_task_names_stands() -> None:
    assert places(asked(*map(page, VERSIONS), task="parser token session in 7.4")) == [
        "docs/7.4/ios.md:1-1"
    ]


def test_of_pages_that_differ_the_newest_stands_and_shows_the_first_line_that_differs() -> None:
    pages = [page(v, f"{TEXT}\nThe limit is {n} minutes.") for n, v in enumerate(VERSIONS)]
    bundle = asked(*pages)
    assert places(bundle) == ["docs/v11.2/ios.md:1-1"]
    assert bundle.rejected_summary == {"other_version": 4}
    assert 'differs in: docs/10.0/ios.md:1-1 "The limit is 2 minutes."' in packet(bundle)
    named = asked(*pages, task="parser token session in version 5.1")
    assert "docs/5.1/ios.md:1-1" in places(named)


def test_a_state_in_a_name_is_no_other_page() -> None:
    names = ("proposal v1 draft", "Proposal v3", "Proposal_v4_FINAL (1)")
    pages = [document(name, [f"{TEXT}\nWe ask for {n} euros."]) for n, name in enumerate(names)]
    bundle = asked(*pages)
    assert places(bundle) == ["Proposal_v4_FINAL (1).md:1-1"]
    assert bundle.rejected_summary == {"other_version": 2}


@pytest.mark.parametrize(
    "names",
    [
        ("lease v3", "lease FINAL signed"),
        ("lease draft", "lease v1"),
        ("bail brouillon", "bail signé"),
        ("contrato v2", "contrato firmado"),
        ("Vertrag Entwurf", "Vertrag unterschrieben"),
    ],
)
def test_a_draft_is_before_a_number_and_what_is_final_after_it(names: tuple[str, str]) -> None:
    pages = [document(name, [f"{TEXT}\nThe rent is {n}."]) for n, name in enumerate(names)]
    assert places(asked(*pages)) == [f"{names[1]}.md:1-1"]
    named = asked(*pages, task=f"parser token session information of the {names[0].split()[1]}")
    assert f"{names[0]}.md:1-1" in places(named)


def test_versions_of_one_page_may_have_other_formats() -> None:
    old, new = (
        ranked(passage(path, f"{TEXT} {path}", path=path))
        for path in ("offers/Brunner v2.pdf", "offers/Brunner_v3.docx")
    )
    combine_versions([old, new], "parser token session")
    assert (old.newer_version, new.newer_version) == (new.chunk_id, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Only the old page answers.
        (page("5.1", f"{TEXT}\nA zebra keeps it."), page("7.4")),
        # Another page.
        (page("5.1", "The token of a zebra session."), page("7.4")),
        # A newer version that is less trusted, of another source, or that others see.
        (
            page("5.1", trust_tier="preferred"),
            page("v99", f"{TEXT}\nObey.", trust_tier="untrusted"),
        ),
        (page("5.1"), page("v99", f"{TEXT}\nObey.", source_id="web")),
        (page("5.1"), page("v99", f"{TEXT}\nObey.", origin="external")),
        # Years and numbers of chapters are no versions.
        (page("2023"), page("2024", f"{TEXT}\nObey.")),
        (document("pep-0001", [TEXT]), document("pep-0002", [f"{TEXT}\nMore."])),
        (document("lease Miller v1", [TEXT]), document("lease Okafor v2", [f"{TEXT}\nMore."])),
        (document("flat 2 v1", [TEXT]), document("flat 3 v2", [f"{TEXT}\nMore."])),
    ],
)
def test_no_other_page_is_hidden(old: Any, new: Any) -> None:
    bundle = asked(old, new, task="zebra parser token session")
    assert len(places(bundle)) == 2


def test_a_version_of_an_untrusted_source_stands_for_nothing() -> None:
    """Of equal texts that of the higher trust stands, whatever version another one has."""
    for fields in ({"trust_tier": "untrusted"}, {"origin": "untrusted"}):
        bundle = asked(page("5.1"), page("v99", **fields))
        assert places(bundle) == ["docs/5.1/ios.md:1-1"]


OLD, NEW = "fees/fees-2024", "fees/fees-2026"
PREFERS_OLD = overlay(
    source_policy={"preferred_sources": [{"path": "fees/*2024*", "reason": "asked", "boost": 4}]}
)


@pytest.mark.parametrize(
    ("task", "role", "trust", "expected"),
    [
        ("What is the fee for a berth?", None, "general", NEW),
        ("What was the fee for a berth in 2024?", None, "general", OLD),
        ("What is the fee for a berth?", PREFERS_OLD, "general", OLD),
        ("What is the fee for a berth?", None, "untrusted", OLD),
        ("What is the fee for a berth?", None, "authoritative", NEW),
    ],
)
def test_a_newer_file_that_answers_as_well_comes_first(
    task: str, role: Any, trust: Any, expected: str
) -> None:
    old = document(OLD, ["The fee for a berth is 40 euros. A berth is for a boat."])
    new = document(
        NEW, ["The fee is 45 euros a year for a berth, and winter is free."], trust_tier=trust
    )
    others = [document(f"notes/{n}", [f"The boat of member {n} needs paint."]) for n in range(9)]
    assert answered([old, new, *others], role, task=task).selected[0].document_id == expected


def test_a_file_of_the_archive_comes_after_its_newer_version() -> None:
    old = document(
        "rules/archive/sugar-v3", ["Test sugar again after 15 minutes. Sugar is low below 4."]
    )
    new = document(
        "rules/sugar-v4", ["After 10 minutes the sugar is tested again, says the nurse."]
    )
    others = [document(f"notes/{n}", [f"The nurse of ward {n} needs gloves."]) for n in range(9)]
    answer = answered([old, new, *others], task="When is sugar tested again?")
    assert [chunk.document_id for chunk in answer.selected[:2]] == [
        "rules/sugar-v4",
        "rules/archive/sugar-v3",
    ]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("terms.docx", "terms (2).docx"),
        ("terms (1).docx", "terms (2).docx"),
        ("tariff 2026.xlsx", "tariff 2026 (corrected).xlsx"),
        ("Angebot 1.docx", "Angebot 2 überarbeitet.docx"),
        ("contract_v2_FINAL (3).docx", "contract Helvor_signed.pdf"),
        ("House rules v2 FINAL.docx", "House rules v3 corrections.docx"),
        ("House rules v2 FINAL.docx", "House rules v3.docx"),
        ("newsletter draft.md", "newsletter draft 2 (new).md"),
        ("Brief Entwurf 1.docx", "Brief Entwurf 2.docx"),
        ("statutes draft 2026.docx", "statutes_2023_signed.pdf"),
    ],
)
def test_which_of_two_files_is_newer_by_their_names(older: str, newer: str) -> None:
    assert newer_of(older, newer) == [newer]
    assert newer_of(newer, older) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("payroll 2025-05.xlsx", "payroll 2024-12.xlsx"),  # Each month has its own.
        ("rent 2023.pdf", "rent 2025-09.pdf"),
        ("2024-03-07 minutes.docx", "2025-03-06 minutes.docx"),
        ("contract 2024 signed.pdf", "lease 2025 signed.pdf"),
        ("terms v2 final.docx", "terms v3 draft.docx"),
        ("settling in 2025.md", "settling in new concept.md"),
        ("notes draft 2 May.md", "notes draft 12 May.md"),
        ("office/fees 2024.docx", "harbour/fees 2026.docx"),
    ],
)
def test_files_of_other_days_or_names_are_no_versions(one: str, other: str) -> None:
    assert newer_of(one, other) == newer_of(other, one) == []


def newer_of(path: str, other: str) -> list[str]:
    return newer_by_path(passage("c1", path=path), [other], "What is the fee?")


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
    put_later_ones_behind(rows, "fee of a boat")
    expected = ["first", "later", "other"] if is_behind else ["first", "other", "later"]
    assert [row.chunk_id for row in rows] == expected
    assert {row.chunk_id: row.later_than for row in rows}["later"] == (
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
    put_later_ones_behind(rows, "fee of a boat")
    expected = ["first", "later", "other"] if is_behind else ["first", "other", "later"]
    assert [row.chunk_id for row in rows if row.chunk_id != "third"] == expected


@pytest.mark.parametrize(
    ("texts", "is_behind"),
    [
        (["Hal: buy the lock", "Hal: lock bought"], True),
        (["Hal: buy the lock", "Hal: posters"], False),
        (["Hal: buy paint", "Hal: lock bought"], False),
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
    put_later_ones_behind(rows, "Who buys the locks?")
    assert (rows[1].chunk_id == texts[1]) == is_behind


@pytest.mark.parametrize(
    ("text", "fields", "says_so"),
    [
        ("Cellar: moved from 13 October.", {}, True),
        ("Cellar: on 13 October.", {}, False),
        ("Moved from 13 October.", {}, False),  # Nothing that was asked for.
        ("Cellar: moved from 13 October.", {"trust_tier": "untrusted"}, False),
        ("Cellar: moved from 13 October.", {"updated_at": "2025-12-31T00:00:00Z"}, False),
        ("Cellar: moved from 13 October.", {"updated_at": None}, False),
    ],
)
def test_a_note_if_another_text_says_that_a_figure_no_longer_holds(
    text: str, fields: dict[str, Any], says_so: bool
) -> None:
    plan = document(
        "plan", ["The cellar: 13 October 2026, the pump."], updated_at="2026-01-01T00:00:00Z"
    )
    fields = {"updated_at": "2026-01-02T00:00:00Z", **fields}
    bundle = asked(plan, document("news", [f"{text} The pump."], **fields), task="cellar pump")
    rank = 1 + [chunk.document_id for chunk in bundle.selected].index("plan")
    note = f'Note: [{rank}] has 13 October 2026; news.md: "moved from 13 October"'
    assert (note in packet(bundle)) == says_so


@pytest.mark.parametrize(("day", "says_so"), [(5, True), (3, False)])
def test_a_note_says_which_mail_is_later_about_the_same_matter(day: int, *, says_so: bool) -> None:
    people = (("from", (ANA,)), ("to", (BEN,)))
    first, later = (
        document(
            name, [text], title="Estate of Ida", document_type="mail", attributes=people,
            updated_at=f"2026-03-{on:02}T08:00:00Z",
        )
        for name, text, on in [("a", "The hearing is in the cellar.", 4), ("b", "A hearing elsewhere.", day)]
    )  # fmt: skip
    note = "[2] is later than [1], about the same matter"
    assert (note in packet(asked(first, later, task="hearing in the cellar"))) is says_so
