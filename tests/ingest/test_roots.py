"""Roots, files that are not read, and synchronization."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.office.parts import zipped
from rolebundle.contracts.ingest import IngestReport, Root
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest import prepare, sync, workers
from rolebundle.ingest import roots as ingested_roots
from rolebundle.ingest.readers import FORMATS, KINDS, reader_name_for
from rolebundle.ingest.readers.markdown import READERS
from rolebundle.ingest.roots import Plan, holder_of
from rolebundle.storage import roots
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.compartments import search_everywhere
from support.corpora import scratch_folder
from support.fake_embedder import (
    HashingProvider,
)
from support.sound import assert_sound, contents
from support.source_tree import Tree, write_files


@dataclass
class CountingProvider(HashingProvider):
    """Count the passages that were embedded."""

    embedded: int = 0

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += len(texts)
        return super().embed_passages(texts)


# -- Roots: what was ingested and how is remembered, and no name, move or order changes an id ------


class World(Tree):
    """Folders, a corpus beside them, and a model that counts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.provider: CountingProvider = CountingProvider()

    def write(self, name: str, text: str | None = None) -> Path:
        return super().write(name, f"# {name}\n\nA note on {name}.\n" if text is None else text)

    def run(self, *names: str, **options: Any) -> IngestReport:
        return self.ingest(*(self.root / name for name in names), **options)

    def update(self) -> IngestReport:
        with open_writer(self.db) as corpus:
            return sync.update(corpus, self.provider)

    def roots(self) -> dict[str, Root]:
        with open_reader(self.db) as corpus:
            known = roots.load(corpus)
        return {os.path.relpath(root.location, self.root): root for root in known}

    def hits(self, query: str) -> int:
        with open_reader(self.db) as corpus:
            return len(search_everywhere(corpus, query))

    def paths(self) -> set[str]:
        return {path for (path,) in self.rows("SELECT path FROM file")}

    def ids(self) -> list[str]:
        return [name for (name,) in self.rows("SELECT document_id FROM document ORDER BY 1")]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    assert_sound(world.db)


def counted(report: IngestReport) -> tuple[int, int, int, int]:
    return (report.added, report.updated, report.unchanged, report.removed)


# -- names -----------------------------------------------------------------------------------------


def planned_for(start: Path, roots: Sequence[Root] = (), used: Iterable[str] = ()) -> Plan:
    plan = Plan({root.location: root for root in roots}, {}, lambda _: set(used))
    plan.add(start)
    return plan


TAKEN = {"files", "usr", "usr-2"}


@pytest.mark.parametrize(("start", "used", "source"), [
    ("/", TAKEN, "files-2"), ("/usr", TAKEN, "usr-3"), ("/", (), "files"),
])  # fmt: skip
def test_a_source_is_numbered_if_no_parent_has_another_name(start, used, source):
    """As the root of the file system, and a folder in it whose name is taken."""
    [root] = planned_for(Path(start), used=used).roots
    assert root.source_id == source


def test_a_document_cannot_take_the_name_of_a_folder(world):
    """What a document declares does not decide how the source of another folder is called."""
    world.write("loot/a.md", "---\nsource_id: docs\n---\n\nMine.\n")
    world.run("loot")
    world.write("docs/b.md")
    world.run("docs")
    assert "docs/b.md" in world.ids()


# -- parts of a root -------------------------------------------------------------------------------


def test_a_part_of_a_root_has_the_same_ids(world):
    world.write("docs/guide/a.md")
    world.write("docs/b.md")
    world.run("docs")
    before = contents(world.db)
    assert counted(world.run("docs/guide")) == (0, 0, 1, 0)
    assert counted(world.run("docs/guide/a.md", "docs/b.md")) == (0, 0, 2, 0)
    assert contents(world.db) == before
    assert list(world.roots()) == ["docs"]


def test_a_file_first_and_its_folder_later(world):
    world.write("docs/a.md")
    world.write("docs/b.md")
    world.run("docs/a.md")
    assert world.ids() == ["docs/a.md"]
    assert counted(world.run("docs")) == (1, 0, 1, 0)
    assert list(world.roots()) == ["docs"], "the folder covers the file"


