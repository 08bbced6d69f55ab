"""The verdict on a draft, and its figures."""

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rolebundle.contracts.verification import (
    CheckName,
    FindingCode,
    Outcome,
    Verification,
    VerifyRequest,
)
from rolebundle.engine import Engine
from rolebundle.errors import Interrupted, RolebundleError
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.audit import AuditLog
from rolebundle.retrieval.passage_text import shown_name
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.text.figures import find_figures
from rolebundle.verify.draft import FileNames, parse_draft
from rolebundle.verify.figures import PLACE_END, FigureCheck, check_figures
from rolebundle.verify.findings import CODES
from support.amounts import lengths, linear_time
from support.corpora import NOW, build, chunk, document

# -- The verdict of `verify`, its answer, and what holds for any draft -----------------------------

LIFETIME = "The lifetime of an access token is fifteen minutes."
HELMET = "A helmet must be worn in the yard at night."
FALSE = "Elephants drink plenty of cold water every single day."
IDS = ["tokens#0", "yard#0"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {"tokens": LIFETIME, "yard": HELMET}
    documents = [document(name, [text], sensitivity="public") for name, text in texts.items()]
    return build(tmp_path_factory.mktemp("verify"), documents)


@pytest.fixture(scope="module")
def engine(db: Path) -> Iterator[Engine]:
    with Engine(db) as opened:
        yield opened


def verified(
    engine: Engine, draft: str, *, whole_corpus: bool = False, **fields: Any
) -> Verification:
    evidence = {} if whole_corpus else {"chunk_ids": IDS}
    return engine.verify(VerifyRequest(draft=draft, now=NOW, **evidence, **fields))


with_both_kinds_of_evidence = pytest.mark.parametrize(
    "whole_corpus", [False, True], ids=["named", "whole corpus"]
)


class TestTheVerdict:
    @with_both_kinds_of_evidence
    def test_a_true_draft_passes(self, engine: Engine, whole_corpus: bool) -> None:
        answer = verified(
            engine, f'They wrote "{LIFETIME}" And: {HELMET}', whole_corpus=whole_corpus
        )
        assert (answer.verdict, answer.validated_draft) == ("clean", None)
        assert answer.counts["exact"] == 1 and answer.counts["covered"] >= 1

    @with_both_kinds_of_evidence
    @pytest.mark.parametrize(
        ("draft", "code"),
        [
            (f'{HELMET} They wrote "{FALSE}"', "absent"),
            (f"{LIFETIME} [7]", "unknown_citation"),
        ],
    )
    def test_one_failure_fails(
        self, engine: Engine, draft: str, code: str, whole_corpus: bool
    ) -> None:
        answer = verified(engine, draft, whole_corpus=whole_corpus)
        assert answer.verdict == "failed"
        assert code in {finding.code for finding in answer.findings if finding.fails}
        assert answer.validated_draft not in (None, draft)

    @pytest.mark.parametrize("draft", ["", " \n ", "# Heading\n", "```\ncode\n```\n", "Thanks!"])
    @with_both_kinds_of_evidence
    def test_nothing_to_verify_is_no_pass(
        self, engine: Engine, draft: str, whole_corpus: bool
    ) -> None:
        assert verified(engine, draft, whole_corpus=whole_corpus).verdict == "nothing_to_check"

    @pytest.mark.parametrize("ids", [[], ["gone#0"]])
    def test_without_evidence_nothing_passes(self, engine: Engine, ids: list[str]) -> None:
        for require in (None, [], ["quotes"], ["citations"], ["figures"]):
            request = VerifyRequest(draft=LIFETIME, chunk_ids=ids, require=require)  # type: ignore[arg-type]
            assert engine.verify(request).verdict != "clean"

    def test_coverage_fails_only_if_it_is_required(self, engine: Engine) -> None:
        draft = f'{FALSE} They wrote "{HELMET}"'
        answer = verified(engine, draft)
        assert answer.verdict == "clean"
        assert answer.message.startswith("1 quote; 1 sentence was not checked; ")
        assert answer.counts["uncovered"] >= 1
        assert verified(engine, draft, require=["coverage"]).verdict == "failed"
        assert verified(engine, FALSE, require=["quotes"]).verdict == "nothing_to_check"

    def test_a_draft_about_something_else_is_not_checked(self, engine: Engine) -> None:
        draft = "The moon is made of green cheese, which everybody loves as much as bananas."
        answer = verified(engine, draft, whole_corpus=True)
        assert answer.verdict == "nothing_to_check"

    def test_what_an_agent_filed_is_no_evidence(self, tmp_path: Path) -> None:
        filed = document("fact", [LIFETIME], origin="agent", trust_tier="untrusted")
        promoted = document("promoted", [HELMET], origin="agent", trust_tier="general")
        with Engine(build(tmp_path, [filed, promoted])) as engine:
            request = VerifyRequest(draft=f'"{LIFETIME}" [1]', chunk_ids=["fact#0"], now=NOW)
            answer = engine.verify(request)
            assert answer.counts["rejected_source"] == answer.counts["absent"] == 1
            for quote, code in ((LIFETIME, "absent"), (HELMET, "exact")):
                answer = engine.verify(VerifyRequest(draft=f'They say "{quote}"', now=NOW))
                assert answer.counts[code] == 1
            ids = ["promoted#0", "fact#0"]
            for number, verdict in ((1, "clean"), (2, "failed")):
                fields = {"draft": f'They say "{HELMET}" [{number}]', "chunk_ids": ids, "now": NOW}
                assert engine.verify(VerifyRequest(**fields)).verdict == verdict


def test_each_code_of_a_finding_has_a_check_and_a_verdict() -> None:
    rows = Mapping[FindingCode, tuple[CheckName, Outcome, str | None]]
    TypeAdapter(rows).validate_python(CODES)
    assert {*CODES} == {*get_args(FindingCode)}


class TestTheAnswer:
    def test_a_redacted_draft_has_nothing_that_fails(self, engine: Engine) -> None:
        draft = f'{LIFETIME} {FALSE} They wrote "{FALSE}" [9].\n\n- {HELMET} [2]\n- {FALSE}\n'
        answer = verified(engine, draft, redact=True)
        assert answer.validated_draft is not None
        assert verified(engine, answer.validated_draft).verdict == "clean"
        assert LIFETIME in answer.validated_draft and HELMET in answer.validated_draft

    @pytest.mark.parametrize("piece", ["{} ", '"{}," '])
    def test_a_deadline_and_a_cancel_end_it(self, engine: Engine, piece: str) -> None:
        """Also a draft of one sentence that has a million characters."""
        numbers = range(10_000, 1_000_000 // len(piece) + 10_000)
        draft = "".join(piece.replace("{}", str(number)) for number in numbers)[:1_000_000]
        canceller = Timer(0.1, engine.interrupt)
        for deadline in (200, 60_000):
            started = monotonic()
            if deadline > 200:
                canceller.start()
            with pytest.raises(Interrupted):
                verified(engine, draft, whole_corpus=True, deadline_ms=deadline)
            assert monotonic() - started < 2
        assert verified(engine, LIFETIME).verdict == "clean"

    def test_the_deadline_is_looked_at_for_each_figure(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sentence may have many, and each may be the sum or the ratio of others."""
        checked = list[FigureCheck]()

        def checks(*args: Any) -> Iterator[FigureCheck]:
            for check in check_figures(*args):
                checked.append(check)
                yield check

        def interrupt(_: Corpus) -> None:
            if len(checked) == 3:
                raise Interrupted("interrupted", "late", "wait")

        monkeypatch.setattr("rolebundle.verify.verify.check_figures", checks)
        monkeypatch.setattr(Corpus, "raise_if_interrupted", interrupt)
        with pytest.raises(Interrupted):
            verified(engine, " ".join(map(str, range(10_000, 10_150))))
        assert len(checked) == 3

    @pytest.mark.parametrize("redact", [False, True])
    def test_what_is_not_checked_in_time_is_named_and_fails(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, redact: bool
    ) -> None:
        """Each look at the clock finds it a second later."""
        monkeypatch.setattr("rolebundle.verify.verify.monotonic", count().__next__)
        monkeypatch.setattr("rolebundle.verify.verify.DEFAULT_SECONDS", 2.0)
        remainder = f"{FALSE}\n\n{HELMET}"
        draft = f"{LIFETIME}\n\n{HELMET}\n\n{remainder}"
        answer = verified(engine, draft, whole_corpus=True, require=["quotes"], redact=redact)
        [unchecked] = [finding for finding in answer.findings if finding.fails]
        assert (answer.verdict, unchecked.code) == ("failed", "not_checked")
        assert draft[unchecked.span.start : unchecked.span.end] == remainder
        assert unchecked.note == "the rest of the draft was not checked in 2 s"
        assert answer.counts["covered"] == 2
        assert answer.validated_draft is not None
        assert (HELMET in answer.validated_draft.partition(HELMET)[2]) != redact
        patient = verified(engine, draft, whole_corpus=True, require=["quotes"], deadline_ms=60_000)
        assert patient.verdict == "nothing_to_check"

    def test_it_is_recorded(self, tmp_path: Path) -> None:
        db = build(tmp_path, [document("tokens", [LIFETIME])])
        with AuditLog(db) as log:
            log.begin()
        with Engine(db) as engine:
            engine.verify(VerifyRequest(draft=f"{FALSE} [9]", agent="ada"))
        [row] = (row for row in AuditLog(db).rows() if row.kind == "verify")
        assert (row.agent, row.details["verdict"]) == ("ada", "failed")
        assert "Elephants" not in row.model_dump_json()


PAY = "Anna Weber earns 92,000 euros a year as head of the laboratory."
SECRET = "password=Xk9mQ2vLp81zzT"


@pytest.mark.parametrize(
    ("draft", "publish", "codes"),
    [
        (f"{HELMET} {PAY} {SECRET}", None, set()),
        (f"{HELMET} {PAY} {SECRET}", "public", {"confidential_source", "secret_in_draft"}),
        (PAY, "internal", {"confidential_source"}),
        (f"They wrote “{PAY}”", "group", {"confidential_source"}),
        (f"{HELMET} {LIFETIME}", "public", set()),
    ],
)
def test_what_must_not_leave_a_published_draft(
    tmp_path: Path, draft: str, publish: Any, codes: set[str]
) -> None:
    documents = [
        document("yard", [HELMET, LIFETIME], sensitivity="public"),
        document("pay", [PAY], sensitivity="confidential"),
    ]
    with Engine(build(tmp_path, documents)) as engine:
        answer = engine.verify(VerifyRequest(draft=draft, publish=publish, now=NOW))
        assert {f.code for f in answer.findings if f.check == "publish"} == codes
        assert (answer.verdict == "failed") == bool(codes)
        assert all(not f.text for f in answer.findings if f.code == "secret_in_draft")
        left = engine.verify(VerifyRequest(draft=draft, publish=publish, redact=True, now=NOW))
        assert not codes or PAY not in (left.validated_draft or "")


# -- laws ------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [LIFETIME, HELMET, FALSE, '"', "“", "”", "'", "…", "...", "[1]", "[2, 9]", "[", "]", "(", ")",
     "tokens.md:1-1", "yard#0", "path:9-1", "\n", "\n\n", "- ", "> ", "|", "# ", "```", "\x00",
     "\u202e", "NEAR(", "OR", "*", "1,200", "12 %", "3 May 2026", "не", "漢字", "is not", ".", " "]
)  # fmt: skip
drafts = st.lists(pieces, max_size=25).map(" ".join) | st.text(max_size=200)


@given(drafts, st.booleans(), st.booleans())
@example("\x00", True, True)
@example('"' * 50, False, True)
def test_any_draft_gives_the_same_answer_twice(
    engine: Engine, draft: str, whole_corpus: bool, redact: bool
) -> None:
    """Laws 3 and 4: no text is syntax, and the same draft has the same answer."""
    fields: dict[str, Any] = {"draft": draft, "redact": redact}
    fields |= {"detail": "full", "now": NOW.isoformat()} | (
        {} if whole_corpus else {"chunk_ids": IDS}
    )
    answers = []
    for _ in range(2):
        try:
            answers.append(Operations(engine).call("verify", fields))
        except RolebundleError as error:
            assert any("\ud800" <= character <= "\udfff" for character in draft)
            answers.append({"code": error.code})
    assert answers[0] == answers[1]
    if "verdict" not in answers[0]:
        assert answers[0]["code"] == "draft_not_text"
        return
    for finding in answers[0]["findings"]:
        span = finding["span"]
        assert 0 <= span["start"] <= span["end"] <= len(draft)
    is_failing = any(finding["fails"] for finding in answers[0]["findings"])
    assert (answers[0]["verdict"] == "failed") == is_failing


names_of_files = st.text("ab1ü ()[],;'#&.-_\"", min_size=1, max_size=15).map(
    lambda name: f"a{' '.join(name.split())}note"
)


@pytest.mark.sample(4)
@given(names_of_files, st.booleans())
@example("results B9 (corrected)", False)
def test_each_place_that_is_printed_is_a_citation(
    tmp_path_factory: pytest.TempPathFactory, name: str, is_named: bool
) -> None:
    path = f"{name}.md"
    lines = path, f"{path}:1-1", f"{path}:1", f"{name}#0123456789"
    forms = [*lines, *map(shown_name, lines), f"{shown_name(path)}:1", f'"{path}":1-1']
    drafts = [f"{HELMET[:-1]} {a}{form}{b}." for a, b in ("()", "[]") for form in forms]
    drafts += [f"{HELMET} (source: {form})" for form in forms]
    drafts += [f"{HELMET[:-1]}, {form}." for form in {*forms} - {path, shown_name(path)}]
    passage = chunk(f"{name}#0123456789", HELMET, start_line=1, end_line=1)
    stored = StoredDocument(document(name, []).metadata, (passage,))
    evidence = {"chunk_ids": [passage.chunk_id]} if is_named else {}
    with Engine(build(tmp_path_factory.mktemp("names"), [stored])) as engine:
        answer = engine.verify(VerifyRequest(draft="\n\n".join(drafts), now=NOW, **evidence))
    assert answer.counts == {"cited": len(drafts), "covered": len(drafts)}


@pytest.mark.parametrize(
    "draft",
    [
        f"{HELMET} (This is said in notes (old).md of 2024.)",
        f"{HELMET} (2025 notes (old).md)",
        f"{HELMET} Bring apples, notes (old).md, and a pen.",
    ],
)
def test_a_name_in_prose_is_no_citation(tmp_path: Path, draft: str) -> None:
    with Engine(build(tmp_path, [document("notes (old)", [HELMET])])) as engine:
        assert "cited" not in engine.verify(VerifyRequest(draft=draft, now=NOW)).counts


@lengths
@pytest.mark.parametrize("piece", ["(", '"', "[a b.md:1", "b.md) ", '("', "b.md:1-1 ", "[b.md],"])
def test_names_of_files_are_found_in_linear_time(piece: str, length: int) -> None:
    names = FileNames({f"{'a ' * n}b.md": "b.md" for n in range(100)})
    with linear_time(length):
        assert [*parse_draft((piece * length)[:length], names)]


@pytest.mark.sample(4)
@lengths
@pytest.mark.parametrize(
    "piece",
    [
        "word ",
        "12,405 ",
        '"1,"',
        "```\na\n",
        "| 15 ",
        f"{LIFETIME} ",
        '"',
        '"a" ',
        "[9] ",
        "tokens.md:1-1 ",
        "1 ",
        "(",
        "… ",
        "> a\n",
        "`",
        "[a](",
    ],
)
def test_named_evidence_takes_linear_time(engine: Engine, piece: str, length: int) -> None:
    # A finding takes as long as a hundred characters, and some of these have one for two.
    draft = (piece * length)[: length // 10]
    verified(engine, draft[:100])
    with linear_time(length):
        verified(engine, draft, redact=True)


# -- Whether the figures of a draft stand in its evidence ------------------------------------------

# Evidence, and a draft that states the same in another notation.
SAME = [
    ("5-10 days", "from five to ten days"), ("It lasts ninety minutes.", "It lasts 1.5 h."),
    ("It cost $1.2bn in total.", "It cost 1.2 billion dollars."),
    ("a population of 1.4 billion", "1,400,000,000 people"),
    ("2026-05-03T14:30:00Z", "On 3 May 2026 at 14:30 UTC"),
    ("retention_days = 30", "retention of 30 days"), ("| hive | honey_kg_2026 |\n|---|---|\n| H5 | 19.8 |", "H5: 19.8 kg of honey"),
    ("4,800 euros (400 a month)", "400 euros a month"), ("| costs | 38.5 |", "It costs 38.50."),
    ("Requires Python >= 3.10", "It needs Python 3.10+."),
    ("1920x1080", "1920 × 1080"), ("60 km/h", "60 kilometres per hour"), ("1 TB", "1,000 GB"),
    ("1.000.000,50 EUR", "€1,000,000.50"),
    ("550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440000"),
    ("2h 30m 15s", "2 hours 30 minutes 15 seconds"), ("٣٠ days", "30 days"),
    (">5 GB", "more than 5 GB"), ("one hundred and one", "101"),
    ("for size in 16 32 64 128", "64 and 128"), ("it touches 180\n   kbytes", "180 kB"),
    ("entry is 50p per exhibit", "50 pence"), ("a fine of $0.25 per day", "25 cents a day"),
    ("8.5%", "8.5 per cent"), ("3 yards", "nine feet"), ("2 km²", "two square kilometres"),
    ("open from 10 am to 4 p.m.", "It is open 10:00-16:00."), ("4 °C", "four degrees"),
    ("heat to 220°F", "220 degrees Fahrenheit"), ("from 6.20 am", "06:20"), ("_1993-Feb-05_", "1993"),
    ("| Metal | Limit (mg/l) |\n|---|---|\n| Mercury | 0.002 |", "Mercury: 2 µg/l."),
    ("150 000 MGA", "150.000 MGA"), ("a descent of -1620 m", "1,620 m of descent"),
    ("| Planet | Distance (1000 km) |\n|---|---|\n| Moon | 384 |", "The Moon is 384,000 km away."),
    ("DTSTART 2026-12-10 09:30", "el 10 de diciembre de 2026"), ("2026-08-03", "le 3 août 2026"),
    ("needs 14.x", "It needs 14."), ("from 18:00 to 21:00", "6 to 9 pm"),
    ("52 weeks: 18 weeks at full pay", "52 weeks, 18 fully paid"), ("the 8th day", "day 8"),
    ("twice a year", "two times a year"), ("at least 9 days", "9 days or more, at least 9 days"),
    ("| Year | Cost ($ million) |\n|---|---|\n| First | 12 |", "It cost $12 million."),
    ("until 4\nDecember", "until 4 December"), ("in December\n2026", "in December 2026"),
    ("92 m2 and 5 cm3", "92 m² and 5 cubic centimetres"), ("| Floor | 92 | m2 | 126 |", "92 m² of floor"),
    ("$5 per m2", "$5 per square metre"),
    ("| Legno | mm | Settimane |\n|---|---|---|\n| Noce | 30 | 5 |", "Noce of 30 mm in 5 weeks"),
    ("18 to 20 C", "18 to 20 degrees"), ("18 to 20 °C", "18 to 20 ° C"), ("2450 EUR", "2.450 EUR"),
    ("chiuso dal 23 dicembre al 7 gennaio", "closed from 23 December to 7 January"),
    ("op 3 maart 2026 en 1 mei", "on 3 March 2026 and 1 May"), ("am 24. Dezember", "Christmas Eve"),
    ("il prezzo del legno sale a 1.395 EUR per metro cubo", "1,395 EUR per cubic metre"),
    ("die vierzehn Gläser", "the fourteen glasses"), ("Das Essen ist mit 30 EUR pro Person nicht teuer.", "30 EUR per guest"),
    ("Ada looked at the cup on 28 May. Insure it for £7,800 from 1 July 2026.", "Since July 2026 the cup is insured for £7,800, after Ada valued it."),
    ("| Survey | 1,180 |\n| Valuation | 520 |", "The survey costs 1,180 pounds."),
    ("| Item | Units | Rate |\n|---|---|---|\n| Sound | 9 | 210 |", "Sound for nine days"),
    ("not above 230 degrees", "230 degrees or less"), ("nicht unter 4 Grad", "4 degrees or more"),
    ("pas plus de 8 jours", "at most 8 days"), ("no más de 4 kg", "up to 4 kg"), ("now more than 5 kg", "at least 5 kg"),
    ("Shed 1 may be used.", "Shed 1 is free."), ("Rules from 3 may to 5 june", "from 3 May"),
    ("Die Wartung ist am 14.12. um 13 Uhr.", "on 14 December at 1 pm"), ("Termin 5.11. um 16.30 Uhr", "5 November at 16:30"),
    ("vom 9.11. bis 14.11. in Bonn", "from 9 to 14 November"), ("le 14/12 à 18h30", "on 14 December at 6:30 pm"),
    ("el 12/12 a las 18", "on 12 December at 6 pm"), ("op 14-12 om 18 uur", "am 14. Dezember um 18 Uhr"),
    ("il 14/12 alle 18", "14 December, 18:00"), ("9–13 Uhr", "from 9 am to 1 pm"), ("jusqu'à 18 h", "bis 18 Uhr"),
    ("2026-12-21,2026-12-25,Ann", "from 21 to 25 December 2026"), ("2026-12-21,2026-12-25,Ann", "vom 21. bis 25. Dezember"),
    ("2026-12-21,2026-12-25,Ann", "du 21 au 25 décembre"), ("2026-12-21,2026-12-25,Ann", "dal 21 al 25 dicembre"),
    ("2026-12-21,2026-12-25,Ann", "December 21–25"), ("2026-12-21,2026-12-25,Ann", "21st till 25th December"),
    ("two working\ndays before", "zwei Werktage vorher"), ("tres días\nhábiles", "three working days"),
    ("He pagado un mes y ahora debo\n1.820 libras.", "She paid one month and owes 1,820 pounds."),
    ("Elle doit 40 livres sterling.", "She owes £40 or 40 pounds."), ("Sie schuldet 40 Pfund.", "40 libras, 40 sterline"), ("20 Franken und 30 dólares", "CHF 20 and $30"),
    ("12:00", "at noon"), ("12 h", "à midi"), ("alle 12", "a mezzogiorno"), ("10 Prozent", "10 %, 10 pour cent"), ("zwei Kilo, 4 litri", "2 kg, 4 litres"), ("3 Zoll breit", "3 inches wide"),
    ("half past five in the morning", "at 5:30 am"), ("Viertel vor neun, halb vier", "8:45 Uhr, 15:30 Uhr"),
    ("om half vier beginnen wij met de les en dan is het klaar", "at 15:30"), ("a las cuatro y media", "16:30"), ("on till three", "until 3 pm"),
    ("half a year", "six months"), ("anderthalb Jahre", "18 Monate"), ("every fortnight", "every two weeks"),
    ("paid time and a half", "1.5 times the pay"), ("six chairs", "half a dozen chairs"), ("Keep watch for an hour.", "Keep watch for 60 minutes."), ("48 hours", "within two days"),
    ("by Dec 3, for pick-up on the 9th", "December 9"), ("until January 15", "by the 15th"),
    ("£10 per dog and night", "£10 per night for each dog"), ("80p per person per night", "80p per night and person"),
    ("mindestens 14 Jahre alt", "Sie sind 14 und dürfen es."), ("at least six months before the end", "no later than half a year before it ends"),
]  # fmt: skip

# Evidence, and a draft that states something else.
DIFFERENT = [
    ("It lasts 5 hours.", "It lasts 5 days."), ("50% of items", "50 items"),
    ("kept for 90 days", "kept for 3 months"), ("version 1.2", "version 1.2.0"),
    ("Python 3.10", "Python 3.1"), ("3 May 2026", "5 March 2026"), ("May 2026", "3 May 2026"),
    ("$5", "€5"), ("$5 per month", "$5 per year"), ("-5 degrees", "5 degrees"), ("1,200", "1.2"),
    ("https://a.com/x", "https://a.com/y"), ("a few days", "5 days"), ("5 Mb", "5 MB"),
    ("10 per day", "10 per hour"), ("20-30%", "20-35%"),
    ("at least 55 miles", "at most 55 miles"), ("at the latest after 9 days", "no sooner than 9 days"),
    ("The minimum period is one hour.", "The maximum is one hour."), ("not below 4 kg", "at most 4 kg"),
    ("| Item | Rate |\n|---|---|\n| Sound | 9 |", "Sound for nine days"), ("Shed 1 may be used.", "It is on 1 May."),
    ("8 cells per composition", "8 cells per batch"), ("0.3 mbar per hour", "0.3 mbar per minute"),
    ("$8 for each quarter of an hour", "$8 for each hour"),
    ("am 25. Dezember", "Christmas Eve"), ("Der Preis ist 14.12.", "am 14. Dezember"),
    ("Version 14.12. Dann", "am 14. Dezember"), ("reduce it by 1/3", "on 1 March"), ("um 17 Uhr", "6 pm"),
    ("à 20 h", "à midi"), ("21 to 25 December", "from 22 to 25 December"), ("un mes", "two months"),
    ("within two working\ndays. From 3 euros on.", "drei Werktage"),
    ("1.395 EUR per metro cubo", "1,395 EUR per square metre"),
    ("We bear the first £25 of each claim; for water damage £50.", "We bear £25 for water damage."),
    ("half past five", "at 5:15"), ("halb vier", "um 16:30 Uhr"), ("half a year", "eight months"), ("on the 9th", "December 8"),
    ("Each vet has $1,200 a year for courses, each nurse $600.", "For courses every nurse has $1,200 a year, every vet $600."),
]  # fmt: skip

LATENCIES = """
| Store | p50 (ms) | p99 (ms) |
|---|---|---|
| Redis | 3 | 12 |
| Memcached | 4 | 15 |
"""


def outcomes(draft: str, *evidence: str) -> set[str]:
    """The outcomes of all figures but names such as p99."""
    checks = check_figures(draft, [], evidence)
    return {check.outcome for check in checks if not check.figure.text.startswith("p")}


@pytest.mark.parametrize(("evidence", "draft"), SAME)
def test_a_figure_is_found_in_another_notation(evidence: str, draft: str) -> None:
    assert outcomes(draft, evidence) == {"figure_found"}


@pytest.mark.parametrize(("evidence", "draft"), DIFFERENT)
def test_another_figure_is_not_found(evidence: str, draft: str) -> None:
    assert "unsupported_figure" in outcomes(draft, evidence)


SETTINGS = """
deny = 4
unlock_time = 1200

- Adults: $55
- Children: $25
"""


@pytest.mark.parametrize(
    ("draft", "outcome"),
    [
        ("The deny option is set to 4.", "figure_found"),
        ("The deny option is set to 1200.", "unsupported_figure"),
        ("Children pay $25.", "figure_found"),
        ("Children pay $55.", "unsupported_figure"),
        ("Adults pay $55 and children less.", "figure_found"),
        ("It costs $55.", "figure_found"),
    ],
)
def test_the_lines_of_a_list_are_rows(draft: str, outcome: str) -> None:
    assert outcomes(draft, SETTINGS) == {outcome}


GRID = """
+-------+------------+
| Plan  | Price      |
+=======+============+
| Basic | 5 euros    |
+-------+------------+
| Large | 12 euros   |
+-------+------------+
"""
ROOMS = "The temperature is kept at 20 °C in the flats and at 16 °C in the stairwell."
NOTICE = "The period of notice is one month for the tenant and two months for the landlord."
REPAIRS = "We answer within two working days.\nUrgent repairs are done within 24 hours."
RENTS = """
| Plot | Tenant | Rent in pounds |
|---|---|---|
| 4a | Tully | 28 |
| 4b | Nowak | 24 |
"""
MODELS = "Model   small    large\nWeight  9.8 kg   13.2 kg\nNoise   38 dB    44 dB\n"
CANCELLED = "\n".join(
    f"If it is cancelled within {days} days, {share}% of the rent is due."
    for days, share in ((28, 25), (14, 50), (7, 100))
)
BOXES = "Each small box contains 61 g of salt and each large box 122 g."
LET = "| Plot | Rent | Let |\n|---|---|---|\n| full | 84 | 41 |\n| half | 45 | 63 |\n| raised | 6 | 21 |"
INSURED = """
| Item | Limit (pounds) | Excess (pounds) |
|---|---|---|
| Bicycle | 1,500 | 100 |
"""
SPAYS = """
Procedure | Weight | Code | Price
Bitch spay | under 10 kg | SP1 | 285
 | 10-24.9 kg | SP2 | 340
 | 25-39.9 kg | SP3 | 412
"""
FEES = (
    "Item 2027 2028 2029\nRetainer per month £945.00 £965.00 £985.00\nPer call £31.50 £32.25 £33.00"
)
BLOCKS = (
    "Leave is taken in blocks of one week (of one day for a disabled child), at most four weeks."
)
BADGES = "A visitor badge expires after 15 minutes and a staff badge expires after 5 minutes."


ESTIMATE = """
Cost estimate, version 3
Date | 2026-11-20
Code | Item | Firm | Quantity | Unit | Unit price CHF | Total CHF
221 | Windows | Tissot | 14 | pc | 2242 | 31388
224 | Roof tiles | Dach Sutter | 165 | m2 | 76 | 12540
230 | Electrics | Strasser | 1 | lump | 43900 | 43900
"""
CONTINUED = "258 | Kitchen | Lanz | 1 | lump | 35890\n281 | Parquet | Holz Iseli | 92 | m2 | 126"
SHIFTS = """
Station | From | To | Helper
Cake table | 11:00 | 12:30 | Ivan Petrov
Drinks | 11:00 | 13:30 | Robert Hahn
Drinks | 13:30 | 16:00 | Claire Moreau
Clearing up | 16:00 | 18:00 | Omar Farouk
"""
ROOM_BOOK = (
    "# Room book Lindenweg 14\n\nRoom | Floor | Walls\nBedroom 1 | Oak | Lime\nBath | Tiles | Tiles"
)
NIGHTS = "date | start | end\n2026-11-18 | 18:30 | 21:15\n2026-12-02 | 19:00 | 21:15"
TASKS = "- Lena: reply to the reviewer, by 4 December\n- Lena: poster template, by 8 January"
PYTHONS = "Users of\nUbuntu 9.10 can install Python 2.5, 2.6, and 3.1,\nwith Python 2.6 as default."
JVM = "The JVM Specification version 2, Sections 4.8 and 4.9, was the basis of some constraints."
BILLS = "- Water - £10.25\n- Rent - £20.00\n- Ann - £15.50\n- Gas - £9.00\n- Mail - £6.00\n"
ROWS = [*(f"Hall {n}: {n}7{n} chairs" for n in range(20)), "Income £852,730", "Costs £821,206"]
LIBRARY = "\n".join(ROWS)
MEETING = (
    "## 7. Yearly meeting\n\n* It is held in May at the club.\n* A quorum shall be eight members, or one"
    " fifth.\n* Both kinds of meeting are by hand."
)
CHOIR = (
    "### 2011\n\nSang in Riga, with the choir of the cathedral.\n\n### 2014\n\nBought the hall.\n"
)
DAYS = "Sports day is on 1 June at 11 am on the field.\n\nOur prize day is on 3 June at 2 pm.\n"


@pytest.mark.parametrize(
    ("draft", "evidence", "is_there"),
    [
        ("The staff badge expires after 5 minutes.", BADGES, True),
        ("The staff badge expires after 15 minutes.", BADGES, False),
        ("Visitor badges last 15 minutes and staff badges 5 minutes.", BADGES, True),
        ("Visitor badges last 5 minutes and staff badges 15 minutes.", BADGES, False),
        ("A badge expires after 5 minutes.", BADGES, True),
        ("A bitch spay of 10-24.9 kg costs £340.", SPAYS, True),
        ("A bitch spay of 10-24.9 kg costs £412.", SPAYS, False),
        ("The retainer is £945.00 in 2027.", FEES, True),
        ("The retainer is £985.00 in 2027.", FEES, False),
        ("The retainer is £945.00 in 2027 and £985.00 in 2029.", FEES, True),
        ("Blocks have a week, or a day for a disabled child, at most four weeks.", BLOCKS, True),
        ("The large plan costs 12 euros.", GRID, True),
        ("The large plan costs 5 euros.", GRID, False),
        ("Oslo opens at 9:30.", "Oslo,4 desks,9:30\nRome,7 desks,8:15", True),
        ("Rome opens at 9:30.", "Oslo,4 desks,9:30\nRome,7 desks,8:15", False),
        ("The write timeout is 90 s.", "read_timeout = 90 s\nwrite_timeout = 20 s", False),
        ("In the stairwell the temperature is 20 °C.", ROOMS, False),
        ("In the stairwell the temperature is 16 °C.", ROOMS, True),
        ("A landlord must give notice of one month.", NOTICE, False),
        ("A tenant must give notice of one month.", NOTICE, True),
        ("Urgent repairs take two working days.", REPAIRS, False),
        ("Ms Nowak pays 28 pounds.", RENTS, False),
        ("Ms Nowak pays 24 pounds.", RENTS, True),
        ("The small model weighs 13.2 kg.", MODELS, False),
        ("The small model weighs 9.8 kg.", MODELS, True),
        ("A large box has 61 g and a small one 122 g.", BOXES, False),
        ("A large box has 122 g of salt and a small one 61 g.", BOXES, True),
        ("In all, 125 plots are let.", LET, True),
        ("In all, 134 plots are let.", LET, False),
        (
            "In all it costs 6063 euros.",
            "| A | Year |\n|---|---|\n| a | 2020 |\n| b | 2021 |\n| c | 2022 |",
            False,
        ),
        (
            "All together weigh 61 kg.",
            "| A | B |\n|---|---|\n| a | 10 kg |\n| b | 20 € |\n| c | 31 % |",
            False,
        ),
        (
            "In all, signed on 3 May 2019.",
            "| A | B |\n|---|---|\n| a | +10 |\n| b | +20 |\n| c | -30 |",
            False,
        ),
        ("The rest of the price is £38.", "The trip is £72, of which £34 is paid.", True),
        ("It is kept at 15 bis 25 Grad.", "Kept at 15–25 °C.", True),
        ("Wait 6 Stunden.", "6 Std. warten.", True),
        ("The term of 2025 has 12 weeks.", "In 2025 the term has 12 weeks.", True),
        ("Turnout rose by four percentage points.", "It rose from 64% to 68%.", True),
        ("Turnout rose by five percentage points.", "It rose from 64% to 68%.", False),
        ("Bids rise by half a million.", "Bids rise by £0.5m.", True),
        ("A bicycle is insured up to £1,500, with an excess of £100.", INSURED, True),
        ("Hens are kept on plots of at most 190 m².", "A plot of hens has 190 m² or more.", False),
        ("Book at least 14 days ahead.", "Book 14+ days ahead.", True),
        ("At most 9 days are kept.", "Carry over a maximum of 9 days.", True),
        ("It lasts up to 9 days.", "It lasts for a time not exceeding 9 days.", True),
        ("It lasts at least 9 days.", "It lasts for a time not exceeding 9 days.", False),
        ("At both kinds of meeting the quorum is eight members.", MEETING, True),
        ("Nobody under 18 has a key.", "Holders of keys are 18 or older.", True),
        ("It took in £31,524 more than it spent.", LIBRARY, True),
        ("Fees are due on 1 March.", "Fees become due on the 1st day of March.", True),
        ("Three-quarters of the trustees agree.", "Two thirds of the trustees agree.", False),
        ("75% of the trustees agree.", "Three quarters of the trustees agree.", True),
        ("The five bills come to £60.75.", BILLS, True),
        ("The choir sang in Riga in 2011.", CHOIR, True),
        ("The choir sang in Riga in 2014.", CHOIR, False),
        ("Prize day is on 3 June at 2 pm.", DAYS, True),
        ("Prize day is on 3 June at 11 am.", DAYS, False),
        ("It has six paid wardens.", "**6.1** It has four paid wardens.", False),
        (
            "No term is longer than four years.",
            "6\\. Terms\n\nNo term is longer than two years.",
            False,
        ),
        ("Book no more than 14 days ahead.", "Book 14+ days ahead.", False),
        ("At least two thirds of the board agree.", "At least ⅔ of the board agree.", True),
        ("At least three quarters of the board agree.", "At least ⅔ of the board agree.", False),
        ("Come between 5 and 7 in the evening.", "Come in the evening, 5pm-7pm.", True),
        ("The fee is reduced by 10%.", "The fee changes by minus 10%.", True),
        ("Who pays all 3 terms by 31 March gets 4.5% off.", "By 31 January, 4.5% off 3.", False),
        (
            "The swim of 17 May 2021 is free.",
            "News of 2021-04-27\n\nThe swim of 17th May is free.",
            True,
        ),
        ("A cancellation within 14 days costs 25% of the rent.", CANCELLED, False),
        ("A cancellation within 14 days costs 50% of the rent.", CANCELLED, True),
        ("The windows come to 31,388 francs.", ESTIMATE, True),
        ("Roof tiles cost 76 francs per m2, for 165 m2.", ESTIMATE, True),
        ("Roof tiles come to 31,388 francs.", ESTIMATE, False),
        ("The quantity of 230 is 1.", ESTIMATE, True),
        ("Parquet: 92 m2 at CHF 126.", CONTINUED, True),
        ("Kitchen: 92 m2 at CHF 126.", CONTINUED, False),
        ("Ivan Petrov sells cake from 11:00 to 12:30.", SHIFTS.split("\n")[2], True),
        ("Claire Moreau serves drinks from 13:30 to 16:00.", SHIFTS, True),
        ("Robert Hahn serves drinks from 13:30 to 16:00 at the fair.", SHIFTS, False),
        ("Omar Farouk is at the cake table from 11:00 to 12:30.", SHIFTS, False),
        ("Bedroom 1 has oak as its floor.", ROOM_BOOK, True),
        ("Lena still owes the reply, to the reviewer, by 4 December.", TASKS, True),
        ("Lena still owes the reply, to the reviewer, by 8 January.", TASKS, False),
        ("On December 2 we sing until 9:15 pm.", NIGHTS, True),
        (
            "There are 12 instead of 8 cells in a batch.",
            "It grows from 8 to 12 cells in a batch.",
            True,
        ),
        ("On Ubuntu 9.10 you could install Python 2.5, 2.6 and 3.1.", PYTHONS, True),
        ("Sections 4.8 and 4.9 of version 2 were the basis of constraints.", JVM, True),
    ],
)
def test_a_figure_stands_beside_the_words_of_the_draft(
    draft: str, evidence: str, *, is_there: bool
) -> None:
    assert ("unsupported_figure" not in outcomes(draft, evidence)) == is_there


def test_of_other_cells_that_of_the_same_row_is_named() -> None:
    prices = (
        "| Leistung | Hund | Katze |\n|---|---|---|\n| Allgemeine Untersuchung | 34,00 | 30,00 |\n"
    )
    prices += "| Ultraschall Bauch | 82,00 | 76,00 |\n"
    [check] = check_figures("Der Bauchultraschall einer Katze kostet 82 Euro.", [], [prices])
    assert check.others == ("76,00",)


def test_the_cited_lines_count_before_the_rest_of_their_passage() -> None:
    lines = "Sailings need at least 6 people."
    [check] = check_figures("At most 6 people sail.", [lines], [lines, f"{lines} Others need 6."])
    assert check.outcome == "unsupported_figure"


def test_a_rate_of_another_time_is_named_with_what_it_counts() -> None:
    draft = "It leaks 0.3 mbar per minute."
    [check] = check_figures(draft, [], ["It leaks 0.3 mbar per hour."])
    assert draft[check.start : check.end] == "0.3 mbar per minute"
    assert check.note == 'the evidence says "0.3 mbar per hour"'


def test_rows_of_two_parts_of_a_file_are_not_mixed() -> None:
    head, *rows = SHIFTS.strip().split("\n")
    parts = ["\n".join(("shifts.csv", PLACE_END, head, *some)) for some in (rows[:2], rows[2:])]
    draft = "Omar Farouk is at the cake table from 11:00 to 12:30."
    assert {check.outcome for check in check_figures(draft, parts, parts)} == {"unsupported_figure"}


def test_swapped_cells_do_not_pass() -> None:
    assert outcomes(LATENCIES, LATENCIES) == {"figure_found"}
    assert outcomes("Memcached has a p99 of 15 s.", LATENCIES) == {"unsupported_figure"}
    assert outcomes("Memcached has a p99 of 12 ms.", LATENCIES) == {"unsupported_figure"}
    swapped = LATENCIES.replace("12", "?").replace("15", "12").replace("?", "15")
    assert "unsupported_figure" in outcomes(swapped, LATENCIES)


def test_values_swapped_between_two_things_do_not_pass() -> None:
    evidence = "The pool has 5 readers and 8 writers."
    assert outcomes("It has 8 writers and 5 readers.", evidence) == {"figure_found"}
    assert "unsupported_figure" in outcomes("The pool has 8 readers and 5 writers.", evidence)
    (check,) = check_figures("We run 12 servers.", [], ["We run 9 servers for 12 people."])
    assert (check.outcome, check.note) == (
        "unsupported_figure",
        'the evidence has "9" beside these words',
    )


@pytest.mark.parametrize(("draft", "evidence", "outcome"), [
    ("It takes 47 minutes.", "It takes 46.8 minutes.", "rounded"),
    ("It takes almost 50 minutes.", "It takes 62 minutes.", "unsupported_figure"),
    ("There are 1.9 million users.", "There are 1,912,345 users.", "rounded"),
    ("It began in 2020.", "It began in 2019.", "unsupported_figure"),
])  # fmt: skip
def test_a_rounded_figure_has_to_fit(draft: str, evidence: str, outcome: str) -> None:
    assert outcomes(draft, evidence) == {outcome}


def test_two_texts_may_give_different_figures_for_the_same_words() -> None:
    texts = ["| Work | Paid |\n|---|---|\n| Heating | € 16,860 |", "Sum: € 31,860"]
    assert outcomes("The heating costs € 31,860.", *texts) == {"figure_found"}
    assert "unsupported_figure" in outcomes("The heating costs € 31,860.", "\n\n".join(texts))


@pytest.mark.parametrize(
    "draft",
    [
        "We credit £245.00.", "We credit £155.00.", "We credit £290.00.", "We credit £545.00.",
        "We credit £155.00 for ten teeth.", "Not for children of less than 5 pounds.",
    ],
)  # fmt: skip
def test_amounts_do_not_follow_from_whatever_the_evidence_counts(draft: str) -> None:
    bill = "Of £690 for ten teeth we credit £145.00, in ten days. Give it three to four times."
    assert "unsupported_figure" in outcomes(draft, bill)


@pytest.mark.parametrize(
    "draft",
    ["The deposit is € 40.", "It is returned within 60 days.", "In total it is € 57."],
)
def test_a_result_without_a_cue_or_of_nothing_is_no_calculation(draft: str) -> None:
    evidence = "A deposit of € 20 is returned within 30 days; the key is € 20, 2 at most."
    assert outcomes(draft, evidence) == {"unsupported_figure"}


@pytest.mark.parametrize(
    ("draft", "evidence"),
    [
        ("The firm pays CHF 400 for each day.", "CHF 250 for each day, at most CHF 10,000."),
        ("The watch lasts one hour.", "A watch of two hours on plots 14 and 14."),
        ("It closes at 17:00 each day.", "It is open from 11:00 to 16:00 each day."),
        ("There are 28 windows.", "14 windows, of which 14 are new, and 10 doors."),
        ("There are 24 windows.", "14 windows and 10 doors."),
        ("A limit of 8192 files.", "A limit of 4096 files, at a use of 100%."),
        ("There are 12 windows left.", f"10 list.md{PLACE_END}There are 22 windows."),
    ],
)
def test_chance_is_no_calculation(draft: str, evidence: str) -> None:
    assert "computed" not in outcomes(draft, evidence)


def test_the_numbers_of_a_date_in_the_name_of_a_file_are_no_figures(tmp_path: Path) -> None:
    file = document("2026-10-13_treads", ["Treads 3 and 7 are changed."])
    with Engine(build(tmp_path, [file])) as engine:
        answer = engine.verify(VerifyRequest(draft="Treads 13 and 7 are changed.", now=NOW))
    assert answer.counts["unsupported_figure"] == answer.counts["figure_found"] == 1


@pytest.mark.parametrize(
    ("draft", "evidence", "calculation"),
    [
        ("The rest is £545.", "Of £690 we credit £145.", "£690 − £145 = £545"),
        ("Two of them at £145 make £290.", "Each is £145.", "£145 × Two = £290"),
        ("A fee of 20%, £138.", "The fee is 20% of the bill. The bill is £690.", "£690 × 20%"),
        ("The gap is 8 minutes.", "Bus: 13 minutes. Train: 5 minutes.", "13 minutes − 5 minutes"),
        ("Together they take 18 minutes.", "Bus 13 minutes, train 5 minutes.", "13 minutes + 5"),
        ("A fifth of them: 20%.", "5 GB of the 25 GB are used.", "5 GB / 25 GB"),
        ("It is 5.6 times as fast.", "A: 530 MB/s. B: 95 MB/s.", "530 MB/s / 95 MB/s"),
        ("It fell from 8192 to 128, a factor of 64.", "It was 8192; now it is 128.", "8192 / 128"),
        ("12 × 18.90 is 226.80 pounds.", "18.90 pounds a month", "18.90 × 12 = 226.80"),
        ("1,327 euros (1,240 + 65 + 22)", "1,240 rent, 65 parking, 22 cellar", "1,240 + 65 + 22"),
        ("4 probes, each after 75 s, are 300 s.", "4 probes; 75 s between probes", "75 s × 4"),
        ("All of it is € 48 in total.", "Rent € 30, water € 11, light € 7.", "€ 30 + € 11 + € 7"),
        ("Off days it is € 825 less.", "Budget € 4,100, actual € 3,275.", "€ 4,100 − € 3,275"),
        ("That makes € 137.40 a year.", "It is € 11.45 a month.", "€ 11.45 a month × 12"),
        ("The break lasts 15 minutes.", "A break from 10:15 to 10:30.", "10:30 − 10:15"),
        ("It came three weeks later.", "Out on 17 April, sent on 27 March.", "17 April − 27 March"),
        ("Filling takes 4 minutes.", "3.2 l tank; 0.8 l per minute.", "3.2 l / 0.8 l per minute"),
        ("A week is 32 kr cheaper than 7 days.", "11 kr a day, 45 kr a week.", "11 kr a day × 7"),
    ],
)
def test_a_calculation_is_shown(draft: str, evidence: str, calculation: str) -> None:
    notes = [c.note for c in check_figures(draft, [], [evidence]) if c.outcome == "computed"]
    assert any(calculation in note for note in notes)


@pytest.mark.parametrize("draft", [
    "Two problems remain.", "One of them is known.", "3. Restart the server.", "## 2.1 Install",
    "The first step is optional.", "It reads utf-8 and base64.",
])  # fmt: skip
def test_counting_words_and_numbers_of_headings_are_no_figures(draft: str) -> None:
    assert not [*check_figures(draft, [], ["It takes a while."])]


def test_a_word_for_a_number_is_one_if_the_evidence_counts_the_same() -> None:
    [outcome] = outcomes("Nine technicians work here.", "Seven technicians work here.")
    assert outcome == "unsupported_figure"


def test_a_figure_of_a_passage_that_is_not_cited_is_wrong() -> None:
    evidence = ["It was built in Oslo.", "It takes 90 minutes."]
    (check,) = check_figures("It takes 1.5 h.", evidence[:1], evidence)
    assert check.outcome == "unsupported_figure" and "another passage has it" in check.note
    (check,) = check_figures("It takes 1.5 h.", evidence[1:], evidence)
    assert (check.start, check.end, check.outcome, check.passage) == (9, 14, "figure_found", 1)


def test_a_figure_of_another_passage_does_not_replace_that_of_the_cited_one() -> None:
    cited, copy = (f"- monthly reminder (goes out on the {day})" for day in ("18th", "20th"))
    sentence = "The monthly reminder goes out on the 20th."
    [check] = check_figures(sentence, [cited], [cited, copy])
    assert check.outcome == "unsupported_figure"
    assert "18th" in check.note


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_read(draft: str, evidence: str) -> None:
    for check in check_figures(draft, [evidence], [evidence]):
        assert draft[check.start : check.end].startswith(check.figure.text[:1])


@given(st.integers(10, 10**9), st.sampled_from(["ms", "GB", "%", "km", "days", "requests"]))
def test_a_figure_supports_itself_and_not_the_next(number: int, unit: str) -> None:
    evidence = f"The limit is {number:,} {unit} for each of the nodes."
    assert outcomes(f"The limit is {number} {unit} for each node.", evidence) == {"figure_found"}
    changed = f"The limit is {number + 1 + (number % 10 == 9)} {unit} for each node."
    assert outcomes(changed, evidence) == {"unsupported_figure"}


@lengths
@pytest.mark.parametrize("piece", ["5 MB ", "1 ", "| 5 "])
def test_a_text_full_of_figures_takes_linear_time(piece: str, length: int) -> None:
    text = (piece * length)[: length // 10]
    find_figures(text[:100])
    with linear_time(length):
        find_figures(text)
