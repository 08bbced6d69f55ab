"""A document that says that it replaces another one comes before it, and a note says so."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ingest.office.word import docx, paragraph
from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.retrieval.passage_text import quoted
from rolebundle.storage.passages import MAX_STATING
from rolebundle.workspace import Workspace
from support.source_tree import write_files

TASK = "How often are gloves changed at the bench?"
OLD = "# Safety rule SR-14\n\nIssued: 14 February 2023\n\nGloves are changed every 60 minutes at the bench.\n"
BODY = (
    "Gloves at the bench are changed every 30 minutes, in two pairs, the outer one of butyl and the"
    " inner one of nitrile; a third one is in the drawer."
)
NEW = "# Safety rule SR-21\n\nIssued: 1 October 2026\n\n{}\n\n" + BODY + "\n"
REPLACES = "This rule replaces SR-14 of 14\nFebruary 2023."
MAIL = "From: {}\nTo: Me <me@c.example>\nDate: Wed, 14 Oct 2026 09:00:00 +0000\nSubject: Gloves\n\n{}\n"


def ingested(folder: Path, files: Mapping[str, str | bytes]) -> Workspace:
    workspace = Workspace(folder / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(folder / "docs", files)], IngestOptions(lexical_only=True))
    return workspace


def answered(folder: Path, files: Mapping[str, str | bytes], task: str = TASK) -> RetrievalBundle:
    with Engine(ingested(folder, files)) as engine:
        return engine.retrieve(RetrievalRequest(task=task))


def verified(folder: Path, files: Mapping[str, str | bytes], draft: str) -> Verification:
    with Engine(ingested(folder, files)) as engine:
        return engine.verify(VerifyRequest(draft=draft))


def notes(bundle: RetrievalBundle) -> str:
    return "; ".join(w.message for w in bundle.warnings if w.code == "MAY_BE_REPLACED")


def first(bundle: RetrievalBundle) -> str:
    return (bundle.selected[0].citation.locator or "").rpartition(":")[0]


@pytest.mark.parametrize(
    "statement",
    [
        REPLACES,
        "| Supersedes | SR-14 |\n|---|---|\n| by | Brandt |",
        "Safety rule SR-21 supersedes SR-14.",
        "This rule (SR-21) replaces SR-14.",
        "Valid from 15 October 2026\nThese rules replace the rules of SR-14.",
        "**Ersetzt:** SR-14",
        "Diese Regel tritt an die Stelle der Regel vom 14. Februar 2023.",
        "La présente règle annule et remplace SR-14.",
        "Esta regla sustituye a SR-14.",
        "La presente regola sostituisce SR-14.",
        "Deze regel vervangt SR-14.",
        "Niniejsza zasada zastępuje SR-14.",
        "The safety rule SR-14 is no longer valid.",
        "Die Rule SR-14 gilt nicht mehr.",
        "Die Rule SR-14 ist ungültig.",
        "The safety rule SR-14 is now void.",
        "La rule SR-14 est caduque.",
        "The safety rule of February 2023 is no longer valid.",
    ],
)
def test_a_document_says_in_many_ways_that_it_replaces_another(
    tmp_path: Path, statement: str
) -> None:
    bundle = answered(tmp_path, {"SR-14.md": OLD, "SR-21.md": NEW.format(statement)})
    assert "SR-21.md replaces [" in notes(bundle)


@pytest.mark.parametrize(
    ("old", "new", "statement"),
    [
        ("SR-14.md", "SR-21.md", REPLACES),
        ("glove plan.md", "bench.md", 'This replaces the "glove plan".'),
        ("glove plan March.md", "glove plan.md", "This plan replaces the one of 14 February 2023."),
        (
            "glove plan March.md",
            "glove talk.md",
            "This replaces what was said on 14 February 2023.",
        ),
        ("glove bench v1.md", "glove rules.md", "This page replaces version 1."),
        ("glove plan A.md", "glove plan B.md", "This replaces the glove plan."),
    ],
)
def test_what_names_a_document_comes_above_it(
    tmp_path: Path, old: str, new: str, statement: str
) -> None:
    plain = answered(tmp_path / "plain", {old: OLD, new: NEW.format("This is a rule.")})
    bundle = answered(tmp_path, {old: OLD, new: NEW.format(statement)})
    assert (first(plain), first(bundle)) == (old, new)


def test_the_name_of_the_older_one_may_have_only_its_month(tmp_path: Path) -> None:
    old = OLD.replace("Issued: 14 February 2023\n\n", "").replace("SR-14", "of gloves")
    new = NEW.format("This sheet replaces the one of 14 February 2023.")
    bundle = answered(tmp_path, {"glove plan 2023-02.md": old, "glove talk.md": new})
    assert '"glove talk.md" replaces [' in notes(bundle)


@pytest.mark.parametrize("suffix", ["html", "docx", "csv", "txt"])
def test_in_other_formats(tmp_path: Path, suffix: str) -> None:
    text = NEW.format(REPLACES).replace("# ", "")
    contents: dict[str, str | bytes] = {
        "html": "".join(f"<p>{part}</p>" for part in text.split("\n\n")),
        "docx": docx("".join(map(paragraph, text.split("\n\n")))),
        "csv": f"Replaces,SR-14\nText,{BODY}\n",
        "txt": text,
    }
    bundle = answered(tmp_path, {"SR-14.md": OLD, f"SR-21.{suffix}": contents[suffix]})
    assert first(bundle) == f"SR-21.{suffix}"


HARMLESS = {
    "negation": {"SR-21.md": NEW.format("This rule does not replace SR-14.")},
    "nicht": {"SR-21.md": NEW.format("Diese Regel ersetzt SR-14 nicht.")},
    "future": {"SR-21.md": NEW.format("This rule will replace SR-14.")},
    "opposite": {"SR-21.md": NEW.format("This rule is replaced by SR-14.")},
    "other subject": {"SR-21.md": NEW.format("Box B11 replaces SR-14.")},
    "recipe": {"SR-21.md": NEW.format("Replace the milk with SR-14.")},
    "nothing named": {"SR-21.md": NEW.format("This replaces the milk.")},
    "untrusted": {"SR-21.md": f"---\ntrust_tier: untrusted\n---\n{NEW.format(REPLACES)}"},
    "both untrusted": {
        "SR-14.md": f"---\ntrust_tier: untrusted\n---\n{OLD}",
        "SR-21.md": f"---\ntrust_tier: untrusted\n---\n{NEW.format(REPLACES)}",
    },
    "older": {"SR-21.md": NEW.format(REPLACES).replace("2026", "2019")},
    "draft": {"SR-21 draft.md": NEW.format(REPLACES)},
    "stranger": {"m.eml": MAIL.format("X <x@x.example>", f"{REPLACES}\n\n{BODY}")},
    "quotes": {"SR-21.md": NEW.format("> This rule replaces SR-14.")},
    "a third one": {
        "SR-21.md": NEW.format("This replaces version 3."),
        "bench v3.md": OLD,
        "hoods v3.md": OLD.replace("60", "50"),
    },
}


@pytest.mark.parametrize("case", HARMLESS)
def test_other_sentences_replace_nothing(tmp_path: Path, case: str) -> None:
    files = {"SR-14.md": OLD, **HARMLESS[case]}
    assert "replaces" not in notes(answered(tmp_path, files))
    draft = "Gloves are changed every 60 minutes (SR-14.md:5-5)."
    assert "says that it" not in str(verified(tmp_path / "v", files, draft).findings)


def test_a_mail_that_quotes_the_sentence_does_not_say_it(tmp_path: Path) -> None:
    ann, quoted = "Ann <a@c.example>", "On 3 Oct 2026 Cy wrote:\n> This mail replaces SR-14.\n"
    files = {"SR-14.eml": MAIL.format(ann, "Gloves are changed every 60 minutes at the bench.")}
    for number, text in enumerate((f"{BODY}\n\n{quoted}", f"This mail replaces SR-14. {BODY}")):
        new = MAIL.format(ann, text).replace("14 Oct", "24 Oct").replace("Gloves", "Bench", 1)
        bundle = answered(tmp_path / str(number), {**files, "later.eml": new})
        assert ("replaces [" in notes(bundle)) == bool(number)


def test_the_note_is_there_if_the_newer_one_has_none_of_the_words(tmp_path: Path) -> None:
    new = NEW.format(REPLACES).replace(BODY, "Hands are covered.")
    others = {f"bench {n}.md": f"How often are gloves changed at bench {n}?" for n in range(40)}
    bundle = answered(tmp_path, {"SR-14.md": OLD, "SR-21.md": new, **others}, "gloves 60 minutes")
    assert first(bundle) == "SR-14.md"
    assert notes(bundle) == "SR-21.md replaces [1], by their texts"


@pytest.mark.parametrize(
    "statement",
    [
        "This replaces clause 6 of SR-14.",
        "This replaces the rules in item 6 of SR-14.",
        "Dies ersetzt Punkt 6 von SR-14.",
        "Ceci remplace l'article 6 de SR-14.",
        "Esto sustituye al apartado 6 de SR-14.",
        "Questo sostituisce il punto 6 di SR-14.",
        "Dit vervangt punt 6 van SR-14.",
        "To zastępuje punkt 6 z SR-14.",
        "Item 6 of the safety rule SR-14 is no longer valid.",
        "The decision of 14 February 2023 is no longer valid.",
    ],
)
def test_who_changes_a_part_does_not_replace_the_document(tmp_path: Path, statement: str) -> None:
    amending = NEW.format(statement)
    bundle = answered(tmp_path, {"SR-14.md": OLD, "SR-21.md": amending})
    assert first(bundle) == "SR-14.md"
    assert "replaces" not in notes(bundle)


def test_the_replaced_document_itself_says_it(tmp_path: Path) -> None:
    old = OLD.replace("Gloves", "Superseded by: SR-21\n\nGloves")
    bundle = answered(tmp_path, {"SR-14.md": old, "SR-21.md": NEW.format("")})
    assert first(bundle) == "SR-21.md"


PARTY = "Date: 2026-10-02\n\nThe party for the club is in the clubhouse, with raclette for all who come.\n"
LATER = "Date: 2026-11-16\n\nThe party for the club: instead of raclette there is soup for all.\n"


@pytest.mark.parametrize(
    ("later", "is_noted"),
    [
        (LATER, True),
        (LATER.replace("2026-11-16", "2026-09-01"), False),
        (LATER.replace("raclette", "cake"), False),
        (LATER.replace("club:", "club is at noon. The race:"), False),
    ],
)
def test_a_later_text_says_that_words_of_a_passage_are_gone(
    tmp_path: Path, later: str, is_noted: bool
) -> None:
    bundle = answered(tmp_path, {"a.md": PARTY, "b.md": later}, "party club food for all")
    said = '] may be outdated: b.md: "'
    assert (said in notes(bundle)) == is_noted


@pytest.mark.parametrize(
    ("old", "new", "task"),
    [
        ("| Full price | 12 € |\n| Reduced | 8 € |", "We put the full price to 14 € instead.", "What does the price cost grown-ups?"),
        ("Marcel Tissot fait le souffleur.", "M. Tissot renonce au rôle de souffleur.", "Qui est souffleur ?"),
        ("The assembly is on 19 May in the parish hall.", "Parish office: hall is wet, closed until June.", "In which hall is the assembly?"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_later", [True, False])
def test_a_later_sentence_about_the_same_is_quoted(
    tmp_path: Path, old: str, new: str, task: str, *, is_later: bool
) -> None:
    month = "11" if is_later else "07"
    files = {"a 2026-09-10.md": f"{old}\n", f"b 2026-{month}-19.md": f"{new}\n"}
    assert (quoted(new) in notes(answered(tmp_path, files, task))) == is_later


def test_two_lists_of_open_tasks_are_both_valid(tmp_path: Path) -> None:
    minutes = "# Minutes\n\n## 4. Tasks\n\n- [ ] Luc: {} for the bar\n"
    files = {"m 2026-10-15.md": minutes.format("ask"), "m 2026-11-19.md": minutes.format("pay")}
    assert notes(answered(tmp_path, files, "Which tasks are still open for the bar?")) == ""
    assert notes(answered(tmp_path / "b", files, "Luc and the bar")) != ""


@pytest.mark.parametrize(
    "later",
    ["[15.11.26] Ann: Lumen does the school photos, not Foto Steiner.\n",
     "The school photos are by Lumen instead of Foto Steiner.\n"],
)  # fmt: skip
def test_a_later_chat_without_a_date_says_it_too(tmp_path: Path, later: str) -> None:
    chat = "\n".join(f"[{day}.11.26] Bo: The key of the hall." for day in range(10, 15))
    files = {"2026-09-15 m.md": "Foto Steiner comes. It is the school photographer.\n"}
    bundle = answered(tmp_path, {**files, "chat.txt": f"{chat}\n{later}"}, "school photographer")
    assert "not Foto Steiner" in notes(bundle) or "instead of Foto" in notes(bundle)


def test_the_words_of_also_show_what_changed(tmp_path: Path) -> None:
    files = {
        "prices.md": "Date: 2026-09-30\n\nAdults pay 12 pounds in the stalls.\n",
        "mail.md": "Date: 2026-11-15\n\nAdults pay 14 pounds instead of 12 in the stalls.\n",
    }
    with Engine(ingested(tmp_path, files)) as engine:
        request = RetrievalRequest(task="price of a seat downstairs", also=["adults stalls pay"])
        assert '] has 12 pounds; mail.md: "' in notes(engine.retrieve(request))


@pytest.mark.parametrize(
    ("old", "new", "task", "figure"),
    [
        (
            "Riesling 2024 ..... 7,40 EUR\nSpätburgunder 2023 ..... 9,60 EUR\n",
            "Wir müssen den Preis für den Spätburgunder von 9,60 EUR auf 10,40 EUR erhöhen.\n",
            "Was kostet der Spätburgunder 2023?",
            "9,60 EUR",
        ),
        (
            "The two doors on the first floor do not close by themselves. They were held open with"
            " wooden wedges. The wedges must be removed. New closers are fitted by 15 December 2026.\n",
            "I extend the time for the doors from 15 December 2026 to 31 January 2027.\n",
            "Until when are the doors fixed?",
            "15 December 2026",
        ),
    ],
)
def test_a_figure_that_changed_is_found_beside_words_of_the_task(
    tmp_path: Path, old: str, new: str, task: str, figure: str
) -> None:
    files = {"old.md": f"Date: 2026-09-30\n\n{old}", "new.md": f"Date: 2026-11-15\n\n{new}"}
    assert f"] has {figure}; new.md: " in notes(answered(tmp_path, files, task))


def test_a_note_quotes_the_words_from_their_own_paragraph(tmp_path: Path) -> None:
    files = {
        "dog.md": "Date: 2026-10-02\n\nThe dog of the club sleeps in the yard.\n",
        "cat.md": "Date: 2026-11-16\n\nThe dog of the club: instead of the yard it sleeps inside.\n",
    }
    bundle = answered(tmp_path, files, "Where does the dog sleep?")
    assert '] may be outdated: cat.md: "The dog' in notes(bundle)


def test_a_note_quotes_a_whole_sentence_about_the_task(tmp_path: Path) -> None:
    files = {
        "team 2026-09-07.md": "# Team meeting\n\nThe party is at the Anchor pub.\n",
        "team 2026-11-02.md": "# Team meeting\n\nThe party moves from the Anchor pub to Rossi's.\n",
    }
    sentence = "The party moves from the Anchor pub to Rossi's"
    assert sentence in notes(answered(tmp_path / "a", files, "Where is the party?"))
    assert sentence not in notes(answered(tmp_path / "b", files, "When is the meeting?"))


def test_a_number_behind_a_function_word_names_nothing(tmp_path: Path) -> None:
    other = "# Course of 14 May\n\nGloves are changed at the bench.\n"
    bundle = answered(tmp_path, {"course.md": other, "SR-21.md": NEW.format(REPLACES)})
    assert notes(bundle) == ""


def test_who_asks_for_the_replaced_document_gets_it_first(tmp_path: Path) -> None:
    files = {"SR-14.md": OLD, "SR-21.md": NEW.format(REPLACES)}
    bundle = answered(tmp_path, files, "gloves changed by SR-14")
    assert first(bundle) == "SR-14.md"
    assert notes(bundle) == "SR-21.md replaces [1], by their texts"


@pytest.mark.parametrize(
    ("draft", "is_old"),
    [
        ("Gloves are changed every 60 minutes (SR-14.md:5-5).", True),
        ("Handschuhe: alle 60 Minuten (SR-14.md:5-5).", True),
        ("Gloves are changed every 60 minutes (SR-14.md:5-5); SR-21 has 30.", False),
        ("Gloves were changed every 60 minutes before (SR-14.md:5-5).", False),
        ("Gloves are changed every 30 minutes (SR-21.md:8-8).", False),
    ],
)
def test_a_draft_that_cites_a_replaced_document(tmp_path: Path, draft: str, is_old: bool) -> None:
    answer = verified(tmp_path, {"SR-14.md": OLD, "SR-21.md": NEW.format(REPLACES)}, draft)
    found = [f.note for f in answer.findings if f.code == "old_source"]
    assert found == (["SR-21.md replaces it, by their texts"] if is_old else [])


OTHER_WORDS = "---\nupdated_at: 2024-03-01\n---\n# Regulation QX-15\n\nThis rule replaces SR-14.\n\nTwo pairs.\n"
DRAFT = "Gloves are changed every 60 minutes at the bench (SR-14.md:5-5)."


def test_a_label_names_a_document_among_other_words(tmp_path: Path) -> None:
    answer = verified(tmp_path, {"SR-14.md": OLD, "QX-15.md": OTHER_WORDS}, DRAFT)
    assert answer.counts.get("old_source") == 1


def test_untrusted_statements_take_no_place_from_others(tmp_path: Path) -> None:
    memo = "---\ntrust_tier: untrusted\nupdated_at: 2026-11-01\n---\nThis memo replaces XY-{}.\n"
    memos = {f"memo{n}.md": memo.format(n) for n in range(MAX_STATING + 1)}
    files = {"SR-14.md": OLD, "QX-15.md": OTHER_WORDS, **memos}
    assert verified(tmp_path, files, DRAFT).counts.get("old_source") == 1


def test_a_mail_about_something_else_at_the_place_outdates_nothing(tmp_path: Path) -> None:
    berth = "# Berth\n\nDate: 12 January 2026\n\nBerth B14 for the boat is on the west pontoon.\n"
    text = "From 7:00 boats may not leave the west pontoon."
    files = {"berth.md": berth, "m.eml": MAIL.format("Harbour <h@h.example>", text)}
    assert notes(answered(tmp_path, files, "On which pontoon is the boat?")) == ""
