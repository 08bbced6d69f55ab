"""The life of an embedding index: building, filling, activating and dropping it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.index import IndexIdentity, ModelIdentity
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.registry import ProviderSpec, provider_for, spec_from_json, spec_to_json
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError, UsageError
from rolebundle.ingest import indexes, sync
from rolebundle.ingest.chunking import CHUNKER_VERSION
from rolebundle.ingest.indexes import INPUT_VERSION, EmbeddingReport, build_index
from rolebundle.ingest.options import IngestOptions
from rolebundle.storage.connection import Corpus
from rolebundle.storage.indexes import vector_index
from rolebundle.storage.indexes.vector_index import EmbeddingIndex
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.corpora import ask
from support.embedding_server import DIGEST, MODEL, EmbeddingServer, Handler, embedding_server
from support.fake_embedder import IDENTITY, HashingProvider
from support.templates import Template
from support.vectors import TextByText, assert_never_mixed

NEW = ModelIdentity("fake", "newer", "2222", 12)
FILES = 20
BATCH = 4


@dataclass
class Watched(TextByText):
    """Tells how many texts it embedded, and calls back before each batch."""

    before: Callable[[int], None] = lambda _call: None
    batches: list[int] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.before(len(self.batches))
        self.batches.append(len(texts))
        return super().embed_passages(texts)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "BATCH", BATCH)


@pytest.fixture(scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    def make(folder: Path) -> None:
        (folder / "notes").mkdir()
        for number in range(FILES):
            write(folder / "notes", f"n{number}")
        with open_writer(folder / "c.db") as corpus:
            assert sync.ingest(corpus, [folder / "notes"], HashingProvider()).waiting == 0

    return Template(tmp_path_factory.mktemp("indexes"), make)


@pytest.fixture
def tree(_template: Template) -> Path:
    return _template.put_back() / "notes"


def write(folder: Path, name: str) -> None:
    (folder / f"{name}.md").write_text(f"# {name}\n\nAbout {name} tokens.\n", encoding="utf-8")


@pytest.fixture
def db(tree: Path) -> Path:
    """Twenty chunks, all with a vector of the old model."""
    return tree.with_name("c.db")


def build(db: Path, provider: HashingProvider) -> EmbeddingReport:
    # Measured before, so that a watched model is only asked for the chunks.
    noise_of(HashingProvider(provider.identity))
    with open_writer(db) as corpus:
        return build_index(corpus, provider, lambda *_: None)


def active(db: Path) -> EmbeddingIndex:
    with open_reader(db) as corpus:
        index = vector_index.active_index(corpus)
    assert index is not None
    return index


def codes(bundle: Any) -> set[str]:
    return {warning.code for warning in bundle.warnings}


# -- building beside, changing over --------------------------------------------------------------


def test_the_old_index_stays_active_until_the_new_one_is_complete(db: Path) -> None:
    seen = []

    def look(_call: int) -> None:
        with open_reader(db) as corpus:
            index = vector_index.active_index(corpus)
            assert index is not None
            bundle = ask(corpus, None, HashingProvider(), task="n3 tokens")
            assert bundle.selected
            assert all(passage.scores.semantic > 0 for passage in bundle.selected)
            seen.append((index.identity.model, codes(bundle) & {"SEMANTIC_LANE_DEGRADED"}))

    report = build(db, Watched(NEW, before=look))
    assert seen == [(IDENTITY, set())] * (FILES // BATCH)
    assert (report.embedded, report.waiting) == (FILES, 0)
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}
    with open_reader(db) as corpus:
        assert "SEMANTIC_LANE_DEGRADED" not in codes(
            ask(corpus, None, HashingProvider(NEW), task="n3")
        )
        old = ask(corpus, None, HashingProvider(), task="n3")
    [warning] = [warning for warning in old.warnings if warning.code == "SEMANTIC_LANE_DEGRADED"]
    assert "newer" in warning.message


def test_activation_is_one_transaction(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(corpus: Corpus, _index: EmbeddingIndex) -> None:
        corpus.run("UPDATE embedding_index SET active = 0")
        raise RuntimeError("killed between the two")

    with monkeypatch.context() as broken:
        broken.setattr(vector_index, "activate_index", half)
        with pytest.raises(RuntimeError):
            build(db, Watched(NEW))
    assert active(db).identity.model == IDENTITY
    second_run = Watched(NEW)
    build(db, second_run)
    assert second_run.batches == [], "nothing is embedded twice"
    assert active(db).identity.model == NEW


def test_the_noise_of_the_model_is_stored_once_something_is_embedded(db: Path, tree: Path) -> None:
    assert active(db).noise == noise_of(HashingProvider())
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("UPDATE embedding_index SET noise_floor = NULL, related_cosine = NULL")
    assert active(db).noise is None
    with open_reader(db) as corpus:
        unknown = ask(corpus, None, HashingProvider(), task="n3 tokens").without_timings()
    with open_writer(db) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert active(db).noise == noise_of(HashingProvider())
    with open_reader(db) as corpus:
        assert ask(corpus, None, HashingProvider(), task="n3 tokens").without_timings() == unknown
    build(db, HashingProvider(NEW))
    assert active(db).noise == noise_of(HashingProvider(NEW))


def test_an_interrupted_build_continues(db: Path) -> None:
    def fail(call: int) -> None:
        if call == 3:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        build(db, Watched(NEW, before=fail))
    assert active(db).identity.model == IDENTITY
    embedded = assert_never_mixed(db)["newer"]
    assert embedded in {2 * BATCH, 3 * BATCH}
    second_run = Watched(NEW)
    report = build(db, second_run)
    assert sum(second_run.batches) == report.embedded == FILES - embedded
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}


@pytest.mark.parametrize("moment", [0, FILES // BATCH - 1])
def test_documents_ingested_during_the_build_are_embedded_before_activation(
    db: Path, tree: Path, moment: int
) -> None:
    def ingest(call: int) -> None:
        if call == moment:
            write(tree, "meanwhile")
            (tree / "n0.md").unlink()
            with open_writer(db) as corpus:
                sync.ingest(corpus, [tree], HashingProvider())

    report = build(db, Watched(NEW, before=ingest))
    assert report.waiting == 0
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}


def test_chunks_added_after_the_last_batch_are_embedded_before_activation(
    db: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill, runs = indexes.fill_index, []

    def filled(*arguments: Any) -> EmbeddingReport:
        report = fill(*arguments)
        if not runs:
            write(tree, "late")
            with open_writer(db) as corpus:
                sync.ingest(corpus, [tree], None)
        runs.append(report.embedded)
        return report

    monkeypatch.setattr(indexes, "fill_index", filled)
    report = build(db, Watched(NEW))
    assert runs == [FILES, 1]
    assert report.embedded == FILES + 1
    assert assert_never_mixed(db)["newer"] == FILES + 1


def test_the_old_index_stays_active_if_the_new_model_fails(db: Path) -> None:
    class Failing(Watched):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            raise EmbedderError("embedder_down", "the server is gone", "start it")

    report = build(db, Failing(NEW))
    assert (report.embedded, report.waiting) == (0, FILES)
    assert "the server is gone" in report.problem
    assert active(db).identity.model == IDENTITY


def test_a_failing_text_is_reported_and_the_others_are_embedded(db: Path) -> None:
    class Choosy(Watched):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            if any("n7 " in text for text in texts):
                raise EmbedderError("input_too_long", "n7 is too long", "")
            return super().embed_passages(texts)

    report = build(db, Choosy(NEW))
    assert (report.embedded, report.waiting) == (FILES - 1, 1)
    assert "n7 is too long" in report.problem
    assert active(db).identity.model == IDENTITY, "an incomplete index does not take over"


# -- use, drop, plan -----------------------------------------------------------------------------


def test_use_and_drop(db: Path) -> None:
    build(db, Watched(NEW))
    admin = Admin(db)
    with pytest.raises(UsageError) as refused:
        admin.indexes.drop("fake:newer")
    assert refused.value.code == "index_in_use"
    admin.indexes.use("fake:hashed-words")
    assert active(db).identity.model == IDENTITY
    admin.indexes.drop("2")
    assert assert_never_mixed(db) == {"hashed-words": FILES}
    with open_reader(db) as corpus:
        assert corpus.rows("SELECT name FROM sqlite_schema WHERE name LIKE 'vectors_2%'") == []
    with pytest.raises(UsageError) as unknown:
        admin.indexes.use("2")
    assert unknown.value.code == "unknown_index"
    assert "1 (fake:hashed-words)" in unknown.value.hint


def test_an_incomplete_index_cannot_be_activated(db: Path) -> None:
    with pytest.raises(RuntimeError):
        build(db, Watched(NEW, before=_stop))
    before = assert_never_mixed(db)["newer"]
    with pytest.raises(UsageError) as refused:
        Admin(db).indexes.use("newer")
    assert refused.value.code == "index_incomplete"
    assert f"{FILES - before} chunks" in refused.value.message
    assert active(db).identity.model == IDENTITY


def _stop(call: int) -> None:
    if call >= 1:
        raise RuntimeError("stop")


def test_an_ambiguous_name(db: Path) -> None:
    build(db, Watched(replace(NEW, digest="3333")))
    build(db, Watched(NEW))
    with pytest.raises(UsageError) as refused:
        Admin(db).indexes.use("newer")
    assert refused.value.code == "ambiguous_index"
    Admin(db).indexes.use("2")
    assert active(db).identity.model.digest == "3333"


def test_a_plan_writes_nothing(db: Path) -> None:
    before = db.read_bytes()
    provider = Watched(NEW)
    with open_reader(db) as corpus:
        plan = indexes.estimate(corpus, provider)
        complete = indexes.estimate(corpus, HashingProvider())
    # Each vector stands twice: where it is scanned, and beside its record.
    assert (plan.chunks, plan.waiting, plan.bytes) == (FILES, FILES, FILES * 12 * 4 * 2)
    assert plan.seconds > 0
    assert (complete.waiting, complete.bytes, complete.seconds) == (0, 0, 0.0)
    assert db.read_bytes() == before


def test_the_plan_of_an_interrupted_build(db: Path) -> None:
    with pytest.raises(RuntimeError):
        build(db, Watched(NEW, before=_stop))
    embedded = assert_never_mixed(db).get("newer", 0)
    with open_reader(db) as corpus:
        assert indexes.estimate(corpus, Watched(NEW)).waiting == FILES - embedded


# -- through a server ----------------------------------------------------------------------------


def embed_with(server: EmbeddingServer, db: Path, kind: str = "ollama") -> None:
    outcome = invoke(
        "embed", "--provider", kind, "--model", MODEL, "--embed-url", server.url, "--db", db
    )
    assert outcome.code == 0, outcome.err


def test_the_option_of_an_ingest_not_to_embed(tree: Path) -> None:
    with Admin(tree.with_name("new.db")) as admin:
        report = admin.ingest([tree], IngestOptions(lexical_only=True))
        assert (report.added, report.embedded) == (20, 0)


def test_the_server_down_during_ingest(db: Path, tree: Path) -> None:
    with embedding_server() as server:
        embed_with(server, db)
        port = server.port
    write(tree, "later")
    write(tree, "n1")
    (tree / "n1.md").write_text("# n1\n\nAnother text.\n", encoding="utf-8")
    outcome = invoke("ingest", tree, "--workers", "1", "--db", db)
    assert outcome.code == 9
    assert "1 added, 1 updated" in outcome.out
    assert "2 waiting for a vector" in outcome.out
    assert "every document was stored, but 2 chunks without a vector" in outcome.err
    assert "cannot be reached" in outcome.err
    assert "rolebundle embed" in outcome.err
    found = invoke("retrieve", "later tokens", "--format", "json", "--db", db)
    assert found.code == 0
    [warning] = [w for w in found.json()["warnings"] if w["code"] == "SEMANTIC_LANE_DEGRADED"]
    assert "cannot be reached" in warning["message"]
    with embedding_server(port) as server:
        outcome = invoke("embed", "--db", db)
        assert (outcome.code, outcome.out) == (0, "2 chunks embedded, 0 waiting\n")
        texts = [text for body in server.bodies_for("/api/embed") for text in body["input"]]
        assert len(texts) == 2
        assert all(text.startswith("search_document: ") for text in texts)
    assert assert_never_mixed(db) == {"hashed-words": FILES - 1, f"{MODEL}:latest": FILES + 1}


def dies_after(server: EmbeddingServer, good: int, fault: Callable[[Handler], None]) -> None:
    from support.embedding_server import ROUTES

    answered: list[str] = []

    def answer(handler: Handler) -> None:
        if len(answered) < good:
            answered.append("well")
            ROUTES["/api/embed"](handler)
        else:
            fault(handler)

    server.faults["/api/embed"] = answer


@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (lambda handler: handler.reset(), 6),  # three attempts, for two batches under way
        (lambda handler: handler.json({"error": "out of memory"}, 500), 4),
    ],
    ids=["dead", "failing"],
)
def test_a_server_that_dies_in_mid_embedding(
    db: Path, server: EmbeddingServer, fault: Callable[[Handler], None], most: int
) -> None:
    """What was embedded is kept, and a server that fails on everything is not asked for ever."""
    dies_after(server, 2, fault)
    arguments = ("embed", "--provider", "ollama", "--model", MODEL, "--db", db)
    outcome = invoke(*arguments, "--embed-url", server.url)
    assert outcome.code == 9, outcome.err
    assert f"{2 * BATCH} chunks embedded, {FILES - 2 * BATCH} waiting" in outcome.out
    assert len(server.bodies_for("/api/embed")) <= 2 + most
    assert active(db).identity.model == IDENTITY
    server.faults.clear()
    server.seen.clear()
    embed_with(server, db)
    texts = [text for body in server.bodies_for("/api/embed") for text in body["input"]]
    assert len(texts) == FILES - 2 * BATCH
    assert active(db).identity.model.model == f"{MODEL}:latest"
    assert assert_never_mixed(db)[f"{MODEL}:latest"] == FILES


def test_another_model_is_an_error_before_the_first_write(db: Path, tree: Path) -> None:
    before = db.read_bytes()
    write(tree, "more")
    with pytest.raises(EmbedderError) as refused:
        Admin(Workspace(db, HashingProvider(NEW))).ingest([tree])
    assert refused.value.code == "model_mismatch"
    assert db.read_bytes() == before
    assert "rolebundle embed --provider fake --model newer" in refused.value.hint


def test_the_model_behind_the_name_changed(db: Path, tree: Path, server: EmbeddingServer) -> None:
    embed_with(server, db)
    server.digest = DIGEST[::-1]
    before = db.read_bytes()
    write(tree, "more")
    outcome = invoke("ingest", tree, "--workers", "1", "--db", db)
    assert outcome.code == 9
    assert "model_mismatch" in outcome.err
    assert db.read_bytes() == before
    # Built anew, and still reached at the server that the corpus knows.
    assert invoke("embed", "--db", db).code == 0
    assert active(db).identity.model.digest == DIGEST[::-1]
    assert json.loads(active(db).reach)["url"] == server.url
    assert invoke("ingest", tree, "--workers", "1", "--db", db).code == 0


# -- how to reach the model again ----------------------------------------------------------------

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

    def test_round_trip(self) -> None:
        spec = spec_from_json(spec_to_json(self.SPEC), IDENTITY, allow_host="gpu.example")
        assert replace(spec, deadline_seconds=60.0) == replace(
            self.SPEC, key_variable=spec.key_variable
        )

    @pytest.mark.parametrize(
        "hostile",
        [
            {"allow_host": "gpu.example"},
            {"allow_host": "gpu.example", "key_variable": "HOME"},
            {"allowed": ["gpu.example"], "deadline_seconds": 1e9},
        ],
    )
    def test_a_file_cannot_permit_a_host(self, hostile: dict[str, object]) -> None:
        reach = json.dumps({**json.loads(spec_to_json(self.SPEC)), **hostile})
        spec = spec_from_json(reach, IDENTITY)
        assert spec.allow_host == ""
        assert spec.key_variable == ProviderSpec("openai").key_variable
        with pytest.raises(EmbedderError) as refused:
            provider_for(spec)
        assert refused.value.code == "host_not_local"

    @pytest.mark.parametrize("reach", ["", "null", "[]", "no json", '{"url": 7}', "[" * 99_999])
    def test_damaged(self, reach: str) -> None:
        model = ModelIdentity("ollama", MODEL, "d", 8)
        spec = spec_from_json(reach, model)
        assert (spec.provider, spec.model, spec.url) == ("ollama", MODEL, "")

    def test_the_users_server_takes_precedence(self) -> None:
        spec = spec_from_json(spec_to_json(self.SPEC), IDENTITY, url="http://127.0.0.1:9")
        assert spec.url == "http://127.0.0.1:9"

    def test_a_model_without_a_server_takes_no_url(self) -> None:
        """ROLEBUNDLE_EMBED_URL, set for another corpus, must not end this one's lane."""
        spec = spec_from_json(
            "{}",
            ModelIdentity("static", "any", "d", 8),
            url="http://127.0.0.1:9",
            allow_host="gpu.example",
        )
        assert spec == ProviderSpec("static")
        provider_for(spec)


