"""The overlay: how one role retrieves. A superset of Knowledge Core's format, version 1.0."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import Fusion, TrustTier

ROLE_ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
WEIGHT_TOLERANCE = 0.01
WEIGHTS = ("lexical_weight", "semantic_weight", "metadata_weight", "rerank_weight")
"""The keys of the retrieval policy that sum to 1."""

RoleId = Annotated[str, StringConstraints(max_length=64, pattern=ROLE_ID_PATTERN)]
# A blank pattern would match every source. A pattern with spaces at its ends would match nothing.
Phrase = Annotated[str, StringConstraints(max_length=500, pattern=r"^\S([\s\S]*\S)?$")]


def _check_glob(glob: str) -> str:
    # A rule that forbids must not be one that no path can match.
    if glob.startswith(("/", "./", "../")):
        raise ValueError("must be relative to the ingested folder, such as docs/**")
    if glob.endswith("/"):
        raise ValueError(f"matches no file; to match all files of a folder, write {glob}**")
    return glob


Glob = Annotated[Phrase, AfterValidator(_check_glob)]
Boost = Annotated[float, Field(gt=0, le=100)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Vocabulary(Contract):
    """The role's words. They raise or lower passages, and reject none."""

    preferred_terms: list[Phrase] = Field(
        [],
        description="Words that are added to the query if the task has them. A passage with one, "
        "also in its tags, is ranked higher. Default: none.",
        examples=[["rollback", "release train", "canary"]],
    )
    synonyms: dict[Phrase, list[Phrase]] = Field(
        {},
        description="For a term, the words to search for in addition if the task has the term; "
        "the first two count. Default: none.",
        examples=[{"deploy": ["rollout", "release"]}],
    )
    boost_phrases: list[Phrase] = Field(
        [],
        description="A passage with one is ranked higher. The first three are added to every query "
        "of the role, the others if the task has enough of their words. Default: none.",
        examples=[["release checklist", "rollback plan"]],
    )
    suppress_phrases: list[Phrase] = Field(
        [],
        description="A passage with one is ranked lower. Default: none.",
        examples=[["meeting minutes"]],
    )


