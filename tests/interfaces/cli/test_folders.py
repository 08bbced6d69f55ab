"""``--in FOLDER``: a folder becomes a corpus, is kept up to date, and is never written to."""

import json
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from unittest.mock import Mock

import click
import pypdf
import pytest

import rolebundle
from ingest.office.word import docx, paragraph
from rolebundle import system
from rolebundle.embedding.packaged import PackagedModel
from rolebundle.errors import CorpusBusy
from rolebundle.ingest import workers
from rolebundle.interfaces.cli import folders
from rolebundle.interfaces.cli.main import cli
from rolebundle.interfaces.cli.options import GroupWithDefault
from rolebundle.interfaces.cli.output import with_folders
from rolebundle.storage.file import indexing_path, try_lock
from support.commands import invoke
from support.served import Served

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
    later = invoke("grep", "door", "--in", f"{notes}/../notes")
    assert "is red" in later.out and later.err == ""
    [listed] = invoke("ls", "--corpora", "--json").json()["corpora"]
    assert listed == {"folders": [str(notes)], "documents": 2, "corpus": str(corpus)}


def warned(notes: Path, task: str, *options: str) -> str:
    """What an answer says of what it may lack."""
    bundle = invoke("retrieve", task, "--in", notes, "--format", "json", *options).json()
    return " ".join(w["message"] for w in bundle["warnings"] if w["code"] == "INDEX_STALE")


def test_a_handful_of_changes_is_in_the_next_answer(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "scan of a door.pdf").write_bytes(b"%PDF-1.4\n")
    invoke("ls", "--in", notes)
    # A process would take longer than the answer.
    monkeypatch.setattr(workers, "_Reader", None)
    (notes / "photo of a door.png").write_bytes(b"\x89PNG\0")
    for text in ("red", "blue"):
        (notes / "door.md").write_text(f"The door is {text} now.\n", encoding="utf-8")
        assert f"is {text}" in invoke("grep", "door", "--in", notes).out
    (notes / "door.md").unlink()
    gone = invoke("grep", "door", "--in", notes)
    assert (gone.out, "not read yet" in gone.err) == ("", False)
    said = warned(notes, "Which door?")
    assert "photo of a door.png" in said and "scan of a door.pdf" in said
    (notes / "photo of a door.png").unlink()
    assert "photo of a door.png" not in warned(notes, "Which door?")


