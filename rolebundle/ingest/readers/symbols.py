"""The characters of fonts of symbols, whose texts are letters or private characters."""

from __future__ import annotations

from collections.abc import Mapping

from rolebundle.ingest.readers import data_file

_PRIVATE = 0xF000


def _table(rows: Mapping[str, str]) -> Mapping[int, str]:
    """A table for ``str.translate`` from rows of characters, each with the code of its first."""
    pairs = [
        (int(first, 16) + n, sign) for first, row in rows.items() for n, sign in enumerate(row)
    ]
    return {start + code: sign for code, sign in pairs if sign != " " for start in (0, _PRIVATE)}


SYMBOLS = {font: _table(rows) for font, rows in data_file("symbols.toml").items()}
"""The characters of a font, whose name is in lower case."""
