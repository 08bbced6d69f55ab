"""Overlay files for tests."""

import json
from pathlib import Path


def write(folder: Path, role_id: str, name: str = "", **keys: object) -> Path:
    path = folder / f"{name or role_id}.json"
    path.write_text(json.dumps({"version": "1.0", "role_id": role_id, **keys}), encoding="utf-8")
    return path
