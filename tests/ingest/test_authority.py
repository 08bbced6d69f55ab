"""The order of authority: flags > the owner's manifest > nested manifests > the document."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import ACTIONS, ORIGINS, TRUST_TIERS, Sensitivity, trust_rank
from rolebundle.ingest import sync
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.report import IngestReport
from rolebundle.storage.content.documents import all_documents
from rolebundle.storage.content.passages import passages_by_rowid
from rolebundle.storage.opening import open_reader, open_writer
from support.amounts import rounds
from support.commands import invoke
from support.corpora import ask
from support.sound import assert_sound

SENSITIVITIES = get_args(Sensitivity)
REAL = "security-review/security/threat-model.md"
BODY = "The relay checks each token before it accepts a change of a note."
OWNER = (
    "[[rule]]\nglob = 'security/**'\nsource_id = 'security-review'\n"
    "trust_tier = 'authoritative'\norigin = 'internal'\ndomain = 'security'\n"
)
ROLE = Overlay.model_validate(
    {
        "version": "1.0",
        "role_id": "mossline-security-reviewer",
        "label": "Reviewer",
        "mission": "Review.",
        "source_policy": {
            "preferred_sources": [{"pattern": "security", "reason": "ours"}],
            "trust_tier_boosts": {"authoritative": 2.0, "preferred": 1.5, "general": 1.2},
            "document_type_boosts": {"threat-model": 2.0},
        },
    }
)


class Tree:
    """A folder, and a corpus beside it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.db = folder / "w", folder / "c.db"
        self.root.mkdir(parents=True)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def ingest(self, *paths: Path, **options: Any) -> IngestReport:
        with open_writer(self.db) as corpus:
            return sync.ingest(corpus, paths or [self.root], None, IngestOptions(**options))

    def documents(self) -> dict[str, DocumentMetadata]:
        with open_reader(self.db) as corpus:
            return {metadata.document_id: metadata for _, metadata in all_documents(corpus)}

    def at(self, uri: str) -> DocumentMetadata:
        [metadata] = [document for document in self.documents().values() if document.uri == uri]
        return metadata


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def front(**claims: object) -> str:
    """Front matter in YAML; JSON values are YAML."""
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in claims.items()]
    return "---\n" + "".join(lines) + "---\n" if claims else ""


def codes(report: IngestReport) -> list[str]:
    return [note.code for note in report.notes]


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


@given(levels=st.lists(st.tuples(values_of, tiers_or_none), min_size=1, max_size=4), own=values_of)
def test_no_level_raises_what_a_level_above_has_set(
    levels: list[tuple[dict[str, Any], Any]], own: dict[str, Any]
) -> None:
    authority = Authority(default_source="w")
    for number, (claims, max_trust) in enumerate(levels):
        above = authority
        authority, _ = above.with_level(claims, is_owner=number < 2, max_trust=max_trust)
        assert_lower(above, authority.values)
    weighed = authority.weigh(own, may_not_govern=authority.may_not_govern)
    assert_lower(authority, {**authority.values, **weighed.values})
    if authority.max_trust and "trust_tier" not in authority.bound:
        tier = weighed.values.get("trust_tier", "untrusted")
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
    assert (weighed.values, weighed.refused) == (claims, ())


# -- planted documents ---------------------------------------------------------------------------

FORMS = ("yaml", "toml", "jsonl", "separated", "json", "manifest", "checkout", "foreign")
LIMITS = ("tier", "origin", "general", "defaults", "flag", "untrusted", "max_trust")
HOSTILE: dict[str, list[Any]] = {
    "trust_tier": ["authoritative", "preferred"],
    "origin": ["internal"],
    "sensitivity": ["public", "group"],
    "scope": ["security-team", "hr"],
    "source_id": ["security-review", "Security-Review", "security-notes"],
    "document_id": [REAL, "security-review/security", "threat-model"],
    "supersedes": [[REAL], ["security/threat-model.md"], [REAL, "security/threat-model.md"]],
    "contradicts": [[REAL]],
    "applicable_roles": [["mossline-security-reviewer"]],
    "domain": ["security"],
    "document_type": ["threat-model"],
}


