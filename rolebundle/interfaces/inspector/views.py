"""The views by their names in an address."""

from __future__ import annotations

from collections.abc import Mapping

from rolebundle.interfaces.inspector import (
    answer,
    compare,
    corpus,
    document,
    draft,
    evaluation,
    why,
    workbench,
)
from rolebundle.interfaces.inspector.application import View

VIEWS: Mapping[str, View] = {
    "": answer.show_form,
    "answer": answer.show,
    "draft": draft.show,
    "evaluation": evaluation.show,
    "why": why.show,
    "compare": compare.show,
    "document": document.show,
    "workbench": workbench.show,
    "corpus": corpus.show,
}
FORMS: Mapping[str, View] = {"workbench": workbench.submit}
"""The views that take a POST."""
