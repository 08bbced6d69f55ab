"""Requests of agents, and what an engine answers to them."""

from typing import Any

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.resources import demo_overlays
from support.corpora import NOW

OVERLAYS = demo_overlays()


def ask(agent: str | None = None, task: str = "token plan", **fields: Any) -> RetrievalRequest:
    # The copy is not validated: some agents are no valid ids.
    request = RetrievalRequest(task=task, now=NOW, **fields)
    return request.model_copy(update={"agent": agent})


def ids(engine: Engine, agent: str | None, **fields: Any) -> list[str]:
    bundle = engine.retrieve(ask(agent, **fields))
    return sorted({passage.document_id for passage in bundle.selected})
