"""What a transport does: it moves a replica from its publisher to those who read it.

A transport is a thin adapter over an engine that people already run. It proves nothing: whoever
fetches a replica verifies its signature and its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Transport(Protocol):
    """One place to which replicas of one publication go.

    What most transports do not need has a default: no manifest beside the replica, no state, and no
    older replicas that can be seen.
    """

    target: str
    """The address, without secrets: an absolute path or a URL."""

    def push(self, replica: Path, manifest: bytes) -> int:
        """Make a replica the published one.

        A reader gets the former replica or this one, also if the process is killed.

        Args:
            replica: a closed, complete replica without a log. It is not changed; but a transport
                may keep what belongs to its engine in the folder that the replica is in.
            manifest: the signed manifest, as it is in the replica.

        Returns:
            How many bytes were written to the store, or sent.

        Raises:
            UsageError: this transport only reads, or the place is of something else. Nothing was
                moved.
            ConfigurationError: its engine is not installed. Nothing was moved.
            StorageError: it failed. The former replica is still the published one.
        """

    def manifest(self) -> bytes | None:
        """The signed manifest beside the replica, or ``None`` if this transport has none there.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            StorageError: it cannot be read.
        """
        return None

    def state(self) -> str | None:
        """What changes whenever another replica is published, if a fetch is much slower to ask.

        Returns:
            A line of text; ``None`` if the manifest or a fetch itself tells as quickly.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            ConfigurationError: its engine is not installed.
            StorageError: it cannot be read.
        """
        return None

    def fetch(self, copy: Path) -> int:
        """Make a file equal to the published replica.

        It is called again with what an interrupted fetch left, and continues from there.

        Args:
            copy: a private file that nobody else has open: empty, a copy of an earlier replica,
                or what an interrupted fetch left.

        Returns:
            How many bytes were read from the store, or received.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            ConfigurationError: its engine is not installed.
            StorageError: it failed.
        """

    def history(self) -> Sequence[str]:
        """The older states of the replica that the store still holds beside the present one.

        Returns:
            A name for each, such as a path or an address.

        Raises:
            StorageError: they cannot be listed.
        """
        return ()

    def erase_history(self) -> None:
        """Remove what :meth:`history` lists, as far as this transport can.

        Raises:
            StorageError: something could not be removed.
        """
        return
