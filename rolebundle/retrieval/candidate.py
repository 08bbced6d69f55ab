"""The values that pass between the steps of retrieval.

query ─▶ Query ─▶ lanes ─▶ Pool ─▶ merge ─▶ Candidate ─▶ filter ─▶ rank ─▶ select

They are named tuples and not frozen dataclasses, because each request makes thousands of them, and
a named tuple is made four times as quickly. So is its class, which shortens a cold start; without
postponed annotations, because a named tuple compiles each of these.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.contracts.bundle import AppliedFilter
from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import FreshnessStatus, Lane, RejectionCode
from rolebundle.retrieval.score import Score, Weights

# -- the query and the hits of the lanes ---------------------------------------------------------


class Term(NamedTuple):
    """A word or phrase of the lexical query.

    Attributes:
        text: the word or phrase.
        weight: how often the term is repeated in the query.
        form: whether it is a stem or another word form (``rolebundle/text/forms.py``). The index
            has these forms next to the words.
    """

    text: str
    weight: int = 1
    form: bool = False

    @property
    def label(self) -> str:
        """The term for readers: a form begins with a tilde."""
        return f"~{self.text}" if self.form else self.text


class Query(NamedTuple):
    """A task, expanded by a role. The task's own terms and the role's are kept apart.

    Attributes:
        task_text: the task.
        task_terms: the lexical terms of the task and its other wordings.
        content_words: the words of all wordings without stop words, each once, as the terms of
            which a text with the word has at least one: the word itself, which comes first, its
            stems, and its other spellings.
        wordings: the positions of the words of each wording; the task's own comes first.
        names: the positions of the words that look like the name of one thing: letters with digits
            (EL1), or a capital within a sentence (Larkfield).
        exact: quoted phrases, numbers and identifiers.
        expansion_terms: the lexical terms of the role.
        semantic_texts: the task and its other wordings; their mean is searched by meaning.
        applied_rules: for the trace of the query.
        applied_filters: for the trace of the query.
        corrected: words that no visible chunk has → the words that are searched as well.
    """

    task_text: str
    task_terms: tuple[Term, ...]
    content_words: tuple[tuple[Term, ...], ...]
    wordings: tuple[frozenset[int], ...]
    names: frozenset[int]
    exact: tuple[str, ...]
    expansion_terms: tuple[Term, ...]
    semantic_texts: tuple[str, ...]
    applied_rules: tuple[str, ...]
    applied_filters: tuple[AppliedFilter, ...]
    corrected: Mapping[str, str] = MappingProxyType({})


class LexicalHit(NamedTuple):
    """A chunk's BM25 against the task's terms and against the role's; at least 0.

    ``proposed`` is False if the lane only scored what the other lane proposed.
    """

    rowid: int
    bm25: float
    bm25_expansion: float
    proposed: bool = True


class SemanticHit(NamedTuple):
    """A chunk's cosine with the query, in [−1, 1]; ``proposed`` as in :class:`LexicalHit`."""

    rowid: int
    cosine: float
    proposed: bool = True


class Pool(NamedTuple):
    """All hits of the lanes for one query, keyed by the chunk's rowid.

    Attributes:
        lexical: the lexical hits, proposed or only scored.
        semantic: the semantic hits, proposed or only scored.
        passages: the chunks.
        rounds: rowid → the search that found the chunk first, for those of deeper searches; the
            first search is 0.
        by_task: the BM25 of what the lexical lane proposed for the task's terms.
        by_role: the BM25 of what the lexical lane proposed for the role's terms.
        confidence: how well the embedding model reads the query, in (0, 1].
        depth: how many chunks each lane was last asked for.
        yielded: the most chunks that one lane returned last; less than ``depth`` means that the
            corpus has no more.
        refills: how often the lanes were asked again.
        lexical_seconds: the time that the lexical lane took.
        semantic_seconds: the time that the semantic lane took.
    """

    lexical: Mapping[int, LexicalHit] = MappingProxyType({})
    semantic: Mapping[int, SemanticHit] = MappingProxyType({})
    passages: Mapping[int, Passage] = MappingProxyType({})
    rounds: Mapping[int, int] = MappingProxyType({})
    by_task: Mapping[int, float] = MappingProxyType({})
    by_role: Mapping[int, float] = MappingProxyType({})
    confidence: float = 1.0
    depth: int = 0
    yielded: int = 0
    refills: int = 0
    lexical_seconds: float = 0.0
    semantic_seconds: float = 0.0


# -- candidates ----------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A passage that a lane proposed, with the results of the steps so far.

    Attributes:
        passage: the passage.
        lanes: the lanes that proposed it.
        round: the search that found it: 0, or the number of a deeper one.
        bm25: against the task's terms, at least 0; ``None`` if the lexical lane did not score it.
        bm25_expansion: the same against the role's terms.
        expansion: ``bm25_expansion`` divided by the highest of the pool, in [0, 1].
        cosine: with the query, in [−1, 1]; ``None`` if the semantic lane did not score it.
        score: the score so far.
        metadata_score: the filter's product, in [0.01, 10].
        metadata_hits: the rules that made it up.
        freshness: by the date of its document.
        contextual: the cosine by the reranking model; ``None`` if it was not scored again.
        duplicate_of: the chunk id of the candidate that stands for it, if it is a copy.
        is_kept: it is the best for the task, or for an exact word of it; a hard limit of its source
            does not leave it out.
    """

    passage: Passage
    lanes: tuple[Lane, ...]
    bm25: float | None
    bm25_expansion: float | None
    cosine: float | None
    score: Score
    round: int = 0
    expansion: float = 0.0
    metadata_score: float = 0.5
    metadata_hits: tuple[str, ...] = ()
    freshness: FreshnessStatus = "undated"
    contextual: float | None = None
    duplicate_of: str | None = None
    is_kept: bool = False

    @property
    def chunk_id(self) -> str:
        """The passage's id."""
        return self.passage.chunk_id

    @property
    def is_superseded(self) -> bool:
        """Whether another document replaces this one's; such a candidate is never selected."""
        return bool(self.passage.superseded_by)

    def with_score(self, score: Score) -> "Candidate":
        """The candidate with another score."""
        return self._replace(score=score)


def best_by_lanes(
    candidates: Sequence[Candidate], weights: Weights, number: int
) -> list[Candidate]:
    """The best candidates by the lanes' part of their score, best first, ties by chunk id."""

    def order(candidate: Candidate) -> tuple[float, str]:
        score = candidate.score
        return -weights.lane_score(score.lexical, score.semantic), candidate.chunk_id

    return sorted(candidates, key=order)[:number]


class RejectedCandidate(NamedTuple):
    """A candidate that was not selected, with the code and the note of its rejection."""

    candidate: Candidate
    code: RejectionCode
    note: str
