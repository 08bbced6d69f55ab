"""A corpus to remember facts in."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.corpora import set_policy
from support.facts import POLICY, facts_corpus


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A corpus with a role beside it, and no policy."""
    return facts_corpus(tmp_path)


@pytest.fixture
def governed(db: Path) -> Path:
    """The same corpus with a policy."""
    set_policy(db, POLICY)
    return db
