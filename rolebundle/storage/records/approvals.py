"""Files that the owner has approved by their content: contracts of gates with commands."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage.connection import Corpus


class Approval(NamedTuple):
    """An approved file: its absolute path, the hash of its content, and when (ISO 8601)."""

    location: str
    content_hash: str
    approved_at: str


def approvals(corpus: Corpus) -> list[Approval]:
    """Every approval, ordered by location."""
    return corpus.select(Approval, "approved_manifest ORDER BY location")


def approved_hash(corpus: Corpus, location: str) -> str | None:
    """The content hash with which a file was approved, or ``None``."""
    return next((a.content_hash for a in approvals(corpus) if a.location == location), None)


def approve(corpus: Corpus, approval: Approval) -> None:
    """Approve a file, instead of its earlier content. Call it inside a write transaction."""
    corpus.put("approved_manifest", approval)


def revoke(corpus: Corpus, location: str) -> bool:
    """Remove an approval. Return whether there was one. Call it inside a write transaction."""
    was_approved = approved_hash(corpus, location) is not None
    corpus.run("DELETE FROM approved_manifest WHERE location = ?", (location,))
    return was_approved
