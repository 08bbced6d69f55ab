"""The order of authority: flags > the owner's manifest > the document."""

from __future__ import annotations

import json
import os
import shutil
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.terms import ORIGINS, TRUST_TIERS, Sensitivity, trust_rank
from rolebundle.ingest.authority import Authority
from support.amounts import rounds
from support.commands import invoke
from support.source_tree import Tree, codes, front

SENSITIVITIES = get_args(Sensitivity)


# -- the rule ------------------------------------------------------------------------------------


values_of = st.fixed_dictionaries(
    {},
    optional={
        "trust_tier": st.sampled_from(TRUST_TIERS),
        "origin": st.sampled_from(ORIGINS),
        "sensitivity": st.sampled_from(SENSITIVITIES),
        "scope": st.sampled_from(["shared", "team"]),
        "source_id": st.sampled_from(["a", "b"]),
        "document_id": st.sampled_from(["x", "y"]),
        "supersedes": st.lists(st.sampled_from(["p", "q"]), unique=True),
        "applicable_roles": st.lists(st.sampled_from(["r", "s"]), unique=True),
        "excluded_roles": st.lists(st.sampled_from(["r", "s"]), unique=True),
    },
)
tiers_or_none = st.sampled_from([None, *TRUST_TIERS])


@given(levels=st.lists(st.tuples(values_of, tiers_or_none), min_size=1, max_size=2), own=values_of)
def test_no_level_raises_what_a_level_above_has_set(
    levels: list[tuple[dict[str, Any], Any]], own: dict[str, Any]
) -> None:
    authority = Authority(default_source="w")
    for claims, max_trust in levels:
        above = authority
        authority, _ = above.with_level(claims, max_trust=max_trust)
        assert_lower(above, authority.values)
    weighed, _ = authority.weigh(own, may_not_govern=authority.may_not_govern)
    assert_lower(authority, {**authority.values, **weighed})
    if authority.max_trust and "trust_tier" not in authority.bound:
        tier = weighed.get("trust_tier", "untrusted")
        assert trust_rank(tier) <= trust_rank(authority.max_trust)


def assert_lower(above: Authority, values: Any) -> None:
    for key in above.bound:
        before, after = above.values[key], values[key]
        if key == "trust_tier":
            assert trust_rank(after) <= trust_rank(before)
        elif key == "origin":
            assert ORIGINS.index(after) >= ORIGINS.index(before)
        elif key == "sensitivity":
            assert SENSITIVITIES.index(after) >= SENSITIVITIES.index(before)
        elif key == "excluded_roles":
            assert set(after) >= set(before)
        elif key == "applicable_roles":
            assert not before or (after and set(after) <= set(before))
        else:
            assert after == before


@given(claims=values_of)
def test_what_nobody_has_set_holds_as_it_is_declared(claims: dict[str, Any]) -> None:
    weighed = Authority(default_source="w").weigh(claims, may_not_govern=False)
    assert weighed == (claims, ())


# -- legitimate declarations ---------------------------------------------------------------------


LEGITIMATE: dict[str, list[Any]] = {
    "trust_tier": list(TRUST_TIERS),
    "origin": list(ORIGINS),
    "sensitivity": list(SENSITIVITIES),
    "scope": ["team", "hr"],
    "source_id": ["wiki", "notes"],
    "supersedes": [["old"], ["old", "older.md"]],
    "contradicts": [["other"]],
    "applicable_roles": [["a"], ["a", "b"]],
    "excluded_roles": [["c"]],
    "domain": ["security"],
    "document_type": ["threat-model"],
    "updated_at": ["2026-01-02T00:00:00Z"],
    "tags": [["x", "y"]],
}


def legitimate(random: Random) -> dict[str, Any]:
    keys = random.sample(sorted(LEGITIMATE), random.randint(1, len(LEGITIMATE)))
    return {key: random.choice(LEGITIMATE[key]) for key in keys}


def assert_holds(metadata: DocumentMetadata, claims: dict[str, Any]) -> None:
    for key, value in claims.items():
        held = getattr(metadata, key)
        assert (list(held) if isinstance(held, tuple) else held) == value, (key, metadata)
    assert metadata.refused_claims == ()


