"""Why a passage is in an answer, and how roles differ."""

from __future__ import annotations

from typing import Literal

from rolebundle.contracts import bundle, terms
from rolebundle.contracts.base import Contract
from rolebundle.contracts.lookup import LookupKind

Outcome = Literal["selected", "rejected", "not_proposed"]
Step = Literal["where", "lanes", "filter", "cut"]
SearchAim = Literal["task_words", "role_words", "meaning"]


class LaneTrace(Contract):
    """One search of a lane.

    Attributes:
        by: what was searched for. The lexical lane searches for the task's words and for the words
            that the overlay adds separately.
        ran: whether the search was run.
        note: why it was not run; empty if it was.
        proposed: whether the search proposed the passage.
        rank: place of the passage among the proposed passages, from 1; missing if not proposed.
        score: the passage's BM25 (0 or more) or cosine (in [−1, 1]), also if it was not proposed;
            missing if the search was not run or the passage has no vector.
        pool: number of passages that the search proposed.
        least: lowest score of a proposed passage; missing if there is none.
        depth: maximum number of passages that the search was asked for.
    """

    lane: terms.Lane
    by: SearchAim
    ran: bool
    note: str = ""
    proposed: bool
    rank: int | None = None
    score: float | None = None
    pool: int
    least: float | None = None
    depth: int


class FilterTrace(Contract):
    """The result of the filter for the passage, also if no lane proposed it.

    Attributes:
        code: rejection code; missing if the passage is allowed.
        notes: explanation of the code.
        factors: names of the rules that changed the metadata score.
        inferred_at: the date of the file by which the freshness is measured; missing if the
            document has a date of its own, or neither has one.
    """

    allowed: bool
    code: terms.RejectionCode | None = None
    notes: str = ""
    factors: list[str] = []
    freshness: terms.FreshnessStatus
    inferred_at: str | None = None


class ScoreTrace(Contract):
    """The passage's score, and its place in the ranking.

    Attributes:
        vocabulary: names of the overlay's vocabulary rules that matched.
        moved_from: each of the overlay's rules that it matches → its place in the ranking if the
            overlay had no such rule; ``place`` if the rule changes nothing.
        mark_factor: what the mark multiplies the role's components with, before they are in
            ``scores``; missing if no person marked the passage.
        lift: in words, why the score was lifted (its number: ``scores.lift``); empty if it was not.
        place: place among the ``of`` ranked candidates, from 1.
        rank: place in the answer, from 1; missing if the passage is not selected.
        code: rejection code of the selection; missing if the passage is selected.
        to_beat: the final score that the passage would need: that of the last selected passage, or
            the minimum score if this is higher or if there is room left. Missing unless
            ``code`` is ``low_score`` or ``budget_cut``.
        supposed: whether the passage was not ranked, so that these are the values that it would
            have if it had been proposed and allowed.
    """

    scores: bundle.Scores
    raw: bundle.RawScores
    weights: bundle.ScoreWeights
    vocabulary: list[str]
    moved_from: dict[str, int] = {}
    mark_factor: float | None = None
    lift: str = ""
    place: int
    of: int
    rank: int | None = None
    code: terms.RejectionCode | None = None
    to_beat: float | None = None
    supposed: bool


class Rival(Contract):
    """A passage that is ranked before this one. ``rank`` is missing if it is not selected."""

    rank: int | None = None
    chunk_id: str
    locator: str
    final: float


