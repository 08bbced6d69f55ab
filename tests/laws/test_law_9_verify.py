"""Law 9 for `verify`: what an agent may not see changes no verdict, no finding and no error.

Drafts quote, cite and name documents that their agent may not see, as bundles, ids, locators and
text. Each is verified on the corpus and on another one that never had these documents.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import put_mark, set_policy
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from support.amounts import rounds
from support.corpora import NOW, build, document

SEEN = [
    document("tokens", ["The lifetime of an access token is 15 minutes.", "Keys rotate daily."],
             scope="engineering", sensitivity="public"),
    document("yard", ["A helmet must be worn in the yard at night."], scope="engineering"),
    document("plan", ["Release 3.0 is planned for 20 November 2026."], scope="shared"),
    document("web", ["Tokens are kept in the browser."], scope="engineering", origin="untrusted"),
]  # fmt: skip
HIDDEN = [
    document("salary", ["The salary of Ada is 90,000 euros.", "Keys rotate daily."], scope="hr"),
    document("copy", ["The lifetime of an access token is 15 minutes."], scope="hr"),
    document("newer", ["The lifetime of an access token is 5 minutes."], scope="hr",
             supersedes=("tokens", "yard"), reach="any", trust_tier="authoritative"),
    document("secret", ["A helmet must be worn in the yard at noon."], scope="engineering",
             sensitivity="confidential"),
    *(document(f"more{n}", [f"helmet token salary number {n}"], scope="hr") for n in range(9)),
]  # fmt: skip
POLICY: dict[str, Any] = {
    "ada": {"scopes": ["engineering", "shared"], "access_level": "internal"},
    "bob": {"scopes": ["engineering"], "access_level": "internal", "roles": ["reviewer"]},
}
ROLE = {
    "version": "1.0",
    "role_id": "reviewer",
    "source_policy": {"forbidden_sources": [{"pattern": "web", "reason": "rumours"}]},
}
TEXTS = {
    f"{stored.metadata.document_id}#{number}": chunk.content
    for stored in (*SEEN, *HIDDEN[:4])
    for number, chunk in enumerate(stored.chunks)
}
Pair = tuple[Engine, Engine]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A corpus with hidden documents, and one that never had them."""
    folder = tmp_path_factory.mktemp("pair")
    (folder / "reviewer.json").write_text(json.dumps(ROLE), encoding="utf-8")
    engines = []
    for name, documents in (("whole", [*HIDDEN, *SEEN]), ("part", SEEN)):
        (folder / name).mkdir()
        path = build(folder / name, documents, name="corpus.db")
        with Admin(path) as admin:
            set_policy(admin.workspace, json.dumps(POLICY), "json")
            if name == "whole":
                put_mark(admin.workspace, "salary#1", "rejected", "Ana", "wrong")
        engines.append(Engine(path, (folder,)))
    with engines[0], engines[1]:
        yield engines[0], engines[1]


def a_request(generator: random.Random) -> VerifyRequest:
    """A draft of sentences, quotes, figures and citations of anything, against anything."""
    pick = generator.choice
    ids = [*TEXTS]
    texts_without_source = ["Nobody has said that.", "It costs 90,000 euros.", *TEXTS.values()]
    texts = pick(
        [texts_without_source, [chunk.content for stored in SEEN for chunk in stored.chunks]]
    )
    sentences = []
    for _ in range(generator.randrange(1, 5)):
        text = pick(texts)
        name = pick(ids)
        path = f"{name.partition('#')[0]}.md"
        cited = pick(
            ["", "", "", "", "[1]", "[2]", "[9]", f"({name})", f"({path}:1-1)", f"({path}:1-2)"]
        )
        sentence = pick([text, f'They wrote "{text}"', f'It says "{text[: len(text) // 2]}"'])
        sentences.append(f"{sentence.removesuffix('.')} {cited}.")
    chosen = generator.sample(ids, generator.randrange(4))
    named: dict[str, Any] = pick([{}, {"chunk_ids": chosen}, {"bundle": {"selected": [
        {"chunk_id": name} | pick([{}, {"content": TEXTS[name]}, {"content": "Other."}])
        for name in chosen
    ]}}])  # fmt: skip
    return VerifyRequest(
        draft=" ".join(sentences),
        agent=pick(["ada", "ada", "bob", "eve", None]),
        role=pick([None, None, "reviewer", "nobody"]),
        require=pick([None, ["quotes"], ["citations", "coverage"], []]),
        redact=pick([False, True]),
        now=NOW,
        **named,
    )


def outcome(engine: Engine, request: VerifyRequest) -> str:
    try:
        return engine.verify(request).model_dump_json()
    except RolebundleError as error:
        return json.dumps([error.code, error.message, error.hint])


@rounds(60, 10_000)
def test_hidden_passages_change_nothing(pair: Pair, rounds: int) -> None:
    verdicts = set()
    for seed in range(rounds):
        request = a_request(random.Random(seed))
        complete, part = (outcome(engine, request) for engine in pair)
        assert complete == part, request
        verdicts.add(json.loads(complete)["verdict"] if complete.startswith("{") else "refused")
        # What the agent has not written itself is not in the answer either.
        if "salary" not in request.model_dump_json():
            assert "salary" not in complete
    assert {"nothing_wrong_found", "failed", "refused"} <= verdicts
