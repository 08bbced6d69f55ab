"""How much of an answer comes back: detail `ids`, `compact` or `full`, within `max_chars`.

The details `ids` and `compact` are projections of the full bundle, whose fields
:mod:`rolebundle.contracts.bundle` lists. `max_chars` bounds the text of the passages, which is
what a model reads: whole passages come, the best first. If the first one does not fit, a part of it
comes. Titles, messages and the like have bounds of their own. Counts are always those of the whole
bundle, and every cut is marked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.compact_bundle import FIELDS, Form, More, field_tree
from rolebundle.contracts.lookup import FoundPassage, Lookup, Lookups
from rolebundle.contracts.terms import Detail
from rolebundle.retrieval.passage_text import best_part, one_line, words_searched
from rolebundle.storage.stored_values import grouped
from rolebundle.text.words import counted

if TYPE_CHECKING:
    from rolebundle.contracts.verification import Verification, VerifyDetail

Answer = dict[str, Any]

_MAX_LISTED_REJECTIONS = 5
_MAX_TEXT = 200
_MAX_LINE = 100
_MAX_FIELD = 1_000
"""A longer field of the request is not repeated."""
_MAX_HEADINGS = 2
_MIN_CHARS = 200
"""With less room, a document is named and not begun."""
_DATE_LENGTH = len("2026-11-15")


def filled(
    contents: Sequence[str], max_chars: int | None, words: Collection[str] = ()
) -> list[str]:
    """The first contents that fit together. If the first one does not fit, a part of it.

    Args:
        contents: texts of passages, the most important first.
        max_chars: how many characters they may have together; ``None`` for no bound.
        words: the words that the part should have, casefolded.
    """
    if max_chars is None:
        return [*contents]
    ends = accumulate(map(len, contents))
    fitting = [content for content, end in zip(contents, ends, strict=True) if end <= max_chars]
    return fitting or [best_part(content, words, max_chars) for content in contents[:1]]


def _first_texts(texts: Sequence[str]) -> list[str]:
    """As many texts as fit on one line, but at least one."""
    cut_texts = list[str]()
    for text in texts:
        if cut_texts and sum(map(len, cut_texts)) + len(text) > _MAX_LINE:
            break
        cut_texts.append(one_line(text, _MAX_LINE))
    return cut_texts


def _short_fields(fields: Answer) -> Answer:
    """The fields of a request but those that are too long to be repeated."""
    return {name: value for name, value in fields.items() if len(json.dumps(value)) <= _MAX_FIELD}


def _cut_to(length: int) -> Callable[[Any], Any]:
    """Cut a text, or each of several."""

    def cut(value: str | list[str]) -> str | list[Any]:
        return one_line(value, length) if isinstance(value, str) else [*map(cut, value)]

    return cut


_FORMS: Mapping[Form, Callable[[Any], Any]] = {
    "whole": lambda value: value,
    "text": _cut_to(_MAX_TEXT),
    "sentences": _cut_to(2 * _MAX_TEXT),
    "line": _cut_to(_MAX_LINE),
    "first": _first_texts,
    "date": lambda moment: moment[:_DATE_LENGTH],
    "fields": _short_fields,
}


def _projected(values: Any, tree: Mapping[str, Any]) -> Any:
    """What the tree names of the values. A name that is missing, or has nothing, is left out."""
    if isinstance(values, list):
        return [_projected(item, tree) for item in values]
    fields: Answer = {}
    for name, branch in tree.items():
        if name not in values:
            continue
        value = values[name]
        if isinstance(branch, str):
            value = _FORMS[FIELDS[branch]](value)
        else:
            value = _projected(value, branch)
            value = None if value == {} else value
        if value is not None:
            fields[name] = value
    return fields


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
    words = words_searched(bundle.query.lexical_query, bundle.query.task_text)
    contents = all_contents if detail == "ids" else filled(all_contents, max_chars, words)
    if detail == "full":
        if contents == all_contents:
            return values
        detail = "compact"
    for rank, passage in enumerate(values["selected"], 1):
        _prepare(passage, rank)
    shown = [
        {**passage, **_cut_content(passage["content"], content)}
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
    answer: Answer = _projected(fields, field_tree(detail))
    answer["more"] = _more(values, omitted, is_cut=any("truncated" in p for p in shown))
    return answer


def _cut_content(whole: str, content: str) -> Answer:
    """The fields of a passage whose content may be cut; none if it is whole."""
    if len(content) == len(whole):
        return {}
    return {"content": content, "truncated": True, "content_chars": len(whole)}


def _more(values: Answer, omitted: Mapping[str, int], *, is_cut: bool) -> Answer:
    """How to fetch the whole bundle. A long field is not repeated but named in ``repeat``."""
    fields = {"task": values["query"]["task_text"], **values.get("request", {})}
    role = {"role": values["role_id"]} if values["role_id"] else {}
    repeated = _short_fields(fields)
    params = {**repeated, **role, "now": values["query"]["generated_at"], "detail": "full"}
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
    trust = f"{metadata['trust_tier']} trust, "
    passage["reasons_selected"] = [
        reason for reason in passage["reasons_selected"] if not reason.startswith(trust)
    ]


def _nearest(rejected: Sequence[Answer], count: int) -> list[Answer]:
    """The nearest misses of each code in turn, in the order of the bundle."""
    listed = enumerate(rejected if count else ())
    by_code = grouped((rejection["reason"], place) for place, rejection in listed)
    turns = [place for turn in zip_longest(*by_code.values()) for place in turn]
    places = [place for place in turns if place is not None]
    return [rejected[place] for place in sorted(places[:count])]


def shaped_lookup(lookup: Lookup, max_chars: int | None) -> Lookup:
    """A lookup, and how to fetch what did not fit.

    Args:
        lookup: what was looked up.
        max_chars: upper bound on the characters of its text. Whole passages come, from the first
            on. If the first does not fit, a part of it comes.
    """
    contents = filled([passage.content for passage in lookup.passages], max_chars)
    omitted_chars = sum(len(p.content) for p in lookup.passages) - sum(map(len, contents))
    if not omitted_chars:
        return lookup
    rest = lookup.passages[len(contents) :]
    more = More(
        method="get",
        params={"id": _reference(lookup, rest)},
        omitted={"passages": len(rest), "content_chars": omitted_chars},
    )
    passages = [
        passage.model_copy(update=_cut_content(passage.content, content))
        for passage, content in zip(lookup.passages, contents, strict=False)
    ]
    return lookup.model_copy(update={"passages": passages, "more": more})


def shaped_lookups(lookups: Lookups, max_chars: int | None) -> Lookups:
    """Several lookups, of which as many come as fit. The last one may be shortened.

    Args:
        lookups: what was looked up.
        max_chars: upper bound on the characters of their texts.
    """
    if max_chars is None:
        return lookups
    shown, room = list[Lookup](), max_chars
    for lookup in lookups.lookups:
        if room < _MIN_CHARS:
            break
        shown.append(shaped_lookup(lookup, room))
        room -= sum(len(passage.content) for passage in shown[-1].passages)
    rest = lookups.lookups[len(shown) :]
    update: dict[str, object] = {"lookups": shown, "omitted": len(rest)}
    if rest:
        update["next"] = one_line(rest[0].reference, _MAX_LINE)
    return lookups.model_copy(update=update)


def _reference(lookup: Lookup, passages: Sequence[FoundPassage]) -> str:
    """The reference of the passages that were left out. If there are none, of the whole."""
    first = passages[0].place if passages else None
    last = passages[-1].place if passages else None
    if first is None or last is None:
        return lookup.reference
    return f"#{lookup.document.document_id}:{first}:{last - first + 1}"


def shaped_verification(verification: Verification, detail: VerifyDetail) -> Answer:
    """The answer to `verify` as plain values.

    Args:
        verification: what was found.
        detail: `full` has all findings; `compact` those that are not clean or have a remedy.
    """
    values = verification.model_dump(exclude_none=True)
    if detail == "compact":
        values["findings"] = [
            finding
            for finding in values["findings"]
            if finding["verdict"] != "clean" or "remedy" in finding
        ]
    return values
