"""Step 1: a task and an overlay become a query. Pure.

The task's own terms and the role's expansion are kept apart and weighed apart, so that a role's
vocabulary can pull a generic task toward its domain but cannot drown what was asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from rolebundle.contracts.bundle import AppliedFilter, QueryWeights
from rolebundle.contracts.candidate import Query, Term
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieve.stop_words import STOP_WORDS

SIGNATURE_PHRASES = 3
MAX_BOOST_PHRASES = 8
TASK_RELEVANCE = 0.3
MAX_SYNONYMS = 2
# Bounds for a task of a hundred kilobytes: the lexical lane's cost grows with its terms.
MAX_TASK_TERMS = 128
MAX_REPEATS = 8

_WORD = re.compile(r"\w+")
# v2.1.3, src/auth.py, Pan-Tompkins, E_CONFLICT:409 — exact as a phrase, beside their parts.
_COMPOUND = re.compile(r"\w+(?:[-./:_@#]\w+)+")


def build_query(task: str, overlay: Overlay | None) -> Query:
    """Expand a task by a role's vocabulary.

    Args:
        task: any text.
        overlay: the role, or ``None`` for the task alone.

    Returns:
        The lexical terms of the task and of the role, the semantic text and its context, the
        weights of each, and the rules that were applied.
    """
    task_terms, rules = _task_terms(task)
    expansion: tuple[Term, ...] = ()
    context = ""
    filters: tuple[AppliedFilter, ...] = ()
    share = 0.0
    if overlay is not None:
        expansion, expansion_rules = _expansion(task, task_terms, overlay)
        context = overlay.mission.strip()
        filters = _filters(overlay)
        share = overlay.retrieval_policy.expansion_weight
        rules += expansion_rules
        if context:
            rules.append("semantic:role-context")
        if overlay.source_policy.forbidden_sources:
            rules.append(f"filter:forbidden({len(overlay.source_policy.forbidden_sources)})")
    lexical_share = share if expansion else 0.0
    semantic_share = share if context else 0.0
    return Query(
        task_text=task,
        task_terms=task_terms,
        expansion_terms=expansion,
        semantic_text=task,
        context_text=context,
        weights=QueryWeights(
            lexical_task=1 - lexical_share,
            lexical_expansion=lexical_share,
            semantic_task=1 - semantic_share,
            semantic_context=semantic_share,
        ),
        applied_rules=tuple(rules),
        applied_filters=filters,
    )


def words_of(text: str) -> list[str]:
    """The words of a text, case folded."""
    return _WORD.findall(text.casefold())


def _task_terms(task: str) -> tuple[tuple[Term, ...], list[str]]:
    words = words_of(task)
    informative = [word for word in words if word not in STOP_WORDS]
    # "Who are we?" has stop words alone; they are better than nothing.
    counts = Counter(informative or words)
    counts.update(_COMPOUND.findall(task.casefold()))
    rules = []
    if len(counts) > MAX_TASK_TERMS:
        rules.append(f"task:cut({len(counts)} terms to {MAX_TASK_TERMS})")
    # most_common is stable: among equally frequent terms the first in the task stay.
    kept = counts.most_common(MAX_TASK_TERMS)
    return tuple(Term(text, min(count, MAX_REPEATS)) for text, count in kept), rules


def _expansion(
    task: str, task_terms: tuple[Term, ...], overlay: Overlay
) -> tuple[tuple[Term, ...], list[str]]:
    vocabulary = overlay.vocabulary
    task_words = words_of(task)
    rules = []

    signature = vocabulary.boost_phrases[:SIGNATURE_PHRASES]
    relevant = [
        phrase
        for phrase in vocabulary.boost_phrases[SIGNATURE_PHRASES:]
        if _share_in(words_of(phrase), task_words) > TASK_RELEVANCE
    ]
    boosts = (signature + relevant)[:MAX_BOOST_PHRASES]
    if boosts:
        rules.append(f"vocab:boost({len(boosts)} phrases, {len(signature)} signature)")

    preferred = [
        term for term in vocabulary.preferred_terms if _stands_in(words_of(term), task_words)
    ]
    if preferred:
        rules.append(f"vocab:preferred({len(preferred)} terms)")

    expanded = [words_of(text) for text in [*(t.text for t in task_terms), *boosts, *preferred]]
    synonyms: list[str] = []
    for canonical, alternatives in vocabulary.synonyms.items():
        if any(_stands_in(words_of(canonical), words) for words in expanded):
            synonyms += alternatives[:MAX_SYNONYMS]
            rules.append(f"vocab:synonym({canonical})")

    return tuple(Term(text) for text in _distinct([*boosts, *preferred, *synonyms])), rules


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text.casefold() for text in texts))


def _share_in(phrase: list[str], words: list[str]) -> float:
    present = set(words)
    return sum(word in present for word in phrase) / len(phrase) if phrase else 0.0


def _stands_in(phrase: list[str], words: list[str]) -> bool:
    """Whether the words of the phrase stand in ``words`` one after the other."""
    length = len(phrase)
    return length > 0 and any(
        words[start : start + length] == phrase for start in range(len(words) - length + 1)
    )


def _filters(overlay: Overlay) -> tuple[AppliedFilter, ...]:
    policy = overlay.source_policy
    found = [AppliedFilter(field="excluded_roles", op="not_in", value=[overlay.role_id])]
    if policy.forbidden_sources:
        found.append(
            AppliedFilter(
                field="source",
                op="not_contains",
                value=[rule.pattern for rule in policy.forbidden_sources],
            )
        )
    if policy.allowed_sources:
        found.append(
            AppliedFilter(
                field="source",
                op="contains",
                value=[rule.pattern for rule in policy.allowed_sources],
            )
        )
    maximum_age = overlay.retrieval_policy.freshness_max_age_days
    if maximum_age is not None and overlay.retrieval_policy.stale_penalty >= 1:
        found.append(AppliedFilter(field="age_days", op="lt", value=maximum_age))
    return tuple(found)
