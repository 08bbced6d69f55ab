"""Answers, explanations, roles side by side and documents as pages, from templates.

A document's text is hostile. The templates escape all values, characters that hide or reorder text
are replaced by their names, and the Content-Security-Policy allows no script and no request.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rolebundle.contracts.bundle import (
    Rejection,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedChunk,
)
from rolebundle.contracts.lookup import Lookup
from rolebundle.contracts.terms import (
    LANES,
    RANKED_LOWER,
    REJECTIONS,
    WARNINGS,
    FallbackAction,
    RejectionCode,
)
from rolebundle.contracts.why import ComparedPassage, Comparison, FoundBy, RoleView, Why
from rolebundle.interfaces.render import Terms, covered, query_terms, replica_note
from rolebundle.retrieval.lanes import conditions
from rolebundle.retrieval.passage_text import limited_use
from rolebundle.scan.characters import (
    CONTROLS,
    EMBEDDINGS,
    FORMATS,
    OPERATORS,
    OVERRIDES,
    TAGS,
    ZERO_WIDTH,
)
from rolebundle.text.words import counted

_UNSAFE = re.compile(
    f"[{CONTROLS}{EMBEDDINGS}{FORMATS}{OPERATORS}{OVERRIDES}{TAGS}{ZERO_WIDTH}\ud800-\udfff]"
)
_POLICY = (
    "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
    "form-action {form_action}"
)


@dataclass(frozen=True)
class Site:
    """The application that serves a page: the addresses of its views, and who asks.

    Attributes:
        base: the path that all views share, with the token and a slash at its end. Empty for a
            file, which has no links.
        request: the fields of the request that the page shows, as in a form, so that a link to
            another view keeps the task, the role and the agent.
        is_owner: whether the pages are for the owner of the corpus.
        roles: the roles that can be asked with.
    """

    base: str = ""
    request: Mapping[str, str] = field(default_factory=dict)
    is_owner: bool = False
    roles: Sequence[str] = ()

    @property
    def is_live(self) -> bool:
        """Whether a server answers the links."""
        return bool(self.base)

    def to(self, view: str, **parameters: str | int | None) -> str:
        """The address of a view with these parameters, and for the same agent. Empty in a file."""
        if not self.is_live:
            return ""
        parameters = {"agent": self.request.get("agent"), **parameters}
        query_parameters = {
            name: value for name, value in parameters.items() if value not in (None, "")
        }
        query = urlencode(query_parameters, errors="surrogatepass")
        return f"{self.base}{view}{'?' if query else ''}{query}"

    def same(self, view: str, **changes: str | int | None) -> str:
        """The address of a view for the request of this page, with changes."""
        return self.to(view, **{**self.request, **changes})


FILE = Site()
"""A page in a file."""


def render(template: str, site: Site = FILE, **values: Any) -> str:
    """A template as a whole page.

    Args:
        template: its name in the folder ``templates``, without ``.html.jinja``.
        site: the application that serves the page.
        values: the variables of the template.
    """
    page = _environment().get_template(f"{template}.html.jinja")
    return page.render(site=site, policy=content_policy(is_live=site.is_live), **values)


def visible(text: str) -> str:
    """The text with the names of characters that hide or reorder text: ``⟦U+202E⟧``."""
    return _UNSAFE.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", text)


def marked_text(text: str, terms: Terms) -> Markup:
    """The whole text; each term of the query is in a ``mark`` element."""
    marked, place = Markup(), 0
    for start, end in covered(terms.find(text)):
        marked += escape(visible(text[place:start]))
        marked += Markup("<mark>{}</mark>").format(visible(text[start:end]))
        place = end
    return marked + escape(visible(text[place:]))


@cache
def content_policy(*, is_live: bool) -> str:
    """The Content-Security-Policy of a page; a live one may send forms to its own server."""
    digest = b64encode(sha256(style_sheet().encode()).digest()).decode()
    return _POLICY.format(digest=digest, form_action="'self'" if is_live else "'none'")


@cache
def style_sheet() -> str:
    """The style of all pages."""
    return (files(__package__) / "style.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Also every text that a template inserts without a filter. Markup is not changed.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    # The style sheet is our own, and safe markup.
    environment.globals |= {
        "style": Markup(style_sheet()),
        "counted": counted,
        "heading_path": heading_path,
        "REJECTION_WORDS": REJECTION_WORDS,
        "ACTION_WORDS": ACTION_WORDS,
        "LANE_WORDS": LANE_WORDS,
        "FOUND_BY_WORDS": FOUND_BY_WORDS,
        "LEVEL_CLASSES": LEVEL_CLASSES,
    }
    environment.filters |= {
        "number": lambda value, digits=3: f"{value:.{digits}f}",
        "thousands": "{:,}".format,
        "percent": "{:.0%}".format,
        # With a real minus.
        "signed": lambda value: f"{value:+.3f}".replace("-", "−"),
        "extract": lambda key, values: values[key],
        # Jinja's own `capitalize` lowers the rest.
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    return environment


# -- the closed vocabularies of the contracts, in plain words ------------------------------------

REJECTION_WORDS: Mapping[RejectionCode, str] = {code: row.plain for code, row in REJECTIONS.items()}
ACTION_WORDS: Mapping[FallbackAction, str] = {
    "continue": "The passages can be used.",
    "warn": "The passages can be used with care.",
    "degrade": "Use the passages only as hints, and say so.",
    "block": "Do not answer from these passages.",
}
LANE_WORDS: Mapping[str, str] = {"lexical": "the task's words", "semantic": "meaning"}
FOUND_BY_WORDS: Mapping[FoundBy, str] = {
    "task_words": "the task's words",
    "role_words": "the role's words",
    "meaning": "meaning",
}
LEVEL_CLASSES: Mapping[str, str] = {
    "continue": "good", "warn": "caution", "degrade": "caution", "block": "bad",
    "strong": "good", "mixed": "caution", "weak": "bad", "fresh": "good", "stale": "bad",
    "authoritative": "good", "preferred": "good", "general": "plain", "untrusted": "bad",
    "aging": "caution", "undated": "plain", "undeclared": "plain",
}  # fmt: skip
"""The CSS class of a word: how good it is."""


def heading_path(title: str, headings: Sequence[str]) -> str:
    """The title of a passage's document and the headings above it, without repeats."""
    return " › ".join(dict.fromkeys(text for text in (title, *headings) if text))


