"""Rows 11 and 12: files that are unreadable, damaged inside or cut off."""

import random
from pathlib import Path

import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.corpus import increment_generation
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.amounts import rounds
from support.commands import invoke, is_coded
from support.corpora import document, fill
from support.damaged_files import PAGE, READING, commands, run_without_change
from support.sound import assert_sound


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
        checked = invoke("status", "--check", "--db", db)
        is_coded(checked)
        assert checked.code in (0, 7), seed
        detected += checked.code == 7
        db.write_bytes(data)
        ingested = invoke("ingest", tree, "--lexical-only", "--workers", "1", "--db", db)
        is_coded(ingested)
        # 10: a lookup by a damaged key misses, and the ids seem taken.
        assert ingested.code in (0, 7, 10), (seed, ingested)
    assert detected >= rounds * 0.8


# -- files that were cut off --------------------------------------------------------------------


@pytest.mark.parametrize("with_log", [False, True])
@pytest.mark.parametrize("bytes_missing", [1, PAGE, 3 * PAGE + 7])
def test_a_file_shorter_than_its_header_says(
    image: bytes, tree: Path, tmp_path: Path, with_log: bool, bytes_missing: int
) -> None:
    """Also with a log beside it, whatever of the file a command reads."""
    db, longer = tmp_path / "c.db", tmp_path / "other.db"
    log = b""
    if with_log:
        longer.write_bytes(image)
        with open_writer(longer) as corpus:
            with corpus.writing():
                increment_generation(corpus)
            log = Path(f"{longer}-wal").read_bytes()
    data = image[:-bytes_missing]
    for command in (("status",), *commands(tree)):
        for suffix, content in (("", data), ("-wal", log)):
            Path(f"{db}{suffix}").write_bytes(content)
        Path(f"{db}-shm").unlink(missing_ok=True)
        outcome = invoke(*command, "--db", db)
        assert outcome.code == 7
        assert "[corpus_cut_off]" in outcome.err
        assert (db.read_bytes(), Path(f"{db}-wal").read_bytes()) == (data, log)


def before_and_after_a_checkpoint(db: Path) -> tuple[bytes, bytes, bytes]:
    """A file, the log beside it that makes it longer, and the file with the log in it."""
    with open_writer(db) as corpus:
        short = db.read_bytes()
        fill(corpus, [document(f"d{n}", ["the token " * 400]) for n in range(9)])
        log = Path(f"{db}-wal").read_bytes()
        corpus.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return short, log, db.read_bytes()


def test_a_log_has_the_pages_that_the_file_lacks(tmp_path: Path) -> None:
    """As while another process folds its log into the file: the first page comes first."""
    db, copy = tmp_path / "c.db", tmp_path / "copy.db"
    short, log, complete = before_and_after_a_checkpoint(db)
    assert len(short) < len(complete)
    copy.write_bytes(complete[:PAGE] + short[PAGE:])
    Path(f"{copy}-wal").write_bytes(log)
    assert_sound(copy)
    assert copy.read_bytes()[:PAGE] == complete[:PAGE]


def test_a_log_without_the_last_commit_is_not_enough(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    short, log, complete = before_and_after_a_checkpoint(db)
    db.write_bytes(complete[:PAGE] + short[PAGE:])
    Path(f"{db}-wal").write_bytes(log[: -PAGE // 2])
    with pytest.raises(CorpusCorrupt, match=r"\[corpus_cut_off\]"):
        open_reader(db)
