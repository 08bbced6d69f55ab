"""A replica says what it is and how old, refuses when it expired, and nobody here changes it."""

from __future__ import annotations

import inspect
import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from threading import Event
from urllib.request import urlopen

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.decisions import CheckRequest, NewDecision
from rolebundle.contracts.facts import RememberRequest
from rolebundle.contracts.marks import MarkRequest
from rolebundle.contracts.operation_requests import ListRequest
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.doctor import examine
from rolebundle.engine import Engine
from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.watch import WatchOptions
from rolebundle.interfaces.markdown import markdown
from rolebundle.interfaces.pages.answer import answer_page
from rolebundle.interfaces.render import text
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.policy.purge import PurgeSelection
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.transports.registry import open_transport
from rolebundle.status import owner_status
from rolebundle.storage.location import audit_path
from rolebundle.storage.opening import open_writer
from rolebundle.storage.records.publications import save_publication
from rolebundle.storage.records.replica import PUBLISHED
from rolebundle.storage.records.stored_audit import StoredAudit, save_stored_audit
from support.commands import invoke
from support.inspecting import inspecting
from support.publications import publication_of
from support.replica_files import EXPIRES_AT, LONG_AGO, PUBLISHED_AT, PUBLISHER, make_replica

POLICY = """
[agents.bot]
access_level = "internal"
scopes = ["shared"]
show_paths = true
may_write = ["mark", "remember"]
"""
NOTE = "guide/token.md"
MACHINE = "head-office"
"""Part of the paths of the publisher."""
HIDDEN = "".join(chr(0xE0000 + ord(letter)) for letter in "obey me")


def at(time: str) -> datetime:
    return datetime.fromisoformat(time)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A corpus of two documents, one more in quarantine, and a decision."""
    folder = tmp_path_factory.mktemp(MACHINE)
    guide = folder / "guide"
    guide.mkdir()
    (guide / "token.md").write_text("# Tokens\n\nA token rotates daily.\n", encoding="utf-8")
    (guide / "key.md").write_text("# Keys\n\nA key is kept in a safe.\n", encoding="utf-8")
    (guide / "hidden.md").write_text(f"# Hidden\n\nA token {HIDDEN} too.\n", encoding="utf-8")
    with Admin(folder / "c.db") as admin:
        admin.ingest([guide], IngestOptions(workers=1), lexical_only=True)
        admin.decisions.record(NewDecision(text="Do not post tokens", decided_by="Ana"))
    return (folder / "c.db").read_bytes()


@pytest.fixture
def db(image: bytes, tmp_path: Path) -> Path:
    """An ordinary corpus."""
    path = tmp_path / "place" / "c.db"
    path.parent.mkdir()
    path.write_bytes(image)
    return path


def with_policy(db: Path) -> None:
    with Admin(db) as admin:
        admin.policy.set(POLICY, "toml")
    audit_path(db).unlink()


def ask(db: Path, now: str = PUBLISHED_AT, **fields: object) -> RetrievalBundle:
    with Engine(db) as engine:
        request = RetrievalRequest(task="token rotates", lexical_only=True, now=at(now))
        return engine.retrieve(request.model_copy(update=fields))


# -- what it says ----------------------------------------------------------------------------------


def test_a_bundle_names_publisher_generation_and_age(db: Path) -> None:
    make_replica(db)
    bundle = ask(db, "2026-11-01T03:00:00Z")
    assert bundle.corpus is not None and bundle.corpus.replica is not None
    assert bundle.corpus.replica.model_dump() == {
        "publisher": PUBLISHER,
        "generation": 12,
        "published_at": PUBLISHED_AT,
        "expires_at": EXPIRES_AT,
        "age_hours": 3.0,
    }
    expected = "from a replica of docs-team, generation 12, published 3 hours ago"
    assert expected in text(bundle).splitlines()
    assert expected in markdown(bundle)
    assert expected in answer_page(bundle)
    replica = json.loads(bundle.to_json())["corpus"]["replica"]
    assert shaped_bundle(bundle, "compact")["corpus"]["replica"] == replica
    assert ask(db, "2026-10-01T00:00:00Z").corpus.replica.age_hours == 0  # type: ignore[union-attr]


def test_an_ordinary_corpus_says_nothing_of_replicas(db: Path) -> None:
    bundle = ask(db)
    output = bundle.to_json() + text(bundle) + markdown(bundle) + answer_page(bundle)
    assert "replica" not in output


def test_an_answer_of_an_overdue_replica_has_a_warning(db: Path) -> None:
    make_replica(db)
    before = (at(EXPIRES_AT) - timedelta(seconds=1)).isoformat()
    assert "REPLICA_STALE" not in {warning.code for warning in ask(db, before).warnings}
    bundle = ask(db, EXPIRES_AT, packet=True)
    [warning] = [warning for warning in bundle.warnings if warning.code == "REPLICA_STALE"]
    for part in (PUBLISHER, "7 days ago", EXPIRES_AT, "rolebundle pull"):
        assert part in warning.message
    assert bundle.fallback is not None
    assert "the replica was not renewed in time" in bundle.fallback.message
    assert warning.message in text(bundle, width=1_000)
    assert warning.message in (bundle.packet or "")
    second_bundle = ask(db, EXPIRES_AT, packet=True)
    assert second_bundle.without_timings() == bundle.without_timings()


def test_a_replay_names_another_replica_as_the_cause(db: Path) -> None:
    make_replica(db)
    bundle = ask(db)
    make_replica(db, generation=13)
    with Engine(db) as engine:
        [cause] = engine.replay(bundle).causes
    assert (cause.kind, cause.before) == ("generation", f"12 of {PUBLISHED_AT}")


@pytest.mark.parametrize("has_policy", [False, True])
def test_it_knows_how_many_documents_are_in_quarantine(db: Path, has_policy: bool) -> None:
    """The publisher's own answer says so, and the replica does not hold them."""
    if has_policy:
        with_policy(db)
    agent = "bot" if has_policy else None
    complete = ask(db, agent=agent)
    assert complete.rejected_summary["quarantined"] == 1
    with Admin(db) as admin:
        admin.quarantine.drop("guide/hidden.md")
    make_replica(db, quarantined=1)
    replica = ask(db, agent=agent)
    assert replica.rejected_summary == complete.rejected_summary
    assert [chunk.chunk_id for chunk in replica.selected] == [
        chunk.chunk_id for chunk in complete.selected
    ]


