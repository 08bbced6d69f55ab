"""Rows 12 and 13: damage that SQLite does not see is found, shown to nobody, and mended."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rolebundle.doctor import repair
from rolebundle.ingest import sync
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.bundles import without_semantic_state
from support.commands import invoke
from support.corpora import ask, resolved
from support.damaged_files import codes_of, commands, run_without_change, tamper
from support.fake_embedder import HashingProvider
from support.sound import assert_sound, contents


@contextmanager
def mended(db: Path, tree: Path) -> Iterator[None]:
    """A block that damages indexes; after it, a repair and an ingest make them as they were."""
    expected = contents(db)
    yield
    damage = codes_of(db)
    report = repair(db)
    assert report.repaired
    assert {problem.code for problem in report.problems} == damage
    with open_writer(db) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert contents(db) == expected
    assert_sound(db)


def flip_bits_of_a_vector(corpus_file: Path) -> None:
    with open_reader(corpus_file) as corpus:
        vector = corpus.value("SELECT vector FROM embedded WHERE chunk = 5")
    data = bytearray(corpus_file.read_bytes())
    [at] = [at for at in range(len(data)) if data.startswith(vector, at)]
    for bit in range(0, len(vector) * 8, 37):
        flipped = bytearray(data)
        flipped[at + bit // 8] ^= 1 << bit % 8
        corpus_file.write_bytes(flipped)
        assert codes_of(corpus_file) == {"vectors_damaged"}, bit


def test_a_flipped_bit_in_a_vector_is_found_and_mended(corpus_file: Path, tree: Path) -> None:
    with mended(corpus_file, tree):
        flip_bits_of_a_vector(corpus_file)


_BUT_ONE_FLOAT = "substr(vector, 1, length(vector) - 4)"
MISSHAPEN = (
    "UPDATE embedded SET vector = x'00' WHERE chunk = 3",
    "UPDATE embedded SET vector = x'' WHERE chunk % 2",
    "UPDATE embedded SET vector = CAST(vector || x'00000000' AS BLOB)",
    f"UPDATE embedded SET vector = CAST({_BUT_ONE_FLOAT} || x'0000C07F' AS BLOB) WHERE chunk = 3",  # NaN
    f"UPDATE embedded SET vector = CAST({_BUT_ONE_FLOAT} || x'0000807F' AS BLOB) WHERE chunk = 3",  # infinite
    f"UPDATE embedded SET vector = CAST({_BUT_ONE_FLOAT} || x'FFFF7FFF' AS BLOB) WHERE chunk = 3",  # -3.4e38
)


@pytest.mark.sample(6)
@pytest.mark.parametrize("statement", MISSHAPEN)
def test_a_misshapen_vector_is_reported_and_mended(
    corpus_file: Path, tree: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 6, also if the vectors are in memory, as from the second answer on."""
    monkeypatch.setattr(Corpus, "min_vectors_in_memory", 1)
    with mended(corpus_file, tree):
        tamper(corpus_file, statement)
        assert codes_of(corpus_file) == {"vectors_damaged"}
        with open_reader(corpus_file) as corpus:
            bundles = [
                ask(corpus, None, provider, task="token rotation")
                for provider in (None, HashingProvider(), HashingProvider())
            ]
            first = bundles[1].selected[0].chunk_id
            why = explain(corpus, resolved(), first, ReferenceRules(), HashingProvider())
        assert (why.outcome, why.rank) == ("selected", 1)
    words_only, *degraded = map(without_semantic_state, bundles)
    assert degraded == [words_only, words_only]
    for bundle in bundles[1:]:
        [message] = [w.message for w in bundle.warnings if w.code == "SEMANTIC_LANE_DEGRADED"]
        assert "a vector is not what was stored" in message
        assert "rolebundle corpus doctor" in message


