"""For whom a replica is."""

from __future__ import annotations

import pytest

from rolebundle.policy.audience import publish_command
from support.publishing import publication_of


@pytest.mark.parametrize(("agent", "options"), [("ana", "--agent ana --key"), ("", "--key")])
def test_the_command_that_publishes_again(agent: str, options: str) -> None:
    command = publish_command(publication_of("/a share", agent))
    assert command == f"rolebundle publish '/a share' {options} FILE"
