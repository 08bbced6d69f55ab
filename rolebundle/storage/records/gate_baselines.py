"""The baselines of gates: the state of the files that a contract names, at its start."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage.connection import Corpus


class StoredBaseline(NamedTuple):
    """A contract's absolute path and hash, its baseline as JSON, and the time in ISO 8601."""

    contract: str
    contract_hash: str
    baseline: str
    started_at: str


def load(corpus: Corpus, contract: str) -> StoredBaseline | None:
    """The baseline of a contract, or ``None``.

    Raises:
        CorpusCorrupt: its row is damaged.
    """
    found = corpus.select(StoredBaseline, "main.gate_baseline WHERE contract = ?", (contract,))
    return next(iter(found), None)


def save(corpus: Corpus, baseline: StoredBaseline) -> None:
    """Store a baseline instead of the contract's former one. Call it inside a write transaction."""
    corpus.put("gate_baseline", baseline)
