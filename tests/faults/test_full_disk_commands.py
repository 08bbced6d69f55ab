"""Row 5: every command with 0 bytes free. Reads answer; writes end with code 6 and change nothing."""

import ctypes
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.backups import create_backup
from rolebundle.interfaces.cli.main import cli
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.writing import open_writer
from support.commands import Outcome, commands_of, in_a_child, invoke, invoke_in_a_child
from support.operations import POLICY, STEPS, Place, stored_rows
from support.source_tree import write_files

_NEW_NAMESPACES = 0x10000000 | 0x00020000  # CLONE_NEWUSER | CLONE_NEWNS
FILLER = "filler"


def _mounted(place: Path) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NAMESPACES) != 0:
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
    return bool(libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=20m") == 0)


def fill_up(place: Path) -> None:
    """Leave no byte free."""
    with (place / FILLER).open("ab", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    free = os.statvfs(place)
    assert free.f_bfree == 0


def run_command(arguments: Sequence[str], stdin: bytes = b"") -> Outcome:
    """Run a command in a forked child with standard streams that are not on any disk."""

    def give_input() -> None:
        descriptor = os.memfd_create("in")
        os.write(descriptor, stdin)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.dup2(descriptor, 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)

    return invoke_in_a_child(*arguments, before=give_input)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs")

REQUEST = b'{"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": {"task": "note"}}\n'
MCP = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retrieve",'
    b'"arguments":{"task":"note"}}}\n'
)


STDIN = {"serve": REQUEST, "mcp": MCP, "verify": b"A note.\n"}
"""What a command reads."""
READS = """
corpus roots list, ls, status, policy show, corpus quarantine list, policy
audit export, policy audit list, policy audit verify, remember list, mark list,
decisions list, serve, mcp
"""
"""Commands that answer from the corpus alone."""
USES = """
write init {}/more --role release-manager DB
read init {}/more --role release-manager --dry-run DB
write overlay new release-manager DB
read overlay new release-manager --dry-run DB
write ingest {}/more LEXICAL
write ingest {}/more --db {}/new.db
write ingest --reread DB
write corpus roots move {tree} {}/more DB
write corpus roots remove {tree} --yes DB
read:2 corpus roots remove {tree} DB
read retrieve note LEXICAL
read retrieve note DB
write corpus embed run DB
write corpus embed drop other DB
read compare note --roles mossline-docs-writer,mossline-code-reviewer LEXICAL
write retrieve note --html {}/page.html LEXICAL
read why n1.md:1-3 note LEXICAL
read get n1.md:1-3 DB
read grep note DB
read overlay lint mossline-docs-writer
read overlay list
read overlay show mossline-docs-writer
read policy lint {}/policy.toml DB
write policy set {}/policy.toml DB
write corpus quarantine drop tree/hidden.md DB
write corpus quarantine release tree/hidden.md DB
read corpus quarantine show tree/hidden.md DB
read eval {}/golden.toml --role mossline-docs-writer LEXICAL
scratch eval {}/ingesting.toml --role mossline-docs-writer --lexical-only
read:2 replica forget {}/nowhere DB
write replica keygen {}/new.key
write replica publish {}/share --level internal --key {}/team.key DB
write replica publish {}/new --level internal --key {}/team.key DB
scratch replica pull {}/share --key {}/team.pub --db {}/new.db
scratch replica pull {}/share --key {}/team.pub --db {}/r.db
write policy audit set required DB
write corpus purge tree/n1.md --yes DB
read corpus purge tree/n1.md --dry-run DB
scratch corpus copy {}/c.db {}/copied.db
scratch corpus doctor DB
scratch corpus doctor --repair DB
write corpus backup {}/copy.db DB
write corpus restore {}/saved.db --yes DB
write gate approve {}/work.gate.toml DB
read:1 gate check {}/work.gate.toml DB
read gate facts {}/work.gate.toml DB
read:1 gate hook exit-code {}/work.gate.toml DB
write gate start {}/work.gate.toml DB
write remember add 'A fact.' --source https://example.com/a --by Ana DB
write remember forget {fact} --by Ana DB
write remember promote {fact} --by Ana DB
write mark set tree/n1.md disputed --by Ana --reason old DB
write mark remove tree/n2.md DB
write decisions add 'Do not post automatically' --by Ana DB
read decisions list DB
write decisions end 1 --by Ana --reason over DB
read check 'water the plants' DB
read:1 verify - DB
read install --agent cursor --dry-run DB
read uninstall --agent cursor --dry-run
read:2 corpus forget {}/more --yes
write overlay demo
"""
"""Kind, command and arguments of each use.

A ``read`` answers, with a code after a colon if it is not 0. A ``write`` ends with code 6. A
``scratch`` answers or is refused: it needs room for temporary files. ``{}`` is the folder, and
``{tree}`` the ingested one.
"""


class Use(NamedTuple):
    kind: str
    code: int
    command: str
    words: list[str]


def commands() -> set[str]:
    """Every command that does something by itself."""
    return {
        context.command_path.strip()
        for context in commands_of(click.Context(cli, **cli.context_settings))
        if not isinstance(context.command, click.Group) or context.command.invoke_without_command
    }


def all_uses() -> Iterator[Use]:
    names = commands()
    reads = [f"read {' '.join(name.split())} DB" for name in READS.strip().split(",")]
    for line in (*reads, *USES.strip().splitlines()):
        (kind, *words) = shlex.split(_options(line))
        kind, _, code = kind.partition(":")
        [command] = sorted(
            (n for n in names if f"{' '.join(words)} ".startswith(f"{n} ")), key=len
        )[-1:]
        yield Use(kind, int(code or 0), command, words)


def _options(line: str) -> str:
    return line.replace(" LEXICAL", " --lexical-only DB").replace(" DB", " --db {}/c.db")


def test_every_command_is_classified() -> None:
    used = {use.command for use in all_uses()}
    assert commands() - {"corpus watch"} == used, "add it here as a read or a write"


# -- the states of the files ---------------------------------------------------------------------

PREPARED = """
ingest {tree} --workers 1 DB
remember 'A filed fact.' --source https://example.com/a --by A DB
corpus embed --model static DB
policy audit set on DB
mark tree/n2.md disputed --by A --reason old DB
decisions add 'Do not fly drones' --by A DB
replica keygen {}/team.key
replica publish {}/share --level internal --key {}/team.key DB
replica pull {}/share --key {}/team.pub --db {}/r.db
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files before a command: two embedding indexes, an audit, a quarantined document."""
    place = Place(tmp_path_factory.mktemp("full") / "base")
    place.folder.mkdir()
    place.write_tree(1)
    folder = place.folder
    for line in PREPARED.strip().splitlines():
        assert invoke(*_at(folder, shlex.split(_options(line)), place.tree)).code == 0, line
        if line.startswith("remember"):
            STEPS["embed"](place, lambda _: None)
    with Admin(place.db) as admin:
        create_backup(admin.workspace, place.saved)
    bundle = invoke("retrieve", "note", "--lexical-only", "--format", "json", "--db", place.db).out
    golden = '[[questions]]\ntask = "note"\nexpect = ["n1.md"]\n'
    files = {
        "bundle.json": bundle,
        "policy.toml": POLICY,
        "golden.toml": golden,
        "ingesting.toml": f'corpus = "more"\n{golden}',
        "work.gate.toml": '[[criteria]]\nid = "a"\ncheck = "exists"\nfile = "bundle.json"\n',
        "more/m.md": f"# More\n\n{'A new text. ' * 2000}",
    }
    return write_files(folder, files)


def _at(place: Path, arguments: Sequence[str], tree: Path) -> list[str]:
    # The name of the only fact is a hash of its text and its source.
    fact = "remembered/fact-48ff869f781226113754576a"
    values = {"{}": str(place), "{fact}": fact, "{tree}": str(tree)}
    return [re.sub(r"\{\w*\}", lambda name: values[name[0]], text) for text in arguments]


def logical_state(place: Path) -> dict[str, Any]:
    """The contents of the databases with their logs, and the hashes of the other files."""
    # A copy elsewhere, because opening a database merges its log, and needs room.
    copy = place.parent / "copy"
    shutil.copytree(place, copy, ignore=shutil.ignore_patterns(FILLER, "*-shm"))
    state: dict[str, Any] = {}
    for path in sorted(copy.rglob("*")):
        if path.name in ("c.db", "c.db.audit", "saved.db"):
            state[path.name] = stored_rows(path)
    for path in sorted(copy.rglob("*")):
        name = str(path.relative_to(copy))
        if path.is_file() and name not in state and not name.endswith(("-wal", "-shm")):
            state[name] = sha256(path.read_bytes()).hexdigest()
    shutil.rmtree(copy)
    return state


_EMPTY = sha256(b"").hexdigest()


class Prepared(NamedTuple):
    """The files before a command, and the corpus that is held open, if any."""

    raw: dict[str, bytes]
    logical: dict[str, Any]
    held: Corpus | None


def prepare(base: Path, place: Path, is_open: bool) -> Prepared:
    shutil.copytree(base, place, dirs_exist_ok=True)
    (place / "home").mkdir()
    # Another process has the corpus open; here this one, whose locks its child does not have.
    held = open_writer(place / "c.db") if is_open else None
    logical = logical_state(place)
    fill_up(place)
    return Prepared(raw_state(place), logical, held)


def raw_state(place: Path) -> dict[str, bytes]:
    """Every byte but the filler's and those of shared memory, in which readers leave marks."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.name != FILLER and not path.name.endswith("-shm")
    }


Wrong = tuple[Use, dict[str, Any], list[str]]
"""A use, what it printed, and what it changed."""


def run_all(
    base: Path, place: Path, is_open: bool, step: int, monkeypatch: pytest.MonkeyPatch
) -> list[Wrong]:
    """Run every use, or each so many, each on a fresh copy. This is done inside the child with the mount."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(place / "home"))
    monkeypatch.setattr("tempfile.tempdir", None)
    wrong: list[Wrong] = []
    prepared = None
    for use in [*all_uses()][::step]:
        if prepared is None:
            prepared = prepare(base, place, is_open)
        words = _at(place, use.words, base.parent / "tree")
        ended = run_command(words, STDIN.get(use.command, b""))
        changed = []
        if raw_state(place) != prepared.raw:
            after = logical_state(place)
            changed = [
                key
                for key in prepared.logical | after
                # A new corpus that could not be filled: the next run fills the empty file.
                if prepared.logical.get(key, _EMPTY) != after.get(key)
            ]
            if prepared.held is not None:
                prepared.held.close()
            for path in place.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            prepared = None
        if changed or not is_right(use, ended):
            wrong.append((use, vars(ended), changed))
    return wrong


@pytest.mark.parametrize(
    ("is_open", "step"),
    [(True, 37), *(pytest.param(is_open, 1, marks=pytest.mark.slow) for is_open in (False, True))],
)
def test_commands_with_0_bytes_free(
    is_open: bool, step: int, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a child that has an own file system in memory."""
    place = tmp_path / "place"
    place.mkdir()

    def work() -> list[Wrong] | None:
        return run_all(base, place, is_open, step, monkeypatch) if _mounted(place) else None

    answer = in_a_child(work)
    if answer is None:
        pytest.skip("this machine does not allow to mount")
    assert answer == []


def is_right(use: Use, ended: Outcome) -> bool:
    expected = {
        "read": (use.code,),
        "write": (6,),
        # Also 5: a repair or a pull is refused while another process has a corpus open.
        "scratch": (use.code, 5, 6),
    }[use.kind]
    is_coded = "Traceback" not in ended.err and "[internal]" not in ended.err
    return (
        ended.code in expected and is_coded and bool(use.kind != "read" or ended.out or ended.err)
    )
