"""Writing files into the corpus: what changed changes, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import DocumentError
from rolebundle.storage import store, vector_index
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_writer
from rolebundle.storage.passages import passages_of_document
from support.compartments import assert_compartments_are_separate, lexical_data, search_everywhere
from support.corpora import (
    build,
    chunk,
    document,
    embed,
    file_of,
    fill,
    put_file,
    remove,
    scratch_folder,
)
from support.fake_embedder import HashingProvider

PROVIDER = HashingProvider()


def rows(corpus: Corpus) -> dict[str, int]:
    return dict(corpus.rows("SELECT chunk_id, id FROM chunk"))


def vectors(corpus: Corpus) -> dict[str, str]:
    """Chunk id → what is remembered of its vector."""
    return dict(
        corpus.rows("SELECT chunk_id, vector_hash FROM embedded JOIN chunk ON chunk.id = chunk")
    )


def found(corpus: Corpus, word: str) -> set[str]:
    names = {row: name for name, row in rows(corpus).items()}
    return {names[row] for row in search_everywhere(corpus, f'"{word}"')}


def of_chunks(
    document_id: str, chunks: Sequence[tuple[str, str]], **metadata: object
) -> StoredDocument:
    empty = document(document_id, [], **metadata)
    return StoredDocument(empty.metadata, tuple(chunk(name, text) for name, text in chunks))


class TestReplacing:
    BEFORE = of_chunks("d", [("a", "alpha"), ("b", "beta"), ("c", "gamma")])

    @pytest.fixture(autouse=True)
    def _filled(self, corpus: Corpus) -> None:
        fill(corpus, [self.BEFORE], PROVIDER)

    def test_an_unchanged_chunk_keeps_its_row_and_its_vector(self, corpus: Corpus) -> None:
        row, vector = rows(corpus), vectors(corpus)
        fill(corpus, [of_chunks("d", [("a", "alpha"), ("x", "delta"), ("c", "gamma")])])
        assert {name: rows(corpus)[name] for name in "ac"} == {name: row[name] for name in "ac"}
        assert vectors(corpus) == {name: vector[name] for name in "ac"}
        assert (found(corpus, "beta"), found(corpus, "delta")) == (set(), {"x"})
        assert find_problems(corpus) == []

    def test_a_chunk_may_move(self, corpus: Corpus) -> None:
        row = rows(corpus)
        fill(corpus, [of_chunks("d", [("c", "gamma"), ("a", "alpha"), ("b", "beta")])])
        assert rows(corpus) == row
        order = [passage.chunk_id for passage in passages_of_document(corpus, "d")]
        assert order == ["c", "a", "b"]

    def test_a_changed_text_under_the_same_id_loses_its_vector(self, corpus: Corpus) -> None:
        row = rows(corpus)
        fill(corpus, [of_chunks("d", [("a", "alpha"), ("b", "other"), ("c", "gamma")])])
        assert rows(corpus) == row
        assert set(vectors(corpus)) == {"a", "c"}
        assert (found(corpus, "beta"), found(corpus, "other")) == (set(), {"b"})
        assert find_problems(corpus) == []

    def test_a_changed_title_is_indexed_and_embedded_again(self, corpus: Corpus) -> None:
        fill(corpus, [of_chunks("d", [("a", "alpha")], title="Zebra")])
        assert found(corpus, "zebra") == {"a"}
        assert vectors(corpus) == {}

    @pytest.mark.parametrize("field", ["tags", "retrieval_hints"])
    def test_changed_tags_and_hints_are_indexed_and_hints_keep_the_vector(
        self, corpus: Corpus, field: str
    ) -> None:
        before = vectors(corpus)
        chunks = [("a", "alpha"), ("b", "beta"), ("c", "gamma")]
        fill(corpus, [of_chunks("d", chunks, **{field: ("zebra",)})])
        assert found(corpus, "zebra") == {"a", "b", "c"}
        assert vectors(corpus) == (before if field == "retrieval_hints" else {})
        assert find_problems(corpus) == []

    def test_metadata_alone_changes_no_index(self, corpus: Corpus) -> None:
        before = lexical_data(corpus), vectors(corpus)
        chunks = [("a", "alpha"), ("b", "beta"), ("c", "gamma")]
        fill(corpus, [of_chunks("d", chunks, trust_tier="preferred", excluded_roles=("writer",))])
        assert (lexical_data(corpus), vectors(corpus)) == before
        (passage, *_) = passages_of_document(corpus, "d")
        assert (passage.document.trust_tier, passage.excluded_roles) == ("preferred", ("writer",))


class TestIdsAreTaken:
    @pytest.mark.parametrize("same_file", [False, True])
    def test_a_chunk_id_of_another_document(self, corpus: Corpus, same_file: bool) -> None:
        first, second = of_chunks("d", [("c", "x")]), of_chunks("e", [("c", "y")])
        with pytest.raises(DocumentError) as error, corpus.writing():
            put_file(corpus, file_of("d"), [first, second] if same_file else [first])
            put_file(corpus, file_of("e"), [second])
        assert error.value.code == "duplicate_chunk_id"
        assert rows(corpus) == {}

    def test_a_chunk_id_twice_in_one_document(self, corpus: Corpus) -> None:
        with pytest.raises(DocumentError) as error:
            fill(corpus, [of_chunks("d", [("c", "x"), ("c", "y")])])
        assert error.value.code == "duplicate_chunk_id"

    def test_of_several_files_only_the_refused_one_is_left_out(self, corpus: Corpus) -> None:
        fill(corpus, [document("d", ["old"])])
        with corpus.writing():
            problems = store.put_files(
                corpus,
                [
                    (file_of("a"), [document("a", ["alpha"])]),
                    (file_of("b"), [document("b", ["beta"]), document("d", ["stolen"])]),
                    (file_of("c"), [document("c", ["gamma"]), document("b", ["beta"])]),
                ],
            )
        assert [problem.code if problem else None for problem in problems] == [
            None,
            "duplicate_document_id",
            None,
        ]
        assert set(rows(corpus)) == {"a#0", "b#0", "c#0", "d#0"}
        assert found(corpus, "stolen") == set()
        assert find_problems(corpus) == []


# A few files that bring, move, change and drop the same few documents and chunks. The model is
# what each file holds; after every step the corpus must hold the same, in all of its indexes.
TEXTS = ("alpha", "beta alpha", "gamma", "naïve Straße", "")
contents = st.lists(
    st.tuples(
        st.sampled_from(["d0", "d1", "d2"]),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=3),
        st.sampled_from(["Title", "Other"]),
    ),
    max_size=2,
)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.lists(
                st.tuples(st.sampled_from(["f0", "f1", "f2"]), contents), min_size=1, max_size=3
            ),
        ),
        st.tuples(st.just("remove"), st.sampled_from(["f0", "f1", "f2"])),
        st.tuples(st.just("embed"), st.integers(0, 2)),
        st.tuples(st.just("fail"), st.sampled_from(["f0", "f1"])),
    ),
    max_size=8,
)
Model = dict[str, dict[str, dict[str, str]]]
"""File → document → chunk id → text."""


@given(steps=steps)
def test_content_words_and_vectors_agree_after_any_steps(steps: list[tuple[str, object]]) -> None:
    with scratch_folder() as folder:
        path = build(folder, [], PROVIDER)
        with open_writer(path) as corpus:
            model: Model = {}
            for step, argument in steps:
                _apply(corpus, model, step, argument)
                _agrees(corpus, model)
        remove(path)


def _apply(corpus: Corpus, model: Model, step: str, argument: object) -> None:
    if step == "remove":
        with corpus.writing():
            store.remove_files(corpus, [file_of(str(argument)).location])
        model.pop(str(argument), None)
    elif step == "embed":
        with corpus.writing():
            embed(corpus, PROVIDER, waiting=int(str(argument)))
    elif step == "fail":
        with pytest.raises(ZeroDivisionError), corpus.writing():
            store.remove_files(corpus, [file_of(str(argument)).location])
            embed(corpus, PROVIDER)
            raise ZeroDivisionError
    else:
        batch = [(file_of(name), _documents(drawn)) for name, drawn in argument]  # type: ignore[attr-defined]
        names = [file.location for file, _ in batch]
        if len(set(names)) < len(names):
            batch = batch[:1]
        with corpus.writing():
            problems = store.put_files(corpus, batch)
        for (file, documents), problem in zip(batch, problems, strict=True):
            name = file.path.removesuffix(".md")
            refused = _refused(model, name, documents)
            assert (problem is not None) == refused, (problem, file, documents)
            if not refused:
                model[name] = {
                    document.metadata.document_id: {c.chunk_id: c.content for c in document.chunks}
                    for document in documents
                }


def _documents(drawn: list[tuple[str, list[tuple[int, int]], str]]) -> list[StoredDocument]:
    return [
        StoredDocument(
            document(name, [], title=title).metadata,
            tuple(chunk(f"c{place}", TEXTS[text]) for place, text in chunks),
        )
        for name, chunks, title in drawn
    ]


def _refused(model: Model, name: str, documents: list[StoredDocument]) -> bool:
    ids = [document.metadata.document_id for document in documents]
    chunks = [c.chunk_id for document in documents for c in document.chunks]
    other_files = [content for file, content in model.items() if file != name]
    used_ids = {document_id for content in other_files for document_id in content}
    used_chunks = {
        c
        for content in other_files
        for chunks_of_document in content.values()
        for c in chunks_of_document
    }
    return (
        len({*ids}) < len(ids)
        or len({*chunks}) < len(chunks)
        or bool(used_ids & {*ids})
        or bool(used_chunks & {*chunks})
    )


def _agrees(corpus: Corpus, model: Model) -> None:
    assert find_problems(corpus) == []
    assert_compartments_are_separate(corpus)
    documents = {name for content in model.values() for name in content}
    chunks = {
        c: text
        for content in model.values()
        for chunks_of_document in content.values()
        for c, text in chunks_of_document.items()
    }
    assert dict(corpus.rows("SELECT chunk_id, content FROM chunk")) == chunks
    assert {name for (name,) in corpus.rows("SELECT document_id FROM document")} == documents
    counts = corpus_counts(corpus)
    assert (counts.documents, counts.chunks) == (len(documents), len(chunks))
    assert found(corpus, "alpha") == {c for c, text in chunks.items() if "alpha" in text}
    index = vector_index.active_index(corpus)
    assert index is not None
    waiting = vector_index.chunks_without_vector(corpus, index, 0, 1000)
    assert len(waiting) == len(chunks) - vector_index.count_vectors(corpus, index)
