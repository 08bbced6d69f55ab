"""What lint finds, each with its place; and that right overlays have no findings."""

import json
from pathlib import Path

import pytest

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.overlay import LintProblem, Overlay, SourceRule, Vocabulary
from rolebundle.contracts.terms import TrustTier
from rolebundle.policy import overlays
from rolebundle.policy.lint import excluded_rules, lint_overlay, unmatched_rules, unmatched_words
from rolebundle.policy.overlays import overlay_folders, rule_matches, rule_subject
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.storage.documents import DocumentKind, StoredChunk, StoredDocument, StoredFile
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support import corpora
from support.corpora import put_file
from support.overlay_files import write


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


def brief(findings: list[LintProblem]) -> list[str]:
    return [f"{finding.level} {finding.code} {finding.place}" for finding in findings]


@pytest.mark.parametrize(
    "path",
    sorted([*data_folder("overlays").glob("*.json"), *demo_overlays().glob("*.json")]),
    ids=lambda p: p.stem,
)
def test_the_shipped_overlays_are_clean(path: Path) -> None:
    assert lint_overlay(path, overlay_folders(), None) == []


# The overlay alone


ALONE: dict[str, tuple[dict[str, object], list[str]]] = {
    "nothing": ({}, []),
    "mission": ({"mission": " "}, ["warning empty_mission mission"]),
    "boosted and suppressed": ({"vocabulary": {"boost_phrases": ["Trust Boundary"],
        "suppress_phrases": ["trust boundary"]}},
        ["error contradiction vocabulary.boost_phrases[0]"]),
    "no such parent": ({"extends": "base"}, ["error overlay_missing "]),
    "every mistake at once": ({"label": 1, "retrieval_policy": {"fusion": "rff"}, "vocabulary": {"boost_phrases": ["", "x"],
        "suppress_phrases": ["y"], "preferred_terms": ["y", "Y"]},
        "source_policy": {"forbidden_sources": [{"path": "a", "pattern": "b"}, {"path": "a/"}]}},
        ["error bad_value label", "error bad_value retrieval_policy.fusion", "error bad_value vocabulary.boost_phrases[0]",
         "error bad_value source_policy.forbidden_sources[0]",
         "error bad_value source_policy.forbidden_sources[1].path"]),
}  # fmt: skip
"""Case → what an overlay says, and the level, code and place of what lint finds."""


@pytest.mark.parametrize("case", ALONE)
def test_an_overlay_alone(tmp_path: Path, case: str) -> None:
    keys, expected = ALONE[case]
    found = findings_for(tmp_path, **keys)
    assert sorted(brief(found)) == sorted(expected)
    assert all(finding.message for finding in found)


def test_a_name_that_no_role_finds(tmp_path: Path) -> None:
    path = tmp_path / "draft.json"
    path.write_text('{"version": "1.0", "role_id": "a", "mission": "Read."}', encoding="utf-8")
    for folders, level in (([tmp_path], "error"), ([], "warning")):
        found = brief(lint_overlay(path, folders, None))
        assert found == [f"{level} overlay_name_mismatch role_id"]


# Against a corpus

KINDS = [
    DocumentKind("Team-Wiki", "page", "engineering", "wiki", "general", "eng/deploy/plan.md"),
    DocumentKind("team-wiki", "note", "marketing", "wiki", "preferred", "notes/launch.md"),
    DocumentKind("handbook", "policy", "law", "internal-document", "general", "law.md"),
]


IN_A_CORPUS: dict[str, tuple[dict[str, object], list[str]]] = {
    "rules that match nothing": ({"preferred_sources": [{"pattern": "WIKI"}, {"pattern": "wikis"}],
        "allowed_sources": [{"pattern": "wiki"}, {"path": "eng/deploy/*"}, {"path": "eng/*"}],
        "forbidden_sources": [{"pattern": "laws"}], "trust_tier_boosts": {"preferred": 2,
        "untrusted": 0.1}, "document_type_boosts": {"note": 2, "Page": 2},
        "domain_boosts": {"law": 2, "legal": 2}},
        ["warning never_matches source_policy.preferred_sources[1]",
         "warning never_matches source_policy.allowed_sources[2].path",
         "warning never_matches source_policy.forbidden_sources[0]",
         "warning never_matches source_policy.trust_tier_boosts.untrusted",
         "warning never_matches source_policy.document_type_boosts.Page",
         "warning never_matches source_policy.domain_boosts.legal"]),
    "everything is forbidden": ({"preferred_sources": [{"pattern": "wiki"}],
        "forbidden_sources": [{"path": "**"}]},
        ["error forbids_everything source_policy",
         "error forbidden_hides_rule source_policy.preferred_sources[0]"]),
    "a part of what is preferred is forbidden": ({"preferred_sources": [{"pattern": "wiki"}],
        "forbidden_sources": [{"pattern": "marketing"}]}, []),
    "all that is preferred is not among the allowed": ({
        "preferred_sources": [{"pattern": "handbook"}], "allowed_sources": [{"pattern": "wiki"}]},
        ["error forbidden_hides_rule source_policy.preferred_sources[0]"]),
}  # fmt: skip
"""Case → the policy of sources, and what lint finds with these documents."""


@pytest.mark.parametrize("case", IN_A_CORPUS)
def test_against_facts(case: str) -> None:
    policy, expected = IN_A_CORPUS[case]
    role = overlay(source_policy=policy)
    types = {kind.document_type for kind in KINDS}
    assert brief([*unmatched_rules(role, KINDS, types), *excluded_rules(role, KINDS)]) == expected


@pytest.mark.parametrize(
    ("rule", "suggested"),
    [
        ({"pattern": "team_wiki"}, {"pattern": "team-wiki"}),
        ({"pattern": "Deploys"}, {"path": "eng/deploy/**"}),
        ({"path": "note/**"}, {"path": "notes/**"}),
        ({"path": "**/*lanch*"}, {"path": "**launch**"}),
        ({"path": "zzz/**"}, None),
    ],
)
def test_what_is_suggested_matches(rule: dict[str, str], suggested: dict[str, str] | None) -> None:
    role = overlay(source_policy={"preferred_sources": [rule]})
    [problem] = unmatched_rules(role, KINDS, ())
    [(key, value)] = (suggested or rule).items()
    written = value if key in rule else f'"path": "{value}"'
    assert problem.message.endswith(f"; did you mean {written}?") == (suggested is not None)
    if suggested:
        found = SourceRule.model_validate(suggested)
        assert any(rule_matches(found, rule_subject(kind, kind.path)) for kind in KINDS)


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
        "warning never_matches source_policy.forbidden_sources[0].path",
        "warning never_matches vocabulary.boost_phrases[0]",
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
