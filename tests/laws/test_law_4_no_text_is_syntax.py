"""Law 4. No text is syntax: any task gives a bundle or a coded error, never another exception."""

from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.interfaces.parse import request_from
from rolebundle.workspace import Workspace
from support.corpora import answered, build, document, overlay
from support.fake_embedder import HashingProvider
from support.values import WORDS

PIECES = (
    "AND", "OR", "NOT", "NEAR", "NEAR(a b, 3)", "*", "^", ":", "+", "-", '"', '""', "'", "''",
    "(", ")", "{", "}", "[", "]", ",", ";", "--", "/*", "\\", "%", "?", "?1", "$a", "@b", "#",
    "title:", "{title content} :", "lexical MATCH 'x'", "x' OR 1=1 --", "\x00", "\ufeff",
    "\u202e", "\u200b", "\ud800", "\udfff", "\U0010ffff", "\ue000", "e\u0301", "🚀", "👩‍👩‍👧", "שלום",
    "数据", "_", "__", "a_b", "std::vec", "v2.1", "\n", "\t", " ",
)  # fmt: skip

pieces = st.one_of(
    st.sampled_from(PIECES), st.sampled_from(WORDS), st.text(st.characters(), max_size=8)
)
tasks = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(pieces, max_size=12).map("".join),
    st.lists(pieces, max_size=12).map(" ".join),
)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    documents = [document(f"d{n}", [f"{word} and more"]) for n, word in enumerate(WORDS)]
    path = build(folder, documents, HashingProvider())
    with Engine(Workspace(path, HashingProvider())) as opened:
        yield opened


def answer(engine: Engine, task: str, *, lexical_only: bool = False) -> RetrievalBundle | None:
    """The bundle, or ``None`` if there was a coded error."""
    try:
        bundle = engine.retrieve(request_from({"task": task, "lexical_only": lexical_only}))
    except RolebundleError as error:
        assert error.code
        return None
    bundle.model_dump_json().encode()
    return bundle


@given(task=tasks, lexical_only=st.booleans())
@example(task='"', lexical_only=True)
@example(task="NEAR(", lexical_only=True)
@example(task="\x00", lexical_only=False)
@example(task="\ud800", lexical_only=False)
def test_any_task_gives_a_bundle_or_a_coded_error(
    engine: Engine, task: str, lexical_only: bool
) -> None:
    bundle = answer(engine, task, lexical_only=lexical_only)
    if bundle is None:
        surrogate = any("\ud800" <= character <= "\udfff" for character in task)
        assert surrogate or not task.strip(), "rejected a task that can be searched"


HUGE = {
    "one word": "a" * 100_000,
    "one compound": "a-" * 50_000 + "a",
    "nears": "NEAR(" * 20_000,
    "words": "".join(f"word{n} " for n in range(11_000)),
    "right to left": "שלום " * 20_000,
    "no spaces": "数据" * 50_000,
    "marks and breaks": "a\u0301-" * 33_000,
    "marks alone": "\u0301" * 100_000,
    "nul": "\x00a" * 50_000,
}


@pytest.mark.parametrize(
    "name",
    [
        *("one compound", "nears", "words", "marks and breaks"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in HUGE),
    ],
)
def test_a_task_of_100_kilobytes_takes_less_than_five_seconds(engine: Engine, name: str) -> None:
    started = process_time()
    assert answer(engine, HUGE[name], lexical_only=True) is not None
    assert process_time() - started < 5


@pytest.mark.parametrize("task", ["", " ", "\n\t\u2003"])
def test_a_blank_task_is_rejected(task: str) -> None:
    with pytest.raises(UsageError):
        request_from({"task": task})


# Letters that FTS5's tables contain. Words in newer scripts cannot be searched.
known_letters = st.characters(
    max_codepoint=0x2FFF, categories=["Lu", "Ll", "Lt", "Lo", "Nd"], exclude_characters="\u0345"
).filter(lambda character: character.isalnum())
literal_texts = st.lists(
    st.one_of(
        st.sampled_from([piece for piece in PIECES if piece.isascii()]),
        st.sampled_from(WORDS),
        st.text(st.one_of(known_letters, st.sampled_from("\u0301\u0308'-._:/")), max_size=8),
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


@given(text=literal_texts)
@example(text="NEAR(a b, 3)")
@example(text="AND")
@example(text="not OR and")
@example(text="Straße")
@example(text="re\u0301sume\u0301")
@example(text="İstanbul")
@example(text="^token* : {title}")
def test_a_document_is_found_by_its_exact_words(text: str) -> None:
    """Operators among the words are plain words."""
    if not any(character.isascii() and character.isalnum() for character in text):
        text += " x1"
    unrelated = document("other", ["nothing of the kind"])
    bundle = answered([document("wanted", [text.replace("\x00", " ")]), unrelated], task=text)
    assert "wanted#0" in [passage.chunk_id for passage in bundle.selected]


@given(
    word=st.text(st.one_of(known_letters, st.sampled_from("\u0301\u0308")), min_size=1, max_size=8)
)
@example(word="ก")
@example(word="០")
def test_a_word_is_found_as_it_is_spelled(word: str) -> None:
    """In any script: the query folds only what the index folds as well."""
    word = f"x{word}"
    bundle = answered([document("wanted", [f"about {word} here"])], task=word)
    assert [passage.chunk_id for passage in bundle.selected] == ["wanted#0"]


vocabulary_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    phrases=st.lists(
        st.one_of(vocabulary_text, st.sampled_from([p for p in PIECES if p.isprintable()]))
        .map(str.strip)
        .filter(bool),
        min_size=1,
        max_size=5,
    ),
    task=st.sampled_from(["token rotation", "NEAR(", "AND"]),
)
@example(phrases=['"'], task="AND")
@example(phrases=['a" OR "b', "NEAR(", "^x*"], task="AND")
def test_no_vocabulary_or_pattern_is_syntax(phrases: list[str], task: str) -> None:
    role = overlay(
        vocabulary={
            "boost_phrases": phrases,
            "preferred_terms": phrases,
            "suppress_phrases": phrases,
            "synonyms": {phrases[0]: phrases},
        },
        source_policy={"forbidden_sources": [{"pattern": phrase} for phrase in phrases]},
    )
    answered([document("d0", ["token rotation"])], role, task=task).model_dump_json().encode()
