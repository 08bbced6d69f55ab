"""The answers of `corpus quarantine`."""

from typing import Literal

from rolebundle.contracts.base import Contract, list_of


class QuarantinedDocument(Contract):
    """A document with findings of the scan, and the kinds of these findings.

    With the verdict ``quarantine`` it is not retrieved; with ``label`` it is, with flags, and also
    with ``released``: a person has released it from quarantine.
    """

    document_id: str
    title: str
    path: str
    verdict: Literal["label", "quarantine", "released"]
    kinds: list[str]


class ScanFinding(Contract):
    """A finding in a document. ``start`` and ``end`` are offsets in characters, from 0."""

    kind: str
    start: int
    end: int
    note: str
    severity: Literal["low", "high"]


QuarantineList = list_of(
    QuarantinedDocument, "documents", "QuarantineList", "`corpus quarantine list`."
)


class QuarantineDetails(QuarantinedDocument):
    """`corpus quarantine show`: one document with all its findings."""

    findings: list[ScanFinding]
