"""The answers to `get`, `multi_get`, `ls` and `grep`."""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import BundleWarning, PassageMark
from rolebundle.contracts.compact_bundle import More
from rolebundle.contracts.documents import FoundDocument
from rolebundle.contracts.terms import ContentType, DatedBy, TrustTier

LookupKind = Literal["chunk", "document", "lines", "passages"]


class FoundPassage(Contract):
    """A passage, or those of its lines that were asked for.

    Attributes:
        anchor: where it is, in a format in which lines do not tell it: ``p. 3``, ``slide 4``.
        place: number of the passage in its document, from 1. ``#document_id:place:count`` is the
            reference of ``count`` passages from this one on.
        flags: kinds of the scan's findings in the passage; missing if there are none.
        mark: what somebody has stated about the passage; missing if it has no mark.
        columns: the header row of the table in which the text begins; missing without one, and if
            the text has it.
        content: the text.
        truncated: true if ``content`` is only a part of the text; otherwise missing.
        content_chars: length of the whole text in characters, if ``truncated``.
    """

    chunk_id: str
    place: int | None = None
    locator: str
    anchor: str | None = None
    headings: list[str]
    content_type: ContentType
    flags: list[str] | None = None
    mark: PassageMark | None = None
    columns: str | None = None
    content: str
    truncated: bool | None = None
    content_chars: int | None = None


class Heading(Contract):
    """A heading of a document, and the lines from it to the end of its section.

    Attributes:
        level: 1 for the outermost.
    """

    heading: str
    level: int
    start_line: int
    end_line: int


class Lookup(Contract):
    """The answer to `get`.

    Attributes:
        reference: what was asked for.
        kind: what the reference names.
        passages: the passages, in the order of the document; empty with `outline`.
        outline: the document's headings, if the request asks for them; otherwise missing.
        warnings: files that changed or vanished since they were read; missing if there are none.
        more: how to fetch the rest; missing if nothing was left out.
    """

    reference: str
    kind: LookupKind
    document: FoundDocument
    passages: list[FoundPassage]
    outline: list[Heading] | None = None
    warnings: list[BundleWarning] | None = None
    more: More | None = None


class LookupFailure(Contract):
    """A reference that gave nothing, and the error that `get` raises for it."""

    reference: str
    code: str
    message: str
    hint: str


class Lookups(Contract):
    """The answer to `multi_get`.

    Attributes:
        lookups: the answers of `get`, in the order of the references.
        failures: the references that gave nothing.
        omitted: number of lookups and failures that did not fit in `max_chars`; 0 without it.
        next: the first of these references, shortened if it is long; missing if there are none.
    """

    lookups: list[Lookup]
    failures: list[LookupFailure] = []
    omitted: int = 0
    next: str | None = None


class ListedDocument(Contract):
    """One document of a listing.

    Attributes:
        path: path of its file within its root.
        updated_at: its date, ISO 8601; missing if it has none.
        inferred_at: when its file was last changed, for a document without a date.
        dated_by: what ``updated_at`` is from, if it is not declared.
        document_type: its declared type, or else that which it shows; missing if it has none.
        typed_by: what shows the type, if it is not declared.
        chunks: number of its passages.
        notes: what the reader of its file left out or changed; missing if it is nothing.
        partly_read: whether a tenth of it, or more, was left out; missing if not.
        absolute_path: the path of its file on this machine; missing if whoever asks must not learn
            it.
    """

    document_id: str
    source_id: str
    path: str
    title: str
    trust_tier: TrustTier
    updated_at: str | None = None
    inferred_at: str | None = None
    dated_by: DatedBy | None = None
    document_type: str | None = None
    typed_by: str | None = None
    chunks: int
    notes: list[str] | None = None
    partly_read: bool | None = None
    absolute_path: str | None = None


class Listing(Contract):
    """The answer to `ls`: documents ordered by id.

    Attributes:
        next: `after` of the next page; missing if this is the last one.
    """

    documents: list[ListedDocument]
    next: str | None = None


class FoundLine(Contract):
    """A line that `grep` found.

    Attributes:
        locator: ``path:line``; ``path:start-end`` of a line that has several in the file, as in
            a mail, and of its passage if the text is not the file's own, as that of a page.
        text: the line, without spaces at its end. Of a long line the part around the match, with
            an ellipsis where it is cut. ``title: …``, ``file: …``, ``from: …``, ``to: …`` or
            ``cc: …`` of a document without such a line, with the locator of its first passage.
        context: the line with two before and eight after it in its passage, cut if they are long;
            missing in an answer of more than three lines, for a name, and if the line before
            has it.
        columns: the header row of the table that the line is a row of; missing without one, and if
            a line before has it.
        flags: kinds of the scan's findings in the passage; missing if there are none.
        mark: what somebody has stated about the passage; missing if it has no mark.
        superseded_by: ids of documents that replace its document; missing if there are none.
    """

    locator: str
    document_id: str
    chunk_id: str
    text: str
    context: str | None = None
    columns: str | None = None
    flags: list[str] | None = None
    mark: PassageMark | None = None
    superseded_by: list[str] | None = None


class FoundLines(Contract):
    """The answer to `grep`: lines ordered by document id, then as in the document.

    Attributes:
        next: `after` of the next page; missing if there are no more lines.
    """

    lines: list[FoundLine]
    next: str | None = None