def planted_tree(tree: Tree, limit: str, seed: int, count: int, *, with_claims: bool) -> None:
    """The real document, and planted ones in ``community/`` with or without their claims.

    The planted ones are the same in number, place and text.
    """
    random = Random(seed)
    rule = {
        "tier": "[[rule]]\nglob = 'community/**'\ntrust_tier = 'untrusted'\n",
        "origin": "[[rule]]\nglob = 'community/**'\norigin = 'untrusted'\n",
        "general": "[[rule]]\nglob = 'community/**'\ntrust_tier = 'general'\n",
        "defaults": "[defaults]\ntrust_tier = 'untrusted'\norigin = 'external'\n",
    }.get(limit, "")
    separated = "[[rule]]\nglob = '**/*.sep'\nreader = 'separated'\nseparator = '=== '\n"
    # Flags concern whole runs, so the real document is then in a root of its own.
    is_apart = limit in ("flag", "untrusted", "max_trust")
    real = tree.root / "ours" if is_apart else tree.root
    community = tree.root / "theirs" if is_apart else tree.root
    for path, text in (
        (real / "rolebundle.toml", OWNER + ("" if is_apart else rule + separated)),
        (real / "security" / "threat-model.md", f"# Threat model\n\n{BODY}\n"),
        *([(community / "rolebundle.toml", separated)] if is_apart else []),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The real document is in [defaults] too, which later rules override.
        path.write_text(text if not rule.startswith("[def") else rule + OWNER + separated)
        if path.suffix == ".md":
            path.write_text(f"# Threat model\n\n{BODY}\n")
    for number in range(count):
        form = FORMS[number % len(FORMS)]
        keys = random.sample(sorted(HOSTILE), random.randint(1, len(HOSTILE)))
        claims = {key: random.choice(HOSTILE[key]) for key in keys}
        if form != "json":
            claims.pop("document_id" if form in ("manifest", "checkout", "foreign") else "", None)
        plant_document(
            community / "community" / str(number), form, claims if with_claims else {}, number
        )
    if is_apart:
        tree.ingest(real)
        options: dict[str, Any] = {
            "flag": {"flags": {"trust_tier": "untrusted"}},
            "untrusted": {"flags": {"trust_tier": "untrusted", "origin": "untrusted"}},
            "max_trust": {"max_trust": "general"},
        }[limit]
        tree.ingest(community, **options)
    else:
        tree.ingest()


def plant_document(folder: Path, form: str, claims: dict[str, Any], number: int) -> None:
    folder.mkdir(parents=True)
    text = f"{BODY} Or does it? Number {number} says no."
    toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in claims.items())
    if form == "yaml":
        (folder / "p.md").write_text(front(**claims) + text + "\n")
    elif form == "toml":
        (folder / "p.md").write_text((f"+++\n{toml}+++\n" if claims else "") + text + "\n")
    elif form == "jsonl":
        # A record's _id would otherwise take precedence over its metadata.
        record = {"title": "p", "text": text, "metadata": claims}
        (folder / "p.jsonl").write_text(json.dumps(record) + "\n")
    elif form == "separated":
        body = f"=== one\n{text}\n=== two\n{front(**claims)}{text}\n"
        (folder / "p.sep").write_text(body)
    elif form == "json":
        chunk = {
            "chunk_id": f"{REAL}#{number:010}" if claims else f"c{number}",
            "content": text,
            "applicable_roles": ["mossline-security-reviewer"] if claims else [],
        }
        document = {"document_id": f"d{number}", "title": "p", **claims, "chunks": [chunk]}
        (folder / "p.json").write_text(json.dumps({"documents": [document]}))
    else:
        (folder / "p.md").write_text(text + "\n")
        manifest = folder / "rolebundle.toml"
        manifest.write_text(f"trust_documents = {str(bool(claims)).lower()}\n[defaults]\n{toml}")
        if form == "checkout":
            (folder / ".git").mkdir()
        elif form == "foreign":
            if os.geteuid() == 0:
                os.chown(manifest, 12345, 12345)
            else:
                # Without the right to give files away: a link is not ours for certain, either.
                manifest.rename(folder / ".elsewhere")
                manifest.symlink_to(".elsewhere")


