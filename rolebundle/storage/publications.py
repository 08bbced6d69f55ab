"""What was published, and what a replica is a copy of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.errors import StorageError, UsageError
from rolebundle.storage.corpus import Corpus, corpus_counts, once_in_snapshot
from rolebundle.storage.decisions import DecisionKey
from rolebundle.storage.stored_values import typed
from rolebundle.text.words import age

# What an answer does not need is imported by the functions that need it.
if TYPE_CHECKING:
    from rolebundle.contracts.upkeep import SignedManifest

_HASH_SIZE = 8


class Publication(NamedTuple):
    """What was published to one target; see ``migrations/0010_replicas.sql``.

    ``carried`` has the hashes of the names of all that any replica of it has ever held, sorted.
    """

    target: str
    agent: str = ""
    visibility: str = ""
    publisher: str = ""
    key_id: str = ""
    generation: int = 0
    purge_generation: int = 0
    content_digest: str = ""
    file_digest: str = ""
    published_at: str = ""
    refuses_at: str = ""
    published_purges: int = 0
    carried: bytes = b""

    @property
    def purge_pending(self) -> bool:
        """Whether the last replica that was published may hold something that was purged."""
        return self.published_purges < self.purge_generation


def publications(corpus: Corpus) -> list[Publication]:
    """Every publication, ordered by target."""
    return corpus.select(Publication, "publication ORDER BY target")


def find_publication(corpus: Corpus, target: str) -> Publication | None:
    """The publication to a target, or ``None``."""
    return next((found for found in publications(corpus) if found.target == target), None)


def save_publication(corpus: Corpus, publication: Publication) -> None:
    """Store a publication. Call it inside a write transaction."""
    corpus.put("publication", publication)


def delete_publication(corpus: Corpus, target: str) -> None:
    """Forget a target. Call it inside a write transaction."""
    corpus.run("DELETE FROM publication WHERE target = ?", (target,))


def decision_name(decision: DecisionKey) -> str:
    """The name of a decision in ``carried``. A document's name there is its id."""
    return f"decision:{decision[0]}-{decision[1]}"


def carried_names(replica: Corpus) -> list[str]:
    """The names of all that a replica holds, as in ``carried``."""
    documents = replica.column("SELECT document_id FROM document")
    decided = replica.rows("SELECT scope, number FROM decision")
    return [*documents, *map(decision_name, decided)]


def carried_hash(corpus_id: str, name: str) -> bytes:
    """The hash of a name in ``carried``, 8 bytes. Each corpus has its own hash of a name."""
    key = corpus_id.encode()[: blake2b.MAX_KEY_SIZE]
    return blake2b(name.encode(), digest_size=_HASH_SIZE, key=key).digest()


def with_carried(publication: Publication, corpus_id: str, names: Iterable[str]) -> Publication:
    """The publication with these names added to what it ever held.

    Store it before a replica that holds them is written: a purge must find the names even if the
    publish is killed.

    Args:
        publication: the publication.
        corpus_id: identity of the publisher's corpus.
        names: ids of documents, and names of decisions (:func:`decision_name`).
    """
    carried = _hashes(publication) | _hash_all(corpus_id, names)
    return publication._replace(carried=b"".join(sorted(carried)))


def carrying(corpus: Corpus, names: Collection[str]) -> list[Publication]:
    """The publications that ever held one of these names, ordered by target."""
    present = publications(corpus)
    hashes = _hash_all(corpus_counts(corpus).corpus_id, names) if present else set()
    return [publication for publication in present if _hashes(publication) & hashes]


def raise_purge_generations(corpus: Corpus, names: Collection[str]) -> list[Publication]:
    """Raise the purge generation of each publication that ever held one of these names.

    The hashes of the names are removed, because they would show what was purged to whoever guesses
    a name. Call it inside the transaction of the purge.

    Args:
        corpus: the publisher's corpus.
        names: what is purged, as in :func:`with_carried`.

    Returns:
        The publications that were raised, ordered by target.
    """
    purged = _hash_all(corpus_counts(corpus).corpus_id, names)
    raised = []
    for publication in carrying(corpus, names):
        remaining = b"".join(sorted(_hashes(publication) - purged))
        generation = publication.purge_generation + 1
        raised.append(publication._replace(purge_generation=generation, carried=remaining))
        save_publication(corpus, raised[-1])
    return raised


def _hashes(publication: Publication) -> set[bytes]:
    """The hashes in ``carried``, where they are sorted."""
    carried = publication.carried
    return {carried[at : at + _HASH_SIZE] for at in range(0, len(carried), _HASH_SIZE)}


def _hash_all(corpus_id: str, names: Iterable[str]) -> set[bytes]:
    return {carried_hash(corpus_id, name) for name in names}


PUBLISHED = "published:"
"""How the location of a file in a replica begins. No file of a machine has such a path."""
PULL = "rolebundle replica pull SOURCE --key FILE.pub --db FILE"
"""The command that replaces a replica by the one that is published now."""


@once_in_snapshot
def stored_manifest(corpus: Corpus) -> str:
    """The signed manifest in a replica, as JSON; empty if the corpus is not a replica."""
    rows = typed(corpus.rows("SELECT manifest FROM main.replica"), str)
    return rows[0][0] if rows else ""


def save_manifest(corpus: Corpus, manifest: str) -> None:
    """Make a corpus a replica. Call it inside a write transaction."""
    corpus.insert("replica (only_row, manifest)", [(1, manifest)], "REPLACE")


def load_manifest(corpus: Corpus) -> SignedManifest | None:
    """What a replica says of itself, or ``None`` if the corpus is not a replica.

    `replica pull` has verified its signature.
    """
    text = stored_manifest(corpus)
    if not text:
        return None
    from rolebundle.contracts.upkeep import SignedManifest

    return SignedManifest.model_validate_json(text)


def refuse_expired(corpus: Corpus) -> None:
    """Refuse to answer from a replica that was not replaced in time. Its publisher sets the time.

    Raises:
        StorageError: ``replica_expired``.
        CorpusCorrupt: its record is damaged.
    """
    signed = load_manifest(corpus)
    now = datetime.now(UTC)
    if signed is not None and signed.manifest.is_refusing(now):
        manifest = signed.manifest
        raise StorageError(
            "replica_expired",
            f"{corpus.path}: is a replica of {manifest.publisher} that was published "
            f"{age(manifest.age_hours(now))} ago ({manifest.published_at}); since "
            f"{manifest.refuses_at} it gives no answers",
            f"replace it by the one that is published now: `{PULL}`",
        )


def refuse_changes(corpus: Corpus) -> None:
    """Refuse to change a replica.

    Raises:
        UsageError: ``replica_is_read_only``.
        CorpusCorrupt: its record is damaged.
    """
    signed = load_manifest(corpus)
    if signed is not None:
        raise UsageError(
            "replica_is_read_only",
            f"{corpus.path}: is a replica of {signed.manifest.publisher}, "
            "which only `replica pull` changes",
            "change the corpus that it is published from, or name another file with --db",
        )
