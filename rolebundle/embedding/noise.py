"""The scale of cosines: noise and related texts, measured on a fixed sample."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rolebundle.contracts.documents import ModelIdentity, Noise
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.lazy import numpy as np

_SAMPLE = Path(__file__).with_name("noise_sample.txt")
"""A line with a question begins a pair; the lines up to the next one are its passage."""


@cache
def sample_pairs() -> list[tuple[str, str]]:
    """The questions of the sample, each with its passage."""
    pairs: list[tuple[str, list[str]]] = []
    for line in _SAMPLE.read_text(encoding="utf-8").splitlines():
        if line.endswith("?"):
            pairs.append((line, []))
        else:
            pairs[-1][1].append(line)
    return [(question, " ".join(lines)) for question, lines in pairs]


UNRELATED_PERCENTILE = 95
RELATED_PERCENTILE = 90
"""High, because the best passage of many in a corpus is closer than an average related one."""
_DECIMALS = 4
"""Rounded, because a model's last bits depend on the number of threads."""

_measured: dict[ModelIdentity, Noise] = {}


def noise_of(provider: EmbeddingProvider) -> Noise:
    """What the cosines of a provider mean; measured once per process and model.

    Raises:
        EmbedderError: the model could not embed the sample.
    """
    model = provider.identity
    if model in _measured:
        return _measured[model]
    size, dimensions = len(sample_pairs()), model.dimensions
    questions, passages = zip(*sample_pairs(), strict=True)
    asked = unit_vectors(provider.embed_queries(questions), size, dimensions)
    read = unit_vectors(provider.embed_passages(passages), size, dimensions)
    cosines = (asked @ read.T).clip(-1, 1)
    are_related = np.eye(size, dtype=bool)
    _measured[model] = Noise(
        floor=round(float(np.percentile(cosines[~are_related], UNRELATED_PERCENTILE)), _DECIMALS),
        related=round(float(np.percentile(cosines[are_related], RELATED_PERCENTILE)), _DECIMALS),
    )
    return _measured[model]
