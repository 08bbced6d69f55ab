"""Publishing a replica: a corpus file with only what one agent may see, signed, and moved.

Each publish builds the file anew, so that no page of it ever held anything else. Equal content
gives equal rows; then the generation stays, and little is moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.upkeep import PublishReport, ReplicaManifest, SignedManifest
from rolebundle.errors import RolebundleError, UsageError, storage_error
from rolebundle.policy.access import Audience, restrict_to_rule
from rolebundle.policy.trust import AgentView
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.pull import read_manifest
from rolebundle.replication.signatures import PrivateKey, sign
from rolebundle.storage import records
from rolebundle.storage import replicas as replica_file
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.file import partial_file
from rolebundle.storage.opening import latest_version, open_reader
from rolebundle.storage.publications import (
    Publication,
    carried_hash,
    carried_names,
    delete_publication,
    find_publication,
    publications,
    refuse_changes,
    save_manifest,
    save_publication,
    with_carried,
)
from rolebundle.storage.purge import purge_ids
from rolebundle.storage.replicas import copy_visible, keyed_pseudonym, staging
from rolebundle.storage.writing import open_writer


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How to publish.

    Attributes:
        key: signs the manifest.
        publisher: the name in the manifest.
        expires: how long the replica is accepted by `replica pull`.
        grace: how long after that a pulled replica still answers.
    """

    key: PrivateKey
    publisher: str
    expires: timedelta
    grace: timedelta


def publish(
    path: Path, audience: Audience, folder: PublishedFolder, options: PublishOptions
) -> PublishReport:
    """Build the replica of a target, and publish it to the folder.

    Args:
        path: the publisher's corpus.
        audience: for whom it is.
        folder: where it goes.
        options: how to publish.

    Raises:
        CorpusBusy: another process publishes from this corpus.
        UsageError, ConfigurationError, StorageError: it was not published.
    """
    with staging(path) as own_folder:
        while True:
            with partial_file(own_folder / "replica.db") as replica:
                if report := _publish(path, replica, audience, folder, options):
                    return report


def _publish(
    path: Path, replica: Path, audience: Audience, folder: PublishedFolder, options: PublishOptions
) -> PublishReport | None:
    """Build the replica in an empty file, record it, and push it.

    ``None`` if something was purged meanwhile, and it must be built again.
    """
    last, purges, published = _former(path, folder, options.key)
    try:
        signed, names = _build(path, replica, audience, last, options)
    except OSError as error:
        raise storage_error(replica, error) from error
    recorded = _record_before_push(path, last, signed, names, purges)
    if recorded is None:
        return None
    try:
        moved = folder.push(replica, signed, published, lambda changed: sign(changed, options.key))
    except UsageError:
        # Nothing was moved, so no purge needs to name this target.
        if not last.key_id:
            _forget(path, last.target)
        raise
    _record_after_push(path, recorded, signed.manifest, audience)
    return PublishReport(
        target=folder.target,
        manifest=signed.manifest,
        key_id=signed.key_id,
        former_key_id=last.key_id,
        changed=signed.manifest.content_digest != last.content_digest,
        moved_bytes=moved,
    )


def _former(
    path: Path, folder: PublishedFolder, key: PrivateKey
) -> tuple[Publication, set[str], SignedManifest | None]:
    """The record of the last replica, the ids of all purges until now, and its manifest.

    A corpus that was restored from a backup may have published later ones. Readers would refuse an
    older generation than theirs, so the published manifest counts, too. It is ``None`` if there is
    none, or if it is of somebody else.
    """
    with open_reader(path) as corpus, corpus.reading():
        refuse_changes(corpus)
        last = find_publication(corpus, folder.target) or Publication(folder.target)
        purges = purge_ids(corpus)
        corpus_id = corpus_counts(corpus).corpus_id
    try:
        published = read_manifest(folder.manifest(), folder.target, key.public_key())
    except RolebundleError:
        return last, purges, None
    newer = published.manifest
    if newer.corpus_id == corpus_id:
        if newer.generation > last.generation:
            last = last._replace(generation=newer.generation, content_digest=newer.content_digest)
        last = last._replace(purge_generation=max(last.purge_generation, newer.purge_generation))
    return last, purges, published


