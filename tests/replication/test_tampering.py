"""What is pulled and what is at hand: changed on the way, damaged, or something else."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest
from cryptography.hazmat.primitives import serialization

from rolebundle.contracts.upkeep import SignedManifest
from rolebundle.errors import RolebundleError
from rolebundle.replication.pull import pull, verify_replica
from rolebundle.replication.signatures import PrivateKey, key_id, sign
from rolebundle.storage import replicas
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import PUBLISHED_MANIFEST as MANIFEST
from rolebundle.storage.opening import latest_version
from rolebundle.storage.publications import save_manifest, stored_manifest
from rolebundle.storage.writing import open_writer
from support.commands import CODED, invoke
from support.corpora import build
from support.fake_embedder import HashingProvider
from support.purging import purge
from support.replication_site import Site, edition_documents, editions_in, names_in, published_file
from support.scratch import make_pipe
from support.sound import contents

Files = dict[str, bytes]
DATABASE, PACKED, AT_HAND = "replica.db", "replica.db.gz", "at hand"
"""The published file, unpacked; what is there in its place, if it is given; and what was pulled."""


@dataclass
class World:
    """What is published, and what an attacker has.

    Attributes:
        site: the publisher and the reader.
        old, new: two generations of the replica. ``new`` is published.
        elsewhere: the same corpus with the same key, published to another target.
        other_corpus: another corpus with the same key.
    """

    site: Site
    old: Files
    new: Files
    elsewhere: Files
    other_corpus: Files

    @property
    def share(self) -> Path:
        return self.site.share

    def publish(self, files: Files, at_hand: Files | None = None) -> None:
        """Put these files where replicas are published, and perhaps a replica at hand."""
        shutil.rmtree(self.share, ignore_errors=True)
        self.share.mkdir()
        packed = files.get(PACKED) or gzip.compress(files[DATABASE], mtime=0)
        try:
            digest = json.loads(files[MANIFEST])["manifest"]["packed_digest"][:32]
        except (ValueError, KeyError, TypeError, RecursionError):
            digest = sha256(packed).hexdigest()[:32]
        (self.share / f"replica-{digest}.db.gz").write_bytes(packed)
        (self.share / MANIFEST).write_bytes(files[MANIFEST])
        if at_hand is not None:
            shutil.rmtree(self.site.replica.parent, ignore_errors=True)
            self.site.replica.parent.mkdir()
            self.site.replica.write_bytes(at_hand[AT_HAND])

    def forged(self, change: Callable[[Corpus], None], key: PrivateKey | None = None) -> Files:
        """The new replica with a change, sealed again; with a key, its digests signed again."""
        file = self.site.folder / "forged.db"
        file.write_bytes(self.new[DATABASE])
        with open_writer(file, replica=True) as corpus:
            signed = SignedManifest.model_validate_json(stored_manifest(corpus))
            with corpus.writing():
                change(corpus)
            if key is not None:
                signed = SignedManifest.model_validate_json(stored_manifest(corpus))
                fields = {"content_digest": replicas.content_digest(corpus)}
                signed = sign(signed.manifest.model_copy(update=fields), key)
                with corpus.writing():
                    save_manifest(corpus, signed.model_dump_json())
            replicas.prepare_for_readers(corpus)
        return files_of(file, signed, key)

    def signed_again(self, key: PrivateKey, **fields: object) -> Files:
        """The new replica with other fields in its manifest."""

        def change(corpus: Corpus) -> None:
            signed = SignedManifest.model_validate_json(stored_manifest(corpus))
            manifest = signed.manifest.model_copy(update=fields)
            save_manifest(corpus, sign(manifest, key).model_dump_json())

        return self.forged(change, key)

    def written(self, manifest: str | bytes) -> Files:
        """The new replica with another manifest beside it."""
        text = manifest if isinstance(manifest, bytes) else manifest.encode()
        return {**self.new, MANIFEST: text}

    def edited(self, **fields: object) -> Files:
        """The new replica with other fields in the manifest beside it, and the old signature."""
        signed = json.loads(self.new[MANIFEST])
        signed["manifest"].update(fields)
        return self.written(json.dumps(signed))


def files_of(file: Path, signed: SignedManifest, key: PrivateKey | None) -> Files:
    """The files of a replica; the manifest has the digest of the packed one if there is a key."""
    content = file.read_bytes()
    if key is not None:
        packed = {
            "packed_digest": sha256(gzip.compress(content, mtime=0)).hexdigest(),
            "unpacked_bytes": len(content),
        }
        signed = sign(signed.manifest.model_copy(update=packed), key)
    return {DATABASE: content, MANIFEST: signed.model_dump_json(indent=2).encode()}


def read(site: Site) -> Files:
    """What is published, and what a reader without a replica gets of it."""
    shutil.rmtree(site.replica.parent, ignore_errors=True)
    site.pull()
    [packed] = site.share.glob("replica-*.db.gz")
    return {
        DATABASE: published_file(site.share),
        PACKED: packed.read_bytes(),
        MANIFEST: (site.share / MANIFEST).read_bytes(),
        AT_HAND: site.replica.read_bytes(),
    }


def new_world(folder: Path) -> World:
    """Publish two generations, and two other replicas."""
    site = Site(folder / "site", provider=HashingProvider())
    site.write()
    site.publish()
    old = read(site)
    site.write(2)
    site.publish()
    new = read(site)
    elsewhere = site.copy(site.folder.parent / "elsewhere")
    for edition in (3, 4):
        elsewhere.write(edition)
        elsewhere.publish()
    other_site = Site(site.folder.parent / "other", site.key)
    other_site.write(1)
    with open_writer(other_site.db) as corpus, corpus.writing():
        corpus.run("UPDATE corpus_state SET corpus_id = 'other'")
    other_site.publish()
    return World(site, old, new, read(elsewhere), read(other_site))


def other_application(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE TABLE replica (only_row, manifest)")


# -- Replicas that somebody changed on the way are refused, and the one at hand stays as it is -----
# Each case puts something else where a replica is published, and pulls. What is accepted is the
# honest replica. Then the honest replica is put back, and the next pull succeeds.

ATTACKER = PrivateKey.generate()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return new_world(tmp_path_factory.mktemp("tampering"))


# -- what is done with it ---------------------------------------------------------------------------

Case = Callable[[World], None]


def offered(files: Callable[[World], Files], *, newest_at_hand: bool = False) -> Case:
    """A case that publishes other files. At hand is the old replica, or the new one."""

    def case(world: World) -> None:
        found = files(world)
        world.publish(found, world.new if newest_at_hand else world.old)

    return case


def put(name: str, make: Callable[[Path], object]) -> Case:
    """A case with something else in place of a file."""

    def case(world: World) -> None:
        world.publish(world.new, world.old)
        [path] = world.share.glob(name)
        path.unlink()
        make(path)

    return case


def sql(*statements: str) -> Case:
    """A case that changes rows; the corpus is sealed again, but nobody has the key."""

    def change(corpus: Corpus) -> None:
        corpus.db.pragma("foreign_keys", False)
        for statement in statements:
            corpus.run(statement)

    return offered(lambda world: world.forged(change))


def raw(*statements: str) -> Case:
    """A case that changes the file with SQLite alone."""

    def files(world: World) -> Files:
        file = world.site.folder / "forged.db"
        file.write_bytes(world.new[DATABASE])
        with closing(apsw.Connection(str(file))) as db:
            for statement in statements:
                db.execute(statement)
            db.pragma("journal_mode", "delete")
        return without_packed({**world.new, DATABASE: file.read_bytes()})

    return offered(files)


def without_packed(files: Files) -> Files:
    """The files with the packed one made of the unpacked one, which was changed."""
    return {name: content for name, content in files.items() if name != PACKED}


def with_damage(name: str, damage: Callable[[bytes], bytes]) -> Case:
    def files(world: World) -> Files:
        damaged = {**world.new, name: damage(world.new[name])}
        return without_packed(damaged) if name == DATABASE else damaged

    return offered(files)


def flipped(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content))
    byte = content[place] ^ chance.randint(1, 255)
    return content[:place] + bytes([byte]) + content[place + 1 :]


def cut(chance: random.Random, content: bytes) -> bytes:
    return content[: chance.randrange(len(content))]


def longer(chance: random.Random, content: bytes) -> bytes:
    return content + chance.randbytes(chance.choice((1, 100, 4096, 70_000)))


def blank(chance: random.Random, content: bytes) -> bytes:
    """A page of zeros, or one page twice."""
    pages = max(1, len(content) // 4096)
    place, source = chance.randrange(pages) * 4096, chance.randrange(pages) * 4096
    page = chance.choice((bytes(4096), content[source : source + 4096]))[: len(content) - place]
    return content[:place] + page + content[place + len(page) :]


DAMAGES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "flip": flipped,
    "cut": cut,
    "longer": longer,
    "blank": blank,
}


def random_case(name: str, damage: str, seed: int) -> Case:
    chance = random.Random(f"{name} {damage} {seed}")
    return with_damage(name, lambda content: DAMAGES[damage](chance, content))


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nothing")


FIELDS: dict[str, object] = {
    "publisher": "mallory",
    "agent": "board",
    "corpus_id": "other",
    "publication": "other",
    "generation": 99,
    "purge_generation": 7,
    "content_digest": "0" * 32,
    "packed_digest": "0" * 64,
    "unpacked_bytes": 5,
    "schema_version": latest_version() + 1,
    "documents": 0,
    "chunks": 0,
    "quarantined": 5,
    "indexes": [],
    "overlays": {"reviewer": "00"},
    "policy_digest": "0" * 16,
    "published_at": "2099-01-01T00:00:00Z",
    "expires_at": "2099-01-01T00:00:00Z",
    "refuses_at": "2099-01-01T00:00:00Z",
    "version": 2,
    "unknown": 1,
}
ROWS = {
    "text": "UPDATE chunk SET content = 'all is well' WHERE id = 1",
    "document": "UPDATE document SET trust_tier = 'authoritative'",
    "compartment": "UPDATE compartment SET sensitivity = 'public', scope = 'board'",
    "policy": "INSERT INTO policy VALUES (1, '{\"agents\": {}}', 'json', '', '', '2026-01-01')",
    "mark": "INSERT INTO mark (kind, target, text_hash, state, marked_by, authority, reason, "
    "marked_at) VALUES ('document', 'd1', '', 'disputed', 'M', 'owner', 'no', "
    "'2026-01-01T00:00:00Z')",
    "audit": "UPDATE audit_state SET required = NOT required",
    "generation": "UPDATE corpus_state SET generation = 99",
    "removed": "DELETE FROM document WHERE document_id = 'd1'",
    "vector": "UPDATE embedded SET vector = zeroblob(length(vector))",
    "shadow": "DELETE FROM embedding_share",
}
SCHEMA = {
    "table": "CREATE TABLE extra (a)",
    "quoted table": 'CREATE TABLE "x"" NOT INDEXED; SELECT 1; --" (a)',
    "trigger": "CREATE TRIGGER t AFTER INSERT ON chunk BEGIN DELETE FROM chunk; END",
    "view": "CREATE VIEW v AS SELECT * FROM chunk",
    "virtual table": "CREATE VIRTUAL TABLE extra USING fts5(a)",
    "index": "CREATE INDEX i ON chunk (content)",
    "statistics": "ANALYZE",
    "version": "PRAGMA user_version = 11",
    "older version": "PRAGMA user_version = 9",
    "application": "PRAGMA application_id = 1",
}
CASES: dict[str, Case] = {
    "old file, new manifest": offered(lambda w: {**w.new, PACKED: w.old[PACKED]}),
    "old manifest": offered(lambda w: {**w.new, MANIFEST: w.old[MANIFEST]}, newest_at_hand=True),
    "replay": offered(lambda w: w.old, newest_at_hand=True),
    "older time": offered(
        lambda w: w.signed_again(w.site.key, published_at="2026-01-01T00:00:00Z"),
        newest_at_hand=True,
    ),
    "older purges": offered(
        lambda w: w.signed_again(w.site.key, purge_generation=-1, generation=99),
        newest_at_hand=True,
    ),
    "other target": offered(lambda w: w.elsewhere),
    "other target's file": offered(lambda w: {**w.new, PACKED: w.elsewhere[PACKED]}),
    "other corpus": offered(lambda w: w.other_corpus),
    "other corpus's manifest": offered(lambda w: {**w.new, MANIFEST: w.other_corpus[MANIFEST]}),
    "another key": offered(lambda w: w.signed_again(ATTACKER, generation=99)),
    "another key, our name": offered(
        lambda w: {
            **(files := w.signed_again(ATTACKER, generation=99)),
            MANIFEST: files[MANIFEST].replace(
                key_id(ATTACKER.public_key()).encode(), key_id(w.site.key.public_key()).encode()
            ),
        }
    ),
    "newer schema": offered(
        lambda w: w.signed_again(w.site.key, schema_version=latest_version() + 1)
    ),
    "older schema": offered(
        lambda w: w.signed_again(w.site.key, schema_version=latest_version() - 1)
    ),
    "expired": offered(lambda w: w.signed_again(w.site.key, expires_at="2026-01-01T00:00:00Z")),
    "corpus in place": offered(
        lambda w: without_packed({**w.new, DATABASE: w.site.db.read_bytes()})
    ),
    "text in place": offered(lambda w: without_packed({**w.new, DATABASE: b"a text\n" * 2000})),
    "nothing in place": offered(lambda w: without_packed({**w.new, DATABASE: b""})),
    "another application": put("*.gz", other_application),
    **{
        f"{kind} as {name}": put(name, make)
        for name in ("*.gz", MANIFEST)
        for kind, make in (
            ("link to nothing", make_dangling_link),
            ("loop", lambda path: path.symlink_to(path)),
            ("folder", Path.mkdir),
            ("pipe", make_pipe),
            ("nothing", lambda path: None),
        )
    },
    **{f"edited {name}": offered(lambda w, n=name: w.edited(**{n: FIELDS[n]})) for name in FIELDS},  # type: ignore[misc]
    **{f"rows: {name}": sql(statement) for name, statement in ROWS.items()},
    **{f"schema: {name}": raw(statement) for name, statement in SCHEMA.items()},
    **{
        f"{damage} {seed} in {name}": random_case(name, damage, seed)
        for name, damage, count in (
            (DATABASE, "flip", 200),
            (MANIFEST, "flip", 60),
            (PACKED, "flip", 60),
            (DATABASE, "cut", 20),
            (MANIFEST, "cut", 20),
            (PACKED, "cut", 30),
            (DATABASE, "longer", 10),
            (MANIFEST, "longer", 10),
            (PACKED, "longer", 20),
            (DATABASE, "blank", 40),
        )
        for seed in range(count)
    },
}


def rows(db: Path) -> Any:
    """All that an answer depends on, and what `pull` must remove."""
    with closing(apsw.Connection(str(db), flags=apsw.SQLITE_OPEN_READONLY)) as file:
        schema = file.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        more = [
            file.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in ("replica", "policy", "mark", "decision", "audit_state", "corpus_state")
        ]
    return contents(db), schema, more


def check(world: World) -> bool:
    """Whether the replica was refused; else it is the honest one."""
    site = world.site
    before = site.replica.read_bytes()
    try:
        site.pull()
    except RolebundleError as error:
        assert error.exit_code in CODED and error.hint
        assert site.replica.read_bytes() == before
        refused = True
    else:
        now = site.replica.read_bytes()
        refused = False
        honest = now in (before, world.new[AT_HAND])
        if not honest:
            (site.folder / "honest.db").write_bytes(world.new[AT_HAND])
            honest = rows(site.replica) == rows(site.folder / "honest.db")
        assert honest, "accepted"
    world.publish(world.new)
    site.pull()
    (site.folder / "honest.db").write_bytes(world.new[AT_HAND])
    assert rows(site.replica) == rows(site.folder / "honest.db")
    assert names_in(site.replica.parent) == [site.replica.name]
    return refused


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused(name: str, world: World) -> None:
    CASES[name](world)
    refused = check(world)
    if name.startswith(("old manifest", "replay", "older", "other target", "other corpus", "ano")):
        assert refused


def test_the_command_line_says_what_is_wrong(world: World, tmp_path: Path) -> None:
    public = tmp_path / "team.pub"
    public.write_bytes(
        world.site.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    for name, code, error in (
        ("another key", 7, "bad_signature"),
        ("old file, new manifest", 6, "bad_response"),
        ("replay", 7, "replica_rolled_back"),
        ("newer schema", 8, "newer_schema"),
        ("other corpus", 8, "other_corpus"),
        ("other target", 8, "other_publication"),
    ):
        CASES[name](world)
        outcome = invoke(
            "replica", "pull", world.share, "--key", public, "--db", world.site.replica
        )
        assert outcome.code == code and f"[{error}]" in outcome.err, outcome.err
        assert "stays" in outcome.err and "Traceback" not in outcome.err


# -- What is at hand when a replica is pulled: another file, a damaged replica, a link, nothing


def own_corpus(path: Path) -> None:
    build(path.parent, edition_documents(1), name=path.name)


def own_damaged_corpus(path: Path) -> None:
    own_corpus(path)
    with closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE corpus_state SET documents = 99")


def own_torn_corpus(path: Path) -> None:
    own_corpus(path)
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (own_corpus, "not_a_replica"),
        (own_damaged_corpus, "not_a_replica"),
        (own_torn_corpus, "damaged_at_hand"),
        (other_application, "foreign_file"),
        (lambda path: path.write_text("a text\n" * 1000), None),
        (Path.mkdir, "corpus_is_folder"),
        (make_pipe, "corpus_missing"),
    ],
)
def test_what_is_no_replica_is_not_replaced(
    make: Callable[[Path], object], code: str | None, world: World, tmp_path: Path
) -> None:
    world.publish(world.new)
    path = tmp_path / "mine.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(RolebundleError) as raised:
        pull(world.site.transport, path, world.site.key.public_key())
    assert code is None or raised.value.code == code
    assert (path.read_bytes() if path.is_file() else None) == before
    assert all(name.startswith("mine.db") for name in names_in(tmp_path))


def test_a_damaged_replica_at_hand_is_replaced(world: World) -> None:
    """Also if it is the published one: a pull heals it."""
    site = world.site
    for damage in (
        lambda content: content[:50_000] + bytes(100) + content[50_100:],
        lambda content: b"",
    ):
        world.publish(world.new, {AT_HAND: damage(world.new[AT_HAND])})
        site.pull()
        assert_healed(site)
    with closing(apsw.Connection(str(site.replica))) as db:
        db.execute("UPDATE corpus_state SET documents = 99")
        db.execute("UPDATE replica SET manifest = '{}'")
    site.pull()
    assert_healed(site)


def assert_healed(site: Site) -> None:
    verify_replica(site.replica, "", site.key.public_key())
    assert editions_in(site.replica) == {"edition2"}


def test_a_link_to_a_replica_stays_a_link(world: World, tmp_path: Path) -> None:
    world.publish(world.new)
    (tmp_path / "data").mkdir()
    link = tmp_path / "r.db"
    link.symlink_to(tmp_path / "data" / "real.db")
    for _ in range(2):
        pull(world.site.transport, link, world.site.key.public_key())
        assert link.is_symlink()
        assert names_in(tmp_path / "data") == ["real.db"]


def test_after_a_purge_nothing_older_is_accepted(tmp_path: Path) -> None:
    """The replica at hand is erased before the next one is there. Then an older one is refused."""
    site = Site(tmp_path / "site")
    site.write()
    site.publish()
    site.pull()
    old = shutil.copytree(site.share, tmp_path / "old")
    with open_writer(site.db) as corpus:
        purge(corpus, ["d1"])
    site.publish()
    new = shutil.copytree(site.share, tmp_path / "new")
    [packed] = site.share.glob("*.gz")
    packed.write_bytes(b"torn")
    with pytest.raises(RolebundleError) as raised:
        site.pull()
    assert "stays" not in raised.value.message
    assert not site.replica.exists(), "it holds what was purged"
    shutil.rmtree(site.share)
    shutil.copytree(old, site.share)
    with pytest.raises(RolebundleError) as raised:
        site.pull()
    assert raised.value.code == "replica_rolled_back"
    assert not site.replica.exists()
    shutil.rmtree(site.share)
    shutil.copytree(new, site.share)
    report = site.pull()
    assert (report.state, report.former_generation) == ("updated", None)
    assert names_in(site.replica.parent) == [site.replica.name]
