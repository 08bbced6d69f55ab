"""The semantic lane's query is the task's vector. The role's mission has no part in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.upkeep import ModelIdentity
from rolebundle.retrieval.lanes import query_vector
from rolebundle.retrieval.query import build_query
from support.corpora import overlay

TASK = "review the token"


class Fixed:
    """A model of two dimensions that knows only the task."""

    identity = ModelIdentity("fixed", "two", "1", 2)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([{TASK: (3.0, 4.0)}[text] for text in texts], dtype=np.float32)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError("a query embeds no passages")


@pytest.mark.parametrize(
    "role", [None, overlay(mission="Find risks.", retrieval_policy={"expansion_weight": 1.0})]
)
def test_the_query_is_the_tasks_unit_vector_with_and_without_a_role(role: Overlay | None) -> None:
    vector = query_vector(build_query(TASK, role), Fixed())
    assert np.frombuffer(vector, dtype="<f4").tolist() == pytest.approx([0.6, 0.8])
