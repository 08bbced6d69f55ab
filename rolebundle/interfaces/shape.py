"""How much of an answer comes back: `ids`, `compact` or `full`, within a number of characters.

Where a bundle has to be shortened, it gives way in this order: contents down to a snippet, those
of the last passages first; the list of rejections; the snippets down to half; passages from the
end. Where not even the first passage fits, texts (titles, messages, the echo of the request) give
way before it does; at the least only codes and counts are left. Counts are always those of the
whole bundle, ids are never shortened, and every cut is marked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rolebundle.contracts.bundle import Rejection, RetrievalBundle, SelectedChunk
from rolebundle.contracts.lookup import FoundPassage, Lookup
from rolebundle.contracts.terms import Detail

Answer = dict[str, Any]

COMPACT_CHARACTERS = 8_000
"""What a compact answer aims at unless told otherwise: contents are shortened for it."""
_LISTED = 5
_LINE = 100
_HEADINGS = 2
_DATE = len("2026-11-15")
_BREAK = 40
"""A content is cut before a word, where one begins within so many characters; and what is cut has
to be longer than the marks of the cut are."""


@dataclass(frozen=True, slots=True)
class Room:
    """What an answer has room for.

    ``snippet``, ``content`` and ``text`` are characters: of each passage's content at least, of
    contents beyond that, all together, the best passages first, and of each other text that may be
    shortened. With no room for texts only codes, counts and ids are left.
    """

    text: int
    snippet: int = 0
    content: int = 0
    passages: int = 0
    rejections: int = 0


_ROOMS = (Room(text=200, snippet=45), Room(text=60, snippet=30), Room(text=0))
_LOOKUP_TEXTS = (200, 40, 12)


def shaped_bundle(bundle: RetrievalBundle, detail: Detail, max_chars: int | None = None) -> Answer:
    """The bundle as plain values, with as much of it as ``detail`` names.

    Args:
        bundle: what was retrieved.
        detail: `full` is the bundle itself; the others fit the contract `CompactBundle`.
        max_chars: bound on the answer as compact JSON, 1,000 or more. A full bundle that does not
            fit comes as a compact one, whose ``detail`` says so, with all rejections that fit.
            Without a bound no passage is left out.
    """
    if detail == "full":
        whole = bundle.model_dump(exclude_none=True)
        if max_chars is None or characters(whole) <= max_chars:
            return whole
        return _bounded(bundle, "compact", max_chars, len(bundle.rejected))
    listed = min(_LISTED, len(bundle.rejected)) if detail == "compact" else 0
    if max_chars is not None:
        return _bounded(bundle, detail, max_chars, listed)
    room = replace(_ROOMS[0], passages=len(bundle.selected))
    return _compact(bundle, detail, _filled(room, bundle, detail, COMPACT_CHARACTERS, listed))


def shaped_lookup(lookup: Lookup, max_chars: int | None = None) -> Answer:
    """What a lookup found, as plain values, and how to fetch what there was no room for.

    Args:
        lookup: what was found.
        max_chars: bound on the answer as compact JSON, 1,000 or more. Passages are left out from
            the end; a first passage that does not fit is shortened. Where that is not enough,
            texts and ids are shortened, too, and end in an ellipsis.
    """
    whole = lookup.model_dump(exclude_none=True)
    if max_chars is None or characters(whole) <= max_chars:
        return whole
    wanted = sum(len(passage.content) for passage in lookup.passages)
    for text in (None, *_LOOKUP_TEXTS):
        head = whole if text is None else _shortened_head(lookup, text)

        def fits(room: Room, head: Answer = head) -> bool:
            return characters(_lookup_part(lookup, head, room)) <= max_chars

        room = _grown(Room(text=text or 0, content=wanted), "passages", len(lookup.passages), fits)
        if not room.passages:
            room = _grown(
                replace(room, passages=1, content=0), "content", min(wanted, max_chars), fits
            )
        if fits(room):
            break
    return _lookup_part(lookup, head, room)


def characters(answer: Answer) -> int:
    """The length of an answer as compact JSON, as the servers write it."""
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def _bounded(bundle: RetrievalBundle, detail: Detail, most: int, listed: int) -> Answer:
    for least in _ROOMS:
        room = _filled(least, bundle, detail, most, listed)
        if room.passages or not bundle.selected:
            answer = _compact(bundle, detail, room)
            if characters(answer) <= most:
                return answer
    return _compact(bundle, detail, room)


def _filled(least: Room, bundle: RetrievalBundle, detail: Detail, most: int, listed: int) -> Room:
    """The room grown as far as it fits: first what gives way last."""

    def fits(room: Room) -> bool:
        return characters(_compact(bundle, detail, room)) <= most

    room = _grown(least, "passages", len(bundle.selected), fits)
    if not fits(room):
        return room
    if room.passages < len(bundle.selected):
        listed = 0
    room = _grown(room, "snippet", 2 * room.snippet, fits)
    room = _grown(room, "rejections", listed, fits)
    wanted = sum(len(chunk.content) for chunk in bundle.selected) if detail == "compact" else 0
    return _grown(room, "content", min(wanted, most), fits)


def _grown(room: Room, name: str, most: int, fits: Callable[[Room], bool]) -> Room:
    low, high = getattr(room, name), most
    largest = replace(room, **{name: max(low, high)})
    if fits(largest):
        return largest
    while low < high - 1:
        middle = (low + high) // 2
        if fits(replace(room, **{name: middle})):
            low = middle
        else:
            high = middle
    return replace(room, **{name: low})


def _compact(bundle: RetrievalBundle, detail: Detail, room: Room) -> Answer:
    contents = _contents([chunk.content for chunk in bundle.selected[: room.passages]], room)
    passages = [
        _passage(rank, chunk, content if detail == "compact" else None, room)
        for rank, (chunk, content) in enumerate(zip(bundle.selected, contents, strict=False), 1)
    ]
    rejected = _nearest(bundle.rejected, room.rejections)
    provenance, fallback, corpus = bundle.provenance, bundle.fallback, bundle.corpus
    shown = sum(map(len, contents)) if detail == "compact" else 0
    answer: Answer = {
        "version": bundle.version,
        "detail": detail,
        "role_id": bundle.role_id,
        "query": {
            "task_text": _line(bundle.query.task_text, room.text),
            "generated_at": bundle.query.generated_at,
        },
        "summary": {
            "total_candidates": bundle.summary.total_candidates,
            "selected_count": bundle.summary.selected_count,
        },
        "selected": passages,
        "rejected": [_rejection(one, room) for one in rejected] if detail == "compact" else None,
        "rejected_summary": dict(bundle.rejected_summary),
        "provenance": {
            "trust_posture": provenance.trust_posture,
            "freshness_posture": provenance.freshness_posture,
        },
        "warnings": [
            _present({"code": one.code, "message": _line(one.message, room.text)})
            for one in bundle.warnings
        ],
        "fallback": fallback
        and _present(
            {
                "state": fallback.state,
                "action": fallback.action,
                "message": _line(fallback.message, room.text),
                "verdict": fallback.verdict,
            }
        ),
    }
    if room.text:
        answer |= {
            "approvals": _approvals(bundle, passages, room.text),
            "request": bundle.request and bundle.request.model_dump(exclude_none=True),
            "overlay": bundle.overlay and bundle.overlay.model_dump(),
            "corpus": corpus
            and {
                "file": _line(corpus.file, room.text),
                "corpus_id": corpus.corpus_id,
                "generation": corpus.generation,
                "documents": corpus.documents,
                "chunks": corpus.chunks,
            },
            "diagnostics": {"candidate_pool_size": bundle.diagnostics.candidate_pool_size},
        }
    answer["query"] = _present(answer["query"])
    answer["more"] = _more(bundle, room, len(passages), len(rejected), shown)
    return _present(answer)


def _passage(rank: int, chunk: SelectedChunk, content: str | None, room: Room) -> Answer:
    passage: Answer = {
        "rank": chunk.rank or rank,
        "chunk_id": chunk.chunk_id,
        "document_id": chunk.document_id,
    }
    if room.text:
        passage |= {"source_id": chunk.source_id, "title": _line(chunk.title or "", room.text)}
    if content is not None:
        if room.text:
            own = [heading for heading in chunk.headings if heading != chunk.title]
            passage["headings"] = [_line(one, room.text) for one in own[-_HEADINGS:]] or None
        passage["content"] = content
        if len(content) < len(chunk.content):
            passage |= {"truncated": True, "content_chars": len(chunk.content)}
    passage["scores"] = {"final": chunk.scores.final}
    if content is not None and room.text:
        tier, freshness = chunk.metadata.trust_tier, chunk.metadata.freshness
        dated = freshness.updated_at and freshness.updated_at[:_DATE]
        # The metadata below says as much.
        said = f"{tier} trust, {freshness.status}"
        reasons = [reason for reason in chunk.reasons_selected if reason != said]
        passage["reasons_selected"] = _one_line_of(reasons, min(_LINE, room.text))
        passage["metadata"] = {
            "trust_tier": tier,
            "freshness": _present({"status": freshness.status, "updated_at": dated}),
        }
    passage["citation"] = _present({"locator": chunk.citation.locator})
    # Never left out: what reads the passage has to know how far it may go.
    return _present({**passage, "allowed_actions": chunk.allowed_actions})


def _approvals(bundle: RetrievalBundle, passages: list[Answer], text: int) -> list[Answer] | None:
    shown = {passage["chunk_id"] for passage in passages}
    made = [one.model_dump() for one in bundle.approvals or ()]
    for one in made:
        one["approved_by"] = _line(one["approved_by"], text)
        one["chunk_ids"] = [name for name in one["chunk_ids"] if name in shown]
    return made or None


def _more(
    bundle: RetrievalBundle, room: Room, passages: int, rejections: int, shown: int
) -> Answer:
    """How to fetch the whole bundle. A task too long to be said twice has to be sent again."""
    task, echo = bundle.query.task_text, bundle.request
    short = len(task) <= 5 * room.text
    params = _present(
        {
            "task": task if short else None,
            "role": bundle.role_id or None,
            **(echo.model_dump(exclude_none=True) if echo else {}),
            "now": bundle.query.generated_at,
            "detail": "full",
        }
    )
    omitted = {
        "passages": len(bundle.selected) - passages,
        "rejections": len(bundle.rejected) - rejections,
        "content_chars": sum(len(chunk.content) for chunk in bundle.selected) - shown,
    }
    notes = []
    if omitted["passages"]:
        notes.append(f"{omitted['passages']} passages did not fit in max_chars")
    if shown and omitted["content_chars"]:
        notes.append("get with a chunk_id gives a passage whole")
    return _present(
        {
            "method": "retrieve",
            "params": params if room.text else None,
            "repeat": None if short or not room.text else ["task"],
            "omitted": omitted,
            "notes": notes if notes and room.text else None,
        }
    )


def _nearest(rejected: Sequence[Rejection], count: int) -> list[Rejection]:
    """The nearest misses of each code in turn, in the order of the bundle."""
    by_code: dict[str, list[int]] = {}
    for place, one in enumerate(rejected if count else ()):
        by_code.setdefault(one.reason, []).append(place)
    turns = [place for turn in zip_longest(*by_code.values()) for place in turn]
    places = [place for place in turns if place is not None]
    return [rejected[place] for place in sorted(places[:count])]


def _rejection(one: Rejection, room: Room) -> Answer:
    notes = _line(one.notes or "", min(_LINE, room.text))
    return _present({"chunk_id": one.chunk_id, "reason": one.reason, "notes": notes})


def _lookup_part(lookup: Lookup, head: Answer, room: Room) -> Answer:
    shown, rest = lookup.passages[: room.passages], lookup.passages[room.passages :]
    contents = _contents([passage.content for passage in shown], room)
    passages = [_found(*one, room.text) for one in zip(shown, contents, strict=True)]
    left = sum(len(one.content) for one in lookup.passages) - sum(map(len, contents))
    omitted = {"passages": len(rest), "content_chars": left}
    more: Answer = {"method": "get", "params": {"id": _rest(lookup, rest)}, "omitted": omitted}
    if room.text and len(more["params"]["id"]) > 5 * room.text:
        # An id of such a length is known to who asked, and a part of it would name nothing.
        del more["params"]
    return {**head, "passages": passages, "more": more}


def _rest(lookup: Lookup, rest: Sequence[FoundPassage]) -> str:
    """The reference of what was left out; with nothing left out, of the whole again."""
    first = rest[0].place if rest else None
    last = rest[-1].place if rest else None
    if first is None or last is None:
        return lookup.reference
    return f"#{lookup.document.document_id}:{first}:{last - first + 1}"


def _found(passage: FoundPassage, content: str, text: int) -> Answer:
    found = passage.model_dump(exclude_none=True)
    if text:
        found |= {
            "chunk_id": _line(passage.chunk_id, text),
            "locator": _line(passage.locator, text),
            "headings": [_line(one, text) for one in passage.headings[-1:]],
        }
    found["content"] = content
    if len(content) < len(passage.content):
        found |= {"truncated": True, "content_chars": len(passage.content)}
    return found


def _shortened_head(lookup: Lookup, text: int) -> Answer:
    document = lookup.document.model_dump(exclude_none=True)
    newer = [_line(one, text) for one in document.pop("superseded_by")[:1]]
    short = {
        name: value if name == "trust_tier" else _line(value, text)
        for name, value in document.items()
    }
    return {
        "reference": _line(lookup.reference, text),
        "kind": lookup.kind,
        "document": {**short, "superseded_by": newer},
    }


def _contents(contents: Sequence[str], room: Room) -> list[str]:
    shown, left = [], room.content
    for content in contents:
        shown.append(_cut(content, room.snippet + left))
        left = max(0, left - max(0, len(shown[-1]) - room.snippet))
    return shown


def _cut(content: str, length: int) -> str:
    """The beginning of a content, up to the end of a word; all of it where little would go."""
    if len(content) <= length + _BREAK:
        return content
    for end in range(length, max(0, length - _BREAK), -1):
        if content[end].isspace():
            return content[:end]
    return content[:length]


def _one_line_of(reasons: Sequence[str], width: int) -> list[str]:
    kept: list[str] = []
    for reason in reasons:
        if kept and sum(map(len, kept)) + len(reason) > width:
            break
        kept.append(_line(reason, width) or "")
    return kept


def _line(text: str, length: int) -> str | None:
    """A text on one line, cut with an ellipsis; ``None`` where there is no room for texts."""
    if not length:
        return None
    # Characters that JSON would write as six, a terminal might obey, or nobody can see.
    start = text[: 2 * length]
    if not start.isprintable():
        start = "".join(character if character.isprintable() else " " for character in start)
    line = " ".join(start.split())
    if len(line) <= length and len(start) == len(text):
        return line
    return f"{line[: length - 1]}…"


def _present(values: Answer) -> Answer:
    return {name: value for name, value in values.items() if value is not None}
