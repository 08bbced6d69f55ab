"""Who may govern a document: flags, the owner's manifest, the document."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.ingest import IngestReport
from rolebundle.contracts.terms import ORIGINS, TRUST_TIERS, Sensitivity, trust_rank
from rolebundle.engine import Engine
from rolebundle.ingest import sync
from rolebundle.ingest.authority import (
    UNTRUSTED,
    Authority,
    FlagsByPath,
    flags_after,
    flags_at,
    limits_in,
)
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.storage import records, roots
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.amounts import rounds
from support.commands import invoke
from support.sound import assert_sound
from support.source_tree import BODY, OWNER, Tree, front

# -- The order of authority: flags > the owner's manifest > the document ---------------------------


def codes(report: IngestReport) -> list[str]:
    """The codes of what an ingest noted."""
    return [note.code for note in report.notes]


SENSITIVITIES = get_args(Sensitivity)
ROLES = [["r"], ["s"], ["r", "s"], ["s", "r"], []]


def any_of(**values: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these keys, each with one of its values."""
    return st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in values.items()})


values_of = any_of(
    trust_tier=TRUST_TIERS, origin=ORIGINS, sensitivity=SENSITIVITIES, scope=["shared", "team"],
    source_id=["a", "b"], document_id=["x", "y"], applicable_roles=ROLES, excluded_roles=ROLES,
    supersedes=[["p"], ["q"], ["p", "q"], ["q", "p"], []],
)  # fmt: skip
tiers_or_none = st.sampled_from([None, *TRUST_TIERS])


@given(levels=st.lists(st.tuples(values_of, tiers_or_none), min_size=1, max_size=2), own=values_of)
def test_no_level_raises_what_a_level_above_has_set(levels, own):
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


# -- legitimate declarations ---------------------------------------------------------------------


LEGITIMATE: dict[str, list[Any]] = {
    "trust_tier": list(TRUST_TIERS), "origin": list(ORIGINS), "sensitivity": list(SENSITIVITIES),
    "scope": ["team", "hr"], "source_id": ["wiki", "notes"],
    "supersedes": [["old"], ["old", "older.md"]], "contradicts": [["other"]],
    "applicable_roles": [["a"], ["a", "b"]], "excluded_roles": [["c"]], "domain": ["security"],
    "document_type": ["threat-model"], "updated_at": ["2026-01-02T00:00:00Z"], "tags": [["x", "y"]],
}  # fmt: skip


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
@pytest.mark.parametrize("level", ["manifest", "front matter", "jsonl"])
def test_legitimate_declarations_take_effect(tree, level, rounds):
    random = Random(level)
    declared = [legitimate(random) for _ in range(rounds)]
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
        assert_holds(
            tree.at(f"{number}/a.md") if level == "manifest" else documents[f"id-{number}"], claims
        )


# -- the levels, one by one ----------------------------------------------------------------------


def test_a_flag_binds_the_manifest_and_the_document(tree):
    tree.write("rolebundle.toml", "[defaults]\ntrust_tier = 'authoritative'\nscope = 'other'\n")
    tree.write("a.md", front(trust_tier="preferred") + "Text.\n")
    report = tree.ingest(flags={"trust_tier": "general", "scope": "team"})
    metadata = tree.at("a.md")
    assert (metadata.trust_tier, metadata.scope) == ("general", "team")
    assert codes(report) == ["claim_refused"] * 3
    lower = tree.ingest(flags={"trust_tier": "untrusted"})
    assert (tree.at("a.md").trust_tier, lower.updated) == ("untrusted", 1)


def test_max_trust_bounds_what_nobody_has_set(tree):
    rule = "[[rule]]\nglob = 'o/*'\ntrust_tier = 'authoritative'\n"
    tree.write("rolebundle.toml", f"max_trust = 'preferred'\n{rule}")
    tree.write("o/a.md", "Text.\n")
    tree.write("b.md", front(trust_tier="authoritative") + "Text.\n")
    tree.ingest()
    tiers = {uri: tree.at(uri).trust_tier for uri in ("o/a.md", "b.md")}
    assert tiers == {"o/a.md": "authoritative", "b.md": "preferred"}
    tree.ingest(max_trust="untrusted")
    assert {tree.at(uri).trust_tier for uri in tiers} == {"untrusted"}


def test_trust_documents_makes_settings_defaults(tree):
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


# -- what is said --------------------------------------------------------------------------------


