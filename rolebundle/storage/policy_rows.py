"""The policy that the corpus is under, as it was set."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.sqlite_file import check_types


class StoredPolicy(NamedTuple):
    """A policy's text, and where it came from. ``location`` is empty where there is no file."""

    content: str
    format: str
    location: str
    digest: str
    set_at: str


def ever_set(corpus: Corpus) -> bool:
    """Whether a policy was ever set; there is no way back."""
    return bool(corpus.value("SELECT count(*) FROM main.policy"))


def stored(corpus: Corpus) -> StoredPolicy | None:
    """The policy as it was set.

    Raises:
        CorpusCorrupt: its row is damaged.
    """
    found = corpus.rows("SELECT content, format, location, digest, set_at FROM main.policy")
    if not found:
        return None
    check_types(found[0], (str, str, str, str, str), "the policy")
    return StoredPolicy(*found[0])


def store(corpus: Corpus, content: str, kind: str, location: str, set_at: str) -> None:
    """Put a policy in the place of the one before. Call it inside a write transaction."""
    corpus.run(
        "INSERT OR REPLACE INTO policy (only_row, content, format, location, digest, set_at) "
        "VALUES (1, ?, ?, ?, ?, ?)",
        (content, kind, location, digest_of(content), set_at),
    )


def digest_of(content: str) -> str:
    """What tells one policy's text from another's."""
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
