"""A new overlay without effect: what it could say stands in its notes, with counts. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rolebundle.contracts.overlay import ROLE_ID_PATTERN
from rolebundle.errors import UsageError
from rolebundle.text.counts import counted

MAX_PROPOSALS = 12
"""So many proposals of one kind are written, those with the highest counts."""

_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])(\..*)?")
_MISSION = "one sentence on what the role does; agents choose a role by it"


def neutral_overlay(
    role_id: str,
    words: Mapping[str, int],
    sources: Mapping[str, int],
    document_types: Mapping[str, int],
    unit: str,
) -> str:
    """The text of an overlay that changes no answer.

    Args:
        role_id: the role.
        words: phrase → number of passages that have it.
        sources: source id → number of its documents or files.
        document_types: document type → number of its documents or files.
        unit: what is counted of sources and types: ``document`` or ``file``.
    """
    # A pattern also matches the names that it is a part of.
    patterns = {
        f"pattern {name}": count
        for name, count in sources.items()
        if sum(name.casefold() in other.casefold() for other in sources) == 1
    }
    notes = {
        "mission": _MISSION,
        "vocabulary.boost_phrases": _proposals(words, "passage"),
        # One source is no choice.
        "source_policy.preferred_sources": _proposals(patterns if len(sources) > 1 else {}, unit),
        "source_policy.document_type_boosts": _proposals(document_types, unit),
    }
    return overlay_text(
        {
            **_head(role_id),
            "vocabulary": {"preferred_terms": [], "boost_phrases": [], "synonyms": {}},
            "source_policy": {
                "preferred_sources": [],
                "forbidden_sources": [],
                "document_type_boosts": {},
            },
            "notes": {place: note for place, note in notes.items() if note},
        }
    )


def extending_overlay(role_id: str, parent: str) -> str:
    """The text of an overlay that extends another one, without its mission."""
    return overlay_text({**_head(role_id, parent), "notes": {"mission": _MISSION}})


def overlay_text(values: Mapping[str, Any]) -> str:
    """The values of an overlay as the text of a file."""
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def words_of_role(role_id: str) -> list[str]:
    """The words of a role's name, and all of them as one phrase."""
    words = [word for word in re.split(r"[-._]+", role_id) if word]
    return list(dict.fromkeys([" ".join(words), *words]))


def check_role_id(role_id: str) -> None:
    """Check that a role may have this id.

    Raises:
        UsageError: ``bad_role_id``.
    """
    if not re.fullmatch(ROLE_ID_PATTERN, role_id):
        raise UsageError(
            "bad_role_id",
            f"{role_id[:80]!r} is not a role id",
            "a role id has 1 to 64 of a-z 0-9 . _ - and begins with a letter or a digit, such as "
            "release-manager",
        )
    if _DEVICE.fullmatch(role_id):
        raise UsageError(
            "bad_role_id",
            f"{role_id!r} is the name of a device on Windows, and of no file there",
            "choose another one",
        )


def _head(role_id: str, parent: str = "") -> dict[str, Any]:
    label = " ".join(part.capitalize() for part in re.split(r"[-._]+", role_id) if part)
    extends = {"extends": parent} if parent else {}
    return {"version": "1.0", "role_id": role_id, **extends, "label": label, "mission": ""}


def _proposals(counts: Mapping[str, int], unit: str) -> str:
    """The proposals with the highest counts, on one line; empty if there are none."""
    found = sorted((item for item in counts.items() if item[1]), key=lambda item: -item[1])
    listed = [f"{name} ({counted(count, unit)})" for name, count in found[:MAX_PROPOSALS]]
    more = f", and {len(found) - MAX_PROPOSALS} more" if found[MAX_PROPOSALS:] else ""
    return f"not in force; you could add: {', '.join(listed)}{more}" if listed else ""
