"""The closed vocabularies of the contracts, in plain words for a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolebundle.contracts.codes import REJECTIONS
from rolebundle.contracts.terms import RANKED_LOWER, FallbackAction, RejectionCode
from rolebundle.contracts.why import FoundBy
from rolebundle.retrieval import filter as metadata_filter

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

BASE_SCORE = metadata_filter.BASE_SCORE
"""What the factors of the metadata rules multiply."""

_RULE = re.compile(r"(boost|penalty|vocab):([\w+-]+)(?:\((.*)\))?", re.DOTALL)
_RULE_NAMES: Mapping[str, str] = {
    "trust-tier": "trust tier",
    "doc-type": "document type",
    "domain": "domain",
    "preferred-source": "preferred source",
    "applicable-role": "written for this role",
    "role-mismatch": "written for other roles",
    "stale": "too old",
}


class Rules(NamedTuple):
    """The rules of an overlay that a passage met, for a reader.

    Attributes:
        factors: metadata rules: name, and value with its factor.
        words: the role's words in the passage.
        suppressed: words that lower the passage.
    """

    factors: list[tuple[str, str]]
    words: list[str]
    suppressed: list[str]


def rules(hits: Sequence[str]) -> Rules:
    """The overlay hits of a passage in plain words. An unknown one is kept as it is."""
    result = Rules([], [], [])
    for hit in hits:
        match = _RULE.fullmatch(hit)
        if match is None:
            result.factors.append((hit, ""))
        elif match[1] == "vocab":
            (result.suppressed if match[2] == "suppress" else result.words).append(match[3] or "")
        else:
            plain = [_RULE_NAMES.get(name, name.replace("-", " ")) for name in match[2].split("+")]
            named = ", ".join(plain), (match[3] or "").replace("×", " ×").strip()
            result.factors.append(named)
    return result


def heading_path(title: str, headings: Sequence[str]) -> str:
    """The title of a passage's document and the headings above it, without repeats."""
    return " › ".join(dict.fromkeys(text for text in (title, *headings) if text))


def is_rule(code: RejectionCode) -> bool:
    """Whether a rule of the owner rejected the passage, and not the ranking."""
    return code not in RANKED_LOWER
