"""How much of a lookup or a verification comes back."""

from __future__ import annotations

from collections.abc import Sequence

from rolebundle.contracts.lookup import (
    FoundPassage,
    Lookup,
    LookupMore,
    LookupOmitted,
    LookupReference,
    Lookups,
)
from rolebundle.contracts.verification import Verification, VerifyDetail
from rolebundle.interfaces.character_budget import Answer, cut_line, filled

_MIN_CHARS = 200
"""With less room, a document is named and not begun."""
_MAX_REFERENCE = 100


def shaped_lookup(lookup: Lookup, max_chars: int | None = None) -> Lookup:
    """A lookup, and how to fetch what did not fit.

    Args:
        lookup: what was looked up.
        max_chars: upper bound on the characters of its text. Whole passages come, from the first
            on. If the first does not fit, a part of it comes.
    """
    contents = filled([passage.content for passage in lookup.passages], max_chars)
    if sum(map(len, contents)) == sum(len(passage.content) for passage in lookup.passages):
        return lookup
    rest = lookup.passages[len(contents) :]
    omitted = LookupOmitted(
        passages=len(rest),
        content_chars=sum(len(passage.content) for passage in lookup.passages)
        - sum(map(len, contents)),
    )
    more = LookupMore(
        method="get", params=LookupReference(id=_reference(lookup, rest)), omitted=omitted
    )
    passages = [
        _with_content(passage, content)
        for passage, content in zip(lookup.passages, contents, strict=False)
    ]
    return lookup.model_copy(update={"passages": passages, "more": more})


def shaped_lookups(lookups: Lookups, max_chars: int | None = None) -> Lookups:
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
        update["next"] = cut_line(rest[0].reference, _MAX_REFERENCE)
    return lookups.model_copy(update=update)


def _reference(lookup: Lookup, passages: Sequence[FoundPassage]) -> str:
    """The reference of the passages that were left out. If there are none, of the whole."""
    first = passages[0].place if passages else None
    last = passages[-1].place if passages else None
    if first is None or last is None:
        return lookup.reference
    return f"#{lookup.document.document_id}:{first}:{last - first + 1}"


def _with_content(passage: FoundPassage, content: str) -> FoundPassage:
    length = len(passage.content)
    if len(content) == length:
        return passage
    update = {"content": content, "truncated": True, "content_chars": length}
    return passage.model_copy(update=update)


def shaped_verification(verification: Verification, detail: VerifyDetail) -> Answer:
    """The answer to `verify` as plain values.

    Args:
        verification: what was found.
        detail: `full` has all findings; `compact` those that fail or have a remedy.
    """
    values = verification.model_dump(exclude_none=True)
    if detail == "compact":
        values["findings"] = [
            finding for finding in values["findings"] if finding["fails"] or "remedy" in finding
        ]
    return values
