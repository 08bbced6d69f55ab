"""A file on another machine, over ssh: sqlite3_rsync sends the pages that differ.

It replicates in one transaction of SQLite at the receiving end. If it is killed there, or the
connection breaks, SQLite rolls back: at once, or when the file is next opened. So whoever opens the
file with SQLite, as sqlite3_rsync does, finds the former or the new replica. Whoever copies the
file by other means may copy it in between.

Replicas are in rollback mode, and so is the published file. There a push waits until no fetch
reads, and while a push of more than about 2 MB is written no fetch begins; both are tried again for
``BUSY_SECONDS``. The published file equals the replica but for the counters in its first page that
SQLite raises at each commit, so that each transfer sends at least this page.

The program must be on both machines. It has the traps that this module is written for:

- It puts the remote path and the name of the local file on a command line that two shells read,
  and older versions quote for one of them. So a path has plain characters only, and the local file
  is a link with a plain name.
- If the connection breaks, or nothing answers, it may end with code 0. So a script runs ssh and
  reports its code, and both sides must have said something.
- It hides what ssh says at its first attempt, and makes a second one with a longer PATH.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from urllib.parse import parse_qs, urlsplit

from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import StorageError, UsageError
from rolebundle.replication.transports.program import (
    TRANSFER_SECONDS,
    failed,
    last_line,
    missing,
    run_program,
)
from rolebundle.replication.transports.transport import (
    Sign,
    Transport,
    nothing_published,
    storage_error,
)
from rolebundle.storage.files.sqlite_programs import sqlite3_rsync

BUSY_SECONDS = 30.0
"""How long a transfer is tried again while others use the published file."""

_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._+-]+)+")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCAL = "replica.db"
_SSH_CODE = "code of ssh: "
_SSH = f"""#!/bin/sh
%s -o BatchMode=yes -o ControlMaster=no -o ConnectTimeout=30 -o ServerAliveInterval=30 "$@"
echo "{_SSH_CODE}$?" >&2
"""
_UNUSABLE = ("file is not a database", "disk image is malformed", "page size mismatch")
_MOVED = re.compile(r"^sent ([\d,]+) bytes, received ([\d,]+) bytes", re.MULTILINE)


class RsyncTransport(Transport):
    """A replica on another machine, by sqlite3_rsync over ssh. Not on Windows.

    Keys, known hosts, jump hosts and aliases are the business of ssh and its configuration. It
    never asks for anything. Who can read the published file is decided there: by the permissions
    of its folder and the umask of its account. A fetch needs write permission there only to roll
    back what a killed push left.

    Args:
        target: ``ssh://[user@]host[:port]/path/replica.db``; the path is absolute. With
            ``?exe=PATH`` the program at the other end is this one, if it is not on PATH there.
        ssh: the ssh program.
        seconds: how long one transfer may take.

    Raises:
        UsageError: ``bad_target``.
    """

    def __init__(self, target: str, *, ssh: str = "ssh", seconds: float = TRANSFER_SECONDS) -> None:
        self.target = target
        self._ssh = ssh
        self._seconds = seconds
        self._remote, self._options = _parse(target)

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """See :meth:`Transport.push`. The count is what was sent."""
        return self._transfer(replica, is_push=True)

    def fetch(self, copy: Path, former: Path, manifest: ReplicaManifest | None) -> int:
        """See :meth:`Transport.fetch`. The count is what was received.

        The copy begins as the replica at hand. If SQLite cannot open that one, all is received.
        """
        try:
            if former.exists():
                shutil.copyfile(former, copy)
            received = self._transfer(copy, is_push=False)
        except OSError as error:
            raise storage_error(copy, error) from error
        except StorageError as error:
            if not any(phrase in error.message for phrase in _UNUSABLE):
                raise
            copy.write_bytes(b"")
            received = self._transfer(copy, is_push=False)
        if copy.stat().st_size == 0:
            raise nothing_published(self.target)
        return received

    def _transfer(self, local: Path, *, is_push: bool) -> int:
        end = monotonic() + BUSY_SECONDS
        while True:
            result = self._run(local, is_push=is_push)
            *_, code = ["?", *re.findall(rf"^{_SSH_CODE}(\d+)$", result.stderr, re.MULTILINE)]
            moved = _MOVED.search(result.stdout)
            if result.returncode == 0 and code == "0" and moved and "0" not in moved.groups():
                return int(moved[1 if is_push else 2].replace(",", ""))
            messages = re.sub(rf"^{_SSH_CODE}.*$", "", result.stderr, flags=re.MULTILINE)
            if "database is locked" in messages and monotonic() < end:
                sleep(1)
                continue
            if "cannot open origin" in messages and not is_push:
                raise nothing_published(self.target)
            if "sqlite3_rsync" in messages and "not found" in messages:
                raise missing(
                    f"{self.target}: sqlite3_rsync",
                    "install it on that machine, or add ?exe=/PATH/sqlite3_rsync to the target",
                )
            raise failed(self.target, f"sqlite3_rsync failed ({last_line(messages)})")

    def _run(self, local: Path, *, is_push: bool) -> CompletedProcess[str]:
        program = sqlite3_rsync()
        if program is None:
            raise missing("sqlite3_rsync", "install SQLite's tools, or apsw from its wheel")
        with TemporaryDirectory(prefix="rolebundle-") as name:
            folder = Path(name)
            script = folder / "ssh"
            try:
                script.write_text(_SSH % shlex.quote(self._ssh), encoding="utf-8")
                script.chmod(0o700)
                (folder / _LOCAL).symlink_to(local.absolute())
            except OSError as error:
                raise StorageError(
                    "transfer_failed",
                    f"{folder}: cannot be written ({error.strerror})",
                    "set TMPDIR to a folder with enough room",
                ) from error
            ends = (_LOCAL, self._remote) if is_push else (self._remote, _LOCAL)
            command = [program, "-v", "--ssh", str(script), *self._options, *ends]
            return run_program(
                self.target,
                command,
                folder=folder,
                seconds=self._seconds,
            )


def _parse(target: str) -> tuple[str, list[str]]:
    """The remote file and the options, as sqlite3_rsync takes them.

    Raises:
        UsageError: ``bad_target``.
    """
    try:
        parts = urlsplit(target)
        port = parts.port
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise _bad_target() from None
    host = parts.netloc.removesuffix(f":{port}")
    programs = query.pop("exe", [])
    if (
        parts.scheme != "ssh"
        # The parser removes line ends.
        or not target.isprintable()
        or parts.fragment
        or query
        or not _HOST.fullmatch(host)
        or not all(_PLAIN_PATH.fullmatch(path) for path in (parts.path, *programs))
    ):
        raise _bad_target()
    options = ["--port", str(port)] if port else []
    for program in programs[-1:]:
        options += ["--exe", program]
    return f"{host}:{parts.path}", options


def _bad_target() -> UsageError:
    # It may hold a password, so it is not shown.
    return UsageError(
        "bad_target",
        "ssh://…: names no file on another machine",
        "write ssh://[user@]host[:port]/path/replica.db, the path of letters, digits and . _ + -; "
        "for a key or a jump host, name a host of the configuration of ssh",
    )
