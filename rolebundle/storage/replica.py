"""The record of a replica, and the publisher's records of its publications."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.errors import StorageError, UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.decisions import DecisionKey
from rolebundle.storage.sqlite_file import SqliteFile
from rolebundle.storage.stored_values import check_types, damaged
from rolebundle.text.counts import age

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PUBLISHED = "published:"
"""How the location of a file in a replica begins. No file of a machine has such a path."""
PULL = "rolebundle pull SOURCE --key FILE.pub --db FILE"
"""The command that replaces a replica by the one that is published now."""

_PUBLICATION = (
    "target, agent, visibility, publisher, key_id, generation, purge_generation, content_digest, "
    "published_at, refuses_at, published_purges, carried"
)
_RECORD_TYPES = (str, str, int, int, int, str, str, str, str)
_PUBLICATION_TYPES = (str, str, str, str, str, int, int, str, str, str, int, bytes)
_HASH_SIZE = 8


class ReplicaRecord(NamedTuple):
    """What a replica says of itself; see :class:`rolebundle.contracts.replica.ReplicaManifest`.

    ``key_id`` is that of :class:`rolebundle.contracts.replica.SignedManifest`.
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
        """Whether its answers need a warning, and no `pull` accepts it any more."""
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
    rows = corpus.rows("SELECT manifest FROM main.replica")
    if not rows:
        return ""
    check_types(rows[0], (str,), "the manifest of the replica")
    return str(rows[0][0])


def save_manifest(corpus: Corpus, manifest: str) -> None:
    """Make a corpus a replica. Call it inside a write transaction."""
    corpus.run("INSERT OR REPLACE INTO replica (only_row, manifest) VALUES (1, ?)", (manifest,))


def load_record(corpus: SqliteFile) -> ReplicaRecord | None:
    """What a replica says of itself, or ``None`` if the corpus is not a replica.

    `pull` has verified it. It is read without pydantic, because each answer needs it.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    text = stored_manifest(corpus)
    if not text:
        return None
    try:
        signed = json.loads(text)
        values = {**signed["manifest"], "key_id": signed["key_id"]}
        record = ReplicaRecord(*(values[name] for name in ReplicaRecord._fields))
        check_types(record, _RECORD_TYPES, "the manifest of the replica")
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
            f"{corpus.path}: is a replica of {record.publisher}, which only `pull` changes",
            "change the corpus that it is published from, or name another file with --db",
        )


class Publication(NamedTuple):
    """What was published to one target; see ``migrations/0010_replicas.sql``."""

    target: str
    agent: str
    visibility: str
    publisher: str
    key_id: str
    generation: int
    purge_generation: int
    content_digest: str
    published_at: str
    refuses_at: str
    published_purges: int
    carried: bytes

    @property
    def is_outdated(self) -> bool:
        """Whether the last replica that was published may hold something that was purged."""
        return self.published_purges < self.purge_generation


def publications(corpus: Corpus) -> list[Publication]:
    """Every publication, ordered by target."""
    rows = corpus.rows(f"SELECT {_PUBLICATION} FROM publication ORDER BY target")
    for row in rows:
        check_types(row, _PUBLICATION_TYPES, "a publication")
    return [Publication(*row) for row in rows]


def publication(corpus: Corpus, target: str) -> Publication | None:
    """What was published to a target, or ``None``."""
    return next((known for known in publications(corpus) if known.target == target), None)


def save_publication(corpus: Corpus, known: Publication) -> None:
    """Store what was published to a target. Call it inside a write transaction."""
    places = ", ".join("?" * len(known))
    corpus.run(f"INSERT OR REPLACE INTO publication ({_PUBLICATION}) VALUES ({places})", known)


def decision_name(decision: DecisionKey) -> str:
    """The name of a decision in ``carried``. A document's name there is its id."""
    return f"decision:{decision[0]}-{decision[1]}"


def carried_hash(corpus_id: str, name: str) -> bytes:
    """The hash of a name in ``carried``, 8 bytes. The same name has others in other corpora."""
    key = corpus_id.encode()[: blake2b.MAX_KEY_SIZE]
    return blake2b(name.encode(), digest_size=_HASH_SIZE, key=key).digest()


def publication_id(corpus_id: str, target: str) -> str:
    """The identity of a publication in its manifests."""
    return carried_hash(corpus_id, target).hex()


def with_carried(known: Publication, corpus_id: str, names: Iterable[str]) -> Publication:
    """The publication with these names added to what it ever held.

    Store it before a replica that holds them is written: a purge must find the names even if the
    publish is killed.

    Args:
        known: the publication.
        corpus_id: identity of the publisher's corpus.
        names: ids of documents, and names of decisions (:func:`decision_name`).
    """
    import numpy as np

    carried = np.union1d(_hashes(known), _hash_all(corpus_id, names))
    return known._replace(carried=_bytes_of(carried))


def carrying(corpus: Corpus, names: Collection[str]) -> list[Publication]:
    """The publications that ever held one of these names, ordered by target."""
    known = publications(corpus)
    if not known:
        return []
    hashes = _hash_all(corpus_counts(corpus).corpus_id, names)
    return [one for one in known if _places(_hashes(one), hashes).size]


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
    affected = carrying(corpus, names)
    if not affected:
        return []
    import numpy as np

    purged = _hash_all(corpus_counts(corpus).corpus_id, names)
    raised = []
    for known in affected:
        carried = _hashes(known)
        left = np.delete(carried, _places(carried, purged))
        raised.append(
            known._replace(purge_generation=known.purge_generation + 1, carried=_bytes_of(left))
        )
        save_publication(corpus, raised[-1])
    return raised


def _hashes(known: Publication) -> NDArray[np.uint64]:
    """The hashes in ``carried``, as numbers.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    if len(known.carried) % _HASH_SIZE:
        raise damaged("a publication")
    return _numbers_in(known.carried)


def _places(carried: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The places of those of the hashes that are in ``carried``, which is sorted."""
    places = carried.searchsorted(hashes)
    is_within = places < len(carried)
    places, hashes = places[is_within], hashes[is_within]
    found: NDArray[np.intp] = places[carried[places] == hashes]
    return found


def _hash_all(corpus_id: str, names: Iterable[str]) -> NDArray[np.uint64]:
    return _numbers_in(b"".join(carried_hash(corpus_id, name) for name in names))


# As big-endian numbers the hashes have the order of their bytes.
def _numbers_in(hashes: bytes) -> NDArray[np.uint64]:
    import numpy as np

    return np.frombuffer(hashes, dtype=">u8").astype(np.uint64)


def _bytes_of(numbers: NDArray[np.uint64]) -> bytes:
    return numbers.astype(">u8").tobytes()
