"""The audit's chain: how a row is made from an entry, and what binds it to the one before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rolebundle.contracts.audit import AuditEntry, AuditRow
from rolebundle.storage.audit_file import VERSION

MOST_CHARACTERS = 4_000
"""Of each text of a row. What is longer is cut, and says so: a query may have a million."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chain ends, and what governs the next row."""

    log_id: str
    rows: int
    hash: str
    mode: str
    query: str


def canonical(value: object) -> str:
    """A value as the one JSON text that is hashed: sorted keys, no blanks, ASCII."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def genesis(log_id: str) -> str:
    """What stands for a previous hash in the first row: rows of another log do not fit here."""
    return sha256(f"rolebundle-audit:{VERSION}:{log_id}".encode()).hexdigest()


def row_hash(row: AuditRow) -> str:
    """SHA-256 over the canonical JSON of all fields but the hash itself."""
    plain = row.model_dump()
    del plain["hash"]
    return sha256(canonical(plain).encode()).hexdigest()


def query_digest(log_id: str, text: str) -> str:
    """A query's digest, salted with the log's id.

    The salt keeps ready-made tables, and digests of other logs, from being of use. Whoever has the
    file can still try out guesses.
    """
    return f"sha256:{sha256(f'{log_id}:{storable(text)}'.encode()).hexdigest()}"


def storable(text: str) -> str:
    """A text without what cannot be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text: str) -> str:
    """A text of a length that a row may have. Two long texts stay two."""
    text = storable(text)
    if len(text) <= MOST_CHARACTERS:
        return text
    digest = sha256(text.encode()).hexdigest()
    return f"{text[:MOST_CHARACTERS]}… [{len(text)} characters, sha256:{digest}]"


def sealed(entry: AuditEntry, head: Head, time: str) -> AuditRow:
    """The row that an entry becomes when it follows the head.

    Raises:
        ValueError, TypeError: its details are not JSON.
    """
    query = ""
    if entry.query and head.query != "off":
        keep = head.query == "text"
        query = bounded(entry.query) if keep else query_digest(head.log_id, entry.query)
    row = AuditRow(
        seq=head.rows + 1,
        time=time,
        kind=entry.kind,
        agent=bounded(entry.agent),
        role=bounded(entry.role),
        action=bounded(entry.action),
        query=query,
        bundle_digest=entry.bundle_digest,
        allowed=entry.allowed,
        blocked=dict(entry.blocked),
        details=small(entry.details),
        previous=head.hash,
        hash="",
    )
    # Through JSON and back, so that what is hashed is what will be read.
    row = AuditRow(**json.loads(canonical(row.model_dump())))
    return AuditRow(**(row.model_dump() | {"hash": row_hash(row)}))


def small(details: dict[str, Any], most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Details of a size that a row may have.

    A record that is cut says so; one that is refused would be none.
    """
    text = canonical(details)
    if len(text) <= most:
        return details
    return {"cut": True, "characters": len(text), "sha256": sha256(text.encode()).hexdigest()}
