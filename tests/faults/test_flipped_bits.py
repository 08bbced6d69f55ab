"""Row 12: a single flipped bit, anywhere in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.amounts import rounds
from support.flipping import filled_corpus, flipped, problems_of, sample_of_bits, stored_rows


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a filled corpus, nothing left in its log."""
    path = filled_corpus(tmp_path_factory.mktemp("flipped"))
    assert problems_of(path) == []
    return path.read_bytes()


def put(path: Path, data: bytes) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(data)


@rounds(30, 1000)
def test_no_flip_that_changed_a_row_goes_unnoticed(
    image: bytes, tmp_path: Path, rounds: int
) -> None:
    path = tmp_path / "c.db"
    put(path, image)
    before = stored_rows(path)
    changed = 0
    for bit in sample_of_bits(image, rounds, seed=12):
        put(path, flipped(image, bit))
        if stored_rows(path) != before:
            changed += 1
            assert problems_of(path), bit
    print(f"{rounds} flips, {changed} changed a stored row")
    assert changed >= rounds // 2
