"""Publishing a replica: a corpus file with only what one agent may see, signed, and moved.

The last replica of each target is staged beside the corpus. The visible difference is applied to a
copy of it, which takes its name when it is complete. So a transport moves little, and a killed run
leaves the old replica or the new one.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.marks import PersonName
from rolebundle.contracts.replica import (
    PublishedIndex,
    PublishReport,
    ReplicaManifest,
    SignedManifest,
)
from rolebundle.contracts.request import MAX_NAME_CHARACTERS
from rolebundle.errors import ConfigurationError, RolebundleError, UsageError
from rolebundle.policy.audience import Audience
from rolebundle.policy.overlays import overlay_digests
from rolebundle.policy.trust import AgentView
from rolebundle.replication.erasure import erase_history
from rolebundle.replication.manifest import read_manifest
from rolebundle.replication.signatures import PrivateKey, sign
from rolebundle.replication.staged import find_reusable, save_removed
from rolebundle.replication.transports.blocks import storage_error
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.files.partial import partial_file, sync_file, sync_folder
from rolebundle.storage.indexes.vector_index import all_indexes
from rolebundle.storage.location import staged_replica
from rolebundle.storage.opening import latest_version, open_reader, open_writer
from rolebundle.storage.purge import purge_ids
from rolebundle.storage.records import replica as replicas
from rolebundle.storage.records import stored_policy
from rolebundle.storage.records.publications import (
    Publication,
    carried_names,
    delete_publication,
    find_publication,
    publication_id,
    publications,
    save_publication,
    with_carried,
)
from rolebundle.storage.records.stored_audit import (
    StoredAudit,
    load_stored_audit,
    save_stored_audit,
)
from rolebundle.storage.replicas import replica_file, visible_content, visible_copy
from rolebundle.storage.replicas.staging import make_private_folder, staging
from rolebundle.storage.replicas.visible_content import ContentKeys, keyed_pseudonym
from rolebundle.storage.replicas.visible_copy import Difference


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
class _BuiltReplica:
    """A staged replica, and how it differs from the one before."""

    signed: SignedManifest
    difference: Difference
    rebuilt: str
    recorded: Publication
    file_bytes: int


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
        CorpusBusy: another process publishes from this corpus.
        UsageError, ConfigurationError, StorageError: it was not published.
    """
    options = replace(options, publisher=_publisher_name(options.publisher))
    staged_path = staged_replica(path, transport.target)
    with staging(path):
        make_private_folder(staged_path.parent)
        staged = None
        while staged is None:
            last, purges = _last_publication(path, transport, key)
            try:
                staged = _stage(path, staged_path, audience, last, purges, key, options)
            except OSError as error:
                raise storage_error(staged_path, error) from error
        manifest = staged.signed.manifest
        with_digest = manifest.model_copy(update={"file_digest": staged.recorded.file_digest})
        content = sign(with_digest, key).model_dump_json(indent=2).encode()
        try:
            moved = transport.push(staged_path, content)
        except (UsageError, ConfigurationError):
            # Nothing was moved, so no purge needs to name this target.
            if not last.key_id:
                _forget(path, staged_path, last.target)
            raise
        # Older states may hold what this one was built again to be without, or the one of a publish
        # that was not completed.
        is_first = not last.generation
        may_have_history = not is_first and not staged.recorded.published_at
        history = erase_history(transport) if may_have_history else None
        _record_after_push(path, staged.recorded, manifest, audience)
    return PublishReport(
        target=transport.target,
        manifest=manifest,
        key_id=staged.signed.key_id,
        changed=manifest.content_digest != last.content_digest,
        rebuilt=staged.rebuilt,
        added=staged.difference.added,
        updated=staged.difference.updated,
        removed=staged.difference.removed,
        file_bytes=staged.file_bytes,
        moved_bytes=moved,
        history=history,
    )


def _publisher_name(name: str) -> str:
    """The name in the manifest, on one line: every answer from the replica shows it.

    Raises:
        UsageError: ``bad_publisher``.
    """
    try:
        return TypeAdapter(PersonName).validate_python(name)
    except ValidationError as error:
        raise UsageError(
            "bad_publisher",
            f"the name of the publisher cannot be used: {error.errors()[0]['msg']}",
            f"give one of at most {MAX_NAME_CHARACTERS} printable characters with --name",
        ) from error


def _last_publication(
    path: Path, transport: Transport, key: PrivateKey
) -> tuple[Publication, set[str]]:
    """What is known of the last replica, and the ids of all purges until now.

    A corpus that was restored from a backup may have published later ones. Readers would refuse
    an older generation than theirs, so the published manifest counts, too.
    """
    with open_reader(path) as corpus, corpus.reading():
        replicas.refuse_changes(corpus)
        last = find_publication(corpus, transport.target) or Publication(transport.target)
        purges = purge_ids(corpus)
        corpus_id = corpus_counts(corpus).corpus_id
    try:
        content = transport.manifest()
        signed = content and read_manifest(content, transport.target, key.public_key())
    except RolebundleError:
        return last, purges
    if not signed or signed.manifest.corpus_id != corpus_id:
        return last, purges
    published = signed.manifest
    if published.generation > last.generation:
        last = last._replace(
            generation=published.generation, content_digest=published.content_digest
        )
    if published.purge_generation > last.purge_generation:
        last = last._replace(purge_generation=published.purge_generation)
    return last, purges


