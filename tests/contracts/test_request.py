"""The request: the same fields through every interface, and a coded error for everything else."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.contracts.memory import MarkRequest
from rolebundle.contracts.request import GetRequest
from rolebundle.errors import UsageError
from rolebundle.interfaces.parse import parsed, request_from


def test_only_the_task_is_required() -> None:
    request = request_from({"task": "rotate the token"})
    assert request.task == "rotate the token"
    assert request.role is request.limit is request.token_budget is request.fusion is None
    assert request.lexical_only is False


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "bad_request"),
        ({"task": ""}, "empty_task"),
        ({"task": " \n"}, "empty_task"),
        ({"task": "\ud800"}, "task_not_text"),
    ],
)
def test_a_task_that_cannot_be_searched_for(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as error:
        request_from(fields)
    assert error.value.code == code
    assert error.value.hint


class TestWhere:
    def test_other_names_are_taken_inside_too(self) -> None:
        fields = {"task": "x", "filters": {"sourceId": "a", "updatedAfter": "2026-01-01"}}
        meant = {"task": "x", "where": {"source": "a", "updated_after": "2026-01-01"}}
        assert request_from(fields) == request_from(meant)

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ("source=a", "where: must be an object"),
            ({"sorce": "a"}, "where.sorce: unknown key; did you mean source?"),
            ({"source": []}, "where.source: must have 1 or more items"),
            ({"source": ["a"] * 101}, "where.source: must have 100 items or less"),
            ({"path": "x" * 201}, "where.path[0]: must have 200 characters or less"),
            ({"updated_after": "soon"}, "where.updated_after: must be an ISO 8601 time"),
            (
                {"updated_after": "2026-01-02", "updated_before": "2026-01-01"},
                "where: updated_after must be earlier than updated_before",
            ),
            (
                {"updated_after": "2026-01-01", "updated_before": "2026-01-01"},
                "where: updated_after must be earlier than updated_before",
            ),
            ({"source": "a", "sourceId": "b"}, "sourceId: is the same field as source"),
        ],
    )
    def test_a_mistake_is_named(self, where: Any, message: str) -> None:
        with pytest.raises(UsageError) as error:
            request_from({"task": "x", "where": where})
        assert error.value.code == "bad_request"
        assert error.value.message.startswith(message)
        if message.startswith("where"):
            assert error.value.hint.startswith("keys of where: source, document_type, domain")


@pytest.mark.parametrize("text", ["0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00"])
def test_a_time_that_has_no_utc_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="now: must be an ISO 8601 time"):
        request_from({"task": "x", "now": text})


@pytest.mark.parametrize("alias", ["locator", "path", "ref", "chunkId"])
def test_a_reference_has_the_names_that_answers_use(alias: str) -> None:
    assert parsed(GetRequest, {alias: "a.md:1-2"}).id == "a.md:1-2"


def test_a_mark_of_a_target_lacks_only_what_is_missing() -> None:
    with pytest.raises(UsageError, match="state: is missing"):
        parsed(MarkRequest, {"target": "a.md", "reason": "it is wrong"})
