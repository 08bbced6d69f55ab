"""Synchronization: unchanged files and chunks are neither written nor embedded again."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.ingest import IngestReport
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest import prepare, sync, workers
from rolebundle.ingest.readers.markdown import READERS
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.compartments import search_everywhere
from support.fake_embedder import CountingProvider
from support.sound import assert_sound, contents
from support.source_tree import Tree, write_files


class World(Tree):
    """Notes, and a corpus beside them that is sound after each run."""

    name = "notes"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.provider: CountingProvider = CountingProvider()

    def ingest(self, *paths: Path, **options: Any) -> IngestReport:
        report = super().ingest(*paths, **options)
        assert_sound(self.db)
        return report

    def hits(self, query: str) -> int:
        with open_reader(self.db) as corpus:
            return len(search_everywhere(corpus, query))

    def paths(self) -> set[str]:
        return {path for (path,) in self.rows("SELECT path FROM file")}


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    for number in range(6):
        world.write(f"n{number}.md", sections(number))
    return world


def sections(number: int, second: str = "") -> str:
    parts = [f"## Part {n}\n\n{f'Note {number} part {n}. ' * 50}" for n in range(3)]
    if second:
        parts[1] = f"## Part 1\n\n{second * 50}"
    return f"# Note {number}\n\n" + "\n\n".join(parts) + "\n"


def counted(report: IngestReport) -> tuple[int, int, int, int]:
    return (report.added, report.updated, report.unchanged, report.removed)


CHUNKS = "SELECT chunk_id, id, content FROM chunk ORDER BY chunk_id"
VECTORS = "SELECT chunk, input_hash, vector_hash FROM embedded ORDER BY chunk"


def test_segments_of_many_commits_are_merged(world, monkeypatch):
    monkeypatch.setattr(sync, "_FILES_PER_BATCH", 1)
    for number in range(40):
        world.write(f"many/{number}.md", f"# {number}\n\nText {number}.\n")
    world.ingest()
    ((segments,),) = world.rows("SELECT count(DISTINCT segid) FROM lexical_1_idx")
    assert segments == 1
    assert world.hits('"text"') == 40


# -- unchanged, changed, deleted, moved ---------------------------------------------------------


def test_a_second_run_writes_nothing(world):
    assert counted(world.ingest()) == (6, 0, 0, 0)
    embedded = world.provider.embedded
    before = world.db.read_bytes()
    for _ in range(2):
        report = world.ingest()
        assert counted(report) == (0, 0, 6, 0)
        assert report.embedded == 0
    assert world.db.read_bytes() == before
    assert world.provider.embedded == embedded


def test_one_paragraph_changes_one_chunk(world):
    world.ingest()
    chunks, vectors = dict_of(world.rows(CHUNKS)), world.rows(VECTORS)
    generation = world.rows("SELECT generation FROM corpus_state")
    embedded = world.provider.embedded
    world.write("n3.md", sections(3, second="An edited text. "))
    report = world.ingest()
    assert counted(report) == (0, 1, 5, 0)
    after = dict_of(world.rows(CHUNKS))
    removed, added = chunks.keys() - after.keys(), after.keys() - chunks.keys()
    assert len(removed) == len(added) == 1
    assert all("An edited text." in after[name][1] for name in added)
    for name in chunks.keys() & after.keys():
        assert after[name] == chunks[name], "its row stays"
    changed = {chunks[name][0] for name in removed} | {after[name][0] for name in added}
    assert [row for row in vectors if row[0] not in changed] == [
        row for row in world.rows(VECTORS) if row[0] not in changed
    ]
    assert world.provider.embedded == embedded + 1 == embedded + report.embedded
    assert world.rows("SELECT generation FROM corpus_state") > generation


def dict_of(rows: Any) -> dict[str, tuple[int, str]]:
    return {name: (rowid, content) for name, rowid, content in rows}


def test_new_metadata_alone_needs_no_embedding(world):
    world.ingest()
    chunks, embedded = world.rows(CHUNKS), world.provider.embedded
    declared = "[defaults]\ntrust_tier = 'authoritative'\nauthors = 'Lee; Kim'\n"
    world.write("rolebundle.toml", declared)
    assert counted(world.ingest()) == (0, 6, 0, 0)
    assert world.rows("SELECT DISTINCT trust_tier, retrieval_hints FROM document") == [
        ("authoritative", '["Lee", "Kim"]')
    ]
    assert world.rows(CHUNKS) == chunks
    assert world.provider.embedded == embedded
    assert world.hits("hints:kim") == len(chunks)


def test_new_tags_are_embedded(world):
    """They stand in the text that a vector is of."""
    world.ingest()
    chunks, embedded = world.rows(CHUNKS), world.provider.embedded
    world.write("rolebundle.toml", "[defaults]\ntags = ['x']\n")
    assert counted(world.ingest()) == (0, 6, 0, 0)
    assert world.rows(CHUNKS) == chunks
    assert world.provider.embedded == embedded + len(chunks)
    assert world.hits("tags:x") == len(chunks)


def test_a_deleted_folder_is_removed(world):
    for name in ("deep/a.md", "deep/er/b.md", "deep-not/c.md"):
        world.write(name, "A note.\n")
    world.ingest()
    shutil.rmtree(world.root / "deep")
    assert counted(world.ingest()) == (0, 0, 7, 2)
    assert "deep-not/c.md" in world.paths()


def test_documents_from_elsewhere_stay(world, tmp_path):
    """A run knows of its own paths only; a name that only begins alike is another folder."""
    world.ingest()
    other_folder = write_files(tmp_path / "notes-2", {"x.md": "Other.\n"})
    assert counted(world.ingest(other_folder)) == (1, 0, 0, 0)
    (world.root / "n0.md").unlink()
    assert counted(world.ingest(other_folder)) == (0, 0, 1, 0)
    assert counted(world.ingest(world.root / "n1.md")) == (0, 0, 1, 0)
    assert len(world.paths()) == 7
    assert counted(world.ingest(world.root, other_folder)) == (0, 0, 6, 1)


@pytest.mark.parametrize("to", ["a.md", "z.md"])
def test_a_moved_file_with_a_declared_id(world, to):
    path = world.write("m.md", "---\ndocument_id: mine\n---\n\nText.\n")
    world.ingest()
    path.rename(world.root / to)
    report = world.ingest()
    assert counted(report) == (1, 0, 6, 1)
    assert report.skipped == []
    sql = "SELECT f.path FROM document d JOIN file f ON f.id = d.file WHERE document_id = 'mine'"
    assert world.rows(sql) == [(to,)]


# -- refused and unreadable -----------------------------------------------------------------------


def test_the_former_version_of_a_rejected_file_is_removed(world):
    """A typing error in `trust_tier` must not leave yesterday's higher trust in force."""
    world.write("t.md", "---\ntrust_tier: authoritative\n---\n\nTrusted.\n")
    world.ingest()
    world.write("t.md", "---\ntrust_tier: untrsted\n---\n\nTrusted.\n")
    report = world.ingest()
    assert counted(report) == (0, 0, 6, 1)
    assert [skip.code for skip in report.refused()] == ["bad_metadata"]
    tiers = "'authoritative', 'preferred', 'general', 'untrusted'"
    assert f"must be one of {tiers}" in report.refused()[0].message
    assert world.rows("SELECT 1 FROM chunk WHERE content LIKE '%Trusted%'") == []
    world.write("t.md", "---\ntrust_tier: untrusted\n---\n\nTrusted.\n")
    assert counted(world.ingest()) == (1, 0, 6, 0)


