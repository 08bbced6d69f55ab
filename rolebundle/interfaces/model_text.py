"""Answers of the other methods than `retrieve` as text for a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rolebundle.contracts.lookup import FoundPassage, Lookup, Lookups
from rolebundle.interfaces.layout import NO_ROLE, harmless, on_one_line
from rolebundle.retrieval.passage_text import (
    DATA_NOTICE,
    LOCATOR,
    constraint_line,
    fenced,
    flag_note,
    line_notes,
    mark_note,
    moves_text,
    one_line,
    quoted,
    shown_name,
    shown_place,
    trust_and_dates,
)
from rolebundle.text.references import without_link_lists
from rolebundle.text.words import counted, first_of

_MESSAGE_CHARS = 4_000
_LOCATOR_CHARS = 300
_REMEDY_CHARS = 400
_MAX_GAP = 3
_MAX_LINKING = 10
"""Chunks are separated by blank lines, which are in none of them."""


def answer_text(method: str, answer: Mapping[str, Any]) -> str:
    """The answer of a method as text."""
    if method in _TEXTS:
        return "\n".join(_TEXTS[method](answer))
    return json.dumps(answer, ensure_ascii=False, separators=(", ", ": "))


def lookups_text(answer: Lookups) -> str:
    """What several references name: of each one line on its document, then its passages."""
    lines = [DATA_NOTICE]
    for lookup in answer.lookups:
        lines += ["", *lookup_lines(lookup)]
    if answer.next:
        first = shown_name(answer.next)
        lines += ["", f"{answer.omitted} did not fit; the first of them is {first}"]
    for failure in answer.failures:
        lines += ["", *_error_lines(failure.model_dump())]
    return "\n".join(lines)


def lookup_lines(lookup: Lookup) -> Iterator[str]:
    """One line on the document, then what was asked for of it."""
    document = lookup.document
    about = [f"document {shown_name(document.document_id, 0)}", quoted(document.title)]
    yield " · ".join(filter(None, [*about, *trust_and_dates(document.model_dump())]))
    for name in document.superseded_by:
        yield f"superseded by {shown_name(name, 0)}"
    if document.linked_from:
        yield f"linked from: {first_of([*map(shown_name, document.linked_from)], _MAX_LINKING)}"
    for warning in lookup.warnings or ():
        yield f"Caution: {on_one_line(warning.message)}."
    outermost = min((heading.level for heading in lookup.outline or ()), default=0)
    for heading in lookup.outline or ():
        indent = "  " * (heading.level - outermost)
        yield f"{heading.start_line}-{heading.end_line} {indent}{quoted(heading.heading)}"
    left_out = 0
    for passage in joined_passages(lookup.passages):
        content = passage.content
        # Who asks for a passage or for lines gets all of them.
        if lookup.kind not in ("chunk", "lines"):
            content, link_lines = without_link_lists(content)
            left_out += link_lines
        if content.strip():
            place = shown_place({"locator": passage.locator, "anchor": passage.anchor})
            mark = mark_note(dict(passage.mark) if passage.mark else None)
            yield " · ".join(filter(None, [place, flag_note(passage.flags), mark]))
            if passage.columns:
                yield f"columns: {quoted(passage.columns)}"
            yield from fenced(content)
        if passage.truncated:
            yield f"The passage is longer: {passage.content_chars} characters."
    if left_out:
        yield f"({counted(left_out, 'line')} of links left out)"
    if lookup.more and lookup.more.omitted["passages"]:
        more = counted(lookup.more.omitted["passages"], "more passage")
        yield f"{more}. To read on, call get with {shown_name(lookup.more.params['id'])}"


def joined_passages(passages: Sequence[FoundPassage]) -> list[FoundPassage]:
    """The passages, in which neighbours of one file are one: a reader asked for lines, not chunks.

    What has a mark, an anchor or only a part of its text stays alone.
    """
    joined: list[FoundPassage] = []
    for passage in passages:
        gap = _lines_between(joined[-1], passage) if joined else 0
        if not gap:
            joined.append(passage)
            continue
        previous = joined[-1]
        start = previous.locator.rpartition("-")[0]
        update = {
            "locator": f"{start}-{passage.locator.rpartition('-')[2]}",
            "content": f"{previous.content}{chr(10) * gap}{passage.content}",
        }
        joined[-1] = previous.model_copy(update=update)
    return joined


def _lines_between(first: FoundPassage, second: FoundPassage) -> int:
    """How many line breaks are between two passages that can be read as one; 0 if they cannot."""
    if any((p.mark, p.anchor, p.truncated) != (None, None, None) for p in (first, second)):
        return 0
    places = [LOCATOR.fullmatch(passage.locator) for passage in (first, second)]
    if places[0] is None or places[1] is None or places[0][1] != places[1][1]:
        return 0
    gap = int(places[1][2]) - int(places[0][3])
    return gap if 0 < gap <= _MAX_GAP else 0


def _listing(answer: Mapping[str, Any]) -> list[str]:
    lines = [f"- {listed_line(document)}" for document in answer["documents"]]
    if answer.get("next"):
        lines.append(f"There are more. Call ls with after {shown_name(answer['next'])}")
    return lines or ["There are no such documents, or no more."]


def listed_line(document: Mapping[str, Any]) -> str:
    """A document of a list: its id, title, type, trust, dates and number of passages."""
    read = ["partly read"] if document.get("partly_read") else []
    kind = [document["document_type"]] if document.get("document_type") else []
    if document.get("typed_by"):
        kind = [f"{kind[0]}: {document['typed_by']}"]
    size = counted(document["chunks"], "passage")
    about = ", ".join([*map(on_one_line, kind), *trust_and_dates(document), size, *read])
    notes = "".join(f"; {quoted(note)}" for note in document.get("notes") or ())
    name = shown_name(document["document_id"], 0)
    return f"{name}: {quoted(document['title'])} ({about}{notes})"


def _found_lines(answer: Mapping[str, Any]) -> list[str]:
    lines = list[str]()
    for line in answer["lines"]:
        place = f"{shown_name(line['locator'])}{line_notes(line)}:"
        context = line.get("context")
        lines += columns_note(line)
        lines += ["", place, *fenced(context)] if context else [f"{place} {harmless(line['text'])}"]
    if not lines:
        return ["No line matches. The documents may use other words: call retrieve."]
    if answer.get("next"):
        lines.append(f"There are more. Call grep with after {shown_name(answer['next'])}")
    return [DATA_NOTICE, *lines]


def columns_note(line: Mapping[str, Any]) -> list[str]:
    """What stands above a line that `grep` found: the header row of its table, if it has it."""
    name = shown_name(line["locator"].rpartition(":")[0], 0)
    return [f"columns of {name}: {quoted(line['columns'])}"] if line.get("columns") else []


def error_text(error: Mapping[str, Any]) -> str:
    """An error: what is wrong, the next step, and whether to try again."""
    return "\n".join([*_error_lines(error), f"retryable: {'yes' if error['retryable'] else 'no'}"])


def _error_lines(error: Mapping[str, Any]) -> list[str]:
    lines = [f"error: {on_one_line(error['message'])} [{error['code']}]"]
    return [*lines, f"next: {on_one_line(error['hint'])}"] if error["hint"] else lines


def _why(answer: Mapping[str, Any]) -> list[str]:
    rank = f" at rank {answer['rank']}" if answer.get("rank") else ""
    code = f" ({answer['code']})" if answer.get("code") else ""
    step = f" by {answer['step']}" if answer.get("step") else ""
    lines = [
        f"{shown_place(answer)}, chunk {shown_name(answer['chunk_id'])}",
        f"outcome: {answer['outcome'].replace('_', ' ')}{rank}{step}{code}",
    ]
    if answer.get("notes"):
        lines.append(f"notes: {on_one_line(answer['notes'])}")
    lines += filter(None, [flag_note(answer.get("flags")), mark_note(answer.get("mark"))])
    score = answer["score"]
    if score.get("to_beat"):
        lines.append(f"final score {score['scores']['final']}, to beat: {score['to_beat']}")
    lines += [
        f"ranked above it: {shown_name(passage['locator'])}, final {passage['final']}"
        for passage in answer.get("lost_to", ())
    ]
    return lines


def comparison_lines(answer: Mapping[str, Any]) -> list[str]:
    """A comparison: a line for each role, then each passage with what each role makes of it."""
    lines = []
    for role in answer["roles"]:
        about = (
            f"{counted(len(role['selected']), 'passage')}, {len(role['own'])} for it alone",
            f"trust {role['trust_posture']}, {role['freshness_posture']}",
            ", ".join(role["warnings"]),
        )
        lines.append(f"{role['role_id'] or NO_ROLE}: {'; '.join(filter(None, about))}")
    for passage in answer["passages"]:
        title = quoted(passage.get("title") or passage["document_id"])
        chunk = f"chunk {shown_name(passage['chunk_id'])}"
        notes = filter(None, (shown_place(passage), chunk, flag_note(passage.get("flags"))))
        lines.append(f"- {title} ({'; '.join(notes)})")
        lines += [f"  {_standing(standing)}" for standing in passage["standings"]]
    return lines


def _standing(standing: Mapping[str, Any]) -> str:
    outcome = f"rank {standing['rank']}" if standing.get("rank") else standing["state"]
    notes = standing.get("notes") or moves_text(standing.get("moved_from") or {})
    why = ": ".join(filter(None, [standing.get("reason"), one_line(notes, _LOCATOR_CHARS)]))
    result = f"{outcome.replace('_', ' ')}{f' ({why})' if why else ''}"
    return f"{standing['role_id'] or NO_ROLE}: {result}"


def check_lines(answer: Mapping[str, Any]) -> list[str]:
    """A check: the verdict, then each decision and each rule of the policy that it rests on."""
    lines = [one_line(f"{answer['verdict']}: {answer['message']}", _MESSAGE_CHARS)]
    lines += [f"- {constraint_line(constraint)}" for constraint in answer["decisions"]]
    for rule in answer["policies"]:
        rulings = ", ".join(f"{origin} {ruling}" for origin, ruling in rule["rulings"].items())
        lines.append(f"- policy: {rule['action']} has risk {rule['risk']}: {rulings}")
    if answer.get("degraded"):
        lines.append(f"Only words were compared: {one_line(answer['degraded'])}")
    return [*lines, f"This is {answer['advisory']}."]


def verification_lines(answer: Mapping[str, Any], draft: str = "") -> list[str]:
    """A verification: the verdict, then each finding; with a draft also its line and column."""
    lines = [f"verdict: {answer['verdict']}: {on_one_line(answer['message'])}"]
    severities = {"failed": "FAILS", "check": "CHECK", "clean": "note"}
    for finding in answer["findings"]:
        severity = severities[finding["verdict"]]
        if draft and finding["span"]["end"]:
            severity += f" {line_and_column(draft, finding['span']['start'])}"
        place = shown_name(finding["locator"]) if finding.get("locator") else ""
        parts = (f"{severity} {finding['code']}", one_line(finding["text"]), place)
        lines.append("; ".join(filter(None, parts)))
        for name in ("note", "true_text", "remedy"):
            if finding.get(name):
                lines.append(f"  {name}: {one_line(finding[name], _REMEDY_CHARS)}")
    uncited = len(answer["uncited_sentences"])
    return [*lines, f"sentences without a citation: {uncited}"] if uncited else lines


def line_and_column(text: str, offset: int) -> str:
    """``line:column`` of an offset in a text, both from 1."""
    before = text[:offset]
    return f"{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"


def _roles(answer: Mapping[str, Any]) -> list[str]:
    lines = []
    for role in answer["roles"]:
        about = one_line(role["mission"] or role["label"])
        if role.get("problem"):
            about = f"cannot be used: {on_one_line(role['problem'])}"
        lines.append(f"- {role['role_id']}: {about}")
    return lines or ["There are no roles. Call retrieve without a role."]


_TEXTS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "ls": _listing,
    "grep": _found_lines,
    "roles.list": _roles,
    "why": _why,
    "compare": comparison_lines,
    "check": check_lines,
    "verify": verification_lines,
}