@pytest.mark.sample(2)
@rounds(2, 50)
@pytest.mark.parametrize("level", ["flags", "manifest", "front matter", "jsonl"])
def test_legitimate_declarations_take_effect(tree: Tree, level: str, rounds: int) -> None:
    random = Random(level)
    declared = [legitimate(random) for _ in range(rounds)]
    if level == "flags":
        for number, claims in enumerate(declared):
            path = tree.write(f"{number}/a.md", "Text.\n")
            tree.ingest(path, flags=claims, max_trust=None)
            [metadata] = [
                metadata
                for name, metadata in tree.documents().items()
                if name.endswith(f"/{number}/a.md") or metadata.uri == "a.md"
            ][-1:]
            assert_holds(metadata, claims)
            shutil.rmtree(path.parent)
            tree.db.unlink()
        return
    for number, claims in enumerate(declared):
        toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in claims.items())
        if level == "manifest":
            with (tree.root / "rolebundle.toml").open("a") as manifest:
                manifest.write(f"[[rule]]\nglob = '{number}/**'\n{toml}")
            tree.write(f"{number}/a.md", "Text.\n")
        elif level == "front matter":
            tree.write(f"{number}/a.md", front(**claims, document_id=f"id-{number}") + "Text.\n")
        else:
            record = {"_id": f"id-{number}", "text": "Text.", "metadata": claims}
            tree.write(f"{number}/a.jsonl", json.dumps(record) + "\n")
    report = tree.ingest()
    assert codes(report) == []
    documents = tree.documents()
    assert len(documents) == rounds
    for number, claims in enumerate(declared):
        if level in ("front matter", "jsonl"):
            assert_holds(documents[f"id-{number}"], claims)
        else:
            assert_holds(tree.at(f"{number}/a.md"), claims)


# -- the levels, one by one ----------------------------------------------------------------------


def test_a_flag_binds_the_manifest_and_the_document(tree: Tree) -> None:
    tree.write("rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\nscope = 'other'\n")
    tree.write("a.md", front(trust_tier="preferred") + "Text.\n")
    report = tree.ingest(flags={"trust_tier": "general", "scope": "team"})
    metadata = tree.at("a.md")
    assert (metadata.trust_tier, metadata.scope) == ("general", "team")
    assert codes(report) == ["claim_refused"] * 3
    lower = tree.ingest(flags={"trust_tier": "untrusted"})
    assert (tree.at("a.md").trust_tier, lower.updated) == ("untrusted", 1)


def test_max_trust_bounds_what_nobody_has_set(tree: Tree) -> None:
    tree.write(
        "rolebundle.toml",
        "max_trust = 'preferred'\n[[rule]]\nglob = 'o/*'\ntrust_tier = 'authoritative'\n",
    )
    tree.write("o/a.md", "Text.\n")
    tree.write("b.md", front(trust_tier="authoritative") + "Text.\n")
    tree.ingest()
    tiers = {uri: tree.at(uri).trust_tier for uri in ("o/a.md", "b.md")}
    assert tiers == {"o/a.md": "authoritative", "b.md": "preferred"}
    tree.ingest(max_trust="untrusted")
    assert {tree.at(uri).trust_tier for uri in tiers} == {"untrusted"}


def test_trust_documents_makes_settings_defaults(tree: Tree) -> None:
    """But not for what the owner calls external or untrusted."""
    tree.write(
        "rolebundle.toml",
        "trust_documents = true\n[defaults]\nsensitivity = 'internal'\n"
        "[[rule]]\nglob = 'a.md'\ntrust_tier = 'preferred'\nsource_id = 'ours'\n"
        "[[rule]]\nglob = 'b.md'\norigin = 'external'\n",
    )
    claims = {"trust_tier": "authoritative", "source_id": "own", "sensitivity": "public"}
    for name in ("a.md", "b.md"):
        tree.write(name, front(**claims) + "Text.\n")
    tree.ingest()
    assert_holds(tree.at("a.md"), claims)
    assert len(tree.at("b.md").refused_claims) == 3


def test_max_trust_lowers_no_default_of_the_owner(tree: Tree) -> None:
    tree.write(
        "rolebundle.toml",
        "trust_documents = true\nmax_trust = 'general'\n"
        "[[rule]]\nglob = 'a.md'\ntrust_tier = 'preferred'\n",
    )
    for name, tier in (("a.md", "preferred"), ("b.md", "preferred"), ("c.md", "untrusted")):
        tree.write(name, front(trust_tier=tier) + "Text.\n")
    tree.ingest()
    tiers = [tree.at(name).trust_tier for name in ("a.md", "b.md", "c.md")]
    assert tiers == ["preferred", "general", "untrusted"]


# -- what is said --------------------------------------------------------------------------------


