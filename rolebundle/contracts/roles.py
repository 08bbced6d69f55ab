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


class OverlayFile(Role):
    """A role and the file of its overlay."""

    path: str


class OverlayDetails(Contract):
    """`overlay show`: an overlay after inheritance, with all defaults.

    ``extends`` are role_id and path of the overlays that it extends, the nearest first.
    """

    role_id: str
    digest: str
    path: str
    extends: list[dict[str, str]]
    overlay: Overlay


RoleList = list_of(Role, "roles", "RoleList", "The method `roles.list` and the tool `list_roles`.")
OverlayList = list_of(OverlayFile, "overlays", "OverlayList", "`overlay list`.")
