"""A corpus to remember facts in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy
from support.facts import POLICY, facts_corpus


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A corpus with a role beside it, and no policy."""
    return facts_corpus(tmp_path)


@pytest.fixture
def governed(db: Path) -> Path:
    """The same corpus with a policy."""
    with Admin(db) as admin:
        set_policy(admin.workspace, json.dumps(POLICY), "json")
    return db