def test_a_folder_first_and_the_one_above_later(world):
    world.write("all/guide/a.md")
    world.write("all/b.md")
    world.run("all/guide")
    assert counted(world.run("all")) == (1, 0, 1, 0)
    assert world.ids() == ["all/b.md", "guide/a.md"], "a root keeps its ids"
    (world.root / "all/guide/a.md").unlink()
    assert counted(world.run("all")) == (0, 0, 1, 1)


def test_a_part_with_other_options_keeps_them(world):
    world.write("docs/log.txt", "== one\n\nFirst.\n\n== two\n\nSecond.\n")
    world.write("docs/b.md")
    world.run("docs")
    assert world.ids() == ["docs/b.md", "docs/log.txt"]
    world.run("docs/log.txt", flags={"domain": "ops"})
    for report in (world.run("docs"), world.update()):
        assert counted(report) == (0, 0, 2, 0)
    assert world.ids() == ["docs/b.md", "docs/log.txt"]
    assert world.roots()["docs/log.txt"].options.meta == {"domain": "ops"}


def test_a_path_through_a_link_is_the_same_root(world):
    world.write("real/docs/a.md")
    (world.root / "link").symlink_to(world.root / "real")
    world.run("real/docs")
    assert counted(world.run("link/docs")) == (0, 0, 1, 0)
    assert counted(world.run("link/docs/a.md")) == (0, 0, 1, 0)
    assert list(world.roots()) == ["real/docs"]


def test_a_named_link_is_refused_with_its_target(world):
    world.write("real/a.md")
    link = world.root / "link"
    link.symlink_to("real")
    for command in (("ingest", link), ("ingest", f"{link}/"), ("init", link, "--dry-run")):
        refused = invoke(*command, "--db", world.db)
        assert refused.code == 2, command
        assert "[path_is_link]" in refused.err
        assert f"next: name what it leads to: {world.root / 'real'}\n" in refused.err
    assert list(world.roots()) == []


def test_a_root_that_became_a_link_keeps_its_documents(world):
    world.write("notes/a.md")
    world.run("notes")
    notes, synced = world.root / "notes", world.root / "synced"
    notes.rename(synced)
    notes.symlink_to("synced")
    updated = invoke("ingest", "--lexical-only", "--db", world.db)
    assert updated.code == 2
    assert "is a symbolic link now, which is not followed" in updated.err
    assert world.ids() == ["notes/a.md"]
    with open_writer(world.db) as corpus:
        ingested_roots.move_root(corpus, notes, synced)
    assert counted(world.update()) == (0, 0, 1, 0)
    assert (world.ids(), list(world.roots())) == (["notes/a.md"], ["synced"])


PLACES = ("a", "a/b", "a/b/c", "a/d", "e")


@given(st.lists(st.sampled_from(PLACES), min_size=1, max_size=6))
def test_a_root_never_changes_its_source(tmp_path_factory, starts):
    """Whatever is ingested later, and every path belongs to one root."""
    folder = tmp_path_factory.mktemp("roots")
    for place in PLACES:
        (folder / place).mkdir()
    known: list[Root] = []
    sources: dict[str, str] = {}
    for start in starts:
        planned = planned_for(folder / start, known)
        known = planned.roots
        for root in known:
            assert sources.setdefault(root.location, root.source_id) == root.source_id
        assert len({root.source_id for root in known}) == len(known)
        assert all(holder_of(known, location) for location in planned.starts)


# -- options ---------------------------------------------------------------------------------------


