"""Row 5: every command with 0 bytes free. Reads answer; writes end with code 6 and change nothing."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.backups import create_backup
from rolebundle.interfaces.cli.main import cli
from rolebundle.storage.connection import Corpus
from rolebundle.storage.opening import open_writer
from support.commands import invoke
from support.full_disk import FILLER, fill_up, on_own_file_system, run_command
from support.operations import POLICY, STEPS, Place, stored_rows

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs")

MEGABYTES = 20
PAGE = "https://example.com/a"
REQUEST = b'{"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": {"task": "note"}}\n'
MCP = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retrieve",'
    b'"arguments":{"task":"note"}}}\n'
)


class Use(NamedTuple):
    """A use of a command.

    Attributes:
        kind: ``read`` answers. ``write`` ends with code 6. ``scratch`` answers or is refused: it
            needs room for temporary files.
        arguments: after the command's name; ``{}`` is the folder, ``{tree}`` the ingested one.
        stdin: what a server is asked.
        code: of a read, if it is not 0.
    """

    kind: str
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    code: int = 0


LEXICAL = ("--lexical-only", "--db", "{}/c.db")
DB = ("--db", "{}/c.db")
PUBLISHED = ("--level", "internal", "--key", "{}/team.key")
READ, WRITE = Use("read", DB), Use("write", DB)
COMMANDS: dict[str, tuple[Use, ...]] = {
    "init": (
        Use("write", ("{}/more", "--role", "release-manager", *DB)),
        Use("read", ("{}/more", "--role", "release-manager", "--dry-run", *DB)),
    ),
    "overlay new": (
        Use("write", ("release-manager", *DB)),
        Use("read", ("release-manager", "--dry-run", *DB)),
    ),
    "overlay try": (Use("read", ("technical-writer", "note", *LEXICAL)),),
    "ingest": (
        Use("write", ("{}/more", *LEXICAL)),
        Use("write", ("{}/more", "--db", "{}/new.db")),
        Use("write", ("--reread", *DB)),
    ),
    "corpus roots list": (READ,),
    "corpus roots move": (Use("write", ("{tree}", "{}/more", *DB)),),
    "corpus roots remove": (
        Use("write", ("{tree}", "--yes", *DB)),
        Use("read", ("{tree}", *DB), code=2),
    ),
    "retrieve": (Use("read", ("note", *LEXICAL)), Use("read", ("note", *DB))),
    "corpus embed": (WRITE, Use("read", ("--model", "static", "--dry-run", *DB))),
    "corpus embed clear-cache": (WRITE,),
    "corpus embed drop": (Use("write", ("other", *DB)),),
    "corpus embed list": (READ,),
    "corpus embed use": (Use("write", ("other", *DB)),),
    "compare": (
        Use("read", ("note", "--roles", "mossline-docs-writer,mossline-code-reviewer", *LEXICAL)),
    ),
    "replay": (Use("read", ("{}/bundle.json", *DB)),),
    "inspect": (Use("write", ("{}/bundle.json", "--html", "{}/page.html")),),
    "why": (Use("read", ("n1.md:1-3", "note", *LEXICAL)),),
    "corpus formats": (Use("read"),),
    "get": (Use("read", ("n1.md:1-3", *DB)),),
    "ls": (READ,),
    "grep": (Use("read", ("note", *DB)),),
    "status": (READ,),
    "overlay explain": (Use("read", ("mossline-docs-writer",)),),
    "overlay lint": (Use("read", ("mossline-docs-writer",)),),
    "overlay list": (Use("read"),),
    "overlay show": (Use("read", ("mossline-docs-writer",)),),
    "policy lint": (Use("read", ("{}/policy.toml", *DB)),),
    "policy set": (Use("write", ("{}/policy.toml", *DB)),),
    "policy show": (READ,),
    "corpus quarantine drop": (Use("write", ("tree/hidden.md", *DB)),),
    "corpus quarantine list": (READ,),
    "corpus quarantine release": (Use("write", ("tree/hidden.md", *DB)),),
    "corpus quarantine show": (Use("read", ("tree/hidden.md", *DB)),),
    "eval": (
        Use("read", ("{}/golden.toml", "--role", "mossline-docs-writer", *LEXICAL)),
        Use("scratch", ("{}/ingesting.toml", "--role", "mossline-docs-writer", "--lexical-only")),
    ),
    "replica forget": (Use("read", ("{}/nowhere", *DB), code=2),),
    "replica keygen": (Use("write", ("{}/new.key",)),),
    "replica publish": (
        Use("write", ("{}/share", *PUBLISHED, *DB)),
        Use("write", ("{}/new", *PUBLISHED, *DB)),
    ),
    "replica pull": (
        # It may replace a file, so it is refused while somebody writes in the folder.
        Use("scratch", ("{}/share", "--key", "{}/team.pub", "--db", "{}/new.db")),
        Use("scratch", ("{}/share", "--key", "{}/team.pub", "--db", "{}/r.db")),
    ),
    "policy audit export": (READ,),
    "policy audit list": (READ,),
    "policy audit set": (Use("write", ("required", *DB)),),
    "policy audit show": (Use("read", ("1", *DB)),),
    "policy audit verify": (READ,),
    "corpus purge": (
        Use("write", ("tree/n1.md", "--yes", *DB)),
        Use("read", ("tree/n1.md", "--dry-run", *DB)),
    ),
    "corpus doctor": (Use("scratch", DB), Use("scratch", ("--repair", *DB))),
    "corpus backup": (
        Use("write", ("{}/copy.db", *DB)),
        Use("write", ("--rotate", "{}/backups", *DB)),
    ),
    "corpus restore": (Use("write", ("{}/saved.db", "--yes", *DB)),),
    "policy bridges": (READ,),
    "gate approve": (Use("write", ("{}/work.gate.toml", *DB)),),
    "gate check": (Use("read", ("{}/work.gate.toml", *DB), code=1),),
    "gate facts": (Use("read", ("{}/work.gate.toml", *DB)),),
    "gate hook": (Use("read", ("exit-code", "{}/work.gate.toml", *DB), code=1),),
    "gate start": (Use("write", ("{}/work.gate.toml", *DB)),),
    "remember add": (Use("write", ("A fact.", "--source", PAGE, "--by", "Ana", *DB)),),
    "remember forget": (Use("write", ("{fact}", "--by", "Ana", *DB)),),
    "remember list": (READ,),
    "remember promote": (Use("write", ("{fact}", "--by", "Ana", *DB)),),
    "mark set": (
        Use(
            "write",
            ("tree/n1.md", "disputed", "--by", "Ana", "--reason", "old", *DB),
        ),
    ),
    "mark list": (READ,),
    "mark remove": (Use("write", ("tree/n2.md", *DB)),),
    "decisions add": (Use("write", ("Do not post automatically", "--by", "Ana", *DB)),),
    "decisions list": (READ,),
    "decisions show": (Use("read", ("1", *DB)),),
    "decisions end": (Use("write", ("1", "--by", "Ana", "--reason", "over", *DB)),),
    "check": (Use("read", ("water the plants", *DB)),),
    "verify": (Use("read", ("-", *DB), b"A note.\n"),),
    "serve": (Use("read", DB, REQUEST),),
    "mcp": (Use("read", DB, MCP),),
    "connect": (
        Use("read", ("cursor", *DB)),
        Use("write", ("cursor", "--write", "--file", "{}/host.json", *DB)),
    ),
    "overlay demo": (Use("write"), Use("write", ("--db", "{}/demo.db", "--lexical-only"))),
}


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that does something by itself."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*names, name))


def test_every_command_is_classified() -> None:
    assert set(commands(cli)) - {"watch"} == COMMANDS.keys(), "add it here as a read or a write"


# -- the states of the files ---------------------------------------------------------------------


def closed(_: Path) -> None:
    """As a writer that was closed leaves them."""


def with_log_and_memory(place: Path) -> None:
    """A log that a killed writer left, with shared memory."""
    db = place / "c.db"
    with open_writer(db) as corpus:
        corpus.db.pragma("wal_checkpoint(TRUNCATE)")
        with corpus.writing():
            corpus.run("UPDATE corpus_state SET generation = generation")
        contents = [
            (Path(f"{db}{end}"), Path(f"{db}{end}").read_bytes()) for end in ("", "-wal", "-shm")
        ]
    for path, content in contents:
        path.write_bytes(content)


def held_open(place: Path) -> Corpus:
    """Another process has the corpus open; here this one, whose locks its child does not have."""
    return open_writer(place / "c.db")


STATES: dict[str, Callable[[Path], Corpus | None]] = {
    "closed": closed,
    "log and memory": with_log_and_memory,
    "open": held_open,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files before a command: two embedding indexes, an audit, a quarantined document."""
    place = Place(tmp_path_factory.mktemp("full") / "base")
    place.folder.mkdir()
    place.write_tree(1)
    folder = place.folder
    assert invoke("ingest", place.tree, "--workers", "1", *_at(folder, DB)).code == 0
    filed = invoke("remember", *_at(folder, ("A filed fact.", "--source", PAGE, "--by", "A", *DB)))
    assert _at(folder, ("{fact}",))[0] in filed.out
    STEPS["embed"](place, lambda _: None)
    assert invoke("corpus", "embed", "use", "1", *_at(folder, DB)).code == 0
    assert invoke("policy", "audit", "set", "on", *_at(folder, DB)).code == 0
    marked = ("tree/n2.md", "disputed", "--by", "A", "--reason", "old", *DB)
    assert invoke("mark", *_at(folder, marked)).code == 0
    assert (
        invoke("decisions", "add", *_at(folder, ("Do not fly drones", "--by", "A", *DB))).code == 0
    )
    assert invoke("replica", "keygen", *_at(folder, ("{}/team.key",))).code == 0
    assert invoke("replica", "publish", *_at(folder, ("{}/share", *PUBLISHED, *DB))).code == 0
    pulled = ("{}/share", "--key", "{}/team.pub", "--db", "{}/r.db")
    assert invoke("replica", "pull", *_at(folder, pulled)).code == 0
    with Admin(place.db) as admin:
        create_backup(admin.workspace, place.saved)
    bundle = invoke("retrieve", "note", "--format", "json", *_at(folder, LEXICAL)).out
    (folder / "bundle.json").write_text(bundle, encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    for name, corpus in (("golden", ""), ("ingesting", 'corpus = "more"\n')):
        golden = f'{corpus}[[questions]]\ntask = "note"\nexpect = ["n1.md"]\n'
        (folder / f"{name}.toml").write_text(golden, encoding="utf-8")
    contract = '[[criteria]]\nid = "a"\ncheck = "exists"\nfile = "bundle.json"\n'
    (folder / "work.gate.toml").write_text(contract, encoding="utf-8")
    (folder / "more").mkdir()
    (folder / "more" / "m.md").write_text(f"# More\n\n{'A new text. ' * 2000}", encoding="utf-8")
    return folder


def _at(place: Path, arguments: tuple[str, ...], tree: Path = Path("tree")) -> list[str]:
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


class Result(NamedTuple):
    name: str
    kind: str
    expected: int
    code: int
    out: str
    err: str
    changed: list[str]


class Prepared(NamedTuple):
    """The files before a command, and the corpus that is held open, if any."""

    raw: dict[str, bytes]
    logical: dict[str, Any]
    held: Corpus | None


def prepare(base: Path, place: Path, state: str) -> Prepared:
    shutil.copytree(base, place, dirs_exist_ok=True)
    (place / "home").mkdir()
    held = STATES[state](place)
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


def run_all(
    base: Path, place: Path, state: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> list[Result]:
    """Run every use, or each so many, each on a fresh copy. This is done inside the child with the mount."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(place / "home"))
    monkeypatch.setattr("tempfile.tempdir", None)
    results = []
    prepared = None
    all_uses = [(name, use) for name, uses in COMMANDS.items() for use in uses]
    for name, use in all_uses[::step]:
        if prepared is None:
            prepared = prepare(base, place, state)
        ended = run_command(
            [*name.split(), *_at(place, use.arguments, base.parent / "tree")], use.stdin
        )
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
        results.append(Result(name, use.kind, use.code, *vars(ended).values(), changed))
    return results


@pytest.mark.parametrize(
    ("state", "step"),
    [("open", 37), *(pytest.param(name, 1, marks=pytest.mark.slow) for name in STATES)],
)
def test_commands_with_0_bytes_free(
    state: str, step: int, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    answer = on_own_file_system(
        place, MEGABYTES, lambda: run_all(base, place, state, step, monkeypatch)
    )
    if answer is None:
        pytest.skip("this machine does not allow to mount")
    wrong = [result for result in (Result(*row) for row in answer) if not is_right(result)]
    assert wrong == []


def is_right(result: Result) -> bool:
    expected = {
        "read": (result.expected,),
        "write": (6,),
        # Also 5: a repair or a pull is refused while another process has a corpus open.
        "scratch": (result.expected, 5, 6),
    }[result.kind]
    coded = "Traceback" not in result.err and "[internal]" not in result.err
    answered = result.kind != "read" or bool(result.out or result.err)
    return result.code in expected and coded and answered and not result.changed
