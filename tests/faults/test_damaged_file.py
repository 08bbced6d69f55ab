"""Rows 11 and 12: files that are unreadable, damaged inside or cut off."""

import random
from pathlib import Path

import pytest

from support.amounts import rounds
from support.commands import invoke, is_coded
from support.damaged_files import PAGE, READING, commands, run_without_change


def unreadable_files(image: bytes, cuts: int) -> dict[str, bytes]:
    """Files that nothing can be read from."""
    chance = random.Random(11)
    files = {
        "zeroed": bytes(len(image)),
        "random": chance.randbytes(len(image)),
        "text": b"# Not a database\n" * 400,
        "one byte": b"S",
        "header alone": image[:100],
        "header zeroed": bytes(100) + image[100:],
        "a page size that is none": image[:16] + b"\x12\x34" + image[18:],
        "first page zeroed behind the header": image[:100] + bytes(PAGE - 100) + image[PAGE:],
        "schema garbled": image[:100] + chance.randbytes(PAGE - 100) + image[PAGE:],
    }
    for _ in range(cuts):
        length = chance.randrange(1, len(image) - PAGE)
        files[f"cut at {length}"] = image[:length]
    return files


@rounds(1, 100)
def test_hopeless_files_are_refused_and_left_alone(
    image: bytes, tree: Path, tmp_path: Path, rounds: int
) -> None:
    for name, data in unreadable_files(image, cuts=rounds).items():
        for command in commands(tree):
            outcome = run_without_change(tmp_path / "c.db", data, command)
            assert outcome.code in (7, 8), (name, command, outcome)
            assert outcome.out == ""
            assert "next:" in outcome.err


def damage(image: bytes, chance: random.Random) -> bytes:
    data = bytearray(image)
    kind = chance.choice(["flip", "zero", "random", "swap"])
    for _ in range(chance.randint(1, 40)):
        at = chance.randrange(PAGE, len(data))
        length = chance.randint(1, PAGE if kind == "zero" else 600)
        if kind == "flip":
            data[at] ^= 1 << chance.randrange(8)
        elif kind == "zero":
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif kind == "random":
            data[at : at + length] = chance.randbytes(len(data[at : at + length]))
        else:
            start, second_start = (PAGE * chance.randrange(1, len(data) // PAGE) for _ in range(2))
            first, second = data[start : start + PAGE], data[second_start : second_start + PAGE]
            data[start : start + PAGE], data[second_start : second_start + PAGE] = second, first
    return bytes(data)


@rounds(8, 1000)
def test_damage_inside_is_an_answer_or_a_coded_error(
    image: bytes, tree: Path, tmp_path: Path, rounds: int
) -> None:
    """Readers may not meet the damage; they never change the file, and never end in a traceback."""
    db = tmp_path / "c.db"
    detected = 0
    for seed in range(rounds):
        data = damage(image, random.Random(seed))
        for command in READING:
            assert run_without_change(db, data, command).code in (0, 2, 7), seed
        db.write_bytes(data)
        checked = invoke("corpus", "doctor", "--db", db)
        is_coded(checked)
        assert checked.code in (0, 7), seed
        detected += checked.code == 7
        db.write_bytes(data)
        ingested = invoke("ingest", tree, "--lexical-only", "--workers", "1", "--db", db)
        is_coded(ingested)
        # 10: a lookup by a damaged key misses, and the ids seem taken.
        assert ingested.code in (0, 7, 10), (seed, ingested)
    assert detected >= rounds * 0.8


@pytest.mark.parametrize("pages_missing", [1, 3])
def test_a_file_shorter_than_its_header_says(
    image: bytes, tree: Path, tmp_path: Path, pages_missing: int
) -> None:
    """Whatever of the file a command reads."""
    for command in (("status",), *commands(tree)):
        data = image[: -pages_missing * PAGE]
        assert run_without_change(tmp_path / "c.db", data, command).code == 7