def test_refused_claims_are_reported(tree):
    rule = "[[rule]]\nglob='o*'\ntrust_tier='preferred'"
    tree.write("rolebundle.toml", f"[defaults]\ntrust_tier = 'general'\n{rule}")
    tree.write("a.md", front(trust_tier="authoritative") + "A token.\n")
    tree.write("o.md", "Other text.\n")
    outcome = invoke("ingest", tree.root, "--lexical-only", "--db", tree.db)
    assert "note [claim_refused] a.md: it may not declare trust_tier: authoritative" in outcome.err
    why = invoke("why", "w/a.md", "token", "--db", tree.db)
    assert 'its document declares "trust_tier: authoritative"; the owner does not' in why.out
    answer = invoke("why", "w/a.md", "token", "--db", tree.db, "--json").json()
    assert answer["refused_claims"] == ["trust_tier: authoritative"]


def test_status_lists_documents_with_authority_of_their_own(tree):
    tree.write("a.md", front(trust_tier="preferred", title="A") + "Text.\n")
    tree.write("b.md", front(supersedes=["w/c.md"]) + "Text.\n")
    tree.write("c.md", front(trust_tier="untrusted", source_id="x") + "Text.\n")
    invoke("ingest", tree.root, "--lexical-only", "--db", tree.db)
    status = invoke("status", "--db", tree.db, "--json").json()
    assert [(entry["document_id"], entry["keys"]) for entry in status["self_declared"]] == [
        ("w/a.md", ["trust_tier"]),
        ("w/b.md", ["supersedes"]),
    ]
    status = invoke("status", "--db", tree.db).out
    assert "documents with authority by their own declaration: 2" in status


# -- which manifest counts -----------------------------------------------------------------------


GRANT = "[defaults]\ntrust_tier = 'authoritative'\n"


def test_only_the_manifest_of_an_ingested_folder_counts(tree):
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


def test_a_part_of_a_root_has_the_manifest_of_the_root(tree):
    tree.write("rolebundle.toml", "[defaults]\nscope = 'hr'\n")
    for name in (".n", "m"):
        tree.write(f"{name}/rolebundle.toml", "[defaults]\nscope = 'all'\n")
        tree.write(f"{name}/a.md", "Text.\n")
    tree.ingest()
    tree.ingest(tree.root / ".n")
    tree.ingest(tree.root / "m", flags={"sensitivity": "public"})
    assert {document.scope for document in tree.documents().values()} == {"hr"}


def test_a_link_is_no_manifest(tree):
    tree.write("elsewhere", GRANT)
    tree.write("a.md", "Text.\n")
    (tree.root / "rolebundle.toml").symlink_to("elsewhere")
    assert codes(tree.ingest()) == ["manifest_ignored"]
    assert tree.at("a.md").trust_tier == "general"


def test_a_manifest_of_another_user_does_not_count(tree):
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only the root user can give files to other users")
    os.chown(tree.write("rolebundle.toml", GRANT), 12345, 12345)
    tree.write("a.md", "Text.\n")
    report = tree.ingest()
    assert (codes(report), tree.at("a.md").trust_tier) == (["manifest_ignored"], "general")
    assert "another user (uid 12345)" in report.notes[0].message


def test_untrusted_is_for_foreign_material(tree):
    """Its manifest may have come with it, so it is not read."""
    tree.write("rolebundle.toml", "no TOML")
    tree.write("a.md", front(trust_tier="authoritative", origin="internal") + "Text.\n")
    outcome = invoke("ingest", tree.root, "--untrusted", "--lexical-only", "--db", tree.db)
    assert "rolebundle.toml: not used, because its folder is untrusted" in outcome.err
    metadata = tree.at("a.md")
    assert (metadata.trust_tier, metadata.origin) == ("untrusted", "untrusted")


# -- What flags say of governance holds for later ingests, until the owner says otherwise ----------

CLAIMS = {
    "trust_tier": "authoritative", "origin": "internal", "sensitivity": "public", "scope": "taken",
    "source_id": "taken", "supersedes": ["all/ours.md"], "applicable_roles": ["reviewer"],
}  # fmt: skip
PLACES = ["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/"]
TRUST = {"trust_tier", "origin", "max_trust"}

command_flags = any_of(
    trust_tier=["preferred", "untrusted", None], origin=["external", "untrusted"],
    max_trust=["general", "authoritative"], scope=["hr", None],
)  # fmt: skip
places = st.lists(st.sampled_from(PLACES), min_size=1)


@given(st.lists(st.tuples(places, command_flags), max_size=6))
def test_the_last_word_on_a_path_or_above_it_holds(ingests):
    remembered: FlagsByPath = {}
    for paths, new_flags in ingests:
        remembered = flags_after(remembered, paths, new_flags)
    for place in PLACES:
        expected: dict[str, Any] = {}
        for paths, new_flags in ingests:
            if any((place + "/").startswith(path.rstrip("/") + "/") for path in paths):
                keys = TRUST if TRUST & new_flags.keys() else set()
                unlifted = {key: value for key, value in expected.items() if key not in keys}
                expected = {**unlifted, **new_flags}
        assert limits_in(flags_at(remembered, place)) == limits_in(expected), place


