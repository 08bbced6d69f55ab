"""What `why` answers: one passage, followed through every step of the pipeline.

Scores are rounded to six decimals, as in the bundle. ``supposed`` marks what did not happen: the
steps were run again with the passage let in, to say what would have become of it.
"""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState, OverlayRef, RawScores, RequestEcho, Scores
from rolebundle.contracts.lookup import LookupKind
from rolebundle.contracts.terms import FreshnessStatus, Fusion, Lane, RejectionCode

Outcome = Literal["selected", "rejected", "not_proposed"]
Step = Literal["lanes", "filter", "cut"]
FoundBy = Literal["task_words", "role_words", "meaning"]


class WordsTrace(Contract):
    """Which words of the query the index has for the passage: its text, title, headings, tags."""

    task_found: list[str]
    task_missing: list[str]
    role_found: list[str]


class LaneTrace(Contract):
    """One way to be found.

    Attributes:
        by: the lexical lane looks for the task's words and for the role's, each by itself.
        ran: whether it searched at all; ``note`` says why not.
        proposed: whether it found the passage.
        rank: the passage's place among the ``pool`` passages that it proposed, from 1.
        score: the passage's BM25 (≥ 0) or cosine ([−1, 1]), proposed or not; none where it has no
            vector.
        least: the lowest score among those that it proposed.
        depth: how many it was asked for.
    """

    lane: Lane
    by: FoundBy
    ran: bool
    note: str = ""
    proposed: bool
    rank: int | None = None
    score: float | None = None
    pool: int
    least: float | None = None
    depth: int


class FilterTrace(Contract):
    """What policy made of the passage; of one that no lane proposed, what it would have made."""

    allowed: bool
    code: RejectionCode | None = None
    notes: str = ""
    factors: list[str] = []
    freshness: FreshnessStatus


class ScoreWeights(Contract):
    """What each term of the final score is multiplied with."""

    lexical: float
    semantic: float
    metadata: float
    rerank: float


class ScoreTrace(Contract):
    """The terms of the final score, and where they put the passage.

    ``place`` is among all ``of`` allowed candidates, in the order of the final score; ``rank`` is
    the place in the answer, where it has one; ``code`` is what the cut did otherwise. Where the
    request had a rerank, ``rerank_note`` says why this passage was not re-scored, if it was not.
    """

    scores: Scores
    raw: RawScores
    weights: ScoreWeights
    vocabulary: list[str]
    place: int
    of: int
    rank: int | None = None
    code: RejectionCode | None = None
    supposed: bool
    rerank_note: str = ""


class Rival(Contract):
    """A passage that came before; with a rank where it was selected."""

    rank: int | None = None
    chunk_id: str
    locator: str
    final: float


class PoolTrace(Contract):
    """How far the lanes looked: candidates in all, what each lane was asked for, refills."""

    candidates: int
    depth: int
    refills: int


class Why(Contract):
    """Why a passage is in the answer, or is not.

    Attributes:
        passages: how many passages the reference names; this is about the best placed of them.
        rank: the place in the answer, where it is selected.
        step: the step that rejected it, with ``code`` and ``notes`` as in the bundle.
        lost_to: what it lost to: the last of the selected, its better copy, or its newer version.
        needs: what would have had to be different, all of it together; alternatives stand in one
            sentence. Empty where the passage is selected.
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
    outcome: Outcome
    rank: int | None = None
    step: Step | None = None
    code: RejectionCode | None = None
    notes: str = ""
    words: WordsTrace
    lanes: list[LaneTrace]
    pool: PoolTrace
    filter: FilterTrace
    score: ScoreTrace
    limit: int
    min_score: float
    selected_count: int
    lost_to: list[Rival]
    needs: list[str]
    fusion: Fusion
    request: RequestEcho
    overlay: OverlayRef | None = None
    corpus: CorpusState
    generated_at: str