@pytest.mark.parametrize("code", ["binary", "too_large"])
def test_a_file_that_can_no_longer_be_read_as_text_is_removed(world, code):
    world.ingest()
    (world.root / "n1.md").write_bytes(bytes(range(256)) * 12)
    report = world.ingest(size_cap=2500 if code == "too_large" else 10**6)
    assert "n1.md" not in world.paths()
    assert [skip.code for skip in report.skipped if skip.path == "n1.md"] == [code]


def test_a_page_in_its_own_encoding_is_not_binary(world):
    words = "同期の競合を解決する手順" * 20
    page = f'<html><head><meta charset="shift_jis"></head><body><p>{words}</p></body></html>'
    (world.root / "sync.html").write_bytes(page.encode("shift_jis"))
    (world.root / "old.txt").write_bytes(words.encode("shift_jis"))
    report = world.ingest()
    assert world.rows("SELECT content FROM chunk WHERE title = 'sync'") == [(words,)]
    assert [(skip.path, skip.code) for skip in report.skipped] == [("old.txt", "undecodable")]


def test_an_unreadable_file_stays(world, monkeypatch):
    world.ingest()
    before = world.db.read_bytes()

    real = os.open

    def refusing(path, *arguments, **more):
        if str(path).endswith("n1.md"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    report = world.ingest()
    assert counted(report) == (0, 0, 5, 0)
    assert [(skip.path, skip.code) for skip in report.skipped] == [("n1.md", "unreadable")]
    monkeypatch.undo()
    assert world.db.read_bytes() == before


@pytest.mark.parametrize("step", ["read", "chunk"])
def test_a_defect_that_one_file_meets_skips_that_file_only(world, monkeypatch, step):
    def failing(real, is_bad):
        def call(*arguments):
            if is_bad(*arguments):
                raise ValueError("All strings must be\nXML compatible")
            return real(*arguments)

        return call

    if step == "read":
        version, read = READERS["markdown"]
        bad = failing(read, lambda _data, path, _separator: path == "n1.md")
        monkeypatch.setattr(prepare, "reader_named", lambda *_: (version, bad))
    else:
        bad = failing(prepare.chunk_document, lambda document_id, *_: "n1" in document_id)
        monkeypatch.setattr(prepare, "chunk_document", bad)
    report = world.ingest()
    assert counted(report) == (5, 0, 0, 0)
    [skip] = report.skipped
    assert (skip.path, skip.code) == ("n1.md", "reader_failed")
    assert skip.message.endswith("(ValueError: All strings must be XML compatible)")


# -- ids ------------------------------------------------------------------------------------------


def test_two_documents_with_the_same_id(world):
    world.write("a.md", "---\ndocument_id: same\n---\n\nThe first.\n")
    world.write("b.md", "---\ndocument_id: same\n---\n\nThe second.\n")
    report = world.ingest()
    assert counted(report) == (7, 0, 0, 0)
    [refused] = report.refused()
    assert (refused.path, refused.code) == ("b.md", "duplicate_document_id")
    assert f"taken by {world.root / 'a.md'};" in refused.message
    assert world.rows("SELECT 1 FROM chunk WHERE content LIKE '%second%'") == []
    (world.root / "a.md").unlink()
    assert counted(world.ingest()) == (1, 0, 6, 1)


def test_a_file_without_text_is_noted_unless_it_is_empty(world):
    world.write("app.html", "<html><body><script>draw()</script></body></html>")
    world.write("empty.md", "")
    world.write("text.md", "Some text.\n")
    report = world.ingest()
    assert [(note.path, note.message) for note in report.notes] == [("app.html", "it has no text")]
    assert report.skipped == []


# -- settings and errors ---------------------------------------------------------------------------


def test_errors_stop_the_run_before_the_first_write(world, tmp_path):
    with open_writer(world.db) as corpus:
        assert corpus.value("SELECT count(*) FROM embedding_index") == 0
    before = world.db.read_bytes()
    bad = write_files(tmp_path / "bad", {"rolebundle.toml": "[defualts]\n"})
    for path, error in ((tmp_path / "none", UsageError), (bad, ConfigurationError)):
        with pytest.raises(error):
            world.ingest(world.root, path)
        assert world.db.read_bytes() == before, "not even the first path was stored"
    with pytest.raises(ConfigurationError, match="command line: unknown key 'titel'"):
        world.ingest(flags={"titel": "x"})
    assert world.db.read_bytes() == before


def test_workers_create_the_same_corpus(world, tmp_path, monkeypatch):
    for number in range(80):
        world.write(f"many/{number}.md", f"# {number}\n\nText {number}.\n")
    world.write("many/bad.md", "---\ntrust_teir: x\n---\n")
    world.write("rolebundle.toml", "[[rule]]\nglob = 'many/**'\ntags = ['many']\n")
    alone = world.ingest()
    expected = contents(world.db)
    world.db = tmp_path / "2.db"
    # Real processes: those of other tests are forked from one that has imported everything.
    monkeypatch.setattr(workers, "_python", lambda: (sys.executable, "-c"))
    together = world.ingest(workers=2)
    assert counted(together) == counted(alone)
    assert [skip.code for skip in together.skipped] == ["bad_metadata"]
    assert contents(world.db) == expected


def test_sources_without_documents_are_removed(world):
    path = world.write("s.md", "---\nsource_id: brief\n---\n\nText.\n")
    world.ingest()
    assert ("brief",) in world.rows("SELECT source_id FROM source")
    path.unlink()
    world.ingest()
    assert world.rows("SELECT source_id FROM source") == [("notes",)]
