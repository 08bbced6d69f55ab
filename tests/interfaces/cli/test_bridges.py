"""`rolebundle policy bridges`, a command for the owner of the corpus."""

import re
from pathlib import Path

import pytest

from rolebundle.interfaces.servers.operations import METHODS, TOOLS
from rolebundle.interfaces.servers.serve import OWN_METHODS
from support.commands import invoke
from support.corpora import build, document
from support.fake_embedder import HashingProvider


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(
        tmp_path,
        [
            document("plan", ["the budget of next year", "other things"], title="The plan"),
            document("board", ["the budget of next year"], scope="board", title="For the board"),
            document("menu", ["soup"], scope="kitchen"),
        ],
        HashingProvider(),
    )


def test_a_pair_is_shown_with_both_of_its_sides(db: Path) -> None:
    outcome = invoke("policy", "bridges", "--db", db)
    assert outcome.code == 0
    first, second, *below = outcome.out.splitlines()
    assert re.fullmatch(r"0\.9\d\d  board   board.md:1-1  For the board", first)
    assert second.strip() == "shared  plan.md:1-1  The plan"
    assert below[:1] == ["under the threshold of 0.6:"]
    assert "1 pair of documents over 0.6, of 4 vectors in 3 scopes" in outcome.err


def test_what_cannot_be_asked(db: Path, tmp_path: Path) -> None:
    assert invoke("policy", "bridges", "--limit", "0", "--db", db).code == 2
    assert invoke("policy", "bridges", "--agent", "bot", "--db", db).code == 2
    bare = build(tmp_path, [document("a", ["one"])])
    outcome = invoke("policy", "bridges", "--db", bare)
    assert outcome.code == 2
    assert "rolebundle corpus embed" in outcome.err


def test_no_agent_is_offered_bridges_or_purges() -> None:
    offered = {*METHODS, *OWN_METHODS, *(tool.name for tool in TOOLS)}
    assert "retrieve" in offered
    assert not any("bridge" in name or "purge" in name for name in offered)
