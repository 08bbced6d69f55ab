"""What was purged is nowhere: in the file, its indexes, and staged replicas."""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Mark
from rolebundle.contracts.upkeep import Receipt
from rolebundle.errors import CorpusBusy, StorageError
from rolebundle.storage import marks, vector_index
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.file import published_folder
from rolebundle.storage.marks import StoredMark
from rolebundle.storage.opening import open_reader
from rolebundle.storage.partition import move_documents
from rolebundle.storage.publications import (
    Publication,
    carried_hash,
    decision_name,
    publications,
    raise_purge_generations,
    save_publication,
    with_carried,
)
from rolebundle.storage.replicas import staging
from rolebundle.storage.writing import open_writer
from support.amounts import rounds
from support.canaries import Canary, files_of, found_in, make_canary, vector_traces
from support.corpora import (
    all_documents,
    build,
    document,
    embed,
    file_of,
    fill,
    put_file,
    scratch_folder,
)
from support.fake_embedder import IDENTITY, HashingProvider
from support.publications import publication_of, stage
from support.purging import finish_purges, purge
from support.sound import assert_sound

# -- What was purged is nowhere: not in the file, its log, its indexes, nor in what is free in them

PROVIDER = HashingProvider()
SECOND_PROVIDER = HashingProvider(IDENTITY._replace(model="other", dimensions=12))
COMMON = tuple(f"common{number}" for number in range(400))


@dataclass
class CanaryCorpus:
    """A corpus of canaries, and the traces of those that are purged and of those that stay."""

    db: Path
    to_purge: list[Canary]
    to_stay: list[Canary]
    purged_traces: set[bytes]
    kept_traces: set[bytes]


