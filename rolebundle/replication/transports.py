"""Transports: they move a replica from its publisher to those who read it.

A replica is published to a folder: a network share, a synchronized folder, a disk, or what a static
host serves. A transport proves nothing: whoever fetches a replica verifies its signature and its
content. The folder has two files. ``replica-DIGEST.db.gz`` is the compressed replica, named by the
beginning of its SHA-256; ``replica-manifest.json`` is the signed manifest, which has this digest. A
file never changes under its name, and the manifest is replaced by one rename. So a reader gets the
former replica or the new one. The compressed file is moved only if the content changed; the
manifest in it may be an older one, with the same content.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import SplitResult, quote, urlsplit
from urllib.request import url2pathname

import httpcore

from rolebundle.contracts.upkeep import ReplicaManifest, SignedManifest
from rolebundle.embedding.network import BoundedBackend, Limits, is_loopback
from rolebundle.errors import FULL_ERRNOS, StorageError, UsageError
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.file import PUBLISHED_MANIFEST, partial_file, rename_synced

Sign = Callable[[ReplicaManifest], SignedManifest]


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


class Transport:
    """The folder of one publication, wherever it is."""

    target: str
    """The address, without secrets: an absolute path or a URL."""

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """Make a replica the published one.

        A reader gets the former replica or this one, also if the process is killed.

        Args:
            replica: a closed, complete replica without a log. It is not changed.
            signed: the manifest in it.
            former: what :meth:`manifest` gave before, if it is this publisher's.
            sign: signs the manifest that lies beside the replica.

        Returns:
            How many bytes were written.

        Raises:
            UsageError: this transport only reads, or the place is of something else. Nothing was
                moved.
            StorageError: it failed. The former replica is still the published one.
        """
        raise NotImplementedError

    def _open(self, name: str, size: int) -> AbstractContextManager[Iterator[bytes]]:
        """The pieces of a file of about this size.

        Raises:
            UsageError: ``nothing_published``: there is no such file.
            StorageError: it cannot be read.
        """
        raise NotImplementedError

    def manifest(self) -> bytes:
        """The signed manifest.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            StorageError: it cannot be read.
        """
        content = b""
        with self._open(PUBLISHED_MANIFEST, _MAX_MANIFEST_BYTES) as pieces:
            for piece in pieces:
                content += piece
                if len(content) > _MAX_MANIFEST_BYTES:
                    raise _bad_replica(self.target, f"{PUBLISHED_MANIFEST} is too large")
        return content

    def fetch(self, copy: Path, manifest: ReplicaManifest) -> int:
        """Write the published replica to a file.

        Args:
            copy: an empty private file.
            manifest: what :meth:`manifest` gave.

        Returns:
            How many bytes were read.

        Raises:
            UsageError: ``nothing_published``: there is no such replica.
            StorageError: it cannot be read, or is not the one of the manifest.
        """
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


class FolderTransport(Transport):
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


class HttpTransport(Transport):
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


# -- targets ---------------------------------------------------------------------------------------

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REMOTE_PATH = re.compile(r"[^/\\]{2,}:")
"""``host:path``, as scp writes it. One letter is a drive of Windows."""

_ALLOWED = "a path, file:///path, https://host/path/"


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
                "remove it from the target",
            )
        if is_web:
            return HttpTransport(target)
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
