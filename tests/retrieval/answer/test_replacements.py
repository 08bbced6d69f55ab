"""What a document says that it replaces in another one is named, and moves nothing."""

import pytest

from support.bundles import messages
from support.corpora import answered, document

OLD = "Offer No. 5518 of 3 March 2026: sash windows, total price 9,400 pounds for the windows."


@pytest.mark.parametrize(
    ("old", "statement"),
    [
        (OLD, "This supersedes our offer of 3 March."),
        (OLD, "Offer 5518 is withdrawn."),
        (OLD, f"{'İ' * 99} Offer 5518 is withdrawn."),
        (OLD, "In the offer of March 3 the price is replaced by 9,900."),
        ("Satzung vom 14. März 2014. Der Vorstand haftet für den price of windows.",
         "Diese Satzung ersetzt die Satzung vom 14. März 2014."),
        ("Devis 2231 du 4 mai, price of windows.", "Annule et remplace le devis 2231."),
    ],
)  # fmt: skip
def test_a_statement_about_a_passage_above_is_named(old: str, statement: str) -> None:
    documents = [
        document("offer", [old]),
        document("letter", [f"For windows.\n\n{statement}\n\nRegards"]),
    ]
    bundle = answered(documents, task="price of the windows 5518", limit=1)
    assert [chunk.document_id for chunk in bundle.selected] == ["offer"]
    assert messages(bundle, "MAY_BE_REPLACED") == [f'letter.md:1-1 says of offer.md: "{statement}"']


def test_the_beginning_says_what_a_statement_is_about() -> None:
    deed = (
        "Deed of variation to the offer of 3 March. On windows.\n\n'9,400' is replaced by '9,900'."
    )
    bundle = answered(
        [document("offer", [OLD]), document("letter", [deed])], task="price of windows"
    )
    assert messages(bundle, "MAY_BE_REPLACED") == [
        "letter.md:1-1 says of offer.md: \"'9,400' is replaced by '9,900'.\""
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "This supersedes our offer of 4 April.",
        "Nothing here.\n3 March 2026\nOur offer of 4 April is withdrawn.",
        "Replaced by 3 new windows.",
        "The filter of the oven is replaced by the offer of the year 2026.",
        "An offer of March, 3 pages.",
        "Agreed at the meeting of 3 March. Replaces the draft offer.",
    ],
)
def test_other_statements_are_not_named(statement: str) -> None:
    documents = [document("offer", [OLD]), document("letter", [f"On windows. {statement}"])]
    bundle = answered(documents, task="price of the windows 5518", limit=1)
    assert messages(bundle, "MAY_BE_REPLACED") == []


@pytest.mark.parametrize(
    ("old", "new", "is_named"),
    [
        ({}, {}, True),
        ({"updated_at": "2026-03-03T00:00:00Z"}, {"updated_at": "2026-02-01T00:00:00Z"}, False),
    ],
)
def test_nothing_older_replaces_what_is_newer(old: dict, new: dict, is_named: bool) -> None:
    text = "Windows: this supersedes our offer 5518 of 3 March."
    documents = [document("offer", [OLD], **old), document("letter", [text], **new)]
    bundle = answered(documents, task="price of the windows 5518", limit=1)
    assert bool(messages(bundle, "MAY_BE_REPLACED")) == is_named


def test_what_a_document_says_of_others_does_not_name_it() -> None:
    middle = "Offer of 9 May: windows. It replaces the offer of 3 March."
    last = "Windows: the offer of 3 March is withdrawn."
    documents = [
        document("middle", [f"{middle} Total price of windows."]),
        document("last", [last]),
    ]
    bundle = answered(documents, task="total price of the windows", limit=1)
    assert bundle.selected[0].document_id == "middle"
    assert messages(bundle, "MAY_BE_REPLACED") == []


def test_a_statement_that_comes_first_needs_no_warning() -> None:
    new = f"{OLD} This supersedes our offer 5517 of 1 March. The price of the windows 5518."
    documents = [document("letter", [new]), document("offer", ["Offer 5517 of 1 March: windows."])]
    bundle = answered(documents, task="price of the windows 5518")
    assert bundle.selected[0].document_id == "letter"
    assert messages(bundle, "MAY_BE_REPLACED") == []


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        (
            "will v1 (Ann)",
            "will v2",
            '"will v2.md" is newer than "will v1 (Ann).md", by their names',
        ),
        ("old/rota", "rota", "rota.md is newer than old/rota.md, by their names"),
        ("policy_2022", "policy_2026_NEU", "policy_2026_NEU.md is newer than policy_2022.md, by"),
        ("Entwurf_rota", "rota", "rota.md is newer than Entwurf_rota.md, by their names"),
        ("alt/rota", "vets", "alt/rota.md is old, by its name"),
        ("prices 2025", "prices 2026 from April", '"prices 2026 from April.md" is newer'),
        ("prices 2026", "prices 2025 final", ""),
        ("prices 2025-11", "prices 2026-01", ""),
        ("will v2", "will v1", ""),
        ("will final v1", "will v2", ""),  # Which one is newer is open.
        ("minutes 2026-01", "minutes 2026-02", ""),
        ("lab_1.1", "lab_1.2", ""),
        ("will v1", "rota v2", ""),
    ],
)
def test_a_newer_version_by_its_name_is_named(first: str, other: str, message: str) -> None:
    documents = [
        document(first, ["the guardian of the children is Peter"]),
        document(other, ["the children live with Ann and with their guardian, who may change"]),
    ]
    bundle = answered(documents, task="Who is the guardian of the children, Peter?", limit=1)
    assert [chunk.document_id for chunk in bundle.selected] == [first]
    [found] = messages(bundle, "MAY_BE_REPLACED") or [""]
    assert found.startswith(message) and bool(found) == bool(message)


@pytest.mark.parametrize(("task", "is_named"), [("guardian", True), ("guardian in v1", False)])
def test_no_newer_version_is_named_if_the_task_asks_for_the_older_one(
    task: str, is_named: bool
) -> None:
    documents = [
        document("will v1", ["the guardian is Peter, the guardian of the children"]),
        document("will v2", ["the children have another guardian, who lives far away from here"]),
    ]
    bundle = answered(documents, task=task, limit=1)
    assert [chunk.document_id for chunk in bundle.selected] == ["will v1"]
    assert bool(messages(bundle, "MAY_BE_REPLACED")) == is_named
