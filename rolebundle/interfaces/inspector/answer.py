"""The first view, which is the form for a question, and the view `answer`."""

from __future__ import annotations

from rolebundle.interfaces.inspector.application import Inspector, Query
from rolebundle.interfaces.pages.answer import answer_page
from rolebundle.interfaces.pages.page import render


def show_form(app: Inspector, query: Query) -> str:
    """The form for a question."""
    site = app.site(query)
    return render("ask", site, status=app.status(query))


def show(app: Inspector, query: Query) -> str:
    """The answer to the task of the address."""
    site = app.site(query)
    return answer_page(app.engine.retrieve(app.request(query)), site)
