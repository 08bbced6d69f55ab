"""The overlay: how one role retrieves. A superset of the reference's format, version 1.0."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from rolebundle.contracts.terms import Fusion, TrustTier

ROLE_ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
WEIGHT_TOLERANCE = 0.01

RoleId = Annotated[str, StringConstraints(pattern=ROLE_ID_PATTERN)]
# A blank pattern would match every source, and a blank phrase every passage.
Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Boost = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Vocabulary(_Part):
    """The role's words. The first three boost phrases are its signature."""

    preferred_terms: list[Phrase] = []
    synonyms: dict[Phrase, list[Phrase]] = {}
    boost_phrases: list[Phrase] = []
    suppress_phrases: list[Phrase] = []


class SourceRule(_Part):
    """A case-insensitive substring of source_id, document_type or domain, and why it matters."""

    pattern: Phrase
    reason: str = ""
    boost: Boost | None = None


class SourcePolicy(_Part):
    """Which sources the role prefers, is limited to, and must not use."""

    preferred_sources: list[SourceRule] = []
    allowed_sources: list[SourceRule] = []
    forbidden_sources: list[SourceRule] = []
    trust_tier_boosts: dict[TrustTier, Boost] = {}
    document_type_boosts: dict[Phrase, Boost] = {}
    domain_boosts: dict[Phrase, Boost] = {}


class RetrievalPolicy(_Part):
    """Weights and limits. The four weights sum to 1 ± 0.01.

    ``min_score`` (the floor under which a candidate is ``low_score``), ``fusion`` and
    ``expansion_weight`` (the say of the role's words beside the task's own, 0–1) are ours.
    """

    max_selected_chunks: int = Field(default=10, ge=1, le=1000)
    lexical_weight: Unit = 0.3
    semantic_weight: Unit = 0.3
    metadata_weight: Unit = 0.2
    rerank_weight: Unit = 0.2
    require_source_diversity: bool = False
    max_chunks_per_source: int = Field(default=3, ge=1, le=1000)
    freshness_max_age_days: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    stale_penalty: Unit = 0.5
    role_mismatch_penalty: Unit = 0.5
    min_score: float = Field(default=0.1, ge=0, le=2, allow_inf_nan=False)
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


class SynthesisPolicy(_Part):
    """What the agent should make of the evidence. Carried, not interpreted."""

    prioritize: list[str] = []
    avoid: list[str] = []
    required_evidence_kinds: list[str] = []
    citation_style: Literal["inline", "footnote", "bundle_only"] = "inline"


class EvalProfile(_Part):
    """Which golden set measures the role."""

    golden_set_id: str = ""
    distinctiveness_checks: list[str] = []


class Overlay(_Part):
    """One role, resolved: ``extends`` has been followed before this model is built."""

    version: Literal["1.0"]
    role_id: RoleId
    extends: RoleId | None = None
    label: str = ""
    mission: str = ""
    anti_goals: list[str] = []
    vocabulary: Vocabulary = Vocabulary()
    source_policy: SourcePolicy = SourcePolicy()
    retrieval_policy: RetrievalPolicy = RetrievalPolicy()
    synthesis_policy: SynthesisPolicy = SynthesisPolicy()
    bridge_roles: list[str] = []
    eval_profile: EvalProfile = EvalProfile()
