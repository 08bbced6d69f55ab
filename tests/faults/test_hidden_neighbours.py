"""Row 32: hidden vectors that are nearer than all visible ones take no place in an answer."""

from pathlib import Path

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.workspace import Workspace
from support.corpora import build, document
from support.fake_embedder import HashingProvider

TASK = "token rotation audit"
POLICY = '[agents.bot]\naccess_level = "internal"\nscopes = ["shared"]\n'
LIMIT = 8


def test_hidden_neighbours_take_no_place(tmp_path: Path) -> None:
    # More of them than any lane proposes, each with the task's own vector.
    hidden = (document(f"hidden-{n}", [TASK], scope="board") for n in range(400))
    texts = [f"rotation kernel{n} release{n} backup{n} of the token" for n in range(LIMIT)]
    visible = (document(f"visible-{n}", [text]) for n, text in enumerate(texts))
    db = build(tmp_path, [*hidden, *visible], HashingProvider())
    workspace = Workspace(db, HashingProvider())
    with Admin(workspace) as admin:
        set_policy(admin.workspace, POLICY, "toml")
    request = RetrievalRequest(task=TASK, limit=LIMIT)
    with Engine(workspace, agent="bot") as engine:
        bundle = engine.retrieve(request)
    shown_documents = {passage.document_id for passage in bundle.selected}
    assert shown_documents == {f"visible-{n}" for n in range(LIMIT)}
