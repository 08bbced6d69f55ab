"""What may be declared about a document, and the forms in which it is kept."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from rolebundle.contracts.documents import DeclaredMetadata, DocumentMetadata
from support.values import passage


class TestDefaults:
    def test_trust_is_general_until_someone_declares_more(self) -> None:
        metadata = DocumentMetadata(document_id="d", source_id="s", title="t", uri="u")
        assert metadata.trust_tier == "general"
        assert (metadata.updated_at, metadata.language) == (None, "und")
        assert (metadata.sensitivity, metadata.origin, metadata.scope) == (
            "internal",
            "internal",
            "shared",
        )
        assert metadata.tags == metadata.applicable_roles == metadata.excluded_roles == ()
        assert metadata.supersedes == metadata.contradicts == ()


class TestTimes:
    @pytest.mark.parametrize(
        ("declared", "expected"),
        [
            ("2026-03-01", "2026-03-01T00:00:00Z"),
            (" 2026-03-01T10:30:00+02:00 ", "2026-03-01T08:30:00Z"),
            ("2026-03-01T10:30:00", "2026-03-01T10:30:00Z"),
            (date(2026, 3, 1), "2026-03-01T00:00:00Z"),
            (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00Z"),
            (datetime(2026, 3, 1), "2026-03-01T00:00:00Z"),  # as YAML reads it
        ],
    )
    def test_what_may_be_declared(self, declared: object, expected: str) -> None:
        metadata = DeclaredMetadata.model_validate({"updated_at": declared})
        assert metadata.updated_at == expected

    @pytest.mark.parametrize("declared", ["last week", "", "2026-13-01", 2026, 1.5, []])
    def test_and_what_not(self, declared: object) -> None:
        with pytest.raises(ValidationError, match="ISO 8601"):
            DeclaredMetadata.model_validate({"updated_at": declared})


@pytest.mark.parametrize(
    "fields",
    [
        {"trust": "authoritative"},
        {"trust_tier": "Authoritative"},
        {"sensitivity": "secret"},
        {"origin": "elsewhere"},
        {"document_id": ""},
        {"document_id": "a\x00b"},
        {"source_id": "x" * 201},
        {"tags": {"a": "b"}},
        {"applicable_roles": ["No Role"]},
        {"retrieval_hints": [" "]},
        {"supersedes": {"old": "x"}},
        {"contradicts": 3},
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DeclaredMetadata.model_validate(fields)


def test_tags_are_kept_once_in_their_order() -> None:
    assert DeclaredMetadata.model_validate({"tags": ["b", "a", "b"]}).tags == ["b", "a"]


def test_a_locator_is_a_path_and_its_lines() -> None:
    assert passage(path="dir/a.md", start_line=3, end_line=7).locator == "dir/a.md:3-7"
