"""Roles and their overlay files, as commands and methods show them."""

from __future__ import annotations

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.overlay import Overlay


class Role(Contract):
    """A role that has an overlay. ``problem`` is why it cannot be used; empty if it can."""

    role_id: str
    label: str
    mission: str
    extends: str | None
    problem: str


class RoleList(Contract):
    """The method `roles.list` and the tool `list_roles`."""

    roles: list[Role]


class RoleDetails(Contract):
    """The method `roles.show`: an overlay after inheritance, with all defaults, and its digest.

    It has no notes, which are the owner's.
    """

    digest: str
    overlay: Overlay


class OverlayFile(Contract):
    """An overlay and its file. ``problem`` is why it cannot be used; empty if it can."""

    role_id: str
    label: str
    mission: str
    path: str
    extends: str | None
    problem: str


class OverlayDetails(Contract):
    """`overlay show`: an overlay after inheritance, with all defaults.

    ``extends`` are role_id and path of the overlays that it extends, the nearest first.
    """

    role_id: str
    digest: str
    path: str
    extends: list[dict[str, str]]
    overlay: Overlay


OverlayList = list_of(OverlayFile, "overlays", "OverlayList", "`overlay list`.")
