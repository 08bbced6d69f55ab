"""How much of an answer comes back: detail `ids`, `compact` or `full`, within `max_chars`.

The details `ids` and `compact` are projections of the full bundle. ``_PROJECTION`` lists their
fields. `max_chars` bounds the text of the passages, which is what a model reads: whole passages
come, the best first. If the first one does not fit, a part of it comes. Titles, messages and the
like have bounds of their own. Counts are always those of the whole bundle, and every cut is marked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.terms import Detail
from rolebundle.interfaces.character_budget import Answer, cut_line, filled, with_content
from rolebundle.text.counts import counted

_MAX_LISTED_REJECTIONS = 5
_MAX_TEXT = 200
_MAX_LINE = 100
_MAX_FIELD = 1_000
"""A longer field of the request is not repeated."""
_MAX_HEADINGS = 2
_DATE_LENGTH = len("2026-11-15")


# -- the fields of the smaller details ---------------------------------------------------------


def _text(text: str) -> str:
    return cut_line(text, _MAX_TEXT)


def _sentences(text: str) -> str:
    """A text of several sentences, which has twice the space of one."""
    return cut_line(text, 2 * _MAX_TEXT)


def _texts(texts: Sequence[str]) -> list[str]:
    return [cut_line(text, _MAX_TEXT) for text in texts]


def _short_text(text: str) -> str:
    return cut_line(text, _MAX_LINE)


def _first_texts(texts: Sequence[str]) -> list[str]:
    """As many texts as fit on one line, but at least one."""
    cut_texts = list[str]()
    for text in texts:
        if cut_texts and sum(map(len, cut_texts)) + len(text) > _MAX_LINE:
            break
        cut_texts.append(cut_line(text, _MAX_LINE))
    return cut_texts


def _short_fields(fields: Answer) -> Answer:
    """The fields of a request but those that are too long to be repeated."""
    return {name: value for name, value in fields.items() if len(json.dumps(value)) <= _MAX_FIELD}


def _date(moment: str) -> str:
    return moment[:_DATE_LENGTH]


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of the full bundle, and how the smaller details show it.

    Attributes:
        path: names in the bundle, joined by dots. A list's name stands for each of its items.
        shorten: makes the value short.
        details: the details that have it.
    """

    path: str
    shorten: Callable[[Any], Any] | None = None
    details: tuple[Detail, ...] = ("ids", "compact")


_COMPACT: tuple[Detail, ...] = ("compact",)
_PROJECTION = (
    _Field("version"),
    _Field("detail"),
    _Field("role_id"),
    _Field("query.task_text", _text),
    _Field("query.generated_at"),
    _Field("summary.total_candidates"),
    _Field("summary.selected_count"),
    # What the reader must know of all passages comes before them.
    _Field("provenance.trust_posture"),
    _Field("provenance.freshness_posture"),
    _Field("warnings.code"),
    _Field("warnings.message", _text),
    _Field("fallback.state"),
    _Field("fallback.states"),
    _Field("fallback.action"),
    _Field("fallback.message", _sentences),
    _Field("fallback.verdict"),
    _Field("constraints.id"),
    _Field("constraints.text", _sentences),
    _Field("constraints.effect"),
    _Field("constraints.reason", _text),
    _Field("constraints.decided_at", _date),
    _Field("constraints.locator"),
    _Field("selected.rank"),
    _Field("selected.chunk_id"),
    _Field("selected.document_id"),
    _Field("selected.source_id"),
    _Field("selected.title", _text),
    _Field("selected.headings", _texts, details=_COMPACT),
    _Field("selected.content", details=_COMPACT),
    _Field("selected.truncated", details=_COMPACT),
    _Field("selected.content_chars", details=_COMPACT),
    _Field("selected.scores.final"),
    _Field("selected.evidence_kinds", _texts, details=_COMPACT),
    _Field("selected.bridge_role"),
    _Field("selected.reasons_selected", _first_texts, details=_COMPACT),
    _Field("selected.metadata.trust_tier", details=_COMPACT),
    _Field("selected.metadata.freshness.status", details=_COMPACT),
    _Field("selected.metadata.freshness.updated_at", _date, details=_COMPACT),
    _Field("selected.metadata.freshness.inferred_at", _date, details=_COMPACT),
    _Field("selected.metadata.flags"),
    _Field("selected.metadata.mark.state"),
    _Field("selected.metadata.mark.marked_by", _text),
    _Field("selected.metadata.mark.reason", _text),
    _Field("selected.metadata.remembered_from", _text),
    _Field("selected.citation.locator"),
    _Field("selected.citation.anchor"),
    _Field("selected.citation.absolute_path", details=_COMPACT),
    _Field("selected.allowed_actions"),
    _Field("rejected.chunk_id", details=_COMPACT),
    _Field("rejected.reason", details=_COMPACT),
    _Field("rejected.notes", _short_text, details=_COMPACT),
    _Field("rejected_summary"),
    _Field("kept_back"),
    _Field("approvals.approved_by", _text),
    _Field("approvals.action"),
    _Field("approvals.chunk_ids"),
    _Field("request", _short_fields),
    _Field("overlay"),
    _Field("corpus.file", _text),
    _Field("corpus.corpus_id"),
    _Field("corpus.generation"),
    _Field("corpus.documents"),
    _Field("corpus.chunks"),
    _Field("corpus.replica.publisher", _text),
    _Field("corpus.replica.generation"),
    _Field("corpus.replica.published_at"),
    _Field("corpus.replica.expires_at"),
    _Field("corpus.replica.age_hours"),
    _Field("diagnostics.candidate_pool_size"),
)
_Tree = Mapping[str, Any]


