"""How much of an answer comes back: detail `ids`, `compact` or `full`, within `max_chars`.

The details `ids` and `compact` are projections of the full bundle. ``_PROJECTION`` lists their
fields. If an answer must fit a number of characters, it is shortened in this order:

1. contents, down to a snippet each, those of the last passages first;
2. the list of rejections;
3. the snippets, down to half their length;
4. passages, from the end.

If not even the first passage fits, other texts (titles, messages, the echo of the request) are
shortened and then left out before that passage is. The smallest answer has only codes and counts.
Counts are always those of the whole bundle, ids are never shortened, and every cut is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import MIN_MAX_CHARS
from rolebundle.contracts.terms import Detail
from rolebundle.interfaces.character_budget import (
    Answer,
    CharacterBudget,
    characters,
    cut_contents,
    cut_line,
    largest_fitting,
    with_content,
)
from rolebundle.text.counts import counted

COMPACT_CHARS = 8_000
"""Contents of a compact answer are shortened, so that it has this size without its absolute paths,
if the request has no `max_chars`."""
_MAX_LISTED_REJECTIONS = 5
_MAX_LINE = 100
_MAX_HEADINGS = 2
_DATE_LENGTH = len("2026-11-15")


_MIN_BUDGETS = (
    CharacterBudget(text=200, snippet=45),
    CharacterBudget(text=200, snippet=20),
    CharacterBudget(text=60, snippet=30),
    CharacterBudget(text=0),
)
_OF_SHOWN_PASSAGES = frozenset(
    {"LOW_DIVERSITY", "EVIDENCE_KIND_MISSING", "NAMES_MISSING", "WORDS_MISSING"}
)
"""Warnings about what the passages have. They are left out if no passage fits."""


# -- the fields of the smaller details ---------------------------------------------------------


def _text(text: str, budget: CharacterBudget) -> str | None:
    return cut_line(text, budget.text)


def _sentences(text: str, budget: CharacterBudget) -> str | None:
    """A text of several sentences, which has twice the space of one."""
    return cut_line(text, 2 * budget.text)


def _texts(texts: Sequence[str], budget: CharacterBudget) -> list[str | None]:
    return [cut_line(text, budget.text) for text in texts]


def _short_text(text: str, budget: CharacterBudget) -> str | None:
    return cut_line(text, min(_MAX_LINE, budget.text))


def _first_texts(texts: Sequence[str], budget: CharacterBudget) -> list[str]:
    """As many texts as fit on one line, but at least one."""
    width, cut_texts = min(_MAX_LINE, budget.text), list[str]()
    for text in texts:
        if cut_texts and sum(map(len, cut_texts)) + len(text) > width:
            break
        cut_texts.append(cut_line(text, width) or "")
    return cut_texts


def _short_fields(fields: Answer, budget: CharacterBudget) -> Answer:
    """The fields of a request but those that are too long to be repeated."""
    return {name: value for name, value in fields.items() if characters(value) <= _longest(budget)}


def _longest(budget: CharacterBudget) -> int:
    """The characters that one repeated field of a request may have."""
    return 5 * budget.text


def _uncut(text: str, budget: CharacterBudget) -> str | None:
    """A text that is of no use if it is cut."""
    return text if len(text) <= _longest(budget) else None


def _date(moment: str, _: CharacterBudget) -> str:
    return moment[:_DATE_LENGTH]


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of the full bundle, and how the smaller details show it.

    Attributes:
        path: names in the bundle, joined by dots. A list's name stands for each of its items.
        details: the details that have it.
        is_optional: left out if the budget has no characters for texts.
        shorten: makes the value fit the budget.
    """

    path: str
    details: tuple[Detail, ...] = ("ids", "compact")
    is_optional: bool = False
    shorten: Callable[[Any, CharacterBudget], Any] | None = None


def _optional(
    path: str,
    shorten: Callable[[Any, CharacterBudget], Any] | None = None,
    *,
    details: tuple[Detail, ...] = ("ids", "compact"),
) -> _Field:
    return _Field(path, details, True, shorten)


