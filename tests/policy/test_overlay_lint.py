"""What lint finds, each with its place; and that right overlays have no findings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.lint import LintProblem
from rolebundle.contracts.overlay import Overlay, Vocabulary
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import TrustTier
from rolebundle.policy import overlays
from rolebundle.policy.lint import (
    CorpusFacts,
    corpus_facts,
    excluded_rules,
    lint_overlay,
    unmatched_rules,
    unmatched_words,
)
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.retrieval.filter import first_rejection
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage.content.documents import DocumentKind
from rolebundle.storage.content.stored_document import StoredChunk, StoredDocument, StoredFile
from rolebundle.storage.opening import open_reader, open_writer
from support import corpora
from support.corpora import put_file
from support.overlay_files import write

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def document(
    source: str, kind: str = "page", domain: str = "general", tier: TrustTier = "general"
) -> DocumentMetadata:
    return DocumentMetadata(
        document_id=f"{source}/{kind}/{domain}/{tier}",
        source_id=source,
        title=source,
        uri=source,
        document_type=kind,
        domain=domain,
        trust_tier=tier,
    )


def overlay(**keys: object) -> Overlay:
    return Overlay.model_validate({"version": "1.0", "role_id": "a", "mission": "Read.", **keys})


def findings_for(folder: Path, **keys: object) -> list[LintProblem]:
    path = folder / "a.json"
    values = {"version": "1.0", "role_id": "a", "mission": "Read.", **keys}
    path.write_text(json.dumps(values), encoding="utf-8")
    return lint_overlay(path, [folder], None)


def brief(findings: list[LintProblem]) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.code, finding.place) for finding in findings]


@pytest.mark.parametrize(
    "path",
    sorted([*data_folder("overlays").glob("*.json"), *demo_overlays().glob("*.json")]),
    ids=lambda p: p.stem,
)
def test_the_shipped_overlays_are_clean(path: Path) -> None:
    assert lint_overlay(path, overlay_folders(), None) == []


def test_the_references_overlays_are_clean(shared: Path) -> None:
    folder = shared / "compat" / "knowledge-core" / "roles"
    found = {path.stem: brief(lint_overlay(path, [folder], None)) for path in folder.glob("*.json")}
    assert len(found) == 5
    assert not any(found.values())


# The overlay alone

SOURCES = "source_policy.preferred_sources"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"extends": "base"}, [("error", "overlay_missing", "extends")], id="no such parent"
        ),
        pytest.param({"mission": " "}, [("warning", "empty_mission", "mission")], id="mission"),
        pytest.param(
            {"vocabulary": {"boost_phrases": ["Trust Boundary"], "suppress_phrases": ["trust boundary"]}},
            [("error", "contradiction", "vocabulary.boost_phrases[0]")],
            id="boosted and suppressed",
        ),
        pytest.param(
            {"vocabulary": {"boost_phrases": ["one", "two", "One"], "synonyms": {"x": ["y", "Y"]}}},
            [
                ("warning", "duplicate_phrase", "vocabulary.boost_phrases[2]"),
                ("warning", "duplicate_phrase", "vocabulary.synonyms.x[1]"),
            ],
            id="duplicates, any case",
        ),
        pytest.param(
            {
                "source_policy": {
                    "preferred_sources": [{"pattern": "wiki"}, {"pattern": "Marketing-Copy"}],
                    "forbidden_sources": [{"pattern": "marketing"}],
                }
            },
            [("error", "forbidden_hides_rule", f"{SOURCES}[1]")],
            id="forbidden and preferred",
        ),
        pytest.param(
            {
                "source_policy": {
                    "preferred_sources": [{"pattern": "security"}],
                    "forbidden_sources": [{"pattern": "security-drafts"}],
                }
            },
            [],
            id="an exception to a preference is fine",
        ),
        pytest.param(
            {"source_policy": {"preferred_sources": [{"pattern": "wiki"}, {"pattern": "team-wiki", "boost": 3}]}},
            [("warning", "shadowed_rule", f"{SOURCES}[1]")],
            id="an earlier rule always matches first",
        ),
        pytest.param(
            {"source_policy": {"preferred_sources": [{"pattern": "wiki", "boost": 0.5}]}},
            [("warning", "demoting_boost", f"{SOURCES}[0].boost")],
            id="a preference that demotes",
        ),
        pytest.param(
            {"retrieval_policy": {"stale_penalty": 1.0}},
            [("warning", "no_effect", "retrieval_policy.stale_penalty")],
            id="nothing is ever stale",
        ),
        pytest.param(
            {"retrieval_policy": {"max_chunks_per_source": 2}},
            [("warning", "no_effect", "retrieval_policy.max_chunks_per_source")],
            id="a maximum without diversity",
        ),
        pytest.param(
            {
                "source_policy": {
                    "preferred_sources": [{"path": "docs/**"}, {"path": "docs/api/*.md"}, {"path": "*.md"}],
                    "forbidden_sources": [{"path": "*.md"}, {"pattern": "docs"}, {"path": "docs/api/*"}],
                }
            },
            [
                ("warning", "shadowed_rule", f"{SOURCES}[1]"),
                ("error", "forbidden_hides_rule", f"{SOURCES}[2]"),
            ],
            id="paths that cover paths",
        ),
        pytest.param(
            {"source_policy": {"forbidden_sources": [{"pattern": "wiki", "boost": 0.5}]}},
            [("warning", "no_effect", "source_policy.forbidden_sources[0].boost")],
            id="a boost of what is forbidden",
        ),
        pytest.param(
            {"retrieval_policy": {"lexical_weight": 0.5}},
            [("note", "rescaled_weights", "retrieval_policy")],
            id="weights that share the rest",
        ),
        pytest.param(
            {
                "misson": "",
                "label": 1,
                "extends": "base",
                "vocabulary": {"boost_phrases": [""], "synonyms": {"x": None}},
            },
            [
                ("error", "overlay_missing", "extends"),
                ("error", "unknown_key", "misson"),
                ("error", "bad_value", "label"),
                ("error", "bad_value", "vocabulary.boost_phrases[0]"),
            ],
            id="mistakes beside a parent that is missing",
        ),
        pytest.param(
            {
                "label": 1,
                "retrieval_policy": {"lexical_weight": 1, "semantic_weight": 1, "fusion": "rff"},
                "vocabulary": {"boost_phrases": ["", "x"], "suppress_phrases": ["y"], "preferred_terms": ["y", "Y"]},
                "source_policy": {"forbidden_sources": [{"path": "a", "pattern": "b"}, {"path": "a/"}]},
            },
            [
                ("error", "bad_value", "label"),
                ("error", "bad_value", "retrieval_policy"),
                ("error", "bad_value", "retrieval_policy.fusion"),
                ("error", "bad_value", "vocabulary.boost_phrases[0]"),
                ("error", "bad_value", "source_policy.forbidden_sources[0]"),
                ("error", "bad_value", "source_policy.forbidden_sources[1].path"),
            ],
            id="every mistake at once",
        ),
    ],
)  # fmt: skip
def test_an_overlay_alone(
    tmp_path: Path, keys: dict[str, object], expected: list[tuple[str, str, str]]
) -> None:
    found = findings_for(tmp_path, **keys)
    assert sorted(brief(found)) == sorted(expected)
    assert all(finding.message for finding in found)


def test_a_name_that_no_role_finds(tmp_path: Path) -> None:
    path = tmp_path / "draft.json"
    path.write_text('{"version": "1.0", "role_id": "a", "mission": "Read."}', encoding="utf-8")
    among = [("error", "overlay_name_mismatch", "role_id")]
    assert brief(lint_overlay(path, [tmp_path], None)) == among
    assert brief(lint_overlay(path, [], None)) == [("warning", *among[0][1:])]


def test_what_is_inherited_is_linted_too(tmp_path: Path) -> None:
    base = {
        "version": "1.0",
        "role_id": "base",
        "mission": "Read.",
        "source_policy": {"forbidden_sources": [{"pattern": "wiki"}]},
    }
    (tmp_path / "base.json").write_text(json.dumps(base), encoding="utf-8")
    found = findings_for(
        tmp_path, extends="base", source_policy={"preferred_sources": [{"pattern": "team-wiki"}]}
    )
    assert brief(found) == [("error", "forbidden_hides_rule", f"{SOURCES}[0]")]


# Against a corpus

FACTS = corpus_facts(
    [
        DocumentKind("Team-Wiki", "page", "engineering", "wiki", "general", "eng/deploy/plan.md"),
        DocumentKind("team-wiki", "note", "marketing", "wiki", "preferred", "notes/launch.md"),
        DocumentKind("handbook", "policy", "law", "internal-document", "general", "law.md"),
    ]
)


def against(role: Overlay, facts: CorpusFacts) -> list[LintProblem]:
    return [*unmatched_rules(role, facts), *excluded_rules(role, facts)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(
            {
                "preferred_sources": [{"pattern": "WIKI"}, {"pattern": "wikis"}],
                "allowed_sources": [{"pattern": "wiki"}, {"pattern": "forum"}],
                "forbidden_sources": [{"pattern": "laws"}],
                "trust_tier_boosts": {"preferred": 2, "untrusted": 0.1},
                "document_type_boosts": {"note": 2, "Page": 2},
                "domain_boosts": {"law": 2, "legal": 2},
            },
            [
                ("warning", "never_matches", f"{SOURCES}[1]"),
                ("warning", "never_matches", "source_policy.allowed_sources[1]"),
                ("warning", "never_matches", "source_policy.forbidden_sources[0]"),
                ("warning", "never_matches", "source_policy.trust_tier_boosts.untrusted"),
                ("warning", "never_matches", "source_policy.document_type_boosts.Page"),
                ("warning", "never_matches", "source_policy.domain_boosts.legal"),
            ],
            id="rules that match nothing",
        ),
        pytest.param(
            {
                "preferred_sources": [{"path": "eng/*"}, {"path": "eng/**"}],
                "allowed_sources": [{"path": "law.md"}, {"path": "eng/deploy/*"}],
                "forbidden_sources": [{"path": "Note/*"}],
            },
            [
                ("warning", "never_matches", f"{SOURCES}[0].path"),
                ("warning", "never_matches", "source_policy.forbidden_sources[0].path"),
            ],
            id="paths that match nothing",
        ),
        pytest.param(
            {"preferred_sources": [{"pattern": "wiki"}], "forbidden_sources": [{"path": "**"}]},
            [
                ("error", "forbids_everything", "source_policy"),
                ("error", "forbidden_hides_rule", f"{SOURCES}[0]"),
            ],
            id="everything is forbidden",
        ),
        pytest.param(
            {"allowed_sources": [{"pattern": "forum"}]},
            [
                ("warning", "never_matches", "source_policy.allowed_sources[0]"),
                ("error", "forbids_everything", "source_policy"),
            ],
            id="nothing is allowed",
        ),
        pytest.param(
            {
                "preferred_sources": [{"pattern": "wiki"}],
                "forbidden_sources": [{"pattern": "marketing"}],
            },
            [("warning", "forbidden_overlaps_rule", f"{SOURCES}[0]")],
            id="a part of what is preferred is forbidden",
        ),
        pytest.param(
            {
                "preferred_sources": [{"pattern": "wiki"}],
                "forbidden_sources": [{"pattern": "wik"}],
            },
            [],
            id="what the overlay alone shows is not said twice",
        ),
        pytest.param(
            {
                "preferred_sources": [{"pattern": "handbook"}],
                "allowed_sources": [{"pattern": "wiki"}],
            },
            [("error", "forbidden_hides_rule", f"{SOURCES}[0]")],
            id="all that is preferred is not among the allowed",
        ),
    ],
)
def test_against_facts(policy: dict[str, object], expected: list[tuple[str, str, str]]) -> None:
    assert brief(against(overlay(source_policy=policy), FACTS)) == expected


patterns = st.sampled_from(["wiki", "Team", "note", "a", "e", "market", "zz"])
rules = st.lists(st.fixed_dictionaries({"pattern": patterns}), min_size=1, max_size=2)
sources = st.sampled_from(["team-wiki", "Marketing", "note"])


@given(rules, rules, st.lists(st.tuples(sources, sources, sources), min_size=1, max_size=4))
def test_what_lint_calls_hidden_is_what_the_filter_rejects(
    preferred: list[dict[str, str]],
    forbidden: list[dict[str, str]],
    names: list[tuple[str, str, str]],
) -> None:
    # The first preference only: the others may be hidden by it, which is another finding.
    policy = {"preferred_sources": preferred[:1], "forbidden_sources": forbidden}
    role = overlay(source_policy=policy)
    documents = [document(*triple) for triple in names]
    wanted = preferred[0]["pattern"].casefold()
    matched = [d for d, triple in zip(documents, names, strict=True)
               if any(wanted in name.casefold() for name in triple)]  # fmt: skip
    request = resolve_request(RetrievalRequest(task="x"), NOW, role)
    for_all = {"applicable_roles": (), "excluded_roles": (), "flags": (), "mark": None, "path": "x"}
    refused = [
        d for d in matched if first_rejection(SimpleNamespace(document=d, **for_all), request)
    ]
    facts = corpus_facts(
        DocumentKind(d.source_id, d.document_type, d.domain, d.source_kind, d.trust_tier, "x")
        for d in documents
    )
    codes = {finding.code for finding in against(role, facts)}
    are_all_rejected = all(first_rejection(SimpleNamespace(document=d, **for_all), request) for d in documents)  # fmt: skip
    assert ("forbids_everything" in codes) == are_all_rejected
    if any(rule["pattern"].casefold() in wanted for rule in forbidden):
        assert len(refused) == len(matched)
    else:
        assert ("forbidden_hides_rule" in codes) == (bool(matched) and len(refused) == len(matched))
        assert ("forbidden_overlaps_rule" in codes) == (0 < len(refused) < len(matched))


def test_words_that_no_passage_has(tmp_path: Path) -> None:
    texts = ["A rollback plan for each release", "数据库 备份", "Die Verträge der Firma"]
    documents = [corpora.document(f"d{n}", [text]) for n, text in enumerate(texts)]
    words = Vocabulary(
        preferred_terms=["rollback", "roll back", "备份", "++", '"'],
        boost_phrases=["rollback plans", "plan rollback"],
        suppress_phrases=["Vertrag", "Zebra"],
        synonyms={"unheard of": ["releases", "zebra"]},
    )
    with open_reader(corpora.build(tmp_path, documents)) as corpus:
        places = [finding.place for finding in unmatched_words(words, corpus)]
        assert [*unmatched_words(Vocabulary(), corpus)] == []
    assert places == [
        "vocabulary.preferred_terms[1]",
        "vocabulary.preferred_terms[3]",
        "vocabulary.preferred_terms[4]",
        "vocabulary.synonyms.unheard of[1]",
        "vocabulary.boost_phrases[1]",
        "vocabulary.suppress_phrases[1]",
    ]


def test_what_a_shipped_overlay_gives_is_not_expected_in_every_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"preferred_terms": ["zebra"], "boost_phrases": ["zebra"]}
    parent = write(tmp_path, "parent", vocabulary=words, mission="Read.")
    child = write(
        tmp_path,
        "child",
        extends="parent",
        vocabulary={"boost_phrases": ["lion"]},
        source_policy={"forbidden_sources": [{"path": "lions/**"}]},
    )
    monkeypatch.setattr(overlays, "data_folder", lambda _: tmp_path)
    database = corpora.build(tmp_path, [corpora.document("d", ["text"])])
    with open_reader(database) as corpus:
        assert len(lint_overlay(parent, [tmp_path], corpus)) == 2
    nested = tmp_path / "own"
    nested.mkdir()
    own = nested / child.name
    child.rename(own)
    with open_reader(database) as corpus:
        found = brief(lint_overlay(own, [nested, tmp_path], corpus))
    assert found == [
        ("warning", "never_matches", "source_policy.forbidden_sources[0].path"),
        ("warning", "never_matches", "vocabulary.boost_phrases[0]"),
    ]


def test_against_a_corpus_file(tmp_path: Path) -> None:
    chunk = StoredChunk("c1", (), "text", "paragraph", "0" * 32, 1, 1)
    stored = StoredDocument(document("handbook", "policy", "law"), (chunk,))
    location = tmp_path / "corpus.db"
    with open_writer(location) as corpus, corpus.writing():
        put_file(corpus, StoredFile("/x", "x", "0" * 32, "r"), [stored])
    path = tmp_path / "a.json"
    policy = {"domain_boosts": {"law": 2, "lwa": 2}}
    path.write_text(overlay(source_policy=policy).model_dump_json(), encoding="utf-8")
    with open_reader(location) as corpus:
        found = [f for f in lint_overlay(path, [tmp_path], corpus) if f.code == "never_matches"]
    assert [finding.place for finding in found] == ["source_policy.domain_boosts.lwa"]
    assert "did you mean law?" in found[0].message
