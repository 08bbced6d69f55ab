"""The rerank cache: bounded, readable by its owner only, checked before use."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusBusy, CorpusCorrupt, RolebundleError, StorageError, WrongFile
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path
from support.fake_embedder import DIMENSIONS, IDENTITY

VECTOR = bytes(range(4 * DIMENSIONS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return rerank_cache_path(tmp_path / "team.db")


def test_the_cache_lies_beside_the_target_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.db").touch()
    (tmp_path / "link.db").symlink_to("real.db")
    assert rerank_cache_path(tmp_path / "link.db") == (tmp_path / "real.db.rerank").resolve()


def test_a_vector_is_found_by_its_model_and_text_only(path: Path) -> None:
    assert rerank_cache.load(path, IDENTITY, ["a"]) == {}
    assert not path.exists(), "looking made a file"
    rerank_cache.store(path, IDENTITY, {"a": VECTOR, "b": VECTOR[::-1]})
    assert rerank_cache.load(path, IDENTITY, ["a", "c"]) == {"a": VECTOR}
    assert rerank_cache.load(path, IDENTITY, []) == {}
    for field, value in (
        ("provider", "x"),
        ("model", "x"),
        ("digest", "x"),
        ("dimensions", DIMENSIONS + 1),
        ("query_prefix", "x"),
        ("passage_prefix", "x"),
    ):
        assert rerank_cache.load(path, replace(IDENTITY, **{field: value}), ["a"]) == {}


def test_the_oldest_vectors_are_deleted_beyond_the_limit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank_cache, "MAX_BYTES", 100_000)
    wide = replace(IDENTITY, dimensions=256)
    for batch in range(40):
        vectors = {f"{batch:03}-{n}": bytes([n]) * 1024 for n in range(10)}
        rerank_cache.store(path, wide, vectors)
    count, size_in_bytes = rerank_cache.size(path)
    assert 20 < count < 400
    assert size_in_bytes <= 100_000
    assert path.stat().st_size <= 100_000 + 50_000, "freed pages are not used again"
    assert len(rerank_cache.load(path, wide, [f"039-{n}" for n in range(10)])) == 10
    assert rerank_cache.load(path, wide, [f"000-{n}" for n in range(10)]) == {}


def test_a_limit_below_the_size_of_an_empty_file_terminates(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank_cache, "MAX_BYTES", 1)
    rerank_cache.store(path, IDENTITY, {"a": VECTOR})
    assert rerank_cache.size(path)[0] == 0


def test_an_altered_vector_is_not_returned(path: Path) -> None:
    rerank_cache.store(path, IDENTITY, {"a": VECTOR, "b": VECTOR})
    db = apsw.Connection(str(path))
    db.execute("UPDATE vector SET vector = ? WHERE input_hash = 'a'", (VECTOR[::-1],))
    db.execute("UPDATE vector SET vector = ? WHERE input_hash = 'b'", (VECTOR[:-4],))
    db.close()
    assert rerank_cache.load(path, IDENTITY, ["a", "b"]) == {}
    rerank_cache.store(path, IDENTITY, {"a": VECTOR})
    assert rerank_cache.load(path, IDENTITY, ["a"]) == {"a": VECTOR}


def test_an_empty_file_is_replaced(path: Path) -> None:
    path.touch(0o644)
    assert rerank_cache.load(path, IDENTITY, ["a"]) == {}
    rerank_cache.store(path, IDENTITY, {"a": VECTOR})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert rerank_cache.load(path, IDENTITY, ["a"]) == {"a": VECTOR}


def foreign(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE vector (x)")
    db.close()


def newer(path: Path) -> None:
    rerank_cache.store(path, IDENTITY, {"a": VECTOR})
    db = apsw.Connection(str(path))
    db.pragma("user_version", rerank_cache.VERSION + 1)
    db.close()


def torn(path: Path) -> None:
    rerank_cache.store(path, IDENTITY, {str(n): VECTOR for n in range(200)})
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


@pytest.mark.parametrize(
    ("make", "kind"), [(newer, WrongFile), (torn, CorpusCorrupt), (Path.mkdir, StorageError)]
)
def test_an_unusable_file_is_refused_and_not_changed(
    path: Path, make: Callable[[Path], None], kind: type[RolebundleError]
) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(kind):
        rerank_cache.load(path, IDENTITY, ["a"])
    with pytest.raises(kind):
        rerank_cache.store(path, IDENTITY, {"a": VECTOR})
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_locked_file_is_refused_soon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank_cache, "PATIENCE_MS", 20)
    rerank_cache.store(path, IDENTITY, {"a": VECTOR})
    db = apsw.Connection(str(path))
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(CorpusBusy):
        rerank_cache.store(path, IDENTITY, {"b": VECTOR})
    assert rerank_cache.load(path, IDENTITY, ["a"]) == {"a": VECTOR}, "readers do not wait"
    db.execute("ROLLBACK")
    db.close()


class TestErase:
    def test_the_files_beside_it_are_erased_too(self, path: Path) -> None:
        rerank_cache.store(path, IDENTITY, {"a": VECTOR})
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").touch()
        rerank_cache.erase(path.with_name("team.db"))
        assert not [*path.parent.glob("*rerank*")]
        rerank_cache.erase(path.with_name("team.db"))

    def test_a_newer_or_torn_cache_is_erased(self, path: Path) -> None:
        for make in (newer, torn):
            make(path)
            rerank_cache.erase(path.with_name("team.db"))
            assert not path.exists()

    def test_the_database_of_another_program_is_not_erased(self, path: Path) -> None:
        foreign(path)
        for identity in (0, 42):
            db = apsw.Connection(str(path))
            db.pragma("application_id", identity)
            db.close()
            rerank_cache.erase(path.with_name("team.db"))
            assert path.exists()

    def test_a_file_that_may_be_a_damaged_cache_is_an_error(self, path: Path) -> None:
        path.write_text("my notes")
        with pytest.raises(RolebundleError) as caught:
            rerank_cache.erase(path.with_name("team.db"))
        assert caught.value.code == "rerank_cache_stays"
        assert path.read_text() == "my notes"
