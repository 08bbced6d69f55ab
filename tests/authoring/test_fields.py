"""What a role's name says of its field."""

from __future__ import annotations

import pytest

from rolebundle.authoring.fields import read_role_name


@pytest.mark.parametrize(
    ("role", "base"),
    [
        ("technical-writer", "technical-writer"),
        ("docs-writer", "technical-writer"),
        ("writer", "technical-writer"),
        ("system-administrator", "incident-responder"),
        ("software-engineer", "code-reviewer"),
        ("security-reviewer", "security-reviewer"),
    ],
)
def test_a_name_of_a_field_extends_its_shipped_role(role: str, base: str) -> None:
    assert read_role_name(role).base == base


@pytest.mark.parametrize("role", ["fiction-writer", "database-administrator", "grant-reviewer"])
def test_a_word_of_every_role_names_no_field_beside_another_word(role: str) -> None:
    name = read_role_name(role)
    assert (name.fields, name.own) == ((), (role.partition("-")[0],))
