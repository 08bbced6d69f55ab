"""Small tables of records: approvals, starts of gates, flags of paths, the audit, the policy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rolebundle.storage.corpus import Corpus, corpus_contents
from rolebundle.storage.digests import content_hash


def approved_manifests(corpus: Corpus) -> list[dict[str, Any]]:
    """The path, the content's hash and the time of every approval, ordered by path."""
    names = ("location", "content_hash", "approved_at")
    found = corpus.rows(f"SELECT {', '.join(names)} FROM approved_manifest ORDER BY location")
    return [dict(zip(names, row, strict=True)) for row in found]


def approved_hash(corpus: Corpus, location: str) -> str | None:
    """The content hash with which a file was approved, or ``None``."""
    found = "SELECT content_hash FROM approved_manifest WHERE location = ?"
    approved: str | None = corpus.value(found, (location,))
    return approved


def approve(corpus: Corpus, location: str, content_hash: str, approved_at: str) -> None:
    """Approve a file, instead of its earlier content. Call it inside a write transaction."""
    target = "approved_manifest (location, content_hash, approved_at)"
    corpus.insert(target, [(location, content_hash, approved_at)], "REPLACE")


def revoke(corpus: Corpus, location: str) -> bool:
    """Remove an approval. Return whether there was one. Call it inside a write transaction."""
    was_approved = approved_hash(corpus, location) is not None
    corpus.run("DELETE FROM approved_manifest WHERE location = ?", (location,))
    return was_approved


class StoredBaseline(NamedTuple):
    """A contract's absolute path and hash, its baseline as JSON, and the time in ISO 8601."""

    contract: str
    contract_hash: str
    baseline: str
    started_at: str


def load_gate_baseline(corpus: Corpus, contract: str) -> StoredBaseline | None:
    """The baseline of a contract, or ``None``.

    Raises:
        CorpusCorrupt: its row is damaged.
    """
    found = corpus.select(StoredBaseline, "main.gate_baseline WHERE contract = ?", (contract,))
    return next(iter(found), None)


def save_gate_baseline(corpus: Corpus, baseline: StoredBaseline) -> None:
    """Store a baseline instead of the contract's former one. Call it inside a write transaction."""
    corpus.put("gate_baseline", baseline)


def load_path_flags(corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Real path → flag → value, ordered by path."""
    rows = corpus.rows("SELECT location, flags FROM path_flags ORDER BY location")
    return {location: json.loads(flags) for location, flags in rows}


def save_path_flags(corpus: Corpus, flags_by_path: Mapping[str, Mapping[str, object]]) -> None:
    """Replace all rows. Call it inside a write transaction."""
    corpus.run("DELETE FROM path_flags")
    rows = [(path, json.dumps(flags, sort_keys=True)) for path, flags in flags_by_path.items()]
    corpus.insert("path_flags", rows)


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
    known = next(iter(corpus.select(StoredAudit, "main.audit_state")), StoredAudit())
    # Each machine has its own audit, so there is no head for all.
    return StoredAudit(known.required) if corpus.is_shared else known


def save_stored_audit(corpus: Corpus, stored: StoredAudit) -> None:
    """Replace it. Call it inside a write transaction."""
    corpus.put("audit_state", stored, only_row=1)


class StoredPolicy(NamedTuple):
    """A policy's text, and where it came from. ``location`` is empty if it came from no file."""

    content: str
    format: str
    location: str
    digest: str
    set_at: str


def has_policy(corpus: Corpus) -> bool:
    """Whether a policy was ever set. It can be replaced, but not removed."""
    return corpus_contents(corpus).has_policy


def load_policy(corpus: Corpus) -> StoredPolicy | None:
    """The stored policy, or ``None``.

    Raises:
        CorpusCorrupt: its row is damaged.
    """
    return next(iter(corpus.select(StoredPolicy, "main.policy ORDER BY only_row")), None)


def save_agent_access(
    corpus: Corpus, access: Sequence[tuple[str, Sequence[int], Sequence[str] | None, str]]
) -> None:
    """Replace what the users of a database may see. Call it inside a write transaction.

    Args:
        corpus: an open database.
        access: for each user, who is named like an agent: the name, the numbers of the compartments
            and the scopes whose decisions it sees (``None`` for all), and the policy as JSON with
            no other agent's rule.
    """
    stored = corpus.rows(
        "SELECT agent, compartments, scopes, content FROM agent_access "
        "JOIN policy ON only_row = number ORDER BY agent"
    )
    wanted = [
        (agent, [*compartments], None if scopes is None else [*scopes], policy)
        for agent, compartments, scopes, policy in access
    ]
    if stored == wanted:
        return
    corpus.run("DELETE FROM agent_access")
    corpus.run("DELETE FROM policy WHERE only_row > 1")
    for number, (agent, compartments, scopes, policy) in enumerate(wanted, 2):
        row = (agent, number, compartments, scopes)
        corpus.insert("agent_access (agent, number, compartments, scopes)", [row])
        own = StoredPolicy(policy, "json", "", content_hash(policy), "")
        corpus.put("policy", own, only_row=number)


def save_policy(corpus: Corpus, content: str, kind: str, location: str, set_at: str) -> None:
    """Replace the stored policy. Call it inside a write transaction."""
    policy = StoredPolicy(content, kind, location, content_hash(content), set_at)
    corpus.put("policy", policy, only_row=1)
