"""sqlite3_rsync over ssh, beyond what holds for every transport."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from rolebundle.errors import ConfigurationError, StorageError, UsageError
from rolebundle.replication.transports import rsync
from rolebundle.replication.transports.transport import open_transport
from rolebundle.replication.transports.rsync import RsyncTransport
from rolebundle.storage.files import sqlite_programs
from rolebundle.storage.files.sqlite_programs import sqlite3_rsync
from support.ssh_server import SshServer, shared_ssh_server
from support.transports import Replica, change, rows_of

_CUT = """\
#!{python}
# Run sqlite3_rsync, pass on so many bytes of its {what}, and then do this: {then}.
import os, subprocess, sys
child = subprocess.Popen(["{program}", *sys.argv[1:]], **{{"{what}": subprocess.PIPE}})
left = {left}
while left:
    if "{what}" == "stdin":
        data = os.read(0, min(left, 65536))
        child.stdin.write(data)
        child.stdin.flush()
    else:
        data = os.read(child.stdout.fileno(), min(left, 65536))
        os.write(1, data)
    if not data:
        break
    left -= len(data)
if "{then}" == "stall":
    sys.stdin.buffer.read()
child.kill()
child.wait()
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def server() -> SshServer:
    if sqlite3_rsync() is None:
        pytest.skip("sqlite3_rsync is not installed")
    return shared_ssh_server()


@pytest.fixture
def remote_path(tmp_path: Path) -> Path:
    folder = tmp_path / "far"
    folder.mkdir()
    return folder / "replica.db"


def transport(
    server: SshServer,
    remote_path: Path,
    *,
    exe: Path | str = "",
    ssh: str = "",
    seconds: float = 60,
) -> RsyncTransport:
    target = f"ssh://{server.address}{remote_path}?exe={exe or sqlite3_rsync()}"
    return RsyncTransport(target, ssh=ssh or server.ssh, seconds=seconds)


def cut(path: Path, step: str, left: int, then: str) -> Path:
    """A program that is used as sqlite3_rsync at the other end and breaks off."""
    values = {"program": sqlite3_rsync(), "what": step, "left": left, "then": then}
    path.write_text(_CUT.format(python=sys.executable, **values))
    path.chmod(0o700)
    return path


def change_all(replica: Replica) -> None:
    """Change about 4 MB: more than SQLite keeps in memory, so that it writes before the end."""
    with closing(sqlite3.connect(replica.path)) as db, db:
        db.execute("UPDATE chunk SET content = randomblob(8000)")
    change(replica)


