"""`init`: what it writes is what ingest reads, and it never overwrites."""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from rolebundle.contracts.authoring import InitReport
from rolebundle.ingest.manifest_file import parse_manifest
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP
from support.commands import Outcome, invoke


def init(folder: Path, *more: str | Path) -> Outcome:
    return invoke("init", folder, "--db", folder.parent / "c.db", *more)


def overlay_file(folder: Path, role: str) -> Path:
    return folder.parent / "c.db.overlays" / f"{role}.json"


class TestManifest:
    def test_it_says_what_names_and_headings_tell(self, notes: Path) -> None:
        assert init(notes).code == 0
        rules: defaultdict[str, dict] = defaultdict(dict)
        for rule in tomllib.loads((notes / "rolebundle.toml").read_text())["rule"]:
            rules[rule["glob"]] |= rule
        assert rules["decisions/**"]["document_type"] == "adr"
        assert rules["meetings/**"]["document_type"] == "meeting-notes"
        assert rules["meetings/**"]["source_id"] == "notes-meetings"
        assert rules["CHANGELOG.md"]["document_type"] == "changelog"
        assert rules["archive/jetty-2019.md"]["document_type"] == "archived"
        # No rule for what nothing tells, and none for a small folder.
        assert "document_type" not in rules["boats/**"]
        assert not any("trust_tier" in rule for rule in rules.values())

    def test_the_example_of_trust_is_the_documentation(self, tmp_path: Path) -> None:
        for name in ("app/a.md", "app/b.md", "app/c.md", "docs/a.md", "docs/b.md", "docs/c.md"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"# Text of {name}\n", encoding="utf-8")
        assert init(tmp_path).code == 0
        text = (tmp_path / "rolebundle.toml").read_text("utf-8")
        assert '# glob = "docs/**"\n# trust_tier = "preferred"' in text

    def test_an_ingest_reads_it_and_gives_what_was_reported(self, notes: Path) -> None:
        report = InitReport.model_validate_json(init(notes, "--json").out)
        db = notes.parent / "c.db"
        outcome = invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        assert outcome.code == 0, outcome.err
        status = invoke("status", "--json", "--db", db).json()
        assert {
            source["source_id"]: source["documents"] for source in status["sources"]
        } == report.sources
        listed = invoke("ls", "--json", "--db", db).json()["documents"]
        assert sum(report.document_types.values()) == len(listed) == report.documents

    def test_code_that_a_folder_tells_has_one_rule(self, notes: Path) -> None:
        for name in ("one.py", "two.py", "pages/plan.md", "pages/idea.md"):
            file = notes / "tests" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("# A text\n")
        init(notes)
        manifest = parse_manifest((notes / "rolebundle.toml").read_bytes(), "m")
        globs = [
            rule.glob for rule in manifest.rules if rule.values.get("document_type") == "test-code"
        ]
        assert "tests/**/*.py" in globs
        assert not any(glob.endswith(("one.py", "two.py")) for glob in globs)

    def test_a_file_that_cannot_be_read_is_left_out_and_no_file(self, notes: Path) -> None:
        before = InitReport.model_validate_json(init(notes, "--dry-run", "--json").out)
        (notes / "broken.pdf").write_bytes(b"%PDF-1.4 no more")
        (notes / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
        with (notes / "huge.md").open("wb") as file:
            file.truncate(DEFAULT_SIZE_CAP + 1)
        report = InitReport.model_validate_json(init(notes, "--json").out)
        assert (report.files, report.read) == (before.files, before.read)
        assert sum(report.left_out.values()) == sum(before.left_out.values()) + 3
        db = notes.parent / "c.db"
        outcome = invoke("ingest", notes, "--lexical-only", "--workers", "1", "--json", "--db", db)
        skipped = Counter(skip["code"] for skip in outcome.json()["skipped"])
        assert {code: skipped[code] for code in report.left_out} == report.left_out

    def test_dates_in_names_become_rules(self, notes: Path) -> None:
        init(notes)
        manifest = parse_manifest((notes / "rolebundle.toml").read_bytes(), "m")
        dates = {
            rule.glob: rule.values["updated_at"]
            for rule in manifest.rules
            if "updated_at" in rule.values
        }
        assert dates["meetings/2026-03-01-board.md"] == "2026-03-01T00:00:00Z"

    def test_an_uncertain_type_is_a_comment_with_its_evidence(self, notes: Path) -> None:
        (notes / "decisions" / "list.md").write_text("# Adr list\n")
        for name in ("boats/gig.md", "boats/skiff.md"):
            (notes / name).write_text("# X\n\n## Attendees\n\nAna\n\n## Agenda\n\nOars\n")
        init(notes)
        text = (notes / "rolebundle.toml").read_text()
        assert "# uncertain: 2 of 3 documents" in text
        assert '# document_type = "meeting-notes"' in text

    @pytest.mark.parametrize(
        "name",
        ["a*b.md", "what?.md", 'quote".md', "back\\slash.md", "tab\tx.md", "é漢.md", "del\x7f.md"],
    )
    def test_any_file_name_gives_a_valid_manifest(self, notes: Path, name: str) -> None:
        (notes / "odd").mkdir()
        for folder in ("odd", "decisions"):
            (notes / folder / f"readme-{name}").write_text("# X\n")
        assert init(notes).code == 0
        parse_manifest((notes / "rolebundle.toml").read_bytes(), "m")

    def test_a_folder_that_the_corpus_has_keeps_its_ids(self, notes: Path) -> None:
        db = notes.parent / "c.db"
        invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        init(notes)
        before = invoke("ls", "--json", "--db", db).json()["documents"]
        invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        after = invoke("ls", "--json", "--db", db).json()["documents"]
        assert {document["document_id"] for document in before} == {
            document["document_id"] for document in after
        }

    def test_the_same_folder_gives_the_same_text(self, notes: Path) -> None:
        assert init(notes, "--dry-run").out == init(notes, "--dry-run").out

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        outcome = init(tmp_path / "empty", "--role", "release-manager")
        assert outcome.code == 0
        lines = outcome.out.splitlines()
        assert lines[0].endswith("0 files, 0 documents; 0 left out")
        assert lines[1].startswith("wrote ")
        assert "overlay new release-manager --examples PATH" in outcome.out
        outcome = invoke("ingest", tmp_path / "empty", "--db", tmp_path / "c.db")
        assert "nothing to search yet" in outcome.out
        assert invoke("ls", "--db", tmp_path / "c.db").err == "no document\n"


class TestRole:
    def test_the_overlay_passes_lint_and_has_evidence_for_every_value(self, notes: Path) -> None:
        outcome = init(notes, "--role", "release-manager")
        assert outcome.code == 0, outcome.err
        db = notes.parent / "c.db"
        invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        lint = invoke("overlay", "lint", "release-manager", "--json", "--db", db)
        assert lint.code == 0, lint.err
        assert lint.json()["overlays"][0]["findings"] == []
        values = json.loads(overlay_file(notes, "release-manager").read_text())
        assert "release" in [
            *values["vocabulary"]["boost_phrases"],
            *values["vocabulary"]["preferred_terms"],
        ]
        for key in ("boost_phrases", "preferred_terms"):
            for number in range(len(values["vocabulary"][key])):
                assert f"vocabulary.{key}[{number}]" in values["notes"]
        for kind in values["source_policy"]["document_type_boosts"]:
            assert f"source_policy.document_type_boosts.{kind}" in values["notes"]
        assert all(rule["reason"] for rule in values["source_policy"]["preferred_sources"])

    def test_confidential_words_stay_out_of_it(self, notes: Path) -> None:
        # Every agent of the role may read the overlay.
        init(notes, "--role", "release-manager")
        init(notes, "--role", "zanzibar")
        for role in ("release-manager", "zanzibar"):
            text = overlay_file(notes, role).read_text().lower().replace('"zanzibar"', "")
            assert "secret.md" not in text and "zanzibar release" not in text

    def test_a_name_of_a_known_field_extends_the_shipped_role(self, notes: Path) -> None:
        init(notes, "--role", "appsec-reviewer")
        values = json.loads(overlay_file(notes, "appsec-reviewer").read_text())
        assert values["extends"] == "security-reviewer"

    def test_what_a_folder_has_nothing_for_stays_inherited(self, tmp_path: Path) -> None:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "oar.md").write_text("# Oar\n\nIt floats.\n")
        init(tmp_path / "notes", "--role", "appsec-reviewer")
        db = tmp_path / "c.db"
        own, base = (
            invoke("overlay", "show", role, "--db", db).json()["overlay"]
            for role in ("appsec-reviewer", "security-reviewer")
        )
        assert own["vocabulary"] == base["vocabulary"]
        assert own["source_policy"] == base["source_policy"]

    def test_an_inherited_phrase_is_taken_if_all_its_words_are_there(self, tmp_path: Path) -> None:
        folder = tmp_path / "notes"
        folder.mkdir()
        docs = "The documentation has release notes. Install the tools, then read the style guide."
        for number in range(4):
            (folder / f"docs-{number}.md").write_text(f"# Documentation {number}\n\n{docs}\n")
            (folder / f"boat-{number}.md").write_text(f"# Boat {number}\n\nIt is on the lake.\n")
        init(folder, "--role", "docs-editor")
        values = json.loads(overlay_file(folder, "docs-editor").read_text())
        phrases = values["vocabulary"]["boost_phrases"]
        assert "release notes" in phrases
        assert not {"how to install", "user guide"}.intersection(phrases)

    def test_a_mission_names_no_versions_dates_or_title_twice(self, tmp_path: Path) -> None:
        folder = tmp_path / "releases"
        folder.mkdir()
        titles = ("Version 3.2.0", "Release 2026-05-12", "Release checklist", "Release checklist")
        for number, title in enumerate(titles):
            text = f"# {title}\n\nThe release manager tags release {number}.\n"
            (folder / f"{number}.md").write_text(text)
        init(folder, "--role", "release-manager")
        values = json.loads(overlay_file(folder, "release-manager").read_text())
        assert values["mission"].endswith("the documents here, such as Release checklist.")

    def test_the_name_of_a_shipped_role_begins_with_its_values(self, notes: Path) -> None:
        outcome = init(notes, "--role", "code-reviewer")
        assert outcome.code == 0, outcome.err
        values = json.loads(overlay_file(notes, "code-reviewer").read_text())
        assert "extends" not in values and values["mission"]

    def test_a_second_role_keeps_the_manifest(self, notes: Path) -> None:
        init(notes)
        (notes / "rolebundle.toml").write_text("# mine\n")
        outcome = init(notes, "--role", "release-manager", "--json")
        assert [draft["state"] for draft in outcome.json()["drafts"]] == ["kept", "written"]
        assert (notes / "rolebundle.toml").read_text() == "# mine\n"

    def test_the_next_commands_work_as_printed(self, notes: Path) -> None:
        import shlex

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

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
    def test_a_folder_that_may_not_be_written(self, notes: Path) -> None:
        notes.chmod(0o500)
        assert init(notes, "--role", "release-manager").code == 6
        assert not overlay_file(notes, "release-manager").exists()

    @pytest.mark.parametrize("role", ["Release Manager", "../x", "a" * 65])
    def test_a_name_that_is_no_role_id(self, notes: Path, role: str) -> None:
        refused = init(notes, "--role", role)
        assert refused.code == 2 and "bad_role_id" in refused.err

    def test_no_folder(self, tmp_path: Path) -> None:
        assert init(tmp_path / "none").code == 2

    @pytest.mark.parametrize("role", [(), ("--role", "release-manager")])
    def test_a_corpus_that_is_a_folder(self, notes: Path, role: tuple[str, ...]) -> None:
        before = sorted(notes.parent.rglob("*"))
        refused = invoke("init", notes, *role, "--db", notes)
        assert refused.code == 2 and f"{notes}: is a folder" in refused.err
        assert sorted(notes.parent.rglob("*")) == before

    def test_an_overlay_that_cannot_be_written_takes_the_manifest_back(self, notes: Path) -> None:
        (notes.parent / "c.db.overlays").write_text("a file")
        refused = init(notes, "--role", "release-manager")
        assert refused.code in (3, 6)
        assert not (notes / "rolebundle.toml").exists()
