"""A folder: a network share, a folder that Syncthing synchronizes, a USB stick.

The replica takes its name before its digests and its manifest, each by a rename of a complete file.
If a program copies the three files one after another, or a push is killed between two of them, a
reader sees files that do not belong together. It finds that by the digests and copies all of the
replica.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pydantic import ValidationError

from rolebundle.contracts.replica import SignedManifest
from rolebundle.errors import UsageError
from rolebundle.replication.transports.blocks import (
    BLOCKS,
    DATABASE,
    MANIFEST,
    MAX_BLOCKS_BYTES,
    MAX_MANIFEST_BYTES,
    Source,
    digests_of,
    make_equal,
    manifest_too_large,
    nothing_published,
    open_file,
    open_regular,
    storage_error,
)
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage.files.partial import partial_file, stale_partials, sync_folder

# What Syncthing keeps: the version of one machine when two changed a file, and replaced files.
_CONFLICT = re.compile(r"replica\.sync-conflict-.+\.(?:db|blocks)")
_VERSIONS = ".stversions"
_VERSION = re.compile(r"replica(?:[.~].*)?\.(?:db|blocks|partial)")


class FolderTransport(Transport):
    """Replicas in a folder.

    Args:
        target: its path, or a ``file://`` URL.

    Raises:
        UsageError: ``bad_target``: the URL names no folder of this machine.
    """

    def __init__(self, target: str) -> None:
        folder = _path_of(target).absolute()
        with suppress(OSError, RuntimeError):  # A loop of links is reported when it is opened.
            # One folder is one target, however it is written: readers know it by its target.
            folder = folder.resolve()
        self._folder = folder
        self.target = str(folder)

    def push(self, replica: Path, manifest: bytes) -> int:
        """See :meth:`Transport.push`.

        The new file is written beside the former one, so the folder needs room for both. The
        count is that of the blocks that changed: so much Syncthing moves. The files can be read
        by their owner only, or by those who could read the former ones.
        """
        self._claim(manifest)
        try:
            return self._replace(replica, manifest)
        except OSError as error:
            raise storage_error(self._folder, error) from error

    def _claim(self, manifest: bytes) -> None:
        """Create the folder, or make sure that what is in it may be replaced."""
        try:
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
            existing = [name for name in (DATABASE, BLOCKS, MANIFEST) if self._has(name)]
        except OSError as error:
            raise storage_error(self._folder, error) from error
        if not existing:
            return
        corpus = _corpus_of(self._content(MANIFEST, MAX_MANIFEST_BYTES))
        if corpus is None or corpus != _corpus_of(manifest):
            raise UsageError(
                "foreign_folder",
                f"{self._folder}: has a {existing[0]} that is not a replica of this corpus",
                "choose another folder, or remove this file if nobody needs it",
            )

    def _replace(self, replica: Path, manifest: bytes) -> int:
        digests = digests_of(replica)
        names = [DATABASE, BLOCKS, MANIFEST]
        with ExitStack() as stack:
            partials = {
                name: stack.enter_context(partial_file(self._folder / name)) for name in names
            }
            former = self._folder / DATABASE
            # A file system that can share or copy content by itself does it here.
            with suppress(OSError):
                shutil.copyfile(former, partials[DATABASE])
            moved = make_equal(
                partials[DATABASE], lambda: open_file(replica, digests), str(replica)
            )
            for name, content in ((BLOCKS, digests), (MANIFEST, manifest)):
                with partials[name].open("wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
            if not self._has(DATABASE):
                # Nothing is published before the replica is there.
                names.reverse()
            for name in names:
                with suppress(FileNotFoundError):
                    shutil.copymode(self._folder / name, partials[name])
                partials[name].replace(self._folder / name)
                sync_folder(self._folder)
        return moved + len(digests) + len(manifest)

    def manifest(self) -> bytes | None:
        """See :meth:`Transport.manifest`."""
        if not self._has(DATABASE):
            raise nothing_published(self.target)
        content = self._content(MANIFEST, MAX_MANIFEST_BYTES)
        if content is not None and len(content) > MAX_MANIFEST_BYTES:
            raise manifest_too_large(self.target)
        return content

    def fetch(self, copy: Path) -> int:
        """See :meth:`Transport.fetch`."""
        if not self._has(DATABASE):
            raise nothing_published(self.target)
        read = 0

        def opened() -> AbstractContextManager[Source]:
            nonlocal read
            digests = self._content(BLOCKS, MAX_BLOCKS_BYTES) or b""
            read += len(digests)
            return open_file(self._folder / DATABASE, digests)

        return make_equal(copy, opened, self.target) + read

    def _has(self, name: str) -> bool:
        return os.path.lexists(self._folder / name)

    def _content(self, name: str, limit: int) -> bytes | None:
        """The first ``limit`` bytes of a file and one more, or ``None`` if it does not exist."""
        path = self._folder / name
        try:
            with open_regular(path) as stream:
                return stream.read(limit + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(path, error) from error

    def history(self) -> Sequence[str]:
        """See :meth:`Transport.history`.

        There are no former replicas: each one takes the place of the one before. What is listed
        are partial files of killed pushes and what Syncthing keeps on this machine. What it keeps
        on other machines, and snapshots of a file server, cannot be seen from here.
        """
        return [str(path) for path in self._leftovers()]

    def erase_history(self) -> None:
        """See :meth:`Transport.erase_history`."""
        for path in self._leftovers():
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(path, error) from error

    def _leftovers(self) -> list[Path]:
        partials = [
            path
            for name in (DATABASE, BLOCKS, MANIFEST)
            for path in stale_partials(self._folder / name)
        ]
        folder = self._folder.resolve()
        found = [*partials, *_matching(self._folder, _CONFLICT)]
        # Its folder of versions is in the folder that it synchronizes, which may be a parent.
        for root in (folder, *folder.parents):
            found += _matching(root / _VERSIONS / folder.relative_to(root), _VERSION)
        return found


def _matching(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_error(folder, error) from error


def _corpus_of(manifest: bytes | None) -> str | None:
    """The corpus that a manifest names, or ``None`` if it is no manifest."""
    try:
        return SignedManifest.model_validate_json(manifest or b"").manifest.corpus_id
    except ValidationError:
        return None


def _path_of(target: str) -> Path:
    if not target.lower().startswith("file://"):
        return Path(target)
    try:
        parts = urlsplit(target)
        is_local = parts.netloc in ("", "localhost") and parts.path
    except ValueError:
        is_local = False
    if not is_local or parts.query or parts.fragment:
        raise UsageError(
            "bad_target",
            f"{target}: names no folder of this machine",
            "write a path, or file:///path",
        )
    return Path(url2pathname(parts.path))
