"""Requirements for every embedding provider, tested with each of them, including the in-memory one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
import pytest

from rolebundle.contracts.upkeep import ModelIdentity
from rolebundle.embedding import onnx
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.errors import EmbedderError
from support.embedding_server import MODEL, EmbeddingServer, embedding_server
from support.fake_embedder import HashingProvider

Prefixes = tuple[str, str] | None
Make = Callable[[Prefixes], EmbeddingProvider]

TEXTS = [
    "A token bucket limits the rate of requests.",
    "short",
    "Wie setzt man ein Passwort zurück?",
    "同期の競合はどう解決されるか",
    "🧑‍🚀 emoji joiners stay whole",
    "The last writer wins. " * 12,
]
ODD = ["", " ", "\0", "a\0b", "\ud800 alone", "\u202e bidi", "\U000e0041 tag", "x" * 5000]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture(
    scope="module",
    params=[
        "in-memory",
        "static",
        # Seconds; test_onnx.py has what its own code must keep.
        pytest.param("onnx", marks=pytest.mark.slow),
        pytest.param("onnx-multilingual", marks=pytest.mark.slow),
        "ollama",
        "openai",
    ],
)
def make(request: pytest.FixtureRequest) -> Make:
    """A function that creates the provider, with its own prefixes or with others."""
    name = request.param
    if name == "in-memory":
        return lambda prefixes: HashingProvider()
    if name == "static":
        return lambda prefixes: provider_for(ProviderSpec("static"))
    if name == "onnx":
        if not onnx.MINILM.is_installed:
            pytest.skip("the extra onnx is not installed")
        return lambda prefixes: provider_for(ProviderSpec("onnx", prefixes=prefixes))
    if name == "onnx-multilingual":
        if not onnx.E5.is_installed:
            pytest.skip("the extra multilingual is not installed")
        return lambda prefixes: provider_for(ProviderSpec("onnx", onnx.E5.name, prefixes=prefixes))
    server = request.getfixturevalue("server")
    spec = ProviderSpec(name, MODEL, server.url)

    def provider(prefixes: Prefixes) -> EmbeddingProvider:
        if prefixes is None:
            return provider_for(spec)
        return provider_for(ProviderSpec(spec.provider, spec.model, spec.url, prefixes=prefixes))

    return provider


@pytest.fixture(scope="module")
def provider(make: Make) -> EmbeddingProvider:
    return make(None)


@pytest.fixture(scope="module")
def bare(make: Make) -> EmbeddingProvider:
    """The same model without prefixes."""
    return make(("", ""))


def test_the_identity_is_complete_and_stable(make: Make, provider: EmbeddingProvider):
    identity = provider.identity
    assert isinstance(identity, ModelIdentity)
    assert identity.provider and identity.model and identity.digest
    assert identity.dimensions > 0
    assert provider.identity == identity == make(None).identity
    hash(identity)


@pytest.mark.parametrize("side", ["embed_passages", "embed_queries"])
def test_each_text_has_one_float32_row(provider: EmbeddingProvider, side: str):
    vectors = getattr(provider, side)(TEXTS)
    assert vectors.shape == (len(TEXTS), provider.identity.dimensions)
    assert vectors.dtype == np.float32
    unit = unit_vectors(vectors, len(TEXTS), provider.identity.dimensions)
    assert np.allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("side", ["embed_passages", "embed_queries"])
def test_no_texts_give_no_rows(provider: EmbeddingProvider, side: str):
    vectors = getattr(provider, side)([])
    assert vectors.shape == (0, provider.identity.dimensions)
    assert vectors.dtype == np.float32


def test_a_text_has_the_same_vector_alone_and_in_any_batch(provider: EmbeddingProvider):
    long = "a much longer text than the others " * 20
    alone = np.concatenate([provider.embed_passages([text]) for text in TEXTS])
    among = provider.embed_passages([*chain.from_iterable((text, long) for text in TEXTS)])
    assert np.array_equal(alone, provider.embed_passages(TEXTS))
    assert np.array_equal(alone, among[::2])


def test_the_prefixes_of_the_identity_are_applied(
    provider: EmbeddingProvider, bare: EmbeddingProvider
):
    query, passage = provider.identity.query_prefix, provider.identity.passage_prefix
    assert (bare.identity.query_prefix, bare.identity.passage_prefix) == ("", "")
    queries = bare.embed_passages([query + text for text in TEXTS])
    passages = bare.embed_queries([passage + text for text in TEXTS])
    assert np.array_equal(provider.embed_queries(TEXTS), queries)
    assert np.array_equal(provider.embed_passages(TEXTS), passages)


def test_prefixes_are_part_of_the_identity(provider: EmbeddingProvider, bare: EmbeddingProvider):
    assert (provider.identity == bare.identity) == (not provider.identity.query_prefix)


@pytest.mark.parametrize("text", [*ODD, "word " * 20_000], ids=lambda text: ascii(text[:12]))
def test_any_text_gives_a_vector_or_a_coded_error(provider: EmbeddingProvider, text: str):
    try:
        vectors = provider.embed_passages([text])
        assert vectors.shape == (1, provider.identity.dimensions)
        unit_vectors(vectors, 1, provider.identity.dimensions)
    except EmbedderError as error:
        assert error.code in {"input_too_long", "embedding_zero"}
        assert error.hint


@pytest.mark.parametrize("side", ["embed_passages", "embed_queries"])
def test_a_text_over_the_context_is_read_whole_or_refused(provider: EmbeddingProvider, side: str):
    start = "The last writer wins, and the first one is told. " * 150
    texts = [start, start + "Bread needs a hot oven. " * 150]
    if provider.identity.provider in {"ollama", "openai"}:
        with pytest.raises(EmbedderError) as caught:
            getattr(provider, side)(texts)
        assert caught.value.code == "input_too_long" and "--chunk-size" in caught.value.hint
        return
    vectors = unit_vectors(getattr(provider, side)(texts), 2, provider.identity.dimensions)
    assert vectors[0] @ vectors[1] < 0.999, "the end has a share in the vector"


def test_texts_of_all_kinds_embed_in_one_batch(provider: EmbeddingProvider):
    texts = [f"{text} word" for text in ODD[:-1]]
    vectors = provider.embed_passages(texts)
    unit_vectors(vectors, len(texts), provider.identity.dimensions)


def test_its_cosines_have_a_noise_floor(make: Make, provider: EmbeddingProvider):
    measured = noise_of(provider)
    assert -1 <= measured.floor <= 1
    assert -1 <= measured.related <= 1
    assert noise_of(make(None)) == measured
