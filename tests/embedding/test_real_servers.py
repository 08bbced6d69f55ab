"""The providers against real model servers. They run when asked for:

    ROLEBUNDLE_TEST_OPENAI=http://127.0.0.1:7997 pytest -m slow tests/embedding/test_real_servers.py

``ROLEBUNDLE_TEST_OPENAI`` is the URL of a server with OpenAI's API (infinity, llama.cpp, …),
``ROLEBUNDLE_TEST_RERANK`` and ``ROLEBUNDLE_TEST_TEI`` those of cross-encoders. A model's name may
follow after a space. docs/dependencies.md says how to start them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.embedding.registry import ProviderSpec, provider_for, rerank_server_for
from rolebundle.errors import EmbedderError
from support.commands import invoke

pytestmark = pytest.mark.slow

TASK = "How do I get a new password?"
SAME = "Resetting your login secret: open the settings and choose a new password."
UNRELATED = "Baking sourdough bread takes a day of patience and a hot oven."


def spec(provider: str, variable: str) -> ProviderSpec:
    url, _, model = os.environ.get(variable, "").partition(" ")
    if not url:
        pytest.skip(f"{variable} names no server")
    return ProviderSpec(provider, model, url)


@pytest.fixture(scope="module")
def openai() -> ProviderSpec:
    return spec("openai", "ROLEBUNDLE_TEST_OPENAI")


@pytest.fixture(scope="module")
def provider(openai: ProviderSpec) -> EmbeddingProvider:
    return provider_for(openai)


def ingested(folder: Path) -> Path:
    notes = folder / "notes"
    notes.mkdir()
    for number, text in enumerate([SAME, UNRELATED, "Trains to Lyon leave at nine."] * 4):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\n{text}\n")
    db = folder / "team.db"
    assert invoke("ingest", notes, "--lexical-only", "--db", db).code == 0
    return db


def check_reranked(server: ProviderSpec, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for an answer with a rerank by the server."""
    monkeypatch.setenv("ROLEBUNDLE_RERANK", f"{server.provider}:{server.model}")
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", server.url)
    db = ingested(folder)
    bundle = invoke("retrieve", "login secret bread", "--db", db, "--format", "json").json()
    assert bundle["rerank"]["scored"] > 1
    assert "RERANK_DEGRADED" not in {warning["code"] for warning in bundle["warnings"]}


class TestOpenAI:
    def test_its_identity_is_stable(self, provider: EmbeddingProvider, openai: ProviderSpec):
        assert provider.identity == provider_for(openai).identity
        assert provider.identity.dimensions > 0

    def test_vectors_are_sound_and_in_order(self, provider: EmbeddingProvider):
        # More than one request, of different lengths.
        texts = [f"{number} {SAME if number % 3 else UNRELATED * 3}" for number in range(70)]
        vectors = unit_vectors(
            provider.embed_passages(texts), len(texts), provider.identity.dimensions
        )
        for number in (0, 31, 32, 69):
            [alone] = unit_vectors(
                provider.embed_passages([texts[number]]), 1, provider.identity.dimensions
            )
            assert vectors[number] @ alone > 0.999
            assert int(np.argmax(vectors @ alone)) == number

    def test_meaning_decides(self, provider: EmbeddingProvider):
        task, same, unrelated = unit_vectors(
            provider.embed_passages([TASK, SAME, UNRELATED]), 3, provider.identity.dimensions
        )
        assert task @ same > task @ unrelated

    @pytest.mark.parametrize("text", ["", " ", "\0", "\ud800 alone", "🧑‍🚀" * 50, "同期の競合"])
    def test_odd_texts_give_a_vector_or_a_coded_error(self, provider: EmbeddingProvider, text: str):
        try:
            assert provider.embed_passages([text, SAME]).shape == (2, provider.identity.dimensions)
        except EmbedderError as error:
            assert error.hint

    def test_a_model_that_the_server_lacks_is_reported(self, openai: ProviderSpec):
        absent = provider_for(ProviderSpec("openai", "no-such-model", openai.url))
        try:
            # llama.cpp and others accept any name, and use the model that they run.
            assert absent.identity.dimensions > 0
        except EmbedderError as error:
            assert error.code in {"model_missing", "request_refused", "server_error"}

    def test_a_corpus_is_embedded_and_answers(self, openai: ProviderSpec, tmp_path: Path):
        db = ingested(tmp_path)
        model = f"openai:{openai.model}" if openai.model else "openai"
        built = invoke("corpus", "embed", "--model", model, "--db", db, embed_url=openai.url)
        assert built.code == 0, built.err
        bundle = invoke("retrieve", TASK, "--db", db, "--format", "json").json()
        assert bundle["corpus"]["index"]["provider"] == "openai"
        assert "SEMANTIC_LANE_DEGRADED" not in {warning["code"] for warning in bundle["warnings"]}
        assert "login secret" in bundle["selected"][0]["content"]


@pytest.mark.parametrize(("api", "variable"), [("rerank", "ROLEBUNDLE_TEST_RERANK")])
def test_a_cross_encoder_scores_in_order(
    api: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    server = spec(api, variable)
    reranker = rerank_server_for(server)
    scores = reranker.scores(TASK, [UNRELATED, SAME, "", UNRELATED])
    assert scores[1] == max(scores)
    assert scores[0] == pytest.approx(scores[3], abs=1e-3)
    check_reranked(server, tmp_path, monkeypatch)