class World(Tree):
    """A folder with documents of one's own and a downloaded folder, and a corpus beside it."""

    name = "all"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.downloads = self.root / "dl"
        for name in ("dl/a.md", "dl/deep/b.md"):
            self.write(name, f"{front(**CLAIMS)}The text of {name}.\n")
        self.write("ours.md", "---\ntrust_tier: preferred\n---\nOur text.\n")

    def documents(self) -> dict[str, DocumentMetadata]:
        """The document of each file, by the name of the file."""
        return {Path(found.uri).name: found for found in super().documents().values()}

    def governed(self) -> dict[str, list[Any]]:
        """What the documents of the download have of what they claim."""
        keys = [key for key in CLAIMS if key != "source_id"]
        return {
            name: [metadata.source_id == "taken", *(getattr(metadata, key) for key in keys)]
            for name, metadata in self.documents().items()
            if name != "ours.md"
        }


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


LIMITS: dict[str, dict[str, Any]] = {
    "untrusted": {"flags": UNTRUSTED},
    "max_trust": {"max_trust": "general"},
    "tier and scope": {"flags": {"trust_tier": "general", "scope": "hr"}},
    "the rest": {"flags": {
        "origin": "external", "sensitivity": "confidential", "source_id": "downloads",
        "applicable_roles": ["auditor"],
    }},
}  # fmt: skip


def ingest_parent(world: World) -> None:
    world.ingest()
    assert world.documents()["ours.md"].trust_tier == "preferred"


def through_a_link(world: World) -> None:
    link = world.root.parent / "link"
    link.symlink_to(world.root)
    for path in (link / "dl", link / "dl" / "deep"):
        with open_writer(world.db) as corpus:
            # The ids of the documents may be taken, by the files under their real path.
            sync.ingest(corpus, [path], None, IngestOptions(reread=True))


def by_a_server(world: World) -> None:
    with Engine(world.db) as engine:
        operations = Operations(engine, allow_write=True)
        paths = [str(world.downloads), str(world.root)]
        operations.call("ingest", {"paths": paths, "lexical_only": True})