def is_rule(code: RejectionCode) -> bool:
    """Whether a rule of the owner rejected the passage, and not the ranking."""
    return code not in RANKED_LOWER


# -- the views -------------------------------------------------------------------------------------

_OF_PASSAGES = ("NO_HIGH_TRUST_MATCH", "ONLY_SHARED_CORPUS", "STALE_DOMINANT")
"""Warnings that say nothing about an empty answer."""


def answer_page(bundle: RetrievalBundle, site: Site = FILE) -> str:
    """The page of a bundle."""
    terms = query_terms(bundle)
    lanes = [chunk.lanes for chunk in bundle.selected]
    lanes += [rejection.lanes or [] for rejection in bundle.rejected]
    groups = _rejected_groups(bundle)
    return render(
        "answer",
        site,
        bundle=bundle,
        lanes={lane: sum(lane in proposing for proposing in lanes) for lane in LANES},
        refused=[group for group in groups if is_rule(group["code"])],
        lower=[group for group in groups if not is_rule(group["code"])],
        passages=[
            {
                "chunk": chunk,
                "title": marked_text(_title(chunk), terms),
                "text": marked_text(chunk.content, terms),
                "parts": score_parts(chunk.scores, bundle.weights),
                "limited_use": limited_use(chunk.allowed_actions),
            }
            for chunk in bundle.selected
        ],
        # The bar of every passage has the scale of the best one.
        top=max((chunk.scores.final for chunk in bundle.selected), default=1.0),
        warnings=_warnings(bundle),
        from_replica=replica_note(bundle),
    )


def _title(chunk: SelectedChunk) -> str:
    return heading_path(chunk.title or chunk.document_id, chunk.headings)


def score_parts(scores: Scores, weights: ScoreWeights | None) -> list[dict[str, Any]]:
    """The terms of a final score that are not 0. Empty without weights, as in older bundles.

    Of each the ``kind`` (CSS class of its colour), its ``name``, its ``value`` before it is
    multiplied, its ``weight``, and the ``points`` that it adds.
    """
    if weights is None:
        return []
    terms = (
        ("words", "the task's words", scores.lexical, weights.lexical),
        ("meaning", "its meaning", scores.semantic, weights.semantic),
        ("rules", "rules, trust and age", scores.metadata, weights.metadata),
        ("vocabulary", "the role's words", scores.rerank, weights.rerank),
        ("diversity", "source diversity", -scores.diversity_penalty, 1.0),
    )
    return [
        {
            "kind": kind,
            "name": name,
            "value": value,
            "weight": weight,
            "points": value * weight,
        }
        for kind, name, value, weight in terms
        if weight and (value or kind != "diversity")
    ]


def _rejected_groups(bundle: RetrievalBundle) -> list[dict[str, Any]]:
    """The candidates by rejection code, with their number."""
    groups: dict[RejectionCode, list[Rejection]] = {}
    for rejection in bundle.rejected:
        groups.setdefault(rejection.reason, []).append(rejection)
    # Documents in quarantine are counted but not listed.
    for code in bundle.rejected_summary:
        groups.setdefault(code, [])
    return [
        {
            "code": code,
            "rejections": rejections,
            "total": len(rejections) or bundle.rejected_summary[code],
        }
        for code, rejections in groups.items()
    ]


