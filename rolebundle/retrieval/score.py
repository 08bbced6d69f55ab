"""A candidate's score: its terms, their weights, and what each step contributed. Pure.

Named tuples without postponed annotations, for the reason in ``candidate.py``.
"""

from typing import Literal, NamedTuple

from rolebundle.contracts.overlay import RetrievalPolicy
from rolebundle.contracts.terms import Fusion

Step = Literal[
    "lexical",
    "semantic",
    "rerank",
    "metadata",
    "vocabulary",
    "mark",
    "diversity",
    "lift",
]
"""The steps that contribute to a score, in their order."""
ScoreTerm = Literal["lexical", "semantic", "metadata", "vocabulary", "diversity", "lift"]

MAX_ROLE_SHARE = 0.65
"""The most that the role's terms may weigh together, so that the task always counts."""
VAGUE_FACTOR = 2.2
"""A role's share is multiplied with this for a task whose words choose no passage."""
HALF_SPECIFIC = 3.65
"""The specificity in nats at which it is half of that."""
STEEPNESS = 12
"""How quickly it falls there."""
VOCABULARY_FACTOR = 0.15
"""The vocabulary's weight against the metadata's is multiplied with this: a phrase may occur by
chance, also in a text of another team, and metadata was declared."""


def role_share(policy: RetrievalPolicy, specificity: float) -> float:
    """The share of the role's terms in the final score, in [0, 1].

    It is the policy's share, times 2.2 for a vague task and less for a specific one:
    ``2.2 / (1 + (s / 3.65)¹²)`` for a specificity of ``s`` nats. If many passages have the task's
    words equally, the task cannot choose among them, and the role does; if one stands out, the task
    decides. It is at most ``MAX_ROLE_SHARE``; all, if the policy gives the lanes nothing.
    """
    lanes = policy.lexical_weight + policy.semantic_weight
    role = policy.metadata_weight + policy.rerank_weight
    factor = VAGUE_FACTOR / (1 + (specificity / HALF_SPECIFIC) ** STEEPNESS)
    share = min(MAX_ROLE_SHARE, factor * role / (lanes + role))
    return 1.0 if not lanes and share else share


class Weights(NamedTuple):
    """What each term of the final score is multiplied with. They sum to 1."""

    lexical: float
    semantic: float
    metadata: float
    vocabulary: float
    fusion: Fusion

    @classmethod
    def of(
        cls,
        policy: RetrievalPolicy,
        fusion: Fusion,
        *,
        has_semantic: bool,
        role_share: float,
    ) -> "Weights":
        """The weights for one request.

        Metadata and vocabulary divide the role's share as the policy's weights say, the
        vocabulary's times ``VOCABULARY_FACTOR``. The lanes divide the rest as the policy says. If
        there is only the lexical lane, it has all of that. With ``rrf`` both lanes have the same
        weight.

        Args:
            policy: the role's policy.
            fusion: how the lanes are joined.
            has_semantic: whether there is a semantic term.
            role_share: the share of the role's terms; 0 without a role.
        """
        lexical, semantic = policy.lexical_weight, policy.semantic_weight
        metadata = policy.metadata_weight
        vocabulary = VOCABULARY_FACTOR * policy.rerank_weight
        if not has_semantic:
            lexical, semantic = 1.0, 0.0
        elif fusion == "rrf" or not lexical + semantic:
            lexical = semantic = 0.5
        lanes, role = lexical + semantic, (metadata + vocabulary) or 1.0
        return cls(
            lexical=(1 - role_share) * (lexical / lanes),
            semantic=(1 - role_share) * (semantic / lanes),
            metadata=role_share * (metadata / role),
            vocabulary=role_share * (vocabulary / role),
            fusion=fusion,
        )

    def lane_score(self, lexical: float, semantic: float) -> float:
        """The lanes' part of the final score."""
        if self.fusion == "rrf":
            # As one product, so that equal ranks in either lane give the very same score.
            return self.lexical * (lexical + semantic)
        return self.lexical * lexical + self.semantic * semantic


class Contribution(NamedTuple):
    """What one step added to one term of a score. ``value · weight`` is its part of the final.

    ``hits`` names the rules that made up the value.
    """

    step: Step
    term: ScoreTerm
    value: float
    weight: float
    hits: tuple[str, ...] = ()


