"""Of several versions of a page the newest stands, with its own lines (docs/quality.md)."""

from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.retrieval.packet import packet
from rolebundle.retrieval.versions import combine_versions, is_old_by_path, newer_by_path
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
        ("Liste Oktober.xlsx", "Liste Oktober berichtigt.xlsx"),
        ("Notitie concept.docx", "Notitie.docx"),
        ("Offre provisoire.docx", "Offre.docx"),
        ("Scheda.xlsx", "Scheda CORRETTA.xlsx"),
        ("Fiche.xlsx", "Fiche_mise à jour.xlsx"),
        ("Liste 2026 ungültig.xlsx", "Liste 2026.xlsx"),
        ("Angebot 1.docx", "Angebot 2 überarbeitet.docx"),
        ("contract_v2_FINAL (3).docx", "contract Helvor_signed.pdf"),
        ("House rules v2 FINAL.docx", "House rules v3 corrections.docx"),
        ("House rules v2 FINAL.docx", "House rules v3.docx"),
        ("newsletter draft.md", "newsletter draft 2 (new).md"),
        ("Brief Entwurf 1.docx", "Brief Entwurf 2.docx"),
        ("statutes draft 2026.docx", "statutes_2023_signed.pdf"),
        ("paper_draft_v2_NO_comments.docx", "paper_draft_v3_final_really.docx"),
        ("offer_v1_MK.docx", "offer_v2_HB.docx"),
        ("plan v2 Anna.md", "plan v3 (after call).md"),
        ("old plan.md", "plan.md"),
        ("Kopie von plan v2.md", "plan v3.md"),
        ("prices spring 2026.xlsx", "prices winter 2026 NEW.xlsx"),
        ("Karte Herbst 2025.pdf", "Karte Frühling 2026.pdf"),
        ("menu été 2026.pdf", "menu automne 2026.pdf"),
        ("order.txt", "order NEW.txt"),
        ("Plan_2026.csv", "Plan_2026_neu.csv"),
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
        ("invoice v1 Munich.pdf", "invoice v2 Berlin.pdf"),
        ("lease Miller v1 signed.pdf", "lease Okafor v2 signed.pdf"),
        ("v1 plan.md", "v2 notes.md"),
        ("backup and software.md", "software.md"),
        ("pep-0249.rst", "pep-2026.rst"),
        ("menu 2026.pdf", "menu winter 2026.pdf"),
        ("SOP 07A air.md", "SOP 07 air (2024).md"),
        ("winter menu v1.pdf", "summer menu v2.pdf"),
    ],
)
def test_files_of_other_days_or_names_are_no_versions(one: str, other: str) -> None:
    assert newer_of(one, other) == newer_of(other, one) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Allergens March 2026.xlsx", "Allergens updated June 2026.xlsx"),
        ("Allergene März 2026.xlsx", "Allergene aktualisiert Juni 2026.xlsx"),
        ("Allergènes mars 2026.xlsx", "Allergènes mis à jour juin 2026.xlsx"),
        ("Alérgenos marzo 2026.xlsx", "Alérgenos revisado junio 2026.xlsx"),
        ("Allergeni maggio 2026.xlsx", "Allergeni CORRETTA giugno 2026.xlsx"),
        ("Allergenen maart 2026.xlsx", "Allergenen herzien mei 2026.xlsx"),
    ],
)
def test_what_is_corrected_later_is_newer_than_the_only_other_one(older: str, newer: str) -> None:
    old, new = (passage("c1", path=path) for path in (older, newer))
    assert newer_by_path(old, [older, newer], "") == [newer]
    assert newer_by_path(new, [older, newer], "") == []
    assert newer_by_path(old, [older, newer, newer.replace("2026", "2025")], "") == []


def test_a_table_of_few_words_has_a_note_about_the_corrected_one() -> None:
    rows = "Piatto | Uova | Sedano\nPici | {} | no\nRibollita | no | sì\nCantucci | no | no"
    eggs = {"Scheda marzo 2026": "no", "Scheda CORRETTA giugno 2026": "sì"}
    sheets = [document(name, [rows.format(said)]) for name, said in eggs.items()]
    bundle = asked(*sheets, task="Ci sono uova nei pici?")
    assert bundle.selected[0].document_id == "Scheda CORRETTA giugno 2026"
    assert "giugno 2026.md is newer than" in packet(bundle).replace('"', "")


@pytest.mark.parametrize(
    ("path", "is_old"),
    [
        ("plan backup.md", True),
        ("plan.md.bak", True),
        ("plan_old.md", True),
        ("plan - Kopie (2).docx", True),
        ("rates/rate card v1 (old).md", True),
        ("old/plan.md", True),
        ("Archive 2023/plan.md", True),
        ("old files/plan.md", True),
        ("Copy of plan.md", True),
        ("notes/Kopie_von plan.md", True),
        ("notes/backup and software.md", False),
        ("copy deadlines.md", False),
        ("old town/walk.md", False),
        ("Alte Oper Karten.md", False),
        ("archive software/plan.md", False),
        ("previous employers.md", False),
    ],
)
def test_which_name_says_that_a_file_is_old(path: str, is_old: bool) -> None:
    assert is_old_by_path(path) == is_old


def newer_of(path: str, other: str) -> list[str]:
    return newer_by_path(passage("c1", path=path), [other], "What is the fee?")


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
