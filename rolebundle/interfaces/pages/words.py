"""The closed vocabularies of the contracts, in plain words for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rolebundle.contracts.terms import RANKED_LOWER, REJECTIONS, FallbackAction, RejectionCode
from rolebundle.contracts.why import FoundBy

REJECTION: Mapping[RejectionCode, str] = {code: row.plain for code, row in REJECTIONS.items()}
ACTION: Mapping[FallbackAction, str] = {
    "continue": "The passages can be used.",
    "warn": "The passages can be used with care.",
    "degrade": "Use the passages only as hints, and say so.",
    "block": "Do not answer from these passages.",
}
LANE: Mapping[str, str] = {"lexical": "the task's words", "semantic": "meaning"}
FOUND_BY: Mapping[FoundBy, str] = {
    "task_words": "the task's words",
    "role_words": "the role's words",
    "meaning": "meaning",
}
LEVEL: Mapping[str, str] = {
    "continue": "good", "warn": "caution", "degrade": "caution", "block": "bad",
    "strong": "good", "mixed": "caution", "weak": "bad", "fresh": "good", "stale": "bad",
    "authoritative": "good", "preferred": "good", "general": "plain", "untrusted": "bad",
    "aging": "caution", "undated": "plain", "undeclared": "plain",
}  # fmt: skip
"""The CSS class of a word: how good it is."""


def heading_path(title: str, headings: Sequence[str]) -> str:
    """The title of a passage's document and the headings above it, without repeats."""
    return " › ".join(dict.fromkeys(text for text in (title, *headings) if text))


def is_rule(code: RejectionCode) -> bool:
    """Whether a rule of the owner rejected the passage, and not the ranking."""
    return code not in RANKED_LOWER
