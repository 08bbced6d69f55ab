"""Words and vectors in memory, after changes: what is mended is what a new reader reads."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.retrieval.lexical import CombinedPostings
from rolebundle.retrieval.values import Term
from rolebundle.storage import corpus as corpus_module
from rolebundle.storage import store, vector_index, vector_search
from rolebundle.storage.compartments import visible_compartments
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.corpora import build, document, file_of, fill, scratch_folder
from support.fake_embedder import DIMENSIONS, HashingProvider

WORDS = ("token", "audit", "kernel", "offline", "tokens", "café")
TERMS = (*WORDS, "token audit", "audit audit", "kernel offline token")

texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=3)
actions = st.tuples(
    st.sampled_from(["put", "remove", "embed", "new index"]),
    st.integers(0, 4),
    texts,
    st.sampled_from(["shared", "hr"]),
)


@pytest.fixture(autouse=True)
def no_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Corpus, "min_vectors_in_memory", 1)


def known(corpus: Corpus) -> tuple[object, ...]:
    """What searches by words and by vectors find."""
    with corpus.reading():
        visible = [place.id for place in visible_compartments(corpus)]
        index = CombinedPostings.of(corpus, visible)
        words = [
            (index.frequencies([[Term(text)]]), index.best([Term(text)], 100)) for text in TERMS
        ]
        active = vector_index.active_index(corpus)
        assert active is not None
        query = np.eye(DIMENSIONS)[0].astype("<f4").tobytes()
        return words, [*vector_search.search(corpus, active, query, 3).items()]


def read_anew(path: Path) -> tuple[object, ...]:
    """The same by a reader that shares nothing with those of the same path."""
    link = path.with_name("link.db")
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    with open_reader(link) as corpus:
        return known(corpus)


def act(path: Path, kind: str, number: int, contents: list[str], scope: str) -> None:
    name = f"d{number}"
    with open_writer(path) as corpus:
        if kind == "put":
            waiting = number % 2
            put = document(name, contents, title=f"Title {name}", scope=scope)
            fill(corpus, [put], HashingProvider(), waiting=waiting)
        elif kind == "embed":
            fill(corpus, [], HashingProvider())
        else:
            with corpus.writing():
                if kind == "remove":
                    store.remove_files(corpus, [file_of(name).location])
                    store.drop_unused(corpus)
                elif (index := vector_index.active_index(corpus)) is not None:
                    # The new index has the number of the old one, and fewer vectors.
                    vectors = dict(
                        corpus.rows("SELECT chunk, vector FROM embedded WHERE chunk < 4")
                    )
                    vector_index.delete_index(corpus, index)
                    new = vector_index.create_index(corpus, index.identity)
                    rows = [
                        (row, "h", np.frombuffer(vector, "<f4")[::-1].tobytes())
                        for row, vector in vectors.items()
                    ]
                    vector_index.add(corpus, new, rows)
                increment_generation(corpus)


@given(st.lists(actions, min_size=1, max_size=6), st.sampled_from([0, 100]))
def test_a_reader_that_stays_open_knows_what_a_new_one_reads(
    done: list[tuple[str, int, list[str], str]], gap: int
) -> None:
    with scratch_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_GAP", gap)
        first = [document(f"d{n}", [f"token number {n}", WORDS[n]]) for n in range(4)]
        path = build(folder, first, HashingProvider())
        with open_reader(path) as corpus:
            known(corpus)
            known(corpus)
            for action in done:
                act(path, *action)
                found = known(corpus)
                assert found == known(corpus) == read_anew(path)


def test_after_too_many_changes_everything_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(tmp_path, [document("a", ["token"])], HashingProvider())
    for bound in ("KEPT_GENERATIONS", "MAX_CHANGED"):
        with monkeypatch.context() as patch, open_reader(path) as corpus:
            known(corpus)
            patch.setattr(corpus_module, bound, 1)
            for text in ("audit audit", "kernel"):
                act(path, "put", 1, [text, text + " token", "offline"], "shared")
            assert known(corpus) == read_anew(path)
