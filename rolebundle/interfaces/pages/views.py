"""Answers, and roles side by side, as pages, from templates.

A document's text is hostile. The templates escape all values, characters that hide or reorder text
are replaced by their names, and the Content-Security-Policy allows no script and no request.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rolebundle.contracts.bundle import RetrievalBundle, Scores, ScoreWeights
from rolebundle.contracts.terms import (
    LANES,
    MAY_BE_ASKED_FOR,
    REJECTIONS,
    WARNINGS,
    FallbackAction,
    RejectionCode,
)
from rolebundle.contracts.why import ComparedPassage, Comparison, RoleView
from rolebundle.interfaces.render import Terms, covered, in_plain_words, replica_note, reworded
from rolebundle.resources import data_file
from rolebundle.retrieval.passage_text import (
    heading_path,
    known_date,
    limited_use,
    passage_place,
    shown_name,
)
from rolebundle.scan import characters
from rolebundle.storage.stored_values import grouped

_TITLE_CHARS = 1_000
_UNSAFE = re.compile(f"[{characters.UNSAFE}\ud800-\udfff]")


def render(template: str, **values: Any) -> str:
    """A template of the folder ``templates`` as a whole page, with these variables."""
    return _environment().get_template(f"{template}.html.jinja").render(values)


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
def _environment() -> Environment:
    style = (files(__package__) / "style.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
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
        "style": Markup(style),
        "policy": f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        "heading_path": partial(heading_path, length=_TITLE_CHARS),
        "REJECTION_WORDS": REJECTION_WORDS,
        "ACTION_WORDS": ACTION_WORDS,
        "LANE_WORDS": LANE_WORDS,
        "LEVEL_CLASSES": LEVEL_CLASSES,
    }
    environment.filters |= {
        "number": lambda value, digits=3: f"{value:.{digits}f}",
        "percent": "{:.0%}".format,
        # With a real minus.
        "known_date": known_date,
        "name": shown_name,
        "place": passage_place,
        "signed": lambda value: f"{value:+.3f}".replace("-", "−"),
        "extract": lambda key, values: values[key],
        # Jinja's own `capitalize` lowers the rest.
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    return environment


# -- the closed vocabularies of the contracts, in plain words ------------------------------------

REJECTION_WORDS: Mapping[RejectionCode, str] = {code: row.plain for code, row in REJECTIONS.items()}
_WORDS = data_file(__file__, "views.toml")
ACTION_WORDS: Mapping[FallbackAction, str] = _WORDS["actions"]
LANE_WORDS: Mapping[str, str] = _WORDS["lanes"]
LEVEL_CLASSES: Mapping[str, str] = _WORDS["levels"]
"""The CSS class of a word that says how good something is; ``plain`` for others."""


# -- the views -------------------------------------------------------------------------------------

_OF_PASSAGES = ("NO_HIGH_TRUST_MATCH", "ONLY_SHARED_CORPUS", "STALE_DOMINANT")
"""Warnings that say nothing about an empty answer."""


def answer_page(bundle: RetrievalBundle) -> str:
    """The page of a bundle. As in its text, figures are only where a reader asks why."""
    bundle = reworded(bundle, in_plain_words)
    terms = Terms(bundle.query.lexical_query, bundle.query.task_text)
    lanes = [chunk.lanes for chunk in bundle.selected]
    lanes += [rejection.lanes or [] for rejection in bundle.rejected]
    groups = _rejected_groups(bundle)
    return render(
        "answer",
        bundle=bundle,
        lanes={lane: sum(lane in proposing for proposing in lanes) for lane in LANES},
        refused=[group for group in groups if group["code"] not in MAY_BE_ASKED_FOR],
        lower=[group for group in groups if group["code"] in MAY_BE_ASKED_FOR],
        passages=[
            {
                "chunk": chunk,
                "title": marked_text(
                    heading_path(chunk.title or chunk.document_id, chunk.headings, _TITLE_CHARS),
                    terms,
                ),
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
        ("rules", "lifted among the first", scores.lift, 1.0 if scores.lift else 0.0),
    )
    return [
        {"kind": kind, "name": name, "value": value, "weight": weight, "points": value * weight}
        for kind, name, value, weight in terms
        if weight and (value or kind != "diversity")
    ]


def _rejected_groups(bundle: RetrievalBundle) -> list[dict[str, Any]]:
    """The candidates by rejection code, with their number."""
    groups = grouped((rejection.reason, rejection) for rejection in bundle.rejected)
    # Documents in quarantine are counted but not listed.
    counts = bundle.rejected_summary
    groups |= {code: [] for code in counts if code not in groups}
    return [
        {"code": code, "rejections": rejections, "total": len(rejections) or counts[code]}
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


def compare_page(comparison: Comparison) -> str:
    """The page of a comparison. Its first role may be none."""
    roles = [view for view in comparison.roles if view.role_id]
    return render(
        "compare",
        comparison=comparison,
        answers=[(view, *_counts(view)) for view in roles],
        passages=sorted(comparison.passages, key=_best_rank),
    )


def _counts(view: RoleView) -> tuple[int, int]:
    """How many passages rules rejected for a role, and how many ranked too low."""
    lower = sum(view.rejected_summary.get(code, 0) for code in MAY_BE_ASKED_FOR)
    return sum(view.rejected_summary.values()) - lower, lower


def _best_rank(passage: ComparedPassage) -> int:
    ranks = [standing.rank for standing in passage.standings if standing.role_id and standing.rank]
    # Only without a role: in the order of that answer.
    return min(ranks) if ranks else passage.standings[0].rank or 0
