"""How many documents each rule of an overlay touches."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import REMEMBERED_KIND
from rolebundle.contracts.overlay import SourcePolicy
from rolebundle.policy.overlay_lint import corpus_facts
from rolebundle.policy.overlay_reach import Reach, rule_reach
from rolebundle.policy.source_rules import rule_matches, rule_subject
from rolebundle.storage.content.documents import (
    DocumentKind,
    KindCount,
    document_kinds,
    kind_counts,
)
from support.amounts import few_examples
from support.corpora import built, document

names = st.sampled_from(["runbooks", "Runs", "notes", "old/notes"])
kinds = st.builds(
    KindCount,
    st.builds(
        DocumentKind, names, names, names, st.just("file"), st.just("general"), names.map("{}.md".format)
    ),
    st.integers(1, 5),
    st.text(max_size=3),
)  # fmt: skip


@few_examples
@given(st.lists(kinds, max_size=6), names)
def test_a_rule_touches_what_retrieval_matches(counts: list[KindCount], name: str) -> None:
    policy = SourcePolicy.model_validate(
        {
            "preferred_sources": [{"pattern": name}],
            "forbidden_sources": [{"path": f"{name}*"}],
            "domain_boosts": {name: 2.0},
        }
    )
    reach = rule_reach(policy, counts, corpus_facts(count.kind for count in counts))
    for place, rule in (
        ("source_policy.preferred_sources[0]", policy.preferred_sources[0]),
        ("source_policy.forbidden_sources[0]", policy.forbidden_sources[0]),
    ):
        expected = [e for e in counts if rule_matches(rule, rule_subject(e.kind, e.kind.path))]
        assert reach[place].documents == sum(count.documents for count in expected)
        assert set(reach[place].examples) <= {(e.document_id, e.kind.path) for e in expected}
    assert reach[f"source_policy.domain_boosts.{name}"].documents == sum(
        count.documents for count in counts if count.kind.domain == name
    )


PATHS = [
    "a/b.md",
    "A/B/c.md",
    "b.md",
    "\u017fecurity.md",
    "\u212aey.md",
    "\u0130d/\u0131d.md",
    "a/stra\u00dfe.md",
]


@pytest.mark.parametrize(
    "glob",
    ["**", "**/b*", "A/**/b.md", "*/B/*", "**/*SECURITY*", "key*", "id/**", "**/?D.md", "*STRASSE*",
     "a/stra\u1e9ee.md", "a//b"],
)  # fmt: skip
def test_a_glob_touches_what_retrieval_matches(glob: str) -> None:
    kinds = [DocumentKind("s", "t", "d", "file", "general", path) for path in PATHS]
    kinds.append(kinds[0]._replace(source_kind=REMEMBERED_KIND, path="x/a.md/1"))
    policy = SourcePolicy.model_validate({"preferred_sources": [{"path": glob}]})
    (rule,) = policy.preferred_sources
    (reach,) = rule_reach(
        policy, [KindCount(k, 1, "") for k in kinds], corpus_facts(kinds)
    ).values()
    assert reach.documents == sum(rule_matches(rule, rule_subject(k, k.path)) for k in kinds)


def test_documents_are_counted_once_and_named(tmp_path: Path) -> None:
    documents = [document(name, ["text"]) for name in ("a", "b", "c", "d")]
    with built(tmp_path, documents) as corpus:
        counts = kind_counts(corpus)
        assert [count.kind for count in counts] == document_kinds(corpus)
        policy = SourcePolicy.model_validate({"trust_tier_boosts": {"general": 2.0}})
        (reach,) = rule_reach(policy, counts, corpus_facts(count.kind for count in counts)).values()
    assert reach == Reach(4, [(count.document_id, count.kind.path) for count in counts[:3]])
    assert sum(count.documents for count in counts) == 4
