"""The closed vocabularies of the contracts, in plain words for a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolebundle.contracts.lint import LintProblem
from rolebundle.contracts.terms import (
    RANKED_LOWER,
    FallbackAction,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    WarningCode,
)
from rolebundle.contracts.verification import CheckName, FindingCode, Verdict
from rolebundle.contracts.why import FoundBy
from rolebundle.retrieval import filter as metadata_filter
from rolebundle.retrieval.answer import packet

REJECTION: Mapping[RejectionCode, str] = {
    "forbidden_source": "from a source that this role may not use",
    "role_mismatch": "written for other roles",
    "rejected_by_mark": "marked as wrong",
    "taint_blocked": "not trusted enough for this action",
    "not_yet_valid": "not valid yet",
    "expired": "no longer valid",
    "stale": "older than this role accepts",
    "requires_approval": "needs an approval for this action",
    "low_score": "score too low",
    "duplicate": "the same text as a better passage",
    "conflict_downrank": "replaced by a newer document",
    "budget_cut": "below the last place of the answer",
    "already_seen": "the caller already has it",
    "quarantined": "in quarantine, because the scan found something dangerous",
}
REJECTION_ADVICE: Mapping[RejectionCode, str] = {
    "forbidden_source": "If the role should see it, change forbidden_sources in the overlay.",
    "role_mismatch": "If it is for this role too, add the role to the document's roles.",
    "rejected_by_mark": "If the mark is wrong, remove it with `rolebundle mark remove`.",
    "taint_blocked": "Ask for a less risky action, or have the source trusted in the policy.",
    "not_yet_valid": "Ask again from the date on which it becomes valid.",
    "expired": "Look for its replacement, or correct valid_until.",
    "stale": "Update the document, or raise freshness_max_age_days in the overlay.",
    "requires_approval": "Have a person approve the action.",
    "low_score": "Ask with other words, or lower min_score in the overlay.",
    "duplicate": "Nothing is lost: the answer has the same text.",
    "conflict_downrank": "Use the newer document.",
    "budget_cut": "Raise the limit to see more.",
    "already_seen": "Ask without `seen` to get it again.",
    "quarantined": "The owner can look with `rolebundle corpus quarantine` and release it.",
}
WARNING_ADVICE: Mapping[WarningCode, str] = packet.ADVICE
WARNING_NOTE: Mapping[str, str] = {
    "EVIDENCE_KIND_MISSING": "A passage shows a kind of evidence if its document type, a tag or a "
    "heading names it.",
}
"""What the message of a warning does not explain."""
ACTION: Mapping[FallbackAction, str] = {
    "continue": "The passages can be used.",
    "warn": "The passages can be used with care.",
    "degrade": "Use the passages only as hints, and say so.",
    "block": "Do not answer from these passages.",
}
TRUST: Mapping[TrustPosture, str] = {
    "strong": "an authoritative source is among the passages",
    "mixed": "preferred sources, but no authoritative one",
    "weak": "no trusted source for the task",
    "undeclared": "no document declares trust",
}
FRESHNESS: Mapping[FreshnessPosture, str] = {
    "fresh": "current",
    "mixed": "current and old passages",
    "stale": "most of it is old",
}
FINDING: Mapping[FindingCode, str] = {
    "exact": "quoted word for word",
    "normalized": "quoted word for word, but for typography",
    "misattributed": "stands in another passage than the cited one",
    "near": "not what the passage says",
    "absent": "stands in no passage",
    "cited": "the citation fits",
    "unknown_citation": "cites what is not among the passages",
    "wrong_place": "cites the wrong place",
    "unrelated_citation": "cites a passage about something else",
    "figure_found": "the figure stands in the passage",
    "should_cite": "the figure stands in another passage than the cited one",
    "unsupported_figure": "the figure stands in no passage",
    "rounded": "rounded from the passage's figure",
    "computed": "calculated from figures of the passage",
    "unknown_name": "the name stands in no passage",
    "wrong_name": "another name than the passage's",
    "covered": "its words stand in the passage",
    "uncovered": "its words stand in no passage",
    "differs": "like a sentence of the passage, but may say the opposite",
    "judged_unsupported": "the judge says that the passage does not support it",
    "unchecked_language": "not checked: there are no rules for this language",
    "not_checked": "not checked: there was no time",
    "unknown_passage": "the passage is not in the corpus",
    "changed_passage": "the passage has changed since",
    "superseded_source": "the source was replaced by a newer one",
    "stale_source": "the source is old",
    "untrusted_source": "the source is not trusted",
    "flagged_source": "the scan found something in the source",
    "rejected_source": "the role may not use the source",
    "disputed_source": "the source is disputed",
    "secret": "a secret",
    "personal_data": "personal data",
    "sensitive_source": "the source is not public",
    "unsendable_origin": "the source may not leave the machine",
}
CHECK: Mapping[CheckName, str] = {
    "quotes": "quotes",
    "citations": "citations",
    "figures": "figures and dates",
    "names": "names",
    "coverage": "sentences",
    "judge": "the judge",
    "sources": "sources",
    "publish": "what may leave the machine",
    "deadline": "time",
}
VERDICT: Mapping[Verdict, str] = {
    "failed": "The draft has errors",
    "nothing_wrong_found": "Nothing wrong was found",
    "nothing_to_check": "There was nothing to check",
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

LINT_LEVEL: Mapping[str, str] = {"error": "bad", "warning": "caution", "note": "plain"}
"""The CSS class of a finding of lint, the gravest first."""

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


def by_level(findings: Sequence[LintProblem]) -> list[LintProblem]:
    """Findings of lint, the gravest first."""
    levels = [*LINT_LEVEL]
    return sorted(findings, key=lambda finding: levels.index(finding.level))


def is_rule(code: RejectionCode) -> bool:
    """Whether a rule of the owner rejected the passage, and not the ranking."""
    return code not in RANKED_LOWER