def test_every_option_of_a_root_is_remembered(world):
    world.write("n/a.md")
    arguments = (
        "--chunk-size", "500", "--max-size", "9000",
        "--secrets", "off", "--meta", "tags=a,b", "--lexical-only",
    )  # fmt: skip
    assert invoke("ingest", world.root / "n", *arguments, "--db", world.db).code == 0
    listed = invoke("corpus", "roots", "list", "--json", "--db", world.db).json()["roots"]
    assert [root["options"] for root in listed] == [{
        "meta": {"tags": ["a", "b"]}, "chunking": {"size": 500, "maximum": 750}, "max_size": 9000,
        "ignore": True, "lexical_only": True, "scan": {"secrets": "off"},
    }]  # fmt: skip
    updated = invoke("ingest", "--json", "--db", world.db).json()
    assert (updated["unchanged"], updated["embedded"]) == (1, 0)
    world.run("n", flags={"tags": None})
    assert world.roots()["n"].options.meta == {}


# -- update ----------------------------------------------------------------------------------------


def test_update_synchronizes_all_roots(world):
    for name in ("a/docs/x.md", "b/docs/x.md", "c.md"):
        world.write(name)
    world.run("a/docs", "b/docs", "c.md")
    world.write("a/docs/new.md")
    (world.root / "b/docs/x.md").write_text("Changed.\n", encoding="utf-8")
    (world.root / "b/docs/y.md").write_text("Added.\n", encoding="utf-8")
    assert counted(world.update()) == (2, 1, 2, 0)
    before = world.db.read_bytes()
    assert counted(world.update()) == (0, 0, 5, 0)
    assert world.db.read_bytes() == before


@pytest.mark.parametrize("emptied", [False, True])
def test_update_keeps_what_is_missing(world, emptied):
    """An empty folder may be the place of a disk that is not mounted."""
    world.write("a/x.md")
    world.write("b/y.md")
    world.run("a", "b")
    shutil.rmtree(world.root / "a")
    if emptied:
        (world.root / "a").mkdir()
    world.write("b/z.md")
    report = world.update()
    assert counted(report) == (1, 0, 1, 0)
    assert [skip.code for skip in report.skipped] == ["root_missing"]
    assert "a/x.md" in world.ids()
    outcome = invoke("ingest", "--lexical-only", "--db", world.db)
    assert (outcome.code, "1 root missing" in outcome.err) == (2, True)


def test_a_missing_root_is_explained(world):
    world.write("a/x.md")
    world.run("a")
    shutil.rmtree(world.root / "a")
    missing = "this root is missing; the corpus keeps its 1 document"
    with pytest.raises(UsageError, match=missing) as caught:
        world.run("a")
    assert "rolebundle corpus roots move" in caught.value.hint
    with pytest.raises(UsageError, match="no such file"):
        world.run("a/x.md")


# -- moving and removing ---------------------------------------------------------------------------


def test_a_moved_root_keeps_everything(world):
    for name in ("x.md", "deep/y.md", "z.md"):
        world.write(f"a/docs/{name}", f"---\ntrust_tier: authoritative\n---\nText of {name}.\n")
    world.run("a/docs", flags={"trust_tier": "untrusted", "domain": "ops"})
    before, embedded = contents(world.db), world.provider.embedded
    (world.root / "elsewhere").mkdir()
    (world.root / "a/docs").rename(world.root / "elsewhere/manual")
    old, new = world.root / "a/docs", world.root / "elsewhere/manual"
    moved = invoke("corpus", "roots", "move", old, new, "--json", "--db", world.db)
    assert moved.json() == {"location": str(new), "documents": 3}
    assert counted(world.update()) == (0, 0, 3, 0)
    assert contents(world.db) == before
    assert world.rows("SELECT DISTINCT trust_tier FROM document") == [("untrusted",)]
    assert world.provider.embedded == embedded
    assert list(world.roots()) == ["elsewhere/manual"]


def test_a_new_path_is_never_taken_for_a_missing_root(world):
    """Flags may give the root authority, which other content must not get."""
    world.write("old/0.md")
    world.run("old", flags={"trust_tier": "authoritative"})
    (world.root / "old").rename(world.root / "new")
    assert world.run("new").refused() == []
    assert sorted(world.roots()) == ["new", "old"]
    sql = "SELECT DISTINCT trust_tier FROM document JOIN source ON source.id = source WHERE source_id = 'new'"
    assert world.rows(sql) == [("general",)]


