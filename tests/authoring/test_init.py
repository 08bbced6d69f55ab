"""`init`: what it writes is what ingest reads, it changes no answer, and it never overwrites."""

import json
import shlex
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from rolebundle.contracts.upkeep import InitReport
from rolebundle.ingest.manifests import parse_manifest
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP
from support.commands import Outcome, invoke


def init(folder: Path, *more: str | Path) -> Outcome:
    return invoke("init", folder, "--db", folder.parent / "c.db", *more)


def overlay_file(folder: Path, role: str) -> Path:
    return folder.parent / "c.db.overlays" / f"{role}.json"


class TestManifest:
    def test_it_has_sources_and_raises_no_trust(self, notes: Path) -> None:
        assert init(notes).code == 0
        rules = tomllib.loads((notes / "rolebundle.toml").read_text())["rule"]
        assert {rule["glob"]: rule.get("source_id") for rule in rules} == {
            "boats/**": "notes-boats",
            "decisions/**": "notes-decisions",
            "meetings/**": "notes-meetings",
        }
        assert "#   minutes: 3 files" in (notes / "rolebundle.toml").read_text()
        assert not any("trust_tier" in rule for rule in rules)

    def test_no_source_where_it_would_change_a_document(self, notes: Path) -> None:
        """One that is declared would not count, and one in the corpus would get another id."""
        declaring = notes / "boats" / "own.md"
        declaring.write_text("---\nsource_id: own\n---\nText.\n")
        assert "source_id" not in init(notes, "--dry-run").out
        declaring.unlink()
        assert "source_id" in init(notes, "--dry-run").out
        ingest = ("ingest", notes, "--lexical-only", "--db", notes.parent / "c.db")
        assert invoke(*ingest).code == 0
        assert "source_id" not in init(notes, "--dry-run").out

    def test_an_ingest_reads_it_and_gives_what_was_reported(self, notes: Path) -> None:
        report = InitReport.model_validate_json(init(notes, "--json").out)
        db = notes.parent / "c.db"
        outcome = invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        assert outcome.code == 0, outcome.err
        status = invoke("status", "--json", "--db", db).json()
        assert {
            source["source_id"]: source["documents"] for source in status["sources"]
        } == report.sources
        assert len(invoke("ls", "--json", "--db", db).json()["documents"]) == report.files

    def test_what_cannot_be_ingested_is_left_out(self, notes: Path) -> None:
        before = InitReport.model_validate_json(init(notes, "--dry-run", "--json").out)
        (notes / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
        with (notes / "huge.md").open("wb") as file:
            file.truncate(DEFAULT_SIZE_CAP + 1)
        report = InitReport.model_validate_json(init(notes, "--json").out)
        assert report.files == before.files
        assert sum(report.left_out.values()) == sum(before.left_out.values()) + 2
        db = notes.parent / "c.db"
        outcome = invoke("ingest", notes, "--lexical-only", "--workers", "1", "--json", "--db", db)
        skipped = Counter(skip["code"] for skip in outcome.json()["skipped"])
        assert {code: skipped[code] for code in report.left_out} == report.left_out

    @pytest.mark.parametrize(
        "name", ["a*b", "what?", 'quote"', "back\\slash", "tab\tx", "é漢", "del\x7f"]
    )
    def test_any_name_gives_a_valid_manifest(self, notes: Path, name: str) -> None:
        for number in range(2):
            path = notes / name / "runbooks" / f"{name}{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("# X\n")
        assert init(notes).code == 0
        parse_manifest((notes / "rolebundle.toml").read_bytes(), notes / "m")

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        outcome = init(tmp_path / "empty", "--role", "release-manager")
        assert outcome.code == 0
        lines = outcome.out.splitlines()
        assert lines[1] == "files: 0"
        assert lines[2].startswith("written: ")
        outcome = invoke("ingest", tmp_path / "empty", "--db", tmp_path / "c.db")
        assert "nothing to search yet" in outcome.out
        assert invoke("ls", "--db", tmp_path / "c.db").err == "no document\n"


class TestRole:
    def test_the_overlay_only_proposes(self, notes: Path) -> None:
        assert init(notes, "--role", "security-reviewer").code == 0
        values = json.loads(overlay_file(notes, "security-reviewer").read_text())
        assert values["mission"] == "" and "extends" not in values
        for part in ("vocabulary", "source_policy"):
            assert not any(values[part].values())
        notes_of = values["notes"]
        assert "pattern notes-meetings (3 files)" in notes_of["source_policy.preferred_sources"]
        assert "minutes (3 files)" in notes_of["source_policy.document_type_boosts"]
        # A pattern `notes` would match all of them.
        assert "pattern notes (" not in notes_of["source_policy.preferred_sources"]

    def test_lint_asks_for_the_mission_alone(self, notes: Path) -> None:
        init(notes, "--role", "release-manager")
        db = notes.parent / "c.db"
        invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        lint = invoke("overlay", "lint", "release-manager", "--json", "--db", db)
        assert lint.code == 0, lint.err
        findings = lint.json()["overlays"][0]["findings"]
        assert [finding["code"] for finding in findings] == ["empty_mission"]

    def test_a_role_of_rolebundle_that_it_hides_is_named(self, notes: Path) -> None:
        outcome = init(notes, "--role", "code-reviewer")
        assert "overlay new ID --from code-reviewer" in outcome.out

    def test_the_next_commands_work_as_printed(self, notes: Path) -> None:
        commands = init(notes, "--role", "release-manager", "--json").json()["next"]
        assert len(commands) > 1
        for command in commands:
            outcome = invoke(*shlex.split(command)[1:])
            assert outcome.code == 0, outcome.err


class TestRefusals:
    def test_nothing_is_overwritten_and_nothing_half_written(self, notes: Path) -> None:
        overlay = overlay_file(notes, "release-manager")
        overlay.parent.mkdir()
        overlay.write_text("mine")
        refused = init(notes, "--role", "release-manager")
        assert refused.code == 3 and "file_exists" in refused.err
        assert overlay.read_text() == "mine" and not (notes / "rolebundle.toml").exists()
        assert init(notes).code == 0
        outcome = init(notes)
        assert outcome.code == 3 and "file_exists" in outcome.err
        for more in ((), ("--role", "release-manager")):
            planned = init(notes, *more, "--dry-run")
            assert planned.code == 0, planned.err
            assert bool(more) == ('"role_id"' in planned.out)
        assert overlay.read_text() == "mine"

    def test_a_dry_run_writes_nothing(self, notes: Path) -> None:
        before = sorted(path for path in notes.parent.rglob("*"))
        outcome = init(notes, "--role", "release-manager", "--dry-run")
        assert outcome.code == 0 and "[[rule]]" in outcome.out and '"role_id"' in outcome.out
        assert sorted(path for path in notes.parent.rglob("*")) == before

    @pytest.mark.parametrize("role", ["Release Manager", "../x", "a" * 65])
    def test_a_name_that_is_no_role_id(self, notes: Path, role: str) -> None:
        refused = init(notes, "--role", role)
        assert refused.code == 3 and "bad_role_id" in refused.err

    def test_no_folder(self, tmp_path: Path) -> None:
        assert init(tmp_path / "none").code == 2

    def test_an_overlay_that_cannot_be_written_takes_the_manifest_back(self, notes: Path) -> None:
        (notes.parent / "c.db.overlays").write_text("a file")
        refused = init(notes, "--role", "release-manager")
        assert refused.code in (3, 6)
        assert not (notes / "rolebundle.toml").exists()
