"""Law 6. Degradation is reported: a lane that could not run is a warning with a code and a reason."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.contracts.overlay import Overlay
from rolebundle.errors import EmbedderError
from rolebundle.storage import sqlite
from rolebundle.storage.documents import StoredDocument
from rolebundle.text.words import counted
from support.amounts import few_examples
from support.bundles import messages, without_semantic_state
from support.corpora import ask, built, document
from support.databases import of_file
from support.fake_embedder import DIMENSIONS, BrokenProvider, HashingProvider, vector_of
from support.strategies import corpora, overlays, requests

Answer = Callable[[Sequence[str]], np.ndarray]


def _good(texts: Sequence[str]) -> np.ndarray:
    return np.array([vector_of(text) for text in texts], dtype=np.float32)


def _with(value: float) -> Answer:
    def answer(texts: Sequence[str]) -> np.ndarray:
        vectors = _good(texts)
        vectors[-1, DIMENSIONS // 2] = value
        return vectors

    return answer


def _raising(error: EmbedderError) -> Answer:
    def answer(_texts: Sequence[str]) -> np.ndarray:
        raise error

    return answer


reasons = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
# A part of the warning's message, and the answer of the model that causes it.
failures: st.SearchStrategy[tuple[str, Answer]] = st.one_of(
    reasons.map(lambda reason: (reason, _raising(EmbedderError("code", reason, "start it")))),
    st.sampled_from(
        [
            ("NaN or infinite", _with(float("nan"))),
            ("NaN or infinite", _with(float("inf"))),
            ("NaN or infinite", _with(float("-inf"))),
            ("zero vector", lambda texts: np.zeros_like(_good(texts))),
            ("0 vectors", lambda texts: np.zeros((0, DIMENSIONS), dtype=np.float32)),
            ("vectors for", lambda texts: np.vstack([_good(texts), _good(["more"])])),
            ("vectors for", lambda texts: _good(texts)[0].reshape(-1)),
            ("dimensions", lambda texts: _good(texts)[:, :-1]),
            ("dimensions", lambda texts: np.hstack([_good(texts), _good(texts)])),
        ]
    ),
)


class _NoIdentity:
    @property
    def identity(self) -> ModelIdentity:
        raise EmbedderError("model_missing", "the weights are gone", "install them")


def degraded_by(bundle: Any) -> str:
    """The message of the warning that the semantic lane did not run."""
    [message] = messages(bundle, "SEMANTIC_LANE_DEGRADED")
    assert not any("semantic" in passage.lanes for passage in bundle.selected)
    if bundle.selected:
        assert bundle.fallback.action != "continue"
    return message


@few_examples
@given(
    documents=corpora(least=1),
    role=st.none() | overlays(),
    fields=requests(lexical_only=None),
    failure=failures,
)
def test_a_failing_model_is_reported_and_the_lexical_lane_answers(
    folder: Path,
    documents: list[StoredDocument],
    role: Overlay | None,
    fields: dict[str, Any],
    failure: tuple[str, Answer],
) -> None:
    reason, answer = failure
    with built(folder, documents, HashingProvider()) as corpus:
        lexical = ask(corpus, role, None, **fields)
        for provider in (BrokenProvider(answer), _NoIdentity()):
            bundle = ask(corpus, role, provider, **fields)
            expected = reason if isinstance(provider, BrokenProvider) else "the weights are gone"
            assert expected in degraded_by(bundle)
            assert without_semantic_state(bundle) == without_semantic_state(lexical)


@of_file
@pytest.mark.parametrize("library", [None, SimpleNamespace(origin="/nowhere/__init__.py")])
def test_a_missing_sqlite_vec_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, library: object
) -> None:
    documents = [document("d0", ["token rotation"])]
    with built(folder, documents, HashingProvider()) as corpus:
        lexical = ask(corpus, None, None)
        monkeypatch.setattr(sqlite, "find_spec", lambda _: library)
        bundle = ask(corpus, None, HashingProvider())
    message = degraded_by(bundle)
    assert "sqlite-vec" in message and "pip install" in message
    assert without_semantic_state(bundle) == without_semantic_state(lexical)


@few_examples
@given(documents=corpora(), role=st.none() | overlays(), fields=requests(lexical_only=None))
def test_a_missing_index_is_reported(
    folder: Path, documents: list[StoredDocument], role: Overlay | None, fields: dict[str, Any]
) -> None:
    with built(folder, documents) as corpus:
        bundle = ask(corpus, role, HashingProvider(), **fields)
        lexical = ask(corpus, role, None, **fields)
    assert "no embedding index" in degraded_by(bundle)
    assert without_semantic_state(bundle) == without_semantic_state(lexical)
    assert not messages(lexical, "SEMANTIC_LANE_DEGRADED"), "lexical_only was requested"


@few_examples
@given(
    documents=corpora(least=1),
    waiting=st.integers(0, 30),
    role=st.none() | overlays(),
    fields=requests(lexical_only=None),
)
def test_chunks_without_a_vector_are_reported(
    folder: Path,
    documents: list[StoredDocument],
    waiting: int,
    role: Overlay | None,
    fields: dict[str, Any],
) -> None:
    with built(folder, documents, HashingProvider(), waiting=waiting) as corpus:
        bundle = ask(corpus, role, HashingProvider(), **fields)
    missing = min(waiting, sum(len(document.chunks) for document in documents))
    stale = messages(bundle, "INDEX_STALE")
    assert len(stale) == (1 if missing else 0)
    assert all(message.startswith(counted(missing, "chunk")) for message in stale)
