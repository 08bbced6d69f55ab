"""The order of authority over a document's metadata. Pure.

flags > the owner's manifest > the document itself

What a level has set, the levels below may only lower: less trust, a more external origin, more
sensitivity, fewer roles. A scope, source or id that is set does not change at all. What nobody
above has set, a level may set for itself. See docs/decisions/0022-order-of-authority.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePath
from typing import Any, get_args

from rolebundle.contracts.documents import DocumentMetadata, SupersessionReach
from rolebundle.contracts.ingest import DeclaredMetadata, keys_that
from rolebundle.contracts.terms import ORIGINS, Sensitivity, TrustTier, trust_rank
from rolebundle.resources import data_file

AUTHORITY_VERSION = 2
"""Must be raised if the rules change, so that unchanged files are read again."""

GOVERNANCE_KEYS = frozenset(keys_that("governs"))
_GUARDED_KEYS = tuple(sorted(keys_that("governs", "limits")))
"""Keys that a typing error must not remove."""
# Plain words of other tools that are one or two letters away from a guarded key.
_OTHER_WORDS = frozenset(data_file(__file__, "keys.toml")["unlike"].split())
_MIN_CHARS_FOR_TWO_MISTAKES = 9
_MATCHED_KEYS = keys_that("matched")
_DEFAULTS: Mapping[str, Any] = DocumentMetadata._field_defaults
_SENSITIVITIES = get_args(Sensitivity)


@lru_cache(maxsize=4096)
def governing_key(key: str) -> str:
    """The key that ``key`` is, or is a misspelling of, if that governs a document; else empty.

    Case and separators do not count. Up to 8 letters, one may be wrong, missing, too many or
    swapped with the next one; in longer keys two.
    """
    letters = folded_key(key)
    if letters in _OTHER_WORDS:
        return ""
    for name in _GUARDED_KEYS:
        expected = folded_key(name)
        most = 2 if len(expected) >= _MIN_CHARS_FOR_TWO_MISTAKES else 1
        if _differ_by(most, letters, expected):
            return name
    return ""


def _differ_by(most: int, word: str, other: str) -> bool:
    """Whether at most ``most`` wrong, missing, added or swapped letters tell two words apart."""
    while word and other and word[0] == other[0]:
        word, other = word[1:], other[1:]
    if not word or not other or not most:
        return len(word) + len(other) <= most
    rests = [(word[1:], other[1:]), (word[1:], other), (word, other[1:])]
    if word[:2] == other[1::-1]:
        rests.append((word[2:], other[2:]))
    return any(_differ_by(most - 1, *rest) for rest in rests)


def folded_key(key: str) -> str:
    """The letters and digits of a key without case: ``lastMod`` and ``last-mod`` are the same."""
    return "".join(filter(str.isalnum, key.casefold()))


@dataclass(frozen=True, slots=True)
class Authority:
    """What the levels above have decided about one file.

    Attributes:
        values: valid metadata by key, of any key.
        bound: the governance keys that a level below may only lower.
        max_trust: the highest trust tier that a level below may declare; ``None`` for no bound.
        trusts_documents: whether the manifest lets documents declare for themselves what it gives
            as a default, and supersede documents of other sources.
        sources: all source ids that the levels above assign to some file, casefolded.
        default_source: the source id if no level declares one.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    max_trust: TrustTier | None = None
    trusts_documents: bool = False
    sources: frozenset[str] = frozenset()
    default_source: str = ""

    @property
    def is_limited(self) -> bool:
        """Whether the levels above call the file less than trusted.

        Such a file is foreign material. Its author may not declare governance keys.
        """
        tier, origin = self.values.get("trust_tier"), self.values.get("origin", "internal")
        is_general = tier == "general" and "trust_tier" in self.bound
        return tier == "untrusted" or is_general or origin != "internal"

    @property
    def may_not_govern(self) -> bool:
        """Whether the file's document may not declare governance keys."""
        is_capped = self.max_trust not in (None, "authoritative")
        return self.is_limited or (is_capped and not self.trusts_documents)

    @property
    def delegates(self) -> bool:
        """Whether the owner trusts the file's own declarations."""
        return self.trusts_documents and not self.is_limited

    def self_declared(self, weighed: Mapping[str, Any]) -> list[str]:
        """The governance keys among values that hold which no level above has set to these."""
        above = {key: self.values.get(key, self.default_of(key)) for key in weighed}
        return sorted(key for key in GOVERNANCE_KEYS & weighed.keys() if weighed[key] != above[key])

    def reach(self, self_declared: Container[str]) -> SupersessionReach:
        """Which documents a document of the file may supersede, given what it declares itself."""
        is_set = "supersedes" in self.values
        if self.may_not_govern and not is_set:
            return "none"
        if self.delegates or (is_set and "supersedes" not in self_declared):
            return "any"
        has_source = "source_id" in self.values and not self.may_not_govern
        return "less_trusted" if has_source else "source"

    def weigh(
        self, claims: Mapping[str, Any], *, may_not_govern: bool
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Compare the declarations of the next level with what is decided.

        Args:
            claims: valid metadata.
            may_not_govern: whether its author may only lower what holds by default, too.

        Returns:
            The values that hold for the keys of ``claims``, except those without any; and a text
            ``key: value`` for each claim that a level above does not allow.
        """
        values: dict[str, Any] = {}
        refused: list[str] = []
        for key, claim in claims.items():
            if key not in GOVERNANCE_KEYS and not (may_not_govern and key in _MATCHED_KEYS):
                values[key] = claim
                continue
            value = self._decided(key, claim, may_not_govern)
            if value is not None:
                values[key] = value
            refused += _refusals(key, claim, self.default_of(key) if value is None else value)
        return values, tuple(refused)

    def default_of(self, key: str) -> Any:
        """What holds if no level declares a key; ``None`` for nothing."""
        return self.default_source if key == "source_id" else _DEFAULTS.get(key)

    def _decided(self, key: str, claim: Any, may_not_govern: bool) -> Any:
        """The value of a governance key, given what the next level claims; ``None`` for none."""
        current: Any = self.values.get(key)
        is_set = key in self.bound or (may_not_govern and current is not None)
        if key == "trust_tier":
            bound = self.max_trust or ("general" if may_not_govern else "authoritative")
            ceiling = max(current or bound, bound, key=trust_rank)
            return lower_tier(claim, current if is_set else ceiling)
        if key == "origin":
            return max(claim, current, key=ORIGINS.index) if is_set else claim
        if key == "sensitivity":
            floor = current if is_set else "internal" if may_not_govern else "public"
            return max(claim, floor, key=_SENSITIVITIES.index)
        if key == "excluded_roles":
            return [*dict.fromkeys([*current, *claim])] if is_set else claim
        if key == "applicable_roles" and is_set:
            return [role for role in claim if role in current] or current
        if is_set or may_not_govern:
            return current
        is_assigned = key == "source_id" and claim.casefold() in self.sources
        return current if is_assigned and not self.delegates else claim

    def with_level(
        self,
        claims: Mapping[str, Any],
        *,
        max_trust: TrustTier | None,
        trusts_documents: bool = False,
        sources: frozenset[str] = frozenset(),
    ) -> tuple[Authority, tuple[str, ...]]:
        """Add the declarations of flags or of the manifest.

        Args:
            claims: its valid metadata for this file.
            max_trust: its bound of the levels below.
            trusts_documents: whether its values are defaults that documents may change.
            sources: all source ids that it assigns, casefolded.

        Returns:
            What holds for the levels below, and what it declared in vain.
        """
        weighed, refused = self.weigh(claims, may_not_govern=False)
        values = {**self.values, **weighed}
        if max_trust and "trust_tier" in self.bound and "trust_tier" not in claims:
            values["trust_tier"] = lower_tier(values["trust_tier"], max_trust)
        newly_bound = frozenset() if trusts_documents else GOVERNANCE_KEYS & claims.keys()
        level = replace(
            self,
            values=values,
            bound=self.bound | newly_bound & values.keys(),
            max_trust=lower_tier(self.max_trust, max_trust) if self.max_trust else max_trust,
            trusts_documents=trusts_documents,
            sources=sources,
        )
        return level, refused


def lower_tier(tier: TrustTier, bound: TrustTier | None) -> TrustTier:
    """The lower one of two trust tiers."""
    return min(tier, bound, key=trust_rank) if bound else tier


def _refusals(key: str, claim: Any, value: Any) -> list[str]:
    if isinstance(claim, list):
        return [f"{key}: {item}" for item in claim if item not in (value or ())]
    return [] if claim == value else [f"{key}: {claim}"]


# -- path flags --
#
# The governance flags of earlier ingests, by path. Pure.
#
# They hold for all files at and below the path, in every later ingest, until flags for this path
# or for one above replace them. ``trust_tier``, ``origin`` and ``max_trust`` are
# replaced together; any other flag is replaced alone. The value ``None`` removes a flag of a folder
# above. See docs/decisions/0022-order-of-authority.md.


Flags = Mapping[str, Any]
"""Governance keys, and ``max_trust``."""
FlagsByPath = Mapping[str, Flags]
"""Real path → its flags. The empty path stands for every path."""

UNTRUSTED: Flags = {"trust_tier": "untrusted", "origin": "untrusted"}
_TRUST_FLAGS = frozenset({"trust_tier", "origin", "max_trust"})


def given_flags(
    flags: Iterable[str], declared: DeclaredMetadata, max_trust: TrustTier | None
) -> dict[str, Any]:
    """What an ingest says of governance.

    Args:
        flags: the metadata keys that it names. A key without a value removes a remembered one.
        declared: their values.
        max_trust: the highest trust tier; ``None`` if not given.
    """
    given = {key: getattr(declared, key) for key in flags if key in GOVERNANCE_KEYS}
    return given if max_trust is None else {**given, "max_trust": max_trust}


def flags_at(remembered: FlagsByPath, location: str) -> dict[str, Any]:
    """The flags that hold at a path: its own ones, and those of the folders above."""
    flags: dict[str, Any] = {}
    for folder in _with_parents(location):
        flags = combined(flags, remembered.get(folder, {}))
    return flags


def combined(above: Flags, nearer: Flags) -> dict[str, Any]:
    """Flags, of which the nearer ones replace others."""
    return {**without(above, nearer), **nearer}


def without(flags: Flags, replaced: Flags) -> dict[str, Any]:
    """The flags that others do not replace."""
    keys = {*replaced, *(_TRUST_FLAGS if _TRUST_FLAGS & replaced.keys() else ())}
    return {key: value for key, value in flags.items() if key not in keys}


def flags_after(
    remembered: FlagsByPath, locations: Iterable[str], command_flags: Flags
) -> FlagsByPath:
    """What is remembered after an ingest of some paths with these flags."""
    if not command_flags:
        return remembered
    paths = set(locations)
    changed = dict(remembered)
    for folder, flags in remembered.items():
        if paths.intersection(_with_parents(folder)):
            changed[folder] = without(flags, command_flags)
    for path in paths:
        changed[path] = combined(changed.get(path, {}), command_flags)
    remembered_after: dict[str, Flags] = {}
    for folder in sorted(changed, key=len):
        above = flags_at(remembered_after, folder)
        if limits_in(combined(above, changed[folder])) != limits_in(above):
            remembered_after[folder] = changed[folder]
    return remembered_after


def limits_in(flags: Flags) -> dict[str, Any]:
    """The flags that decide something."""
    limits = {key: value for key, value in flags.items() if value is not None}
    if limits.get("max_trust") == "authoritative" and _TRUST_FLAGS & limits.keys() == {"max_trust"}:
        del limits["max_trust"]
    return limits


def as_arguments(flags: Flags) -> list[str]:
    """Flags as text, such as ``origin=untrusted``."""
    pairs = sorted(limits_in(flags).items())
    return [f"{k}={','.join(v) if isinstance(v, list) else v}" for k, v in pairs]


def _with_parents(location: str) -> list[str]:
    """A path after all folders above it, the outermost first."""
    if not location:
        return [""]
    path = PurePath(location)
    return ["", *map(str, reversed(path.parents)), str(path)]