def _record_before_push(
    path: Path,
    last: Publication,
    signed: SignedManifest,
    file_digest: str,
    names: list[str],
    purges: set[str],
    *,
    is_rebuilt: bool,
) -> Publication | None:
    """Record a replica before it is anywhere: a purge must find it also if this process is killed.

    Args:
        path: the publisher's corpus.
        last: the publication when the replica was built.
        signed: its manifest.
        file_digest: the SHA-256 of its file.
        names: what it holds.
        purges: the ids of the purges before that.
        is_rebuilt: whether its file was built again. Then older states are still to be removed.

    Returns:
        What was recorded; ``None`` if there was another purge since then. Then the replica may hold
        what was purged.
    """
    manifest = signed.manifest
    with open_writer(path) as corpus, corpus.writing():
        if purge_ids(corpus) != purges:
            return None
        present = find_publication(corpus, last.target) or last
        recorded = with_carried(present, manifest.corpus_id, names)._replace(
            publisher=manifest.publisher,
            key_id=signed.key_id,
            generation=manifest.generation,
            # The manifest's is higher if this corpus was restored from a backup.
            purge_generation=max(present.purge_generation, manifest.purge_generation),
            content_digest=manifest.content_digest,
            file_digest=file_digest,
            # Until older states are removed, also by a later publish, nothing counts as published.
            published_at="" if is_rebuilt else present.published_at,
            # An earlier replica, which somebody still has, may answer longer.
            refuses_at=max(present.refuses_at, manifest.refuses_at),
        )
        save_publication(corpus, recorded)
        return recorded


def _record_after_push(
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


def forget(path: Path, target: str, *, confirmed: bool) -> Publication:
    """Forget a target to which nothing is published any more. Nothing there is changed.

    Args:
        path: the publisher's corpus.
        target: the address, as :attr:`Transport.target`.
        confirmed: also if replicas that were pulled from there may still answer. No purge counts
            for them any more.

    Returns:
        What was known of it.

    Raises:
        UsageError: ``not_published``: nothing was published there; ``may_answer``: it is not
            confirmed.
        CorpusBusy: another process publishes from this corpus.
        StorageError: it could not be forgotten.
    """
    with staging(path):
        with open_reader(path) as corpus:
            publication = find_publication(corpus, target)
            known_targets = [known.target for known in publications(corpus)]
        if publication is None:
            raise UsageError(
                "not_published",
                f"{target}: nothing was published there from this corpus",
                f"what was published: {', '.join(known_targets)}"
                if known_targets
                else "nothing was published",
            )
        if publication.refuses_at > _now() and not confirmed:
            raise UsageError(
                "may_answer",
                f"{target}: replicas that were pulled from there may answer until "
                f"{publication.refuses_at}, and no purge would count for them any more",
                "wait until then, or give --yes to forget it now",
            )
        _forget(path, staged_replica(path, target), target)
    return publication


def _forget(path: Path, staged_path: Path, target: str) -> None:
    with open_writer(path) as corpus, corpus.writing():
        delete_publication(corpus, target)
    shutil.rmtree(staged_path.parent, ignore_errors=True)


# -- the staged replica ----------------------------------------------------------------------------


def _stage(
    path: Path,
    staged_path: Path,
    audience: Audience,
    last: Publication,
    purges: set[str],
    key: PrivateKey,
    options: PublishOptions,
) -> _BuiltReplica | None:
    """Bring the staged replica up to date.

    Returns:
        The replica; ``None`` if something was purged meanwhile, and it must be built again.
    """
    pseudonym = keyed_pseudonym(_pseudonym_key(key))
    with open_reader(path) as source:
        audit = load_stored_audit(source)
        source.enable_restriction()
        with source.reading(), partial_file(staged_path) as partial:
            view = audience.restrict(source)
            reusable, rebuilt = find_reusable(source, staged_path, audience, last, key)
            former = reusable.manifest if reusable else None
            if reusable is not None:
                shutil.copyfile(staged_path, partial)
            with open_writer(partial, lock=False, replica=True) as replica:
                with replica.writing():
                    difference = visible_copy.synchronize(
                        source, replica, pseudonym, view.decision_scopes
                    )
                if reusable is None:
                    replica_file.compact(replica)
                digest = visible_content.content_digest(replica)
                generation = _generation(digest, former, last)
                with replica.writing():
                    _save_state(source, replica, audience, audit, generation)
                    built = former.built_generation if former else generation
                    manifest = _manifest(replica, audience, view, last, options, digest, built)
                    signed = sign(manifest, key)
                    replicas.save_manifest(replica, signed.model_dump_json())
                names = carried_names(replica)
                replica_file.prepare_for_readers(replica)
            sync_file(partial)
            file_digest, file_bytes = sha256_of(partial), partial.stat().st_size
            recorded = _record_before_push(
                path, last, signed, file_digest, names, purges, is_rebuilt=reusable is None
            )
            if recorded is None:
                return None
            if reusable is not None:
                save_removed(staged_path, reusable.removed)
            partial.replace(staged_path)
            if reusable is None:
                save_removed(staged_path, ContentKeys())
            sync_folder(staged_path.parent)
    return _BuiltReplica(signed, difference, rebuilt, recorded, file_bytes)


def _pseudonym_key(key: PrivateKey) -> bytes:
    """A secret that stays the same for all replicas that a key signs."""
    return blake2b(key.private_bytes_raw(), person=b"pseudonyms", digest_size=32).digest()


def _generation(digest: str, former: ReplicaManifest | None, last: Publication) -> int:
    """The generation of a replica: one more than the last, if it holds something else.

    Also if this machine's clock was put back: else readers would take it for an older one.
    """
    generation, content = last.generation, last.content_digest
    published_at = last.published_at
    if former is not None:
        generation, content = max((generation, content), (former.generation, former.content_digest))
        published_at = max(published_at, former.published_at)
    return generation + (digest != content or _now() < published_at)


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
    last: Publication,
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
        publication=publication_id(counts.corpus_id, last.target),
        generation=counts.generation,
        built_generation=built_generation,
        purge_generation=last.purge_generation,
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
