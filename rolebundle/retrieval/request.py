"""The resolved request: what holds for one request; and what references may name. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rolebundle.contracts.bundle import RequestEcho
from rolebundle.contracts.documents import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy, SourcePolicy, Vocabulary
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import DEFAULT_MAX_AGE_DAYS, Fusion
from rolebundle.policy.overlays import FirstMatch, first_match
from rolebundle.policy.trust import UNRESTRICTED_VIEW, AgentView, Purpose
from rolebundle.text.paths import locations

MORE_IN_PACKET = 2
"""How many more passages a packet has if no limit is given, because a lead needs only a line."""


class ReferenceRules(NamedTuple):
    """What the references of somebody may name.

    Attributes:
        absolute: whether a path on this machine may name a file.
        folder: the folder that relative paths on this machine begin in; ``None`` if there are only
            absolute ones.
        may_read: whether a role of the agent may read a passage; ``None`` if it may read all that
            it sees.
        not_valid_now: ids of documents that do not apply now, and that nothing names.
    """

    absolute: bool = False
    folder: str | None = None
    may_read: Callable[[Passage], bool] | None = None
    not_valid_now: frozenset[str] = frozenset()

    def allows_reading(self, passage: Passage) -> bool:
        """Whether a passage may be read."""
        return self.may_read is None or self.may_read(passage)

    def without_invalid(self, documents: Sequence[Any]) -> list[Any]:
        """The names (``DocumentName``) of the documents that apply now."""
        return [one for one in documents if one.document_id not in self.not_valid_now]

    def locations(self, path: str) -> list[str]:
        """The locations of files that a path may mean."""
        return locations(path, self.folder) if self.absolute else []


class ResolvedRequest(NamedTuple):
    """A request with its overlay, limits and time. Every step of the pipeline reads this value.

    Attributes:
        task: the task's text.
        also: other wordings of the task.
        seen: ids of the passages that the agent already has.
        seen_by_hash: the hash of each of their texts → the ids that have it; found by the search.
        overlay: the role's overlay, or ``None`` without a role.
        overlay_digest: names the overlay's content; empty without an overlay.
        forbidding_rule: gives the first rule of the overlay that forbids a document.
        allowing_rule: gives the first rule that allows it; ``None`` if there are no such rules.
        preferring_rule: gives the first rule that prefers it.
        ranks_by_role: whether the overlay has a part in the ranking.
        retrieval_policy: the overlay's retrieval policy, or the defaults.
        vocabulary: the overlay's vocabulary, or an empty one.
        fusion: how the lanes are joined.
        limit: the most passages to select.
        min_score: a candidate with a lower final score is rejected. The diversity penalty lowers no
            score below it.
        token_budget: the most estimated tokens to select; ``None`` for no bound.
        max_chars: the most characters of the packet; ``None`` for the usual.
        stale_after_days: the age from which a document is stale.
        now: the time that ages are measured against.
        valid_at: the time at which documents must be valid: the request's ``as_of``, or ``now``;
            ISO 8601 in UTC, in whole seconds.
        purpose: what the passages are for, which decides about what is untrusted, flagged,
            personal or sensitive.
        requires_evidence: whether passages are withheld if the corpus has little of the task.
        view: what the agent may see, and how many documents are in quarantine.
        echo: the request as the bundle repeats it.
    """

    task: str
    also: Sequence[str]
    seen: Sequence[str]
    seen_by_hash: Mapping[str, Sequence[str]]
    overlay: Overlay | None
    overlay_digest: str
    forbidding_rule: FirstMatch
    allowing_rule: FirstMatch | None
    preferring_rule: FirstMatch
    ranks_by_role: bool
    retrieval_policy: RetrievalPolicy
    vocabulary: Vocabulary
    fusion: Fusion
    limit: int
    min_score: float
    token_budget: int | None
    max_chars: int | None
    stale_after_days: float
    now: datetime
    valid_at: str
    purpose: Purpose
    requires_evidence: bool
    view: AgentView
    echo: RequestEcho

    @property
    def role_id(self) -> str:
        """The role, or an empty string without one."""
        return self.overlay.role_id if self.overlay else ""

    def with_approval(self, name: str) -> "ResolvedRequest":
        """The same request, if this person approved its action."""
        return self._replace(
            purpose=self.purpose._replace(approved_by=name),
            echo=self.echo.model_copy(update={"approval": name}),
        )


def resolve_request(
    request: RetrievalRequest,
    now: datetime,
    overlay: Overlay | None = None,
    overlay_digest: str = "",
    view: AgentView = UNRESTRICTED_VIEW,
) -> ResolvedRequest:
    """Decide everything that a request leaves open.

    Args:
        request: the request. Its ``agent`` and ``rerank`` are the ones in force, and ``seen`` has
            ids of chunks.
        now: the time that ages are measured against.
        overlay: the role's overlay; ``None`` without a role.
        overlay_digest: names the overlay's content.
        view: what the agent may see, and how many documents are in quarantine.
    """
    policy = overlay.retrieval_policy if overlay else RetrievalPolicy()
    is_set = "max_selected_chunks" in policy.model_fields_set
    more = MORE_IN_PACKET if request.packet and not is_set else 0
    sources = overlay.source_policy if overlay else SourcePolicy()
    max_age = policy.freshness_max_age_days
    # The echo has the field names of the request.
    echo = {name: getattr(request, name) for name in RequestEcho.model_fields}
    # Only if it holds, so that ordinary answers are not longer.
    echo["packet"] = request.packet or None
    echo["where"] = request.where and request.where.at(now)
    return ResolvedRequest(
        task=request.task,
        also=request.also or (),
        seen=request.seen or (),
        seen_by_hash={},
        overlay=overlay,
        overlay_digest=overlay_digest,
        forbidding_rule=first_match(sources.forbidden_sources),
        allowing_rule=first_match(sources.allowed_sources) if sources.allowed_sources else None,
        preferring_rule=first_match(sources.preferred_sources),
        ranks_by_role=overlay is not None and overlay.ranks,
        retrieval_policy=policy,
        vocabulary=overlay.vocabulary if overlay else Vocabulary(),
        fusion=request.fusion or policy.fusion,
        limit=request.limit or policy.max_selected_chunks + more,
        min_score=policy.min_score,
        token_budget=request.token_budget,
        max_chars=request.max_chars,
        stale_after_days=DEFAULT_MAX_AGE_DAYS if max_age is None else max_age,
        now=now,
        valid_at=iso_utc(request.as_of or now),
        purpose=Purpose(request.action or "read", (request.approval or "").strip()),
        requires_evidence="required" in (request.evidence, policy.evidence),
        view=view,
        echo=RequestEcho.model_construct(**echo),
    )