LATER: dict[str, Callable[[World], Any]] = {
    "again": lambda world: world.ingest(world.downloads),
    "a file": lambda world: world.ingest(world.downloads / "a.md", reread=True),
    "a subfolder": lambda world: world.ingest(world.downloads / "deep", reread=True),
    "the folder above": ingest_parent,
    "another flag": lambda world: world.ingest(flags={"excluded_roles": ["guest"]}),
    "through a link": through_a_link,
    "by a server": by_a_server,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("limit", LIMITS)
def test_no_later_ingest_lifts_a_limit(world, limit, later):
    world.ingest(world.downloads, **LIMITS[limit])
    before = world.governed()
    LATER[later](world)
    after = world.governed()
    assert after.keys() <= before.keys()
    assert {name: before[name] for name in after} == after
    assert_sound(world.db)


def test_a_limit_of_one_file_holds_when_its_folder_is_read(world):
    world.ingest(world.downloads / "a.md", flags=UNTRUSTED)
    world.ingest()
    tiers = {name: metadata.trust_tier for name, metadata in world.documents().items()}
    assert tiers == {"a.md": "untrusted", "b.md": "authoritative", "ours.md": "preferred"}


def test_the_owner_lifts_limits(world):
    world.ingest(world.downloads, flags={**UNTRUSTED, "scope": "hr"})
    world.ingest(world.downloads, max_trust="preferred")
    found = world.documents()["a.md"]
    assert (found.trust_tier, found.origin, found.scope) == ("preferred", "internal", "hr")
    # Of a folder above, and of one key.
    world.ingest(max_trust="authoritative", flags={"scope": None})
    found = world.documents()["a.md"]
    assert (found.trust_tier, found.scope) == ("authoritative", "taken")
    with open_reader(world.db) as corpus:
        assert records.load_path_flags(corpus) == {}


def test_a_limit_is_remembered_before_the_first_document(world):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with open_writer(world.db) as corpus, pytest.raises(KeyboardInterrupt):
        sync.ingest(corpus, [world.root], None, IngestOptions(flags=UNTRUSTED), killed)
    world.ingest()
    assert {document.trust_tier for document in world.documents().values()} == {"untrusted"}


def test_limits_are_listed(world):
    arguments = ("ingest", world.downloads, "--lexical-only", "--db", world.db)
    invoke(*arguments, "--untrusted", "--meta", "scope=hr")
    status = invoke("status", "--db", world.db, "--json").json()
    flags = ["origin=untrusted", "scope=hr", "trust_tier=untrusted"]
    assert status["path_flags"] == [{"location": str(world.downloads), "flags": flags}]
    line = f"{world.downloads}, flags origin=untrusted scope=hr trust_tier=untrusted"
    assert line in invoke("status", "--db", world.db).out


def test_a_backup_keeps_limits(world, tmp_path):
    backup = tmp_path / "kept.backup"
    world.ingest(world.downloads, flags=UNTRUSTED)
    assert invoke("corpus", "backup", backup, "--db", world.db).code == 0
    world.ingest(max_trust="authoritative")
    assert invoke("corpus", "restore", backup, "--yes", "--db", world.db).code == 0
    world.ingest()
    assert world.documents()["a.md"].trust_tier == "untrusted"


# -- No document takes the id or the source of another, whichever is read first --------------------


def test_a_document_does_not_take_the_source_of_others(tree):
    tree.write("rolebundle.toml", OWNER)
    tree.write("security/threat-model.md", "Text.\n")
    tree.write("a.md", front(source_id="SECURITY-review") + "Text.\n")
    tree.write("b.md", front(source_id="mine") + "Text.\n")
    tree.ingest()
    assert (tree.at("a.md").source_id, tree.at("b.md").source_id) == ("w", "mine")
    assert tree.at("a.md").refused_claims == ("source_id: SECURITY-review",)


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
@pytest.mark.parametrize("claimed", ["document", "source", "chunk"])
def test_an_id_by_right_is_kept_whatever_the_order(tree, order, claimed):
    """What declares it for itself is refused, until it declares another one."""
    real = tree.write("ours/a.md", f"{BODY}\n")
    if claimed == "chunk":
        probe = Tree(tree.root.parent / "probe")
        shutil.copytree(real.parent, probe.root / "ours")
        probe.ingest(probe.root / "ours")
        with open_reader(probe.db) as corpus:
            [(chunk_id,)] = corpus.rows("SELECT chunk_id FROM chunk")
        chunk = {"chunk_id": chunk_id, "content": "Taken."}
        text = json.dumps({"documents": [{"document_id": "d", "title": "t", "chunks": [chunk]}]})
        claim = tree.write("theirs/p.json", text)
    elif claimed == "document":
        claim = tree.write("theirs/p.md", front(document_id="ours/a.md") + "Taken.\n")
    else:
        claim = tree.write("theirs/a.md", front(source_id="ours") + "Taken.\n")
    tree.write("theirs/b.md", "Text.\n")
    reports = [tree.ingest(tree.root / name) for name in order]
    assert [refused.path for report in reports for refused in report.refused()] == [claim.name]
    assert tree.documents().keys() == {"ours/a.md", "theirs/b.md"}
    with open_reader(tree.db) as corpus:
        assert [root.documents for root in roots.load(corpus)] == [1, 1]
    assert_sound(tree.db)
    before = tree.documents()
    for name in order:
        report = tree.ingest(tree.root / name)
        assert (report.unchanged, len(report.refused())) == (1, name == "theirs")
    assert tree.documents() == before
    claim.write_text("Other text.\n")
    assert tree.ingest(claim).refused() == []


def test_of_two_files_in_one_run_the_one_with_the_right_is_kept(tree):
    """The document `a.md` of the source `w/n` would have the id of `n/a.md` of the source `w`."""
    tree.write("a.md", front(source_id="w/n") + "Taken.\n")
    tree.write("n/a.md", "Text.\n")
    report = tree.ingest()
    assert [refused.path for refused in report.refused()] == ["a.md"]
    assert tree.documents()["w/n/a.md"].uri == "n/a.md"


@pytest.mark.parametrize("is_foreign_first", [False, True])
def test_folders_of_one_name_have_ids_of_their_own(tree, is_foreign_first):
    ours = tree.write("ours/docs/a.md", "Text.\n").parent
    theirs = tree.write("theirs/docs/a.md", "Other text.\n").parent
    untrusted = {"trust_tier": "untrusted", "origin": "untrusted"}
    for is_foreign in (is_foreign_first, not is_foreign_first):
        report = tree.ingest(theirs if is_foreign else ours, flags=untrusted if is_foreign else {})
        assert report.refused() == []
    tiers = {name: metadata.trust_tier for name, metadata in tree.documents().items()}
    ids = ("ours-docs/a.md", "docs/a.md") if is_foreign_first else ("docs/a.md", "theirs-docs/a.md")
    assert tiers == dict(zip(ids, ("general", "untrusted"), strict=True))
