"""`overlay new`, and what a role changes."""

import json
import shlex
from pathlib import Path

import pytest

from rolebundle.contracts.why import Comparison
from support.commands import Outcome, invoke
from support.source_tree import write_files


def own_overlay(corpus: Path, role: str) -> Path:
    return corpus.with_name(f"{corpus.name}.overlays") / f"{role}.json"


def new(corpus: Path, *arguments: str | Path) -> Outcome:
    return invoke("overlay", "new", *arguments, "--db", corpus)


def write(corpus: Path, role: str, **values: object) -> None:
    path = own_overlay(corpus, role)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": "1.0", "role_id": role, "mission": "m", **values}))


class TestNew:
    def test_from_another_role_it_extends_without_the_mission(self, corpus: Path) -> None:
        assert new(corpus, "my-writer", "--from", "technical-writer").code == 0
        own, base = (
            invoke("overlay", "show", role, "--json", "--db", corpus).json()["overlay"]
            for role in ("my-writer", "technical-writer")
        )
        assert own["extends"] == "technical-writer"
        assert own["vocabulary"] == base["vocabulary"]
        assert own["mission"] == "" and base["mission"]

    def test_the_next_commands_work_as_printed(self, corpus: Path) -> None:
        for command in new(corpus, "mine", "--json").json()["next"]:
            outcome = invoke(*shlex.split(command)[1:])
            assert outcome.code == 0, (command, outcome.err)

    def test_it_proposes_what_the_corpus_has(self, corpus: Path) -> None:
        write_files(corpus.parent / "more", {"log.md": "---\ndocument_type: log\n---\nText.\n"})
        more = ("ingest", corpus.parent / "more", "--lexical-only", "--db", corpus)
        assert invoke(*more).code == 0
        planned = new(corpus, "mine", "--dry-run", "--json").json()["draft"]["content"]
        proposed = json.loads(planned)["notes"]
        assert "pattern more (1 document)" in proposed["source_policy.preferred_sources"]
        assert "log (1 document)" in proposed["source_policy.document_type_boosts"]

    @pytest.mark.parametrize("lanes", [(), ("--lexical-only",)])
    def test_answers_are_as_without_a_role(self, corpus: Path, lanes: tuple[str, ...]) -> None:
        assert new(corpus, "mine").code == 0
        for task in ("Which boats need a repair before the race?", "Who fixes the jetty?"):
            ask = ("retrieve", task, "--format", "json", "--limit", "30", "--db", corpus, *lanes)
            neutral, without = (
                [(passage["chunk_id"], passage["scores"]["final"]) for passage in found["selected"]]
                for found in (invoke(*ask, "--role", "mine").json(), invoke(*ask).json())
            )
            assert neutral == without != []

    def test_a_role_never_extends_itself(self, corpus: Path) -> None:
        assert new(corpus, "code-reviewer", "--from", "code-reviewer").code == 2

    def test_never_over_another_file(self, corpus: Path) -> None:
        assert new(corpus, "mine").code == 0
        before = own_overlay(corpus, "mine").read_bytes()
        assert new(corpus, "mine", "--from", "code-reviewer").code == 3
        planned = new(corpus, "mine", "--from", "code-reviewer", "--dry-run")
        assert planned.code == 0 and "code-reviewer" in planned.out
        assert own_overlay(corpus, "mine").read_bytes() == before

    def test_a_corpus_that_is_a_folder(self, tmp_path: Path) -> None:
        refused = new(tmp_path, "mine")
        assert refused.code == 2 and f"{tmp_path}: is a folder" in refused.err
        assert not own_overlay(tmp_path, "mine").exists()


class TestCompared:
    """What a role changes: one role is compared with no role."""

    def test_ranks_with_and_without_and_what_moved_them(self, corpus: Path, tmp_path: Path) -> None:
        write(
            corpus, "boatman",
            source_policy={
                "preferred_sources": [{"path": "meetings/**", "reason": "our board"}],
                "forbidden_sources": [{"path": "decisions/**", "reason": "old"}],
            },
        )  # fmt: skip
        arguments = ("compare", "jetty", "--roles", "boatman", "--lexical-only", "--db", corpus)
        comparison = Comparison.model_validate_json(invoke(*arguments, "--json").out)
        assert [view.role_id for view in comparison.roles] == ["", "boatman"]
        [old] = [
            passage
            for passage in comparison.passages
            if (passage.locator or "").startswith("decisions/0001-wood.md")
        ]
        without, with_role = old.standings
        assert without.rank and with_role.reason == "forbidden_source"
        page = tmp_path / "page.html"
        text = invoke(*arguments, "--html", page).out
        assert "Roles side by side" in page.read_text("utf-8")
        assert "(no role): rank" in text and "forbidden_source" in text
        assert "boost:preferred-source(path meetings/**: our board" in " ".join(text.split())
