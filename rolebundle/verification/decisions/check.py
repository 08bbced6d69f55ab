"""`check`: an intent against what was decided, and the constraints of a task.

What is compared is in :mod:`matching`. A document of the type ``decision`` is a decision in the
words of its title, or of a sentence of its text; see :func:`_document_statements`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rolebundle.contracts.bundle import Constraint
from rolebundle.contracts.decisions import (
    CHECK_VERDICTS,
    ActionRule,
    CheckAnswer,
    CheckRequest,
    CheckVerdict,
)
from rolebundle.contracts.document import Passage
from rolebundle.contracts.index import Noise
from rolebundle.contracts.terms import (
    ACTIONS,
    DECISION_EFFECTS,
    ORIGINS,
    Action,
    DecisionEffect,
)
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError
from rolebundle.policy.trust import AgentView, Labels, TrustTable
from rolebundle.retrieval.filter import as_valid, first_rejection, labels_of
from rolebundle.retrieval.lanes import usable_index
from rolebundle.retrieval.lexical import chunks_with
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import passages_of_type
from rolebundle.storage.records.decisions import DECISION_TYPE
from rolebundle.storage.verify import verify_passages
from rolebundle.text.sentences import sentences
from rolebundle.verification.decisions.matching import (
    LEAST_RARITY,
    Match,
    Rarity,
    Topic,
    is_about,
    is_comparable,
    is_prohibition,
    languages_of,
    match,
    topic_of,
    windows,
)
from rolebundle.verification.decisions.records import active_decisions

ADVISORY = "advice: rolebundle does not see what is done, and blocks nothing by itself"
MAX_CONSTRAINTS = 10
"""How many constraints an answer has; the strictest and strongest come first."""
_ACTIVE = frozenset({"active", "accepted", "approved", "decided"})
_MAX_STATEMENTS = 20
_MAX_QUOTE = 1_000
_DECISION_HEADING = "decision"


class _Rule(NamedTuple):
    """A decision, from the registry or a document, and what it is compared by."""

    constraint: Constraint
    about: Sequence[str]
    passage: Passage | None = None


class _Comparison(NamedTuple):
    """The rules that an intent is about, and those that could not be compared.

    ``degraded`` is why meanings were not compared; empty if they were, or were not to be.
    """

    constraints: list[Constraint]
    unchecked: list[str]
    degraded: str = ""


def check_intent(
    corpus: Corpus,
    request: CheckRequest,
    resolved: ResolvedRequest,
    view: AgentView,
    provider: EmbeddingProvider | None,
) -> CheckAnswer:
    """Compare an intent with the active decisions, and with what the policy says of its action.

    Args:
        corpus: as the agent sees it, inside ``reading()``.
        request: the intent.
        resolved: a request to read, with the role and the time. What it rejects does not count.
        view: what holds for the agent.
        provider: embeds intent and decisions; ``None`` to compare words only.
    """
    comparison = _compare(corpus, request.intent, request.action, resolved, view, provider)
    policies = [_action_rule(view.trust, request.action)] if request.action else []
    verdict = _verdict(comparison, policies)
    return CheckAnswer(
        verdict=verdict,
        message=_message(verdict, comparison, policies),
        decisions=comparison.constraints,
        policies=policies,
        unchecked=comparison.unchecked,
        degraded=comparison.degraded or None,
        advisory=ADVISORY,
        checked_at=resolved.valid_at,
    )


def constraints_on(
    corpus: Corpus,
    resolved: ResolvedRequest,
    view: AgentView,
    provider: EmbeddingProvider | None,
) -> list[Constraint]:
    """The active decisions that the task of a request is about, the strictest first."""
    action = resolved.purpose.action if resolved.echo.action else None
    return _compare(corpus, resolved.task, action, resolved, view, provider).constraints


def _compare(
    corpus: Corpus,
    intent: str,
    action: Action | None,
    resolved: ResolvedRequest,
    view: AgentView,
    provider: EmbeddingProvider | None,
) -> _Comparison:
    rules = [
        rule
        for rule in (*_registered(corpus, resolved, view), *_documented(corpus, resolved, view))
        if action is None or rule.constraint.action in (None, action)
    ]
    if not rules:
        return _Comparison([], [])
    topics = [topic_of(rule.constraint.text, rule.about) for rule in rules]
    parts = windows(intent)
    rarity = _rarity(corpus, topics)
    matches = [
        match(
            topic,
            parts,
            rarity,
            has_same_action=action is not None and rule.constraint.action == action,
        )
        for rule, topic in zip(rules, topics, strict=True)
    ]
    closeness, degraded = _closeness(corpus, intent, rules, matches, provider)
    about = [
        (rule, own_match)
        for number, (rule, own_match) in enumerate(zip(rules, matches, strict=True))
        if is_about(own_match, closeness.get(number))
    ]
    languages = languages_of(intent)
    matched_ids = {rule.constraint.id for rule, _ in about}
    unchecked = [
        rule.constraint.id
        for rule, topic in zip(rules, topics, strict=True)
        if not is_comparable(languages, topic.languages) and rule.constraint.id not in matched_ids
    ]
    return _Comparison(_best(corpus, about), list(dict.fromkeys(unchecked)), degraded)


def _best(corpus: Corpus, about: Sequence[tuple[_Rule, Match]]) -> list[Constraint]:
    """The constraints of an answer: one of each decision, the strictest and strongest first."""
    by_id: dict[str, tuple[_Rule, Match]] = {}
    for rule, own_match in about:
        known = by_id.get(rule.constraint.id)
        if known is None or own_match.strength > known[1].strength:
            by_id[rule.constraint.id] = rule, own_match
    ordered = sorted(
        by_id.values(),
        key=lambda pair: (
            -DECISION_EFFECTS.index(pair[0].constraint.effect),
            -pair[1].strength,
            pair[0].constraint.id,
        ),
    )[:MAX_CONSTRAINTS]
    verify_passages(corpus, [rule.passage.rowid for rule, _ in ordered if rule.passage])
    return [
        rule.constraint.model_copy(
            update={"strength": round(own_match.strength, 6), "words": list(own_match.words)}
        )
        for rule, own_match in ordered
    ]


# -- what was decided ------------------------------------------------------------------------------


def _registered(corpus: Corpus, resolved: ResolvedRequest, view: AgentView) -> Iterator[_Rule]:
    for record in active_decisions(corpus, resolved.valid_at, view.decision_scopes):
        yield _Rule(
            Constraint(
                id=record.id,
                text=record.text,
                effect=record.effect,
                reason=record.reason or None,
                action=record.action,
                decided_by=record.decided_by,
                decided_at=record.recorded_at,
                valid_until=record.valid_until,
                strength=0.0,
            ),
            record.about,
        )


def _documented(corpus: Corpus, resolved: ResolvedRequest, view: AgentView) -> Iterator[_Rule]:
    by_document: dict[str, list[Passage]] = {}
    for passage in passages_of_type(corpus, DECISION_TYPE):
        by_document.setdefault(passage.document.document_id, []).append(as_valid(passage, resolved))
    for passages in by_document.values():
        declared = _declared(passages[0])
        if declared.get("status", "active") not in _ACTIVE or passages[0].superseded_by:
            continue
        action = declared.get("action")
        statements = list(_document_statements(passages))
        forbids = any(is_prohibition(statement) for statement, _ in statements)
        default: DecisionEffect = "block" if forbids else "warn"
        wanted = next(
            (known for known in DECISION_EFFECTS if known == declared.get("effect")), default
        )
        effect = _bounded_effect(wanted, labels_of(passages[0]), view)
        for statement, passage in statements:
            if effect is None or first_rejection(passage, resolved) is not None:
                continue
            document = passage.document
            yield _Rule(
                Constraint(
                    id=document.document_id,
                    text=statement[:_MAX_QUOTE],
                    effect=effect,
                    action=next((known for known in ACTIONS if known == action), None),
                    decided_at=document.updated_at,
                    valid_until=document.valid_until,
                    chunk_id=passage.chunk_id,
                    locator=passage.locator,
                    strength=0.0,
                ),
                document.retrieval_hints,
                passage,
            )


def _declared(passage: Passage) -> dict[str, str]:
    """What the document declares as a decision: its tags of the form ``key:value``."""
    pairs = (tag.partition(":") for tag in passage.document.tags)
    return {key: value.casefold() for key, colon, value in pairs if colon}


def _document_statements(passages: Sequence[Passage]) -> Iterator[tuple[str, Passage]]:
    """What a document decides, with the passage that has it.

    That is its title, and the sentences under a heading "Decision", or else those of its first
    passage.
    """
    yield passages[0].document.title, passages[0]
    deciding = [
        passage
        for passage in passages
        if any(heading.strip().casefold() == _DECISION_HEADING for heading in passage.headings)
    ]
    number = 0
    for passage in deciding or passages[:1]:
        for sentence in sentences(passage.content):
            number += 1
            if number > _MAX_STATEMENTS:
                return
            yield sentence.text, passage


def _bounded_effect(
    effect: DecisionEffect, labels: Labels, view: AgentView
) -> DecisionEffect | None:
    """What a decision in a document does at most; ``None`` for nothing.

    A document that may not be used to suggest something decides nothing, and one that may not be
    used to execute something only warns.
    """
    if view.trust.ruling(labels, "suggest") != "allowed":
        return None
    return effect if view.trust.ruling(labels, "execute") == "allowed" else "warn"


# -- comparing -------------------------------------------------------------------------------------


def _rarity(corpus: Corpus, topics: Sequence[Topic]) -> Rarity:
    """The rarity of words in the visible chunks and the decisions that the agent sees."""
    counts: dict[str, int] = {}
    for topic in topics:
        entries = (*topic.words, *topic.about)
        for word in {token.word for entry in entries for token in entry}:
            counts[word] = counts.get(word, 0) + 1
    known: dict[str, float] = {}

    def rarity(word: str) -> float:
        if word not in known:
            having, chunks = chunks_with(corpus, word)
            total = chunks + len(topics)
            share = math.log1p(total / max(1, having + counts.get(word, 0))) / math.log1p(total)
            known[word] = LEAST_RARITY + (1 - LEAST_RARITY) * min(1.0, share)
        return known[word]

    return rarity


def _closeness(
    corpus: Corpus,
    intent: str,
    rules: Sequence[_Rule],
    matches: Sequence[Match],
    provider: EmbeddingProvider | None,
) -> tuple[Mapping[int, float], str]:
    """The closeness of the intent and the rules that have a word of it, by the rules' number.

    It is empty without a model, and if the model fails: then words alone decide. The second value
    is why it failed.
    """
    numbers = [number for number, match in enumerate(matches) if match.strength]
    if provider is None or not numbers:
        return {}, ""
    texts = ["; ".join((rules[n].constraint.text, *rules[n].about)) for n in numbers]
    try:
        index = usable_index(corpus, provider)
        noise: Noise = index.noise or noise_of(provider)
        dimensions = provider.identity.dimensions
        query = unit_vectors(provider.embed_queries([intent]), 1, dimensions)[0]
        passages = unit_vectors(provider.embed_passages(texts), len(texts), dimensions)
    except EmbedderError as error:
        return {}, error.message
    return {
        number: noise.closeness(float(cosine))
        for number, cosine in zip(numbers, passages @ query, strict=True)
    }, ""


# -- the answer ------------------------------------------------------------------------------------


def _action_rule(trust: TrustTable, action: Action) -> ActionRule:
    return ActionRule(
        action=action,
        risk=trust.risk(action),
        rulings={origin: trust.ruling(Labels(origin), action) for origin in ORIGINS},
    )


def _verdict(comparison: _Comparison, policies: Sequence[ActionRule]) -> CheckVerdict:
    verdicts: set[CheckVerdict] = {constraint.effect for constraint in comparison.constraints}
    for rule in policies:
        rulings = set(rule.rulings.values())
        if "allowed" not in rulings:
            verdicts.add("require_approval" if "requires_approval" in rulings else "block")
    if comparison.unchecked:
        verdicts.add("warn")
    return max(verdicts, key=CHECK_VERDICTS.index, default="pass")


def _message(verdict: CheckVerdict, comparison: _Comparison, policies: Sequence[ActionRule]) -> str:
    parts = []
    for constraint in comparison.constraints:
        because = f" ({constraint.reason})" if constraint.reason else ""
        parts.append(f"{constraint.id}: {constraint.text}{because}")
    for rule in policies:
        if "allowed" not in rule.rulings.values():
            parts.append(f"policy: {rule.action} has risk {rule.risk}")
    if comparison.unchecked:
        parts.append(f"not compared, in another language: {', '.join(comparison.unchecked)}")
    steps = {
        "pass": "nothing that was decided is about this",
        "warn": "read this before you go on",
        "require_approval": "ask a person before you do this",
        "block": "do not do this; ask a person if you think it must be done",
    }
    return ": ".join((steps[verdict], "; ".join(parts))) if parts else steps[verdict]
