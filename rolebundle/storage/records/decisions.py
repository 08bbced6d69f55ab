"""Decisions and their ends. A decision is never changed, except that a purge erases its words.

The tables are read by their full names: who sees a decision depends on its scope, which the caller
names, and not on the compartments of a restricted connection.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple, get_args

from rolebundle.contracts.terms import ACTIONS, DEFAULT_SCOPE, Action, Authority, DecisionEffect
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import check_rows, check_types, damaged, parse_strings

DECISION_TYPE = "decision"
"""The type of documents that are decisions."""

_MAX_DIGITS = 10
_COLUMNS = (
    "scope, number, content, reason, status, effect, action, about, supersedes, decided_by, "
    "authority, valid_from, valid_until, recorded_at"
)
_TYPES = [str, int, *[str] * 10]
_OF_SCOPES = "WHERE ?1 IS NULL OR scope IN (SELECT value FROM json_each(?1))"
ROWS_OF_SCOPES = f"SELECT {_COLUMNS} FROM main.decision {_OF_SCOPES}"
ENDS_OF_SCOPES = (
    f"SELECT scope, number, ended_by, reason, ended_at FROM main.decision_end {_OF_SCOPES}"
)
"""The rows of the scopes that are given as JSON, or of all if NULL is given."""


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
    stored = []
    for row in rows:
        valid_until = row[12]
        check_types((*row[:12], row[13]), [*_TYPES, str], "a decision")
        supersedes = parse_strings(row[8], "a decision")
        if (
            row[5] not in get_args(DecisionEffect)
            or (row[6] and row[6] not in ACTIONS)
            or row[10] not in get_args(Authority)
            or not isinstance(valid_until, str | None)
            or not all(number.isdecimal() for number in supersedes)
        ):
            raise damaged("a decision")
        stored.append(
            StoredDecision(
                scope=row[0],
                number=row[1],
                content=row[2],
                reason=row[3],
                status=row[4],
                effect=row[5],
                action=row[6] or None,
                about=parse_strings(row[7], "a decision"),
                supersedes=tuple(map(int, supersedes)),
                decided_by=row[9],
                authority=row[10],
                valid_from=row[11],
                valid_until=valid_until,
                recorded_at=row[13],
            )
        )
    return stored


def ends(corpus: Corpus) -> dict[DecisionKey, StoredEnd]:
    """The ends of decisions."""
    rows = corpus.rows("SELECT scope, number, ended_by, reason, ended_at FROM main.decision_end")
    check_rows(rows, [str, int, str, str, str], "the end of a decision")
    return {(row[0], row[1]): StoredEnd(*row[2:]) for row in rows}


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
