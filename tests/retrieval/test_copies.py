"""Copies: passages with the same text; short ones need the same headings too."""

from itertools import product
from typing import Any

import pytest

from rolebundle.retrieval.copies import combine_copies
from rolebundle.storage.documents import StoredDocument
from support.bundles import rejection_codes
from support.corpora import answered, chunk, document, overlay
from support.values import passage, ranked

RULES = (
    "Patients are isolated in a room of their own. Staff wear gloves and an apron, and wash their "
    "hands before they leave. Isolation ends 72 hours after the last symptom."
)
WORDS = RULES.split()


def copies(*of: dict[str, Any]) -> list[str | None]:
    """For each passage, by its number, the one that stands for it; ``text`` is its content."""
    candidates = [
        ranked(
            passage(f"{n}", fields.pop("text", RULES), **fields),
            freshness="fresh" if "updated_at" in fields else "undated",
        )
        for n, fields in enumerate(map(dict, of))
    ]
    combine_copies(candidates, "")
    return [candidate.duplicate_of for candidate in candidates]


@pytest.mark.parametrize(
    "word", ["left", "right", "not", "48", "before", "after", "Germany", "France"]
)
def test_texts_that_differ_in_one_word_are_no_copies(word: str) -> None:
    for place, replaced in product(range(len(WORDS)), (0, 1)):
        changed = [*WORDS[:place], word, *WORDS[place + replaced :]]
        assert changed == WORDS or copies({}, {"text": " ".join(changed)}) == [None, None]


MARKDOWN = (
    f"### Isolation\n\n{RULES}\n\n* see [`rules`](r.md) in `~/.a`\n\n```sh\nlist *x* <y>\n```"
)
PAGE = f"Isolation\n\n{RULES}\n\n- see rules in ~/.a\n\nlist *x* <y>"


def test_markup_makes_no_difference_between_formats_and_only_there() -> None:
    markdown, page = {"text": MARKDOWN}, {"text": PAGE, "path": "a.html"}
    assert copies(markdown, page) == [None, "0"]
    assert copies(markdown, {**page, "text": PAGE.replace("y", "z")}) == [None, None]
    assert copies(markdown, {"text": PAGE}) == [None, None]


@pytest.mark.parametrize(
    ("better", "other"),
    [
        ({"flags": ()}, {"updated_at": "2026-10-01T00:00:00Z", "flags": ("personal_iban",)}),
        ({"trust_tier": "preferred"}, {"updated_at": "2026-10-01T00:00:00Z"}),
        ({"updated_at": "2026-10-01T00:00:00Z"}, {"updated_at": "2026-09-30T00:00:00Z"}),
        ({"updated_at": "2016-10-01T00:00:00Z", "path": "long/path.md"}, {"path": "a.md"}),
        ({"path": "a/rules.md"}, {"path": "a/b/rules.md"}),
        ({"path": "guides/for-all/rules.md"}, {"path": "old/rules.md"}),
        ({"path": "guides/rules-of-all.md"}, {"path": "Copy of rules.md"}),
        ({"path": "guides/rules-of-all.md"}, {"path": "rules (copy).md"}),
    ],
    ids=[
        "flags", "trust", "newer", "dated", "shorter path", "not old", "not a copy", "not (copy)",
    ],
)  # fmt: skip
def test_which_stands_for_the_other(better: dict[str, Any], other: dict[str, Any]) -> None:
    assert copies(better, other) == [None, "0"]
    assert copies(other, better) == ["1", None]


class TestInAnAnswer:
    VERSIONS = tuple(
        document(name, [RULES], trust_tier=tier, source_id=name)
        for name, tier in (
            ("copy", "general"), ("original", "preferred"), ("latest", "authoritative"),
        )
    )  # fmt: skip

    def test_it_names_where_else_it_stands(self) -> None:
        bundle = answered(self.VERSIONS, task="isolation of patients")
        [shown] = bundle.selected
        assert shown.document_id == "latest"
        assert sorted(shown.same_in or ()) == ["copy.md:1-1", "original.md:1-1"]
        assert rejection_codes(bundle) == {"copy#0": "duplicate", "original#0": "duplicate"}

    def test_it_ranks_as_the_best_of_its_copies(self) -> None:
        best, other = "quarantine of newcomers, gloves", "The quarantine: wear gloves."
        documents = (
            document("a", [RULES], title=best, source_id="a"),
            document("b", [other], source_id="b"),
            document("c", [RULES], trust_tier="authoritative", source_id="c"),
        )
        alone = answered(documents, task=best, where={"source": ["b", "c"]})
        bundle = answered(documents, task=best)
        assert [shown.document_id for shown in alone.selected] == ["b", "c"]
        assert bundle.selected[0].document_id == "c"
        assert (
            "lifted: same text as a#0, which ranked higher" in bundle.selected[0].reasons_selected
        )

    def test_a_text_under_several_headings_is_shown_under_the_one_asked_for(self) -> None:
        rules = f"{RULES} {RULES}"
        names = ("measles", "noroviruses", "scabies")
        documents = [
            StoredDocument(
                document(name, []).metadata,
                tuple(
                    chunk(f"{name}#{n}", text, headings=(name,))
                    for n, text in enumerate((rules, "Isolation is off."))
                ),
            )
            for name in names
        ]
        bundle = answered(documents, task="isolation of patients with noroviruses", limit=20)
        [shown] = [shown for shown in bundle.selected if shown.content == rules]
        assert (shown.document_id, len(shown.same_in or ())) == ("noroviruses", 2)
        rejected = rejection_codes(bundle)
        assert {of for of, code in rejected.items() if code == "duplicate"} == {
            "measles#0", "scabies#0",
        }, "a short text needs its heading"  # fmt: skip

    def test_what_policy_rejects_stands_for_none(self) -> None:
        role = overlay(source_policy={"forbidden_sources": [{"pattern": "latest"}]})
        [shown] = answered(self.VERSIONS, role, task="isolation of patients").selected
        assert (shown.document_id, shown.same_in) == ("original", ["copy.md:1-1"])