DRIFT: dict[str, tuple[str, set[str]]] = {
    "an emptied index": (
        "INSERT INTO lexical_1 (lexical_1) VALUES ('delete-all')",
        {"lexical_drift"},
    ),
    "a chunk taken out of the index": (
        "INSERT INTO lexical_1 (lexical_1, rowid, title, headings, content, tags, hints) "
        "SELECT 'delete', id, title, headings, content, tags, hints FROM chunk WHERE id = 4",
        {"lexical_drift"},
    ),
    "an entry too many": (
        "INSERT INTO lexical_1 (rowid, title, headings, content, tags, hints) "
        "VALUES (9999, 'a', 'b', 'c', 'd', 'e')",
        {"lexical_drift"},
    ),
    "a vector lost": ("DELETE FROM embedded WHERE chunk = 2", {"vectors_miscounted"}),
    "a vector in another compartment": (
        "UPDATE embedded SET compartment = compartment + 1 WHERE chunk = 2",
        {"vectors_miscounted", "vectors_damaged"},
    ),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", DRIFT)
def test_drift_is_found_and_mended(corpus_file: Path, tree: Path, case: str) -> None:
    statement, expected_codes = DRIFT[case]
    with mended(corpus_file, tree):
        tamper(corpus_file, statement)
        assert codes_of(corpus_file) == expected_codes


COUNTS = {
    "UPDATE embedding_share SET vectors = vectors + 1": {"vectors_miscounted", "seal_broken"},
    "UPDATE corpus_state SET documents = 1, chunks = 2": {"miscounted", "seal_broken"},
}


@pytest.mark.parametrize("statement", COUNTS)
def test_wrong_counts_are_found(corpus_file: Path, statement: str) -> None:
    tamper(corpus_file, statement)
    assert codes_of(corpus_file) == COUNTS[statement]


# -- damage that a reader notices ----------------------------------------------------------------


EMPTIED = {
    "all": "INSERT INTO lexical_1 (lexical_1) VALUES ('delete-all')",
    "its records": "DELETE FROM lexical_1_data WHERE id <= 10",
    "its sizes": "DELETE FROM lexical_1_docsize",
    "the chunks": "PRAGMA foreign_keys = OFF; DELETE FROM chunk",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", EMPTIED)
def test_an_emptied_index_is_an_error_and_no_empty_answer(corpus_file: Path, case: str) -> None:
    tamper(corpus_file, EMPTIED[case])
    outcome = invoke("retrieve", "token rotation", "--lexical-only", "--db", corpus_file)
    assert outcome.code == 7, outcome.out
    assert "rolebundle corpus doctor" in outcome.err


@pytest.mark.parametrize(
    "statement", ["DELETE FROM embedded", "DELETE FROM embedded WHERE chunk > 20"]
)
def test_an_emptied_embedding_index_is_a_warning(corpus_file: Path, statement: str) -> None:
    tamper(corpus_file, statement)
    with open_reader(corpus_file) as corpus:
        bundle = ask(corpus, None, HashingProvider(), task="token rotation")
    assert bundle.selected
    [warning] = [warning for warning in bundle.warnings if warning.code == "SEMANTIC_LANE_DEGRADED"]
    assert "the embedding index is damaged" in warning.message
    assert "rolebundle corpus doctor" in warning.message


ALTERED = {
    "a text": "UPDATE chunk SET content = 'token rotation forged' WHERE id = 3",
    "a heading": "UPDATE chunk SET headings = '[\"forged\"]' WHERE id = 3",
    "a line": "UPDATE chunk SET end_line = 77 WHERE id = 3",
    "a tier": "UPDATE document SET trust_tier = 'authoritative' WHERE id = 3",
    "a path": "UPDATE file SET path = 'forged.md' WHERE id = 3",
    "a scope": "UPDATE document SET scope = 'forged' WHERE id = 3",
    "a source": "INSERT INTO source VALUES (9, 'x'); UPDATE document SET source = 9 WHERE id = 3",
    "a finding": "INSERT INTO scanned VALUES (3, 'label', 'x', '[\"forged\"]', '[]', '', x'00')",
    "a claim": "INSERT INTO supersession (newer, superseded) VALUES (3, 'forged')",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", ALTERED)
def test_an_altered_passage_is_not_shown(corpus_file: Path, case: str) -> None:
    with open_reader(corpus_file) as corpus:
        chunk_id, document_id = corpus.rows(
            "SELECT chunk_id, document_id FROM chunk c JOIN document d ON d.id = document "
            "WHERE c.id = 3 AND d.id = 3"
        )[0]
    tamper(corpus_file, ALTERED[case])
    for command in (
        ("get", chunk_id),
        ("get", document_id),
        ("why", chunk_id, "token rotation", "--lexical-only"),
        ("retrieve", "token rotation naïve", "--lexical-only", "--limit", "50"),
    ):
        outcome = invoke(*command, "--db", corpus_file)
        assert outcome.code == 7, (command, outcome)
        assert "[damaged_passage]" in outcome.err
        assert chunk_id in outcome.err or document_id in outcome.err
        assert "rolebundle corpus doctor" in outcome.err
        assert outcome.out == ""


def test_a_broken_seal_refuses_readers_and_writers_and_not_the_check(
    corpus_file: Path, tree: Path
) -> None:
    tamper(corpus_file, "UPDATE compartment SET scope = 'forged'")
    for command in commands(tree):
        outcome = run_without_change(corpus_file, corpus_file.read_bytes(), command)
        assert outcome.code == 7
        assert "[seal_broken]" in outcome.err
        assert "rolebundle corpus doctor" in outcome.err
    assert codes_of(corpus_file) == {"seal_broken", "misplaced"}


# -- what a repair leaves alone --------------------------------------------------------------------

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
