"""The view `compare`."""

from __future__ import annotations

from rolebundle.contracts.operation_requests import MAX_ROLES
from rolebundle.errors import UsageError
from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.compare import compare_form, compare_page
from rolebundle.retrieval.explanation.compare import compare_roles


def show(app: Inspector, parameters: Parameters) -> str:
    """What each of the chosen roles gets for the task; the form to choose them if two are missing.

    Raises:
        UsageError: there are too many roles.
    """
    site = app.site(parameters)
    roles = _roles(parameters)
    if len(roles) > MAX_ROLES:
        raise UsageError(
            "too_many_roles", f"{len(roles)} roles are too many", f"choose at most {MAX_ROLES}"
        )
    if len(roles) < 2 or not parameters.get("task"):
        return compare_form(site, roles)
    request = app.request(parameters, role=None)
    return compare_page(
        compare_roles(app.engine.retrieve_for_roles(request, roles, without_role=True)), site
    )


def _roles(parameters: Parameters) -> list[str]:
    """The roles of `role`, `other` and `roles`, which is a list with commas or comes repeatedly."""
    roles = [
        parameters.get("role"),
        parameters.get("other"),
        *",".join(parameters.all("roles")).split(","),
    ]
    return list(dict.fromkeys(role.strip() for role in roles if role.strip()))
