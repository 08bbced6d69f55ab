"""The answers of `policy set`, `policy show` and `policy bridges`."""

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import AccessLevel, WriteKind


class PolicyChange(Contract):
    """`policy set`.

    Attributes:
        agents: ids of the policy's agents.
        moved: number of documents whose compartment (scope and sensitivity) changed.
        location: path of the policy file.
    """

    agents: list[str]
    moved: int
    location: str


class AgentAccess(Contract):
    """The policy's rule for one agent.

    Attributes:
        scopes: the allowed scopes; empty means all.
        access_level: the highest sensitivity that the agent may read.
        deny_patterns: globs over paths that the agent may not read.
        roles: the roles that the agent may use; ``None`` for every role.
        role_required: whether the agent must name a role.
        may_write: what the agent may write.
        show_paths: whether the agent learns where files lie on this machine.
        documents: number of documents that the agent may read.
    """

    agent: str
    scopes: list[str]
    access_level: AccessLevel
    deny_patterns: list[str]
    roles: list[str] | None = None
    role_required: bool = False
    may_write: list[WriteKind] = []
    show_paths: bool = False
    documents: int


class PolicySummary(Contract):
    """`policy show`.

    Attributes:
        policy: whether the corpus has a policy.
        location: path of the policy file.
        set_at: time when the policy was set, ISO 8601 in UTC.
        doubt: why every agent is denied; empty if the policy is in effect.
        documents: number of documents in the corpus.
        agents: the rules of the agents.
    """

    policy: bool
    location: str
    set_at: str
    doubt: str
    documents: int
    agents: list[AgentAccess]


class BridgeEnd(Contract):
    """One of the two passages of a bridge."""

    scope: str
    document_id: str
    title: str
    chunk_id: str
    locator: str


class BridgePair(Contract):
    """The most similar passages of two documents in different scopes.

    ``similarity`` is ``(cosine − noise_floor) / (1 − noise_floor)``, at most 1.
    """

    similarity: float
    cosine: float
    left: BridgeEnd
    right: BridgeEnd


class BridgeReport(Contract):
    """`policy bridges`: pairs of documents in different scopes with similar passages.

    Attributes:
        threshold: the lowest similarity of a listed pair, between 0 and 1.
        noise_floor: the cosine that 95 of 100 pairs of unrelated texts do not exceed by this model.
        vectors: number of vectors that were compared.
        scopes: number of scopes that were compared.
        bridges: the pairs, the closest first.
        below: the closest pairs under the threshold, if fewer than five are over it.
        more: whether there are more pairs than listed.
    """

    threshold: float
    noise_floor: float
    vectors: int
    scopes: int
    bridges: tuple[BridgePair, ...]
    below: tuple[BridgePair, ...]
    more: bool
