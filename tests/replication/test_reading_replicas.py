"""A replica says what it is and how old, and refuses when it expired."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import all_decisions, all_facts, all_marks, drop_document
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.memory import CheckRequest, MarkRequest, RememberRequest
from rolebundle.contracts.request import GrepRequest, ListRequest, RetrievalRequest
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.doctor import examine
from rolebundle.engine import Engine
from rolebundle.errors import CorpusCorrupt, StorageError, UsageError
from rolebundle.interfaces.pages.views import answer_page
from rolebundle.interfaces.render import text
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.status import owner_status
from rolebundle.storage.opening import open_writer
from rolebundle.storage.publications import PUBLISHED, save_publication
from support.commands import invoke
from support.inspecting import inspecting
from support.publications import publication_of
from support.reading_replicas import MACHINE, NOTE, ask, at, contents, with_policy
from support.replica_files import EXPIRES_AT, LONG_AGO, PUBLISHED_AT, PUBLISHER, make_replica

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
    assert expected in answer_page(bundle)
    replica = json.loads(bundle.to_json())["corpus"]["replica"]
    assert shaped_bundle(bundle, "compact")["corpus"]["replica"] == replica
    assert ask(db, "2026-10-01T00:00:00Z").corpus.replica.age_hours == 0  # type: ignore[union-attr]


def test_an_ordinary_corpus_says_nothing_of_replicas(db: Path) -> None:
    bundle = ask(db)
    output = bundle.to_json() + text(bundle) + answer_page(bundle)
    assert "replica" not in output


def test_an_answer_of_an_overdue_replica_has_a_warning(db: Path) -> None:
    make_replica(db)
    before = (at(EXPIRES_AT) - timedelta(seconds=1)).isoformat()
    assert "REPLICA_STALE" not in {warning.code for warning in ask(db, before).warnings}
    bundle = ask(db, EXPIRES_AT, packet=True)
    [warning] = [warning for warning in bundle.warnings if warning.code == "REPLICA_STALE"]
    for part in (PUBLISHER, "7 days ago", EXPIRES_AT, "rolebundle replica pull"):
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
        drop_document(admin.workspace, "guide/hidden.md")
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
    "grep": lambda e, _, a: e.grep(GrepRequest(pattern="token", agent=a)),
    "check": lambda e, _, a: e.check(CheckRequest(intent="post tokens", agent=a)),
    "decisions": lambda e, _, a: e.decisions(a),
    "mark": lambda e, _, a: e.mark(MarkRequest(id=NOTE, state="disputed", reason="old", agent=a)),
    "verify": lambda e, _, a: e.verify(VerifyRequest(draft="A token rotates daily.", agent=a)),
    "remember": lambda e, _, a: e.remember(RememberRequest(fact="A fact.", source=NOTE, agent=a)),
    "access": lambda e, _, a: e.access.view_of(a),
}
NO_QUESTIONS = {
    "why_as_agent",
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
    assert "rolebundle replica pull" in error.value.hint


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
        lambda admin: all_decisions(admin.workspace),
        lambda admin: all_marks(admin.workspace),
        lambda admin: all_facts(admin.workspace),
    ]
    for read in reads:
        with Admin(db) as admin, pytest.raises(StorageError) as error:
            read(admin)
        assert error.value.code == "replica_expired"
    assert "[replica_expired]" in invoke("corpus", "quarantine", "list", "--db", db).err


def test_status_and_doctor_tell_about_an_expired_replica(db: Path) -> None:
    make_replica(db, refuses_at=LONG_AGO)
    assert invoke("retrieve", "token", "--db", db).code == 6
    with Engine(db) as engine:
        replica = engine.status().replica
    assert replica is not None and replica.refusing and replica.expired
    outcome = invoke("status", "--db", db)
    assert outcome.code == 0 and "gives no answers: run `rolebundle replica pull`" in outcome.out
    checked = invoke("corpus", "doctor", "--db", db)
    assert checked.code == 7
    assert f"since {LONG_AGO} it gives no answers" in checked.out
    assert "rolebundle replica pull" in checked.out


# -- status, doctor and pages ----------------------------------------------------------------------


def test_status_and_doctor_know_a_replica(db: Path) -> None:
    make_replica(db, agent="bot", expires_at="9998-01-01T00:00:00Z")
    before = contents(db)
    for options in ((), ("--check",)):
        outcome = invoke("status", *options, "--db", db)
        assert outcome.code == 0
        assert "replica of docs-team for bot, generation 12, key " in outcome.out
    checked = invoke("corpus", "doctor", "--db", db)
    assert checked.code == 0
    assert "of docs-team, generation 12" in checked.out
    assert "files are on the publisher's machine" in checked.out
    assert contents(db) == before


def test_doctor_warns_about_an_overdue_replica(db: Path) -> None:
    make_replica(db, expires_at=LONG_AGO)
    states = {check.name: check for check in examine(db).checks}
    assert states["replica"].state == "warning"
    assert "rolebundle replica pull" in states["replica"].remedy


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
    assert any("rolebundle replica publish /srv/b --key FILE" in remedy for remedy in remedies)
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
                ("corpus", "doctor", "--json"),
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
