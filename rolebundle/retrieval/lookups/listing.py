"""List the documents below a path or of a source, and look several references up at once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rolebundle.contracts.lookup import ListedDocument, Listing, Lookup, LookupFailure, Lookups
from rolebundle.contracts.operation_requests import DEFAULT_LISTED, MAX_REFERENCES, ListRequest
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.retrieval.answer.source_files import shown_path
from rolebundle.retrieval.lookups.lookup import ReferenceScope, look_up
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import documents
from rolebundle.storage.content.documents import DocumentName
from rolebundle.storage.content.passages import passages_of_documents
from rolebundle.storage.verify import verify_documents
from rolebundle.text.globs import matches
from rolebundle.text.references import MAX_SUGGESTIONS, is_glob, may_be_stored, similar_names

READ_AT_ONCE = 100
FACTS = "remembered"
"""How a prefix begins that names remembered facts. Others name documents only."""


def list_documents(corpus: Corpus, request: ListRequest, scope: ReferenceScope) -> Listing:
    """One page of the documents below a path or of a source, ordered by id.

    Args:
        corpus: an open corpus.
        request: what is listed.
        scope: what the prefix may name. Documents that no role may read are left out.

    Raises:
        UsageError: ``not_found``: no document has this prefix.
        CorpusCorrupt: a document is not what was stored.
    """
    limit = request.limit or DEFAULT_LISTED
    after = request.after or ""
    if request.prefix is None and scope.may_read is None and may_be_stored(after):
        # Only what is shown is read: a large corpus has many names.
        named = later = documents.document_names(corpus, after=after, limit=limit + 1)
    else:
        named = _matching(corpus, request.prefix or "", scope)
        later = [name for name in named if name.document_id > after]
    readable = _first_readable(corpus, later, limit + 1, scope)
    if not readable and request.prefix and not _first_readable(corpus, named, 1, scope):
        raise _nothing_below(corpus, request.prefix, scope)
    page = readable[:limit]
    rows = [name.row for name in page]
    verify_documents(corpus, rows)
    return Listing(
        documents=[
            ListedDocument(
                document_id=name.document_id,
                source_id=name.source_id,
                path=name.path,
                title=document.title,
                trust_tier=document.trust_tier,
                updated_at=document.updated_at,
                inferred_at=document.inferred_at,
                chunks=chunks,
                absolute_path=shown_path(name.location, name.path) if scope.absolute else None,
            )
            for name, document, chunks in documents.listed_documents(corpus, rows)
        ],
        next=page[-1].document_id if len(readable) > limit else None,
    )


def documents_below(corpus: Corpus, prefix: str, scope: ReferenceScope) -> list[DocumentName]:
    """The documents below a path or of a source, or those that a glob matches, ordered by id.

    Raises:
        UsageError: ``not_found``: no role of the agent may read any; not for an empty prefix.
    """
    named = _matching(corpus, prefix, scope)
    if prefix and not _first_readable(corpus, named, 1, scope):
        raise _nothing_below(corpus, prefix, scope)
    return named


def look_up_all(
    corpus: Corpus,
    references: Sequence[str],
    scope: ReferenceScope,
    *,
    outline: bool = False,
    section: str | None = None,
) -> Lookups:
    """Look up references and globs; what several of them name comes once.

    Args:
        corpus: an open corpus.
        references: each as for :func:`look_up`, or a glob of paths or ids.
        scope: what they may name.
        outline: whether only the headings of each document are given.
        section: the heading of each document whose text is looked up.
    """
    found: dict[tuple[str, ...], Lookup] = {}
    failures: list[LookupFailure] = []
    for reference in dict.fromkeys(_expanded(corpus, references, scope)):
        if isinstance(reference, LookupFailure):
            failures.append(reference)
            continue
        try:
            lookup = look_up(corpus, reference, scope, outline=outline, section=section)
            parts = (f"{passage.chunk_id} {passage.locator}" for passage in lookup.passages)
            found.setdefault((lookup.kind, lookup.document.document_id, *parts), lookup)
        except (UsageError, AccessDenied) as error:
            failures.append(_failure(reference, error))
    return Lookups(lookups=[*found.values()], failures=failures)


def _expanded(
    corpus: Corpus, references: Sequence[str], scope: ReferenceScope
) -> list[str | LookupFailure]:
    expanded: list[str | LookupFailure] = []
    for reference in references:
        if not is_glob(reference) or documents.documents_named(corpus, reference, ()):
            expanded.append(reference)
            continue
        matching = _matching(corpus, reference, scope)
        readable = _first_readable(corpus, matching, MAX_REFERENCES + 1, scope)
        expanded += [name.document_id for name in readable[:MAX_REFERENCES]]
        if len(readable) > MAX_REFERENCES:
            error = UsageError(
                "too_many_documents",
                f"{reference}: matches more than {MAX_REFERENCES} documents",
                "the first ones are here; list the others with ls, or use a narrower glob",
            )
            expanded.append(_failure(reference, error))
        if not readable:
            expanded.append(_failure(reference, _nothing_below(corpus, reference, scope)))
    return expanded


def _failure(reference: str, error: UsageError | AccessDenied) -> LookupFailure:
    return LookupFailure(
        reference=reference, code=error.code, message=error.message, hint=error.hint
    )


def _matching(corpus: Corpus, prefix: str, scope: ReferenceScope) -> list[DocumentName]:
    """The documents below a path or of a source, or those that a glob matches, ordered by id."""
    if not may_be_stored(prefix):
        return []
    # Facts are many, and agents file them: whoever wants them asks for them.
    named = documents.document_names(corpus, facts=prefix.startswith(FACTS))
    if prefix in ("", ".") and not (scope.absolute and scope.folder and prefix):
        return named
    if is_glob(prefix):
        globs = [prefix, *scope.locations(prefix)]
        return [
            name
            for name in named
            if any(
                matches(glob, spelling) for glob in globs for spelling in _spellings(name, scope)
            )
        ]
    folders = [prefix.removeprefix("./").rstrip("/")]
    folders += [place for place in scope.locations(prefix) if place != os.sep]
    return [
        name
        for name in named
        if name.source_id in folders
        or any(
            spelling == folder or spelling.startswith(f"{folder}/")
            for folder in folders
            for spelling in _spellings(name, scope)
        )
    ]


def _spellings(name: DocumentName, scope: ReferenceScope) -> tuple[str, ...]:
    names = (name.document_id, name.path)
    return (*names, name.location) if scope.absolute else names


def _first_readable(
    corpus: Corpus, named: Sequence[DocumentName], count: int, scope: ReferenceScope
) -> list[DocumentName]:
    """The first ``count`` of these documents that a role of the agent may read."""
    if scope.may_read is None:
        return [*named[:count]]
    found: list[DocumentName] = []
    for start in range(0, len(named), READ_AT_ONCE):
        part = named[start : start + READ_AT_ONCE]
        passages = passages_of_documents(corpus, [name.row for name in part])
        readable = {passage.document.document_id for passage in passages if scope.may_read(passage)}
        found += [name for name in part if name.document_id in readable]
        if len(found) >= count:
            break
    return found[:count]


def _nothing_below(corpus: Corpus, prefix: str, scope: ReferenceScope) -> UsageError:
    named = documents.document_names(corpus)
    known = {(folder, folder) for name in named for folder in _folders(name)}
    names = [*sorted(known), *((name.document_id, name.path) for name in named)]
    near = [] if scope.may_read else similar_names(prefix, names)[:MAX_SUGGESTIONS]
    return UsageError(
        "not_found",
        f"{prefix}: no document has this path, source or id in this corpus",
        f"did you mean {' or '.join(near)}?" if near else "list all documents with ls",
    )


def _folders(name: DocumentName) -> list[str]:
    """The source of a document, and the folder of its file within the root."""
    folder = name.path.rpartition("/")[0]
    return [name.source_id, folder] if folder else [name.source_id]