@pytest.mark.sample(2)
@rounds(2, 28)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_planted_document_gains_nothing(tmp_path: Path, limit: str, rounds: int) -> None:
    """With its claims it is what it is without them: in rank, action, scope, id and supersession."""
    plain, hostile = Tree(tmp_path / "plain"), Tree(tmp_path / "hostile")
    count = rounds * 4
    for tree, with_claims in ((plain, False), (hostile, True)):
        planted_tree(tree, limit, 7, count, with_claims=with_claims)
    assert governed(hostile) == governed(plain)
    assert answers(hostile) == answers(plain)
    assert REAL in hostile.documents()
    assert_sound(hostile.db)
    if limit == "untrusted":
        assert all(
            "suggest" not in passage[-1]
            for passage in answers(hostile)["suggest"]
            if "community" in passage[0]
        )


def governed(tree: Tree) -> dict[str, Any]:
    """By path of the document: all of its metadata that decides about its use."""
    with open_reader(tree.db) as corpus:
        rowids = [row for (row,) in corpus.rows("SELECT id FROM chunk")]
        found = passages_by_rowid(corpus, rowids).values()
        return {
            f"{passage.document.uri} {passage.content[:70]}": (
                # In JSON the id is the name of the record.
                passage.document.document_id.split("#")[0],
                passage.document.source_id,
                passage.document.trust_tier,
                passage.document.origin,
                passage.document.sensitivity,
                passage.document.scope,
                passage.document.domain,
                passage.document.document_type,
                passage.document.applicable_roles,
                passage.document.contradicts,
                passage.applicable_roles,
                passage.chunk_id.split("#")[0],
                passage.superseded_by,
            )
            for passage in found
            if not passage.path.endswith(".json") or "community" not in passage.path
        } | {
            passage.path: (
                passage.document.source_id,
                passage.document.trust_tier,
                passage.document.domain,
                passage.applicable_roles,
                passage.chunk_id.startswith(f"{passage.document.document_id}#"),
            )
            for passage in found
            if passage.path.endswith(".json")
        }


def answers(tree: Tree) -> dict[str, list[tuple[str, Any, Any]]]:
    with open_reader(tree.db) as corpus:
        bundles = {
            action: ask(
                corpus,
                ROLE,
                task="Does the relay check each token of a note?",
                action=action,
                limit=50,
                lexical_only=True,
            )
            for action in ACTIONS
        }
    return {
        action: [
            # Front matter moves the lines of a passage.
            (chunk.citation.locator.split(":")[0], chunk.scores.final, chunk.allowed_actions)
            for chunk in bundle.selected
        ]
        for action, bundle in bundles.items()
    }


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
@pytest.mark.parametrize("level", ["flags", "manifest", "approved", "front matter", "jsonl"])
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
        elif level == "approved":
            tree.write(f"{number}/rolebundle.toml", f"[defaults]\n{toml}")
            tree.write(f"{number}/a.md", "Text.\n")
            (tree.root / str(number) / ".git").mkdir()
            if number < 2:
                assert invoke("trust", tree.root / str(number), "--db", tree.db).code == 0
            else:
                approve(tree, tree.root / str(number))
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


def approve(tree: Tree, folder: Path) -> None:
    from rolebundle.admin import Admin

    with Admin(tree.db) as admin:
        admin.approvals.approve_manifest(folder)


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
    tree.write(
        "n/rolebundle.toml",
        "max_trust = 'authoritative'\n[defaults]\ntrust_tier = 'authoritative'\n",
    )
    tree.write("n/c.md", "Text.\n")
    tree.ingest()
    tiers = {uri: tree.at(uri).trust_tier for uri in ("o/a.md", "b.md", "n/c.md")}
    assert tiers == {"o/a.md": "authoritative", "b.md": "preferred", "n/c.md": "preferred"}
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


