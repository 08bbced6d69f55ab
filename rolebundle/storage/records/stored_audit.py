"""What the corpus remembers of its audit: whether records are required, and the last known head.

The audit is a file of its own that can be lost or replaced. The corpus tells that it was there.
"""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import records


class StoredAudit(NamedTuple):
    """The audit's head when the corpus was last written, if records are required.

    Attributes:
        required: whether an answer needs a record.
        log_id: the id of the audit; empty if there was none.
        rows: the number of its rows.
        hash: the hash of its last row.
    """

    required: bool = False
    log_id: str = ""
    rows: int = 0
    hash: str = ""


def load_stored_audit(corpus: Corpus) -> StoredAudit:
    """What the corpus remembers of its audit.

    Raises:
        CorpusCorrupt: its row is damaged.
    """
    rows = corpus.rows("SELECT required, log_id, rows, hash FROM main.audit_state")
    return next(iter(records(StoredAudit, rows)), StoredAudit())


def save_stored_audit(corpus: Corpus, stored: StoredAudit) -> None:
    """Replace it. Call it inside a write transaction."""
    corpus.run(
        "INSERT OR REPLACE INTO audit_state (only_row, required, log_id, rows, hash) "
        "VALUES (1, ?, ?, ?, ?)",
        (int(stored.required), stored.log_id, stored.rows, stored.hash),
    )
