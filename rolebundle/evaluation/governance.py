"""Measures of governance: leaks, rejection codes, postures, distinctiveness of roles, harm."""

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
from rolebundle.evaluation.metrics import difference, mean, ndcg
from rolebundle.evaluation.questions import Question, References
from rolebundle.evaluation.runner import Runner
from rolebundle.text.counts import first_of

MAX_IDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Role:
    """A role with its overlay and the overlay's digest."""

    role_id: str
    overlay: Overlay
    digest: str

    @property
    def domains(self) -> list[str]:
        """The role's own domains, which are the domains that its overlay boosts."""
        boosts = self.overlay.source_policy.domain_boosts
        return sorted(domain for domain, boost in boosts.items() if boost > 1)


def checks_of(
    question: Question, bundle: RetrievalBundle, references: References, runner: Runner
) -> Iterator[Check]:
    """Check an answer against what its golden question expects.

    ``must_not_return`` holds if no passage of the reference is selected. ``expect_rejection`` holds
    if none is selected and at least one was rejected with the code.
    """
    golden = question.golden
    if golden is None:
        return
    for reference in golden.must_not_return:
        leaked = _selected(bundle, references.matching_ids(reference))
        yield Check(
            question=question.id,
            kind="must_not_return",
            about=reference,
            expected="not selected",
            found=f"selected: {first_of(leaked, MAX_IDS_SHOWN)}" if leaked else "not selected",
            held=not leaked,
        )
    for reference, code in golden.expect_rejection.items():
        ids = references.matching_ids(reference)
        selected = _selected(bundle, ids)
        codes = {
            rejection.reason
            for rejection in bundle.rejected
            if rejection.chunk_id in ids or runner.document_of(rejection.chunk_id) in ids
        }
        outcomes = [*(["selected"] if selected else []), *sorted(codes)]
        yield Check(
            question=question.id,
            kind="expect_rejection",
            about=reference,
            expected=code,
            found=", ".join(outcomes) or "no candidate",
            held=code in codes and not selected,
        )
    states = bundle.fallback.states if bundle.fallback else []
    provenance = bundle.provenance
    expectations: tuple[tuple[CheckKind, str | None, Sequence[str]], ...] = (
        ("expect_fallback", golden.expect_fallback, states),
        ("expect_trust", golden.expect_trust, [provenance.trust_posture]),
        ("expect_freshness", golden.expect_freshness, [provenance.freshness_posture]),
    )
    for kind, expected, actual in expectations:
        if expected is not None:
            yield Check(
                question=question.id,
                kind=kind,
                expected=expected,
                found=", ".join(actual) or "none",
                held=expected in actual,
            )


def _selected(bundle: RetrievalBundle, ids: frozenset[str]) -> list[str]:
    """The selected chunks whose id or document id is in ``ids``."""
    return [
        chunk.chunk_id
        for chunk in bundle.selected
        if chunk.chunk_id in ids or chunk.document_id in ids
    ]


def summarize_checks(checks: Sequence[Check]) -> Governance:
    """Return the rates over all checks. A leak counts once for each question."""
    has_leak: dict[str, bool] = {}
    for check in checks:
        if check.kind == "must_not_return":
            has_leak[check.question] = has_leak.get(check.question, False) or not check.held
    rejections = [check.held for check in checks if check.kind == "expect_rejection"]
    postures = [
        check.held for check in checks if check.kind not in ("must_not_return", "expect_rejection")
    ]
    return Governance(
        leak_rate=_rate(has_leak.values()),
        rejection_accuracy=_rate(rejections),
        posture_accuracy=_rate(postures),
        checks=list(checks),
    )


def _rate(held: Iterable[bool]) -> float | None:
    """The fraction of checks that passed; None if there are none."""
    values = [float(value) for value in held]
    return mean(values) if values else None


def distinctiveness(
    runner: Runner,
    questions: Sequence[Question],
    roles: Sequence[Role],
    advance: Callable[[], None],
) -> Distinctiveness:
    """Compare what the roles select for the same questions.

    ``advance`` is called after each answer, to show progress.
    """
    selected_documents: dict[str, list[frozenset[str]]] = {role.role_id: [] for role in roles}
    shares: dict[str, list[float]] = {role.role_id: [] for role in roles}
    firsts: dict[str, list[float]] = {role.role_id: [] for role in roles}
    for question in questions:
        for role in roles:
            selected = runner.governed(question, role.role_id).bundle.selected
            own = [float(chunk.metadata.domain in role.domains) for chunk in selected]
            selected_documents[role.role_id].append(
                frozenset(chunk.document_id for chunk in selected)
            )
            if own:
                shares[role.role_id].append(mean(own))
                firsts[role.role_id].append(own[0])
            advance()
    pairs = [
        RolePair(
            first=first.role_id,
            second=second.role_id,
            overlap=mean(
                [
                    _jaccard(documents, other_documents)
                    for documents, other_documents in zip(
                        selected_documents[first.role_id],
                        selected_documents[second.role_id],
                        strict=True,
                    )
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
    baseline: Sequence[float],
    role: Role,
    advance: Callable[[], None],
) -> Harm:
    """Measure how an overlay changes nDCG@10 of questions, normally outside of the role's work.

    Args:
        runner: asks the questions.
        questions: the judged questions.
        baseline: their nDCG@10 without an overlay, in the same order.
        role: the role with its overlay.
        advance: called after each answer, to show progress.

    Returns:
        ``relative`` is negative if the overlay does harm; 0 if the mean of ``baseline`` is 0.
    """
    scores = []
    for question in questions:
        scores.append(ndcg(runner.governed(question, role.role_id).ranked, question.grades, 10))
        advance()
    change = difference("ndcg@10", baseline, scores)
    return Harm(
        role_id=role.role_id,
        digest=role.digest,
        without=mean(baseline),
        with_overlay=mean(scores),
        relative=change.relative or 0.0,
        p_value=change.p_value,
        wins=change.wins,
        losses=change.losses,
    )
