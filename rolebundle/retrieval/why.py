"""Why a passage is in an answer or not; for the owner, also what hides it from an agent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from shlex import quote
from typing import Any

from rolebundle.contracts.base import attributes_of
from rolebundle.contracts.bundle import KeptBack
from rolebundle.contracts.documents import REMEMBERED_KIND, Passage, iso_utc
from rolebundle.contracts.policy import EVERY_SCOPE, AgentRule
from rolebundle.contracts.terms import REJECTIONS, HidingRule, RejectionCode, level_rank
from rolebundle.contracts.why import (
    FilterTrace,
    Hidden,
    LaneTrace,
    Outcome,
    Rival,
    ScoreTrace,
    SearchAim,
    Step,
    Why,
    WhyAsAgent,
)
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.policy.access import active_policy, rule_for
from rolebundle.retrieval import bundle
from rolebundle.retrieval.filter import freshness_of, rejection_of, without_later_superseders
from rolebundle.retrieval.lanes import Lanes, open_lanes
from rolebundle.retrieval.lexical import CombinedPostings, matching_words
from rolebundle.retrieval.lookup import resolve_reference
from rolebundle.retrieval.pipeline import ranked_hits, run_steps
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import ReferenceRules, ResolvedRequest
from rolebundle.retrieval.rerank import Reranker
from rolebundle.retrieval.scoring import add_moved_from, mark_factor
from rolebundle.retrieval.select import select
from rolebundle.retrieval.values import Candidate, Retrieval, Term, ranking_order
from rolebundle.retrieval.where import Condition, unmet
from rolebundle.storage import compartments, partition
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.digests import verify_passages
from rolebundle.text.references import may_be_stored, named_document

MAX_RIVALS = 3


def explain(
    corpus: Corpus,
    request: ResolvedRequest,
    reference: str,
    rules: ReferenceRules,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
) -> Why:
    """Explain what happened to a passage in the answer to a request.

    Args:
        corpus: an open corpus; it is only read.
        request: the resolved request.
        reference: a chunk id, a document id, a path, or ``path:start-end``. If it names several
            passages, the one that ranks best is explained.
        rules: what the reference may name.
        provider: embeds the query; ``None`` for the lexical lane alone.
        reranker: scores the best candidates again; ``None`` for no reranking.

    Raises:
        UsageError: nothing has this reference.
        CorpusCorrupt, CorpusBusy, StorageError: the corpus cannot be read.
    """
    with corpus.reading():
        referent = resolve_reference(corpus, reference, rules)
        query = build_query(request.task, request.overlay, request.also)
        lanes, documents = run_steps(open_lanes(corpus, query, provider), request, reranker)
        replay, facts = Replay(lanes, reranker, documents), documents.facts
        if facts and referent.passages[0].document.source_kind == REMEMBERED_KIND:
            replay = Replay(lanes.of_facts(), None, facts, len(documents.selected))
        selected_count = replay.rank_offset + len(replay.retrieval.selected)
        passage = replay.best_placed(referent.passages)
        unmet_conditions = unmet(request.echo.where, passage)
        verify_passages(corpus, [passage.rowid])
        passage = without_later_superseders(passage, request)
        trace = _trace(replay, passage, unmet_conditions)
    document, retrieval = passage.document, replay.retrieval
    return Why(
        reference=reference,
        kind=referent.kind,
        passages=len(referent.passages),
        **attributes_of(request, "role_id", "task", "min_score", "fusion"),
        **attributes_of(passage, "chunk_id", "locator"),
        **attributes_of(document, "document_id", "source_id", "title"),
        anchor=passage.anchor or None,
        flags=list(passage.flags) or None,
        # The reason of a mark can tell what the passage says.
        mark=bundle.passage_mark(passage) if rules.allows_reading(passage) else None,
        ignored_claims=list(passage.ignored_claims) or None,
        refused_claims=list(document.refused_claims) or None,
        pool={
            "candidates": len(retrieval.candidates),
            "depth": retrieval.pool.depth,
            "refills": retrieval.pool.last_round,
        },
        limit=retrieval.request.limit,
        selected_count=selected_count,
        request=request.echo,
        overlay=bundle.overlay_ref(request),
        corpus=retrieval.corpus_state,
        generated_at=iso_utc(request.now),
        **trace,
    )


@dataclass(frozen=True, slots=True)
class Replay:
    """One request that a passage takes part in, and what is needed to run the steps again.

    Attributes:
        rank_offset: how many selected passages come before the ones of this retrieval.
    """

    lanes: Lanes
    reranker: Reranker | None
    retrieval: Retrieval
    rank_offset: int = 0

    def ranked_with(self, passages: Sequence[Passage]) -> Sequence[Candidate]:
        """The ranking if a lane had proposed these passages and policy had allowed them.

        Nothing is sent to the reranking model. A passage that the model has not scored keeps the
        score of its lanes.
        """
        retrieval, pool = self.retrieval, self.retrieval.pool
        missing = [passage for passage in passages if passage.rowid not in pool.hits]
        pool = pool._replace(hits={**pool.hits, **self.lanes.hits_for(missing)})
        supposed = {passage.rowid for passage in passages}
        reranking = (self.reranker.known, self.reranker.max_passages) if self.reranker else ()
        with_all = replace(retrieval, pool=pool)
        ranked = ranked_hits(self.lanes, with_all, reranking, supposed).ranked
        select(ranked, retrieval.request, retrieval.withheld_reason)
        return ranked

    def best_placed(self, passages: Sequence[Passage]) -> Passage:
        """The passage that ranks best: selected, else ranked, else proposed, else any of them.

        Passages that were not ranked are compared by the rank that they would have.
        """
        by_id = {passage.chunk_id: passage for passage in passages}
        for row in (*self.retrieval.selected, *self.retrieval.ranked):
            if row.chunk_id in by_id:
                return row.passage
        if len(passages) == 1:
            return passages[0]
        hits = self.retrieval.pool.hits
        proposed = [passage for passage in passages if passage.rowid in hits] or passages
        ranked = self.ranked_with(proposed)
        return next(by_id[row.chunk_id] for row in ranked if row.chunk_id in by_id)


# -- the row -------------------------------------------------------------------------------------


def _trace(
    replay: Replay, passage: Passage, unmet_conditions: Sequence[Condition]
) -> dict[str, Any]:
    """The fields of the explanation that tell what each step did with the passage."""
    ranked = replay.retrieval.ranked
    was_ranked = any(other.chunk_id == passage.chunk_id for other in ranked)
    if not was_ranked:
        ranked = replay.ranked_with([passage])
    row = next(other for other in ranked if other.chunk_id == passage.chunk_id)
    is_supposed = bool(unmet_conditions) or not was_ranked
    score = _score_trace(replay, row, ranked, is_supposed=is_supposed)
    outcome, step, code, notes = _outcome(replay, passage, unmet_conditions)
    return {
        "outcome": outcome,
        "step": step,
        "code": code,
        "notes": notes,
        "rank": None if is_supposed else score.rank,
        "words": _words_trace(replay, passage),
        "lanes": _lane_traces(replay, passage),
        "filter": _filter_trace(replay, row),
        "score": score,
        "lost_to": _rivals(row, ranked),
    }


def _outcome(
    replay: Replay, passage: Passage, unmet_conditions: Sequence[Condition]
) -> tuple[Outcome, Step | None, RejectionCode | None, str]:
    if unmet_conditions:
        unmet_text = ", ".join(condition.description for condition in unmet_conditions)
        return "not_proposed", "where", None, f"its document does not match where: {unmet_text}"
    for row in replay.retrieval.candidates:
        if row.chunk_id == passage.chunk_id:
            if row.code is None:
                return "selected", None, None, ""
            return "rejected", REJECTIONS[row.code].step, row.code, row.note
    return "not_proposed", "lanes", None, "no lane proposed it"


def _words_trace(replay: Replay, passage: Passage) -> dict[str, list[str]]:
    query, corpus = replay.retrieval.query, replay.lanes.corpus
    terms = (*query.task_terms, *query.expansion_terms)
    matched = matching_words(corpus, [(term,) for term in terms], [passage.rowid])[passage.rowid]
    of_task = len(query.task_terms)
    return {
        "task_found": [terms[n].label for n in range(of_task) if n in matched],
        "task_missing": [terms[n].label for n in range(of_task) if n not in matched],
        "role_found": [terms[n].label for n in range(of_task, len(terms)) if n in matched],
    }


def _lane_traces(replay: Replay, passage: Passage) -> list[LaneTrace]:
    pool, query, lanes = replay.retrieval.pool, replay.retrieval.query, replay.lanes
    rowid = passage.rowid
    hit = pool.hits.get(rowid) or lanes.hits_for([passage])[rowid]
    no_task = "" if query.task_terms else "the task has no words"
    no_role = "" if query.expansion_terms else "no role adds words to this task"
    no_index = "" if lanes.semantic else lanes.semantic_problem or "only words were asked for"
    searches: tuple[tuple[SearchAim, float | None, str], ...] = (
        ("task_words", None if no_task else hit.bm25 or 0.0, no_task),
        ("role_words", None if no_role else hit.bm25_expansion or 0.0, no_role),
        ("meaning", hit.cosine, no_index),
    )
    traces = []
    for aim, score, note in searches:
        proposed = pool.proposed.get(aim, {})
        # Ties by rowid, as in the index.
        ordered = [row for _, row in sorted((-found, row) for row, found in proposed.items())]
        traces.append(
            LaneTrace(
                lane="semantic" if aim == "meaning" else "lexical",
                by=aim,
                ran=not note,
                note=note,
                proposed=rowid in proposed,
                rank=1 + ordered.index(rowid) if rowid in proposed else None,
                score=bundle.rounded_if_any(score),
                pool=len(proposed),
                least=bundle.rounded_if_any(min(proposed.values(), default=None)),
                depth=pool.depth,
            )
        )
    return traces


def _filter_trace(replay: Replay, row: Candidate) -> FilterTrace:
    request, passage = replay.retrieval.request, row.passage
    rejection = rejection_of(passage, request)
    return FilterTrace(
        allowed=rejection is None,
        code=rejection[0] if rejection else None,
        notes=rejection[1] if rejection else "",
        factors=list(row.metadata_factors),
        freshness=freshness_of(passage, request),
        inferred_at=passage.document.inferred_at,
    )


def _score_trace(
    replay: Replay, own: Candidate, ranked: Sequence[Candidate], *, is_supposed: bool
) -> ScoreTrace:
    retrieval, mark = replay.retrieval, own.passage.mark
    request = retrieval.request
    evidence = replay.lanes.with_matched_words(retrieval.evidence, [own.passage])
    selected = [row for row in ranked if row.code is None]
    add_moved_from(ranked, [own], request, retrieval.weights)
    place = 1 + ranked.index(own)
    to_beat = None
    if own.code in ("low_score", "budget_cut"):
        is_full = own.code == "budget_cut" or len(selected) >= request.limit
        last = selected[-1].final if selected and is_full else 0.0
        to_beat = bundle.rounded(max(last, request.min_score))
    return ScoreTrace(
        scores=bundle.scores_of(own),
        raw=bundle.raw_scores_of(own, evidence.support(own.passage.rowid)),
        weights=bundle.score_weights(retrieval.weights),
        vocabulary=list(own.matched_phrases),
        moved_from={rule: own.moved_from.get(rule, place) for rule in own.rules},
        mark_factor=mark_factor(mark.owner_state) if mark and mark.owner_state else None,
        lift="; ".join(own.lift_reasons),
        place=place,
        of=len(ranked),
        rank=replay.rank_offset + selected.index(own) + 1 if own in selected else None,
        code=own.code,
        to_beat=to_beat,
        supposed=is_supposed,
    )


def _rivals(own: Candidate, ranked: Sequence[Candidate]) -> list[Rival]:
    """What was preferred: a better copy, newer versions, or the last selected before it."""
    selected = [row for row in ranked if row.code is None]
    winners: Sequence[Candidate] = ()
    if own.code == "duplicate":
        winners = [row for row in ranked if row.chunk_id == own.duplicate_of]
    elif own.code == "conflict_downrank":
        newer = {document.document_id for document in own.passage.superseded_by}
        superseding = (row for row in ranked if row.passage.document.document_id in newer)
        winners = list(islice(superseding, MAX_RIVALS))
    elif own.code is not None:
        before = [row for row in selected if ranking_order(row) < ranking_order(own)]
        winners = before[-MAX_RIVALS:]
    ranks = {row.chunk_id: rank for rank, row in enumerate(selected, start=1)}
    return [
        Rival(
            rank=ranks.get(winner.chunk_id),
            **attributes_of(winner.passage, "chunk_id", "locator"),
            final=bundle.rounded(winner.final),
        )
        for winner in winners
    ]


MAX_COUNTED = 100
"""How many passages of each compartment are counted at most: as many as a lane proposes first."""
MAX_NAMED = 5
"""How many documents are named; `rolebundle corpus quarantine list` has all."""
_MAX_PASSAGES = 50
_NEXT: dict[HidingRule, str] = {
    "role": "`rolebundle overlay show ROLE`; change the overlay, or ask in another role",
    "mark": "`rolebundle mark list`",
    "trust": "raise its trust tier, or approve the action",
    "validity": "change its dates, or what the overlay does with stale documents",
}


def why_hidden(corpus: Corpus, reference: str, rules: ReferenceRules, agent: str) -> WhyAsAgent:
    """What hides from an agent that a passage exists.

    Args:
        corpus: the whole corpus.
        reference: what is asked for.
        rules: what the owner's reference may name.
        agent: the agent in question.

    Raises:
        UsageError: nothing has this reference.
    """
    with corpus.reading():
        passage = resolve_reference(corpus, reference, rules).passages[0]
        rule, denied = rule_of(corpus, agent)
        [number] = compartments.chunks_by_compartment(corpus, [passage.rowid])
        stored = compartments.stored_compartments(corpus)
        [own_compartment] = [compartment for compartment in stored if compartment.id == number]
    return WhyAsAgent(
        agent=agent,
        reference=reference,
        document_id=passage.document.document_id,
        locator=passage.locator,
        hidden=[denied] if denied else list(hiding_rules(own_compartment, agent, rule)),
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
    return why.model_copy(update={"hidden": hidden, "locator": answer.locator, "why": answer})


def hiding_rules(compartment: Compartment, agent: str, rule: AgentRule | None) -> Iterator[Hidden]:
    """What hides the documents of a compartment from an agent; the first is named in the audit.

    Args:
        compartment: has these documents.
        agent: its name.
        rule: its rule; ``None`` without a policy, which hides nothing.
    """
    if compartment.quarantined:
        note = "the scan put it into quarantine, where no agent sees it"
        yield Hidden(rule="quarantine", note=note, next="`rolebundle corpus quarantine list`")
    if rule is None:
        return
    change = f"the rule of {agent} in the policy, then `rolebundle policy set`"
    if {EVERY_SCOPE, compartment.scope}.isdisjoint(rule.scopes):
        scopes = ", ".join(rule.scopes) or "none"
        note = f"its scope is {compartment.scope}, and the agent has {scopes}"
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


def count_hidden(corpus: Corpus, agent: str | None, terms: Sequence[Term]) -> dict[str, int]:
    """How many passages with the task's words the policy keeps from an agent, by the first rule.

    Args:
        corpus: the whole corpus.
        agent: the agent that asked.
        terms: the terms of its task.
    """
    counts: Counter[str] = Counter()
    with corpus.reading():
        rule, _ = rule_of(corpus, agent or "")
        if rule is None or not terms:
            return {}
        for compartment in compartments.stored_compartments(corpus):
            hidden = next(hiding_rules(compartment, agent or "", rule), None)
            # The answer itself counts what is in quarantine.
            if hidden and hidden.rule != "quarantine" and compartment.chunks:
                [found] = CombinedPostings.of(corpus, [compartment.id]).frequencies([terms])
                counts[hidden.rule] += min(found, MAX_COUNTED)
    return dict(+counts)


# -- the quarantine ------------------------------------------------------------------------------


def kept_back(corpus: Corpus, terms: Sequence[Term]) -> list[KeptBack]:
    """The quarantined documents that have the task's words, best first; ties by id.

    Args:
        corpus: the whole corpus, with its quarantine.
        terms: the terms of the task.
    """
    scores: dict[int, float] = {}
    with corpus.reading():
        visible = compartments.visible_compartments(corpus)
        quarantined = [one.id for one in visible if one.quarantined and one.chunks]
        if not quarantined or not terms:
            return []
        for compartment in quarantined:
            scores |= CombinedPostings.of(corpus, [compartment]).best(terms, _MAX_PASSAGES)
        documents = partition.quarantined_with(corpus, scores)
    return [
        KeptBack(document_id=document.document_id, kinds=json.loads(document.scanned.kinds))
        for document in documents[:MAX_NAMED]
    ]


def quarantined_error(corpus: Corpus, reference: str, rules: ReferenceRules) -> UsageError | None:
    """The error for a reference that names a quarantined document; ``None`` if it names none."""
    if not may_be_stored(reference):
        return None
    name = named_document(reference)
    with corpus.reading():
        document = partition.quarantined_named(corpus, reference, name, rules.locations(name))
    if document is None:
        return None
    return UsageError(
        "quarantined",
        f"{reference}: quarantined: {', '.join(json.loads(document.scanned.kinds))}",
        f"rolebundle corpus quarantine show {quote(document.document_id)}",
    )
