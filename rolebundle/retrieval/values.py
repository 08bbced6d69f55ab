"""The values that pass between the steps of retrieval.

query ─▶ Query ─▶ lanes ─▶ Pool ─▶ score_hits ─▶ Candidates ─▶ filter ─▶ rank ─▶ select ─▶ Retrieval

``from __future__ import annotations`` is missing here, because it makes each annotation a text, and
``NamedTuple`` compiles such texts at import, which takes time.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from rolebundle.contracts.bundle import Constraint, CorpusState, KeptBack, RerankState
from rolebundle.contracts.documents import Noise, Passage
from rolebundle.contracts.overlay import RetrievalPolicy
from rolebundle.contracts.terms import (
    REJECTION_CODES,
    REJECTIONS,
    FreshnessStatus,
    Fusion,
    Lane,
    RejectionCode,
    WarningCode,
)
from rolebundle.contracts.why import SearchAim
from rolebundle.policy.trust import Labels
from rolebundle.retrieval.evidence import JUDGED_PER_RANKING, Evidence
from rolebundle.retrieval.request import ResolvedRequest

POOL_DEPTH = 40
"""How many chunks each lane proposes at first, plus as many as the agent has seen.

It is the same for every limit, so that a higher limit does not change the first passages."""
MAX_DEPTH = 4_096
"""The bound of law 2: a lane is not asked for more than this many chunks at once."""

# -- the query and the hits of the lanes ---------------------------------------------------------


class Term(NamedTuple):
    """A word or phrase of the lexical query.

    Attributes:
        text: the word or phrase.
        repeats: how often the term is repeated in the query.
        is_form: whether it is a stem or another word form (``rolebundle/text/forms.py``). The index
            has these forms next to the words.
        word: the word of a stem; empty for others. A stem counts as no rarer than its word, which
            passages in other languages have without the stem.
    """

    text: str
    repeats: int = 1
    is_form: bool = False
    word: str = ""

    @property
    def label(self) -> str:
        """The term for readers: a form begins with a tilde."""
        return f"~{self.text}" if self.is_form else self.text


@dataclass(frozen=True, slots=True)
class Task:
    """What a text asks for: everything that is read from it.

    Attributes:
        text: the text.
        languages: other languages than English that it may be in.
        words: all words, casefolded, in their order.
        terms: the lexical terms, each once.
        content_words: for each word that is no stop word a tuple of terms: first the word itself,
            then its stems and its other spellings. A text has the word if it has one of them.
        names: the words that look like the name of one thing: letters with digits (EL1), or a
            capital within a sentence (Larkfield).
        exact: quoted phrases, numbers and identifiers.
        years: the years that it asks about.
        as_written: its words in small letters → as it has them.
        rules: for the trace of the query.
    """

    text: str
    languages: tuple[str, ...]
    words: list[str]
    terms: tuple[Term, ...]
    content_words: tuple[tuple[Term, ...], ...]
    names: frozenset[str]
    exact: tuple[str, ...]
    years: tuple[str, ...]
    as_written: Mapping[str, str]
    rules: tuple[str, ...]


class Query(NamedTuple):
    """A task, expanded by a role. The task's own terms and the expansion terms are kept apart.

    Attributes:
        wordings: the task and its other wordings; the mean of their meanings is searched.
        task_terms: the lexical terms of all wordings.
        content_words: the content words of all wordings, each once.
        positions_by_wording: for the task, and then for each other wording, the positions of its
            words in ``content_words``.
        name_positions: the positions of the words that look like names in the task.
        expansion_terms: the lexical terms that the role adds.
        applied_rules: for the trace of the query.
        applied_filters: for the trace of the query.
        corrected: words that no visible chunk has → the words that are searched as well.
    """

    wordings: tuple[Task, ...]
    task_terms: tuple[Term, ...]
    content_words: tuple[tuple[Term, ...], ...]
    positions_by_wording: tuple[frozenset[int], ...]
    name_positions: frozenset[int]
    expansion_terms: tuple[Term, ...]
    applied_rules: tuple[str, ...]
    applied_filters: tuple[dict[str, Any], ...]
    corrected: Mapping[str, str] = MappingProxyType({})

    @property
    def task(self) -> Task:
        """The task in its own wording."""
        return self.wordings[0]


class Pool(NamedTuple):
    """All hits of the lanes for one query.

    Attributes:
        hits: the chunk's rowid → the hit: a candidate before :func:`score_hits`, with only its
            passage, lanes, round, ``bm25``, ``bm25_expansion`` and ``cosine``.
        proposed: for each aim, rowid → score of the chunks that its searches proposed.
        query_fluency: how well the embedding model reads the query, in (0, 1].
        noise: what the model's cosines mean; ``None`` if meanings were not searched.
        depth: how many chunks each lane was last asked for.
        max_returned: the most chunks that one lane returned last; less than ``depth`` means that
            the corpus has no more.
        last_round: how many rounds followed the first one.
        seconds: the time that each lane took.
    """

    hits: Mapping[int, "Candidate"] = MappingProxyType({})
    proposed: Mapping[SearchAim, Mapping[int, float]] = MappingProxyType({})
    query_fluency: float = 1.0
    noise: Noise | None = None
    depth: int = 0
    max_returned: int = 0
    last_round: int = 0
    seconds: Mapping[Lane, float] = MappingProxyType({})

    @property
    def cosines(self) -> dict[int, float]:
        """Rowid → cosine with the query, of what the semantic lane could score."""
        return {rowid: hit.cosine for rowid, hit in self.hits.items() if hit.cosine is not None}


# -- the score sheet -----------------------------------------------------------------------------

ROLE_MARGIN = 0.4
"""For a specific task, the role's preference multiplies a passage's score by at most 1.4."""
VAGUE_FACTOR = 2.6
"""A role's two weights are multiplied by this if no passage stands out by the task's words."""
MIN_SPECIFICITY = 1.2
"""From this specificity on the words choose: the role only orders what answers about equally."""
FULL_LANE_SCORE = 0.3
"""If the lanes' score is at least this, the role's part is not reduced."""
VOCABULARY_FACTOR = 0.15
"""The vocabulary's weight against the metadata's is multiplied with this, because a phrase may
occur by chance, but metadata was declared by somebody."""


def role_share(policy: RetrievalPolicy, specificity: float) -> float:
    """How much of the final score the role's components may decide, in [0, 1].

    It is ``(v + 0.4) / 1.4``:

    - Specific task, with a ``specificity`` of at least 1.2: one passage stands out by the task's
      words, and the task decides. ``v`` is 0.
    - Vague task: many passages have its words equally, and the role decides among them.
      ``v = w / (lanes + w)``, with ``w = 2.6 · (metadata_weight + rerank_weight)`` and
      ``lanes = lexical_weight + semantic_weight`` of the policy.

    The task always counts, unless the policy gives the lanes no weight.
    """
    lanes_weight = policy.lexical_weight + policy.semantic_weight
    role_weight = policy.metadata_weight + policy.rerank_weight
    if not role_weight or not lanes_weight:
        return float(role_weight > 0)
    role_weight *= VAGUE_FACTOR if specificity < MIN_SPECIFICITY else 0.0
    return (role_weight / (lanes_weight + role_weight) + ROLE_MARGIN) / (1 + ROLE_MARGIN)


class Weights(NamedTuple):
    """What each component of the final score is multiplied with. The four weights sum to 1.

    ``words_factor`` is what the policy's lexical weight was multiplied with. It has no effect with
    ``rrf`` or without the semantic lane.
    """

    lexical: float
    semantic: float
    metadata: float
    vocabulary: float
    fusion: Fusion
    words_factor: float = 1.0

    @classmethod
    def of(
        cls,
        policy: RetrievalPolicy,
        fusion: Fusion,
        *,
        has_semantic: bool,
        role_share: float = 0.0,
        words_factor: float = 1.0,
    ) -> "Weights":
        """The weights for one request.

        Metadata and vocabulary divide the role's share as the policy's weights say, the
        vocabulary's times ``VOCABULARY_FACTOR``. The lanes divide the rest as the policy says, with
        the lexical weight times ``words_factor``. If there is only the lexical lane, it has all of
        that. With ``rrf`` both lanes have the same weight.

        Args:
            policy: the role's policy.
            fusion: how the lanes are joined.
            has_semantic: whether there is a semantic component.
            role_share: the highest share of the role's components; 0 without a role.
            words_factor: see :meth:`~rolebundle.retrieval.evidence.Evidence.with_scores`.
        """
        lexical, semantic = words_factor * policy.lexical_weight, policy.semantic_weight
        metadata = policy.metadata_weight
        vocabulary = VOCABULARY_FACTOR * policy.rerank_weight
        if not has_semantic:
            lexical, semantic = 1.0, 0.0
        elif fusion == "rrf" or not lexical + semantic:
            lexical = semantic = 0.5
        lanes_weight, role_weight = lexical + semantic, (metadata + vocabulary) or 1.0
        return cls(
            lexical=(1 - role_share) * (lexical / lanes_weight),
            semantic=(1 - role_share) * (semantic / lanes_weight),
            metadata=role_share * (metadata / role_weight),
            vocabulary=role_share * (vocabulary / role_weight),
            fusion=fusion,
            words_factor=words_factor,
        )

    def lane_score(self, row: "Candidate") -> float:
        """The lanes' part of the final score of a candidate."""
        if self.fusion == "rrf":
            # As one product, so that equal ranks in either lane give the very same score.
            return self.lexical * (row.lexical + row.semantic)
        return self.lexical * row.lexical + self.semantic * row.semantic

    def role_factors(self, row: "Candidate") -> tuple[float, float]:
        """The two factors of the role's components of a candidate; their sum is in [0, 1].

        ``t`` is the task's score: the mean of the lanes' components by their weights. ``role`` and
        ``lanes`` are the sums of the role's and of the lanes' weights::

            equal = min(role, 0.4 · lanes)
            tie = equal / role · t
            rest = (role − equal) / role · min(1, t / 0.3)

        The first one lets the role choose among passages that answer about equally. The second one
        (:meth:`distance_factor`) shrinks to 0 for a passage far from the task, so that the role
        cannot lift such a passage. If only words are searched, it is not reduced, because a passage
        without the task's words may still be about it.
        """
        lanes_weight, role_weight = self.lexical + self.semantic, self.metadata + self.vocabulary
        if not lanes_weight or not role_weight:
            return 0.0, 1.0
        equal = min(role_weight, ROLE_MARGIN * lanes_weight)
        tie = equal / role_weight * self.lane_score(row) / lanes_weight
        return tie, (role_weight - equal) / role_weight * self.distance_factor(row)

    def distance_factor(self, row: "Candidate") -> float:
        """``min(1, t / 0.3)`` as in :meth:`role_factors`; 1 if only words were searched."""
        if not self.semantic:
            return 1.0
        return min(1.0, self.lane_score(row) / (self.lexical + self.semantic) / FULL_LANE_SCORE)


