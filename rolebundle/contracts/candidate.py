"""The plain values that pass between the steps of retrieval.

query ─▶ Query ─▶ lanes ─▶ hits ─▶ merge ─▶ Candidate ─▶ filter ─▶ Filtered ─▶ rerank ─▶ Ranked
"""

from __future__ import annotations

from dataclasses import dataclass

from rolebundle.contracts.bundle import AppliedFilter, QueryWeights
from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import FreshnessStatus, Lane, RejectionCode


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase of the lexical query; ``weight`` is how often it is repeated.

    ``form``: a stem or another form of words (``rolebundle/text/forms.py``), which stands
    beside the words in the index.
    """

    text: str
    weight: int = 1
    form: bool = False

    @property
    def shown(self) -> str:
        """The term for readers: a form begins with a tilde."""
        return f"~{self.text}" if self.form else self.text


@dataclass(frozen=True, slots=True)
class Query:
    """A task, expanded by a role. The task's own terms and the role's are kept apart."""

    task_text: str
    task_terms: tuple[Term, ...]
    expansion_terms: tuple[Term, ...]
    semantic_text: str
    context_text: str
    weights: QueryWeights
    applied_rules: tuple[str, ...]
    applied_filters: tuple[AppliedFilter, ...]


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A chunk's BM25 against the task's terms and against the role's; larger is better, ≥ 0."""

    rowid: int
    bm25: float
    bm25_expansion: float
    proposed: bool = True
    """False where the lane only scored what the other one proposed."""


@dataclass(frozen=True, slots=True)
class SemanticHit:
    """A chunk's cosine with the query, in [−1, 1]."""

    rowid: int
    cosine: float
    proposed: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that some lane proposed, with both lanes' scores normalized to [0, 1]."""

    passage: Passage
    lanes: tuple[Lane, ...]
    lexical: float
    semantic: float
    bm25: float | None
    bm25_expansion: float | None
    cosine: float | None
    lexical_alone: float | None = None
    """The lexical score before the passages like it had their say; ``None`` where none had."""
    semantic_alone: float | None = None
    contextual: float | None = None
    """The cosine by the model that reranked, in [−1, 1]; ``None`` where it did not look."""
    contextual_score: float | None = None
    """The same, normalized to [0, 1] among those that it looked at."""
    semantic_before: float | None = None
    """The semantic score before the context had its say; ``None`` where it had none."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that did not make it, with the code and the note of the step that said so."""

    passage: Passage
    reason: RejectionCode
    notes: str
    candidate: Candidate | None = None
    """What the lanes measured: an empty answer is explained by it."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """A candidate that policy allows, with its metadata score in [0.01, 10]."""

    candidate: Candidate
    metadata_score: float
    freshness: FreshnessStatus
    overlay_hits: tuple[str, ...]

    def with_lanes(self, lexical: float, semantic: float) -> Filtered:
        """The same with other scores of its lanes; the first ones are kept as those alone.

        By its fields and not by ``replace``, which takes four times as long, for each candidate.
        """
        own = self.candidate
        candidate = Candidate(
            own.passage,
            own.lanes,
            lexical,
            semantic,
            own.bm25,
            own.bm25_expansion,
            own.cosine,
            own.lexical if own.lexical_alone is None else own.lexical_alone,
            own.semantic if own.semantic_alone is None else own.semantic_alone,
            own.contextual,
            own.contextual_score,
            own.semantic_before,
        )
        return Filtered(candidate, self.metadata_score, self.freshness, self.overlay_hits)


@dataclass(frozen=True, slots=True)
class Ranked:
    """An allowed candidate with every term of its final score."""

    filtered: Filtered
    metadata: float
    vocabulary: float
    vocabulary_hits: tuple[str, ...]
    diversity_penalty: float
    final: float
    duplicate_of: str | None = None
    """The chunk id of the better copy, where this one is a duplicate."""

    @property
    def passage(self) -> Passage:
        """The chunk itself."""
        return self.filtered.candidate.passage

    @property
    def superseded(self) -> bool:
        """Whether another document replaces this one's; such a candidate is never selected."""
        return bool(self.passage.superseded_by)
