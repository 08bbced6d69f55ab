"""The pages of the overlay workbench: all roles, one overlay, a trial of an edited copy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rolebundle.contracts.authoring import OverlayTrial, TriedPassage
from rolebundle.contracts.lint import LintProblem
from rolebundle.contracts.mistakes import dotted
from rolebundle.contracts.overlay import SourcePolicy, SourceRule
from rolebundle.contracts.roles import ExplainedValue
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import escaped_json, render
from rolebundle.interfaces.pages.site import Site
from rolebundle.policy.overlay_explanation import explained_values
from rolebundle.policy.overlay_reach import Reach
from rolebundle.policy.overlays import OverlayEntry, ResolvedOverlay
from rolebundle.retrieval.filter import PREFERRED_SOURCE_BOOST

MAX_TASKS = 10
"""How many tasks a trial may have."""
_LISTS = {
    "preferred_terms": "Preferred terms",
    "synonyms": "Synonyms",
    "boost_phrases": "Boost phrases",
    "suppress_phrases": "Suppressed phrases",
}
_BOOSTS = {
    "trust_tier_boosts": "trust tier",
    "document_type_boosts": "document type",
    "domain_boosts": "domain",
}


class RoleRow(NamedTuple):
    """A role of the list: its overlay, and its findings."""

    entry: OverlayEntry
    findings: Sequence[LintProblem]


class RuleRow(NamedTuple):
    """A source rule: what it does, what it matches, why, how much that is, and its origin."""

    effect: str
    condition: str
    reason: str
    reach: Reach
    origin: str


class WordList(NamedTuple):
    """A list of the vocabulary: its words with the number of passages that have each."""

    name: str
    words: list[tuple[str, int]]
    origin: str


class Edit(NamedTuple):
    """The form.

    Attributes:
        role: the role that is copied, and that a trial compares with.
        new_role: the id of the copy.
        text: JSON.
        tasks: the tasks of a trial.
        origin: where the tasks come from; empty if a person wrote them.
    """

    role: str
    new_role: str
    text: str
    tasks: Sequence[str]
    origin: str = ""


class Move(NamedTuple):
    """A passage of a trial.

    Attributes:
        passage: its ranks before and after the edit.
        change: how it moved.
        level: CSS class of the change.
        reasons: the rules and words of the overlay that count for it only before the edit, or only
            after it.
    """

    passage: TriedPassage
    change: str
    level: str
    reasons: list[str]


class TaskChange(NamedTuple):
    """What an edit changes in the answer to a task."""

    trial: OverlayTrial
    moves: list[Move]

    def count(self, *changes: str) -> int:
        """How many passages changed in one of these ways."""
        return sum(move.change.split()[0] in changes for move in self.moves)


def roles_page(groups: Sequence[tuple[str, Sequence[RoleRow]]], site: Site) -> str:
    """The page of all roles.

    Args:
        groups: the origin of overlays, and the roles of that origin.
        site: the application.
    """
    return render("roles", site, groups=groups)


def overlay_page(
    resolved: ResolvedOverlay,
    findings: Sequence[LintProblem],
    reach: Mapping[str, Reach],
    passages: Mapping[str, tuple[str, int]],
    edit: Edit,
    site: Site,
) -> str:
    """The page of one overlay.

    Args:
        resolved: the overlay.
        findings: of lint.
        reach: what each source rule touches, by place.
        passages: words of the vocabulary and how many passages have each, by place.
        edit: the form.
        site: the application.
    """
    values = explained_values(resolved)
    origins = {value.place: _origin(value, resolved) for value in values}
    return render(
        "overlay",
        site,
        resolved=resolved,
        findings=findings,
        rules=_rules(resolved.overlay.source_policy, reach, origins),
        lists=_word_lists(passages, origins),
        values=[
            (value.place, json.dumps(value.value, ensure_ascii=False), origins[value.place])
            for value in values
        ],
        edit=_escaped(edit),
        max_tasks=MAX_TASKS,
    )


def trial_page(
    findings: Sequence[LintProblem],
    trials: Sequence[OverlayTrial],
    edit: Edit,
    site: Site,
    *,
    is_saving: bool = False,
) -> str:
    """The page of an edited copy: its findings, and what it changes.

    Args:
        findings: of lint.
        trials: one per task; empty if the copy cannot be used.
        edit: the form as it was sent.
        site: the application.
        is_saving: whether it was to be saved, which the findings prevent.
    """
    changes = [task_change(trial) for trial in trials]
    return render(
        "trial",
        site,
        findings=findings,
        changes=changes,
        edit=_escaped(edit),
        is_saving=is_saving,
        max_tasks=MAX_TASKS,
    )


def saved_page(role: str, path: Path, tasks: Sequence[str], site: Site) -> str:
    """The page of a role that was saved."""
    return render("saved", site, role=role, path=path, tasks=tasks)


def task_change(trial: OverlayTrial) -> TaskChange:
    """How each passage of a trial moved."""
    return TaskChange(trial, [_move(passage) for passage in trial.passages])


def _move(passage: TriedPassage) -> Move:
    before, after = passage.rank_without, passage.rank_with
    change, level = "same", "plain"
    if before is None or after is None:
        change, level = ("entered", "good") if before is None else ("left", "bad")
    elif before != after:
        change = f"up {before - after}" if after < before else f"down {after - before}"
    reasons = [
        # The rules that count for a passage before the edit are known only if it was in the answer.
        *_reasons("new" if before else "counts", passage.moved_by, passage.moved_by_without),
        *_reasons("no longer", passage.moved_by_without, passage.moved_by),
    ]
    return Move(passage, change, level, reasons)


def _reasons(label: str, rules: Sequence[str], superseded_rules: Sequence[str]) -> list[str]:
    """The rules that are not among others, in plain words."""
    plain = words.rules([rule for rule in rules if rule not in superseded_rules])
    factors = [f"{name}: {value}" if value else name for name, value in plain.factors]
    if plain.words:
        factors.append(f"the role's words: {', '.join(plain.words)}")
    if plain.suppressed:
        factors.append(f"words that lower it: {', '.join(plain.suppressed)}")
    return [f"{label}: {factor}" for factor in factors]


def _rules(
    policy: SourcePolicy, reach: Mapping[str, Reach], origins: Mapping[str, str]
) -> list[RuleRow]:
    rows = []
    for name in ("forbidden_sources", "allowed_sources", "preferred_sources"):
        rules: list[SourceRule] = getattr(policy, name)
        for index, rule in enumerate(rules):
            place = dotted(("source_policy", name, index))
            effect = _effect(name, rule)
            rows.append(RuleRow(effect, rule.condition, rule.reason, reach[place], origins[place]))
    for name, label in _BOOSTS.items():
        boosts: dict[str, float] = getattr(policy, name)
        for key, boost in boosts.items():
            place = dotted(("source_policy", name, key))
            rows.append(RuleRow(_boost(boost), f"{label} {key}", "", reach[place], origins[place]))
    return rows


def _effect(name: str, rule: SourceRule) -> str:
    if name == "forbidden_sources":
        return "forbidden"
    if name == "allowed_sources":
        return "allowed, and nothing else"
    return _boost(PREFERRED_SOURCE_BOOST if rule.boost is None else rule.boost)


def _boost(factor: float) -> str:
    direction = "lower" if factor < 1 else "higher" if factor > 1 else "unchanged"
    return f"{direction} × {factor:g}"


def _word_lists(
    passages: Mapping[str, tuple[str, int]], origins: Mapping[str, str]
) -> list[WordList]:
    lists: dict[str, WordList] = {}
    for place, word in passages.items():
        # The place of a word is that of its list, and its number.
        parent = place.rpartition("[")[0]
        key, _, term = parent.removeprefix("vocabulary.").partition(".")
        name = _LISTS[key] + (f" of {term}" if term else "")
        lists.setdefault(parent, WordList(name, [], origins.get(parent, ""))).words.append(word)
    return list(lists.values())


def _origin(value: ExplainedValue, resolved: ResolvedOverlay) -> str:
    if value.path is None:
        return "default"
    if value.origin == "rescaled":
        return "shares what the other weights leave of 1"
    if value.path == str(resolved.path):
        return "this overlay"
    return f"inherited from {Path(value.path).stem}"


def _escaped(edit: Edit) -> Edit:
    return edit._replace(text=escaped_json(edit.text))
