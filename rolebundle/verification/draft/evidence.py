"""The passages that a draft is checked against, read again from the corpus under the agent's view.

They are those of a bundle in any detail, those of chunk ids, or the whole visible corpus. Passages
that the role's policy rejects are no evidence, and neither is what an agent filed, unless a person
promoted it. "Unknown" and "not visible" are one answer (law 9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import ROLE_ID_PATTERN
from rolebundle.contracts.request import MAX_SEEN
from rolebundle.contracts.verification import Finding, FindingCode, Span, VerifyRequest
from rolebundle.errors import UsageError
from rolebundle.retrieval.candidate import Pool
from rolebundle.retrieval.filter import as_valid, first_rejection
from rolebundle.retrieval.lanes import open_lanes
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import passages_at_lines, passages_by_id
from rolebundle.text.references import may_be_stored
from rolebundle.verification.draft.marks import Citation

DEPTH = 20
"""How many passages of the whole corpus are candidates for one sentence or quote."""
MAX_CITED_LINES = 1_000
"""A citation of more lines names no place."""


def is_evidence(passage: Passage) -> bool:
    """Whether people answer for a passage: not what an agent filed and nobody promoted."""
    document = passage.document
    return document.origin != "agent" or document.trust_tier != "untrusted"


class Evidence:
    """The passages of a request. Without a bundle and ids, those of the whole visible corpus.

    Attributes:
        numbers: number → passage, for those of a bundle or of ids that may be used.
        findings: one for each named passage that fails.
        is_named: whether the request names passages.

    Raises:
        UsageError: ``bundle_malformed``.
        CorpusCorrupt: a passage cannot be read.
    """

    def __init__(self, corpus: Corpus, request: VerifyRequest, resolved: ResolvedRequest) -> None:
        self._corpus, self._request = corpus, resolved
        self._allowed: list[int] | None = None
        self.numbers: dict[int, Passage] = {}
        self.findings: list[Finding] = []
        self.is_named = request.bundle is not None or request.chunk_ids is not None
        named = _named(request)
        stored = {
            passage.chunk_id: as_valid(passage, resolved)
            for passage in passages_by_id(
                corpus, sorted({n.chunk_id for n in named if may_be_stored(n.chunk_id)})
            )
        }
        for name in named:
            passage = stored.get(name.chunk_id)
            failure = _failure(name, passage, resolved)
            if failure and failure.chunk_id not in {finding.chunk_id for finding in self.findings}:
                self.findings.append(failure)
            elif passage and not failure:
                self.numbers.setdefault(name.number, passage)
        # A passage that is named twice, once with another text, is no evidence.
        failed = {finding.chunk_id for finding in self.findings}
        self.numbers = {n: p for n, p in self.numbers.items() if p.chunk_id not in failed}
        self.passages = [*{p.chunk_id: p for p in self.numbers.values()}.values()]

    def candidates(self, texts: Iterable[str]) -> list[Passage]:
        """The passages that texts are checked against: of the corpus, those with most of the words.

        Superseded ones are last, so that nothing is found in them that a valid one has.
        """
        if self.is_named:
            return self.passages
        passages = {p.chunk_id: p for text in dict.fromkeys(texts) for p in self._nearest(text)}
        return sorted(passages.values(), key=lambda passage: bool(passage.superseded_by))

    def _nearest(self, text: str) -> list[Passage]:
        self._corpus.raise_if_interrupted()
        lanes = open_lanes(self._corpus, build_query(text, None), None)
        pool = lanes.propose(Pool(), DEPTH, self._allowed)
        hits = sorted(
            pool.hits.values(), key=lambda hit: (-(hit.bm25 or 0.0), hit.passage.chunk_id)
        )
        ranked = [hit.passage for hit in hits]
        usable = self._usable(ranked)
        if len(usable) < len(ranked) and self._allowed is None:
            # What policy rejects takes no place from what it allows (law 2).
            self._allowed = lanes.allowed_documents(self._request)
            return self._nearest(text)
        return usable

    def named_by(self, citation: Citation, candidates: Sequence[Passage]) -> list[Passage]:
        """The passages that a citation names; those that share a line with its lines.

        In the whole corpus a number names nothing, and a page is looked for among the candidates.
        """
        target = citation.target
        if not may_be_stored(target):
            return []
        if citation.kind == "number":
            return (
                [self.numbers[int(target)]]
                if target.isdigit() and int(target) in self.numbers
                else []
            )
        if citation.kind == "chunk_id":
            found = [] if self.is_named else self._usable(passages_by_id(self._corpus, [target]))
            return [p for p in (*candidates, *found) if p.chunk_id == target][:1]
        if citation.kind == "work":
            return [p for p in candidates if target in names_of(p)]
        if citation.kind == "page":
            name, _, page = target.rpartition("#page=")
            return [p for p in candidates if p.page == int(page) and name in names_of(p)]
        name, _, lines = target.rpartition(":")
        start, end = map(int, lines.split("-"))
        if not 0 < start <= end < start + MAX_CITED_LINES:
            return []
        if not self.is_named and (
            stored := self._usable(passages_at_lines(self._corpus, name, start, end))
        ):
            return stored
        at = [
            p
            for p in candidates
            if p.start_line <= end and p.end_line >= start and name in names_of(p)
        ]
        # Files in two folders may have the same name.
        return [passage for passage in at if passage.path == name] or at

    def _usable(self, stored: Iterable[Passage]) -> list[Passage]:
        passages = (as_valid(passage, self._request) for passage in stored)
        return [p for p in passages if is_evidence(p) and first_rejection(p, self._request) is None]


def names_of(passage: Passage) -> tuple[str, ...]:
    """What a citation may call the document of a passage."""
    document = passage.document
    name = passage.path.rpartition("/")[2]
    return passage.path, document.document_id, document.uri, document.title, name


class _Named(NamedTuple):
    """A passage as the request names it: what ``[number]`` cites, and the text it should have."""

    number: int
    chunk_id: str
    content: str | None = None
    is_cut: bool = False


def _named(request: VerifyRequest) -> list[_Named]:
    if request.bundle is None:
        return [_Named(number, name) for number, name in enumerate(request.chunk_ids or (), 1)]
    selected = request.bundle.get("selected")
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
        number = rank if type(rank) is int and rank > 0 else place
        text = content if isinstance(content, str) else None
        named.append(_Named(number, chunk_id, text, passage.get("truncated") is True))
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


def _failure(name: _Named, passage: Passage | None, request: ResolvedRequest) -> Finding | None:
    code: FindingCode
    remedy = "Retrieve again, and write from what comes back."
    if passage is None:
        code, note = "unknown_passage", "the corpus has no passage with this id for you"
    elif rejection := first_rejection(passage, request):
        code = "stale_source" if rejection[0] in ("stale", "expired") else "rejected_source"
        note, remedy = f"{rejection[0]}: {rejection[1]}", "Remove what is based on this passage."
    elif not is_evidence(passage):
        code, note = "rejected_source", "an agent filed it, and no person promoted it"
        remedy = "Cite the source of the fact, or have a person promote it."
    elif name.content is not None and not (
        name.content in passage.content if name.is_cut else passage.content == name.content
    ):
        code, note = "changed_passage", "the corpus has another text under this id"
    else:
        return None
    return Finding(
        check="sources", code=code, fails=True, span=Span(start=0, end=0), text="",
        chunk_id=name.chunk_id, locator=passage.locator if passage else None, note=note,
        remedy=remedy,
    )  # fmt: skip


def _malformed(problem: str) -> UsageError:
    return UsageError(
        "bundle_malformed",
        f"bundle: this is no bundle: {problem}",
        "send the answer of `retrieve` as it was, in any detail",
    )