def test_a_move_is_refused(world):
    world.write("a/x.md")
    world.write("b/y.md")
    world.run("a", "b")
    for old, new, message in (
        ("a", "b", "has documents from it already"),
        ("a", "none", "no such file or folder"),
        ("a/x.md", "b", "is a part of the root"),
        ("c", "b", "is no root"),
    ):
        with pytest.raises(UsageError, match=message), open_writer(world.db) as corpus:
            ingested_roots.move_root(corpus, world.root / old, world.root / new)
    assert sorted(world.roots()) == ["a", "b"]


def test_removing_a_root(world):
    world.write("a/x.md")
    world.write("a/b/y.md")
    world.write("a/.hidden/z.md")
    world.run("a/b")
    world.run("a", "a/.hidden")
    remove = ("corpus", "roots", "remove", world.root / "a", "--json", "--db", world.db)
    outcome = invoke(*remove)
    assert (outcome.code, outcome.json()["documents"]) == (2, 1)
    assert len(world.ids()) == 3
    shutil.rmtree(world.root / "a")
    outcome = invoke(*remove, "--yes")
    # With the part that shares its source.
    assert (outcome.code, outcome.json()["documents"]) == (0, 2)
    assert world.ids() == ["b/y.md"]


def test_a_purged_file_is_no_root(world):
    path = world.write("a/secret-name.md")
    world.write("b/y.md")
    world.run("a/secret-name.md", "b")
    purged = invoke("corpus", "purge", "secret-name.md", "--yes", "--db", world.db)
    assert purged.code == 0
    assert b"secret-name" not in world.db.read_bytes()
    assert path.exists()
    assert list(world.roots()) == ["b"]


# -- Why a file was skipped is a plain sentence: what is wrong with it, then what to do ------------


def archive(content: str) -> bytes:
    """An archive whose members have the names of those of documents, without a document."""
    names = "word/document.xml", "xl/workbook.xml", "ppt/presentation.xml", "content.xml"
    return zipped(dict.fromkeys(names if content else ["a.txt"], content))


BROKEN = {
    "bytes": bytes(range(128, 256)) * 5,
    "markup": b"<div>" * 300,
    "text": b'{"a": [1,\n}',
    "front_matter": b"---\ntrust_tier: [preferred\nx: : y\n---\nText.\n",
    "members": archive(""),
    "xml": archive("<a><b>"),
    "cut": archive("<a/>")[:-20],
}


def test_reasons_are_plain_sentences(tmp_path):
    for suffixes in FORMATS.values():
        for suffix in suffixes.split()[:1]:
            for name, data in BROKEN.items():
                (tmp_path / f"{name}{suffix}").write_bytes(data)
    db = tmp_path.with_suffix(".db")
    options = "--lexical-only", "--workers", "1"
    report = invoke("ingest", tmp_path, *options, "--db", db, "--json").json()
    entries = [*report["skipped"], *report["notes"]]
    assert len({entry["code"] for entry in entries}) > 12
    for entry in entries:
        plain, _, raw = entry["message"].partition(" (")
        assert not raw or raw.endswith(")"), entry
        assert not re.search(r"\w(Error|File)\b|codec|pdfium|libxml", plain), entry
        has_step = "; " in plain or entry["code"] in ("unsupported", "note")
        assert has_step, entry


@pytest.mark.parametrize(("names", "failed", "code"), [
    (["cut.pdf"], ["cut.pdf"], 10),
    (["a.png"], ["a.png"], 10),
    (["a.md", "lines.jsonl"], ["lines.jsonl"], 10),
    (["a.md"], [], 0),
    (["."], [], 0),
])  # fmt: skip
def test_a_named_file_that_is_not_ingested_is_a_failure(names, failed, code, tmp_path):
    """A folder with skipped files is none, and neither is an update of such a file."""
    files = {
        "a.md": b"# A\n\nText.\n",
        "a.png": b"\x89PNG\r\n\x1a\n" + bytes(99),
        "cut.pdf": b"%PDF-1.4\n",
        "lines.jsonl": b"{\nno line of it\n",
    }
    tree = write_files(tmp_path / "tree", files)
    db = tmp_path / "c.db"
    out = invoke("ingest", *(tree / name for name in names), "--lexical-only", "--db", db, "--json")
    assert out.code == code, out.err
    assert out.json()["failed"] == [str(tree / name) for name in failed]
    assert ("[not_ingested]" in out.err) == bool(failed)
    assert out.json()["documents"] == ("a.md" in names or names == ["."])
    assert invoke("ingest", "--db", db).code == 0