# -- it refuses when it expired --------------------------------------------------------------------

QUESTIONS: dict[str, Callable[[Engine, RetrievalBundle, str | None], object]] = {
    "retrieve": lambda e, _, a: e.retrieve(RetrievalRequest(task="token", agent=a)),
    "why": lambda e, _, a: e.why(RetrievalRequest(task="token", agent=a), NOTE),
    "replay": lambda e, bundle, a: e.replay(bundle, agent=a),
    "compare": lambda e, _, a: e.compare(RetrievalRequest(task="token", agent=a), ["x"]),
    "retrieve_for_roles": lambda e, _, a: e.retrieve_for_roles(
        RetrievalRequest(task="token", agent=a), ["x"]
    ),
    "get": lambda e, _, a: e.get(NOTE, a),
    "document": lambda e, _, a: e.document(NOTE, a),
    "multi_get": lambda e, _, a: e.multi_get([NOTE], a),
    "ls": lambda e, _, a: e.ls(ListRequest(agent=a)),
    "check": lambda e, _, a: e.check(CheckRequest(intent="post tokens", agent=a)),
    "decisions": lambda e, _, a: e.decisions(a),
    "mark": lambda e, _, a: e.mark(MarkRequest(id=NOTE, state="disputed", reason="old", agent=a)),
    "verify": lambda e, _, a: e.verify(VerifyRequest(draft="A token rotates daily.", agent=a)),
    "remember": lambda e, _, a: e.remember(RememberRequest(fact="A fact.", source=NOTE, agent=a)),
    "access": lambda e, _, a: e.access.view_of(a),
}
NO_QUESTIONS = {
    *("agent", "overlay_folders", "status", "gate_check"),
    *("warm_up", "interrupt", "refresh", "close"),
}


def test_every_method_of_the_engine_is_classified() -> None:
    public = {name for name in vars(Engine) if not name.startswith("_")}
    assert public | {"access"} == QUESTIONS.keys() | NO_QUESTIONS


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("agent", [None, "bot"])
def test_an_expired_replica_answers_nothing(db: Path, name: str, agent: str | None) -> None:
    if agent:
        with_policy(db)
    bundle = ask(db, agent=agent)
    make_replica(db, refuses_at=LONG_AGO)
    with Engine(db) as engine, pytest.raises(StorageError) as error:
        QUESTIONS[name](engine, bundle, agent)
    assert error.value.code == "replica_expired"
    assert PUBLISHER in error.value.message and PUBLISHED_AT in error.value.message
    assert "rolebundle pull" in error.value.hint