def canary_corpus(folder: Path, seed: int, purged_count: int, staying_count: int) -> CanaryCorpus:
    """Documents that came in small portions, were changed, moved and embedded by two models."""
    chance = Random(seed)
    canaries = [
        make_canary(chance, COMMON, number) for number in range(purged_count + staying_count)
    ]
    db = build(folder, [])
    size = max(5, len(canaries) // 40)
    with open_writer(db) as corpus:
        for start in range(0, len(canaries), size):
            fill(corpus, [canary.document for canary in canaries[start : start + size]], PROVIDER)
        _second_index(corpus)
        _mark_all(corpus, canaries)
        _change_some(corpus, chance, canaries)
        _move_some(corpus, chance)
    chance.shuffle(canaries)
    purged_canaries, remaining = canaries[:purged_count], canaries[purged_count:]
    with open_reader(db) as corpus:
        purged_traces, kept_traces = (
            {trace for canary in group for trace in canary.traces}
            | vector_traces(corpus, [canary.document.metadata.document_id for canary in group])
            for group in (purged_canaries, remaining)
        )
    return CanaryCorpus(db, purged_canaries, remaining, purged_traces - kept_traces, kept_traces)


def _second_index(corpus: Corpus) -> None:
    with corpus.writing():
        first = vector_index.active_index(corpus)
        assert first is not None
        second_index = vector_index.create_index(
            corpus, first.identity._replace(model=SECOND_PROVIDER.identity)
        )
        embed(corpus, SECOND_PROVIDER)
        vector_index.activate_index(corpus, first)
        assert second_index.id != first.id


def _mark_all(corpus: Corpus, canaries: list[Canary]) -> None:
    """Marks of documents, of passages, and of passages that are gone."""
    with corpus.writing():
        for canary in canaries:
            document_id = canary.document.metadata.document_id
            chunk_id = canary.document.chunks[0].chunk_id
            for kind, target in (
                ("document", document_id),
                ("chunk", chunk_id),
                ("chunk", f"{document_id}#gone"),
            ):
                mark = Mark("disputed", "Ana", "owner", f"see {target}", "2026-11-01T00:00:00Z")
                marks.put_mark(corpus, StoredMark(kind, target, "", mark))


def _change_some(corpus: Corpus, chance: Random, canaries: list[Canary]) -> None:
    """Chunks leave and come back, with their vectors through the cache."""
    for canary in chance.sample(canaries, len(canaries) // 4):
        stored = canary.document
        for chunks in (stored.chunks[1:], stored.chunks):
            with corpus.writing():
                put_file(
                    corpus, file_of(stored.metadata.document_id), [replace(stored, chunks=chunks)]
                )
        with corpus.writing():
            embed(corpus, PROVIDER)


def _move_some(corpus: Corpus, chance: Random) -> None:
    places = [number for (number,) in corpus.rows("SELECT id FROM compartment")]
    for row, old_compartment in corpus.rows("SELECT id, compartment FROM document"):
        if chance.random() < 0.2:
            new_compartment = chance.choice(places)
            with corpus.writing():
                if new_compartment != old_compartment:
                    move_documents(corpus, [row], old_compartment, new_compartment)
                    move_documents(corpus, [row], new_compartment, old_compartment)


def names(canaries: list[Canary]) -> list[str]:
    return [canary.document.metadata.document_id for canary in canaries]


def purged(db: Path, *names: str) -> Receipt:
    with open_writer(db) as corpus:
        return purge(corpus, names)


@rounds(5, 1000)
def test_no_byte_of_a_canary_is_left(rounds: int) -> None:
    with scratch_folder() as folder:
        planted = canary_corpus(folder, 1, rounds, rounds)
        assert found_in(files_of(planted.db), planted.purged_traces) == planted.purged_traces, (
            "the look finds what is there"
        )
        portions = [planted.to_purge[start::4] for start in range(4)]
        for portion in portions:
            receipt = purged(planted.db, *names(portion))
            assert (receipt.state, receipt.documents) == ("done", len(portion))
            assert receipt.chunks == sum(len(canary.document.chunks) for canary in portion)
        files = files_of(planted.db)
        assert found_in(files, planted.purged_traces) == set()
        # Words of those that stay still stand where they were, also in the indexes alone.
        assert found_in(files, planted.kept_traces) == planted.kept_traces
        assert_sound(planted.db)
        with open_reader(planted.db) as corpus:
            assert {metadata.document_id for _, metadata in all_documents(corpus)} == set(
                names(planted.to_stay)
            )


def test_everything_derived_from_it_is_deleted(tmp_path: Path) -> None:
    documents = [document("a", ["one text", "two"], source_id="s1"), document("b", ["three"])]
    refused = ("document_id: a", "supersedes: a.md", "supersedes: b")
    claims = document(
        "c", ["four"], supersedes=("a", "a.md", "b"), contradicts=("b", "a"), refused_claims=refused
    )
    db = build(tmp_path, [*documents, claims], PROVIDER)
    with open_writer(db) as corpus, corpus.writing():
        kept = "embedding_cache (model, input_hash, vector)"
        corpus.insert(kept, [("of an earlier version", "hash", b"vector")])
    receipt = purged(db, "a")
    assert (receipt.documents, receipt.chunks, receipt.vectors) == (1, 2, 2)
    with open_reader(db) as corpus:
        assert corpus.value("SELECT count(*) FROM embedding_cache") == 0
        assert corpus.rows("SELECT source_id FROM source ORDER BY 1") == [("wiki",)]
        assert corpus.rows("SELECT path FROM file ORDER BY 1") == [("b.md",), ("c.md",)]
        assert corpus.rows("SELECT superseded FROM supersession") == [("b",)]
        claimed = all_documents(corpus)[-1][1]
        assert claimed.supersedes == claimed.contradicts == ("b",)
        assert claimed.refused_claims == ("supersedes: b",)
        assert corpus.rows("SELECT documents, chunks FROM corpus_state") == [(2, 2)]
    assert_sound(db)


def test_a_file_with_another_document_stays(tmp_path: Path) -> None:
    db = build(tmp_path, [])
    pair = [document("a", ["one"]), document("b", ["two"], supersedes=("both.md",))]
    with open_writer(db) as corpus, corpus.writing():
        put_file(corpus, file_of("both")._replace(path="both.md"), pair)
    purged(db, "a")
    with open_reader(db) as corpus:
        assert corpus.rows("SELECT path FROM file") == [("both.md",)]
        assert corpus.rows("SELECT superseded FROM supersession") == [("both.md",)]
    assert_sound(db)


class TestObstacles:
    def test_a_reader_makes_it_pending_and_finish_completes_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "50")
        with scratch_folder() as folder:
            planted = canary_corpus(folder, 5, 6, 6)
            with open_reader(planted.db) as reader, reader.reading():
                before = reader.value("SELECT count(*) FROM document")
                receipt = purged(planted.db, *names(planted.to_purge))
                assert (receipt.state, receipt.waiting_for) == ("pending", "reader")
                assert (
                    found_in(files_of(planted.db), planted.purged_traces) == planted.purged_traces
                )
                with open_writer(planted.db) as corpus:
                    [second_receipt] = finish_purges(corpus)
                    assert (second_receipt.id, second_receipt.state) == (receipt.id, "pending")
                    assert find_problems(corpus) == []
                # Writes go on, and the reader has what it had.
                with open_writer(planted.db) as corpus:
                    fill(corpus, [document("new", ["a new text"])], PROVIDER)
                assert reader.value("SELECT count(*) FROM document") == before
            with open_writer(planted.db) as corpus:
                [finished] = finish_purges(corpus)
                assert (finished.id, finished.state, finished.waiting_for) == (
                    receipt.id,
                    "done",
                    "",
                )
                assert finish_purges(corpus) == []
            assert found_in(files_of(planted.db), planted.purged_traces) == set()
            assert_sound(planted.db)

    def test_a_full_disk_leaves_it_pending(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        db = build(tmp_path, [document("a", ["one"]), document("b", ["two"])], PROVIDER)
        run = Corpus.run

        def full(corpus: Corpus, sql: str, *more: Any) -> None:
            if sql == "VACUUM":
                raise StorageError("storage_full", "no room", "free some")
            run(corpus, sql, *more)

        monkeypatch.setattr(Corpus, "run", full)
        receipt = purged(db, "a")
        assert (receipt.state, receipt.waiting_for) == ("pending", "disk")
        monkeypatch.undo()
        with open_writer(db) as corpus:
            assert [receipt.state for receipt in finish_purges(corpus)] == ["done"]
        assert_sound(db)


def test_a_receipt_does_not_name_the_documents(tmp_path: Path) -> None:
    texts = {"a": "one text", "b": "another"}
    ids = set()
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        db = build(tmp_path / name, [document(name, [text])], PROVIDER)
        receipt = purged(db, name)
        ids.add(receipt.id)
        assert set(receipt.model_dump()) == {
            "id", "purged_at", "documents", "chunks", "vectors", "state", "waiting_for",
            "publications",
        }  # fmt: skip
    assert len(ids) == 2


# -- Replicas that a killed publish left ---------------------------------------------------------

WORD = "xqzjkvwp"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("a", [f"{WORD} one"]), document("b", ["two"])])


