"""The answers of `doctor` and `doctor --repair`."""

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
    """`doctor`.

    Attributes:
        location: path of the corpus file.
        sound: whether no check found a problem. Warnings do not count.
        checks: all checks, in a fixed order.
    """

    location: str
    sound: bool
    checks: list[DoctorCheck]
