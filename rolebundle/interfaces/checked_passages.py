"""The texts of the passages that a draft was checked against, for a page."""

from __future__ import annotations

from collections.abc import Mapping

from rolebundle.contracts.lookup import FoundPassage
from rolebundle.contracts.verification import Verification
from rolebundle.engine import Engine

MAX_TEXTS = 200
"""How many passages a page shows with their text."""


def named_passages(answer: Verification) -> dict[str, str]:
    """The locators of the passages that findings name, by chunk id, in the order of the draft."""
    named: dict[str, str] = {}
    for finding in answer.findings:
        if finding.chunk_id:
            named.setdefault(finding.chunk_id, finding.locator or finding.chunk_id)
    return named


def passage_texts(
    engine: Engine, answer: Verification, agent: str | None
) -> Mapping[str, FoundPassage]:
    """The first named passages as the agent may see them, by chunk id.

    Raises:
        AccessDenied: the agent may see nothing of this corpus.
    """
    chunk_ids = [*named_passages(answer)][:MAX_TEXTS]
    if not chunk_ids:
        return {}
    return {
        passage.chunk_id: passage
        for lookup in engine.multi_get(chunk_ids, agent).lookups
        for passage in lookup.passages
        if passage.chunk_id in chunk_ids
    }