def test_refused_claims_are_reported(tree: Tree) -> None:
    tree.write(
        "rolebundle.toml",
        "[defaults]\ntrust_tier = 'general'\n[[rule]]\nglob='o*'\ntrust_tier='preferred'",
    )
    tree.write("a.md", front(trust_tier="authoritative") + "A token.\n")
    tree.write("o.md", "Other text.\n")
    outcome = invoke("ingest", tree.root, "--lexical-only", "--db", tree.db)
    assert "note [claim_refused] a.md: it may not declare trust_tier: authoritative" in outcome.err
    assert "trust: rolebundle.toml raises 1 document to preferred" in outcome.out
    why = invoke("why", "w/a.md", "token", "--db", tree.db)
    assert "its document declares trust_tier: authoritative; the owner does not allow it" in why.out
    answer = invoke("why", "w/a.md", "token", "--db", tree.db, "--json").json()
    assert answer["refused_claims"] == ["trust_tier: authoritative"]


def test_status_lists_documents_with_authority_of_their_own(tree: Tree) -> None:
    tree.write("a.md", front(trust_tier="preferred", title="A") + "Text.\n")
    tree.write("b.md", front(supersedes=["w/c.md"]) + "Text.\n")
    tree.write("c.md", front(trust_tier="untrusted", source_id="x") + "Text.\n")
    outcome = invoke("ingest", tree.root, "--lexical-only", "--db", tree.db)
    assert "trust: 1 document raised to preferred by what they declare themselves" in outcome.out
    status = invoke("status", "--db", tree.db, "--json").json()
    assert [(entry["document_id"], entry["keys"]) for entry in status["self_declared"]] == [
        ("w/a.md", ["trust_tier"]),
        ("w/b.md", ["supersedes"]),
    ]
    assert (
        "documents with authority by their own declaration: 2"
        in invoke("status", "--db", tree.db).out
    )


# -- which manifest counts -----------------------------------------------------------------------


GRANT = "[defaults]\ntrust_tier = 'authoritative'\n"


def test_only_the_manifest_of_an_ingested_folder_counts(tree: Tree) -> None:
    tree.write("n/rolebundle.toml", GRANT)
    tree.write("n/a.md", "Text.\n")
    tree.write("n/deep/rolebundle.toml", "no TOML")
    report = tree.ingest()
    assert (codes(report), tree.at("n/a.md").trust_tier) == (["manifest_ignored"] * 2, "general")
    tree.db.unlink()
    for _ in range(2):
        report = tree.ingest(tree.root / "n")
        assert codes(report) == ["manifest_ignored"]
        assert tree.at("a.md").trust_tier == "authoritative"
        # The manifest of a folder above does not take its place.
        tree.write("rolebundle.toml", "[[rule]]\nglob = 'n/*'\ntrust_tier = 'preferred'\n")
        tree.ingest()
        assert tree.at("a.md").trust_tier == "authoritative"
    (tree.root / "n" / "rolebundle.toml").unlink()
    tree.ingest()
    assert tree.at("a.md").trust_tier == "preferred"


def test_a_part_of_a_root_has_the_manifest_of_the_root(tree: Tree) -> None:
    tree.write("rolebundle.toml", "[defaults]\nscope = 'hr'\n")
    for name in (".n", "m"):
        tree.write(f"{name}/rolebundle.toml", "[defaults]\nscope = 'all'\n")
        tree.write(f"{name}/a.md", "Text.\n")
    tree.ingest()
    tree.ingest(tree.root / ".n")
    tree.ingest(tree.root / "m", flags={"sensitivity": "public"})
    assert {document.scope for document in tree.documents().values()} == {"hr"}


def test_a_link_is_no_manifest(tree: Tree) -> None:
    tree.write("elsewhere", GRANT)
    tree.write("a.md", "Text.\n")
    (tree.root / "rolebundle.toml").symlink_to("elsewhere")
    assert codes(tree.ingest()) == ["manifest_ignored"]
    assert tree.at("a.md").trust_tier == "general"


def test_a_manifest_of_another_user_does_not_count(tree: Tree) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only the root user can give files to other users")
    os.chown(tree.write("rolebundle.toml", GRANT), 12345, 12345)
    tree.write("a.md", "Text.\n")
    report = tree.ingest()
    assert (codes(report), tree.at("a.md").trust_tier) == (["manifest_ignored"], "general")
    assert "another user (uid 12345)" in report.notes[0].message


def test_untrusted_is_for_foreign_material(tree: Tree) -> None:
    """Its manifest may have come with it, so it is not read."""
    tree.write("rolebundle.toml", "no TOML")
    tree.write("a.md", front(trust_tier="authoritative", origin="internal") + "Text.\n")
    outcome = invoke("ingest", tree.root, "--untrusted", "--lexical-only", "--db", tree.db)
    assert "rolebundle.toml: not used, because its folder is untrusted" in outcome.err
    metadata = tree.at("a.md")
    assert (metadata.trust_tier, metadata.origin) == ("untrusted", "untrusted")
