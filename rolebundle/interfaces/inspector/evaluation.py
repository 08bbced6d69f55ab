"""The view `evaluation`: golden sets to run, and stored reports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from rolebundle.contracts.evaluation import EvalReport
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.evaluation.comparison import (
    check_thresholds,
    compare,
    load_report,
    value_of,
    with_thresholds,
)
from rolebundle.evaluation.evaluation import evaluate, plan_for
from rolebundle.evaluation.golden import golden_set_of_role, load_golden
from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.evaluation import evaluation_page
from rolebundle.interfaces.pages.evaluation_change import evaluation_change_page
from rolebundle.interfaces.pages.page import render
from rolebundle.policy.overlays import list_overlays, load_role

MAX_QUESTIONS = 200
MAX_SECONDS = 60.0
"""How long the questions of a golden set may take."""


class GoldenSetRow(NamedTuple):
    """A golden set that a role's overlay names, or why it cannot be run."""

    role_id: str
    name: str
    questions: int
    problem: str = ""


class ReportRow(NamedTuple):
    """A stored report: its number from 1, its file, and its nDCG@10, if it has graded questions."""

    number: int
    path: Path
    report: EvalReport
    ndcg: float | None


def show(app: Inspector, parameters: Parameters) -> str:
    """The list; with ``golden``, a run of that role's golden set; else a report or two of them."""
    app.owner()
    site = app.site(parameters)
    if role := parameters.get("golden"):
        return evaluation_page(_run(app, role), site)
    if parameters.get("before") or parameters.get("after"):
        (first, before), (second, after) = (
            _report(app, parameters, n) for n in ("before", "after")
        )
        comparison = compare(before, after, (str(first), str(second)))
        return evaluation_change_page(comparison, before, after, site)
    if parameters.get("report"):
        return evaluation_page(_report(app, parameters, "report")[1], site)
    return render(
        "evaluations",
        site,
        golden_sets=_golden_sets(app),
        reports=_reports(app),
        max_questions=MAX_QUESTIONS,
    )


def _golden_sets(app: Inspector) -> list[GoldenSetRow]:
    folders = app.engine.overlay_folders
    rows = []
    for overlay in list_overlays(folders):
        if overlay.problem:
            continue
        name = load_role(overlay.role_id, folders).overlay.eval_profile.golden_set_id
        if not name:
            continue
        try:
            golden = load_golden(golden_set_of_role(overlay.role_id, folders))
        except RolebundleError as error:
            rows.append(GoldenSetRow(overlay.role_id, name, 0, error.message))
        else:
            rows.append(GoldenSetRow(overlay.role_id, golden.name, len(golden.questions)))
    return rows


def _reports(app: Inspector) -> list[ReportRow]:
    loaded = [(path, load_report(path)) for path in app.reports]
    return [
        ReportRow(number, path, report, value_of(report, "ndcg@10"))
        for number, (path, report) in enumerate(loaded, start=1)
    ]


def _report(app: Inspector, parameters: Parameters, name: str) -> tuple[Path, EvalReport]:
    parameters.required(name)
    number = parameters.positive(name)
    if number > len(app.reports):
        raise UsageError(
            "not_found", f"there is no report {number}", "choose one of the list of evaluations"
        )
    path = app.reports[number - 1]
    return path, load_report(path)


def _run(app: Inspector, role: str) -> EvalReport:
    """The report of a role's golden set on the open corpus.

    Raises:
        UsageError: it has too many questions, or they take too long.
    """
    path = golden_set_of_role(role, app.engine.overlay_folders)
    golden = load_golden(path)
    command = f"use `rolebundle eval --role {role} --db FILE --html PAGE`"
    if len(golden.questions) > MAX_QUESTIONS:
        raise UsageError(
            "too_many_questions",
            f"the golden set has {len(golden.questions)} questions; at most {MAX_QUESTIONS} are "
            "run here",
            command,
        )
    end = perf_counter() + MAX_SECONDS

    def check_time(_step: str, done: int, total: int) -> None:
        if perf_counter() > end and done < total:
            raise UsageError(
                "evaluation_too_long",
                f"{done} of {total} questions took longer than {MAX_SECONDS:.0f} s",
                command,
            )

    moment = datetime.now(UTC).replace(microsecond=0)
    report = evaluate(app.engine, plan_for(app.engine, golden, role, moment), check_time)
    return with_thresholds(report, check_thresholds(golden.fail_under, f"{path}: fail_under"))
