"""A repair makes indexes again, and leaves a corpus with other damage alone."""

import random
from pathlib import Path

import pytest

from support.commands import invoke
from support.damaged_files import codes_of, tamper

OTHER = (
    "UPDATE chunk SET content = 'forged' WHERE id = 3",
    "UPDATE document SET scope = 'shared' WHERE id = 3; UPDATE document SET scope = 'hr'",
    "UPDATE compartment SET scope = 'forged'",
    "INSERT INTO policy VALUES (1, '', 'toml', '', '', 'now')",
    "DELETE FROM embedded; DELETE FROM source",
)


@pytest.mark.parametrize("statement", OTHER)
def test_other_damage_is_left_alone(corpus_file: Path, statement: str) -> None:
    tamper(corpus_file, f"PRAGMA foreign_keys = OFF; {statement}")
    before = codes_of(corpus_file)
    outcome = invoke("corpus", "doctor", "--repair", "--db", corpus_file)
    assert (outcome.code, outcome.out) == (7, "")
    assert "[beyond_repair]" in outcome.err and "rolebundle corpus restore" in outcome.err
    assert codes_of(corpus_file) == before


def test_a_sound_corpus_is_left_alone(corpus_file: Path) -> None:
    outcome = invoke("corpus", "doctor", "--repair", "--db", corpus_file)
    assert (outcome.code, outcome.out) == (0, f"location: {corpus_file}\nrepaired: no\n")


def test_what_is_no_corpus_is_left_alone(tmp_path: Path) -> None:
    """Another file that was named by mistake is not changed."""
    for data in (b"# Not a database\n" * 400, bytes(9000), random.Random(1).randbytes(9000)):
        db = tmp_path / "c.db"
        db.write_bytes(data)
        outcome = invoke("corpus", "doctor", "--repair", "--db", db)
        assert outcome.code == 7
        assert db.read_bytes() == data
        assert list(tmp_path.iterdir()) == [db]
