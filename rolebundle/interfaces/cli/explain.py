"""`rolebundle why | compare`: answers, explained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.why import ScoreTrace, Why, WhyAsAgent
from rolebundle.interfaces.cli.options import Call, with_call
from rolebundle.interfaces.cli.output import field_lines, with_folders, write_page
from rolebundle.interfaces.layout import (
    DEFAULT_WIDTH,
    NO_ROLE,
    PLAIN,
    Kind,
    Style,
    cut,
    folded,
    terminal_width,
)
from rolebundle.interfaces.model_text import comparison_lines
from rolebundle.interfaces.pages.views import compare_page
from rolebundle.interfaces.parse import names_in, request_from
from rolebundle.policy.lint import unmatched_values
from rolebundle.policy.overlays import is_shipped, load_role
from rolebundle.retrieval.compare import compare_roles
from rolebundle.retrieval.passage_text import (
    flag_note,
    mark_note,
    one_line,
    quoted,
    shown_name,
    shown_place,
)
from rolebundle.storage.documents import document_kinds
from rolebundle.storage.opening import open_reader
from rolebundle.text.spellings import key_of
from rolebundle.text.words import counted

_NAME_CHARS = 200
_MAX_UNMATCHED = 3
"""How many rules of a shipped role are named if they match no passage."""


@click.command()
@click.argument("reference", metavar="PASSAGE|DOCUMENT")
@click.argument("task")
@click.option(
    "--as-agent", metavar="NAME", help="Tell the owner what keeps the passage from this agent."
)
@with_call(
    "overlay_dirs",
    "as_json",
    request=RetrievalRequest,
    without=["task", "packet", "detail", "max_chars"],
)
def why(call: Call, reference: str, task: str, as_agent: str | None) -> None:
    """Explain why a passage was selected for ROLE and TASK, or why not.

    PASSAGE|DOCUMENT is a chunk_id, a document_id, a path or path:start-end. If it names several
    passages, the best ranked one is explained: lanes, filter, score and selection, the passages
    that ranked above it, and the score to beat.

    \b
    rolebundle why security/token-lifecycle-audit.md:12-20 "Review the token refresh flow"
    rolebundle why marketing/marketing/launch-page-3.0.md "Plan release 3.0" --role code-reviewer
    rolebundle why support-tickets/support/tickets.jsonl "Plan release 3.0" --limit 5 --json
    rolebundle why security/token-lifecycle-audit.md "Plan release 3.0" --as-agent helper
    """
    if as_agent is not None:
        if "agent" in call.fields:
            raise click.UsageError("--as-agent is for the owner: leave out --agent")
        call.fields["agent"] = as_agent
    request = request_from({"task": task, **call.fields})
    with call.engine(in_working_folder=True) as engine:
        if as_agent is not None:
            owners = engine.why_as_agent(request, reference)
            call.print(owners, [_owners_text(owners)])
            return
        answer = engine.why(request, reference)
    call.print(answer, [text(answer, terminal_width(), call.style)])


def _owners_text(answer: WhyAsAgent) -> str:
    """What keeps a passage from an agent, and the steps of the answer if the agent sees it."""
    rules = answer.model_dump(exclude={"reference", "document_id", "why"})
    lines = [*map(with_folders, field_lines(rules))]
    if not answer.hidden:
        lines.append("hidden: by no rule")
    return "\n".join(lines if answer.why is None else [*lines, "", text(answer.why)])


def text(why: Why, width: int = DEFAULT_WIDTH, style: Style = PLAIN) -> str:
    """The answer for a person: the verdict, each step, and the score to beat."""
    lines = [style("heading", cut(one_line(f"{why.role_id or NO_ROLE} · {why.task}"), width))]
    of = f"  (best ranked of {why.passages})" if why.passages > 1 else ""
    place = style("locator", shown_place({"locator": why.locator, "anchor": why.anchor}))
    lines.append(f"{place}  {shown_name(why.chunk_id)}{of}")
    notes = [flag_note(why.flags), mark_note(why.mark.model_dump() if why.mark else None)]
    notes += [
        f"{shown_name(name, 0)} claims to supersede its document, but may not"
        for name in why.ignored_claims or ()
    ]
    notes += [
        f"its document declares {quoted(claim)}; the owner does not allow it"
        for claim in why.refused_claims or ()
    ]
    for note in filter(None, notes):
        lines += [style("caution", line) for line in folded(one_line(note, _NAME_CHARS), width)]
    kind: Kind = "good" if why.outcome == "selected" else "rejected"
    lines += ["", *(style(kind, line) for line in folded(_verdict(why), width)), ""]
    place_in_ranking = {
        "place": why.score.model_dump(include={"place", "of", "rank", "code", "to_beat"}),
        **why.model_dump(include={"limit", "min_score"}),
    }
    for line in (
        *field_lines(why.model_dump(include={"words", "lanes", "pool", "filter"})),
        *("", *_score(why.score), ""),
        *field_lines(place_in_ranking),
    ):
        lines += folded(line, width)
    # A locator and an id are not broken, because a person copies them.
    lines += [
        f"lost to: {rival.rank or '–'}  {rival.final:.3f}  {shown_name(rival.locator)}  "
        f"{shown_name(rival.chunk_id)}"
        for rival in why.lost_to
    ]
    return "\n".join(lines)


def _verdict(why: Why) -> str:
    if why.outcome == "selected":
        return f"SELECTED at rank {why.rank} of {why.selected_count}"
    if why.step == "where":
        return one_line(f"NOT SEARCHED: {why.notes}", _NAME_CHARS)
    if why.outcome == "not_proposed":
        return "NOT PROPOSED: no lane found it"
    step = "in the selection" if why.step == "cut" else f"by the {why.step}"
    return one_line(f"REJECTED {step}: {why.code}: {why.notes}", _NAME_CHARS)


def _score(score: ScoreTrace) -> Iterable[str]:
    if score.supposed:
        yield "if it had been proposed and allowed:"
    values = score.scores
    for term, weight in score.weights:
        # In the contract, `rerank` is the vocabulary term, not the score of a rerank model.
        name, hits = ("vocabulary", score.vocabulary) if term == "rerank" else (term, [])
        value = getattr(values, term)
        hits_text = f"   {one_line(', '.join(hits), _NAME_CHARS)}" if hits else ""
        yield f"{name:<13} {value:.3f} × {weight:.2f} = {value * weight:.3f}{hits_text}"
    if score.mark_factor is not None:
        yield f"mark          × {score.mark_factor:g} in metadata and vocabulary"
    if values.diversity_penalty:
        yield f"{'diversity':<22} − {values.diversity_penalty:.3f}"
    if values.lift:
        sign = "−" if values.lift < 0 else "+"
        why = one_line(score.lift, _NAME_CHARS)
        yield f"{'lift':<22} {sign} {abs(values.lift):.3f}   {why}"
    yield f"{'final':<22} = {values.final:.3f}"
    for rule, place in score.moved_from.items():
        moved = f"from {place} to {score.place}"
        effect = moved if place != score.place else "no effect on the place"
        yield f"rule          {one_line(rule, _NAME_CHARS)}: {effect}"
    if score.raw.contextual is not None:
        yield f"in context    score {score.raw.contextual:.3f}, in the semantic term"


def _rules(bundle: RetrievalBundle) -> Iterator[str]:
    """What each rule of a role that matches a selected passage did to the answer."""
    yield f"rules of {bundle.role_id}:"
    task = key_of(bundle.query.task_text)
    rules = dict.fromkeys(
        rule
        for chunk in bundle.selected
        for rule in chunk.overlay_hits
        if rule.startswith(("boost:", "vocab:")) or rule in (chunk.moved_from or ())
    )
    for rule in rules:
        moved = [chunk for chunk in bundle.selected if rule in (chunk.moved_from or ())]
        text = ", ".join(f"{(chunk.moved_from or {})[rule]} to {chunk.rank}" for chunk in moved)
        against = sum(chunk.evidence == "role" for chunk in moved)
        effect = f"moves {text}" if moved else "changes no place here"
        phrase = rule.removeprefix("vocab:suppress(").removesuffix(")")
        if phrase != rule and key_of(phrase) in task:
            effect += "; against the task, which has these words"
        if against:
            weak = counted(against, "passage")
            effect += f"; against the task: {weak} of these have little of it"
        yield f"- {rule} {effect}"


@click.command()
@click.argument("task")
@click.option(
    "--roles",
    metavar="ROLE[,…]",
    required=True,
    help="The roles, with commas. One is compared with no role.",
)
@with_call(
    "overlay_dirs",
    "html_file",
    "as_json",
    request=RetrievalRequest,
    without=["task", "also", "role", "token_budget", "evidence", "detail", "max_chars"],
)
def compare(call: Call, task: str, roles: str) -> None:
    """Compare what several ROLES get for TASK: what they share, what differs, and why.

    One role is compared with the answer without a role, which the page of --html always has.

    \b
    rolebundle compare "Plan release 3.0" --roles product-manager,security-reviewer
    rolebundle compare "Plan 3.0" --roles product-manager,technical-writer --html roles.html
    rolebundle compare "What should I look at first?" --roles release-manager
    """
    role_ids = names_in(roles)
    is_one = len(role_ids) == 1
    request = request_from({"task": task, **call.fields})
    with call.engine() as engine:
        bundles = engine.retrieve_for_roles(
            request, role_ids, without_role=is_one or call.html_file is not None
        )
    if len(bundles) < 2:
        raise click.UsageError(
            "--roles: name at least two different roles, separated by commas; one is enough if "
            "the agent may ask without a role"
        )
    if call.html_file is not None:
        write_page(call.html_file, compare_page(compare_roles(bundles)))
    comparison = compare_roles(bundles if is_one else bundles[-len(role_ids) :])
    answer = comparison.model_dump(exclude_none=True)
    overlaps = [
        {**overlap.model_dump(), "first": overlap.first or NO_ROLE}
        for overlap in comparison.overlaps
    ]
    lines = [*field_lines({"in common": overlaps}), "", *comparison_lines(answer)]
    if is_one:
        lines += ["", *_rules(bundles[-1])]
        # What never matches is told to the owner: an agent may not see all documents.
        if "agent" not in call.fields:
            role = load_role(role_ids[0], call.folders)
            with open_reader(call.path) as corpus:
                found = unmatched_values(role, corpus, document_kinds(corpus), call.folders)
            # A role that comes with rolebundle is written for any folder.
            shown = found[:_MAX_UNMATCHED] if is_shipped(role.path) else found
            lines += [f"- {problem.place} {problem.message}" for problem in shown]
            if len(found) > len(shown):
                more = counted(len(found) - len(shown), "more rule")
                step = f"`rolebundle overlay lint {role_ids[0]}` names them"
                lines.append(f"- no passage matches {more} of {role_ids[0]}: {step}")
    parts = (part for line in lines for part in folded(line, terminal_width()))
    call.print(comparison, parts, exclude_none=True)
