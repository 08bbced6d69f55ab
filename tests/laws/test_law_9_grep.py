"""Law 9 for `grep`: what an agent may not see changes no line, no order, no page and no error.

Patterns are made of the words of visible and hidden documents. Each page of each search is asked on
a corpus with documents that the agent may not see, or that none of its roles may read, and on a
corpus without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolebundle.contracts.request import GrepRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.storage.documents import Scanned
from support.amounts import EXAMPLES
from support.corpora import build, document, set_policy

QUARANTINED = Scanned("quarantine", "hash", '["instruction_override"]', "[]", "")
LINES = ["The token rotates", "Error E-6260 at noon", "A badge (red) costs 5 euros", "token TOKEN"]
SEEN = [
    document("b", [LINES[0], LINES[1]], scope="engineering"),
    document("d/e", [LINES[2], LINES[3], LINES[0]], scope="engineering", sensitivity="public"),
    document("h", [LINES[3]], scope="shared"),
]
OF_OTHER_ROLES = [
    document("c", LINES, scope="shared", source_id="vendor"),
    document("d/z", [*LINES, "zebra"], scope="shared", source_id="vendor"),
]
HIDDEN = [
    document("a", [*LINES, "zebra"], scope="hr"),
    document("d/f", [*LINES, "zebra"], scope="engineering", sensitivity="confidential"),
    document("g", LINES, QUARANTINED, scope="shared"),
    document("b2", [LINES[0]], scope="hr", supersedes=("b",), reach="any"),
    *(document(f"b1{number}", LINES * 5, scope="hr") for number in range(30)),
]
POLICY: dict[str, Any] = {
    "ada": {"scopes": ["engineering", "shared"], "access_level": "internal"},
    "bob": {
        "scopes": ["engineering", "shared"],
        "access_level": "internal",
        "roles": ["reviewer"],
    },
}
ROLE = {
    "version": "1.0",
    "role_id": "reviewer",
    "source_policy": {"forbidden_sources": [{"pattern": "vendor", "reason": "rumours"}]},
}
WITHOUT = {"ada": [*SEEN, *OF_OTHER_ROLES], "bob": SEEN}
"""What each agent may see."""

_literals = st.one_of(
    st.sampled_from([*LINES, "zebra", "e", "T", "E-"]),
    st.sampled_from(LINES).flatmap(
        lambda line: st.tuples(st.integers(0, len(line) - 1), st.integers(1, 6)).map(
            lambda part: line[part[0] : part[0] + part[1]]
        )
    ),
    st.text(max_size=3),
)
_expressions = st.lists(
    st.sampled_from(["token", r"\w", ".", "[a-e]", "zebra|noon", "E", r"\d+", "^", "$", "(", "x*"]),
    min_size=1,
    max_size=4,
).map("".join)
_prefixes = st.sampled_from(
    [None, None, "d", "a", "a.md", "g", "vendor", "*", "d/*", "b1*", "never"]
)
_afters = st.sampled_from([None, None, "1:a", "2:b", "0:b1", "1:c", "9:d/e", "1:z", "x"])


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Engine]]]:
    """Agent → a corpus with hidden documents, and one without."""
    folder = tmp_path_factory.mktemp("grep")
    (folder / "reviewer.json").write_text(json.dumps(ROLE), encoding="utf-8")
    contents = {"whole": [*HIDDEN, *OF_OTHER_ROLES, *SEEN], **WITHOUT}
    engines = {}
    for name, documents in contents.items():
        (folder / name).mkdir()
        path = build(folder / name, documents, name="corpus.db")
        set_policy(path, POLICY)
        engines[name] = Engine(path, (folder,))
    yield {agent: [engines["whole"], engines[agent]] for agent in WITHOUT}
    for engine in engines.values():
        engine.close()


def pages(engine: Engine, request: GrepRequest) -> list[str]:
    """Every page of a search, or its error."""
    answers: list[str] = []
    while True:
        try:
            answer = engine.grep(request)
        except RolebundleError as error:
            return [*answers, json.dumps([error.code, error.message, error.hint])]
        answers.append(answer.model_dump_json())
        if answer.next is None:
            return answers
        request = request.model_copy(update={"after": answer.next})


@given(
    agent=st.sampled_from(["ada", "bob"]),
    search=st.one_of(
        st.tuples(_literals, st.just(False)),
        st.tuples(_expressions, st.just(True)),
    ),
    prefix=_prefixes,
    after=_afters,
    limit=st.sampled_from([None, 1, 2, 3]),
)
@settings(max_examples=EXAMPLES)
def test_hidden_lines_change_nothing(
    pairs: dict[str, list[Engine]],
    agent: str,
    search: tuple[str, bool],
    prefix: str | None,
    after: str | None,
    limit: int | None,
) -> None:
    request = GrepRequest(
        pattern=search[0], regex=search[1], prefix=prefix, after=after, limit=limit, agent=agent
    )
    whole, part = (pages(engine, request) for engine in pairs[agent])
    assert whole == part


def test_the_searches_find_what_is_there(pairs: dict[str, list[Engine]]) -> None:
    found = {
        agent: [
            line.locator for line in engines[0].grep(GrepRequest(pattern="noon", agent=agent)).lines
        ]
        for agent, engines in pairs.items()
    }
    assert found == {"ada": ["b.md:2", "c.md:2", "d/z.md:2"], "bob": ["b.md:2"]}
