"""The commands: help, exit codes, and data on standard output alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.lookup import Lookup
from rolebundle.contracts.status import CorpusStatus
from rolebundle.interfaces.cli.demo import ROLES
from rolebundle.interfaces.cli.demo import program as demo_program
from rolebundle.interfaces.cli.main import _disable_plugins
from rolebundle.storage.files.sqlite_file import BUSY_TIMEOUT_ENVIRONMENT
from rolebundle.storage.opening import open_writer
from support.commands import PROGRAM, SAMPLE, Outcome, forked_program, invoke, is_coded, run

COMMANDS = ("ingest", "retrieve", "compare", "replay", "get", "status", "overlay", "demo")
AUDIT = "security/token-lifecycle-audit.md"


# -- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help(command: tuple[str, ...]) -> None:
    for option in ("--help", "-h"):
        outcome = invoke(*command, option)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith("Usage: rolebundle")
        assert "rolebundle " in outcome.out.partition("\n")[2], "an example, or the commands"


def test_help_names_every_command_and_exit_code() -> None:
    help_text = " ".join(invoke("--help").out.split())
    for name in COMMANDS:
        assert f" {name} " in help_text
    for code in ("0 ok", "2 usage", "3 conf", "4 denied", "5 busy", "6 full", "7 corrupt"):
        assert code in help_text
    assert "8 wrong or newer file, 9 embedder, 10 bad document" in help_text


def test_python_m_is_the_command() -> None:
    command = [sys.executable, "-m", "rolebundle", "nonsense"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("Usage: rolebundle")


# -- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("retrieve",),
        ("retrieve", "x", "--foo"),
        ("retrieve", "x", "--format", "yaml"),
        ("retrieve", "x", "--limit", "0"),
        ("retrieve", "x", "--limit", "1001"),
        ("retrieve", "x", "--limit", "many"),
        ("retrieve", "x", "--token-budget", "0"),
        ("retrieve", "x", "--now", "soon"),
        ("retrieve", "x", "--role", "../x"),
        ("retrieve", "x", "--role", "a", "--overlay", "b.json"),
        ("retrieve", ""),
        ("retrieve", " \n\t"),
        ("get", "nothing-of-that-name"),
        ("get", "security/token-lifecycle-audit.md:999999-999999"),
        ("get", "security/token-lifecycle-audit.md:9-2"),
        ("get", "security/token-lifecycle-audit.md:99999999999999999999-1"),
        ("get", ""),
        ("ingest",),
        ("ingest", "/there/is/no/such/path"),
        ("ingest", ""),
        ("init", ""),
        ("ingest", ".", "--workers", "0"),
        ("ingest", ".", "--meta", "title"),
        ("overlay", "nonsense"),
    ],
)
def test_usage_errors(sample_db: Path, arguments: tuple[str, ...]) -> None:
    more = () if arguments[0] in ("nonsense", "overlay") else ("--db", str(sample_db))
    before = sample_db.read_bytes()
    outcome = invoke(*arguments, *more)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    is_coded(outcome)
    assert sample_db.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("retreive", "x"), "Did you mean 'retrieve'?"),
        (("retrieve", "page", "size"), "put a text of several words in quotes"),
        (("mark", "x", "--by", "Ana"), "Missing option '--state'"),
        (("remember", "x", "--by", "Ana"), "Missing option '--source'"),
    ],
)
def test_a_usual_mistake_has_a_hint(arguments: tuple[str, ...], hint: str) -> None:
    outcome = invoke(*arguments)
    assert outcome.code == 2
    assert hint in outcome.err


def test_no_corpus(tmp_path: Path) -> None:
    for command in (("retrieve", "x"), ("get", "x"), ("status",), ("status", "--check")):
        outcome = invoke(*command, "--db", tmp_path / "none.db")
        assert (outcome.code, outcome.out) == (2, "")
        assert "rolebundle ingest" in outcome.err
        assert invoke(*command, "--db", tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_not_called_damaged(tmp_path: Path) -> None:
    """As after `--db notes.md` by mistake."""
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n" * 100, encoding="utf-8")
    outcome = invoke("retrieve", "x", "--lexical-only", "--db", notes)
    assert outcome.code == 7
    assert "is no corpus, or its beginning is damaged" in outcome.err
    assert "check the path" in outcome.err


def test_no_arguments_shows_the_help() -> None:
    outcome = invoke()
    assert outcome.code in (0, 2)
    assert "Usage: rolebundle" in outcome.out + outcome.err


def test_a_command_for_each_exit_code(sample_db: Path, tmp_path: Path) -> None:
    """0, 2, 3, 5, 6, 7, 8, 9 and 10, as a shell sees them."""
    from support.corpora import build, document
    from support.fake_embedder import HashingProvider

    broken, foreign, notes = tmp_path / "b.db", tmp_path / "f.db", tmp_path / "notes"
    broken.write_bytes(sample_db.read_bytes()[:5000])
    data = bytearray(sample_db.read_bytes())
    data[68:72] = b"GPKG"  # the application id
    foreign.write_bytes(data)
    unembedded = build(tmp_path, [document("d", ["text"])], HashingProvider())
    notes.mkdir()
    (notes / "a.md").write_text("---\ntrust_teir: x\n---\n", encoding="utf-8")
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    quick = ("--lexical-only",)
    expected = {
        0: ("retrieve", "token", *quick, "--db", sample_db),
        2: ("retrieve", "", "--db", sample_db),
        3: ("retrieve", "token", *quick, "--role", "nobody", "--db", sample_db),
        6: ("ingest", notes, *quick, "--db", file / "c.db"),
        7: ("retrieve", "token", *quick, "--db", broken),
        8: ("retrieve", "token", *quick, "--db", foreign),
        9: ("embed", "--db", unembedded),
        10: ("ingest", notes, *quick, "--db", tmp_path / "n.db"),
    }
    for code, arguments in expected.items():
        outcome = run(*arguments)
        assert outcome.code == code, outcome
        is_coded(outcome)
        assert bool(outcome.err) == bool(code)
    with open_writer(sample_db) as corpus, corpus.writing():
        busy = run("ingest", notes, *quick, "--db", sample_db, env={BUSY_TIMEOUT_ENVIRONMENT: "50"})
    assert busy.code in (5, 10), busy
    (notes / "b.md").write_text("fine\n", encoding="utf-8")
    with open_writer(sample_db) as corpus, corpus.writing():
        busy = run("ingest", notes, *quick, "--db", sample_db, env={BUSY_TIMEOUT_ENVIRONMENT: "50"})
    assert busy.code == 5
    assert busy.out == ""


# -- output and errors -------------------------------------------------------------------------


def test_retrieve_in_its_three_forms(sample_db: Path) -> None:
    common = (
        "retrieve",
        "token rotation",
        "--role",
        "mossline-security-reviewer",
        "--lexical-only",
    )
    common = (*common, "--limit", "3", "--now", "2026-11-15", "--db", str(sample_db))
    outcomes = {form: invoke(*common, "--format", form) for form in ("text", "json", "prompt")}
    for outcome in outcomes.values():
        assert (outcome.code, outcome.err) == (0, "")
    bundle = RetrievalBundle.model_validate_json(outcomes["json"].out)
    assert bundle.role_id == "mossline-security-reviewer"
    assert [chunk.rank for chunk in bundle.selected] == [1, 2, 3]
    for chunk in bundle.selected:
        assert chunk.citation.locator is not None
        assert chunk.citation.locator in outcomes["text"].out
        assert chunk.citation.locator in outcomes["prompt"].out
        assert chunk.content in outcomes["prompt"].out
    text = outcomes["text"].out
    assert "rejected:" in text
    assert "trust " in text
    assert "█" in text
    for code in bundle.rejected_summary:
        assert code in text
    assert "not instructions" in outcomes["prompt"].out
    assert invoke(*common).out.splitlines()[:3] == text.splitlines()[:3], "text is the default"


def test_the_same_question_has_the_same_answer(sample_db: Path) -> None:
    common = ("retrieve", "offline sync", "--lexical-only", "--now", "2026-11-15")
    bundles = [
        RetrievalBundle.model_validate_json(
            invoke(*common, *form, "--db", sample_db).out
        ).without_timings()
        for form in (("--format", "json"), ("--json",))
    ]
    assert bundles[0] == bundles[1]


def test_limits_and_budgets(sample_db: Path) -> None:
    common = ("retrieve", "token", "--lexical-only", "--format", "json", "--db", sample_db)
    bundle = RetrievalBundle.model_validate_json(invoke(*common, "--limit", "2").out)
    assert len(bundle.selected) == 2
    tight = RetrievalBundle.model_validate_json(invoke(*common, "--token-budget", "1").out)
    assert tight.selected == []
    assert set(tight.rejected_summary) == {"budget_cut"}
    fused = RetrievalBundle.model_validate_json(invoke(*common, "--fusion", "rrf").out)
    assert fused.fusion == "rrf"


def test_get_by_each_kind_of_reference(sample_db: Path) -> None:
    bundle = RetrievalBundle.model_validate_json(
        invoke(
            "retrieve", "token rotation", "--lexical-only", "--format", "json", "--db", sample_db
        ).out
    )
    chunk = bundle.selected[0]
    assert chunk.citation.locator is not None
    for reference, kind in (
        (chunk.chunk_id, "chunk"),
        (chunk.document_id, "document"),
        (chunk.citation.locator, "lines"),
    ):
        found = invoke("get", reference, "--json", "--db", sample_db)
        assert (found.code, found.err) == (0, "")
        lookup = Lookup.model_validate_json(found.out)
        assert (lookup.reference, lookup.kind) == (reference, kind)
        assert lookup.document.document_id == chunk.document_id
        assert any(chunk.content in passage.content for passage in lookup.passages)
        outcome = invoke("get", reference, "--db", sample_db)
        assert (outcome.code, outcome.err) == (0, "")
        assert chunk.content in outcome.out


def test_get_lines_are_the_files_own(sample_db: Path) -> None:
    lines = (SAMPLE / AUDIT).read_text(encoding="utf-8").splitlines()
    found = invoke("get", f"{AUDIT}:1-{len(lines)}", "--json", "--db", sample_db)
    for passage in Lookup.model_validate_json(found.out).passages:
        start, _, end = passage.locator.rpartition(":")[2].partition("-")
        assert passage.content == "\n".join(lines[int(start) - 1 : int(end)])


def test_status(sample_db: Path) -> None:
    outcome = invoke("status", "--json", "--db", sample_db)
    assert (outcome.code, outcome.err) == (0, "")
    status = CorpusStatus.model_validate_json(outcome.out)
    assert status.corpus.documents == sum(source.documents for source in status.sources)
    assert status.corpus.chunks == sum(source.chunks for source in status.sources)
    assert status.waiting == status.corpus.chunks, "there are no vectors"
    assert status.bytes == sample_db.stat().st_size
    assert not status.checked
    text = invoke("status", "--db", sample_db)
    assert (text.code, text.err) == (0, "")
    for source in status.sources:
        assert source.source_id in text.out
    assert "check: no problems" in invoke("status", "--check", "--db", sample_db).out


def test_ingest_says_that_nothing_is_trusted(tmp_path: Path) -> None:
    notes, db = tmp_path / "notes", tmp_path / "c.db"
    notes.mkdir()
    (notes / "a.md").write_text("a token", encoding="utf-8")
    ingest = ("ingest", notes, "--lexical-only", "--db", db)
    assert "so every answer is called weak" in invoke(*ingest).out
    assert "called weak" not in invoke(*ingest).out
    (notes / "b.md").write_text("---\ntrust_tier: preferred\n---\na plan\n", encoding="utf-8")
    assert "called weak" not in invoke(*ingest).out
    assert invoke(*ingest, "--json").json()["trusted"] == 1


def test_ingest_reports(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    (tmp_path / "notes" / "b.xyz").write_bytes(bytes(range(256)))
    common = ("ingest", tmp_path / "notes", "--lexical-only", "--db", tmp_path / "c.db")
    first = invoke(*common)
    assert first.code == 0
    assert "1 added" in first.out
    assert "1 skipped (1 binary)" in first.out
    assert "skipped [binary] b.xyz: binary data" in first.err
    second_outcome = invoke(*common, "--json")
    assert second_outcome.err == ""
    report = second_outcome.json()
    assert (report["added"], report["unchanged"]) == (0, 1)
    assert report["skipped"] == [
        {"path": "b.xyz", "code": "binary", "message": report["skipped"][0]["message"]}
    ]


def test_what_is_skipped_is_grouped(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "node_modules").mkdir(parents=True)
    for number in range(5):
        (notes / f"{number}.xyz").write_bytes(bytes(range(256)))
        (notes / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
        (notes / f".{number}").touch()
    (notes / "line\nbreak.xyzw").write_bytes(bytes(range(256)))
    common = ("ingest", notes, "--lexical-only", "--db", tmp_path / "c.db")
    grouped = invoke(*common).err.splitlines()
    assert [line.partition(": binary")[0] for line in grouped] == [
        "skipped [ignored] 5 × hidden file: .0, .1, .2, …",
        "skipped [ignored] node_modules/: dependencies",
        "skipped [unsupported] 5 × png: image: 0.png, 1.png, 2.png, …",
        "skipped [binary] 5 × .xyz: 0.xyz, 1.xyz, 2.xyz, …",
        "skipped [binary] line break.xyzw",
    ]
    every = invoke(*common, "--verbose").err.splitlines()
    assert len(every) == 17
    assert "skipped [ignored] .3: hidden file" in every


def test_a_refused_document_is_reported_and_the_others_are_stored(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n", encoding="utf-8")
    (tmp_path / "notes" / "b.md").write_text("---\ntrust_teir: x\n---\n", encoding="utf-8")
    outcome = invoke("ingest", tmp_path / "notes", "--lexical-only", "--db", tmp_path / "c.db")
    assert outcome.code == 10
    assert "1 added" in outcome.out
    assert "refused [bad_metadata] b.md:2: unknown key 'trust_teir'; did you mean trust_tier?" in (
        outcome.err
    )
    assert "trust_teir" not in outcome.out


def test_an_overlay_file(sample_db: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        '{"version": "1.0", "role_id": "mine", "extends": "security-reviewer",'
        ' "retrieval_policy": {"max_selected_chunks": 1}}',
        encoding="utf-8",
    )
    common = ("retrieve", "token", "--lexical-only", "--format", "json", "--db", sample_db)
    bundle = RetrievalBundle.model_validate_json(invoke(*common, "--overlay", path).out)
    assert (bundle.role_id, len(bundle.selected)) == ("mine", 1)
    assert bundle.overlay is not None
    moved = RetrievalBundle.model_validate_json(
        invoke(*common, "--role", "mine", "--overlay-dir", rename(path)).out
    )
    assert moved.overlay == bundle.overlay


def rename(path: Path) -> Path:
    folder = path.parent / "overlays"
    folder.mkdir()
    path.rename(folder / "mine.json")
    return folder


# -- where the corpus lies -----------------------------------------------------------------------


def test_where_the_corpus_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("A.\n", encoding="utf-8")
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only").code == 0
    [default] = (tmp_path / "home").rglob("corpus.db")
    assert invoke("status", "--json").json()["location"] == str(default)
    monkeypatch.setenv("ROLEBUNDLE_DB", str(tmp_path / "named.db"))
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only").code == 0
    assert (tmp_path / "named.db").is_file()
    option = tmp_path / "deep" / "option.db"
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only", "--db", option).code == 0
    assert invoke("status", "--json", "--db", option).json()["location"] == str(option)


@pytest.mark.parametrize("name", ["\udcff.db", "a\0b.db"])
def test_a_corpus_name_that_is_no_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.md").write_text("A.\n", encoding="utf-8")
    for command in (("status",), ("ingest", str(tmp_path / "a.md"), "--lexical-only")):
        outcome = invoke(*command, "--db", f"{tmp_path}/{name}")
        assert outcome.code == 2
        assert "[bad_db_name]" in outcome.err


def test_an_empty_corpus_name_is_not_the_default_corpus(tmp_path: Path) -> None:
    for command in (("status",), ("ingest", str(tmp_path)), ("purge", "--finish")):
        outcome = invoke(*command, "--db", "")
        assert (outcome.code, "[bad_db_name]" in outcome.err) == (2, True), command


@pytest.mark.parametrize("reference", ["", " "])
def test_an_empty_reference_is_shown_in_quotes(sample_db: Path, reference: str) -> None:
    outcome = invoke("get", reference, "--db", sample_db)
    assert outcome.err.startswith(f"error: '{reference}': no passage")


def test_an_option_before_the_command_is_told_where_it_belongs() -> None:
    outcome = invoke("--db", "team.db", "retrieve", "token")
    assert outcome.code == 2
    assert "next: give options after the command" in outcome.err


def test_an_interrupt_while_the_program_is_imported() -> None:
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click':\n            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from rolebundle.__main__ import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (130, "interrupted; completed work is kept\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["with space.db", "ünïcode 数据.db", "a?b#c%20.db", "file:x.db"])
def test_a_corpus_name_that_is_unusual(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("A token.\n", encoding="utf-8")
    for db in (name, str(tmp_path / f"2{name}")):
        assert invoke("ingest", "a.md", "--lexical-only", "--db", db).code == 0
        assert Path(db).is_file()
        assert "a.md" in invoke("retrieve", "token", "--lexical-only", "--db", db).out
        assert invoke("status", "--check", "--db", db).code == 0


# -- pipes, descriptors, encodings ---------------------------------------------------------------


def shell(script: str, real: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    program = shlex.join(PROGRAM if real else forked_program())
    return subprocess.run(
        ["bash", "-c", script.replace("rolebundle ", f"{program} ")],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_a_reader_that_leaves_early_ends_it_quietly(sample_db: Path) -> None:
    retrieve = (
        f"rolebundle retrieve token --lexical-only --format json --limit 1000 --db {sample_db}"
    )
    for reader in ("head -1", "true"):
        result = shell(f"{retrieve} | {reader}; echo ${{PIPESTATUS[0]}} >&2", real=reader == "true")
        assert result.stderr.strip() == "0"
    demo = f"rolebundle demo --lexical-only --db {sample_db} 2>/dev/null"
    assert shell(f"{demo} | true; echo ${{PIPESTATUS[0]}} >&2").stderr.strip() == "0"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_closed_descriptors(sample_db: Path) -> None:
    result = shell(f"rolebundle status --db {sample_db} >&-", real=True)
    assert (result.returncode, result.stderr) == (0, "")
    result = shell(f"rolebundle retrieve '' --db {sample_db} 2>&-", real=True)
    assert (result.returncode, result.stdout) == (2, "")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_a_closed_input_is_an_empty_one(sample_db: Path) -> None:
    result = shell(f"rolebundle retrieve --request - --db {sample_db} <&-", real=True)
    assert result.returncode == 2 and "[not_json]" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_every_descriptor_closed(sample_db: Path) -> None:
    """By default, `test_serve_end` closes all three."""
    assert shell(f"rolebundle status --db {sample_db} <&- >&- 2>&-", real=True).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_a_terminal_that_is_no_utf8(sample_db: Path) -> None:
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    result = shell(f"rolebundle retrieve token --lexical-only --db {sample_db}", real=True, **plain)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    demo = invoke("demo", "--lexical-only", "--db", sample_db, encoding="ascii")
    assert demo.code == 0, demo.err


# -- the demo ------------------------------------------------------------------------------------


class FirstDemo(NamedTuple):
    """What the first demo printed, and the folder with its cached corpus."""

    home: Path
    outcome: Outcome

    def use_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make a copy of the folder the user's."""
        shutil.copytree(self.home, tmp_path, dirs_exist_ok=True)
        for name in HOMES:
            monkeypatch.setenv(name, str(tmp_path))


