"""A task of several subjects: each wording has a passage among the first (docs/agents.md)."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.embedding.static import StaticProvider
from rolebundle.retrieval.packet import packet
from support.corpora import HashingProvider, answered, document

SUBJECTS = {
    "rotation": "How often does the refresh token rotate?",
    "backup": "Which nights is the archive saved?",
    "parking": "Where may visitors leave their cars?",
}
ANSWERS = {
    "rotation": "The refresh token does rotate every thirty minutes, so the token stays fresh.",
    "backup": "The archive is saved on Sunday nights and on Wednesday nights.",
    "parking": "Visitors may leave their cars behind the northern gate.",
}

LONG = "The text goes on with what nobody asked. " * 40
OTHERS = [document("others", [f"Page {n} is about something else." for n in range(30)])]


@given(
    st.permutations([*SUBJECTS]),
    st.integers(1, 12),
    st.sampled_from([None, StaticProvider(), HashingProvider()]),
)
def test_each_subject_has_a_passage_among_the_first(
    order: list[str], many: int, provider: StaticProvider | HashingProvider | None
) -> None:
    """Also if another subject has many passages with more words of the task."""
    often, *others = order
    documents = [document(f"{often}-{n}", [f"{ANSWERS[often]} Note {n}."]) for n in range(many)]
    documents += [document(name, [f"{ANSWERS[name]} {LONG}"]) for name in others] + OTHERS
    task, *also = [SUBJECTS[name] for name in order[:2]]
    bundle = answered(documents, None, provider, task=task, also=also)
    shown = re.findall(r"^\[\d+\] (\w+).*\n```", packet(bundle), re.MULTILINE)
    assert set(order[:2]) <= {name.partition("-")[0] for name in shown}
    assert len(shown) <= 3


def test_another_wording_of_the_same_subject_changes_no_place() -> None:
    documents = [
        document(f"rotation-{n}", [f"{ANSWERS['rotation']} {'Note. ' * n}"]) for n in range(9)
    ]
    documents += [document("backup", [ANSWERS["backup"]])]
    bundle = answered(
        documents, task=SUBJECTS["rotation"], also=["refresh token rotate", "token fresh minutes"]
    )
    assert all(chunk.scores.lift == 0 for chunk in bundle.selected)
