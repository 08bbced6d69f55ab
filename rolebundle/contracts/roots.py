"""Roots: the folders and files that were ingested, and how."""

from typing import Any, Literal

from pydantic import Field

from rolebundle.contracts.base import Contract, list_of


class ScanOptions(Contract):
    """Settings of the intake scan.

    Attributes:
        enabled: whether documents are scanned.
        secrets: what happens to keys, tokens and passwords.
        patterns: absolute path of a file with more patterns; empty for none.
    """

    enabled: bool = True
    secrets: Literal["mask", "quarantine", "off"] = "mask"
    patterns: str = ""


class RootOptions(Contract):
    """The options of an ingest that later ingests of the root keep.

    Flags that govern documents are remembered by path; `status` lists them.

    Attributes:
        meta: metadata of all files.
        reader: the reader of files for which no manifest names one; empty: by the file's name.
        separator: a line that begins with this text starts a new document.
        chunking: ``size`` and ``maximum`` in characters.
        max_size: the maximum file size in bytes; null for the default.
        ignore: whether ignore files, and folders and files that are left out by default, count.
        scan: settings of the intake scan.
        lexical_only: whether the last ingest did not embed.
    """

    meta: dict[str, Any] = {}
    reader: str = ""
    separator: str = ""
    chunking: dict[str, int] = {}
    max_size: int | None = None
    ignore: bool = True
    scan: ScanOptions = ScanOptions()
    lexical_only: bool = False


class Root(Contract):
    """A folder or file that was ingested.

    Attributes:
        location: its absolute path.
        prefix: how the paths of its files begin, which are relative to the folder of a manifest
            above it or of the file; empty if they are relative to the root.
        source_id: the source of its documents that declare none.
        documents: number of its documents.
        synced_at: when a whole ingest of it changed the corpus last, ISO 8601 in UTC; empty if none
            was completed.
    """

    location: str
    prefix: str = ""
    source_id: str
    options: RootOptions = RootOptions()
    documents: int = Field(0, ge=0)
    synced_at: str = ""


RootList = list_of(Root, "roots", "RootList", "`corpus roots list`, ordered by location.")


class RootChange(Contract):
    """`corpus roots move` and `corpus roots remove`.

    Attributes:
        location: the path of the root; after a move its new path.
        documents: number of documents that kept their ids and vectors, or that were removed.
    """

    location: str
    documents: int