def test_it_refuses_from_its_time_on_by_the_real_clock(db: Path) -> None:
    """The time of the request may be any."""
    make_replica(db, refuses_at=(datetime.now(UTC) + timedelta(hours=1)).isoformat())
    assert ask(db, "2030-01-01T00:00:00Z").selected
    make_replica(db, refuses_at=datetime.now(UTC).isoformat())
    with pytest.raises(StorageError):
        ask(db, PUBLISHED_AT)


def test_the_owner_reads_nothing_of_an_expired_replica(db: Path) -> None:
    make_replica(db, refuses_at=LONG_AGO)
    reads: list[Callable[[Admin], object]] = [
        lambda admin: admin.documents.listing(ListRequest()),
        lambda admin: admin.documents.inspect(NOTE),
        lambda admin: admin.quarantine.documents(),
        lambda admin: admin.decisions.all(),
        lambda admin: admin.marks.all(),
        lambda admin: admin.facts.all(),
        lambda admin: admin.policy.find_bridges(0.5, 5),
    ]
    for read in reads:
        with Admin(db) as admin, pytest.raises(StorageError) as error:
            read(admin)
        assert error.value.code == "replica_expired"


def test_status_and_doctor_tell_about_an_expired_replica(db: Path) -> None:
    make_replica(db, refuses_at=LONG_AGO)
    assert invoke("retrieve", "token", "--db", db).code == 6
    with Engine(db) as engine:
        replica = engine.status().replica
    assert replica is not None and replica.refusing and replica.expired
    outcome = invoke("status", "--db", db)
    assert outcome.code == 0 and "gives no answers: run `rolebundle pull`" in outcome.out
    checked = invoke("doctor", "--db", db)
    assert checked.code == 7
    assert f"since {LONG_AGO} it gives no answers" in checked.out
    assert "rolebundle pull" in checked.out


# -- status, doctor and pages ----------------------------------------------------------------------


def test_status_and_doctor_know_a_replica(db: Path) -> None:
    make_replica(db, agent="bot", expires_at="9998-01-01T00:00:00Z")
    before = contents(db)
    for options in ((), ("--check",)):
        outcome = invoke("status", *options, "--db", db)
        assert outcome.code == 0
        assert "replica of docs-team for bot, generation 12, key " in outcome.out
    checked = invoke("doctor", "--db", db)
    assert checked.code == 0
    assert "of docs-team, generation 12" in checked.out
    assert "files are on the publisher's machine" in checked.out
    assert contents(db) == before


def test_doctor_warns_about_an_overdue_replica(db: Path) -> None:
    make_replica(db, expires_at=LONG_AGO)
    states = {check.name: check for check in examine(db).checks}
    assert states["replica"].state == "warning"
    assert "rolebundle pull" in states["replica"].remedy


def test_a_damaged_record_is_found(db: Path) -> None:
    make_replica(db)
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE replica SET manifest = replace(manifest, ':12,', ':99,')")
    raw.close()
    with pytest.raises(CorpusCorrupt):
        ask(db)
    assert not examine(db).sound


def test_publications_are_for_the_owner_alone(db: Path) -> None:
    with_policy(db)
    with open_writer(db) as corpus, corpus.writing():
        save_publication(corpus, publication_of("/srv/a"))
        save_publication(corpus, publication_of("/srv/b")._replace(purge_generation=2))
    with Admin(db) as admin:
        known = owner_status(admin.workspace.corpus).publications
        report = {(check.name, check.message) for check in examine(db).checks}
    assert [(publication.target, publication.purge_pending) for publication in known] == [
        ("/srv/a", False),
        ("/srv/b", True),
    ]
    [message] = [message for name, message in report if name == "publications"]
    assert "/srv/b" in message
    remedies = {check.remedy for check in examine(db).checks}
    assert any("rolebundle publish /srv/b --key FILE" in remedy for remedy in remedies)
    output = invoke("status", "--db", db).out
    assert "published to /srv/a for ana: generation 3" in output
    assert "may still be there" in output
    with Engine(db) as engine:
        assert "/srv" not in engine.status("bot").model_dump_json()