def test_a_named_folder_that_cannot_be_listed_is_a_failure(tmp_path, monkeypatch):
    error = PermissionError(13, "Permission denied")
    monkeypatch.setattr("rolebundle.ingest.walk.os.scandir", Mock(side_effect=error))
    out = invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path.with_suffix(".db"))
    assert out.code == 10
    assert "cannot be listed; check its permissions (Permission denied)" in out.err


# -- Files that are not read are named by their kind -----------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256))
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)

FILES = {
    "a.png": (PNG, "png: image"),
    "photo": (PNG, "image"),
    "letter.doc": (OLE, "doc: old Word format; save it as docx, or convert it with LibreOffice"),
    "sheet.XLS": (OLE, "xls: old Excel format; save it as xlsx"),
    "song.mp3": (b"ID3\xff\xfb" * 99, "mp3: audio"),
    "all.7z": (b"7z\xbc\xaf\x27\x1c\0", "7z: archive; unpack it"),
    "flat.fodt": (b"<?xml version='1.0'?>\n<office:document/>", "fodt: flat OpenDocument; save it"),
    "a.svg": (b"<?xml version='1.0'?>\n<svg><path d='M0 0'/></svg>", "svg: image"),
    "mail.pst": (b"!BDN" + bytes(99), "pst: Outlook mailbox; export it as mbox"),
    "program": (b"\x7fELF" + bytes(99), "program"),
    "long.mp4": (b"x" * 5000, "mp4: video"),
    "what": (bytes(99), "binary data, not text"),
}


def test_what_is_not_read_is_named():
    files = {name: data for name, (data, _) in FILES.items()}
    more = {"notes.doc": "A letter that is plain text.\n"}
    with scratch_folder() as folder:
        tree = write_files(folder / "tree", files | more)
        options = ("--lexical-only", "--max-size", "4000", "--db", folder / "c.db", "--json")
        report = invoke("ingest", tree, *options).json()
    messages = {skip["path"]: skip["message"] for skip in report["skipped"]}
    assert report["added"] == 1
    for name, (_, message) in FILES.items():
        assert messages[name].startswith(f"{name}: {message}")
    codes = {skip["path"]: skip["code"] for skip in report["skipped"]}
    assert {codes[name] for name in FILES} == {"unsupported", "binary"}
    assert codes["what"] == "binary"


def test_no_suffix_of_a_document_is_called_unsupported():
    suffixes = " ".join(KINDS.values()).split()
    read = {suffix for suffix in suffixes if reader_name_for(f"a.{suffix}")}
    assert read == {"dot"}  # text is Graphviz, and Word's old templates are not text


# -- Synchronization: unchanged files and chunks are neither written nor embedded again -------------


class Notes(World):
    """Six notes, and a corpus beside them that is sound after each run."""

    name = "notes"

    def ingest(self, *paths: Path, **options: Any) -> IngestReport:
        report = super().ingest(*paths, **options)
        assert_sound(self.db)
        return report


@pytest.fixture
def notes(tmp_path):
    notes = Notes(tmp_path)
    for number in range(6):
        notes.write(f"n{number}.md", sections(number))
    return notes


def sections(number: int, second: str = "") -> str:
    parts = [f"## Part {n}\n\n{f'Note {number} part {n}. ' * 50}" for n in range(3)]
    if second:
        parts[1] = f"## Part 1\n\n{second * 50}"
    return f"# Note {number}\n\n" + "\n\n".join(parts) + "\n"


