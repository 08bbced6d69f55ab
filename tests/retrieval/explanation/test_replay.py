"""Asking again what a bundle is the answer to: on real corpora, and on bundles made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.why import Replay
from rolebundle.engine import Engine
from rolebundle.errors import OverlayError, UsageError
from rolebundle.policy.overlays import load_file
from rolebundle.retrieval.compare import compare_bundles, request_of
from rolebundle.storage.documents import StoredDocument
from rolebundle.workspace import Workspace
from support.amounts import few_examples
from support.corpora import ask, built
from support.fake_embedder import HashingProvider
from support.overlay_files import write
from support.strategies import corpora, overlays, requests
from support.templates import Template

NOTES = {
    "tokens.md": "# Tokens\n\nToken rotation happens every week.\n",
    "audit.md": "# Audit\n\nThe audit of the token store is done by two people.\n",
    "bread.md": "# Bread\n\nFlour and water, and a token of patience.\n",
}


class Workplace:
    """A folder of documents, a folder of overlays, a corpus, and what was once answered."""

    def __init__(self, root: Path) -> None:
        self.root, self.notes, self.roles = root, root / "notes", root / "roles"

    def make(self) -> None:
        self.notes.mkdir()
        self.roles.mkdir()
        for name, text in NOTES.items():
            (self.notes / name).write_text(text, encoding="utf-8")
        write(self.roles, "reviewer", retrieval_policy={"min_score": 0.0})
        self.ingest()

    def engine(self, provider: Any = None, db: str = "corpus.db") -> Engine:
        return Engine(Workspace(self.root / db, provider or HashingProvider()), [self.roles])

    def ingest(self, db: str = "corpus.db") -> None:
        with self.engine(db=db) as engine:
            Admin(engine.workspace).ingest([self.notes])

    def ask(self, **fields: Any) -> RetrievalBundle:
        fields_of_request = {"task": "token rotation audit", "role": "reviewer"} | fields
        with self.engine() as engine:
            bundle = engine.retrieve(RetrievalRequest(**fields_of_request))
        # As it comes back from a file.
        return RetrievalBundle.model_validate_json(bundle.to_json())

    def replay(
        self, bundle: RetrievalBundle, provider: Any = None, db: str = "corpus.db"
    ) -> Replay:
        with self.engine(provider, db) as engine:
            return engine.replay(bundle)


@pytest.fixture(scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("house"), lambda folder: Workplace(folder).make())


@pytest.fixture
def workplace(_template: Template) -> Workplace:
    return Workplace(_template.put_back())


def kinds(replay: Replay) -> list[str]:
    return [cause.kind for cause in replay.causes]


def changes(replay: Replay) -> dict[str, list[Any]]:
    """Document (the part of the chunk id before #) → what became of its passages."""
    found: dict[str, list[Any]] = {}
    for change in replay.passages:
        found.setdefault(Path(change.chunk_id.partition("#")[0]).name, []).append(change)
    return found


class TestToday:
    def test_the_time_is_the_bundles_to_the_second(self, workplace: Workplace) -> None:
        # An age of exactly 100 days is not over 100 days; half a second more would be.
        (workplace.notes / "tokens.md").write_text(
            "---\nupdated_at: 2026-01-01T00:00:00Z\n---\n" + NOTES["tokens.md"], encoding="utf-8"
        )
        workplace.ingest()
        write(
            workplace.roles,
            "reviewer",
            retrieval_policy={"freshness_max_age_days": 100, "stale_penalty": 1.0},
        )
        bundle = workplace.ask(now=datetime(2026, 4, 11, 0, 0, 0, 500_000, tzinfo=UTC))
        assert bundle.query.generated_at == "2026-04-11T00:00:00Z"
        assert "stale" not in bundle.rejected_summary
        assert workplace.replay(bundle).same

    def test_an_overlay_from_a_file(self, workplace: Workplace, tmp_path: Path) -> None:
        overlay = load_file(write(tmp_path, "elsewhere", retrieval_policy={"min_score": 0.0}), [])
        with workplace.engine() as engine:
            bundle = engine.retrieve(RetrievalRequest(task="token"), overlay)
            assert engine.replay(bundle, overlay).same
            with pytest.raises(OverlayError, match="elsewhere"):
                engine.replay(bundle)


class TestAnotherCorpus:
    def test_a_document_was_deleted(self, workplace: Workplace) -> None:
        bundle = workplace.ask()
        (workplace.notes / "audit.md").unlink()
        workplace.ingest()
        replay = workplace.replay(bundle)
        (deleted,) = changes(replay)["audit.md"]
        assert (deleted.kinds, deleted.whereabouts) == (["gone"], "document_gone")
        assert kinds(replay) == ["generation"]
        assert "3 documents" in replay.causes[0].message
        assert replay.selected_after == replay.selected_before - 1

    def test_a_rejected_passage_that_is_gone(self, workplace: Workplace) -> None:
        bundle = workplace.ask(limit=1)
        assert len(bundle.rejected) == 2
        for path in workplace.notes.iterdir():
            path.unlink()
        workplace.ingest()
        selected, *rejected = workplace.replay(bundle).passages
        assert (selected.whereabouts, selected.document_id is None) == ("document_gone", False)
        assert [change.whereabouts for change in rejected] == ["not_in_corpus"] * 2
        assert [rejection.before.reason for rejection in rejected if rejection.before] == [
            "budget_cut"
        ] * 2

    def test_one_that_is_no_candidate_any_more(self, workplace: Workplace) -> None:
        bundle = workplace.ask(lexical_only=True)
        altered = bundle.model_copy(
            update={"query": bundle.query.model_copy(update={"task_text": "bread"})}
        )
        dropped = [
            change for change in workplace.replay(altered).passages if change.kinds == ["gone"]
        ]
        assert dropped
        assert {change.whereabouts for change in dropped} == {"in_corpus"}

    def test_another_file(self, workplace: Workplace) -> None:
        bundle = workplace.ask()
        workplace.ingest(db="other.db")
        replay = workplace.replay(bundle, db="other.db")
        assert kinds(replay) == ["corpus", "file"]
        assert replay.same_selection
        assert replay.differs == ["corpus"]
        assert replay.passages == []


class TestWhatCannotBeAskedAgain:
    @pytest.mark.parametrize("name", ["corpus", "request", "overlay"])
    def test_a_field_is_missing(self, workplace: Workplace, name: str) -> None:
        with pytest.raises(UsageError) as caught:
            request_of(workplace.ask().model_copy(update={name: None}))
        assert caught.value.code == "bundle_not_replayable"
        assert caught.value.message.startswith(f"{name}: is missing")

    @pytest.mark.sample(2)
    @pytest.mark.parametrize(
        ("place", "value"),
        [
            ("query.task_text", " "),
            ("query.generated_at", "yesterday"),
            ("overlay.role_id", "../../etc"),
            ("request.limit", 0),
            ("request.limit", 10**6),
            ("request.token_budget", -1),
        ],
    )
    def test_a_field_has_what_no_request_may_have(
        self, workplace: Workplace, place: str, value: object
    ) -> None:
        plain = json.loads(workplace.ask().to_json())
        room, _, name = place.partition(".")
        plain[room][name] = value
        with pytest.raises(UsageError) as caught:
            request_of(RetrievalBundle.model_validate(plain))
        assert caught.value.code == "bundle_malformed"
        assert caught.value.message.startswith(f"{place}: ")


@pytest.fixture
def bundle(workplace: Workplace) -> RetrievalBundle:
    return workplace.ask(limit=2)


class TestTwoBundles:
    def test_state(self, bundle: RetrievalBundle) -> None:
        assert bundle.corpus is not None
        assert bundle.corpus.index is not None
        index = bundle.corpus.index.model_copy(update={"model": "another"})
        state = bundle.corpus.model_copy(update={"schema_version": 99, "index": index})
        replay = compare_bundles(bundle, bundle.model_copy(update={"corpus": state}))
        assert kinds(replay) == ["schema", "index"]
        assert "fake:another" in replay.causes[1].after
        without = compare_bundles(
            bundle, bundle.model_copy(update={"corpus": state.model_copy(update={"index": None})})
        )
        assert without.causes[1].after == "none"

    def test_a_passage(self, bundle: RetrievalBundle) -> None:
        first, *unchanged = bundle.selected
        altered = first.model_copy(
            update={
                "content": "x",
                "title": "y",
                "scores": first.scores.model_copy(update={"final": 0.125}),
                "rank": 7,
            }
        )
        replay = compare_bundles(
            bundle, bundle.model_copy(update={"selected": [altered, *unchanged]})
        )
        (change,) = replay.passages
        assert {*change.kinds} == {"rank", "content", "metadata", "score"}
        assert (change.before.rank, change.after.rank) == (1, 7)  # type: ignore[union-attr]
        assert change.after.score == 0.125  # type: ignore[union-attr]


def pools(*bundles: RetrievalBundle) -> Iterator[set[str]]:
    for bundle in bundles:
        yield {passage.chunk_id for passage in (*bundle.selected, *bundle.rejected)}


@few_examples
@given(
    documents=corpora(),
    role=st.none() | overlays(),
    second_role=st.none() | overlays(),
    fields=requests(),
)
def test_nothing_that_differs_goes_unsaid(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[StoredDocument],
    role: Overlay | None,
    second_role: Overlay | None,
    fields: dict[str, Any],
) -> None:
    folder = tmp_path_factory.getbasetemp()
    with built(folder, documents, HashingProvider()) as corpus:
        first = ask(corpus, role, HashingProvider(), **fields)
        second = ask(corpus, second_role, HashingProvider(), **fields)
    itself = compare_bundles(first, RetrievalBundle.model_validate_json(first.to_json()))
    assert itself.same
    assert (itself.differs, itself.causes, itself.passages) == ([], [], [])
    replay, back = compare_bundles(first, second), compare_bundles(second, first)
    assert replay.same == back.same == (first.without_timings() == second.without_timings())
    assert bool(replay.causes) == (not replay.same)
    assert {change.chunk_id for change in replay.passages} == {
        change.chunk_id for change in back.passages
    }
    first_pool, theirs = pools(first, second)
    assert {c.chunk_id for c in replay.passages if c.kinds == ["gone"]} == first_pool - theirs
    assert {c.chunk_id for c in replay.passages if c.kinds == ["new"]} == theirs - first_pool
    if not replay.passages:
        assert first.selected == second.selected