@pytest.mark.parametrize(
    "target",
    [
        "ssh://host",
        "ssh://host/",
        "ssh://host/folder/",
        "ssh:///folder/replica.db",
        "ssh://-oProxyCommand=id/replica.db",
        "ssh://user@-oProxyCommand=id/replica.db",
        "ssh://-l@host/replica.db",
        "ssh://host/a b.db",
        "ssh://host/$(id).db",
        "ssh://host/a;b.db",
        "ssh://host/a'b.db",
        "ssh://host/%24(id).db",
        "ssh://host/a.db\n",
        "ssh://host/~/a.db",
        "ssh://host:0x16/a.db",
        "ssh://host:70000/a.db",
        "ssh://host/a.db?exe=rsync",
        "ssh://host/a.db?exe=/bin/a%20b",
        "ssh://host/a.db?ssh=/bin/sh",
        "ssh://host/a.db#b",
    ],
)
def test_a_target_that_a_shell_could_read_otherwise(target: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_transport(target)
    assert raised.value.code == "bad_target"


def test_the_name_of_a_local_file_is_no_command(
    server: SshServer, remote_path: Path, replica: Replica, tmp_path: Path
) -> None:
    strange = tmp_path / "it's; $(touch ran) a:b -x.db"
    replica.path.rename(strange)
    transport(server, remote_path).push(strange, replica.manifest)
    assert rows_of(remote_path) == rows_of(strange)
    assert not list(tmp_path.rglob("ran")) and not (Path.home() / "ran").exists()


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("UserKnownHostsFile=/dev/null", "Host key verification failed"),
        ("PubkeyAuthentication=no", "Permission denied"),
    ],
)
def test_ssh_asks_for_nothing(
    server: SshServer,
    remote_path: Path,
    replica: Replica,
    tmp_path: Path,
    option: str,
    expected: str,
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\nexec {server.ssh} -o ControlPath=none -o {option} "$@"\n')
    program.chmod(0o700)
    with pytest.raises(StorageError) as raised:
        transport(server, remote_path, ssh=str(program)).push(replica.path, replica.manifest)
    assert expected in raised.value.message and "\n" not in raised.value.message
    assert not remote_path.exists()


@pytest.mark.parametrize("exe", ["/nowhere/sqlite3_rsync", "/bin/true", "/bin/false"])
def test_the_program_is_missing_there(
    server: SshServer, remote_path: Path, replica: Replica, copy: Path, exe: str
) -> None:
    broken = transport(server, remote_path, exe=exe)
    for move in (lambda: broken.push(replica.path, replica.manifest), lambda: broken.fetch(copy)):
        with pytest.raises(StorageError) as raised:
            move()
        assert raised.value.code == "transfer_failed"


def test_the_program_is_missing_here(
    remote_path: Path, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rsync, "sqlite3_rsync", lambda: None)
    with pytest.raises(ConfigurationError) as raised:
        RsyncTransport(f"ssh://nowhere{remote_path}").push(replica.path, b"")
    assert raised.value.code == "engine_missing"


def test_the_program_on_path_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sqlite3_rsync"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sqlite_programs.sqlite3_rsync() == str(program)


def test_the_other_end_is_killed_while_it_writes(
    server: SshServer, remote_path: Path, large_replica: Replica, copy: Path, tmp_path: Path
) -> None:
    replica = large_replica
    change_all(replica)
    transport(server, remote_path).push(replica.path, replica.manifest)
    former, published = rows_of(replica.path), remote_path.read_bytes()
    change_all(replica)
    killed = cut(tmp_path / "killed", "stdin", 3_500_000, "kill")
    with pytest.raises(StorageError):
        transport(server, remote_path, exe=killed).push(replica.path, replica.manifest)
    assert remote_path.read_bytes() != published, "the file itself is in between"
    transport(server, remote_path).fetch(copy)
    assert rows_of(copy) == former
    transport(server, remote_path).push(replica.path, replica.manifest)
    transport(server, remote_path).fetch(copy)
    assert rows_of(copy) == rows_of(replica.path)


def test_a_fetch_ends_at_its_deadline(
    server: SshServer, remote_path: Path, large_replica: Replica, copy: Path, tmp_path: Path
) -> None:
    replica = large_replica
    transport(server, remote_path).push(replica.path, replica.manifest)
    transport(server, remote_path).fetch(copy)
    former = rows_of(copy)
    change_all(replica)
    transport(server, remote_path).push(replica.path, replica.manifest)
    stalled = cut(tmp_path / "stalled", "stdout", 3_500_000, "stall")
    with pytest.raises(StorageError, match="did not end within 1 s"):
        transport(server, remote_path, exe=stalled, seconds=1).fetch(copy)
    assert rows_of(copy) == former
    transport(server, remote_path).fetch(copy)
    assert rows_of(copy) == rows_of(replica.path)


def test_a_push_waits_for_readers(
    server: SshServer, remote_path: Path, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = transport(server, remote_path)
    to.push(replica.path, replica.manifest)
    former = rows_of(replica.path)
    change(replica)
    with closing(sqlite3.connect(remote_path, check_same_thread=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM replica").fetchall()
        monkeypatch.setattr(rsync, "BUSY_SECONDS", 0)
        with pytest.raises(StorageError, match="locked"):
            to.push(replica.path, replica.manifest)
        assert rows_of(remote_path) == former
        monkeypatch.setattr(rsync, "BUSY_SECONDS", 30)
        timer = Timer(0.5, reader.rollback)
        timer.start()
        to.push(replica.path, replica.manifest)
        timer.join()
    assert rows_of(remote_path) == rows_of(replica.path)
