"""What a passage may be used for: the trust of its origin against the risk of an action. Pure.

    origin      trust          action         risk
    internal      3            read              1
    external      2            analyze           1
    untrusted     1            suggest           2
                               execute           3
                               external_send     3

Trust that is not under the risk allows the action. A high risk, 3 or more, that is one above the
trust waits for a person. Everything else is blocked, whoever approves. The numbers are
configuration (``[trust]`` in a policy file): a trust of 0 is good for nothing at all, and at a risk
of 4 an approval is needed for internal documents, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import ACTIONS, ORIGINS, Action, Origin, RejectionCode
from rolebundle.errors import ConfigurationError

Ruling = Literal["allowed", "requires_approval", "taint_blocked"]

LEAST_TRUST, MOST_TRUST = 0, 3
LEAST_RISK, MOST_RISK = 1, 4
HIGH_RISK = 3
"""From here on an action reaches out into the world, and a person may answer for it."""

_ORIGINS: Mapping[Origin, int] = MappingProxyType({"internal": 3, "external": 2, "untrusted": 1})
_ACTIONS: Mapping[Action, int] = MappingProxyType(
    {"read": 1, "analyze": 1, "suggest": 2, "execute": 3, "external_send": 3}
)


class TrustTable(NamedTuple):
    """The trust of each origin, 0 to 3, and the risk of each action, 1 to 4."""

    # A tuple: nobody can change it, and it is quicker to import than a frozen dataclass.
    origins: Mapping[Origin, int] = _ORIGINS
    actions: Mapping[Action, int] = _ACTIONS

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], where: str) -> TrustTable:
        """A table from configuration; what it does not name keeps its default.

        Args:
            mapping: ``origins`` and ``actions``, each a mapping to whole numbers; both optional.
            where: what the numbers were read from, for the error.

        Raises:
            ConfigurationError: ``bad_trust_table``, naming the first key that is unknown or has a
                value that is not allowed.
        """
        parts = _object(mapping, ("origins", "actions"), "[trust]", where)
        origins = _numbers(parts, "origins", ORIGINS, (LEAST_TRUST, MOST_TRUST), where)
        actions = _numbers(parts, "actions", ACTIONS, (LEAST_RISK, MOST_RISK), where)
        return cls(
            origins=MappingProxyType({**_ORIGINS, **origins}),
            actions=MappingProxyType({**_ACTIONS, **actions}),
        )

    def trust(self, origin: Origin) -> int:
        """The trust of an origin; of one that nobody has heard of, none."""
        return self.origins.get(origin, LEAST_TRUST)

    def risk(self, action: Action) -> int:
        """The risk of an action; of one that nobody has heard of, the highest."""
        return self.actions.get(action, MOST_RISK)

    def ruling(self, origin: Origin, action: Action, *, approved: bool = False) -> Ruling:
        """What the rule says of an action with a passage of an origin.

        Args:
            origin: the passage's.
            action: what it is wanted for.
            approved: whether a person has approved that action.
        """
        trust, risk = self.trust(origin), self.risk(action)
        if trust >= risk:
            return "allowed"
        if risk < HIGH_RISK or trust < risk - 1:
            return "taint_blocked"
        return "allowed" if approved else "requires_approval"


DEFAULT_TABLE = TrustTable()


@dataclass(frozen=True, slots=True)
class Purpose:
    """What the passages of one answer are wanted for, and the table that it is judged by.

    ``approved_by`` is empty where nobody approved the action.
    """

    action: Action = "read"
    approved_by: str = ""
    table: TrustTable = DEFAULT_TABLE

    def ruling(self, origin: Origin) -> Ruling:
        """What the rule says of a passage of an origin."""
        return self.table.ruling(origin, self.action, approved=bool(self.approved_by))

    def rejection(self, origin: Origin) -> tuple[RejectionCode, str] | None:
        """The code and the note with which the rule keeps an origin back, or ``None``."""
        ruling = self.ruling(origin)
        if ruling == "allowed":
            return None
        trust, risk = self.table.trust(origin), self.table.risk(self.action)
        note = f"origin {origin} has trust {trust}, {self.action} has risk {risk}"
        return ruling, note

    def needed_approval(self, origin: Origin) -> bool:
        """Whether a passage of an origin is allowed only because a person approved the action."""
        without = self.table.ruling(origin, self.action)
        return without == "requires_approval" and self.ruling(origin) == "allowed"

    def allowed_actions(self, origin: Origin) -> list[Action]:
        """What a passage of an origin may be used for, by risk and then by name.

        An approval is of the request's own action, and opens no other one.
        """
        return [
            action
            for action in sorted(ACTIONS, key=lambda one: (self.table.risk(one), one))
            if (self if action == self.action else Purpose(action, "", self.table)).ruling(origin)
            == "allowed"
        ]


TO_READ = Purpose()
"""What a request is for that does not say."""
FOR_ANYTHING = Purpose(table=TrustTable(actions=MappingProxyType(dict.fromkeys(ACTIONS, 0))))
"""A purpose that the rule has nothing against: for suppositions, never for an answer."""


def purpose_of(request: RetrievalRequest, table: TrustTable) -> Purpose:
    """What a request wants its passages for."""
    return Purpose(request.action or TO_READ.action, (request.approval or "").strip(), table)


def loosened(table: TrustTable) -> list[str]:
    """Where a table allows more than the default one, a sentence for each such number."""
    told = []
    for origin, default in _ORIGINS.items():
        if table.trust(origin) > default:
            changed = TrustTable(origins={**_ORIGINS, origin: table.trust(origin)})
            told.append(
                f"trust.origins.{origin} is {table.trust(origin)}, more than the default "
                f"{default}: {_gained(changed)}"
            )
    for action, default in _ACTIONS.items():
        if table.risk(action) < default:
            changed = TrustTable(actions={**_ACTIONS, action: table.risk(action)})
            told.append(
                f"trust.actions.{action} is {table.risk(action)}, less than the default "
                f"{default}: {_gained(changed)}"
            )
    return told


def _gained(table: TrustTable) -> str:
    gained: dict[Origin, dict[str, list[str]]] = {}
    for origin in ORIGINS:
        for action in ACTIONS:
            before, after = DEFAULT_TABLE.ruling(origin, action), table.ruling(origin, action)
            if before != after:
                how = "" if after == "allowed" else " with an approval"
                if before == "requires_approval":
                    how = " without an approval"
                gained.setdefault(origin, {}).setdefault(how, []).append(action)
    return "; ".join(
        f"{origin} passages may be used for "
        + ", and for ".join(f"{', '.join(actions)}{how}" for how, actions in ways.items())
        for origin, ways in gained.items()
    )


def _object(value: object, known: tuple[str, ...], place: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _bad(where, f"{place} must be a table", f"its keys: {', '.join(known)}")
    for key in value:
        if key not in known:
            from difflib import get_close_matches

            near = get_close_matches(str(key), known, n=1)
            guess = f"; did you mean {near[0]}?" if near else ""
            raise _bad(
                where,
                f"{place} has the unknown key {key!r}{guess}",
                f"its keys: {', '.join(known)}",
            )
    return value


def _numbers(
    parts: Mapping[str, Any],
    name: str,
    known: tuple[str, ...],
    bounds: tuple[int, int],
    where: str,
) -> dict[Any, int]:
    place = f"[trust] {name}"
    given = _object(parts.get(name, {}), known, place, where)
    least, most = bounds
    for key, value in given.items():
        # True is a whole number to Python alone.
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            allowed = ", ".join(str(number) for number in range(least, most + 1))
            raise _bad(where, f"{place}.{key} is {value!r}", f"one of: {allowed}")
    return dict(given)


def _bad(where: str, message: str, allowed: str) -> ConfigurationError:
    return ConfigurationError("bad_trust_table", f"{where}: {message}", f"allowed are {allowed}")
