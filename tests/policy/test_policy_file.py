"""Policy files: their format, and errors that name the place and what is allowed."""

import json
from pathlib import Path
from typing import Any

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.policy.policy_file import MAX_POLICY_BYTES, parse_policy, read_policy_file

RULE = {"scopes": ["engineering"], "access_level": "internal"}


def parsed(values: Any) -> Any:
    return parse_policy(json.dumps(values), "json", "policy.json")


def refused(content: str, kind: str = "json") -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        parse_policy(content, kind, f"policy.{kind}")
    error = caught.value
    assert error.code == "bad_policy"
    assert error.message.startswith(f"policy.{kind}: ")
    assert error.hint
    assert len(error.message) < 500
    return error


def test_roles_bind_and_are_required_by_default() -> None:
    def of(**keys: Any) -> tuple[Any, bool]:
        rule = parsed({"ada": RULE | keys}).agents["ada"]
        return rule.roles, rule.role_required

    assert of() == (None, False)
    assert of(roles=["a", "b"]) == (("a", "b"), True)
    assert of(roles=["a"], role_required=False) == (("a",), False)
    assert of(role_required=True) == (None, True)
    assert of(roles=[], role_required=False) == ((), False)


def test_an_agent_writes_only_what_its_rule_names() -> None:
    assert parsed({"ada": RULE}).agents["ada"].may_write == ()
    rule = RULE | {"may_write": ["remember", "mark", "mark"]}
    assert parsed({"ada": rule}).agents["ada"].may_write == ("remember", "mark")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "ada.scopes: is missing"),
        ({"scopes": []}, "ada.access_level: is missing"),
        (RULE | {"role": ["x"]}, "ada.role: unknown key; did you mean roles?"),
        (RULE | {"access_level": "secret"}, "ada.access_level: must be one of 'denied', 'public'"),
        (RULE | {"access_level": "Internal"}, 'did you mean internal? (it is "Internal")'),
        (RULE | {"access_level": None}, "ada.access_level: must be one of"),
        (RULE | {"scopes": "engineering"}, 'ada.scopes: must be a list (it is "engineering")'),
        (RULE | {"scopes": [1]}, "ada.scopes[0]: must be a text (it is 1)"),
        (RULE | {"scopes": [""]}, "ada.scopes[0]: must not be blank"),
        (RULE | {"scopes": ["x" * 501]}, "ada.scopes[0]: must have 500 characters or less"),
        (RULE | {"deny_patterns": [" "]}, "ada.deny_patterns[0]: must not be blank"),
        (RULE | {"scopes": [str(n) for n in range(1001)]}, "must have 1000 items or less"),
        (RULE | {"show_paths": 1}, "ada.show_paths: must be true or false (it is 1)"),
        (RULE | {"may_write": ["decide"]}, "may_write"),
        ([], "ada: must be an object (it is [])"),
    ],
)
def test_a_wrong_rule_names_agent_key_and_what_is_allowed(rule: Any, message: str) -> None:
    for values in ({"ada": rule}, {"agents": {"bob": RULE, "ada": rule}}):
        assert message in refused(json.dumps(values)).message


@pytest.mark.parametrize("agent", ["", "  ", "x" * 201])
def test_a_blank_or_long_agent_id_is_refused(agent: str) -> None:
    assert "an agent id has 1 to 200 characters" in refused(json.dumps({agent: RULE})).message


def test_an_unknown_key_beside_the_agents_is_refused() -> None:
    error = refused(json.dumps({"agents": {"ada": RULE}, "bob": RULE}))
    assert "bob: unknown key" in error.message
    assert error.hint == "allowed keys: agents"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"ada": NaN}',
        "[" * 100_000,
        '{"ada": {}, "ada": {}}',
        '{"ada": {"scopes": [], "scopes": ["x"], "access_level": "public"}}',
        '{"ada": {"scopes": ["\\ud800"], "access_level": "public"}}',
        '{"ada": {"scopes": [], "access_level": ' + "9" * 5000 + "}}",
    ],
    ids=range(8),
)
def test_what_is_not_one_json_object_is_refused(content: str) -> None:
    refused(content)


@pytest.mark.parametrize("content", ["ada = 1979-05-27", "ada = 1", "[[ada]]\nscopes = []"])
def test_toml_with_other_values_is_refused(content: str) -> None:
    assert "ada: must be an object" in refused(content, "toml").message


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe{\x00}\x00", b"\x80", b"{}" + b" " * MAX_POLICY_BYTES, '{"ä": 1}'.encode("latin-1")],
    ids=["utf-16", "binary", "huge", "latin-1"],
)
def test_bytes_that_are_not_a_policy_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError) as caught:
        read_policy_file(path)
    assert caught.value.code == "policy_unreadable"
    assert caught.value.message.startswith(f"{path}: ")
    assert "UTF-8" in caught.value.hint
    assert len(caught.value.message) < 500
