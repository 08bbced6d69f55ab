"""`rolebundle schema`: what it prints is what stands in docs/schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rolebundle.contracts.schema import SCHEMAS
from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.schema import schema

DOCS = Path(__file__).parents[3] / "docs" / "schema"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_each_contract_is_printed_as_it_is_documented(name: str) -> None:
    printed = CliRunner().invoke(schema, [name]).output
    assert printed == (DOCS / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(printed)["$schema"].endswith("2020-12/schema")


def test_without_a_name_it_lists_them() -> None:
    assert CliRunner().invoke(schema, []).output.split() == sorted(SCHEMAS)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean bundle"):
        CliRunner().invoke(schema, ["bundel"], catch_exceptions=False)
