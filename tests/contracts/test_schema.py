"""docs/schema/ is what the contracts say, and no file of it is out of date."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.schema import SCHEMAS, json_schema, schema_text

FOLDER = Path(__file__).parent.parent.parent / "docs" / "schema"


def test_the_files_are_up_to_date() -> None:
    assert [
        name
        for name in SCHEMAS
        if (FOLDER / f"{name}.json").read_text(encoding="utf-8") != schema_text(name)
    ] == [], "run `python -m rolebundle.contracts.schema docs/schema`"


def test_there_is_no_file_besides() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SCHEMAS)


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if "properties" in schema else []
    return own + [found for item in schema.values() for found in objects(item)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SCHEMAS)
def test_unknown_fields_are_refused_everywhere(name: str) -> None:
    assert all(found["additionalProperties"] is False for found in objects(json_schema(name)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SCHEMAS)
def test_patterns_are_of_the_kind_that_json_schema_knows(name: str) -> None:
    # ECMA-262: no inline flags, no possessive quantifiers, no \A or \Z.
    for pattern in re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', schema_text(name)):
        assert not re.search(r"\(\?[a-z]+[:)]|[+*}]\+|\\[AZ]", json.loads(pattern)), pattern


def test_only_the_task_is_required_of_a_request() -> None:
    assert json_schema("request")["required"] == ["task"]
