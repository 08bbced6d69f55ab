"""A role orders what answers a vague task, and does not replace the answer to a specific one."""

import pytest

from support.corpora import answered, document, overlay

ROLE = overlay(
    source_policy={"preferred_sources": [{"path": "team/**", "reason": "theirs", "boost": 4}]}
)
FEED = "The renderer sends a synchronous message to the main process and blocks the window."
RULES = "The team agrees how a change is reviewed before the main branch gets it."
# As in a large corpus, many passages have the same words.
PAGES = [
    *(document(f"docs/{n}", [f"{FEED} Page {n} has the preload option number {n}."]) for n in range(20)),
    document("docs/flag", ["The switch --vmodule sets the level of a module."]),
    document("team/rules", [RULES]),
    document("team/flags", ["The switch of a module is reviewed by the team, too."]),
]  # fmt: skip


def first(task: str) -> str:
    return answered(PAGES, ROLE, task=task).selected[0].document_id


@pytest.mark.parametrize(
    ("task", "place"),
    [
        ("Review the main change", "team/"),
        ("A renderer blocks the window with a synchronous message to the main process", "docs/"),
        ("--vmodule switch of a module", "docs/flag"),
    ],
)
def test_the_words_of_a_specific_task_choose(task: str, place: str) -> None:
    assert first(task).startswith(place)