@pytest.mark.parametrize(
    "change",
    [
        lambda notes: [(notes / f"n{n}.md").write_text("A door.") for n in range(9)],
        lambda notes: (notes / "a.md").write_text("A door.\n" * 30),
        lambda notes: (notes / "a.html").write_text("<p>A door."),
        lambda notes: (notes / ".gitignore").write_text("a.md\n"),
    ],
)
def test_more_is_left_to_the_background_and_said_in_the_answer(
    notes: Path, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_FEW_BYTES", 100)
    monkeypatch.setenv("ROLEBUNDLE_READ_SECONDS", "0")  # No process for the page.
    invoke("ls", "--in", notes)
    change(notes)
    assert "not read yet (" in warned(notes, "the key")
    assert "not read yet (" in invoke("ls", "--in", notes).err
    # As the process in the background does.
    assert invoke("ingest", "--in", notes).code == 0
    assert warned(notes, "the key") == "" == invoke("ls", "--in", notes).err


def test_what_could_not_be_read_is_named_if_the_task_has_its_name(notes: Path) -> None:
    for name in ("field permit.png", "permit 2.png", "AKIAQ3EGRIUVXSN5J7RT key.png", "~$key.md"):
        (notes / name).write_bytes(b"\x89PNG\0")
    (notes / "keys").mkdir()
    (notes / "keys" / "a.png").write_bytes(b"\x89PNG\0")
    invoke("ls", "--in", notes)
    task = "Until when is the field permit valid?"
    assert warned(notes, task) == "not read: field permit.png (png: image)"
    text = invoke("retrieve", "Where is the key of the field permit?", "--in", notes).out
    assert text.index("Caution: not read: field permit.png") < text.index("under the mat")
    assert warned(notes, "Who has a permit?").count("png: image") == 2
    assert "AKIA" not in warned(notes, "Where is the key?") != ""
    assert warned(notes, "Where is the mat?") == ""


def test_a_scan_whose_name_says_nothing_may_be_about_a_task_of_which_passages_have_little(
    notes: Path,
) -> None:
    blank = pypdf.PdfWriter()
    blank.add_blank_page(200, 200)
    for name in ("IMG_2231 (1).pdf", "tax 2025.pdf"):
        blank.write(notes / name)
    (notes / "IMG_1.png").write_bytes(b"\x89PNG\0")
    invoke("ls", "--in", notes)
    assert (
        warned(notes, "Which wild boar ate the apples and carrots of the garden?")
        == "not read: IMG_2231 (1).pdf (no text)"
    )
    assert warned(notes, "Which boar ate the mat of the key?") == ""
    assert warned(notes, "Where is the mat?") == ""
    for words in (["get", "notes/tax 2025.pdf"], ["get", "notes/tax 2025.pdf", "notes/x.md"],
                  ["ls", "tax 2025.pdf"], ["grep", "mat", "tax 2025.pdf"]):  # fmt: skip
        got = invoke(*words, "--in", notes)
        assert got.code == 2 and "next: not read: tax 2025.pdf (no text in its 1 page" in got.err


def test_nothing_is_said_of_unread_files_under_a_policy(notes: Path) -> None:
    (notes / "key.png").write_bytes(b"\x89PNG\0")
    invoke("ls", "--in", notes)
    policy = notes.parent / "policy.json"
    rule = {"scopes": ["*"], "access_level": "confidential"}
    policy.write_text(json.dumps({"ada": rule}), encoding="utf-8")
    assert warned(notes, "the key", "--agent", "ada") != ""
    [corpus] = folders.corpora_folder().glob("*/corpus.db")
    assert invoke("policy", "set", policy, "--db", corpus).code == 0
    (notes / "new.html").write_text("<p>New.", encoding="utf-8")
    answer = invoke("retrieve", "key new", "--in", notes, "--agent", "ada", "--format", "json")
    assert answer.code == 0 and answer.json()["selected"]
    assert not any(name in answer.out for name in ("key.png", "new.html", str(notes)))


def test_a_server_reads_what_changes_and_remembers_it(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notes.parent)
    before = f"from {folders.__name__} import __dict__ as own; own['_start_reader'] = print"
    with Served("--in", "notes", before=before, ROLEBUNDLE_READ_SECONDS="0") as server:

        def messages(task: str) -> str:
            bundle = server.ask("retrieve", task=task)["result"]
            return json.dumps([bundle["warnings"], [c["content"] for c in bundle["selected"]]])

        assert "under the mat" in messages("key")
        (notes / "door.html").write_text("<p>The door is red.", encoding="utf-8")
        deadline = monotonic() + 20
        while "is red" not in messages("door") or "not read yet" in messages("door"):
            assert monotonic() < deadline
        assert invoke("status", "--in", notes).err == ""
        (notes / "door.html").unlink()
        while f"`rolebundle ingest --in {notes}`" not in (said := messages("door")):
            assert "is red" in said and monotonic() < deadline


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


def test_a_file_that_was_read_and_is_damaged_is_named_until_it_is_repaired(notes: Path) -> None:
    sound = docx(paragraph("The spare key is with Ann."))
    (notes / "spare.docx").write_bytes(sound)
    invoke("ls", "--in", notes)
    (notes / "spare.docx").write_bytes(sound[:400])
    for _ in range(2):
        assert "spare.docx" in invoke("ingest", "--in", notes).err
        for command in (["retrieve", "Is the mat under the key?"], ["ls"], ["status"]):
            outcome = invoke(*command, "--in", notes)
            assert "skipped spare.docx: its former text was removed" in outcome.err
            if command[0] == "retrieve":
                assert "not read: spare.docx (its former text was removed:" in " ".join(
                    outcome.out.split()
                )
    (notes / "spare.docx").write_bytes(sound)
    invoke("ingest", "--in", notes)
    again = invoke("retrieve", "Where is the spare key?", "--in", notes)
    assert "with Ann" in again.out and "spare.docx (" not in again.out and not again.err


def test_every_advised_command_works_as_it_is(notes: Path) -> None:
    invoke("ls", "--in", notes)  # From now on, advice names the folders.
    texts = "".join(
        path.read_text("utf-8") for path in Path(rolebundle.__file__).parent.rglob("*.py")
    )
    advised = {*re.findall(r"`(rolebundle [a-z][^`|…]*)`", texts)}
    of_a_corpus = 0
    for command in sorted(advised):
        words = shlex.split(with_folders(f"`{command}`".replace("{model}", "")).strip("`"))[1:]
        context = click.Context(cli, help_option_names=["-h", "--help"])
        while isinstance(context.command, click.Group) and words:
            if (found := context.command.get_command(context, words[0])) is None:
                break
            context = click.Context(found, info_name=words.pop(0), parent=context)
        if isinstance(context.command, GroupWithDefault):
            default = next(iter(context.command.commands.values()))
            context = click.Context(default, parent=context)
        options = {option for parameter in context.command.params for option in parameter.opts}
        assert options.isdisjoint({"--in", "--db"}) or {"--in", "--db"} & {*words}, command
        of_a_corpus += "--in" in words
        context.command.make_parser(context).parse_args(words)
    assert of_a_corpus > 20


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


def run_what_is_next(output: str) -> list[str]:
    """Run the commands that an output proposes, and return what they print."""
    commands = output.partition("next: ")[2].splitlines()
    outcomes = [invoke(*shlex.split(command)[1:]) for command in commands]
    assert [outcome.code for outcome in outcomes] == [0] * len(commands) != []
    return [outcome.out + outcome.err for outcome in outcomes]


def test_a_role_of_a_folder_is_made_checked_and_used_as_printed(notes: Path) -> None:
    made = invoke("init", notes, "--role", "mine", "--in", notes)
    _, answer = run_what_is_next(made.out)
    assert "key.md" in invoke("ls", "--in", notes).out and "mine · What" in answer
    [corpus] = folders.corpora_folder().glob("*/corpus.db")
    assert stat.S_IMODE(corpus.parent.stat().st_mode) == 0o700
    made = invoke("overlay", "new", "other", "--from", "mine", "--in", notes)
    assert f"`rolebundle overlay show mine --in {notes}`" in made.out
    checked, compared = run_what_is_next(made.out)
    assert "1 overlay checked" in checked and "not checked against a corpus" not in checked
    assert "other" in compared
    for words in (["list"], ["show", "mine"], ["lint", "mine"], ["lint"]):
        assert "mine" in invoke("overlay", *words, "--in", notes).out
    # Nothing went into another corpus.
    assert len([*folders.corpora()]) == 1 and not [*(notes.parent / "home").glob("**/*.db")][1:]


def test_every_command_that_takes_a_corpus_takes_a_folder() -> None:
    waiting: list[click.Command] = [cli]
    while waiting:
        command = waiting.pop()
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--db" in options) == ("--in" in options), command.name
        if isinstance(command, click.Group):
            names = command.list_commands(click.Context(command))
            waiting += filter(None, (command.get_command(click.Context(command), n) for n in names))


def test_a_folder_without_a_file_that_can_be_read(notes: Path) -> None:
    (notes / "key.md").unlink()
    answer = invoke("retrieve", "Where is the key?", "--in", notes)
    assert "the folder has no file that can be read" in answer.err
    assert "then answers improve" not in answer.err
    assert "no file was read, or none can be" in " ".join(answer.out.split())


def test_a_role_of_another_spelling(notes: Path) -> None:
    for command in (["retrieve", "key"], ["why", "key.md", "key"]):
        refused = invoke(*command, "--role", "Finances", "--in", notes)
        assert refused.code == 3 and "must match" not in refused.err
        assert "'Finances' is not a role id; did you mean finances?" in refused.err
        assert "roles there: code-reviewer, " in refused.err


def test_a_name_with_a_picture_is_shown_as_it_is(notes: Path) -> None:
    (notes / "key – my 📎.md").write_text("The key of the safe.\n", encoding="utf-8")
    for words in (["retrieve", "the safe"], ["ls"], ["grep", "safe"], ["get", "key – my 📎.md"]):
        assert "key – my 📎.md" in invoke(*words, "--in", notes).out


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


def test_a_model_that_was_installed_later_is_used(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLEBUNDLE_MODEL")
    started = Mock(return_value=None)
    monkeypatch.setattr(folders, "_start_reader", started)
    for is_installed, text in ((False, GERMAN), (True, "The key is under the mat.\n")):
        (notes / "key.md").write_text(text, encoding="utf-8")
        monkeypatch.setattr(PackagedModel, "is_installed", is_installed)
        invoke("corpus", "forget", notes, "--yes")
        improves = "all-MiniLM-L6-v2 embeds in the background; then answers improve"
        assert (improves in invoke("ls", "--in", notes).err) is is_installed
        started.reset_mock()
        invoke("ls", "--in", notes)
        assert started.called is is_installed
    [corpus] = folders.corpora_folder().glob("*/corpus.db")
    assert "builds that of all-MiniLM-L6-v2" in invoke("status", "--in", notes).out
    started.reset_mock()
    with try_lock(indexing_path(corpus)):  # It is being embedded.
        invoke("ls", "--in", notes)
    assert not started.called


@pytest.mark.parametrize("is_long", [False, True])
def test_the_first_answer_from_a_small_folder_waits_for_a_contextual_model(
    notes: Path, monkeypatch: pytest.MonkeyPatch, *, is_long: bool
) -> None:
    monkeypatch.delenv("ROLEBUNDLE_MODEL")
    monkeypatch.setattr(PackagedModel, "is_installed", True)
    process = Mock(wait=Mock(return_value=0))
    process.wait.side_effect = subprocess.TimeoutExpired("", 1) if is_long else None
    monkeypatch.setattr(folders, "_start_reader", Mock(return_value=process))
    assert ("embeds in the background" in invoke("ls", "--in", notes).err) is is_long
    assert process.wait.called


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
    assert f"is a file [no_folder]\n  next: name its folder, {notes}" in outcome.err
    monkeypatch.setattr(system, "is_foreign", lambda user: user == notes.stat().st_uid)
    assert "another user" in invoke("ls", "--in", notes).err
    assert not [*folders.corpora()]
    assert invoke("ls", "--in", notes, "--db", "x.db").code == 2


def test_it_answers_from_what_it_has(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("ls", "--in", notes).code == 0
    # Nothing that an answer does may write, whether the folder changed, is slow or is gone.
    monkeypatch.setattr(folders, "read", Mock(side_effect=CorpusBusy("busy", "busy")))
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
