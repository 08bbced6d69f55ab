"""For whom a replica is."""

from __future__ import annotations

from rolebundle.policy.audience import publish_command
from rolebundle.storage.records.publications import Publication


def test_the_command_after_a_publish_that_was_never_completed() -> None:
    command = publish_command(Publication("/share"))
    assert command == "rolebundle replica publish /share (--agent ID | --level LEVEL) --key FILE"
