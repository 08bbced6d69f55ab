"""The overlay: how one role retrieves. A superset of Knowledge Core's format, version 1.0."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import Fusion, TrustTier

ROLE_ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
WEIGHT_TOLERANCE = 0.01

RoleId = Annotated[str, StringConstraints(max_length=64, pattern=ROLE_ID_PATTERN)]
# A blank pattern would match every source. A pattern with spaces at its ends would match nothing.
Phrase = Annotated[str, StringConstraints(max_length=500, pattern=r"^\S([\s\S]*\S)?$")]
Boost = Annotated[float, Field(gt=0, le=100)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Vocabulary(Contract):
    """The role's words.

    Attributes:
        preferred_terms: words that are added to the query if the task has them. A passage with one
            is ranked higher.
        synonyms: for a term, the words to search for in addition if the task has the term.
        boost_phrases: a passage with one is ranked higher. The first three are added to every
            query of the role, the others if the task has enough of their words.
        suppress_phrases: a passage with one is ranked lower.
    """

    preferred_terms: list[Phrase] = []
    synonyms: dict[Phrase, list[Phrase]] = {}
    boost_phrases: list[Phrase] = []
    suppress_phrases: list[Phrase] = []


class SourceRule(Contract):
    """A rule for sources.

    Attributes:
        pattern: a part of the source_id, document_type, domain or path, in any case.
        reason: why the rule exists.
        boost: factor of the metadata score if the source is preferred. Default: 1.5.
    """

    pattern: Phrase
    reason: str = ""
    boost: Boost | None = None


class SourcePolicy(Contract):
    """Which sources the role prefers, is limited to, and must not use.

    A boost is a factor of the metadata score, above 0 and at most 100.

    Attributes:
        allowed_sources: if there are any, all other sources are forbidden.
    """

    preferred_sources: list[SourceRule] = []
    allowed_sources: list[SourceRule] = []
    forbidden_sources: list[SourceRule] = []
    trust_tier_boosts: dict[TrustTier, Boost] = {}
    document_type_boosts: dict[Phrase, Boost] = {}
    domain_boosts: dict[Phrase, Boost] = {}


class RetrievalPolicy(Contract):
    """Weights and limits. The four weights sum to 1 ± 0.01.

    ``min_score``, ``fusion``, ``expansion_weight`` and ``prefer_newest`` are not part of Knowledge
    Core's format.

    Attributes:
        max_selected_chunks: number of passages of an answer.
        max_chunks_per_source: number of passages of one source that have no diversity penalty.
        freshness_max_age_days: age in days from which a passage is stale; 365 if missing.
        stale_penalty: the metadata score of a stale passage is multiplied by 1 minus this; 1
            rejects it as ``stale``.
        role_mismatch_penalty: likewise for a passage whose ``applicable_roles`` do not include the
            role; 1 rejects it as ``role_mismatch``.
        min_score: a candidate whose final score is lower is rejected as ``low_score``. The
            diversity penalty takes no score under it.
        expansion_weight: share of the vocabulary score that the BM25 of the role's terms makes up;
            the role's phrases make up the rest.
        prefer_newest: of two dated passages of equal trust that state the same thing differently,
            the older one is rejected as ``conflict_downrank``.
    """

    max_selected_chunks: Count = 10
    lexical_weight: Fraction = 0.3
    semantic_weight: Fraction = 0.3
    metadata_weight: Fraction = 0.2
    rerank_weight: Fraction = 0.2
    require_source_diversity: bool = False
    max_chunks_per_source: Count = 3
    freshness_max_age_days: Annotated[float, Field(gt=0)] | None = None
    stale_penalty: Fraction = 0.5
    role_mismatch_penalty: Fraction = 0.5
    min_score: Annotated[float, Field(ge=0, le=2)] = 0.1
    fusion: Fusion = "weighted"
    expansion_weight: Fraction = 0.2
    prefer_newest: bool = True

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        total = (
            self.lexical_weight + self.semantic_weight + self.metadata_weight + self.rerank_weight
        )
        if abs(total - 1) > WEIGHT_TOLERANCE:
            raise ValueError(
                "lexical_weight + semantic_weight + metadata_weight + rerank_weight "
                f"must be 1 ± {WEIGHT_TOLERANCE}, and is {total:.4g}"
            )
        return self


class SynthesisPolicy(Contract):
    """How the agent should use the evidence. It is passed on and has no effect on retrieval."""

    prioritize: list[str] = []
    avoid: list[str] = []
    required_evidence_kinds: list[str] = []
    citation_style: Literal["inline", "footnote", "bundle_only"] = "inline"


class EvalProfile(Contract):
    """The golden set that evaluates the role. ``distinctiveness_checks`` has no effect."""

    golden_set_id: str = ""
    distinctiveness_checks: list[str] = []


class Overlay(Contract):
    """The overlay of one role, after inheritance.

    Attributes:
        extends: the role whose overlay this one extends. Its values are already included.
        label: name of the role for people.
        mission: what the role does, for people and for agents that choose a role. No effect on
            retrieval.
        anti_goals: what the role does not do. No effect on retrieval.
        bridge_roles: roles to work with. No effect on retrieval.
    """

    version: Literal["1.0"]
    role_id: RoleId
    extends: RoleId | None = None
    label: str = ""
    mission: str = ""
    anti_goals: list[str] = []
    vocabulary: Vocabulary = Vocabulary.model_construct()
    source_policy: SourcePolicy = SourcePolicy.model_construct()
    retrieval_policy: RetrievalPolicy = RetrievalPolicy.model_construct()
    synthesis_policy: SynthesisPolicy = SynthesisPolicy.model_construct()
    bridge_roles: list[str] = []
    eval_profile: EvalProfile = EvalProfile.model_construct()