def traces_in(db: Path) -> set[bytes]:
    return found_in(files_of(db), {WORD.encode()})


def test_a_purge_erases_what_a_killed_publish_left(db: Path) -> None:
    stage(db, "/one", ["a", "b"])
    # Earlier versions kept the last replica of each target.
    kept = published_folder(db) / ("0" * 16)
    kept.mkdir()
    (kept / "replica.db").write_bytes(db.read_bytes())
    stage(db, "/another", ["b"])
    assert traces_in(db)
    receipt = purged(db, "a")
    assert receipt.state == "done"
    assert [copy.target for copy in receipt.publications] == ["/one"]
    assert not traces_in(db)
    assert not [*published_folder(db).iterdir()]


def test_a_publish_makes_it_pending(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "20")
    with staging(db):
        stage(db, "/one", ["a"])
        receipt = purged(db, "a")
        assert (receipt.state, receipt.waiting_for) == ("pending", "publisher")
        assert traces_in(db)
        with pytest.raises(CorpusBusy), staging(db):
            pass
    with open_writer(db) as corpus:
        [receipt] = finish_purges(corpus)
    assert (receipt.state, receipt.waiting_for) == ("done", "")
    assert [copy.target for copy in receipt.publications] == ["/one"]
    assert not traces_in(db)


def test_a_folder_that_cannot_be_deleted_makes_it_pending(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    stage(db, "/one", ["a"])
    monkeypatch.setattr(Path, "unlink", refuse)
    receipt = purged(db, "a")
    assert (receipt.state, receipt.waiting_for) == ("pending", "staging")
    monkeypatch.undo()
    with open_writer(db) as corpus:
        assert [purge.state for purge in finish_purges(corpus)] == ["done"]
    assert not traces_in(db)


def test_a_link_is_removed_and_not_followed(db: Path, tmp_path: Path) -> None:
    staged = stage(db, "/one", ["a"])
    staged.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("stays")
    staged.symlink_to(elsewhere)
    assert purged(db, "a").state == "done"
    assert not staged.is_symlink()
    assert (elsewhere / "file").read_text() == "stays"


# -- What publications carried: a purge raises those that held it, and no others -------------------

_NAMES = st.sets(st.sampled_from([*"abcdef", decision_name(("shared", 1))]))


def save(corpus: Corpus, known: list[Publication]) -> None:
    with corpus.writing():
        corpus.run("DELETE FROM publication")
        for publication in known:
            save_publication(corpus, publication)


def test_a_purge_raises_exactly_the_publications_that_carried_it() -> None:
    with scratch_folder() as folder, open_writer(build(folder, [])) as corpus:
        corpus_id = corpus_counts(corpus).corpus_id

        @given(st.lists(_NAMES, max_size=4), _NAMES)
        def check(carried: list[set[str]], purged: set[str]) -> None:
            known = [
                with_carried(publication_of(f"/t{n}"), corpus_id, names)
                for n, names in enumerate(carried)
            ]
            save(corpus, known)
            with corpus.writing():
                raised = raise_purge_generations(corpus, purged)
            assert [publication.target for publication in raised] == [
                f"/t{n}" for n, names in enumerate(carried) if names & purged
            ]
            for before, after, names in zip(known, publications(corpus), carried, strict=True):
                expected = with_carried(publication_of(before.target), corpus_id, names - purged)
                assert after == expected._replace(
                    purge_generation=before.purge_generation + bool(names & purged)
                )
                assert after.purge_pending == bool(names & purged)

        check()


def test_hashes_of_two_corpora_cannot_be_compared() -> None:
    assert carried_hash("one", "a") != carried_hash("two", "a")
    assert len(carried_hash("x" * 100, "a")) == 8
