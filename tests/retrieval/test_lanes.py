"""The lanes: BM25, large corpora, languages, vectors."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rolebundle.admin import Admin
from rolebundle.contracts.documents import ModelIdentity
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.retrieval.lexical import CombinedPostings, matching_words, word_searches
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.semantic import query_vectors
from rolebundle.retrieval.values import Query, Term
from rolebundle.storage import compartments, postings
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_rowid
from support.amounts import few_examples
from support.compartments import fts5_scores, match_expression, only_compartment
from support.corpora import build, built, chunk, document, overlay, scratch_folder
from support.source_tree import write_files
from support.strategies import any_text, choices
from support.values import WORDS

# -- BM25 equals that of FTS5, and does not depend on how documents are divided into compartments

CLOSE = 1e-9

# Phrases, words that are none, syntax, and the same word twice.
TERMS = (*WORDS, "token rotation", "audit release kernel", "tokens", "NOT", "!!!", "zzz", '"', "")

text = st.one_of(choices(*[(*WORDS, "")] * 5).map(" ".join), any_text)
terms = st.lists(
    st.tuples(st.sampled_from(TERMS), st.integers(1, 3)).map(lambda pair: Term(*pair)),
    min_size=1,
    max_size=6,
)
kinds = st.tuples(
    st.sampled_from(["shared", "hr", "board"]), st.sampled_from(["public", "internal"])
)


@st.composite
def corpora(draw: st.DrawFn, least: int = 1) -> list[StoredDocument]:
    """A few documents with words in every column."""
    stored = []
    for number in range(draw(st.integers(least, 7))):
        source = document(
            f"d{number}",
            [],
            title=draw(text) or "t",
            tags=tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2, unique=True))),
            retrieval_hints=tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2, unique=True))),
        )
        chunks = [
            chunk(f"d{number}#{place}", content, headings=headings)
            for place, (content, headings) in enumerate(
                draw(
                    st.lists(
                        st.tuples(text, st.lists(st.sampled_from(WORDS), max_size=2).map(tuple)),
                        min_size=1,
                        max_size=3,
                    )
                )
            )
        ]
        stored.append(StoredDocument(source.metadata, tuple(chunks)))
    return stored


def parted(
    documents: Sequence[StoredDocument], kinds: Sequence[tuple[str, str]]
) -> list[StoredDocument]:
    """The same documents with other scopes and sensitivities."""
    return [
        StoredDocument(
            stored.metadata._replace(scope=scope, sensitivity=sensitivity), stored.chunks
        )
        for stored, (scope, sensitivity) in zip(documents, kinds, strict=False)
    ]


@few_examples
@given(documents=corpora(), terms=terms)
@example(documents=[document("a", ["token"])], terms=[Term("token", 3)])
@example(documents=[document("a", ["token", "token", ""])], terms=[Term("token"), Term("token")])
@example(documents=[document("a", ["a b a b a"], title="a b")], terms=[Term("a b"), Term("a")])
@example(documents=[document("a", ["naïve"], tags=("Straße",))], terms=[Term("NAIVE straße")])
def test_bm25_equals_that_of_fts5(documents: list[StoredDocument], terms: list[Term]) -> None:
    with scratch_folder() as folder, built(folder, documents) as corpus:
        place = only_compartment(corpus)
        expected = fts5_scores(corpus, place, match_expression(terms))
        rows = corpus.column("SELECT id FROM chunk")
        assert CombinedPostings.of(corpus, [place]).scores(terms, rows) == {
            row: expected.get(row, 0.0) for row in rows
        }
        found = CombinedPostings.of(corpus, [place]).best(terms, 3)
        # Chunks that tie with the third one are among the first as well.
        edge = min(sorted(expected.values(), reverse=True)[:3], default=0.0)
        best = sorted(expected, key=lambda row: (-expected[row], row))
        assert [*found.items()] == [(row, expected[row]) for row in best if expected[row] >= edge]


def test_forgotten_words_are_read_again(tmp_path: Path) -> None:
    documents = [document("a", ["token audit"]), document("b", ["token token"])]
    with open_reader(build(tmp_path, documents)) as corpus, corpus.reading():
        index = CombinedPostings.of(corpus, [only_compartment(corpus)])
        expected = index.best([Term("token"), Term("audit")], 2)
        with patch.object(postings, "MAX_KEPT", 0):
            assert index.best([Term("release")], 2) == {}
            assert index.best([Term("audit")], 2).keys() == {1}
            assert index.best([Term("token"), Term("audit")], 2) == expected


def query_of(task: Sequence[Term], expansion: Sequence[Term] = ()) -> Query:
    plain = build_query("token", None)
    return plain._replace(task_terms=tuple(task), expansion_terms=tuple(expansion))


def proposed(
    corpus: Corpus, query: Query, depth: int, within: Sequence[int] | None = None
) -> list[dict[int, float]]:
    """What the task's terms and the role's propose."""
    return [lane.propose(depth, within) for lane in word_searches(corpus, query)]


def assert_same(found: dict[int, float], expected: dict[int, float]) -> None:
    """The same chunks with the same scores, in the same order if the scores differ."""
    assert found.keys() == expected.keys()
    for row, score in found.items():
        assert math.isclose(score, expected[row], rel_tol=CLOSE, abs_tol=1e-15), row
    assert [*found.items()] == sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    for first, second in zip(found, [*found][1:], strict=False):
        above, below = expected[first], expected[second]
        assert above > below or math.isclose(above, below, rel_tol=CLOSE, abs_tol=1e-15)


@few_examples
@given(
    documents=corpora(least=2),
    where=st.lists(kinds, min_size=7, max_size=7),
    task=terms,
    expansion=st.one_of(st.just([]), terms),
    depth=st.sampled_from([21, 1000]),
)
@example(
    documents=[document(f"d{n}", ["token", "audit token"]) for n in range(3)],
    where=[("shared", "public"), ("hr", "public"), ("board", "internal")]
    + [("hr", "internal")] * 4,
    task=[Term("token"), Term("audit", 2), Term("!!!")],
    expansion=[Term("audit")],
    depth=1000,
)
def test_scores_do_not_depend_on_the_compartments(
    documents: list[StoredDocument],
    where: list[tuple[str, str]],
    task: list[Term],
    expansion: list[Term],
    depth: int,
) -> None:
    expanded = query_of(task, expansion)
    with (
        scratch_folder() as folder,
        built(folder, documents) as together,
        built(folder, parted(documents, where)) as apart,
    ):
        assert len(compartments.searchable_compartments(apart)) == len({*where[: len(documents)]})
        assert together.rows("SELECT id, chunk_id FROM chunk") == apart.rows(
            "SELECT id, chunk_id FROM chunk"
        )
        expected = proposed(together, expanded, depth)
        found = proposed(apart, expanded, depth)
        assert_same(found[0], expected[0])
        assert_same(found[1], expected[1])
        rows = [row for (row,) in apart.rows("SELECT id FROM chunk")]
        for own, other in zip(
            word_searches(apart, expanded), word_searches(together, expanded), strict=True
        ):
            assert own.score(rows) == pytest.approx(other.score(rows), rel=CLOSE, abs=1e-15)
        # A search within documents has the same scores.
        within = [1, len(documents)]
        expected = proposed(together, expanded, 1000, within)
        assert_same(proposed(apart, expanded, 1000, within)[0], expected[0])
        words = [(term,) for term in task]
        assert matching_words(apart, words, rows) == matching_words(together, words, rows)


def test_a_word_that_is_rare_in_a_small_compartment_has_no_advantage(tmp_path: Path) -> None:
    """By its own statistics each of the other two would have the best one."""
    long = "bread " * 30
    documents = [document("best", ["token " * 20])]
    documents += [document(f"s{n}", [f"token {long}"]) for n in range(12)]
    documents += [document(f"t{n}", ["bread"]) for n in range(16)]
    for scope in ("hr", "board"):
        documents += [document(f"{scope}{n}", ["bread"], scope=scope) for n in range(50)]
        documents.append(document(scope, [f"token {long}"], scope=scope))
    with open_reader(build(tmp_path, documents)) as corpus:
        alone = {
            compartment.scope: max(fts5_scores(corpus, compartment.id, '"token"').values())
            for compartment in compartments.searchable_compartments(corpus)
        }
        assert alone["shared"] < alone["hr"] == alone["board"]
        found = proposed(corpus, query_of([Term("token")]), 1)[0]
        assert [*found] == [1]


# -- The lexical lane: BM25 of the task's terms and of the role's, scored separately ---------------


@pytest.mark.parametrize(
    ("documents", "depth", "expected"),
    [
        ([document("a", ["token rotation is due", "nothing here"]),
          document("b", ["a token", "threat model"]), document("c", ["bread and butter"])],
         10, {"a#0": (True, False), "b#0": (True, False), "b#1": (False, True)}),
        # "both" is second for the task and first for the role; at a depth of one the task's list
        # does not name it, and its score is asked for.
        ([document("task", ["token token token"]), document("both", ["token threat model"])],
         1, {"task#0": (True, False), "both#0": (True, True)}),
    ],
)  # fmt: skip
def test_the_roles_terms_are_scored_separately(
    tmp_path: Path,
    documents: list[StoredDocument],
    depth: int,
    expected: dict[str, tuple[bool, bool]],
) -> None:
    searched = build_query("token", overlay(vocabulary={"boost_phrases": ["threat model"]}))
    with open_reader(build(tmp_path, documents)) as corpus:
        rows = sorted(set[int]().union(*proposed(corpus, searched, depth)))
        scores = [lane.score(rows) for lane in word_searches(corpus, searched)]
        names = passages_by_rowid(corpus, rows)
    found = {names[row].chunk_id: tuple(row in own for own in scores) for row in rows}
    assert found == expected


# -- The semantic lane's query is the task's vector. The role's mission has no part in it ----------

TASK = "review the token"


class Fixed:
    """A model of two dimensions that knows only the task."""

    identity = ModelIdentity("fixed", "two", "1", 2)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([{TASK: (3.0, 4.0)}[text] for text in texts], dtype=np.float32)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError("a query embeds no passages")


@pytest.mark.parametrize(
    "role", [None, overlay(mission="Find risks.", retrieval_policy={"expansion_weight": 1.0})]
)
def test_the_query_is_the_tasks_unit_vector_with_and_without_a_role(role: Overlay | None) -> None:
    vector, *_ = query_vectors(build_query(TASK, role), Fixed())
    assert np.frombuffer(vector, dtype="<f4").tolist() == pytest.approx([0.6, 0.8])


# -- A corpus in many languages is searched as well as an English one. Identifiers match exactly

DOCUMENTS = {
    "de": "Die Schlüssel der Server werden vom Betrieb jeden Monat erneuert und geprüft.",
    "de2": "Der Speicher für die Anhänge ist in der Regel voll, wenn viele Bilder darin liegen.",
    "es": "Las copias de seguridad se guardan en otro edificio y se comprueban cada semana.",
    "ru": "Резервные копии хранятся в другом здании, и мы проверяем их каждую неделю.",
    "uk": "Резервні копії зберігаються в іншій будівлі, і ми їх перевіряємо щотижня.",
    "zh": "服务器的密钥每月由运维团队轮换一次，使用rolectl-v2.1.3版本。",
    "zh2": "附件的存储空间通常会因为图片太多而不足。",
    "ja": "サーバーの鍵は毎月運用チームが更新します。",
    "th": "กุญแจของเซิร์ฟเวอร์จะถูกเปลี่ยนทุกเดือนโดยทีมปฏิบัติการ",
    "ar": "يتم تجديد مفاتيح الخوادم كل شهر من قبل فريق العمليات.",
    "hi": "सर्वर की कुंजियाँ हर महीने संचालन दल द्वारा बदली जाती हैं।",
    "en": "The operations team rotates the keys of the servers every month. See E_CONFLICT:409.",
}
QUESTIONS = {
    "de": "Wer erneuert den Schlüssel eines Servers?",
    "de2": "Warum ist das Bild eines Anhangs nicht gespeichert?",
    "es": "¿Dónde se guarda la copia?",
    "ru": "Где хранится резервная копия?",
    "uk": "Де зберігають резервну копію і як її перевіряють?",
    "zh": "密钥多久轮换？",
    "zh2": "为什么存储不足？",
    "ja": "鍵の更新は誰がしますか",
    "th": "ใครเปลี่ยนกุญแจ",
    "ar": "من يجدد مفتاح الخادم؟",
    "hi": "कुंजी कौन बदलता है?",
    "en": "Who rotates a server's key?",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("languages")
    write_files(folder / "wiki", {f"{name}.txt": text for name, text in DOCUMENTS.items()})
    with Engine(folder / "c.db") as opened:
        Admin(opened.workspace).ingest([folder / "wiki"], IngestOptions(lexical_only=True))
        yield opened


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_task_finds_the_document_in_its_language(engine: Engine, language: str) -> None:
    request = RetrievalRequest(task=QUESTIONS[language], lexical_only=True)
    assert engine.retrieve(request).selected[0].document_id == f"wiki/{language}.txt"


@pytest.mark.parametrize(
    ("task", "name"),
    [("rolectl-v2.1.3", "zh"), ("rolectl", "zh"), ("v2.1.3", "zh"), ("E_CONFLICT:409", "en")],
)
def test_identifiers_stay_exact(engine: Engine, task: str, name: str) -> None:
    found = engine.retrieve(RetrievalRequest(task=task, lexical_only=True)).selected
    assert [passage.document_id for passage in found] == [f"wiki/{name}.txt"]
