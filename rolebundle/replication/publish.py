"""Publishing a replica: a corpus file with only what one agent may see, signed, and moved.

The last replica of each target is kept beside the corpus. The visible difference is applied to a
copy of it, which takes its name when it is complete. So a transport moves little, and a killed run
leaves the old replica or the new one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.replica import (
    PublishedIndex,
    PublishReport,
    ReplicaManifest,
    SignedManifest,
)
from rolebundle.errors import RolebundleError, StorageError
from rolebundle.policy.audience import Audience
from rolebundle.policy.overlays import overlay_digests
from rolebundle.policy.trust import AgentView
from rolebundle.replication.erasure import erase_history
from rolebundle.replication.manifest import read_manifest
from rolebundle.replication.signatures import PrivateKey, sign
from rolebundle.replication.transports.blocks import storage_error
from rolebundle.replication.transports.transport import Transport
from rolebundle.replication.verify import verify_replica
from rolebundle.storage import replica as replicas
from rolebundle.storage import replica_file, stored_policy, visible_content, visible_copy
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.location import staged_replica
from rolebundle.storage.opening import latest_version, open_reader, open_writer
from rolebundle.storage.partial import partial_file, sync_file, sync_folder
from rolebundle.storage.publications import (
    Publication,
    find_publication,
    names_in,
    publication_id,
    save_publication,
    with_carried,
)
from rolebundle.storage.purge import purge_ids
from rolebundle.storage.staging import staging
from rolebundle.storage.stored_audit import StoredAudit, load_stored_audit, save_stored_audit
from rolebundle.storage.vector_index import all_indexes
from rolebundle.storage.visible_content import ContentKeys, keyed_pseudonym
from rolebundle.storage.visible_copy import Difference


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How to publish.

    Attributes:
        publisher: the name in the manifest.
        expires: how long the replica is accepted by `pull`.
        grace: how long after that a pulled replica still answers.
        overlay_folders: the folders of the overlays whose digests the manifest has.
    """

    publisher: str
    expires: timedelta
    grace: timedelta
    overlay_folders: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class _Staged:
    """A replica in the publisher's folder, and how it differs from the one before."""

    signed: SignedManifest
    difference: Difference
    rebuilt: str
    recorded: Publication


def publish(
    path: Path,
    audience: Audience,
    transport: Transport,
    key: PrivateKey,
    options: PublishOptions,
) -> PublishReport:
    """Build or update the replica of a target, and let the transport publish it.

    Args:
        path: the publisher's corpus.
        audience: for whom it is.
        transport: where it goes.
        key: signs the manifest.
        options: how to publish.

    Raises:
        CorpusBusy: another process publishes to this target.
        UsageError, ConfigurationError, StorageError: it was not published.
    """
    staged_path = staged_replica(path, transport.target)
    with staging(path):
        _make_private_folder(staged_path.parent)
        staged = None
        while staged is None:
            known, purges = _known(path, transport, key)
            try:
                staged = _stage(path, staged_path, audience, known, purges, key, options)
            except OSError as error:
                raise storage_error(staged_path, error) from error
        manifest = staged.signed.manifest
        beside = sign(manifest.model_copy(update={"file_digest": sha256_of(staged_path)}), key)
        moved = transport.push(staged_path, beside.model_dump_json(indent=2).encode())
        # Older states may hold what this one was built anew to be without.
        is_rebuilt = bool(staged.rebuilt and known.generation)
        history = erase_history(transport) if is_rebuilt else None
        _record_push(path, staged.recorded, manifest, audience)
        file_bytes = staged_path.stat().st_size
    return PublishReport(
        target=transport.target,
        manifest=manifest,
        key_id=staged.signed.key_id,
        changed=manifest.content_digest != known.content_digest,
        rebuilt=staged.rebuilt,
        added=staged.difference.added,
        updated=staged.difference.updated,
        removed=staged.difference.removed,
        file_bytes=file_bytes,
        moved_bytes=moved,
        history=history,
    )


def _make_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(
            "cannot_create",
            f"{folder}: the folder cannot be created ({error.strerror})",
            "give yourself write permission in the corpus's folder",
        ) from error


