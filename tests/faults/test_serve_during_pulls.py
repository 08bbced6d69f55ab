"""Servers answer without a pause while `pull` replaces the replica below them.

All documents of a generation name it. So an answer of two generations shows.
"""

import json
import re
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

from rolebundle.storage.opening import open_reader
from support.amounts import rounds
from support.commands import run
from support.replication_site import Site
from support.served import Served

QUESTION: dict[str, Any] = {"task": "token rotation", "lexical_only": True, "limit": 10}
EDITION = re.compile(r"edition(\d+)")
SECONDS = 60.0
DOCUMENTS = 4


def editions_of(bundle: Any) -> set[int]:
    """The generations that an answer names: its passages, and its own record."""
    assert len(bundle["selected"]) >= DOCUMENTS, bundle
    named = {int(number) for number in EDITION.findall(json.dumps(bundle))}
    return named | {bundle["corpus"]["replica"]["generation"]}


class Load:
    """Clients that ask all the time, each in a thread.

    Attributes:
        pulled: the generation of the last pull. No request that begins later gets an older one.
    """

    def __init__(self) -> None:
        self.pulled = 1
        self.answers: dict[str, int] = {}
        self.failures: list[str] = []
        self.is_over = False
        self._threads: list[Thread] = []

    def start(self, name: str, ask: Callable[[], set[int]]) -> None:
        self.answers[name] = 0
        self._threads.append(Thread(target=self._repeat, args=(name, ask), daemon=True))
        self._threads[-1].start()

    def _repeat(self, name: str, ask: Callable[[], set[int]]) -> None:
        while not self.is_over:
            at_least = self.pulled
            try:
                editions = ask()
                assert len(editions) == 1, f"mixed: {editions}"
                assert max(editions) >= at_least, f"{editions} after {at_least} was pulled"
            except BaseException:
                self.failures.append(f"{name}: {traceback.format_exc()}")
                self.is_over = True
            self.answers[name] += 1

    def wait(self, more: int = 1) -> None:
        """Wait until every client has so many more answers."""
        wanted = {name: count + more for name, count in self.answers.items()}
        deadline = monotonic() + SECONDS
        while not self.failures and any(self.answers[name] < wanted[name] for name in wanted):
            assert monotonic() < deadline
            sleep(0.005)
        assert self.failures == []

    def end(self) -> None:
        self.is_over = True
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive()
        assert self.failures == []


def asked(server: Served) -> set[int]:
    answer = server.ask("retrieve", **QUESTION)
    assert "result" in answer, answer
    return editions_of(answer["result"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "site")
    site.write(count=DOCUMENTS)
    site.publish()
    site.pull()
    return site


@rounds(1, 100)
def test_servers_and_readers(rounds: int, site: Site) -> None:
    """Two processes over standard input and output, an engine in this process, an old reader."""
    load = Load()
    with ExitStack() as stack:
        held = stack.enter_context(open_reader(site.replica))
        for name in ("one", "two"):
            server = stack.enter_context(Served("--db", site.replica))
            load.start(name, partial(asked, server))
        load.start("shot", lambda: one_shot(site.replica))
        load.wait()
        for edition in range(2, rounds + 2):
            site.write(edition, DOCUMENTS)
            assert site.publish().manifest.generation == edition
            assert site.pull().state == "updated"
            load.pulled = edition
            load.wait()
        load.end()
        print(f"{rounds} pulls, answers: {load.answers}")
        texts = held.rows("SELECT content FROM chunk")
        assert {text.split()[-1] for (text,) in texts} == {"edition1"}
    assert not list(site.replica.parent.glob(".*"))


def one_shot(replica: Path) -> set[int]:
    arguments = ("--lexical-only", "--limit", "10", "--format", "json", "--db", replica)
    outcome = run("retrieve", "token rotation", *arguments)
    assert outcome.code == 0, outcome.err
    return editions_of(outcome.json())
