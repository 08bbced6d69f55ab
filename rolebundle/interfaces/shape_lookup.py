"""How much of a lookup comes back within `max_chars`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rolebundle.contracts.lookup import FoundPassage, Lookup, LookupFailure, Lookups
from rolebundle.contracts.request import MIN_MAX_CHARS
from rolebundle.interfaces.character_budget import (
    Answer,
    CharacterBudget,
    characters,
    cut_contents,
    cut_line,
    largest_fitting,
    with_content,
)

_MAX_LINE = 100
_TEXT_CHARS = (200, 40, 12)
"""Of each text of a lookup that does not fit, one after the other."""
_LOOKUPS_CHARS = 300
"""Of an answer with several lookups, without them: its keys, counts and one reference."""


def shaped_lookup(lookup: Lookup, max_chars: int | None = None) -> Answer:
    """A lookup as plain values, and how to fetch what did not fit.

    Args:
        lookup: what was looked up.
        max_chars: upper bound on the answer as compact JSON, 1,000 or more. Attributes are left
            out, and passages from the end. A first passage that does not fit is shortened. If that
            is not enough, texts and ids are shortened, too, and end in an ellipsis.
    """
    answer = lookup.model_dump(exclude_none=True)
    if max_chars is None or characters(answer) <= max_chars:
        return answer
    # The text of a passage is worth more than the attributes of its document.
    answer["document"].pop("attributes", None)
    content = sum(len(passage.content) for passage in lookup.passages)
    for text in (None, *_TEXT_CHARS):
        head = answer if text is None else _short_head(lookup, text)

        def fits(budget: CharacterBudget, head: Answer = head) -> bool:
            return characters(_lookup_answer(lookup, head, budget)) <= max_chars

        budget = CharacterBudget(text=text or 0, content=content)
        budget = largest_fitting(budget, "passages", len(lookup.passages), fits)
        if not budget.passages:
            budget = replace(budget, passages=1, content=0)
            budget = largest_fitting(budget, "content", min(content, max_chars), fits)
        if fits(budget):
            break
    return _lookup_answer(lookup, head, budget)


def shaped_lookups(lookups: Lookups, max_chars: int | None = None) -> Answer:
    """Several lookups as plain values.

    Args:
        lookups: what was looked up.
        max_chars: upper bound on the answer as compact JSON, 2,000 or more. As many lookups come
            as fit, and the last one may be shortened. Of the texts of failures the beginning comes.
    """
    if max_chars is None or characters(lookups.model_dump(exclude_none=True)) <= max_chars:
        return lookups.model_dump(exclude_none=True)
    answer: Answer = {"lookups": [], "failures": []}
    chars_left = max_chars - _LOOKUPS_CHARS
    for failure in lookups.failures:
        values = {key: cut_line(value, _MAX_LINE) for key, value in failure.model_dump().items()}
        size = characters(values) + 1
        if chars_left - size < (MIN_MAX_CHARS if lookups.lookups else 0):
            break
        answer["failures"].append(values)
        chars_left -= size
    for lookup in lookups.lookups:
        if chars_left < MIN_MAX_CHARS:
            break
        answer["lookups"].append(shaped_lookup(lookup, chars_left))
        chars_left -= characters(answer["lookups"][-1]) + 1
    remaining: list[Lookup | LookupFailure] = [
        *lookups.lookups[len(answer["lookups"]) :],
        *lookups.failures[len(answer["failures"]) :],
    ]
    answer["omitted"] = len(remaining)
    return answer | ({"next": cut_line(remaining[0].reference, _MAX_LINE)} if remaining else {})


def _lookup_answer(lookup: Lookup, head: Answer, budget: CharacterBudget) -> Answer:
    shown_passages, omitted_passages = (
        lookup.passages[: budget.passages],
        lookup.passages[budget.passages :],
    )
    contents = cut_contents([passage.content for passage in shown_passages], budget)
    passages = [
        _lookup_passage(passage, content, budget.text)
        for passage, content in zip(shown_passages, contents, strict=True)
    ]
    omitted_chars = sum(len(passage.content) for passage in lookup.passages) - sum(
        map(len, contents)
    )
    omitted = {"passages": len(omitted_passages), "content_chars": omitted_chars}
    more: Answer = {
        "method": "get",
        "params": {"id": _reference(lookup, omitted_passages)},
        "omitted": omitted,
    }
    if budget.text and len(more["params"]["id"]) > 5 * budget.text:
        # The caller knows a long id already, and a part of it would be no id.
        del more["params"]
    return {**head, "passages": passages, "more": more}


def _reference(lookup: Lookup, passages: Sequence[FoundPassage]) -> str:
    """The reference of the passages that were left out. If there are none, of the whole."""
    first = passages[0].place if passages else None
    last = passages[-1].place if passages else None
    if first is None or last is None:
        return lookup.reference
    return f"#{lookup.document.document_id}:{first}:{last - first + 1}"


def _lookup_passage(passage: FoundPassage, content: str, text: int) -> Answer:
    values = passage.model_dump(exclude_none=True)
    if text:
        values |= {
            "chunk_id": cut_line(passage.chunk_id, text),
            "locator": cut_line(passage.locator, text),
            "headings": [cut_line(heading, text) for heading in passage.headings[-1:]],
        }
    return with_content(values, content)


def _short_head(lookup: Lookup, text: int) -> Answer:
    document = lookup.document.model_dump(exclude_none=True)
    document.pop("attributes", None)
    newer = [cut_line(document_id, text) for document_id in document.pop("superseded_by")[:1]]
    short = {
        name: value if name == "trust_tier" else cut_line(value, text)
        for name, value in document.items()
    }
    return {
        "reference": cut_line(lookup.reference, text),
        "kind": lookup.kind,
        "document": {**short, "superseded_by": newer},
    }
