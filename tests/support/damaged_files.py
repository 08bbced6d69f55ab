"""Damage to the file of a corpus, and what commands, the check and the repair then answer."""

from pathlib import Path

import apsw
import sqlite_vec

from rolebundle.policy.access import deny_matcher
from rolebundle.storage.backup import private_copy
from rolebundle.storage.check import find_problems
from rolebundle.storage.writing import open_writer
from support.commands import Outcome, invoke, is_coded

PAGE = 4096
READING = (
    ("retrieve", "token rotation", "--lexical-only"),
    ("get", "notes/n03.md"),
    ("get", "n03.md:1-9"),
    ("status",),
)


def commands(tree: Path) -> list[tuple[str, ...]]:
    return [*READING, ("ingest", str(tree), "--lexical-only", "--workers", "1")]


def put(db: Path, data: bytes) -> None:
    """Make this the content of a corpus, whose log is gone."""
    for suffix in ("-wal", "-shm"):
        Path(f"{db}{suffix}").unlink(missing_ok=True)
    db.write_bytes(data)


def run_without_change(db: Path, data: bytes, command: tuple[str, ...]) -> Outcome:
    put(db, data)
    outcome = invoke(*command, "--db", db)
    assert db.read_bytes() == data, "the file was changed"
    is_coded(outcome)
    return outcome


def tamper(db: Path, *statements: str) -> None:
    """Change a corpus behind its back, as a flipped bit would."""
    connection = apsw.Connection(str(db))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    for statement in statements:
        connection.execute(statement)
    connection.close()


def codes_of(db: Path) -> set[str]:
    """The codes of what a check of the whole corpus finds."""
    with (
        private_copy(db) as copy,
        open_writer(copy, lock=False, verify=False, replica=True) as corpus,
    ):
        return {problem.code for problem in find_problems(corpus, deny_matcher(corpus))}
