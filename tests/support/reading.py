"""Read a document as ingest does."""

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_name_for, reader_named


def read_all(
    content: str | bytes, path: str, reader_name: str | None = None, separator: str = ""
) -> list[ParsedDocument | DocumentError]:
    """Read all documents of a file with this content and path, by the reader of this name."""
    _, read = reader_named(reader_name or reader_name_for(path) or "text")
    data = content.encode() if isinstance(content, str) else content
    return list(read(data, path, separator))


def read_document(content: str | bytes, path: str) -> ParsedDocument:
    """Read the only document of a file with this content and path."""
    (document,) = read_all(content, path)
    assert isinstance(document, ParsedDocument)
    return document


def properties(document: ParsedDocument) -> dict[str, object]:
    """What the format tells of a document."""
    return {key: value for key, value in document.inferred.items() if value}
