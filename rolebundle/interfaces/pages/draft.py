"""The draft page: a verified draft in which each claim leads to its passage, and what failed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, get_args

from markupsafe import Markup

from rolebundle.contracts.lookup import FoundPassage
from rolebundle.contracts.verification import CheckName, Finding, Span, Verification
from rolebundle.interfaces.checked_passages import named_passages
from rolebundle.interfaces.matches import Match, covered
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.marked import marked_parts
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.retrieval.answer.passage_text import one_line

MAX_PROBLEMS = 50
"""How many problems of a kind are listed before a fold."""
_CONFIDENTIAL = ("secret", "personal_data")
_PASSING = frozenset(("exact", "normalized", "cited", "figure_found", "covered"))
_MAX_TEXT = 300
_SPACES = re.compile(r"\s+")


class ShownFinding(NamedTuple):
    """A finding as the page shows it.

    Attributes:
        level: the CSS class: ``bad`` if it fails, ``caution`` if it has a remedy, ``good`` if it
            passes, else ``plain``.
        number: of a finding that fails or has a remedy; 0 for the others.
        place: ``line:column`` in the draft, both from 1; empty for the whole draft.
        passage: number of its passage on the page; 0 if there is none.
    """

    finding: Finding
    level: str
    number: int
    place: str
    text: str
    passage: int


class Piece(NamedTuple):
    """A part of the draft with the same findings.

    Attributes:
        level: as that of its most precise finding; empty without one.
        address: where it leads: to a problem, else to a passage.
        title: the finding in words.
        problems: the problems that end here.
    """

    text: str
    level: str = ""
    address: str = ""
    title: str = ""
    problems: Sequence[ShownFinding] = ()


class ShownPassage(NamedTuple):
    """A passage that findings name. ``cited`` is what ``[number]`` in the draft cites."""

    number: int
    cited: int | None
    chunk_id: str
    locator: str
    headings: Sequence[str]
    text: Markup | None
    flags: Sequence[str]


class CheckCount(NamedTuple):
    """How many findings of a check pass, fail, and are to be looked at."""

    check: CheckName
    passed: int
    failed: int
    noted: int
    codes: Sequence[tuple[str, int]]


def draft_page(
    answer: Verification,
    draft: str,
    passages: Mapping[str, FoundPassage],
    site: Site = FILE,
    *,
    publish: bool = False,
) -> str:
    """The page of a verified draft. A secret that was found is not shown.

    Args:
        answer: to the request to verify the draft.
        draft: the text of the request.
        passages: texts of passages that findings name, by chunk id.
        site: the application that serves the page.
        publish: whether it was checked for what may leave the machine.
    """
    concealed = _without_confidential(draft, answer.findings)
    named = named_passages(answer)
    numbers = {chunk_id: number for number, chunk_id in enumerate(named, start=1)}
    findings = _shown_findings(answer.findings, concealed, numbers)
    return render(
        "draft",
        site,
        answer=answer,
        draft=draft,
        publish=publish,
        pieces=list(_pieces(concealed, findings)),
        failing=[item for item in findings if item.finding.fails],
        noted=[item for item in findings if item.number and not item.finding.fails],
        max_problems=MAX_PROBLEMS,
        passing=[item for item in findings if not item.number],
        counts=_counts(answer.findings),
        passages=_passages(answer, named, passages),
        unused=[passage for passage in answer.passages if passage.chunk_id not in named],
        uncited=[_sentence(concealed, span) for span in answer.uncited_sentences],
        opinions=[(opinion, _sentence(concealed, opinion.span)) for opinion in answer.opinions],
    )


def _shown_findings(
    findings: Sequence[Finding], draft: str, numbers: Mapping[str, int]
) -> list[ShownFinding]:
    starts = [0, *(at + 1 for at, character in enumerate(draft) if character == "\n")]
    shown_findings, number = [], 0
    for finding in findings:
        is_problem = finding.fails or finding.remedy is not None
        number += is_problem
        line = bisect_right(starts, finding.span.start)
        place = f"{line}:{finding.span.start - starts[line - 1] + 1}" if finding.span.end else ""
        shown_findings.append(
            ShownFinding(
                finding,
                _level(finding),
                number if is_problem else 0,
                place,
                one_line(finding.text, _MAX_TEXT),
                numbers.get(finding.chunk_id or "", 0),
            )
        )
    return shown_findings


def _level(finding: Finding) -> str:
    if finding.fails:
        return "bad"
    if finding.remedy is not None:
        return "caution"
    return "good" if finding.code in _PASSING else "plain"


def _without_confidential(draft: str, findings: Iterable[Finding]) -> str:
    """The draft with dots for its secrets and personal data; all places stay the same."""
    parts, place = [], 0
    spans = sorted((f.span.start, f.span.end) for f in findings if f.code in _CONFIDENTIAL)
    for start, end in spans:
        parts += [draft[place:start], re.sub(r"\S", "•", draft[max(start, place) : end])]
        place = max(place, end)
    return "".join((*parts, draft[place:]))


def _pieces(draft: str, findings: Sequence[ShownFinding]) -> Iterator[Piece]:
    """The draft in parts; the whole text is in them."""
    starting, ending = defaultdict(list), defaultdict(list)
    for number, item in enumerate(findings):
        span = item.finding.span
        if span.start < span.end <= len(draft):
            starting[span.start].append(number)
            ending[span.end].append(number)
    open_items: set[int] = set()
    places = sorted({0, len(draft), *starting, *ending})
    for start, end in pairwise(places):
        open_items.difference_update(ending[start])
        open_items.update(starting[start])
        problems = [findings[number] for number in sorted(ending[end]) if findings[number].number]
        text = draft[start:end]
        if not open_items:
            yield Piece(text, problems=problems)
            continue
        item = min((findings[number] for number in open_items), key=_precision)
        yield Piece(text, item.level, _address(item), _title(item), problems)


def _precision(item: ShownFinding) -> tuple[int, int]:
    """The order of findings for a part of the draft: the shortest first, then the worst."""
    span = item.finding.span
    return span.end - span.start, ("bad", "caution", "good", "plain").index(item.level)


def _address(item: ShownFinding) -> str:
    if item.number:
        return f"#finding-{item.number}"
    return f"#passage-{item.passage}" if item.passage else ""


def _title(item: ShownFinding) -> str:
    source = f", passage {item.passage}" if item.passage else ""
    return f"{words.FINDING[item.finding.code]}{source}"


def _passages(
    answer: Verification, named: Mapping[str, str], passages: Mapping[str, FoundPassage]
) -> list[ShownPassage]:
    cited = {passage.chunk_id: passage.number for passage in answer.passages}
    findings = defaultdict(list)
    for finding in answer.findings:
        if finding.chunk_id:
            findings[finding.chunk_id].append(finding)
    shown_passages = []
    for number, (chunk_id, locator) in enumerate(named.items(), start=1):
        passage = passages.get(chunk_id)
        content = passage.content if passage else ""
        text = marked_parts(content, _cited_parts(content, findings[chunk_id])) if passage else None
        shown_passages.append(
            ShownPassage(
                number,
                cited.get(chunk_id),
                chunk_id,
                locator,
                passage.headings if passage else (),
                text,
                (passage.flags or ()) if passage else (),
            )
        )
    return shown_passages


def _cited_parts(content: str, findings: Sequence[Finding]) -> list[tuple[int, int]]:
    """Where the passage has what the draft took from it: quotes and figures, else the sentences."""
    precise = [f for f in findings if f.check in ("quotes", "figures")]
    texts = dict.fromkeys(f.true_text or f.text for f in precise or findings)
    places = sorted(place for text in texts if (place := _find_text(content, text)))
    return covered(places)


def _find_text(content: str, text: str) -> Match | None:
    """Where a text begins and ends in a passage, whatever its white space. ``None``: nowhere."""
    parts = [re.escape(part) for part in _SPACES.split(text.removesuffix("…").strip()) if part]
    if not parts:
        return None
    match = re.search(r"(?<!\w)" + r"\s+".join(parts), content)
    return Match(*match.span(), 0) if match else None


def _counts(findings: Sequence[Finding]) -> list[CheckCount]:
    counts = []
    for check in get_args(CheckName):
        of_check = [finding for finding in findings if finding.check == check]
        failed = sum(finding.fails for finding in of_check)
        noted = sum(not f.fails and f.remedy is not None for f in of_check)
        if of_check:
            codes = Counter(finding.code for finding in of_check).most_common()
            passed = len(of_check) - failed - noted
            counts.append(CheckCount(check, passed, failed, noted, codes))
    return counts


def _sentence(draft: str, span: Span) -> str:
    return one_line(draft[span.start : span.end], _MAX_TEXT)
