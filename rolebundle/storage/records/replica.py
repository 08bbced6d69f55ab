"""What a replica says of itself: the signed manifest in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import NamedTuple

from rolebundle.errors import StorageError, UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.storage.files.stored_values import damaged, records, typed
from rolebundle.text.counts import age

PUBLISHED = "published:"
"""How the location of a file in a replica begins. No file of a machine has such a path."""
PULL = "rolebundle pull SOURCE --key FILE.pub --db FILE"
"""The command that replaces a replica by the one that is published now."""


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
    rows = typed(corpus.rows("SELECT manifest FROM main.replica"), str)
    return rows[0][0] if rows else ""


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
            f"{corpus.path}: is a replica of {record.publisher}, which only `pull` changes",
            "change the corpus that it is published from, or name another file with --db",
        )
