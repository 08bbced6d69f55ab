"""The view `why`."""

from __future__ import annotations

from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.why import why_page


def show(app: Inspector, parameters: Parameters) -> str:
    """Why the passage ``id`` is in the answer to the task of the address, or is not."""
    site = app.site(parameters)
    return why_page(app.engine.why(app.request(parameters), parameters.required("id")), site)
