"""The answers of `corpus doctor` and `corpus doctor --repair`."""

from typing import Literal

from rolebundle.contracts.base import Contract

CheckState = Literal["ok", "warning", "problem"]


class DoctorCheck(Contract):
    """One check. ``remedy`` is what to do, such as a command; empty if there is nothing to do."""

    name: str
    state: CheckState
    message: str
    remedy: str = ""


class DoctorReport(Contract):
    """`corpus doctor`.

    Attributes:
        location: path of the corpus file.
        sound: whether no check found a problem. Warnings do not count.
        checks: all checks, in a fixed order.
    """

    location: str
    sound: bool
    checks: list[DoctorCheck]


class RepairReport(Contract):
    """`corpus doctor --repair`.

    Attributes:
        location: path of the corpus file.
        repaired: false if it was sound, so that nothing was done.
        kept: under which name the damaged file is kept; null if nothing was done.
        documents: number of documents that were saved; ``chunks`` likewise.
        lost: ``document_id`` and ``path`` of documents that were not saved, as far as they are
            known; damage may have changed them. The next ingest reads them again from their files.
        roots: the folders of the saved files; to be ingested again.
        notes: what else was lost, and what to do.
    """

    location: str
    repaired: bool
    kept: str | None = None
    documents: int = 0
    chunks: int = 0
    lost: list[dict[str, str]] = []
    roots: list[str] = []
    notes: list[str] = []
