"""The record of a replica, and the publisher's records of its publications."""

from __future__ import annotations

import json
from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.stored_values import check_types, damaged

_PUBLICATION = (
    "target, agent, visibility, publisher, key_id, generation, purge_generation, content_digest, "
    "published_at, refuses_at, published_purges, carried"
)
_PUBLICATION_TYPES = (str, str, str, str, str, int, int, str, str, str, int, bytes)


class ReplicaRecord(NamedTuple):
    """What a replica says of itself; see :class:`rolebundle.contracts.replica.ReplicaManifest`."""

    publisher: str
    agent: str
    generation: int
    purge_generation: int
    quarantined: int
    published_at: str
    expires_at: str
    refuses_at: str


def stored_manifest(corpus: Corpus) -> str:
    """The signed manifest in a replica, as JSON; empty if the corpus is not a replica."""
    rows = corpus.rows("SELECT manifest FROM main.replica")
    if not rows:
        return ""
    check_types(rows[0], (str,), "the manifest of the replica")
    return str(rows[0][0])


def save_manifest(corpus: Corpus, manifest: str) -> None:
    """Make a corpus a replica. Call it inside a write transaction."""
    corpus.run("INSERT OR REPLACE INTO replica (only_row, manifest) VALUES (1, ?)", (manifest,))


def load_record(corpus: Corpus) -> ReplicaRecord | None:
    """What a replica says of itself, or ``None`` if the corpus is not a replica.

    `pull` has verified it. It is read without pydantic, because each answer needs it.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    text = stored_manifest(corpus)
    if not text:
        return None
    try:
        manifest = json.loads(text)["manifest"]
        values = [manifest[name] for name in ReplicaRecord._fields]
    except (ValueError, TypeError, KeyError) as error:
        raise damaged("the manifest of the replica") from error
    check_types(values, (str, str, int, int, int, str, str, str), "the manifest of the replica")
    return ReplicaRecord(*values)


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
