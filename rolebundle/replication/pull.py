"""Pulling a replica: fetch it beside the one at hand, verify it, and let it take its place.

The file that is fetched starts as a copy of the one at hand, so that a transport moves little. An
interrupted fetch continues where it was. Whenever the process is killed, the path names the
complete old replica or the complete new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from rolebundle.contracts.replica import PullReport, ReplicaManifest, SignedManifest
from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, UsageError, WrongFile
from rolebundle.policy.overlays import overlay_digests
from rolebundle.replication.manifest import check_acceptable, read_manifest, with_note_on_replica
from rolebundle.replication.signatures import PublicKey
from rolebundle.replication.transports.transport import Transport
from rolebundle.replication.verify import verify_replica, without_file_digest
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.lock import FolderLock
from rolebundle.storage.files.partial import (
    COMPANIONS,
    OWNER_ONLY,
    partial_file,
    sync_file,
    sync_folder,
)
from rolebundle.storage.files.sqlite_file import is_missing_or_empty
from rolebundle.storage.location import expected_manifest, fetched_replica, pulled_state
from rolebundle.storage.opening import REPLICAS, corpus_format, schema_version
from rolebundle.storage.records import replica as replicas
from rolebundle.storage.replicas import replica_file

_ATTEMPTS = 3
"""How often a fetch is tried while the publisher replaces the files that are fetched."""


def pull(
    transport: Transport,
    path: Path,
    key: PublicKey,
    overlay_folders: Sequence[Path] = (),
) -> PullReport:
    """Replace the replica at hand by the published one, if that one is newer and sound.

    Args:
        transport: where it is published.
        path: the replica on this machine; there may be none.
        key: the publisher's key.
        overlay_folders: the folders of this machine's overlays, to compare their digests.

    Raises:
        UsageError: ``not_a_replica``: the file at the path is an ordinary corpus.
        CorpusCorrupt: the published replica cannot be trusted, has expired, or is older than the
            one at hand, which stays. ``damaged_at_hand``: it is unknown what the file at the path
            is.
        WrongFile: it has another schema, or is of another corpus or publication.
        CorpusBusy, ConfigurationError, StorageError: it could not be fetched.
    """
    file = path
    with suppress(OSError, RuntimeError):  # A loop of links is reported when it is opened.
        file = path.resolve()
    _make_folder(file)
    lock = FolderLock(file, exclusive=True)
    try:
        at_hand = _at_hand(file)
        accepted = at_hand or _expected(file, key)
        try:
            fetched = _fetch(transport, file, key, accepted)
        except RolebundleError as error:
            _discard_if_empty(file)
            # A purge may have removed it.
            raise with_note_on_replica(error, at_hand if file.exists() else None) from error
    finally:
        lock.release()
    signed, published = fetched.signed, fetched.signed.manifest.overlays
    present = overlay_digests(overlay_folders)
    return PullReport(
        source=transport.target,
        location=str(path),
        state=fetched.state,
        manifest=signed.manifest,
        key_id=signed.key_id,
        former_generation=at_hand.generation if at_hand else None,
        moved_bytes=fetched.moved,
        overlays_changed=sorted(
            role for role in published.keys() & present.keys() if published[role] != present[role]
        ),
        overlays_missing=sorted(published.keys() - present.keys()),
    )


class _Fetched(NamedTuple):
    """The replica at the end of a pull."""

    signed: SignedManifest
    state: Literal["updated", "current"]
    moved: int | None


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            "cannot_create",
            f"{path.parent}: the folder cannot be created ({error.strerror})",
            "choose another file with --db",
        ) from error


def _at_hand(path: Path) -> ReplicaManifest | None:
    """The manifest of the replica at hand; ``None`` if there is none, or its manifest is damaged.

    The rest of the file does not count: a damaged replica is replaced.

    Raises:
        UsageError: it is an ordinary corpus.
        CorpusCorrupt: it is too damaged to know whether it is one.
        WrongFile: it is of another application, or of a newer version.
    """
    if is_missing_or_empty(path):
        return None
    try:
        with Corpus.open_read_only(path, corpus_format()) as corpus:
            is_new = schema_version(corpus) >= REPLICAS
            manifest = replicas.stored_manifest(corpus) if is_new else ""
    except CorpusCorrupt as error:
        raise CorpusCorrupt(
            "damaged_at_hand",
            f"{path}: is too damaged to tell whether it is a replica; it was not changed",
            "move it away and pull again",
        ) from error
    if not manifest:
        raise UsageError(
            "not_a_replica",
            f"{path}: is a corpus of its own, and no replica; it was not changed",
            "name another file with --db",
        )
    try:
        return SignedManifest.model_validate_json(manifest).manifest
    except ValueError:
        return None


def _expected(path: Path, key: PublicKey) -> ReplicaManifest | None:
    """The manifest for which the replica at hand was erased, or ``None``."""
    expected = expected_manifest(path)
    try:
        return read_manifest(expected.read_bytes(), str(expected), key).manifest
    except (OSError, CorpusCorrupt):
        return None


def _fetch(
    transport: Transport, path: Path, key: PublicKey, accepted: ReplicaManifest | None
) -> _Fetched:
    """Fetch until the files of the publisher fit together.

    Args:
        transport: where it is published.
        path: the replica at hand, if there is one.
        key: the publisher's key.
        accepted: the manifest that was accepted last. The published one must not be older.
    """
    # Before the fetch: if the replica is replaced meanwhile, the next pull fetches again.
    state = transport.state()
    if state is not None and (present := _pulled_from(path, state, key)) is not None:
        check_acceptable(present.manifest, accepted, transport.target)
        _discard(path)
        return _Fetched(present, "current", 0)
    for attempt in range(_ATTEMPTS):
        content = transport.manifest()
        offered = read_manifest(content, transport.target, key) if content is not None else None
        if content is not None and offered is not None:
            check_acceptable(offered.manifest, accepted, transport.target)
            if without_file_digest(offered.manifest) == accepted and _is_intact(
                path, offered.manifest
            ):
                _discard(path)
                with suppress(OSError):  # A pull that was killed after it replaced the file.
                    expected_manifest(path).unlink()
                return _Fetched(offered, "current", 0)
            if _is_purged(offered.manifest, accepted):
                _erase_purged(path, content)
        moved = transport.fetch(_prepare(path))
        try:
            signed = verify_replica(fetched_replica(path), transport.target, key, offered)
            check_acceptable(signed.manifest, accepted, transport.target)
        except (CorpusCorrupt, WrongFile):
            # The publisher may have replaced one of two files between the two reads.
            if attempt + 1 < _ATTEMPTS and transport.manifest() != content:
                continue
            _discard(path)
            raise
        break
    is_current = signed.manifest == accepted and path.exists()
    _replace(path)
    if state is not None:
        _save_state(path, state)
    return _Fetched(signed, "current" if is_current else "updated", moved)


def _pulled_from(path: Path, state: str, key: PublicKey) -> SignedManifest | None:
    """The manifest of the replica at hand, if it was pulled from a store of this state."""
    try:
        if pulled_state(path).read_text(encoding="utf-8") != f"{state} {sha256_of(path)}":
            return None
        with Corpus.open_read_only(path, corpus_format()) as corpus:
            return read_manifest(replicas.stored_manifest(corpus), str(path), key)
    except (OSError, ValueError, RolebundleError):
        return None


def _save_state(path: Path, state: str) -> None:
    """Remember the store's state for the next pull. Without it that one fetches again."""
    with suppress(OSError), partial_file(pulled_state(path)) as partial:
        partial.write_text(f"{state} {sha256_of(path)}", encoding="utf-8")
        partial.replace(pulled_state(path))