def _tree(detail: Detail) -> _Tree:
    """The fields of one detail as nested mappings, with a ``_Field`` at each leaf."""
    tree: dict[str, Any] = {}
    for field in _PROJECTION:
        if detail in field.details:
            *names, last = field.path.split(".")
            branch = tree
            for name in names:
                branch = branch.setdefault(name, {})
            branch[last] = field
    return tree


_TREES: Mapping[Detail, _Tree] = {"ids": _tree("ids"), "compact": _tree("compact")}


def _projected(values: Any, tree: _Tree) -> Any:
    """What the tree names of the values. A name that is missing, or has nothing, is left out."""
    if isinstance(values, list):
        return [_projected(item, tree) for item in values]
    fields: Answer = {}
    for name, branch in tree.items():
        if name not in values:
            continue
        value = values[name]
        if not isinstance(branch, _Field):
            value = _projected(value, branch)
            value = None if value == {} else value
        elif branch.shorten is not None:
            value = branch.shorten(value)
        if value is not None:
            fields[name] = value
    return fields


# -- bundles -----------------------------------------------------------------------------------


def shaped_bundle(bundle: RetrievalBundle, detail: Detail, max_chars: int | None = None) -> Answer:
    """The bundle as plain values, in the given detail.

    Args:
        bundle: what was retrieved.
        detail: `full` is the bundle itself. The others fit the contract `CompactBundle`.
        max_chars: upper bound on the characters of the passages' text. A full bundle that does not
            fit comes as a compact one, whose ``detail`` says so. A packet has been bounded already,
            and nothing else is shortened for it.
    """
    if bundle.packet is not None:
        without_packet = bundle.model_copy(update={"packet": None})
        return shaped_bundle(without_packet, detail) | {"packet": bundle.packet}
    values = bundle.model_dump(exclude_none=True)
    all_contents = [passage["content"] for passage in values["selected"]]
    words = {word.casefold() for term in bundle.query.lexical_query for word in term.split()}
    contents = all_contents if detail == "ids" else filled(all_contents, max_chars, words)
    if detail == "full":
        if contents == all_contents:
            return values
        detail = "compact"
    for rank, passage in enumerate(values["selected"], 1):
        _prepare(passage, rank)
    shown = [
        with_content(passage, content)
        for passage, content in zip(values["selected"], contents, strict=False)
    ]
    rejected = _nearest(values["rejected"], _MAX_LISTED_REJECTIONS if detail == "compact" else 0)
    omitted = {
        "passages": len(all_contents) - len(shown),
        "rejections": len(values["rejected"]) - len(rejected),
        "content_chars": sum(map(len, all_contents))
        - (sum(map(len, contents)) if detail == "compact" else 0),
    }
    fields = {**values, "detail": detail, "selected": shown, "rejected": rejected}
    if "approvals" in values:
        shown_ids = {passage["chunk_id"] for passage in shown}
        fields["approvals"] = [
            {**approval, "chunk_ids": [name for name in approval["chunk_ids"] if name in shown_ids]}
            for approval in values["approvals"]
        ]
    answer: Answer = _projected(fields, _TREES[detail])
    answer["more"] = _more(values, omitted, is_cut=any("truncated" in p for p in shown))
    return answer


def _more(values: Answer, omitted: Mapping[str, int], *, is_cut: bool) -> Answer:
    """How to fetch the whole bundle. A long field is not repeated but named in ``repeat``."""
    fields = {"task": values["query"]["task_text"], **values.get("request", {})}
    role = {"role": values["role_id"]} if values["role_id"] else {}
    repeated = _short_fields(fields)
    params = {
        **repeated,
        **role,
        "now": values["query"]["generated_at"],
        "detail": "full",
    }
    more: Answer = {"method": "retrieve", "params": params}
    if left_out := [name for name in fields if name not in params]:
        more["repeat"] = left_out
    more["omitted"] = omitted
    notes = list[str]()
    if omitted["passages"]:
        notes.append(f"{counted(omitted['passages'], 'passage')} did not fit in max_chars")
    if is_cut:
        notes.append("get with a chunk_id gives a passage whole")
    return more | ({"notes": notes} if notes else {})


def _prepare(passage: Answer, rank: int) -> None:
    """Drop what a smaller detail would repeat."""
    title, metadata = passage.setdefault("title", ""), passage["metadata"]
    passage["rank"] = passage.get("rank") or rank
    headings = [heading for heading in passage.pop("headings") if heading != title]
    if headings:
        passage["headings"] = headings[-_MAX_HEADINGS:]
    # The metadata of the answer says as much.
    trust = f"{metadata['trust_tier']} trust, {metadata['freshness']['status']}"
    passage["reasons_selected"] = [
        reason for reason in passage["reasons_selected"] if not reason.startswith(trust)
    ]


def _nearest(rejected: Sequence[Answer], count: int) -> list[Answer]:
    """The nearest misses of each code in turn, in the order of the bundle."""
    by_code: dict[str, list[int]] = {}
    for place, rejection in enumerate(rejected if count else ()):
        by_code.setdefault(rejection["reason"], []).append(place)
    turns = [place for turn in zip_longest(*by_code.values()) for place in turn]
    places = [place for place in turns if place is not None]
    return [rejected[place] for place in sorted(places[:count])]
