"""Models: what holds for each provider, and how vectors are made and measured."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding import ollama, packaged, servers, static
from rolebundle.embedding.provider import (
    EmbeddingProvider,
    embed_in_windows,
    fingerprint,
    prefixes_for,
    unit_vectors,
)
from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.embedding.static import StaticProvider
from rolebundle.errors import ConfigurationError, EmbedderError
from support.embedding_server import MODEL, EmbeddingServer, embedding_server
from support.fake_embedder import HashingProvider

# -- Requirements for every embedding provider, tested with each of them, including the in-memory one

Make = Callable[[], EmbeddingProvider]

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
        # Seconds; test_packaged.py has what its own code must keep.
        pytest.param("onnx", marks=pytest.mark.slow),
        pytest.param("onnx-multilingual", marks=pytest.mark.slow),
        "ollama",
        "openai",
    ],
)
def make(request: pytest.FixtureRequest) -> Make:
    """A function that creates the provider."""
    name = request.param
    if name == "in-memory":
        return HashingProvider
    if name == "static":
        return lambda: provider_for(ProviderSpec("static"))
    if name == "onnx":
        if not packaged.MINILM.is_installed:
            pytest.skip("the extra onnx is not installed")
        return lambda: provider_for(ProviderSpec("onnx"))
    if name == "onnx-multilingual":
        if not packaged.E5.is_installed:
            pytest.skip("the extra multilingual is not installed")
        return lambda: provider_for(ProviderSpec("onnx", packaged.E5.name))
    server = request.getfixturevalue("server")
    return lambda: provider_for(ProviderSpec(name, MODEL, server.url))


@pytest.fixture(scope="module")
def provider(make: Make) -> EmbeddingProvider:
    return make()


@pytest.fixture(scope="module")
def bare(make: Make) -> EmbeddingProvider:
    """The same model without prefixes."""
    with ExitStack() as patches:
        for module in (ollama, packaged, servers):
            patches.enter_context(patch.object(module, "prefixes_for", lambda _: ("", "")))
        provider = make()
        assert provider.identity
        return provider


def test_the_identity_is_complete_and_stable(make: Make, provider: EmbeddingProvider):
    identity = provider.identity
    assert isinstance(identity, ModelIdentity)
    assert identity.provider and identity.model and identity.digest
    assert identity.dimensions > 0
    assert provider.identity == identity == make().identity
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


# -- A batch of vectors is accepted whole or refused whole; a fingerprint identifies a model -------

shapes = nps.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8)
CODES = {"embedding_count", "embedding_dimensions", "embedding_not_finite", "embedding_zero"}


@given(
    matrix=st.one_of(
        nps.arrays(np.float32, nps.array_shapes(min_dims=1, max_dims=3, max_side=6)),
        nps.arrays(np.float64, shapes),
        nps.arrays(np.float16, shapes),
    ),
    expected=st.integers(1, 6),
    dimensions=st.integers(1, 6),
)
def test_a_batch_is_accepted_whole_or_refused_whole(
    matrix: np.ndarray, expected: int, dimensions: int
) -> None:
    try:
        vectors = unit_vectors(matrix, expected, dimensions)
    except EmbedderError as error:
        assert error.code in CODES
        assert error.exit_code == 9
        assert error.hint
        return
    assert vectors.shape == (expected, dimensions)
    assert vectors.dtype == np.dtype("<f4")
    assert vectors.flags["C_CONTIGUOUS"]
    assert np.isfinite(vectors).all()
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@example(np.full((1, 2), 1e-45, np.float32))
@given(nps.arrays(np.float32, shapes, elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_sound_batches_keep_their_directions(matrix: np.ndarray) -> None:
    rows, columns = matrix.shape
    # The tolerances below are smaller than the smallest number that a matrix may hold.
    wide = matrix.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    if (lengths == 0).any():
        with pytest.raises(EmbedderError):
            unit_vectors(matrix, rows, columns)
        return
    vectors = unit_vectors(matrix, rows, columns)
    assert np.allclose(
        vectors * lengths[:, None], wide, rtol=1e-4, atol=float(lengths.max()) * 1e-6
    )


def vector(seed: int, dimensions: int = 768) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal(dimensions)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def test_a_fingerprint_never_changes():
    # It is part of index identities: another value would orphan every index.
    assert fingerprint(np.arange(1, 9, dtype=np.float32)) == "e5954860"


def test_a_fine_tuned_model_is_noticed():
    # A cosine of 0.9 between the two models' vectors of the same text.
    noticed = 0
    for n in range(100):
        tuned = 0.9 * vector(n) + np.sqrt(1 - 0.81) * vector(n + 1000)
        noticed += fingerprint(vector(n)) != fingerprint(tuned.astype(np.float32))
    assert noticed >= 95


# -- Providers by name, and their settings ---------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        ProviderSpec("ollama"),
        ProviderSpec("openai", "m"),
        ProviderSpec("openai", url="http://127.0.0.1"),
        ProviderSpec("static", "another"),
        ProviderSpec("onnx", "e5-small-v2"),
    ],
    ids=repr,
)
def test_a_missing_setting_is_refused(spec: ProviderSpec):
    with pytest.raises(ConfigurationError) as caught:
        provider_for(spec)
    assert caught.value.hint


# -- The prefixes of models, by their names --------------------------------------------------------

RETRIEVE = "Represent this sentence for searching relevant passages: "
INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        # Ollama, Hugging Face, LM Studio and llama.cpp write the same model in their own ways.
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("/models/nomic_embed_text-v1.5.Q8_0.gguf", "search_query: ", "search_document: "),
        ("intfloat/multilingual-e5-large-instruct", INSTRUCT + " ", ""),
        ("hf.co/Qwen/Qwen3-Embedding-8B-GGUF:Q4_K_M", INSTRUCT, ""),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", RETRIEVE, ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("mixedbread-ai/deepset-mxbai-embed-de-large-v1", "query: ", "passage: "),
        ("mxbai-embed-large:latest", RETRIEVE, ""),
        ("bge-m3", "", ""),
        ("BAAI/bge-large-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ("a model that nobody knows", "", ""),
        ("somee5-model", "", ""),
    ],
)
def test_a_model_has_the_prefixes_of_its_name(model: str, query: str, passage: str):
    assert prefixes_for(model) == (query, passage)


# -- The default model: offline, quiet, and with the same result as its library's own pooling ------

PROVIDER = StaticProvider()


def test_loading_logs_nothing_and_imports_no_http_client():
    code = """
