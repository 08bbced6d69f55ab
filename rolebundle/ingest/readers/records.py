"""Metadata of records in JSON files: the readers ``json`` and ``jsonl`` share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.text.counts import counted
from rolebundle.text.decoding import clean

_KEYS = frozenset(DeclaredMetadata.model_fields)
_MAX_UNKNOWN_KEYS = 20


class UnknownKeys:
    """The unknown metadata keys of a file. Each is noted once per file, not once per record."""

    def __init__(self) -> None:
        self._noted: set[str] = set()

    def note(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """A note on the unknown keys of ``record`` that were not noted before, if there are any."""
        new = sorted(key for key in record if key not in _KEYS and key not in self._noted)
        if not new or len(self._noted) >= _MAX_UNKNOWN_KEYS:
            return ()
        self._noted.update(new)
        names = ", ".join(repr(clean(key)[0][:80]) for key in new[:_MAX_UNKNOWN_KEYS])
        return (f"{counted(len(new), 'unknown metadata key')} ignored in all records: {names}",)


def declared_metadata(record: Mapping[str, Any]) -> dict[str, object]:
    """The metadata that ``record`` declares, with cleaned strings."""
    return {key: _cleaned(value) for key, value in record.items() if key in _KEYS}


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean(value)[0]
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key)[0]: _cleaned(item) for key, item in value.items()}
    return value
