"""What must hold on every system, with what the others lack or do otherwise."""

import io
import json
import ntpath
import os
import subprocess
import sys
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle import system
from rolebundle.contracts.ingest import Root
from rolebundle.ingest import roots
from rolebundle.interfaces.cli import main as command_line
from rolebundle.text.paths import matches, path_within
from support.commands import invoke
from support.program_server import forked_python

TESTS = Path(__file__).parent

# What Windows may have in a path: also from a share or WSL, names that it reserves.
NAMES = st.one_of(
    st.sampled_from(["CON", "nul.md", "a.", "b ", "é", normalize("NFD", "é"), "x" * 250, "[1]"]),
    st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='\\/:*?"<>|'), min_size=1
    ),
)
DRIVES = st.sampled_from(
    ["C:\\", "z:\\notes", "\\\\server\\share", "\\\\?\\C:\\long", "\\\\wsl$\\Ubuntu\\home"]
)


@given(DRIVES, st.lists(NAMES, max_size=3), st.lists(NAMES, min_size=1, max_size=4))
def test_paths_of_windows(drive, above, names):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sep", "\\")
        folder = ntpath.join(drive, *above)
        location = ntpath.join(folder, *names)
        path = path_within(location, folder)
        assert path == "/".join(names)
        assert matches(f"{'*/' * (len(names) - 1)}*", path)
        assert roots.is_below(location, folder)
        assert not roots.is_below(f"{folder.rstrip(os.sep)}x", folder) or folder.endswith("\\")
        moved = roots.moved_path(location, folder, "D:\\new")
        assert path_within(moved, "D:\\new") == path


@pytest.mark.parametrize("spelling", ["NOTES", "notes", normalize("NFD", "Notés")])
def test_a_root_in_other_letters(spelling, tmp_path, monkeypatch):
    """As on macOS and Windows, where both find the same folder."""
    name = "Notés" if len(spelling) == 6 else "Notes"
    root = Root(location=str(tmp_path / name), source_id="notes")
    other = tmp_path / spelling / "a.md"
    assert roots.absolute(other, [root]) == other
    monkeypatch.setattr(roots, "_is_same", lambda *_: True)
    assert roots.absolute(other, [root]) == tmp_path / name / "a.md"


@given(st.text(), st.sampled_from(["cp1252", "cp437", "ascii", "latin-1", "shift_jis"]))
def test_a_console_that_lacks_characters(text, encoding):
    written = json.dumps(text, ensure_ascii=False).encode(encoding, command_line.ESCAPED)
    assert json.loads(written.decode(encoding)) == json.loads(json.dumps(text))


def test_such_a_console_is_no_error(monkeypatch):
    stream = io.TextIOWrapper(open(os.devnull, "wb"), "cp1252")  # noqa: SIM115, PTH123
    monkeypatch.setattr(sys, "stdout", stream)
    command_line.outlive_readers()
    assert sys.stdout.errors == command_line.ESCAPED


@pytest.mark.parametrize(("code", "exceeded"), [
    ("while True: pass", "time"),
    ("import time; time.sleep(60)", "time"),
    ("held = b'x' * (400 << 20); import time; time.sleep(60)", "memory"),
])  # fmt: skip
def test_the_parent_keeps_the_limits_of_a_reader(code, exceeded, monkeypatch):
    monkeypatch.setattr(system, "LIMITS_TIME", False)
    monkeypatch.setattr(system, "LIMITS_MEMORY", False)
    pytest.importorskip("psutil")
    seconds = 0.1 if exceeded == "time" else 60
    process = subprocess.Popen([sys.executable, "-S", "-c", code], **system.OWN_SESSION)
    with system.watched(process.pid, seconds, seconds * 3, 200 << 20) as found:
        assert process.wait(60) != 0
    assert found == [exceeded]


def test_a_file_that_is_open_is_replaced_later(tmp_path, monkeypatch):
    (tmp_path / "new").write_text("new")
    replace, refused = Path.replace, []

    def refuse_twice(source: Path, target: Path) -> Path:
        if len(refused) < 2:
            refused.append(target)
            raise PermissionError(13, "in use")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", refuse_twice)
    monkeypatch.setattr(system, "IS_UNIX", False)
    system.replace(tmp_path / "new", tmp_path / "old")
    assert ((tmp_path / "old").read_text(), len(refused)) == ("new", 2)
    monkeypatch.setattr(system, "IS_UNIX", True)
    refused.clear()
    with pytest.raises(PermissionError):
        system.replace(tmp_path / "old", tmp_path / "new")


def test_what_is_not_there_is_said(monkeypatch, tmp_path):
    (tmp_path / "a.md").write_text("Text.")
    db = tmp_path / "c.db"
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only", "--db", db).code == 0
    for name in ("LIMITS_TIME", "LIMITS_MEMORY", "IS_UNIX"):
        monkeypatch.setattr(system, name, False)
    outcome = invoke("corpus", "doctor", "--db", db)
    assert outcome.code == 0
    assert outcome.out.count("not kept on this system") == 3


def test_every_module_is_imported_without_unix():
    code = (
        "import importlib, pkgutil, runpy, sys\n"
        "for name in [n for n in sys.modules if n.partition('.')[0] == 'rolebundle']:\n"
        "    del sys.modules[name]\n"
        "runpy.run_path(sys.argv[1])\n"
        "import rolebundle\n"
        "names = [m.name for m in pkgutil.walk_packages(rolebundle.__path__, 'rolebundle.')]\n"
        "assert len(names) > 150\n"
        "for name in names:\n"
        "    if not name.endswith('__main__'): importlib.import_module(name)\n"
        "from rolebundle import system; print(system.IS_UNIX, len(system.not_kept()))"
    )
    # Libraries may have been imported before: they look at the system by themselves.
    command = [*forked_python(), code, TESTS / "without_unix/sitecustomize.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("False 3\n", 0), done.stderr
