"""Compartments: each document stands where its kind belongs, with its words and vectors."""

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import IndexIdentity
from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import compartments, partition, store, vector_index
from rolebundle.storage.check import find_problems
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.documents import Scanned, StoredDocument
from rolebundle.storage.partition import DenyMatcher, assign_compartments, no_denied_patterns
from rolebundle.storage.writing import open_writer
from support.compartments import (
    assert_compartments_are_separate,
    kinds,
    quarantined_documents,
    search_everywhere,
)
from support.corpora import build, document, embed, file_of, fill, remove, scratch_folder
from support.fake_embedder import IDENTITY, HashingProvider

PROVIDER = HashingProvider()
OPEN = ("shared", "internal", ())  # what nobody declares


def denied_by(*patterns: str) -> DenyMatcher:
    return lambda path, _: tuple(pattern for pattern in patterns if fnmatchcase(path, pattern))


def put(
    corpus: Corpus, *documents: StoredDocument, denied: DenyMatcher = no_denied_patterns
) -> None:
    with corpus.writing():
        problems = store.put_files(
            corpus,
            [(file_of(document.metadata.document_id), [document]) for document in documents],
            denied,
        )
        increment_generation(corpus)
    assert problems == [None] * len(documents)


def by_kind(corpus: Corpus) -> dict[tuple[str, str, tuple[str, ...]], Compartment]:
    """The compartments that are not in quarantine."""
    found = [
        compartment
        for compartment in compartments.visible_compartments(corpus)
        if not compartment.quarantined
    ]
    named = {
        (compartment.scope, compartment.sensitivity, compartment.denied): compartment
        for compartment in found
    }
    assert len(named) == len(found)
    return named


def assert_consistent(corpus: Corpus, denied: DenyMatcher = no_denied_patterns) -> None:
    assert find_problems(corpus, denied) == []
    assert_compartments_are_separate(corpus)


class TestWhereADocumentBelongs:
    def test_scopes_are_compared_exactly(self, corpus: Corpus) -> None:
        scopes = ["hr", "HR", "hr ", "h", 'h"r', "hr'; --", "ü", "u\u0308"]
        put(corpus, *(document(f"d{n}", ["x"], scope=scope) for n, scope in enumerate(scopes)))
        assert [kind[0] for _, kind in sorted(kinds(corpus).items())] == scopes
        assert len(by_kind(corpus)) == len(scopes)
        assert_consistent(corpus)

    def test_malformed_patterns_are_reported_as_damage(self, corpus: Corpus) -> None:
        put(corpus, document("a", ["x"]))
        for text in ("", "{}", "[1]", "[" * 100_000, "null"):
            corpus.run("UPDATE compartment SET denied = ?", (text,))
            with pytest.raises(CorpusCorrupt):
                compartments.visible_compartments(corpus)


class TestMoving:
    TEXTS = ("alpha token", "beta token")

    @pytest.fixture(autouse=True)
    def _filled(self, corpus: Corpus) -> None:
        fill(corpus, [document("d", self.TEXTS), document("e", ["gamma token"])], PROVIDER)

    @staticmethod
    def rows(corpus: Corpus) -> list[tuple[object, ...]]:
        return corpus.rows(
            "SELECT c.id, chunk_id, content, input_hash, vector_hash, vector FROM chunk c "
            "LEFT JOIN embedded ON chunk = c.id ORDER BY c.id"
        )

    @pytest.mark.parametrize(
        "fields",
        [{"scope": "hr"}, {"sensitivity": "public"}, {"scope": "hr", "sensitivity": "public"}],
    )
    def test_a_moved_document_takes_chunks_words_and_vectors_along(
        self, corpus: Corpus, fields: dict[str, str]
    ) -> None:
        before = self.rows(corpus)
        put(corpus, document("d", self.TEXTS, **fields))
        assert kinds(corpus) == {
            "d": (fields.get("scope", "shared"), fields.get("sensitivity", "internal"), ()),
            "e": OPEN,
        }
        assert self.rows(corpus) == before, "the rows stay, and nothing waits for a vector"
        index = vector_index.active_index(corpus)
        assert index is not None
        assert sorted(vector_index.current_counts(corpus, index.id).values()) == [1, 2]
        assert len(search_everywhere(corpus, '"token"')) == 3
        assert_consistent(corpus)


def flagged(stored: StoredDocument, found: str = "h") -> StoredDocument:
    return replace(stored, scanned=Scanned("quarantine", found, '["hidden"]', "[]", ""))


class TestQuarantine:
    """What the scan at the door keeps back stands apart from what it does not, whatever its kind."""

    def test_a_release_lasts_while_the_findings_are_the_same(self, corpus: Corpus) -> None:
        put(corpus, document("a", ["token"]), flagged(document("b", ["token"])))
        flagged_document = partition.flagged_document(corpus, "b")
        assert flagged_document is not None
        with corpus.writing():
            partition.release(corpus, flagged_document)
        assert quarantined_documents(corpus) == set()
        assert len(compartments.visible_compartments(corpus)) == 1
        assert_consistent(corpus)
        put(corpus, flagged(document("b", ["token, edited"])))
        assert quarantined_documents(corpus) == set()
        put(corpus, flagged(document("b", ["token"]), found="other"))
        assert quarantined_documents(corpus) == {"b"}
        assert_consistent(corpus)


