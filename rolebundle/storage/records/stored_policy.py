"""The policy that is stored in the corpus."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from rolebundle.storage.connection import Corpus


class StoredPolicy(NamedTuple):
    """A policy's text, and where it came from. ``location`` is empty if it came from no file."""

    content: str
    format: str
    location: str
    digest: str
    set_at: str


def has_policy(corpus: Corpus) -> bool:
    """Whether a policy was ever set. It can be replaced, but not removed."""
    return bool(corpus.value("SELECT count(*) FROM main.policy"))


def load_policy(corpus: Corpus) -> StoredPolicy | None:
    """The stored policy, or ``None``.

    Raises:
        CorpusCorrupt: its row is damaged.
    """
    return next(iter(corpus.select(StoredPolicy, "main.policy")), None)


def save_policy(corpus: Corpus, content: str, kind: str, location: str, set_at: str) -> None:
    """Replace the stored policy. Call it inside a write transaction."""
    policy = StoredPolicy(content, kind, location, policy_digest(content), set_at)
    corpus.put("policy", policy, only_row=1)


def policy_digest(content: str) -> str:
    """The digest of a policy's text."""
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