def _build(
    path: Path, file: Path, audience: Audience, last: Publication, options: PublishOptions
) -> tuple[SignedManifest, list[str]]:
    """Build the replica in a file. Return its manifest, and the names of what it holds."""
    with open_reader(path) as source:
        audit = records.load_stored_audit(source)
        source.enable_restriction()
        with source.reading():
            view = restrict_to_rule(source, audience.rule)
            with open_writer(file, lock=False, replica=True) as replica:
                with replica.writing():
                    # A secret that stays the same for all replicas that a key signs.
                    raw = options.key.private_bytes_raw()
                    secret = blake2b(raw, person=b"pseudonyms", digest_size=32).digest()
                    copy_visible(source, replica, keyed_pseudonym(secret), view.decision_scopes)
                replica_file.compact(replica)
                with replica.writing():
                    # A replica keeps an audit of its own. Only whether it must comes from here.
                    records.save_stored_audit(replica, records.StoredAudit(audit.required))
                    if policy := audience.replica_policy():
                        # Without a time, so that an equal policy is equal content.
                        records.save_policy(replica, policy, "json", "", "")
                replica_file.prepare_for_readers(replica)
                corpus_id, names = corpus_counts(source).corpus_id, carried_names(replica)
                manifest = _manifest(replica, corpus_id, audience, view, last, options)
                signed = sign(manifest, options.key)
                with replica.writing():
                    replica_file.set_identity(replica, corpus_id, signed.manifest.generation)
                    save_manifest(replica, signed.model_dump_json())
    return signed, names


def _manifest(
    replica: Corpus,
    corpus_id: str,
    audience: Audience,
    view: AgentView,
    last: Publication,
    options: PublishOptions,
) -> ReplicaManifest:
    counts, now = corpus_counts(replica), datetime.now(UTC)
    policy = records.load_policy(replica)
    digest, published_at = replica_file.content_digest(replica), iso_utc(now)
    # Also if this machine's clock was put back: else readers would take it for an older one.
    is_new = digest != last.content_digest or published_at < last.published_at
    return ReplicaManifest(
        publisher=options.publisher,
        agent=audience.agent,
        corpus_id=corpus_id,
        publication=carried_hash(corpus_id, last.target).hex(),
        generation=last.generation + is_new,
        purge_generation=last.purge_generation,
        content_digest=digest,
        schema_version=latest_version(),
        documents=counts.documents,
        chunks=counts.chunks,
        quarantined=view.quarantined,
        policy_digest=policy.digest if policy else "",
        published_at=published_at,
        expires_at=iso_utc(now + options.expires),
        refuses_at=iso_utc(now + options.expires + options.grace),
    )


# -- the records of the publisher ------------------------------------------------------------------


def _record_before_push(
    path: Path, last: Publication, signed: SignedManifest, names: Sequence[str], purges: set[str]
) -> Publication | None:
    """Record a replica before it is anywhere: a purge must find it also if this process is killed.

    Args:
        path: the publisher's corpus.
        last: the publication when the replica was built.
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
        present = find_publication(corpus, last.target) or last
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
        target: the address, as :attr:`PublishedFolder.target`.
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
            problem = f"{target}: nothing was published there from this corpus"
            step = f"what was published: {', '.join(known_targets) or 'nothing'}"
            raise UsageError("not_published", problem, step)
        if publication.refuses_at > iso_utc(datetime.now(UTC)) and not confirmed:
            raise UsageError(
                "may_answer",
                f"{target}: replicas that were pulled from there may answer until "
                f"{publication.refuses_at}, and no purge would count for them any more",
                "wait until then, or give --yes to forget it now",
            )
        _forget(path, target)
    return publication


def _forget(path: Path, target: str) -> None:
    with open_writer(path) as corpus, corpus.writing():
        delete_publication(corpus, target)
