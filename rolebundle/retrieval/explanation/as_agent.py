"""What keeps a passage from an agent or from an answer, for the owner of the corpus alone.

The rules of the policy come first, because what they hide is in no search of the agent. What the
agent sees is explained by the steps of its answer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from shlex import quote

from rolebundle.contracts.bundle import KeptBack
from rolebundle.contracts.codes import REJECTIONS
from rolebundle.contracts.policy import AgentRule
from rolebundle.contracts.terms import HidingRule, level_rank
from rolebundle.contracts.why import Hidden, Why, WhyAsAgent
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.policy.access import active_policy, rule_for
from rolebundle.retrieval.lexical import match_expression
from rolebundle.retrieval.lookups.lookup import ReferenceScope, resolve_reference
from rolebundle.retrieval.query import build_query
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import quarantine
from rolebundle.storage.content.quarantine import Flagged
from rolebundle.storage.indexes import compartments, lexical_index
from rolebundle.storage.indexes.compartments import Compartment
from rolebundle.text.references import may_be_stored, named_document

MAX_COUNTED = 100
"""Of each compartment at most so many passages are counted: what a lane proposes at first."""
MAX_NAMED = 5
"""So many documents are named; `rolebundle corpus quarantine list` has all."""
_MAX_PASSAGES = 50
_NEXT: dict[HidingRule, str] = {
    "role": "`rolebundle overlay show ROLE`; change the overlay, or ask in another role",
    "mark": "`rolebundle mark list`",
    "trust": "raise its trust tier, or the policy's trust table, or approve the action",
    "validity": "change its dates, or what the overlay does with stale documents",
}


def why_hidden(corpus: Corpus, reference: str, scope: ReferenceScope, agent: str) -> WhyAsAgent:
    """What hides from an agent that a passage exists.

    Args:
        corpus: the whole corpus.
        reference: what is asked for.
        scope: what the owner's reference may name.
        agent: the agent in question.

    Raises:
        UsageError: nothing has this reference.
    """
    with corpus.reading():
        passage = resolve_reference(corpus, reference, scope).passages[0]
        rule, denied = rule_of(corpus, agent)
        [number] = compartments.chunks_by_compartment(corpus, [passage.rowid])
        stored = compartments.stored_compartments(corpus)
        [place] = [compartment for compartment in stored if compartment.id == number]
    return WhyAsAgent(
        agent=agent,
        reference=reference,
        document_id=passage.document.document_id,
        locator=passage.locator,
        hidden=[denied] if denied else list(hiding_rules(place, agent, rule)),
    )


def with_answer(why: WhyAsAgent, answer: Why | AccessDenied) -> WhyAsAgent:
    """The explanation with what the agent's own answer, or its refusal, says of the passage."""
    if isinstance(answer, AccessDenied):
        hidden = [Hidden(rule="role", note=answer.message, next=answer.hint)]
        return why.model_copy(update={"hidden": hidden})
    hidden = []
    if answer.code and (rule := REJECTIONS[answer.code].rule):
        note = f"{answer.code}: {answer.notes}"
        hidden = [Hidden(rule=rule, note=note, next=_NEXT[rule])]
    update = {"hidden": hidden, "locator": answer.locator, "why": answer}
    return why.model_copy(update=update)


def hiding_rules(compartment: Compartment, agent: str, rule: AgentRule | None) -> Iterator[Hidden]:
    """What hides the documents of a compartment from an agent; the first is named in the audit.

    Args:
        compartment: where they are.
        agent: its name.
        rule: its rule; ``None`` without a policy, which hides nothing.
    """
    if compartment.quarantined:
        note = "the scan put it into quarantine, where no agent sees it"
        yield Hidden(rule="quarantine", note=note, next="`rolebundle corpus quarantine list`")
    if rule is None:
        return
    change = f"the rule of {agent} in the policy, then `rolebundle policy set`"
    if rule.scopes and compartment.scope not in rule.scopes:
        note = f"its scope is {compartment.scope}, and the agent has {', '.join(rule.scopes)}"
        yield Hidden(rule="scope", note=note, next=f"scopes: {change}")
    if level_rank(rule.access_level) < level_rank(compartment.sensitivity):
        note = f"it is {compartment.sensitivity}, and the agent sees up to {rule.access_level}"
        yield Hidden(rule="access_level", note=note, next=f"access_level: {change}")
    if matching := [pattern for pattern in rule.deny_patterns if pattern in compartment.denied]:
        note = f"the agent is denied {', '.join(matching)}"
        yield Hidden(rule="deny_pattern", note=note, next=f"deny_patterns: {change}")


def rule_of(corpus: Corpus, agent: str) -> tuple[AgentRule | None, Hidden | None]:
    """The rule of an agent, ``None`` without a policy; and what hides everything from the agent."""
    try:
        policy = active_policy(corpus)
        return (rule_for(policy, agent) if policy else None), None
    except AccessDenied:
        note = f"the policy has no rule that lets {agent} see anything, or cannot be relied upon"
        return None, Hidden(rule="agent", note=note, next="`rolebundle policy show`")


def hidden_candidates(corpus: Corpus, agent: str | None, task: str) -> dict[str, int]:
    """How many passages with the task's words the policy keeps from an agent, by the first rule.

    Args:
        corpus: the whole corpus.
        agent: the agent that asked.
        task: what it asked.
    """
    counts: Counter[str] = Counter()
    with corpus.reading():
        rule, _ = rule_of(corpus, agent or "")
        terms = build_query(task, None).task_terms
        if rule is None or not terms:
            return {}
        for compartment in compartments.stored_compartments(corpus):
            hidden = next(hiding_rules(compartment, agent or "", rule), None)
            # The answer itself counts what is in quarantine.
            if hidden and hidden.rule != "quarantine" and compartment.chunks:
                found = lexical_index.search(
                    corpus, compartment.id, match_expression(terms), MAX_COUNTED
                )
                counts[hidden.rule] += len(found)
    return dict(+counts)


# -- the quarantine ------------------------------------------------------------------------------


def kept_back(corpus: Corpus, task: str) -> list[KeptBack]:
    """The quarantined documents that have the task's words, best first; ties by id.

    Args:
        corpus: the whole corpus, with its quarantine.
        task: the task of the request.
    """
    scores: dict[int, float] = {}
    with corpus.reading():
        quarantined = [
            compartment.id
            for compartment in compartments.visible_compartments(corpus)
            if compartment.quarantined and compartment.chunks
        ]
        terms = build_query(task, None).task_terms if quarantined else ()
        if not terms:
            return []
        match = match_expression(terms)
        for compartment in quarantined:
            scores |= lexical_index.search(corpus, compartment, match, _MAX_PASSAGES)
        documents = quarantine.quarantined_with(corpus, scores)
    return [
        KeptBack(document_id=document.document_id, kinds=_kinds(document))
        for document in documents[:MAX_NAMED]
    ]


def _kinds(document: Flagged) -> list[str]:
    kinds: list[str] = json.loads(document.scanned.kinds)
    return kinds


def quarantined_error(corpus: Corpus, reference: str, scope: ReferenceScope) -> UsageError | None:
    """The error for a reference that names a quarantined document; ``None`` if it names none."""
    if not may_be_stored(reference):
        return None
    name = named_document(reference)
    with corpus.reading():
        document = quarantine.quarantined_named(corpus, reference, name, scope.locations(name))
    if document is None:
        return None
    return UsageError(
        "quarantined",
        f"{reference}: quarantined: {', '.join(_kinds(document))}",
        f"rolebundle corpus quarantine show {quote(document.document_id)}",
    )