class Score(NamedTuple):
    """The terms of a candidate's score, their weighted sum, and the contribution of each step.

    ``final = lexical·w1 + semantic·w2 + metadata·w3 + vocabulary·w4 − diversity_penalty + lift``.
    The four terms are in [0, 1]; those of the role up to 1.25 if the passage is marked as verified.
    The contributions are in the order of the steps; the sum of their ``value · weight`` is
    ``final``, up to rounding.
    """

    contributions: tuple[Contribution, ...]
    lexical: float
    semantic: float
    metadata: float
    vocabulary: float
    diversity_penalty: float
    lift: float
    final: float

    @classmethod
    def of_lanes(cls, lexical: float, semantic: float, weights: Weights) -> "Score":
        """The score of a candidate that has only been merged."""
        contributions = (
            Contribution("lexical", "lexical", lexical, weights.lexical),
            Contribution("semantic", "semantic", semantic, weights.semantic),
        )
        final = weights.lane_score(lexical, semantic)
        return cls(contributions, lexical, semantic, 0.0, 0.0, 0.0, 0.0, final)

    def with_role(
        self,
        metadata: tuple[float, tuple[str, ...]],
        vocabulary: tuple[float, tuple[str, ...]],
        weights: Weights,
    ) -> "Score":
        """The score with the role's two terms, each with the rules that made it up."""
        added = (
            Contribution("metadata", "metadata", metadata[0], weights.metadata, metadata[1]),
            Contribution(
                "vocabulary", "vocabulary", vocabulary[0], weights.vocabulary, vocabulary[1]
            ),
        )
        return self._recomputed(
            weights, added, self.lexical, self.semantic, metadata[0], vocabulary[0]
        )

    def with_mark(self, factor: float, hit: str, weights: Weights) -> "Score":
        """The score with the role's two terms multiplied by the factor of a mark."""
        metadata, vocabulary = factor * self.metadata, factor * self.vocabulary
        added = (
            Contribution("mark", "metadata", metadata - self.metadata, weights.metadata, (hit,)),
            Contribution("mark", "vocabulary", vocabulary - self.vocabulary, weights.vocabulary),
        )
        return self._recomputed(weights, added, self.lexical, self.semantic, metadata, vocabulary)

    def with_lanes(self, step: Step, lexical: float, semantic: float, weights: Weights) -> "Score":
        """The score with the lanes' terms as a step has changed them."""
        added = (
            Contribution(step, "lexical", lexical - self.lexical, weights.lexical),
            Contribution(step, "semantic", semantic - self.semantic, weights.semantic),
        )
        return self._recomputed(weights, added, lexical, semantic, self.metadata, self.vocabulary)

    @property
    def before_diversity(self) -> float:
        """The final score without the diversity penalty and the lift."""
        return self.final + self.diversity_penalty - self.lift

    def with_diversity_penalty(self, penalty: float, floor: float) -> "Score":
        """The score less the penalty, but not less than the floor.

        A score at or under the floor is not changed.
        """
        final, least = self.final - penalty, min(self.final, floor)
        if final < least:
            final, penalty = least, self.final - least
        if not penalty:
            return self
        added = Contribution("diversity", "diversity", -penalty, 1.0)
        return self._replace(
            contributions=(*self.contributions, added), diversity_penalty=penalty, final=final
        )

    def lifted_to(self, final: float, reason: str) -> "Score":
        """The score, raised to this final score for a reason; itself if it has as much."""
        lift = final - self.final
        if lift <= 0:
            return self
        added = Contribution("lift", "lift", lift, 1.0, (reason,))
        contributions = (*self.contributions, added)
        return self._replace(contributions=contributions, lift=self.lift + lift, final=final)

    def hits_of(self, step: Step) -> tuple[str, ...]:
        """The rules that a step names for this candidate."""
        return next(
            (contribution.hits for contribution in self.contributions if contribution.step == step),
            (),
        )

    def _recomputed(
        self,
        weights: Weights,
        added: tuple[Contribution, ...],
        lexical: float,
        semantic: float,
        metadata: float,
        vocabulary: float,
    ) -> "Score":
        return Score(
            self.contributions + added,
            lexical,
            semantic,
            metadata,
            vocabulary,
            self.diversity_penalty,
            self.lift,
            weights.lane_score(lexical, semantic)
            + weights.metadata * metadata
            + weights.vocabulary * vocabulary,
        )
