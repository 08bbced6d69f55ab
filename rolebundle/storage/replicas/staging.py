"""The staged replicas of a publisher: the last one of each target, in a private folder.

A transport sends a staged replica and may keep its own state beside it. A purge erases those that
may hold what was purged.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rolebundle.errors import CorpusBusy, StorageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.lock import folder_lock
from rolebundle.storage.files.partial import partials, sync_folder
from rolebundle.storage.location import REPLICA, published_folder, staged_replica
from rolebundle.storage.records.publications import publications

_OF_A_TARGET = re.compile(r"[0-9a-f]{16}")


@contextmanager
def staging(corpus: Path, patience_ms: int | None = None) -> Iterator[Path]:
    """The folder of the staged replicas, which no other process changes during the block.

    Begin it before the corpus is read for a replica. Then no purge erases a staged replica while it
    is written or sent.

    Args:
        corpus: the publisher's corpus.
        patience_ms: how long to wait for another process; ``None`` means the usual time.

    Raises:
        CorpusBusy: another process publishes, or erases staged replicas.
        StorageError: the folder cannot be created.
    """
    folder = published_folder(corpus)
    make_private_folder(folder)
    with ExitStack() as locks:
        # The lock is on the folder of the path that it is given.
        lock = folder_lock(folder / REPLICA, exclusive=True, patience_ms=patience_ms)
        try:
            locks.enter_context(lock)
        except CorpusBusy as error:
            raise CorpusBusy(
                "publish_busy",
                f"{corpus}: another process publishes it",
                "wait for it to end and run the same command again",
            ) from error
        yield folder


def make_private_folder(folder: Path) -> None:
    """Create a folder of staged replicas, if it is not there.

    Raises:
        StorageError: it cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(
            "staging_unwritable",
            f"{folder}: the folder of the staged replicas cannot be created ({error.strerror})",
            "let the owner of the corpus write in its folder",
        ) from error


def erase_outdated(corpus: Corpus, patience_ms: int | None) -> None:
    """Delete the staged replicas that may hold what was purged, with what transports keep there.

    Also those of no publication, and partial files: a publish that was killed has not stored what
    they hold.

    Raises:
        CorpusBusy: another process publishes.
        StorageError: one of them cannot be deleted.
    """
    if not _outdated(corpus):
        return
    with staging(corpus.path, patience_ms):
        # Nobody publishes now, so no partial file is in use.
        for path in _outdated(corpus):
            try:
                if path.is_symlink() or not path.is_dir():
                    path.unlink()
                else:
                    shutil.rmtree(path)
            except OSError as error:
                raise _not_deleted(path, error) from error
            sync_folder(path.parent)


def _outdated(corpus: Corpus) -> list[Path]:
    current = {
        staged_replica(corpus.path, publication.target).parent.name
        for publication in publications(corpus)
        if not publication.is_outdated
    }
    folder = published_folder(corpus.path)
    try:
        folders = [entry for entry in folder.iterdir() if _OF_A_TARGET.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _not_deleted(folder, error) from error
    return [
        path
        for entry in sorted(folders)
        for path in (partials(entry / REPLICA) if entry.name in current else [entry])
    ]


def _not_deleted(path: Path, error: OSError) -> StorageError:
    return StorageError(
        "staged_replica_stays",
        f"{path}: this staged replica could not be deleted ({error.strerror})",
        "delete it yourself; what was purged from the corpus is still in it",
    )
