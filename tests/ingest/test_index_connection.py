"""How to reach the model of an index again: what is stored, and what a file cannot permit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.registry import ProviderSpec, provider_for, spec_from_json, spec_to_json
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_writer
from support.commands import invoke
from support.embedding_server import MODEL, EmbeddingServer
from support.fake_embedder import IDENTITY
from support.index_builds import active_in, embed_with

SECRET = "sk-extremely-secret-0001"


class TestReach:
    SPEC = ProviderSpec(
        "openai",
        "some-model",
        "http://gpu.example:8080",
        allow_host="gpu.example",
        prefixes=("q: ", "p: "),
        key_variable="MY_KEY",
    )

    def test_what_is_stored(self) -> None:
        assert json.loads(spec_to_json(self.SPEC)) == {
            "provider": "openai",
            "model": "some-model",
            "url": "http://gpu.example:8080",
            "prefixes": ["q: ", "p: "],
        }

    @pytest.mark.parametrize(
        "hostile",
        [
            {"allow_host": "gpu.example"},
            {"allow_host": "gpu.example", "key_variable": "HOME"},
            {"allowed": ["gpu.example"], "deadline_seconds": 1e9},
        ],
    )
    def test_a_file_cannot_permit_a_host(self, hostile: dict[str, object]) -> None:
        connection = json.dumps({**json.loads(spec_to_json(self.SPEC)), **hostile})
        spec = spec_from_json(connection, IDENTITY)
        assert spec.allow_host == ""
        assert spec.key_variable == ProviderSpec("openai").key_variable
        with pytest.raises(EmbedderError) as refused:
            provider_for(spec)
        assert refused.value.code == "host_not_local"

    def test_the_users_server_takes_precedence(self) -> None:
        spec = spec_from_json(spec_to_json(self.SPEC), IDENTITY, url="http://127.0.0.1:9")
        assert spec.url == "http://127.0.0.1:9"


def test_the_api_key_is_sent_and_not_stored(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", SECRET)
    embed_with(server, db, "openai")
    sent = {seen.headers.get("Authorization") for seen in server.seen}
    assert sent == {f"Bearer {SECRET}"}
    for file in db.parent.glob("c.db*"):
        assert SECRET.encode() not in file.read_bytes()
    assert SECRET not in invoke("corpus", "embed", "list", "--json", "--db", db).out


def test_a_foreign_host_in_the_file_is_not_contacted(db: Path) -> None:
    with open_writer(db) as corpus, corpus.writing():
        connection = json.dumps(
            {"provider": "ollama", "model": MODEL, "url": "http://192.0.2.1", "allow_host": "*"}
        )
        vector_index.set_connection(corpus, active_in(corpus), connection)
    with Engine(db) as engine:
        bundle = engine.retrieve(RetrievalRequest(task="n3 tokens"))
    [warning] = [warning for warning in bundle.warnings if warning.code == "SEMANTIC_LANE_DEGRADED"]
    assert "192.0.2.1 is not on this machine" in warning.message
    assert bundle.selected
