"""Which sentences state the same thing differently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.text.disagreements import disagreement
from rolebundle.text.sentences import may_disagree, sentences
from rolebundle.text.statements import read

# Two sentences, and in what they disagree.
DISAGREE = [
    # Durations, amounts, shares, counts.
    ("Backups are kept for 30 days.", "Backups are kept for 90 days.", "30 days", "90 days"),
    ("Backups are kept for 30 days.", "Backups are retained for 6 weeks.", "30 days", "6 weeks"),
    ("The access token lasts two hours.", "The access token lasts one hour.", "two hours", "one hour"),
    ("After 30 days the copy is deleted.", "The copy is deleted after 60 days.", "30 days", "60 days"),
    ("A pass costs $75 for members.", "For members a pass costs $1,500.", "$75", "$1,500"),
    ("A pass costs 20 euros at the desk.", "A pass costs €25 at the desk.", "20 euros", "€25"),
    ("The bank pays 3.4% on deposits.", "The bank pays 4 percent on deposits.", "3.4%", "4 percent"),
    ("The lift carries eight people.", "The lift carries 12 people.", "eight people", "12 people"),
    ("The plant employs 2 million workers.", "The plant employs 3 million workers.", "2 million workers", "3 million workers"),
    ("An upload has at most 5 MB on the portal.", "An upload has at most 2 GB on the portal.", "5 MB", "2 GB"),
    ("Members get a 30-day trial of the archive.", "Members get a 14-day trial of the archive.", "30-day", "14-day"),
    ("Notice is given 10 working days ahead.", "Notice is given 5 working days ahead.", "10 working days", "5 working days"),
    ("The thesis has 40 to 60 pages of text.", "The thesis has 30-50 pages of text.", "40 to 60 pages", "30-50 pages"),
    ("The proxy listens on port 8080.", "The proxy listens on port 9090.", "8080", "9090"),
    ("The freezer stays at -18 degrees.", "The freezer stays at -20 degrees.", "-18 degrees", "-20 degrees"),
    ("The rent is due on the third day of a month.", "The rent is due on the 5th day of a month.", "third", "5th"),
    ("A candidate may repeat the exam twice.", "A candidate may repeat the exam three times.", "twice", "three times"),
    ("An item weighs 800 kilograms at the gate.", "An item weighs 650 kg at the gate.", "800 kilograms", "650 kg"),
    ("A frame holds 512 bytes of text.", "A frame holds 2 KB of text.", "512 bytes", "2 KB"),
    ("The plan costs €29 per user.", "The plan costs 35 € per user.", "€29", "35 €"),
    ("The plan costs EUR 29 per user.", "The plan costs 35 euros per user.", "EUR 29", "35 euros"),
    ("Tenants give two months' notice in writing.", "Tenants give six weeks' notice in writing.", "two months", "six weeks"),
    ("The hall seats twenty-five guests.", "The hall seats 30 guests.", "twenty-five guests", "30 guests"),
    ("The hall seats three hundred and eighty guests.", "The hall seats a hundred guests.", "three hundred and eighty guests", "a hundred guests"),
    ("A loan lasts for a week at the desk.", "A loan lasts for three weeks at the desk.", "a week", "three weeks"),
    ("A loan from the desk takes half an hour.", "A loan from the desk takes two hours.", "half an hour", "two hours"),
    ("Passwords must have at least 8 characters.", "Passwords must contain at least twelve characters.", "8 characters", "twelve characters"),
    ("The price list is updated every month.", "The price list is updated every quarter.", "every month", "every quarter"),
    ("The price list is updated weekly.", "The price list is updated daily.", "weekly", "daily"),
    ("The price list is updated every 2 years.", "The price list is updated once a year.", "2 years", "a year"),
    ("Escape routes must be 120 cm wide.", "Escape routes must have a width of 90 cm.", "120 cm", "90 cm"),
    # Bounds in other words, and versions with a bound.
    ("A message must not exceed 256 KB in the queue.", "A message in the queue must not be larger than 1 MB.", "256 KB", "1 MB"),
    ("The upload limit of the portal is 5 MB.", "The portal accepts an upload of at most 9 MB.", "5 MB", "9 MB"),
    ("The build tool requires Python 3.8 or later.", "The build tool requires Python 3.11 or newer.", "3.8", "3.11"),
    ("The build tool requires Python 3.8+.", "Python 3.10 is the minimum version required by the build tool.", "3.8", "3.10"),
    # Dates and times of day.
    ("The levy is due on 31 May.", "The levy is due on 31 July.", "31 May", "31 July"),
    ("The levy is due on May 31, 2027.", "The levy is due on 2027-06-30.", "May 31, 2027", "2027-06-30"),
    ("The meter is read in March.", "The meter is read in October.", "March", "October"),
    ("The bridge was opened in 1931.", "The bridge was opened in 1936.", "1931", "1936"),
    ("The shop closes at 18:30 on holidays.", "The shop closes at 7 pm on holidays.", "18:30", "7 pm"),
    ("The bins are emptied on Mondays.", "The bins are emptied on Thursdays.", "Mondays", "Thursdays"),
    ("The truck to Oslo leaves at 5 p.m.", "The truck to Oslo leaves at 6:30 a.m.", "5 pm", "6:30 am"),
    ("The gate of the yard closes at noon.", "The gate of the yard closes at 14:00.", "noon", "14:00"),
    # Negations and opposites.
    ("Label names are case-sensitive in queries.", "Label names are case-insensitive in queries.", "are case-sensitive in", "are case-insensitive in"),
    ("Tracing is turned on in the client.", "Tracing is turned off in the client.", "turned on in", "turned off in"),
    ("Tracing is on by default in the client.", "Tracing is disabled by default in the client.", "is on by", "is disabled by"),
    ("Cash payments are accepted.", "Cash payments are no longer accepted.", "are accepted", "are no longer accepted"),
    ("Interns may sign delivery notes.", "Interns are not allowed to sign delivery notes.", "Interns may sign", "Interns are not allowed to sign"),
    ("Pupils may use a calculator.", "A calculator must not be used by pupils.", "Pupils may use a calculator", "A calculator must not be used by pupils"),
    ("A helmet is required in the yard.", "A helmet is not required in the yard.", "is required", "is not required"),
    ("A helmet is mandatory in the yard.", "A helmet is optional in the yard.", "is mandatory in", "is optional in"),
    ("Dogs are allowed on trains.", "Dogs are forbidden on trains.", "are allowed on", "are forbidden on"),
    ("The link is encrypted by us.", "The link isn't encrypted by us.", "link is encrypted", "link isn't encrypted"),
    ("The link is encrypted by us.", "The link is unencrypted by us.", "is encrypted by", "is unencrypted by"),
    ("Water from the well is safe to drink.", "Water from the well is unsafe to drink.", "is safe to", "is unsafe to"),
    ("Overtime is always paid by the firm.", "Overtime is never paid by the firm.", "is always paid", "is never paid"),
    ("Guests must sign the book.", "Guests need not sign the book.", "Guests must sign", "Guests need not sign"),
    ("The app works without a network.", "The app does not work without a network.", "app works without", "app does not work without"),
]  # fmt: skip

AGREE = [
    # The same, in other words or units.
    ("Backups are kept for 30 days.", "Backups are kept for 30 days."),
    ("Backups are kept for thirty days.", "Backups are retained for 30 days."),
    ("Backups are kept for 3 months.", "Backups are kept for 90 days."),
    ("An upload has at most 1 GB on the portal.", "An upload has at most 1024 MB on the portal."),
    ("The levy is due on 31 May.", "The levy is due on 31 May 2027."),
    ("A pass costs 1,500 euros a year.", "A pass costs 1500 euros a year."),
    ("Dogs are not allowed on trains.", "Dogs are forbidden on trains."),
    ("Backups of mail are kept for 30 days.", "Backups of mail are kept for 30 days on 2 disks."),
    ("The hall seats twenty-five guests.", "The hall seats 25 guests."),
    ("A pass costs 5 euros a day on trains.", "A pass costs 5 euros for a day on trains."),
    ("The shop of the mill closes at noon.", "The shop of the mill closes at 12:00."),
    ("The price list is updated annually.", "The price list is updated every 12 months."),
    # Other things.
    ("The monthly report of the mill is blue.", "The weekly report of the mill is blue."),
    ("Backups are kept for 30 days.", "Invoices are kept for 90 days."),
    ("The ward isolates norovirus for 48 hours.", "The ward isolates influenza for 120 hours."),
    ("The office in Lisbon opens at 8:30.", "The office in Oslo opens at 9:30."),
    ("A pass costs 75 euros.", "A pass costs 60 euros for students."),
    ("The office opens at 8:30 in winter.", "The office in Oslo opens at 9:30 in winter."),
    ("A driver of class B needs 20 lessons.", "A driver of class C needs 30 lessons."),
    ("Staff of grade 3 get 25 days of leave.", "Staff of grade 4 get 28 days of leave."),
    ("Turnover in 2023 was 5 million euros.", "Turnover in 2024 was 6 million euros."),
    ("Children under 5 years get 10 mg.", "Children under 12 years get 20 mg."),
    ("Section 4 of the act has the exceptions.", "Section 5 of the act has the exceptions."),
    ("The option needs Python 3.10 or later.", "The option needs Python 3.12 or later."),
    ("The reader was added in version 9.2.1.", "The reader was added in version 9.4.0."),
    ("The plan of RFC 1950 has exceptions.", "The plan of RFC 1951 has exceptions."),
    ("The packed 32-bit numbers are stored.", "The packed 64-bit numbers are stored."),
    ("The two-factor login protects accounts.", "The three-factor login protects accounts."),
    # Bounds from different sides, and other units.
    ("The password has at least 8 letters.", "The password has at most 64 letters."),
    ("Backups are kept for 30 days.", "Backups are kept for 5 versions."),
    ("Backups of mail are made for 30 days.", "Backups of mail are made 30 times."),
    # Negations that are none, cases, and a negation besides a figure.
    ("Guests may stay for up to 30 days.", "Guests may stay for no more than 30 days."),
    ("The call returns an error if the flag is set.", "The call returns an error if the flag is not set."),
    ("Number of packets received.", "No packets received."),
    ("Not only members may book a boat.", "Members may book a boat."),
    ("Guests may stay for 30 days.", "Guests may not stay for 90 days."),
    # Only the surroundings say what is meant.
    ("It closes at 18:00 on working days.", "It closes at 20:00 on working days."),
    ("The default value is 10 seconds.", "The default value is 30 seconds."),
    ("The gate closed two hours ago for trains.", "The gate closed three hours ago for trains."),
    # No sentences.
    ("retention(backups, 30)", "retention(backups, 90)"),
    ("backup_days = 30 for the store", "backup_days = 90 for the store"),
    ("Copyright 2019 by the Foundation", "Copyright 2020 by the Foundation"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "value", "other_value"), DISAGREE)
def test_they_disagree(first: str, second: str, value: str, other_value: str) -> None:
    assert disagreement(first, second) == (value, other_value)
    assert disagreement(second, first) == (other_value, value)


@pytest.mark.parametrize(("first", "second", "value", "other_value"), DISAGREE)
def test_the_quick_test_finds_them(first: str, second: str, value: str, other_value: str) -> None:
    [first_sentence], [second_sentence] = sentences(first), sentences(second)
    assert may_disagree(first_sentence, second_sentence)
    assert may_disagree(second_sentence, first_sentence)


@pytest.mark.parametrize(("first", "second"), AGREE)
def test_they_agree(first: str, second: str) -> None:
    assert disagreement(first, second) is None
    assert disagreement(second, first) is None


TEXT = st.text(
    alphabet=st.sampled_from("abcdnotw .,;:!?()[]{}<>=#%$€£|`*'-–_/\n0123456789éß漢"), max_size=200
)
WORDS = st.lists(
    st.sampled_from(
        "backups are kept for 30 days not two weeks until 31 May 2027 8:30 pm 5 % one no unless "
        "Lisbon version 9.2 at least 12-14 −3 1,000,000 1.2.3 12: 99th of the , 5th twenty".split()
    ),
    max_size=14,
).map(" ".join)


@given(st.one_of(TEXT, WORDS), st.one_of(TEXT, WORDS))
def test_any_two_texts_can_be_compared(first: str, second: str) -> None:
    values, reverse = disagreement(first, second), disagreement(second, first)
    assert (values is None) == (reverse is None)
    assert values is None or values[0] != values[1]
    assert disagreement(first, first) is None


@given(WORDS, WORDS)
def test_what_the_quick_test_excludes_is_never_a_disagreement(first: str, second: str) -> None:
    for first_sentence in sentences(first):
        for second_sentence in sentences(second):
            if len(first_sentence.words & second_sentence.words) > 1 and disagreement(
                first_sentence.text, second_sentence.text
            ):
                assert may_disagree(first_sentence, second_sentence)


class TestSentences:
    def test_lines_are_joined_and_sentences_are_separated(self) -> None:
        text = "The first sentence is\nwrapped. The second (e.g. this) has 3.5 parts; and one more clause!"
        assert [sentence.text for sentence in sentences(text)] == [
            "The first sentence is wrapped.",
            "The second (e.g. this) has 3.5 parts;",
            "and one more clause!",
        ]

    def test_items_of_lists_without_their_marks(self) -> None:
        text = "- The first item is here\n- The second item is `there`\n\n2. The **third** is last"
        assert [sentence.text for sentence in sentences(text)] == [
            "The first item is here",
            "The second item is there",
            "The third is last",
        ]

    def test_what_is_no_sentence_is_left_out(self) -> None:
        text = (
            "# A heading of the page\n\n| a table | of the page |\n\n"
            "```\nthe code of the page;\n```\n\nStatus: accepted, 2026-01-02.\n\nOpening hours"
        )
        assert sentences(text) == ()

    def test_figures_and_negations(self) -> None:
        found = sentences(
            "The hall has two doors. The fair was in May. It isn't unsupported. It is plain over here."
        )
        assert [(sentence.has_figure, sentence.negations) for sentence in found] == [
            (True, 0),
            (True, 0),
            (False, 2),
            (False, 0),
        ]


def test_a_statement() -> None:
    statement = read("Members of Lisbon must not keep more than 5 books of section 4 for 2 weeks.")
    assert statement is not None
    assert statement.words == {"member", "lisbon", "keep", "section"}
    assert statement.names == {"lisbon"}
    assert statement.references == {"section 4"}
    assert [(figure.kind, figure.value) for figure in statement.figures] == [
        ("number of book", 5.0),
        ("time", 1_209_600.0),
    ]
    assert statement.negations == (0, 0)
    assert statement.bounds == {"most"}
