"""The digest of a row's values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, default=bytes.hex
).encode


def row_digest(values: Sequence[object]) -> bytes:
    """BLAKE2b, 16 bytes, of the values as a JSON array; bytes as hexadecimal.

    Raises:
        TypeError: a value is no text, number, bytes, list or ``None``.
    """
    return blake2b(_encode(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()