def test_a_document_does_not_take_the_source_of_others(tree: Tree) -> None:
    tree.write("rolebundle.toml", OWNER)
    tree.write("security/threat-model.md", "Text.\n")
    tree.write("a.md", front(source_id="SECURITY-review") + "Text.\n")
    tree.write("b.md", front(source_id="mine") + "Text.\n")
    tree.ingest()
    assert (tree.at("a.md").source_id, tree.at("b.md").source_id) == ("w", "mine")
    assert tree.at("a.md").refused_claims == ("source_id: SECURITY-review",)


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours"), ("",)])
@pytest.mark.parametrize("claimed", ["ours/a.md", "chunk"])
def test_an_id_by_right_is_kept_whatever_the_order(
    tree: Tree, order: tuple[str, ...], claimed: str
) -> None:
    real = tree.write("ours/a.md", f"{BODY}\n")
    (tree.root / "ours" / "rolebundle.toml").write_text("[defaults]\nsource_id = 'ours'\n")
    (tree.root / "theirs").mkdir()
    if claimed == "chunk":
        probe = Tree(tree.root.parent / "probe")
        shutil.copytree(real.parent, probe.root / "ours")
        probe.ingest(probe.root / "ours")
        with open_reader(probe.db) as corpus:
            [(chunk_id,)] = corpus.rows("SELECT chunk_id FROM chunk")
        chunk = {"chunk_id": chunk_id, "content": "Taken."}
        text = json.dumps({"documents": [{"document_id": "d", "title": "t", "chunks": [chunk]}]})
        tree.write("theirs/p.json", text)
    else:
        tree.write("theirs/p.md", front(document_id="ours/a.md") + "Taken.\n")
    reports = [tree.ingest(tree.root / name, manifests=True) for name in order]
    if order == ("",):
        # One root: ids are relative to it.
        assert "ours/ours/a.md" in tree.documents()
        return
    assert not any(report.refused() for report in reports)
    assert any("claim_refused" in codes(report) for report in reports)
    with open_reader(tree.db) as corpus:
        rows = dict(
            corpus.rows(
                "SELECT d.document_id, content FROM chunk c JOIN document d ON d.id = c.document"
            )
        )
        chunk_ids = {name for (name,) in corpus.rows("SELECT chunk_id FROM chunk")}
    assert rows["ours/a.md"] == BODY
    assert "Taken." in rows.values()
    assert len(chunk_ids) == 2
    assert_sound(tree.db)
    before = tree.db.read_bytes()
    for name in order:
        assert tree.ingest(tree.root / name).unchanged == 1
    assert tree.db.read_bytes() == before


def test_a_source_with_a_slash_takes_no_id(tree: Tree) -> None:
    """The document `a.md` of the source `w/n` would have the id of `n/a.md` of the source `w`."""
    tree.write("a.md", front(source_id="w/n") + "Taken.\n")
    tree.write("n/a.md", "Text.\n")
    report = tree.ingest()
    assert (report.refused(), codes(report)) == ([], ["claim_refused"])
    assert tree.documents()["w/n/a.md"].uri == "n/a.md"
    assert tree.at("a.md").document_id == "w/n/a.md#w/n/a.md"


@pytest.mark.parametrize("is_foreign_first", [False, True])
def test_a_foreign_folder_with_the_name_of_ours_takes_no_id(
    tree: Tree, is_foreign_first: bool
) -> None:
    ours = tree.write("ours/docs/a.md", "Text.\n").parent
    theirs = tree.write("theirs/docs/a.md", "Taken.\n").parent
    untrusted = {"trust_tier": "untrusted", "origin": "untrusted"}
    for is_foreign in (is_foreign_first, not is_foreign_first):
        report = tree.ingest(theirs if is_foreign else ours, flags=untrusted if is_foreign else {})
        assert report.refused() == []
    tiers = {name: metadata.trust_tier for name, metadata in tree.documents().items()}
    second_name = "docs/a.md#docs/a.md" if is_foreign_first else "theirs-docs/a.md"
    assert tiers == {"docs/a.md": "general", second_name: "untrusted"}


# -- manifests -----------------------------------------------------------------------------------


def checkout(tree: Tree, mark: str = ".git") -> Path:
    tree.write("lib/deep/rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\n")
    tree.write("lib/deep/a.md", "Text.\n")
    (tree.root / "lib" / mark).mkdir()
    return tree.root / "lib" / "deep"


