"""The request: the same fields through every interface, and a coded error for everything else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rolebundle.contracts.marks import MarkRequest
from rolebundle.contracts.operation_requests import GetRequest, ListRequest
from rolebundle.contracts.request import ALIASES, MAX_TASK_CHARACTERS, RetrievalRequest
from rolebundle.contracts.schema import json_schema
from rolebundle.errors import UsageError
from rolebundle.interfaces.parse import parsed, request_from


def test_only_the_task_is_required() -> None:
    request = request_from({"task": "rotate the token"})
    assert request.task == "rotate the token"
    assert request.role is request.limit is request.token_budget is request.fusion is None
    assert request.lexical_only is False


def test_the_task_stays_as_it_is() -> None:
    assert request_from({"task": "  a\x00 b\n"}).task == "  a\x00 b\n"


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 1},
        {"limit": 1000},
        {"token_budget": 1},
        {"role": "mossline-security-reviewer"},
        {"fusion": "rrf"},
        {"lexical_only": True},
        {"seen": []},
        {"seen": ["d#1"] * 1000},
    ],
)
def test_the_borders_are_inside(fields: dict[str, Any]) -> None:
    request = request_from({"task": "x"} | fields)
    (name,) = fields
    assert getattr(request, name) == fields[name]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, moment: datetime) -> None:
    assert request_from({"task": "x", "now": text}).now == moment


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": 2.5}, "limit"),
        ({"limit": True}, "limit"),
        ({"token_budget": 0}, "token_budget"),
        ({"deadline_ms": 0}, "deadline_ms"),
        ({"deadline_ms": 10**400}, "deadline_ms"),
        ({"role": "No Such"}, "role"),
        ({"role": "a/../b"}, "role"),
        ({"role": "reviewer\n"}, "role"),
        ({"fusion": "max"}, "fusion"),
        ({"lexical_only": "yes"}, "lexical_only"),
        ({"now": "yesterday"}, "now"),
        ({"now": 5}, "now"),
        ({"task": 5}, "task"),
        ({"task": None}, "task"),
        ({"task": ["x"]}, "task"),
        ({"task": "x" * (MAX_TASK_CHARACTERS + 1)}, "task"),
        ({"surprise": 1}, "surprise"),
        ({"seen": "d#1"}, "seen"),
        ({"seen": ["d#1"] * 1001}, "seen"),
        ({"seen": ["d#1", ""]}, "seen[1]"),
        ({"seen": ["\ud800"]}, "seen[0]"),
    ],
)
def test_a_bad_field_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as error:
        request_from({"task": "x"} | fields)
    assert error.value.code == "bad_request"
    assert error.value.message.startswith(f"{named}:")
    if named == "surprise":
        assert "task, also, role, agent, action, approval, " in error.value.hint
    else:
        field = named.partition("[")[0]
        about = RetrievalRequest.model_fields[field].description
        assert error.value.hint == f"{field}: {about}"


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


@pytest.mark.parametrize(
    ("sent_fields", "meant"),
    [
        ({"q": "x"}, {"task": "x"}),
        ({"query": "x", "top_k": 3}, {"task": "x", "limit": 3}),
        ({"task": "x", "k": 3}, {"task": "x", "limit": 3}),
        ({"task": "x", "role_id": "writer"}, {"task": "x", "role": "writer"}),
        ({"task": "x", "roleId": "writer"}, {"task": "x", "role": "writer"}),
        ({"task": "x", "tokenBudget": 9, "topK": 2}, {"task": "x", "token_budget": 9, "limit": 2}),
        ({"task": "x", "lexicalOnly": True}, {"task": "x", "lexical_only": True}),
    ],
)
def test_names_that_models_guess_are_taken(
    sent_fields: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert request_from(sent_fields) == request_from(meant)


def test_one_field_by_two_names_is_refused() -> None:
    with pytest.raises(UsageError, match=r"query: is the same field as task"):
        request_from({"task": "x", "query": "y"})


def test_an_unknown_field_is_named_with_the_nearest_known_one() -> None:
    with pytest.raises(UsageError, match=r"limt: unknown key; did you mean limit\?"):
        request_from({"task": "x", "limt": 3})


class TestWhere:
    def test_one_value_is_a_list_of_one(self) -> None:
        where = request_from({"task": "x", "where": {"source": "a", "tags": ["b", "c"]}}).where
        assert where is not None
        assert (where.source, where.tags, where.domain) == (["a"], ["b", "c"], None)

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
            ({"source": 5}, "where.source: must be a text or a list of texts"),
            ({"source": ["a", 5]}, "where.source[1]: must be a text"),
            ({"source": " "}, "where.source[0]: must not be blank"),
            ({"path": "x" * 201}, "where.path[0]: must have 200 characters or less"),
            ({"updated_after": "soon"}, "where.updated_after: must be an ISO 8601 time"),
            ({"updated_after": 5}, "where.updated_after: must be an ISO 8601 time"),
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


def test_every_alias_stands_in_the_schema() -> None:
    aliases = json_schema("request")["x-aliases"]
    assert aliases["q"] == "task"
    assert all(alias in ALIASES[name] for alias, name in aliases.items() if alias != "camelCase")


@pytest.mark.parametrize("alias", ["locator", "path", "ref", "chunkId"])
def test_a_reference_has_the_names_that_answers_use(alias: str) -> None:
    assert parsed(GetRequest, {alias: "a.md:1-2"}).id == "a.md:1-2"


def test_a_path_is_what_a_list_begins_with() -> None:
    assert parsed(ListRequest, {"path": "manual"}).prefix == "manual"


def test_a_mark_of_a_target_lacks_only_what_is_missing() -> None:
    with pytest.raises(UsageError, match="state: is missing"):
        parsed(MarkRequest, {"target": "a.md", "reason": "it is wrong"})
