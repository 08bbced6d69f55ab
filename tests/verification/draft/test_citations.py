"""A citation must name a passage of the evidence, its lines, and something that it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rolebundle.contracts.verification import Finding, Verification, VerifyRequest
from rolebundle.engine import Engine
from support.corpora import NOW, build, chunk, document

AUDIT = "Access tokens live for fifteen minutes.\nThey are signed by the gateway.\nKeys rotate."
BACKUPS = "Backups of the warehouse are kept in Lisbon for thirty days."
GERMAN = "Die Sicherungen des Lagers werden dreißig Tage lang in Lissabon aufbewahrt."


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    audit = replace(
        document("audit", []), chunks=(chunk("audit#0", AUDIT, start_line=5, end_line=7),)
    )
    manual = replace(
        document("manual", [], title="Manual"),
        chunks=(
            chunk("manual#0", "Wear a helmet in the yard at night.", page=3),
            chunk("manual#1", "Gates close at eight each evening.", page=4),
        ),
    )
    documents = [audit, manual, document("backups", [BACKUPS]), document("german", [GERMAN])]
    with Engine(build(tmp_path_factory.mktemp("citations"), documents)) as opened:
        yield opened


IDS = ["audit#0", "backups#0", "manual#0", "manual#1", "german#0"]


def verified(
    engine: Engine, draft: str, *, whole_corpus: bool = False, **fields: object
) -> Verification:
    values = {"draft": draft, "now": NOW} | ({} if whole_corpus else {"chunk_ids": IDS}) | fields
    return engine.verify(VerifyRequest.model_validate(values))


def citations(answer: Verification) -> list[Finding]:
    return [finding for finding in answer.findings if finding.check == "citations"]


TRUE = [
    "Access tokens live for fifteen minutes [1].",
    "Backups of the warehouse are kept for thirty days [2].",
    "Access tokens live for fifteen minutes (audit.md:5-7).",
    "Access tokens live for fifteen minutes (audit.md:5-5).",
    "Access tokens live for fifteen minutes (audit#0).",
    "Wear a helmet in the yard (manual.md, p. 3).",
    "Wear a helmet in the yard (Manual, p. 3).",
]


@pytest.mark.parametrize("draft", TRUE)
def test_true_citations(engine: Engine, draft: str) -> None:
    [finding] = citations(verified(engine, draft))
    assert (finding.code, finding.fails, finding.remedy) == ("cited", False, None)


@pytest.mark.parametrize("draft", TRUE[2:])
def test_true_citations_of_the_whole_corpus(engine: Engine, draft: str) -> None:
    [finding] = citations(verified(engine, draft, whole_corpus=True))
    assert finding.code == "cited"


@pytest.mark.parametrize("whole_corpus", [False, True])
@pytest.mark.parametrize(
    ("citation", "code", "place"),
    [
        ("[9]", "unknown_citation", "audit.md:5-7"),
        ("[0]", "unknown_citation", "audit.md:5-7"),
        ("(nothing.md:5-7)", "unknown_citation", "audit.md:5-7"),
        ("(audit.md:50-70)", "unknown_citation", "audit.md:5-7"),
        ("(audit.md:7-5)", "unknown_citation", "audit.md:5-7"),
        ("(audit.md:5-8)", "wrong_place", "audit.md:5-7"),
        ("(audit.md:7-7)", "wrong_place", "audit.md:5-7"),
        ("(audit.md:1-999999999)", None, "audit.md:5-7"),
        ("(backups.md:1-1)", "wrong_place", "audit.md:5-7"),
        ("(Manual, p. 4)", None, "audit.md:5-7"),
    ],
)
def test_false_citations_fail_and_name_the_true_place(
    engine: Engine, citation: str, code: str | None, place: str, whole_corpus: bool
) -> None:
    draft = f"Access tokens live for fifteen minutes {citation}."
    answer = verified(engine, draft, whole_corpus=whole_corpus)
    [finding] = citations(answer)
    assert finding.code in ((code,) if code else ("unknown_citation", "wrong_place"))
    assert finding.fails
    assert finding.locator == place
    assert draft[finding.span.start : finding.span.end] in citation
    assert answer.verdict == "failed"


def test_a_citation_of_something_else_is_unrelated(engine: Engine) -> None:
    [finding] = citations(
        verified(engine, "Elephants in the zoo drink plenty of cold fresh water daily [2].")
    )
    assert (finding.code, finding.fails) == ("unrelated_citation", True)


def test_each_citation_of_a_sentence_counts(engine: Engine) -> None:
    found = citations(verified(engine, "Access tokens live for fifteen minutes [1][3]."))
    assert [finding.code for finding in found] == ["cited", "wrong_place"]


def test_another_language_is_a_remark(engine: Engine) -> None:
    draft = (
        "Les sauvegardes de cet entrepôt central sont conservées pour un mois entier dans la ville "
        "voisine [2]."
    )
    answer = verified(engine, draft)
    assert [(f.code, f.fails) for f in citations(answer)] == [("unchecked_language", False)]
    assert answer.verdict == "nothing_to_check"


def test_the_same_language_is_checked(engine: Engine) -> None:
    draft = "Die Sicherungen des Lagers werden dreißig Tage lang aufbewahrt [5]."
    assert [finding.code for finding in citations(verified(engine, draft))] == ["cited"]


def test_sentences_without_a_citation_are_named(engine: Engine) -> None:
    draft = "Access tokens live for fifteen minutes [1]. Keys rotate."
    answer = verified(engine, draft)
    assert [draft[span.start : span.end] for span in answer.uncited_sentences] == ["Keys rotate."]


@pytest.mark.parametrize("citation", ["⁹", " [Smith 2021]", " (source 9)", " [^note]", " [^9]"])
def test_other_forms_of_citations_are_unknown(engine: Engine, citation: str) -> None:
    answer = verified(engine, f"Access tokens live for fifteen minutes.{citation}")
    assert [finding.code for finding in citations(answer)] == ["unknown_citation"]
    assert answer.verdict == "failed"


def test_a_title_beside_a_quote_is_its_citation(engine: Engine) -> None:
    quote = '"Wear a helmet in the yard at night" (Manual).'
    answer = verified(engine, quote)
    assert answer.counts["exact"] == 1
    answer = verified(engine, '"Backups of the warehouse are kept in Lisbon" (Manual).')
    assert answer.counts["misattributed"] == 1


def test_lines_of_many_thousands_name_no_place(engine: Engine, tmp_path: Path) -> None:
    texts = [f"line {number} of the log" for number in range(2_000)]
    with Engine(build(tmp_path, [document("log", texts)])) as other_engine:
        draft = "This is line 7 of the log (log.md:1-2000)."
        [finding] = citations(verified(other_engine, draft, whole_corpus=True))
    assert finding.code == "unknown_citation"
