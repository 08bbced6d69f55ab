"""What serves one client, in whatever protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rolebundle.interfaces.servers.stdio import ReadStopper
from rolebundle.interfaces.servers.worker import Worker


class ClientSession(ABC):
    """Serves one client.

    Args:
        worker: runs its calls; it is this session's alone.
        stopper: ends the reading of its requests.
    """

    def __init__(self, worker: Worker, stopper: ReadStopper) -> None:
        self._worker = worker
        self._stopper = stopper
        self.is_stopped = False
        """Whether :meth:`stop` was called."""

    @abstractmethod
    def run(self) -> None:
        """Serve until the input ends, nobody reads the output, or :meth:`stop`."""

    def stop(self) -> None:
        """Make :meth:`run` return soon. For any thread."""
        self.is_stopped = True
        self._stopper.stop()

    def close(self) -> None:
        """Close what :meth:`stop` uses, after everything has ended."""
        self._stopper.close()

    @property
    def is_finished(self) -> bool:
        """Whether every call was finished. The others have the code ``interrupted``."""
        return self._worker.unfinished == 0

    @property
    def has_ended(self) -> bool:
        """Whether all requests have ended; to be asked after :meth:`run`."""
        return self._worker.has_ended