class SourceRule(Contract):
    """A rule for sources or files. It has exactly one of ``pattern`` and ``path``."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pattern"]}, {"required": ["path"]}]}
    )

    pattern: Phrase | None = Field(
        None,
        description="A part of the source_id, document_type or domain, in any case; plain text, "
        "no glob. Either this or `path` is required.",
        examples=["runbooks"],
    )
    path: Glob | None = Field(
        None,
        description="A glob of the file's path within the ingested folder, as in rolebundle.toml: "
        "* and ? match within one folder, ** matches across folders. Case counts. Either this or "
        "`pattern` is required.",
        examples=["docs/releases/**"],
    )
    reason: str = Field(
        "",
        description="Why the rule exists. The notes of rejected passages repeat it. Default: none.",
        examples=["describes what is in production"],
    )
    boost: Boost | None = Field(
        None,
        description="Only for preferred_sources: the factor of the metadata score, above 0 and at "
        "most 100. Default: 1.5.",
        examples=[2.0],
    )

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        if (self.pattern is None) == (self.path is None):
            count = "both" if self.pattern else "none of them"
            raise ValueError(f"must have either pattern or path, and has {count}")
        return self

    @property
    def condition(self) -> str:
        """What it matches, for messages: the pattern, or ``path`` and the glob."""
        return f"path {self.path}" if self.pattern is None else self.pattern


class SourcePolicy(Contract):
    """Which sources the role prefers, is limited to, and must not use.

    A boost is a factor of the metadata score, above 0 and at most 100.
    """

    preferred_sources: list[SourceRule] = Field(
        [],
        description="Documents that rank higher, by the boost of the first rule that matches. "
        "Default: none.",
        examples=[[{"pattern": "runbooks", "boost": 2.0}, {"path": "docs/releases/**"}]],
    )
    allowed_sources: list[SourceRule] = Field(
        [],
        description="If there are any, every document that none of them matches is forbidden. "
        "Default: none, so that all documents are allowed.",
        examples=[[{"path": "docs/**", "reason": "reviewed text only"}]],
    )
    forbidden_sources: list[SourceRule] = Field(
        [],
        description="Documents that the role never gets, whatever else prefers or allows them. "
        "Default: none.",
        examples=[[{"pattern": "marketing", "reason": "not evidence"}, {"path": "drafts/**"}]],
    )
    trust_tier_boosts: dict[TrustTier, Boost] = Field(
        {},
        description="Factor by trust tier: authoritative, preferred, general, untrusted. "
        "Default: none.",
        examples=[{"authoritative": 1.5, "untrusted": 0.5}],
    )
    document_type_boosts: dict[Phrase, Boost] = Field(
        {},
        description="Factor by document type, spelled as in the documents. Default: none.",
        examples=[{"runbook": 1.6}],
    )
    domain_boosts: dict[Phrase, Boost] = Field(
        {},
        description="Factor by domain, spelled as in the documents. Default: none.",
        examples=[{"operations": 1.4}],
    )


class RetrievalPolicy(Contract):
    """Weights and limits. The four weights sum to 1 ± 0.01.

    If a file gives one to three of the weights, the others share what is left of 1, in proportion
    to their inherited or default values.

    ``min_score``, ``fusion``, ``expansion_weight`` and ``prefer_newest`` are not part of Knowledge
    Core's format.
    """

    max_selected_chunks: Count = Field(
        10,
        description="Number of passages of an answer, 1 to 1000. Default: 10.",
        examples=[8],
    )
    lexical_weight: Fraction = Field(
        0.3,
        description="Weight of the words that passage and task share (BM25), 0 to 1. Default: 0.3.",
        examples=[0.4],
    )
    semantic_weight: Fraction = Field(
        0.3,
        description="Weight of closeness in meaning (vectors), 0 to 1. Default: 0.3.",
        examples=[0.25],
    )
    metadata_weight: Fraction = Field(
        0.2,
        description="Weight of the source policy, age and roles, 0 to 1. Default: 0.2.",
        examples=[0.25],
    )
    rerank_weight: Fraction = Field(
        0.2,
        description="Weight of the role's vocabulary, 0 to 1. Default: 0.2.",
        examples=[0.15],
    )
    require_source_diversity: bool = Field(
        False,
        description="Whether passages of one source beyond max_chunks_per_source are ranked lower. "
        "Default: false.",
        examples=[True],
    )
    max_chunks_per_source: Count = Field(
        3,
        description="Number of passages of one source that have no diversity penalty, 1 to 1000. "
        "Default: 3.",
        examples=[2],
    )
    freshness_max_age_days: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="Age in days from which a passage is stale. Default: 365, without a penalty.",
        examples=[180],
    )
    stale_penalty: Fraction = Field(
        0.5,
        description="The metadata score of a stale passage is multiplied by 1 minus this, if "
        "freshness_max_age_days is given; 1 rejects it as `stale`. Default: 0.5.",
        examples=[0.7],
    )
    role_mismatch_penalty: Fraction = Field(
        0.5,
        description="The metadata score of a passage whose applicable_roles do not include the "
        "role is multiplied by 1 minus this; 1 rejects it as `role_mismatch`. Default: 0.5.",
        examples=[0.8],
    )
    min_score: Annotated[float, Field(ge=0, le=2)] = Field(
        0.1,
        description="A candidate whose final score is lower is rejected as `low_score`, 0 to 2. "
        "The diversity penalty takes no score under it. Default: 0.1.",
        examples=[0.2],
    )
    fusion: Fusion = Field(
        "weighted",
        description="How the lanes are joined: `weighted` adds their scores, `rrf` their ranks. "
        "Default: weighted.",
        examples=["rrf"],
    )
    expansion_weight: Fraction = Field(
        0.2,
        description="Share of the vocabulary score that the BM25 of the role's terms makes up, 0 "
        "to 1; the role's phrases make up the rest. Default: 0.2.",
        examples=[0.3],
    )
    prefer_newest: bool = Field(
        True,
        description="Whether of two dated passages of equal trust that state the same thing "
        "differently the older one is rejected as `conflict_downrank`. Default: true.",
        examples=[False],
    )

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        total = sum(getattr(self, name) for name in WEIGHTS)
        if abs(total - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"{' + '.join(WEIGHTS)} {weights_reason(total)}")
        return self


def weights_reason(total: float) -> str:
    """Why a sum of the four weights is not accepted."""
    return f"must be 1 ± {WEIGHT_TOLERANCE}, and is {total:.4g}"


class SynthesisPolicy(Contract):
    """How the agent should use the evidence. It is passed on and has no effect on retrieval."""

    prioritize: list[str] = Field(
        [],
        description="What the agent should put first. Default: none.",
        examples=[["steps that can be undone"]],
    )
    avoid: list[str] = Field(
        [],
        description="What the agent should leave out. Default: none.",
        examples=[["promises about dates"]],
    )
    required_evidence_kinds: list[str] = Field(
        [],
        description="Kinds of documents that an answer of this role needs. Default: none.",
        examples=[["runbook", "changelog"]],
    )
    citation_style: Literal["inline", "footnote", "bundle_only"] = Field(
        "inline",
        description="How the agent cites: inline, footnote or bundle_only. Default: inline.",
        examples=["footnote"],
    )


class EvalProfile(Contract):
    """The golden set that evaluates the role."""

    golden_set_id: str = Field(
        "",
        description="Name of the golden set that `rolebundle eval` runs for the role. "
        "Default: none.",
        examples=["release-manager"],
    )
    distinctiveness_checks: list[str] = Field(
        [],
        description="Knowledge Core's checks. They have no effect. Default: none.",
        examples=[["differs from code-reviewer"]],
    )


class Overlay(Contract):
    """The overlay of one role, after inheritance."""

    schema_url: str | None = Field(
        None,
        alias="$schema",
        exclude=True,
        description="Where an editor finds this schema. No effect. Default: none.",
        examples=["./overlay.schema.json"],
    )
    version: Literal["1.0"] = Field(
        description="Version of the format. Required.", examples=["1.0"]
    )
    role_id: RoleId = Field(
        description="Id of the role: 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit. "
        "The file is called ROLE_ID.json. Required.",
        examples=["release-manager"],
    )
    extends: RoleId | None = Field(
        None,
        description="The role whose overlay this one extends. Objects are merged key by key, other "
        "values and lists replace, and null removes an inherited key. Default: none.",
        examples=["code-reviewer"],
    )
    label: str = Field(
        "", description="Name of the role for people. Default: none.", examples=["Release manager"]
    )
    mission: str = Field(
        "",
        description="What the role does, for people and for agents that choose a role. No effect "
        "on retrieval. Default: none.",
        examples=["Decide whether a release may go out, and how to take it back."],
    )
    anti_goals: list[str] = Field(
        [],
        description="What the role does not do. No effect on retrieval. Default: none.",
        examples=[["reviewing code style"]],
    )
    vocabulary: Vocabulary = Field(
        Vocabulary.model_construct(), description="The role's words. Default: none."
    )
    source_policy: SourcePolicy = Field(
        SourcePolicy.model_construct(),
        description="Which sources the role prefers, is limited to, and must not use. "
        "Default: no rules.",
    )
    retrieval_policy: RetrievalPolicy = Field(
        RetrievalPolicy.model_construct(),
        description="Weights and limits. Default: those of the keys.",
    )
    synthesis_policy: SynthesisPolicy = Field(
        SynthesisPolicy.model_construct(),
        description="How the agent should use the evidence. Default: those of the keys.",
    )
    bridge_roles: list[str] = Field(
        [],
        description="Roles to work with. No effect on retrieval. Default: none.",
        examples=[["incident-responder"]],
    )
    eval_profile: EvalProfile = Field(
        EvalProfile.model_construct(),
        description="The golden set that evaluates the role. Default: none.",
    )
    notes: dict[str, str] = Field(
        {},
        description="Evidence for the values, by the place of the value in this file. No effect. "
        "Default: none.",
        examples=[{"vocabulary.preferred_terms[0]": "in 14 of 40 documents"}],
    )
