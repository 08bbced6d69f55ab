"""A folder of documents and manifests beside a corpus, and front matter for documents."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.ingest import IngestReport
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.ingest import sync
from rolebundle.ingest.options import IngestOptions
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.corpora import all_documents

BODY = "The relay checks each token before it accepts a change of a note."
OWNER = (
    "[[rule]]\nglob = 'security/**'\nsource_id = 'security-review'\n"
    "trust_tier = 'authoritative'\norigin = 'internal'\ndomain = 'security'\n"
)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files with these contents, by their paths in the folder, and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


class Tree:
    """A folder, and a corpus beside it."""

    name = "w"
    provider: EmbeddingProvider | None = None

    def __init__(self, folder: Path) -> None:
        self.root, self.db = folder / self.name, folder / "c.db"
        self.root.mkdir(parents=True)

    def write(self, name: str, text: str) -> Path:
        return write_files(self.root, {name: text}) / name

    def ingest(self, *paths: Path, **options: Any) -> IngestReport:
        with open_writer(self.db) as corpus:
            settings = IngestOptions(**options)
            return sync.ingest(corpus, paths or [self.root], self.provider, settings)

    def rows(self, sql: str) -> Any:
        with open_reader(self.db) as corpus:
            return corpus.rows(sql)

    def documents(self) -> dict[str, DocumentMetadata]:
        with open_reader(self.db) as corpus:
            return {metadata.document_id: metadata for _, metadata in all_documents(corpus)}

    def at(self, uri: str) -> DocumentMetadata:
        [metadata] = [document for document in self.documents().values() if document.uri == uri]
        return metadata


def front(**claims: object) -> str:
    """Front matter in YAML; JSON values are YAML."""
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in claims.items()]
    return "---\n" + "".join(lines) + "---\n" if claims else ""
