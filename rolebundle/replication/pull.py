"""Pulling a replica: fetch it beside the one at hand, verify it, and let it take its place.

Whenever the process is killed, the path names the complete old replica or the complete new one.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.upkeep import PullReport, ReplicaManifest, SignedManifest
from rolebundle.errors import (
    CorpusCorrupt,
    RolebundleError,
    StorageError,
    UsageError,
    WrongFile,
    storage_errors,
)
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.signatures import PublicKey, is_signed_by, key_id
from rolebundle.storage import seal
from rolebundle.storage.corpus import Corpus, CorpusCounts, corpus_counts
from rolebundle.storage.file import (
    COMPANIONS,
    expected_manifest,
    folder_lock,
    partial_file,
    rename_synced,
    sync_folder,
    write_whole,
)
from rolebundle.storage.opening import SINCE_REPLICAS, corpus_format, latest_version, schema_version
from rolebundle.storage.publications import save_manifest, stored_manifest
from rolebundle.storage.replicas import content_digest, prepare_for_readers
from rolebundle.storage.sqlite import is_missing_or_empty, page_problem
from rolebundle.storage.writing import open_writer

_ATTEMPTS = 3
"""How often a fetch is tried while the publisher replaces the files that are fetched."""


def pull(folder: PublishedFolder, path: Path, key: PublicKey) -> PullReport:
    """Replace the replica at hand by the published one, if that one is newer and sound.

    Args:
        folder: where it is published.
        path: the replica on this machine; there may be none.
        key: the publisher's key.

    Raises:
        UsageError: ``not_a_replica``: the file at the path is an ordinary corpus.
        CorpusCorrupt: the published replica cannot be trusted, has expired, or is older than the
            one at hand, which stays. ``damaged_at_hand``: it is unknown what the file at the path
            is.
        WrongFile: it has another schema, or is of another corpus or publication.
        CorpusBusy, ConfigurationError, StorageError: it could not be fetched.
    """
    file = Path(os.path.realpath(path))
    step = "choose another file with --db"
    with storage_errors("cannot_create", f"{file.parent}: the folder cannot be created", step):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with folder_lock(file, exclusive=True):
        at_hand = _at_hand(file)
        accepted = at_hand or _expected(file, key)
        try:
            with partial_file(file) as partial:
                signed, moved = _fetch(folder, file, partial, key, accepted)
                if moved is not None:
                    _replace(partial, file)
                expected_manifest(file).unlink(missing_ok=True)
        except OSError as error:
            problem = f"{path}: the replica cannot be written here ({error.strerror})"
            hint = "make room and give yourself write permission in this folder, and pull again"
            raise StorageError("fetch_failed", problem, hint) from error
        except RolebundleError as error:
            if at_hand is None or not file.exists():
                raise
            note = f"; the replica at hand, generation {at_hand.generation}, stays"
            raise type(error)(error.code, f"{error.message}{note}", error.hint) from error
    return PullReport(
        source=folder.target,
        location=str(path),
        state="current" if signed.manifest == at_hand else "updated",
        manifest=signed.manifest,
        key_id=signed.key_id,
        former_generation=at_hand.generation if at_hand else None,
        moved_bytes=moved or 0,
    )


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
            manifest = stored_manifest(corpus) if schema_version(corpus) >= SINCE_REPLICAS else ""
    except CorpusCorrupt as error:
        problem = f"{path}: is too damaged to tell whether it is a replica; it was not changed"
        step = "move it away and pull again"
        raise CorpusCorrupt("damaged_at_hand", problem, step) from error
    if not manifest:
        problem = f"{path}: is a corpus of its own, and no replica; it was not changed"
        step = "name another file with --db"
        raise UsageError("not_a_replica", problem, step)
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
    folder: PublishedFolder,
    path: Path,
    copy: Path,
    key: PublicKey,
    accepted: ReplicaManifest | None,
) -> tuple[SignedManifest, int | None]:
    """Fetch and verify, until the files of the publisher fit together.

    Args:
        folder: where it is published.
        path: the replica at hand; there may be none.
        copy: the file to fetch into.
        key: the publisher's key.
        accepted: the manifest that was accepted last. The published one must not be older.

    Returns:
        The manifest of the replica, and how many bytes were moved; ``None`` if the replica at hand
        is the published one, so that there is nothing in ``copy``.
    """
    for attempt in range(_ATTEMPTS):
        content = folder.manifest()
        offered = read_manifest(content, folder.target, key)
        check_acceptable(offered.manifest, accepted, folder.target)
        if accepted is not None and offered.manifest.has_content_of(accepted):
            with suppress(OSError, RolebundleError):  # A damaged one is fetched again.
                if verify_replica(path, str(path), key) == offered:
                    return offered, None
                shutil.copyfile(path, copy)
                return _renewed(copy, path, key, offered), len(content)
        if accepted is not None and accepted.purge_generation < offered.manifest.purge_generation:
            _erase_purged(path, content)
        try:
            moved = folder.fetch(copy, offered.manifest)
            return _renewed(copy, Path(folder.target), key, offered), moved
        except RolebundleError:
            # The publisher may have replaced one of two files between the two reads.
            if attempt + 1 == _ATTEMPTS or folder.manifest() == content:
                raise
    raise AssertionError("the last attempt returns or raises")


def _renewed(copy: Path, source: Path, key: PublicKey, offered: SignedManifest) -> SignedManifest:
    """Verify a fetched file, whose manifest may be older, and write the offered one into it.

    Raises:
        CorpusCorrupt: it is not a replica with the content that is offered.
    """
    if verify_replica(copy, str(source), key, offered.manifest) != offered:
        with open_writer(copy, lock=False, replica=True) as corpus, corpus.writing():
            save_manifest(corpus, offered.model_dump_json())
    return offered


def _erase_purged(path: Path, manifest: bytes) -> None:
    """Erase the replica at hand: it holds what was purged.

    The manifest of the replica that is to come is kept, so that no older one is accepted then.
    """
    write_whole(expected_manifest(path), manifest)
    for suffix in ("", *COMPANIONS):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    sync_folder(path.parent)


def _replace(copy: Path, path: Path) -> None:
    """Let the fetched file take the place of the one at hand. It has no log, nor had that one."""
    with Corpus.open_for_writing(copy, corpus_format()) as file:
        prepare_for_readers(file)
    for suffix in COMPANIONS:
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    rename_synced(copy, path)


# -- what a manifest proves ------------------------------------------------------------------------


def read_manifest(content: str | bytes, source: str, key: PublicKey) -> SignedManifest:
    """A manifest whose signature is valid.

    Raises:
        CorpusCorrupt: ``bad_manifest`` or ``bad_signature``.
    """
    try:
        signed = SignedManifest.model_validate_json(content)
    except ValueError as error:
        problem = f"{source}: the manifest cannot be read"
        step = "publish the replica again; what it holds cannot be trusted"
        raise CorpusCorrupt("bad_manifest", problem, step) from error
    if not is_signed_by(signed, key):
        raise CorpusCorrupt(
            "bad_signature",
            f"{source}: the manifest has no valid signature of the key {key_id(key)} "
            f"(it names the key {signed.key_id[:16]!r})",
            "compare FILE.pub with that of the publisher; do not use this replica",
        )
    return signed


def check_acceptable(
    manifest: ReplicaManifest, at_hand: ReplicaManifest | None, source: str
) -> None:
    """Check that a signed manifest may take the place of the one at hand.

    Raises:
        WrongFile: it has another schema, or is of another corpus or publication.
        CorpusCorrupt: it has expired, or is older than the one at hand.
    """
    if manifest.schema_version != latest_version():
        is_newer = manifest.schema_version > latest_version()
        raise WrongFile(
            "newer_schema" if is_newer else "older_schema",
            f"{source}: has schema {manifest.schema_version}, this version reads "
            f"{latest_version()}",
            "upgrade rolebundle here" if is_newer else "publish with the version that is used here",
        )
    if at_hand is not None and manifest.corpus_id != at_hand.corpus_id:
        problem = f"{source}: is a replica of another corpus than the one at hand"
        step = "name another file with --db"
        raise WrongFile("other_corpus", problem, step)
    if at_hand is not None and manifest.publication != at_hand.publication:
        raise WrongFile(
            "other_publication",
            f"{source}: is of another publication than the one at hand",
            "somebody may have exchanged two replicas: ask its publisher; name another file with "
            "--db if you want this one",
        )
    if manifest.expires_at <= iso_utc(datetime.now(UTC)):
        problem = f"{source}: this replica expired at {manifest.expires_at}"
        step = "ask its publisher to publish again"
        raise CorpusCorrupt("offer_expired", problem, step)
    if at_hand is not None and _age(manifest) < _age(at_hand):
        raise CorpusCorrupt(
            "replica_rolled_back",
            f"{source}: generation {manifest.generation} of {manifest.published_at} is older than "
            f"the one at hand, generation {at_hand.generation} of {at_hand.published_at}",
            "somebody may have put an older replica in its place: ask its publisher",
        )


def _age(manifest: ReplicaManifest) -> tuple[int, int, str]:
    return (manifest.purge_generation, manifest.generation, manifest.published_at)


def verify_replica(
    file: Path, source: str, key: PublicKey, offered: ReplicaManifest | None = None
) -> SignedManifest:
    """Check that a file is a replica that the owner of a key built.

    Args:
        file: the file; it has no log.
        source: where it is from, for errors.
        key: the publisher's key.
        offered: the manifest whose content it must have.

    Returns:
        The manifest in the file.

    Raises:
        CorpusCorrupt: it is not: ``replica_unsound``, ``bad_manifest``, ``bad_signature``.
        WrongFile: it is of another application, or has a newer schema.
    """
    try:
        with Corpus.open_read_only(file, corpus_format()) as corpus, corpus.reading():
            stored = stored_manifest(corpus)
            if stored:
                signed = read_manifest(stored, source, key)
                problem = _problem(corpus, stored, signed)
            else:
                problem = "it has no manifest"
    except WrongFile as error:
        raise WrongFile(error.code, error.message.replace(str(file), source), error.hint) from error
    except CorpusCorrupt as error:
        if error.code in ("bad_manifest", "bad_signature"):
            raise
        problem = error.message.removeprefix(f"{file}: ")
    if not problem and offered and not signed.manifest.has_content_of(offered):
        problem = "it is not the one of its manifest"
    if problem:
        reason = f"{source}: the replica cannot be trusted: {problem}"
        step = "ask its publisher to publish again"
        raise CorpusCorrupt("replica_unsound", reason, step)
    return signed


def _problem(corpus: Corpus, stored: str, signed: SignedManifest) -> str:
    """In what a file differs from its manifest; empty if it does not."""
    manifest = signed.manifest
    # Of what is signed there is one way to write it. Whoever reads it later reads the same.
    if stored != signed.model_dump_json():
        return "its manifest is not written as a publisher writes it"
    described = CorpusCounts(
        manifest.corpus_id, manifest.generation, manifest.documents, manifest.chunks
    )
    if (corpus_counts(corpus), schema_version(corpus)) != (described, manifest.schema_version):
        return "the file is of another generation than its manifest"
    # Before SQLite's check, which runs the code of extensions on what is in the file.
    if content_digest(corpus) != manifest.content_digest:
        return "its rows are not those that were signed"
    seal.verify(corpus)
    return page_problem(corpus)
