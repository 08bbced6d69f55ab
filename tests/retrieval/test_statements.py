"""What an answer asks of the corpus: each small table once, and only the rows that it needs."""

from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.storage.compartments import visible_compartments
from rolebundle.storage.corpus import Corpus, corpus_contents, corpus_counts, increment_generation
from rolebundle.storage.documents import count_trusted
from rolebundle.storage.opening import open_reader
from rolebundle.storage.sqlite import IN_SET
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.corpora import build, document
from support.databases import of_file
from support.fake_embedder import HashingProvider

MOST = 16
PROVIDER = HashingProvider()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    documents = [document(f"d{n}", [f"token rotation {n}", "keys"]) for n in range(20)]
    return build(tmp_path, [*documents, document("hr", ["token"], scope="hr")], PROVIDER)


@of_file
def test_a_warm_answer_makes_few_statements(tmp_path: Path) -> None:
    documents = [document(f"d{n}", [f"token rotation {n}"]) for n in range(20)]
    workspace = Workspace(build(tmp_path, documents, PROVIDER), PROVIDER)
    engine, request = Engine(workspace), RetrievalRequest(task="token rotation")
    engine.retrieve(request)
    statements: list[str] = []

    def record(_: Any, sql: str, __: Any) -> bool:
        statements.append(sql)
        return True

    workspace.corpus.db.set_exec_trace(record)
    assert engine.retrieve(request).selected
    assert len(statements) <= MOST, "\n".join(statements)


def test_a_snapshot_keeps_what_it_has_read_and_the_next_one_reads_again(db: Path) -> None:
    with open_reader(db) as corpus:
        with corpus.reading():
            before = corpus_counts(corpus)
            with open_writer(db) as writer, writer.writing():
                writer.run("UPDATE document SET title = 'new' WHERE document_id LIKE '%d1'")
                increment_generation(writer)
                assert corpus_counts(writer).generation == before.generation + 1
            assert corpus_counts(corpus) is before
        with corpus.reading():
            assert corpus_counts(corpus).generation == before.generation + 1


def test_a_restriction_forgets_what_was_read_before_it(db: Path) -> None:
    def seen(corpus: Corpus) -> tuple[int, int]:
        return len(visible_compartments(corpus)), corpus_counts(corpus).documents

    with open_reader(db) as corpus:
        with corpus.reading():
            places = [place.id for place in visible_compartments(corpus)]
            assert seen(corpus) == (2, 21)
        corpus.enable_restriction()
        for chosen, documents in ((places[:1], 20), (places[1:], 1)):
            with corpus.reading():
                assert not visible_compartments(corpus)
                corpus.restrict_to_compartments(chosen)
                assert seen(corpus) == (1, documents)


def test_a_claim_is_known_only_to_those_who_see_its_document(tmp_path: Path) -> None:
    newer = document("new", ["token"], scope="hr", supersedes=("old",))
    db = build(tmp_path, [document("old", ["token"]), newer])
    with open_reader(db) as corpus:
        with corpus.reading():
            assert corpus_contents(corpus) == (False, False, False, True)
            places = {place.scope: place.id for place in visible_compartments(corpus)}
        corpus.enable_restriction()
        for scope, number in places.items():
            with corpus.reading():
                corpus.restrict_to_compartments([number])
                assert corpus_contents(corpus).has_claims is (scope == "hr")


def test_what_is_kept_for_a_generation_is_of_one_view_and_read_again_after_a_change(
    tmp_path: Path,
) -> None:
    trusted = [document("a", ["token"], trust_tier="preferred")]
    hidden = [document("b", ["token"], trust_tier="preferred", scope="hr")]
    db = build(tmp_path, trusted + hidden)
    with open_reader(db) as corpus:
        with corpus.reading():
            places = sorted(visible_compartments(corpus), key=lambda place: place.scope == "hr")
            own, hr = (place.id for place in places)
            assert count_trusted(corpus) == 2
        with open_writer(db) as writer, writer.writing():
            writer.run("UPDATE document SET trust_tier = 'untrusted' WHERE document_id LIKE '%b'")
            increment_generation(writer)
            assert count_trusted(writer) == 1
        with corpus.reading():
            assert count_trusted(corpus) == 1
        corpus.enable_restriction()
        for chosen, number in (([own, hr], 1), ([own], 1), ([hr], 0), ([own], 1)):
            with corpus.reading():
                corpus.restrict_to_compartments(chosen)
                assert count_trusted(corpus) == number


@of_file
def test_the_vectors_of_some_chunks_are_found_by_their_chunks(db: Path) -> None:
    with open_reader(db) as corpus:
        corpus.enable_restriction()
        of_chunks = f"SELECT vector FROM embedded WHERE index_id = ? AND chunk {IN_SET}"
        plan = [row[-1] for row in corpus.rows(f"EXPLAIN QUERY PLAN {of_chunks}", (1, [1, 2]))]
    assert "(index_id=? AND chunk=?)" in plan[0]
