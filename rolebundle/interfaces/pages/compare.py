"""Roles side by side: what each gets for one task, what the rules moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rolebundle.contracts.comparison import ComparedPassage, Comparison, RoleView, Standing
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.text.counts import counted


def compare_page(comparison: Comparison, site: Site = FILE) -> str:
    """The page of a comparison. If its first role is none, moves are measured against it."""
    roles = [view for view in comparison.roles if view.role_id]
    return render(
        "compare",
        site,
        comparison=comparison,
        answers=[(view, *_counts(view, roles)) for view in roles],
        groups=_groups(comparison, [view.role_id for view in roles]),
        chosen=[view.role_id for view in roles],
    )


def compare_form(site: Site, chosen: Sequence[str]) -> str:
    """The page to choose a task and roles.

    Args:
        site: the application.
        chosen: the roles that are chosen already.
    """
    return render("compare", site, comparison=None, chosen=chosen)


def _counts(view: RoleView, roles: Sequence[RoleView]) -> tuple[int, int, int]:
    """How many passages only this role gets, and what rules and the ranking rejected for it."""
    others = {chunk for other in roles if other is not view for chunk in other.selected}
    refused = sum(n for code, n in view.rejected_summary.items() if words.is_rule(code))
    lower = sum(view.rejected_summary.values()) - refused
    return sum(chunk not in others for chunk in view.selected), refused, lower


def _groups(comparison: Comparison, roles: Sequence[str]) -> list[dict[str, Any]]:
    """The passages that all roles share, then those of some, of each alone, and of no role.

    Each group has its title, and of each passage what happened to it for each role.
    """
    rows: dict[tuple[str, ...], list[tuple[ComparedPassage, list[dict[str, Any]]]]] = {}
    for passage in sorted(comparison.passages, key=_best_rank):
        selected_for = [
            standing.role_id
            for standing in passage.standings
            if standing.role_id and standing.state == "selected"
        ]
        some = 1 < len(selected_for) < len(roles)
        key = ("some",) if some else tuple(selected_for)
        first = passage.standings[0]
        without = None if first.role_id else first
        cells = [_cell(standing, without) for standing in passage.standings]
        rows.setdefault(key, []).append((passage, cells))
    titles = [
        (tuple(roles), f"Selected for all {len(roles)} roles"),
        (("some",), "Selected for some of the roles"),
        *(((role,), f"Selected only for {role}") for role in roles),
        ((), "Selected only without a role"),
    ]
    return [{"title": title, "rows": rows[key]} for key, title in titles if key in rows]


def _best_rank(passage: ComparedPassage) -> int:
    ranks = [standing.rank for standing in passage.standings if standing.role_id and standing.rank]
    # Only without a role: in the order of that answer.
    return min(ranks) if ranks else passage.standings[0].rank or 0


def _cell(standing: Standing, without: Standing | None) -> dict[str, Any]:
    """What happened to a passage for one role: rules that it met, their names, and its move."""
    rules = words.rules(standing.overlay_hits or ())
    names = [name for name, _ in rules.factors]
    if rules.words:
        names.append(counted(len(rules.words), "word of the role", "words of the role"))
    if rules.suppressed:
        names.append("words that lower it")
    summary = ", ".join(dict.fromkeys(names))
    move = _move(standing.rank, without.rank) if standing.role_id and without else ""
    return {"standing": standing, "rules": rules, "summary": summary, "move": move}


def _move(rank: int | None, before: int | None) -> str:
    """A rank against that without a role, in words; empty if it is not selected."""
    if rank is None:
        return ""
    if before is None:
        return "new"
    if before == rank:
        return "same place"
    return f"{'up' if before > rank else 'down'} {abs(before - rank)}"
