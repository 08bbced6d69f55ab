"""The identity of an embedding index. Vectors of two identities are never compared (law 5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelIdentity:
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


@dataclass(frozen=True, slots=True)
class IndexIdentity:
    """What the vectors of an index depend on.

    Attributes:
        model: the model.
        chunker: version of the chunker and of the text that is embedded for a chunk.
        normalization: ``unit`` if vectors have length 1.
    """

    model: ModelIdentity
    chunker: str
    normalization: str = "unit"
