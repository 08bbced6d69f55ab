"""`overlay new` and `overlay try`."""

import json
from pathlib import Path

from rolebundle.contracts.upkeep import OverlayTrial
from support.commands import Outcome, invoke


def own_overlay(corpus: Path, role: str) -> Path:
    return corpus.with_name(f"{corpus.name}.overlays") / f"{role}.json"


def new(corpus: Path, *arguments: str | Path) -> Outcome:
    return invoke("overlay", "new", *arguments, "--db", corpus)


def write(corpus: Path, role: str, **values: object) -> Path:
    path = own_overlay(corpus, role)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": "1.0", "role_id": role, "mission": "m", **values}))
    return path


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

    def test_a_role_never_extends_itself(self, corpus: Path) -> None:
        assert new(corpus, "code-reviewer", "--from", "code-reviewer").code == 2

    def test_never_over_another_file(self, corpus: Path, tmp_path: Path) -> None:
        output = tmp_path / "mine.json"
        assert new(corpus, "mine", "--file", output).code == 0
        before = output.read_bytes()
        assert new(corpus, "mine", "--from", "code-reviewer", "--file", output).code == 3
        planned = new(corpus, "mine", "--from", "code-reviewer", "--file", output, "--dry-run")
        assert planned.code == 0 and "code-reviewer" in planned.out
        assert output.read_bytes() == before

    def test_a_folder_that_is_missing_is_not_made(self, corpus: Path, tmp_path: Path) -> None:
        for more in ((), ("--dry-run",)):
            output = tmp_path / "none" / "mine.json"
            refused = new(corpus, "mine", "--file", output, *more)
            assert refused.code == 2 and f"{output.parent}: there is no such folder" in refused.err
            assert not output.parent.exists()

    def test_a_corpus_that_is_a_folder(self, tmp_path: Path) -> None:
        refused = new(tmp_path, "mine")
        assert refused.code == 2 and f"{tmp_path}: is a folder" in refused.err
        assert not own_overlay(tmp_path, "mine").exists()


class TestTry:
    def test_ranks_with_and_without_and_what_moved_them(self, corpus: Path) -> None:
        write(
            corpus, "boatman",
            vocabulary={"preferred_terms": ["oars"]},
            source_policy={
                "preferred_sources": [{"path": "boats/**", "reason": "our boats"}],
                "forbidden_sources": [{"path": "archive/**", "reason": "old"}],
            },
        )  # fmt: skip
        outcome = invoke(
            "overlay", "try", "boatman", "jetty", "--lexical-only", "--json", "--db", corpus
        )
        trial = OverlayTrial.model_validate_json(outcome.out)
        by_path = {passage.locator.partition(":")[0]: passage for passage in trial.passages}
        old = by_path["archive/jetty-2019.md"]
        assert old.rank_without and old.rank_with is None and old.code == "forbidden_source"
        barge = by_path["boats/barge.md"]
        assert "boost:preferred-source(path boats/**: our boats×1.5)" in barge.moved_by
        assert any(
            "oars" in rule for passage in trial.passages for rule in passage.moved_by
        ) == any("oars" in rule for rule in trial.rules_used)
        text = invoke("overlay", "try", "boatman", "jetty", "--lexical-only", "--db", corpus).out
        assert "forbidden_source" in text and "our boats" in text

    def test_a_file_that_is_no_role_yet(self, corpus: Path, tmp_path: Path) -> None:
        path = tmp_path / "mine.json"
        path.write_text('{"version": "1.0", "role_id": "mine"}')
        assert invoke("overlay", "try", path, "jetty", "--lexical-only", "--db", corpus).code == 0
