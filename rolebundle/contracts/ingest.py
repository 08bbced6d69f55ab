"""The answers of `ingest` and `corpus formats`."""

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import TrustTier


class SkippedFile(Contract):
    """A file or document that was not ingested, or a note on one that was."""

    path: str
    code: str
    message: str


class TrustGrant(Contract):
    """How many documents of a run were raised to a trust tier above `general`.

    ``path`` is the manifest that did it; empty if they declare it themselves.
    """

    path: str
    trust_tier: TrustTier
    documents: int


class IngestResult(Contract):
    """`ingest`.

    Attributes:
        added: number of files that were added; ``updated``, ``unchanged``, ``removed`` likewise.
        skipped: files and documents that were not ingested.
        failed: the paths that the run was given and that were skipped as a whole: files, and
            folders that cannot be listed. ``skipped`` has the reasons.
        flagged: number of documents of this run with findings of the scan.
        quarantined: number of documents of this run that were put into quarantine.
        notes: notes on files that were ingested, and on manifests. The code ``claim_refused`` means
            that a document or manifest declares what the owner does not allow;
            ``manifest_ignored`` that a manifest does not count; ``glob_matches_nothing`` that a
            glob of a manifest has no file.
        grants: who raised the trust of documents of this run.
        documents: number of documents in the corpus after the run.
        chunks: number of chunks in the corpus after the run.
        trusted: number of documents in the corpus that are preferred or authoritative.
        embedded: number of chunks that were embedded in this run.
        waiting: number of chunks in the corpus without a vector.
        embedding_problem: why ``waiting`` chunks have no vector; empty if there was no problem.
        optimized: number of approximate indexes that were built in this run.
    """

    added: int
    updated: int
    unchanged: int
    removed: int
    skipped: list[SkippedFile]
    failed: list[str] = []
    flagged: int
    quarantined: int
    notes: list[SkippedFile]
    grants: list[TrustGrant]
    documents: int
    chunks: int
    trusted: int
    embedded: int
    waiting: int
    embedding_problem: str
    optimized: int = 0


class Format(Contract):
    """A format that ingest reads.

    Attributes:
        name: name of the reader, for manifests.
        suffixes: suffixes of its files; empty if they are recognized in another way.
        content: what is read.
        anchor: an example of the place that a citation names; ``lines`` if it names only lines.
    """

    name: str
    suffixes: list[str]
    content: str
    anchor: str


class UnsupportedKind(Contract):
    """A kind of file that is skipped. Text with one of the suffixes is read."""

    kind: str
    suffixes: list[str]


class FormatList(Contract):
    """`corpus formats`."""

    formats: list[Format]
    unsupported: list[UnsupportedKind]
