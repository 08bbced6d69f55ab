"""The question's vector is kept as the passages' are: asked again, it needs no model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.index import ModelIdentity
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError, Interrupted
from rolebundle.ingest.embedding import embedding_text
from rolebundle.retrieval.contextual import Contextual, _question_hash
from rolebundle.storage import documents, rerank_cache
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.corpora import NOW, build, document
from support.fake_embedder import HashingProvider
from support.reranking import CONTEXTUAL, FAKE, FileProvider, RecordingProvider, known

TASK = "zebra token rotation"
OTHER = "plan of the audit"
DOCUMENTS = [
    document("plan", ["token rotation plan", "a moon over the audit"]),
    document("notes", ["notes on token audits", "rotation of crops"]),
]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, DOCUMENTS, HashingProvider(), name="team.db")


def asked(db: Path, model: EmbeddingProvider, task: str = TASK, **more: Any) -> RetrievalBundle:
    """What a process of its own would answer."""
    with known(model), Engine(Workspace(db, HashingProvider())) as engine:
        return engine.retrieve(RetrievalRequest(task=task, rerank=FAKE, now=NOW, **more))


def degraded(bundle: RetrievalBundle) -> list[str]:
    return [one.message for one in bundle.warnings if one.code == "RERANK_DEGRADED"]


def plain(bundle: RetrievalBundle) -> str:
    return json.dumps(bundle.without_timings())


class Other(FileProvider):
    """Another model: its vectors and its digest are its own."""

    files = "other files"

    def __init__(self) -> None:
        super().__init__(replace(CONTEXTUAL, digest="other"))

    def _embed(self, texts: Any) -> np.ndarray:
        return super()._embed([text[::-1] for text in texts])


class TestAskedAgain:
    def test_no_model_is_loaded(self, db: Path) -> None:
        first, again = FileProvider(), FileProvider()
        cold, warm = asked(db, first), asked(db, again)
        assert first.is_loaded and first.queries == [TASK] and len(first.texts) == 4
        assert not again.is_loaded and not again.queries and not again.batches
        assert plain(cold) == plain(warm) and cold.rerank is not None
        told = [
            (one.rerank_question_embedded, one.rerank_embedded, one.rerank_cached)
            for one in (cold.diagnostics, warm.diagnostics)
        ]
        assert told == [(True, 4, 0), (False, 0, 4)]

    def test_nor_in_one_process(self, db: Path) -> None:
        model = FileProvider()
        with known(model), Engine(Workspace(db, HashingProvider())) as engine:
            request = RetrievalRequest(task=TASK, rerank=FAKE, now=NOW)
            first, again = (plain(engine.retrieve(request)) for _ in range(2))
        assert first == again and model.queries == [TASK]

    def test_another_question_is_embedded_and_no_passage(self, db: Path) -> None:
        asked(db, FileProvider())
        model = FileProvider()
        told = asked(db, model, OTHER)
        assert model.queries == [OTHER] and not model.batches
        assert told.diagnostics.rerank_question_embedded is True
        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            rerank_cache.erase(db)
            request = RetrievalRequest(task=OTHER, rerank=FAKE, now=NOW)
            assert plain(engine.retrieve(request)) == plain(told)

    def test_a_server_is_asked_every_time(self, db: Path) -> None:
        model = RecordingProvider()
        first, again = asked(db, model), asked(db, model)
        assert model.queries == [TASK, TASK] and len(model.texts) == 4
        assert again.diagnostics.rerank_question_embedded is True
        assert plain(first) == plain(again)
        assert not kept(db, _question_hash(TASK))

    def test_what_one_that_is_no_server_kept_is_not_for_a_server(self, db: Path) -> None:
        asked(db, FileProvider())
        model = RecordingProvider()
        asked(db, model)
        assert model.queries == [TASK]

    def test_a_question_that_reads_like_a_passage_is_none(self, db: Path) -> None:
        class Prefixed(FileProvider):
            def embed_queries(self, texts: Any) -> np.ndarray:
                return -super().embed_queries(texts)

        with open_reader(db) as corpus:
            passage = documents.passages_of_document(corpus, "plan")[0]
        text = embedding_text(
            passage.document.title, passage.headings, passage.content, passage.tags
        )
        Contextual(Prefixed(), OTHER, rerank_cache_path(db)).cosines([passage])
        for is_new in (True, False):
            late = Contextual(Prefixed(), text, rerank_cache_path(db))
            assert late.cosines([passage]) == {passage.chunk_id: pytest.approx(-1)}
            assert late.question_embedded is is_new and late.cached == 1

    def test_out_of_time_its_vector_is_kept(self, db: Path) -> None:
        def over() -> None:
            raise Interrupted("interrupted", "over")

        with open_reader(db) as corpus:
            passages = documents.passages_of_document(corpus, "plan")
        with pytest.raises(Interrupted):
            Contextual(FileProvider(), TASK, rerank_cache_path(db), over).cosines(passages)
        model = FileProvider()
        told = asked(db, model)
        assert not model.queries and told.diagnostics.rerank_question_embedded is False

    def test_one_that_cannot_be_embedded_is_no_better_the_second_time(self, db: Path) -> None:
        class Picky(FileProvider):
            def embed_queries(self, texts: Any) -> np.ndarray:
                raise EmbedderError("input_too_long", "too long", "shorten it")

        asked(db, FileProvider(), OTHER)
        cold, warm = asked(db, Picky()), asked(db, Picky())
        assert degraded(cold) == degraded(warm) != []
        assert plain(cold) == plain(warm)
        assert not kept(db, _question_hash(TASK))


def kept(db: Path, input_hash: str, model: ModelIdentity = CONTEXTUAL) -> bool:
    return bool(rerank_cache.recall(rerank_cache_path(db), model, [input_hash]))


class TestWhatIsKept:
    def test_its_hash_and_its_vector_and_no_word_of_it(self, db: Path) -> None:
        asked(db, FileProvider())
        assert kept(db, _question_hash(TASK))
        files = [*db.parent.glob("team.db.rerank*")]
        assert files and not any(b"zebra" in file.read_bytes() for file in files)

    def test_any_text_has_a_hash(self) -> None:
        assert len({_question_hash(text) for text in ("", "a", "\ud800", "\udfff")}) == 4

    def test_the_bound_holds_and_the_answer_does_not_change(
        self, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = plain(asked(db, FileProvider()))
        monkeypatch.setattr(rerank_cache, "LIMIT_BYTES", 20_000)
        model = FileProvider()
        for number in range(150):
            asked(db, model, f"{TASK} {number}")
        assert rerank_cache.size(rerank_cache_path(db))[1] <= 20_000
        assert not kept(db, _question_hash(f"{TASK} 0"))
        assert plain(asked(db, FileProvider())) == expected


class TestTheModel:
    def test_other_files_are_another_model(self, db: Path) -> None:
        asked(db, FileProvider())
        model = Other()
        told = asked(db, model)
        assert model.is_loaded and model.queries == [TASK] and len(model.texts) == 4
        rerank_cache.erase(db)
        assert plain(told) == plain(asked(db, Other()))

    def test_one_that_was_mistaken_is_not_mixed_with_what_it_was_taken_for(self, db: Path) -> None:
        class Mistaken(Other):
            files = FileProvider.files

        asked(db, FileProvider())
        told = asked(db, Mistaken(), OTHER)
        assert degraded(told) == [
            "the answer is not reranked: the model contextual is not what it was when it was last "
            "loaded; ask again"
        ]
        assert told.rerank is None
        for task in (OTHER, TASK):
            told = asked(db, Mistaken(), task)
            assert told.rerank is not None and told.rerank.digest == "other"
        rerank_cache.erase(db)
        assert plain(told) == plain(asked(db, Other()))

    def test_a_new_passage_is_not_compared_with_another_models_question(self, db: Path) -> None:
        class Mistaken(Other):
            files = FileProvider.files

        asked(db, FileProvider())
        changed = rerank_cache_path(db)
        cache = apsw.Connection(str(changed))
        cache.execute(
            "DELETE FROM vector WHERE id IN (SELECT id FROM vector WHERE length(input_hash) = 32 "
            "AND model <> 'models' LIMIT 1)"
        )
        assert cache.changes() == 1
        cache.close()
        model = Mistaken()
        told = asked(db, model)
        assert degraded(told) and told.rerank is None and not model.batches

    @pytest.mark.parametrize("trouble", ["altered", "forgotten", "unreadable"])
    def test_where_it_is_not_remembered_it_is_loaded(self, db: Path, trouble: str) -> None:
        expected = plain(asked(db, FileProvider()))
        cache = apsw.Connection(str(rerank_cache_path(db)))
        cache.execute(
            {
                "altered": "UPDATE vector SET vector = x'7b7d' WHERE model = 'models'",
                "forgotten": "DELETE FROM vector WHERE model = 'models'",
                "unreadable": "UPDATE vector SET checksum = x'00'",
            }[trouble]
        )
        assert cache.changes() > 0
        cache.close()
        model, again = FileProvider(), FileProvider()
        assert plain(asked(db, model)) == expected and model.is_loaded
        assert plain(asked(db, again)) == expected and not again.is_loaded

    def test_one_without_a_recognition_is_loaded(self, db: Path) -> None:
        class Nameless(FileProvider):
            files = ""

        expected = plain(asked(db, Nameless()))
        model = Nameless()
        assert plain(asked(db, model)) == expected
        assert model.is_loaded and not model.queries

    def test_one_that_is_not_there_is_missed_although_all_is_kept(self, db: Path) -> None:
        class Gone(FileProvider):
            def recognition(self) -> str:
                raise EmbedderError("model_missing", "it is gone", "bring it back")

        asked(db, FileProvider())
        assert degraded(asked(db, Gone())) == [
            "the answer is not reranked: it is gone; bring it back"
        ]


def test_the_model_reads_what_an_index_of_it_would(tmp_path: Path) -> None:
    same = document("token", ["token rotation"])
    same = replace(same, metadata=replace(same.metadata, title="token rotation"))
    db = build(tmp_path, [*DOCUMENTS, same], HashingProvider(), name="team.db")
    model = FileProvider()
    asked(db, model)
    with open_reader(db) as corpus:
        indexed = {embedding_text(*row[1:]) for row in documents.texts(corpus, range(1, 99))}
    assert "\ntoken rotation" in indexed
    assert set(model.texts) == indexed