HOMES = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")


@pytest.fixture(scope="module")
def first_demo(tmp_path_factory: pytest.TempPathFactory) -> FirstDemo:
    home = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in HOMES:
            monkeypatch.setenv(name, str(home))
        monkeypatch.setenv("COLUMNS", "80")
        return FirstDemo(home, invoke("demo"))


def test_demo(first_demo: FirstDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_demo.use_home(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    first, second = first_demo.outcome, invoke("demo")
    for outcome in (first, second):
        assert outcome.code == 0
        for role in ROLES:
            assert f"\n{role}\n" in outcome.out
    assert first.out == second.out
    assert "0 files added" in second.err
    assert len(list(tmp_path.rglob("demo-*.db"))) == 1
    # Every passage has a sentence, under its place and title.
    passages = re.findall(r"^  \d  0\.\d\d [█░]{10}.*\n(?: {5}\S+:\d+-\d+.*\n)?( {5}\S.*\n)( {5}\S.*\n)", first.out, re.MULTILINE)  # fmt: skip
    assert len(passages) == 3 * len(ROLES)

    # What it ends with works as it stands, and continues from what was shown.
    commands = [shlex.split(line) for line in second.err.partition("next:\n")[2].splitlines()]
    assert [words[3] for words in commands] == ["retrieve", "why", "get"]
    assert all(words[:3] == [sys.executable, "-m", "rolebundle"] for words in commands)
    retrieved, why, get = (invoke(*words[3:]) for words in commands)
    assert [outcome.code for outcome in (retrieved, why, get)] == [0, 0, 0], (retrieved, why, get)
    locator = commands[2][4]
    assert locator in retrieved.out
    assert locator in first.out
    assert locator in get.out
    assert locator in why.out


def test_the_commands_of_the_demo_name_a_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "an environment" / "rolebundle"
    installed.parent.mkdir()
    installed.touch(0o755)
    monkeypatch.setattr("sys.argv", [str(installed)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shlex.split(demo_program()) == [str(installed)]
    monkeypatch.setenv("PATH", str(installed.parent))
    assert demo_program() == "rolebundle"
    monkeypatch.setattr("sys.argv", [str(tmp_path / "other.py")])
    assert shlex.split(demo_program()) == [sys.executable, "-m", "rolebundle"]


@pytest.mark.slow
def test_the_cached_demo_of_an_earlier_version_is_updated(
    first_demo: FirstDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_demo.use_home(tmp_path, monkeypatch)
    (cached,) = tmp_path.rglob("demo-*.db")
    with open_writer(cached) as corpus, corpus.writing():
        corpus.rows("UPDATE embedding_index SET model_digest = 'of an earlier version'")
    own = Path(shutil.copy(cached, tmp_path / "own.db"))
    outcome = invoke("demo")
    assert (outcome.code, "0 files added" in outcome.err) == (0, True), outcome
    # A file that the user names is not changed without being asked.
    refused = invoke("demo", "--db", own)
    assert refused.code == 9
    assert "[model_mismatch]" in refused.err


# -- start-up ------------------------------------------------------------------------------------


def test_a_lexical_answer_imports_nothing_heavy(sample_db: Path) -> None:
    heavy = (
        *("numpy", "ollama", "wordllama", "yaml", "lxml", "rich", "docutils"),
        *("sqlite_vec", "multiprocessing", "asyncio", "importlib.metadata", "email"),
        # Only a corpus with decisions needs it.
        "rolebundle.verification",
    )
    role = "mossline-security-reviewer"
    commands = (
        ("retrieve", "token", "--lexical-only", "--role", role),
        ("retrieve", "token", "--lexical-only", "--role", role, "--format", "json"),
        ("get", AUDIT + ":1-20"),
        ("status",),
    )
    code = (
        "import sys\n"
        "from rolebundle.interfaces.cli.main import main\n"
        f"for command in {commands!r}:\n"
        "    try:\n        main([*command, '--db', sys.argv[1]])\n"
        "    except SystemExit as left:\n        assert not left.code\n"
        f"    print(*[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(sample_db)], capture_output=True, text=True, check=False
    )
    assert result.stderr == "\n" * len(commands)


def test_a_sidecar_imports_no_page(sample_db: Path) -> None:
    parameters = {"task": "token", "role": "mossline-security-reviewer", "lexical_only": True}
    request = {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": parameters}
    code = (
        "import sys\n"
        "from rolebundle.interfaces.cli.main import main\n"
        "try:\n    main(['serve', '--db', sys.argv[1]])\n"
        "except SystemExit as left:\n    assert not left.code\n"
        "pages = ('jinja2', 'rolebundle.interfaces.pages', 'rolebundle.interfaces.inspector')\n"
        "assert not [name for name in sys.modules if name.startswith(pages)]"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(sample_db)],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["result"]["selected"]


def test_the_loader_without_plugins_has_what_pydantic_has(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "pydantic.plugin._loader"
    monkeypatch.delitem(sys.modules, name, raising=False)
    _disable_plugins()
    loader = sys.modules[name]
    assert list(loader.get_plugins()) == []
    assert loader.PYDANTIC_ENTRY_POINT_GROUP == "pydantic"
    assert list(sys.modules[name].get_plugins()) == []


def test_where_is_the_objects_of_its_pairs(sample_db: Path) -> None:
    common = ("retrieve", "token release", "--lexical-only", "--db", sample_db)
    pairs = ("domain=security,x", "domain=product", "path=**/*.md", "updated_after=2026-01-01")
    options = [part for pair in pairs for part in ("--where", pair)]
    bundle = RetrievalBundle.model_validate_json(invoke(*common, *options, "--format", "json").out)
    assert bundle.request is not None
    assert bundle.request.where is not None
    assert bundle.request.where.model_dump(exclude_none=True) == {
        "domain": ["security", "x", "product"],
        "path": ["**/*.md"],
        "updated_after": "2026-01-01T00:00:00+00:00",
    }
    assert {chunk.metadata.domain for chunk in bundle.selected} == {"security", "product"}


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ("domain", "is not of the form KEY=VALUE"),
        ("domian=x", "did you mean domain?"),
        ("domain=", "where.domain.0: must not be blank"),
        ("updated_after=2026-01-01,2026-02-01", "where.updated_after: must be an ISO 8601 time"),
    ],
)
def test_a_wrong_where_is_a_usage_error(sample_db: Path, pair: str, complaint: str) -> None:
    outcome = invoke("retrieve", "token", "--where", pair, "--db", sample_db)
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err


def test_seen_is_repeated(sample_db: Path) -> None:
    common = ("retrieve", "token", "--lexical-only", "--format", "json", "--db", sample_db)
    first = RetrievalBundle.model_validate_json(invoke(*common, "--limit", "2").out)
    seen = [chunk.chunk_id for chunk in first.selected]
    options = [part for chunk_id in seen for part in ("--seen", chunk_id)]
    second = RetrievalBundle.model_validate_json(invoke(*common, *options).out)
    assert second.rejected_summary["already_seen"] == 2
    assert not {*seen} & {chunk.chunk_id for chunk in second.selected}


def test_an_answer_as_of_a_time(sample_db: Path) -> None:
    common = ("retrieve", "What is the strategy?", "--lexical-only", "--format", "json")
    bundle = RetrievalBundle.model_validate_json(
        invoke(*common, "--as-of", "2025-12-31", "--db", sample_db).out
    )
    assert bundle.query.generated_at == "2025-12-31T00:00:00Z"
    assert "product/strategy-2025.md:10-16" in {c.citation.locator for c in bundle.selected}
    assert set(bundle.rejected_summary) == {"not_yet_valid"}