def _is_purged(manifest: ReplicaManifest, accepted: ReplicaManifest | None) -> bool:
    """Whether something was purged of what is at hand."""
    return accepted is not None and accepted.purge_generation < manifest.purge_generation


def _is_intact(path: Path, manifest: ReplicaManifest) -> bool:
    try:
        return sha256_of(path) == manifest.file_digest
    except OSError:
        return False


def _discard(path: Path) -> None:
    """Delete what was fetched."""
    for suffix in ("", *COMPANIONS):
        with suppress(OSError):
            Path(f"{fetched_replica(path)}{suffix}").unlink()


def _discard_if_empty(path: Path) -> None:
    """Delete the file to fetch into, if nothing was fetched."""
    fetched = fetched_replica(path)
    with suppress(OSError):
        if not fetched.is_symlink() and fetched.is_file() and fetched.stat().st_size == 0:
            _discard(path)


def _prepare(path: Path) -> Path:
    """A private file to fetch into: what an interrupted fetch left, or a copy of the replica."""
    fetched = fetched_replica(path)
    try:
        if fetched.is_symlink() or (fetched.exists() and not fetched.is_file()):
            raise StorageError(
                "fetch_failed", f"{fetched}: is not a file", "move it away and pull again"
            )
        for suffix in COMPANIONS:
            # A log that a killed pull left would be applied to what is fetched now.
            Path(f"{fetched}{suffix}").unlink(missing_ok=True)
        if not fetched.exists():
            os.close(os.open(fetched, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
            if path.exists():
                shutil.copyfile(path, fetched)
    except OSError as error:
        raise _not_written(path, error) from error
    return fetched


def _erase_purged(path: Path, manifest: bytes) -> None:
    """Erase the replica at hand, and what was computed from it: it holds what was purged.

    The manifest of the replica that is to come is kept, so that no older one is accepted then.
    """
    expected = expected_manifest(path)
    try:
        with partial_file(expected) as partial:
            partial.write_bytes(manifest)
            sync_file(partial)
            partial.replace(expected)
            sync_folder(path.parent)
        # What an interrupted fetch left began as a copy of it.
        for file in (path, fetched_replica(path)):
            for suffix in ("", *COMPANIONS):
                Path(f"{file}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise _not_written(path, error) from error
    sync_folder(path.parent)


def _replace(path: Path) -> None:
    """Let the fetched file take the place of the one at hand. It has no log, nor had that one."""
    fetched = fetched_replica(path)
    with Corpus.open_for_writing(fetched, corpus_format()) as file:
        replica_file.prepare_for_readers(file)
    try:
        sync_file(fetched)
        for suffix in COMPANIONS:
            Path(f"{fetched}{suffix}").unlink(missing_ok=True)
        for suffix in COMPANIONS:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        fetched.replace(path)
        sync_folder(path.parent)
        expected_manifest(path).unlink(missing_ok=True)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> StorageError:
    return StorageError(
        "fetch_failed",
        f"{path}: the replica cannot be written here ({error.strerror})",
        "make room and give yourself write permission in this folder, and pull again",
    )
