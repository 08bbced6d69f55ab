"""Roles and their overlay files, and what lint finds in them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.terms import EvidenceNeed, Fusion, TrustTier

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


Boost = Annotated[float, Field(gt=0, le=100)]
Fraction = Annotated[float, Field(ge=0, le=1)]
MAX_LIMIT = 1000
"""How many passages an answer has at most."""
Count = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class Vocabulary(Contract):
    """The role's words. They raise or lower passages, and reject none.

    Attributes:
        preferred_terms: words that are added to the query if the task has them. A passage with one,
            also in its tags, is ranked higher. Default: none. Example: ["rollback", "release
            train", "canary"]
        synonyms: for a term, the words to search for in addition if the task has the term; the
            first two count. Default: none. Example: {"deploy": ["rollout", "release"]}
        boost_phrases: a passage with one is ranked higher. The first three are added to every query
            of the role, the others if the task has enough of their words. Default: none. Example:
            ["release checklist", "rollback plan"]
        suppress_phrases: a passage with one is ranked lower. Default: none. Example: ["meeting
            minutes"]
    """

    preferred_terms: list[Phrase] = []
    synonyms: dict[Phrase, list[Phrase]] = {}
    boost_phrases: list[Phrase] = []
    suppress_phrases: list[Phrase] = []


class SourceRule(Contract):
    """A rule for sources or files. It has exactly one of ``pattern`` and ``path``.

    Attributes:
        pattern: a part of the source_id, document_type or domain, in any case; plain text, no glob.
            Either this or `path` is required. Example: "runbooks"
        path: a glob of the file's path within the ingested folder, as in rolebundle.toml, but in
            any case: * and ? match within one folder, ** matches across folders. Either this or
            `pattern` is required. Example: "docs/releases/**"
        reason: why the rule exists. The notes of rejected passages repeat it. Default: none.
            Example: "describes what is in production"
        boost: only for preferred_sources: the factor of the metadata score, above 0 and at most
            100. Default: 1.5. Example: 2.0
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pattern"]}, {"required": ["path"]}]}
    )

    pattern: Phrase | None = None
    path: Annotated[Phrase, AfterValidator(_check_glob)] | None = None
    reason: str = ""
    boost: Boost | None = None

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

    Attributes:
        preferred_sources: documents that rank higher, by the boost of the first rule that matches.
            Default: none. Example: [{"pattern": "runbooks", "boost": 2.0}, {"path":
            "docs/releases/**"}]
        allowed_sources: if there are any, every document that none of them matches is forbidden.
            Default: none, so that all documents are allowed. Example: [{"path": "docs/**",
            "reason": "reviewed text only"}]
        forbidden_sources: documents that the role never gets, whatever else prefers or allows them.
            Default: none. Example: [{"pattern": "marketing", "reason": "not evidence"}, {"path":
            "drafts/**"}]
        trust_tier_boosts: factor by trust tier: authoritative, preferred, general, untrusted.
            Default: none. Example: {"authoritative": 1.5, "untrusted": 0.5}
        document_type_boosts: factor by document type, spelled as in the documents; of a document
            that declares none by the type that it shows, as `rolebundle ls` lists it. Default:
            none. Example: {"runbook": 1.6}
        domain_boosts: factor by domain, spelled as in the documents. Default: none. Example:
            {"operations": 1.4}
    """

    preferred_sources: list[SourceRule] = []
    allowed_sources: list[SourceRule] = []
    forbidden_sources: list[SourceRule] = []
    trust_tier_boosts: dict[TrustTier, Boost] = {}
    document_type_boosts: dict[Phrase, Boost] = {}
    domain_boosts: dict[Phrase, Boost] = {}


class RetrievalPolicy(Contract):
    """Weights and limits. The four weights sum to 1 ± 0.01.

    If a file gives one to three of the weights, the others share what is left of 1, in proportion
    to their inherited or default values.

    ``min_score``, ``fusion``, ``expansion_weight``, ``diversity`` and
    ``evidence`` are not part of Knowledge Core's format.

    Attributes:
        max_selected_chunks: number of passages of an answer, 1 to 1000. Default: 10. Example: 8
        lexical_weight: weight of the words that passage and task share (BM25), 0 to 1. Default:
            0.36. Example: 0.4
        semantic_weight: weight of closeness in meaning (vectors), 0 to 1. Default: 0.24. Example:
            0.25
        metadata_weight: weight of the source policy, age and roles, 0 to 1. Default: 0.2. Example:
            0.25
        rerank_weight: weight of the role's vocabulary, 0 to 1. Default: 0.2. Example: 0.15
        require_source_diversity: whether passages of one source beyond max_chunks_per_source are
            ranked lower. Default: false. Example: true
        max_chunks_per_source: number of passages of one source that have no diversity penalty, 1 to
            1000. Default: 3. Example: 2
        diversity: `hard` makes max_chunks_per_source a limit of the answer, whatever
            require_source_diversity says. Default: soft. Example: "hard"
        evidence: `required` withholds every passage if the documents have little of the task.
            Default: optional, so that the answer has a caution instead. Example: "required"
        freshness_max_age_days: age in days from which a passage is stale. Default: 365, without a
            penalty. Example: 180
        stale_penalty: the metadata score of a stale passage is multiplied by 1 minus this, if
            freshness_max_age_days is given; 1 rejects it as `stale`. Default: 0.5. Example: 0.7
        role_mismatch_penalty: the metadata score of a passage whose applicable_roles do not include
            the role is multiplied by 1 minus this; 1 rejects it as `role_mismatch`. Default: 0.5.
            Example: 0.8
        min_score: a candidate whose final score is lower is rejected as `low_score`, 0 to 2. The
            diversity penalty takes no score under it. Default: 0.1. Example: 0.2
        fusion: how the lanes are joined: `weighted` adds their scores, `rrf` their ranks. Default:
            weighted. Example: "rrf"
        expansion_weight: share of the vocabulary score that the BM25 of the role's terms makes up,
            0 to 1; the role's phrases make up the rest. Default: 0.2. Example: 0.3
    """

    max_selected_chunks: Count = 10
    lexical_weight: Fraction = 0.36
    semantic_weight: Fraction = 0.24
    metadata_weight: Fraction = 0.2
    rerank_weight: Fraction = 0.2
    require_source_diversity: bool = False
    max_chunks_per_source: Count = 3
    diversity: Literal["soft", "hard"] = "soft"
    freshness_max_age_days: Annotated[float, Field(gt=0)] | None = None
    stale_penalty: Fraction = 0.5
    role_mismatch_penalty: Fraction = 0.5
    min_score: Annotated[float, Field(ge=0, le=2)] = 0.1
    fusion: Fusion = "weighted"
    expansion_weight: Fraction = 0.2
    evidence: EvidenceNeed = "optional"

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        total = sum(getattr(self, name) for name in WEIGHTS)
        if abs(total - 1) > WEIGHT_TOLERANCE:
            names = " + ".join(WEIGHTS)
            raise ValueError(f"{names} must be 1 ± {WEIGHT_TOLERANCE}, and is {total:.4g}")
        return self


class SynthesisPolicy(Contract):
    """How the agent should use the evidence: part of the packet. No effect on what is selected.

    Attributes:
        prioritize: what the agent should put first. Default: none. Example: ["steps that can be
            undone"]
        avoid: what the agent should leave out. Default: none. Example: ["promises about dates"]
        required_evidence_kinds: kinds of evidence that an answer of this role needs. A kind that
            no passage shows, by its document type, tags, attribute evidence_kind or headings, is
            named in a warning. Default: none. Example: ["runbook", "changelog"]
        citation_style: how the agent cites: inline, footnote or bundle_only. Default: inline.
            Example: "footnote"
    """

    prioritize: list[str] = []
    avoid: list[str] = []
    required_evidence_kinds: list[str] = []
    citation_style: Literal["inline", "footnote", "bundle_only"] = "inline"


class EvalProfile(Contract):
    """The golden set that evaluates the role.

    Attributes:
        golden_set_id: name of the golden set that `rolebundle eval` runs for the role. Default:
            none. Example: "release-manager"
        distinctiveness_checks: Knowledge Core's checks. They have no effect. Default: none.
            Example: ["differs from code-reviewer"]
    """

    golden_set_id: str = ""
    distinctiveness_checks: list[str] = []


class Overlay(Contract):
    """The overlay of one role, after inheritance.

    Attributes:
        $schema: where an editor finds this schema. No effect. Default: none. Example:
            "./overlay.schema.json"
        version: version of the format. Required. Example: "1.0"
        role_id: id of the role: 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit. The
            file is called ROLE_ID.json. Required. Example: "release-manager"
        extends: the role whose overlay this one extends. Objects are merged key by key, other
            values and lists replace, and null removes an inherited key. Default: none. Example:
            "code-reviewer"
        label: name of the role for people. Default: none. Example: "Release manager"
        mission: what the role does, for agents that choose a role, and in the packet. No effect on
            what is selected. Default: none. Example: "Decide whether a release may go out, and how
            to take it back."
        anti_goals: what the role does not do, for the packet. No effect on what is selected.
            Default: none. Example: ["reviewing code style"]
        vocabulary: the role's words. Default: none.
        source_policy: which sources the role prefers, is limited to, and must not use. Default: no
            rules.
        retrieval_policy: weights and limits. Default: those of the keys.
        synthesis_policy: how the agent should use the evidence. Default: those of the keys.
        bridge_roles: roles to work with. Passages that are for one of them, and not for this role,
            are marked. No effect on what is selected. Default: none. Example:
            ["incident-responder"]
        eval_profile: the golden set that evaluates the role. Default: none.
        notes: remarks on the values, by the place of the value in this file. No effect. Default:
            none. Example: {"vocabulary.preferred_terms[0]": "in 14 of 40 documents"}
    """

    schema_url: str | None = Field(None, alias="$schema", exclude=True)
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
    notes: dict[str, str] = {}

    @property
    def ranks(self) -> bool:
        """Whether it says what ranks higher or lower. Rules that only reject, and a limit, do not.

        If it does not, the role's answers have the order of answers without a role.
        """
        sources, policy = self.source_policy, self.retrieval_policy
        limit_alone = RetrievalPolicy(max_selected_chunks=policy.max_selected_chunks)
        return bool(
            self.vocabulary != Vocabulary()
            or sources.preferred_sources
            or sources.trust_tier_boosts
            or sources.document_type_boosts
            or sources.domain_boosts
            or policy != limit_alone
        )


class LintProblem(Contract):
    """A problem in an overlay or a policy. ``place`` is the dotted path of the key."""

    level: Literal["error", "warning"]
    place: str
    code: str
    message: str


PolicyLint = list_of(LintProblem, "findings", "PolicyLint", "`policy lint`.")


class OverlayProblems(Contract):
    """The problems of one overlay file."""

    path: str
    findings: list[LintProblem]


class OverlayLint(Contract):
    """`overlay lint`: the problems of each overlay.

    ``corpus`` is the corpus on which the rules and the vocabulary were tried; null if there was
    none.
    """

    corpus: str | None
    overlays: list[OverlayProblems]


class Role(Contract):
    """A role that has an overlay. ``problem`` is why it cannot be used; empty if it can."""

    role_id: str
    label: str
    mission: str
    extends: str | None
    problem: str


class OverlayFile(Role):
    """A role and the file of its overlay."""

    path: str


class OverlayDetails(Contract):
    """`overlay show`: an overlay after inheritance, with all defaults.

    ``extends`` are role_id and path of the overlays that it extends, the nearest first.
    """

    role_id: str
    digest: str
    path: str
    extends: list[dict[str, str]]
    overlay: Overlay


RoleList = list_of(Role, "roles", "RoleList", "The method `roles.list` and the tool `list_roles`.")
OverlayList = list_of(OverlayFile, "overlays", "OverlayList", "`overlay list`.")
