"""Whether the figures of a draft stand in its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import Finding
from rolebundle.verification.draft import figures as figures_module
from rolebundle.verification.draft.figures import check_figures
from rolebundle.verification.draft.parse import parse_draft
from support.amounts import rounds
from support.figure_notations import cases
from support.values import passage

# Evidence, and a draft that states the same in another notation.
SAME = [
    ('It lasts an hour and a half.', 'It lasts 90 minutes.'),
    ('It lasts ninety minutes.', 'It lasts 1.5 h.'),
    ('5 feet 9 inches tall', '69 inches tall'),
    ('We have twenty-five servers.', 'We have 25 servers.'),
    ('The 21st century began.', 'The twenty-first century began.'),
    ('on the third of May 2026', 'on 3 May 2026'),
    ('May third, 2026', '2026-05-03'),
    ("Due 3 May '26.", 'Due 3 May 2026.'),
    ('Meetings are on Mondays.', 'Meet on Monday.'),
    ('Since 1999 it works.', 'It works since nineteen ninety-nine.'),
    ('It cost $1.2bn in total.', 'It cost 1.2 billion dollars.'),
    ('It cost $1,200,000.', 'It cost $1.2 million.'),
    ('It cost £5m.', 'It cost 5 million pounds.'),
    ('It weighs 5 lbs.', 'It weighs 5 pounds.'),
    ('pay ₹5 crore now', 'pay 50,000,000 rupees now'),
    ('a population of 1.4 billion', '1,400,000,000 people'),
    ('fee of 50 cents', 'fee of $0.50'),
    ('Rate: 0.5%', 'a rate of half a percent'),
    ('Rate: 50 bps', '0.5 percentage points'),
    ('It grew threefold.', 'It grew 3x.'),
    ('It runs twice a week.', 'It runs 2 times per week.'),
    ('It runs every day at noon.', 'It runs at 12:00.'),
    ('At midnight it stops.', 'At 00:00 it stops.'),
    ('14:00 UTC', '2 pm UTC'),
    ('2026-05-03T14:30:00Z', 'On 3 May 2026 at 14:30 UTC'),
    ('TTL is 3600 s', 'TTL is one hour'),
    ('timeout=30s', 'a timeout of 30 seconds'),
    ('timeout: 30000 ms', 'a timeout of thirty seconds'),
    ('retention_days = 30', 'retention of 30 days'),
    ('| Days | 30 |', 'kept for 30 days'),
    ('Port 8080 is used.', 'It listens on port 8080.'),
    ('Requires Python 3.10 or newer.', 'It needs Python 3.10.'),
    ('Requires Python >= 3.10', 'It needs Python 3.10+.'),
    ('Python 3.10', 'python3.10'),
    ('released v2.0.0-rc.1', 'version 2.0.0rc1'),
    ('See section 4.2.', 'In Section 4.2 it says'),
    ('Article 17 GDPR', 'Art. 17'),
    ('10,000 steps', 'ten thousand steps'),
    ('one million users', '1,000,000 users'),
    ('1M users', 'one million users'),
    ('2.5M rows', '2,500,000 rows'),
    ('between 5 and 10 percent', '5–10%'),
    ('between $5 and $10 million', '$5 million to $10 million'),
    ('5-10 days', 'from five to ten days'),
    ('from 3 to 5 May 2026', '3–5 May 2026'),
    ('2019–2023', 'from 2019 to 2023'),
    ('2019-23', '2019 to 2023'),
    ('in the 1990s', 'in the nineties'),
    ('in Q3 2026', 'in the third quarter of 2026'),
    ('2026-Q3', 'Q3 2026'),
    ('the first half of 2026', 'H1 2026'),
    ('3/4 of them', '75% of them'),
    ('a quarter of users', '25% of users'),
    ('two in five users', '40% of users'),
    ('1 out of 10', '10%'),
    ('a dozen eggs', '12 eggs'),
    ('half a dozen', '6 eggs'),
    ('5x5 grid', '5×5 grid'),
    ('1920x1080', '1920 × 1080'),
    ('-40 degrees', 'minus 40 degrees'),
    ('a loss of -5%', '-5 percent'),
    ('-273.15 °C', '−273.15°C'),
    ('100 m²', '100 square metres'),
    ('5 km²', '5 square kilometers'),
    ('60 km/h', '60 kilometres per hour'),
    ('100 mbps', '100 Mbps'),
    ('1 TB', '1,000 GB'),
    ('300 dpi', '300 dpi'),
    ('10⁻³ mol', '0.001 mol'),
    ('6.02e23', '6.02 × 10^23'),
    ('1.000.000,50 EUR', '€1,000,000.50'),
    ('0x1F', '31'),
    ('SHA-256', 'SHA256'),
    ('IPv6', 'IPv6'),
    ('ISO/IEC 27001:2022', 'ISO/IEC 27001:2022'),
    ('ISO 27001', 'ISO-27001'),
    ('RFC 2119', 'rfc2119'),
    ('Ticket PROJ-42', 'PROJ-42'),
    ('issue #42', 'issue 42'),
    ('#42', 'No. 42'),
    ('HTTP 404', '404 error'),
    ('E1001', 'error E1001'),
    ('error 0x80070005', 'error 0x80070005'),
    ('see https://example.com/a?b=1#c.', 'https://example.com/a?b=1#c'),
    ('http://Example.com', 'example.com'),
    ('/etc/nginx/nginx.conf', 'nginx.conf'),
    ('src\\main\\app.py', 'src/main/app.py'),
    ('C:\\Temp\\a.txt', 'C:\\Temp\\a.txt'),
    ('10.0.0.0/8', '10.0.0.0/8'),
    ('fe80::1', 'fe80::1'),
    ('00:1A:2B:3C:4D:5E', '00-1a-2b-3c-4d-5e'),
    ('550e8400-e29b-41d4-a716-446655440000', '550E8400-E29B-41D4-A716-446655440000'),
    ('doi:10.1000/182', '10.1000/182'),
    ('+1 (555) 123-4567', '+1 555 123 4567'),
    ('5 years and 6 months', '66 months'),
    ('1 day, 2 hours', '26 hours'),
    ('2h 30m 15s', '2 hours 30 minutes 15 seconds'),
    ('ten-year plan', '10 year plan'),
    ('a 3-day trip', 'three days'),
    ('5 GB/s', '5 gigabytes per second'),
    ('1,500 requests per second', '1500 requests/s'),
    ('40 hours a week', '40 hours per week'),
    ('$15 an hour', '$15/hour'),
    ('The TSC meets every two weeks.', 'It meets every 14 days.'),
    ('Interval: 14 days', 'It meets every 14 days.'),
    ('Das Team trifft sich alle 14 Tage.', 'The team meets every 14 days.'),
    ('The lease lasts 14 days.', 'It ends after 14 days.'),
    ('weekly fee of $5', '$5 per week'),
    ('at 8 a.m.', 'at 8:00 am'),
    ("at 8 o'clock", 'at 8:00'),
    ('1 200 items', '1,200 items'),
    ('１２００ items', '1200 items'),
    ('٣٠ days', '30 days'),
    ('12,34,567', '1,234,567'),
    ('≈ 30 days', 'about 30 days'),
    ('~30%', '30%'),
    ('>5 GB', 'more than 5 GB'),
    ('5+ years', 'over 5 years'),
    ('(30 days)', '30 days'),
    ('**30** days', '30 days'),
    ('`30`', '30'),
    ('30days', '30 days'),
    ('$5M–$10M', '$5 to $10 million'),
    ('Founded in May 2019', 'Founded in 2019'),
    ('on 3 May 2026', 'in May'),
    ('3.5-inch', '3.5 inches'),
    ('zero errors', '0 errors'),
    ('no. 5', 'number 5'),
    ('eleven hundred', '1100'),
    ('nineteen hundred', '1900'),
    ('one hundred and one', '101'),
    ('two hundred thousand', '200,000'),
    ('three point one four', '3.14'),
    ('one-third of', '1/3 of'),
    ('two-thirds majority of', '2/3 of'),
    ('50 million euro', '50,000,000 €'),
    ('EUR 1.5bn', '1,500 million euros'),
    ("CHF 1'200", '1,200 Swiss francs'),
    ('US $20', '20 US dollars'),
    ('20¢', '20 cents'),
    ('HK$ 100', '100 HKD'),
    ('8.5%', '8.5 per cent'),
    ('0.5 percent', 'half a percent'),
    ('5‰', '0.5%'),
    ('1:30 pm', '13:30'),
    ('13:30h', '1:30 pm'),
    ('quarter past five', '5:15'),
    ('half past three', '3:30'),
    ('week 23', 'week 23'),
    ('page 12', 'p. 12'),
    ('CVE-2024-3094', 'cve-2024-3094'),
    ('utf-8', 'UTF-8'),
    ('x86_64', 'x86-64'),
    ('H2O', 'H2O'),
    ('GPT-4', 'GPT 4'),
    ('Windows 11', 'Windows 11'),
    ('Boeing 747', '747'),
    ('top 10 results', 'top-10 results'),
    ('5 of 7 tests', '5 of 7 tests'),
    ('7/10 tests', '7/10'),
    ('24/7 support', '24/7'),
    ('room 101', 'room 101'),
    ('a score of 3:1', '3:1'),
    ('16:9', '16:9'),
]  # fmt: skip

# Evidence, and a draft that states something else.
DIFFERENT = [
    ('Retries within minutes were fixed (#99).', 'It can be raised to 99 minutes.'),
    ('See #12 for the list of servers.', 'We run 12 servers.'),
    ('used=99\nx = min(used, free)', 'It takes 99 minutes.'),
    ('used=99, min_free=1', 'It takes 99 minutes.'),
    ("It's what they gave us: 99", 'It takes 99 seconds.'),
    ('It lasts 5 hours.', 'It lasts 5 days.'),
    ('50 items', '50% of items'),
    ('50% of items', '50 items'),
    ('1,234 items', '1.2k items'),
    ('kept for 90 days', 'kept for 3 months'),
    ('2 GB', '2048 MB'),
    ('2 GiB', '2 GB'),
    ('version 1.2', 'version 1.2.0'),
    ('Python 3.10', 'Python 3.1'),
    ('3 May 2026', '5 March 2026'),
    ('3 May 2026', '03/05/2026'),
    ('May 2026', '3 May 2026'),
    ('in 2026', 'May 2026'),
    ('5 business days', '5 days'),
    ('$5', '€5'),
    ('$5 million', '5 million people'),
    ('$5 per month', '$5 per year'),
    ('section 4', 'table 4'),
    ('9 servers and 12 people', '12 servers'),
    ('-5 degrees', '5 degrees'),
    ('8 am', '8 pm'),
    ('14:00 UTC', '14:00 EST'),
    ('5 km', '5 miles'),
    ('3:30 am', '15:30'),
    ('1.5 million', '1.5 billion'),
    ('1,200', '1.2'),
    ('RFC 9110', 'RFC 9111'),
    ('abcdef1234', 'abcdef1235'),
    ('https://a.com/x', 'https://a.com/y'),
    ('192.168.0.1', '192.168.0.11'),
    ('a few days', '5 days'),
    ('2 hours', '2 minutes'),
    ('5 Mb', '5 MB'),
    ('5 mg', '5 g'),
    ('10 per day', '10 per hour'),
    ('Reply within 14 days.', 'The TSC meets every 14 days.'),
    ('In every meeting: 14 days of leave.', 'The TSC meets every 14 days.'),
    ('twice a day', 'twice a week'),
    ('three servers', 'one server'),
    ('a third', 'two thirds of it'),
    ('12 hours', 'twelve minutes'),
    ('3rd', '5th'),
    ('Q3 2026', 'Q4 2026'),
    ('Monday', 'Tuesday'),
    ('June', 'in July'),
    ('1990s', '1980s'),
    ('20-30%', '20-35%'),
    ('40%', 'forty-one percent'),
    ('1 in 5', '1 in 6 users'),
    ('2019', '2020'),
    ('9 November 1998', 'the 9th edition'),
    ('$1,200', '$1.2'),
    ('half of users', 'a third of users'),
    ('5 people', 'five hours'),
    ('0.5', '50%'),
]  # fmt: skip


def figures(
    draft: str, *evidence: str | Passage, cites: Mapping[int, Sequence[int]] | None = None
) -> list[Finding]:
    """The findings on a draft; ``cites`` are numbers of the evidence for numbers of sentences."""
    passages = [
        passage(f"c{number}", text, title="") if isinstance(text, str) else text
        for number, text in enumerate(evidence)
    ]
    cited = {
        sentence: [passages[number] for number in numbers]
        for sentence, numbers in (cites or {}).items()
    }
    return check_figures(parse_draft(draft), passages, cited)


def codes(draft: str, *evidence: str | Passage, **more: Mapping[int, Sequence[int]]) -> list[str]:
    return [finding.code for finding in figures(draft, *evidence, **more)]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("evidence", "draft"), SAME)
def test_a_figure_is_found_in_another_notation(evidence: str, draft: str) -> None:
    found = codes(draft, evidence)
    assert found
    assert set(found) == {"should_cite"}


@pytest.mark.parametrize(("evidence", "draft"), DIFFERENT)
def test_another_figure_is_not_found(evidence: str, draft: str) -> None:
    assert "unsupported_figure" in codes(draft, evidence)


@rounds(sample=15, full=1000)
def test_generated_figures_are_found_in_another_notation(rounds: int) -> None:
    missed = [
        case
        for case in cases(rounds, seed=11)
        if set(codes(case.draft, case.evidence)) != {"should_cite"}
    ]
    assert len(missed) <= 0.02 * rounds, missed[:5]


@rounds(sample=15, full=1000)
def test_no_generated_figure_passes_if_its_value_stands_nowhere(rounds: int) -> None:
    passed = [
        case
        for case in cases(rounds, seed=12)
        if not any(finding.fails for finding in figures(case.changed, case.evidence))
    ]
    assert not passed, passed[:5]


LANGUAGES = [
    ("Die Frist beträgt 1.200 Tage.", "The period is 1,200 days."),
    ("Das Werk hat fünfundzwanzig Leute und es ist neu.", "The plant has 25 people."),
    ("Der Vertrag endet am 3. Mai 2026.", "The contract ends on 2026-05-03."),
    ("The contract ends on 3 March 2026.", "Der Vertrag endet am 03.03.2026."),
    ("The rent is 1,200.50 euros.", "Die Miete ist mit Strom 1.200,50 Euro."),
    ("Le contrat dure trois ans et il est signé le 1er février 2026.", "It lasts 36 months."),
    ("Le prix est de 1 200,50 € par mois.", "The price is €1,200.50 per month."),
    ("El contrato es del 3 de mayo de 2026.", "The contract is of 3 May 2026."),
    ("Il contratto è del 3 maggio 2026 e dura due anni.", "It was signed on 3 May 2026."),
    ("O contrato é de 3 de maio de 2026.", "The contract is of 3 May 2026."),
    ("Het contract is van 3 mei 2026.", "The contract is of 3 May 2026."),
    ("Es gibt 3,5 Mio. Einwohner in der Stadt.", "The city has 3.5 million inhabitants."),
]


@pytest.mark.parametrize(("evidence", "draft"), LANGUAGES)
def test_figures_are_read_in_several_languages(evidence: str, draft: str) -> None:
    found = codes(draft, evidence)
    assert found
    assert set(found) == {"should_cite"}


@pytest.mark.parametrize(
    "draft",
    [
        "Лимит составляет 30 дней и это много.",
        "限制为三十天。",
        "Han har tre dage og det er ikke godt.",
    ],
)
def test_a_sentence_in_a_language_without_rules_fails(draft: str) -> None:
    findings = figures(draft, draft)
    assert findings[0].code == "unchecked_language"
    assert findings[0].fails


def test_evidence_is_not_read_for_a_sentence_without_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = list[Passage]()
    monkeypatch.setattr("rolebundle.verification.draft.figures.evidence_of", read.append)
    assert figures("A helmet must be worn.", "It lasts 90 minutes.") == []
    assert read == []


def test_a_figure_of_the_cited_passage_is_found() -> None:
    (finding,) = figures("It takes 90 minutes.", "It takes 1.5 hours.", cites={0: [0]})
    assert finding.code == "figure_found"
    assert not finding.fails
    assert finding.chunk_id == "c0"
    assert finding.true_text == "1.5 hours"
    assert (finding.span.start, finding.span.end, finding.text) == (9, 19, "90 minutes")


def test_a_figure_of_another_passage_fails_only_if_the_sentence_cites_one() -> None:
    evidence = ("It was built in Oslo.", "It takes 90 minutes.")
    (without,) = figures("It takes 90 minutes.", *evidence)
    (false,) = figures("It takes 90 minutes.", *evidence, cites={0: [0]})
    (unknown,) = figures("It takes 90 minutes [7].", *evidence)
    assert (without.code, without.fails) == ("should_cite", False)
    assert (false.code, false.fails) == ("should_cite", True)
    assert (unknown.code, unknown.fails) == ("should_cite", True)
    assert false.chunk_id == "c1"
    assert false.remedy == "Cite a.md:1-2, if that is meant."


def test_of_several_passages_with_a_figure_the_nearest_is_named() -> None:
    evidence = ("Invoices are paid within 14 days.", "The TSC meets every 14 days.")
    (without,) = figures("The TSC meets every 14 days.", *evidence)
    (false,) = figures("The TSC meets every 14 days.", *evidence, "Oslo.", cites={0: [2]})
    (same,) = figures("It takes 14 days.", *evidence)
    assert (without.chunk_id, false.chunk_id, same.chunk_id) == ("c1", "c1", "c0")


@pytest.mark.parametrize("first", [0, 10_000])
def test_many_figures_in_one_sentence_are_compared_with_few(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    compared, read = list[object](), list[object]()
    distance, stems = figures_module._distance, figures_module.stems_of
    monkeypatch.setattr(
        figures_module, "_distance", lambda *pair: compared.append(pair) or distance(*pair)
    )
    monkeypatch.setattr(figures_module, "stems_of", lambda *text: read.append(text) or stems(*text))

    def listing(first: int) -> str:
        return "We list " + ", ".join(f"{first + n} items" for n in range(400)) + "."

    findings = figures(listing(0), listing(first), f"Again. {listing(first)}")
    assert {finding.code for finding in findings} == {
        "unsupported_figure" if first else "should_cite"
    }
    assert len(compared) <= 400 * 10
    assert len(read) <= 3


def test_an_ambiguous_date_needs_both_of_its_readings() -> None:
    draft = "It starts on 03/05/2026."
    assert codes(draft, "It starts on 3 May 2026.") == ["unsupported_figure"]
    assert codes("It starts on 3 May 2026.", draft) == ["unsupported_figure"]
    assert codes(draft, "It starts on 03/05/2026.") == ["should_cite"]
    assert codes(draft, "It starts on 5/3/2026.") == ["should_cite"]
    assert codes(draft, "It starts on 3 May 2026. It ends on 5 March 2026.") == ["should_cite"]


def test_the_nearest_figure_is_named() -> None:
    (rounded,) = figures("It has 1.2k members.", "It has 1,234 members and 7 staff.")
    assert rounded.note is not None
    assert "close to it, but not equal" in rounded.note
    assert '"1,234"' in rounded.note
    (different,) = figures("It takes 5 days.", "It takes 30 days or 2 GB.")
    assert different.note == 'it stands nowhere in the evidence, which has "30 days"'


def test_titles_and_headings_of_a_passage_are_evidence() -> None:
    source = passage("c1", "It grew.", title="Report of 2026", headings=("Budget: $5M",))
    assert set(codes("In 2026 the budget was $5 million.", source)) == {"should_cite"}


@pytest.mark.parametrize(
    "draft",
    [
        "1. The text is short.\n2. The text is old.",
        "## 2.1 Results\n\nThe text is short.",
        "The text is short [1].",
        "The text is short (notes/a.md:3-4).",
        "```\nlimit = 30\n```\n\nThe text is short.",
        "Is the limit 30 days?",
        "The first step is short. One of them is a day ahead.",
    ],
)
def test_numbers_that_state_nothing_are_not_checked(draft: str) -> None:
    assert codes(draft, "The text is short and old.") == []


@pytest.mark.parametrize(
    "draft",
    [
        "## Revenue of $5M\n\nThe text is short.",
        "| Limit | 30 |\n| --- | --- |\n| Size | 7 |",
        "The text has `30` lines.",
        'They wrote "it has 30 lines".',
        "- 30 lines",
    ],
)
def test_headings_tables_code_in_a_line_and_quotes_are_checked(draft: str) -> None:
    assert "unsupported_figure" in codes(draft, "The text is short and old.")


def test_another_number_for_the_same_thing_is_not_taken() -> None:
    evidence = "There are 9 servers for 12 people."
    assert codes("There are 12 servers.", evidence) == ["unsupported_figure"]
    assert codes("There are 12 employees.", evidence) == ["should_cite"]


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_gives_findings_within_the_draft(draft: str, evidence: str) -> None:
    for finding in figures(draft, evidence):
        span = finding.span
        assert 0 <= span.start < span.end <= len(draft)
        assert draft[span.start : span.end].startswith(finding.text[:100])


_PIECES = st.sampled_from(
    "1 2 3 10 26 1,200 1.5 ½ ⁶ ^ e x - – / : . , ( ) $ € % °C MB May third half a an of and two "
    "hundred million pm UTC h m Q3 v1 # @ www. \\ A_B 0x P1D per in ' st th 2026".split()
)


@given(st.lists(st.tuples(_PIECES, st.sampled_from(["", " "])), max_size=12))
def test_a_text_supports_its_own_figures(pieces: list[tuple[str, str]]) -> None:
    text = "".join(piece + space for piece, space in pieces)
    assert "unsupported_figure" not in codes(text, text)
