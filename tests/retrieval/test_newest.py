"""The newest of several versions, whose names and dates are as people have them."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.retrieval.versions import put_newest_first, words_if_newest_asked
from support.commands import invoke
from support.source_tree import write_files
from support.values import passage, ranked

NOW = "2026-11-20T12:00:00Z"
COPIED = "2026-11-01"
"""The day of files that were copied or unpacked together."""

# Topic: the text of its versions, files from the oldest to the newest, two questions. "@" and a day
# after a name is the time of the file; "|" and a day, what the document declares.
FAMILIES: Mapping[str, tuple[str, str, str, str]] = {
    "budget": ("Budget of the sailing club: repairs of the jetty cost {} euros this season.",
        "Budget v1.md, Budget v2.md, Budget v3 FINAL.md, Budget v10 FINAL really.md",
        "What do repairs of the jetty cost in the newest budget?",
        "latest budget of the sailing club"),
    "handbook": ("Employee handbook: the notice period after the probation is {} weeks.",
        "Handbook 2024.md, Handbook 2025.md, Handbook 2026.md",
        "What notice period does the current handbook give?", "newest employee handbook notice"),
    "minutes": ("Board meeting: the members discussed the roof and allowed {} euros for tiles.",
        "2025-11-06 minutes.md, 2026-03-12 minutes.md, 2026-09-03 minutes.md",
        "How much did the most recent board meeting allow for tiles?",
        "latest minutes about the roof"),
    "lease": ("Lease of the workshop in Mill Lane: monthly rent of {} euros, paid in advance.",
        "Lease (signed) 14.02.2023.md, Lease (signed) 03.01.2025.md, Lease draft 30.11.2021.md",
        "current monthly rent of the workshop in Mill Lane", "newest lease of the workshop"),
    "parents": ("Parents' evening of the school: contribution for the trip is {} euros a child.",
        "minutes_march25.md, minutes_sept25.md, minutes_may26.md, minutes_oct24.md",
        "latest contribution for the trip", "What did the newest parents' evening decide?"),
    "protokoll": ("Protokoll der Eigentümer: Die Rücklage für das Dach beträgt {} Euro im Jahr.",
        "Protokoll 12. März 2024.md, Protokoll 3. Juni 2025.md, Protokoll 5. Februar 2026.md",
        "Wie hoch ist die aktuelle Rücklage für das Dach?", "neuestes Protokoll der Eigentümer"),
    "réunion": ("Compte rendu de la réunion : la cotisation des membres est de {} euros par an.",
        "CR réunion 3 février 2025.md, CR réunion 18 août 2025.md, CR réunion 2 avril 2026.md",
        "Quelle est la cotisation actuelle des membres ?", "dernier compte rendu de la réunion"),
    "contrato": ("Contrato de limpieza de la oficina: el precio mensual es de {} euros con IVA.",
        "contrato limpieza marzo-2024.md, contrato limpieza enero-2026.md",
        "¿Cuál es el precio vigente del contrato de limpieza?", "último contrato de limpieza"),
    "scan": ("Insurance policy for the van: the excess for glass damage is {} pounds.",
        "20240412_policy.md, 20250410_policy.md, 20260409_policy.md",
        "current excess for glass damage of the van", "newest insurance policy for the van"),
    "weekly": ("Weekly review: the backlog of the support desk has {} open tickets.",
        "2026-W09.md, 2026-W31.md, 2026-W46.md",
        "How many open tickets has the support desk in the latest review?",
        "newest weekly review of the backlog"),
    "sales": ("Sales report: the branch in Leeds sold {} bicycles, mostly to commuters.",
        "Sales Q3 2025.md, Sales Q4 2025.md, Sales Q1 2026.md, Sales Q2 2025.md",
        "How many bicycles did Leeds sell according to the latest sales report?",
        "most recent sales report of the branch"),
    "prices": ("Price list of the nursery: a standard rose costs {} crowns, without the pot.",
        "Prices_Jan-2025_v2.md, Prices_Jun-2025_v1.md, Prices_Jan-2026_v1.md, Prices_Jan-2026_v2.md",
        "What does a standard rose cost at present? newest price list", "current price of a rose"),
    "untouched": ("Checklist for opening the pool: the water must have {} degrees at least.",
        "pool checklist.md@2023-05-02, pool checklist new.md@2025-05-04, pool opening.md@2026-05-01",
        "How warm must the water be in the latest checklist?", "newest pool checklist degrees"),
    "declared": ("Travel policy: a night in a hotel is paid up to {} dollars, with breakfast.",
        "travel-a.md|2026-06-30, travel-b.md|2024-01-01, travel-c.md|2025-03-01",
        "Up to how much is a hotel paid by the current travel policy?", "latest travel policy"),
    "mixed": ("Service of the boiler in the vestry: pressure was set to {} bar by the engineer.",
        "boiler 2024.md, boiler service 11.03.2025.md, boiler_20251102.md, Boiler May 2026.md",
        "latest service of the boiler", "Which pressure did the most recent boiler service set?"),
    "american": ("Grant agreement with the foundation: the second instalment is {} dollars.",
        "Grant 02-14-2024.md, Grant 11-30-2025.md, Grant 03-28-2026.md",
        "second instalment in the current grant agreement", "newest grant agreement"),
    "iso": ("Water quality of the spring: nitrate is {} milligrams a litre in this sample.",
        "sample_2025_04_01.md, sample_2025_10_01.md, sample_2026_04_01.md",
        "latest nitrate value of the spring", "How much nitrate has the most recent sample?"),
    "mail": ("The caterer writes: the buffet for the anniversary is {} euros for each guest.",
        "offer one.eml|2026-02-03, offer two.eml|2026-05-09, offer three.eml|2026-04-20",
        "latest price of the buffet for each guest", "What is the caterer's newest offer?"),
    "page": ("Safety briefing for the foundry: gloves are replaced every {} days without fail.",
        "briefing copy.html|2024-02-03, briefing b.html|2026-05-09, briefing.html|2025-04-20",
        "How often are gloves replaced by the latest safety briefing?", "current safety briefing"),
    "rename": ("Rota of the first-aid post: on Saturdays {} volunteers are on duty until six.",
        "rota 2026-02.md@2026-10-30, rota 2026-10.md@2026-10-02, rota 2025-12.md@2026-10-31",
        "How many volunteers are on duty by the newest rota?", "latest rota of the first-aid post"),
}  # fmt: skip
NEWEST = {"lease": 1, "parents": 2, "declared": 0, "sales": 2, "mail": 1, "page": 1, "rename": 1}
"""Where the last file is not the newest: its place."""


def file(text: str, name: str, declared: str) -> str:
    if name.endswith(".eml"):
        sent = datetime.fromisoformat(declared).replace(tzinfo=UTC)
        return (
            f"From: a@b.example\nSubject: Offer\nDate: {sent:%a, %d %b %Y} 10:00 +0000\n\n{text}\n"
        )
    if name.endswith(".html"):
        head = f"<meta name='last-modified' content='{declared}'>"
        return f"<html><head>{head}</head><body><p>{text}</p></body></html>"
    return f"---\nupdated_at: {declared}\n---\n{text}\n" if declared else f"{text}\n"


def write(folder: Path, name: str, text: str) -> str:
    name, _, modified = name.strip().partition("@")
    name, _, declared = name.partition("|")
    write_files(folder, {name: file(text, name, declared)})
    time = datetime.fromisoformat(modified or COPIED).replace(tzinfo=UTC).timestamp()
    os.utime(folder / name, (time, time))
    return name


MORE = (
    "This is the latest, newest and current version of it.",
    "It was read aloud, and nobody had a question. The former figures are in the annex.",
    "",
    "The chair thanks all who helped.",
)

MANIFEST = """
[[rule]]
glob = "foreign/**"
trust_tier = "untrusted"
origin = "untrusted"
"""


def write_families(folder: Path) -> dict[str, str]:
    """Write all versions. Return the newest of each family."""
    newest = {}
    for family, (text, files, *_) in FAMILIES.items():
        names = files.split(",")
        for number, name in enumerate(names):
            words = f"{text.format(111 + 7 * number)} {MORE[number % len(MORE)]}".strip()
            written = write(folder / family, name, words)
            if number == NEWEST.get(family, len(names) - 1):
                newest[family] = f"{family}/{written}"
    return newest


def first_answers(folder: Path, tasks: Sequence[str]) -> list[str]:
    """The path of the first passage for each task."""
    db = folder.parent / "c.db"
    run = invoke("ingest", folder, "--lexical-only", "--db", db)
    assert run.code == 0, run
    with Engine(db) as engine:
        bundles = [
            engine.retrieve(RetrievalRequest(task=task, lexical_only=True, now=NOW))
            for task in tasks
        ]
    return [bundle.selected[0].citation.locator.rpartition(":")[0] for bundle in bundles]


def test_the_newest_of_several_versions_is_first(tmp_path):
    newest = write_families(tmp_path / "n")
    asked = [(family, task) for family, (_, _, *tasks) in FAMILIES.items() for task in tasks]
    found = first_answers(tmp_path / "n", [task for _, task in asked])
    wrong = [
        (task, path)
        for (family, task), path in zip(asked, found, strict=True)
        if path != newest[family]
    ]
    assert len(asked) == 40
    assert len(wrong) <= 4, wrong


@pytest.mark.parametrize(
    "task",
    [
        "What was said of the hall budget at the newest board meeting?",
        "What was said of the hall budget at the last board meeting, as it is now?",
        "How high is the budget that the board meeting gave the hall at the moment?",
    ],
)
def test_documents_of_the_same_series_need_not_repeat_the_words_of_the_task(tmp_path, task):
    folder = tmp_path / "n"
    old = "The board meeting gave the hall a budget of {} euros."
    write(folder / "board", "2026-03-01 Board.md", old.format(100))
    write(folder / "board", "2026-09-01 Board FINAL.md", "The hall has a budget of 300 euros.")
    # Another series, and a file that is only of the same folder.
    write(folder / "kitchen", "2026-10-01 Kitchen.md", "The hall kitchen has a budget of 20 euros.")
    write(folder / "board", "2026-10-02 Keys.md", "The hall key costs a part of the budget.")
    for number in range(20):
        write(folder / "other", f"{number}.md", f"Notes about the garden, part {number}.")
    assert first_answers(folder, [task]) == ["board/2026-09-01 Board FINAL.md"]


@pytest.mark.parametrize(
    "task",
    [
        "budget du club à la dernière réunion",
        "Quel est le budget du club aujourd'hui ?",
        "jüngste budget réunion club",
        "Wann war der budget im club zuletzt réunion?",
    ],
)
def test_words_with_accents_and_apostrophes_ask_for_the_newest_too(tmp_path, task):
    text = "La réunion donne au club un budget de {} euros"
    write(tmp_path / "n", "2025-03-01 a.md", text.format(100))
    write(tmp_path / "n", "2026-03-01 b.md", f"{text.format(300)}, ce que le trésorier approuve")
    assert first_answers(tmp_path / "n", [task]) == ["2026-03-01 b.md"]


def test_the_series_of_any_good_passage_counts_and_the_day_of_copying_does_not(tmp_path):
    folder = tmp_path / "n"
    text = "At this meeting the directors of the hall club decide to {}."
    write(folder / "club", "rules.md", "The directors of the hall club decide at a meeting.")
    write(folder / "club" / "minutes", "2019-July.md", text.format("paint the door"))
    write(
        folder / "club" / "minutes",
        "2022-Oct.md",
        "At this meeting the directors of the club bought a piano.",
    )
    write(folder / "club" / "archive", "minutes 2023.md", text.format("sell the piano"))
    for number in range(20):
        write(
            folder / "other", f"{number}.md", f"Notes about the garden of the hall, part {number}."
        )
    task = "What did the directors of the hall club decide at their last meeting?"
    assert first_answers(folder, [task]) == ["club/minutes/2022-Oct.md"]


# What the owner's own document about a topic is, and what is planted beside it. The folder
# "foreign" is untrusted.
PLANTED = (
    "Handbook 2027.md", "Handbook 31.12.2026.md", "plan.md|2026-12-24", "plan.html|2027-01-01",
    "plan.eml|2027-02-03", "plan.md@2026-11-30", "Plan Q2 2027.md", "plan dec26.md",
    "2026-11-21 plan.md", "2049.md", "foreign/plan.md|2026-11-19", "foreign/plan.html|2026-11-19",
    "foreign/Plan 2026-11-19.md", "foreign/plan nov26.md", "foreign/plan.md@2026-11-19",
    "foreign/plan.eml|2026-11-19", "foreign/2026-11-18/plan v9.md|2026-11-18", "plan.eml|2026-11-19",
    "foreign/plan.html|2027-11-19", "foreign/Plan 2027.md",
)  # fmt: skip
FALSE_LETTERS = (
    ("", "letter.md@2024-01-01", "2026-11-10"),
    ("foreign", "a.md@2026-11-19", "2026-11-18"),
)
"""Texts that state a date: a later one than that of their file; a foreign one."""
WORDS = "anchor basket candle donkey engine falcon garden hammer island jacket kettle ladder "
WORDS += "magnet needle orchid pepper quarry rocket saddle turnip"


def test_false_dates_move_nothing_forward(tmp_path):
    """Neither those in the future, nor those of foreign documents, in whatever place."""
    folder = tmp_path / "n"
    write_files(folder, {"rolebundle.toml": MANIFEST})
    tasks, own = [], []
    for topic, planted in zip(WORDS.split(), PLANTED, strict=True):
        text = f"Rules for the {topic} store: the deposit is {{}} euros, to be paid in cash."
        below, _, name = planted.rpartition("/")
        write(folder / below / topic, name, text.format(900) + " The latest rules of 2026-11-19.")
        own.append(f"{topic}/rules 2025.md")
        write(folder / topic, "rules 2025.md", text.format(20))
        write(folder / topic, "rules 2023.md", text.format(10))
        tasks.append(f"What is the deposit for the {topic} store by the current rules?")
        below, letter, day = FALSE_LETTERS[len(own) % 2]
        write(folder / below / topic, letter, f"Date: {day}\n\n{text.format(900)}")
    assert first_answers(folder, tasks) == own


def test_bounds_find_daily_notes_by_their_names(tmp_path):
    days = ("2026-11-02", "2026-11-12", "2026-11-17", "2025-12-24")
    for day in days:
        write(tmp_path / "n", f"{day}.md@2026-11-19", f"Notes on the garden of {day}.")
    db = tmp_path / "c.db"
    assert invoke("ingest", tmp_path / "n", "--lexical-only", "--db", db).code == 0

    def found(task: str = "garden", **where: str) -> set[str]:
        request = {"task": task, "where": where, "lexical_only": True, "now": NOW}
        with Engine(db) as engine:
            bundle = engine.retrieve(RetrievalRequest.model_validate(request))
        return {one.citation.locator[:10] for one in bundle.selected}

    assert found(updated_after="2026-11-12") == set(days[1:3])
    assert found(updated_after="last week") == set(days[1:3])
    assert found(updated_after="diese Woche") == {days[2]}
    assert found(updated_after="il y a 10 jours", updated_before="hoy") == set(days[1:3])
    assert found(updated_before="2026") == {days[3]}
    assert found(updated_after="2026-11", updated_before="lundi") == set(days[:2])
    assert found("garden last week") == found() == set(days), "a task filters nothing"


def test_a_first_passage_with_few_of_the_words_is_behind_those_with_twice_as_many():
    texts = {
        "memo": ("2026-11-20", 0.9, "Ask whether the reagent has arrived."),
        "draw": ("2026-03-01", 0.85, "The grant proposal has a budget that we ask for."),
        "bid": ("2026-08-29", 0.8, "The grant proposal has a larger budget that we ask for."),
        "guest": ("2026-11-28", 0.7, "A visitor came."),
    }
    rows = [
        ranked(passage(name, text, path=f"{name}.md", updated_at=day), final, freshness="fresh")
        for name, (day, final, text) in texts.items()
    ]
    asked = words_if_newest_asked("the newest grant proposal: what budget do we ask for?")
    assert asked is not None
    put_newest_first(rows, 0.0, asked)
    assert [row.chunk_id for row in rows] == ["bid", "draw", "memo", "guest"]


@pytest.mark.parametrize(("task", "asks"), [
    ("What was decided most recently?", True), ("What was last decided about the roof?", True),
    ("Was wurde zuletzt beschlossen?", True), ("Qu'a-t-on décidé en dernier ?", True),
    ("¿Qué se decidió por última vez?", True), ("Which chair was recently painted?", False),
    ("Did the roof last?", False), ("What did Marek say in our last call?", True),
    ("What did the last minutes say?", True), ("the newest conversation with Marek", True),
    ("the rent of last year", False), ("her last name", False), ("What is on the last page?", False),
    ("How long does it last?", False), ("What did the last team meeting decide?", True),
    ("Quanto costa adesso un caffè?", True), ("Qui dirige actuellement l'école ?", True),
    ("Wer ist zurzeit Kassier?", True), ("What do we ask for hay these days?", True),
])  # fmt: skip
def test_which_words_ask_for_the_newest(task: str, asks: bool):
    assert (words_if_newest_asked(task) is not None) == asks


def test_what_goes_down_is_not_called_lifted(tmp_path: Path):
    write_files(tmp_path / "n", {
        "2025-01-01 rent.md": "The rent of the garage is 90 euros, and the rent is due in May.",
        "2026-01-01 rent.md": "The rent of the garage is 95 euros.",
    })  # fmt: skip
    invoke("ingest", tmp_path / "n", "--lexical-only", "--db", tmp_path / "c.db")
    task = RetrievalRequest(task="newest rent of the garage, due in May")
    newer, older = Engine(tmp_path / "c.db").retrieve(task).selected
    assert any(reason.startswith("lifted: by date") for reason in newer.reasons_selected)
    assert older.scores.lift < 0
    assert any(reason.startswith("lowered: by date") for reason in older.reasons_selected)


@pytest.mark.parametrize("task", ["newest document of the doctor", "Neuestes Dokument vom doctor"])
def test_the_word_for_any_document_asks_for_no_word(tmp_path: Path, task: str) -> None:
    folder = tmp_path / "n"
    write(folder, "2025-01-01 will.md", "The document or Dokument of the doctor.")
    write(folder, "2026-03-01 heart.md", "The doctor says that the heart is well.")
    for number in range(20):
        write(folder, f"{number}.md", f"A document or Dokument of page {number}.")
    assert first_answers(folder, [task]) == ["2026-03-01 heart.md"]


@pytest.mark.parametrize("task", ["What is the newest mail?", "Qual è la mail più recente?"])
def test_the_newest_of_a_kind_of_documents_is_first(tmp_path: Path, task: str) -> None:
    write(tmp_path / "n", "minutes/2026-11-03 minutes.md", "# Minutes\n\nThe newest mail was read.")
    for day, name in [(12, "mail about mail"), (19, "Roof"), (14, "our mail")]:
        write(tmp_path / "n", f"{name}.eml|2026-10-{day}", f"{name}: a mail of ours.")
    assert first_answers(tmp_path / "n", [task]) == ["Roof.eml"]


def test_a_date_in_the_future_is_said_to_be_one(tmp_path: Path) -> None:
    write(tmp_path / "n", "rent.md|2099-01-07", "The rent goes to another account.")
    write(tmp_path / "n", "lease.md|2026-01-07", "The rent is due on the first day.")
    asked = ("retrieve", "Where does the rent go?", "--in", tmp_path / "n", "--format", "prompt")
    shown = invoke(*asked, "--now", NOW).out
    assert "2099-01-07 · in the future" in shown and shown.count("in the future") == 1


@pytest.mark.parametrize(("day", "first"), [("2026-10-12", "mail"), ("2025-10-12", "list")])
def test_the_date_of_a_mail_lowers_it_only_below_what_is_newer(day: str, first: str) -> None:
    rows = [
        ranked(
            passage("mail", "The lesson costs 56 pounds.", updated_at=day, origin="external"), 0.9
        ),
        ranked(passage("list", "The lesson costs 52 pounds.", updated_at="2026-01-01"), 0.8),
    ]
    for row in rows:
        row.freshness = "fresh"
    put_newest_first(rows, 0.0, {"lesson", "costs"})
    assert rows[0].chunk_id == first
