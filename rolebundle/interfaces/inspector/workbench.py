"""The view `workbench`: the overlays, and the one form that writes, which saves an edited copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from rolebundle.authoring.edited_overlay import EditedOverlay, edited_overlay
from rolebundle.authoring.neutral_overlay import overlay_text
from rolebundle.authoring.trial import recorded_questions, try_role
from rolebundle.contracts.authoring import OverlayTrial
from rolebundle.contracts.lint import LintProblem
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import ConfigurationError, OverlayError, RolebundleError, UsageError
from rolebundle.evaluation.golden import find_golden_set, load_golden
from rolebundle.interfaces.inspector.application import DEADLINE_MS, Inspector, Parameters
from rolebundle.interfaces.pages.workbench import (
    MAX_TASKS,
    Edit,
    RoleRow,
    overlay_page,
    roles_page,
    saved_page,
    trial_page,
)
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlay_lint import (
    CorpusFacts,
    corpus_facts,
    lint_error,
    lint_overlay,
    word_counts,
)
from rolebundle.policy.overlay_reach import rule_reach
from rolebundle.policy.overlays import (
    ResolvedOverlay,
    is_shipped,
    list_overlays,
    load_role,
    locate,
    overlay_folders,
)
from rolebundle.resources import data_folder
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import document_kinds, kind_counts
from rolebundle.storage.location import overlays_path

GENERAL_TASKS = (
    "What should I look at first?",
    "What changed recently, and why?",
    "What can go wrong, and what is done about it?",
)


def show(app: Inspector, parameters: Parameters) -> str:
    """The overlay of a role, or the list of all roles.

    Raises:
        AccessDenied: the application is for an agent.
        OverlayError: the role has no valid overlay.
    """
    app.owner()
    folders = _current_folders(app)
    role = parameters.get("role")
    return _overlay(app, role, folders, parameters) if role else _roles(app, folders, parameters)


def submit(app: Inspector, form: Parameters) -> str:
    """Try or save an edited copy. Only ``save`` writes, and only an overlay without errors.

    Raises:
        AccessDenied: the application is for an agent.
        UsageError: the form is not that of the page.
        OverlayError: the role that is copied has no valid overlay.
    """
    app.owner()
    action = form.get("do")
    if action not in ("try", "save"):
        raise UsageError("bad_form", "the form has no action", "send it from the page")
    folders = _current_folders(app)
    base = load_role(form.required("role"), folders)
    edit = _edit_of(form, base.overlay.role_id)
    trials: list[OverlayTrial] = []
    findings: list[LintProblem] = []
    saved: EditedOverlay | None = None
    # The page of an error keeps what was typed.
    try:
        edited = edited_overlay(edit.new_role, edit.text, app.engine.workspace.path)
        with app.engine.workspace.corpus.reading():
            findings = edited.lint(folders, app.engine.workspace.corpus)
        if action == "try":
            trials = _trials(app, edited, base, _requests(edit.tasks, app.agent_of(form)))
        elif all(finding.level != "error" for finding in findings):
            edited.save(folders)
            saved = edited
    except RolebundleError as error:
        findings = _with_error(findings, error)
    if saved is not None:
        _current_folders(app)
        return saved_page(saved.role_id, saved.path, edit.tasks[:MAX_TASKS], app.site(form))
    return trial_page(findings, trials, edit, app.site(form), is_saving=action == "save")


def _edit_of(form: Parameters, role: str) -> Edit:
    """What a person typed: a copy of the role, and tasks without repeats."""
    tasks = [line.strip() for line in form.get("tasks").split("\n") if line.strip()]
    text = form.get("overlay").replace("\r\n", "\n")
    return Edit(role, form.get("new_role"), text, list(dict.fromkeys(tasks)))


def _with_error(findings: Sequence[LintProblem], error: RolebundleError) -> list[LintProblem]:
    """The findings of lint, after the error if they do not have its reason."""
    if findings and isinstance(error, OverlayError):
        return [*findings]
    return [lint_error("", error.code, f"{error.message}; {error.hint}"), *findings]


def _current_folders(app: Inspector) -> tuple[Path, ...]:
    """The folders of overlays, with the corpus's own one as soon as it exists.

    Raises:
        OverlayError: another user can change the corpus's own folder.
    """
    corpus = app.engine.workspace.path
    usual = (overlays_path(corpus), data_folder("overlays"))
    named = [folder for folder in app.engine.overlay_folders if folder not in usual]
    app.engine.overlay_folders = overlay_folders(named, corpus)
    return app.engine.overlay_folders


def _roles(app: Inspector, folders: Sequence[Path], parameters: Parameters) -> str:
    corpus = app.engine.workspace.corpus
    shipped = data_folder("overlays")
    names = {
        shipped: "Come with rolebundle",
        overlays_path(app.engine.workspace.path): "Of this corpus",
    }
    groups: dict[Path, list[RoleRow]] = {folder: [] for folder in folders}
    with corpus.reading():
        facts = corpus_facts(document_kinds(corpus))
        for entry in list_overlays(folders):
            folder = entry.path.parent
            findings = _findings(entry.path, folders, corpus, facts)
            groups[folder].append(RoleRow(entry, findings))
    named = [(names.get(folder, f"From {folder}"), rows) for folder, rows in groups.items() if rows]
    return roles_page(named, app.site(parameters))


def _overlay(app: Inspector, role: str, folders: Sequence[Path], parameters: Parameters) -> str:
    resolved = load_role(role, folders)
    corpus = app.engine.workspace.corpus
    with corpus.reading():
        counts = kind_counts(corpus)
        facts = corpus_facts(count.kind for count in counts)
        findings = _findings(resolved.path, folders, corpus, facts)
        reach = rule_reach(resolved.overlay.source_policy, counts, facts)
        passages = word_counts(resolved.overlay.vocabulary, corpus)
    tasks, origin = _tasks(app, resolved, folders, parameters)
    own = {key: value for key, value in resolved.layers[0].values.items() if key != "role_id"}
    edit = Edit(role, _free_name(role, folders), overlay_text(own), tasks, origin)
    return overlay_page(resolved, findings, reach, passages, edit, app.site(parameters))


def _findings(
    path: Path, folders: Sequence[Path], corpus: Corpus, facts: CorpusFacts
) -> list[LintProblem]:
    # Unmatched rules of a shipped overlay are no fault.
    return lint_overlay(path, folders, None if is_shipped(path) else corpus, facts)


def _free_name(role: str, folders: Sequence[Path]) -> str:
    """An id for a copy of a role that no role has."""
    names = (f"{role[:50]}-copy{number if number > 1 else ''}" for number in count(1))
    return next(name for name in names if locate(name, folders) is None)


def _tasks(
    app: Inspector, resolved: ResolvedOverlay, folders: Sequence[Path], parameters: Parameters
) -> tuple[list[str], str]:
    """The tasks of the address, of the role's golden set or of the audit; and their origin.

    If there are none, these are general ones.
    """
    if tasks := parameters.all("task"):
        return tasks[:MAX_TASKS], ""
    role, name = resolved.overlay.role_id, resolved.overlay.eval_profile.golden_set_id
    path = find_golden_set(name, tuple(folders)) if name else None
    problem = ""
    if path is not None:
        try:
            questions = load_golden(path).questions
        except ConfigurationError as error:
            problem = f"the golden set {name} cannot be used: {error.message}; "
        else:
            tasks = [question.task for question in questions if question.role in (None, role)]
            if tasks:
                return tasks[:MAX_TASKS], f"from the golden set {name}, which has {len(tasks)}"
    if tasks := recorded_questions(role, app.engine.workspace.path):
        return tasks[:MAX_TASKS], f"{problem}the newest questions of the role in the audit"
    return list(GENERAL_TASKS), f"{problem}general ones; the audit has no question of the role"


def _requests(tasks: Sequence[str], agent: str | None) -> list[RetrievalRequest]:
    """A request of an agent for each task.

    Raises:
        UsageError: there are none or too many, or a task is too long.
    """
    if not tasks or len(tasks) > MAX_TASKS:
        raise UsageError(
            "bad_tasks",
            f"there are {len(tasks)} tasks, and a trial has 1 to {MAX_TASKS}",
            "write one task on each line",
        )
    return [
        request_from({"task": task, "agent": agent, "deadline_ms": DEADLINE_MS}) for task in tasks
    ]


def _trials(
    app: Inspector,
    edited: EditedOverlay,
    base: ResolvedOverlay,
    requests: Sequence[RetrievalRequest],
) -> list[OverlayTrial]:
    overlay = edited.load(app.engine.overlay_folders)
    return [try_role(app.engine, request, overlay, base) for request in requests]
