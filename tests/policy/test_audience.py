"""For whom a replica is."""

from __future__ import annotations

import pytest

from rolebundle.policy.audience import Audience, publish_command
from rolebundle.policy.policy_file import AgentRule
from support.publishing import publication_of


@pytest.mark.parametrize(
    ("agent", "scopes", "options"),
    [
        ("ana", ("hr",), "--agent ana"),
        ("", (), "--level internal"),
        ("", ("hr", "the board"), "--level internal --scopes 'hr,the board'"),
    ],
)
def test_the_command_that_publishes_again(
    agent: str, scopes: tuple[str, ...], options: str
) -> None:
    audience = Audience(agent, AgentRule(scopes, "internal"), None)
    known = publication_of("/a share", agent, audience.visibility())
    assert publish_command(known) == f"rolebundle publish '/a share' {options} --key FILE"


def test_the_command_if_the_first_publish_was_not_completed() -> None:
    command = publish_command(publication_of("/share", "", ""))
    assert command == "rolebundle publish /share --key FILE"
