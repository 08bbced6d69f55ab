"""Looking for damage. What each kind of damage looks like: tests/faults/test_damaged_file.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import check, compartments, lexical_index, seal, vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.opening import open_writer
from support.compartments import assert_compartments_are_separate
from support.corpora import build, document
from support.fake_embedder import HashingProvider


@pytest.fixture
def db(tmp_path: Path) -> Path:
    documents = [document(f"d{n}", [f"token {n}", f"key {n}"]) for n in range(3)]
    return build(tmp_path, documents, HashingProvider())


def test_sound(db: Path) -> None:
    with open_writer(db) as corpus:
        assert check.find_problems(corpus) == []
        assert check.repair(corpus) == []


def test_a_check_that_fails_is_a_problem_and_the_others_still_run(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object) -> list[check.Problem]:
        raise CorpusCorrupt("corpus_corrupt", "cannot be read")

    monkeypatch.setattr(check, "_row_problems", failing)
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("UPDATE corpus_state SET chunks = 77")
        seal.write(corpus)
        found = {problem.code for problem in check.find_problems(corpus)}
    assert found == {"unreadable", "miscounted"}


def test_repair_reports_what_it_did(db: Path) -> None:
    with open_writer(db) as corpus:
        corpus.run("INSERT INTO lexical_1 (lexical_1) VALUES ('delete-all')")
        corpus.run("UPDATE corpus_state SET documents = 0")
        corpus.run("UPDATE embedded SET vector_hash = 'x' WHERE chunk IN (2, 3)")
        index = vector_index.all_indexes(corpus)[0]
        done = check.repair(corpus)
        assert done == [
            "rebuilt the lexical index from the chunks",
            f"dropped 2 damaged vectors of {index.parts[0].table}",
            "counted documents and chunks again",
            "sealed the corpus's own records as they are now",
        ]
        assert check.find_problems(corpus) == []
        assert vector_index.count_vectors(corpus, index) == 4
        assert vector_index.chunks_without_vector(corpus, index, 0, 10) == [2, 3]


def test_only_the_damaged_compartment_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [document("a", ["token"]), document("b", ["token", "key"], scope="hr")]
    rebuilt, rebuild = [], lexical_index.rebuild

    def watched(corpus: Corpus, compartment: int) -> None:
        rebuilt.append(compartment)
        rebuild(corpus, compartment)

    monkeypatch.setattr(lexical_index, "rebuild", watched)
    with open_writer(build(tmp_path, documents, HashingProvider())) as corpus:
        [hr] = [one.id for one in compartments.searchable_compartments(corpus) if one.scope == "hr"]
        name = lexical_index.table_name(hr)
        corpus.run(f"INSERT INTO {name} ({name}) VALUES ('delete-all')")
        index = vector_index.all_indexes(corpus)[0]
        [part] = [one for one in index.parts if one.compartment == hr]
        corpus.load_vectors()
        corpus.run(f"DELETE FROM {part.table} WHERE rowid = 3")
        found = [problem.code for problem in check.find_problems(corpus)]
        assert found == ["seal_broken", "lexical_drift", "vectors_miscounted"]
        assert check.repair(corpus) == [
            "rebuilt the lexical index from the chunks",
            f"dropped 1 damaged vectors of {part.table}",
            "sealed the corpus's own records as they are now",
        ]
        assert rebuilt == [hr]
        assert check.find_problems(corpus) == []
        assert_compartments_are_separate(corpus)
        assert vector_index.chunks_without_vector(corpus, index, 0, 10) == [3]


def test_repair_of_a_damaged_file_writes_nothing(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        check, "_file_problems", lambda _: iter([check.Problem("file_damaged", "a page")])
    )
    with open_writer(db) as corpus:
        corpus.run("UPDATE corpus_state SET documents = 0")
        with pytest.raises(CorpusCorrupt) as caught:
            check.repair(corpus)
        assert caught.value.code == "beyond_repair"
        assert corpus.value("SELECT documents FROM corpus_state") == 0