CHUNKS = "SELECT chunk_id, id, content FROM chunk ORDER BY chunk_id"
VECTORS = "SELECT chunk, input_hash, vector_hash FROM embedded ORDER BY chunk"


def test_segments_of_many_commits_are_merged(notes, monkeypatch):
    monkeypatch.setattr(sync, "_FILES_PER_BATCH", 1)
    for number in range(40):
        notes.write(f"many/{number}.md", f"# {number}\n\nText {number}.\n")
    notes.ingest()
    ((segments,),) = notes.rows("SELECT count(DISTINCT segid) FROM lexical_1_idx")
    assert segments == 1
    assert notes.hits('"text"') == 40


# -- unchanged, changed, deleted, moved ---------------------------------------------------------


def test_a_second_run_writes_nothing(notes):
    assert counted(notes.ingest()) == (6, 0, 0, 0)
    embedded = notes.provider.embedded
    before = notes.db.read_bytes()
    for _ in range(2):
        report = notes.ingest()
        assert counted(report) == (0, 0, 6, 0)
        assert report.embedded == 0
    assert notes.db.read_bytes() == before
    assert notes.provider.embedded == embedded


def test_one_paragraph_changes_one_chunk(notes):
    notes.ingest()
    chunks, vectors = dict_of(notes.rows(CHUNKS)), notes.rows(VECTORS)
    generation = notes.rows("SELECT generation FROM corpus_state")
    embedded = notes.provider.embedded
    notes.write("n3.md", sections(3, second="An edited text. "))
    report = notes.ingest()
    assert counted(report) == (0, 1, 5, 0)
    after = dict_of(notes.rows(CHUNKS))
    removed, added = chunks.keys() - after.keys(), after.keys() - chunks.keys()
    assert len(removed) == len(added) == 1
    assert all("An edited text." in after[name][1] for name in added)
    for name in chunks.keys() & after.keys():
        assert after[name] == chunks[name], "its row stays"
    changed = {chunks[name][0] for name in removed} | {after[name][0] for name in added}
    before, now = (
        {r for r in rows if r[0] not in changed} for rows in (vectors, notes.rows(VECTORS))
    )
    assert before == now
    assert notes.provider.embedded == embedded + 1 == embedded + report.embedded
    assert notes.rows("SELECT generation FROM corpus_state") > generation


def dict_of(rows: Any) -> dict[str, tuple[int, str]]:
    return {name: (rowid, content) for name, rowid, content in rows}


def test_new_metadata_alone_needs_no_embedding(notes):
    notes.ingest()
    chunks, embedded = notes.rows(CHUNKS), notes.provider.embedded
    declared = "[defaults]\ntrust_tier = 'authoritative'\nauthors = 'Lee; Kim'\n"
    notes.write("rolebundle.toml", declared)
    assert counted(notes.ingest()) == (0, 6, 0, 0)
    rows = notes.rows("SELECT DISTINCT trust_tier, retrieval_hints FROM document")
    assert rows == [("authoritative", '["Lee", "Kim"]')]
    assert notes.rows(CHUNKS) == chunks
    assert notes.provider.embedded == embedded
    assert notes.hits("hints:kim") == len(chunks)


def test_new_tags_are_embedded(notes):
    """They stand in the text that a vector is of."""
    notes.ingest()
    chunks, embedded = notes.rows(CHUNKS), notes.provider.embedded
    notes.write("rolebundle.toml", "[defaults]\ntags = ['x']\n")
    assert counted(notes.ingest()) == (0, 6, 0, 0)
    assert notes.rows(CHUNKS) == chunks
    assert notes.provider.embedded == embedded + len(chunks)
    assert notes.hits("tags:x") == len(chunks)


def test_a_deleted_folder_is_removed(notes):
    for name in ("deep/a.md", "deep/er/b.md", "deep-not/c.md"):
        notes.write(name, "A note.\n")
    notes.ingest()
    shutil.rmtree(notes.root / "deep")
    assert counted(notes.ingest()) == (0, 0, 7, 2)
    assert "deep-not/c.md" in notes.paths()