_COMPACT: tuple[Detail, ...] = ("compact",)
_PROJECTION = (
    _Field("version"),
    _Field("detail"),
    _Field("role_id"),
    _optional("query.task_text", _text),
    _optional("query.generated_at"),
    _Field("summary.total_candidates"),
    _Field("summary.selected_count"),
    # What the reader must know of all passages comes before them.
    _Field("provenance.trust_posture"),
    _optional("provenance.freshness_posture"),
    _Field("warnings.code"),
    _Field("warnings.message", shorten=_text),
    _Field("fallback.state"),
    _optional("fallback.states"),
    _Field("fallback.action"),
    _Field("fallback.message", shorten=_sentences),
    _Field("fallback.verdict"),
    _optional("constraints.id"),
    _optional("constraints.text", _sentences),
    _optional("constraints.effect"),
    _optional("constraints.reason", _text),
    _optional("constraints.decided_at", _date),
    _optional("constraints.locator"),
    _Field("selected.rank"),
    _Field("selected.chunk_id"),
    _Field("selected.document_id"),
    _optional("selected.source_id"),
    _optional("selected.title", _text),
    _optional("selected.headings", _texts, details=_COMPACT),
    _Field("selected.content", _COMPACT),
    _Field("selected.truncated", _COMPACT),
    _Field("selected.content_chars", _COMPACT),
    _Field("selected.scores.final"),
    _optional("selected.evidence_kinds", _texts, details=_COMPACT),
    _optional("selected.bridge_role"),
    _optional("selected.reasons_selected", _first_texts, details=_COMPACT),
    _optional("selected.metadata.trust_tier", details=_COMPACT),
    _optional("selected.metadata.freshness.status", details=_COMPACT),
    _optional("selected.metadata.freshness.updated_at", _date, details=_COMPACT),
    _optional("selected.metadata.freshness.inferred_at", _date, details=_COMPACT),
    # Flags and actions are never left out: the reader must know what the passage may be used for.
    _Field("selected.metadata.flags"),
    _Field("selected.metadata.mark.state"),
    _optional("selected.metadata.mark.marked_by", _text),
    _optional("selected.metadata.mark.reason", _text),
    _optional("selected.metadata.remembered_from", _text),
    _Field("selected.citation.locator"),
    _optional("selected.citation.anchor"),
    _optional("selected.citation.absolute_path", _uncut, details=_COMPACT),
    _Field("selected.allowed_actions"),
    _Field("rejected.chunk_id", _COMPACT),
    _Field("rejected.reason", _COMPACT),
    _Field("rejected.notes", _COMPACT, shorten=_short_text),
    _Field("rejected_summary"),
    _optional("kept_back"),
    _optional("approvals.approved_by", _text),
    _optional("approvals.action"),
    _optional("approvals.chunk_ids"),
    _optional("request", _short_fields),
    _optional("overlay"),
    _optional("corpus.file", _text),
    _optional("corpus.corpus_id"),
    _optional("corpus.generation"),
    _optional("corpus.documents"),
    _optional("corpus.chunks"),
    _optional("corpus.replica.publisher", _text),
    _optional("corpus.replica.generation"),
    _optional("corpus.replica.published_at"),
    _optional("corpus.replica.expires_at"),
    _optional("corpus.replica.age_hours"),
    _optional("diagnostics.candidate_pool_size"),
)
_Tree = Mapping[str, Any]


def _tree(detail: Detail, has_texts: bool) -> _Tree:
    """The fields of one detail as nested mappings, with a ``_Field`` at each leaf."""
    tree: dict[str, Any] = {}
    for field in _PROJECTION:
        if detail in field.details and (has_texts or not field.is_optional):
            *names, last = field.path.split(".")
            branch = tree
            for name in names:
                branch = branch.setdefault(name, {})
            branch[last] = field
    return tree


_TREES = {
    (detail, has_texts): _tree(detail, has_texts)
    for detail in ("ids", "compact")
    for has_texts in (False, True)
}


