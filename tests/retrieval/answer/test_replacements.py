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
        document("old", [old]),
        document("new", [f"For windows.\n\n{statement}\n\nRegards"]),
    ]
    bundle = answered(documents, task="price of the windows 5518", limit=1)
    assert [chunk.document_id for chunk in bundle.selected] == ["old"]
    assert messages(bundle, "MAY_BE_REPLACED") == [f'new.md:1-1 says of old.md: "{statement}"']


def test_the_beginning_says_what_a_statement_is_about() -> None:
    deed = (
        "Deed of variation to the offer of 3 March. On windows.\n\n'9,400' is replaced by '9,900'."
    )
    bundle = answered([document("old", [OLD]), document("new", [deed])], task="price of windows")
    assert messages(bundle, "MAY_BE_REPLACED") == [
        "new.md:1-1 says of old.md: \"'9,400' is replaced by '9,900'.\""
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "This supersedes our offer of 4 April.",
        "Nothing here.\n3 March 2026\nOur offer of 4 April is withdrawn.",
        "Replaced by 3 new windows.",
        "The filter of the oven is replaced by the offer of the year 2026.",
        "An offer of March, 3 pages.",
    ],
)
def test_other_statements_are_not_named(statement: str) -> None:
    documents = [document("old", [OLD]), document("new", [f"On windows. {statement}"])]
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
    documents = [document("old", [OLD], **old), document("new", [text], **new)]
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
    documents = [document("new", [new]), document("old", ["Offer 5517 of 1 March: windows."])]
    bundle = answered(documents, task="price of the windows 5518")
    assert bundle.selected[0].document_id == "new"
    assert messages(bundle, "MAY_BE_REPLACED") == []