def test_the_api_key_is_sent_and_not_stored(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", SECRET)
    embed_with(server, db, "openai")
    sent = {seen.headers.get("Authorization") for seen in server.seen}
    assert sent == {f"Bearer {SECRET}"}
    for file in db.parent.glob("c.db*"):
        assert SECRET.encode() not in file.read_bytes()
    assert SECRET not in invoke("embed", "list", "--json", "--db", db).out


def test_a_foreign_host_in_the_file_is_not_contacted(db: Path) -> None:
    with open_writer(db) as corpus, corpus.writing():
        reach = json.dumps(
            {"provider": "ollama", "model": MODEL, "url": "http://192.0.2.1", "allow_host": "*"}
        )
        vector_index.set_reach(corpus, active_in(corpus), reach)
    with Engine(db) as engine:
        bundle = engine.retrieve(RetrievalRequest(task="n3 tokens"))
    [warning] = [warning for warning in bundle.warnings if warning.code == "SEMANTIC_LANE_DEGRADED"]
    assert "192.0.2.1 is not on this machine" in warning.message
    assert bundle.selected


def active_in(corpus: Corpus) -> EmbeddingIndex:
    index = vector_index.active_index(corpus)
    assert index is not None
    return index


# -- the engine asks the model of the index that answers -----------------------------------------


@pytest.mark.parametrize(("kind", "path"), [("ollama", "/api/embed"), ("openai", "/v1/embeddings")])
def test_queries_use_the_model_of_the_index(
    db: Path, server: EmbeddingServer, kind: str, path: str
) -> None:
    embed_with(server, db, kind)
    server.seen.clear()
    with Engine(db) as engine:
        bundle = engine.retrieve(RetrievalRequest(task="n3 tokens"))
    assert "SEMANTIC_LANE_DEGRADED" not in codes(bundle)
    assert bundle.corpus.index is not None
    assert bundle.corpus.index.provider == kind
    texts = [text for body in server.bodies_for(path) for text in body["input"]]
    assert "search_query: n3 tokens" in texts
    assert not any(text.startswith("search_document: ") for text in texts)


def test_an_open_engine_uses_the_new_model_after_activation(
    db: Path, server: EmbeddingServer
) -> None:
    embed_with(server, db, "ollama")
    with Engine(db) as engine:
        engine.retrieve(RetrievalRequest(task="n3"))
        embed_with(server, db, "openai")
        server.seen.clear()
        bundle = engine.retrieve(RetrievalRequest(task="n3"))
        assert "SEMANTIC_LANE_DEGRADED" not in codes(bundle)
        assert server.bodies_for("/v1/embeddings")
        assert not server.bodies_for("/api/embed")
        Admin(engine.workspace).indexes.use("ollama:" + MODEL + ":latest")
        server.seen.clear()
        engine.retrieve(RetrievalRequest(task="n3"))
        assert server.bodies_for("/api/embed")


def test_the_new_address_of_a_server_is_stored(db: Path) -> None:
    with embedding_server() as first:
        embed_with(first, db)
    with embedding_server() as second:
        embed_with(second, db)
        assert active(db).reach == spec_to_json(ProviderSpec("ollama", MODEL, second.url))
        with Engine(db) as engine:
            bundle = engine.retrieve(RetrievalRequest(task="n3"))
        assert "SEMANTIC_LANE_DEGRADED" not in codes(bundle)


def test_the_url_option_overrides_the_stored_address(db: Path) -> None:
    with embedding_server() as first:
        embed_with(first, db)
    with embedding_server() as second, Engine(Workspace(db, embed_url=second.url)) as engine:
        assert "SEMANTIC_LANE_DEGRADED" not in codes(engine.retrieve(RetrievalRequest(task="n3")))


def test_outdated_vectors_of_an_older_index_are_replaced(tree: Path, db: Path) -> None:
    """Its vectors lack the tags: those chunks are embedded again, and no other."""
    for name in ("n1", "n2"):
        path = tree / f"{name}.md"
        path.write_text(f"---\ntags: [zebra]\n---\n{path.read_text('utf-8')}", encoding="utf-8")
    with open_writer(db) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
        index = vector_index.active_index(corpus)
        assert index is not None and index.identity.chunker == INPUT_VERSION
        tagged = [row for (row,) in corpus.rows("SELECT id FROM chunk WHERE tags <> '[]'")]
        assert len(tagged) == 2
        with corpus.writing():
            vector_index.set_chunker(corpus, index, "structure-1")
            corpus.run("UPDATE embedded SET input_hash = 'x' WHERE chunk = ?", (tagged[0],))
        before = dict(corpus.rows("SELECT chunk, input_hash FROM embedded"))
        counting = HashingProvider()
        report = sync.ingest(corpus, [tree], counting)
        assert (report.embedded, report.waiting) == (1, 0)
        after = dict(corpus.rows("SELECT chunk, input_hash FROM embedded"))
        assert {row for row in after if after[row] != before[row]} == {tagged[0]}
        renewed = vector_index.active_index(corpus)
        assert renewed is not None and renewed.identity.chunker == INPUT_VERSION
    assert build(db, HashingProvider()) == EmbeddingReport(0, 0)


def test_an_incomplete_index_is_found_by_its_model(db: Path) -> None:
    identity = IndexIdentity(NEW, CHUNKER_VERSION)
    with open_writer(db) as corpus:
        with corpus.writing():
            created = vector_index.create_index(corpus, identity, activate=False)
        assert vector_index.find_index(corpus, identity) == created
        assert vector_index.find_index(corpus, replace(identity, normalization="none")) is None
        assert vector_index.find_index(corpus, replace(identity, chunker="another")) == created