def _warnings(bundle: RetrievalBundle) -> list[tuple[str, str, str]]:
    """Code, message, and what to do, of each warning that says something about this answer."""
    lead = bundle.fallback.message if bundle.fallback else ""
    return [
        # The message of the fallback is above the warnings.
        (
            warning.code,
            "" if warning.message == lead else warning.message,
            WARNINGS[warning.code].advice,
        )
        for warning in bundle.warnings
        if bundle.selected or warning.code not in _OF_PASSAGES
    ]


_RESULTS = {
    (True, True): ("passed", "good"),
    (True, False): ("stopped here", "bad"),
    (False, True): ("not reached; would pass", "plain"),
    (False, False): ("not reached; would stop here, too", "caution"),
}
"""Whether a passage reached a step and passes it → the words, and the CSS class."""


def why_page(why: Why, site: Site = FILE) -> str:
    """The page of an explanation."""
    parts = score_parts(why.score.scores, why.score.weights)
    # Before the penalty for source diversity the parts are longer than the score.
    longest = sum(part["points"] for part in parts if part["points"] > 0)
    where = why.request.where
    return render(
        "why",
        site,
        why=why,
        verdict=_verdict(why),
        steps=steps_of(why),
        conditions=[condition.wanted for condition in conditions(where)] if where else [],
        parts=parts,
        top=max(longest, *(rival.final for rival in why.lost_to), 0.0),
        rules=[*why.filter.factors, *why.score.vocabulary],
    )


def steps_of(why: Why) -> dict[str, tuple[str, str]]:
    """What each step did, or would have done if the passage had reached it, in words; its class."""
    passed = {
        "searched": why.step != "where",
        "proposed": any(lane.proposed for lane in why.lanes),
        "allowed": why.filter.allowed,
        "selected": why.score.code is None,
    }
    results, is_reached = {}, True
    for step, is_passed in passed.items():
        results[step] = _RESULTS[is_reached, is_passed]
        is_reached = is_reached and is_passed
    return results


def _verdict(why: Why) -> str:
    if why.outcome == "selected":
        return f"Yes, at rank {why.rank} of {why.selected_count}."
    if why.step == "where":
        return "No: the request leaves its document out."
    if why.code is None:
        return "No: no lane proposed it."
    return f"No: {REJECTION_WORDS[why.code]}."


def compare_page(comparison: Comparison, site: Site = FILE) -> str:
    """The page of a comparison. Its first role may be none."""
    roles = [view for view in comparison.roles if view.role_id]
    return render(
        "compare",
        site,
        comparison=comparison,
        answers=[(view, *_counts(view)) for view in roles],
        passages=sorted(comparison.passages, key=_best_rank),
        chosen=[view.role_id for view in roles],
    )


def _counts(view: RoleView) -> tuple[int, int]:
    """How many passages rules rejected for a role, and how many ranked too low."""
    refused = sum(n for code, n in view.rejected_summary.items() if is_rule(code))
    return refused, sum(view.rejected_summary.values()) - refused


def _best_rank(passage: ComparedPassage) -> int:
    ranks = [standing.rank for standing in passage.standings if standing.role_id and standing.rank]
    # Only without a role: in the order of that answer.
    return min(ranks) if ranks else passage.standings[0].rank or 0


MAX_PASSAGES = 50
"""How many passages of a document are shown at once."""


def document_page(
    lookup: Lookup, now: datetime, site: Site, *, chunk: str = "", first: int = 1
) -> str:
    """The page of a document.

    Args:
        lookup: the document with all passages that can be read.
        now: the time by which its validity is judged.
        site: the application around the page.
        chunk: the chunk id of a passage; the page has it.
        first: place of the first passage of the page, from 1, if no passage was named.
    """
    numbers = {passage.chunk_id: number for number, passage in enumerate(lookup.passages)}
    number = numbers.get(chunk, max(0, min(first, len(numbers)) - 1))
    first = number - number % MAX_PASSAGES + 1
    later = first + MAX_PASSAGES
    return render(
        "document",
        site,
        document=lookup.document,
        passages=lookup.passages[first - 1 : later - 1],
        chosen=chunk,
        remarks=[*_remarks(lookup, now)],
        metadata=lookup.document.model_dump(exclude_none=True),
        first=first,
        total=len(lookup.passages),
        earlier=first - MAX_PASSAGES if first > 1 else None,
        later=later if later <= len(lookup.passages) else None,
    )


def _remarks(lookup: Lookup, now: datetime) -> Iterator[str]:
    """What limits the use of the document."""
    document = lookup.document
    if document.superseded_by:
        yield "A newer document replaces it."
    if document.valid_from and datetime.fromisoformat(document.valid_from) > now:
        yield "It is not valid yet."
    if document.valid_until and datetime.fromisoformat(document.valid_until) < now:
        yield "It is no longer valid."
    flags = next((passage.flags for passage in lookup.passages if passage.flags), None)
    if flags:
        yield f"The scan flagged it: {', '.join(flags)}."
    if {"rejected", "disputed"} & {item.mark.state for item in lookup.passages if item.mark}:
        yield "Some of it is marked as wrong or disputed."
    for warning in lookup.warnings or ():
        yield f"{warning.message}."
