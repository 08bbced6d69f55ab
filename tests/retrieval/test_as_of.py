"""Documents apply from and until a time, and an answer can be as of a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.retrieval.lanes import POOL_DEPTH
from rolebundle.storage.documents import StoredDocument
from support.corpora import ask, built, document

MARCH, JULY, DECEMBER = "2026-03-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-12-01T00:00:00Z"
"""The time of a request that names none is the first of November."""


def bundle_of(folder: Path, *documents: StoredDocument, **fields: Any) -> RetrievalBundle:
    with built(folder, documents) as corpus:
        return ask(corpus, None, task="token", **fields)


def codes(bundle: RetrievalBundle) -> dict[str, str]:
    return {rejection.chunk_id.partition("#")[0]: rejection.reason for rejection in bundle.rejected}


def chosen(bundle: RetrievalBundle) -> set[str]:
    return {chunk.document_id for chunk in bundle.selected}


class TestValidity:
    @pytest.mark.sample(3)
    @pytest.mark.parametrize(
        ("dates", "fields", "code"),
        [
            ({}, {}, None),
            ({"valid_from": JULY}, {}, None),
            ({"valid_from": JULY}, {"now": "2026-06-30"}, "not_yet_valid"),
            ({"valid_from": JULY}, {"as_of": "2026-06-30T23:59:59Z"}, "not_yet_valid"),
            ({"valid_from": JULY}, {"as_of": JULY}, None),
            ({"valid_from": DECEMBER}, {}, "not_yet_valid"),
            ({"valid_until": JULY}, {}, "expired"),
            ({"valid_until": JULY}, {"as_of": JULY}, None),
            ({"valid_until": JULY}, {"as_of": "2026-07-01T00:00:01Z"}, "expired"),
            ({"valid_until": JULY}, {"as_of": "2026-07-01T01:00:00+02:00"}, None),
            ({"valid_until": DECEMBER}, {}, None),
            # A later version counts only if the answer is as of a time.
            ({"updated_at": DECEMBER}, {}, None),
            ({"updated_at": JULY}, {"now": MARCH}, None),
            ({"updated_at": JULY}, {"as_of": MARCH}, "not_yet_valid"),
            ({"updated_at": JULY}, {"as_of": JULY}, None),
            # The time of the ages does not decide what is valid as of another.
            ({"valid_until": JULY}, {"as_of": MARCH, "now": "2026-11-01"}, None),
        ],
        ids=str,
    )
    def test_a_document_is_valid_from_and_until(
        self, tmp_path: Path, dates: dict[str, str], fields: dict[str, str], code: str | None
    ) -> None:
        bundle = bundle_of(tmp_path, document("d", ["token"], **dates), **fields)
        assert codes(bundle) == ({"d": code} if code else {})
        assert chosen(bundle) == (set() if code else {"d"})

    @pytest.mark.parametrize(
        "dates", [{"updated_at": JULY}, {"valid_until": "2020-01-01T00:00:00Z"}]
    )
    def test_what_is_not_valid_takes_no_place(self, tmp_path: Path, dates: dict[str, str]) -> None:
        crowd = document("crowd", [f"token token x{n}" for n in range(POOL_DEPTH + 20)], **dates)
        bundle = bundle_of(
            tmp_path, crowd, document("wanted", ["one token of many"]), as_of=MARCH, limit=3
        )
        assert chosen(bundle) == {"wanted"}
        assert bundle.diagnostics.refills == 1


class TestSuperseding:
    def versions(self, **newer: Any) -> tuple[StoredDocument, StoredDocument]:
        return (
            document("v1", ["token one"], updated_at="2026-01-01T00:00:00Z"),
            document("v2", ["token two"], supersedes=("v1",), **newer),
        )

    @pytest.mark.parametrize(
        ("newer", "fields", "expected"),
        [
            ({"updated_at": JULY}, {}, {"v2"}),
            ({"updated_at": JULY}, {"as_of": MARCH}, {"v1"}),
            ({"updated_at": JULY}, {"as_of": JULY}, {"v2"}),
            ({"valid_from": DECEMBER}, {}, {"v1"}),
            ({"valid_from": JULY}, {"as_of": MARCH}, {"v1"}),
            ({"updated_at": MARCH, "valid_from": DECEMBER}, {"as_of": JULY}, {"v1"}),
            # What it replaced does not come back when it expires.
            ({"valid_until": JULY}, {}, set()),
        ],
        ids=str,
    )
    def test_a_later_version_supersedes_nothing_yet(
        self, tmp_path: Path, newer: dict[str, Any], fields: dict[str, Any], expected: set[str]
    ) -> None:
        assert chosen(bundle_of(tmp_path, *self.versions(**newer), **fields)) == expected

    def test_the_last_version_that_is_valid_counts(self, tmp_path: Path) -> None:
        third = document("v3", ["token three"], supersedes=("v2", "v1"), updated_at=DECEMBER)
        bundle = bundle_of(tmp_path, *self.versions(updated_at=MARCH), third, as_of=JULY)
        assert chosen(bundle) == {"v2"}
        assert codes(bundle) == {"v1": "conflict_downrank", "v3": "not_yet_valid"}
        [note] = [
            rejection.notes
            for rejection in bundle.rejected
            if rejection.reason == "conflict_downrank"
        ]
        assert note == "superseded by v2"

    def test_what_was_seen_and_is_not_superseded_yet(self, tmp_path: Path) -> None:
        fields = {"seen": ["v1#0"], "as_of": MARCH}
        bundle = bundle_of(tmp_path, *self.versions(updated_at=JULY), **fields)
        assert codes(bundle) == {"v1": "already_seen", "v2": "not_yet_valid"}