class TestCounts:
    def test_a_document_in_no_compartment_is_found(self, corpus: Corpus) -> None:
        put(corpus, document("a", ["x"]), document("b", ["y"]))
        corpus.run("UPDATE document SET compartment = 77 WHERE document_id = 'a'")
        found = {problem.code for problem in find_problems(corpus)}
        assert {"miscounted", "lexical_drift", "row_damaged", "misplaced"} <= found


# -- any steps -------------------------------------------------------------------------------------

SCOPES, LEVELS = ("shared", "hr", "board"), ("public", "confidential")
FILES = ("a", "b", "hr-c", "hr-d")
POLICIES: tuple[tuple[str, ...], ...] = ((), ("hr-*",), ("*.md",), ("hr-*", "?.md"))
TEXTS = ("alpha", "beta alpha", "naïve Straße", "")

places = st.tuples(st.sampled_from(SCOPES), st.sampled_from(LEVELS))
texts = st.lists(st.sampled_from(TEXTS), max_size=3)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.lists(
                st.tuples(st.sampled_from(FILES), places, texts, st.booleans()),
                min_size=1,
                max_size=3,
                unique_by=lambda pair: pair[0],
            ),
        ),
        st.tuples(st.just("move"), st.tuples(st.sampled_from(FILES), places)),
        st.tuples(st.just("remove"), st.tuples(st.sampled_from(FILES), st.booleans())),
        st.tuples(st.just("policy"), st.sampled_from(POLICIES)),
        st.tuples(st.just("embed"), st.integers(0, 2)),
        st.tuples(st.just("index"), st.integers(0, 1)),
        st.tuples(st.just("fail"), st.sampled_from(POLICIES)),
    ),
    max_size=8,
)
Held = dict[str, tuple[tuple[str, str], list[str], bool]]
"""Document → its scope and sensitivity, its texts, and whether it is kept back."""


@given(steps=steps)
def test_everything_is_consistent_after_any_steps(steps: list[tuple[str, object]]) -> None:
    with scratch_folder() as folder:
        path = build(folder, [])
        with open_writer(path) as corpus:
            held: Held = {}
            policy: tuple[str, ...] = ()
            for step, argument in steps:
                policy = _apply(corpus, held, policy, step, argument)
                denied = denied_by(*policy)
                assert_consistent(corpus, denied)
                assert kinds(corpus) == {
                    name: (*kind, tuple(sorted(denied(file_of(name).path, ""))))
                    for name, (kind, _, _) in held.items()
                }
                assert quarantined_documents(corpus) == {
                    name for name, (*_, is_quarantined) in held.items() if is_quarantined
                }
                every = compartments.visible_compartments(corpus)
                assert sum(compartment.documents for compartment in every) == len(held)
                assert sum(compartment.chunks for compartment in every) == sum(
                    len(found) for _, found, _ in held.values()
                )
        remove(path)


def _apply(
    corpus: Corpus, held: Held, policy: tuple[str, ...], step: str, argument: object
) -> tuple[str, ...]:
    match step, argument:
        case "put", [*files]:
            held |= {
                name: (kind, found, is_quarantined) for name, kind, found, is_quarantined in files
            }
            _put_held(corpus, held, [name for name, *_ in files], policy)
        case "move", (name, kind):
            if name in held:
                held[name] = (kind, *held[name][1:])
                _put_held(corpus, held, [name], policy)
        case "remove", (name, tidy):
            held.pop(name, None)
            with corpus.writing():
                store.remove_files(corpus, [file_of(name).location])
                if tidy:
                    store.drop_unused(corpus)
        case "policy", (*patterns,):
            policy = tuple(patterns)
            with corpus.writing():
                assign_compartments(corpus, denied_by(*policy))
            used = {place for (place,) in corpus.rows("SELECT compartment FROM document")}
            assert {
                compartment.id for compartment in compartments.visible_compartments(corpus)
            } == used
        case "embed", int(waiting):
            with corpus.writing():
                embed(corpus, PROVIDER, waiting=waiting)
        case "index", int(number):
            _another_index(corpus, number)
        case "fail", (*patterns,):
            with pytest.raises(ZeroDivisionError), corpus.writing():
                assign_compartments(corpus, denied_by(*patterns))
                embed(corpus, PROVIDER)
                raise ZeroDivisionError
    return policy


def _put_held(corpus: Corpus, held: Held, names: list[str], policy: tuple[str, ...]) -> None:
    documents = [
        document(name, held[name][1], scope=held[name][0][0], sensitivity=held[name][0][1])
        for name in names
    ]
    put(
        corpus,
        *(
            flagged(document) if held[document.metadata.document_id][2] else document
            for document in documents
        ),
        denied=denied_by(*policy),
    )


def _another_index(corpus: Corpus, number: int) -> None:
    """A second index that answers, or the first of them discarded."""
    known = vector_index.all_indexes(corpus)
    with corpus.writing():
        if number and known:
            vector_index.delete_index(corpus, known[0])
        elif len(known) < 2:
            vector_index.create_index(corpus, IndexIdentity(IDENTITY, f"chunker-{len(known)}"))
