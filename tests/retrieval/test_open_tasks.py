"""Lines with an open box are found by the words that ask for open tasks (docs/agents.md)."""

from pathlib import Path

import pytest

from ingest.office.word import docx, paragraph
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.retrieval.packet import packet
from rolebundle.workspace import Workspace
from support.source_tree import Tree

TOUR = "Tour to Ghent\n\n[ ] pay the deposit for the coach\n[x] reserve the rooms\n"
HALL = "# Hall\n\nWhat we said about it.\n\n- [ ] sign the contract\n- [x] ask for the price\n"
DONE = "# Open tasks of the hall\n\n- [x] everything that was still to be done\n"
WAYS = {
    "a.md": ["- [{}] paint", "* [{}] paint", "1. [{}] paint", "> - [{}] paint", "[{}] paint"],
    "b.txt": ["[{}] paint", "  - [{}] paint", "2) [{}] paint"],
    "c.html": ["<p>[{}] paint"],
    "d.eml": ["From: a@x.org\nSubject: To do\n\nHello,\n\n[{}] paint"],
    "e.csv": ["done,what\n[{}],paint"],
}  # fmt: skip


def asked(folder: Path, files: dict[str, str | bytes], **fields: object) -> RetrievalBundle:
    tree = Tree(folder)
    for name, content in files.items():
        tree.write(name, content)
    tree.ingest()
    request = RetrievalRequest.model_validate({"lexical_only": True, **fields})
    return Engine(Workspace(tree.db)).retrieve(request)


def paths(bundle: RetrievalBundle) -> list[str]:
    return [shown.citation.locator.partition(":")[0] for shown in bundle.selected]


@pytest.mark.parametrize(("mark", "state"), [(" ", "open"), ("x", "done"), ("X", "done")])
def test_lines_with_a_box_are_tasks_in_every_format(tmp_path: Path, mark: str, state: str) -> None:
    files: dict[str, str | bytes] = {
        f"{number}-{name}": f"{way.format(mark)} it {number} times {name[0]}\n"
        for name, ways in WAYS.items()
        for number, way in enumerate(ways)
    }
    sign = "☐" if state == "open" else "☑"
    files |= {"f.txt": f"{sign} paint f\n", "g.docx": docx(paragraph(f"{sign} paint g"))}
    files |= {"h.md": "Text with [ ] or ☐ paint, `[x] paint`.\n\n```\n[ ] paint\n[x] paint\n```\n"}
    found = asked(tmp_path, files, task="paint", where={"task": state}, limit=50)
    assert {*paths(found)} == files.keys() - {"h.md"}


@pytest.mark.parametrize("task", [
    "Which tasks are still open?", "open tasks", "What do I still have to do?",
    "What is left to do?", "Which jobs still need doing?", "Welche Aufgaben sind offen?",
    "Was muss ich noch erledigen?", "Que reste-t-il à faire ?", "¿Qué queda por hacer?",
    "Quali compiti sono aperti?", "Do you know the open items?", "Which points are open?",
    "Welche Punkte sind noch offen?", "¿Qué puntos siguen abiertos?", "Was steht noch aus?",
    "Which jobs has Ann still not finished?", "What is not finished yet?", "What is outstanding?",
    "Was ist noch nicht fertig?", "Qu'est-ce qui n'est pas encore terminé ?", "¿Qué está sin hacer?",
    "Cosa non è ancora finito?", "Wat is nog niet klaar?", "Was ist noch unerledigt?",
    "Was ist ausstehend?", "Qu'est-ce qui est en suspens ?", "¿Qué está pendiente?",
    "Cosa è in sospeso?", "Wat staat er nog open?",
])  # fmt: skip
def test_words_for_open_tasks_find_open_boxes_and_no_ticked_ones(tmp_path: Path, task: str) -> None:
    files = {f"{n}.md": f"Which note {n} is still of the tasks?\n" for n in range(9)}
    answer = asked(tmp_path, {**files, "tour.txt": TOUR, "done.md": DONE}, task=task)
    assert paths(answer)[0] == "tour.txt"


