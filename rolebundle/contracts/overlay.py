"""The overlay: how one role retrieves. A superset of the reference's format, version 1.0."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import Fusion, TrustTier

ROLE_ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
WEIGHT_TOLERANCE = 0.01

RoleId = Annotated[str, StringConstraints(max_length=64, pattern=ROLE_ID_PATTERN)]
# A blank pattern would match every source, and one with outer blanks none that it means.
Phrase = Annotated[str, StringConstraints(max_length=500, pattern=r"^\S([\s\S]*\S)?$")]
Boost = Annotated[float, Field(gt=0, le=100)]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Vocabulary(Contract):
    """The role's words. The first three boost phrases are its signature."""

    preferred_terms: list[Phrase] = []
    synonyms: dict[Phrase, list[Phrase]] = {}
    boost_phrases: list[Phrase] = []
    suppress_phrases: list[Phrase] = []


class SourceRule(Contract):
    """A case-insensitive substring of source_id, document_type or domain, and why it matters."""

    pattern: Phrase
    reason: str = ""
    boost: Boost | None = None


class SourcePolicy(Contract):
    """Which sources the role prefers, is limited to, and must not use."""

    preferred_sources: list[SourceRule] = []
    allowed_sources: list[SourceRule] = []
    forbidden_sources: list[SourceRule] = []
    trust_tier_boosts: dict[TrustTier, Boost] = {}
    document_type_boosts: dict[Phrase, Boost] = {}
    domain_boosts: dict[Phrase, Boost] = {}


class RetrievalPolicy(Contract):
    """Weights and limits. The four weights sum to 1 ± 0.01.

    ``min_score`` (the floor under which a candidate is ``low_score``), ``fusion`` and
    ``expansion_weight`` (the say of the role's words beside the task's own, 0–1) are ours.
    """

    max_selected_chunks: Count = 10
    lexical_weight: Unit = 0.3
    semantic_weight: Unit = 0.3
    metadata_weight: Unit = 0.2
    rerank_weight: Unit = 0.2
    require_source_diversity: bool = False
    max_chunks_per_source: Count = 3
    freshness_max_age_days: Annotated[float, Field(gt=0)] | None = None
    stale_penalty: Unit = 0.5
    role_mismatch_penalty: Unit = 0.5
    min_score: Annotated[float, Field(ge=0, le=2)] = 0.1
    fusion: Fusion = "weighted"
    expansion_weight: Unit = 0.2

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
    """What the agent should make of the evidence. Carried, not interpreted."""

    prioritize: list[str] = []
    avoid: list[str] = []
    required_evidence_kinds: list[str] = []
    citation_style: Literal["inline", "footnote", "bundle_only"] = "inline"


class EvalProfile(Contract):
    """Which golden set measures the role."""

    golden_set_id: str = ""
    distinctiveness_checks: list[str] = []


class Overlay(Contract):
    """One role, resolved: ``extends`` has been followed before this is built."""

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
