"""The contracts as JSON Schema; `python -m rolebundle.contracts.schema docs/schema` writes them."""

from __future__ import annotations

import json
from typing import Any

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.lookup import CorpusStatus, Lookup
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest

SCHEMAS: dict[str, type[Contract]] = {
    "bundle": RetrievalBundle,
    "lookup": Lookup,
    "overlay": Overlay,
    "request": RetrievalRequest,
    "status": CorpusStatus,
}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one contract."""
    schema = SCHEMAS[name].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text(name: str) -> str:
    """The schema as it stands in its file."""
    return json.dumps(json_schema(name), indent=2, ensure_ascii=False) + "\n"


def _write(folder: str) -> None:
    from pathlib import Path

    for name in SCHEMAS:
        (Path(folder) / f"{name}.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    import sys

    _write(sys.argv[1])
