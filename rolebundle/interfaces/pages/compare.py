"""Roles side by side: what each gets for one task, what the rules moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.contracts.comparison import (
    ComparedPassage,
    Comparison,
    RoleView,
    Standing,
)
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.text.counts import counted


class RoleAnswer(NamedTuple):
    """The answer for one role in numbers.

    Attributes:
        view: the answer.
        own: how many passages are selected for no other role.
        refused: how many candidates a rule of the owner rejected.
        lower: how many candidates others preceded.
    """

    view: RoleView
    own: int
    refused: int
    lower: int


class Cell(NamedTuple):
    """What happened to a passage for one role.

    Attributes:
        standing: rank or rejection.
        rules: the rules and words of the role that it met.
        summary: their names, without their values.
        move: its rank against that without a role, in words; empty if it is not selected, or if
            there is no answer without a role.
    """

    standing: Standing
    rules: words.Rules
    summary: str
    move: str


class Row(NamedTuple):
    """A passage, and what happened to it for each role."""

    passage: ComparedPassage
    cells: list[Cell]


class Group(NamedTuple):
    """Passages that are selected for the same number of roles."""

    title: str
    rows: list[Row]


def compare_page(comparison: Comparison, site: Site = FILE) -> str:
    """The page of a comparison. If its first role is none, moves are measured against it."""
    roles = _roles(comparison)
    return render(
        "compare",
        site,
        comparison=comparison,
        answers=[_answer(view, comparison) for view in roles],
        groups=_groups(comparison),
        chosen=[view.role_id for view in roles],
    )


def compare_form(site: Site, chosen: Sequence[str]) -> str:
    """The page to choose a task and roles.

    Args:
        site: the application.
        chosen: the roles that are chosen already.
    """
    return render("compare", site, comparison=None, chosen=chosen)


def _roles(comparison: Comparison) -> list[RoleView]:
    return [view for view in comparison.roles if view.role_id]


def _answer(view: RoleView, comparison: Comparison) -> RoleAnswer:
    chunks_of_others = {
        chunk_id
        for other_view in _roles(comparison)
        if other_view.role_id != view.role_id
        for chunk_id in other_view.selected
    }
    counts = view.rejected_summary.items()
    return RoleAnswer(
        view,
        own=sum(chunk_id not in chunks_of_others for chunk_id in view.selected),
        refused=sum(count for code, count in counts if words.is_rule(code)),
        lower=sum(count for code, count in counts if not words.is_rule(code)),
    )


def _groups(comparison: Comparison) -> list[Group]:
    """The passages that all roles share, then those of some, of each alone, and of no role."""
    roles = [view.role_id for view in _roles(comparison)]
    rows: dict[tuple[str, ...], list[Row]] = {}
    for passage in sorted(comparison.passages, key=_best_rank):
        selected_for = [
            standing.role_id
            for standing in passage.standings
            if standing.role_id and standing.state == "selected"
        ]
        some = 1 < len(selected_for) < len(roles)
        key = ("some",) if some else tuple(selected_for)
        rows.setdefault(key, []).append(_row(passage))
    titles = [
        (tuple(roles), f"Selected for all {len(roles)} roles"),
        (("some",), "Selected for some of the roles"),
        *(((role,), f"Selected only for {role}") for role in roles),
        ((), "Selected only without a role"),
    ]
    return [Group(title, rows[key]) for key, title in titles if key in rows]


def _best_rank(passage: ComparedPassage) -> int:
    ranks = [standing.rank for standing in passage.standings if standing.role_id and standing.rank]
    # Only without a role: in the order of that answer.
    return min(ranks) if ranks else passage.standings[0].rank or 0


def _row(passage: ComparedPassage) -> Row:
    first = passage.standings[0]
    without = None if first.role_id else first
    return Row(passage, [_cell(standing, without) for standing in passage.standings])


def _cell(standing: Standing, without: Standing | None) -> Cell:
    rules = words.rules(standing.overlay_hits or ())
    names = [name for name, _ in rules.factors]
    if rules.words:
        names.append(counted(len(rules.words), "word of the role", "words of the role"))
    if rules.suppressed:
        names.append("words that lower it")
    move = _move(standing, without) if standing.role_id and without else ""
    return Cell(standing, rules, ", ".join(dict.fromkeys(names)), move)


def _move(standing: Standing, without: Standing) -> str:
    if standing.rank is None:
        return ""
    if without.rank is None:
        return "new"
    places = without.rank - standing.rank
    if places == 0:
        return "same place"
    return f"{'up' if places > 0 else 'down'} {abs(places)}"
