"""Read a document as ingest does."""

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_for
from rolebundle.ingest.readers.base import ReaderOptions


def read_document(content: str | bytes, path: str) -> ParsedDocument:
    """Read the only document of a file with this content and path."""
    reader = reader_for(path)
    assert reader is not None
    data = content.encode() if isinstance(content, str) else content
    (document,) = reader.read(data, path, ReaderOptions())
    assert isinstance(document, ParsedDocument)
    return document
