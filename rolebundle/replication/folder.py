"""The folder to which a replica is published, and from which it is pulled.

It is a network share, a synchronized folder or a disk. It proves nothing: whoever fetches a replica
verifies its signature and its content. The folder has two files. ``replica-DIGEST.db.gz`` is the
compressed replica, named by the beginning of its SHA-256; ``replica-manifest.json`` is the signed
manifest, which has this digest. A file never changes under its name, and the manifest is replaced
by one rename. So a reader gets the former replica or the new one. The compressed file is moved only
if the content changed; the manifest in it may be an older one, with the same content.
"""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Any

from rolebundle.contracts.upkeep import ReplicaManifest, SignedManifest
from rolebundle.errors import StorageError, UsageError, storage_error
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.file import PUBLISHED_MANIFEST, partial_file, rename_synced, write_whole

Sign = Callable[[ReplicaManifest], SignedManifest]

_MAX_MANIFEST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_LEVEL = 6
"""Of gzip: a higher one takes much longer and saves little."""


class PublishedFolder:
    """The folder of one publication.

    Args:
        target: its path.

    Raises:
        UsageError: ``unknown_transport``: it is a URL, or a path on another machine.
    """

    def __init__(self, target: str) -> None:
        # `host:path` and `scheme://` are not created as folders of this machine.
        if not target or "\0" in target or ":" in target.partition("/")[0]:
            raise UsageError(
                "unknown_transport",
                "the target is no path of a folder on this machine",
                "give a folder, and move it with rsync, rclone or the like; write ./ before a "
                "path with a colon",
            )
        # One folder is one target, however it is written: readers know it by its target.
        self._folder = Path(os.path.realpath(target))
        self.target = str(self._folder)

    def manifest(self) -> bytes:
        """The signed manifest.

        Raises:
            UsageError: ``nothing_published``: there is no replica.
            StorageError: it cannot be read.
        """
        with self._open(PUBLISHED_MANIFEST) as stream:
            content = stream.read(_MAX_MANIFEST_BYTES + 1)
        if len(content) > _MAX_MANIFEST_BYTES:
            raise self._bad(f"{PUBLISHED_MANIFEST} is too large")
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
        with self._open(_packed_name(manifest.packed_digest)) as packed:
            if file_digest(packed, "sha256").hexdigest() != manifest.packed_digest:
                raise self._bad("the replica is not the one that the manifest names")
            size = packed.seek(0, os.SEEK_END)
            packed.seek(0)
            try:
                with gzip.open(packed) as content, copy.open("wb") as out:
                    left = manifest.unpacked_bytes
                    while piece := content.read(_PIECE_BYTES):
                        left -= len(piece)
                        if left < 0:
                            raise self._bad("the replica is too large")
                        out.write(piece)
            except (zlib.error, gzip.BadGzipFile, EOFError) as error:
                raise self._bad("the replica cannot be unpacked") from error
            except OSError as error:
                raise storage_error(copy, error) from error
        return size

    def push(
        self, replica: Path, signed: SignedManifest, former: SignedManifest | None, sign: Sign
    ) -> int:
        """Make a replica the published one.

        A reader gets the former replica or this one, also if the process is killed. The new file is
        written beside the former one, so the folder needs room for both. The files can be read by
        their owner only, or by those who could read the former ones.

        Args:
            replica: a closed, complete replica without a log. It is not changed.
            signed: the manifest in it.
            former: what :meth:`manifest` gave before, if it is this publisher's.
            sign: signs the manifest that lies beside the replica.

        Returns:
            How many bytes were written.

        Raises:
            UsageError: the folder is of something else. Nothing was moved.
            StorageError: it failed. The former replica is still the published one.
        """
        try:
            self._claim(signed.manifest)
            packed, moved = self._unchanged(signed, former), 0
            if packed is None:
                packed = self._pack(replica)
                moved = (self._folder / _packed_name(packed["packed_digest"])).stat().st_size
            manifest = signed.manifest.model_copy(update=packed)
            content = sign(manifest).model_dump_json(indent=2).encode()
            beside = self._folder / PUBLISHED_MANIFEST
            write_whole(beside, content, beside)
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
            problem = f"{self._folder}: is a file; a replica is published to a folder"
            step = "name a folder, which is created if its parent exists"
            raise UsageError("target_is_file", problem, step)
        if not self._folder.parent.is_dir():
            # It is not created: that would fill the mount point of a disk that is not there.
            problem = f"{self._folder.parent}: there is no such folder"
            step = "mount the disk or create the folder, and publish again"
            raise UsageError("target_missing", problem, step)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if not os.path.lexists(self._folder / PUBLISHED_MANIFEST):
            return
        try:
            published = SignedManifest.model_validate_json(self.manifest()).manifest
        except (ValueError, StorageError):
            published = None
        if published is None or published.corpus_id != manifest.corpus_id:
            problem = f"{self._folder}: has a {PUBLISHED_MANIFEST} that is not of this corpus"
            step = "choose another folder, or remove this file if nobody needs it"
            raise UsageError("foreign_folder", problem, step)

    def _unchanged(
        self, signed: SignedManifest, former: SignedManifest | None
    ) -> dict[str, Any] | None:
        """What the manifest says of the compressed file that is there, if it has this content."""
        if former is None or former.key_id != signed.key_id:
            return None
        before = former.manifest
        if not signed.manifest.has_content_of(before):
            return None
        with suppress(FileNotFoundError):
            if sha256_of(self._folder / _packed_name(before.packed_digest)) == before.packed_digest:
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
            with suppress(FileNotFoundError):
                shutil.copymode(self._folder / PUBLISHED_MANIFEST, partial)
            rename_synced(partial, self._folder / _packed_name(digest))
        return {"packed_digest": digest, "unpacked_bytes": replica.stat().st_size}

    @contextmanager
    def _open(self, name: str) -> Iterator[BufferedReader]:
        """A file of the folder. Nothing else than a file is read: a pipe would never end."""
        path = self._folder / name
        try:
            if path.exists() and not path.is_file():
                raise OSError("it is not a regular file")
            with path.open("rb") as stream:
                yield stream
        except FileNotFoundError as error:
            problem = f"{self.target}: no replica is published there"
            step = "check the path, or publish to it first with `rolebundle replica publish`"
            raise UsageError("nothing_published", problem, step) from error
        except OSError as error:
            raise storage_error(path, error) from error

    def _bad(self, reason: str) -> StorageError:
        step = "run the same command again, or publish again"
        return StorageError("bad_response", f"{self.target}: {reason}", step)


def _packed_name(digest: str) -> str:
    return f"replica-{digest[:32]}.db.gz"
