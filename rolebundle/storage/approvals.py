"""Manifests in nested checkouts, or of other users, that the owner has approved."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.sqlite_file import check_types


class Approval(NamedTuple):
    """An approved manifest: its absolute path, the hash of its content, and when (ISO 8601)."""

    location: str
    content_hash: str
    approved_at: str


def approvals(corpus: Corpus) -> list[Approval]:
    """Every approval, ordered by location."""
    rows = corpus.rows(
        "SELECT location, content_hash, approved_at FROM approved_manifest ORDER BY location"
    )
    for row in rows:
        check_types(row, (str, str, str), "an approval")
    return [Approval(*row) for row in rows]


def approve(corpus: Corpus, approval: Approval) -> None:
    """Approve a manifest, instead of its earlier content. Call it inside a write transaction."""
    corpus.run("INSERT OR REPLACE INTO approved_manifest VALUES (?, ?, ?)", tuple(approval))


def revoke(corpus: Corpus, location: str) -> bool:
    """Remove an approval. Return whether there was one. Call it inside a write transaction."""
    was_approved = bool(
        corpus.rows("SELECT 1 FROM approved_manifest WHERE location = ?", (location,))
    )
    corpus.run("DELETE FROM approved_manifest WHERE location = ?", (location,))
    return was_approved
