"""Law 9 for the pages: a page for an agent does not depend on what the agent may not see.

Every view is asked for an agent over a corpus, and over a copy without the documents that are hidden
from it. The pages are equal, byte by byte but for the time that an answer took.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.engine import Engine
from rolebundle.interfaces.inspector import VIEWS, Inspector, Parameters, Response
from rolebundle.policy.access import set_policy
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import few_examples
from support.corpora import NOW, build, chunk, remove
from support.fake_embedder import HashingProvider
from support.strategies import documents, word_text

AGENT = "ada"
POLICY = {AGENT: {"scopes": ["shared"], "access_level": "internal"}}
SCOPES = ("shared", "hidden")
ROLES: dict[str, dict[str, object]] = {
    "reviewer": {"vocabulary": {"preferred_terms": ["token"]}},
    "writer": {
        "source_policy": {"forbidden_sources": [{"pattern": "vendor", "reason": "rumours"}]}
    },
}


def placed(number: int, document: StoredDocument, scope: str) -> StoredDocument:
    """The document under an id of its own, with the scope."""
    name = f"d{number}"
    values = {**document.metadata._asdict(), "document_id": name, "scope": scope}
    chunks = tuple(
        chunk(f"{name}#{place}", original.content, excluded_roles=original.excluded_roles)
        for place, original in enumerate(document.chunks)
    )
    return StoredDocument(type(document.metadata)(**values), chunks, document.scanned)


def pages(folder: Path, stored_documents: list[StoredDocument], task: str) -> dict[str, Response]:
    """The pages for the agent, by view and parameters."""
    folder.mkdir(exist_ok=True)
    path = build(folder, stored_documents, HashingProvider(), name="corpus.db")
    try:
        with open_writer(path) as corpus:
            set_policy(corpus, json.dumps(POLICY), "json", "", "2026-11-01T00:00:00Z")
        request = {"task": task, "role": "reviewer", "now": NOW.isoformat()}
        ids = [{**request, "id": name} for name in ("d0", "d1#0", "nowhere")]
        queries: dict[str, list[dict[str, str]]] = {
            "": [{}],
            "answer": [{**request, "agent": AGENT}],
            "compare": [{**request, "other": "writer"}],
            "why": ids,
            "document": ids,
        }
        workspace = Workspace(path, HashingProvider())
        with Engine(workspace, (folder.parent / "roles",), agent=AGENT) as engine:
            app = Inspector(engine, "/token/")
            return {
                f"{view} {parameters}": app.answer(view, Parameters(parameters.items()))
                for view in VIEWS
                for parameters in queries.get(view, [{}])
            }
    finally:
        remove(path)


def without_times(answer: Response) -> tuple[int, str]:
    return answer.status, re.sub(r"\d+ ms", "0 ms", answer.page)


@few_examples
@given(
    drawn=st.lists(st.tuples(documents("d0"), st.sampled_from(SCOPES)), min_size=2, max_size=5),
    task=word_text.filter(str.strip),
)
def test_a_page_is_the_same_without_what_the_agent_may_not_see(
    folder: Path, drawn: list[tuple[StoredDocument, str]], task: str
) -> None:
    (folder / "roles").mkdir(exist_ok=True)
    for role, values in ROLES.items():
        overlay = {"version": "1.0", "role_id": role, **values}
        (folder / "roles" / f"{role}.json").write_text(json.dumps(overlay), encoding="utf-8")
    every = [placed(number, document, scope) for number, (document, scope) in enumerate(drawn)]
    visible = [document for document in every if document.metadata.scope == "shared"]
    complete, part = pages(folder / "whole", every, task), pages(folder / "part", visible, task)
    for address, answer in complete.items():
        assert without_times(answer) == without_times(part[address]), address
        assert answer.status != 500