def _projected(values: Any, tree: _Tree, budget: CharacterBudget) -> Any:
    """What the tree names of the values. A name that is missing, or has nothing, is left out."""
    if isinstance(values, list):
        return [_projected(item, tree, budget) for item in values]
    fields: Answer = {}
    for name, branch in tree.items():
        if name not in values:
            continue
        value = values[name]
        if not isinstance(branch, _Field):
            value = _projected(value, branch, budget)
            value = None if value == {} else value
        elif branch.shorten is not None:
            value = branch.shorten(value, budget)
        if value is not None:
            fields[name] = value
    return fields


# -- bundles -----------------------------------------------------------------------------------


def shaped_bundle(bundle: RetrievalBundle, detail: Detail, max_chars: int | None = None) -> Answer:
    """The bundle as plain values, in the given detail, with its packet.

    A packet is never shortened. If it does not fit in ``max_chars``, it is left out.

    Args:
        bundle: what was retrieved.
        detail: as for :func:`_shaped_bundle`.
        max_chars: as for :func:`_shaped_bundle`.
    """
    if bundle.packet is None:
        return _shaped_bundle(bundle, detail, max_chars)
    without_packet, part = bundle.model_copy(update={"packet": None}), {"packet": bundle.packet}
    # Its braces are one character more than the comma before it.
    chars_left = None if max_chars is None else max_chars - characters(part) + 1
    if chars_left is not None and chars_left < MIN_MAX_CHARS:
        note = f"the packet of {counted(len(bundle.packet), 'character')} did not fit in max_chars"
        return _shaped_bundle(without_packet, detail, max_chars, [note])
    return _shaped_bundle(without_packet, detail, chars_left) | part


def _shaped_bundle(
    bundle: RetrievalBundle, detail: Detail, max_chars: int | None, notes: Sequence[str] = ()
) -> Answer:
    """The bundle without its packet as plain values, in the given detail.

    Args:
        bundle: what was retrieved.
        detail: `full` is the bundle itself. The others fit the contract `CompactBundle`.
        max_chars: upper bound on the answer as compact JSON, 1,000 or more. A full bundle that does
            not fit comes as a compact one, whose ``detail`` says so, with all rejections that fit.
            Without a bound no passage is left out.
        notes: what was left out already, in words.
    """
    values = bundle.model_dump(exclude_none=True)
    if detail == "full":
        if max_chars is None or characters(values) <= max_chars:
            return values
        return _BundleShaper(values, "compact", notes).within(max_chars, len(bundle.rejected))
    listed = min(_MAX_LISTED_REJECTIONS, len(bundle.rejected)) if detail == "compact" else 0
    shaper = _BundleShaper(values, detail, notes)
    if max_chars is not None:
        return shaper.within(max_chars, listed)
    paths = shaper.take_paths()
    for smallest in _MIN_BUDGETS[:2]:
        budget = replace(smallest, passages=len(bundle.selected))
        answer = shaper.answer(shaper.largest_budget(budget, COMPACT_CHARS, listed))
        if characters(answer) <= COMPACT_CHARS:
            break
    if detail == "compact":
        for passage, path in zip(answer["selected"], paths, strict=False):
            passage["citation"] |= {"absolute_path": path} if path else {}
    return answer