@dataclass(slots=True)
class Candidate:
    """A passage that a lane proposed: a row of the score sheet. Each step writes its columns.

    ``final = lexical·w1 + semantic·w2 + metadata·w3 + vocabulary·w4 − diversity_penalty + lift``.
    The four components are in [0, 1]; the role's up to 1.25 if the passage is marked as verified.

    Attributes:
        passage: the passage.
        lanes: the lanes that proposed it when it was found.
        round: the round of searches that found it; 0 is the first.
        bm25: against the task's terms, at least 0; ``None`` if the lexical lane did not score it.
        bm25_expansion: the same against the expansion terms.
        cosine: with the query, in [−1, 1]; ``None`` if the semantic lane did not score it.
        lexical: the component of the lexical lane.
        semantic: the component of the semantic lane, with what the reranking model says.
        expansion_score: ``bm25_expansion`` divided by the highest of round 0, in [0, 1].
        cross_encoder_score: the score by the reranking model; ``None`` if it was not scored again.
        metadata_score: the filter's product, in [0.01, 10].
        freshness: by the date of its document.
        metadata: the component of the role's metadata rules.
        vocabulary: the component of the role's vocabulary.
        diversity_penalty: what is taken from it for the diversity of sources.
        lift: what :meth:`set_final` added; below 0 if it put newer passages above this one.
        final: the score so far.
        metadata_factors: the rules that made up the metadata score → their factors.
        matched_phrases: the phrases of the role that the passage has.
        factor_notes: the factor of its mark and the penalty for weak evidence, as texts.
        role_factors: those of :meth:`Weights.role_factors`, each times that of its mark.
        moved_from: for each rule that changed its place, the place without this one rule.
        lift_reasons: why it has a lift.
        duplicate_of: the chunk id of the candidate that stands for it, if it is a copy.
        follows_up: the chunk id of one of the first three whose matter it is about, with a later
            date: a mail, or a section of a dated series.
        is_partial: whether the passage of ``duplicate_of`` has more text: it is quoted in part.
        newer_version: the chunk id of a newer version of its page that stands for it.
        differing_line: its first line that the newer version does not have.
        ignores_source_limit: whether it may be selected past the role's hard limit for its source:
            it is the best without a role (law 11), for a wording or for an exact word, or it is a
            mail that quotes such a passage.
        code: why it was rejected; ``None`` if it was not.
        note: the reason in words.
    """

    passage: Passage
    lanes: tuple[Lane, ...] = ()
    round: int = 0
    bm25: float | None = None
    bm25_expansion: float | None = None
    cosine: float | None = None
    lexical: float = 0.0
    semantic: float = 0.0
    expansion_score: float = 0.0
    cross_encoder_score: float | None = None
    metadata_score: float = 0.5
    freshness: FreshnessStatus = "undated"
    metadata: float = 0.0
    vocabulary: float = 0.0
    diversity_penalty: float = 0.0
    lift: float = 0.0
    final: float = 0.0
    metadata_factors: Mapping[str, float] = field(default_factory=dict)
    matched_phrases: tuple[str, ...] = ()
    factor_notes: tuple[str, ...] = ()
    role_factors: tuple[float, float] = (0.0, 1.0)
    moved_from: Mapping[str, int] = field(default_factory=dict)
    lift_reasons: tuple[str, ...] = ()
    duplicate_of: str | None = None
    follows_up: str | None = None
    is_partial: bool = False
    newer_version: str | None = None
    differing_line: str = ""
    ignores_source_limit: bool = False
    code: RejectionCode | None = None
    note: str = ""

    @property
    def chunk_id(self) -> str:
        """The passage's id."""
        return self.passage.chunk_id

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules and phrases of the overlay that it matches."""
        return *self.metadata_factors, *self.matched_phrases

    @property
    def can_be_selected(self) -> bool:
        """Whether it can be selected: no copy or newer version stands for it or replaces it."""
        is_first = self.duplicate_of is None and self.newer_version is None
        return is_first and not self.passage.superseded_by

    @property
    def unadjusted_score(self) -> float:
        """The final score without the diversity penalty and the lift."""
        return self.final + self.diversity_penalty - self.lift

    def unscored(self) -> "Candidate":
        """A copy as the lanes proposed it."""
        found = self.passage, self.lanes, self.round
        return Candidate(*found, self.bm25, self.bm25_expansion, self.cosine)

    def set_final(self, final: float, reason: str) -> None:
        """Give it another final score, higher or lower, and say why."""
        self.lift += final - self.final
        self.final = final
        self.lift_reasons = (*self.lift_reasons, reason)

    def raise_to(self, final: float, reason: str) -> None:
        """Give it another final score if that is higher."""
        if final > self.final:
            self.set_final(final, reason)

    def weigh(self, weights: Weights) -> None:
        """Write the sum of the four components."""
        self.final = (
            weights.lane_score(self)
            + weights.metadata * self.metadata
            + weights.vocabulary * self.vocabulary
        )


# -- what all steps return -----------------------------------------------------------------------


class Reranking(NamedTuple):
    """What the reranking model did.

    Attributes:
        model: it, and how many candidates it scored; ``None`` if it scored none.
        problem: why it did not, or which passages it could not read; empty if all is well.
        milliseconds: how long it was waited for; ``None`` if it was not requested.
    """

    model: RerankState | None = None
    problem: str = ""
    milliseconds: float | None = None


@dataclass(frozen=True)
class Retrieval:
    """The score sheet of one request, and everything else that its bundle says.

    Attributes:
        request: what was asked.
        query: the built query.
        evidence: what the visible corpus has of the task, and the selected passages.
        weights: of the components of the final score.
        corpus_state: the corpus that answered, and its state.
        pool: the hits of the lanes.
        candidates: a row for each hit, ordered by chunk id.
        ranked: the candidates that the filter allowed, in the order of the ranking.
        withheld_reason: why no passage was selected, whatever its score: the corpus has nothing, or
            too little, of the task. Else empty.
        has_rejected_evidence: whether passages were withheld, and what policy rejected would be
            evidence.
        semantic_problem: why the semantic lane could not run; empty if it ran or was not asked for.
        without_vector: how many chunks have no vector yet.
        reranking: what the reranking model did.
        missing_exact: the exact words and phrases of the task that no visible passage has.
        unmet_where: names the keys of ``where`` that exclude every document; empty if one matches.
        stating: a passage of each allowed document that says that it replaces or amends another.
        languages: language → how many allowed documents are in it, but for English.
        best_forbidden: the rejected candidates that would be selected if they were not forbidden.
        may_have_trusted: whether a visible document is preferred or authoritative; taken for true
            in a large corpus, where looking takes too long.
        facts: the retrieval of remembered facts; ``None`` if there are none.
        seconds: how long the search took.
        constraints: the active decisions about the task.
        refusal: why an approval was refused; empty if none was.
        absolute_paths: chunk id → the absolute path of its file, for those who may see it.
        file_warnings: messages by code about files that changed, or were not ingested.
        kept_back: the quarantined documents that have the task's words, for the owner.
        with_corpus: changes a message so that its commands name the corpus.
    """

    request: ResolvedRequest
    query: Query
    evidence: Evidence
    weights: Weights
    corpus_state: CorpusState
    pool: Pool
    candidates: Sequence[Candidate] = ()
    ranked: Sequence[Candidate] = ()
    withheld_reason: str = ""
    has_rejected_evidence: bool = False
    semantic_problem: str = ""
    without_vector: int = 0
    reranking: Reranking = field(default_factory=Reranking)
    missing_exact: Sequence[str] = ()
    unmet_where: str = ""
    stating: Sequence[Passage] = ()
    languages: Mapping[str, int] = field(default_factory=dict)
    best_forbidden: Sequence[Candidate] = ()
    may_have_trusted: bool = True
    facts: "Retrieval | None" = None
    seconds: float = 0.0
    constraints: Sequence[Constraint] = ()
    refusal: str = ""
    absolute_paths: Mapping[str, str | None] = field(default_factory=dict)
    file_warnings: Mapping[WarningCode, str] = field(default_factory=dict)
    kept_back: Sequence[KeptBack] = ()
    with_corpus: Callable[[str], str] = str

    @property
    def documents_and_facts(self) -> "list[Retrieval]":
        """This retrieval and the one of the remembered facts, if there are any."""
        return [self] if self.facts is None else [self, self.facts]

    @property
    def all_selected(self) -> list[Candidate]:
        """The passages of the answer in their order; remembered facts come last."""
        return [row for each in self.documents_and_facts for row in each.selected]

    @property
    def waits_for_approval(self) -> bool:
        """Whether an approval would allow further candidates."""
        return any(each.counts["requires_approval"] for each in self.documents_and_facts)

    @property
    def selected_by_approval(self) -> list[Candidate]:
        """The selected candidates that only an approval allows."""
        purpose = self.request.purpose
        return [
            row
            for row in self.all_selected
            if purpose.is_allowed_by_approval(Labels.of(row.passage.document, row.passage.flags))
        ]

    @property
    def judged_passages(self) -> list[Passage]:
        """What the evidence is judged by: the first five passages, and the best five by BM25."""
        rows = [row for row in self.ranked if row.can_be_selected]
        first = rows[:JUDGED_PER_RANKING]
        # Passages of later rounds do not count, so that the limit does not change the judgement.
        rows = [row for row in rows if row.round <= first[-1].round]
        by_words = sorted(rows, key=lambda row: -(row.bm25 or 0.0))
        judged = (*first, *by_words[:JUDGED_PER_RANKING])
        return [*{row.chunk_id: row.passage for row in judged}.values()]

    @cached_property
    def selected(self) -> list[Candidate]:
        """The candidates without a code, in the order of the ranking."""
        return [row for row in self.ranked if row.code is None]

    @cached_property
    def filtered_out(self) -> list[Candidate]:
        """What the filter rejected, by chunk id."""
        return [
            row for row in self.candidates if row.code and REJECTIONS[row.code].step == "filter"
        ]

    @cached_property
    def rejected(self) -> list[Candidate]:
        """By code; what the filter rejected by chunk id, the others by their rank."""
        rejected = [*self.filtered_out, *(row for row in self.ranked if row.code)]
        return sorted(rejected, key=code_order)

    @cached_property
    def counts(self) -> Counter[RejectionCode]:
        """How many candidates each code rejected."""
        return Counter(row.code for row in self.rejected if row.code)

    @property
    def declares_trust(self) -> bool:
        """Whether somebody declared trust for what is visible."""
        return self.may_have_trusted or any(
            row.passage.document.trust_tier == "untrusted" for row in self.candidates
        )


def code_order(row: Candidate) -> int:
    """The place of a rejected candidate's code."""
    assert row.code is not None
    return REJECTION_CODES.index(row.code)


def ranking_order(row: Candidate) -> tuple[int, float, float, str]:
    """The sort key of the ranking: the highest final score first.

    What a further round found comes after what the rounds before it found, whatever its score.
    So the first passages do not depend on how many are asked for. Ties are broken by the score
    before the diversity penalty, and then by chunk id.
    """
    return row.round, -row.final, -row.unadjusted_score, row.chunk_id


def lift(
    ranked: list[Candidate], row: Candidate, first: Candidate, reason: str, *, behind: bool = False
) -> None:
    """Put a row that ranks lower just above another one, or just behind it."""
    row.raise_to(math.nextafter(first.final, -math.inf if behind else math.inf), reason)
    ranked.sort(key=ranking_order)