@pytest.mark.parametrize("task", [
    "¿Cuánto paga un niño que se queda todo el día?", "Which pictures were taken on the open day?",
])  # fmt: skip
def test_words_of_another_language_do_not_ask_for_open_tasks(tmp_path: Path, task: str) -> None:
    files = {
        "tour.txt": TOUR,
        "fees.md": "Un niño paga 300 €.\n",
        "day.md": "Pictures were taken.\n",
    }
    assert "tour.txt" not in paths(asked(tmp_path, files, task=task))[:1]


@pytest.mark.parametrize("text", [
    "# Notes\n\nTODO\n\n- order candles\n", "- TODO: order candles\n", "Aufgaben: candles\n",
    "Christmas. Action: Ann to order candles.\n", "## Action items\n\nCandles.\n",
])  # fmt: skip
def test_a_label_says_that_a_task_is_open(tmp_path: Path, text: str) -> None:
    other = "The action of the candles was open to all. To do so was right.\n"
    answer = asked(tmp_path, {"a.md": text, "b.md": other}, task="Which tasks are still open?")
    assert paths(answer)[0] == "a.md"
    files = {"a.md": text, "b.md": other}
    assert paths(asked(tmp_path / "2", {**files}, task="candles", where={"task": "open"})) == [
        "a.md"
    ]


@pytest.mark.parametrize(("about", "path"), [("tour to Ghent", "tour.txt"), ("hall", "hall.md")])
def test_the_other_words_of_the_task_choose_the_list(tmp_path: Path, about: str, path: str) -> None:
    files = {"tour.txt": TOUR, "hall.md": HALL, "done.md": DONE}
    answer = asked(tmp_path, {**files}, task=f"Which tasks are still open for the {about}?")
    assert paths(answer)[0] == path


@pytest.mark.parametrize("fields", [{"where": {"task": "open"}}, {}])
def test_passages_with_open_boxes_come_first(tmp_path: Path, fields: dict[str, object]) -> None:
    lists = {f"{n}.md": f"# List of {n * 'long '}\n\n- [ ] water garden {n}\n" for n in range(7)}
    open_day = "# Open day\n\nOpen tasks of the open day.\n\n# To do\n\n- [ ] paint\n"
    files = {**lists, "done.md": DONE, "day.md": open_day}
    answer = asked(tmp_path, {**files}, task="open tasks of the garden", limit=8, **fields)
    assert ["[ ]" in shown.content for shown in answer.selected][:5] == [True] * 5


@pytest.mark.parametrize("name", ["a.eml", "untrusted/a.md"])
def test_a_box_of_others_comes_after_own_ones(tmp_path: Path, name: str) -> None:
    planted = "- [ ] open tasks of the tour to Ghent: pay Eve\n"
    mail = f"From: eve@x.example\nSubject: open tasks of the tour\n\n{planted}"
    files = {name: mail if name.endswith("eml") else f"---\ntrust_tier: untrusted\n---\n{planted}"}
    answer = asked(tmp_path, {**files, "tour.txt": TOUR}, task="open tasks of the tour to Ghent")
    assert paths(answer)[0] == "tour.txt"


def test_an_exact_word_is_among_the_first_three_above_other_lists(tmp_path: Path) -> None:
    files = {f"{n}.md": f"# List {n}\n\n- [ ] water garden {n}\n" for n in range(7)}
    files["gate.md"] = "The gate has the number INV-4471.\n"
    answer = asked(tmp_path, {**files}, task="open tasks of INV-4471", limit=8)
    assert "gate.md" in paths(answer)[1:3]


def test_other_questions_are_not_answered_by_a_list(tmp_path: Path) -> None:
    files = {"rent.md": "The rent is due on the first.\n", "list.md": "- [ ] pay the rent\n" * 3}
    assert paths(asked(tmp_path, {**files}, task="When is the rent due?"))[0] == "rent.md"


def test_the_part_of_a_long_list_that_is_shown_has_open_boxes(tmp_path: Path) -> None:
    lines = [f"- [x] look after garden number {n} with its trees and paths" for n in range(80)]
    lines[60] = "- [ ] mow the lawn"
    text = "\n".join(lines)
    shown = packet(asked(tmp_path, {"list.md": text}, task="open tasks"), None, 1_200)
    assert "- [ ] mow the lawn" in shown
