"""Row 12: a single flipped bit, anywhere in the file."""

import random
from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.policy.access import deny_matcher, set_policy
from rolebundle.storage import store
from rolebundle.storage.check import find_problems
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.corpora import FLAGGED, NOW, QUARANTINED, build, document, embed, file_of
from support.damaged_files import put
from support.fake_embedder import HashingProvider
from support.rich_corpus import RICH_POLICY, rich_document

PAGE = 1024


def filled_corpus(folder: Path) -> Path:
    """A corpus with everything that a corpus can have, in pages of 1 KiB and without a log."""
    documents = [
        rich_document(
            n,
            scanned={3: FLAGGED, 5: QUARANTINED}.get(n),
            scope="hr" if n % 6 == 0 else "shared",
            sensitivity="confidential" if n % 8 == 0 else "internal",
            updated_at="2026-01-01T00:00:00Z",
            supersedes=(f"d{n + 9}",) if n % 7 == 0 else (),
        )
        for n in range(24)
    ]
    path = build(folder, documents, HashingProvider(), name="filled.db", waiting=2)
    with open_writer(path) as corpus:
        set_policy(corpus, RICH_POLICY, "toml", "", "2026-01-01T00:00:00Z")
        with corpus.writing():
            # A vector that left with its chunk, and one deleted place in each table of vectors.
            shorter = document("d1", ["another text"], source_id="source-1")
            store.put_files(corpus, [(file_of("d1"), [shorter])], deny_matcher(corpus))
            embed(corpus, HashingProvider(), waiting=1)
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "delete")
    db.pragma("page_size", PAGE)
    db.execute("VACUUM")
    db.pragma("journal_mode", "wal")
    db.close()
    return path


def stored_rows(path: Path) -> object:
    """All rows of all tables, as SQLite alone reads them; an error if it cannot.

    Of a full-text index: what it says of each word. Its pages also have words of deleted passages,
    which no search reads. Left out is ``sqlite_sequence``, which numbers the next block of vectors.
    """
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        schema = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
        indexes = [name for _, name, _, sql in schema if "USING fts5" in str(sql)]
        pages = {f"{name}_{kind}" for name in indexes for kind in ("data", "idx")}
        pages.add("sqlite_sequence")
        tables = [
            name
            for kind, name, _, sql in schema
            if kind == "table" and name not in pages and not str(sql).startswith("CREATE VIRTUAL")
        ]
        for name in indexes:
            db.execute(
                f"CREATE VIRTUAL TABLE temp.{name}_words USING fts5vocab(main, {name}, instance)"
            )
        return schema, {
            name: sorted(repr(row) for row in db.execute(f'SELECT * FROM "{name}"'))
            for name in (*tables, *(f"{name}_words" for name in indexes))
        }
    except (apsw.Error, UnicodeDecodeError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        db.close()


def flipped(image: bytes, bit: int) -> bytes:
    """The file with one bit flipped."""
    data = bytearray(image)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def sample_of_bits(image: bytes, count: int, seed: int) -> list[int]:
    """Bits of the file, the same for the same seed.

    Half of them are of the whole file, half of places with content.
    """
    chance = random.Random(seed)
    places = [at for at in range(len(image)) if any(image[max(0, at - 4) : at + 5])]
    bits = [chance.randrange(len(image) * 8) for _ in range(count // 2)]
    return bits + [
        8 * chance.choice(places) + chance.randrange(8) for _ in range(count - len(bits))
    ]


def problems_of(path: Path) -> list[str]:
    """The codes of what the check finds in a file, or of what refuses it."""
    try:
        with open_writer(path, verify=False) as corpus:
            return [problem.code for problem in find_problems(corpus, deny_matcher(corpus))]
    except RolebundleError as error:
        return [error.code]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a filled corpus, nothing left in its log."""
    path = filled_corpus(tmp_path_factory.mktemp("flipped"))
    assert problems_of(path) == []
    return path.read_bytes()


@rounds(5, 1000)
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


# -- what is shown -------------------------------------------------------------------------------

TASKS = ("token rotation audit", "the threat model of the kernel release")


def all_answers(path: Path) -> list[object]:
    """What an agent is shown by several requests: answers and documents, or codes of errors."""
    with Engine(Workspace(path, HashingProvider())) as engine:
        requests = [RetrievalRequest(task=task, agent="reader", now=NOW) for task in TASKS]
        answers: list[object] = [engine.retrieve(asked).without_timings() for asked in requests]
        for number in range(24):
            try:
                answers.append(engine.get(f"d{number}", "reader"))
            except RolebundleError as error:
                answers.append(error.code)
        return answers


def test_damage_in_what_an_agent_may_not_see_changes_no_answer(
    image: bytes, tmp_path: Path
) -> None:
    """Law 9: a document behind a deny pattern, one in quarantine, and their indexes."""
    path = tmp_path / "c.db"
    put(path, image)
    sound = all_answers(path)
    db = apsw.Connection(str(path))
    places = "SELECT compartment FROM document WHERE document_id IN ('d5', 'd7')"
    hidden = [number for (number,) in db.execute(places)]
    assert len(set(hidden)) == 2
    for number in hidden:
        db.execute(
            "UPDATE chunk SET content = 'token rotation forged' WHERE document IN "
            "(SELECT id FROM document WHERE compartment = ?)",
            (number,),
        )
        db.execute(f"INSERT INTO lexical_{number} (lexical_{number}) VALUES ('delete-all')")
        db.execute("UPDATE embedded SET vector = x'00' WHERE compartment = ?", (number,))
    db.close()
    assert {"content_damaged", "lexical_drift", "vectors_damaged"} <= set(problems_of(path))
    assert all_answers(path) == sound