class _BundleShaper:
    """Shapes one bundle.

    Args:
        values: the full bundle as plain values, without nulls. They are changed.
        detail: `ids` or `compact`.
        notes: what was left out already, in words.
    """

    def __init__(self, values: Answer, detail: Detail, notes: Sequence[str]) -> None:
        self._values = values
        self._notes = notes
        self._detail = detail
        self._has_contents = detail == "compact"
        for rank, passage in enumerate(values["selected"], 1):
            _prepare(passage, rank)
        for rejection in values["rejected"]:
            rejection.setdefault("notes", "")

    def take_paths(self) -> list[str | None]:
        """Remove the absolute paths of the passages, and return them.

        So what is shown of the passages does not depend on where their files lie.
        """
        return [
            passage["citation"].pop("absolute_path", None) for passage in self._values["selected"]
        ]

    def within(self, max_chars: int, listed: int) -> Answer:
        """The largest answer of at most ``max_chars``, with up to ``listed`` rejections."""
        for smallest in _MIN_BUDGETS:
            budget = self.largest_budget(smallest, max_chars, listed)
            answer = self.answer(budget)
            if (budget.passages or not self._values["selected"]) and (
                characters(answer) <= max_chars
            ):
                break
        return answer

    def largest_budget(
        self, smallest: CharacterBudget, max_chars: int, listed: int
    ) -> CharacterBudget:
        """The budget, grown as far as the answer fits: first what is cut last."""

        def fits(budget: CharacterBudget) -> bool:
            return characters(self.answer(budget)) <= max_chars

        passages = self._values["selected"]
        budget = largest_fitting(smallest, "passages", len(passages), fits)
        if not fits(budget):
            return budget
        if budget.passages < len(passages):
            listed = 0
        budget = largest_fitting(budget, "snippet", 2 * budget.snippet, fits)
        budget = largest_fitting(budget, "rejections", listed, fits)
        content = sum(len(passage["content"]) for passage in passages) if self._has_contents else 0
        return largest_fitting(budget, "content", min(content, max_chars), fits)

    def answer(self, budget: CharacterBudget) -> Answer:
        """The answer that a budget gives."""
        bundle_values = self._values
        passages = bundle_values["selected"][: budget.passages]
        contents = cut_contents([passage["content"] for passage in passages], budget)
        shown_ids = {passage["chunk_id"] for passage in passages}
        rejected = _nearest(bundle_values["rejected"], budget.rejections)
        approvals = [
            {**approval, "chunk_ids": [name for name in approval["chunk_ids"] if name in shown_ids]}
            for approval in bundle_values.get("approvals", ())
        ]
        values = {
            **bundle_values,
            "detail": self._detail,
            "selected": [
                with_content(passage, content)
                for passage, content in zip(passages, contents, strict=True)
            ],
            "rejected": rejected,
            "warnings": [
                warning
                for warning in bundle_values["warnings"]
                if passages or warning["code"] not in _OF_SHOWN_PASSAGES
            ],
            **({"approvals": approvals} if approvals else {}),
        }
        content_chars = sum(map(len, contents)) if self._has_contents else 0
        if not (rejected or budget.text):
            del values["rejected"]
        answer: Answer = _projected(values, _TREES[self._detail, budget.text > 0], budget)
        answer["more"] = self._more(budget, len(passages), len(rejected), content_chars)
        return answer

    def _more(
        self, budget: CharacterBudget, passages: int, rejections: int, content_chars: int
    ) -> Answer:
        """How to fetch the whole bundle. A long field is not repeated but named in ``repeat``."""
        bundle_values = self._values
        fields = {"task": bundle_values["query"]["task_text"], **bundle_values.get("request", {})}
        repeated = _short_fields(fields, budget)
        contents = sum(len(passage["content"]) for passage in bundle_values["selected"])
        omitted = {
            "passages": len(bundle_values["selected"]) - passages,
            "rejections": len(bundle_values["rejected"]) - rejections,
            "content_chars": contents - content_chars,
        }
        more: Answer = {}
        if budget.text:
            more["method"] = "retrieve"
            task = {name: repeated.pop(name) for name in ("task",) if name in repeated}
            more["params"] = {
                **task,
                **({"role": bundle_values["role_id"]} if bundle_values["role_id"] else {}),
                **repeated,
                "now": bundle_values["query"]["generated_at"],
                "detail": "full",
            }
            if left_out := [name for name in fields if name not in more["params"]]:
                more["repeat"] = left_out
        more["omitted"] = omitted
        notes = [*self._notes]
        if omitted["passages"]:
            notes.append(f"{counted(omitted['passages'], 'passage')} did not fit in max_chars")
        if content_chars and omitted["content_chars"]:
            notes.append("get with a chunk_id gives a passage whole")
        if notes and budget.text:
            more["notes"] = notes
        return more


def _prepare(passage: Answer, rank: int) -> None:
    """Drop what a smaller detail would repeat, whatever the budget is."""
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
