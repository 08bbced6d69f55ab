"""Remembered facts beside documents: ingest, vectors, purge, replicas, repair."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.indexes import embed
from rolebundle.admin.records import all_facts, file_fact
from rolebundle.contracts.memory import RememberedFact, RememberRequest
from rolebundle.repair import repair
from rolebundle.status import owner_status
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.facts import FACT, PAGE, listed, problems
from support.fake_embedder import IDENTITY, HashingProvider
from support.publications import stage


@pytest.fixture
def ingested(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "limits.md").write_text("# Limits\n\nThe token limit is forty.\n", encoding="utf-8")
    (tree / "plan.md").write_text("# Plan\n\nThe plan of May.\n", encoding="utf-8")
    db = tmp_path / "c.db"
    with Admin(Workspace(db, HashingProvider())) as admin:
        admin.ingest([tree])
    return db


def remember_in(db: Path, fact: str = FACT, source: str = "limits.md:1-3") -> RememberedFact:
    with Admin(Workspace(db, HashingProvider())) as admin:
        return file_fact(admin.workspace, RememberRequest(fact=fact, source=source), "Ana")


def test_an_ingest_leaves_facts_alone(ingested: Path) -> None:
    tree = ingested.parent / "tree"
    facts_before = [remember_in(ingested), remember_in(ingested, "Another one.", PAGE)]
    (tree / "limits.md").write_text("The limit is fifty.\n", encoding="utf-8")
    with Admin(Workspace(ingested, HashingProvider())) as admin:
        for path in (tree, tree / "limits.md"):
            assert admin.ingest([path]).removed == 0
        (tree / "limits.md").unlink()
        assert admin.ingest([tree]).removed == 1
        records = {fact.document_id: fact for fact in all_facts(admin.workspace)}
    assert [records[fact.document_id].source_is_gone for fact in facts_before] == [True, False]
    assert problems(ingested) == []


def test_a_fact_gets_a_vector(ingested: Path) -> None:
    fact = remember_in(ingested)
    with open_reader(ingested) as corpus:
        stored = corpus.value(
            "SELECT count(*) FROM embedded e JOIN chunk c ON c.id = e.chunk WHERE c.chunk_id = ?",
            (fact.chunk_id,),
        )
    assert stored == 1
    assert problems(ingested) == []


def test_without_its_model_a_fact_waits_for_a_vector(ingested: Path) -> None:
    other_provider = HashingProvider(identity=IDENTITY._replace(model="other"))
    with Admin(Workspace(ingested, other_provider)) as admin:
        file_fact(admin.workspace, RememberRequest(fact=FACT, source=PAGE), "Ana")
        assert owner_status(admin.workspace.corpus).waiting == 1
    with Admin(Workspace(ingested, HashingProvider())) as admin:
        assert embed(admin.workspace).embedded == 1
    assert problems(ingested) == []


def test_a_fact_is_purged_with_its_source(ingested: Path) -> None:
    fact = remember_in(ingested)
    remaining = remember_in(ingested, "The plan is for May.", "plan.md:1-3")
    preview = invoke("corpus", "purge", "limits.md", "--dry-run", "--json", "--db", ingested).json()
    assert preview["facts"] == [fact.document_id]
    assert preview["documents"] == 2
    outcome = invoke("corpus", "purge", "limits.md", "--dry-run", "--db", ingested)
    assert "1 remembered fact" in outcome.err
    assert fact.document_id in outcome.err
    assert invoke("corpus", "purge", "limits.md", "--yes", "--json", "--db", ingested).json()["receipts"][0][
        "documents"
    ] == 2  # fmt: skip
    with Admin(ingested) as admin:
        assert [stored_fact.document_id for stored_fact in all_facts(admin.workspace)] == [
            remaining.document_id
        ]
    for file in ingested.parent.glob(f"{ingested.name}*"):
        assert b"forty requests" not in file.read_bytes()
    assert problems(ingested) == []


def test_a_replica_with_a_fact_is_outdated_by_the_purge_of_its_source(ingested: Path) -> None:
    fact = remember_in(ingested)
    staged = stage(ingested, "/share", [fact.document_id])
    receipt = invoke("corpus", "purge", "limits.md", "--yes", "--json", "--db", ingested).json()[
        "receipts"
    ][0]
    assert [copy["target"] for copy in receipt["publications"]] == ["/share"]
    assert not staged.exists()


def test_a_repair_keeps_sound_facts_and_drops_damaged_ones(ingested: Path) -> None:
    sound = remember_in(ingested)
    damaged = [remember_in(ingested, f"Fact number {n}.", PAGE) for n in range(2)]
    rows = "(SELECT id FROM document WHERE document_id = ?)"
    db = apsw.Connection(str(ingested))
    db.execute(
        f"UPDATE remembered SET count = 9 WHERE document = {rows}", (damaged[0].document_id,)
    )
    db.execute(f"DELETE FROM remembered WHERE document = {rows}", (damaged[1].document_id,))
    db.close()
    assert {problem.code for problem in problems(ingested)} == {"row_damaged"}
    report = repair(ingested)
    assert {lost["document_id"] for lost in report.lost} == {
        damaged_fact.document_id for damaged_fact in damaged
    }
    assert [fact.document_id for fact in listed(ingested).values()] == [sound.document_id]
    assert problems(ingested) == []