@pytest.mark.parametrize("mark", [".git", ".hg", ".svn"])
def test_a_manifest_in_a_checkout_counts_after_approval(tree: Tree, mark: str) -> None:
    folder = checkout(tree, mark)
    report = tree.ingest()
    assert (codes(report), tree.at("lib/deep/a.md").trust_tier) == (["manifest_ignored"], "general")
    assert f"rolebundle trust {folder / 'rolebundle.toml'}" in report.notes[0].message
    assert invoke("trust", folder, "--db", tree.db).code == 0
    report = tree.ingest()
    assert [(grant.path, grant.documents) for grant in report.grants] == [
        ("lib/deep/rolebundle.toml", 1)
    ]
    assert tree.at("lib/deep/a.md").trust_tier == "authoritative"
    (folder / "rolebundle.toml").write_text("[defaults]\ntrust_tier = 'preferred'\n")
    report = tree.ingest()
    assert (codes(report), tree.at("lib/deep/a.md").trust_tier) == (["manifest_ignored"], "general")
    approve(tree, folder / "rolebundle.toml")
    tree.ingest()
    assert tree.at("lib/deep/a.md").trust_tier == "preferred"
    assert str(folder) in invoke("trust", "list", "--db", tree.db).out
    assert invoke("trust", "revoke", folder, "--db", tree.db).code == 0
    tree.ingest()
    assert tree.at("lib/deep/a.md").trust_tier == "general"
    assert invoke("trust", "revoke", folder, "--db", tree.db).code == 2


def test_a_manifest_that_does_not_count_is_not_parsed(tree: Tree) -> None:
    folder = checkout(tree)
    (folder / "rolebundle.toml").write_text("no TOML")
    assert codes(tree.ingest()) == ["manifest_ignored"]
    assert invoke("trust", folder, "--db", tree.db).code == 3


def test_the_root_may_be_a_checkout(tree: Tree) -> None:
    folder = checkout(tree)
    report = tree.ingest(folder)
    assert (report.notes, tree.at("a.md").trust_tier) == ([], "authoritative")


def test_a_link_is_no_manifest(tree: Tree) -> None:
    tree.write("elsewhere", "[defaults]\ntrust_tier = 'authoritative'\n")
    tree.write("n/a.md", "Text.\n")
    (tree.root / "n" / "rolebundle.toml").symlink_to("../elsewhere")
    assert codes(tree.ingest()) == ["manifest_ignored"]
    assert tree.at("n/a.md").trust_tier == "general"


@pytest.fixture
def give_to_another_user() -> Iterator[Callable[[Path], None]]:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only the root user can give files to other users")
    yield lambda path: os.chown(path, 12345, 12345)


@pytest.mark.parametrize("where", ["", "n/"])
def test_a_manifest_of_another_user_does_not_count(
    tree: Tree, give_to_another_user: Callable[[Path], None], where: str
) -> None:
    give_to_another_user(
        tree.write(f"{where}rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\n")
    )
    tree.write("n/a.md", "Text.\n")
    report = tree.ingest()
    assert (codes(report), tree.at("n/a.md").trust_tier) == (["manifest_ignored"], "general")
    assert "another user (uid 12345)" in report.notes[0].message


@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_manifest_above_that_is_not_ours(
    tree: Tree, give_to_another_user: Callable[[Path], None], of: str
) -> None:
    manifest = tree.write("rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\n")
    tree.write("n/a.md", "Text.\n")
    tree.ingest(tree.root / "n")
    assert tree.documents().keys() == {"w/n/a.md"}
    give_to_another_user(manifest if of == "file" else tree.root)
    report = tree.ingest(tree.root / "n")
    assert (codes(report), tree.at("a.md").trust_tier) == (["manifest_ignored"], "general")
    assert tree.documents().keys() == {"n/a.md"}


def test_no_manifests(tree: Tree) -> None:
    tree.write("rolebundle.toml", "no TOML")
    tree.write("a.md", "Text.\n")
    assert (
        invoke("ingest", tree.root, "--no-manifests", "--lexical-only", "--db", tree.db).code == 0
    )
    assert tree.at("a.md").trust_tier == "general"


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


def test_untrusted_is_for_foreign_material(tree: Tree) -> None:
    tree.write("rolebundle.toml", "[defaults]\nsource_id = 'security'\n")
    tree.write("a.md", front(trust_tier="authoritative", origin="internal") + "Text.\n")
    invoke("ingest", tree.root, "--untrusted", "--lexical-only", "--db", tree.db)
    metadata = tree.at("a.md")
    assert (metadata.trust_tier, metadata.origin) == ("untrusted", "untrusted")
    assert metadata.source_id == "w"
