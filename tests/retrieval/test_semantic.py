"""The semantic lane's query: the task, and the role's mission with its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rolebundle.contracts.index import ModelIdentity
from rolebundle.retrieval.lanes import query_vector
from rolebundle.retrieval.query import build_query
from support.corpora import overlay

if TYPE_CHECKING:
    from numpy.typing import NDArray

TASK = "review the token"


class Fixed:
    """A model of two dimensions that knows two texts."""

    identity = ModelIdentity("fixed", "two", "1", 2)

    def __init__(self, mission: tuple[float, float]) -> None:
        self.vectors = {TASK: (1.0, 0.0), "Find risks.": mission}

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError("a query embeds no passages")


def vector(mission: tuple[float, float], weight: float = 0.2) -> list[float]:
    role = overlay(mission="Find risks.", retrieval_policy={"expansion_weight": weight})
    found = query_vector(build_query(TASK, role), Fixed(mission))
    return [float(each) for each in np.frombuffer(found, dtype="<f4")]


def test_an_unrelated_mission_has_no_weight() -> None:
    assert vector((0.0, 1.0)) == pytest.approx([1.0, 0.0], abs=1e-6)
    assert vector((-0.6, 0.8)) == pytest.approx([1.0, 0.0], abs=1e-6)
    assert vector((0.0, 1.0), weight=1.0) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_the_weight_of_a_mission_grows_with_its_cosine_with_the_task() -> None:
    # 0.8 · (1, 0) + 0.2 · 0.6 · (0.6, 0.8), at unit length.
    mixed = np.array([0.8 + 0.072, 0.096])
    assert vector((0.6, 0.8)) == pytest.approx(list(mixed / np.linalg.norm(mixed)), abs=1e-6)
