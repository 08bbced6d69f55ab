"""What identifies an embedding model and an index of it, and what its cosines mean."""

from __future__ import annotations

from typing import NamedTuple


class ModelIdentity(NamedTuple):
    """Everything about a model that its vectors depend on.

    Attributes:
        digest: identifies the version of the model.
        query_prefix: text that is put before a query.
        passage_prefix: text that is put before a passage.
    """

    provider: str
    model: str
    digest: str
    dimensions: int
    query_prefix: str = ""
    passage_prefix: str = ""


class IndexIdentity(NamedTuple):
    """What the vectors of an index depend on.

    Attributes:
        model: the model.
        chunker: version of the chunker and of the text that is embedded for a chunk.
        normalization: ``unit`` if vectors have length 1.
    """

    model: ModelIdentity
    chunker: str
    normalization: str = "unit"


class Noise(NamedTuple):
    """What a model's cosines of a question and a passage mean, measured on a fixed text sample.

    Attributes:
        floor: 95 of 100 unrelated pairs have at most this cosine, in [−1, 1].
        related: 90 of 100 related pairs have at most this cosine, in [−1, 1].
    """

    floor: float
    related: float

    def closeness(self, cosine: float) -> float:
        """Where a cosine lies between the two, in [0, 1]."""
        width = max(self.related - self.floor, 1e-6)
        return min(1.0, max(0.0, (cosine - self.floor) / width))
