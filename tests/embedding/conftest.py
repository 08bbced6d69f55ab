"""A model server of each kind, and ways to make it misbehave."""

import pytest

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.registry import ProviderSpec, provider_for
from support.embedding_server import DEADLINE, EMBED_PATHS, MODEL, Breaks, EmbeddingServer, Fault


@pytest.fixture(params=list(EMBED_PATHS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def provider(kind: str, server: EmbeddingServer) -> EmbeddingProvider:
    """A provider that has already looked up its model, so that faults occur in later requests."""
    provider = provider_for(ProviderSpec(kind, MODEL, server.url, deadline_seconds=DEADLINE))
    assert provider.identity.dimensions == 8
    server.seen.clear()
    return provider


@pytest.fixture
def breaks(kind: str, server: EmbeddingServer) -> Breaks:
    """A function that replaces the server's answer to requests for vectors."""

    def on_embed(fault: Fault) -> None:
        server.faults[EMBED_PATHS[kind]] = fault

    return on_embed