def _known(path: Path, transport: Transport, key: PrivateKey) -> tuple[Publication, set[str]]:
    """What is known of the last replica, and the ids of all purges until now.

    A corpus that was restored from a backup may have published later ones. Readers would refuse
    an older generation than theirs, so the published manifest counts, too.
    """
    with open_reader(path) as corpus, corpus.reading():
        replicas.refuse_changes(corpus)
        known = find_publication(corpus, transport.target) or Publication(
            transport.target, "", "", "", "", 0, 0, "", "", "", 0, b""
        )
        purges = purge_ids(corpus)
        corpus_id = corpus_counts(corpus).corpus_id
    try:
        beside = transport.manifest()
        signed = beside and read_manifest(beside, transport.target, key.public_key())
    except RolebundleError:
        return known, purges
    if not signed or signed.manifest.corpus_id != corpus_id:
        return known, purges
    there = signed.manifest
    if there.generation > known.generation:
        known = known._replace(generation=there.generation, content_digest=there.content_digest)
    if there.purge_generation > known.purge_generation:
        known = known._replace(purge_generation=there.purge_generation)
    return known, purges


def _record(
    path: Path, known: Publication, signed: SignedManifest, names: list[str], purges: set[str]
) -> Publication | None:
    """Record a replica before it is anywhere: a purge must find it also if this process is killed.

    Args:
        path: the publisher's corpus.
        known: what was known when the replica was built.
        signed: its manifest.
        names: what it holds.
        purges: the ids of the purges before that.

    Returns:
        What was recorded; ``None`` if there was another purge since then. Then the replica may hold
        what was purged.
    """
    manifest = signed.manifest
    with open_writer(path) as corpus, corpus.writing():
        if purge_ids(corpus) != purges:
            return None
        present = find_publication(corpus, known.target) or known
        recorded = with_carried(present, manifest.corpus_id, names)._replace(
            publisher=manifest.publisher,
            key_id=signed.key_id,
            generation=manifest.generation,
            # The manifest's is higher if this corpus was restored from a backup.
            purge_generation=max(present.purge_generation, manifest.purge_generation),
            content_digest=manifest.content_digest,
            # An earlier replica, which somebody still has, may answer longer.
            refuses_at=max(present.refuses_at, manifest.refuses_at),
        )
        save_publication(corpus, recorded)
        return recorded


def _record_push(
    path: Path, recorded: Publication, manifest: ReplicaManifest, audience: Audience
) -> None:
    """Record that it is published. A purge that came since it was recorded makes it outdated."""
    with open_writer(path) as corpus, corpus.writing():
        present = find_publication(corpus, recorded.target) or recorded
        pushed = present._replace(
            agent=manifest.agent,
            visibility=audience.visibility(),
            published_at=manifest.published_at,
            published_purges=manifest.purge_generation,
        )
        save_publication(corpus, pushed)


# -- the replica beside the corpus -----------------------------------------------------------------


def _stage(
    path: Path,
    staged_path: Path,
    audience: Audience,
    known: Publication,
    purges: set[str],
    key: PrivateKey,
    options: PublishOptions,
) -> _Staged | None:
    """Bring the replica beside the corpus up to date.

    Returns:
        The replica; ``None`` if something was purged meanwhile, and it must be built again.
    """
    pseudonym = keyed_pseudonym(_pseudonym_key(key))
    with open_reader(path) as source:
        audit = load_stored_audit(source)
        source.enable_restriction()
        with source.reading(), partial_file(staged_path) as partial:
            view = audience.restrict(source)
            former, rebuilt = _former(source, staged_path, audience, known, key)
            held_before = ContentKeys() if former is None else _held_since_built(staged_path)
            if former is not None:
                shutil.copyfile(staged_path, partial)
            with open_writer(partial, lock=False, replica=True) as replica:
                with replica.writing():
                    difference = visible_copy.synchronize(
                        source, replica, pseudonym, view.decision_scopes
                    )
                if former is None:
                    replica_file.compact(replica)
                digest = visible_content.content_digest(replica)
                generation = _generation(digest, former, known)
                with replica.writing():
                    _save_state(source, replica, audience, audit, generation)
                    built = former.built_generation if former else generation
                    manifest = _manifest(replica, audience, view, known, options, digest, built)
                    signed = sign(manifest, key)
                    replicas.save_manifest(replica, signed.model_dump_json())
                names = names_in(replica)
                removed = held_before.difference(visible_content.content_keys(replica))
                replica_file.prepare_for_readers(replica)
            sync_file(partial)
            recorded = _record(path, known, signed, names, purges)
            if recorded is None:
                return None
            if former is not None:
                _save_removed(staged_path, removed)
            partial.replace(staged_path)
            if former is None:
                _save_removed(staged_path, removed)
            sync_folder(staged_path.parent)
    return _Staged(signed, difference, rebuilt, recorded)


def _pseudonym_key(key: PrivateKey) -> bytes:
    """A secret that stays the same for all replicas that a key signs."""
    return blake2b(key.private_bytes_raw(), person=b"pseudonyms", digest_size=32).digest()