@pytest.mark.parametrize("agent", [None, "bot"])
def test_no_location_of_the_publisher_is_shown(db: Path, agent: str | None) -> None:
    if agent:
        with_policy(db)
    make_replica(db)
    bundle = ask(db, agent=agent)
    chunk = bundle.selected[0].chunk_id
    assert bundle.selected[0].citation.absolute_path is None
    assert not {warning.code for warning in bundle.warnings} & {
        "SOURCE_CHANGED",
        "SOURCE_UNCHECKED",
    }
    outputs = [bundle.to_json()]
    with Engine(db) as engine:
        outputs += [
            engine.get(reference, agent).model_dump_json()
            for reference in (NOTE, chunk, f"{NOTE}:1-3")
        ]
        outputs.append(
            engine.why(RetrievalRequest(task="token", agent=agent), chunk).model_dump_json()
        )
        outputs.append(engine.multi_get(["guide/*"], agent).model_dump_json())
        outputs.append(engine.ls(ListRequest(agent=agent)).model_dump_json())
        outputs.append(repr(engine.document(NOTE, agent)))
        outputs.append(engine.status(agent).model_dump_json())
        with pytest.raises(UsageError):
            engine.get(f"{PUBLISHED}{NOTE}", agent)
    if agent is None:
        outputs += [
            invoke(*command, "--db", db).out
            for command in (
                ("ls", "--json"),
                ("get", NOTE, "--json"),
                ("status", "--json"),
                ("doctor", "--json"),
                ("why", NOTE, "token"),
            )
        ]
        with inspecting(db) as app:
            for page in (
                app.to("corpus", check="1"),
                app.to("document", id=NOTE),
                app.to("answer", task="token"),
            ):
                with urlopen(page) as answer:
                    outputs.append(answer.read().decode())
        assert "A replica of docs-team, generation 12" in outputs[-3]
    assert all(outputs)
    assert not [output for output in outputs if PUBLISHED in output or MACHINE in output]


# -- it is read-only -------------------------------------------------------------------------------


def contents(db: Path) -> dict[str, bytes]:
    """Every file beside a corpus, and the corpus itself."""
    return {file.name: file.read_bytes() for file in db.parent.iterdir() if file.is_file()}


def _watch(admin: Admin, _: Path) -> object:
    return admin.watcher(WatchOptions(IngestOptions()), print, Event())


def _publish(admin: Admin, more: Path) -> object:
    options = PublishOptions("me", timedelta(days=1), timedelta(days=1))
    key = Ed25519PrivateKey.generate()
    return admin.replicas.publish(
        open_transport(str(more / "share")), key, options, level="internal"
    )


WRITES: dict[str, Callable[[Admin, Path], object]] = {
    "ingest": lambda a, more: a.ingest([more]),
    "update": lambda a, _: a.update(),
    "watcher": _watch,
    "roots.move": lambda a, more: a.roots.move(more, more),
    "roots.remove": lambda a, more: a.roots.remove(more, confirmed=True),
    "indexes.embed": lambda a, _: a.indexes.embed(),
    "indexes.use": lambda a, _: a.indexes.use("1"),
    "indexes.drop": lambda a, _: a.indexes.drop("1"),
    "indexes.optimize": lambda a, _: a.indexes.optimize(),
    "indexes.clear_vector_cache": lambda a, _: a.indexes.clear_vector_cache(),
    "quarantine.release": lambda a, _: a.quarantine.release("guide/hidden.md"),
    "quarantine.drop": lambda a, _: a.quarantine.drop("guide/hidden.md"),
    "marks.put": lambda a, _: a.marks.put(NOTE, "disputed", "Ana", "old"),
    "marks.remove": lambda a, _: a.marks.remove(NOTE),
    "decisions.record": lambda a, _: a.decisions.record(NewDecision(text="No", decided_by="Ana")),
    "decisions.end": lambda a, _: a.decisions.end("1", "Ana", "over"),
    "facts.remember": lambda a, _: a.facts.remember(
        RememberRequest(fact="A fact.", source=NOTE), "Ana"
    ),
    "facts.promote": lambda a, _: a.facts.promote("fact", "Ana"),
    "facts.forget": lambda a, _: a.facts.forget("fact", "Ana"),
    "replicas.publish": _publish,
    "replicas.forget_target": lambda a, _: a.replicas.forget_target("/mnt/share", confirmed=True),
    "purges.purge": lambda a, _: a.purges.purge(PurgeSelection([NOTE])),
    "purges.finish": lambda a, _: a.purges.finish(),
    "approvals.approve_manifest": lambda a, more: a.approvals.approve_manifest(more),
    "approvals.revoke_manifest": lambda a, more: a.approvals.revoke_manifest(more),
    "gates.start": lambda a, more: a.gates.start(more / "work.gate.toml"),
    "approvals.approve_contract": lambda a, more: a.approvals.approve_contract(
        more / "work.gate.toml"
    ),
    "approvals.revoke_contract": lambda a, more: a.approvals.revoke_contract(
        more / "work.gate.toml"
    ),
    "gates.count_blocks": lambda a, more: a.gates.count_blocks(more / "work.gate.toml", 1),
    "policy.set": lambda a, _: a.policy.set(POLICY, "toml"),
    "audit.set": lambda a, _: a.audit.set("required"),
    "backups.create": lambda a, more: a.backups.create(more / "copy.db"),
    "backups.rotate": lambda a, more: a.backups.rotate(more),
    "backups.restore": lambda a, more: a.backups.restore(more / "other.db", confirmed=True),
}
READS = {
    *("close", "documents.inspect", "documents.listing", "indexes.estimate", "indexes.warm"),
    *("quarantine.documents", "quarantine.names", "quarantine.find", "marks.all", "decisions.all"),
    *("facts.all", "purges.plan", "policy.find_bridges", "audit.rows"),
}
OTHER_OPERATIONS = {"audit.collect", "repair", "replicas.pull", "purges.finish_in"}
"""They change files beside it, leave a sound corpus alone, replace it, or need it open to write."""


