"""Two reports side by side: what a change did, question by question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from rolebundle.contracts.evaluation import (
    EvalComparison,
    EvalReport,
    Floor,
    MetricChange,
    QuestionChange,
    QuestionResult,
)
from rolebundle.contracts.mistakes import mistakes_in
from rolebundle.errors import UsageError
from rolebundle.evaluation.evaluation import SYSTEMS, difference
from rolebundle.evaluation.floors import COSTS, value_of
from rolebundle.evaluation.metrics import METRICS, mean
from rolebundle.text.strict_json import NotStrictError, parse_strict

MOST_BYTES = 256 << 20
MOVED = 20
_RATES = ("leak_rate", "rejection_accuracy", "posture_accuracy", "harm")


def load_report(path: Path) -> EvalReport:
    """A report from the file that ``eval --json`` made.

    Raises:
        UsageError: ``report_malformed``.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _malformed(path, f"is over {MOST_BYTES >> 20} MiB")
        return EvalReport.model_validate(parse_strict(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise _malformed(path, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise _malformed(path, f"is not UTF-8 at byte {error.start}") from error
    except NotStrictError as error:
        raise _malformed(path, f"is not JSON: {error}") from error
    except ValidationError as error:
        mistake = mistakes_in(error, EvalReport)[0]
        place = ".".join(str(step) for step in mistake.place)
        raise _malformed(
            path, f"{place}: {mistake.message}" if place else mistake.message
        ) from error


def compare(before: EvalReport, after: EvalReport, names: tuple[str, str]) -> EvalComparison:
    """The differences of two reports over the questions that both have judged.

    Raises:
        UsageError: ``nothing_in_common``.
    """
    first = {one.id: one for one in before.questions if one.scores}
    second = {one.id: one for one in after.questions if one.scores}
    shared = [one for one in first if one in second and first[one].task == second[one].task]
    if not shared:
        raise UsageError(
            "nothing_in_common",
            f"{names[0]} and {names[1]} have no judged question in common",
            "compare two reports on the same collection or golden set",
        )
    moved = [_moved(first[one], second[one]) for one in shared]
    moved = [one for one in moved if one.before != one.after]
    moved.sort(key=lambda one: (-abs(one.after - one.before), one.id))
    return EvalComparison(
        before=names[0],
        after=names[1],
        questions=len(shared),
        only_before=len(first) - len(shared),
        only_after=len(second) - len(shared),
        changes=_changes([first[one] for one in shared], [second[one] for one in shared]),
        moved=moved[:MOVED],
        latency_p50=[before.latency_ms.p50, after.latency_ms.p50],
        governance={
            name: [value_of(before, name), value_of(after, name)]
            for name in _RATES
            if value_of(before, name) is not None or value_of(after, name) is not None
        },
    )


def with_change_floors(
    comparison: EvalComparison, after: EvalReport, bounds: Mapping[str, float]
) -> EvalComparison:
    """The comparison, with bounds put on the change from the first report to the second.

    ``ndcg@10=-0.005`` allows a loss of half a point. For costs and rates the bound is on what the
    second report says, as for a report of its own.
    """
    floors = []
    for name, bound in bounds.items():
        system, dot, measure = name.rpartition(".")
        wanted = system if dot else "governed"
        change = next(
            (
                one.change
                for one in comparison.changes
                if one.system == wanted and one.metric == measure
            ),
            None,
        )
        at_most = name in COSTS
        value = change if change is not None else value_of(after, name)
        held = value is not None and (value <= bound if at_most else value >= bound)
        floors.append(Floor(metric=name, bound=bound, at_most=at_most, value=value, held=held))
    return comparison.model_copy(
        update={"floors": floors, "passed": all(floor.held for floor in floors)}
    )


def _changes(first: list[QuestionResult], second: list[QuestionResult]) -> list[MetricChange]:
    changes = []
    for system in SYSTEMS:
        if not all(system in one.scores for one in (*first, *second)):
            continue
        for metric in METRICS:
            ours = [one.scores[system][metric] for one in first]
            theirs = [one.scores[system][metric] for one in second]
            found = difference(metric, ours, theirs)
            changes.append(
                MetricChange(
                    system=system,
                    metric=metric,
                    before=mean(ours),
                    after=mean(theirs),
                    change=found.mean,
                    p_value=found.p_value,
                    wins=found.wins,
                    losses=found.losses,
                    ties=found.ties,
                )
            )
    return changes


def _moved(first: QuestionResult, second: QuestionResult) -> QuestionChange:
    return QuestionChange(
        id=first.id,
        task=first.task,
        before=first.scores["governed"]["ndcg@10"],
        after=second.scores["governed"]["ndcg@10"],
    )


def _malformed(path: Path, reason: str) -> UsageError:
    return UsageError(
        "report_malformed",
        f"{path}: is no report: {reason}",
        "give two files that `rolebundle eval PATH --json` wrote",
    )
