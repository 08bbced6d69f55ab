"""The manifest of an ingested folder, ``rolebundle.toml``: what its owner says of the files."""

from typing import Annotated, Any

from pydantic import StringConstraints

from rolebundle.contracts.base import Contract
from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.terms import TrustTier


class ManifestRule(DeclaredMetadata):
    """Metadata of the files that match a glob, and how they are read.

    Attributes:
        glob: the files, relative to the folder of the manifest.
        reader: the reader of the files; if missing, the one of their format.
        separator: a line that begins with this text starts a new document.
        max_trust: the highest trust tier that the files may declare for themselves.
        trust_documents: whether the files may change what the manifest says of them.
    """

    glob: Annotated[str, StringConstraints(min_length=1)]
    reader: str = ""
    separator: str = ""
    max_trust: TrustTier | None = None
    trust_documents: bool | None = None

    def declared_values(self) -> dict[str, Any]:
        """Return the declared metadata by key."""
        values = super().declared_values()
        return {key: values[key] for key in values if key in DeclaredMetadata.model_fields}


class Chunking(Contract):
    """The size of chunks in characters."""

    size: int | None = None
    maximum: int | None = None


class ManifestFile(Contract):
    """A ``rolebundle.toml``. Of the rules that match a file, the later ones override the earlier.

    Attributes:
        defaults: metadata of all files.
        rule: the rules.
        ignore: globs of files that are left out.
        ignore_keys: keys that documents declare and that do not count.
        max_trust: the highest trust tier that a document may declare for itself.
        trust_documents: whether documents may change what the manifest says of them.
    """

    defaults: DeclaredMetadata = DeclaredMetadata.model_construct()
    rule: list[ManifestRule] = []
    ignore: list[str] = []
    ignore_keys: list[str] = []
    chunking: Chunking = Chunking.model_construct()
    max_trust: TrustTier | None = None
    trust_documents: bool = False
