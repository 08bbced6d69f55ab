"""``--in FOLDER``: a folder becomes a corpus, is kept up to date, and is never written to."""

import signal
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from rolebundle import system
from rolebundle.embedding.packaged import PackagedModel
from rolebundle.interfaces.cli import folders
from support.commands import invoke

GERMAN = "Der Schlüssel liegt unter der Matte, und der Nachbar hat noch einen, den man fragt.\n"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, beside an empty data folder. What would go on in the background is listed."""
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("ROLEBUNDLE_MODEL", "static")
    monkeypatch.setattr(folders, "_start_reader", lambda *_: None)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "key.md").write_text("The key is under the mat.\n", encoding="utf-8")
    return tmp_path / "notes"


def test_a_folder_is_read_once_and_then_looked_at(notes: Path) -> None:
    before = [(path, path.stat().st_mtime_ns) for path in (notes, *notes.rglob("*"))]
    first = invoke("retrieve", "Where is the key?", "--in", notes)
    assert (first.code, "under the mat" in first.out) == (0, True)
    assert "read 1 document" in first.err
    assert [(path, path.stat().st_mtime_ns) for path in (notes, *notes.rglob("*"))] == before
    [corpus] = folders.corpora_folder().glob("*/corpus.db")
    status = ("status", "--db", corpus)
    assert "l2_supercat" not in invoke(*status).out
    assert "l2_supercat" in invoke(*status, "--explain").out
    assert stat.S_IMODE(corpus.parent.stat().st_mode) == 0o700
    for command in (("get", "key.md"), ("grep", "mat"), ("ls",), ("retrieve", "the key")):
        outcome = invoke(*command, "--in", notes)
        assert (outcome.code, outcome.err, "key" in outcome.out) == (0, "", True)
    (notes / "door.md").write_text("The door is red.\n", encoding="utf-8")
    later = invoke("grep", "mat", "--in", f"{notes}/../notes")
    assert "mat" in later.out and "1 changed file not read yet (door.md)" in later.err
    # As the process in the background does.
    assert invoke("ingest", "--in", notes).code == 0
    assert invoke("grep", "door", "--in", notes).err == ""
    [listed] = invoke("ls", "--corpora", "--json").json()["corpora"]
    assert listed == {"folders": [str(notes)], "documents": 2, "corpus": str(corpus)}


def test_several_folders_are_one_corpus_which_can_be_forgotten(notes: Path) -> None:
    other = notes.with_name("other")
    other.mkdir()
    (other / "b.md").write_text("A mat.\n", encoding="utf-8")
    assert invoke("grep", "mat", "--in", notes, "--in", other).out.count("mat") == 2
    assert invoke("grep", "mat", "--in", other, "--in", notes).err == ""
    assert invoke("corpus", "forget", notes, "--yes").code == 2
    assert "would remove" in invoke("corpus", "forget", notes, other).out
    assert len([*folders.corpora()]) == 1
    assert invoke("corpus", "forget", notes, other, "--yes").code == 0
    assert not [*folders.corpora()] and (notes / "key.md").is_file()


def test_what_is_skipped_is_named_once(notes: Path) -> None:
    for n in range(6):
        (notes / f"a{n}.png").write_bytes(b"\x89PNG\0")
    (notes / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\0")
    lists_all = f"`rolebundle ingest --in {notes}` lists all"
    first = invoke("ls", "--in", notes).err
    assert "skipped a0.png: png: image" in first and "skipped old.doc: doc: old Word" in first
    assert first.count("skipped ") == 5 and f"and 2 more; {lists_all}" in first
    assert invoke("ls", "--in", notes).err == ""
    (notes / "new.mp3").write_bytes(b"ID3\0")
    listed = invoke("ingest", "--in", notes).err  # As the process in the background does.
    assert all(name in listed for name in ("6 × png: image", "old.doc", "new.mp3"))
    later = invoke("ls", "--in", notes).err
    assert later.splitlines() == ["1 new file skipped", "skipped new.mp3: mp3: audio", lists_all]
    assert invoke("ls", "--in", notes).err == ""


def test_advice_names_the_folders(notes: Path) -> None:
    folder = notes.rename(notes.with_name("my notes"))
    assert "documents 1" in invoke("status", "--in", folder).out
    assert "0 waiting" in invoke("corpus", "embed", "--in", folder).out
    wrong = invoke("corpus", "purge", "zz", "--in", folder)
    assert f"`rolebundle status --in '{folder}'`" in wrong.err
    (folder / "key.md").write_text("See `rolebundle status` about the key.\n", encoding="utf-8")
    assert invoke("ingest", "--in", folder).code == 0
    # What documents say is no advice.
    assert "`rolebundle status` about" in invoke("get", "key.md", "--in", folder).out


def test_a_text_that_is_not_english_needs_another_model(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLEBUNDLE_MODEL")
    monkeypatch.setattr(PackagedModel, "is_installed", False)
    (notes / "key.md").write_text(GERMAN, encoding="utf-8")
    advice = "multilingual-e5-small is not installed"
    assert advice in invoke("ls", "--in", notes).err
    assert advice not in invoke("ls", "--in", notes).err
    other = notes.with_name("other")
    (other.mkdir(), (other / "a.md").write_text(GERMAN, encoding="utf-8"))
    for is_first in (True, False):
        outcome = invoke("ingest", other, "--db", notes.parent / "a.db")
        assert (advice in outcome.err) is is_first


def test_folders_that_are_refused(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = notes.parent / "home"
    home.mkdir()
    for folder, code in (
        (Path("/"), "folder_refused"),
        (home, "folder_refused"),
        (home.parent, "folder_refused"),
        (notes / "none", "no_folder"),
        (notes / "key.md", "no_folder"),
    ):
        outcome = invoke("ls", "--in", folder)
        assert (outcome.code, f"[{code}]" in outcome.err) == (2, True), folder
    monkeypatch.setattr(system, "is_foreign", lambda user: user == notes.stat().st_uid)
    assert "another user" in invoke("ls", "--in", notes).err
    assert not [*folders.corpora()]
    assert invoke("ls", "--in", notes, "--db", "x.db").code == 2


def test_it_answers_from_what_it_has(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("ls", "--in", notes).code == 0
    # Nothing that an answer does may write, whether the folder changed, is slow or is gone.
    monkeypatch.setattr(folders, "read", None)
    (notes / "key.md").write_text("Changed.\n", encoding="utf-8")
    assert "under the mat" in invoke("grep", "mat", "--in", notes).out
    monkeypatch.setattr(folders, "LOOK_SECONDS", -1.0)
    slow = invoke("grep", "mat", "--in", notes)
    assert "under the mat" in slow.out and "could not be looked through" in slow.err
    notes.rename(notes.with_name("moved"))
    gone = invoke("grep", "mat", "--in", notes)
    assert "under the mat" in gone.out and "no such folder" in gone.err


@pytest.mark.slow
def test_two_at_once_and_a_kill(notes: Path) -> None:
    for n in range(300):
        (notes / f"n{n}.md").write_text(f"Note {n} of the mat.\n", encoding="utf-8")
    command = [sys.executable, "-m", "rolebundle", "ls", "--limit", "1000", "--in", str(notes)]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = monotonic() + 30
    while not [*folders.corpora_folder().glob("*/corpus.db")] and monotonic() < deadline:
        sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[0].count(b".md") >= 301 for process in both] == [True, True]