def methods(subject: object) -> set[str]:
    return {name for name, _ in inspect.getmembers(subject, inspect.ismethod) if name[0] != "_"}


def test_every_method_of_the_admin_is_classified(tmp_path: Path) -> None:
    admin = Admin(tmp_path / "none.db")
    services = [name for name, value in vars(Admin).items() if isinstance(value, cached_property)]
    public = methods(admin) | {
        f"{name}.{method}" for name in services for method in methods(getattr(admin, name))
    }
    known = WRITES.keys() | READS | OTHER_OPERATIONS
    assert len(services) > 10
    assert public == known


@pytest.fixture
def more(tmp_path: Path, image: bytes) -> Path:
    """Another folder, with what the commands are given."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "other.db").write_bytes(image)
    (folder / "rolebundle.toml").write_text("", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    contract = '[[criteria]]\nid = "a"\ncheck = "exists"\nfile = "policy.toml"\n'
    (folder / "work.gate.toml").write_text(contract, encoding="utf-8")
    return folder


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", WRITES)
def test_no_method_of_the_owner_changes_a_replica(db: Path, more: Path, name: str) -> None:
    make_replica(db)
    before, beside = contents(db), contents(more / "other.db")
    with Admin(db) as admin, pytest.raises(UsageError) as error:
        WRITES[name](admin, more)
    is_backup = name in ("backups.create", "backups.rotate")
    expected = "replica_no_backup" if is_backup else "replica_is_read_only"
    assert error.value.code == expected
    assert contents(db) == before and contents(more / "other.db") == beside


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("ingest", "{}"),
    ("update",),
    ("watch", "--once"),
    ("init", "{}"),
    ("embed",),
    ("embed", "clear-cache"),
    ("roots", "remove", "{}", "--yes"),
    ("scopes", "set", "{}/policy.toml"),
    ("trust", "approve", "{}"),
    ("quarantine", "release", "guide/hidden.md"),
    ("audit", "set", "--mode", "required"),
    ("purge", NOTE, "--yes"),
    ("backup", "{}/copy.db"),
    ("restore", "{}/other.db", "--yes"),
    ("gate", "start", "{}/work.gate.toml"),
    ("remember", "A fact.", "--source", NOTE, "--by", "Ana"),
    ("mark", NOTE, "--state", "disputed", "--by", "Ana", "--reason", "old"),
    ("decide", "No posts", "--by", "Ana"),
    ("decisions", "end", "1", "--by", "Ana", "--reason", "over"),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_changes_a_replica(db: Path, more: Path, command: tuple[str, ...]) -> None:
    make_replica(db)
    (more / "rolebundle.toml").unlink()
    if command[0] == "trust":
        (more / "rolebundle.toml").write_text("", encoding="utf-8")
    before, beside = contents(db), contents(more / "other.db")
    ended = invoke(*(part.replace("{}", str(more)) for part in command), "--db", db)
    assert ended.code == 2, ended.err
    assert "[replica_is_read_only]" in ended.err or "[replica_no_backup]" in ended.err
    assert contents(db) == before and contents(more / "other.db") == beside


def test_an_agent_changes_nothing(db: Path) -> None:
    with_policy(db)
    make_replica(db)
    before = db.read_bytes()
    with Engine(db, agent="bot") as engine:
        for name in ("mark", "remember"):
            with pytest.raises(UsageError) as error:
                QUESTIONS[name](engine, ask(db, agent="bot"), "bot")
            assert error.value.code == "replica_is_read_only"
            assert str(db.parent) not in error.value.message
    assert db.read_bytes() == before


def test_its_publisher_may_open_it(db: Path) -> None:
    make_replica(db)
    with pytest.raises(UsageError), open_writer(db):
        pass
    with open_writer(db, replica=True) as corpus, corpus.writing():
        corpus.run("DELETE FROM replica")
    with open_writer(db):
        pass


# -- repair, restore and audit ---------------------------------------------------------------------


def _damage_content(db: Path) -> None:
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE chunk SET content = 'forged'")
    raw.close()


def _damage_seal(db: Path) -> None:
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE seal SET tables = x'00'")
    raw.close()


def _lose_record(db: Path) -> None:
    """The table of the record cannot be read."""
    with sqlite3.connect(db) as raw:
        [[page]] = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'replica'")
        [[size]] = raw.execute("PRAGMA page_size")
    raw.close()
    with db.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 8)


def _lose_schema(db: Path) -> None:
    with db.open("r+b") as file:
        file.write(b"\0" * 4096)


@pytest.mark.parametrize("damage", [_damage_content, _damage_seal, _lose_record, _lose_schema])
def test_a_damaged_replica_is_not_made_an_ordinary_corpus(
    db: Path, more: Path, damage: Callable[[Path], None]
) -> None:
    make_replica(db)
    damage(db)
    before = contents(db)
    with Admin(db) as admin:
        assert not examine(db).sound
        with pytest.raises(UsageError) as error:
            admin.repair()
        assert error.value.code == "replica_is_read_only" and "pull" in error.value.hint
        with pytest.raises(UsageError) as error:
            admin.backups.restore(more / "other.db", confirmed=True)
        assert error.value.code == "replica_is_read_only"
    assert contents(db) == before


def test_a_sound_replica_is_left_alone(db: Path) -> None:
    make_replica(db)
    before = contents(db)
    assert not Admin(db).repair().repaired
    assert contents(db) == before


def test_a_copy_of_a_replica_is_no_backup(db: Path, more: Path) -> None:
    copy = more / "replica.db"
    copy.write_bytes(db.read_bytes())
    make_replica(copy)
    before = db.read_bytes()
    with Admin(db) as admin, pytest.raises(UsageError) as error:
        admin.backups.restore(copy, confirmed=True)
    assert error.value.code == "replica_no_backup"
    assert db.read_bytes() == before


def _require_audit(db: Path) -> None:
    """As a publisher whose corpus requires records; its head is not that of the replica."""
    with open_writer(db) as corpus, corpus.writing():
        save_stored_audit(corpus, StoredAudit(True))


def test_a_required_audit_is_kept_here(db: Path) -> None:
    _require_audit(db)
    make_replica(db)
    before = db.read_bytes()
    with pytest.raises(StorageError) as error:
        ask(db)
    assert error.value.code == "audit_unwritable"
    with Admin(db) as admin:
        assert admin.audit.set("required", "text").mode == "required"
    assert ask(db).selected
    with Admin(db) as admin:
        assert [row.kind for row in admin.audit.rows(1)[1]] == ["retrieve"]
        with pytest.raises(UsageError) as refused:
            admin.audit.set("on")
    assert refused.value.code == "replica_is_read_only"
    audit_path(db).unlink()
    with pytest.raises(RolebundleError):
        ask(db)
    assert db.read_bytes() == before


def test_settings_in_the_file_of_the_audit_can_be_changed(db: Path) -> None:
    make_replica(db)
    with Admin(db) as admin:
        assert admin.audit.set("on").mode == "on"
    assert ask(db).selected
    with Admin(db) as admin:
        assert len(admin.audit.rows(5)[1]) >= 1
        assert admin.audit.set("off").mode == "off"