class Why(Contract):
    """Why a passage is in the answer, or is not.

    Attributes:
        passages: number of passages that the reference names. The answer is about the one with the
            best place.
        anchor: where it is, in a format in which lines do not tell it: ``p. 3``, ``slide 4``.
        flags: kinds of the scan's findings in the passage; missing if there are none.
        mark: what somebody has stated about the passage; missing if it has no mark.
        outcome: ``not_proposed``: no lane proposed the passage. With the step ``where``: its
            document was not searched; the other steps say what would happen without the keys of
            ``where`` that exclude it.
        rank: place in the answer, from 1; missing if the passage is not selected.
        step: the step that rejected it; missing if it is selected.
        code: rejection code, as in the bundle; missing if there is none.
        notes: explanation of the code.
        ignored_claims: documents that claim to supersede the passage's, but may not; missing if
            there are none.
        refused_claims: declarations of the passage's document that its owner does not allow, each
            as ``key: value``; missing if there are none.
        words: which words of the query are in the passage's text, title, headings or tags:
            ``task_found``, ``task_missing`` and ``role_found``.
        pool: the number of ``candidates``; the ``depth``, how many of them each search was asked
            for at most; and ``refills``, how often the lanes were asked for more.
        limit: maximum number of selected passages.
        min_score: final score that a passage must have to be selected.
        lost_to: passages that were preferred: the last selected ones, a better copy of the passage,
            or a newer version.
    """

    reference: str
    kind: LookupKind
    passages: int
    role_id: str
    task: str
    chunk_id: str
    document_id: str
    source_id: str
    title: str
    locator: str
    anchor: str | None = None
    flags: list[str] | None = None
    mark: bundle.PassageMark | None = None
    outcome: Outcome
    rank: int | None = None
    step: Step | None = None
    code: terms.RejectionCode | None = None
    notes: str = ""
    ignored_claims: list[str] | None = None
    refused_claims: list[str] | None = None
    words: dict[str, list[str]]
    lanes: list[LaneTrace]
    pool: dict[str, int]
    filter: FilterTrace
    score: ScoreTrace
    limit: int
    min_score: float
    selected_count: int
    lost_to: list[Rival]
    fusion: terms.Fusion
    request: bundle.RequestEcho
    overlay: bundle.OverlayRef | None = None
    corpus: bundle.CorpusState
    generated_at: str


class Hidden(Contract):
    """A rule that keeps a passage from an agent.

    Attributes:
        note: why it does.
        next: what the owner can look at or change.
    """

    rule: terms.HidingRule
    note: str
    next: str


class WhyAsAgent(Contract):
    """What keeps a passage from an agent, as the owner asks.

    Attributes:
        hidden: the rules, the first to apply comes first; empty if none keeps it from the agent.
        why: the steps of the agent's answer; missing if the agent does not see the passage.
    """

    agent: str
    reference: str
    document_id: str
    locator: str
    hidden: list[Hidden]
    why: Why | None = None


StandingState = Literal["selected", "rejected", "not_found"]


class RoleView(Contract):
    """The answer for one role.

    Attributes:
        role_id: the role; empty for the answer without a role.
        candidates: number of candidates.
        selected: chunk ids by rank.
        own: chunk ids that are selected for no other role.
        rejected_summary: number of rejected candidates by rejection code.
        role_share: the highest share of the role's components in the final scores, in [0, 1].
    """

    role_id: str
    overlay_digest: str
    candidates: int
    selected: list[str]
    own: list[str]
    rejected_summary: dict[terms.RejectionCode, int]
    trust_posture: terms.TrustPosture
    freshness_posture: terms.FreshnessPosture
    warnings: list[terms.WarningCode]
    fallback: bundle.Fallback | None = None
    role_share: float | None = None


class Standing(Contract):
    """What happened to a passage for one role.

    Attributes:
        state: ``not_found`` means that no lane proposed the passage for this role.
        rank: place in the role's answer, from 1; ``None`` if the passage is not selected.
        score: final score; ``None`` if the passage is not selected.
        reason: rejection code; ``None`` if the passage is not rejected.
        notes: explanation of the code.
        overlay_hits: names of the overlay's rules that matched it; ``None`` if the passage is not
            selected.
        moved_from: as in the bundle's passage.
    """

    role_id: str
    state: StandingState
    rank: int | None = None
    score: float | None = None
    reason: terms.RejectionCode | None = None
    notes: str | None = None
    overlay_hits: list[str] | None = None
    moved_from: dict[str, int] | None = None


class ComparedPassage(Contract):
    """A passage that is selected for at least one role, and what happened to it for each role.

    ``flags`` are as in the bundle's metadata of the passage.
    """

    chunk_id: str
    document_id: str
    source_id: str
    title: str | None = None
    headings: list[str]
    locator: str | None = None
    flags: list[str] | None = None
    standings: list[Standing]


class Overlap(Contract):
    """How much of what is selected for two roles is the same.

    ``chunks`` and ``documents`` are Jaccard indexes in [0, 1]: selected for both, divided by
    selected for at least one. They are 1 if nothing is selected for either role.
    """

    first: str
    second: str
    chunks: float
    documents: float
    shared_chunks: int
    shared_documents: int


class Comparison(Contract):
    """The answer to `compare`.

    Attributes:
        generated_at: the time that ages are measured against, ISO 8601 in UTC.
        shared: chunk ids that are selected for every role.
        overlaps: one for each pair of roles.
    """

    task_text: str
    generated_at: str
    corpus: bundle.CorpusState | None = None
    roles: list[RoleView]
    shared: list[str]
    overlaps: list[Overlap]
    passages: list[ComparedPassage]
