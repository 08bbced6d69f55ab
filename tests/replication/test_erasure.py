"""Older states in the stores of publications: removed as far as it can be, and named if not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.purge import StoreHistory
from rolebundle.errors import StorageError, UsageError
from rolebundle.replication.erasure import erase_history, list_history, visit_stores
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.storage.records.publications import save_publication
from support.corpora import build
from support.publications import publication_of


def found(target: str, **fields: Any) -> StoreHistory:
    defaults: dict[str, Any] = {"erased": [], "left": [], "problem": "", "outdated": False}
    return StoreHistory(target=target, **(defaults | fields))


DOWN = StorageError("unreachable", "the store does not answer", "try later")


@dataclass
class FakeTransport:
    """A store in memory. ``stuck`` are the states that it cannot remove, ``errors`` what fails."""

    target: str = "fake://store"
    states: list[str] = field(default_factory=lambda: ["1", "2"])
    stuck: frozenset[str] = frozenset()
    errors: dict[str, StorageError] = field(default_factory=dict)

    def push(self, replica: Path, manifest: bytes) -> int:
        raise NotImplementedError

    def manifest(self) -> bytes | None:
        raise NotImplementedError

    def state(self) -> str | None:
        raise NotImplementedError

    def fetch(self, copy: Path) -> int:
        raise NotImplementedError

    def history(self) -> Sequence[str]:
        if "history" in self.errors:
            raise self.errors["history"]
        return tuple(self.states)

    def erase_history(self) -> None:
        self.states = [state for state in self.states if state in self.stuck]
        if "erase" in self.errors:
            raise self.errors["erase"]


def test_all_is_removed() -> None:
    store = FakeTransport()
    assert list_history(store) == found("fake://store", left=["1", "2"])
    assert erase_history(store) == found("fake://store", erased=["1", "2"])
    assert erase_history(store) == found("fake://store")


def test_what_a_transport_cannot_remove_is_named() -> None:
    history = erase_history(FakeTransport(stuck=frozenset({"2"})))
    assert (history.erased, history.left) == (["1"], ["2"])
    assert "cannot remove" in history.problem


def test_a_removal_that_fails_is_named() -> None:
    history = erase_history(FakeTransport(stuck=frozenset({"2"}), errors={"erase": DOWN}))
    assert (history.erased, history.left) == (["1"], ["2"])
    assert history.problem == "the store does not answer; try later"


def test_a_store_that_cannot_be_listed_is_named() -> None:
    for visit in (list_history, erase_history):
        history = visit(FakeTransport(errors={"history": DOWN}))
        assert (history.erased, history.left) == ([], [])
        assert history.problem == "not listed: the store does not answer; try later"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = build(tmp_path, [])
    with open_writer(path) as corpus, corpus.writing():
        outdated = publication_of("fake://one")
        save_publication(corpus, outdated._replace(purge_generation=2, published_purges=1))
        save_publication(corpus, publication_of("fake://two"))
        save_publication(corpus, publication_of("unknown://three"))
    return path


@pytest.mark.parametrize("erase", [False, True])
def test_every_store_is_visited(db: Path, erase: bool) -> None:
    def open_store(target: str) -> Transport:
        if target.startswith("unknown"):
            raise UsageError("unknown_transport", "there is no such transport", "name another")
        return FakeTransport(target)

    with open_reader(db) as corpus:
        histories = visit_stores(corpus, erase=erase, open_store=open_store)
    states = {"erased": ["1", "2"]} if erase else {"left": ["1", "2"]}
    assert histories == [
        found("fake://one", outdated=True, **states),
        found("fake://two", **states),
        found("unknown://three", problem="there is no such transport; name another"),
    ]
