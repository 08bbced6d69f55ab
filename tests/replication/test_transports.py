"""What holds for every transport. To add one, add its place to ``support.transports``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.errors import UsageError
from support.killing import killing_at, run_child
from support.transports import PLACES, Place, Replica, change, shrink


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    scratch = tmp_path / "place"
    scratch.mkdir()
    with PLACES[request.param](scratch) as place:
        yield place


def fast(*names: str) -> pytest.MarkDecorator:
    """By default a test runs with these places only, with the others if slow tests run."""
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in PLACES if name not in names]
    return pytest.mark.parametrize("place", [*names, *slow], indirect=True)


def push(place: Place, replica: Replica) -> int:
    return place.publisher.push(replica.path, replica.manifest)


def test_what_is_pushed_is_fetched(place: Place, replica: Replica, copy: Path) -> None:
    before = replica.path.read_bytes()
    assert push(place, replica) > 0
    assert place.reader.fetch(copy) > 0
    assert place.content_of(copy) == place.content_of(replica.path)
    assert replica.path.read_bytes() == before
    assert place.reader.manifest() in (replica.manifest, None)


def test_nothing_is_published(place: Place, copy: Path) -> None:
    copy.write_bytes(b"an earlier copy")
    with pytest.raises(UsageError) as raised:
        # A transport without a manifest beside the replica does not look for the replica.
        if place.reader.manifest() is None:
            place.reader.fetch(copy)
    assert raised.value.code == "nothing_published"
    with pytest.raises(UsageError) as raised:
        place.reader.fetch(copy)
    assert raised.value.code == "nothing_published"
    assert copy.read_bytes() == b"an earlier copy"


@fast("folder", "http", "rsync")
def test_a_small_change_moves_little(place: Place, replica: Replica, copy: Path) -> None:
    push(place, replica)
    place.reader.fetch(copy)
    for _ in range(2):
        change(replica)
        assert push(place, replica) < replica.size / 5
        assert place.reader.fetch(copy) < replica.size / 5 or place.reads_all
        assert place.content_of(copy) == place.content_of(replica.path)
        assert place.reader.manifest() in (replica.manifest, None)


@fast("folder", "http", "rsync")
def test_a_copy_that_missed_generations(place: Place, replica: Replica, copy: Path) -> None:
    push(place, replica)
    place.reader.fetch(copy)
    for _ in range(3):
        change(replica, rows=20)
        push(place, replica)
    place.reader.fetch(copy)
    assert place.content_of(copy) == place.content_of(replica.path)


@fast("folder", "http", "rsync")
def test_a_replica_that_shrinks(place: Place, replica: Replica, copy: Path) -> None:
    push(place, replica)
    place.reader.fetch(copy)
    shrink(replica)
    push(place, replica)
    place.reader.fetch(copy)
    assert place.content_of(copy) == place.content_of(replica.path)


@fast("http", "rsync")
@pytest.mark.parametrize("leftover", ["half", "torn", "garbage", "longer"])
def test_a_fetch_goes_on(place: Place, replica: Replica, copy: Path, leftover: str) -> None:
    push(place, replica)
    place.reader.fetch(copy)
    complete = copy.read_bytes()
    copy.write_bytes(
        {
            "half": complete[: len(complete) // 2],
            "torn": complete[:300_000] + b"\xff" * 5_000 + complete[305_000:],
            "garbage": b"\xff" * 70_000,
            "longer": complete + b"\xff" * 70_000,
        }[leftover]
    )
    place.reader.fetch(copy)
    assert place.content_of(copy) == place.content_of(replica.path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@fast("folder", "rsync")
@pytest.mark.parametrize("is_first", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_push_is_killed(place: Place, small_replica: Replica, copy: Path, is_first: bool) -> None:
    """Before each rename, sync and program: the former replica, or the new one."""
    replica = small_replica
    former = None
    if not is_first:
        push(place, replica)
        place.reader.fetch(copy)
        former = place.content_of(copy)
    moment, is_killed = 0, True
    while is_killed:
        moment += 1
        change(replica)
        is_killed = run_child(lambda _, n=moment: _push_killed_at(n, place, replica)).killed
        new = place.content_of(replica.path)
        for start in (b"", copy.read_bytes()):
            copy.write_bytes(start)
            try:
                place.reader.fetch(copy)
            except UsageError as error:
                assert error.code == "nothing_published" and former is None
            else:
                assert place.content_of(copy) in (former, new)
                if place.reader.manifest() == replica.manifest:
                    assert place.content_of(copy) == new
        if copy.read_bytes():
            former = place.content_of(copy)
    assert former == new, "the push that was not killed is published"
    assert moment > 1


def _push_killed_at(moment: int, place: Place, replica: Replica) -> None:
    killing = killing_at(moment)
    os.fsync, os.replace = killing(os.fsync), killing(os.replace)  # type: ignore[assignment]
    subprocess.Popen = killing(subprocess.Popen)  # type: ignore[assignment,misc]
    push(place, replica)


@fast("folder", "rsync")
def test_history(place: Place, replica: Replica, copy: Path) -> None:
    push(place, replica)
    for _ in range(3):
        change(replica, rows=5)
        push(place, replica)
    place.publisher.erase_history()
    assert not place.publisher.history()
    place.reader.fetch(copy)
    assert place.content_of(copy) == place.content_of(replica.path)
