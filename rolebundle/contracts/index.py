"""The identity of an embedding index. Vectors of two identities are never compared (law 5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Everything about a model that changes its vectors."""

    provider: str
    model: str
    digest: str
    dimensions: int
    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True, slots=True)
class IndexIdentity:
    """A model, and the chunker whose passages it embedded with what of them."""

    model: ModelIdentity
    chunker: str
    normalization: str = "unit"
