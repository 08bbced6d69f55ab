"""Decisions and their ends. A decision is never changed, except that a purge erases its words.

The tables are read by their full names: who sees a decision depends on its scope, which the caller
names, and not on the compartments of a restricted connection.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rolebundle.contracts.terms import DEFAULT_SCOPE, Action, Authority, DecisionEffect
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import records, typed

DECISION_TYPE = "decision"
"""The type of documents that are decisions."""

_MAX_DIGITS = 10


class StoredDecision(NamedTuple):
    """A decision as it is stored. Times are ISO 8601 in UTC.

    ``content`` is empty if a purge has erased the decision. ``action`` is ``None`` for every
    action. ``supersedes`` are numbers of decisions of the same scope.
    """

    scope: str
    number: int
    content: str
    reason: str
    status: str
    effect: DecisionEffect
    action: Action | None
    about: tuple[str, ...]
    supersedes: tuple[int, ...]
    decided_by: str
    authority: Authority
    valid_from: str
    valid_until: str | None
    recorded_at: str


_COLUMNS = ", ".join(StoredDecision._fields)
_OF_SCOPES = "WHERE ?1 IS NULL OR scope IN (SELECT value FROM json_each(?1))"
ROWS_OF_SCOPES = f"SELECT {_COLUMNS} FROM main.decision {_OF_SCOPES}"
ENDS_OF_SCOPES = (
    f"SELECT scope, number, ended_by, reason, ended_at FROM main.decision_end {_OF_SCOPES}"
)
"""The rows of the scopes that are given as JSON, or of all if NULL is given."""


class StoredEnd(NamedTuple):
    """Who ended a decision, why and when."""

    ended_by: str
    reason: str
    ended_at: str


DecisionKey = tuple[str, int]
"""The scope and the number of a decision."""


def parse_id(decision_id: str) -> DecisionKey | None:
    """The scope and number of ``SCOPE-NUMBER``, or of a number of the scope ``shared``."""
    scope, _, number = decision_id.strip().rpartition("-")
    if not (number.isascii() and number.isdecimal() and len(number) < _MAX_DIGITS):
        return None
    return scope or DEFAULT_SCOPE, int(number)


def has_decisions(corpus: Corpus) -> bool:
    """Whether there is a decision, or a visible document of the type ``decision``."""
    return bool(
        corpus.value(
            "SELECT EXISTS (SELECT 1 FROM main.decision) "
            # Otherwise SQLite reads every visible document.
            "OR EXISTS (SELECT 1 FROM main.document d INDEXED BY decision_document "
            f"WHERE d.document_type = '{DECISION_TYPE}' "
            "AND EXISTS (SELECT 1 FROM document visible WHERE visible.id = d.id))"
        )
    )


def decisions(corpus: Corpus, scopes: Collection[str] | None = None) -> list[StoredDecision]:
    """The decisions of these scopes, or of all, ordered by scope and number."""
    rows = corpus.rows(
        f"{ROWS_OF_SCOPES} ORDER BY scope, number",
        (None if scopes is None else json.dumps(sorted(scopes)),),
    )
    return records(StoredDecision, ((*row[:6], row[6] or None, *row[7:]) for row in rows))


def ends(corpus: Corpus) -> dict[DecisionKey, StoredEnd]:
    """The ends of decisions."""
    rows = corpus.rows("SELECT scope, number, ended_by, reason, ended_at FROM main.decision_end")
    found = typed(rows, str, int, str, str, str)
    return {(scope, number): StoredEnd(*end) for scope, number, *end in found}


def next_number(corpus: Corpus, scope: str) -> int:
    """The number of the next decision of a scope."""
    return 1 + int(
        corpus.value("SELECT coalesce(max(number), 0) FROM decision WHERE scope = ?", (scope,))
    )


def add_decision(corpus: Corpus, decision: StoredDecision) -> None:
    """Store a new decision. Call it inside a write transaction."""
    corpus.run(
        f"INSERT INTO decision ({_COLUMNS}) VALUES ({', '.join('?' * 14)})",
        (
            *decision[:6],
            decision.action or "",
            json.dumps(decision.about, ensure_ascii=False),
            json.dumps([str(number) for number in decision.supersedes]),
            *decision[9:],
        ),
    )


def add_end(corpus: Corpus, key: DecisionKey, end: StoredEnd) -> None:
    """End a decision. Call it inside a write transaction."""
    corpus.run(
        "INSERT INTO decision_end (scope, number, ended_by, reason, ended_at) "
        "VALUES (?, ?, ?, ?, ?)",
        (*key, *end),
    )


def erase_decisions(corpus: Corpus, keys: Sequence[DecisionKey], erased_at: str) -> None:
    """Erase the words of decisions and of their ends. Call it inside a write transaction.

    The numbers stay, so that no later decision gets them, and what an erased decision superseded
    stays superseded. An erased decision has ended.
    """
    for key in keys:
        corpus.run(
            "UPDATE decision SET content = '', reason = '', about = '[]', decided_by = '' "
            "WHERE scope = ? AND number = ?",
            key,
        )
        corpus.run(
            "INSERT INTO decision_end (scope, number, ended_by, reason, ended_at) "
            "VALUES (?, ?, '', '', ?) ON CONFLICT DO UPDATE SET ended_by = '', reason = ''",
            (*key, erased_at),
        )