def _former(
    source: Corpus, staged_path: Path, audience: Audience, known: Publication, key: PrivateKey
) -> tuple[ReplicaManifest | None, str]:
    """The manifest of the replica that can be changed in place; else why it must be built anew.

    Erased rows leave traces in a file: words in the segments of an index, copies of rows in pages
    that were split. So a replica is built anew if anything that it held must not be seen any more.
    It is verified as by `pull`: nothing is signed that was not built here.
    """
    if known.is_outdated:
        return None, "documents of it were purged"
    if not staged_path.exists():
        return None, "the last one is gone" if known.generation else "it is the first"
    try:
        former = verify_replica(staged_path, str(staged_path), key.public_key()).manifest
        hidden = visible_content.is_anything_hidden_now(source, _held_since_built(staged_path))
    except RolebundleError as error:
        return None, f"the last one cannot be used: {error.message}"
    if former.corpus_id != corpus_counts(source).corpus_id:
        return None, "the last one is of another corpus"
    if (former.agent, known.visibility) != (audience.agent, audience.visibility()):
        return None, "it is for another agent, or the agent may see something else"
    if hidden:
        return None, "the agent may no longer see some of it"
    return former, ""


def _held_since_built(staged_path: Path) -> ContentKeys:
    """What a staged replica holds, and what was removed from it since it was built.

    Raises:
        StorageError: what was removed is not known.
    """
    try:
        documents, texts = json.loads(_removed(staged_path).read_bytes())
        removed = ContentKeys(frozenset(documents), frozenset(texts))
    except FileNotFoundError:
        removed = ContentKeys()
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(
            "staging_unreadable",
            f"{_removed(staged_path)}: cannot be read",
            "delete the folder of this file and publish again",
        ) from error
    with open_reader(staged_path) as staged:
        return visible_content.content_keys(staged).union(removed)


def _save_removed(staged_path: Path, removed: ContentKeys) -> None:
    """Store what was removed from a staged replica since it was built.

    Store it before a replica that was changed in place gets its name, and after one that was built
    anew: if the process is killed between the two, too much is stored, and not too little.
    """
    with partial_file(_removed(staged_path)) as partial:
        partial.write_text(json.dumps([sorted(names) for names in removed]), encoding="utf-8")
        sync_file(partial)
        partial.replace(_removed(staged_path))


def _removed(staged_path: Path) -> Path:
    return staged_path.with_name("removed.json")


def _generation(digest: str, former: ReplicaManifest | None, known: Publication) -> int:
    """The generation of a replica: one more than the last, if it holds something else."""
    last = (known.generation, known.content_digest)
    if former is not None:
        last = max(last, (former.generation, former.content_digest))
    return last[0] + (digest != last[1])


def _save_state(
    source: Corpus, replica: Corpus, audience: Audience, audit: StoredAudit, generation: int
) -> None:
    """Write the identity of the corpus and the agent's own rule."""
    replica_file.set_identity(replica, corpus_counts(source).corpus_id, generation)
    # A replica keeps an audit of its own. Only whether it must comes from the publisher.
    save_stored_audit(replica, StoredAudit(audit.required))
    policy = audience.replica_policy()
    stored = stored_policy.load_policy(replica)
    if policy and (stored is None or stored.content != policy):
        stored_policy.save_policy(replica, policy, "json", "", _now())


def _manifest(
    replica: Corpus,
    audience: Audience,
    view: AgentView,
    known: Publication,
    options: PublishOptions,
    digest: str,
    built_generation: int,
) -> ReplicaManifest:
    counts, now = corpus_counts(replica), datetime.now(UTC)
    policy = stored_policy.load_policy(replica)
    overlays = overlay_digests(options.overlay_folders)
    return ReplicaManifest(
        publisher=options.publisher,
        agent=audience.agent,
        corpus_id=counts.corpus_id,
        publication=publication_id(counts.corpus_id, known.target),
        generation=counts.generation,
        built_generation=built_generation,
        purge_generation=known.purge_generation,
        content_digest=digest,
        stored_digest=replica_file.stored_digest(replica),
        schema_version=latest_version(),
        documents=counts.documents,
        chunks=counts.chunks,
        quarantined=view.quarantined,
        indexes=[
            PublishedIndex(
                provider=index.identity.model.provider,
                model=index.identity.model.model,
                model_digest=index.identity.model.digest,
                dimensions=index.identity.model.dimensions,
                chunker=index.identity.chunker,
            )
            for index in all_indexes(replica)
        ],
        overlays={role: overlays[role] for role in sorted(overlays) if view.allows_role(role)},
        policy_digest=policy.digest if policy else "",
        published_at=iso_utc(now),
        expires_at=iso_utc(now + options.expires),
        refuses_at=iso_utc(now + options.expires + options.grace),
    )


def _now() -> str:
    return iso_utc(datetime.now(UTC))
