"""The view `compare`."""

from __future__ import annotations

from rolebundle.contracts.operation_requests import MAX_ROLES
from rolebundle.errors import UsageError
from rolebundle.interfaces.inspector.application import Inspector, Query
from rolebundle.interfaces.pages.compare import compare_form, compare_page
from rolebundle.retrieval.compare import compare_roles


def show(app: Inspector, query: Query) -> str:
    """What each of the chosen roles gets for the task; the form to choose them if two are missing.

    Raises:
        UsageError: there are too many roles.
    """
    site = app.site(query)
    roles = _roles(query)
    if len(roles) > MAX_ROLES:
        raise UsageError(
            "too_many_roles", f"{len(roles)} roles are too many", f"choose at most {MAX_ROLES}"
        )
    if len(roles) < 2 or not query.get("task"):
        return compare_form(site, roles)
    request = app.request(query, role=None)
    return compare_page(
        compare_roles(app.engine.retrieve_for_roles(request, roles, without_role=True)), site
    )


def _roles(query: Query) -> list[str]:
    """The roles of `role`, `other` and `roles`, which is a list with commas or comes repeatedly."""
    roles = [query.get("role"), query.get("other"), *",".join(query.all("roles")).split(",")]
    return list(dict.fromkeys(role.strip() for role in roles if role.strip()))
