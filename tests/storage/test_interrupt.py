"""A search that takes too long, or that nobody waits for, ends; the next one is not harmed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from time import perf_counter

import apsw
import pytest

from rolebundle.errors import Interrupted
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_writer

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
SHORT = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9) SELECT max(x) FROM n"
)


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    with open_writer(tmp_path / "c.db") as opened:
        yield opened


def test_a_deadline_ends_a_running_statement(corpus: Corpus) -> None:
    started = perf_counter()
    with pytest.raises(Interrupted) as caught, corpus.interruptible(0.05):
        corpus.value(ENDLESS)
    assert perf_counter() - started < 5
    assert caught.value.retryable
    assert "deadline_ms" in caught.value.hint


def test_an_interrupt_comes_from_another_thread(corpus: Corpus) -> None:
    timer = Timer(0.05, corpus.interrupt)
    timer.start()
    with pytest.raises(Interrupted), corpus.interruptible():
        corpus.value(ENDLESS)
    timer.join()
    with corpus.interruptible():
        assert corpus.value(SHORT) == 9


def test_an_interrupt_between_two_statements_ends_the_next_one(corpus: Corpus) -> None:
    with pytest.raises(Interrupted), corpus.interruptible():
        assert corpus.value(SHORT) == 9
        corpus.interrupt()
        corpus.value(ENDLESS)


def test_time_outside_of_sqlite_counts(corpus: Corpus) -> None:
    with pytest.raises(Interrupted), corpus.interruptible(0.0):
        pass


def test_an_interrupt_outside_a_block_has_no_effect(corpus: Corpus) -> None:
    corpus.interrupt()
    with corpus.interruptible(60):
        assert corpus.value(SHORT) == 9
    assert corpus.value(SHORT) == 9


def test_an_interrupt_while_a_virtual_table_is_set_up_is_one(corpus: Corpus) -> None:
    def set_up() -> None:
        corpus.interrupt()
        raise apsw.SQLError("vtable constructor failed: json_each")

    corpus.db.create_scalar_function("fail", set_up)
    with pytest.raises(Interrupted):
        corpus.value("SELECT fail()")
