"""What the corpus remembers of its audit: whether records are required, and the last known head.

The audit is a file of its own that can be lost or replaced. The corpus tells that it was there.
"""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage.connection import Corpus


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
    return next(iter(corpus.select(StoredAudit, "main.audit_state")), StoredAudit())


def save_stored_audit(corpus: Corpus, stored: StoredAudit) -> None:
    """Replace it. Call it inside a write transaction."""
    corpus.put("audit_state", stored, only_row=1)