def test_documents_from_elsewhere_stay(notes, tmp_path):
    """A run knows of its own paths only; a name that only begins alike is another folder."""
    notes.ingest()
    other_folder = write_files(tmp_path / "notes-2", {"x.md": "Other.\n"})
    assert counted(notes.ingest(other_folder)) == (1, 0, 0, 0)
    (notes.root / "n0.md").unlink()
    assert counted(notes.ingest(other_folder)) == (0, 0, 1, 0)
    assert counted(notes.ingest(notes.root / "n1.md")) == (0, 0, 1, 0)
    assert len(notes.paths()) == 7
    assert counted(notes.ingest(notes.root, other_folder)) == (0, 0, 6, 1)


@pytest.mark.parametrize("to", ["a.md", "z.md"])
def test_a_moved_file_with_a_declared_id(notes, to):
    path = notes.write("m.md", "---\ndocument_id: mine\n---\n\nText.\n")
    notes.ingest()
    path.rename(notes.root / to)
    report = notes.ingest()
    assert counted(report) == (1, 0, 6, 1)
    assert report.skipped == []
    sql = "SELECT f.path FROM document d JOIN file f ON f.id = d.file WHERE document_id = 'mine'"
    assert notes.rows(sql) == [(to,)]


# -- refused and unreadable -----------------------------------------------------------------------


def test_the_former_version_of_a_rejected_file_is_removed(notes):
    """A typing error in `trust_tier` must not leave yesterday's higher trust in force."""
    notes.write("t.md", "---\ntrust_tier: authoritative\n---\n\nTrusted.\n")
    notes.ingest()
    notes.write("t.md", "---\ntrust_tier: untrsted\n---\n\nTrusted.\n")
    report = notes.ingest()
    assert counted(report) == (0, 0, 6, 1)
    assert [skip.code for skip in report.refused()] == ["bad_metadata"]
    tiers = "'authoritative', 'preferred', 'general', 'untrusted'"
    assert f"must be one of {tiers}" in report.refused()[0].message
    assert notes.rows("SELECT 1 FROM chunk WHERE content LIKE '%Trusted%'") == []
    notes.write("t.md", "---\ntrust_tier: untrusted\n---\n\nTrusted.\n")
    assert counted(notes.ingest()) == (1, 0, 6, 0)


@pytest.mark.parametrize("code", ["binary", "too_large"])
def test_a_file_that_can_no_longer_be_read_as_text_is_removed(notes, code):
    notes.ingest()
    (notes.root / "n1.md").write_bytes(bytes(range(256)) * 12)
    report = notes.ingest(size_cap=2500 if code == "too_large" else 10**6)
    assert "n1.md" not in notes.paths()
    assert [skip.code for skip in report.skipped if skip.path == "n1.md"] == [code]


def test_a_page_in_its_own_encoding_is_not_binary(notes):
    words = "同期の競合を解決する手順" * 20
    page = f'<html><head><meta charset="shift_jis"></head><body><p>{words}</p></body></html>'
    (notes.root / "sync.html").write_bytes(page.encode("shift_jis"))
    (notes.root / "old.txt").write_bytes(words.encode("shift_jis"))
    report = notes.ingest()
    assert notes.rows("SELECT content FROM chunk WHERE title IN ('old', 'sync')") == [(words,)] * 2
    assert ("old.txt", "note") in [
        (note.path, note.code) for note in (*report.notes, *report.skipped)
    ]


