"""Pulling a replica: fetch it beside the one at hand, verify it, and let it take its place.

The file that is fetched starts as a copy of the one at hand, so that a transport moves little. An
interrupted fetch goes on where it was. Whenever the process is killed, the path names the complete
old replica or the complete new one.
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
from rolebundle.replication.manifest import check_acceptable, read_manifest, with_kept
from rolebundle.replication.signatures import PublicKey
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage import replica as replicas
from rolebundle.storage import rerank_cache, seal, visible_copy
from rolebundle.storage.backup import page_problem, sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.location import fetched_replica
from rolebundle.storage.lock import FolderLock
from rolebundle.storage.opening import corpus_format, open_reader, schema_version
from rolebundle.storage.partial import COMPANIONS, OWNER_ONLY, sync_file, sync_folder
from rolebundle.storage.sqlite_file import is_missing_or_empty

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
            one at hand, which stays.
        WrongFile: it has another schema, or is of another corpus.
        CorpusBusy, ConfigurationError, StorageError: it could not be fetched.
    """
    _make_folder(path)
    lock = FolderLock(path, exclusive=True)
    try:
        at_hand = _at_hand(path)
        try:
            fetched = _fetch(transport, path, key, at_hand)
        except RolebundleError as error:
            # A purge may have removed it.
            raise with_kept(error, at_hand if path.exists() else None) from error
    finally:
        lock.release()
    signed, published = fetched.signed, fetched.signed.manifest.overlays
    here = overlay_digests(overlay_folders)
    return PullReport(
        source=transport.target,
        location=str(path),
        state=fetched.state,
        manifest=signed.manifest,
        key_id=signed.key_id,
        former_generation=at_hand.generation if at_hand else None,
        moved_bytes=fetched.moved,
        overlays_changed=sorted(
            role for role in published.keys() & here.keys() if published[role] != here[role]
        ),
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
    """The manifest of the replica at hand; ``None`` if there is none, or a damaged one.

    Raises:
        UsageError: it is an ordinary corpus.
        WrongFile: it is of another application, or of a newer version.
    """
    if is_missing_or_empty(path):
        return None
    try:
        with open_reader(path) as corpus:
            manifest = replicas.stored_manifest(corpus)
            if not manifest:
                raise UsageError(
                    "not_a_replica",
                    f"{path}: is a corpus of its own, and no replica; it was not changed",
                    "name another file with --db",
                )
            return SignedManifest.model_validate_json(manifest).manifest
    except (CorpusCorrupt, ValueError):
        return None


def _fetch(
    transport: Transport, path: Path, key: PublicKey, at_hand: ReplicaManifest | None
) -> _Fetched:
    """Fetch until the files of the publisher fit together."""
    for attempt in range(_ATTEMPTS):
        beside = transport.manifest()
        offered = read_manifest(beside, transport.target, key) if beside is not None else None
        if offered is not None:
            check_acceptable(offered.manifest, at_hand, transport.target)
            if _inside(offered.manifest) == at_hand:
                return _Fetched(offered, "current", 0)
            if at_hand is not None and at_hand.purge_generation < offered.manifest.purge_generation:
                _erase_purged(path)
        moved = transport.fetch(_prepare(path))
        try:
            signed = _verify(fetched_replica(path), transport.target, key, offered)
        except CorpusCorrupt:
            # The publisher may have replaced one of two files between the two reads.
            if attempt + 1 < _ATTEMPTS and transport.manifest() != beside:
                continue
            fetched_replica(path).unlink(missing_ok=True)
            raise
        break
    check_acceptable(signed.manifest, at_hand, transport.target)
    if signed.manifest == at_hand and path.exists():
        fetched_replica(path).unlink(missing_ok=True)
        return _Fetched(signed, "current", moved)
    if at_hand is not None and at_hand.purge_generation < signed.manifest.purge_generation:
        _erase_purged(path)
    _replace(path)
    return _Fetched(signed, "updated", moved)


def _inside(manifest: ReplicaManifest) -> ReplicaManifest:
    """The manifest in the file that a manifest beside it describes."""
    return manifest.model_copy(update={"file_digest": ""})


def _prepare(path: Path) -> Path:
    """A private file to fetch into: what an interrupted fetch left, or a copy of the replica."""
    fetched = fetched_replica(path)
    try:
        if fetched.is_symlink() or (fetched.exists() and not fetched.is_file()):
            raise StorageError(
                "fetch_failed", f"{fetched}: is not a file", "move it away and pull again"
            )
        if not fetched.exists():
            os.close(os.open(fetched, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
            if path.exists():
                shutil.copyfile(path, fetched)
    except OSError as error:
        raise _not_written(path, error) from error
    return fetched


def _erase_purged(path: Path) -> None:
    """Erase the replica at hand, and what was computed from it: it holds what was purged."""
    for suffix in ("", *COMPANIONS):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
    rerank_cache.erase(path)
    sync_folder(path.parent)


def _replace(path: Path) -> None:
    """Let the fetched file take the place of the one at hand. It has no log, nor had that one."""
    fetched = fetched_replica(path)
    with Corpus.open_for_writing(fetched, corpus_format()) as file:
        visible_copy.tidy(file)
    try:
        sync_file(fetched)
        for suffix in COMPANIONS:
            Path(f"{fetched}{suffix}").unlink(missing_ok=True)
        for suffix in COMPANIONS:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        fetched.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> StorageError:
    return StorageError(
        "fetch_failed",
        f"{path}: the replica cannot be written here ({error.strerror})",
        "make room and give yourself write permission in this folder, and pull again",
    )


# -- verifying -------------------------------------------------------------------------------------


def _verify(
    file: Path, source: str, key: PublicKey, offered: SignedManifest | None
) -> SignedManifest:
    """Check that a fetched file is what its publisher signed.

    Args:
        file: the file.
        source: where it is from, for errors.
        key: the publisher's key.
        offered: the manifest beside the published file; ``None`` if the transport has none.

    Raises:
        CorpusCorrupt: it is not.
        WrongFile: it is another application's file, or has another schema.
    """
    if offered is not None and sha256_of(file) != offered.manifest.file_digest:
        raise _unsound(source, "the file is not the one that the manifest describes")
    try:
        corpus = Corpus.open_read_only(file, corpus_format())
    except WrongFile as error:
        raise _unsound(source, error.message) from error
    with corpus, corpus.reading():
        signed = read_manifest(_stored_manifest(corpus, source), source, key)
        manifest = signed.manifest
        if manifest.file_digest or (offered and _inside(offered.manifest) != manifest):
            raise _unsound(source, "the manifest in the file is not the one beside it")
        counts = corpus_counts(corpus)
        if (counts.corpus_id, counts.generation, schema_version(corpus)) != (
            manifest.corpus_id,
            manifest.generation,
            manifest.schema_version,
        ):
            raise _unsound(source, "the file is of another generation than its manifest")
        problem = page_problem(corpus)
        if problem:
            raise _unsound(source, problem)
        if visible_copy.stored_digest(corpus) != manifest.stored_digest:
            raise _unsound(source, "its rows are not those that were signed")
        seal.verify(corpus)
    return signed


def _stored_manifest(corpus: Corpus, source: str) -> str:
    manifest = replicas.stored_manifest(corpus)
    if not manifest:
        raise _unsound(source, "it has no manifest")
    return manifest


def _unsound(source: str, what: str) -> CorpusCorrupt:
    return CorpusCorrupt(
        "replica_unsound",
        f"{source}: the replica cannot be trusted: {what}",
        "ask its publisher to publish again",
    )
