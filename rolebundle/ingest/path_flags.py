"""The governance flags of earlier ingests, by path. Pure.

They hold for all files at and below the path, in every later ingest, until flags for this path or
for one above replace them. ``trust_tier``, ``origin``, ``max_trust`` and ``manifests`` are replaced
together; any other flag is replaced alone. The value ``None`` lifts a flag of a folder above. See
docs/decisions/0022-order-of-authority.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.terms import TrustTier
from rolebundle.ingest.authority import GOVERNANCE_KEYS

Flags = Mapping[str, Any]
"""Governance keys, ``max_trust``, and of earlier versions ``manifests: False``: none below
counts."""
FlagsByPath = Mapping[str, Flags]
"""Real path → its flags. The empty path stands for every path."""

UNTRUSTED: Flags = {"trust_tier": "untrusted", "origin": "untrusted"}
LOST = "lost"
"""Is set if a repair could not save the flags."""
ALL_LOST: FlagsByPath = {"": {LOST: True}}
_TRUST_FLAGS = frozenset({"trust_tier", "origin", "max_trust", "manifests", LOST})


def given_flags(
    flags: Iterable[str], declared: DeclaredMetadata, max_trust: TrustTier | None
) -> dict[str, Any]:
    """What an ingest says of governance.

    Args:
        flags: the metadata keys that it names. A key without a value lifts a remembered one.
        declared: their values.
        max_trust: the highest trust tier; ``None`` if not given.
    """
    command_flags = {key: getattr(declared, key) for key in flags if key in GOVERNANCE_KEYS}
    if max_trust is not None:
        command_flags["max_trust"] = max_trust
    return command_flags


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
    changed = {
        folder: without(flags, command_flags)
        if paths.intersection(_with_parents(folder))
        else flags
        for folder, flags in remembered.items()
    }
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
    texts = []
    for key, value in sorted(limits_in(flags).items()):
        text = ",".join(value) if isinstance(value, list) else str(value)
        texts.append("no-manifests" if key == "manifests" else f"{key}={text}")
    return texts


def describe(flags: Flags) -> str:
    """Flags in a message."""
    return "untrusted" if flags == UNTRUSTED else " ".join(as_arguments(flags))


def lifting_options(flags: Flags) -> str:
    """The options that lift flags."""
    metadata_keys = sorted(flags.keys() - _TRUST_FLAGS)
    return " ".join(
        [
            *(["--max-trust authoritative"] if _TRUST_FLAGS & flags.keys() else []),
            *(f"--meta {key}=" for key in metadata_keys),
        ]
    )


def _with_parents(location: str) -> list[str]:
    """A path after all folders above it, the outermost first."""
    if not location:
        return [""]
    path = PurePath(location)
    return ["", *(str(parent) for parent in reversed(path.parents)), str(path)]
