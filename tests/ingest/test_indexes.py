"""Embedding indexes: built, reached again, and of servers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from rolebundle.admin.indexes import drop_index
from rolebundle.contracts.documents import ModelIdentity
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.provider import PROBE_TEXT
from rolebundle.embedding.registry import ProviderSpec, provider_for, spec_from_json, spec_to_json
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError, UsageError
from rolebundle.ingest import indexes, sync
from rolebundle.ingest.indexes import INPUT_VERSION, EmbeddingReport, build_index
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.corpora import ask
from support.embedding_server import MODEL, ROUTES, EmbeddingServer, Handler, embedding_server
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


def write(folder: Path, name: str) -> None:
    """Write a note about its name."""
    (folder / f"{name}.md").write_text(f"# {name}\n\nAbout {name} tokens.\n", encoding="utf-8")


def build(db: Path, provider: HashingProvider) -> EmbeddingReport:
    """Build an index of this model, and activate it if it is complete."""
    # Measured before, so that a watched model is only asked for the chunks.
    noise_of(HashingProvider(provider.identity))
    with open_writer(db) as corpus:
        return build_index(corpus, provider, lambda *_: None)


def active_in(corpus: Corpus) -> EmbeddingIndex:
    index = vector_index.active_index(corpus)
    assert index is not None
    return index


def active(db: Path) -> EmbeddingIndex:
    with open_reader(db) as corpus:
        return active_in(corpus)


def codes(bundle: Any) -> set[str]:
    """The codes of the warnings."""
    return {warning.code for warning in bundle.warnings}


def embed_with(server: EmbeddingServer, db: Path, kind: str = "ollama") -> None:
    arguments = ("corpus", "embed", "--model", f"{kind}:{MODEL}", "--db", db)
    outcome = invoke(*arguments, embed_url=server.url)
    assert outcome.code == 0, outcome.err


def make(folder: Path) -> None:
    """Twenty notes, and a corpus of twenty chunks that all have a vector of the old model."""
    (folder / "notes").mkdir()
    for number in range(FILES):
        write(folder / "notes", f"n{number}")
    with open_writer(folder / "c.db") as corpus:
        assert sync.ingest(corpus, [folder / "notes"], HashingProvider()).waiting == 0


@pytest.fixture
def notes(template: Template, monkeypatch):
    """Indexes of these notes are built in batches of four."""
    monkeypatch.setattr(indexes, "BATCH", BATCH)
    return template.put_back() / "notes"


@pytest.fixture
def db(notes):
    return notes.with_name("c.db")


DEGRADED = "SEMANTIC_LANE_DEGRADED"


def degraded(bundle: Any) -> list[Any]:
    """Its warnings that the semantic lane did not answer."""
    return [warning for warning in bundle.warnings if warning.code == DEGRADED]


# -- The life of an embedding index: building, filling, activating and dropping it -----------------

# -- building beside, changing over --------------------------------------------------------------


def test_the_old_index_stays_active_until_the_new_one_is_complete(db):
    seen = []

    def look(_call: int) -> None:
        with open_reader(db) as corpus:
            model = active_in(corpus).identity.model
            bundle = ask(corpus, None, HashingProvider(), task="n3 tokens")
            assert bundle.selected
            assert all(passage.scores.semantic > 0 for passage in bundle.selected)
            seen.append((model, codes(bundle) & {DEGRADED}))

    report = build(db, Watched(NEW, before=look))
    assert seen == [(IDENTITY, set())] * (FILES // BATCH)
    assert (report.embedded, report.waiting) == (FILES, 0)
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}
    with open_reader(db) as corpus:
        new = ask(corpus, None, HashingProvider(NEW), task="n3")
        old = ask(corpus, None, HashingProvider(), task="n3")
    assert DEGRADED not in codes(new)
    [warning] = degraded(old)
    assert "newer" in warning.message


def test_the_noise_of_the_model_is_stored_once_something_is_embedded(db, notes):
    assert active(db).noise == noise_of(HashingProvider())
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("UPDATE embedding_index SET noise_floor = NULL, related_cosine = NULL")
    assert active(db).noise is None
    with open_reader(db) as corpus:
        unknown = ask(corpus, None, HashingProvider(), task="n3 tokens").without_timings()
    with open_writer(db) as corpus:
        sync.ingest(corpus, [notes], HashingProvider())
    assert active(db).noise == noise_of(HashingProvider())
    with open_reader(db) as corpus:
        assert ask(corpus, None, HashingProvider(), task="n3 tokens").without_timings() == unknown
    build(db, HashingProvider(NEW))
    assert active(db).noise == noise_of(HashingProvider(NEW))


@pytest.mark.parametrize("moment", [0, FILES // BATCH - 1])
def test_documents_ingested_during_the_build_are_embedded_before_activation(db, notes, moment):
    def ingest(call: int) -> None:
        if call == moment:
            write(notes, "meanwhile")
            (notes / "n0.md").unlink()
            with open_writer(db) as corpus:
                sync.ingest(corpus, [notes], HashingProvider())

    report = build(db, Watched(NEW, before=ingest))
    assert report.waiting == 0
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}


def test_a_failing_text_is_reported_and_the_others_are_embedded(db):
    class Choosy(Watched):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            if any("n7 " in text for text in texts):
                raise EmbedderError("input_too_long", "n7 is too long", "")
            return super().embed_passages(texts)

    report = build(db, Choosy(NEW))
    assert (report.embedded, report.waiting) == (FILES - 1, 1)
    assert "n7 is too long" in report.problem
    assert active(db).identity.model == IDENTITY, "an incomplete index does not take over"


# -- drop, plan -----------------------------------------------------------------------------


def test_an_ambiguous_name(db):
    build(db, Watched(NEW._replace(digest="3333")))
    build(db, Watched(NEW))
    with pytest.raises(UsageError, match=r"\[ambiguous_index\]"):
        drop_index(Workspace(db), "newer")
    drop_index(Workspace(db), "2")
    with open_reader(db) as corpus:
        digests = [index.identity.model.digest for index in vector_index.all_indexes(corpus)]
    assert len(digests) == 2
    assert "3333" not in digests


# -- another model, and outdated vectors ---------------------------------------------------------


def test_outdated_vectors_of_an_older_index_are_replaced(notes, db):
    """Its vectors lack the tags: those chunks are embedded again, and no other."""
    for name in ("n1", "n2"):
        path = notes / f"{name}.md"
        path.write_text(f"---\ntags: [zebra]\n---\n{path.read_text('utf-8')}", encoding="utf-8")
    with open_writer(db) as corpus:
        sync.ingest(corpus, [notes], HashingProvider())
        index = active_in(corpus)
        assert index.identity.chunker == INPUT_VERSION
        tagged = [row for (row,) in corpus.rows("SELECT id FROM chunk WHERE tags <> '[]'")]
        assert len(tagged) == 2
        with corpus.writing():
            vector_index.set_chunker(corpus, index, "structure-1")
            corpus.run("UPDATE embedded SET input_hash = 'x' WHERE chunk = ?", (tagged[0],))
        before = dict(corpus.rows("SELECT chunk, input_hash FROM embedded"))
        counting = HashingProvider()
        report = sync.ingest(corpus, [notes], counting)
        assert (report.embedded, report.waiting) == (1, 0)
        after = dict(corpus.rows("SELECT chunk, input_hash FROM embedded"))
        assert {row for row in after if after[row] != before[row]} == {tagged[0]}
        assert active_in(corpus).identity.chunker == INPUT_VERSION
    assert build(db, HashingProvider()) == EmbeddingReport(0, 0)


# -- Vectors of a model server: what happens if it is down, changes or dies, and who asks it again

# -- a server that is down, dies or changes -------------------------------------------------------


def test_the_server_down_during_ingest(db, notes):
    with embedding_server() as server:
        embed_with(server, db)
        port = server.port
    write(notes, "later")
    write(notes, "n1")
    (notes / "n1.md").write_text("# n1\n\nAnother text.\n", encoding="utf-8")
    outcome = invoke("ingest", notes, "--workers", "1", "--db", db)
    assert outcome.code == 9
    assert "1 added, 1 updated" in outcome.out
    assert "2 waiting for a vector" in outcome.out
    assert "every document was stored, but 2 chunks without a vector" in outcome.err
    assert "cannot be reached" in outcome.err
    assert "rolebundle corpus embed" in outcome.err
    found = invoke("retrieve", "later tokens", "--format", "json", "--db", db)
    assert found.code == 0
    [warning] = [one for one in found.json()["warnings"] if one["code"] == DEGRADED]
    assert "cannot be reached" in warning["message"]
    with embedding_server(port) as server:
        outcome = invoke("corpus", "embed", "--db", db)
        assert (outcome.code, outcome.out) == (0, "2 chunks embedded, 0 waiting\n")
        texts = texts_sent(server)
        assert len(texts) == 2
        assert all(text.startswith("search_document: ") for text in texts)
    assert assert_never_mixed(db) == {"hashed-words": FILES - 1, f"{MODEL}:latest": FILES + 1}


def texts_sent(server: EmbeddingServer, path: str = "/api/embed") -> list[str]:
    return [text for body in server.bodies_for(path) for text in body["input"]]


def dies_after(server: EmbeddingServer, good: int, fault: Callable[[Handler], None]) -> None:
    answered: list[str] = []

    def answer(handler: Handler) -> None:
        is_probe = handler.body["input"] == [PROBE_TEXT]
        if is_probe or len(answered) < good:
            answered.extend([] if is_probe else ["well"])
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
def test_a_server_that_dies_in_mid_embedding(db, server, fault, most):
    """What was embedded is kept, and a server that fails on everything is not asked for ever."""
    dies_after(server, 2, fault)
    arguments = ("corpus", "embed", "--model", f"ollama:{MODEL}", "--db", db)
    outcome = invoke(*arguments, embed_url=server.url)
    assert outcome.code == 9, outcome.err
    assert f"{2 * BATCH} chunks embedded, {FILES - 2 * BATCH} waiting" in outcome.out
    assert len(server.bodies_for("/api/embed")) <= 2 + most
    assert active(db).identity.model == IDENTITY
    server.faults.clear()
    server.seen.clear()
    embed_with(server, db)
    texts = texts_sent(server)
    assert len(texts) == FILES - 2 * BATCH
    assert active(db).identity.model.model == f"{MODEL}:latest"
    assert assert_never_mixed(db)[f"{MODEL}:latest"] == FILES


def test_chunks_over_the_context_wait_until_they_are_smaller(db, notes, server):
    """The next step that the message names is possible, and the old index stays active until then."""
    (notes / "long.md").write_text("# Long\n\n" + "A paragraph of words. " * 75, encoding="utf-8")
    ingest = ("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
    assert invoke(*ingest).code == 0
    over = {"error": "the input length exceeds the context length"}

    def answer(handler: Handler) -> None:
        if any(len(text.split()) > 200 for text in handler.body["input"]):
            handler.json(over, 400)
        else:
            ROUTES["/api/embed"](handler)

    server.faults["/api/embed"] = answer
    embed = ("corpus", "embed", "--model", f"ollama:{MODEL}")
    outcome = invoke(*embed, "--db", db, embed_url=server.url)
    assert (outcome.code, outcome.out) == (9, f"{FILES} chunks embedded, 1 waiting\n")
    assert "--chunk-size 400" in outcome.err
    assert active(db).identity.model == IDENTITY
    assert invoke(*ingest, "--chunk-size", "400").code == 0
    assert invoke(*embed, "--db", db, embed_url=server.url).code == 0
    assert active(db).identity.model.model == f"{MODEL}:latest"


# -- the engine asks the model of the index that answers -----------------------------------------


@pytest.mark.parametrize(("kind", "path"), [("ollama", "/api/embed"), ("openai", "/v1/embeddings")])
def test_queries_use_the_model_of_the_index(db, server, kind, path):
    embed_with(server, db, kind)
    server.seen.clear()
    with Engine(db) as engine:
        bundle = engine.retrieve(RetrievalRequest(task="n3 tokens"))
    assert DEGRADED not in codes(bundle)
    assert bundle.corpus.index is not None
    assert bundle.corpus.index.provider == kind
    texts = texts_sent(server, path)
    assert "search_query: n3 tokens" in texts
    assert not any(text.startswith("search_document: ") for text in texts)


def test_the_new_address_of_a_server_is_stored(db):
    with embedding_server() as first:
        embed_with(first, db)
    with embedding_server() as second:
        embed_with(second, db)
        assert active(db).connection == spec_to_json(ProviderSpec("ollama", MODEL, second.url))


def test_the_url_option_overrides_the_stored_address(db):
    with embedding_server() as first:
        embed_with(first, db)
    with embedding_server() as second, Engine(Workspace(db, embed_url=second.url)) as engine:
        assert DEGRADED not in codes(engine.retrieve(RetrievalRequest(task="n3")))


# -- How to reach the model of an index again: what is stored, and what a file cannot permit -------


class TestReach:
    SPEC = ProviderSpec("openai", "m", "http://gpu.example:8080", allow_host="gpu.example")
    STORED: ClassVar = {"provider": "openai", "model": "m", "url": "http://gpu.example:8080"}

    def test_what_is_stored(self):
        assert json.loads(spec_to_json(self.SPEC)) == self.STORED

    @pytest.mark.parametrize("hostile", [
        {"allow_host": "gpu.example"},
        {"allow_host": "gpu.example", "key_variable": "HOME"},
        {"allowed": ["gpu.example"], "deadline_seconds": 1e9},
    ])  # fmt: skip
    def test_a_file_cannot_permit_a_host(self, hostile):
        spec = spec_from_json(json.dumps(self.STORED | hostile), IDENTITY)
        assert spec.allow_host == ""
        with pytest.raises(EmbedderError, match=r"\[host_not_local\]"):
            provider_for(spec)


def test_a_foreign_host_in_the_file_is_not_contacted(db):
    with open_writer(db) as corpus, corpus.writing():
        url = "http://192.0.2.1"
        stored = {"provider": "ollama", "model": MODEL, "url": url, "allow_host": "*"}
        vector_index.set_connection(corpus, active_in(corpus), json.dumps(stored))
    with Engine(db) as engine:
        bundle = engine.retrieve(RetrievalRequest(task="n3 tokens"))
    [warning] = degraded(bundle)
    assert "192.0.2.1 is not on this machine" in warning.message
    assert bundle.selected
