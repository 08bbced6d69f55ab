"""`rolebundle compare`, of roles and of saved answers, on the sample corpus."""

import json
from pathlib import Path

import pytest

from rolebundle.contracts.why import Comparison
from support.commands import Outcome, invoke, is_coded
from support.overlay_files import write

TASK = "Review token rotation"
ROLES = "mossline-security-reviewer,mossline-product-strategist,mossline-incident-responder"


@pytest.fixture
def bundle(sample_db: Path, tmp_path: Path) -> Path:
    return ask(sample_db, tmp_path, "--role", "mossline-security-reviewer", "--limit", "4")


def ask(db: Path, folder: Path, *options: str | Path) -> Path:
    outcome = invoke("retrieve", TASK, "--format", "json", "--lexical-only", "--db", db, *options)
    assert outcome.code == 0, outcome.err
    path = folder / "bundle.json"
    path.write_text(outcome.out, encoding="utf-8")
    return path


def change(path: Path, **fields: object) -> Path:
    plain = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(plain | fields), encoding="utf-8")
    return path


def refused(outcome: Outcome, code: str) -> None:
    is_coded(outcome)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"[{code}]" in outcome.err
    assert "next:" in outcome.err


class TestReplay:
    def test_the_same_today(self, sample_db: Path, bundle: Path) -> None:
        reply = invoke("compare", bundle, "--db", sample_db)
        assert (reply.code, reply.err) == (0, "")
        assert reply.out.startswith(
            "the answer is the same today: mossline-security-reviewer · Review"
        )

    def test_after_an_edit(self, tmp_path: Path) -> None:
        db, notes = tmp_path / "notes.db", tmp_path / "notes"
        notes.mkdir()
        for name in ("one", "two"):
            text = f"# {name}\n\nThe token rotation of {name}.\n"
            (notes / f"{name}.md").write_text(text, encoding="utf-8")
        ingest = ("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        assert invoke(*ingest).code == 0
        path = ask(db, tmp_path)
        (notes / "one.md").write_text("# one\n\nNo rotation of the token.\n", encoding="utf-8")
        (notes / "two.md").unlink()
        assert invoke(*ingest).code == 0
        reply = invoke("compare", path, "--db", db)
        assert reply.code == 1
        for line in (
            "the answer is different today: (no role)",
            "generation: ",
            "its document was edited and no longer has this text",
            "its document is no longer in the corpus",
            "0 of 2 selected passages still selected today, and 1 other\n",
            "new: not proposed → rank 1",
        ):
            assert line in reply.out
        coded = invoke("compare", path, "--db", db, "--json")
        assert (coded.code, coded.err) == (1, "")
        assert coded.json()["same"] is False

    def test_another_overlay(self, sample_db: Path, tmp_path: Path) -> None:
        roles = tmp_path / "roles"
        roles.mkdir()
        overlay = write(roles, "mine", retrieval_policy={"max_selected_chunks": 3})
        path = ask(sample_db, tmp_path, "--overlay", overlay)
        for found in (("--overlay", overlay), ("--overlay-dir", roles)):
            reply = invoke("compare", path, "--db", sample_db, *found)
            assert reply.out.startswith("the answer is the same"), reply.out
        write(roles, "mine", retrieval_policy={"max_selected_chunks": 2})
        reply = invoke("compare", path, "--db", sample_db, "--overlay", overlay)
        assert "overlay: " in reply.out
        assert "→ budget_cut (score" in reply.out
        assert "not selected in either answer: " in reply.out
        assert invoke("compare", path, "--db", sample_db).code == 3

    def test_the_reference_bundles(self, sample_db: Path, shared: Path) -> None:
        paths = sorted((shared / "compat" / "knowledge-core").glob("bundle-*.json"))
        assert paths
        for path in paths:
            outcome = invoke("compare", path, "--db", sample_db)
            refused(outcome, "bundle_not_replayable")
            assert "corpus: is missing" in outcome.err

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\xff\xfe",
            b"[]",
            b"null",
            b"{}",
            b"[" * 100_000,
            b'{"version": NaN}',
            b'{"version": "2.0"}',
            b'{"version": 1e999}',
            b'{"version": "1.0", "version": "1.0"}',
        ],
        ids=lambda content: repr(content[:20]),
    )
    def test_what_is_no_bundle(self, sample_db: Path, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "bundle.json"
        path.write_bytes(content)
        refused(invoke("compare", path, "--db", sample_db), "bundle_malformed")

    @pytest.mark.parametrize("detail", ["ids", "compact"])
    def test_less_detail(self, sample_db: Path, bundle: Path, detail: str) -> None:
        plain = json.loads(bundle.read_text("utf-8"))
        kept_keys = ("rank", "chunk_id", "document_id", "scores", "citation")
        kept_keys += ("content",) if detail == "compact" else ()
        less = [{name: passage[name] for name in kept_keys} for passage in plain["selected"]]
        outcome = invoke("compare", change(bundle, selected=less), "--db", sample_db)
        refused(outcome, "bundle_incomplete")
        assert "full" in outcome.err

    def test_text_from_a_bundle_is_no_terminal_command(self, sample_db: Path, bundle: Path) -> None:
        corpus = json.loads(bundle.read_text("utf-8"))["corpus"] | {"corpus_id": "x\x1b[2Jy"}
        reply = invoke("compare", change(bundle, corpus=corpus), "--db", sample_db)
        assert "corpus: x [2Jy → " in reply.out
        assert "\x1b" not in reply.out


class TestCompare:
    def compare(self, db: Path, *options: str, roles: str = ROLES) -> Outcome:
        return invoke(
            "compare", TASK, "--roles", roles, "--lexical-only", "--db", db,
            "--now", "2026-11-15", *options,
        )  # fmt: skip

    def test_text(self, sample_db: Path) -> None:
        reply = self.compare(sample_db, "--limit", "3")
        assert (reply.code, reply.err) == (0, "")
        for role in ROLES.split(","):
            assert f"\n{role}: 3 passages, " in reply.out
        assert "mossline-security-reviewer and mossline-product-strategist: " in reply.out
        assert "of the passages in common" in reply.out
        assert "trust " in reply.out

    def test_json_says_why_another_role_lacks_a_passage(self, sample_db: Path) -> None:
        reply = Comparison.model_validate(self.compare(sample_db, "--limit", "3", "--json").json())
        assert [view.role_id for view in reply.roles] == ROLES.split(",")
        assert all(len(view.selected) == 3 for view in reply.roles)
        assert len(reply.overlaps) == 3
        lacking = [
            standing for passage in reply.passages for standing in passage.standings
            if standing.state != "selected"
        ]  # fmt: skip
        assert lacking
        assert all(standing.reason for standing in lacking if standing.state == "rejected")

    @pytest.mark.parametrize("roles", ["", ","])
    def test_no_role(self, sample_db: Path, roles: str) -> None:
        outcome = self.compare(sample_db, roles=roles)
        is_coded(outcome)
        assert outcome.code == 2


def test_a_comparison_of_answers_without_passages_says_so(sample_db: Path) -> None:
    task = ("compare", "zebra quagga okapi gnus", "--roles", ROLES, "--lexical-only")
    output = invoke(*task, "--db", sample_db).out
    assert output.count("0 passages, 0 for it alone") == 3
    assert output.count("neither got a passage") == 3
    assert "%" not in output
