"""Why a passage is selected or not, for a role, for an agent, and for roles side by side."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.why import Why
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, UsageError
from rolebundle.interfaces.cli.explain import text
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.memory.marks import put_mark
from rolebundle.policy.overlays import list_overlays, load_role
from rolebundle.resources import demo_overlays
from rolebundle.retrieval.compare import compare_roles, jaccard
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.retrieval.values import POOL_DEPTH
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import Scanned, StoredDocument
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.commands import SAMPLE, audit_rows, invoke
from support.corpora import (
    NOW,
    ask,
    build,
    built,
    document,
    file_of,
    fill,
    overlay,
    put_file,
    resolved,
    scratch_folder,
    set_policy,
)
from support.fake_embedder import HashingProvider
from support.overlay_files import write
from support.strategies import LONG

# -- `why` agrees with `retrieve` about a passage, and names the score to beat ---------------------

PROVIDER = HashingProvider()


def why(
    corpus: Corpus,
    reference: str,
    role: Overlay | None = None,
    provider: EmbeddingProvider | None = None,
    **fields: Any,
) -> Why:
    request = resolved(role, **fields)
    model = None if request.echo.lexical_only else provider
    return explain(corpus, request, reference, ReferenceRules(), model)


def why_of(documents: list[StoredDocument], reference: str, *role: Overlay, task: str) -> Why:
    with scratch_folder() as folder, built(folder, documents) as corpus:
        return why(corpus, reference, *role, task=task)


def many(number: int = 15) -> list[StoredDocument]:
    # The word sinks ever deeper, so that scores differ.
    return [document("many", [f"token {'filler ' * n}number{n}" for n in range(number)])]


@pytest.fixture
def listed(tmp_path: Path) -> Iterator[Corpus]:
    with built(tmp_path, many()) as corpus:
        yield corpus


def test_a_forbidden_source() -> None:
    rules = [{"pattern": "blog", "reason": "hearsay"}, {"pattern": "wi"}, {"pattern": "LOG"}]
    role = overlay(source_policy={"forbidden_sources": rules}, role_id="other")
    post = document("post", ["token token"], source_id="blog")
    documents = [document("wiki", ["token of the day"]), post]
    found = why_of(documents, "post#0", role, task="token")
    assert (found.outcome, found.step, found.code) == ("rejected", "filter", "forbidden_source")
    assert (found.notes, found.filter.notes) == ("blog: hearsay", "blog: hearsay")
    # What it would have been: the best.
    assert (found.score.supposed, found.score.rank, found.rank) == (True, 1, None)
    assert found.lost_to == []


class TestTheCut:
    def test_the_limit(self, listed: Corpus) -> None:
        found = why(listed, "many#12", task="token", limit=8)
        assert (found.outcome, found.step, found.code) == ("rejected", "cut", "budget_cut")
        last = ask(listed, None, task="token", limit=8).selected[-1]
        assert [rival.rank for rival in found.lost_to] == [6, 7, 8]
        assert found.lost_to[-1].chunk_id == last.chunk_id
        assert found.lost_to[-1].final == last.scores.final
        assert found.score.to_beat == last.scores.final > found.score.scores.final

    @pytest.mark.parametrize(
        ("reference", "min_score", "fields", "code"),
        [
            # A low score behind a full selection.
            ("many#14", 0.6, {"limit": 1}, "low_score"),
            ("many#9", 0.1, {"token_budget": 20}, "budget_cut"),
        ],
    )
    def test_the_score_to_beat_is_that_of_the_last_one(
        self, listed: Corpus, reference: str, min_score: float, fields: dict[str, int], code: str
    ) -> None:
        role = overlay(retrieval_policy={"min_score": min_score})
        found = why(listed, reference, role, task="token", **fields)
        last = ask(listed, role, task="token", **fields).selected[-1]
        assert (found.code, found.score.to_beat) == (code, last.scores.final)

    def test_evidence_that_is_required(self, listed: Corpus) -> None:
        task = "token " + " ".join(f"unheard{letter}" for letter in "abcdefghi")
        found = why(listed, "many#3", task=task, evidence="required")
        assert (found.step, found.code) == ("cut", "low_score")
        assert why(listed, "many#3", task=task, limit=50).outcome == "selected"

    @pytest.mark.parametrize(
        ("documents", "reference", "code", "rival"),
        [
            ([document("a", [f"token {LONG}"]), document("b", [f"token {LONG}"])],
             "b", "duplicate", (1, "a#0")),
            ([document("old", ["token token token"]),
              document("new", ["the token of today"], supersedes=("old",))],
             "old", "conflict_downrank", (1, "new#0")),
        ],
    )  # fmt: skip
    def test_what_stands_for_it_is_named(
        self, documents: list[StoredDocument], reference: str, code: str, rival: tuple[int, str]
    ) -> None:
        found = why_of(documents, reference, task="token")
        assert (found.code, found.chunk_id) == (code, f"{reference}#0")
        assert [(each.rank, each.chunk_id) for each in found.lost_to] == [rival]

    def test_a_claim_that_is_ignored(self) -> None:
        documents = [
            document("policy", ["the token of the policy"], trust_tier="preferred"),
            document("mail", ["other"], supersedes=("policy",)),
        ]
        found = why_of(documents, "policy", task="token")
        assert (found.outcome, found.ignored_claims) == ("selected", ["mail"])
        line = "mail claims to supersede its document, but may not"
        assert line in text(found).splitlines()


def test_a_passage_beyond_the_depth_of_the_lanes(tmp_path: Path) -> None:
    with built(tmp_path, many(POOL_DEPTH + 20), PROVIDER) as corpus:
        fates = [
            why(corpus, f"many#{n}", None, PROVIDER, task="token")
            for n in range(0, POOL_DEPTH + 20, 5)
        ]
    lost = [answer for answer in fates if answer.outcome == "not_proposed"]
    assert lost
    for answer in lost:
        for trace in answer.lanes:
            if trace.by in ("task_words", "meaning"):
                assert (trace.pool, trace.depth, trace.rank) == (POOL_DEPTH, POOL_DEPTH, None)
                assert trace.score <= trace.least
        assert {"task_words", "meaning"} <= {trace.by for trace in answer.lanes}


@pytest.mark.parametrize("task", ["jam", "token"])
def test_a_document_that_was_not_ranked_has_the_passage_that_would_rank_best(task: str) -> None:
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "blog"}]},
                   vocabulary={"boost_phrases": ["x", "y", "z", "sweet"]})  # fmt: skip
    texts = ["butter", "jam and sweet bread", "salt"]
    documents = [*many(2), document("food", texts, source_id="blog")]
    found = why_of(documents, "food", role, task=task)
    assert (found.chunk_id, found.passages) == ("food#1", 3)
    assert found.outcome == ("rejected" if task == "jam" else "not_proposed")


TASK = "What should we worry about before release 3.0, offline sync or the token refresh?"
OVERLAYS = demo_overlays()
ROLES = [entry.role_id for entry in list_overlays([OVERLAYS]) if not entry.problem]


@pytest.fixture(scope="module")
def sample() -> Iterator[Corpus]:
    with scratch_folder() as folder:
        with Admin(Workspace(folder / "sample.db", PROVIDER)) as admin:
            admin.ingest([SAMPLE])
        with open_reader(folder / "sample.db") as corpus:
            yield corpus


@pytest.mark.parametrize(
    ("role_id", "lexical_only", "step"),
    [
        (ROLES[0], True, 400),
        pytest.param(ROLES[0], True, 1, marks=pytest.mark.slow),
        *(pytest.param(role, False, 1, marks=pytest.mark.slow) for role in ROLES),
    ],
)
def test_why_agrees_with_retrieve(
    sample: Corpus, role_id: str, lexical_only: bool, step: int
) -> None:
    """By default about the first two selected passages, one of each rejection code, and every 400th.

    If slow tests run, for every role about every passage.
    """
    role = load_role(role_id, [OVERLAYS]).overlay
    fields = {"task": TASK, "lexical_only": lexical_only}
    bundle = ask(sample, role, PROVIDER, **fields)
    selected = {chunk.chunk_id: chunk for chunk in bundle.selected}
    expected: dict[str, tuple[object, ...]] = {
        name: ("selected", passage.rank, None, "") for name, passage in selected.items()
    }
    one_of_each_code = {}
    for rejection in bundle.rejected:
        one_of_each_code.setdefault(rejection.reason, rejection.chunk_id)
        found = ("rejected", None, rejection.reason, rejection.notes)
        expected[rejection.chunk_id] = found
    unfound = ("not_proposed", None, None, "no lane proposed it")
    outcomes = set()
    every = sample.column("SELECT chunk_id FROM chunk ORDER BY id")
    some = every[8 * ROLES.index(role_id) % step :: step]
    chunk_ids = sorted({*list(selected)[:2], *one_of_each_code.values(), *some})
    for chunk_id in chunk_ids:
        found = why(sample, chunk_id, role, PROVIDER, **fields)
        explanation = (found.outcome, found.rank, found.code, found.notes)
        assert explanation == expected.get(chunk_id, unfound), chunk_id
        if chunk_id in selected:
            assert found.score.scores == selected[chunk_id].scores
        assert any(lane_trace.proposed for lane_trace in found.lanes) == (chunk_id in expected)
        is_cut = found.score.code in ("low_score", "budget_cut")
        assert (found.score.to_beat is not None) == is_cut
        in_the_cut = found.outcome == "selected" or found.step == "cut"
        assert found.score.supposed == (not in_the_cut)
        outcomes.add(found.outcome)
    assert outcomes >= {"selected", "rejected"}
    assert ("not_proposed" in outcomes) == any(name not in expected for name in chunk_ids)


# -- The owner asks what keeps a passage from an agent; an agent learns nothing of it --------------

TASK_AGENT = "the token limit"
RULE = {
    "scopes": ["shared"],
    "access_level": "internal",
    "deny_patterns": ["denied-*.md"],
    "roles": ["reader"],
    "role_required": False,
}
READER = {
    "version": "1.0",
    "role_id": "reader",
    "source_policy": {"forbidden_sources": [{"pattern": "draft", "reason": "not final"}]},
}
PER_RULE = 5


def _hidden() -> dict[str, tuple[str, StoredDocument]]:
    """Document id → the rule that hides it, and the document."""
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "scope": ("scope", {"scope": "hr"}),
        "level": ("access_level", {"sensitivity": "confidential"}),
        "denied": ("deny_pattern", {}),
        "quarantined": ("quarantine", {}),
        "role": ("role", {"document_type": "draft"}),
        "tainted": ("trust", {"origin": "untrusted"}),
        "marked": ("mark", {}),
        "expired": ("validity", {"valid_until": "2020-01-01T00:00:00Z"}),
    }
    return {
        f"{kind}-{number}": (
            rule,
            document(f"{kind}-{number}", [f"the token limit is {kind} {number}"], **fields),
        )
        for kind, (rule, fields) in kinds.items()
        for number in range(PER_RULE)
    }


def corpus_with(folder: Path, documents: dict[str, tuple[str, StoredDocument]]) -> Path:
    (folder / "reader.json").write_text(json.dumps(READER), encoding="utf-8")
    db = build(folder, [document("limits", ["the token limit is forty"])])
    scanned = Scanned("quarantine", "h", '["instruction_override"]', "[]", "")
    with open_writer(db) as corpus, corpus.writing():
        for name, (rule, stored) in documents.items():
            found = replace(stored, scanned=scanned) if rule == "quarantine" else stored
            put_file(corpus, file_of(name), [found])
    with Admin(db) as admin:
        for number in range(PER_RULE):
            put_mark(admin.workspace, f"marked-{number}", "rejected", "Ana", "it is wrong")
    set_policy(db, {"ada": RULE, "eve": {**RULE, "scopes": ["none"]}})
    return db


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return corpus_with(tmp_path, _hidden())


def request(agent: str | None = "ada", **fields: Any) -> RetrievalRequest:
    return RetrievalRequest(
        task=TASK_AGENT, agent=agent, role="reader", action="suggest", lexical_only=True, now=NOW,
        **fields,
    )  # fmt: skip


def test_the_rule_is_named(db: Path) -> None:
    with Engine(db, (db.parent,)) as engine:
        for name, (rule, _) in _hidden().items():
            answer = engine.why_as_agent(request(), f"{name}#0")
            assert [one.rule for one in answer.hidden] == [rule], name
            assert answer.hidden[0].note
            assert answer.hidden[0].next
        seen = engine.why_as_agent(request(), "limits#0")
        assert seen.hidden == []
        assert seen.why.outcome == "selected"
        nobody = engine.why_as_agent(request("nobody"), "limits#0")
        assert [one.rule for one in nobody.hidden] == ["agent"]
        with pytest.raises(UsageError):
            engine.why_as_agent(request(), "nothing#0")


def test_several_rules_are_all_named(db: Path) -> None:
    with Engine(db) as engine:
        answer = engine.why_as_agent(request("eve"), "denied-0#0")
    assert [one.rule for one in answer.hidden] == ["scope", "deny_pattern"]


def test_the_command_line_and_no_other_interface_has_it(db: Path) -> None:
    command = ("why", "scope-0#0", TASK_AGENT, "--db", db, "--as-agent", "ada")
    outcome = invoke(*command)
    assert outcome.code == 0
    assert "agent: ada\n" in outcome.out and "hidden: rule scope, note " in outcome.out
    assert invoke(*command, "--json").json()["hidden"][0]["rule"] == "scope"
    assert invoke(*command, "--agent", "ada").code == 2
    with Engine(db, agent="ada") as engine, pytest.raises(AccessDenied):
        engine.why_as_agent(request(), "scope-0#0")
    with Engine(db) as engine:
        assert "why_as_agent" not in Operations(engine, allow_write=True).offered_methods


def _what_ada_learns(db: Path) -> list[str]:
    """The bytes of what the agent gets of hidden and missing passages, and of its own rows."""
    hidden = [name for name, (rule, _) in _hidden().items() if rule in HIDING]
    got = []
    with Engine(db, (db.parent,)) as engine:
        engine.retrieve(request())
        for name in [*hidden, "nothing-0"]:
            with pytest.raises(UsageError) as refused:
                engine.why(request(), f"{name}#0")
            got.append(f"{refused.value.code} {refused.value}".replace(name, "NAME"))
    rows = [row | {"time": ""} for row in audit_rows(db, "--agent", "ada")]
    return [*got, json.dumps(rows)]


HIDING = ("scope", "access_level", "deny_pattern")


def test_an_agent_learns_nothing(db: Path) -> None:
    with_hidden = _what_ada_learns(db)
    blocked = next(row["blocked"] for row in audit_rows(db) if row["kind"] == "retrieve")
    assert {code: blocked[code] for code in HIDING} == dict.fromkeys(HIDING, PER_RULE)
    with Engine(db, (db.parent,)) as engine:
        engine.why_as_agent(request(), "scope-0#0")
    after = [row | {"time": ""} for row in audit_rows(db, "--agent", "ada")]
    assert json.dumps(after) == with_hidden[-1]
    assert not set(HIDING) & set(json.loads(with_hidden[-1])[0]["blocked"])


def test_its_rows_do_not_depend_on_what_is_hidden(db: Path, tmp_path: Path) -> None:
    """Byte for byte those of a corpus without the hidden documents."""
    folder = tmp_path / "without"
    folder.mkdir()
    shown = {name: one for name, one in _hidden().items() if one[0] not in HIDING}
    other = corpus_with(folder, shown)
    ends = [_what_ada_learns(one) for one in (db, other)]
    blocked = [[row["blocked"] for row in json.loads(end[-1])] for end in ends]
    assert blocked[0] == blocked[1]
    assert ends[0][:-1] == ends[1][:-1]


# -- The comparison of roles: shared passages, own passages and rejections -------------------------

DOCUMENTS = (
    document("both", ["token plan"]),
    document("posts", ["token news", "token gossip"], source_id="blog"),
    document("words", ["credential plan"]),
)
FORBIDS = overlay(
    role_id="strict",
    source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}]},
    retrieval_policy={"min_score": 0.0},
)
WIDE = overlay(
    role_id="wide",
    vocabulary={"boost_phrases": ["credential"]},
    retrieval_policy={"min_score": 0.0},
)


def test_each_passage_has_its_standing_with_each_role(tmp_path: Path) -> None:
    with built(tmp_path, DOCUMENTS) as corpus:
        bundles = [ask(corpus, role, task="token") for role in (None, FORBIDS, WIDE)]
    comparison = compare_roles(bundles)
    assert [view.role_id for view in comparison.roles] == ["", "strict", "wide"]
    shares = [view.role_share for view in comparison.roles]
    assert shares == [bundle.evidence and bundle.evidence.role_share for bundle in bundles]
    standings = {passage.chunk_id: passage.standings for passage in comparison.passages}
    _, forbidden, has = standings["posts#0"]
    assert (forbidden.role_id, forbidden.state) == ("strict", "rejected")
    assert (forbidden.reason, forbidden.notes) == ("forbidden_source", "blog: hearsay")
    assert (has.state, has.reason) == ("selected", None)
    assert has.rank is not None and has.score is not None
    assert standings["words#0"][0].state == "not_found"
    # What is selected has the rules that it met.
    hits = {name: [each.overlay_hits for each in found] for name, found in standings.items()}
    assert hits["words#0"] == [None, None, ["vocab:boost(credential)"]]
    assert hits["both#0"] == [[], [], []]


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [("", "", 1.0), ("a", "", 0.0), ("ab", "ab", 1.0), ("ab", "bc", 0.333333), ("a", "b", 0.0)],
)
def test_jaccard(first: str, second: str, share: float) -> None:
    assert jaccard({*first}, {*second}) == jaccard({*second}, {*first}) == share


def test_a_write_between_two_answers_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("one", "two"):
        write(tmp_path, role)
    workspace = Workspace(build(tmp_path, DOCUMENTS), HashingProvider())
    with Engine(workspace, [tmp_path]) as engine:
        answer = engine.retrieve

        def answer_and_write(*arguments: Any) -> RetrievalBundle:
            bundle = answer(*arguments)
            with open_writer(workspace.path) as corpus:
                fill(corpus, [document(f"new-{bundle.role_id}", ["token"])])
            return bundle

        monkeypatch.setattr(engine, "retrieve", answer_and_write)
        before = engine.status().corpus.documents
        found = engine.compare(RetrievalRequest(task="token", lexical_only=True), ["one", "two"])
        after = engine.status().corpus.documents
    assert found.corpus.documents == before, "one snapshot for all roles"
    assert after == before + 2
