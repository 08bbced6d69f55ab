"""The view `draft`."""

from __future__ import annotations

from rolebundle.contracts.verification import VerifyRequest
from rolebundle.errors import UsageError
from rolebundle.interfaces.checked_passages import passage_texts
from rolebundle.interfaces.inspector.application import DEADLINE_MS, Inspector, Parameters
from rolebundle.interfaces.pages.draft import draft_page
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.parse import parsed

MAX_DRAFT_BYTES = 48 << 10


def show(app: Inspector, parameters: Parameters) -> str:
    """The form for a draft; with a draft, whether it says what the corpus says."""
    site = app.site(parameters)
    # A form ends its lines with CR and LF.
    draft = parameters.get("draft").replace("\r\n", "\n")
    if not draft:
        return render("draft_form", site)
    if len(draft.encode("utf-8", "surrogatepass")) > MAX_DRAFT_BYTES:
        raise UsageError(
            "draft_too_long",
            f"the draft is longer than {MAX_DRAFT_BYTES >> 10} KB",
            "use `rolebundle verify DRAFT --html FILE`",
        )
    fields = {name: parameters.get(name) for name in ("role", "now") if parameters.get(name)}
    request = parsed(
        VerifyRequest,
        {
            "draft": draft,
            "agent": app.agent_of(parameters),
            "publish": bool(parameters.get("publish")),
            "deadline_ms": DEADLINE_MS,
            **fields,
        },
    )
    answer = app.engine.verify(request)
    return draft_page(
        answer, draft, passage_texts(app.engine, answer, request.agent), site,
        publish=request.publish,
    )  # fmt: skip