import logging, sys
def refuse(event, args):
    if event.startswith(("socket.connect", "socket.getaddrinfo")):
        raise SystemExit(f"network: {event} {args}")
sys.addaudithook(refuse)
from rolebundle.embedding.static import StaticProvider
StaticProvider().embed_passages(["text"])
print(logging.getLogger().handlers, logging.getLogger().level == logging.WARNING)
print([n for n in ("wordllama", "requests", "urllib3", "httpx", "huggingface_hub") if n in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split("\n")[:2] == ["[] True", "[]"]
    assert result.stderr == ""


@pytest.mark.slow
def test_pooling_gives_the_same_bits_as_wordllama():
    # In a process of its own: importing wordllama sets up the root logger.
    code = """
from pathlib import Path
import numpy as np, wordllama
from rolebundle.embedding.static import DIMENSIONS, MODEL, StaticProvider
texts = ["one", "a longer text than the first", "naïve café 同期", "x" * 500, "twice twice"] * 20
theirs = wordllama.WordLlama.load(
    MODEL, cache_dir=Path(wordllama.__file__).parent, dim=DIMENSIONS, disable_download=True
)
print(np.array_equal(StaticProvider().embed_passages(texts), theirs.embed(texts)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "True"


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.text(max_size=400))
def test_a_vector_depends_only_on_its_text(texts: list[str], neighbour: str):
    alone = [PROVIDER.embed_passages([text])[0] for text in texts]
    among = PROVIDER.embed_passages([neighbour, *texts, neighbour])[1:-1]
    assert np.array_equal(np.array(alone), among)
    assert np.isfinite(among).all()


def test_capitals_that_only_emphasize_do_not_change_a_vector():
    vectors = PROVIDER.embed_passages(
        [
            "THE BOUNDARY LAYER OF A WING",
            "the boundary layer of a wing",
            "run a VACUUM",
            "run a vacuum",
        ]
    )
    assert np.array_equal(vectors[0::2], vectors[1::2])
    assert PROVIDER.fluency("PRESSURE DISTRIBUTIONS OVER SLENDER BODIES") == 1


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    for use in (lambda p: p.identity, lambda p: p.embed_queries(["text"])):
        with pytest.raises(EmbedderError, match="wordllama is not installed") as caught:
            use(StaticProvider())
        assert caught.value.code == "static_model_missing"


@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_a_damaged_package_is_reported(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if content is not None:
        for name in (
            f"weights/{static.MODEL}_256.safetensors",
            f"tokenizers/{static.MODEL}_tokenizer_config.json",
        ):
            (tmp_path / name).parent.mkdir()
            (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(static, "_package_folder", lambda: tmp_path)
    with pytest.raises(EmbedderError) as caught:
        StaticProvider().embed_passages(["text"])
    assert caught.value.code == "static_model_missing"
    assert caught.value.hint


@pytest.mark.parametrize(
    "question", ["Can a stolen tablet replay a token?", "API rate limits", "!?", "", "\x00"]
)
def test_fluency_is_full_for_english(question: str) -> None:
    assert PROVIDER.fluency(question) == 1


# -- Texts that are longer than a model's context: every token counts, and other vectors are unchanged

CONTEXT = 12
MARKS = 2


class Characters:
    """A model with a token for each character; the vector is the mean of its tokens' vectors."""

    def __init__(self) -> None:
        self.windows: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text) + MARKS

    def embed(self, windows: Sequence[str]) -> np.ndarray:
        self.windows += windows
        return np.array([self.token_vectors(window).mean(axis=0) for window in windows])

    def token_vectors(self, window: str) -> np.ndarray:
        codes = [1, *map(ord, window), 2]
        return np.array([[code % 7, code / 3, 1] for code in codes], dtype=np.float32)


def embedded(
    texts: Sequence[str], prefix: str = "", max_windows: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """The vectors of the texts, and the windows that the model read."""
    model = Characters()
    vectors = embed_in_windows(
        texts, prefix, CONTEXT, model.count_tokens, model.embed, max_windows=max_windows
    )
    return vectors, model.windows


@given(st.text(min_size=CONTEXT, max_size=80))
def test_every_character_is_read_in_its_order_and_no_window_is_too_long(text: str):
    _, windows = embedded([text])
    assert "".join(windows) == text.replace("\0", "\ufffd")
    assert all(len(window) + MARKS <= CONTEXT for window in windows)


@given(st.text("abc ", min_size=CONTEXT, max_size=80))
def test_the_vector_is_the_mean_of_all_token_vectors(text: str):
    [vector], windows = embedded([text])
    every = np.concatenate([Characters().token_vectors(window) for window in windows])
    assert np.allclose(vector, every.mean(axis=0), rtol=1e-5)


def test_a_text_that_fits_has_the_vector_of_the_model_itself_among_any_others():
    fits = ["short", "x" * (CONTEXT - MARKS), ""]
    vectors, windows = embedded([fits[0], "a long text, in windows", *fits[1:]])
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[[0, 2, 3]], Characters().embed(fits))
    assert [windows[0], *windows[-2:]] == fits


def test_a_text_of_one_token_too_many_has_two_windows():
    assert len(embedded(["x" * (CONTEXT - MARKS + 1)])[1]) == 2


def test_each_window_has_the_prefix_and_words_stay_whole():
    assert embedded(["one two three"], "p: ")[1] == ["p: one ", "p: two ", "p: three"]


def test_a_prefix_that_leaves_no_space_is_refused():
    with pytest.raises(EmbedderError, match="leaves no space") as caught:
        embedded(["text"], "p" * CONTEXT)
    assert caught.value.code == "input_too_long"


def test_a_text_of_too_many_windows_is_refused_before_it_is_read():
    assert embedded(["x" * (3 * CONTEXT - MARKS)], max_windows=3)[0].any()
    with pytest.raises(EmbedderError, match="more than 36 tokens") as caught:
        embedded(["short", "x" * (3 * CONTEXT)], max_windows=3)
    assert caught.value.code == "input_too_long"
