"""`check`: which decisions may apply to an intent, and the constraints of a task.

A document of the type ``decision`` is a decision in the words of its title, or of a sentence of its
text; see :func:`_document_statements`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rolebundle.contracts.bundle import Constraint
from rolebundle.contracts.decisions import (
    CHECK_VERDICTS,
    ActionRule,
    CheckAnswer,
    CheckRequest,
    CheckVerdict,
)
from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import ACTIONS, DECISION_EFFECTS, ORIGINS, Action, DecisionEffect
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import EmbedderError
from rolebundle.policy.trust import AgentView, Labels
from rolebundle.retrieval.filter import as_valid, first_rejection, labels_of
from rolebundle.retrieval.lanes import noise_for
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import passages_of_type
from rolebundle.storage.indexes.vector_index import active_index
from rolebundle.storage.records.decisions import DECISION_TYPE, decisions
from rolebundle.storage.verify import verify_passages
from rolebundle.text.counts import counted
from rolebundle.text.sentences import sentences
from rolebundle.verification.decisions.intent import Intent
from rolebundle.verification.decisions.matching import Rule, closeness_of, match

ADVISORY = "advice: rolebundle does not see what is done, and blocks nothing by itself"
MAX_CONSTRAINTS = 10
"""How many decisions an answer quotes; the strictest and strongest come first."""
_ACTIVE = frozenset({"active", "accepted", "approved", "decided"})
_MAX_STATEMENTS = 20
_MAX_QUOTE = 1_000
_STEPS = {
    "none_found": "no decision was found that may apply",
    "warn": "read this before you go on",
    "require_approval": "ask a person before you do this",
    "block": "do not do this; ask a person if you think it must be done",
}


def check_intent(
    corpus: Corpus,
    request: CheckRequest,
    resolved: ResolvedRequest,
    view: AgentView,
    provider: EmbeddingProvider | None,
) -> CheckAnswer:
    """The active decisions that may apply to an intent, and what the policy says of its action.

    Args:
        corpus: as the agent sees it, inside ``reading()``.
        request: the intent.
        resolved: a request to read, with the role and the time. What it rejects does not count.
        view: what holds for the agent.
        provider: embeds intent and decisions; ``None`` to compare words only.
    """
    wordings = (request.intent or "", *request.also)
    intent = Intent.of(wordings, request.command or "", request.action)
    quoted, degraded = _found(corpus, intent, request.action, resolved, view, provider)
    trust, action = view.trust, request.action
    policies = []
    if action:
        ruling = {origin: trust.ruling(Labels(origin), action) for origin in ORIGINS}
        policies = [ActionRule(action=action, risk=trust.risk(action), rulings=ruling)]
    verdicts: list[CheckVerdict] = [decision.verdict for decision in quoted if decision.verdict]
    rulings = {ruling for rule in policies for ruling in rule.rulings.values()}
    if rulings and "allowed" not in rulings:
        verdicts.append("require_approval" if "requires_approval" in rulings else "block")
    verdict = max(["none_found", *verdicts], key=CHECK_VERDICTS.index)
    return CheckAnswer(
        verdict=verdict,
        message=_message(verdict, quoted, policies),
        decisions=quoted,
        policies=policies,
        degraded=degraded or None,
        advisory=ADVISORY,
        checked_at=resolved.valid_at,
    )


def constraints_on(
    corpus: Corpus,
    resolved: ResolvedRequest,
    view: AgentView,
    provider: EmbeddingProvider | None,
) -> list[Constraint]:
    """The active decisions about the task of a request, the strictest first."""
    action = resolved.purpose.action if resolved.echo.action else None
    intent = Intent.of((resolved.task, *resolved.also), action=action)
    found, _ = _found(corpus, intent, action, resolved, view, provider)
    return [constraint for constraint in found if constraint.match != "near"]


def _found(
    corpus: Corpus,
    intent: Intent,
    action: Action | None,
    resolved: ResolvedRequest,
    view: AgentView,
    provider: EmbeddingProvider | None,
) -> tuple[list[Constraint], str]:
    """The decisions of an answer, one of each, and why meanings were not compared."""
    rules = [
        rule
        for rule in (*_registered(corpus, resolved, view), *_documented(corpus, resolved, view))
        if action is None or rule.constraint.action in (None, action)
    ]
    closeness, degraded = [0.0] * len(rules), ""
    try:
        if provider is not None and rules and intent.wordings:
            noise = noise_for(active_index(corpus), provider)
            closeness = closeness_of(rules, intent, provider, noise)
    except EmbedderError as error:
        degraded = error.message
    quoted = []
    for rule, close in zip(rules, closeness, strict=True):
        if found := match(rule, intent, close):
            # A decision about reading applies to what only reads.
            reads = intent.only_reads and (action is None or rule.constraint.action != action)
            verdict = found.verdict(rule.constraint.effect, only_reads=reads)
            values = {**found._asdict(), "verdict": verdict}
            quoted.append((rule.constraint.model_copy(update=values), rule.passage))
    ranks = {None: 0, "warn": 1, "require_approval": 2, "block": 3}
    quoted.sort(key=lambda pair: (-ranks[pair[0].verdict], -pair[0].strength, pair[0].id))
    best: dict[str, tuple[Constraint, Passage | None]] = {}
    for constraint, passage in quoted:
        best.setdefault(constraint.id, (constraint, passage))
    first = list(best.values())[:MAX_CONSTRAINTS]
    verify_passages(corpus, [passage.rowid for _, passage in first if passage])
    return [constraint for constraint, _ in first], degraded


# -- what was decided ------------------------------------------------------------------------------


_SAME = {"id", "text", "effect", "action", "decided_by", "valid_until"}


def _registered(corpus: Corpus, resolved: ResolvedRequest, view: AgentView) -> Iterator[Rule]:
    for record in decisions(corpus, resolved.valid_at, view.decision_scopes):
        if record.state == "active":
            same = record.model_dump(include=_SAME)
            constraint = Constraint(
                reason=record.reason or None, decided_at=record.recorded_at, **same
            )
            yield Rule(constraint, record.about, record.commands)


def _documented(corpus: Corpus, resolved: ResolvedRequest, view: AgentView) -> Iterator[Rule]:
    by_document: dict[str, list[Passage]] = {}
    for passage in passages_of_type(corpus, DECISION_TYPE):
        by_document.setdefault(passage.document.document_id, []).append(as_valid(passage, resolved))
    for passages in by_document.values():
        document = passages[0].document
        pairs = (tag.partition(":") for tag in document.tags)
        declared = {key: value.casefold() for key, colon, value in pairs if colon}
        if declared.get("status", "active") not in _ACTIVE or passages[0].superseded_by:
            continue
        wanted = (known for known in DECISION_EFFECTS if known == declared.get("effect"))
        effect = _bounded_effect(next(wanted, "warn"), labels_of(passages[0]), view)
        for statement, passage in _document_statements(passages):
            if effect is None or first_rejection(passage, resolved) is not None:
                continue
            yield Rule(
                Constraint(
                    id=document.document_id,
                    text=statement[:_MAX_QUOTE],
                    effect=effect,
                    action=next((a for a in ACTIONS if a == declared.get("action")), None),
                    decided_at=document.updated_at,
                    valid_until=document.valid_until,
                    chunk_id=passage.chunk_id,
                    locator=passage.locator,
                ),
                document.retrieval_hints,
                passage=passage,
            )


def _document_statements(passages: Sequence[Passage]) -> Iterator[tuple[str, Passage]]:
    """What a document decides, with the passage that has it.

    That is its title, and the sentences under a heading "Decision", or else those of its first
    passage.
    """
    yield passages[0].document.title, passages[0]
    deciding = [p for p in passages if DECISION_TYPE in (h.strip().casefold() for h in p.headings)]
    stated = (
        (sentence, passage)
        for passage in deciding or passages[:1]
        for sentence in sentences(passage.content)
    )
    yield from islice(stated, _MAX_STATEMENTS)


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


# -- the answer ------------------------------------------------------------------------------------


def _message(
    verdict: CheckVerdict, quoted: Sequence[Constraint], policies: Sequence[ActionRule]
) -> str:
    parts = [_STEPS[verdict]]
    applying = [decision for decision in quoted if decision.verdict]
    if applying:
        texts = "; ".join(
            f"{decision.id}: {decision.text}{f' ({decision.reason})' if decision.reason else ''}"
            for decision in applying
        )
        parts.append(f"{counted(len(applying), 'decision')} may apply: {texts}")
    if others := [decision.id for decision in quoted if not decision.verdict]:
        parts.append(f"about the same thing, for information: {', '.join(others)}")
    parts += [
        f"policy: {rule.action} has risk {rule.risk}"
        for rule in policies
        if "allowed" not in rule.rulings.values()
    ]
    return "; ".join(parts)