def test_an_unreadable_file_stays(notes, monkeypatch):
    notes.ingest()
    before = notes.db.read_bytes()

    real = os.open

    def refusing(path, *arguments, **more):
        if str(path).endswith("n1.md"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    report = notes.ingest()
    assert counted(report) == (0, 0, 5, 0)
    assert [(skip.path, skip.code) for skip in report.skipped] == [("n1.md", "unreadable")]
    monkeypatch.undo()
    assert notes.db.read_bytes() == before


@pytest.mark.parametrize("step", ["read", "chunk"])
def test_a_defect_that_one_file_meets_skips_that_file_only(notes, monkeypatch, step):
    def failing(real, is_bad):
        def call(*arguments):
            if is_bad(*arguments):
                raise ValueError("All strings must be\nXML compatible")
            return real(*arguments)

        return call

    if step == "read":
        version, read = READERS["markdown"]
        bad = failing(read, lambda _data, path, _separator: path == "n1.md")
        monkeypatch.setattr("rolebundle.ingest.readers.reader_named", lambda *_: (version, bad))
    else:
        bad = failing(prepare.chunk_document, lambda document_id, *_: "n1" in document_id)
        monkeypatch.setattr(prepare, "chunk_document", bad)
    report = notes.ingest()
    assert counted(report) == (5, 0, 0, 0)
    [skip] = report.skipped
    assert (skip.path, skip.code) == ("n1.md", "reader_failed")
    assert skip.message.endswith("(ValueError: All strings must be XML compatible)")


# -- ids ------------------------------------------------------------------------------------------


def test_two_documents_with_the_same_id(notes):
    notes.write("a.md", "---\ndocument_id: same\n---\n\nThe first.\n")
    notes.write("b.md", "---\ndocument_id: same\n---\n\nThe second.\n")
    report = notes.ingest()
    assert counted(report) == (7, 0, 0, 0)
    [refused] = report.refused()
    assert (refused.path, refused.code) == ("b.md", "duplicate_document_id")
    assert f"taken by {notes.root / 'a.md'};" in refused.message
    assert notes.rows("SELECT 1 FROM chunk WHERE content LIKE '%second%'") == []
    (notes.root / "a.md").unlink()
    assert counted(notes.ingest()) == (1, 0, 6, 1)


def test_a_file_without_text_is_noted_unless_it_is_empty(notes):
    notes.write("app.html", "<html><body><script>draw()</script></body></html>")
    notes.write("empty.md", "")
    notes.write("text.md", "Some text.\n")
    report = notes.ingest()
    assert [(note.path, note.message) for note in report.notes] == [("app.html", "it has no text")]
    assert report.skipped == []


# -- settings and errors ---------------------------------------------------------------------------


def test_errors_stop_the_run_before_the_first_write(notes, tmp_path):
    with open_writer(notes.db) as corpus:
        assert corpus.value("SELECT count(*) FROM embedding_index") == 0
    before = notes.db.read_bytes()
    bad = write_files(tmp_path / "bad", {"rolebundle.toml": "[defualts]\n"})
    for path, error in ((tmp_path / "none", UsageError), (bad, ConfigurationError)):
        with pytest.raises(error):
            notes.ingest(notes.root, path)
        assert notes.db.read_bytes() == before, "not even the first path was stored"
    with pytest.raises(ConfigurationError, match="command line: unknown key 'titel'"):
        notes.ingest(flags={"titel": "x"})
    assert notes.db.read_bytes() == before


def test_workers_create_the_same_corpus(notes, tmp_path, monkeypatch):
    for number in range(80):
        notes.write(f"many/{number}.md", f"# {number}\n\nText {number}.\n")
    notes.write("many/bad.md", "---\ntrust_teir: x\n---\n")
    notes.write("rolebundle.toml", "[[rule]]\nglob = 'many/**'\ntags = ['many']\n")
    alone = notes.ingest()
    expected = contents(notes.db)
    notes.db = tmp_path / "2.db"
    # Real processes: those of other tests are forked from one that has imported everything.
    monkeypatch.setattr(workers, "subprocess", subprocess)
    together = notes.ingest(workers=2)
    assert counted(together) == counted(alone)
    assert [skip.code for skip in together.skipped] == ["bad_metadata"]
    assert contents(notes.db) == expected


def test_sources_without_documents_are_removed(notes):
    path = notes.write("s.md", "---\nsource_id: brief\n---\n\nText.\n")
    notes.ingest()
    assert ("brief",) in notes.rows("SELECT source_id FROM source")
    path.unlink()
    notes.ingest()
    assert notes.rows("SELECT source_id FROM source") == [("notes",)]
