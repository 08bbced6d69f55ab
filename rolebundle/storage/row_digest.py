"""The digest of a row's values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from rolebundle.storage.files.sqlite_file import Row

_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, default=bytes.hex
).encode


def row_digest(values: Sequence[object]) -> bytes:
    """BLAKE2b, 16 bytes, of the values as a JSON array; bytes as hexadecimal.

    Raises:
        TypeError: a value is no text, number, bytes, list or ``None``.
    """
    return blake2b(_encode(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def digest_rows(digest: blake2b, rows: Sequence[Row]) -> None:
    """Add rows to a digest: as one JSON array with the lengths of bytes, and then these bytes.

    Bytes as hexadecimal would take most of the time for rows with large ones.
    """
    blobs: list[bytes] = []

    def length(blob: bytes) -> dict[str, int]:
        blobs.append(blob)
        return {"bytes": len(blob)}

    encode = json.JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), check_circular=False, default=length
    ).encode
    digest.update(encode(rows).encode("utf-8", "surrogatepass"))
    for blob in blobs:
        digest.update(blob)
