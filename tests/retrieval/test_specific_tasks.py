"""A role orders what answers a vague task, and does not replace the answer to a specific one."""

import pytest

from rolebundle.retrieval.values import MIN_SPECIFICITY
from support.corpora import answered, document, overlay
from support.fake_embedder import HashingProvider

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


@pytest.mark.parametrize("provider", [HashingProvider(), None])
@pytest.mark.parametrize(
    ("task", "is_specific"), [("What do we keep in the store?", True), ("Where are pipes?", False)]
)
def test_a_document_far_ahead_in_each_lane_is_asked_for(
    task: str, provider: HashingProvider | None, *, is_specific: bool
) -> None:
    boilers = [
        document(f"team/{n}", [f"Boiler {n} has pipes, and a list of its parts."])
        for n in range(12)
    ]
    store = document("stock/store", ["In the store it may be as warm as 25 degrees."])
    evidence = answered([*boilers, store], ROLE, provider, task=task).evidence
    assert evidence is not None
    assert (evidence.specificity >= MIN_SPECIFICITY) is is_specific


@pytest.mark.parametrize(
    ("declared", "is_specific"),
    [
        ({"document_type": "note"}, False),
        ({"domain": "boats"}, False),
        ({"trust_tier": "preferred"}, True),
        ({}, True),
    ],
)
def test_a_role_rules_fewer_tasks_where_no_document_declares_its_subject(
    declared: dict[str, str], *, is_specific: bool
) -> None:
    boats = [
        document(f"team/{n}", [f"Boat {n} has a mast.{' Oars.' * n}"], **declared)
        for n in range(12)
    ]
    evidence = answered(boats, ROLE, task="Which mast has a boat with oars?").evidence
    assert evidence is not None
    assert (evidence.specificity >= MIN_SPECIFICITY) is is_specific
