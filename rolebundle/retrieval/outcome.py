"""What the selection and all steps of retrieval together return.

Named tuples without postponed annotations, for the reason in ``candidate.py``.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.contracts.bundle import CorpusState, RerankState
from rolebundle.contracts.terms import WarningCode
from rolebundle.retrieval.candidate import Candidate, Pool, Query, RejectedCandidate
from rolebundle.retrieval.conflicts import Conflict
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.score import Weights


class Selection(NamedTuple):
    """What was selected and what was not, each in the order of the final score.

    ``conflicts`` are of passages that were selected, or of one of them with one that a small limit
    cut.
    """

    selected: tuple[Candidate, ...] = ()
    rejected: tuple[RejectedCandidate, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class SemanticReport(NamedTuple):
    """How the semantic lane ran.

    Attributes:
        degraded: why it could not run; empty if it ran or was not requested.
        substitute: which index answered instead of the active one, and why; empty if it did not.
        waiting: how many chunks have no vector yet.
        doubt: why the approximate index is not used; empty if it is or there is none.
        applied_rules: the lane's rules for the query trace.
    """

    degraded: str = ""
    substitute: str = ""
    waiting: int = 0
    doubt: str = ""
    applied_rules: tuple[str, ...] = ()


class RerankReport(NamedTuple):
    """How the reranking model ran; the fields are those of the bundle's diagnostics."""

    state: RerankState | None
    warnings: Sequence[tuple[WarningCode, str]]
    milliseconds: float


class Retrieval(NamedTuple):
    """What each step returned for one request.

    Attributes:
        query: the built query.
        evidence: what the visible corpus has of the task, and the selected passages.
        weights: of the terms of the final score.
        corpus: the corpus that answered, and its state.
        semantic: how the semantic lane ran.
        rerank: how the reranking model ran; ``None`` if it was not requested.
        pool: the hits of the lanes.
        candidates: the candidates that merge built from the pool.
        rejected: the candidates that the filter rejected.
        ranked: the candidates that the filter allowed, in the order of the ranking.
        selection: the selection from the ranked candidates.
        withheld: why nothing was selected although there are candidates; empty if something was.
        judged: the rowids of the first passages, which decide about the evidence.
        absent_exact: the exact words and phrases of the task that no visible passage has.
        unmatched: the keys of ``where`` that exclude every document; empty if one matches.
        seen: the hashes of the texts that the agent has, and the ids of its passages.
        forbidden_hits: the rejected candidates that would be selected if they were not forbidden.
        has_trusted: whether a visible document is preferred or authoritative.
        facts: what each step returned for remembered facts; ``None`` if there are none.
    """

    query: Query
    evidence: Evidence
    weights: Weights
    corpus: CorpusState
    semantic: SemanticReport
    rerank: RerankReport | None
    pool: Pool
    candidates: Sequence[Candidate]
    rejected: Sequence[RejectedCandidate]
    ranked: Sequence[Candidate]
    selection: Selection
    withheld: str = ""
    judged: Sequence[int] = ()
    absent_exact: Sequence[str] = ()
    unmatched: str = ""
    seen: Mapping[str, Sequence[str]] = MappingProxyType({})
    forbidden_hits: Sequence[Candidate] = ()
    has_trusted: bool = True
    facts: "Retrieval | None" = None

    @property
    def declares_trust(self) -> bool:
        """Whether somebody declared trust for what is visible."""
        return self.has_trusted or any(
            candidate.passage.document.trust_tier == "untrusted" for candidate in self.candidates
        )
