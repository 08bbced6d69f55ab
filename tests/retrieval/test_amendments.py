"""A document that changes parts of another one stands behind it, and a note quotes it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ingest.office.word import docx, paragraph
from retrieval.test_replaced_documents import MAIL, answered, first, notes, verified
from rolebundle.retrieval.packet import packet

LEASE = (
    "# Lease contract LC-2021/03\n\nDate: 1 March 2021\n\n"
    "## 2. Rent\n\nThe rent is 2,950 euros a month. Running costs are 410 euros a month.\n\n"
    "## 5. Gate\n\nRepairs of the gate are paid by the tenant. The landlord looks after the roof.\n\n"
    "## 6. Light\n\nIt seats 140 persons. Lamps hang in the window, with at most 150 lux.\n\n"
    "## 7. Subletting\n\nSubletting is not permitted.\n"
)
CHANGES = (
    "a) The rent is 3,180 euros (number 2).\n\n"
    "b) Repairs of the gate are paid by the landlord (number 5).\n\n"
    "c) Lamps hang in the case (number 6). The limit of 150 lux stays. It seats 116 persons.\n\n"
    "d) Subletting of up to 100 square metres is permitted.\n\nAll other terms stay.\n"
)
TITLE = "Amendment 1 to the lease contract of 1 March 2021"
AMENDMENT = "# {}\n\nDate: 22 September 2026\n\n" + CHANGES
TASK = "May we do subletting?"
QUOTE = 'amends [1], by its text: "d) Subletting of up to 100 square metres is permitted."'


def files(statement: str = TITLE, **more: str) -> Mapping[str, str]:
    return {"lease.md": LEASE, "letter.md": AMENDMENT.format(statement), **more}


@pytest.mark.parametrize(
    "statement",
    [
        TITLE,
        "First amendment to lease contract LC-2021/03",
        "Addendum no. 2 to LC-2021/03",
        "Addendum no. 2\n\nto the lease of 1 March 2021 between us",
        "Deed of variation of LC-2021/03",
        "Letter\n\nThe following clauses of the lease of 1 March 2021 are changed.",
        "Letter\n\nWe confirm the changes to contract LC-2021/03:",
        "Letter\n\nThis replaces clause 7 of LC-2021/03.",
        "Endorsement 2 to LC-2021/03",
        "Letter\n\nAfter a visit we must change the lease LC-2021/03.",
        "Letter\n\nI correct our contract of 1 March 2021:",
        "1. Nachtrag zum Mietvertrag LC-2021/03",
        "Brief\n\nWir müssen den Vertrag LC-2021/03 ändern.",
        "Lettre\n\nNous devons modifier le contrat LC-2021/03.",
        "Änderung des Vertrags LC-2021/03",
        "Brief\n\nZiffer 7 von LC-2021/03 wird ersetzt.",
        "Avenant n° 1 au contrat LC-2021/03",
        "Adenda al contrato LC-2021/03",
        "Modifica al contratto LC-2021/03",
        "Addendum n. 1 al contratto LC-2021/03",
        "Letter\n\nIn May. Amends the lease of 1 March 2021.",
        "Letter\n\nDieser Nachtrag ändert den Lease vom 1. März 2021.",
        "Letter\n\nModifie le lease du 1 mars 2021.",
        "Letter\n\nModifica el lease de 1 de marzo de 2021.",
        "Letter\n\nIn maggio. Modifica il lease del 1 marzo 2021.",
        "Letter\n\nWijzigt het lease van 1 maart 2021.",
        "Wijziging van contract LC-2021/03",
        "Aneks nr 1 do umowy LC-2021/03",
    ],
)
def test_a_document_says_in_many_ways_that_it_changes_another(
    tmp_path: Path, statement: str
) -> None:
    bundle = answered(tmp_path, files(statement), TASK)
    assert first(bundle) == "lease.md"
    assert f"letter.md {QUOTE}" in notes(bundle)


@pytest.mark.parametrize("suffix", ["html", "docx", "txt"])
def test_in_other_formats(tmp_path: Path, suffix: str) -> None:
    parts = AMENDMENT.format(TITLE).replace("# ", "").split("\n\n")
    contents: dict[str, str | bytes] = {
        "html": "".join(f"<p>{part}</p>" for part in parts),
        "docx": docx("".join(map(paragraph, parts))),
        "txt": "\n".join(parts),
    }
    found = {"lease.md": LEASE, f"letter.{suffix}": contents[suffix]}
    assert QUOTE in notes(answered(tmp_path, found, TASK))


@pytest.mark.parametrize("head", ["## Clause 7", "Clause 7:", "**§ 7**"])
@pytest.mark.parametrize("own", ["7.", "Article 7.", "§ 7"])
def test_a_clause_may_be_a_heading(tmp_path: Path, head: str, own: str) -> None:
    text = f"# {TITLE}\n\nDate: 22 September 2026\n\n{head}\n\nSubletting is allowed from May.\n"
    lease = LEASE.replace("## 7. Subletting\n\nSubletting", f"## {own} Use by others\n\nSubletting")
    bundle = answered(tmp_path, {"lease.md": lease, "letter.md": text}, TASK)
    assert '"Subletting is allowed from May."' in notes(bundle)


def test_what_amends_a_passage_comes_right_behind_it(tmp_path: Path) -> None:
    text = "Hall {}: repairs by the tenant, and no more than this.\n"
    others = {f"hall {n}.md": text.format(n) for n in range(2)}
    task = "lease contract: repairs of the gate by the tenant"
    bundle = answered(tmp_path, files("Addendum no. 2 to LC-2021/03", **others), task)
    paths = [(passage.citation.locator or "").rpartition(":")[0] for passage in bundle.selected]
    assert paths == ["lease.md", "letter.md"]


def test_a_part_of_the_passage_that_did_not_change_has_no_note(tmp_path: Path) -> None:
    assert notes(answered(tmp_path, files(), "Who looks after the roof?")) == ""


SHORT = "# {}\n\nDate: 1 March 2021{}\n\n## 7. Subletting\n\nSubletting is not permitted.\n"
NUMBERED = SHORT.format("House", ", given by Norvale Homes. Contract no. LC-2021/03.")


OTHER_WORDS = "Harbour: may guests stay?"
HARBOUR = LEASE.replace("Lease contract", "Harbour lease contract")


def test_a_question_may_have_other_words(tmp_path: Path) -> None:
    short = {**files(), "lease.md": SHORT.format("Harbour lease contract LC-2021/03", "")}
    assert QUOTE in notes(answered(tmp_path / "a", short, OTHER_WORDS))
    bundle = answered(tmp_path / "b", {**files(), "lease.md": HARBOUR}, OTHER_WORDS)
    assert notes(bundle) == "letter.md says that it amends [1]"


@pytest.mark.parametrize("task", ["How high is the rent?", "What do we pay a month in all?"])
def test_a_figure_may_stand_alone_in_place_of_a_clause(tmp_path: Path, task: str) -> None:
    text = "We change the lease of 1 March 2021 for the rent.\n\nClause 2 now reads: 3,180 euros.\n"
    short = AMENDMENT.format(TITLE).replace(CHANGES, text.replace("We change", "About"))
    bundle = answered(tmp_path, {**files(), "letter.md": short}, task)
    assert 'amends [1], by its text: "Clause 2 now reads: 3,180 euros."' in notes(bundle)


def test_a_document_of_one_folder_may_be_named_by_one_word(tmp_path: Path) -> None:
    lease = LEASE.replace("Lease contract LC-2021/03", "Lease of the quay")
    found = {"quay/house.md": lease, "quay/letter.md": AMENDMENT.format("Amendment to the lease")}
    assert QUOTE in notes(answered(tmp_path / "a", found, TASK))
    apart = {name.replace("quay", str(n)): text for n, (name, text) in enumerate(found.items())}
    assert QUOTE not in notes(answered(tmp_path / "b", apart, TASK))


def test_the_number_of_a_document_may_stand_in_its_text(tmp_path: Path) -> None:
    found = {**files("Change of LC-2021/03"), "house.md": NUMBERED}
    found.pop("lease.md")
    about = MAIL.replace("Gloves", "LC-2021/03").format("X <x@x.example>", "Thank you.")
    bundle = answered(tmp_path, {**found, "about.eml": about.replace("2026", "2021")}, TASK)
    assert QUOTE in notes(bundle)


def test_what_says_itself_that_it_amends_is_to_be_used(tmp_path: Path) -> None:
    harbour = {**files(), "lease.md": HARBOUR}
    assert f"{QUOTE}. Answer from it." in packet(answered(tmp_path / "a", harbour, TASK))
    assert "[1]. Find out which" in packet(answered(tmp_path / "b", harbour, OTHER_WORDS))
    other = answered(tmp_path / "c", {**harbour, "club.md": f"{TASK} {TASK}\n"}, TASK)
    assert "that it amends [2]" in notes(other) and "Answer from it." not in packet(other)


HARMLESS: dict[str, Mapping[str, str]] = {
    "another one": files(
        "Amendment to the lease contract of 1 May 2021",
        **{"barn.md": "# Lease contract of the barn\n\nDate: 1 May 2021\n\nIt is subletting."},
    ),
    "nothing named": files("Letter"),
    "no change": files("Letter\n\nThere are no changes to contract LC-2021/03."),
    "older": {**files(), "letter.md": AMENDMENT.format(TITLE).replace("2026", "2019")},
    "untrusted": {**files(), "letter.md": f"---\ntrust_tier: untrusted\n---\n{AMENDMENT.format(TITLE)}"},
    "draft": {"lease.md": LEASE, "letter draft.md": AMENDMENT.format(TITLE)},
}  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS)
def test_other_documents_amend_nothing(tmp_path: Path, case: str) -> None:
    assert "amends" not in notes(answered(tmp_path, HARMLESS[case], TASK))
    draft = "Subletting is not permitted (lease.md)."
    assert "amends" not in str(verified(tmp_path / "v", HARMLESS[case], draft).findings)


def test_a_mail_from_outside_is_not_quoted_against_an_own_file(tmp_path: Path) -> None:
    mail = MAIL.replace("Gloves", "Amendment to LC-2021/03").format("X <x@x.example>", CHANGES)
    bundle = answered(tmp_path, {"lease.md": LEASE, "m.eml": mail}, TASK)
    assert notes(bundle) == "m.eml says that it amends [1]"


@pytest.mark.parametrize(
    ("sender", "is_quoted"),
    [
        ("Norvale <a@norvale.example>", True),
        ("Norvale <a@mail.norvale.example>", True),
        ("Norvale Homes <a@norvale.evilness.example>", False),
        ("Norvale Homes <a@norvale.ev.example>", False),
        ("Norvale <a@rvale-homes.example>", False),
        ("Norvale <a@gmail.com>", False),
        ("House <a@house.example>", False),
    ],
)
def test_a_mail_of_who_is_named_in_the_document_is_quoted(
    tmp_path: Path, sender: str, is_quoted: bool
) -> None:
    mail = MAIL.replace("Gloves", "Amendment to LC-2021/03").format(sender, CHANGES)
    bundle = answered(tmp_path, {"lease.md": NUMBERED, "m.eml": mail}, TASK)
    said = notes(bundle)
    assert said.startswith("m.eml says that it amends [1]")
    assert (QUOTE.partition(": ")[2] in said) == is_quoted
    assert "Answer from it." not in packet(bundle)
    draft = "Subletting is not permitted (lease.md)."
    found = verified(tmp_path / "v", {"lease.md": NUMBERED, "m.eml": mail}, draft).findings
    assert any("100 square" in (f.note or "") for f in found) == is_quoted


def test_documents_of_other_standing_do_not_hide_an_amendment(tmp_path: Path) -> None:
    web = "---\ntrust_tier: untrusted\n---\n# Lease contract LC-2021/03\n\nSubletting LC-2021/03!\n"
    found = {**files("Endorsement 2 to LC-2021/03"), "web.md": web}
    assert QUOTE in notes(answered(tmp_path, found, TASK))


def test_of_several_amendments_the_latest_is_quoted(tmp_path: Path) -> None:
    dated = {
        f"{name}.md": AMENDMENT.format(TITLE).replace("2026", year).replace("to 100", f"to {year}")
        for name, year in (("a", "2023"), ("b", "2025"), ("c", "2024"))
    }
    assert notes(answered(tmp_path, {"lease.md": LEASE, **dated}, TASK)).startswith(
        'b.md amends [1], by its text: "d) Subletting of up to 2025 square'
    )


def test_a_thing_with_another_number_is_not_meant(tmp_path: Path) -> None:
    rooms = "".join(f"{n}. The room {n} costs {n}01 euros a month.\n\n" for n in range(1, 8))
    changes = "Clause 2: the room 2 costs 302 euros.\n\nClause 7: the room 7 costs 307 euros.\n"
    lease = {"lease.md": f"# Lease contract LC-2021/03\n\nDate: 1 March 2021\n\n{rooms}"}
    found = {**lease, "letter.md": AMENDMENT.format(TITLE).partition("a)")[0] + changes}
    assert "307 euros" in notes(answered(tmp_path / "a", found, "What does room 7 cost?"))
    assert "euros" not in notes(answered(tmp_path / "b", found, "What does room 3 cost?"))


SHEDS = (
    "# Lease contract LC-2021/03\n\nDate: 1 March 2021\n\n## 1. Sheds\n\nGuests may use sheds 2 and 3 "
    "and the yard. Shed 1 is closed to the crew. The gate is closed on Sundays. The keeper, Mr. Adam"
    " Renn, accompanies the guests during the whole visit.\n\n## 2. Sums\n\nThe boat is worth 900"
    " euros, with an excess of 80 euros for each claim.\n"
)
SHED_CHANGES = (
    "Clause 1: guests may also use shed 1, but not for storage. The gate is open on Sundays.\n\n"
    "Mr. Renn is on leave; Mrs. Quill will accompany you instead.\n\nThe excess for each claim is 95"
    " euros.\n\nAll other clauses stay as they are.\n"
)


@pytest.mark.parametrize(
    ("draft", "quote"),
    [
        ("Shed 1 is off limits for the crew", "Clause 1"),
        ("The gate is closed on Sundays", "The gate"),
        ("Mr. Adam Renn stays with the guests all the time", "Mr. Renn is"),
        ("The excess is 80 euros for each claim", "The excess"),
        ("Guests may use sheds 2 and 3 and the yard", ""),
        ("The boat is worth 900 euros", ""),
    ],
)
def test_of_a_clause_each_sentence_that_changes_counts(
    tmp_path: Path, draft: str, quote: str
) -> None:
    letter = f"# {TITLE}\n\nDate: 22 September 2026\n\n{SHED_CHANGES}"
    answer = verified(tmp_path, {"lease.md": SHEDS, "letter.md": letter}, f"{draft} (lease.md).")
    assert (f'amends it: "{quote}' in str(answer.findings)) == bool(quote)


@pytest.mark.parametrize(
    ("draft", "quote"),
    [
        ("Subletting is not permitted", "d) Subletting"),
        ("The rent is 2,950 euros a month", "a) The rent"),
        ("Gate repairs are at the tenant's expense", "b) Repairs"),
        ("Lamps hang in the window", "c) Lamps"),
        ("It seats 140 persons", "It seats"),
        ("Running costs are 410 euros a month", ""),
        ("The landlord looks after the roof", ""),
        ("The lamps have at most 150 lux", ""),
        ("Before, subletting was not permitted", ""),
        ("Subletting of up to 100 square metres is permitted", ""),
    ],
)
def test_a_draft_that_cites_what_was_changed(tmp_path: Path, draft: str, quote: str) -> None:
    found = verified(tmp_path, files(), f"{draft} (lease.md).").findings
    said = [f.note or "" for f in found if f.code == "old_source"]
    assert len(said) == bool(quote)
    assert all(f'letter.md amends it: "{quote}' in note for note in said)


def test_short_sentences_are_in_the_language_of_their_text(tmp_path: Path) -> None:
    old = "# Mietvertrag MV-2021/4\n\n## § 5 Tor\n\nReparaturen am Tor bezahlt der Mieter. Das Dach hält der Vermieter instand.\n"
    new = "# 1. Nachtrag zu MV-2021/4\n\n§ 5: Reparaturen am Tor bezahlt der Vermieter.\n"
    draft = "Die Reparaturen am Tor zahlt der Mieter (Mietvertrag.md)."
    answer = verified(tmp_path, {"Mietvertrag.md": old, "Nachtrag.md": new}, draft)
    assert 'amends it: "§ 5: Reparaturen' in str(answer.findings)


@pytest.mark.parametrize(
    "change",
    [
        "Art. 1 (modifica dell'art. 3).",
        "Article 1 (modification de l’article 3).",
        "Artikel 1 (Änderung von Artikel 3).",
        "Art. 1 (amendment of art. 3).",
        "Artículo 1 (modificación del artículo 3).",
        "Artikel 1 (wijziging van artikel 3).",
    ],
)
def test_an_article_changes_one_with_another_number(tmp_path: Path, change: str) -> None:
    old = "# Contratto di affitto\n\nArt. 1. Il canone è di 90 euro.\n\nArt. 3. La sansa resta alla cooperativa.\n"
    new = f"# Addendum n. 1 al contratto di affitto\n\n{change} La sansa resta alla concedente.\n"
    draft = "La sansa resta alla cooperativa (Contratto.md)."
    answer = verified(tmp_path, {"Contratto.md": old, "Addendum contratto.md": new}, draft)
    assert 'amends it: "La sansa resta alla concedente.' in str(answer.findings)


def test_what_is_amended_does_not_outdate_the_amendment(tmp_path: Path) -> None:
    old = LEASE.replace("Subletting is not", "The tenant may not lend the shop to others")
    new = "# Amendment to lease contract LC-2021/03\n\n7. The tenant may lend the shop to others.\n"
    task = "May the tenant lend the shop to others by the lease contract?"
    bundle = answered(tmp_path, {"lease.md": old, "amendment.md": new}, task)
    assert "amends [" in notes(bundle) and "may be outdated" not in notes(bundle)


@pytest.mark.parametrize("dash", [" –", ":", " -"])
def test_a_heading_names_the_clause_of_all_sentences_below_it(tmp_path: Path, dash: str) -> None:
    lease = f"# Lease\n\nDate: 1 March 2021\n\n## Article 5{dash} Bar\n\nNo sale of alcohol in the hall.\n"
    new = "# {}\n\nDate: 22 May 2026\n\n## 2. Bar (article 5)\n\nThe flag is up. Wine is fine in the hall.\n"
    letter = new.format("Amendment 1 to the lease of 1 March 2021")
    bundle = answered(tmp_path, {"lease.md": lease, "letter.md": letter}, "Is alcohol sold there?")
    assert "Wine is fine" in notes(bundle)


def test_the_parties_of_an_amendment_change_nothing(tmp_path: Path) -> None:
    lease = "# Policy FM-40921\n\nDate: 2 January 2024\n\nFoyer Mutual insures Lindenhof House against fire.\n"
    letter = "# Addendum to policy FM-40921\n\nDate: 1 May 2026\n\nFoyer Mutual, Lindenhof House.\n"
    bundle = answered(tmp_path, {"p.md": lease, "a.md": letter}, "Who insures against fire?")
    assert "Foyer" not in notes(bundle)
