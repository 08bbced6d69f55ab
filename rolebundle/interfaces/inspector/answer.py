"""The first view, which is the form for a question, and the view `answer`."""

from __future__ import annotations

from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.answer import answer_page
from rolebundle.interfaces.pages.page import render


def show_form(app: Inspector, parameters: Parameters) -> str:
    """The form for a question."""
    site = app.site(parameters)
    return render("ask", site, status=app.status(parameters))


def show(app: Inspector, parameters: Parameters) -> str:
    """The answer to the task of the address."""
    site = app.site(parameters)
    return answer_page(app.engine.retrieve(app.request(parameters)), site)
