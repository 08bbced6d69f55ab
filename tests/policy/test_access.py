"""Who sees which compartment. A policy that cannot be relied upon denies everyone."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy
from rolebundle.contracts.policy import AgentRule
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import AccessLevel
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, ConfigurationError
from rolebundle.ingest.options import IngestOptions
from rolebundle.policy.access import access_denied, count_quarantined, denies, may_see
from rolebundle.policy.lint import lint_active_policy, lint_policy, report_policy
from rolebundle.policy.policy_file import parse_policy
from rolebundle.storage import records
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.corpora import build, document
from support.source_tree import write_files

ADA = {"scopes": ["engineering"], "access_level": "internal"}
ALL = {"scopes": ["*"], "access_level": "confidential"}


def compartment(**fields: Any) -> Compartment:
    settings: dict[str, Any] = {
        "id": 1,
        "scope": "engineering",
        "sensitivity": "internal",
        "denied": (),
        "quarantined": False,
        "documents": 3,
        "chunks": 5,
    }
    return Compartment(**(settings | fields))


def rule_of(*scopes: str, level: AccessLevel = "internal", deny: tuple[str, ...] = ()) -> AgentRule:
    return AgentRule(scopes=scopes, access_level=level, deny_patterns=deny)


# -- one rule and one compartment --------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "reaches"),
    [
        ("denied", ""),
        ("public", "public"),
        ("group", "public group"),
        ("internal", "public group internal"),
        ("confidential", "public group internal confidential"),
    ],
)
def test_a_level_reaches_the_sensitivities_up_to_it(level: AccessLevel, reaches: str) -> None:
    rule = rule_of("*", level=level)
    sensitivities = ("public", "group", "internal", "confidential")
    visible = [
        sensitivity
        for sensitivity in sensitivities
        if may_see(rule, compartment(sensitivity=sensitivity))
    ]
    assert " ".join(visible) == reaches


def test_listed_scopes_are_seen_and_a_star_is_every_one() -> None:
    assert may_see(rule_of("hr", "engineering"), compartment())
    assert may_see(rule_of("*"), compartment())
    assert not may_see(rule_of(), compartment())
    assert not may_see(rule_of("hr"), compartment())
    assert not may_see(rule_of("Engineering"), compartment())


def test_a_deny_pattern_takes_precedence_over_scope_and_level() -> None:
    rule = rule_of("*", level="confidential", deny=("hr/**", "*.key"))
    assert not may_see(rule, compartment(denied=("*.key",)))
    # Another agent's pattern.
    assert may_see(rule, compartment(denied=("other/**",)))


def test_quarantined_documents_are_hidden_and_counted() -> None:
    rule = rule_of("engineering", deny=("hr/**",))
    quarantined = compartment(quarantined=True)
    assert not may_see(rule_of("*", level="confidential"), quarantined)
    compartments = [
        quarantined,
        compartment(),
        compartment(quarantined=True, scope="hr"),
        compartment(quarantined=True, sensitivity="confidential"),
        compartment(quarantined=True, denied=("hr/**",)),
    ]
    assert count_quarantined(compartments, rule) == 3
    assert count_quarantined(compartments, None) == 12


# -- deny patterns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("hr/**", "hr/pay.md"),
        ("hr/**", "hr/2026/pay.md"),
        ("hr/*", "hr/2026/pay.md"),
        ("hr/", "hr/pay.md"),
        ("hr", "hr/2026/pay.md"),
        ("./hr/**", "hr/pay.md"),
        ("HR/**", "hr/pay.md"),
        ("hr/**", "HR/Pay.md"),
        ("STRASSE/*", "straße/a.md"),
        ("*.key", "keys/server.key"),
        ("*.KEY", "server.key"),
        ("**/secret*", "a/b/secret-plan.md"),
        ("secret?.md", "secret1.md"),
        ("a/*/c.md", "a/b/c.md"),
        ("a/*/c.md", "a/b/b/c.md"),
        ("**", "anything.md"),
        ("*", "a/b/c.md"),
        ("pay[0-9].md", "hr/pay7.md"),
        ("[A-H]*/**", "hr/pay.md"),
        ("hr\\**", "hr/pay.md"),
        ("/hr/**", "hr/pay.md"),
        (normalize("NFC", "Café/**"), normalize("NFD", "café/menu.md")),
        (normalize("NFD", "Café/**"), normalize("NFC", "café/menu.md")),
    ],
)
def test_a_matching_pattern_denies(pattern: str, path: str) -> None:
    assert denies(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("hr/**", "chr/pay.md"),
        ("hr/**", "hr.md"),
        ("hr", "hr.md"),
        ("*.key", "key.md"),
        ("secret?.md", "secret.md"),
        ("pay[0-9].md", "hr/payx.md"),
        ("a/b.md", "a/c.md"),
    ],
)
def test_another_pattern_does_not_deny(pattern: str, path: str) -> None:
    assert not denies(pattern, path)


def test_a_pattern_matches_if_the_folder_itself_was_ingested() -> None:
    assert denies("hr/**", "pay.md", "/srv/docs/hr/pay.md")
    assert denies("/srv/docs/hr/**", "pay.md", "/srv/docs/hr/pay.md")
    assert denies("hr/**", "pay.md", "C:\\docs\\HR\\pay.md")
    assert not denies("hr/**", "pay.md", "/srv/docs/ops/pay.md")


def test_no_pattern_takes_exponential_time() -> None:
    assert not denies("*a" * 200 + "b", "a" * 300)
    assert not denies("**/a" * 100 + "[b]", "a/" * 300)


# -- an active policy -------------------------------------------------------------------------


DOCUMENTS = [
    document("plan", ["the token plan"], scope="engineering"),
    document("pay", ["the token pay"], scope="hr", sensitivity="confidential"),
]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, DOCUMENTS, name="team.db")


def put(db: Path, values: Any, location: Path | None = None) -> None:
    content = json.dumps(values)
    if location is not None:
        location.write_text(content, encoding="utf-8")
    with Admin(db) as admin:
        set_policy(admin.workspace, content, "json", str(location or ""))


def visible_documents(db: Path, agent: str | None) -> list[str] | str:
    # The copy is not validated: some agents are no valid ids.
    request = RetrievalRequest(task="token", lexical_only=True)
    request = request.model_copy(update={"agent": agent})
    with Engine(db) as engine:
        try:
            return sorted(passage.document_id for passage in engine.retrieve(request).selected)
        except AccessDenied as error:
            assert str(error) == str(access_denied())
            return "denied"


def test_without_a_policy_everyone_sees_everything(db: Path) -> None:
    assert visible_documents(db, None) == visible_documents(db, "whoever") == ["pay", "plan"]


def test_each_agent_sees_what_its_rule_allows(db: Path) -> None:
    put(db, {"ada": ADA, "boss": ALL, "eve": ALL | {"access_level": "denied"}})
    assert visible_documents(db, "ada") == ["plan"]
    assert visible_documents(db, "boss") == ["pay", "plan"]
    for name in ("eve", "nobody", None, "", " ada", "Ada", "ada\0", "\ud800", "*", "agents"):
        assert visible_documents(db, name) == "denied", name


def test_a_policy_without_agents_denies_everyone(db: Path) -> None:
    put(db, {})
    assert visible_documents(db, "ada") == visible_documents(db, None) == "denied"


def test_a_malformed_policy_is_refused_and_the_former_stays_active(db: Path) -> None:
    put(db, {"ada": ADA})
    with pytest.raises(ConfigurationError), Admin(db) as admin:
        set_policy(admin.workspace, "{", "json")
    assert visible_documents(db, "ada") == ["plan"]


# By default the first and the sixth of them are tested.
FILE_FAULTS: dict[str, Callable[[Path], object]] = {
    "another byte": lambda file: file.write_text(file.read_text() + " ", encoding="utf-8"),
    "widened": lambda file: file.write_text(json.dumps({"ada": ALL}), encoding="utf-8"),
    "missing": Path.unlink,
    "huge": lambda file: file.write_bytes(b" " * 2_000_000),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a link to nothing": lambda file: (file.unlink(), file.symlink_to("nowhere")),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_a_damaged_policy_file_denies_everyone_until_it_is_set_again(
    db: Path, tmp_path: Path, fault: str
) -> None:
    file = tmp_path / "policy.json"
    put(db, {"ada": ADA}, file)
    assert visible_documents(db, "ada") == ["plan"]
    FILE_FAULTS[fault](file)
    assert visible_documents(db, "ada") == visible_documents(db, None) == "denied"
    with open_reader(db) as corpus:
        assert [finding.code for finding in lint_active_policy(corpus) if finding.level == "error"]
        report = report_policy(corpus)
    assert report.doubt
    assert [agent.documents for agent in report.agents] == [0]
    put(db, {"ada": ALL}, tmp_path / "other.json")
    assert visible_documents(db, "ada") == ["pay", "plan"]


@pytest.mark.parametrize(
    "change", ["content = '{}'", "content = 'x', digest = 'y'", "format = 'toml'"]
)
def test_a_policy_changed_in_the_corpus_denies_everyone(db: Path, change: str) -> None:
    put(db, {"ada": ADA})
    with open_writer(db) as corpus, corpus.writing():
        corpus.run(f"UPDATE policy SET {change}")
    assert visible_documents(db, "ada") == "denied"


def test_the_policy_applies_to_documents_ingested_later(db: Path, tmp_path: Path) -> None:
    put(db, {"ada": {"scopes": ["*"], "access_level": "internal", "deny_patterns": ["hr/**"]}})
    text = "# A token\n\nthe token\n"
    tree = write_files(tmp_path / "tree", {"hr/pay.md": text, "ops/run.md": text})
    with Admin(db) as admin:
        admin.ingest([tree], IngestOptions(lexical_only=True))
    assert visible_documents(db, "ada") == ["plan", "tree/ops/run.md"]


def test_what_was_ingested_under_an_unreadable_policy_is_hidden(db: Path, tmp_path: Path) -> None:
    """As by a version that does not know a key of it. A policy that is set again shows it."""
    rules = {"ada": {"scopes": ["*"], "access_level": "internal", "deny_patterns": ["hr/**"]}}
    put(db, rules)

    def replace_policy(content: str) -> None:
        with open_writer(db) as corpus, corpus.writing():
            records.save_policy(corpus, content, "json", "", "2026-11-01T00:00:00Z")

    replace_policy("[unknown")
    with Admin(db) as admin:
        tree = write_files(tmp_path / "tree", {"hr/pay.md": "token", "ops/run.md": "token"})
        admin.ingest([tree], IngestOptions(lexical_only=True))
    replace_policy(json.dumps(rules))
    assert visible_documents(db, "ada") == ["plan"]
    put(db, rules)
    assert visible_documents(db, "ada") == ["plan", "tree/ops/run.md"]


# -- lint ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ({"ada": ADA}, ""),
        ({"boss": ALL}, ""),
        ({"boss": ALL | {"scopes": []}}, "no_scopes"),
        ({"boss": {"scopes": [], "access_level": "denied"}}, ""),
        ({}, "no_agents"),
        ({"ada": ADA | {"roles": ["mossline-docs-writer"]}}, ""),
        ({"ada": ADA | {"roles": ["x"]}}, "unknown_role"),
        ({"ada": ADA | {"roles": ["mossline-docs-writer"], "role_required": False}}, "role_optional"),
        (
            {"ada": {"scopes": ["hr", "enginering"], "access_level": "public", "deny_patterns": ["legal/**", "pay*"]}},
            "pattern_matches_nothing unknown_scope",
        ),
    ],
)  # fmt: skip
def test_what_lint_finds(db: Path, values: Any, codes: str) -> None:
    policy = parse_policy(json.dumps(values), "json", "p")
    with open_reader(db) as corpus:
        found = lint_policy(policy, corpus, roles=["mossline-docs-writer"])
    assert sorted({finding.code for finding in found}) == codes.split()
    assert all(finding.message for finding in found)


def test_threads_that_share_an_engine_see_what_their_agents_may_see(db: Path) -> None:
    put(db, {"ada": ADA, "boss": ALL})
    requests = [RetrievalRequest(task="token", agent=agent) for agent in ("ada", "boss") * 12]
    with Engine(db) as engine, ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(engine.retrieve, requests))
    assert [len(answer.selected) for answer in answers] == [1, 2] * 12
