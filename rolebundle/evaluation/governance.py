"""Whether governance does what it is there for: leaks, codes, postures, roles apart, no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.evaluation import (
    Check,
    CheckKind,
    Distinctiveness,
    Governance,
    Harm,
    RolePair,
    RoleShare,
)
from rolebundle.contracts.overlay import Overlay
from rolebundle.evaluation.metrics import mean, ndcg, paired_randomization
from rolebundle.evaluation.questions import Question, References
from rolebundle.evaluation.runs import Runner

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Role:
    """A role with its overlay and the overlay's digest."""

    role_id: str
    overlay: Overlay
    digest: str

    @property
    def domains(self) -> list[str]:
        """The domains that the overlay lifts over others: its own."""
        boosts = self.overlay.source_policy.domain_boosts
        return sorted(domain for domain, boost in boosts.items() if boost > 1)


def checks_of(
    question: Question, bundle: RetrievalBundle, references: References, runner: Runner
) -> Iterator[Check]:
    """What a golden question expects of its answer, and whether it holds.

    ``must_not_return``: no passage of it is selected. ``expect_rejection``: none is selected, and
    one at least was rejected with the code.
    """
    golden = question.golden
    if golden is None:
        return
    for reference in golden.must_not_return:
        leaked = _selected(bundle, references.units(reference))
        yield Check(
            question=question.id,
            kind="must_not_return",
            about=reference,
            expected="not selected",
            found=f"selected: {_listed(leaked)}" if leaked else "not selected",
            held=not leaked,
        )
    for reference, code in golden.expect_rejection.items():
        units = references.units(reference)
        selected = _selected(bundle, units)
        codes = {
            one.reason
            for one in bundle.rejected
            if one.chunk_id in units or runner.document_of(one.chunk_id) in units
        }
        found = [*(["selected"] if selected else []), *sorted(codes)]
        yield Check(
            question=question.id,
            kind="expect_rejection",
            about=reference,
            expected=code,
            found=", ".join(found) or "no candidate",
            held=code in codes and not selected,
        )
    state = bundle.fallback.state if bundle.fallback else "none"
    trust, freshness = bundle.provenance.trust_posture, bundle.provenance.freshness_posture
    expectations: tuple[tuple[CheckKind, str | None, str], ...] = (
        ("expect_fallback", golden.expect_fallback, state),
        ("expect_trust", golden.expect_trust, trust),
        ("expect_freshness", golden.expect_freshness, freshness),
    )
    for kind, expected, given in expectations:
        if expected is not None:
            held = expected == given
            yield Check(question=question.id, kind=kind, expected=expected, found=given, held=held)


def _selected(bundle: RetrievalBundle, units: frozenset[str]) -> list[str]:
    return [
        chunk.chunk_id
        for chunk in bundle.selected
        if chunk.chunk_id in units or chunk.document_id in units
    ]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def summarized(checks: Sequence[Check]) -> Governance:
    """The rates over all checks."""
    forbidding: dict[str, bool] = {}
    for one in checks:
        if one.kind == "must_not_return":
            forbidding[one.question] = forbidding.get(one.question, False) or not one.held
    postures = [one for one in checks if one.kind not in ("must_not_return", "expect_rejection")]
    return Governance(
        leak_rate=_share(forbidding.values()),
        rejection_accuracy=_share(one.held for one in checks if one.kind == "expect_rejection"),
        posture_accuracy=_share(one.held for one in postures),
        checks=list(checks),
    )


def _share(held: Iterable[bool]) -> float | None:
    values = [float(one) for one in held]
    return mean(values) if values else None


def distinctiveness(
    runner: Runner,
    questions: Sequence[Question],
    roles: Sequence[Role],
    done: Callable[[], None],
) -> Distinctiveness:
    """What each of the roles selects for the same questions, side by side."""
    seen: dict[str, list[frozenset[str]]] = {role.role_id: [] for role in roles}
    shares: dict[str, list[float]] = {role.role_id: [] for role in roles}
    firsts: dict[str, list[float]] = {role.role_id: [] for role in roles}
    for question in questions:
        for role in roles:
            selected = runner.governed(question, role.role_id).bundle.selected
            own = [float(chunk.metadata.domain in role.domains) for chunk in selected]
            seen[role.role_id].append(frozenset(chunk.document_id for chunk in selected))
            if own:
                shares[role.role_id].append(mean(own))
                firsts[role.role_id].append(own[0])
            done()
    pairs = [
        RolePair(
            first=first.role_id,
            second=second.role_id,
            overlap=mean(
                [
                    _jaccard(ours, theirs)
                    for ours, theirs in zip(seen[first.role_id], seen[second.role_id], strict=True)
                ]
            ),
        )
        for first, second in combinations(roles, 2)
    ]
    return Distinctiveness(
        questions=len(questions),
        mean_overlap=mean([pair.overlap for pair in pairs]),
        roles=[
            RoleShare(
                role_id=role.role_id,
                domains=role.domains,
                own_share=mean(shares[role.role_id]),
                own_first=mean(firsts[role.role_id]),
            )
            for role in roles
        ],
        pairs=pairs,
    )


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    either = first | second
    return len(first & second) / len(either) if either else 1.0


def harm(
    runner: Runner,
    questions: Sequence[Question],
    without: Sequence[float],
    role: Role,
    done: Callable[[], None],
) -> Harm:
    """What nDCG@10 loses when a role is put on questions that are none of its business.

    Args:
        runner: asks.
        questions: judged ones.
        without: their nDCG@10 with no overlay, in the same order.
        role: whose overlay governs.
        done: told of each question.
    """
    governed = []
    for question in questions:
        governed.append(ndcg(runner.governed(question, role.role_id).ranked, question.grades, 10))
        done()
    before, after = mean(without), mean(governed)
    pairs = list(zip(without, governed, strict=True))
    return Harm(
        role_id=role.role_id,
        digest=role.digest,
        without=before,
        with_overlay=after,
        relative=after / before - 1 if before > 0 else 0.0,
        p_value=paired_randomization(without, governed),
        wins=sum(second > first for first, second in pairs),
        losses=sum(second < first for first, second in pairs),
    )
