"""What a transport does: it moves a replica from its publisher to those who read it.

A transport is a thin adapter over an engine that people already run. It proves nothing: whoever
fetches a replica verifies its signature and its content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import FULL_ERRNOS, StorageError, UsageError

Sign = Callable[[ReplicaManifest], SignedManifest]


class Transport(Protocol):
    """One place to which replicas of one publication go.

    What most transports do not need has a default: no manifest beside the replica, and no older
    replicas that can be seen.
    """

    target: str
    """The address, without secrets: an absolute path or a URL."""

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """Make a replica the published one.

        A reader gets the former replica or this one, also if the process is killed.

        Args:
            replica: a closed, complete replica without a log. It is not changed; but a transport
                may keep what belongs to its engine in the folder that the replica is in.
            signed: the manifest in it.
            former: what :meth:`manifest` gave before, if it is this publisher's.
            sign: signs a manifest that lies beside the replica.

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

    def fetch(self, copy: Path, former: Path, manifest: ReplicaManifest | None) -> int:
        """Write the published replica to a file.

        Args:
            copy: an empty private file.
            former: the replica at hand; there may be none.
            manifest: what :meth:`manifest` gave.

        Returns:
            How many bytes were read from the store, or received.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            ConfigurationError: its engine is not installed.
            StorageError: it failed.
        """

    def erase_history(self) -> Sequence[str]:
        """Remove the older states that the store still holds, as far as this transport can.

        Returns:
            Those that are left.

        Raises:
            StorageError: something could not be removed.
        """
        return ()


def nothing_published(target: str) -> UsageError:
    """The error for a place without a replica."""
    return UsageError(
        "nothing_published",
        f"{target}: no replica is published there",
        "check the address, or publish to it first with `rolebundle replica publish`",
    )


def storage_error(path: Path | str, error: OSError) -> StorageError:
    """The error for a file that cannot be read or written."""
    is_full = error.errno in FULL_ERRNOS
    return StorageError(
        "storage_full" if is_full else "io_error",
        f"{path}: {error.strerror or error}",
        "free some disk space and run the same command again"
        if is_full
        else "check the permissions and the disk, then run the same command again",
    )
