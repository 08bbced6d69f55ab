"""What a model's cosines mean, measured on a fixed text sample.

Cosines of two models cannot be compared: unrelated texts have −0.1 to 0.2 by one model and 0.6 to
0.8 by another. No corpus takes part in the measurement, so hidden documents cannot change it.
"""

from __future__ import annotations

from rolebundle.contracts.index import ModelIdentity, Noise
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors

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
    if model not in _measured:
        _measured[model] = _measure(provider)
    return _measured[model]


def _measure(provider: EmbeddingProvider) -> Noise:
    import numpy as np

    # Delayed: an index usually has the figures.
    from rolebundle.embedding.noise_sample import PAIRS

    size, dimensions = len(PAIRS), provider.identity.dimensions
    questions = provider.embed_queries([question for question, _ in PAIRS])
    passages = provider.embed_passages([passage for _, passage in PAIRS])
    cosines = (
        unit_vectors(questions, size, dimensions) @ unit_vectors(passages, size, dimensions).T
    ).clip(-1, 1)
    are_related = np.eye(size, dtype=bool)
    return Noise(
        floor=round(float(np.percentile(cosines[~are_related], UNRELATED_PERCENTILE)), _DECIMALS),
        related=round(float(np.percentile(cosines[are_related], RELATED_PERCENTILE)), _DECIMALS),
    )
