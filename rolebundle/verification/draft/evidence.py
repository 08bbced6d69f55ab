"""The passages that a draft is checked against, read again from the corpus under the agent's view.

They are those of a bundle in any detail, those of chunk ids, or the whole visible corpus. Passages
that the role's policy rejects are no evidence. "Unknown" and "not visible" are one answer (law 9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import ROLE_ID_PATTERN
from rolebundle.contracts.request import MAX_SEEN
from rolebundle.contracts.terms import RejectionCode
from rolebundle.contracts.verification import Finding, FindingCode, Span
from rolebundle.errors import UsageError
from rolebundle.retrieval.candidate import Pool
from rolebundle.retrieval.filter import as_valid, first_rejection
from rolebundle.retrieval.lanes import open_lanes
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import passages_at_lines, passages_by_id
from rolebundle.text.references import may_be_stored
from rolebundle.verification.draft.parse import DraftCitation

DEPTH = 20
"""How many passages of the whole corpus are candidates for one sentence or quote."""

MAX_CITED_LINES = 1_000
"""A citation of more lines names no place."""
_LINES = re.compile(r"(?P<name>.+):(?P<start>\d{1,9})-(?P<end>\d{1,9})", re.DOTALL)
_PAGE = re.compile(r"(?P<name>.+)#page=(?P<page>\d{1,9})", re.DOTALL)

_CODES: Mapping[RejectionCode, FindingCode] = {"stale": "stale_source", "expired": "stale_source"}
"""The codes of policy that have a finding of their own; any other is ``rejected_source``."""


class NamedPassage(NamedTuple):
    """A passage as the request names it.

    Attributes:
        number: what ``[number]`` in the draft cites, from 1.
        chunk_id: its id.
        content: the text that the request says it has; ``None`` if the request does not say.
        is_cut: whether ``content`` is only a part.
    """

    number: int
    chunk_id: str
    content: str | None = None
    is_cut: bool = False


class CitedLines(NamedTuple):
    """The lines ``start`` to ``end`` of the file or document ``name``."""

    name: str
    start: int
    end: int


class CitedPage(NamedTuple):
    """A page of the document with this path, id or title."""

    name: str
    page: int


def cited_lines(target: str) -> CitedLines | None:
    """What a citation ``path:start-end`` names; ``None`` if there can be no such lines."""
    match = _LINES.fullmatch(target)
    if match is None:
        return None
    start, end = int(match["start"]), int(match["end"])
    return CitedLines(match["name"], start, end) if 0 < start <= end else None


def _cited_page(target: str) -> CitedPage | None:
    match = _PAGE.fullmatch(target)
    return CitedPage(match["name"], int(match["page"])) if match else None


def names_of(passage: Passage) -> tuple[str, ...]:
    """What a citation may call the document of a passage."""
    document = passage.document
    return (
        passage.path,
        document.document_id,
        document.uri,
        document.title,
        passage.path.rpartition("/")[2],
    )


class NamedEvidence(NamedTuple):
    """The evidence that a request names.

    Attributes:
        passages: those that may be used, each once, in the order of the request.
        numbers: number → passage, for those that may be used.
        findings: one for each named passage that fails.
    """

    passages: tuple[Passage, ...]
    numbers: Mapping[int, Passage]
    findings: tuple[Finding, ...]

    def candidates(self, _texts: Sequence[str]) -> Sequence[Passage]:
        """The passages that texts are checked against: all of them."""
        return self.passages

    def named_by(self, citation: DraftCitation, _candidates: Iterable[Passage]) -> list[Passage]:
        """The passages that a citation names; those that share a line with its lines."""
        match citation.kind:
            case "number":
                passage = self.numbers.get(int(citation.target))
                return [passage] if passage else []
            case "chunk_id":
                return [p for p in self.passages if p.chunk_id == citation.target]
            case "page":
                return _on_page(self.passages, citation.target)
        lines = cited_lines(citation.target)
        return [] if lines is None else _at_lines(self.passages, lines)


def _on_page(passages: Iterable[Passage], target: str) -> list[Passage]:
    cited = _cited_page(target)
    if cited is None:
        return []
    return [p for p in passages if p.page == cited.page and cited.name in names_of(p)]


def _at_lines(passages: Iterable[Passage], lines: CitedLines) -> list[Passage]:
    at_lines = [
        passage
        for passage in passages
        if passage.start_line <= lines.end
        and passage.end_line >= lines.start
        and lines.name in names_of(passage)
    ]
    # Files in two folders may have the same name.
    return [passage for passage in at_lines if passage.path == lines.name] or at_lines


def passages_of_bundle(bundle: Mapping[str, Any]) -> list[NamedPassage]:
    """The passages of a bundle in any detail, also of one by Knowledge Core.

    Raises:
        UsageError: ``bundle_malformed``.
    """
    selected = bundle.get("selected")
    if not isinstance(selected, list):
        raise _malformed("selected: is missing, or no list")
    if len(selected) > MAX_SEEN:
        raise _malformed(f"selected: has more than {MAX_SEEN:,} passages")
    named = []
    for place, passage in enumerate(selected, 1):
        chunk_id = passage.get("chunk_id") if isinstance(passage, dict) else None
        if not isinstance(chunk_id, str) or not may_be_stored(chunk_id):
            raise _malformed(f"selected.{place - 1}.chunk_id: is missing, or no text")
        rank, content = passage.get("rank"), passage.get("content")
        named.append(
            NamedPassage(
                rank if type(rank) is int and rank > 0 else place,
                chunk_id,
                content if isinstance(content, str) else None,
                passage.get("truncated") is True,
            )
        )
    return named


def role_of_bundle(bundle: Mapping[str, Any] | None) -> str | None:
    """The role that a bundle was made for; ``None`` if there is none.

    Raises:
        UsageError: ``bundle_malformed``.
    """
    role = bundle.get("role_id") if bundle else None
    if role not in (None, "") and not (
        isinstance(role, str) and re.fullmatch(ROLE_ID_PATTERN, role)
    ):
        raise _malformed("role_id: is no id of a role")
    return role or None


def passages_of_ids(chunk_ids: Sequence[str]) -> list[NamedPassage]:
    """The passages of a list of ids, numbered from 1."""
    return [NamedPassage(number, chunk_id) for number, chunk_id in enumerate(chunk_ids, 1)]


def read_evidence(
    corpus: Corpus, named: Sequence[NamedPassage], request: ResolvedRequest
) -> NamedEvidence:
    """Read named passages from the corpus, and test each against what was said of it, and policy.

    Raises:
        CorpusCorrupt: a passage cannot be read.
    """
    ids = {passage.chunk_id for passage in named if may_be_stored(passage.chunk_id)}
    stored = {
        passage.chunk_id: as_valid(passage, request)
        for passage in passages_by_id(corpus, sorted(ids))
    }
    usable: dict[str, Passage] = {}
    numbers: dict[int, Passage] = {}
    findings: dict[str, Finding] = {}
    for name in named:
        passage = stored.get(name.chunk_id)
        failure = _failure(name, passage, request)
        if failure is None and passage is not None:
            usable[name.chunk_id] = passage
            numbers.setdefault(name.number, passage)
        elif failure is not None:
            findings.setdefault(name.chunk_id, failure)
    # A passage that is named twice, once with another text, is no evidence.
    return NamedEvidence(
        tuple(passage for name, passage in usable.items() if name not in findings),
        {n: passage for n, passage in numbers.items() if passage.chunk_id not in findings},
        tuple(findings.values()),
    )


def _failure(
    name: NamedPassage, passage: Passage | None, request: ResolvedRequest
) -> Finding | None:
    if passage is None:
        return _finding(
            "unknown_passage",
            name,
            "the corpus has no passage with this id for you",
            "Retrieve again, and write from what comes back.",
        )
    rejection = first_rejection(passage, request)
    if rejection is not None:
        code, note = rejection
        return _finding(
            _CODES.get(code, "rejected_source"),
            name,
            f"{code}: {note}",
            "Remove what is based on this passage.",
            passage.locator,
        )
    if name.content is not None and not (
        name.content in passage.content if name.is_cut else passage.content == name.content
    ):
        return _finding(
            "changed_passage",
            name,
            "the corpus has another text under this id",
            "Retrieve again, and write from what comes back.",
            passage.locator,
        )
    return None


def _finding(
    code: FindingCode, name: NamedPassage, note: str, remedy: str, locator: str | None = None
) -> Finding:
    return Finding(
        check="sources",
        code=code,
        fails=True,
        # It is about the whole draft.
        span=Span(start=0, end=0),
        text="",
        chunk_id=name.chunk_id,
        locator=locator,
        note=note,
        remedy=remedy,
    )


class WholeCorpus:
    """Everything that is visible and that policy allows, as evidence.

    Args:
        corpus: an open corpus, in a read transaction.
        request: the resolved request.
    """

    def __init__(self, corpus: Corpus, request: ResolvedRequest) -> None:
        self._corpus, self._request = corpus, request
        self._allowed_documents: list[int] | None = None

    numbers: Mapping[int, Passage] = MappingProxyType({})
    """A number cites nothing."""
    findings: tuple[Finding, ...] = ()

    def candidates(self, texts: Sequence[str]) -> Sequence[Passage]:
        """The passages that texts are checked against: those that have the most of their words.

        Superseded ones are last, so that nothing is found in them that a valid one has.
        """
        passages = {p.chunk_id: p for text in texts for p in self._nearest(text)}
        return sorted(passages.values(), key=lambda passage: bool(passage.superseded_by))

    def _nearest(self, text: str) -> list[Passage]:
        """The passages with the most of a text's words, the best first."""
        self._corpus.raise_if_interrupted()
        query = build_query(text, None)
        lanes = open_lanes(self._corpus, query, None)
        pool = lanes.propose(Pool(), DEPTH, self._allowed_documents)
        ranked = sorted(
            pool.passages.values(),
            key=lambda passage: (-pool.lexical[passage.rowid].bm25, passage.chunk_id),
        )
        usable = list(self._usable(ranked))
        if len(usable) < len(ranked) and self._allowed_documents is None:
            # What policy rejects takes no place from what it allows (law 2).
            self._allowed_documents = lanes.allowed_documents(self._request)
            return self._nearest(text)
        return usable

    def named_by(self, citation: DraftCitation, candidates: Iterable[Passage]) -> list[Passage]:
        """The passages that a citation names; those that share a line with its lines.

        A page is looked for among the candidates of its sentence.
        """
        if not may_be_stored(citation.target):
            return []
        match citation.kind:
            case "number":
                return []
            case "chunk_id":
                stored = passages_by_id(self._corpus, [citation.target])
                return list(self._usable(stored))
            case "page":
                return _on_page(candidates, citation.target)
        lines = cited_lines(citation.target)
        if lines is None or lines.end - lines.start >= MAX_CITED_LINES:
            return []
        stored = passages_at_lines(self._corpus, *lines)
        return list(self._usable(stored)) or _at_lines(candidates, lines)

    def _usable(self, passages: Sequence[Passage]) -> Iterator[Passage]:
        for stored in passages:
            passage = as_valid(stored, self._request)
            if first_rejection(passage, self._request) is None:
                yield passage


def _malformed(problem: str) -> UsageError:
    return UsageError(
        "bundle_malformed",
        f"bundle: this is no bundle: {problem}",
        "send the answer of `retrieve` as it was, in any detail",
    )
