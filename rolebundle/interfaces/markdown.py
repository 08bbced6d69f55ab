"""A bundle as a Markdown report. No text of a document is markup in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rolebundle.contracts.bundle import RetrievalBundle, SelectedChunk
from rolebundle.interfaces.layout import harmless
from rolebundle.interfaces.render import named_states, place_line, replica_note
from rolebundle.retrieval.answer.passage_text import (
    caution,
    constraint_line,
    fenced,
    flag_note,
    limited_use,
    mark_note,
    one_line,
    source_note,
    standing,
)

_LONG = 1_000
_MARKUP = re.compile(r"[\\`*_\[\]<>|~&!#$]|(?<=http)(?=s?:)|(?<=www)(?=\.)", re.IGNORECASE)


def markdown(bundle: RetrievalBundle) -> str:
    """The bundle as a report: postures, then each passage in a fence, then what was rejected."""
    provenance, fallback = bundle.provenance, bundle.fallback
    about = [
        f"role {bundle.role_id}" if bundle.role_id else "no role",
        f"trust {provenance.trust_posture}",
        f"freshness {provenance.freshness_posture}",
        *([", ".join([*named_states(fallback), fallback.action])] if fallback else []),
        bundle.query.generated_at,
        *filter(None, [replica_note(bundle)]),
    ]
    lines = [f"# {_escaped(bundle.query.task_text)}", "", _escaped(" · ".join(about))]
    before = [*filter(None, [caution(bundle)])]
    before += [f"Decision {constraint_line(dict(item))}" for item in bundle.constraints or ()]
    lines += [line for note in before for line in ("", f"> {_escaped(note)}")]
    if not bundle.selected:
        verdict = fallback.verdict if fallback else None
        lines += ["", f"No passage was found{f' ({verdict})' if verdict else ''}."]
    for chunk in bundle.selected:
        lines += ["", *_passage(chunk)]
    if bundle.rejected_summary:
        lines += ["", "## Not selected", ""]
        lines += [f"- {code}: {count}" for code, count in bundle.rejected_summary.items()]
    return "\n".join(lines)


def _passage(chunk: SelectedChunk) -> Iterator[str]:
    path = dict.fromkeys([chunk.title or chunk.document_id, *chunk.headings])
    yield f"## {chunk.rank}. {_escaped(' › '.join(path))}"
    yield ""
    metadata = chunk.metadata.model_dump(exclude_none=True)
    notes = (
        chunk.source_id,
        f"score {chunk.scores.final:.3f}",
        *standing(metadata),
        flag_note(chunk.metadata.flags),
        mark_note(metadata.get("mark")),
        source_note(chunk.metadata.remembered_from),
        limited_use(chunk.allowed_actions),
    )
    yield " · ".join((_link(chunk), *map(_escaped, filter(None, notes))))
    yield ""
    yield _escaped(f"Why: {'; '.join(chunk.reasons_selected)}")
    yield ""
    yield from fenced(harmless(chunk.content))


def _link(chunk: SelectedChunk) -> str:
    place = _escaped(place_line(chunk.citation, chunk.chunk_id))
    path = chunk.citation.absolute_path
    return f"[{place}](<{Path(path).as_uri()}>)" if path else place


def _escaped(text: str) -> str:
    """A text on one line in which no character is markup."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", one_line(text, _LONG))
