"""What was published, and what a replica is a copy of."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.errors import StorageError, UsageError
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.decisions import DecisionKey
from rolebundle.storage.sqlite import SqliteFile
from rolebundle.storage.stored_values import damaged, records, typed
from rolebundle.text.words import age

_HASH_SIZE = 8


class Publication(NamedTuple):
    """What was published to one target; see ``migrations/0010_replicas.sql``."""

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
    def is_outdated(self) -> bool:
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
    documents = replica.rows("SELECT document_id FROM document")
    decided = replica.rows("SELECT scope, number FROM decision")
    return [*(name for (name,) in documents), *map(decision_name, decided)]


def carried_hash(corpus_id: str, name: str) -> bytes:
    """The hash of a name in ``carried``, 8 bytes. The same name has others in other corpora."""
    key = corpus_id.encode()[: blake2b.MAX_KEY_SIZE]
    return blake2b(name.encode(), digest_size=_HASH_SIZE, key=key).digest()


def publication_id(corpus_id: str, target: str) -> str:
    """The identity of a publication in its manifests."""
    return carried_hash(corpus_id, target).hex()


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
    """The hashes in ``carried``, where they are sorted.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    carried = publication.carried
    if len(carried) % _HASH_SIZE:
        raise damaged("a publication")
    return {carried[at : at + _HASH_SIZE] for at in range(0, len(carried), _HASH_SIZE)}


def _hash_all(corpus_id: str, names: Iterable[str]) -> set[bytes]:
    return {carried_hash(corpus_id, name) for name in names}


PUBLISHED = "published:"
"""How the location of a file in a replica begins. No file of a machine has such a path."""
PULL = "rolebundle replica pull SOURCE --key FILE.pub --db FILE"
"""The command that replaces a replica by the one that is published now."""


class ReplicaRecord(NamedTuple):
    """What a replica says of itself; see :class:`rolebundle.contracts.upkeep.ReplicaManifest`.

    ``key_id`` is that of :class:`rolebundle.contracts.upkeep.SignedManifest`.
    """

    publisher: str
    agent: str
    generation: int
    purge_generation: int
    quarantined: int
    published_at: str
    expires_at: str
    refuses_at: str
    key_id: str

    def age_hours(self, now: datetime) -> float:
        """Hours since it was published, to a tenth; 0 before that."""
        seconds = (now - _moment(self.published_at)).total_seconds()
        return round(max(0.0, seconds) / 3600, 1)

    def is_expired(self, now: datetime) -> bool:
        """Whether its answers need a warning, and no `replica pull` accepts it any more."""
        return now >= _moment(self.expires_at)

    def is_refusing(self, now: datetime) -> bool:
        """Whether it gives no answers any more."""
        return now >= _moment(self.refuses_at)


def _moment(text: str) -> datetime:
    """A time of a manifest.

    Raises:
        ValueError: it is no time with a zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no zone: {text}")
    return moment


def stored_manifest(corpus: SqliteFile) -> str:
    """The signed manifest in a replica, as JSON; empty if the corpus is not a replica."""
    rows = typed(corpus.rows("SELECT manifest FROM main.replica"), str)
    return rows[0][0] if rows else ""


def save_manifest(corpus: Corpus, manifest: str) -> None:
    """Make a corpus a replica. Call it inside a write transaction."""
    corpus.run("INSERT OR REPLACE INTO replica (only_row, manifest) VALUES (1, ?)", (manifest,))


def load_record(corpus: SqliteFile) -> ReplicaRecord | None:
    """What a replica says of itself, or ``None`` if the corpus is not a replica.

    `replica pull` has verified it. It is read without pydantic, because each answer needs it.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    text = stored_manifest(corpus)
    if not text:
        return None
    try:
        signed = json.loads(text)
        values = {**signed["manifest"], "key_id": signed["key_id"]}
        [record] = records(ReplicaRecord, [[values[name] for name in ReplicaRecord._fields]])
        for time in (record.published_at, record.expires_at, record.refuses_at):
            _moment(time)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged("the manifest of the replica") from error
    return record


def refuse_expired(corpus: Corpus) -> None:
    """Refuse to answer from a replica that was not replaced in time. Its publisher sets the time.

    Raises:
        StorageError: ``replica_expired``.
        CorpusCorrupt: its record is damaged.
    """
    record = load_record(corpus)
    now = datetime.now(UTC)
    if record is not None and record.is_refusing(now):
        raise StorageError(
            "replica_expired",
            f"{corpus.path}: is a replica of {record.publisher} that was published "
            f"{age(record.age_hours(now))} ago ({record.published_at}); since "
            f"{record.refuses_at} it gives no answers",
            f"replace it by the one that is published now: `{PULL}`",
        )


def refuse_changes(corpus: Corpus) -> None:
    """Refuse to change a replica.

    Raises:
        UsageError: ``replica_is_read_only``.
        CorpusCorrupt: its record is damaged.
    """
    record = load_record(corpus)
    if record is not None:
        raise UsageError(
            "replica_is_read_only",
            f"{corpus.path}: is a replica of {record.publisher}, which only `replica pull` changes",
            "change the corpus that it is published from, or name another file with --db",
        )
