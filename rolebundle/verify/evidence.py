"""The passages that a draft is checked against, read again from the corpus under the agent's view.

They are the passages of a bundle in any detail, of chunk ids, or of the whole visible corpus.
Passages that the role's policy rejects are no evidence, and neither is what an agent filed, unless
a person promoted it. "Unknown" and "not visible" are one answer (law 9).

A citation is true if the evidence has what it names, if the lines are those of the passage, and if
its words do not stand in another passage much rather than in what it cites.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from rolebundle.contracts.documents import Passage, locator_path, message_of
from rolebundle.contracts.overlay import ROLE_ID_PATTERN
from rolebundle.contracts.request import MAX_SEEN
from rolebundle.contracts.verification import Finding, FindingCode, VerifyRequest
from rolebundle.errors import UsageError
from rolebundle.retrieval.filter import policy_rejection, without_later_superseders
from rolebundle.retrieval.lanes import open_lanes
from rolebundle.retrieval.lookup import columns_of, lines_of_file
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.statements import replacing_passages
from rolebundle.retrieval.values import Pool
from rolebundle.retrieval.versions import newer_by_path
from rolebundle.retrieval.where import allowed_documents
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import document_names
from rolebundle.storage.passages import passages_at_lines, passages_by_id, stating_passages
from rolebundle.text.amended import is_denied
from rolebundle.text.languages import is_unspaced
from rolebundle.text.references import Lines, may_be_stored
from rolebundle.text.replaced import digits_in
from rolebundle.verify.draft import NAME_ENDING, Citation, FileNames, name_endings
from rolebundle.verify.findings import finding
from rolebundle.verify.sentences import best_match, is_translated

DEPTH = 20
"""How many passages of the whole corpus are candidates for one sentence or quote."""
MAX_CITED_LINES = 1_000
"""A citation of more lines names no place."""


def is_evidence(passage: Passage) -> bool:
    """Whether people answer for a passage: not what an agent filed and nobody promoted."""
    document = passage.document
    return document.origin != "agent" or document.trust_tier != "untrusted"


class DraftEvidence:
    """The passages of a request. Without a bundle and ids, all of the visible corpus.

    Attributes:
        numbers: number → passage, for the usable passages of a bundle or of ids.
        findings: one for each named passage that fails.
        is_named: whether the request names passages.
        quoted_messages: those that the named mails quote.

    Raises:
        UsageError: ``bundle_malformed``.
        CorpusCorrupt: a passage cannot be read.
    """

    def __init__(self, corpus: Corpus, request: VerifyRequest, resolved: ResolvedRequest) -> None:
        self._corpus, self._resolved = corpus, resolved
        self.raise_if_interrupted = corpus.raise_if_interrupted
        self._allowed: list[int] | None = None
        self.numbers: dict[int, Passage] = {}
        self.is_named = request.bundle is not None or request.chunk_ids is not None
        named = _named(request)
        ids = sorted({chunk_id for _, chunk_id, *_ in named if may_be_stored(chunk_id)})
        found = (without_later_superseders(p, resolved) for p in passages_by_id(corpus, ids))
        stored = {passage.chunk_id: passage for passage in found}
        failures: dict[str, Finding] = {}
        for name in named:
            number, chunk_id = name[:2]
            passage = stored.get(chunk_id)
            if failure := _failure(name, passage, resolved):
                failures.setdefault(chunk_id, failure)
            elif passage:
                self.numbers.setdefault(number, passage)
        # A passage that is named twice, once with another text, is no evidence.
        self.numbers = {n: p for n, p in self.numbers.items() if p.chunk_id not in failures}
        self.findings = [*failures.values()]
        self.passages = [*{p.chunk_id: p for p in self.numbers.values()}.values()]
        mails = {p.path for p in self.passages if p.document.document_type == "mail"}
        own = [p for path in mails for p in passages_at_lines(corpus, path, 1, MAX_CITED_LINES)]
        self.quoted_messages = [p for p in self._usable(own) if message_of(p.anchor)[1]]

    def candidates(self, texts: Iterable[str]) -> list[Passage]:
        """The passages that texts are checked against: of the corpus, those with most of the words.

        Superseded ones are last, so that nothing is found in them that a valid one has.
        """
        if self.is_named:
            return self.passages
        passages = {p.chunk_id: p for text in dict.fromkeys(texts) for p in self._nearest(text)}
        return sorted(passages.values(), key=lambda passage: bool(passage.superseded_by))

    def _nearest(self, text: str) -> list[Passage]:
        self.raise_if_interrupted()
        lanes = open_lanes(self._corpus, build_query(text, None), None)
        pool = lanes.propose(Pool(), DEPTH, self._allowed)
        hits = sorted(pool.hits.values(), key=lambda h: (-(h.bm25 or 0.0), h.passage.chunk_id))
        ranked = [hit.passage for hit in hits]
        usable = self._usable(ranked)
        if len(usable) < len(ranked) and self._allowed is None:
            # What policy rejects takes no place from what it allows (law 2).
            self._allowed = allowed_documents(self._corpus, self._resolved)
            return self._nearest(text)
        return usable

    def file_names(self, draft: str) -> FileNames:
        """The names of files of the evidence that the draft may cite."""
        endings = name_endings(draft)
        files = [(p.document.document_id, p.document.source_id, p.path) for p in self.passages]
        if endings and not self.is_named:
            files = [(d.document_id, d.source_id, d.path) for d in document_names(self._corpus)]
        meant = defaultdict[str, set[str]](set)
        for file in files:
            path = locator_path(*file)
            for name in (path, file[0], path.rpartition("/")[2]):
                if name[-NAME_ENDING:] in endings:
                    meant[name].add(path)
        # Files in two folders may have the same name.
        return FileNames({n: n if n in of or len(of) > 1 else min(of) for n, of in meant.items()})

    def newer_versions(self, cited: Mapping[str, Passage]) -> Iterator[Passage]:
        """The passages of a newer version, by its name, of each file, by its path, of the corpus.

        Also one of what says that it replaces a file.
        """
        names = document_names(self._corpus) if cited and not self.is_named else []
        for path, passage in cited.items():
            self.raise_if_interrupted()
            folder = path.rpartition("/")[0]
            paths = (name.path for name in names if name.path.rpartition("/")[0] == folder)
            newer = newer_by_path(passage, paths, "")[:DEPTH]
            stored = (passages_at_lines(self._corpus, one, 1, MAX_CITED_LINES) for one in newer)
            yield from next(filter(None, map(self._usable, stored)), [])
            yield from replacing_passages(passage, self.stating)

    @cached_property
    def stating(self) -> list[Passage]:
        """A passage of each document that says something of another one."""
        return self._usable(stating_passages(self._corpus))

    def named_by(self, citation: Citation, candidates: Sequence[Passage]) -> list[Passage]:
        """The passages that a citation names: lines name each passage that shares a line with them.

        In the whole corpus a number names nothing.
        """
        target = citation.target
        if not may_be_stored(target):
            return []
        if citation.kind == "number":
            passage = self.numbers.get(int(target)) if target.isdigit() else None
            return [passage] if passage else []
        if citation.kind == "chunk_id":
            found = [] if self.is_named else self._usable(passages_by_id(self._corpus, [target]))
            return [p for p in (*candidates, *found) if p.chunk_id == target][:1]
        if citation.kind == "work":
            return [p for p in candidates if target in _names_of(p)]
        lines = citation.lines
        name, start, end = lines or (target, 1, MAX_CITED_LINES)
        if not 0 < start <= end < start + MAX_CITED_LINES:
            return []
        stored = [] if self.is_named else passages_at_lines(self._corpus, name, start, end)
        stored = self._usable(stored)
        if stored and lines:
            return stored
        of_file = (passage for passage in candidates if name in _names_of(passage))
        at = [p for p in of_file if not lines or (p.start_line <= end and p.end_line >= start)]
        # Files in two folders may have the same name.
        at = [passage for passage in at if passage.locator_path == name] or at
        return [*{p.chunk_id: p for p in (*stored, *at)}.values()]

    def _usable(self, stored: Iterable[Passage]) -> list[Passage]:
        passages = (without_later_superseders(passage, self._resolved) for passage in stored)
        return [p for p in passages if is_evidence(p) and not policy_rejection(p, self._resolved)]


def _names_of(passage: Passage) -> tuple[str, ...]:
    """What a citation may call the document of a passage."""
    document = passage.document
    name = passage.locator_path.rpartition("/")[2]
    return passage.locator_path, document.document_id, document.uri, document.title, name


_Named = tuple[int, str, str | None, bool]
"""A passage as the request names it: what ``[number]`` cites, its id, and the text that it should
have, perhaps cut; ``None`` for any."""


def _named(request: VerifyRequest) -> list[_Named]:
    if request.bundle is None:
        return [(n, name, None, False) for n, name in enumerate(request.chunk_ids or (), 1)]
    selected = request.bundle.get("selected")
    if not isinstance(selected, list):
        raise _malformed("selected: is missing, or no list")
    if len(selected) > MAX_SEEN:
        raise _malformed(f"selected: has more than {MAX_SEEN:,} passages")
    named: list[_Named] = []
    for place, passage in enumerate(selected, 1):
        chunk_id = passage.get("chunk_id") if isinstance(passage, dict) else None
        if not isinstance(chunk_id, str) or not may_be_stored(chunk_id):
            raise _malformed(f"selected.{place - 1}.chunk_id: is missing, or no text")
        rank, content = passage.get("rank"), passage.get("content")
        number = rank if type(rank) is int and rank > 0 else place
        text = content if isinstance(content, str) else None
        named.append((number, chunk_id, text, passage.get("truncated") is True))
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


def _failure(named: _Named, passage: Passage | None, request: ResolvedRequest) -> Finding | None:
    _, chunk_id, content, is_cut = named
    code: FindingCode
    more: dict[str, object] = {"chunk_id": chunk_id, "verdict": "failed"}
    if passage is None:
        code, note = "unknown_passage", "no passage for you has this id or these lines"
    elif rejection := policy_rejection(passage, request):
        code = "stale_source" if rejection[0] in ("stale", "expired") else "rejected_source"
        note = f"{rejection[0]}: {rejection[1]}"
        more["remedy"] = "Remove what is based on this passage."
    elif not is_evidence(passage):
        code, note = "rejected_source", "an agent filed it, and no person promoted it"
        # Bundles have facts. A citation of one fails.
        more |= {"verdict": "clean", "remedy": "Cite its source, or have a person promote it."}
    elif content is not None and not (
        content in passage.content if is_cut else passage.content == content
    ):
        code, note = "changed_passage", "the corpus has another text under this id"
    else:
        return None
    return finding(code, 0, 0, "", passage, note, **more)


def _malformed(problem: str) -> UsageError:
    return UsageError(
        "bundle_malformed",
        f"bundle: this is no bundle: {problem}",
        "send the answer of `retrieve` as it was, in any detail",
    )


# -- citations -------------------------------------------------------------------------------------

_MIN_COMPARED = 4
"""With fewer content words a citation cannot be compared with what it names."""
FOUND_SHARE = 0.6
"""The least share of them that stands together in the passage that a sentence comes from."""
LESS = 0.6
"""A citation is misplaced if what it names has less than this part of that share."""


def check_citation(
    citation: Citation,
    prose: str,
    named: Sequence[Passage],
    passages: Sequence[Passage],
    others: Sequence[Passage] = (),
) -> tuple[FindingCode, Passage | None, str]:
    """Check a citation.

    Args:
        citation: what is checked.
        prose: what it is cited for: the sentence up to it, from the citation before.
        named: the passages that it names.
        passages: all passages that the sentence may be from.
        others: what the citations right beside it cite for the same words.

    Returns:
        The outcome, the passage that it is about, and why.
    """
    cited = [cited_lines(p, citation.lines) for p in named]
    text = "\n".join(dict.fromkeys(p.content for p in (*cited, *others)))
    own = best_match(prose, [cited[0]._replace(content=text)] if cited and others else cited)
    best = best_match(prose, passages)
    if best.passage and any(p.chunk_id == best.passage.chunk_id for p in cited):
        best = best_match(prose, _parts(best.passage) or [best.passage])
    is_found, has_figures = best.share >= FOUND_SHARE, digits_in(prose) <= digits_in(best.text)
    # What has other figures, or denies what the sentence says, is not what it means.
    is_meant = has_figures and is_denied(prose) == is_denied(best.text)
    place = best.passage if is_found and is_meant else None
    if not named:
        note = f"the evidence has no passage {citation.target[:200]}"
        if citation.kind == "number":
            note += "; [1] is the first passage of `bundle` or `chunk_ids`"
        note += f"; the words of the sentence are at {place.locator}" if place else ""
        return "unknown_citation", place, note
    if lines := citation.lines:
        first, last = min(p.start_line for p in named), max(p.end_line for p in named)
        if not first <= lines.start <= lines.end <= last:
            note = f"the passage is {named[0].locator_path}:{first}-{last}"
            return "unknown_citation", named[0], note
    if own.word_count < _MIN_COMPARED or is_unspaced(prose):
        return "cited", named[0], ""
    is_elsewhere = is_found and own.share < LESS * best.share
    if not is_elsewhere and (own.share or own.word_count < 2 * _MIN_COMPARED):
        return "cited", named[0], ""
    if is_translated(prose, named[0]):
        note = "the sentence and the passage are in different languages"
        return "unchecked_language", named[0], note
    if is_elsewhere:
        at = place.locator if place else "another place, with other figures or another sense"
        return "wrong_place", place, f"the words of the sentence are at {at}"
    note = "the passage has none of the sentence's words"
    return "unrelated_citation", named[0], note


def cited_lines(passage: Passage, cited: Lines | None) -> Passage:
    """A passage with only the cited lines, or all of it if it has none of them.

    The rows of a table keep their header.
    """
    lines, of_file = passage.content.split("\n"), enumerate(_lines_of_file(passage))
    named = [n for n, at in of_file if cited and at[0] <= cited.end and cited.start <= at[1]]
    if not named:
        return passage
    head = filter(None, [columns_of(passage, named[0])])
    text = "\n".join([*head, *lines[named[0] : named[-1] + 1]])
    return passage._replace(content=text) if text.strip() else passage


def _lines_of_file(passage: Passage) -> list[tuple[int, int]]:
    start, end, attributes = passage.start_line, passage.end_line, passage.document.attributes
    return lines_of_file(passage.content, start, end, attributes) or []


def _parts(passage: Passage) -> list[Passage]:
    """The lines of a passage, and two and three of them together; the rows of a table alone."""
    at, lines = _lines_of_file(passage), passage.content.split("\n")
    sizes = range(1 if columns_of(passage, len(lines) - 1) else 3)
    numbers = [(n, n + more) for more in sizes for n in range(len(at) - more) if lines[n].strip()]
    spans = (Lines("", at[first][0], at[last][1]) for first, last in numbers)
    return [cited_lines(passage, s)._replace(start_line=s.start, end_line=s.end) for s in spans]


def titled(prose: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages of a document whose title stands beside a quote: it is cited by its name.

    A title of one word counts only in parentheses.
    """
    return [
        passage
        for passage in passages
        if (name := re.escape(passage.document.title.strip()))
        and re.search(
            rf"(?<!\w){name}(?!\w)" if " " in name else rf"\(\s*{name}\s*\)", prose, re.IGNORECASE
        )
    ]
