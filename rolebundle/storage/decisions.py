"""Decisions and their ends. A decision is never changed, except that a purge erases its words.

The tables are read by their full names: who sees a decision depends on its scope, which the caller
names, and not on the compartments of a restricted connection.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rolebundle.contracts.terms import DEFAULT_SCOPE
from rolebundle.storage.corpus import Corpus

# What an answer does not need is imported by the functions that need it.
if TYPE_CHECKING:
    from rolebundle.contracts.memory import DecisionRecord, NewDecision

_MAX_DIGITS = 10
_COLUMNS = (
    "scope, number, content, reason, status, effect, action, about, supersedes, decided_by, "
    "authority, valid_from, valid_until, recorded_at, commands"
)
_END_COLUMNS = "scope, number, ended_by, reason, ended_at"
_OF_SCOPES = "WHERE CAST(?1 AS TEXT) IS NULL OR scope IN (SELECT value FROM json_each(?1))"
ROWS_OF_SCOPES = f"SELECT {_COLUMNS} FROM main.decision {_OF_SCOPES}"
ENDS_OF_SCOPES = f"SELECT {_END_COLUMNS} FROM main.decision_end {_OF_SCOPES}"
"""The rows of the scopes that are given as JSON, or of all if NULL is given."""

# A decision that ended before it began supersedes nothing. What is superseded once stays so.
_SUPERSEDED = """
    EXISTS (
        SELECT 1 FROM main.decision newer
        LEFT JOIN main.decision_end over USING (scope, number)
        CROSS JOIN json_each(newer.supersedes) named
        WHERE newer.scope = d.scope AND CAST(named.value AS INTEGER) = d.number
        AND newer.status = 'active' AND newer.valid_from <= ?2
        AND (over.ended_at IS NULL OR over.ended_at >= newer.valid_from)
    )
"""
_RECORDS = f"""
    SELECT json_object(
        'id', d.scope || '-' || d.number, 'text', d.content, 'scope', d.scope, 'state', CASE
            WHEN d.content = '' THEN 'erased'
            WHEN e.ended_at <= ?2 THEN 'ended'
            WHEN {_SUPERSEDED} THEN 'superseded'
            WHEN d.status = 'proposed' THEN 'proposed'
            WHEN d.valid_from > ?2 THEN 'not_yet_valid'
            WHEN d.valid_until < ?2 THEN 'expired'
            ELSE 'active' END,
        'effect', d.effect, 'action', nullif(d.action, ''), 'about', json(d.about),
        'commands', json(d.commands), 'reason', d.reason, 'supersedes', json((
            SELECT json_group_array(d.scope || '-' || value) FROM json_each(d.supersedes)
        )),
        'decided_by', d.decided_by, 'authority', d.authority, 'valid_from', d.valid_from,
        'valid_until', d.valid_until, 'recorded_at', d.recorded_at,
        'ended_by', e.ended_by, 'end_reason', e.reason, 'ended_at', e.ended_at)
    FROM main.decision d LEFT JOIN main.decision_end e USING (scope, number)
    WHERE CAST(?1 AS TEXT) IS NULL OR d.scope IN (SELECT value FROM json_each(?1))
    ORDER BY d.scope, d.number
"""

DecisionKey = tuple[str, int]
"""The scope and the number of a decision."""


def parse_id(decision_id: str) -> DecisionKey | None:
    """The scope and number of ``SCOPE-NUMBER``, or of a number of the scope ``shared``."""
    scope, _, number = decision_id.strip().rpartition("-")
    if not (number.isascii() and number.isdecimal() and len(number) < _MAX_DIGITS):
        return None
    return scope or DEFAULT_SCOPE, int(number)


def decisions(
    corpus: Corpus, at: str, scopes: Collection[str] | None = None
) -> list[DecisionRecord]:
    """The decisions of these scopes, or of all, with their states at a time.

    Args:
        corpus: open for reading.
        at: ISO 8601 in UTC.
        scopes: ``None`` for all.
    """
    of_scopes = None if scopes is None else json.dumps(sorted(scopes))
    rows = corpus.column(_RECORDS, (of_scopes, at))
    from rolebundle.contracts.memory import DecisionRecord

    return [DecisionRecord.model_validate_json(row) for row in rows]


def add_decision(
    corpus: Corpus, new: NewDecision, supersedes: Collection[int], recorded_at: str
) -> int:
    """Store a new decision of the owner, and return its number. Call it inside a transaction."""
    last = "SELECT coalesce(max(number), 0) FROM decision WHERE scope = ?"
    number = 1 + int(corpus.value(last, (new.scope,)))
    named = [str(number) for number in sorted(set(supersedes))]
    values = (
        *(new.scope, number, new.text, new.reason or "", new.status, new.effect, new.action or ""),
        *(_as_json(new.about), _as_json(named), new.decided_by, "owner"),
        *(new.valid_from or recorded_at, new.valid_until, recorded_at, _as_json(new.commands)),
    )
    corpus.insert(f"decision ({_COLUMNS})", [values])
    return number


def add_end(corpus: Corpus, key: DecisionKey, ended_by: str, reason: str, ended_at: str) -> None:
    """End a decision. Call it inside a write transaction."""
    corpus.insert(f"decision_end ({_END_COLUMNS})", [(*key, ended_by, reason, ended_at)])


def _as_json(texts: Sequence[str]) -> str:
    return json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False)


def erase_decisions(corpus: Corpus, keys: Sequence[DecisionKey], erased_at: str) -> None:
    """Erase the words of decisions and of their ends. Call it inside a write transaction.

    The numbers stay, so that no later decision gets them, and what an erased decision superseded
    stays superseded. An erased decision has ended.
    """
    corpus.run_many(
        "UPDATE decision SET content = '', reason = '', about = '[]', commands = '[]', "
        "decided_by = '' WHERE scope = ? AND number = ?",
        keys,
    )
    corpus.run_many(
        f"INSERT INTO decision_end ({_END_COLUMNS}) VALUES (?, ?, '', '', ?) "
        "ON CONFLICT (scope, number) DO UPDATE SET ended_by = '', reason = ''",
        [(*key, erased_at) for key in keys],
    )
