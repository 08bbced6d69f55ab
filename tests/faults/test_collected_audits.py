"""Kills of a collection of audits: nothing collected is lost."""

from __future__ import annotations

import os
import random
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rolebundle.policy.audit_collection import CollectedLog, collect, collected_logs
from rolebundle.storage.audits import collected_audits
from support.amounts import rounds
from support.collecting import NOW, collected, exported, write
from support.corpora import scratch_folder
from support.killing import Report, run_child


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@rounds(3, 30)
def test_kill_during_a_collection(rounds: int) -> None:
    """Each log has its old or its new rows, and the next collection completes."""
    chance = random.Random(9)
    with scratch_folder() as folder:
        replicas = [folder / "in" / f"{name}.db" for name in "ab"]
        replicas[0].parent.mkdir()
        for replica in replicas:
            write(replica, 100)
        old = {len(exported(replica)) for replica in replicas}
        between = 0
        for number in range(rounds):
            home = folder / f"home-{number}.db"
            seen = {0}
            if number % 2:
                collect(home, [folder / "in"], lambda: NOW)
                seen = set(old)
                for replica in replicas:
                    write(replica, 20)
            sizes = [len(exported(replica)) for replica in replicas]

            at_time = chance.uniform(0, 0.08) if number % 3 == 2 else None
            at_row = chance.randrange(1, 41) if at_time is None else -1

            def work(report: Report, home: Path = home, at_row: int = at_row) -> None:
                rows = count(1)

                def add_row(*values: Any) -> None:
                    if next(rows) == at_row:
                        os.kill(os.getpid(), signal.SIGKILL)
                    real_add_row(*values)

                real_add_row = collected_audits.add_row
                collected_audits.add_row = add_row
                collect(home, [folder / "in"], lambda: NOW)

            killed = run_child(work, at_time)
            between += killed.killed
            for log in collected_logs(home):
                assert log.state == "ok"
                assert log.rows in seen | set(sizes), (log, seen, sizes)
                with CollectedLog(home, log.log_id) as rows:
                    assert rows.verify().ok
            reports = collect(home, [folder / "in"], lambda: NOW)
            assert [(log.state, log.rows) for log in reports] == [("ok", size) for size in sizes]
            for report, replica in zip(reports, replicas, strict=True):
                assert collected(home, report.log_id) == exported(replica)
            assert not list(folder.glob("*.partial*"))
            old = set(sizes)
        assert between, "no run was killed"
