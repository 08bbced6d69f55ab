"""The step select: limits, budgets and codes; what a role forbids, and what disagrees. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from rolebundle.contracts.documents import Passage
from rolebundle.retrieval.filter import (
    CodeAndNote,
    add_metadata_score,
    policy_rejections,
    seen_rejection,
)
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.scoring import add_role_part
from rolebundle.retrieval.values import Candidate, Retrieval, ranking_order
from rolebundle.text.words import counted

ALWAYS_COMPARED = 10
"""How many passages are compared for declared disagreements if the limit is smaller, so that a
small answer hides none."""
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English text. Budgets are held to this estimate, not to a tokenizer."""


def select(ranked: Iterable[Candidate], request: ResolvedRequest, reason: str = "") -> None:
    """Select greedily, in the order of the ranking; write a code for what is not selected.

    A candidate is rejected if it is superseded (``conflict_downrank``), a copy of another one
    (``duplicate``), under ``request.min_score`` (``low_score``), past ``request.limit`` or the
    role's hard limit for its source, or does not fit into what is left of ``request.token_budget``
    (``budget_cut``). The first of these is its code.

    Args:
        ranked: the candidates in their order. Those that have a code keep it.
        request: the resolved request.
        reason: why every candidate is rejected (``low_score``); empty if none is.
    """
    selected_by_group, tokens = Counter[str](), 0
    for row in ranked:
        if row.code is not None:
            continue
        rejection = _selection_rejection(row, request, selected_by_group, tokens)
        if reason:
            row.code, row.note = "low_score", reason
        elif rejection is None:
            selected_by_group[row.passage.document.source_id] += 1
            tokens += estimated_tokens(row.passage.content)
        else:
            row.code, row.note = rejection


def _selection_rejection(
    row: Candidate, request: ResolvedRequest, selected_by_group: Counter[str], tokens: int
) -> CodeAndNote | None:
    """The code and the note of a candidate; ``None`` if it is selected.

    Args:
        row: the candidate.
        request: the resolved request.
        selected_by_group: how many passages of each source are selected.
        tokens: how many tokens these have.
    """
    policy, group = request.retrieval_policy, row.passage.document.source_id
    if row.passage.superseded_by:
        newer = ", ".join(newer.document_id for newer in row.passage.superseded_by)
        return "conflict_downrank", f"superseded by {newer}"
    if row.duplicate_of is not None:
        return "duplicate", f"the same text as {row.duplicate_of}"
    if row.newer_version is not None:
        return "other_version", f"{row.newer_version} is newer; here: {row.differing_line[:200]}"
    if row.final < request.min_score:
        return "low_score", f"score {row.final:.3f} is under the floor of {request.min_score:g}"
    if selected_by_group.total() >= request.limit:
        after = f" ({row.final:.3f} after source diversity)" if row.diversity_penalty else ""
        limit = counted(request.limit, "passage")
        score = f"score {row.unadjusted_score:.3f}{after}"
        return "budget_cut", f"{score} is past the limit of {limit}"
    is_full = selected_by_group[group] >= policy.max_chunks_per_source
    # The hard limit does not apply to what a lift guarantees, such as the best without a role.
    if policy.diversity == "hard" and is_full and not row.ignores_source_limit:
        limit = counted(policy.max_chunks_per_source, "passage")
        return "budget_cut", f"it is past the role's limit of {limit} of {group}"
    cost, budget = estimated_tokens(row.passage.content), request.token_budget
    if budget is not None and tokens + cost > budget:
        used = f"{tokens} of token_budget {budget} are used"
        return "budget_cut", f"about {cost} tokens do not fit: {used}"
    return None


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has for a model."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def best_forbidden(retrieval: Retrieval) -> list[Candidate]:
    """The candidates that would be selected if the role forbade no source, best first.

    They get the scores of lanes, metadata and vocabulary, are sorted together with the selected
    candidates, and cut by the same limits. They are not compared as copies or versions, and not
    lifted, so that they influence only a warning.
    What is rejected for another reason as well is not among them.
    """
    request = retrieval.request
    supposed = [
        replace(row, code=None)
        for row in retrieval.filtered_out
        if {code for code, _ in policy_rejections(row.passage, request)} == {"forbidden_source"}
        and not seen_rejection(row.passage, request)
    ]
    for row in supposed:
        add_metadata_score(row, request)
        add_role_part(row, request, retrieval.weights)
        row.weigh(retrieval.weights)
    together = sorted((*map(replace, retrieval.selected), *supposed), key=ranking_order)
    select(together, request)
    ids = {row.chunk_id for row in supposed}
    return [row for row in together if row.code is None and row.chunk_id in ids]


def conflicts(ranked: Sequence[Candidate], limit: int) -> Iterator[tuple[Passage, Passage]]:
    """The passages whose documents declare a disagreement, the better one of each pair first.

    Two passages *conflict* if their documents are two, have the same trust tier, and one of them
    declares that it contradicts the other one (``contradicts``). Texts are not compared. Looked at
    are the selected passages, and under a limit of ten also those past it, up to ten in all.
    """
    selected, cut = list[Passage](), list[Passage]()
    for row in ranked:
        if row.code is None:
            selected.append(row.passage)
        elif row.code == "budget_cut" and len(selected) >= limit:
            cut.append(row.passage)
    compared = cut[: max(0, ALWAYS_COMPARED - limit)]
    pairs = [*combinations(selected, 2), *((one, two) for two in compared for one in selected)]
    for one, two in pairs:
        if (
            one.document.trust_tier == two.document.trust_tier
            and one.document.document_id != two.document.document_id
            and (_contradicts(one, two) or _contradicts(two, one))
        ):
            yield one, two


def _contradicts(passage: Passage, other: Passage) -> bool:
    return bool({other.document.document_id, other.path} & {*passage.document.contradicts})
